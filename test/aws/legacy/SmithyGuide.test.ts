import { assert, describe, it } from "@effect/vitest"
import { InvalidOption, RetryClassifier, RetryInfo, RetryObserver, RetryQuota } from "effect-retry"
import * as SmithyGuide from "effect-retry/aws/legacy/SmithyGuide"
import * as RequestHeaders from "effect-retry/aws/RequestHeaders"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Example from "../../../examples/legacy-modes.ts"
import { scripted, Terminal, Throttled, TimedOut, Transient } from "../../utils/call.ts"
import { FakeRedis } from "../../utils/fakeRedis.ts"
import { inTime } from "../../utils/inTime.ts"
import { sweep } from "../../utils/sweep.ts"
import { sdkError, withRandom } from "../../utils/vectors.ts"
import {
  decisions,
  type DecisionVector,
  editions,
  type GuideError,
  successes,
  traits,
  type TraitVector
} from "../../vectors/smithyGuide.ts"

const { error, httpError, retryable } = SmithyGuide

const editionOf = { "2026-02": SmithyGuide.february2026, "2026-04": SmithyGuide.april2026 }

const safeties = { yes: "Yes", maybe: "Maybe", no: "No" } as const

const annotationOf = {
  retryable: ({ retryable: trait }: TraitVector["traits"]) => retryable(trait),
  error: ({ error: fault }: TraitVector["traits"]) => error(fault!),
  httpError: ({ httpError: status }: TraitVector["traits"]) => httpError(status!)
}

/** Without the fields that have no value. */
const defined = <A extends object>(fields: A): Partial<A> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<A>

/** An error with the facts of a table, or of its shape. */
const failureOf = ({ facts, ...wire }: GuideError): unknown => {
  if (facts === undefined) return sdkError(wire)
  const { retryAfterMs, retrySafe, ...rest } = facts
  const info = RetryInfo.make({ ...rest, safety: safeties[retrySafe], ...defined({ retryAfter: retryAfterMs }) })
  return { [RetryInfo.TypeId]: info }
}

/** An error of a class with these annotations. */
const annotated = (annotations: {}, fields: { readonly retryAfter?: Duration.Duration } = {}) => {
  class Modelled extends Schema.TaggedError<Modelled>()("Modelled", {
    retryAfter: Schema.optional(Schema.Duration)
  }, annotations) {}
  return new Modelled(fields)
}

const factsOf = (error: unknown) => {
  const info = Option.getOrUndefined(RetryInfo.fromError(error))
  return info === undefined ? undefined : [info.safety, info.throttling, info.fault]
}

const faultOf = (error: unknown) => Option.getOrUndefined(RetryInfo.faultOf(error))

const balanceOf = (initial: number, options?: RetryQuota.Options) =>
  Effect.provide(RetryQuota.layer({ ...options, initial }))

describe("SmithyGuide", () => {
  describe("traits", () => {
    it.each(traits)("vector: $name", ({ fault, retrySafe, throttling, traits }) => {
      // In the order of the table: none decides.
      const annotations = Object.keys(traits).map((name) => annotationOf[name as keyof typeof traits](traits))
      const modelled = annotated(Object.assign({}, ...annotations))
      const facts = retrySafe === null ? undefined : [safeties[retrySafe], throttling, fault]
      assert.deepStrictEqual(factsOf(modelled), facts as any)
      assert.strictEqual(faultOf(modelled), fault)
      const known = Option.getOrUndefined(RetryClassifier.defaultClassifier(modelled))
      assert.deepStrictEqual(known, Option.getOrUndefined(RetryInfo.fromError(modelled)))
    })

    it("law: @httpError alone says what the HTTP classifier says about its status", () => {
      for (let status = 400; status < 600; status++) {
        assert.deepStrictEqual(
          RetryInfo.fromError(annotated(httpError(status))),
          RetryClassifier.httpStatus({ status }),
          `status ${status}`
        )
      }
    })

    it("leave the hint to a field of the error, and the facts to an annotation next to them", () => {
      const hinted = annotated(retryable(), { retryAfter: Duration.seconds(3) })
      assert.strictEqual(Duration.toMillis(Option.getOrThrow(RetryInfo.fromError(hinted)).retryAfter!), 3000)
      const both = annotated({ ...retryable(), ...RetryInfo.annotation({ safety: "No" }) })
      assert.deepStrictEqual(factsOf(both), ["No", false, "other"])
    })

    it("refuse what a model could not say", () => {
      for (const status of [399, 600, 404.5, NaN, "404" as any]) {
        assert.throws(() => httpError(status), InvalidOption, "status")
      }
      assert.throws(() => error("other" as any), InvalidOption, "fault")
      assert.deepStrictEqual([httpError(400), httpError(599)].map((each) => Object.values(each)), [[400], [599]])
    })
  })

  describe("RetryInfo.faultOf", () => {
    for (
      const [name, value, fault] of [
        ["facts", new Transient(), "server"],
        ["facts that name none", new TimedOut(), "other"],
        ["facts that name none, and a status", Object.assign(new TimedOut(), { status: 504 }), "server"],
        ["an SDK error", { $fault: "server", $metadata: { httpStatusCode: 400 } }, "server"],
        ["$metadata", { $metadata: { httpStatusCode: 501 } }, "server"],
        ["status 399", { status: 399 }, undefined],
        ["status 400", { status: 400 }, "client"],
        ["status 499", { statusCode: 499 }, "client"],
        ["status 500", { response: { status: 500 } }, "server"],
        ["status 599", { reason: { response: { status: 599 } } }, "server"],
        ["status 600", { status: 600 }, undefined],
        ["a status that is text", { status: "500" }, undefined],
        ["another $fault", { $fault: "nobody" }, undefined],
        ["any other error", new Error("x"), undefined],
        ["nothing", undefined, undefined],
        ["a trap", new Proxy({}, { get: () => assert.fail("looked at") }), undefined]
      ] as const
    ) {
      it(`vector: ${name}`, () => assert.strictEqual(faultOf(value), fault))
    }
  })

  describe("the example strategy", () => {
    it.effect.each(decisions)(
      "vector: $name",
      ({ error, expected, quotaBefore, retriesBefore }) =>
        Effect.gen(function*() {
          const quota = yield* RetryQuota.RetryQuota
          const strategy = yield* SmithyGuide.make()
          let token = yield* strategy.acquireInitialToken()
          for (let retry = 0; retry < retriesBefore; retry++) {
            token = yield* strategy.refreshRetryToken(token, new Throttled({}))
            yield* Effect.orDie(quota.deposit(5))
          }
          const before = yield* quota.balance
          const decided = yield* Effect.match(strategy.refreshRetryToken(token, failureOf(error)), {
            onSuccess: (next): DecisionVector["expected"] => {
              assert.strictEqual(next.attempt, retriesBefore + 2)
              return { outcome: "retry", delayMs: Duration.toMillis(next.delay), cost: next.cost }
            },
            onFailure: (refused) => ({
              outcome: refused._tag !== "RetryRefused"
                ? refused._tag
                : refused.reason === "final"
                ? "not-retryable"
                : refused.reason
            })
          })
          assert.deepStrictEqual(decided, expected)
          assert.strictEqual(yield* quota.balance, before - (expected.cost ?? 0))
        }).pipe(withRandom(0.5), balanceOf(quotaBefore))
    )

    it.effect("does not retry an unknown error", () =>
      Effect.gen(function*() {
        const strategy = yield* SmithyGuide.make()
        const token = yield* strategy.acquireInitialToken()
        const refused = yield* Effect.flip(strategy.refreshRetryToken(token, new Error("x")))
        assert.strictEqual(refused._tag === "RetryRefused" && refused.reason, "unknown-error")
      }).pipe(balanceOf(500)))

    it.effect.each(editions)("vector: edition $edition, $name", (vector) =>
      Effect.gen(function*() {
        const { cost, delaysMs, edition, error, maxAttempts, maxBackoffMs, retryCost, scale, then } = vector
        const own = { retryCost, maxAttempts, maxBackoff: maxBackoffMs, scale }
        const plain = Object.values(own).every((value) => value === undefined)
        for (
          const options of [{ ...editionOf[edition], ...defined(own) }, ...(plain && edition === "2026-04" ? [{}] : [])]
        ) {
          const strategy = yield* SmithyGuide.make(options)
          const seen: Array<ReadonlyArray<number>> = []
          let token = yield* strategy.acquireInitialToken()
          for (const _ of delaysMs) {
            token = yield* strategy.refreshRetryToken(token, failureOf(error))
            seen.push([Duration.toMillis(token.delay), token.cost])
          }
          assert.deepStrictEqual<ReadonlyArray<ReadonlyArray<number>>>(seen, delaysMs.map((delay) => [delay, cost]))
          const refused = yield* Effect.flip(strategy.refreshRetryToken(token, failureOf(error)))
          assert.strictEqual(refused._tag === "RetryRefused" && refused.reason, then)
        }
      }).pipe(withRandom(1), balanceOf(500)))

    it.effect.each(successes)(
      "vector: edition $edition, $name: $quotaBefore becomes $quotaAfter",
      ({ capacity, edition, quotaAfter, quotaBefore, retries, successRefund }) =>
        Effect.gen(function*() {
          const failures = Array.from({ length: retries }, () => new Transient())
          const program = RetryStrategy.run(scripted(failures).effect)
          const options = { ...editionOf[edition], ...defined({ successRefund }) }
          const exit = yield* inTime(Effect.provide(program, SmithyGuide.layer(options)))
          assert.deepStrictEqual(exit, Exit.succeed("ok" as const))
          assert.strictEqual(yield* RetryQuota.balance, quotaAfter)
        }).pipe(balanceOf(quotaBefore, { ...defined({ capacity }), successIncrement: 7 }))
    )

    it("refuses impossible options by name", () => {
      for (
        const [field, value] of [
          ["retryCost", -1],
          ["timeoutCost", NaN],
          ["throttlingCost", Infinity],
          ["successRefund", -0.5],
          ["maxAttempts", 0],
          ["maxAttempts", 1.5],
          ["maxBackoff", 0],
          ["maxBackoff", "soon"],
          ["scale", -1]
        ] as const
      ) {
        assert.throws(
          () => void SmithyGuide.make({ [field]: value as never }),
          InvalidOption,
          `SmithyGuide.make: ${field}`
        )
      }
    })

    it.effect("has ceilings from 1 to 16 seconds after throttles, and six attempts", () =>
      Effect.gen(function*() {
        const strategy = yield* SmithyGuide.make()
        const delays: Array<number> = []
        let token = yield* strategy.acquireInitialToken()
        for (let retry = 0; retry < 5; retry++) {
          token = yield* strategy.refreshRetryToken(token, new Throttled({}))
          delays.push(Duration.toMillis(token.delay))
        }
        assert.deepStrictEqual(delays, [1000, 2000, 4000, 8000, 16000])
        const refused = yield* Effect.flip(strategy.refreshRetryToken(token, new Throttled({})))
        assert.propertyVal(refused, "message", "not retried after 6 attempts: max-attempts")
      }).pipe(withRandom(1), balanceOf(500)))

    it.effect("puts 1 in, and no more, for a success after retries", () =>
      Effect.gen(function*() {
        const call = scripted([new Transient(), new Throttled({})])
        assert.deepStrictEqual(yield* inTime(looped(call.effect)), Exit.succeed("ok" as const))
        assert.strictEqual(yield* RetryQuota.balance, 500 - 14 - 5 + 1)
      }).pipe(balanceOf(500)))

    it.effect("sends six times, and fails with the last error", () =>
      Effect.gen(function*() {
        const errors = Array.from({ length: 9 }, () => new Transient())
        const call = scripted(errors)
        const exit = yield* inTime(looped(call.effect))
        assert.strictEqual(Exit.isFailure(exit) && Cause.squash(exit.cause), errors[5])
        assert.strictEqual(call.sends, 6)
        assert.strictEqual(yield* RetryQuota.balance, 500 - 5 * 14)
      }).pipe(balanceOf(500)))

    it.effect("makes the first attempt with an empty quota", () =>
      Effect.gen(function*() {
        const call = scripted([new Transient()])
        assert.isTrue(Exit.isFailure(yield* inTime(looped(call.effect))))
        assert.strictEqual(call.sends, 1)
        assert.deepStrictEqual(yield* inTime(looped(call.effect)), Exit.succeed("ok" as const))
      }).pipe(balanceOf(0)))

    it.effect("holds back a long-polling operation that the quota refuses, after its first retry too, and no other", () =>
      Effect.gen(function*() {
        const strategy = yield* SmithyGuide.make()
        for (const [longPolling, wait] of [[true, 4000], [false, 2000]] as const) {
          yield* RetryQuota.deposit(5)
          const call = RetryStrategy.run(Effect.fail(new Throttled({ retryAfter: 2000 })), { longPolling })
          const fiber = yield* Effect.forkChild(
            Effect.provideService(call, RetryStrategy.RetryStrategy, strategy),
            { startImmediately: true }
          )
          yield* TestClock.adjust(wait - 1)
          assert.isUndefined(fiber.pollUnsafe())
          yield* TestClock.adjust(1)
          assert.isTrue(Exit.isFailure(fiber.pollUnsafe()!))
        }
      }).pipe(withRandom(0.5), balanceOf(0)))

    it.effect("takes its own token once, and notifies the observer", () =>
      Effect.gen(function*() {
        const told: Array<string> = []
        const observer: RetryObserver.RetryObserver = {
          onAttempt: (succeeded) => void told.push(succeeded ? "success" : "failure"),
          onRetry: (token) => void told.push(`retry ${token.retry} after ${token.delayMillis}`),
          onStop: (stopped) => void told.push(stopped.reason)
        }
        const observed = Effect.provideService(RetryObserver.CurrentObserver, observer)
        yield* observed(inTime(looped(scripted([new Transient(), new Terminal()]).effect)))
        yield* observed(looped(Effect.void))
        assert.deepStrictEqual(told, ["failure", "retry 1 after 25", "failure", "final", "success"])
        const strategy = yield* SmithyGuide.make()
        const token = yield* strategy.acquireInitialToken()
        yield* strategy.recordSuccess(token)
        const exit = yield* Effect.exit(strategy.recordSuccess(token))
        assert.instanceOf(Exit.isFailure(exit) && Cause.squash(exit.cause), RetryStrategy.InvalidToken)
      }).pipe(withRandom(0.5), balanceOf(500)))

    it.effect("puts the number of each send in its headers", () =>
      Effect.gen(function*() {
        const seen: Array<string> = []
        const send = Effect.flatMap(RequestHeaders.headers({ maxAttempts: 6 }), (headers) => {
          seen.push(headers["amz-sdk-request"])
          return Effect.fail(new Throttled({}))
        })
        const program = RetryStrategy.run(send).pipe(RequestHeaders.withInvocation)
        yield* inTime(Effect.provide(program, SmithyGuide.layer()))
        assert.deepStrictEqual(seen, [1, 2, 3, 4, 5, 6].map((attempt) => `attempt=${attempt}; max=6`))
      }).pipe(balanceOf(500)))

    it.effect("law: nothing is lost, at whatever step its loop is interrupted", () =>
      Effect.gen(function*() {
        const quota = yield* RetryQuota.make()
        let sends = 0
        const call = Effect.suspend(() => ++sends < 3 ? Effect.fail(new Throttled({})) : Effect.succeed("ok"))
        const program = looped(call).pipe(Effect.provideService(RetryQuota.RetryQuota, quota), withRandom(0.5))
        const steps = yield* sweep(program, () =>
          Effect.gen(function*() {
            const spent = 500 - (yield* quota.balance)
            const retried = Math.max(0, sends - 1)
            assert.isTrue(spent === retried * 5 || spent === (retried + 1) * 5 || (sends === 3 && spent === 9))
            yield* Effect.orDie(quota.deposit(500))
            sends = 0
          }))
        assert.isAbove(steps, 20)
      }))

    it.effect("asks a quota in Redis, and leaves no lease there, at whatever step it is interrupted", () =>
      Effect.gen(function*() {
        const redis = new FakeRedis()
        redis.latencyMillis = 5
        const quota = yield* Effect.provideService(RetryQuotaRedis.make({ name: "test" }), Redis.Redis, redis.service)
        const most: Array<number> = []
        let sends = 0
        const call = Effect.suspend(() => ++sends < 3 ? Effect.fail(new Throttled({})) : Effect.succeed("ok"))
        const program = looped(call).pipe(Effect.provideService(RetryQuota.RetryQuota, quota), withRandom(0.5))
        yield* sweep(program, () =>
          Effect.gen(function*() {
            yield* TestClock.adjust(400)
            assert.strictEqual(redis.leases("retry-quota:test"), 0)
            const spent = 500 - (redis.states.get("retry-quota:test")?.tokens ?? 500)
            const retried = Math.max(0, sends - 1)
            assert.isTrue(spent === retried * 5 || spent === (retried + 1) * 5 || (sends === 3 && spent === 9))
            yield* Effect.orDie(quota.deposit(500))
            yield* TestClock.adjust(400)
            most.push(sends)
            sends = 0
          }), { step: 50 })
        assert.strictEqual(most[0], 3)
        assert.isAbove(most.length, 40)
      }))

    it.effect("gives back what a retry holds when it is interrupted in its backoff", () =>
      Effect.gen(function*() {
        const fiber = yield* Effect.forkChild(looped(Effect.fail(new Throttled({}))), { startImmediately: true })
        yield* TestClock.adjust(100)
        assert.strictEqual(yield* RetryQuota.balance, 495)
        yield* Fiber.interrupt(fiber)
        assert.strictEqual(yield* RetryQuota.balance, 500)
      }).pipe(withRandom(0.5), balanceOf(500)))
  })

  it.effect("the example follows a hint of its own error", () =>
    Effect.gen(function*() {
      const throttled = new Example.TooManyRequests({ retryAfter: Duration.seconds(8) })
      const program = Effect.andThen(Example.asSmithy(scripted([throttled]).effect), Clock.currentTimeMillis)
      assert.deepStrictEqual(yield* inTime(program), Exit.succeed(8000))
    }).pipe(withRandom(0.5)))
})

/** A call in the loop of the guide, on its example strategy. */
const looped = <A, E>(send: Effect.Effect<A, E>) => RetryStrategy.run(send).pipe(Effect.provide(SmithyGuide.layer()))
