import { get } from "../internal/safe.ts"
import type { SdkError } from "./errors.ts"

const isOneShot = (value: unknown): value is object =>
  typeof value === "object" && value !== null &&
  [get(value, "pipe"), get(value, "getReader"), get(value, Symbol.asyncIterator)]
    .some((member) => typeof member === "function")

/** The stream in the input of a command: a stream of Node or of the web, or an async iterable. It can be sent once. */
export const streamOf = (input: object): object | undefined => Object.values(input).find(isOneShot)

/** The streams that were sent in vain, with the errors of those sends. */
const failures = new WeakMap<object, SdkError>()

/** Remembers that a send of the stream has failed. */
export const failed = (stream: object, error: SdkError): void => {
  failures.set(stream, error)
}

/** The error of the send that has used the stream up. */
export const failureOf = (stream: object | undefined): SdkError | undefined =>
  stream === undefined ? undefined : failures.get(stream)
