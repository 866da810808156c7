import type * as Fiber from "effect/Fiber"
import { get } from "./safe.ts"

/** What is to be read of a response keeps what can abort it. */
const reading = new WeakMap<object, AbortController>()

/** Not every Worker has it: there, the signal of an attempt ends with the attempt. */
const collected = typeof FinalizationRegistry === "undefined"
  ? undefined
  : new FinalizationRegistry<() => void>((forget) => forget())

/** The calls and the responses that wait for one signal. It has one listener for all of them, and none when there are none. */
class Callers {
  private readonly waiting = new Set<() => void>()
  private readonly signal: AbortSignal
  private readonly aborted = () => {
    for (const told of this.waiting) told()
  }

  constructor(signal: AbortSignal) {
    this.signal = signal
  }

  /** Interrupts the fiber when the signal is aborted, unless the fiber has ended before. */
  add(fiber: Fiber.Fiber<unknown, unknown>): void {
    const forget = this.tell(() => fiber.interruptUnsafe())
    fiber.addObserver(forget)
  }

  /** Aborts what is still read of a response when the signal is aborted. The response is not kept for that. */
  follow(response: Response, controller: AbortController): void {
    if (response.body === null || collected === undefined) return
    const followed = new WeakRef(controller)
    reading.set(response, controller)
    reading.set(response.body, controller)
    collected.register(controller, this.tell(() => followed.deref()?.abort(this.signal.reason)))
  }

  private tell(told: () => void): () => void {
    if (this.waiting.size === 0) this.signal.addEventListener("abort", this.aborted)
    this.waiting.add(told)
    return () => {
      this.waiting.delete(told)
      if (this.waiting.size === 0) this.signal.removeEventListener("abort", this.aborted)
    }
  }
}

const callers = new WeakMap<AbortSignal, Callers>()

/** Those who wait for a signal. */
export const callersOf = (signal: AbortSignal): Callers => {
  let known = callers.get(signal)
  if (known === undefined) callers.set(signal, known = new Callers(signal))
  return known
}

export const isSignal = (u: unknown): u is AbortSignal =>
  typeof get(u, "aborted") === "boolean" && typeof get(u, "addEventListener") === "function"
