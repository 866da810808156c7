import { constVoid } from "effect/Function"
import type { Reservation } from "../RetryQuotaStore.ts"
import type { Pass } from "../SendGate.ts"

/** A pass that keeps no record. */
export const untold: Pass = { settle: constVoid, cancel: constVoid }

/** What was taken for a retry, settled once. */
export class Taken implements Reservation {
  readonly cost: number
  private wasSent = false
  private settled: ((isBack: boolean, wasSent: boolean) => void) | undefined

  constructor(cost: number, settled: (isBack: boolean, wasSent: boolean) => void) {
    this.cost = cost
    this.settled = settled
  }

  sent(): void {
    this.wasSent = true
  }

  giveBack(): boolean {
    return this.settle(true)
  }

  spend(): boolean {
    return this.settle(false)
  }

  private settle(isBack: boolean): boolean {
    const { settled } = this
    if (settled === undefined) return false
    this.settled = undefined
    settled(isBack, this.wasSent)
    return true
  }
}

/** A retry that costs nothing, or that keeps no record. */
export const uncounted = (cost: number): Reservation => new Taken(cost, constVoid)
