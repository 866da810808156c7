import { get } from "../../internal/tryGet.ts"

/** `fetch`, as the program's own types have it. */
type Fetch = typeof globalThis.fetch

/**
 * The global `fetch` of the moment, so that a mock takes its place: for a function that may take that place itself.
 * Then, or with something around it there, its sends would come back to it: they go to the `fetch` before.
 */
export class GlobalFetch {
  private user: Fetch | undefined = undefined
  /** Whether the function has been the global one. Then what is there now may lead to it, by ways that do not show. */
  private isPlaced = false
  /** Of its sends: what is around it passes them on. */
  private readonly signals = new WeakSet<AbortSignal>()
  private isSending = false

  constructor(private readonly before: Fetch) {}

  /** Whether a call of the function is a send of its own that has come back. */
  isBack(input: unknown, init: unknown): boolean {
    const signal = get(init, "signal") ?? get(input, "signal")
    return this.isSending || this.signals.has(signal as AbortSignal)
  }

  /** The function that sends by this one. It becomes the global one where it is made, if at all. */
  usedBy(user: Fetch): void {
    this.user = user
    void Promise.resolve().then(() => this.look())
  }

  private look(): boolean {
    this.isPlaced ||= globalThis.fetch === this.user
    return this.isPlaced
  }

  readonly send: Fetch = (input, init) => {
    const { before } = this
    const { fetch } = globalThis
    if (this.look() || typeof fetch !== "function") return before(input, init)
    this.signals.add(init!.signal!)
    const wasSending = this.isSending
    this.isSending = true
    try {
      return fetch(input, init)
    } finally {
      this.isSending = wasSending
    }
  }
}
