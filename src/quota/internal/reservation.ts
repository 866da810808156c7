import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { constVoid } from "effect/Function"
import { monotonicMillis } from "../../internal/clock.ts"
import type { Ask, Reservation } from "../../RetryQuotaStore.ts"
import type { Pass, SendGate } from "../../SendGate.ts"

/** A gate by which a budget sees sends. */
export const budgetGate = (order: number, enter: SendGate["enter"]): SendGate => ({ name: "RetryBudget", order, enter })

/** A pass that keeps no record. */
export const unobserved: Pass = { settle: constVoid, cancel: constVoid }

/** How long waiting is useful, until a time in milliseconds of the monotonic clock. */
export const patienceUntil = (untilMillis: number, clock: Clock.Clock): Duration.Duration =>
  Duration.millis(Math.max(0, untilMillis - monotonicMillis(clock)))

/** Asks a store that may have answered already. */
export const askOf = (answer: Reservation | undefined | Ask): Ask =>
  typeof answer === "function" ? answer : (_, hold) => {
    if (answer === undefined) return Effect.succeed("refused")
    hold(answer)
    return Effect.void
  }

/** Settles what was taken. */
type Settle = (isBack: boolean, wasSent: boolean) => void

/** What was taken for a retry, settled once. */
export class Taken implements Reservation {
  /** `undefined` once it is settled. */
  protected settled: Settle | undefined
  private wasSent = false

  constructor(public cost: number, settled: Settle) {
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

/** Takes one retry from a store that counts them, and returns how to settle it; `undefined` if there is none. */
type TakeOne = () => Settle | undefined

/** One retry, for any cost above 0. */
class Counted extends Taken {
  constructor(cost: number, settled: Settle, private readonly takeOne: TakeOne) {
    super(cost, settled)
  }

  resize(cost: number): boolean {
    const { settled } = this
    if (settled === undefined) return false
    if (cost === 0) {
      settled(true, false)
      this.settled = constVoid
    } else if (this.cost === 0) {
      const taken = this.takeOne()
      if (taken === undefined) return false
      this.settled = taken
    }
    this.cost = cost
    return true
  }
}

/** Takes one retry for any cost above 0. */
export const counted = (cost: number, takeOne: TakeOne): Reservation | undefined => {
  const settled = cost === 0 ? constVoid : takeOne()
  return settled && new Counted(cost, settled, takeOne)
}

/** A reservation of a store within, with what follows its settlement. */
export const followed = (held: Reservation, follow: Settle): Reservation => {
  let isSent = false
  const settled = (isFirst: boolean, isBack: boolean): boolean => {
    if (isFirst) follow(isBack, isSent)
    return isFirst
  }
  return {
    get cost() {
      return held.cost
    },
    resize: held.resize && ((cost) => held.resize!(cost)),
    sent: () => {
      isSent = true
      held.sent?.()
    },
    giveBack: () => settled(held.giveBack(), true),
    spend: () => settled(held.spend(), false)
  }
}

/** What stores that count retries have in common: there are no tokens, so a deposit changes nothing. */
export abstract class CountingStore {
  readonly capacity = Infinity
  readonly successIncrement = 0
  readonly firstAttemptCost = 0
  readonly onExceeded = "stop"

  deposit(): void {}
}
