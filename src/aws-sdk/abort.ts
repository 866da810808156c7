import type { MiddlewareStack, Pluggable } from "@smithy/types"
import { get } from "../internal/safe.ts"

/** The abort signals of the calls that errors ended an attempt of; none for an error that several calls share. */
const signals = new WeakMap<object, AbortSignal | "none">()

const isObject = (u: unknown): u is object => (typeof u === "object" && u !== null) || typeof u === "function"

/** The abort signal of the call that the error ended an attempt of, if it is known. */
export const signalOf = (error: unknown): AbortSignal | undefined => {
  const signal = isObject(error) ? signals.get(error) : undefined
  return signal === "none" ? undefined : signal
}

const remember = (error: unknown, context: unknown): void => {
  if (!isObject(error)) return
  const found = get(get(context, "__smithy_context"), "abortSignal")
  const signal = found instanceof AbortSignal ? found : "none"
  const known = signals.get(error) ?? signal
  signals.set(error, known === signal ? signal : "none")
}

/** A plug-in of the client that tells a strategy of ours the signal of the call. */
export const plugin: Pluggable<any, any> = {
  applyToStack: (stack: MiddlewareStack<any, any>) => {
    stack.addRelativeTo((next: any, context: unknown) => (args: any) =>
      next(args).catch((error: unknown) => {
        remember(error, context)
        throw error
      }), {
      name: "effectRetryAbort",
      relation: "after",
      toMiddleware: "retryMiddleware",
      override: true
    })
  }
}
