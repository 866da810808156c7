import * as Option from "effect/Option"
import * as Backoff from "../../Backoff.ts"
import { honorPushback } from "../../grpc/RetryGrpc.ts"
import { grpcStatusOf, isGrpcStatus } from "../../internal/classification/grpcStatuses.ts"
import { type Path, refuse } from "../../internal/invalidField.ts"
import { get } from "../../internal/tryGet.ts"
import * as RetryClassifier from "../../RetryClassifier.ts"
import * as RetryPolicy from "../../RetryPolicy.ts"
import { retryingIf } from "./errorNames.ts"
import { fieldsOf, listOf, numberOf, onlyOf, positiveDurationOf, textOf, wholeOf } from "./importedDocument.ts"
import type { Imported } from "./temporalPolicy.ts"

/**
 * The policy of some gRPC methods: `service` is empty for all, `method` is missing for all of a service.
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
 * What a gRPC service config says about retries.
 *
 * @category models
 * @since 0.1.0
 */
export interface ServiceConfig {
  readonly methods: ReadonlyArray<Method>
  readonly throttling: Throttling | undefined
}

const statusOf = (value: unknown, path: Path): number =>
  // OK is 0.
  grpcStatusOf(value) || refuse(path, value, `a status, such as "UNAVAILABLE" or 14, other than OK`)

/** Retries these statuses and no others. */
const byStatus = (retried: ReadonlySet<number>): RetryClassifier.RetryClassifier => {
  const byCode = retryingIf((error) => retried.has(get(error, "code") as number))
  return RetryClassifier.followingCause((error) => isGrpcStatus(get(error, "code")) ? byCode(error) : Option.none())
}

/** Clients allow no more than this, whatever the service says. */
const mostAttempts = 5

const keys = ["maxAttempts", "initialBackoff", "maxBackoff", "backoffMultiplier", "retryableStatusCodes"]

const policyOf = (json: unknown, path: Path): Imported => {
  const fields = onlyOf(json, path, keys)
  const attempts = wholeOf(fields["maxAttempts"], [...path, "maxAttempts"], 2)
  const initialMillis = positiveDurationOf(fields["initialBackoff"], [...path, "initialBackoff"])
  const capMillis = positiveDurationOf(fields["maxBackoff"], [...path, "maxBackoff"])
  const factor = numberOf(fields["backoffMultiplier"], [...path, "backoffMultiplier"], 1)
  const listed = [...path, "retryableStatusCodes"]
  const codes = listOf(fields["retryableStatusCodes"], listed).map((code, index) => statusOf(code, [...listed, index]))
  if (codes.length === 0) refuse(listed, codes, "an array with at least one status")
  return {
    policy: Backoff.exponential(initialMillis, factor).pipe(
      RetryPolicy.capped(capMillis),
      RetryPolicy.jittered({ proportional: 0.2 }),
      honorPushback(),
      RetryPolicy.maxAttempts(Math.min(attempts, mostAttempts)),
      RetryPolicy.whileRetryable
    ),
    classifier: byStatus(new Set(codes))
  }
}

const nameOf = (json: unknown, path: Path): Method["names"][number] => {
  const { method, service } = fieldsOf(json, path)
  if (service === undefined && method !== undefined) refuse([...path, "service"], service, "set if method is set")
  return {
    service: service === undefined || service === "" ? "" : textOf(service, [...path, "service"]),
    method: method === undefined || method === "" ? undefined : textOf(method, [...path, "method"])
  }
}

/** Refuses names that another entry has: clients reject such a config. */
const unique = (names: Method["names"], path: Path, seen: Set<string>): void => {
  for (const [index, { method, service }] of names.entries()) {
    const name = JSON.stringify([service, method])
    if (seen.has(name)) refuse([...path, index], { service, method }, "a method that no other entry names")
    seen.add(name)
  }
}

const methodOf = (json: unknown, path: Path, seen: Set<string>): Method | undefined => {
  const fields = fieldsOf(json, path)
  const names = [...path, "name"]
  const named = listOf(fields["name"] ?? [], names).map((name, index) => nameOf(name, [...names, index]))
  unique(named, names, seen)
  const { hedgingPolicy, retryPolicy, timeout } = fields
  if (hedgingPolicy !== undefined) {
    refuse([...path, "hedgingPolicy"], hedgingPolicy, "left out: hedges are not retries")
  }
  if (retryPolicy === undefined) return undefined
  const { classifier, policy } = policyOf(retryPolicy, [...path, "retryPolicy"])
  return {
    names: named,
    classifier,
    policy: timeout === undefined
      ? policy
      : policy.pipe(RetryPolicy.deadline(positiveDurationOf(timeout, [...path, "timeout"])))
  }
}

const throttlingOf = (json: unknown, path: Path): Throttling => {
  const { maxTokens, tokenRatio } = onlyOf(json, path, ["maxTokens", "tokenRatio"])
  const most = wholeOf(maxTokens, [...path, "maxTokens"], 1)
  if (most > 1000) refuse([...path, "maxTokens"], maxTokens, "a whole number from 1 to 1000")
  // More than three decimals are truncated, not rounded.
  const ratio = Math.trunc(numberOf(tokenRatio, [...path, "tokenRatio"], 0) * 1000 + 1e-9) / 1000
  return ratio > 0
    ? { maxTokens: most, tokenRatio: ratio }
    : refuse([...path, "tokenRatio"], tokenRatio, "a number above 0, of which three decimals count")
}

/** @see gRPC proposal A6 */
export const serviceConfig = (json: unknown): ServiceConfig => {
  const { methodConfig, retryThrottling } = fieldsOf(json, [])
  const configs = listOf(methodConfig ?? [], ["methodConfig"])
  const seen = new Set<string>()
  return {
    methods: configs.flatMap((config, index) => methodOf(config, ["methodConfig", index], seen) ?? []),
    throttling: retryThrottling === undefined ? undefined : throttlingOf(retryThrottling, ["retryThrottling"])
  }
}
