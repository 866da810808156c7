import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { monotonicMillis } from "../../internal/clock.ts"
import type { Ask, Reservation, RetryQuotaStore, Shortage } from "../../RetryQuotaStore.ts"
import type { SendGate } from "../../SendGate.ts"
import { setTokens } from "./delegatingStore.ts"
import { askOf, budgetGate, patienceUntil, Taken, unobserved } from "./reservation.ts"

const giveBackAll = (held: ReadonlyArray<Reservation>): void => {
  for (const reservation of held) reservation.giveBack()
}

/** What all stores hold for one retry. */
class Together extends Taken {
  readonly resize: Reservation["resize"] = undefined

  constructor(cost: number, private readonly held: ReadonlyArray<Reservation>) {
    super(cost, (isBack) => {
      if (isBack) giveBackAll(held)
      else for (const reservation of held) reservation.spend()
    })
    if (held.every(({ resize }) => resize !== undefined)) this.resize = (cost) => this.resizeAll(cost)
  }

  /** All or none. */
  private resizeAll(cost: number): boolean {
    const { cost: before, held } = this
    if (this.settled === undefined) return false
    const failed = held.findIndex((reservation) => !reservation.resize!(cost))
    if (failed >= 0) {
      for (const reservation of held.slice(0, failed)) reservation.resize!(before)
      return false
    }
    this.cost = cost
    return true
  }

  override sent(): void {
    for (const reservation of this.held) reservation.sent?.()
  }
}

/** Asks one store after the other. If one refuses, what the others granted goes back immediately. */
const asking = (stores: ReadonlyArray<RetryQuotaStore>, cost: number, clock: Clock.Clock): Ask => (patience, hold) =>
  Effect.suspend(() => {
    const untilMillis = monotonicMillis(clock) + Duration.toMillis(patience)
    const held: Array<Reservation> = []
    let isOver = false
    const granted = (reservation: Reservation): void => {
      if (isOver) return void reservation.giveBack()
      held.push(reservation)
      isOver = held.length === stores.length
      if (isOver) hold(new Together(cost, held))
    }
    const next = (): Effect.Effect<Shortage> => {
      const { length } = held
      if (isOver) return Effect.void
      return Effect.flatMap(
        askOf(stores[length]!.reserve(cost, clock))(patienceUntil(untilMillis, clock), granted),
        (shortage) => held.length > length ? next() : Effect.succeed(shortage)
      )
    }
    return Effect.onExit(Effect.suspend(next), () =>
      Effect.sync(() => {
        if (!isOver) giveBackAll(held)
        isOver = true
      }))
  })

/** The fee that a first send pays to one of the stores. */
export const feeGate = (store: RetryQuotaStore, refused: (cost: number, balance: number) => unknown): SendGate =>
  budgetGate(-1, (send) => {
    if (send.attempt > 1) return send.hold(unobserved)
    const clock = Context.get(send.context, Clock.Clock)
    const cost = store.firstAttemptCost
    const refusal = () => Effect.fail(refused(cost, store.balance(clock)))
    let isPaid = false
    const pay = (fee: Reservation) => {
      isPaid = true
      send.hold({
        settle: () => {
          fee.sent?.()
          fee.spend()
        },
        cancel: () => fee.giveBack()
      })
    }
    const answer = store.reserve(cost, clock)
    if (answer === undefined) return refusal()
    if (typeof answer !== "function") return pay(answer)
    return Effect.flatMap(answer(Duration.infinity, pay), () => isPaid ? Effect.void : refusal())
  })

/** Stores that must all grant a retry. */
export class JoinedStore implements RetryQuotaStore {
  readonly capacity: number
  readonly successIncrement: number
  /** Each store has its own fee, which a gate takes. */
  readonly firstAttemptCost = 0
  readonly onExceeded: "stop" | "wait"
  readonly gates: ReadonlyArray<SendGate> | undefined
  readonly refresh: Effect.Effect<void> | undefined

  constructor(
    private readonly stores: ReadonlyArray<RetryQuotaStore>,
    refused: (cost: number, balance: number) => unknown
  ) {
    this.capacity = Math.min(...stores.map(({ capacity }) => capacity))
    this.successIncrement = Math.min(this.capacity, Math.max(...stores.map(({ successIncrement }) => successIncrement)))
    this.onExceeded = stores.some(({ onExceeded }) => onExceeded === "wait") ? "wait" : "stop"
    const gates = stores.flatMap((store) => [
      ...store.gates ?? [],
      ...store.firstAttemptCost > 0 ? [feeGate(store, refused)] : []
    ])
    this.gates = gates.length === 0 ? undefined : gates
    const refreshed = stores.flatMap(({ refresh }) => refresh ?? [])
    this.refresh = refreshed.length === 0 ? undefined : Effect.all(refreshed, { discard: true })
  }

  reserve(cost: number, clock: Clock.Clock): Reservation | undefined | Ask {
    const held: Array<Reservation> = []
    const asked: Array<RetryQuotaStore> = []
    for (const store of this.stores) {
      const answer = store.reserve(cost, clock)
      if (answer === undefined) {
        giveBackAll(held)
        return undefined
      }
      if (typeof answer === "function") asked.push(store)
      else held.push(answer)
    }
    if (asked.length === 0) return new Together(cost, held)
    // The wait may never start: nothing is held until it does.
    giveBackAll(held)
    return asking([...this.stores.filter((store) => !asked.includes(store)), ...asked], cost, clock)
  }

  /** Distributes a deposit in proportion to the stores' success increments. */
  deposit(tokens: number, clock: Clock.Clock): void {
    for (const store of this.stores) {
      if (store.isFull === true) continue
      const share = this.successIncrement === 0 ? 1 : store.successIncrement / this.successIncrement
      if (share > 0) store.deposit(tokens * share, clock)
    }
  }

  set(tokens: number, clock: Clock.Clock): void {
    for (const store of this.stores) setTokens(store, tokens, clock)
  }

  /** The balance of the store with the least. */
  balance(clock: Clock.Clock): number {
    return Math.min(...this.stores.map((store) => store.balance(clock)))
  }
}
