/**
 * How much a call matters: decides what is rejected first when a resource is full.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"

/**
 * From what can be dropped unnoticed to what must get through if anything does.
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
 * A full `ConcurrencyLimiter` serves waiting sends in this order, and rejects in reverse order when too many wait. If
 * none waits, it makes no difference.
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
