/**
 * One quota per resource: an outage of one leaves the others untouched.
 *
 * Every key has a quota and an adaptive limiter of its own, made when it is first used. What `orders` loses in an outage
 * is not missing when `customers` has to retry.
 */
import { Effect } from "effect"
import { awsStandard, ResourceLimiters, RetryMetrics, RetryQuota, withRetry } from "effect-retry"

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
