import {
  awsStandard,
  Backoff,
  RetryInfo,
  RetryMetrics,
  RetryObserver,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as AdaptiveRateLimiter from "effect-retry/AdaptiveRateLimiter"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import * as RetryConfig from "effect-retry/RetryConfig"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Random from "effect/Random"

class Overloaded extends RetryInfo.TaggedError("Overloaded", { throttling: true }) {}

class LeaveMeAlone extends RetryInfo.TaggedError("LeaveMeAlone", {
  throttling: true,
  retryAfter: Duration.seconds(20)
}) {}

/** What every resource has of its own, and its name. */
const guarded = (resource: string) =>
  Layer.mergeAll(
    RetryQuota.layer({ capacity: 150, successIncrement: 1 }),
    AdaptiveRateLimiter.layer({ minFillRate: 5 }),
    ConcurrencyLimiter.layer({ rule: ConcurrencyLimiter.adaptive({ initial: 4 }) }),
    CoolDown.layer({ maxWait: "1 second" }),
    Layer.succeed(RetryObserver.CurrentResource, resource)
  )

/**
 * Calls of two resources, this many a second, of which `orders` is down for a while: it throttles, and asks to be left
 * alone. Every tenth call is hedged, and Redis does not respond while it is down, as far as metrics know.
 */
export const outage = (options: { readonly isDown: () => boolean; readonly everyMillis: number }) =>
  Effect.gen(function*() {
    yield* Metric.update(RetryConfig.followed, 1)
    const { onHedge } = RetryMetrics.make()
    let calls = 0
    const send = (fails: () => boolean) =>
      Effect.gen(function*() {
        const random = yield* Random.next
        yield* Effect.sleep(50 + 100 * random)
        if (fails()) return yield* random < 0.1 ? new LeaveMeAlone() : new Overloaded()
        if (random < 0.02) return yield* new Overloaded()
        return "ok"
      })
    const fallback = Metric.withAttributes(RetryQuotaRedis.fallback, { resource: "orders" })
    const calling = (fails: () => boolean) =>
      Effect.gen(function*() {
        const context = yield* Effect.context<never>()
        return yield* Effect.suspend(() => {
          const hedged = calls++ % 10 === 0 ? ["sent", calls % 20 === 1 ? "won" : "lost"] as const : []
          if (fails === options.isDown) fallback.updateUnsafe(fails() ? 1 : 0, context)
          for (const event of hedged) onHedge?.({ event, hedge: 1, reason: undefined }, undefined, context)
          return Effect.forkChild(Effect.exit(withRetry(send(fails), awsStandard)))
        }).pipe(Effect.andThen(Effect.sleep(options.everyMillis)), Effect.forever)
      })
    // A caller without quota and gates: its retries are made.
    const stubborn = Backoff.fixed("1 second").pipe(RetryPolicy.maxAttempts(5), RetryPolicy.whileRetryable)
    const insisting = Effect.forkChild(Effect.exit(withRetry(send(options.isDown), stubborn))).pipe(
      Effect.andThen(Effect.sleep(5 * options.everyMillis)),
      Effect.forever,
      Effect.provideService(RetryObserver.CurrentResource, "orders")
    )
    return yield* Effect.all([
      insisting,
      Effect.provide(calling(options.isDown), guarded("orders")),
      Effect.provide(calling(() => false), guarded("customers"))
    ], { concurrency: 3 })
  }).pipe(Effect.provide(RetryMetrics.layer()))
