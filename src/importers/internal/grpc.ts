import * as Option from "effect/Option"
import * as Backoff from "../../Backoff.ts"
import { honorPushback } from "../../grpc/RetryGrpc.ts"
import { get } from "../../internal/safe.ts"
import * as RetryClassifier from "../../RetryClassifier.ts"
import * as RetryInfo from "../../RetryInfo.ts"
import * as RetryPolicy from "../../RetryPolicy.ts"
import { at, fieldsOf, listOf, numberOf, positiveDurationOf, refuse, textOf, wholeOf, without } from "./document.ts"
import type { Imported } from "./temporal.ts"

/**
 * The policy of some methods of gRPC: `service` is empty for all, `method` is missing for all of a service.
 *
 * @category models
 * @since 0.1.0
 */
export interface Method extends Imported {
  readonly names: ReadonlyArray<{ readonly service: string; readonly method: string | undefined }>
}

/**
 * The throttle of a service config: `maxTokens` from 1 to 1000, `tokenRatio` with at most three decimals.
 *
 * @category models
 * @since 0.1.0
 */
export interface Throttling {
  readonly maxTokens: number
  readonly tokenRatio: number
}

/**
 * What a service config of gRPC says about retries.
 *
 * @category models
 * @since 0.1.0
 */
export interface ServiceConfig {
  readonly methods: ReadonlyArray<Method>
  readonly throttling: Throttling | undefined
}

const statuses = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED"
]

const statusOf = (value: unknown, path: string): number => {
  const status = typeof value === "string" ? statuses.indexOf(value.toUpperCase()) : value
  return typeof status === "number" && status > 0 && statuses[status] !== undefined
    ? status
    : refuse(path, value, `a status, such as "UNAVAILABLE" or 14, other than OK`)
}

/** Retries these statuses and no others. */
const byStatus = (retried: ReadonlySet<number>): RetryClassifier.RetryClassifier => {
  const own: RetryClassifier.RetryClassifier = (error) => {
    const code = get(error, "code")
    if (typeof code !== "number" || statuses[code] === undefined) return Option.none()
    const known = Option.getOrElse(
      RetryClassifier.classify(RetryClassifier.grpc, error),
      () => RetryInfo.transient
    )
    return Option.some(RetryInfo.make({ ...known, safety: retried.has(code) ? "Yes" : "No" }))
  }
  return RetryClassifier.followingCause(own)
}

/** Clients take no more than this, whatever the service says. */
const mostAttempts = 5

const policyOf = (json: unknown, path: string): Imported => {
  const fields = fieldsOf(json, path)
  const attempts = wholeOf(fields["maxAttempts"], at(path, "maxAttempts"), 2)
  const initialMillis = positiveDurationOf(fields["initialBackoff"], at(path, "initialBackoff"))
  const capMillis = positiveDurationOf(fields["maxBackoff"], at(path, "maxBackoff"))
  const factor = numberOf(fields["backoffMultiplier"], at(path, "backoffMultiplier"), 1)
  const listed = at(path, "retryableStatusCodes")
  const codes = listOf(fields["retryableStatusCodes"], listed).map((code, index) => statusOf(code, at(listed, index)))
  if (codes.length === 0) refuse(listed, codes, "a list with a status or more")
  return {
    policy: Backoff.exponential({ base: initialMillis, factor }).pipe(
      RetryPolicy.capped(capMillis),
      RetryPolicy.jittered({ proportional: 0.2 }),
      honorPushback(),
      RetryPolicy.maxAttempts(Math.min(attempts, mostAttempts)),
      RetryPolicy.whileRetryable
    ),
    classifier: byStatus(new Set(codes))
  }
}

const nameOf = (json: unknown, path: string): Method["names"][number] => {
  const { method, service } = fieldsOf(json, path)
  if (service === undefined && method !== undefined) refuse(at(path, "service"), service, "there where a method is")
  return {
    service: service === undefined || service === "" ? "" : textOf(service, at(path, "service")),
    method: method === undefined || method === "" ? undefined : textOf(method, at(path, "method"))
  }
}

const methodOf = (json: unknown, path: string): Method | undefined => {
  const fields = fieldsOf(json, path)
  const names = at(path, "name")
  const named = listOf(fields["name"] ?? [], names).map((name, index) => nameOf(name, at(names, index)))
  without(fields, path, { hedgingPolicy: "hedges are no retries" })
  const { retryPolicy, timeout } = fields
  if (retryPolicy === undefined) return undefined
  const { classifier, policy } = policyOf(retryPolicy, at(path, "retryPolicy"))
  return {
    names: named,
    classifier,
    policy: timeout === undefined
      ? policy
      : policy.pipe(RetryPolicy.deadline(positiveDurationOf(timeout, at(path, "timeout"))))
  }
}

const throttlingOf = (json: unknown, path: string): Throttling => {
  const { maxTokens, tokenRatio } = fieldsOf(json, path)
  const most = wholeOf(maxTokens, at(path, "maxTokens"), 1)
  if (most > 1000) refuse(at(path, "maxTokens"), maxTokens, "a whole number from 1 to 1000")
  // More than three decimals are cut, not rounded.
  const ratio = Math.trunc(numberOf(tokenRatio, at(path, "tokenRatio"), 0) * 1000 + 1e-9) / 1000
  return ratio > 0
    ? { maxTokens: most, tokenRatio: ratio }
    : refuse(at(path, "tokenRatio"), tokenRatio, "a number above 0, of which three decimals count")
}

/** @see gRPC proposal A6 */
export const serviceConfig = (json: unknown): ServiceConfig => {
  const { methodConfig, retryThrottling } = fieldsOf(json, "")
  const configs = listOf(methodConfig ?? [], "methodConfig")
  return {
    methods: configs.flatMap((config, index) => methodOf(config, at("methodConfig", index)) ?? []),
    throttling: retryThrottling === undefined ? undefined : throttlingOf(retryThrottling, "retryThrottling")
  }
}
