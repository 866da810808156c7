import * as Context from "effect/Context"
import { partsOf } from "../../engine/policy/policy.ts"
import { AdaptiveRateLimiter } from "../../gates/AdaptiveRateLimiter.ts"
import { shared } from "../../internal/shared.ts"
import { ResourceLimiters } from "../../resources/ResourceLimiters.ts"
import { CurrentClassifier } from "../../RetryClassifier.ts"
import { CurrentObserver, CurrentResource } from "../../RetryObserver.ts"
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

/** Those of the context in which the client is made, where a call has none. */
const references = Context.pick(CurrentClassifier, CurrentObserver)

/**
 * The services that a call of a client runs with. Quota and gates are those that the client was made with, if it was,
 * but where the call names another resource, those of the resource. Classifier and observer are those of the call.
 */
export const bringing = (policy: unknown, built: AnyContext): (current: AnyContext) => AnyContext => {
  const gates = isRetryPolicy(policy) ? partsOf(policy).gates : []
  const tags = [...shared.gates.map(({ tag }) => tag), ...gates]
  const own: AnyContext = Context.pick(RetryQuota, AdaptiveRateLimiter, ResourceLimiters, ...tags)(built)
  const around: AnyContext = isLifted(policy) ? built : references(built)
  const resource = Context.get(built, CurrentResource)
  return (current) => {
    const merged = Context.merge(around, current)
    return Context.get(current, CurrentResource) === resource
      ? Context.merge(merged, own)
      : Context.merge(Context.merge(around, own), current)
  }
}
