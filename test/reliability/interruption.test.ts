import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  attempt,
  awsAdaptive,
  awsDynamoDB2026,
  AwsModes,
  awsStandard,
  awsStandard2026,
  Backoff,
  ResourceLimiters,
  RetryClassifier,
  RetryMetrics,
  RetryObserver,
  RetryPolicy,
  RetryQuota,
  RetryStrategy,
  Waiter,
  withRetry
} from "effect-retry"
import * as GeneralReference from "effect-retry/aws/GeneralReference"
import * as JavaScriptV2 from "effect-retry/aws/JavaScriptV2"
import * as JavaV1 from "effect-retry/aws/JavaV1"
import * as Kotlin from "effect-retry/aws/Kotlin"
import * as Operations from "effect-retry/aws/Operations"
import * as RequestHeaders from "effect-retry/aws/RequestHeaders"
import * as RetryGrpc from "effect-retry/RetryGrpc"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as Kit from "effect-retry/testing"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import * as Schedule from "effect/Schedule"
import * as TestClock from "effect/testing/TestClock"
import { FakeRedis } from "../utils/fakeRedis.ts"
import { CountedClock } from "./utils/clocks.ts"
import { clientOf } from "./utils/http.ts"

type Services = RetryQuota.RetryQuota | AdaptiveRateLimiter.AdaptiveRateLimiter
type Program<R = Services> = Effect.Effect<unknown, unknown, R>

type Send = Effect.Effect<void, Kit.Transient | Kit.Throttled>

/** A program over a call that fails twice, then is well: with a transient failure and with a throttle that has a hint. */
const on = <E, R>(
  program: (send: Send) => Effect.Effect<unknown, E, R>,
  latency = 10
): Effect.Effect<unknown, E, R> =>
  Effect.suspend(() =>
    program(Kit.outcomes([Kit.transient, Kit.throttledFor(300), Kit.ok()], { latency, afterwards: "repeat" }).send)
  )

const failing = Kit.outcomes([Kit.timeout], { afterwards: "repeat", latency: 10 }).send

/** Interrupts at every step; answers how many there were, and which timers were left. */
const swept = (program: Program, quota?: RetryQuota.Options) =>
  Effect.gen(function*() {
    const left: Array<string> = []
    let runs = 0
    let counted: CountedClock | undefined
    const look = () => {
      if (counted !== undefined && counted.asleep > 0) left.push(`run ${runs}: ${counted.asleep}`)
      runs++
    }
    const watched = Effect.clockWith((clock) => {
      look()
      counted = new CountedClock(clock)
      return counted.provide(program)
    })
    const steps = yield* Kit.sweepQuota(watched, { quota })
    look()
    return { steps, left }
  }).pipe(Effect.provide([Kit.testLimiter({ fillRate: 3 }), Kit.fixedRandom(0.5)]))

/** Balance, what is held and who waits are looked at by the sweep itself, at quota and limiter; timers here. */
const leavesNothing = (name: string, program: Program, quota?: RetryQuota.Options, least = 15) =>
  it.effect(name, () =>
    Effect.gen(function*() {
      const { left, steps } = yield* swept(program, quota)
      assert.deepStrictEqual(left, [])
      assert.isAtLeast(steps, least)
    }))

describe("an interruption at any step leaves no token, no waiter and no timer behind", () => {
  describe("whatever the policy", () => {
    const fixed = Backoff.fixed({ delay: 100 })
    const gated = RetryPolicy.quotaGated({ cost: 5, throttlingCost: 3, timeoutCost: 2 })
    const policies: Readonly<Record<string, RetryPolicy.RetryPolicy<any, Services, unknown>>> = {
      awsStandard,
      awsStandard2026,
      awsDynamoDB2026,
      awsAdaptive,
      "adaptive with a deadline": RetryPolicy.deadline("1 second")(awsAdaptive),
      "a long poll": AwsModes.standard2026({ longPolling: true }),
      "an operation": Operations.forOperation({ service: "SQS", operation: "ReceiveMessage" }),
      "JavaScript v2": JavaScriptV2.defaultPolicy,
      "Java v1": JavaV1.defaultPolicy,
      "the general reference": GeneralReference.policy(),
      "Kotlin": Kotlin.standardRetryStrategy().policy,
      "Backoff.fixed": fixed.pipe(gated),
      "Backoff.linear": Backoff.linear({ base: 50 }).pipe(gated),
      "Backoff.fibonacci": Backoff.fibonacci({ base: 50 }).pipe(gated),
      "Backoff.exponential": Backoff.exponential({ base: 50, jitter: "equal" }).pipe(gated),
      "Backoff.decorrelated": Backoff.decorrelated({ base: 50, cap: 500 }).pipe(gated),
      "fromDelay": RetryPolicy.fromDelay(({ attempt }) => attempt * 10).pipe(gated),
      "fromSchedule": RetryPolicy.fromSchedule(Schedule.spaced(100)).pipe(gated),
      "jittered, capped": fixed.pipe(RetryPolicy.jittered("full"), RetryPolicy.capped(50), gated),
      "honourRetryAfter": fixed.pipe(RetryPolicy.honourRetryAfter(), gated),
      "honourRetryAfter that stops": fixed.pipe(RetryPolicy.honourRetryAfter({ atMost: 1, beyond: "stop" }), gated),
      "honourPushback": fixed.pipe(RetryGrpc.honourPushback(), gated),
      "maxAttempts": fixed.pipe(RetryPolicy.maxAttempts(2), gated),
      "whileRetryable": fixed.pipe(RetryPolicy.whileRetryable, gated),
      "whileMaybeRetryable": fixed.pipe(RetryPolicy.whileMaybeRetryable, gated),
      "deadline": fixed.pipe(RetryPolicy.deadline(150), gated),
      "whenThrottled": fixed.pipe(RetryPolicy.whenThrottled(Backoff.fixed({ delay: 300 })), gated),
      "without a quota": fixed,
      "rateLimited": RetryPolicy.rateLimited(fixed)
    }
    for (const [name, policy] of Object.entries(policies)) {
      leavesNothing(`withRetry: ${name}`, on((call) => withRetry(call, policy), 0))
      // To the schedule of a policy it is one function, wherever its delays come from.
      if (name.startsWith("Backoff")) continue
      leavesNothing(`Effect.retry: ${name}`, on((call) => Effect.retry(attempt(call), policy), 0))
    }
  })

  describe("whatever the quota", () => {
    const quotas: Readonly<Record<string, RetryQuota.Options>> = {
      "that waits": { capacity: 10, initial: 0, refillPerSecond: 10, whenExhausted: "wait" },
      "that is paid for first attempts": { capacity: 100, firstAttemptCost: 3 },
      "that has first attempts wait": {
        capacity: 9,
        initial: 0,
        firstAttemptCost: 3,
        refillPerSecond: 5,
        whenExhausted: "wait"
      },
      "that runs dry": { capacity: 500, initial: 6 },
      "that gains": { capacity: 500, initial: 100, successIncrement: 1 }
    }
    const one = on((call) => withRetry(call, awsStandard))
    const two = Effect.all([one, one], { concurrency: 2 })
    for (const [name, quota] of Object.entries(quotas)) {
      leavesNothing(`a call, at a quota ${name}`, on((call) => withRetry(call, awsAdaptive)), quota)
      leavesNothing(`two calls at once, at a quota ${name}`, two, quota)
      leavesNothing(
        `a strategy, at a quota ${name}`,
        on((call) => Effect.provide(RetryStrategy.request(call), RetryStrategy.layer(awsStandard))),
        quota
      )
    }
  })

  describe("whatever is around the call, or inside", () => {
    const programs: Readonly<Record<string, (call: Send) => Program>> = {
      "a call that fails": () => withRetry(failing, awsStandard),
      "a time-out of the call": (call) => Effect.timeout(withRetry(call, awsAdaptive), "700 millis"),
      "a time-out of each attempt": (call) => withRetry(Effect.timeout(call, 5), awsStandard),
      "a race": (call) => Effect.raceFirst(withRetry(call, awsStandard), withRetry(failing, awsAdaptive)),
      "a call in a call": () => withRetry(withRetry(failing, awsStandard), AwsModes.standard({ maxAttempts: 2 })),
      "a repeat": (call) => Effect.repeat(withRetry(call, awsStandard), Schedule.recurs(1)),
      "a tapped schedule": (call) => Effect.retry(attempt(call), Schedule.tap(awsStandard, () => Effect.sleep(5))),
      "schedules side by side": (call) => Effect.retry(attempt(call), Schedule.min([awsStandard, Schedule.spaced(70)])),
      "a strategy": (call) => Effect.provide(RetryStrategy.request(call), RetryStrategy.layer(awsAdaptive)),
      "a strategy that polls": () =>
        Effect.provide(
          RetryStrategy.request(failing, { longPolling: true }),
          RetryStrategy.layer(awsStandard2026)
        ),
      "metrics": (call) => Effect.provide(withRetry(call, awsAdaptive), RetryMetrics.layer),
      "observers": (call) =>
        Effect.provide(
          withRetry(call, awsStandard),
          RetryObserver.layer(RetryObserver.combine(RetryObserver.spanEvents, { onAttempt: () => undefined }))
        ),
      "a classifier": (call) =>
        Effect.provide(withRetry(call, awsStandard), RetryClassifier.layer(RetryClassifier.own)),
      "an invocation with headers": (call) =>
        RequestHeaders.withInvocation(
          withRetry(Effect.andThen(RequestHeaders.headers({ maxAttempts: 3 }), call), awsStandard)
        )
    }
    for (const [name, program] of Object.entries(programs)) leavesNothing(name, on(program))

    leavesNothing(
      "a quota and a limiter by resource",
      Effect.provide(
        Effect.all([
          Effect.provide(on((call) => withRetry(call, awsAdaptive), 0), ResourceLimiters.get("a")),
          Effect.provide(
            withRetry(Effect.fail(new Kit.Transient()), AwsModes.standard({ maxAttempts: 2 })),
            ResourceLimiters.quota("b")
          )
        ], { concurrency: 2 }),
        ResourceLimiters.layer({ idleTimeToLive: "1 second" })
      )
    )
  })

  describe("the services themselves", () => {
    const bracketed = Effect.acquireUseRelease(
      Effect.map(RetryQuota.reserve(4), Option.getOrThrow),
      () => Effect.sleep(10),
      ({ giveBack }) => giveBack
    )
    leavesNothing("a reservation", bracketed, undefined, 8)
    leavesNothing("reservations that wait", Effect.all([bracketed, bracketed, bracketed], { concurrency: 3 }), {
      capacity: 4,
      initial: 1,
      refillPerSecond: 10,
      whenExhausted: "wait"
    })
    leavesNothing("deposits and looks", Effect.andThen(RetryQuota.deposit(0), RetryQuota.balance), undefined, 3)
    leavesNothing(
      "send tokens",
      Effect.all(Array.from({ length: 4 }, () => AdaptiveRateLimiter.acquire), { concurrency: 4 })
    )
    leavesNothing(
      "tokens of a strategy by hand",
      Effect.gen(function*() {
        const strategy = yield* RetryStrategy.RetryStrategy
        const first = yield* strategy.acquireInitialToken()
        yield* first.leave
        const second = yield* strategy.refreshRetryToken(first, new Kit.Transient())
        yield* Effect.sleep(second.delay)
        yield* second.leave
        yield* strategy.recordSuccess(second)
      }).pipe(Effect.provide(RetryStrategy.layer(awsAdaptive)))
    )
    const ready = Waiter.make({
      acceptors: [Waiter.output("success", (polls: number) => polls > 2)],
      minDelay: 100,
      maxWait: "1 minute"
    })
    const polled = Effect.suspend(() => {
      let polls = 0
      return Waiter.waitUntil(Effect.delay(Effect.sync(() => ++polls), 5), ready)
    })
    leavesNothing("a waiter", polled)
    leavesNothing(
      "a waiter around retries",
      Waiter.waitUntil(
        Effect.as(on((call) => withRetry(call, awsStandard)), 3),
        ready
      )
    )
  })

  describe("adapters", () => {
    leavesNothing(
      "HTTP",
      Effect.suspend(() => {
        const { client } = clientOf([{ status: 503 }, { status: 429, headers: { "retry-after": "1" } }, {
          status: 200
        }])
        return RetryHttp.retry(client, awsStandard, { attemptTimeout: "1 second" }).get("http://a/")
      })
    )
    leavesNothing(
      "HTTP without an answer",
      Effect.suspend(() =>
        RetryHttp.retry(clientOf(["never"]).client, awsStandard, { attemptTimeout: 50 }).get("http://a/")
      )
    )
    leavesNothing(
      "gRPC",
      Effect.suspend(() => {
        let sends = 0
        const unary = RetryGrpc.unary<number>((_, callback) => {
          const isFirst = ++sends === 1
          queueMicrotask(() =>
            isFirst
              ? callback(Object.assign(new Error("14"), { code: 14, details: "", metadata: new Map() }))
              : callback(null, 1)
          )
          return { cancel: () => undefined }
        })
        return withRetry(unary, awsStandard)
      })
    )

    for (const whenExhausted of ["stop", "wait"] as const) {
      it.effect(`a quota in Redis: no lease, and no timer (${whenExhausted})`, () =>
        Effect.gen(function*() {
          const redis = new FakeRedis()
          redis.latencyMillis = 5
          const refillPerSecond = whenExhausted === "wait" ? 1e-6 : 0
          const quota = yield* RetryQuotaRedis.make({ name: "test", whenExhausted, refillPerSecond }).pipe(
            Effect.provideService(Redis.Redis, redis.service)
          )
          const left: Array<number> = []
          let counted: CountedClock | undefined
          const program = Effect.clockWith((clock) => {
            counted = new CountedClock(clock)
            return counted.provide(Effect.provideService(withRetry(failing, awsStandard), RetryQuota.RetryQuota, quota))
          })
          const steps = yield* Kit.sweep(program, () =>
            Effect.gen(function*() {
              yield* TestClock.adjust(400)
              left.push(redis.leases("retry-quota:test"), counted!.asleep)
              yield* Effect.orDie(quota.deposit(500))
              yield* TestClock.adjust(400)
            }), { step: 50 })
          assert.isAbove(steps, 20)
          assert.deepStrictEqual(new Set(left), new Set([0]))
        }).pipe(Effect.provide(Kit.fixedRandom(0.5))))
    }
  })
})

describe("a leak that is planted is found", () => {
  const failureOf = (program: Program, quota?: RetryQuota.Options) =>
    Effect.map(Effect.exit(swept(program, quota)), (exit) => {
      assert.isTrue(Exit.isFailure(exit))
      const failure = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
      assert.instanceOf(failure, Kit.SweepFailure)
      return failure as Kit.SweepFailure
    })

  it.effect("of tokens: one step between taking them and minding them", () =>
    Effect.gen(function*() {
      const leaky = Effect.flatMap(
        Effect.map(RetryQuota.reserve(5), Option.getOrThrow),
        (held) => Effect.ensuring(on((call) => withRetry(call, awsStandard)), held.giveBack)
      )
      assert.strictEqual((yield* failureOf(leaky)).what, "held")
    }))

  it.effect("of tokens: a retry that is settled by hand, and not in its back-off", () =>
    Effect.gen(function*() {
      const taken = Effect.map(RetryQuota.reserve(5), Option.getOrThrow)
      const byHand = on((call) =>
        Effect.catch(call, () =>
          Effect.flatMap(taken, (held) => Effect.delay(Effect.tap(Effect.exit(call), held.giveBack), 100)))
      )
      assert.strictEqual((yield* failureOf(byHand)).what, "held")
    }))

  it.effect("of waiters: a fiber that goes on waiting for tokens when its caller has gone", () =>
    Effect.gen(function*() {
      const quota = { capacity: 10, initial: 0, refillPerSecond: 1e-6, whenExhausted: "wait" } as const
      const leaky = Effect.andThen(Effect.forkDetach(Effect.orDie(RetryQuota.reserve(5))), Effect.sleep(10))
      assert.strictEqual((yield* failureOf(leaky, quota)).what, "waiting")
      const sending = Effect.andThen(
        Effect.forkDetach(Effect.exit(Effect.replicateEffect(AdaptiveRateLimiter.acquire, 50))),
        Effect.yieldNow
      )
      assert.strictEqual((yield* failureOf(sending)).what, "waiting")
    }))

  it.effect("of timers: a back-off that nobody waits for", () =>
    Effect.gen(function*() {
      const leaky = Effect.andThen(Effect.forkDetach(Effect.sleep("1 hour")), Effect.sleep(10))
      assert.strictEqual((yield* failureOf(leaky)).what, "sleeping")
    }))

  it.effect("of leases: one that is neither given back nor spent", () =>
    Effect.gen(function*() {
      const redis = new FakeRedis()
      const quota = yield* Effect.provideService(RetryQuotaRedis.make({ name: "test" }), Redis.Redis, redis.service)
      const leases: Array<number> = []
      const leaky = Effect.flatMap(quota.reserve(5), (taken) =>
        Effect.andThen(Effect.sleep(10), Option.getOrThrow(taken).giveBack))
      yield* Kit.sweep(leaky, () =>
        Effect.andThen(
          TestClock.adjust(400),
          Effect.sync(() =>
            leases.push(redis.leases("retry-quota:test"))
          )
        ))
      assert.isAbove(Math.max(...leases), 0)
    }))
})

describe("the sweep itself", () => {
  it.effect("ends also where a fiber inside is interrupted just as it falls asleep, and others go on", () =>
    Effect.gen(function*() {
      const program = Effect.gen(function*() {
        const child = yield* Effect.forkChild(Effect.sleep(100))
        yield* Effect.exit(Fiber.await(child))
        yield* Effect.sleep("1 minute")
      })
      assert.isAbove(yield* Kit.sweep(program, () => Effect.void), 10)
    }))
})
