/**
 * A quota and a limiter for every resource.
 *
 * An outage is of one thing: a table, a region, a tenant. With one quota for everything, the retries of what is down use
 * up what the rest would need, and one throttled table slows all. Here each key has a quota and a limiter of its own,
 * made when it is first used and forgotten when it has been idle.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as LayerMap from "effect/LayerMap"
import * as AdaptiveRateLimiter from "./AdaptiveRateLimiter.ts"
import { checks } from "./internal/checks.ts"
import * as RetryQuota from "./RetryQuota.ts"

/**
 * What a resource has: its quota and its limiter.
 *
 * @category models
 * @since 0.1.0
 */
export type Limiters = RetryQuota.RetryQuota | AdaptiveRateLimiter.AdaptiveRateLimiter

/**
 * The quotas and limiters, by resource key.
 *
 * @category services
 * @since 0.1.0
 */
export class ResourceLimiters extends Context.Service<ResourceLimiters, LayerMap.LayerMap<string, Limiters>>()(
  "effect-retry/ResourceLimiters"
) {}

/**
 * How the quotas and limiters are made.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<out R = never> {
  /** The quota of a resource, the same for all or by key: its options, or a layer that has one, such as a shared quota. */
  readonly quota?:
    | RetryQuota.Options
    | ((key: string) => RetryQuota.Options | Layer.Layer<RetryQuota.RetryQuota, never, R>)
    | undefined
  /** The limiter of a resource, the same for all or by key. */
  readonly limiter?: AdaptiveRateLimiter.Options | ((key: string) => AdaptiveRateLimiter.Options) | undefined
  /** How long a resource that nobody uses is kept: a finite duration above 0. Default 10 minutes. */
  readonly idleTimeToLive?: Duration.Input | undefined
}

/**
 * A layer with a quota and a limiter for every key.
 *
 * **Gotchas**
 *
 * A resource that was idle for `idleTimeToLive` starts anew, with a full quota: choose it longer than outages last.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <R = never>(options?: Options<R>): Layer.Layer<ResourceLimiters, never, R> => {
  const idle = checks("ResourceLimiters.layer").positiveDuration("idleTimeToLive", options?.idleTimeToLive ?? 600_000)
  const quota = quotaOf(options?.quota)
  const limiter = optionsOf(options?.limiter, AdaptiveRateLimiter.layer)
  return Layer.effect(
    ResourceLimiters,
    LayerMap.make((key: string) => Layer.merge(quota(key), limiter(key)), { idleTimeToLive: Duration.millis(idle) })
  )
}

type QuotaLayer<R> = Layer.Layer<RetryQuota.RetryQuota, never, R>

const isLayer = <R>(given: RetryQuota.Options | QuotaLayer<R>): given is QuotaLayer<R> => Layer.isLayer(given)

const quotaOf = <R>(options: Options<R>["quota"]): (key: string) => QuotaLayer<R> => {
  if (typeof options !== "function") return optionsOf(options, RetryQuota.layer)
  return (key) => {
    const given = options(key)
    return isLayer(given) ? given : RetryQuota.layer(given)
  }
}

/** Options for all keys are looked at once, here, so that impossible ones are refused before anything runs. */
const optionsOf = <Options, A>(
  options: Options | ((key: string) => Options) | undefined,
  layerOf: (options?: Options) => Layer.Layer<A>
): (key: string) => Layer.Layer<A> => {
  if (typeof options === "function") return (key) => layerOf((options as (key: string) => Options)(key))
  layerOf(options)
  return () => layerOf(options)
}

/**
 * The quota of a resource, as a layer to provide a call with: for policies that limit no send rate.
 *
 * **Example** (A call of one table)
 *
 * ```ts
 * callDynamo.pipe(withRetry(awsStandard), Effect.provide(ResourceLimiters.quota("dynamodb:orders")))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const quota = (key: string): Layer.Layer<RetryQuota.RetryQuota, never, ResourceLimiters> =>
  Layer.effect(
    RetryQuota.RetryQuota,
    Effect.flatMap(ResourceLimiters, (limiters) =>
      Effect.map(limiters.contextEffect(key), (context) => Context.get(context, RetryQuota.RetryQuota)))
  )

/**
 * The quota and the limiter of a resource, as a layer to provide a call with. An attempt uses the limiter whatever the
 * policy: {@link quota} leaves it out.
 *
 * **Example** (A call of one table)
 *
 * ```ts
 * callDynamo.pipe(withRetry(awsAdaptive), Effect.provide(ResourceLimiters.get("dynamodb:orders")))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const get = (key: string): Layer.Layer<Limiters, never, ResourceLimiters> =>
  Layer.unwrap(Effect.map(ResourceLimiters, (limiters) => limiters.get(key)))
