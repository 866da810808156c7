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
import * as Example from "../../../examples/smithy-guide.ts"
import { scripted, Terminal, Throttled, TimedOut, Transient, Unsure } from "../../utils/call.ts"
import { FakeRedis } from "../../utils/fakeRedis.ts"
import { sweep } from "../../utils/sweep.ts"
import { withRandom } from "../../utils/vectors.ts"

const { error, httpError, retryable } = SmithyGuide

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
    const yes = { ...retryable() }
    const throttling = { ...retryable({ throttling: true }) }
    const client = { ...error("client") }
    const server = { ...error("server") }
    for (
      const [name, annotations, facts, fault] of [
        ["@retryable", yes, ["Yes", false, "other"], "other"],
        ["@retryable(throttling)", throttling, ["Yes", true, "other"], "other"],
        [`@error("client")`, client, ["No", false, "client"], "client"],
        [`@error("server")`, server, ["Maybe", false, "server"], "server"],
        [`@error("client") @retryable`, { ...client, ...yes }, ["Yes", false, "client"], "client"],
        [`@error("server") @retryable`, { ...server, ...yes }, ["Yes", false, "server"], "server"],
        ["@httpError(404)", httpError(404), undefined, "client"],
        ["@httpError(501)", httpError(501), undefined, "server"],
        ["@httpError(501) @retryable", { ...yes, ...httpError(501) }, ["Yes", false, "server"], "server"],
        [`@httpError(404) @error("client")`, { ...client, ...httpError(404) }, ["No", false, "client"], "client"],
        [`@httpError(501) @error("server")`, { ...server, ...httpError(501) }, ["Maybe", false, "server"], "server"],
        [`@httpError(500) @error("server")`, { ...server, ...httpError(500) }, ["Maybe", false, "server"], "server"],
        [`@httpError(503) @error("server")`, { ...server, ...httpError(503) }, ["Maybe", false, "server"], "server"],
        [`@httpError(429) @error("client")`, { ...client, ...httpError(429) }, ["No", false, "client"], "client"],
        [
          `@retryable(throttling) @error("client") @httpError(429)`,
          { ...throttling, ...client, ...httpError(429) },
          ["Yes", true, "client"],
          "client"
        ],
        [
          `@httpError(503) @error("client") @retryable(throttling), in another order`,
          { ...httpError(503), ...client, ...throttling },
          ["Yes", true, "client"],
          "client"
        ]
      ] as const
    ) {
      it(`vector: ${name}`, () => {
        const modelled = annotated(annotations)
        assert.deepStrictEqual(factsOf(modelled), facts as any)
        assert.strictEqual(faultOf(modelled), fault)
        const known = Option.getOrUndefined(RetryClassifier.defaultClassifier(modelled))
        assert.deepStrictEqual(known, Option.getOrUndefined(RetryInfo.fromError(modelled)))
      })
    }

    it("law: @httpError alone says what the HTTP classifier says of its status", () => {
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
    const maybe = { fault: "server" as const, safety: "Maybe" as const }
    const informed = (facts: RetryInfo.Facts) => ({ [RetryInfo.TypeId]: RetryInfo.make(facts) })
    const notImplemented = Object.assign(new Error("not implemented"), { status: 501 })
    const notFound = Object.assign(new Error("not found"), { status: 404 })

    // Chance 0.5; the delay, what it cost, and nothing else, or the reason.
    for (
      const [name, failure, retries, balance, expected] of [
        ["retries a transient failure for 14", new Transient(), 0, 500, [25, 14]],
        ["retries a throttle for 5, from 1 second", new Throttled({}), 0, 500, [500, 5]],
        ["charges a timeout 14", new TimedOut(), 0, 500, [25, 14]],
        ["doubles the delay", new Transient(), 3, 500, [200, 14]],
        ["doubles the delay after a throttle", new Throttled({}), 4, 500, [8000, 5]],
        ["retries what may be safe", new Unsure(), 0, 500, [25, 14]],
        ["retries what a model calls a server's fault", annotated(error("server")), 0, 500, [25, 14]],
        ["retries an unknown failure of a server", notImplemented, 0, 500, [25, 14]],
        ["follows a short hint not at all", informed({ retryAfter: 24 }), 0, 500, [25, 14]],
        ["follows a hint that is longer than the delay", informed({ retryAfter: 26 }), 0, 500, [26, 14]],
        ["follows a hint without bound", informed({ ...maybe, retryAfter: "2 hours" }), 0, 500, [7_200_000, 14]],
        ["does not retry what is unsafe", new Terminal(), 0, 500, "final"],
        [
          "does not retry a server's fault that is unsafe",
          informed({ ...maybe, safety: "No" }),
          0,
          500,
          "final"
        ],
        ["does not retry an unknown failure of a client", notFound, 0, 500, "final"],
        ["does not retry what nobody knows", new Error("x"), 0, 500, "unknown-error"],
        ["makes a fifth retry", new Transient(), 4, 500, [400, 14]],
        ["makes no sixth retry", new Transient(), 5, 500, "max-attempts"],
        ["checks the attempts before the error", new Terminal(), 5, 500, "max-attempts"],
        ["retries with the last 14", new Transient(), 0, 14, [25, 14]],
        ["is refused with 13", new Transient(), 0, 13, "quota-exhausted"],
        ["retries a throttle with the last 5", new Throttled({}), 0, 5, [500, 5]],
        ["is refused after a throttle with 4", new Throttled({}), 0, 4, "quota-exhausted"],
        ["checks the error before the quota", new Terminal(), 0, 0, "final"]
      ] as const
    ) {
      it.effect(`vector: ${name}`, () =>
        Effect.gen(function*() {
          const quota = yield* RetryQuota.RetryQuota
          const strategy = yield* SmithyGuide.make()
          let token = yield* strategy.acquireInitialToken()
          for (let retry = 0; retry < retries; retry++) {
            token = yield* strategy.refreshRetryToken(token, new Throttled({}))
            yield* Effect.orDie(quota.deposit(5))
          }
          const before = yield* quota.balance
          const decided = yield* Effect.match(strategy.refreshRetryToken(token, failure), {
            onSuccess: (next) => {
              assert.strictEqual(next.attempt, retries + 2)
              return [Duration.toMillis(next.delay), next.cost] as ReadonlyArray<number>
            },
            onFailure: (refused) => refused._tag === "RetryRefused" ? refused.reason : refused._tag
          })
          assert.deepStrictEqual(decided, expected)
          const cost = typeof expected === "string" ? 0 : expected[1]
          assert.strictEqual(yield* quota.balance, before - cost)
        }).pipe(withRandom(0.5), balanceOf(balance)))
    }

    // Randomness 1; delay and cost of each retry, then the reason. The guide's own arithmetic: MAX_ATTEMPTS 5 from 0.
    const slow = [1000, 2000, 4000, 8000, 16_000]
    const fast = [50, 100, 200, 400, 800]
    for (
      const [name, options, failure, expected] of [
        ["February 2026, a failure", SmithyGuide.february2026, new Transient(), slow.map((delay) => [delay, 5])],
        ["February 2026, a timeout", SmithyGuide.february2026, new TimedOut(), slow.map((delay) => [delay, 10])],
        ["February 2026, a throttle", SmithyGuide.february2026, new Throttled({}), slow.map((delay) => [delay, 5])],
        ["April 2026, a failure", SmithyGuide.april2026, new Transient(), fast.map((delay) => [delay, 14])],
        ["April 2026, a timeout", SmithyGuide.april2026, new TimedOut(), fast.map((delay) => [delay, 14])],
        ["April 2026, a throttle", SmithyGuide.april2026, new Throttled({}), slow.map((delay) => [delay, 5])],
        ["no options", {}, new Transient(), fast.map((delay) => [delay, 14])],
        [
          "own values",
          { retryCost: 1, maxAttempts: 3, maxBackoff: "1500 millis", scale: 2 },
          new Transient(),
          [[2000, 1], [3000, 1]]
        ],
        ["a cap", { ...SmithyGuide.february2026, maxBackoff: "5 seconds" }, new Transient(), [
          [1000, 5],
          [2000, 5],
          [4000, 5],
          [5000, 5],
          [5000, 5]
        ]]
      ] as const
    ) {
      it.effect(`edition: ${name}`, () =>
        Effect.gen(function*() {
          const strategy = yield* SmithyGuide.make(options)
          const seen: Array<ReadonlyArray<number>> = []
          let token = yield* strategy.acquireInitialToken()
          for (const _ of expected) {
            token = yield* strategy.refreshRetryToken(token, failure)
            seen.push([Duration.toMillis(token.delay), token.cost])
          }
          assert.deepStrictEqual<ReadonlyArray<ReadonlyArray<number>>>(seen, expected)
          const refused = yield* Effect.flip(strategy.refreshRetryToken(token, failure))
          assert.strictEqual(refused._tag === "RetryRefused" && refused.reason, "max-attempts")
        }).pipe(withRandom(1), balanceOf(500)))
    }

    // After two retries and a success: 500 - 2 * 5 + 1, as the guide; the standard mode of AWS has 495.
    for (
      const [name, options, balance] of [
        ["February 2026", SmithyGuide.february2026, 491],
        ["April 2026", SmithyGuide.april2026, 473],
        ["a refund of its own", { ...SmithyGuide.february2026, successRefund: 4 }, 494],
        ["no refund", { ...SmithyGuide.february2026, successRefund: 0 }, 490]
      ] as const
    ) {
      it.effect(`edition: ${name} leaves ${balance} after two retries and a success`, () =>
        Effect.gen(function*() {
          const program = RetryStrategy.run(scripted([new Transient(), new Transient()]).effect)
          const exit = yield* inTime(Effect.provide(program, SmithyGuide.layer(options)))
          assert.deepStrictEqual(exit, Exit.succeed("ok" as const))
          assert.strictEqual(yield* RetryQuota.balance, balance)
        }).pipe(balanceOf(500)))
    }

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

    for (
      const [before, after, capacity] of [
        [0, 1, 500],
        [498, 499, 500],
        [499, 500, 500],
        [499.5, 499.5, 500],
        [500, 500, 500],
        [8.5, 9.5, 10],
        [9.5, 9.5, 10]
      ] as const
    ) {
      it.effect(`puts 1 in for a success at ${before}, unless that goes above ${capacity}`, () =>
        Effect.gen(function*() {
          const strategy = yield* SmithyGuide.make()
          yield* strategy.recordSuccess(yield* strategy.acquireInitialToken())
          assert.strictEqual(yield* RetryQuota.balance, after)
        }).pipe(balanceOf(before, { capacity, successIncrement: 7 })))
    }

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
          onAttempt: (succeeded) => told.push(succeeded ? "success" : "failure"),
          onRetry: (token) => told.push(`retry ${token.retry} after ${token.delayMillis}`),
          onStop: (stopped) => told.push(stopped.reason)
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

    it.effect("law: nothing is lost at any step its loop is interrupted", () =>
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

    it.effect("asks a quota in Redis, and leaves no lease there, at any step it is interrupted", () =>
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

    it.effect("gives back what a retry holds that is interrupted in its backoff", () =>
      Effect.gen(function*() {
        const fiber = yield* Effect.forkChild(looped(Effect.fail(new Throttled({}))), { startImmediately: true })
        yield* TestClock.adjust(100)
        assert.strictEqual(yield* RetryQuota.balance, 495)
        yield* Fiber.interrupt(fiber)
        assert.strictEqual(yield* RetryQuota.balance, 500)
      }).pipe(withRandom(0.5), balanceOf(500)))
  })

  describe("example: smithy-guide", () => {
    const throttled = new Example.TooManyRequests({ retryAfter: Duration.seconds(8) })

    it.effect("retries as its strategy does: the standard mode cuts a hint that the guide follows", () =>
      Effect.gen(function*() {
        for (const [layer, wait] of [[Example.standard, 5500], [Example.example, 8000]] as const) {
          const start = yield* Clock.currentTimeMillis
          const program = Effect.andThen(Example.getOrder(scripted([throttled]).effect), Clock.currentTimeMillis)
          const exit = yield* inTime(Effect.provide(program, layer))
          assert.deepStrictEqual(exit, Exit.succeed(start + wait))
        }
      }).pipe(withRandom(0.5)))

    it.effect("retries no client's fault", () =>
      Effect.gen(function*() {
        const missing = new Example.NoSuchOrder({ id: "7" })
        for (const layer of [Example.standard, Example.example]) {
          const found = yield* Effect.flip(Effect.provide(Example.getOrder(Effect.fail(missing)), layer))
          assert.strictEqual(found, missing)
        }
      }))

    it.effect("lets a custom loop report how long it waited", () =>
      Effect.gen(function*() {
        const exit = yield* inTime(Effect.provide(Example.waited(scripted([throttled]).effect), Example.example))
        assert.deepStrictEqual(exit, Exit.succeed("ok after 8s"))
      }).pipe(withRandom(0.5)))
  })
})

/** A call in the loop of the guide, on its example strategy. */
const looped = <A, E>(send: Effect.Effect<A, E>) => RetryStrategy.run(send).pipe(Effect.provide(SmithyGuide.layer()))

const inTime = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(self, { startImmediately: true })
    yield* TestClock.adjust("1 hour")
    return yield* Fiber.await(fiber)
  })
