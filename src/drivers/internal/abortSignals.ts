import type * as Fiber from "effect/Fiber"
import { remembering } from "../../internal/remembering.ts"
import { get } from "../../internal/tryGet.ts"

/** Keeps the abort controller of a response alive while its body is read. */
const reading = new WeakMap<object, AbortController>()

/** Some Workers lack it: there, the signal of an attempt ends with the attempt. */
const collected = typeof FinalizationRegistry === "undefined"
  ? undefined
  : new FinalizationRegistry<() => void>((forget) => forget())

/** The calls and responses that wait for one signal. They share one listener, which is removed when none wait. */
const listening = (signal: AbortSignal) => {
  const waiting = new Set<() => void>()
  const aborted = () => {
    for (const listener of waiting) listener()
  }
  return (listener: () => void): () => void => {
    if (waiting.size === 0) signal.addEventListener("abort", aborted)
    waiting.add(listener)
    return () => {
      waiting.delete(listener)
      if (waiting.size === 0) signal.removeEventListener("abort", aborted)
    }
  }
}

const listeningTo = /* @__PURE__ */ remembering(listening)

/** Calls the listener when the signal is aborted, until the returned function is called. */
const listen = (signal: AbortSignal, listener: () => void): () => void => listeningTo(signal)(listener)

/** Interrupts the fiber when the signal is aborted, unless the fiber has already ended. */
export const interruptedBy = (signal: AbortSignal) => (fiber: Fiber.Fiber<unknown, unknown>): void => {
  const interrupt = () => fiber.interruptUnsafe()
  if (signal.aborted) interrupt()
  else fiber.addObserver(listen(signal, interrupt))
}

/** Aborts the rest of a response when the signal is aborted. Does not keep the response alive for that. */
export const follow = (signal: AbortSignal, response: Response, controller: AbortController): void => {
  if (response.body === null || collected === undefined) return
  const followed = new WeakRef(controller)
  reading.set(response, controller)
  reading.set(response.body, controller)
  collected.register(controller, listen(signal, () => followed.deref()?.abort(signal.reason)))
}

export const isSignal = (u: unknown): u is AbortSignal =>
  typeof get(u, "aborted") === "boolean" && typeof get(u, "addEventListener") === "function"
