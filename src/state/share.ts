import type * as Clock from "effect/Clock"
import { monotonicMillis } from "../internal/clock.ts"
import { tokenEpsilon } from "../internal/math/bucket.ts"
import { Window } from "../internal/math/window.ts"
import type { Reservation, RetryQuotaStore } from "../RetryQuotaStore.ts"
import type { Pass, Send, SendGate } from "../SendGate.ts"
import { Counted, uncounted, untold } from "./counted.ts"

/** How a share is made, valid. */
export interface ShareOptions {
  readonly share: number
  readonly minPerSecond: number
  readonly windowMillis: number
}

/** A tenth of the window, and the pass of the first sends in it. */
class Slice implements Pass {
  /** First sends: each pays for a share of a retry. */
  calls = 0
  /** Retries that they have paid for. */
  paid = 0
  /** Retries that nothing but the reserve has paid for. */
  borrowed = 0

  settle(): void {}

  /** The send was never made: it pays for nothing. */
  cancel(): void {
    this.calls--
  }
}

/**
 * So many retries as are a share of the calls of the last while, and some a second. What a retry takes of a call expires
 * with the call, and what it takes of the reserve comes back when the window has passed.
 * Source: Finagle, `RetryBudget`, whose shares are exact to a thousandth and whose debts outlive their calls.
 */
export class ShareStore implements RetryQuotaStore {
  readonly capacity = Infinity
  readonly successIncrement = 0
  readonly firstAttemptCost = 0
  readonly whenExhausted = "stop"
  readonly gates: ReadonlyArray<SendGate>
  private readonly share: number
  private readonly reserved: number
  private readonly window: Window<Slice>

  constructor({ minPerSecond, share, windowMillis }: ShareOptions, nowMillis: number) {
    this.share = share
    this.reserved = minPerSecond * windowMillis / 1000
    this.window = new Window({ millis: windowMillis, slice: () => new Slice(), drifts: true }, nowMillis)
    // The last to be asked: what others hold back is no call.
    this.gates = [{ name: "RetryBudget", order: 1000, enter: (send) => this.called(send) }]
  }

  reserve(cost: number, clock: Clock.Clock): Reservation | undefined {
    if (cost === 0) return uncounted(cost)
    if (this.balance(clock) + tokenEpsilon < 1) return undefined
    const undo = this.take()
    return new Counted(cost, (wasSent) => wasSent || undo())
  }

  /** Calls pay, nothing else. */
  deposit(): void {}

  balance(clock: Clock.Clock): number {
    this.window.at(monotonicMillis(clock))
    let left = this.reserved
    for (const slice of this.window.slices) left += this.leftOf(slice) - slice.borrowed
    return Math.max(0, left)
  }

  private leftOf({ calls, paid }: Slice): number {
    return this.share * calls - paid
  }

  private called(send: Send): void {
    if (send.attempt > 1) return send.hold(untold)
    const slice = this.window.at(send.nowMillis)
    slice.calls++
    send.hold(slice)
  }

  /** Takes what one retry costs of the oldest calls, then of the reserve. */
  private take(): () => void {
    const from: Array<readonly [slice: Slice, amount: number]> = []
    let missing = 1
    for (const slice of this.window.slices) {
      const amount = Math.min(missing, Math.max(0, this.leftOf(slice)))
      if (amount === 0) continue
      slice.paid += amount
      missing -= amount
      from.push([slice, amount])
    }
    const borrower = this.window.slices.at(-1)!
    const borrowed = missing > tokenEpsilon ? missing : 0
    borrower.borrowed += borrowed
    return () => {
      for (const [slice, amount] of from) slice.paid -= amount
      borrower.borrowed -= borrowed
    }
  }
}
