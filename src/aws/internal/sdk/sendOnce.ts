import type {
  Client,
  Command,
  FinalizeRequestMiddleware,
  HttpHandlerOptions,
  MetadataBearer,
  MiddlewareStack
} from "@smithy/types"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import { CurrentSend } from "../../../hedge/Hedge.ts"
import { headerIn } from "../../../internal/classification/wire.ts"
import { Refused } from "../../../internal/refused.ts"
import { get } from "../../../internal/tryGet.ts"
import * as RetryInfo from "../../../RetryInfo.ts"
import * as RequestHeaders from "../../RequestHeaders.ts"
import type { SdkError } from "./errorInfo.ts"

const isRecord = (u: unknown): u is Record<string, unknown> => typeof u === "object" && u !== null

/** The place of one send in its call. */
export interface Place {
  readonly headers: { readonly [name: string]: string }
  readonly attempts: number
  readonly totalRetryDelay: number
}

/** What the next send of a call has to know about this one. */
export interface Sent {
  readonly operation: Function
  readonly call: RequestHeaders.Call
  readonly attempt: number
  readonly delayMillis: number
}

/** The sends that caused errors: the retry of a send finds its error in the metadata of its schedule. */
const sends = new WeakMap<object, Sent>()

/** Remembers the send that caused an error, and the server's time, if the error has it. */
export const remember = (error: SdkError, sent: Sent): Effect.Effect<void> => {
  sends.set(error, sent)
  const headers = get(get(error, "$response"), "headers")
  const date = isRecord(headers) ? headerIn(headers)("date") : undefined
  const observed = RequestHeaders.observeDate(typeof date === "string" ? date : undefined)
  return Effect.provideService(observed, RequestHeaders.Invocation, sent.call)
}

/** The number of the last send of the hedged call that failed with this error: a retry counts on from it. */
export const countedTo = (error: SdkError, attempt: number): void => {
  const sent = sends.get(error)
  if (sent !== undefined) sends.set(error, { ...sent, attempt })
}

const previousOf = ({ input }: Schedule.Metadata, operation: Function): Sent | undefined => {
  const sent = typeof input === "object" && input !== null ? sends.get(input) : undefined
  return sent?.operation === operation ? sent : undefined
}

const fresh = RequestHeaders.withInvocation(RequestHeaders.Invocation)

/** Which send of which call this is: the current retry, or the first of a call. */
export const current = (operation: Function): Effect.Effect<Sent> =>
  Effect.gen(function*() {
    const metadata = yield* Schedule.CurrentMetadata
    const enclosing = Option.getOrUndefined(yield* Effect.serviceOption(RequestHeaders.Invocation))
    const previous = previousOf(metadata, operation)
    const call = enclosing ?? previous?.call ?? (yield* fresh)
    const hedge = (yield* CurrentSend) ?? 0
    const counted = enclosing === undefined || metadata === enclosing.around ? 1 : metadata.attempt + 1
    return {
      operation,
      call,
      attempt: (previous === undefined ? counted : previous.attempt + 1) + hedge,
      delayMillis: previous === undefined ? 0 : previous.delayMillis + Duration.toMillis(metadata.duration)
    }
  })

/** The place of the send in its call. */
export const placeOf = (
  { attempt, call, delayMillis }: Sent,
  maxAttempts: RequestHeaders.Options["maxAttempts"]
): Effect.Effect<Place> =>
  Effect.map(
    Effect.provideService(RequestHeaders.headers({ maxAttempts, attempt }), RequestHeaders.Invocation, call),
    (headers) => ({ headers: { ...headers }, attempts: attempt, totalRetryDelay: delayMillis })
  )

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
export const markStream = (stream: object | undefined): void => {
  if (stream !== undefined) used.set(stream, undefined)
}

/** Whether the stream has been sent. */
export const wasSent = (stream: object | undefined): boolean => stream !== undefined && used.has(stream)

/** Remembers the error of a send that included the stream. */
export const streamFailed = (stream: object | undefined, error: SdkError): void => {
  if (stream !== undefined) used.set(stream, error)
}

/** Why a stream cannot be sent: the error of the send that included it, if that failed. */
export const refusalOf = (stream: object | undefined, command: Function): SdkError | undefined => {
  if (stream === undefined || !used.has(stream)) return undefined
  return used.get(stream) ?? new StreamUsed({ command: command.name })
}

/** The name under which every client of the SDK registers its retry loop. */
const retryMiddleware = "retryMiddleware"

/** Replaces the SDK's retry loop: sends once, with the headers that tell retries from calls. */
const once = (place: Place, markSent: () => void): FinalizeRequestMiddleware<any, any> => (next) => (args) => {
  const headers = get(args.request, "headers")
  if (isRecord(headers)) Object.assign(headers, place.headers)
  markSent()
  return next(args).then((result) => {
    const metadata: unknown = result.output.$metadata
    if (isRecord(metadata)) {
      metadata["attempts"] = place.attempts
      metadata["totalRetryDelay"] = place.totalRetryDelay
    }
    return result
  })
}

const onceStack = <I extends object, O extends object>(
  stack: MiddlewareStack<I, O>,
  middleware: FinalizeRequestMiddleware<any, any>
): MiddlewareStack<I, O> => {
  const clone = stack.clone()
  clone.remove(retryMiddleware)
  clone.add(middleware, { name: retryMiddleware, step: "finalizeRequest", priority: "high", tags: ["RETRY"] })
  return clone
}

/**
 * Makes a function that sends a command once. It uses a view of the client with its own middleware stack: a replaced
 * `send` still works, and the client is not changed.
 */
export const sender = <I extends object, In extends I, O extends MetadataBearer, Out extends O, C>(
  client: Client<I, O, C>,
  command: Command<I, In, O, Out, C>
) =>
(options: HttpHandlerOptions, place: Place, markSent: () => void): Promise<Out> => {
  const stack = onceStack(client.middlewareStack, once(place, markSent))
  const view: Client<I, O, C> = Object.create(client, {
    middlewareStack: { value: stack, writable: true, configurable: true }
  })
  return view.send(command, options)
}
