import { Histogram } from "../simulator/histogram.ts"

/** How many seconds stay open for late lines. */
const open = 64

/** One second of a log. */
export class Second {
  /** Since 1970. */
  at = -1
  /** Requests that began. */
  arrived = 0
  /** Requests that were answered after the work on them, successfully or not. */
  served = 0
  /** Requests that were refused: 429 and 503. */
  refused = 0
  /** Requests whose client has left, and those that a gateway gave up. */
  abandoned = 0
  /** How long the served requests took. */
  readonly latency = new Histogram()

  begin(at: number): void {
    this.at = at
    this.arrived =
      this.served =
      this.refused =
      this.abandoned =
        0
    this.latency.reset()
  }
}

/** The latest seconds of a log as it is read. Older ones are closed: reported once, in order, and forgotten. */
export class Seconds {
  private readonly ring = Array.from({ length: open }, () => new Second())
  private readonly onClosed: (second: Second) => void
  private newest = -1

  constructor(onClosed: (second: Second) => void) {
    this.onClosed = onClosed
  }

  /** The second of a time in milliseconds; `undefined` when it is closed. */
  at(millis: number): Second | undefined {
    const at = Math.floor(millis / 1000)
    // After a gap longer than the ring nothing is open.
    if (at > this.newest + open) this.end()
    if (this.newest < 0) this.newest = at - 1
    if (at <= this.newest - open) return undefined
    while (this.newest < at) this.reopen(++this.newest)
    const second = this.ring[at % open]!
    if (second.at !== at) this.reopen(at)
    return second
  }

  private reopen(at: number): void {
    const second = this.ring[at % open]!
    if (second.at === at) return
    this.close(second)
    second.begin(at)
  }

  private close(second: Second): void {
    if (second.at >= 0 && second.arrived + second.served + second.refused + second.abandoned > 0) this.onClosed(second)
    second.at = -1
  }

  /** Call it at the end of the log. */
  end(): void {
    for (const second of [...this.ring].sort((a, b) => a.at - b.at)) this.close(second)
    this.newest = -1
  }
}
