/** What a promise delivers to one who may have stopped waiting for it. */
export class Deliverable {
  private taken = false

  /** Whether anybody has got hold of the value. */
  get isTaken(): boolean {
    return this.taken
  }

  /**
   * A promise that is resolved with the value looks for this first, unless it is settled already: then it ignores the
   * value and does not look. So whoever looks has got it.
   */
  get then(): undefined {
    this.taken = true
    return undefined
  }

  /** What has looked so far was the promise that delivers. */
  forget(): void {
    this.taken = false
  }
}

const nativeCode = /\{\s*\[native code\]\s*\}\s*$/

/** Whether a callback is the language's own, such as those that `Promise.race` passes. */
const isNative = (callback: unknown): boolean =>
  typeof callback !== "function" || nativeCode.test(Function.prototype.toString.call(callback))

type Callbacks = Parameters<Promise<Deliverable>["then"]>

/**
 * Calls `delivered` when the promise has delivered its value, with a function that tells, once all reactions have run,
 * whether nobody was there to take it; or `rejected` when there is none.
 *
 * `Promise.race` says when it is over to nobody, but a value that comes too late is ignored, and that can be seen: it is
 * never looked at. A promise that is awaited directly, or that code of one's own listens to, counts as waited for.
 */
export const watchDelivery = <A extends Deliverable>(
  promise: Promise<A>,
  delivered: (value: A, isLost: () => boolean) => void,
  rejected: () => void
): Promise<A> => {
  const listen = promise.then.bind(promise)
  const listeners: Array<unknown> = []
  const onDelivery = (value: A) => {
    value.forget()
    delivered(value, () => listeners.length > 0 && listeners.every(isNative) && !value.isTaken)
  }
  void listen(onDelivery, rejected)
  const then = (...callbacks: Callbacks) => {
    listeners.push(callbacks[0])
    return listen(...callbacks as Parameters<Promise<A>["then"]>)
  }
  return Object.defineProperty(promise, "then", { value: then, configurable: true })
}
