import type * as Duration from "effect/Duration"
import { also, type Checks } from "../../internal/checks.ts"
import type { Times } from "./exchanges.ts"

/** The options of everything shared through Redis. */
export interface SharedOptions {
  readonly name: string
  readonly prefix?: string | undefined
  readonly timeout?: Duration.Input | undefined
  readonly fallbackTime?: Duration.Input | undefined
}

/** Names may be from requests: none is that of another prefix, or picks the slot of a cluster. */
const escaped = (name: string): string =>
  name.replace(/[^\w.-]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`)

/** The key in Redis, checked. */
export const validKey = (check: Checks, { name, prefix }: SharedOptions, defaultPrefix: string): string => {
  also(check, "name", "prefix")
  if (typeof name !== "string" || name === "") check.reject("name", name, "a non-empty string")
  if (prefix !== undefined && typeof prefix !== "string") check.reject("prefix", prefix, "a string")
  return (prefix ?? defaultPrefix) + escaped(name)
}

/** How long Redis has to respond, and how long it is left alone if it does not. */
export const validTimes = (
  check: Checks,
  { fallbackTime, timeout }: SharedOptions
): Times => ({
  timeoutMillis: check.positiveDuration("timeout", timeout ?? 50),
  retryMillis: check.positiveDuration("fallbackTime", fallbackTime ?? 1000)
})
