import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import { withRetry } from "../../Attempt.ts"
import { clockOf } from "../../internal/clock.ts"
import * as RetryPolicy from "../../RetryPolicy.ts"
import * as RetryQuota from "../../RetryQuota.ts"
import type { Reservation } from "../../RetryQuotaStore.ts"
import { close, completes, earlier, type Law, law, same, stopped, type Time, turns, until, within } from "./law.ts"
import { ok, type Outcome, outcomes, transient } from "./scriptedService.ts"
import { Asker, type Subject, withClock } from "./storeSubject.ts"
import { sweepEach, sweepQuota } from "./sweep.ts"

/**
 * Makes a store, a new one each time.
 *
 * @internal
 */
export type Make<R> = Effect.Effect<Subject, never, R | Scope.Scope>

/** How long a waiter may take to get available tokens, in milliseconds. */
const patienceMillis = 60_000

/** A law of a store, with a twin that sees the same except for what the law is about. */
type Body = (
  subject: Subject,
  twin: Subject
) => Generator<Effect.Effect<any, unknown, Scope.Scope>, void, never>

const describes = (onExceeded: "stop" | "wait"): Body =>
  function*({ store }) {
    yield* Effect.sync(() => {
      same("whether the capacity is above 0", store.capacity > 0, true)
      within("successIncrement", store.successIncrement, 0, store.capacity)
      within("firstAttemptCost", store.firstAttemptCost, 0, store.capacity)
      same("onExceeded", store.onExceeded, onExceeded)
    })
  }

/** A reservation is settled once, in this way, and keeps its tokens or not. */
const settles = (how: "giveBack" | "spend"): Body =>
  function*(subject) {
    const { size, unit } = subject
    yield* subject.setTo(size / 2)
    const before = yield* subject.balance
    const right = how === "spend" ? before - unit : before
    const reservation = yield* subject.taken(unit)
    same(`${how} of a reservation that is not settled`, reservation[how](), true)
    yield* subject.expect(`the balance after ${how}`, right)
    same("giveBack of a reservation that was settled", reservation.giveBack(), false)
    same("spend of a reservation that was settled", reservation.spend(), false)
    yield* subject.expect("the balance after a reservation was settled three times", right)
  }

/**
 * Resizes a reservation, if the store can.
 *
 * @internal
 */
export const resized = (what: string, reservation: Reservation, cost: number, expected: boolean): void => {
  const before = reservation.cost
  same(`resize of a reservation ${what}`, reservation.resize!(cost), expected)
  close(`the cost of a reservation after resize ${what}`, reservation.cost, expected ? cost : before)
}

/** Missing tokens are not taken. */
const falls = (subject: Subject, twin: Subject, tokens: number) =>
  Effect.gen(function*() {
    yield* subject.setBoth(twin, tokens)
    if (subject.waits) {
      same("reserve of more tokens than there are", typeof (yield* subject.answer(subject.unit)), "function")
    } else {
      const asker = new Asker()
      yield* subject.asked(subject.unit, asker, patienceMillis)
      same("how often more tokens were granted than there are", asker.holds, 0)
    }
    yield* subject.expectAs("the balance after tokens were not granted", twin)
  })

/** Resizes an open reservation, if it can, and returns the tokens that come back. */
const resizedTo = (reservation: Reservation | undefined, tokens: number, before: number): number | undefined => {
  if (reservation?.resize === undefined) return undefined
  const more = tokens - reservation.cost
  resized("that is open", reservation, tokens, more <= before)
  return more <= before ? -more : 0
}

/** Settles an open reservation, and returns the tokens that come back. */
const settled = (reservation: Reservation, isBack: boolean): number => {
  const isFirst = isBack ? reservation.giveBack() : reservation.spend()
  same("giveBack or spend of an open reservation", isFirst, true)
  return isBack ? reservation.cost : 0
}

/** One of many steps, chosen by three numbers from 0 to 1. Returns the correct balance after it. */
const step = (
  subject: Subject,
  open: Array<Reservation>,
  before: number,
  [kind, share, choice]: readonly [number, number, number]
) =>
  Effect.gen(function*() {
    const tokens = share * subject.size
    const more = (added: number) => Math.min(subject.store.capacity, before + added)
    const at = Math.floor(choice * open.length)
    const back = kind < 0.1 ? resizedTo(open[at], tokens, before) : undefined
    if (back !== undefined) return more(back)
    if (kind < 0.3) {
      yield* subject.deposit(tokens)
      return more(tokens)
    }
    const [reservation] = kind < 0.6 ? open.splice(at, 1) : []
    if (reservation !== undefined) return more(settled(reservation, choice < 0.5))
    const answer = tokens > before && subject.waits ? undefined : yield* subject.reserve(tokens)
    if (answer !== undefined) open.push(answer)
    same("whether tokens are granted", answer !== undefined, tokens <= before)
    return answer === undefined ? before : before - answer.cost
  })

/** Takes, settles and deposits, a hundred times. */
const manySteps = (subject: Subject) =>
  Effect.gen(function*() {
    const open: Array<Reservation> = []
    let balance = yield* subject.balance
    for (let count = 0; count < 100; count++) {
      const right = yield* step(subject, open, balance, [yield* Random.next, yield* Random.next, yield* Random.next])
      yield* subject.expect(`the balance after ${count + 1} steps`, right)
      balance = yield* subject.balance
    }
  }).pipe(Random.withSeed("conservation"))

/** Longer than any law takes. */
const patience = Duration.days(100)

/** The subject of interruptions: a caller that asks, whether the tokens are there or not. */
const asked = (subject: Subject, asker: Asker): Effect.Effect<unknown> =>
  Effect.withFiber((fiber): Effect.Effect<unknown> => {
    const answer = subject.store.reserve(subject.unit, clockOf(fiber))
    const taking = asker.take(answer, patience)
    return typeof answer === "function" ? Effect.timeoutOption(taking, 1000) : taking
  })

/** Records what the effect dies of. */
const noting = <A, E, R>(asker: Asker, self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.onExit(self, (exit) =>
    Effect.sync(() => {
      if (Exit.isFailure(exit) && Cause.hasDies(exit.cause)) asker.died = Cause.squash(exit.cause)
    }))

const interrupted = <R>(make: Make<R>, share: number) =>
  sweepEach(
    Effect.gen(function*() {
      const [subject, twin] = yield* Effect.all([make, make])
      yield* subject.setBoth(twin, share * subject.size)
      return { subject, twin, asker: new Asker() }
    }),
    ({ asker, subject }) => noting(asker, asked(subject, asker)),
    Effect.fnUntraced(function*({ asker, subject, twin }) {
      asker.check(subject.unit)
      yield* subject.expectAs("the balance after an interruption", twin, -asker.cost)
      asker.reservation?.giveBack()
      yield* subject.expectAs("the balance when all has gone back after an interruption", twin)
    })
  )

/** A caller that waits, in its own fiber. */
export const waiting = (subject: Subject, cost: number, granted?: () => void) =>
  Effect.gen(function*() {
    const asker = new Asker(granted)
    const fiber = yield* Effect.forkChild(
      Effect.flatMap(subject.answer(cost), (answer) => asker.take(answer, patience))
    )
    yield* turns
    return { asker, fiber }
  })

/** Asks a store without tokens, and returns what it says. */
const refusal = (subject: Subject, cost: number, patienceMillis: number) =>
  Effect.gen(function*() {
    yield* subject.setTo(0)
    const asker = new Asker()
    const shortage = yield* subject.asked(cost, asker, patienceMillis)
    asker.reservation?.giveBack()
    return shortage
  })

const drivers = {
  "withRetry": <A, E>(send: Effect.Effect<A, E>, policy: Policy) => withRetry(send, policy),
  "Effect.retry": <A, E>(send: Effect.Effect<A, E>, policy: Policy) => Effect.retry(send, policy)
}

type Policy = RetryPolicy.RetryPolicy<unknown, never, RetryQuota.RetryQuota>

/** Three attempts, whose retries cost a tenth of the tokens each. */
const policyOf = ({ unit }: Subject): Policy =>
  RetryPolicy.fromDelay(() => 10).pipe(RetryPolicy.maxAttempts(3), RetryPolicy.quotaGated({ cost: unit }))

/** Runs a call to its end, and returns how often it was sent. */
const called = (subject: Subject, driver: keyof typeof drivers, script: ReadonlyArray<Outcome>) =>
  Effect.gen(function*() {
    const call = outcomes(script, { afterwards: "repeat" })
    const quota = RetryQuota.fromStore(subject.store)
    const retried = Effect.provideService(drivers[driver](call.send, policyOf(subject)), RetryQuota.RetryQuota, quota)
    const fiber = yield* Effect.forkChild(Effect.exit(retried))
    same("whether the call ends", yield* completes(subject.time, patienceMillis, fiber), true)
    yield* Fiber.join(fiber)
    return call.sends
  })

const pays = (driver: keyof typeof drivers): Body =>
  function*(subject, twin) {
    const { firstAttemptCost, successIncrement } = subject.store
    const { size, unit } = subject
    for (
      const [name, script, sends, change] of [
        ["that succeeds", [ok()], 1, successIncrement],
        ["that fails and then succeeds", [transient, ok()], 2, 0],
        ["that fails three times", [transient], 3, -2 * unit]
      ] as const
    ) {
      yield* subject.setBoth(twin, size / 2)
      same(`how often a call is sent ${name}`, yield* called(subject, driver, script), sends)
      yield* subject.expectAs(`the balance after a call ${name}`, twin, change - firstAttemptCost)
    }
    if (subject.waits) return
    yield* subject.setBoth(twin, firstAttemptCost + unit / 2)
    same("how often a call is sent whose retry costs too much", yield* called(subject, driver, [transient]), 1)
    yield* subject.expectAs("the balance after a retry was refused", twin, -firstAttemptCost)
    if (firstAttemptCost === 0) return
    yield* subject.setBoth(twin, firstAttemptCost / 2)
    same("how often a call is sent that cannot pay for its first send", yield* called(subject, driver, [ok()]), 0)
    yield* subject.expectAs("the balance after a first send was refused", twin)
  }

const swept = <R>(make: Make<R>) =>
  Effect.contextWith((context: Context.Context<R | Scope.Scope>) => {
    const full = Effect.tap(make, (subject) => subject.setTo(subject.size))
    const store = Effect.map(Effect.provideContext(full, context), (subject) => subject.store)
    return Effect.gen(function*() {
      const subject = yield* make
      const asker = new Asker()
      const call = Effect.suspend(() =>
        withRetry(outcomes([transient, transient, ok()], { latency: 10 }).send, policyOf(subject))
      )
      yield* sweepQuota(noting(asker, call), { store })
      asker.check(0)
    })
  })

const always: Readonly<Record<string, Body>> = {
  *"takes available tokens"(subject) {
    const { size, unit } = subject
    yield* subject.setTo(size)
    const full = yield* subject.balance
    for (let count = 1; count <= 10; count++) {
      const { cost } = yield* subject.taken(unit)
      close("the cost of a reservation", cost, unit)
      yield* subject.expect(`the balance after ${count} tenths were taken`, full - count * unit)
    }
  },
  "puts back, once, what is given back": settles("giveBack"),
  "keeps what is spent, once": settles("spend"),
  *"resizes what a reservation holds, until it is settled"(subject, twin) {
    const { size, unit } = subject
    for (const [settle, kept] of [["giveBack", 0], ["spend", 3]] as const) {
      yield* subject.setBoth(twin, size / 2)
      const reservation = yield* subject.taken(unit)
      if (reservation.resize === undefined) return
      for (const [what, units] of [["that grows", 2], ["that stays", 2], ["to nothing", 0], ["to more", 3]] as const) {
        resized(what, reservation, units * unit, true)
        yield* subject.expectAs(`the balance after resize of a reservation ${what}`, twin, -units * unit)
      }
      same(`${settle} of a reservation that was resized`, reservation[settle](), true)
      yield* subject.expectAs(`the balance after ${settle} of a reservation that was resized`, twin, -kept * unit)
      for (const units of [0, 4]) resized("that is settled", reservation, units * unit, false)
      yield* subject.expectAs("the balance after resize of a reservation that is settled", twin, -kept * unit)
    }
  },
  *"does not resize beyond the tokens that there are"(subject, twin) {
    const { size, unit } = subject
    yield* subject.setBoth(twin, 1.5 * unit)
    const reservation = yield* subject.taken(unit)
    if (reservation.resize === undefined) return
    resized("by more tokens than there are", reservation, 2 * unit, false)
    yield* subject.expectAs("the balance after resize by more tokens than there are", twin, -unit)
    yield* subject.setBoth(twin, size)
    if (Number.isFinite(subject.store.capacity)) resized("beyond the capacity", reservation, 1.05 * size, false)
    same("giveBack of a reservation that was not settled", reservation.giveBack(), true)
    yield* subject.expectAs("the balance when all has gone back after resize", twin)
  },
  *"takes nothing if there are too few tokens"(subject, twin) {
    const { unit } = subject
    yield* falls(subject, twin, 0)
    yield* falls(subject, twin, unit / 2)
    yield* subject.setTo(unit / 2)
    yield* subject.deposit(unit / 2)
    yield* subject.taken(unit)
  },
  *"grants a cost of 0 at any balance"(subject, twin) {
    yield* subject.setBoth(twin, 0)
    for (const settle of ["giveBack", "spend"] as const) {
      const reservation = yield* subject.taken(0)
      same(`${settle} of a reservation without tokens`, reservation[settle](), true)
    }
    yield* subject.expectAs("the balance after nothing was taken", twin)
  },
  *"grants no more than its capacity, however patient the caller"(subject, twin) {
    const { capacity } = subject.store
    if (!Number.isFinite(capacity)) return
    yield* subject.setBoth(twin, capacity)
    const asker = new Asker()
    yield* subject.asked(2 * capacity, asker, patienceMillis)
    same("how often hold was called for more tokens than the capacity", asker.holds, 0)
    yield* subject.expectAs("the balance after a request above the capacity", twin)
  },
  *"adds deposits, up to the capacity"(subject) {
    const { size, store, unit } = subject
    yield* subject.setTo(0)
    const before = yield* subject.balance
    yield* subject.deposit(unit)
    yield* subject.expect("the balance after a deposit", before + unit)
    yield* subject.deposit(0)
    yield* subject.expect("the balance after a deposit of nothing", before + unit)
    if (!Number.isFinite(store.capacity)) return
    for (let count = 0; count < 2; count++) {
      yield* subject.deposit(size)
      yield* subject.expect("the balance after a deposit beyond the capacity", store.capacity)
    }
  },
  *"sets its tokens, if it can"(subject, twin) {
    const { size, store, unit } = subject
    if (store.set === undefined) return
    for (const tokens of [0, size, unit, unit / 2]) {
      yield* withClock((clock) => store.set!(tokens, clock))
      yield* twin.setTo(tokens)
      yield* subject.expectAs(`the balance after set to ${tokens}`, twin)
    }
    yield* subject.deposit(unit / 2)
    yield* subject.taken(unit)
  },
  *"adds fractions without loss"(subject) {
    const { unit } = subject
    yield* subject.setTo(0)
    for (let count = 0; count < 10; count++) yield* subject.deposit(unit / 10)
    yield* subject.taken(unit)
    yield* subject.balance
  },
  *"conserves tokens, whatever is taken, settled and deposited"(subject) {
    yield* manySteps(subject)
  },
  *"grants no token twice to concurrent fibers"(subject, twin) {
    const { size, time, unit, waits } = subject
    yield* subject.setBoth(twin, size)
    const askers = Array.from({ length: 30 }, () => new Asker())
    const asking = (asker: Asker) => Effect.flatMap(subject.answer(unit), (answer) => asker.take(answer, patience))
    const fiber = yield* Effect.forkChild(Effect.forEach(askers, asking, { concurrency: "unbounded" }))
    const winners = () => askers.filter(({ holds }) => holds > 0).length
    yield* until(time, patienceMillis, () => (waits ? winners() >= 10 : fiber.pollUnsafe() !== undefined))
    yield* stopped(fiber)
    same("how many of 30 fibers get a tenth of the tokens each", winners(), 10)
    for (const asker of askers) asker.check(unit)
    yield* subject.expectAs("the balance after ten tenths were taken at the same time", twin, -10 * unit)
  },
  *"loses nothing to a clock that goes back"(subject) {
    const { size, store, unit } = subject
    yield* subject.setTo(size / 2)
    const before = yield* subject.balance
    yield* withClock((clock) => {
      const back = earlier(clock, 3_600_000)
      const balance = () => {
        const balance = store.balance(back)
        within("the balance by a clock that has gone back", balance, 0, store.capacity)
        return balance
      }
      within("the balance by a clock that has gone back", balance(), before - subject.slack, store.capacity)
      store.deposit(unit, back)
      const answer = store.reserve(unit, back)
      if (typeof answer === "object") same("giveBack by a clock that has gone back", answer.giveBack(), true)
      within("the balance by a clock that has gone back", balance(), before - subject.slack, store.capacity)
    })
    within("the balance when the clock is right again", yield* subject.balance, before - subject.slack, store.capacity)
  },
  "pays for the retries of withRetry": pays("withRetry"),
  "pays for the retries of Effect.retry": pays("Effect.retry")
}

const whereItWaits: Readonly<Record<string, Body>> = {
  *"grants a waiter its tokens when there are enough"(subject, twin) {
    const { time, unit } = subject
    yield* subject.setBoth(twin, 0)
    const { asker, fiber } = yield* waiting(subject, unit)
    same("how often hold was called before tokens came", asker.holds, 0)
    yield* subject.deposit(unit)
    yield* twin.deposit(unit)
    yield* until(time, patienceMillis, () => asker.holds > 0)
    same("how often hold was called when the tokens had come", asker.holds, 1)
    yield* until(time, patienceMillis, () => fiber.pollUnsafe() !== undefined)
    same("whether the caller continues", fiber.pollUnsafe() !== undefined, true)
    yield* subject.expectAs("the balance after a waiter got its tokens", twin, -unit)
  },
  *"serves waiters when its tokens are set, if it can"(subject, twin) {
    const { store, time, unit } = subject
    if (store.set === undefined) return
    yield* subject.setBoth(twin, 0)
    const waiters = [yield* waiting(subject, unit), yield* waiting(subject, 2 * unit), yield* waiting(subject, unit)]
    yield* withClock((clock) => store.set!(3.5 * unit, clock))
    yield* twin.deposit(3.5 * unit)
    yield* until(time, 10, () => waiters[1]!.asker.holds > 0)
    same("the waiters with tokens after set", waiters.map(({ asker }) => asker.holds).join(), "1,1,0")
    yield* subject.expectAs("the balance after set, and two waiters got their tokens", twin, -3 * unit)
  },
  *"serves waiters in order of arrival"(subject) {
    const { time, unit } = subject
    yield* subject.setTo(0)
    const order: Array<number> = []
    const costs = [3 * unit, unit, 2 * unit]
    for (const [place, cost] of costs.entries()) yield* waiting(subject, cost, () => order.push(place + 1))
    yield* subject.deposit(unit)
    yield* turns
    const newcomer = yield* subject.answer(unit)
    if (order.length === 0) same("reserve of tokens for which others wait", typeof newcomer, "function")
    for (let count = 0; count < 100 && order.length < 3; count++) {
      yield* subject.deposit(unit)
      yield* until(time, 10, () => order.length === 3)
    }
    same("the order in which three waiters got their tokens", order.join(), "1,2,3")
  },
  *"forgets a waiter that is interrupted"(subject, twin) {
    const { size, time, unit } = subject
    yield* subject.setBoth(twin, 0)
    const first = yield* waiting(subject, size)
    const second = yield* waiting(subject, unit)
    yield* Fiber.interrupt(first.fiber)
    yield* subject.deposit(unit)
    yield* twin.deposit(unit)
    yield* until(time, patienceMillis, () => second.asker.holds > 0)
    same("how often hold was called for one behind an interrupted waiter", second.asker.holds, 1)
    same("how often hold was called for an interrupted waiter", first.asker.holds, 0)
    yield* subject.expectAs("the balance after a waiter was interrupted", twin, -unit)
  },
  *"resizes past no waiter, and lets it have what comes back"(subject, twin) {
    const { time, unit } = subject
    yield* subject.setBoth(twin, unit)
    const reservation = yield* subject.taken(unit)
    if (reservation.resize === undefined) return
    const { asker } = yield* waiting(subject, unit)
    yield* subject.deposit(unit / 2)
    yield* twin.deposit(unit / 2)
    resized("by tokens for which others wait", reservation, 1.25 * unit, false)
    resized("that others wait for", reservation, unit / 2, true)
    yield* until(time, patienceMillis, () => asker.holds > 0)
    same("how often hold was called when a reservation had shrunk", asker.holds, 1)
    yield* subject.expectAs("the balance after a waiter got what a reservation held", twin, -1.5 * unit)
  },
  *"grants nothing when the patience has ended"(subject, twin) {
    const { size, time } = subject
    yield* subject.setBoth(twin, 0)
    const asker = new Asker()
    yield* subject.asked(size, asker, 50)
    asker.reservation?.giveBack()
    const { holds } = asker
    yield* subject.deposit(size)
    yield* twin.deposit(size)
    yield* time.elapse(100)
    same("how often hold was called after the patience had ended", asker.holds - holds, 0)
    yield* subject.expectAs("the balance after the patience had ended", twin)
  },
  *"reports that it refuses what it can never grant"(subject) {
    const { capacity } = subject.store
    if (!Number.isFinite(capacity)) return
    const shortage = yield* refusal(subject, 2 * capacity, patienceMillis)
    same("its answer for more tokens than the capacity", shortage, "refused")
  },
  *"does not report a refusal of what it could grant to a more patient caller"(subject) {
    const shortage = yield* refusal(subject, subject.size, 50)
    same("its answer for tokens that only the patience is too short for", shortage, undefined)
  }
}

/** The laws that need a `TestClock`. */
const virtually = <R>(
  make: Make<R>
): Readonly<Record<string, () => Effect.Effect<unknown, unknown, R | Scope.Scope>>> => ({
  "has taken nothing when a caller that asks is interrupted, at any step": () => interrupted(make, 1),
  "has taken nothing when a caller that asks for too much is interrupted, at any step": () => interrupted(make, 0),
  "loses nothing to a call that is interrupted, at any step": () => swept(make)
})

/**
 * The laws of every store, and those of stores that wait.
 *
 * @internal
 */
export const lawsOf = <R>(
  make: Make<R>,
  time: Time,
  onExceeded: "stop" | "wait"
): ReadonlyArray<Law<Exclude<R, Scope.Scope>>> => {
  const bodies = {
    "describes itself": describes(onExceeded),
    ...always,
    ...(onExceeded === "wait" ? whereItWaits : {})
  }
  const ofTwo = Object.entries(bodies).map(([name, body]) =>
    law(
      name,
      () => Effect.flatMap(Effect.all([make, make]), ([subject, twin]) => Effect.gen(() => body(subject, twin))),
      time
    )
  )
  const swept = time.isVirtual ? Object.entries(virtually(make)).map(([name, body]) => law(name, body, time)) : []
  return [...ofTwo, ...swept]
}
