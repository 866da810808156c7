import * as Context from "effect/Context"
import { type AnyContext, shared } from "../internal/shared.ts"
import { CurrentClassifier } from "../RetryClassifier.ts"
import { CurrentObserver, CurrentResource } from "../RetryObserver.ts"
import { RetryQuota } from "../RetryQuota.ts"
import type { Compiled } from "./compiled.ts"
import { Provided } from "./environment.ts"

const references = Context.pick(CurrentClassifier, CurrentObserver)

const provided = Context.pick(Provided)

/**
 * What a call runs with in a driver that is made elsewhere. Quota and gates are those that the driver was made with, if it
 * was, but where the call names another resource, those of the resource. Classifier and observer are those of the call,
 * if it has them. A user's schedule may need anything: the call's context comes first, since it has the call's span.
 */
export const bringing = (
  { gates, source }: Compiled,
  made: AnyContext,
  ...keys: ReadonlyArray<Context.Key<any, any>>
) => {
  const tags = [...keys, ...gates, ...shared.gates.map(({ tag }) => tag)]
  const own: AnyContext = Context.pick(RetryQuota, CurrentResource, ...tags)(made)
  const around: AnyContext = typeof source === "function" ? references(made) : made
  const resource = Context.get(made, CurrentResource)
  return (call: AnyContext): AnyContext => {
    const named = Context.get(call, CurrentResource)
    const merged = Context.merge(around, call)
    const brought = named === undefined || named === resource ? Context.merge(merged, own) : Context.merge(own, merged)
    return Context.merge(brought, provided(made))
  }
}
