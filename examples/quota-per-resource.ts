/**
 * One quota per resource: an outage of one leaves the others untouched.
 *
 * Every key has a quota and an adaptive limiter of its own, made when it is first used. What `orders` loses in an outage
 * is not missing when `customers` has to retry. The gates that end an outage are part of a resource too.
 */
import { Effect } from "effect"
import { awsStandard, Hedge, ResourceLimiters, RetryMetrics, RetryQuota, withRetry } from "effect-retry"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as RetryBudget from "effect-retry/RetryBudget"

/** A call of one table. The key names what can fail on its own: a table, a region, a tenant. */
export const ofTable = <A, E>(table: string, send: Effect.Effect<A, E>) =>
  send.pipe(
    withRetry(awsStandard),
    Effect.provide(ResourceLimiters.quota(`dynamodb:${table}`))
  )

/** The tokens that are left to a table. */
export const balanceOf = (table: string) =>
  RetryQuota.balance.pipe(Effect.provide(ResourceLimiters.quota(`dynamodb:${table}`)))

/** Provided once, where the program runs. Room for two retries of a table, at 5 tokens each. */
export const layer = ResourceLimiters.layer({ quota: { capacity: 10 }, idleTimeToLive: "1 hour" })

/** Metrics of each table, for at most 50 of them. The rest are counted together. */
export const metrics = RetryMetrics.layer({ maxResources: 50 })

/** All that a service may need, for each its own. Without the adaptive limiter: the limit on what is in flight holds back. */
export const guarded = ResourceLimiters.layer({
  quota: () => RetryQuota.layerStore(RetryBudget.all([RetryBudget.bucket(), RetryBudget.share()])),
  limiter: "unlimited",
  concurrency: (service) => service === "reports" ? { rule: ConcurrencyLimiter.fixed(2) } : {},
  coolDown: {},
  hedge: { share: 0.02 }
})

/** A read of one service: its slow ones are sent again, its failed ones retried, behind the gates of the service. */
export const readOf = <A, E>(service: string, send: Effect.Effect<A, E>) =>
  send.pipe(
    Effect.timeout("1 second"),
    Hedge.hedged(),
    withRetry(awsStandard),
    Effect.provide([ResourceLimiters.get(service), ResourceLimiters.hedge(service)])
  )
