import type {
  Client,
  Command,
  FinalizeRequestMiddleware,
  HttpHandlerOptions,
  MetadataBearer,
  MiddlewareStack
} from "@smithy/types"
import { get } from "../../../internal/safe.ts"

/** What one send says of its place in the call. */
export interface Place {
  readonly headers: { readonly [name: string]: string }
  readonly attempts: number
  readonly totalRetryDelay: number
}

/** The name under which every client of the SDK keeps its retry loop. */
const retryMiddleware = "retryMiddleware"

const isRecord = (u: unknown): u is Record<string, unknown> => typeof u === "object" && u !== null

/** In the place of the SDK's retry loop: sends once, with the headers that tell retries from calls. */
const once = (place: Place, leaves: () => void): FinalizeRequestMiddleware<any, any> => (next) => (args) => {
  const headers = get(args.request, "headers")
  if (isRecord(headers)) Object.assign(headers, place.headers)
  leaves()
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
 * Makes a function that sends a command once. The client is asked through a view of it that has another stack: so
 * whoever replaces its `send` is heard, and nothing of the client changes.
 */
export const sender = <I extends object, In extends I, O extends MetadataBearer, Out extends O, C>(
  client: Client<I, O, C>,
  command: Command<I, In, O, Out, C>
) =>
(options: HttpHandlerOptions, place: Place, leaves: () => void): Promise<Out> => {
  const stack = onceStack(client.middlewareStack, once(place, leaves))
  const view: Client<I, O, C> = Object.create(client, {
    middlewareStack: { value: stack, writable: true, configurable: true }
  })
  return view.send(command, options)
}
