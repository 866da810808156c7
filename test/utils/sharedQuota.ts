import type { RetryQuota, RetryQuotaStore } from "effect-retry"
import { awsStandard, withRetry } from "effect-retry"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import * as TestClock from "effect/testing/TestClock"
import type { Transient } from "./call.ts"
import { FakeRedis, type Mood } from "./fakeRedis.ts"

/** The key of the quota that {@link shared} makes. */
export const key = "retry-quota:test"

/** The ways in which Redis does not answer as it should. */
export const badMoods: ReadonlyArray<Mood> = ["silent", "deaf", "refusing", "garbage"]

/** Options of a quota without tokens, for which retries wait: one comes in each 100 ms. */
export const drained = { capacity: 10, initial: 0, refillPerSecond: 10, onExceeded: "wait" } as const

/** Options that are the same but for whether retries wait, at this refill. */
export const stopOrWait = (refillPerSecond: number) =>
  [{ onExceeded: "stop" }, { onExceeded: "wait", refillPerSecond }] as const

/** A quota on a fake Redis. */
export const make = (redis: FakeRedis, options?: Partial<RetryQuotaRedis.Options>) =>
  Effect.provideService(RetryQuotaRedis.make({ name: "test", ...options }), Redis.Redis, redis.service)

/** A quota on a fake Redis of its own, unless it is given one. */
export const shared = (options?: Partial<RetryQuotaRedis.Options>, redis = new FakeRedis()) =>
  Effect.gen(function*() {
    const quota = yield* make(redis, options)
    yield* redis.hurryAtTheEnd
    return { redis, quota }
  })

/** Collects the lines that quotas log about who decides, or others. */
export const logged = (wanted = /^retry quota/) => {
  const lines: Array<string> = []
  const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
    const text = String(Array.isArray(message) ? message[0] : message)
    if (wanted.test(text)) lines.push(`${logLevel}: ${text}`)
  })
  return { lines, layer: Logger.layer([logger]) }
}

/** Decisions so far, by who decided. */
export const decisions = (quota: string, by: "redis" | "fallback"): Effect.Effect<number> =>
  Effect.map(
    Metric.value(Metric.withAttributes(RetryQuotaRedis.decisions, { resource: quota, by })),
    ({ count }) => count
  )

export const isOnFallback = (quota: string): Effect.Effect<boolean> =>
  Effect.map(
    Metric.value(Metric.withAttributes(RetryQuotaRedis.fallback, { resource: quota })),
    ({ value }) => value === 1
  )

/** Runs an effect while time passes. */
export const inTime = <A, E, R>(self: Effect.Effect<A, E, R>, millis = 60_000) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(self)
    for (let passed = 0; passed < millis && fiber.pollUnsafe() === undefined; passed += 10) yield* TestClock.adjust(10)
    return yield* Fiber.await(fiber)
  })

/** The result of an effect that takes this many milliseconds at most. */
export const within = <A, E, R>(millis: number, self: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(self)
    yield* TestClock.adjust(millis)
    return yield* Fiber.join(fiber)
  })

/** The ways to make a call with retries. */
export const drivers = {
  "Effect.retry": <A>(call: Effect.Effect<A, Transient>, policy = awsStandard) => Effect.retry(call, policy),
  "withRetry": <A>(call: Effect.Effect<A, Transient>, policy = awsStandard) => withRetry(call, policy),
  "RetryStrategy": <A>(call: Effect.Effect<A, Transient>, policy = awsStandard) =>
    Effect.provide(RetryStrategy.run(call), RetryStrategy.layer(policy))
}

/** Asks the store for tokens, as a call does: what it is given is its own to settle. */
export const asking = (quota: RetryQuota.Service, cost: number, patience: Duration.Input = Infinity) =>
  Effect.clockWith((clock) => {
    const held: Array<RetryQuotaStore.Reservation> = []
    const answer = quota.store.reserve(cost, clock)
    const asked = typeof answer === "function"
      ? answer(Duration.fromInputUnsafe(patience), (reservation) => held.push(reservation))
      : Effect.sync(() => answer === undefined ? 0 : held.push(answer))
    return Effect.succeed({ asked, held })
  })

/** Takes tokens, which are settled like this when there are any, and reports that it has them. */
export const taking = (
  quota: RetryQuota.Service,
  cost: number,
  settle: "giveBack" | "spend",
  has: () => void = () => {}
) =>
  Effect.acquireUseRelease(
    quota.reserve(cost),
    () => Effect.sync(has),
    (taken) => Option.isSome(taken) ? taken.value[settle] : Effect.void
  )
