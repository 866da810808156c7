import { awsAdaptive, awsDynamoDB2026, awsStandard, awsStandard2026 } from "../../aws/AwsModes.ts"
import * as Backoff from "../../Backoff.ts"
import { checks, flag } from "../../internal/checks.ts"
import { isObject, type Path, refuse } from "../../internal/invalidField.ts"
import * as RetryPolicy from "../../RetryPolicy.ts"
import type { Policy } from "../RetryPolicyJson.ts"
import { options, plain, policyOf } from "./policyReader.ts"

/** Policies known by name. */
export const presets: { readonly [name: string]: Policy } = {
  awsStandard,
  awsStandard2026,
  awsDynamoDB2026,
  awsAdaptive
}

/** The short keys of a policy, and how a string is converted for each. */
export const shortKeys = {
  base: "time",
  factor: "number",
  cap: "time",
  jitter: "word",
  maxAttempts: "number",
  deadline: "time",
  cost: "number",
  timeoutCost: "number",
  throttlingCost: "number",
  idempotent: "flag",
  outermostOnly: "flag"
} as const

/** The policy that short keys stand for. */
const short = options(
  ({ cost = 5, throttlingCost, timeoutCost, ...keys }) => {
    const check = checks("RetryConfig")
    return [
      RetryPolicy.honorRetryAfter(),
      RetryPolicy.maxAttempts(keys.maxAttempts ?? 3),
      ...(keys.deadline === undefined ? [] : [RetryPolicy.deadline(keys.deadline)]),
      flag(check, "idempotent", keys.idempotent) ? RetryPolicy.whileMaybeRetryable : RetryPolicy.whileRetryable,
      RetryPolicy.quotaGated({ cost, timeoutCost, throttlingCost }),
      ...(flag(check, "outermostOnly", keys.outermostOnly) ? [RetryPolicy.outermostOnly] : [])
    ].reduce<any>(
      (policy, combinator: (self: any) => unknown) => combinator(policy),
      Backoff.exponential(keys.base ?? "100 millis", keys.factor, {
        cap: keys.cap ?? "20 seconds",
        jitter: keys.jitter ?? "full"
      })
    )
  },
  Object.keys(shortKeys)
)

/** A policy from its name, its steps, or short keys. */
export const policyAt = (json: unknown, path: Path): Policy => {
  if (typeof json === "string" && Object.hasOwn(presets, json)) return presets[json]!
  if (!isObject(json)) {
    return refuse(path, json, `a policy: its steps, short keys, or ${Object.keys(presets).join(", ")}`)
  }
  return "steps" in json ? policyOf(json, path, plain) : short(json, path, plain)
}
