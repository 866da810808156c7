import type * as Clock from "effect/Clock"
import { monotonicMillis } from "../internal/clock.ts"

/** Something held for a retry that may never be sent. */
interface Expected {
  readonly state: string
  readonly cancel: () => boolean
}

/**
 * The retries of a quota that were decided on and may never be sent. What an overdue retry holds goes back before any
 * caller takes tokens or reads the balance.
 */
export class Lapses {
  /** When each of them lapses, created for the first. */
  private expected: Map<Expected, number> | undefined = undefined
  /** When the first of them lapses, in milliseconds of the monotonic clock. */
  nextMillis: number | undefined = undefined

  /** Expects a retry to be sent before this moment, in milliseconds of the monotonic clock. */
  expect(held: Expected, beforeMillis: number): void {
    ;(this.expected ??= new Map()).set(held, beforeMillis)
    this.nextMillis = Math.min(beforeMillis, this.nextMillis ?? Infinity)
  }

  /** The retry was sent, or never will be. */
  forget(held: Expected): void {
    this.expected?.delete(held)
    if (!this.expected?.size) this.nextMillis = undefined
  }

  /** Returns what has lapsed. */
  lapse(clock: Clock.Clock): void {
    if (!this.nextMillis) return
    const now = monotonicMillis(clock)
    if (now < this.nextMillis) return
    this.nextMillis = undefined
    for (const [held, beforeMillis] of this.expected!) {
      if (beforeMillis <= now || held.state !== "taken") {
        this.expected!.delete(held)
        held.cancel()
      } else {
        this.nextMillis = Math.min(beforeMillis, this.nextMillis ?? Infinity)
      }
    }
  }
}
