import type * as Fiber from "effect/Fiber"
import { get } from "../../internal/tryGet.ts"

/** Keeps the abort controller of a response alive while its body is read. */
const reading = new WeakMap<object, AbortController>()

/** Some Workers lack it: there, the signal of an attempt ends with the attempt. */
const collected = typeof FinalizationRegistry === "undefined"
  ? undefined
  : new FinalizationRegistry<() => void>((forget) => forget())

/** The calls and responses that wait for one signal. They share one listener, which is removed when none wait. */
class Callers {
  private readonly waiting = new Set<() => void>()
  private readonly aborted = () => {
    for (const listener of this.waiting) listener()
  }

  constructor(private readonly signal: AbortSignal) {}

  /** Interrupts the fiber when the signal is aborted, unless the fiber has already ended. */
  add(fiber: Fiber.Fiber<unknown, unknown>): void {
    const forget = this.listen(() => fiber.interruptUnsafe())
    fiber.addObserver(forget)
  }

  /** Aborts the rest of a response when the signal is aborted. Does not keep the response alive for that. */
  follow(response: Response, controller: AbortController): void {
    if (response.body === null || collected === undefined) return
    const followed = new WeakRef(controller)
    reading.set(response, controller)
    reading.set(response.body, controller)
    collected.register(controller, this.listen(() => followed.deref()?.abort(this.signal.reason)))
  }

  private listen(listener: () => void): () => void {
    if (this.waiting.size === 0) this.signal.addEventListener("abort", this.aborted)
    this.waiting.add(listener)
    return () => {
      this.waiting.delete(listener)
      if (this.waiting.size === 0) this.signal.removeEventListener("abort", this.aborted)
    }
  }
}

const callers = new WeakMap<AbortSignal, Callers>()

/** The calls and responses that wait for a signal. */
export const callersOf = (signal: AbortSignal): Callers => {
  let existing = callers.get(signal)
  if (existing === undefined) callers.set(signal, existing = new Callers(signal))
  return existing
}

export const isSignal = (u: unknown): u is AbortSignal =>
  typeof get(u, "aborted") === "boolean" && typeof get(u, "addEventListener") === "function"
