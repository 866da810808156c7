import * as Option from "effect/Option"
import * as Backoff from "../../Backoff.ts"
import { honorPushback } from "../../grpc/RetryGrpc.ts"
import { grpcStatusOf, isGrpcStatus } from "../../internal/classification/grpcStatuses.ts"
import { get } from "../../internal/tryGet.ts"
import * as RetryClassifier from "../../RetryClassifier.ts"
import * as RetryPolicy from "../../RetryPolicy.ts"
import { type Place, retryingIf } from "./importedDocument.ts"
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

// OK is 0.
const statusOf = (status: Place): number =>
  grpcStatusOf(status.value) || status.refuse(`a status, such as "UNAVAILABLE" or 14, other than OK`)

/** Retries these statuses and no others. */
const byStatus = (retried: ReadonlySet<number>): RetryClassifier.RetryClassifier => {
  const byCode = retryingIf((error) => retried.has(get(error, "code") as number))
  return RetryClassifier.followingCause((error) => isGrpcStatus(get(error, "code")) ? byCode(error) : Option.none())
}

/** Clients allow no more than this, whatever the service says. */
const mostAttempts = 5

const keys = ["maxAttempts", "initialBackoff", "maxBackoff", "backoffMultiplier", "retryableStatusCodes"]

const policyOf = (policy: Place): Imported => {
  const attempts = policy.only(keys).at("maxAttempts").whole(2)
  const initialMillis = policy.at("initialBackoff").positiveDuration()
  const capMillis = policy.at("maxBackoff").positiveDuration()
  const factor = policy.at("backoffMultiplier").number(1)
  const statuses = policy.at("retryableStatusCodes")
  const codes = statuses.list(statusOf)
  if (codes.length === 0) statuses.refuse("an array with at least one status")
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

const textOf = (place: Place): string | undefined =>
  place.value === undefined || place.value === "" ? undefined : place.text()

/** Refuses a name that another entry has: clients reject such a config. */
const nameOf = (name: Place, seen: Set<string>): Method["names"][number] => {
  const [ofService, ofMethod] = [name.at("service"), name.at("method")]
  if (ofService.value === undefined && ofMethod.value !== undefined) ofService.refuse("set if method is set")
  const [service = "", method] = [textOf(ofService), textOf(ofMethod)]
  const key = JSON.stringify([service, method])
  if (seen.has(key)) name.refuse("a method that no other entry names")
  seen.add(key)
  return { service, method }
}

const methodOf = (config: Place, seen: Set<string>): Method | undefined => {
  const names = config.at("name").list((name) => nameOf(name, seen), [])
  config.at("hedgingPolicy").leftOut("hedges are not retries")
  const retryPolicy = config.at("retryPolicy")
  if (retryPolicy.value === undefined) return undefined
  const { classifier, policy } = policyOf(retryPolicy)
  const timeout = config.at("timeout")
  return {
    names,
    classifier,
    policy: timeout.value === undefined ? policy : policy.pipe(RetryPolicy.deadline(timeout.positiveDuration()))
  }
}

const throttlingOf = (throttling: Place): Throttling => {
  throttling.only(["maxTokens", "tokenRatio"])
  const [most, tokenRatio] = [throttling.at("maxTokens"), throttling.at("tokenRatio")]
  const maxTokens = most.whole(1)
  if (maxTokens > 1000) most.refuse("a whole number from 1 to 1000")
  // More than three decimals are truncated, not rounded.
  const ratio = Math.trunc(tokenRatio.number(0) * 1000 + 1e-9) / 1000
  return ratio > 0
    ? { maxTokens, tokenRatio: ratio }
    : tokenRatio.refuse("a number above 0, of which three decimals count")
}

/** @see gRPC proposal A6 */
export const serviceConfig = (document: Place): ServiceConfig => {
  const seen = new Set<string>()
  const methods = document.at("methodConfig").list((config) => methodOf(config, seen), [])
  const throttling = document.at("retryThrottling")
  return {
    methods: methods.filter((method) => method !== undefined),
    throttling: throttling.value === undefined ? undefined : throttlingOf(throttling)
  }
}
