import type { Reservation, RetryQuotaStore } from "../RetryQuotaStore.ts"
import type { Pass, Send, SendGate } from "../SendGate.ts"
import { Counted, uncounted } from "./counted.ts"

/** So many retries at one time as are a share of what is under way. */
export class InFlightStore implements RetryQuotaStore {
  readonly capacity = Infinity
  readonly successIncrement = 0
  readonly firstAttemptCost = 0
  readonly whenExhausted = "stop"
  readonly gates: ReadonlyArray<SendGate>
  /** Sends that are made or wait for a gate. */
  sends = 0
  /** First sends among them. */
  firstSends = 0
  /** Retries from when they are decided on until they end. */
  retries = 0
  private readonly most: (underWay: InFlightStore) => number

  constructor(most: (underWay: InFlightStore) => number) {
    this.most = most
    const pass = (firstSends: number): Pass => {
      const end = () => this.count(-1, -firstSends)
      return { settle: end, cancel: end }
    }
    const [first, later] = [pass(1), pass(0)]
    const enter = (send: Send) => {
      const isFirst = send.attempt === 1
      this.count(1, isFirst ? 1 : 0)
      send.hold(isFirst ? first : later)
    }
    // The first to be asked: what waits for a gate is under way.
    this.gates = [{ name: "RetryBudget", order: 0, enter }]
  }

  reserve(cost: number): Reservation | undefined {
    if (cost === 0) return uncounted(cost)
    if (!(this.balance() > 0)) return undefined
    this.retries++
    return new Counted(cost, () => this.retries--)
  }

  /** What is under way decides, nothing else. */
  deposit(): void {}

  balance(): number {
    return Math.max(0, this.most(this) - this.retries)
  }

  private count(sends: number, firstSends: number): void {
    this.sends += sends
    this.firstSends += firstSends
  }
}
