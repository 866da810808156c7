/**
 * A second send for a call whose first one is late: it removes the
 * latency tail, for a few percent more traffic.
 *
 * The hedge is made when a send takes longer than nearly all others.
 * The first success wins, and the other send is interrupted and not
 * awaited. A share of the traffic pays for hedges, never the quota: 2 %
 * of the calls, after the first fifty. Hedge only what can run twice.
 */
import { Duration, Effect, Layer } from "effect"
import { awsStandard, Hedge, RetryQuota, withRetry } from "effect-retry"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import { inVirtualTime, main, print } from "./support/program.ts"

/**
 * Hedges the slowest 2 % of the reads, and until that is known those
 * that take a second. A retry hedges, too.
 */
export const read = <A, E>(send: Effect.Effect<A, E>) =>
  send.pipe(
    Effect.timeout("3 seconds"),
    Hedge.hedged({
      after: Hedge.quantile(0.98, { first: "1 second" })
    }),
    withRetry(awsStandard)
  )

/**
 * One layer for one resource, provided once. Just after a cut of the
 * limit, no hedge is made.
 */
export const layer = Layer.mergeAll(
  RetryQuota.layer(),
  ConcurrencyLimiter.layer(),
  Hedge.layer({ share: 0.02 })
)

/** A known delay, and up to two hedges. */
export const readTwice = <A, E>(send: Effect.Effect<A, E>) =>
  Hedge.hedged(send, { after: "50 millis", atMost: 2 })

let sends = 0
const send = Effect.suspend(() =>
  Effect.sleep(++sends === 100 ? "2 seconds" : "20 millis")
)

main(
  import.meta.url,
  Effect.gen(function*() {
    yield* Effect.replicateEffect(read(send), 99)
    const [duration] = yield* Effect.timed(read(send))
    yield* print(
      `The hundredth send takes 2 s; its call takes ${
        Duration.format(duration)
      }.`
    )
    yield* print(`${sends} sends for 100 calls`)
  }).pipe(Effect.provide(layer), inVirtualTime)
)
