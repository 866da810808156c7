/**
 * Budgets: what a retry needs besides the tokens of the bucket.
 *
 * A bucket filled by successes runs dry in an outage, which makes it
 * the budget to start with. But while it is full, a fault of one second
 * can use all of it: a share of the calls, joined with it, bounds that
 * too. Policies do not change. A share alone pays as long as there are
 * calls, during the outage and after it.
 */
import { Clock, Effect, type Layer } from "effect"
import { awsStandard, RetryQuota, withRetry } from "effect-retry"
import * as RetryBudget from "effect-retry/RetryBudget"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import {
  inVirtualTime,
  main,
  print,
  Unavailable
} from "./support/program.ts"

export const load = <A, E>(send: Effect.Effect<A, E>) =>
  send.pipe(Effect.timeout("1 second"), withRetry(awsStandard))

/**
 * The advice: a bucket filled by successes, and at most a fifth of the
 * calls plus one per second.
 */
export const layer = RetryQuota.layerStore(
  RetryBudget.all([
    RetryBudget.bucket(),
    RetryBudget.share({ share: 0.2, minPerSecond: 1 })
  ])
)

/**
 * As in Finagle, Linkerd and tower: only a share. It keeps an outage
 * alive.
 */
export const shareAlone = RetryQuota.layerStore(
  RetryBudget.share({ share: 0.2, minPerSecond: 1 })
)

/**
 * As in Envoy: retries are at most this share of all sends in flight.
 */
export const likeEnvoy = RetryQuota.layerStore(
  RetryBudget.inFlight({ share: 0.2, atLeast: 3 })
)

/**
 * As in a gRPC service config: `"retryThrottling": { "maxTokens": 10,
 * "tokenRatio": 0.1 }`.
 */
export const likeGrpc = RetryQuota.layerStore(
  RetryBudget.grpc({ maxTokens: 10, tokenRatio: 0.1 })
)

/**
 * A fleet: one bucket in Redis for all processes, and a share in each.
 */
export const fleet = RetryQuota.layerStore(
  RetryBudget.all([
    Effect.map(
      RetryQuotaRedis.make({ name: "orders" }),
      ({ store }) => store
    ),
    RetryBudget.share({ share: 0.2, minPerSecond: 0.1 })
  ])
)

/**
 * An outage of 100 seconds, ten calls a second: how many retries it
 * gets, and how many in the busiest second.
 */
export const outage = (quota: Layer.Layer<RetryQuota.RetryQuota>) =>
  Effect.gen(function*() {
    const sends = new Map<number, number>()
    const down = Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const second = Math.floor(now / 1000)
      sends.set(second, (sends.get(second) ?? 0) + 1)
      return Effect.fail(new Unavailable())
    })
    const calls = Array.from(
      { length: 1000 },
      (_, n) => Effect.delay(Effect.exit(load(down)), 100 * n)
    )
    yield* inVirtualTime(
      Effect.all(calls, { concurrency: "unbounded" }).pipe(
        Effect.provide(quota)
      )
    )
    const perSecond = [...sends.values()]
    return {
      retries: perSecond.reduce((sum, one) => sum + one, -calls.length),
      busiest: Math.max(...perSecond) - 10
    }
  })

const show = (
  title: string,
  quota: Layer.Layer<RetryQuota.RetryQuota>
) =>
  Effect.flatMap(
    outage(quota),
    ({ busiest, retries }) =>
      print(`${title}: ${retries} retries, at most ${busiest} a second`)
  )

main(
  import.meta.url,
  show("a bucket", RetryQuota.layer()),
  show("a bucket and a share", layer),
  show("a share alone", shareAlone),
  show("as in Envoy", likeEnvoy),
  show("as in gRPC", likeGrpc)
)
