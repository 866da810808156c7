import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Backoff from "../../Backoff.ts"
import { findCause, isNeverSent, isRefusedStream, isTimeout } from "../../internal/classification/errorCodes.ts"
import { statusOf } from "../../internal/classification/wire.ts"
import { type Fields, type Path, refuse, rejectUnknownKeys } from "../../internal/invalidField.ts"
import { get } from "../../internal/tryGet.ts"
import * as RetryClassifier from "../../RetryClassifier.ts"
import * as RetryPolicy from "../../RetryPolicy.ts"
import { retryingIf } from "./errorNames.ts"
import { durationOf, fieldsOf, listOf, positiveDurationOf, wholeOf } from "./importedDocument.ts"
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

const inCamel = (snake: string): string => snake.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())

/** Envoy's names use underscores; in JSON written by a program they are in camel case. */
const either = (fields: Fields, snake: string, path: Path): readonly [value: unknown, path: Path] => {
  const camel = inCamel(snake)
  const name = fields[snake] === undefined && fields[camel] !== undefined ? camel : snake
  return [fields[name], [...path, name]]
}

/** No other keys, in either spelling. */
const only = (fields: Fields, path: Path, names: ReadonlyArray<string>): void =>
  rejectUnknownKeys(fields, [...names, ...names.map(inCamel)], path)

const conditionOf = (fields: Fields, path: Path): Condition => {
  const [listed, where] = either(fields, "retriable_status_codes", path)
  const codes = listOf(listed ?? [], where).map((code, index) => wholeOf(code, [...where, index], 100))
  const conditionsByName = { ...conditions, "retriable-status-codes": isOf(...codes) }
  const [on, onPath] = either(fields, "retry_on", path)
  const names = typeof on === "string" ? on.split(",").map((name) => name.trim()) : refuse(onPath, on, "a string")
  const chosen = names.map((name) =>
    Object.hasOwn(conditionsByName, name)
      ? conditionsByName[name as keyof typeof conditionsByName]!
      : refuse(onPath, name, Object.keys(conditionsByName).join(", "))
  )
  return (error, status) => chosen.some((is) => is(error, status))
}

const backOff = (fields: Fields, path: Path): RetryPolicy.RetryPolicy => {
  const [input, where] = either(fields, "retry_back_off", path)
  const intervals = input === undefined ? {} : fieldsOf(input, where)
  only(intervals, where, ["base_interval", "max_interval"])
  const [base, basePath] = either(intervals, "base_interval", where)
  const [most, mostPath] = either(intervals, "max_interval", where)
  const baseMillis = positiveDurationOf(base, basePath, input === undefined ? 25 : undefined)
  const capMillis = positiveDurationOf(most, mostPath, 10 * baseMillis)
  if (capMillis < baseMillis) refuse(mostPath, most, "at least the base interval")
  return Backoff.exponential(baseMillis).pipe(RetryPolicy.capped(capMillis), RetryPolicy.jittered("full"))
}

/** Settings that the library cannot express must not be dropped silently. */
const without = (fields: Fields, path: Path, names: { readonly [field: string]: string }): void => {
  for (const [name, expected] of Object.entries(names)) {
    const [value, where] = either(fields, name, path)
    if (value !== undefined) refuse(where, value, `left out: ${expected}`)
  }
}

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

/** A route, as in the configuration of a virtual host. */
export const envoyRoute = (json: unknown): Route => {
  const action = fieldsOf(fieldsOf(json, [])["route"], ["route"])
  without(action, ["route"], { hedge_policy: "hedges are not retries" })
  const [input, path] = either(action, "retry_policy", ["route"])
  const fields = fieldsOf(input, path)
  without(fields, path, unsupported)
  only(fields, path, ["retry_on", "retriable_status_codes", "num_retries", "per_try_timeout", "retry_back_off"])
  const isRetried = conditionOf(fields, path)
  const [retries, retriesPath] = either(fields, "num_retries", path)
  const attempts = wholeOf(retries, retriesPath, 0, 1) + 1
  const policy = backOff(fields, path).pipe(RetryPolicy.maxAttempts(attempts), RetryPolicy.whileRetryable)
  const deadlineMillis = durationOf(action["timeout"], ["route", "timeout"], 15_000)
  const [perTry, perTryPath] = either(fields, "per_try_timeout", path)
  const perTryMillis = durationOf(perTry, perTryPath, 0)
  return {
    policy: deadlineMillis === 0 ? policy : policy.pipe(RetryPolicy.deadline(deadlineMillis)),
    classifier: retryingIf((error) => isRetried(error, statusOf(findCause(error, hasStatus)))),
    perTryTimeout: perTryMillis === 0 ? Option.none() : Option.some(Duration.millis(perTryMillis))
  }
}
