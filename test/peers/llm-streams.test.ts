/** Streams of the real SDKs over real HTTP, from a service that fails before the first word of its answer. */
import { assert, describe, it } from "@effect/vitest"
import { Backoff, RetryObserver, RetryPolicy, RetryQuota } from "effect-retry"
import * as RetryLlm from "effect-retry/RetryLlm"
import * as TokenLimiter from "effect-retry/TokenLimiter"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { get } from "../../src/internal/tryGet.ts"
import { until } from "../utils/until.ts"
import { clients, type Open } from "./llm/clients.ts"
import { type Answering, failedResponse, startService } from "./llm/service.ts"

Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })

/** That of the SDKs, without the delays. */
const policy = Backoff.fixed(0).pipe(
  RetryPolicy.maxAttempts(3),
  RetryPolicy.whileRetryable,
  RetryPolicy.quotaGated({ cost: 5 })
)

const service = (answers: ReadonlyArray<Answering>, error?: object) =>
  Effect.acquireRelease(Effect.promise(() => startService(answers, error)), ({ close }) => Effect.sync(close))

/** The parts of a client's stream: its request ends with the stream. */
const partsOf = (open: Open, url: string) =>
  Stream.unwrap(
    Effect.abortSignal.pipe(
      Effect.andThen((signal) => Effect.tryPromise(async () => open(url, signal))),
      Effect.map((parts) => Stream.fromAsyncIterable(parts, (error) => error))
    )
  )

const retried = (open: Open, url: string) => RetryLlm.untilAnswer(partsOf(open, url), policy)

/** The words in a part. */
const wordOf = (part: unknown): string => {
  const delta = get(part, "delta")
  const words = [
    part,
    get(get(get(get(part, "choices"), 0), "delta"), "content"),
    delta,
    get(delta, "text"),
    get(part, "type") === "text-delta" ? get(part, "text") : undefined
  ]
  return words.find((word) => typeof word === "string") as string | undefined ?? ""
}

const kindOf = (part: unknown) => typeof part === "string" ? part : get(part, "type") ?? get(part, "object")

/** What a consumer has received, and how the stream ended. */
const received = <A, E, R>(stream: Stream.Stream<A, E, R>) =>
  Effect.gen(function*() {
    const parts: Array<A> = []
    const exit = yield* Effect.exit(Stream.runForEach(stream, (part) => Effect.sync(() => parts.push(part))))
    return { exit, kinds: parts.map(kindOf), text: parts.map(wordOf).join("") }
  })

const observed = () => {
  const events: Array<string> = []
  const observer: RetryObserver.RetryObserver = {
    onAttempt: (succeeded) => void events.push(succeeded ? "success" : "failure"),
    onStop: ({ reason }) => void events.push(reason)
  }
  return { events, observe: Effect.provideService(RetryObserver.CurrentObserver, observer) }
}

/** The window is so long that no token flows in during a test. */
const limiter = TokenLimiter.layer({ tokens: 100_000, slack: 0, per: "10 days", cachedInput: "counted" })

const services = Effect.provide([RetryQuota.layer({ capacity: 100 }), limiter])

/** The tokens that are used up. */
const used = Effect.map(TokenLimiter.state, ({ tokens }) => Math.round(tokens.limit - tokens.remaining))

const estimated = Stream.provideService(TokenLimiter.CurrentEstimate, { input: 500, output: 20_000 })

const failures: ReadonlyArray<readonly [name: string, answering: Answering, error?: object]> = [
  ["529 as status", "529 as status"],
  ["an error event in the stream", "error event"],
  // Then the iterator of Anthropic's `stream()` ends, and loses the error.
  ["an error event with the preamble", "error event with the preamble"],
  ["a connection that is cut", "connection cut"]
]

describe.each(Object.entries(clients))("%s", (name, open) => {
  const rows = name.includes("responses")
    ? [...failures, ["a response that failed", "error event", failedResponse] as const]
    : failures

  it.live.each(rows)(
    "is retried after %s, and its answer comes whole and once",
    ([, answering, error]) =>
      Effect.gen(function*() {
        const undisturbed = yield* service([])
        const expected = yield* received(partsOf(open, undisturbed.url))
        const { requests, url } = yield* service([answering, answering], error)
        const { events, observe } = observed()
        const { exit, kinds, text } = yield* observe(received(retried(open, url)))
        assert.deepStrictEqual([requests.length, text, exit._tag], [3, "one two", "Success"])
        assert.deepStrictEqual(kinds, expected.kinds)
        assert.deepStrictEqual(events, ["failure", "failure", "success"])
        assert.strictEqual(yield* RetryQuota.balance, 95, "the retry that failed is spent")
        assert.strictEqual((yield* TokenLimiter.state).inFlight, 0)
        yield* until(() => requests.every(({ isClosed }) => isClosed))
      }).pipe(services, Effect.scoped)
  )

  it.live.each(rows)(
    "after three times %s ends as it does without retries",
    ([, answering, error]) =>
      Effect.gen(function*() {
        const { url: once } = yield* service([answering], error)
        const expected = yield* received(partsOf(open, once))
        const { requests, url } = yield* service([answering, answering, answering], error)
        const { events, observe } = observed()
        const { exit, kinds, text } = yield* observe(received(retried(open, url)))
        assert.deepStrictEqual([requests.length, text, exit._tag], [3, "", expected.exit._tag])
        if (Exit.isSuccess(exit)) assert.deepStrictEqual(kinds, expected.kinds.slice(0, kinds.length))
        assert.deepStrictEqual(events, ["failure", "failure", "failure", "max-attempts"])
      }).pipe(services, Effect.scoped)
  )

  it.live("is not retried after its first word, which comes once", () =>
    Effect.gen(function*() {
      const { requests, url } = yield* service(["cut after the first word"])
      const { exit, text } = yield* received(retried(open, url))
      assert.deepStrictEqual([requests.length, text, exit._tag], [1, "one", "Failure"])
    }).pipe(services, Effect.scoped))

  it.live("as an AsyncIterable is retried too, and closed by the consumer that leaves it", () =>
    Effect.gen(function*() {
      const { requests, url } = yield* service(["error event", "in full", "cut after the first word"])
      const iterable = Stream.toAsyncIterableWith(retried(open, url), yield* Effect.context<RetryQuota.RetryQuota>())
      const words = async (most: number) => {
        let text = ""
        for await (const part of iterable) {
          text += wordOf(part)
          if (text.length >= most) break
        }
        return text
      }
      assert.strictEqual(yield* Effect.promise(() => words(Infinity)), "one two")
      assert.strictEqual(yield* Effect.promise(() => words(1)), "one")
      assert.strictEqual(requests.length, 3)
      yield* until(() => requests.every(({ isClosed }) => isClosed))
    }).pipe(services, Effect.scoped))

  it.live("is settled by its whole usage, or by its estimate", () =>
    Effect.gen(function*() {
      const { url } = yield* service(["in full", "cut after the first word"])
      const metered = estimated(RetryLlm.metered(retried(open, url)))
      yield* received(metered)
      // The service says 1,000 and 4,000 tokens; texts alone say nothing.
      const first = name.endsWith("text only") ? 20_500 : 5000
      assert.strictEqual(yield* used, first)
      yield* received(metered)
      assert.strictEqual(yield* used, first + 20_500)
    }).pipe(services, Effect.scoped))

  it.live("interrupted before its first word closes its connection, and holds nothing", () =>
    Effect.gen(function*() {
      const { requests, url } = yield* service(["error event", "silence before the first word"])
      const fiber = yield* Effect.forkChild(received(retried(open, url)))
      yield* until(() => requests.length === 2)
      yield* Effect.sleep(50)
      yield* Fiber.interrupt(fiber)
      yield* until(() => requests.every(({ isClosed }) => isClosed))
      assert.strictEqual((yield* TokenLimiter.state).inFlight, 0)
    }).pipe(services, Effect.scoped))
})
