/**
 * How much a call matters: what is refused first when a resource is full.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"

/**
 * From what may be dropped without anybody noticing to what must go through if anything does.
 *
 * @category models
 * @since 0.1.0
 */
export type Criticality = "sheddable" | "normal" | "critical"

/**
 * How much the calls of an effect matter. Default `"normal"`.
 *
 * **Details**
 *
 * A `ConcurrencyLimiter` that is full serves those who wait in this order, and refuses in the reverse order when too
 * many wait. Without anybody waiting it makes no difference.
 *
 * **Example** (A background job gives way)
 *
 * ```ts
 * const job = call.pipe(withRetry(policy), Effect.provideService(Criticality.CurrentCriticality, "sheddable"))
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export const CurrentCriticality: Context.Reference<Criticality> = Context.Reference<Criticality>(
  "effect-retry/Criticality/CurrentCriticality",
  { defaultValue: () => "normal" }
)
