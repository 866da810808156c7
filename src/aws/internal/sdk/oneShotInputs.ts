import * as Data from "effect/Data"
import { Refused } from "../../../internal/refused.ts"
import { get } from "../../../internal/tryGet.ts"
import * as RetryInfo from "../../../RetryInfo.ts"
import type { SdkError } from "./errorTypes.ts"

/** The input of a command has a stream that was already sent: nothing was sent now, and no policy retries it. */
export class StreamUsed extends Data.TaggedError("StreamUsed")<{
  /** The command, such as `"PutObjectCommand"`. */
  readonly command: string
}> {
  readonly [Refused] = true
  get [RetryInfo.TypeId](): RetryInfo.RetryInfo {
    return RetryInfo.notRetryable
  }
  override get message(): string {
    return `the stream in the input of ${this.command} was already sent`
  }
}

const isOneShot = (value: unknown): value is object =>
  typeof value === "object" && value !== null &&
  [get(value, "pipe"), get(value, "getReader"), get(value, Symbol.asyncIterator)]
    .some((member) => typeof member === "function")

/** The stream in the input of a command: a Node or web stream, or an async iterable. It can be sent once. */
export const streamOf = (input: object): object | undefined => Object.values(input).find(isOneShot)

/** The streams that have been sent, with the errors of the sends that failed. */
const used = new WeakMap<object, SdkError | undefined>()

/** Remembers that a stream is being sent. */
export const markSent = (stream: object | undefined): void => {
  if (stream !== undefined) used.set(stream, undefined)
}

/** Whether the stream has been sent. */
export const wasSent = (stream: object | undefined): boolean => stream !== undefined && used.has(stream)

/** Remembers the error of a send that included the stream. */
export const failed = (stream: object | undefined, error: SdkError): void => {
  if (stream !== undefined) used.set(stream, error)
}

/** Why a stream cannot be sent: the error of the send that included it, if that failed. */
export const refusal = (stream: object | undefined, command: Function): SdkError | undefined => {
  if (stream === undefined || !used.has(stream)) return undefined
  return used.get(stream) ?? new StreamUsed({ command: command.name })
}
