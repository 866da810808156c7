import type * as Clock from "effect/Clock"
import { monotonicMillis } from "../../internal/clock.ts"
import { Window } from "../../internal/math/slidingWindow.ts"
import { Taken } from "../../quota/internal/reservation.ts"
import type { Reservation, RetryQuotaStore } from "../../RetryQuotaStore.ts"

/** Calls that have not paid for anything yet. */
const windowOf = (millis: number) => new Window({ millis, slice: () => ({ calls: 0 }) }, 0)

/** A rounding error, in calls. */
const epsilon = 1e-6

/**
 * A share of the traffic: every call pays the share in, and one token pays for a send. It starts empty, and what is not
 * used expires with the window. The oldest is used first, so that no debt outlives the calls that paid for it. It
 * counts whole calls, not fractions: fifty calls at 0.02 are exactly one send. Source: Finagle's `RetryBudget`, without
 * a reserve.
 */
export class HedgeBudget implements RetryQuotaStore {
  readonly capacity = Infinity
  successIncrement: number
  readonly firstAttemptCost = 0
  readonly onExceeded = "stop"
  private window: ReturnType<typeof windowOf>

  constructor(share: number, private windowMillis: number) {
    this.successIncrement = share
    this.window = windowOf(windowMillis)
  }

  /** Switches to another share, keeping the recent calls if the window stays the same. */
  change(share: number, windowMillis: number): void {
    this.successIncrement = share
    if (windowMillis === this.windowMillis) return
    this.windowMillis = windowMillis
    this.window = windowOf(windowMillis)
  }

  deposit(tokens: number, clock: Clock.Clock): void {
    this.at(clock).calls += tokens / this.successIncrement
  }

  reserve(cost: number, clock: Clock.Clock): Reservation | undefined {
    const slice = this.at(clock)
    const calls = cost / this.successIncrement
    if (this.calls < calls - epsilon) return undefined
    let missing = calls
    for (const slice of this.window.slices) {
      const taken = Math.min(slice.calls, missing)
      slice.calls -= taken
      missing -= taken
    }
    return new Taken(cost, (isBack) => {
      // It expires with what calls had paid in when it was taken.
      if (isBack) slice.calls += calls
    })
  }

  balance(clock: Clock.Clock): number {
    this.at(clock)
    return this.calls * this.successIncrement
  }

  private at(clock: Clock.Clock) {
    return this.window.at(monotonicMillis(clock))
  }

  private get calls(): number {
    return this.window.slices.reduce((sum, { calls }) => sum + calls, 0)
  }
}
