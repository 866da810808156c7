import type * as Clock from "effect/Clock"
import { checksOf } from "../../internal/checks.ts"
import { monotonicMillis } from "../../internal/clock.ts"
import { Window } from "../../internal/math/slidingWindow.ts"
import { tokenEpsilon } from "../../internal/math/tokenBucket.ts"
import { amount, type Inputs, positiveDuration, share, type Valid, validOptions } from "../../internal/options.ts"
import type { Reservation, RetryQuotaStore } from "../../RetryQuotaStore.ts"
import type { Pass, Send, SendGate } from "../../SendGate.ts"
import { budgetGate, counted, CountingStore, unobserved } from "./reservation.ts"

/** The options of a share. */
export const shareOptions = {
  share: share(0.2),
  minPerSecond: amount(10),
  window: positiveDuration(10_000)
}

/** Valid options of a share. */
export interface ShareOptions extends Valid<typeof shareOptions> {}

/** Options with their defaults, checked. */
export const validShare = (options: Inputs<typeof shareOptions>): ShareOptions =>
  validOptions(checksOf("RetryBudget.share", options), shareOptions, options)

/** A tenth of the window, and the pass of the first sends in it. */
class Slice implements Pass {
  /** First sends: each pays for a share of a retry. */
  calls = 0
  /** Retries they have paid for. */
  paid = 0
  /** Retries paid for only by the reserve. */
  borrowed = 0

  settle(): void {}

  /** The send was never made, so it pays no retry. */
  cancel(): void {
    this.calls--
  }
}

const windowOf = ({ windowMillis }: ShareOptions, nowMillis: number): Window<Slice> =>
  new Window({ millis: windowMillis, slice: () => new Slice(), drifts: true }, nowMillis)

/**
 * Bounds retries by a share of the recent calls, plus a few per second. What a retry takes from a call expires with the
 * call, and what it takes from the reserve returns after the window. Source: Finagle, `RetryBudget`, whose shares are
 * exact to a thousandth and whose debts outlive their calls.
 */
export class ShareStore extends CountingStore implements RetryQuotaStore {
  readonly gates: ReadonlyArray<SendGate>
  private window: Window<Slice>

  constructor(private options: ShareOptions, nowMillis: number) {
    super()
    this.window = windowOf(options, nowMillis)
    // Asked last: a send that others hold back is not a call.
    this.gates = [budgetGate(1000, (send) => this.called(send))]
  }

  /** Switches to other options, keeping the recent calls if the window stays the same. */
  change(options: ShareOptions, clock: Clock.Clock): void {
    if (options.windowMillis !== this.options.windowMillis) this.window = windowOf(options, monotonicMillis(clock))
    this.options = options
  }

  reserve(cost: number, clock: Clock.Clock): Reservation | undefined {
    return counted(cost, () => this.balance(clock) + tokenEpsilon < 1 ? undefined : this.take())
  }

  balance(clock: Clock.Clock): number {
    this.window.at(monotonicMillis(clock))
    const { minPerSecond, windowMillis } = this.options
    let left = minPerSecond * windowMillis / 1000
    for (const slice of this.window.slices) left += this.remainingOf(slice) - slice.borrowed
    return Math.max(0, left)
  }

  private remainingOf({ calls, paid }: Slice): number {
    return this.options.share * calls - paid
  }

  private called(send: Send): void {
    if (send.attempt > 1) return send.hold(unobserved)
    const slice = this.window.at(send.nowMillis)
    slice.calls++
    send.hold(slice)
  }

  /** Takes the cost of one retry from the oldest calls, then from the reserve. */
  private take() {
    const from: Array<readonly [slice: Slice, amount: number]> = []
    let missing = 1
    for (const slice of this.window.slices) {
      const amount = Math.min(missing, Math.max(0, this.remainingOf(slice)))
      if (amount === 0) continue
      slice.paid += amount
      missing -= amount
      from.push([slice, amount])
    }
    const borrower = this.window.slices.at(-1)!
    const borrowed = missing > tokenEpsilon ? missing : 0
    borrower.borrowed += borrowed
    return (isBack: boolean, wasSent: boolean) => {
      if (!isBack || wasSent) return
      for (const [slice, amount] of from) slice.paid -= amount
      borrower.borrowed -= borrowed
    }
  }
}
