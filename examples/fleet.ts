/**
 * A fleet: all processes of a service share one retry quota, so that an outage sees the retries of one client, not of a
 * hundred.
 *
 * Redis keeps the quota. It is asked before a retry only, never on the way of a call that succeeds. When it does not
 * answer in time, each process decides with a small quota of its own, and no call fails for it.
 */
import { Config, Effect, Metric } from "effect"
import { awsStandard, RetryQuota, withRetry } from "effect-retry"
import * as CoolDownRedis from "effect-retry/CoolDownRedis"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"

/** Provided once, where the program runs. The same in each process: the name says what they share. */
export const layer = RetryQuotaRedis.layer({
  name: "orders",
  capacity: 500,
  timeout: "50 millis",
  // A hundred processes with 500 tokens each would be no quota at all.
  fallback: { capacity: 20 }
})

/** The same, where deployments differ: `RETRY_QUOTA_CAPACITY=2000`, `RETRY_QUOTA_TIMEOUT="20 millis"`. */
export const configured = RetryQuotaRedis.layerConfig({
  name: Config.succeed("orders"),
  capacity: Config.Finite("RETRY_QUOTA_CAPACITY"),
  timeout: Config.Duration("RETRY_QUOTA_TIMEOUT"),
  fallback: { capacity: Config.succeed(20) }
})

/** What a server says to one process is heeded by all: see docs/overload.md. */
export const politeLayer = CoolDownRedis.layer({ name: "orders", timeout: "50 millis" })

/** A call like any other: it does not know who shares its quota. */
export const placeOrder = <A, E, R>(send: Effect.Effect<A, E, R>) => send.pipe(withRetry(awsStandard))

/** For a dashboard: what is left to the fleet, and whether this process goes by itself. */
export const status = Effect.gen(function*() {
  const tokens = yield* RetryQuota.balance
  const fallback = yield* Metric.value(Metric.withAttributes(RetryQuotaRedis.fallback, { quota: "orders" }))
  return { tokens, isAlone: fallback.value === 1 }
})
