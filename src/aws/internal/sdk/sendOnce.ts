import type {
  Client,
  Command,
  FinalizeRequestMiddleware,
  HttpHandlerOptions,
  MetadataBearer,
  MiddlewareStack
} from "@smithy/types"
import { get } from "../../../internal/tryGet.ts"

/** The place of one send in its call. */
export interface Place {
  readonly headers: { readonly [name: string]: string }
  readonly attempts: number
  readonly totalRetryDelay: number
}

/** The name under which every client of the SDK registers its retry loop. */
const retryMiddleware = "retryMiddleware"

const isRecord = (u: unknown): u is Record<string, unknown> => typeof u === "object" && u !== null

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
