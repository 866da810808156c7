import { assert, describe, it } from "@effect/vitest"
import {
  AwsModes,
  Backoff,
  type RetryDecision,
  RetryObserver,
  RetryPolicy,
  RetryQuota,
  SendGate,
  withRetry
} from "effect-retry"
import * as RetryDriver from "effect-retry/RetryDriver"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as TestClock from "effect/testing/TestClock"
import { Worker } from "../../examples/own-loop.ts"
import { scripted, Terminal, Throttled, TimedOut, Transient, Unsure } from "../utils/call.ts"
import { driven } from "../utils/driven.ts"
import { seeded } from "../utils/smithy.ts"
import { type Driver, optionsOf, playVector, withRandom } from "../utils/vectors.ts"
import { standard2026 } from "../vectors/standard2026.ts"
import { standardClassic } from "../vectors/standardClassic.ts"

const loop: Driver = {
  name: "RetryDriver",
  run: (call, policy, told) =>
    Effect.provideService(driven(call, RetryDriver.make(policy)), RetryObserver.CurrentObserver, {
      onStop: told
    }) as ReturnType<
      Driver["run"]
    >
}

const dynamoDB = (given: { readonly dynamoDB?: true }) => given.dynamoDB ? { base: 25, maxAttempts: 4 } : {}

describe("RetryDriver", () => {
  it.effect.each(standardClassic)(
    "vector: classic, $name",
    (vector) => playVector(vector, AwsModes.standard(optionsOf(vector.given)), loop)
  )

  it.effect.each(standard2026)(
    "vector: 2026, $name",
    (vector) =>
      playVector(vector, AwsModes.standard2026({ ...optionsOf(vector.given), ...dynamoDB(vector.given) }), loop)
  )

  for (
    const [name, policy] of [
      ["a quota", AwsModes.awsStandard2026],
      ["a lifted schedule", RetryPolicy.fromSchedule(Schedule.max([Schedule.exponential(100), Schedule.recurs(3)]))],
      ["a deadline", Backoff.exponential(300).pipe(RetryPolicy.deadline(1500))]
    ] as const
  ) {
    it.effect(`law: with ${name}, it decides as withRetry does`, () =>
      Effect.gen(function*() {
        for (let seed = 0; seed < 60; seed++) {
          const next = seeded(seed)
          const kinds = [Transient, Throttled, TimedOut, Terminal, Unsure]
          const errors = Array.from({ length: Math.floor(next() * 6) }, () => {
            const Kind = kinds[Math.floor(next() * kinds.length)]!
            return Kind === Throttled ? new Throttled({}) : new (Kind as typeof Transient)()
          })
          const random = next()
          const seen = (run: (call: Effect.Effect<string, unknown>) => Effect.Effect<unknown, unknown, any>) =>
            Effect.gen(function*() {
              const told: Array<unknown> = []
              const observer: RetryObserver.RetryObserver = {
                onRetry: (retry) => void told.push(retry.toJSON()),
                onStop: (stop) => void told.push(stop.toJSON())
              }
              const quota = yield* RetryQuota.make({ capacity: 12 })
              const began = yield* Clock.currentTimeMillis
              const fiber = yield* run(scripted(errors).effect).pipe(
                Effect.provideService(RetryQuota.RetryQuota, quota),
                Effect.provideService(RetryObserver.CurrentObserver, observer),
                withRandom(random),
                Effect.forkChild({ startImmediately: true })
              )
              yield* TestClock.adjust("1 hour")
              const exit: Exit.Exit<unknown, unknown> = yield* Fiber.await(fiber)
              assert.isAtLeast(yield* Clock.currentTimeMillis, began)
              return [Exit.isSuccess(exit), told, yield* quota.balance]
            })
          assert.deepStrictEqual(
            yield* seen((call) => driven(call, RetryDriver.make(policy))),
            yield* seen((call) => withRetry(call, policy))
          )
        }
      }))
  }

  class Closed extends Data.TaggedError("Closed")<{}> {
    readonly [SendGate.Refused] = true
  }
  class Gate extends SendGate.Service<Gate, Closed>()("test/RetryDriver/Gate") {}

  /** A gate that makes each send wait a second, and counts passes and their outcomes. */
  const gate = (refuses = false) => {
    const seen: Array<string> = []
    const pass: SendGate.Pass = {
      settle: ({ _tag }) => void seen.push(_tag),
      cancel: () => void seen.push("cancel")
    }
    const layer = SendGate.layer(Gate, {
      order: 1,
      enter: (send) =>
        Effect.flatMap(
          Effect.sleep("1 second"),
          () => refuses ? Effect.fail(new Closed()) : Effect.sync(() => send.hold(pass))
        )
    })
    return { seen, layer }
  }

  const twice = Backoff.fixed(0).pipe(RetryPolicy.maxAttempts(2))

  it.effect("a gate holds back each send, and sees how it ends", () =>
    Effect.gen(function*() {
      const { layer, seen } = gate()
      const fiber = yield* driven(scripted([new Transient()]).effect, RetryDriver.make(twice)).pipe(
        Effect.provide(layer),
        Effect.forkChild({ startImmediately: true })
      )
      yield* TestClock.adjust("1999 millis")
      assert.deepStrictEqual(seen, ["Failure"])
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(yield* Fiber.join(fiber), "ok")
      assert.deepStrictEqual(seen, ["Failure", "Success"])
    }))

  it.effect("what a gate refuses ends with its error, and no retry", () =>
    Effect.gen(function*() {
      const fiber = yield* Effect.flip(driven(scripted([]).effect, RetryDriver.make(twice))).pipe(
        Effect.provide(gate(true).layer),
        Effect.forkChild({ startImmediately: true })
      )
      yield* TestClock.adjust("1 second")
      assert.instanceOf(yield* Fiber.join(fiber), Closed)
    }))

  it.effect("the deadline ends the wait of a retry for a gate", () =>
    Effect.gen(function*() {
      const reasons: Array<string> = []
      const fiber = yield* Effect.flip(
        driven(scripted([new Transient()]).effect, RetryDriver.make(RetryPolicy.deadline(1500)(twice)))
      ).pipe(
        Effect.provide(gate().layer),
        Effect.provideService(RetryObserver.CurrentObserver, { onStop: ({ reason }) => void reasons.push(reason) }),
        Effect.forkChild({ startImmediately: true })
      )
      yield* TestClock.adjust("1500 millis")
      assert.instanceOf(yield* Fiber.join(fiber), Transient)
      assert.deepStrictEqual(reasons, ["deadline"])
    }))

  it.effect("a retry that comes after the deadline is refused, also without a gate", () =>
    Effect.gen(function*() {
      const reasons: Array<string> = []
      const policy = twice.pipe(RetryPolicy.deadline(1500))
      const call = (yield* RetryDriver.make(policy).pipe(
        Effect.provideService(RetryObserver.CurrentObserver, { onStop: ({ reason }) => void reasons.push(reason) })
      )).call()
      const error = new Transient()
      assert.isUndefined(call.enter())
      call.markSent()
      assert.strictEqual((call.failed(error) as RetryDecision.RetryDecision)._tag, "Retry")
      yield* TestClock.adjust(1500)
      const refusal = yield* Effect.flip(call.enter()!)
      assert.deepStrictEqual([refusal.error, refusal.decision._tag, reasons], [error, "Stop", ["deadline"]])
    }))

  it("a worker sends what is due, and abandons what the policy stops", () => {
    const worker = new Worker(
      Effect.runSync(RetryDriver.make(RetryPolicy.maxAttempts(2)(Backoff.fixed(100))))
    )
    worker.add("a", 0)
    const [job] = worker.due(0)
    assert.strictEqual(worker.sent(job!, { error: new Transient() }, 20), "again at 120 ms")
    assert.deepStrictEqual([worker.due(119).length, worker.due(120).length], [0, 1])
    assert.strictEqual(worker.sent(job!, { error: new Transient() }, 130), "given up: max-attempts")
    worker.add("b", 200)
    assert.strictEqual(worker.sent(worker.due(200)[0]!, {}, 210), "done")
    assert.strictEqual(worker.jobs.size, 0)
  })
})
