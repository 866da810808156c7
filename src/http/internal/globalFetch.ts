import { get } from "../../internal/tryGet.ts"

/** `fetch`, as the program's own types have it. */
type Fetch = typeof globalThis.fetch

/**
 * The global `fetch` of the moment, so that a mock takes its place: for a function that may take that place itself.
 * Then, or with something around it there, its sends would come back to it: they go to the `fetch` before.
 */
export const globalFetch = (before: Fetch) => {
  let user: Fetch | undefined
  /** Whether the function has been the global one. Then what is there now may lead to it, by ways that do not show. */
  let isPlaced = false
  const isPlacedNow = () => isPlaced ||= globalThis.fetch === user
  /** Of its sends: what is around it passes them on. */
  const signals = new WeakSet<AbortSignal>()
  let isSending = false
  const send: Fetch = (input, init) => {
    const { fetch } = globalThis
    if (isPlacedNow() || typeof fetch !== "function") return before(input, init)
    signals.add(init!.signal!)
    const wasSending = isSending
    isSending = true
    try {
      return fetch(input, init)
    } finally {
      isSending = wasSending
    }
  }
  return {
    send,
    /** Whether a call of the function is a send of its own that has come back. */
    isBack: (input: unknown, init: unknown): boolean => {
      const signal = get(init, "signal") ?? get(input, "signal")
      return isSending || signals.has(signal as AbortSignal)
    },
    /** The function that sends by this one. It becomes the global one where it is made, if at all. */
    usedBy: (sender: Fetch): void => {
      user = sender
      void Promise.resolve().then(isPlacedNow)
    }
  }
}
