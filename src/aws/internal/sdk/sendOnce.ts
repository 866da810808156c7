import type * as Smithy from "@smithy/types"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import { CurrentSend } from "../../../hedge/Hedge.ts"
import { headerIn, isReader } from "../../../internal/classification/wire.ts"
import { isObject } from "../../../internal/invalidField.ts"
import { Refused } from "../../../internal/refused.ts"
import { get, look } from "../../../internal/tryGet.ts"
import * as RetryInfo from "../../../RetryInfo.ts"
import * as RequestHeaders from "../../RequestHeaders.ts"
import type { SdkError } from "./errorInfo.ts"

/** What the next send of a call has to know about this one. */
export interface Sent {
  readonly operation: Function
  readonly call: RequestHeaders.Call
  readonly attempt: number
  readonly delayMillis: number
}

/** The sends that caused errors: the retry of a send finds its error in the metadata of its schedule. */
const sends = new WeakMap<object, Sent>()

/** Says how often the call was sent, and how long it waited, where the SDK's own retries do. */
export const count = (ended: { $metadata?: Smithy.ResponseMetadata | undefined }, sent: Sent): void =>
  void look(() => Object.assign(ended.$metadata ??= {}, { attempts: sent.attempt, totalRetryDelay: sent.delayMillis }))

/** Remembers the send that caused an error, and the server's time, if the error has it. */
export const remember = (error: SdkError, sent: Sent): Effect.Effect<void> => {
  sends.set(error, sent)
  const headers = get(get(error, "$response"), "headers")
  const date = isObject(headers) ? headerIn(headers)("date") : undefined
  return Effect.provideService(RequestHeaders.observeDate(date as string), RequestHeaders.Invocation, sent.call)
}

/** The number of the last send of the hedged call that failed with this error: a retry counts on from it. */
export const countedTo = (error: SdkError, attempt: number): void => {
  const sent = sends.get(error)
  if (sent === undefined) return
  sends.set(error, { ...sent, attempt })
  count(error, { ...sent, attempt })
}

const previousOf = ({ input }: Schedule.Metadata, operation: Function): Sent | undefined => {
  const sent = sends.get(input as object)
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

/** The input of a command has a stream that was already sent: nothing was sent now, and no policy retries it. */
export class StreamUsed extends RetryInfo.TaggedError("StreamUsed", { safety: "No" })<{
  /** The command, such as `"PutObjectCommand"`. */
  readonly command: string
}> {
  readonly [Refused] = true
  override get message(): string {
    return `the stream in the input of ${this.command} was already sent`
  }
}

/** The stream in the input of a command: a Node or web stream, or an async iterable. It can be sent once. */
export const streamOf = (input: object): object | undefined => Object.values(input).find(isReader)

/** The streams that have been sent, with the errors of the sends that failed. */
const used = new WeakMap<object, SdkError | undefined>()

/** Remembers the error of a send. Returns whether it included the stream. */
export const streamFailed = (stream: object | undefined, error: SdkError): boolean => {
  if (stream === undefined || !used.has(stream)) return false
  used.set(stream, error)
  return true
}

/** Why a stream cannot be sent: the error of the send that included it, if that failed. */
export const refusalOf = (stream: object | undefined, command: Function): SdkError | undefined => {
  if (stream === undefined || !used.has(stream)) return undefined
  return used.get(stream) ?? new StreamUsed({ command: command.name })
}

/** One send, as the service sees it. */
interface Place {
  readonly sent: Sent
  readonly headers: RequestHeaders.RequestHeaders
  readonly stream: object | undefined
}

/** The name under which every client of the SDK registers its retry loop. */
const retryMiddleware = "retryMiddleware"

/** Replaces the SDK's retry loop: sends once, with the headers that tell retries from calls. */
const once = ({ headers, sent, stream }: Place): Smithy.FinalizeRequestMiddleware<any, any> => (next) => (args) => {
  const ofRequest = get(args.request, "headers")
  if (isObject(ofRequest)) Object.assign(ofRequest, headers)
  if (stream !== undefined) used.set(stream, undefined)
  return next(args).then((result) => {
    count(result.output, sent)
    return result
  })
}

/**
 * Sends a command once. It uses a view of the client with its own middleware stack: a replaced `send` still works, and
 * the client is not changed.
 */
export const sendOnce = <I extends object, In extends I, O extends Smithy.MetadataBearer, Out extends O, C>(
  client: Smithy.Client<I, O, C>,
  command: Smithy.Command<I, In, O, Out, C>,
  options: Smithy.HttpHandlerOptions,
  place: Place
): Promise<Out> => {
  const stack = client.middlewareStack.clone()
  stack.remove(retryMiddleware)
  stack.add(once(place), { name: retryMiddleware, step: "finalizeRequest", priority: "high", tags: ["RETRY"] })
  const view: Smithy.Client<I, O, C> = Object.create(client, {
    middlewareStack: { value: stack, writable: true, configurable: true }
  })
  return view.send(command, options)
}
