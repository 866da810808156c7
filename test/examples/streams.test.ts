import { assert, describe, it } from "@effect/vitest"
import { RetryQuota } from "effect-retry"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { changes, firstLines, follow, type Line, type Log, type Message, pages } from "../../examples/streams.ts"
import { Transient } from "../utils/call.ts"

const lines = (...offsets: ReadonlyArray<number>): ReadonlyArray<Line> =>
  offsets.map((offset) => ({ offset, text: `line ${offset}` }))

/** A log of ten lines: the connection breaks after this many of each read, then holds. */
const logOf = (...breaks: ReadonlyArray<number>) => {
  const reads: Array<number> = []
  const log: Log<Transient> = {
    read: (offset) =>
      Stream.unwrap(Effect.sync(() => {
        const after = breaks[reads.push(offset) - 1]
        const all = lines(...Array.from({ length: 10 - offset }, (_, index) => offset + index))
        return after === undefined
          ? Stream.fromIterable(all)
          : Stream.concat(Stream.fromIterable(all.slice(0, after)), Stream.fail(new Transient()))
      }))
  }
  return { log, reads }
}

const collected = <A, E>(stream: Stream.Stream<A, E, RetryQuota.RetryQuota>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(Stream.runCollect(stream))
    yield* TestClock.adjust("1 minute")
    return yield* Fiber.await(fiber)
  }).pipe(Effect.provide(RetryQuota.layer()))

const all = lines(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)

describe("examples/streams.ts", () => {
  it.effect("firstLines retries until there is a line", () =>
    Effect.gen(function*() {
      const down = logOf(0, 0)
      assert.deepStrictEqual(yield* collected(firstLines(down.log)), Exit.succeed([...all]))
      assert.deepStrictEqual(down.reads, [0, 0, 0])
      const breaks = logOf(3)
      assert.isTrue(Exit.isFailure(yield* collected(firstLines(breaks.log))))
      assert.deepStrictEqual(breaks.reads, [0])
    }))

  it.effect("changes retries until there is a change, whatever heartbeats came before", () =>
    Effect.gen(function*() {
      let opened = 0
      const heartbeat: Message = { kind: "heartbeat" }
      const change: Message = { kind: "change" }
      const feed = Stream.suspend(() =>
        Stream.concat(
          Stream.make(heartbeat, ++opened < 3 ? heartbeat : change),
          opened < 3 ? Stream.fail(new Transient()) : Stream.empty
        )
      )
      assert.deepStrictEqual(yield* collected(changes(feed)), Exit.succeed([change]))
      assert.strictEqual(opened, 3)
    }))

  it.effect("follow continues after the last line", () =>
    Effect.gen(function*() {
      const { log, reads } = logOf(3, 4)
      assert.deepStrictEqual(yield* collected(follow(log)), Exit.succeed([...all]))
      assert.deepStrictEqual(reads, [0, 3, 7])
    }))

  it.effect("pages retries each page", () =>
    Effect.gen(function*() {
      let calls = 0
      const page = (number: number) =>
        Effect.suspend(() => {
          if (calls++ % 2 === 0) return Effect.fail(new Transient())
          return Effect.succeed(number === 3 ? [] : lines(number))
        })
      assert.deepStrictEqual(yield* collected(pages(page)), Exit.succeed([...lines(0, 1, 2)]))
      assert.strictEqual(calls, 8)
    }))
})
