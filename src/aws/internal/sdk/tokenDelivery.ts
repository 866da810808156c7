/** A value that a promise delivers to a caller that may have stopped waiting for it. */
export class Deliverable {
  private taken = false

  /** Whether any code has received the value. */
  get isTaken(): boolean {
    return this.taken
  }

  /**
   * A promise resolved with the value first looks for this property, unless it is already settled: then it ignores the
   * value and does not look. So a look means that the value was received.
   */
  get then(): undefined {
    this.taken = true
    return undefined
  }

  /** Ignores looks so far: they came from the promise that delivers. */
  forget(): void {
    this.taken = false
  }
}

const nativeCode = /\{\s*\[native code\]\s*\}\s*$/

/** Whether a callback is built in, such as those that `Promise.race` passes. */
const isNative = (callback: unknown): boolean =>
  typeof callback !== "function" || nativeCode.test(Function.prototype.toString.call(callback))

type Callbacks = Parameters<Promise<Deliverable>["then"]>

/**
 * Calls `delivered` when the promise has delivered its value, with a function that says, once all reactions have run,
 * whether no receiver was left; or `rejected` if there is no value.
 *
 * `Promise.race` does not report when it is over, but it ignores a value that comes too late, and that can be seen: the
 * value is never looked at. A promise that is awaited directly, or by the caller's own callbacks, counts as waited for.
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
