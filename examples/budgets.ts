/**
 * Budgets: what a retry must find besides the tokens of the bucket.
 *
 * The bucket that successes pay for runs dry in an outage, and that is what makes it the budget to begin with. As long as
 * it is full, a fault that takes a second has all of it at once: a share of the calls, joined with it, bounds that too.
 * Policies stay as they are. A share alone goes on paying as long as there are calls, through the outage and after it.
 */
import { Effect } from "effect"
import { awsStandard, RetryQuota, withRetry } from "effect-retry"
import * as RetryBudget from "effect-retry/RetryBudget"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"

export const load = <A, E>(send: Effect.Effect<A, E>) => send.pipe(Effect.timeout("1 second"), withRetry(awsStandard))

/** The advice: a bucket that successes pay for, and no more retries than a fifth of the calls and one a second. */
export const layer = RetryQuota.layerStore(
  RetryBudget.all([RetryBudget.bucket(), RetryBudget.share({ share: 0.2, minPerSecond: 1 })])
)

/** What Finagle, Linkerd and tower have: a share, and nothing else. It keeps an outage alive. */
export const shareAlone = RetryQuota.layerStore(RetryBudget.share({ share: 0.2, minPerSecond: 1 }))

/** As in Envoy: of all that is in flight, so much may be retries. */
export const likeEnvoy = RetryQuota.layerStore(RetryBudget.inFlight({ share: 0.2, atLeast: 3 }))

/** As a gRPC service config has it: `"retryThrottling": { "maxTokens": 10, "tokenRatio": 0.1 }`. */
export const likeGrpc = RetryQuota.layerStore(RetryBudget.grpc({ maxTokens: 10, tokenRatio: 0.1 }))

/** A fleet: one bucket in Redis for all processes, and a share in each. */
export const fleet = RetryQuota.layerStore(
  RetryBudget.all([
    Effect.map(RetryQuotaRedis.make({ name: "orders" }), ({ store }) => store),
    RetryBudget.share({ share: 0.2, minPerSecond: 0.1 })
  ])
)
