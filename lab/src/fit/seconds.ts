import { Histogram } from "../simulator/histogram.ts"

/** How many seconds stay open for late lines. */
const open = 64

/** One second of a log. */
export class Second {
  /** Since 1970. */
  at = -1
  /** Requests in flight when it begins. */
  present = 0
  /** Requests in flight, on average: those present, those that begin and end weighted by how much of it is left then. */
  inFlight = 0
  /** Requests that began. */
  arrived = 0
  /** Requests that were answered after the work on them, successfully or not. */
  served = 0
  /** Requests that were refused: 429 and 503. */
  refused = 0
  /** Requests whose client has left, and those that a gateway gave up. */
  abandoned = 0
  /** How long served requests took that ended in it. */
  readonly ended = new Histogram()
  /** How long served requests took that began in it: nothing of that depends on them being in flight. */
  readonly began = new Histogram()

  begin(at: number): void {
    this.at = at
    this.present =
      this.inFlight =
      this.arrived =
      this.served =
      this.refused =
      this.abandoned =
        0
    this.ended.reset()
    this.began.reset()
  }

  /** Requests that ended, in any way. */
  get left(): number {
    return this.served + this.refused + this.abandoned
  }
}

/** How much of its second is left at a time, from 0 to 1. */
const leftAt = (millis: number): number => 1 - (millis / 1000 - Math.floor(millis / 1000))

/** The latest seconds of a log as it is read. Older ones are closed: reported once, in order, and forgotten. */
export class Seconds {
  private readonly ring = Array.from({ length: open }, () => new Second())
  private newest = -1
  private present = 0

  constructor(private readonly onClosed: (second: Second) => void) {}

  /** A request begins, in the oldest open second if its own is closed. */
  arrive(millis: number): Second {
    const own = this.at(millis)
    const second = own ?? this.at((this.newest - open + 1) * 1000)!
    second.arrived++
    second.inFlight += own === undefined ? 1 : leftAt(millis)
    return second
  }

  /** A request ends; `undefined` when its second is closed. */
  leave(millis: number): Second | undefined {
    const second = this.at(millis)
    if (second !== undefined) second.inFlight -= leftAt(millis)
    return second
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
    if (second.at >= 0 && second.arrived + second.left > 0) {
      second.present = this.present
      second.inFlight += this.present
      this.present = Math.max(0, this.present + second.arrived - second.left)
      this.onClosed(second)
    }
    second.at = -1
  }

  /** Call it at the end of the log. */
  end(): void {
    for (const second of [...this.ring].sort((a, b) => a.at - b.at)) this.close(second)
    this.newest = -1
    this.present = 0
  }
}
