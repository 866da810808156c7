/**
 * Whose fault a failure is.
 *
 * `RetryInfo` says what is known about retrying. Of many failures nothing is known but this: a server that answers 501
 * has failed, and one that answers 404 has not. It is told apart from `RetryInfo`, as in Smithy's retry guide, since it
 * matters to more than retrying.
 *
 * @since 0.1.0
 */
import * as Option from "effect/Option"
import { get } from "./internal/safe.ts"
import * as Traits from "./internal/traits.ts"
import { statusOf } from "./internal/wire.ts"
import * as RetryInfo from "./RetryInfo.ts"

/**
 * The facts.
 *
 * @category models
 * @since 0.1.0
 */
export interface ErrorInfo {
  /** Whose fault the failure is. */
  readonly fault: RetryInfo.Fault
}

const byTraits = (error: unknown): RetryInfo.Fault | undefined => {
  const annotations = get(get(get(error, "constructor"), "ast"), "annotations")
  return annotations === undefined ? undefined : Traits.faultOf(annotations as Traits.Traits)
}

const ofSdk = (fault: unknown): RetryInfo.Fault | undefined =>
  fault === "client" || fault === "server" ? fault : undefined

/**
 * Whose fault an error says it is; none when it says nothing. Never throws.
 *
 * **Details**
 *
 * The traits of its class decide, then its `RetryInfo`, then the `$fault` of an AWS SDK error, then its HTTP status: a
 * 4xx is the client's fault, a 5xx the server's.
 *
 * @category getters
 * @since 0.1.0
 */
export const of = (error: unknown): Option.Option<ErrorInfo> => {
  const own = Option.getOrUndefined(RetryInfo.of(error))?.fault
  const known = byTraits(error) ?? (own === "other" ? undefined : own) ?? ofSdk(get(error, "$fault")) ??
    Traits.faultOfStatus(statusOf(error))
  return Option.map(Option.fromNullishOr(known ?? own), (fault) => ({ fault }))
}
