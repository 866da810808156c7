import { awsAdaptive, awsDynamoDB2026, awsStandard, awsStandard2026 } from "../../aws/AwsModes.ts"
import { exponential } from "../../Backoff.ts"
import { type Fields, isObject, type Path, refuse, rejectUnknownKeys } from "../../internal/invalidField.ts"
import {
  deadline,
  honorRetryAfter,
  maxAttempts,
  outermostOnly,
  quotaGated,
  whileMaybeRetryable,
  whileRetryable
} from "../../RetryPolicy.ts"
import type { Policy } from "../RetryPolicyJson.ts"
import { made, revived, stepped } from "./policyReader.ts"

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

const flags = Object.entries(shortKeys).flatMap(([key, kind]) => kind === "flag" ? [key] : [])

/** The policy that short keys stand for. */
const short = (input: Fields, path: Path): Policy => {
  rejectUnknownKeys(input, Object.keys(shortKeys), path)
  if (isObject(input["jitter"])) rejectUnknownKeys(input["jitter"], ["proportional"], [...path, "jitter"])
  for (const flag of flags) {
    if (![undefined, true, false].includes(input[flag] as boolean)) {
      refuse([...path, flag], input[flag], "true or false")
    }
  }
  const keys: { readonly [key: string]: any } = Object.fromEntries(
    Object.entries(input).map(([key, value]) => [key, revived(value)])
  )
  const { cost = 5, throttlingCost, timeoutCost } = keys
  return made(
    () =>
      [
        honorRetryAfter(),
        maxAttempts(keys["maxAttempts"] ?? 3),
        ...(keys["deadline"] === undefined ? [] : [deadline(keys["deadline"])]),
        keys["idempotent"] === true ? whileMaybeRetryable : whileRetryable,
        quotaGated({ cost, timeoutCost, throttlingCost }),
        ...(keys["outermostOnly"] === true ? [outermostOnly] : [])
      ].reduce<any>(
        (policy, combinator: (self: any) => unknown) => combinator(policy),
        exponential(keys["base"] ?? "100 millis", keys["factor"], {
          cap: keys["cap"] ?? "20 seconds",
          jitter: keys["jitter"] ?? "full"
        })
      ),
    path,
    input
  )
}

/** A policy from its name, its steps, or short keys. */
export const policyAt = (json: unknown, path: Path): Policy => {
  if (typeof json === "string" && Object.hasOwn(presets, json)) return presets[json]!
  if (!isObject(json)) {
    return refuse(path, json, `a policy: its steps, short keys, or ${Object.keys(presets).join(", ")}`)
  }
  return "steps" in json ? stepped(json, path) : short(json, path)
}
