import { checksOf } from "../../internal/checks.ts"
import { tokenEpsilon } from "../../internal/math/tokenBucket.ts"
import { count, functionOf, type Inputs, optional, share, validOptions } from "../../internal/options.ts"
import { guarded } from "../../internal/tryGet.ts"
import type { Reservation, RetryQuotaStore } from "../../RetryQuotaStore.ts"
import type { Pass, SendGate } from "../../SendGate.ts"
import { budgetGate, counted, CountingStore } from "./reservation.ts"

/** How many retries may be in progress. */
type Most = (underWay: Pick<InFlightStore, "sends" | "firstSends" | "retries">) => number

/** The options of a share of the sends in progress. */
export const inFlightOptions = {
  share: share(0.2),
  atLeast: count(0, 3),
  most: optional(functionOf<Most>("a function of the sends in progress"))
}

/** The rule in the options, checked. */
export const validInFlight = (options: Inputs<typeof inFlightOptions>): Most => {
  const check = checksOf("RetryBudget.inFlight", options)
  const { atLeast, most, share } = validOptions(check, inFlightOptions, options)
  if (most === undefined) return ({ sends }) => Math.max(atLeast, Math.floor(share * sends + tokenEpsilon))
  return options.share === undefined && options.atLeast === undefined
    ? guarded<Most>((underWay) => most(underWay) || 0, () => 0)
    : check.reject("most", most, "undefined if share or atLeast is given")
}

/** Bounds the retries in progress by a share of the sends in progress. */
export class InFlightStore extends CountingStore implements RetryQuotaStore {
  readonly gates: ReadonlyArray<SendGate>
  /** Sends made or waiting for a gate. */
  sends = 0
  /** First sends among them. */
  firstSends = 0
  /** Retries, from the decision to retry until they end. */
  retries = 0

  constructor(private most: Most) {
    super()
    const pass = (firstSends: number): Pass => {
      const end = () => this.count(-1, -firstSends)
      return { settle: end, cancel: end }
    }
    const [first, later] = [pass(1), pass(0)]
    // Asked first: a send waiting for a gate is in progress.
    this.gates = [budgetGate(0, (send) => {
      const isFirst = send.attempt === 1
      this.count(1, isFirst ? 1 : 0)
      send.hold(isFirst ? first : later)
    })]
  }

  /** Switches to another rule: what is in progress stays in progress. */
  change(most: Most): void {
    this.most = most
  }

  reserve(cost: number): Reservation | undefined {
    return counted(cost, () => {
      if (!(this.balance() > 0)) return undefined
      this.retries++
      return () => this.retries--
    })
  }

  balance(): number {
    return Math.max(0, this.most(this) - this.retries)
  }

  private count(sends: number, firstSends: number): void {
    this.sends += sends
    this.firstSends += firstSends
  }
}
