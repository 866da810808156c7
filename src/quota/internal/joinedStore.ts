import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { monotonicMillis } from "../../internal/clock.ts"
import type { Ask, Reservation, RetryQuotaStore, Shortage } from "../../RetryQuotaStore.ts"
import type { Send, SendGate } from "../../SendGate.ts"
import { setTokens } from "./delegatingStore.ts"
import { Taken, unobserved } from "./reservation.ts"

type Hold = Parameters<Ask>[1]

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

/** What is asked for, of which stores, and until when. */
interface AskOptions {
  readonly stores: ReadonlyArray<RetryQuotaStore>
  readonly cost: number
  readonly clock: Clock.Clock
  readonly untilMillis: number
  readonly hold: Hold
}

/** Asks one store after the other. If one refuses, what the others granted goes back immediately. */
class Asking {
  private readonly held: Array<Reservation> = []
  private isOver = false

  constructor(private readonly asked: AskOptions) {}

  get run(): Effect.Effect<Shortage> {
    return Effect.onExit(Effect.suspend(() => this.next()), () =>
      Effect.sync(() => {
        if (this.isOver) return
        this.isOver = true
        giveBackAll(this.held)
      }))
  }

  private next(): Effect.Effect<Shortage> {
    const { clock, cost, stores } = this.asked
    while (!this.isOver && this.held.length < stores.length) {
      const before = this.held.length
      const answer = stores[before]!.reserve(cost, clock)
      if (answer === undefined) return Effect.succeed("refused")
      if (typeof answer === "function") {
        const asked = answer(this.patience, (reservation) => this.granted(reservation))
        return Effect.flatMap(asked, (shortage) => this.held.length > before ? this.next() : Effect.succeed(shortage))
      }
      this.granted(answer)
    }
    return Effect.void
  }

  private get patience(): Duration.Duration {
    const { clock, untilMillis } = this.asked
    return untilMillis === Infinity
      ? Duration.infinity
      : Duration.millis(Math.max(0, untilMillis - monotonicMillis(clock)))
  }

  private granted(reservation: Reservation): void {
    if (this.isOver) {
      reservation.giveBack()
      return
    }
    const { cost, hold, stores } = this.asked
    this.held.push(reservation)
    if (this.held.length < stores.length) return
    this.isOver = true
    hold(new Together(cost, this.held))
  }
}

/** The fee that a first send pays to one of the stores. */
export const feeGate = (store: RetryQuotaStore, refused: (cost: number, balance: number) => unknown): SendGate => ({
  name: "RetryBudget",
  order: -1,
  enter: (send: Send) => {
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
  }
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
    const granting: Array<RetryQuotaStore> = []
    for (const store of this.stores) {
      const answer = store.reserve(cost, clock)
      if (answer === undefined) {
        giveBackAll(held)
        return undefined
      }
      if (typeof answer === "function") {
        asked.push(store)
      } else {
        granting.push(store)
        held.push(answer)
      }
    }
    if (asked.length === 0) return new Together(cost, held)
    // The wait may never start: nothing is held until it does.
    giveBackAll(held)
    return (patience, hold) =>
      Effect.suspend(() => {
        const untilMillis = monotonicMillis(clock) + Duration.toMillis(patience)
        return new Asking({ stores: [...granting, ...asked], cost, clock, untilMillis, hold }).run
      })
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
