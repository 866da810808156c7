/**
 * A fleet: all processes of a service share one retry quota, so an
 * outage sees the retries of one client, not of a hundred.
 *
 * Redis keeps the quota. It is asked only before a retry, never during
 * a call that succeeds. If it does not answer in time, each process
 * decides with its own small quota, and no call fails because of it.
 */
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { Config, Effect, Layer, Metric } from "effect"
import { awsStandard, RetryQuota, withRetry } from "effect-retry"
import * as AdaptiveRateLimiterRedis from "effect-retry/AdaptiveRateLimiterRedis"
import * as CoolDownRedis from "effect-retry/CoolDownRedis"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import { down, main, print, show } from "./support/program.ts"

/**
 * Provided once, where the program runs. The same in each process: the
 * name identifies what they share.
 */
export const layer = RetryQuotaRedis.layer({
  name: "orders",
  capacity: 500,
  timeout: "50 millis",
  // A hundred processes with 500 tokens each would be no limit at all.
  fallback: { capacity: 20 }
})

/** The layer for the program: with the connection to Redis. */
export const connectedTo = (url: string) =>
  layer.pipe(Layer.provide(NodeRedis.layer({ url })))

/**
 * The same, with settings that differ between deployments:
 * `RETRY_QUOTA_CAPACITY=2000`, `RETRY_QUOTA_TIMEOUT="20 millis"`.
 */
export const configured = RetryQuotaRedis.layerConfig({
  name: Config.succeed("orders"),
  capacity: Config.Finite("RETRY_QUOTA_CAPACITY"),
  timeout: Config.Duration("RETRY_QUOTA_TIMEOUT"),
  fallback: { capacity: Config.succeed(20) }
})

/**
 * What a server says to one process applies to all: see
 * docs/overload.md.
 */
export const politeLayer = CoolDownRedis.layer({
  name: "orders",
  timeout: "50 millis"
})

/** A call like any other: it does not know who shares its quota. */
export const placeOrder = <A, E, R>(send: Effect.Effect<A, E, R>) =>
  send.pipe(withRetry(awsStandard))

/**
 * For a dashboard: what the fleet has left, and whether this process
 * decides on its own.
 */
export const status = Effect.gen(function*() {
  const tokens = yield* RetryQuota.balance
  const fallback = yield* Metric.value(
    Metric.withAttributes(RetryQuotaRedis.fallback, {
      resource: "orders"
    })
  )
  return { tokens, isAlone: fallback.value === 1 }
})

/**
 * Ten processes share one rate, which the throttles of all of them
 * find.
 */
export const limiterLayer = AdaptiveRateLimiterRedis.layer({
  name: "orders",
  timeout: "50 millis"
})

/**
 * One process of the fleet. The next one finds fewer tokens, because
 * the fleet shares them.
 */
const oneOfMany = Effect.gen(function*() {
  yield* show("a call", down, placeOrder)
  const { isAlone, tokens } = yield* status
  yield* print(
    isAlone
      ? `Redis does not answer: ${tokens} tokens of its own are left`
      : `${tokens} tokens are left to all`
  )
})

const { REDIS_URL } = process.env

main(
  import.meta.url,
  REDIS_URL === undefined
    ? print(
      "Needs Redis: REDIS_URL=redis://127.0.0.1:6379 "
        + "npx tsx examples/fleet.ts"
    )
    : oneOfMany.pipe(Effect.provide(connectedTo(REDIS_URL)))
)
