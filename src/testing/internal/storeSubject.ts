import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { withClock } from "../../internal/clock.ts"
import { askOf } from "../../quota/internal/reservation.ts"
import type { Ask, Reservation, RetryQuotaStore, Shortage } from "../../RetryQuotaStore.ts"
import { close, isClose, same, within } from "./law.ts"
import { ran, type Time, turns } from "./time.ts"

/**
 * How long a waiter may take to get available tokens, in milliseconds.
 *
 * @internal
 */
export const patienceMillis = 60_000

/** Longer than any law takes. */
const forever = Duration.days(100)

/**
 * A caller that asks for tokens.
 *
 * @internal
 */
export class Asker {
  /** The defect it died of. */
  died: unknown = undefined
  holds = 0
  reservation: Reservation | undefined = undefined

  constructor(private readonly granted?: (reservation: Reservation) => void) {}

  readonly hold = (reservation: Reservation): void => {
    this.holds++
    this.reservation = reservation
    this.granted?.(reservation)
  }

  /** Asks, and in the same step holds what is granted immediately. Returns why it holds nothing, if the store says so. */
  asks(store: RetryQuotaStore, cost: number, patience = forever): Effect.Effect<Shortage> {
    return Effect.clockWith((clock) => askOf(store.reserve(cost, clock))(patience, this.hold))
  }

  /** Rejects more tokens than it asked for, and any defect. */
  check(cost: number): void {
    if (this.died !== undefined) throw this.died
    if (this.holds > 1) same("how often hold was called", this.holds, 1)
    if (this.reservation !== undefined) close("the cost of a reservation", this.reservation.cost, cost)
  }
}

/**
 * A store under test.
 *
 * @internal
 */
export class Subject {
  /** As many tokens as it can hold, or enough. */
  readonly size: number
  /** A tenth of its tokens. */
  readonly unit: number

  constructor(readonly store: RetryQuotaStore, readonly time: Time, readonly slack: number) {
    this.size = Number.isFinite(store.capacity) ? store.capacity : 1000
    this.unit = this.size / 10
  }

  get balance(): Effect.Effect<number> {
    const { store } = this
    const looked = withClock((clock) => {
      const balance = store.balance(clock)
      within("the balance", balance, 0, store.capacity)
      if (store.isFull === true) close("the balance of a store that is full", balance, store.capacity)
      return balance
    })
    return store.refresh === undefined ? looked : Effect.andThen(store.refresh, looked)
  }

  deposit(tokens: number): Effect.Effect<void> {
    return withClock((clock) => this.store.deposit(tokens, clock))
  }

  answer(cost: number): Effect.Effect<Reservation | undefined | Ask> {
    return withClock((clock) => this.store.reserve(cost, clock))
  }

  /** Asks for tokens, and waits as long as the caller is patient. Returns the answer, if there is one by then. */
  asked(cost: number, asker: Asker, patience = patienceMillis): Effect.Effect<Shortage> {
    const asking = asker.asks(this.store, cost, Duration.millis(patience))
    return Effect.map(ran(asking, patience, this.time), (exit) => exit?._tag === "Success" ? exit.value : undefined)
  }

  /** Takes available tokens. */
  taken(cost: number): Effect.Effect<Reservation> {
    const asker = new Asker()
    return Effect.map(this.asked(cost, asker), () => {
      asker.check(cost)
      if (asker.reservation === undefined) same(`reserve(${cost}) of as many tokens or more`, "refused", "granted")
      return asker.reservation!
    })
  }

  /** Fills it, then takes all but this many tokens. */
  setTo(tokens: number): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      yield* this.deposit(this.size)
      const tooMany = (yield* this.balance) - tokens
      if (tooMany <= 0) return
      const reservation = yield* this.taken(tooMany)
      same("spend of a reservation that is not settled", reservation.spend(), true)
    })
  }
}

/**
 * A store under test, with a twin that sees the same except for what a law does. Tokens are counted in tenths of its
 * size, and each step checks the balance.
 *
 * @internal
 */
export class Trial extends Subject {
  /** How many more tokens than its twin it should have. */
  private more = 0

  constructor({ slack, store, time }: Subject, readonly twin: Subject) {
    super(store, time, slack)
  }

  /** Sets it and its twin. */
  starts(units: number): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      for (const subject of [this, this.twin]) yield* subject.setTo(units * this.unit)
      this.more = 0
    })
  }

  /** Rejects any balance other than that of the twin, and what was taken and has come back, up to the capacity. */
  expects(event: string, change = 0): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      const { slack, store, time, twin } = this
      this.more += change
      // What goes back to a remote store takes some time.
      for (let waited = 0;; waited++) {
        const [balance, others] = [yield* this.balance, yield* twin.balance]
        const right = Math.min(store.capacity, others + this.more)
        if (waited === 10 || isClose(balance, right, slack)) {
          close(`the balance after ${event}`, balance, right, slack)
          this.more = balance - others
          return
        }
        yield* time.elapse(100)
      }
    })
  }

  /** A caller whose tokens are expected to be missing. */
  asker(granted?: () => void): Asker {
    return new Asker(({ cost }) => {
      this.more -= cost
      granted?.()
    })
  }

  /** A caller that waits, in its own fiber. */
  waits(units: number, granted?: () => void) {
    const asker = this.asker(granted)
    const asking = Effect.tap(Effect.forkChild(asker.asks(this.store, units * this.unit)), turns)
    return Effect.map(asking, (fiber) => ({ asker, fiber }))
  }

  /** Takes available tokens. */
  takes(units: number): Effect.Effect<Reservation> {
    return Effect.tap(this.taken(units * this.unit), ({ cost }) => this.expects("tokens were taken", -cost))
  }

  /** Missing tokens are not taken. */
  lacks(units: number): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      const cost = units * this.unit
      if (this.store.onExceeded === "wait" && cost <= this.size) {
        same("reserve of more tokens than there are", typeof (yield* this.answer(cost)), "function")
      } else {
        const asker = this.asker()
        yield* this.asked(cost, asker)
        same("how often hold was called for more tokens than there are", asker.holds, 0)
      }
      yield* this.expects("tokens were not granted")
    })
  }

  /** Settles an open reservation. */
  settles(reservation: Reservation, how: "giveBack" | "spend"): Effect.Effect<void> {
    const { cost } = reservation
    same(`${how} of a reservation that is not settled`, reservation[how](), true)
    return this.expects(how, how === "giveBack" ? cost : 0)
  }

  /** Resizes a reservation, if that is possible. */
  resizes(what: string, reservation: Reservation, units: number, isPossible: boolean): Effect.Effect<void> {
    const { cost } = reservation
    const right = isPossible ? units * this.unit : cost
    same(`resize of a reservation ${what}`, reservation.resize!(units * this.unit), isPossible)
    close(`the cost of a reservation after resize ${what}`, reservation.cost, right)
    return this.expects(`resize of a reservation ${what}`, cost - right)
  }

  deposits(units: number): Effect.Effect<void> {
    const tokens = units * this.unit
    return Effect.andThen(this.deposit(tokens), this.expects("a deposit", tokens))
  }

  /** Sets its tokens itself. */
  sets(units: number): Effect.Effect<void> {
    const tokens = units * this.unit
    return Effect.gen({ self: this }, function*() {
      yield* this.twin.setTo(tokens)
      this.more = 0
      yield* withClock((clock) => this.store.set!(tokens, clock))
      yield* this.expects(`set to ${tokens}`)
    })
  }
}
