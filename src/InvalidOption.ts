/**
 * The error of every constructor given an invalid option.
 *
 * @since 0.1.0
 */

import * as Data from "effect/Data"
import { render } from "./internal/format.ts"

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
