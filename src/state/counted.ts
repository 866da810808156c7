import type { Reservation } from "../RetryQuotaStore.ts"
import type { Pass } from "../SendGate.ts"

/** A pass of which nothing is kept. */
export const untold: Pass = { settle: () => undefined, cancel: () => undefined }

/** A retry that a store has counted. It is told once whether it was sent. */
export class Counted implements Reservation {
  readonly cost: number
  private wasSent = false
  private settled: ((wasSent: boolean) => void) | undefined

  constructor(cost: number, settled: (wasSent: boolean) => void) {
    this.cost = cost
    this.settled = settled
  }

  sent(): void {
    this.wasSent = true
  }

  giveBack(): boolean {
    return this.settle(this.wasSent)
  }

  spend(): boolean {
    return this.settle(true)
  }

  private settle(wasSent: boolean): boolean {
    const { settled } = this
    if (settled === undefined) return false
    this.settled = undefined
    settled(wasSent)
    return true
  }
}

/** A retry that costs nothing, or of which nothing is kept. */
export const uncounted = (cost: number): Reservation => new Counted(cost, () => undefined)
