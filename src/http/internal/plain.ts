import * as Context from "effect/Context"
import { AdaptiveRateLimiter } from "../../AdaptiveRateLimiter.ts"
import { partsOf } from "../../engine/policy/policy.ts"
import { isRetryPolicy } from "../../RetryPolicy.ts"
import { RetryQuota } from "../../RetryQuota.ts"

type AnyContext = Context.Context<never>

/**
 * A user's schedule, and a policy that is looked up, may need anything: the call's context comes first, since it has
 * the call's span and settings.
 */
const isLifted = (policy: unknown): boolean => {
  if (!isRetryPolicy(policy)) return true
  const { live, source } = partsOf(policy)
  return live !== undefined || typeof source !== "function"
}

/** The services a policy needs, from where its client was built, for each call of the client. */
export const bringing = (policy: unknown, built: AnyContext): (current: AnyContext) => AnyContext => {
  const gates = isRetryPolicy(policy) ? partsOf(policy).gates : []
  const own: AnyContext = Context.pick(RetryQuota, AdaptiveRateLimiter, ...gates)(built)
  const lifted = isLifted(policy)
  return (current) => Context.merge(lifted ? Context.merge(built, current) : current, own)
}
