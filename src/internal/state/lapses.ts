import type * as Clock from "effect/Clock"
import { monotonicMillis } from "./clock.ts"

/** Something held for a retry that may never come. */
interface Expected {
  readonly state: string
  readonly cancel: () => boolean
}

/**
 * The retries of a quota that have been decided on and may never come. What one holds that was not sent when it should
 * have been goes back before anybody takes tokens or looks at the balance.
 */
export class Lapses {
  /** When the first of them lapses, in milliseconds of the monotonic clock; `Infinity` when none is expected. */
  nextMillis = Infinity
  private readonly expected = new Map<Expected, number>()

  /** Expects a retry to be sent before this moment, in milliseconds of the monotonic clock. */
  expect(held: Expected, beforeMillis: number): void {
    this.expected.set(held, beforeMillis)
    if (beforeMillis < this.nextMillis) this.nextMillis = beforeMillis
  }

  /** The retry has been sent, or never will be. */
  forget(held: Expected): void {
    this.expected.delete(held)
    if (this.expected.size === 0) this.nextMillis = Infinity
  }

  /** Gives back what has lapsed. */
  lapse(clock: Clock.Clock): void {
    const now = monotonicMillis(clock)
    if (now < this.nextMillis) return
    this.nextMillis = Infinity
    for (const [held, beforeMillis] of this.expected) {
      if (beforeMillis <= now || held.state !== "taken") {
        this.expected.delete(held)
        held.cancel()
      } else if (beforeMillis < this.nextMillis) {
        this.nextMillis = beforeMillis
      }
    }
  }
}
