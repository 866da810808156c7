import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { clockOf } from "../../src/internal/clock.ts"
import type { Reservation, RetryQuotaStore } from "../../src/RetryQuotaStore.ts"
import { close, earlier, type Law, law, same, virtual, within } from "../../src/testing/internal/law.ts"
import { type Make, resized } from "../../src/testing/internal/storeLaws.ts"
import { Asker, Subject, withClock } from "../../src/testing/internal/storeSubject.ts"
import { sweepEach } from "../../src/testing/internal/sweep.ts"

/** A law of a store that counts retries, with a twin that sees the same except for what the law is about. */
type Body = (subject: Subject, twin: Subject) => Effect.Effect<void, unknown, Scope.Scope>

/** More retries than a store grants before it refuses one, unless it never does. */
const many = 1000

const members: Body = ({ store }) =>
  Effect.sync(() => {
    same("the capacity", store.capacity, Infinity)
    same("successIncrement", store.successIncrement, 0)
    same("firstAttemptCost", store.firstAttemptCost, 0)
    same("onExceeded", store.onExceeded, "stop")
  })

const oneEach: Body = (subject, twin) =>
  Effect.gen(function*() {
    for (let count = 1; count <= 10; count++) {
      const [cheap, dear] = [yield* subject.reserve(0.1), yield* twin.reserve(1e6)]
      same(`whether retry ${count} is granted, at whatever cost`, cheap !== undefined, dear !== undefined)
      yield* subject.expectAs(`the balance after retry ${count}, at whatever cost`, twin)
    }
  })

const free: Body = (subject) =>
  Effect.gen(function*() {
    for (let count = 0; count < many && (yield* subject.reserve(1)) !== undefined; count++);
    for (const settle of ["giveBack", "spend"] as const) {
      const before = yield* subject.balance
      const reservation = yield* subject.taken(0)
      yield* subject.expect("the balance after a retry that costs nothing", before)
      same(`${settle} of a reservation that costs nothing`, reservation[settle](), true)
      yield* subject.expect(`the balance after ${settle} of a reservation that costs nothing`, before)
    }
  })

const settled = (reservation: Reservation, how: "giveBack" | "spend") => {
  same(`${how} of a reservation that is not settled`, reservation[how](), true)
  same("giveBack of a reservation that is settled", reservation.giveBack(), false)
  same("spend of a reservation that is settled", reservation.spend(), false)
}

const unsent: Body = (subject, twin) =>
  Effect.gen(function*() {
    for (let count = 1; count <= 10; count++) {
      settled(yield* subject.taken(1), "giveBack")
      yield* subject.expectAs(`the balance after ${count} retries that were never sent`, twin)
    }
  })

const once: Body = (subject, twin) =>
  Effect.gen(function*() {
    for (const how of ["giveBack", "spend"] as const) {
      const [reservation, other] = [yield* subject.reserve(1), yield* twin.reserve(1)]
      if (reservation === undefined || other === undefined) continue
      reservation.sent?.()
      other.sent?.()
      settled(reservation, how)
      other[how]()
      yield* subject.expectAs("the balance after a retry that was settled three times", twin)
    }
  })

const resizes: Body = (subject, twin) =>
  Effect.gen(function*() {
    for (const settle of ["giveBack", "spend"] as const) {
      const [reservation, other] = [yield* subject.reserve(1), yield* twin.reserve(1)]
      if (reservation?.resize === undefined || other === undefined) return
      resized("to another cost", reservation, 7, true)
      yield* subject.expectAs("the balance after resize to another cost", twin)
      other.giveBack()
      resized("to nothing", reservation, 0, true)
      yield* subject.expectAs("the balance after resize to nothing", twin)
      const again = yield* twin.taken(1)
      resized("from nothing", reservation, 2, true)
      yield* subject.expectAs("the balance after resize from nothing", twin)
      reservation.sent?.()
      again.sent?.()
      same(`${settle} of a reservation that was resized`, reservation[settle](), again[settle]())
      resized("that is settled", reservation, 1, false)
      yield* subject.expectAs(`the balance after ${settle} of a reservation that was resized`, twin)
    }
    const reservation = yield* subject.taken(0)
    for (let count = 0; count < many; count++) {
      if ((yield* subject.reserve(1)) !== undefined) continue
      const before = yield* subject.balance
      resized("from nothing, when no retry is granted", reservation, 1, false)
      return yield* subject.expect("the balance after resize when no retry is granted", before)
    }
  })

const deposits: Body = (subject, twin) =>
  Effect.gen(function*() {
    yield* subject.reserve(1)
    yield* twin.reserve(1)
    yield* subject.deposit(10)
    yield* subject.expectAs("the balance after a deposit", twin)
  })

const backwards: Body = (subject) =>
  Effect.gen(function*() {
    const { store } = subject
    const before = yield* subject.balance
    yield* withClock((clock) => {
      const back = earlier(clock, 3_600_000)
      const answer = store.reserve(1, back)
      if (typeof answer === "object") same("giveBack by a clock that has gone back", answer.giveBack(), true)
      within("the balance by a clock that has gone back", store.balance(back), 0, Infinity)
    })
    close("the balance when the clock is right again", yield* subject.balance, before, subject.slack)
  })

/** A caller that asks, interrupted at each step. */
const interrupted = <R>(make: Make<R>) =>
  sweepEach(
    Effect.map(Effect.all([make, make]), ([subject, twin]) => ({ subject, twin, asker: new Asker() })),
    ({ asker, subject }) =>
      Effect.withFiber((fiber): Effect.Effect<unknown> => {
        const answer = subject.store.reserve(1, clockOf(fiber))
        const taking = asker.take(answer, Duration.days(1))
        return typeof answer === "function" ? Effect.timeoutOption(taking, 1000) : taking
      }),
    Effect.fnUntraced(function*({ asker, subject, twin }) {
      asker.check(1)
      asker.reservation?.giveBack()
      yield* subject.expectAs("the balance when all has gone back after an interruption", twin)
    })
  )

/** The laws of our budgets, which count retries, whatever they cost. */
export const countingLaws = <E, R>(
  store: Effect.Effect<RetryQuotaStore, E, R>
): ReadonlyArray<Law<Exclude<R, Scope.Scope>>> => {
  const make = Effect.map(Effect.orDie(store), (store) => new Subject(store, virtual, 0))
  const bodies: Readonly<Record<string, Body>> = {
    "describes itself": members,
    "counts one retry, whatever it costs": oneEach,
    "grants a cost of 0 at any balance, and takes nothing": free,
    "takes nothing for a retry that is never sent": unsent,
    "settles a retry once": once,
    "counts one retry, whatever its cost is resized to": resizes,
    "ignores deposits": deposits,
    "loses nothing to a clock that goes back": backwards
  }
  const ofTwo = Object.entries(bodies).map(([name, body]) =>
    law(name, () => Effect.flatMap(Effect.all([make, make]), ([subject, twin]) => body(subject, twin)))
  )
  return [
    ...ofTwo,
    law("has taken nothing when a caller that asks is interrupted, at any step", () => interrupted(make))
  ]
}
