import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { withClock } from "../../src/internal/clock.ts"
import type { Reservation, RetryQuotaStore } from "../../src/RetryQuotaStore.ts"
import { alone, type Body as BodyOf, close, type Law, lawsOf, same, within } from "../../src/testing/internal/law.ts"
import { type Make, trialOf } from "../../src/testing/internal/storeLaws.ts"
import { Asker, Subject, type Trial } from "../../src/testing/internal/storeSubject.ts"
import { sweepEach } from "../../src/testing/internal/sweep.ts"
import { earlier, virtual } from "../../src/testing/internal/time.ts"

/** A law of a store that counts retries, with a twin that sees the same except for what the law is about. */
type Body = BodyOf<Trial>

/** More retries than a store grants before it refuses one, unless it never does. */
const many = 1000

/** Takes tokens, if available. */
const reserved = (subject: Subject, cost: number): Effect.Effect<Reservation | undefined> => {
  const asker = new Asker()
  return Effect.map(subject.asked(cost, asker), () => {
    asker.check(cost)
    return asker.reservation
  })
}

/** Resizes a reservation, if the store can. */
const resized = (what: string, reservation: Reservation, cost: number, expected: boolean): void => {
  const before = reservation.cost
  same(`resize of a reservation ${what}`, reservation.resize!(cost), expected)
  close(`the cost of a reservation after resize ${what}`, reservation.cost, expected ? cost : before)
}

const members: Body = function*({ store }) {
  yield* Effect.sync(() => {
    same("the capacity", store.capacity, Infinity)
    same("successIncrement", store.successIncrement, 0)
    same("firstAttemptCost", store.firstAttemptCost, 0)
    same("onExceeded", store.onExceeded, "stop")
  })
}

const oneEach: Body = function*(subject) {
  const { twin } = subject
  for (let count = 1; count <= 10; count++) {
    const [cheap, dear] = [yield* reserved(subject, 0.1), yield* reserved(twin, 1e6)]
    same(`whether retry ${count} is granted, at whatever cost`, cheap !== undefined, dear !== undefined)
    yield* subject.expects(`retry ${count}, at whatever cost`)
  }
}

const free: Body = function*(subject) {
  for (let count = 0; count < many && (yield* reserved(subject, 1)) !== undefined; count++);
  for (const settle of ["giveBack", "spend"] as const) {
    const before = yield* subject.balance
    const reservation = yield* subject.taken(0)
    close("the balance after a retry that costs nothing", yield* subject.balance, before, subject.slack)
    same(`${settle} of a reservation that costs nothing`, reservation[settle](), true)
    close(
      `the balance after ${settle} of a reservation that costs nothing`,
      yield* subject.balance,
      before,
      subject.slack
    )
  }
}

const settled = (reservation: Reservation, how: "giveBack" | "spend") => {
  same(`${how} of a reservation that is not settled`, reservation[how](), true)
  same("giveBack of a reservation that is settled", reservation.giveBack(), false)
  same("spend of a reservation that is settled", reservation.spend(), false)
}

const unsent: Body = function*(subject) {
  for (let count = 1; count <= 10; count++) {
    settled(yield* subject.taken(1), "giveBack")
    yield* subject.expects(`${count} retries that were never sent`)
  }
}

const once: Body = function*(subject) {
  const { twin } = subject
  for (const how of ["giveBack", "spend"] as const) {
    const [reservation, other] = [yield* reserved(subject, 1), yield* reserved(twin, 1)]
    if (reservation === undefined || other === undefined) continue
    reservation.sent?.()
    other.sent?.()
    settled(reservation, how)
    other[how]()
    yield* subject.expects("a retry that was settled three times")
  }
}

const resizes: Body = function*(subject) {
  const { twin } = subject
  for (const settle of ["giveBack", "spend"] as const) {
    const [reservation, other] = [yield* reserved(subject, 1), yield* reserved(twin, 1)]
    if (reservation?.resize === undefined || other === undefined) return
    resized("to another cost", reservation, 7, true)
    yield* subject.expects("resize to another cost")
    other.giveBack()
    resized("to nothing", reservation, 0, true)
    yield* subject.expects("resize to nothing")
    const again = yield* twin.taken(1)
    resized("from nothing", reservation, 2, true)
    yield* subject.expects("resize from nothing")
    reservation.sent?.()
    again.sent?.()
    same(`${settle} of a reservation that was resized`, reservation[settle](), again[settle]())
    resized("that is settled", reservation, 1, false)
    yield* subject.expects(`${settle} of a reservation that was resized`)
  }
  const reservation = yield* subject.taken(0)
  for (let count = 0; count < many; count++) {
    if ((yield* reserved(subject, 1)) !== undefined) continue
    const before = yield* subject.balance
    resized("from nothing, when no retry is granted", reservation, 1, false)
    return close("the balance after resize when no retry is granted", yield* subject.balance, before, subject.slack)
  }
}

const deposits: Body = function*(subject) {
  const { twin } = subject
  yield* reserved(subject, 1)
  yield* reserved(twin, 1)
  yield* subject.deposit(10)
  yield* subject.expects("a deposit")
}

const backwards: Body = function*(subject) {
  const { store } = subject
  const before = yield* subject.balance
  yield* withClock((clock) => {
    const back = earlier(clock, 3_600_000)
    const answer = store.reserve(1, back)
    if (typeof answer === "object") same("giveBack by a clock that has gone back", answer.giveBack(), true)
    within("the balance by a clock that has gone back", store.balance(back), 0, Infinity)
  })
  close("the balance when the clock is right again", yield* subject.balance, before, subject.slack)
}

/** A caller that asks, interrupted at each step. */
const interrupted = <R>(make: Make<R>) =>
  sweepEach(
    Effect.map(trialOf(make), (subject) => ({ subject, asker: new Asker() })),
    ({ asker, subject }) => Effect.timeoutOption(asker.asks(subject.store, 1), 1000),
    Effect.fnUntraced(function*({ asker, subject }) {
      asker.check(1)
      asker.reservation?.giveBack()
      yield* subject.expects("all has gone back after an interruption")
    })
  )

/** The laws of our budgets, which count retries, whatever they cost. */
export const countingLaws = <E, R>(
  store: Effect.Effect<RetryQuotaStore, E, R>
): ReadonlyArray<Law<Exclude<R, Scope.Scope>>> => {
  const make = Effect.map(Effect.orDie(store), (store) => new Subject(store, virtual, 0))
  return lawsOf(trialOf(make), {
    "describes itself": members,
    "counts one retry, whatever it costs": oneEach,
    "grants a cost of 0 at any balance, and takes nothing": free,
    "takes nothing for a retry that is never sent": unsent,
    "settles a retry once": once,
    "counts one retry, whatever its cost is resized to": resizes,
    "ignores deposits": deposits,
    "loses nothing to a clock that goes back": backwards,
    "has taken nothing when a caller that asks is interrupted, at any step": alone(interrupted(make))
  })
}
