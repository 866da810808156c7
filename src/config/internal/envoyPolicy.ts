import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Backoff from "../../Backoff.ts"
import { findCause, isNeverSent, isRefusedStream, isTimeout } from "../../internal/classification/errorCodes.ts"
import { statusOf } from "../../internal/classification/wire.ts"
import { refuse } from "../../internal/invalidField.ts"
import { get } from "../../internal/tryGet.ts"
import * as RetryClassifier from "../../RetryClassifier.ts"
import * as RetryPolicy from "../../RetryPolicy.ts"
import { Place, retryingIf } from "./importedDocument.ts"
import type { Imported } from "./temporalPolicy.ts"

/**
 * The policy of an Envoy route. The timeout of each try is not part of a policy: apply it to the call.
 *
 * @category models
 * @since 0.1.0
 */
export interface Route extends Imported {
  readonly perTryTimeout: Option.Option<Duration.Duration>
}

/** Whether a kind of `retry_on` applies to an error, given the status of the answer in it, if there was one. */
type Condition = (error: unknown, status: number | undefined) => boolean

const isOf = (...statuses: ReadonlyArray<number>): Condition => (_, status) =>
  status !== undefined && statuses.includes(status)

const isIn = (error: unknown, is: (cause: unknown) => boolean): boolean => findCause(error, is) !== undefined

const isGrpc = (status: number): Condition => (error) => isIn(error, (cause) => get(cause, "code") === status)

const byNetwork = RetryClassifier.followingCause(RetryClassifier.network)

const hasStatus = (error: unknown): boolean => statusOf(error) !== undefined

/** There was no response: the connection failed, or the time of the try was over. */
const isReset: Condition = (error, status) =>
  status === undefined && (isIn(error, isTimeout) || Option.isSome(RetryClassifier.classify(byNetwork, error)))

const isServerError: Condition = (_, status) => status !== undefined && status >= 500

/** Source: Envoy's `RetryStateImpl::wouldRetryFromReset`, where both include what was reset, refused or too slow. */
const orReset = (answers: Condition): Condition => (error, status) => answers(error, status) || isReset(error, status)

const conditions: { readonly [name: string]: Condition } = {
  "5xx": orReset(isServerError),
  "gateway-error": orReset(isOf(502, 503, 504)),
  "reset": isReset,
  "connect-failure": isNeverSent,
  "refused-stream": (error) => isIn(error, isRefusedStream),
  "retriable-4xx": isOf(409),
  "cancelled": isGrpc(1),
  "deadline-exceeded": isGrpc(4),
  "resource-exhausted": isGrpc(8),
  "internal": isGrpc(13),
  "unavailable": isGrpc(14)
}

const conditionOf = (policy: Place): Condition => {
  const codes = policy.at("retriable_status_codes").list((code) => code.whole(100), [])
  const conditionsByName: typeof conditions = { ...conditions, "retriable-status-codes": isOf(...codes) }
  const on = policy.at("retry_on")
  const names = typeof on.value === "string" ? on.value.split(",").map((name) => name.trim()) : on.refuse("a string")
  const chosen = names.map((name) =>
    Object.hasOwn(conditionsByName, name)
      ? conditionsByName[name]!
      : refuse(on.path, name, Object.keys(conditionsByName).join(", "))
  )
  return (error, status) => chosen.some((is) => is(error, status))
}

const backOff = (place: Place): RetryPolicy.RetryPolicy => {
  const intervals = place.value === undefined ? new Place({ base_interval: 25 }) : place
  intervals.only(["base_interval", "max_interval"])
  const longest = intervals.at("max_interval")
  const baseMillis = intervals.at("base_interval").positiveDuration()
  const capMillis = longest.positiveDuration(10 * baseMillis)
  if (capMillis < baseMillis) longest.refuse("at least the base interval")
  return Backoff.exponential(baseMillis).pipe(RetryPolicy.capped(capMillis), RetryPolicy.jittered("full"))
}

/** Settings that the library cannot express. */
const unsupported = {
  per_try_idle_timeout: "a policy does not see what a try reads",
  retry_options_predicates: "a client has no upstream options to change",
  host_selection_retry_max_attempts: "a client has no hosts to choose from",
  retriable_headers: "response headers belong to the classifier",
  retriable_request_headers: "request headers belong to the caller",
  rate_limited_retry_back_off: "use RetryPolicy.honorRetryAfter",
  retry_priority: "a client has no hosts to choose from",
  retry_host_predicate: "a client has no hosts to choose from"
}

const keys = ["retry_on", "retriable_status_codes", "num_retries", "per_try_timeout", "retry_back_off"]

/** A route, as in the configuration of a virtual host. */
export const envoyRoute = (document: Place): Route => {
  const route = document.at("route")
  route.at("hedge_policy").leftOut("hedges are not retries")
  const retryPolicy = route.at("retry_policy")
  for (const [name, why] of Object.entries(unsupported)) retryPolicy.at(name).leftOut(why)
  const isRetried = conditionOf(retryPolicy.only(keys))
  const attempts = retryPolicy.at("num_retries").whole(0, 1) + 1
  const policy = backOff(retryPolicy.at("retry_back_off")).pipe(
    RetryPolicy.maxAttempts(attempts),
    RetryPolicy.whileRetryable
  )
  const deadlineMillis = route.at("timeout").duration(15_000)
  const perTryMillis = retryPolicy.at("per_try_timeout").duration(0)
  return {
    policy: deadlineMillis === 0 ? policy : policy.pipe(RetryPolicy.deadline(deadlineMillis)),
    classifier: retryingIf((error) => isRetried(error, statusOf(findCause(error, hasStatus)))),
    perTryTimeout: perTryMillis === 0 ? Option.none() : Option.some(Duration.millis(perTryMillis))
  }
}
