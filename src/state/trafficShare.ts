import type * as Clock from "effect/Clock"
import { monotonicMillis } from "../internal/clock.ts"
import type { Reservation, RetryQuotaStore } from "../RetryQuotaStore.ts"

/** Into how many slices a window is divided: what calls have put in expires a slice at a time. */
const slicesOfWindow = 10

/** A rounding error, in calls. */
const epsilon = 1e-6

/**
 * A share of the traffic: every call puts the share in, and one token pays for a send. It starts empty, and what is not
 * used expires with the window. What is taken is taken from the oldest first, so that no debt outlives the calls that
 * have paid it. It counts calls and not shares of them: fifty calls at 0.02 are exactly one send.
 * Source: Finagle's `RetryBudget`, without a reserve.
 */
export class TrafficShare implements RetryQuotaStore {
  readonly capacity = Infinity
  readonly successIncrement: number
  readonly firstAttemptCost = 0
  readonly whenExhausted = "stop"
  private readonly sliceMillis: number
  /** Calls that have not paid for anything yet, from the slice that is written back to the oldest. */
  private readonly slices = new Float64Array(slicesOfWindow)
  private sliceNumber = -Infinity

  constructor(share: number, windowMillis: number) {
    this.successIncrement = share
    this.sliceMillis = windowMillis / slicesOfWindow
  }

  deposit(tokens: number, clock: Clock.Clock): void {
    this.turn(clock)
    this.slices[0]! += tokens / this.successIncrement
  }

  reserve(cost: number, clock: Clock.Clock): Reservation | undefined {
    this.turn(clock)
    const calls = cost / this.successIncrement
    if (this.calls < calls - epsilon) return undefined
    this.take(calls)
    return new Taken(this, cost, this.sliceNumber)
  }

  balance(clock: Clock.Clock): number {
    this.turn(clock)
    return this.calls * this.successIncrement
  }

  /** Puts back what was taken for a send that was never made, unless it has expired since. */
  putBack(cost: number, sliceNumber: number): void {
    const age = this.sliceNumber - sliceNumber
    if (age < slicesOfWindow) this.slices[age]! += cost / this.successIncrement
  }

  private get calls(): number {
    return this.slices.reduce((sum, calls) => sum + calls, 0)
  }

  private take(calls: number): void {
    let missing = calls
    for (let slice = slicesOfWindow - 1; slice >= 0; slice--) {
      const taken = Math.min(this.slices[slice]!, missing)
      this.slices[slice]! -= taken
      missing -= taken
    }
  }

  private turn(clock: Clock.Clock): void {
    const number = Math.floor(monotonicMillis(clock) / this.sliceMillis)
    if (number <= this.sliceNumber) return
    const age = Math.min(slicesOfWindow, number - this.sliceNumber)
    this.slices.copyWithin(age, 0)
    this.slices.fill(0, 0, age)
    this.sliceNumber = number
  }
}

/** Tokens that were taken, to be settled once. */
class Taken implements Reservation {
  readonly cost: number
  private readonly share: TrafficShare
  private readonly sliceNumber: number
  private isSettled = false

  constructor(share: TrafficShare, cost: number, sliceNumber: number) {
    this.share = share
    this.cost = cost
    this.sliceNumber = sliceNumber
  }

  giveBack(): boolean {
    if (!this.spend()) return false
    this.share.putBack(this.cost, this.sliceNumber)
    return true
  }

  spend(): boolean {
    if (this.isSettled) return false
    return this.isSettled = true
  }
}
