/**
 * One quota per resource: an outage of one leaves the others untouched.
 *
 * Every key has its own quota and adaptive limiter, made on first use.
 * What `orders` loses in an outage is not missing when `customers` has
 * to retry. The gates that end an outage are part of a resource too.
 */
import { Effect } from "effect"
import {
  awsStandard,
  Hedge,
  ResourceLimiters,
  RetryMetrics,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as RetryBudget from "effect-retry/RetryBudget"
import { TestClock } from "effect/testing"
import {
  down,
  main,
  print,
  show,
  Unavailable
} from "./support/program.ts"

/**
 * A call of one table. The key names what can fail on its own: a table,
 * a region, a tenant.
 */
export const ofTable = <A, E>(
  table: string,
  send: Effect.Effect<A, E>
) =>
  send.pipe(
    withRetry(awsStandard),
    Effect.provide(ResourceLimiters.quota(`dynamodb:${table}`))
  )

/** The tokens that a table has left. */
export const balanceOf = (table: string) =>
  RetryQuota.balance.pipe(
    Effect.provide(ResourceLimiters.quota(`dynamodb:${table}`))
  )

/**
 * Provided once, where the program runs. Room for two retries of a
 * table, at 5 tokens each.
 */
export const layer = ResourceLimiters.layer({
  quota: { capacity: 10 },
  idleTimeToLive: "1 hour"
})

/**
 * Metrics of each table, for at most 50 of them. The rest are counted
 * together.
 */
export const metrics = RetryMetrics.layer({ capacity: 50 })

/**
 * Everything a service may need, one each. Without the adaptive
 * limiter: the concurrency limit holds sends back.
 */
export const guarded = ResourceLimiters.layer({
  quota: () =>
    RetryQuota.layerStore(
      RetryBudget.all([RetryBudget.bucket(), RetryBudget.share()])
    ),
  limiter: "unlimited",
  concurrency: (service) =>
    service === "reports" ? { rule: ConcurrencyLimiter.fixed(2) } : {},
  coolDown: {},
  hedge: { share: 0.02 }
})

/**
 * A read of one service: slow ones are hedged, failed ones retried,
 * behind the gates of the service.
 */
export const readOf = <A, E>(
  service: string,
  send: Effect.Effect<A, E>
) =>
  send.pipe(
    Effect.timeout("1 second"),
    Hedge.hedged(),
    withRetry(awsStandard),
    Effect.provide([
      ResourceLimiters.get(service),
      ResourceLimiters.hedge(service)
    ])
  )

main(
  import.meta.url,
  Effect.gen(function*() {
    yield* show("orders, down", down, (send) => ofTable("orders", send))
    yield* show(
      "orders, still down",
      down,
      (send) => ofTable("orders", send)
    )
    yield* show(
      "customers",
      [new Unavailable()],
      (send) => ofTable("customers", send)
    )
    yield* print(
      `tokens left: orders ${yield* balanceOf(
        "orders"
      )}, customers ${yield* balanceOf("customers")}`
    )
  }).pipe(Effect.provide([layer, TestClock.layer()]))
)
