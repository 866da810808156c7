/**
 * The error of every constructor given an invalid option.
 *
 * @since 0.1.0
 */

import * as Data from "effect/Data"
import * as Duration from "effect/Duration"

/**
 * An invalid option of a policy, quota or limiter, thrown by the constructor before anything runs. Inside a program,
 * `Effect.try` turns it into a typed failure.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidOption extends Data.TaggedError("InvalidOption")<{
  /** The constructor, such as `"RetryQuota.make"`. */
  readonly constructorName: string
  /** The option, such as `"capacity"`, or its path in a document; empty for all of it. */
  readonly field: string
  /** The value that was given. */
  readonly value: unknown
  /** What would be valid. */
  readonly expected: string
}> {
  override get message(): string {
    return `${this.constructorName}: ${this.field || "it"} must be ${this.expected}, got ${render(this.value)}`
  }
}

/** The longest text in a message, in characters. */
const maxShown = 100

const shown = (text: string, as: (text: string) => string): string =>
  `${as(text.slice(0, maxShown))}${text.length > maxShown ? "..." : ""}`

/**
 * A value, as a message shows it: of a text, the beginning.
 *
 * @internal
 */
export const render = (value: unknown): string => {
  if (typeof value === "string") return shown(value, JSON.stringify)
  if (Duration.isDuration(value)) return Duration.format(value)
  if (Array.isArray(value)) return "an array"
  try {
    const text = String(value)
    return text === "[object Object]" ? "an object" : shown(text, (text) => text.replace(/\s+/g, " "))
  } catch {
    return typeof value
  }
}
