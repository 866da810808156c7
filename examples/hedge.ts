/**
 * A second send for a call whose first one is late: it takes the tail from the latencies, for a few percent of more traffic.
 *
 * The hedge is made when a send takes longer than nearly all others do. The first success wins, and the other send is
 * interrupted and not waited for. A share of the traffic pays for hedges, never the quota: 2 % of the calls, after the
 * first fifty. Only what may run twice is hedged.
 */
import { Effect, Layer } from "effect"
import { awsStandard, Hedge, RetryQuota, withRetry } from "effect-retry"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"

/** The slowest 2 % of the reads, and until that is known those that take a second. A retry hedges, too. */
export const read = <A, E>(send: Effect.Effect<A, E>) =>
  send.pipe(
    Effect.timeout("3 seconds"),
    Hedge.hedged({ after: Hedge.quantile(0.98, { first: "1 second" }) }),
    withRetry(awsStandard)
  )

/** One layer for one resource, provided once. While the limit was just cut, no hedge is made. */
export const layer = Layer.mergeAll(RetryQuota.layer(), ConcurrencyLimiter.layer(), Hedge.layer({ share: 0.02 }))

/** A delay that is known, and up to two hedges. */
export const readTwice = <A, E>(send: Effect.Effect<A, E>) => Hedge.hedged(send, { after: "50 millis", atMost: 2 })
