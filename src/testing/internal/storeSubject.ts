import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { clockOf } from "../../internal/clock.ts"
import type { Ask, Reservation, RetryQuotaStore, Shortage } from "../../RetryQuotaStore.ts"
import { close, completes, same, stopped, type Time, within } from "./law.ts"

/** How long a store that has to ask for tokens may take to answer, in milliseconds. */
const roundTripMillis = 1000

/**
 * Uses the current clock, in one step.
 *
 * @internal
 */
export const withClock = <A>(use: (clock: Clock.Clock) => A): Effect.Effect<A> =>
  Effect.withFiber((fiber) => Effect.succeed(use(clockOf(fiber))))

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

  constructor(private readonly granted: () => void = () => undefined) {}

  readonly hold = (reservation: Reservation): void => {
    this.holds++
    this.reservation = reservation
    this.granted()
  }

  /** Holds what is granted immediately, else waits. Returns why it holds nothing, if the store says so. */
  take(answer: Reservation | undefined | Ask, patience: Duration.Duration): Effect.Effect<Shortage> {
    if (typeof answer === "function") return answer(patience, this.hold)
    if (answer === undefined) return Effect.succeed("refused")
    this.hold(answer)
    return Effect.succeed(undefined)
  }

  /** Tokens it has and has not settled. */
  get cost(): number {
    return this.reservation?.cost ?? 0
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

  constructor(readonly store: RetryQuotaStore, readonly time: Time, readonly slack: number) {
    this.size = Number.isFinite(store.capacity) ? store.capacity : 1000
  }

  /** A tenth of its tokens. */
  get unit(): number {
    return this.size / 10
  }

  get waits(): boolean {
    return this.store.onExceeded === "wait"
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

  /** Takes tokens, if available. */
  reserve(cost: number): Effect.Effect<Reservation | undefined> {
    return Effect.gen({ self: this }, function*() {
      const asker = new Asker()
      yield* this.asked(cost, asker, roundTripMillis)
      asker.check(cost)
      return asker.reservation
    })
  }

  /** Asks for tokens, and waits up to `patienceMillis`. Returns the answer, if there is one by then. */
  asked(cost: number, asker: Asker, patienceMillis: number): Effect.Effect<Shortage> {
    return Effect.gen({ self: this }, function*() {
      const answer = yield* this.answer(cost)
      const taking = asker.take(answer, Duration.millis(patienceMillis))
      if (typeof answer !== "function") return yield* taking
      const fiber = yield* Effect.forkChild(taking)
      yield* completes(this.time, patienceMillis, fiber)
      yield* stopped(fiber)
      const exit = fiber.pollUnsafe()
      return exit !== undefined && Exit.isSuccess(exit) ? exit.value : undefined
    })
  }

  /** Takes available tokens. */
  taken(cost: number): Effect.Effect<Reservation> {
    return Effect.map(this.reserve(cost), (reservation) => {
      if (reservation === undefined) same(`reserve(${cost}) of as many tokens or more`, "refused", "granted")
      return reservation!
    })
  }

  /** Fills it, then takes all but this many tokens. */
  setTo(tokens: number): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      yield* this.deposit(this.size)
      if (tokens >= this.size) return
      const balance = yield* this.balance
      const reservation = yield* this.taken(balance - tokens)
      same("spend of a reservation that is not settled", reservation.spend(), true)
    })
  }

  /** Sets it and its twin. */
  setBoth(twin: Subject, tokens: number): Effect.Effect<void> {
    return Effect.andThen(this.setTo(tokens), twin.setTo(tokens))
  }

  /** Rejects any other balance. */
  expect(what: string, expected: number): Effect.Effect<void> {
    return Effect.map(this.balance, (balance) => close(what, balance, expected, this.slack))
  }

  /** Rejects any balance other than that of a store with the same history, plus this many tokens. */
  expectAs(what: string, twin: Subject, tokens = 0): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      // What goes back to a remote store takes some time.
      for (let waited = 0; waited < 10 && !(yield* this.isAs(twin, tokens)); waited++) yield* this.time.elapse(100)
      const right = Math.min(this.store.capacity, (yield* twin.balance) + tokens)
      close(what, yield* this.balance, right, this.slack)
    })
  }

  private isAs(twin: Subject, tokens: number): Effect.Effect<boolean> {
    return Effect.gen({ self: this }, function*() {
      const right = Math.min(this.store.capacity, (yield* twin.balance) + tokens)
      return Math.abs((yield* this.balance) - right) <= this.slack + 1e-6
    })
  }
}
