import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import { withClock } from "../../internal/clock.ts"
import type { Reservation } from "../../RetryQuotaStore.ts"
import { alone, type Body, type Law, lawsOf, same, within } from "./law.ts"
import { Asker, patienceMillis, type Subject, Trial } from "./storeSubject.ts"
import { sweepEach } from "./sweep.ts"
import { earlier, stopped, type Time, turns, until } from "./time.ts"

/**
 * Makes a store, a new one each time.
 *
 * @internal
 */
export type Make<R> = Effect.Effect<Subject, never, R | Scope.Scope>

/**
 * A store and its twin.
 *
 * @internal
 */
export const trialOf = <R>(make: Make<R>) =>
  Effect.map(Effect.all([make, make]), ([subject, twin]) => new Trial(subject, twin))

const describes = (onExceeded: "stop" | "wait"): Body<Trial> =>
  function*({ store }) {
    yield* Effect.sync(() => {
      same("whether the capacity is above 0", store.capacity > 0, true)
      within("successIncrement", store.successIncrement, 0, store.capacity)
      within("firstAttemptCost", store.firstAttemptCost, 0, store.capacity)
      same("onExceeded", store.onExceeded, onExceeded)
    })
  }

/** A reservation is settled once, in this way, and keeps its tokens or not. */
const settlesOnce = (how: "giveBack" | "spend"): Body<Trial> =>
  function*(trial) {
    yield* trial.starts(5)
    const reservation = yield* trial.takes(1)
    yield* trial.settles(reservation, how)
    same("giveBack of a reservation that was settled", reservation.giveBack(), false)
    same("spend of a reservation that was settled", reservation.spend(), false)
    yield* trial.expects("a reservation was settled three times")
  }

/** One of many steps. */
const step = (trial: Trial, open: Array<Reservation>) =>
  Effect.gen(function*() {
    const [kind, share, choice] = [yield* Random.next, yield* Random.next, yield* Random.next]
    const units = 10 * share
    const at = Math.floor(choice * open.length)
    const reservation = open[at]
    const available = (yield* trial.balance) / trial.unit
    if (kind < 0.1 && reservation?.resize !== undefined) {
      const isPossible = units - reservation.cost / trial.unit <= available
      return yield* trial.resizes("that is open", reservation, units, isPossible)
    }
    if (kind < 0.3) return yield* trial.deposits(units)
    if (kind < 0.6 && reservation !== undefined) {
      open.splice(at, 1)
      return yield* trial.settles(reservation, choice < 0.5 ? "giveBack" : "spend")
    }
    if (units > available) return yield* trial.lacks(units)
    open.push(yield* trial.takes(units))
  })

/** Records what the effect dies of. */
const noting = <A, E, R>(asker: Asker, self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.onExit(self, (exit) =>
    Effect.sync(() => {
      if (Exit.isFailure(exit) && Cause.hasDies(exit.cause)) asker.died = Cause.squash(exit.cause)
    }))

const interrupted = <R>(make: Make<R>, units: number) =>
  sweepEach(
    Effect.gen(function*() {
      const trial = yield* trialOf(make)
      yield* trial.starts(units)
      return { trial, asker: trial.asker() }
    }),
    ({ asker, trial: { store, unit } }) => noting(asker, Effect.timeoutOption(asker.asks(store, unit), 1000)),
    Effect.fnUntraced(function*({ asker, trial }) {
      asker.check(trial.unit)
      yield* trial.expects("an interruption")
      if (asker.reservation !== undefined) yield* trial.settles(asker.reservation, "giveBack")
    })
  )

/** Asks a store without tokens, and returns what it says. */
const refusal = (subject: Subject, cost: number, patienceMillis?: number) =>
  Effect.gen(function*() {
    yield* subject.setTo(0)
    const asker = new Asker()
    const shortage = yield* subject.asked(cost, asker, patienceMillis)
    asker.reservation?.giveBack()
    return shortage
  })

type Bodies<R = never> = Readonly<Record<string, Body<Trial, R>>>

const always: Bodies = {
  *"takes available tokens"(trial) {
    yield* trial.starts(10)
    for (let count = 1; count <= 10; count++) yield* trial.takes(1)
  },
  "puts back, once, what is given back": settlesOnce("giveBack"),
  "keeps what is spent, once": settlesOnce("spend"),
  *"resizes what a reservation holds, until it is settled"(trial) {
    for (const settle of ["giveBack", "spend"] as const) {
      yield* trial.starts(5)
      const reservation = yield* trial.takes(1)
      if (reservation.resize === undefined) return
      for (const [what, units] of [["that grows", 2], ["that stays", 2], ["to nothing", 0], ["to more", 3]] as const) {
        yield* trial.resizes(what, reservation, units, true)
      }
      yield* trial.settles(reservation, settle)
      for (const units of [0, 4]) yield* trial.resizes("that is settled", reservation, units, false)
    }
  },
  *"does not resize beyond the tokens that there are"(trial) {
    yield* trial.starts(1.5)
    const reservation = yield* trial.takes(1)
    if (reservation.resize === undefined) return
    yield* trial.resizes("by more tokens than there are", reservation, 2, false)
    yield* trial.deposits(10)
    if (Number.isFinite(trial.store.capacity)) {
      yield* trial.resizes("beyond the capacity", reservation, 10.5, false)
    }
    yield* trial.settles(reservation, "giveBack")
  },
  *"grants a cost of 0 at any balance"(trial) {
    yield* trial.starts(0)
    for (const settle of ["giveBack", "spend"] as const) yield* trial.settles(yield* trial.takes(0), settle)
  },
  *"grants no more than its capacity, however patient the caller"(trial) {
    if (!Number.isFinite(trial.store.capacity)) return
    yield* trial.starts(10)
    yield* trial.lacks(20)
  },
  *"adds deposits, up to the capacity"(trial) {
    yield* trial.starts(0)
    for (const units of [1, 0, 10, 10]) yield* trial.deposits(units)
  },
  *"sets its tokens, if it can"(trial) {
    if (trial.store.set === undefined) return
    for (const units of [0, 10, 1, 0.5]) yield* trial.sets(units)
    yield* trial.deposits(0.5)
    yield* trial.takes(1)
  },
  *"conserves tokens, whatever is taken, settled and deposited"(trial) {
    yield* trial.starts(5)
    const open: Array<Reservation> = []
    const steps = Effect.replicateEffect(step(trial, open), 100, { discard: true })
    yield* Random.withSeed(steps, "conservation")
  },
  *"grants no token twice to concurrent fibers"(trial) {
    const { store, time, unit } = trial
    yield* trial.starts(10)
    const askers = Array.from({ length: 30 }, () => trial.asker())
    const asking = Effect.forEach(askers, (asker) => asker.asks(store, unit), { concurrency: "unbounded" })
    const fiber = yield* Effect.forkChild(asking)
    const winners = () => askers.filter(({ holds }) => holds > 0).length
    const isOver = () => store.onExceeded === "wait" ? winners() >= 10 : fiber.pollUnsafe() !== undefined
    yield* until(time, patienceMillis, isOver)
    yield* stopped(fiber)
    same("how many of 30 fibers get a tenth of the tokens each", winners(), 10)
    for (const asker of askers) asker.check(unit)
    yield* trial.expects("ten tenths were taken at the same time")
  },
  *"loses nothing to a clock that goes back"(subject) {
    const { size, slack, store, unit } = subject
    yield* subject.setTo(size / 2)
    const least = (yield* subject.balance) - slack
    yield* withClock((clock) => {
      const back = earlier(clock, 3_600_000)
      const look = () => within("the balance by a clock that has gone back", store.balance(back), least, store.capacity)
      look()
      store.deposit(unit, back)
      const answer = store.reserve(unit, back)
      if (typeof answer === "object") same("giveBack by a clock that has gone back", answer.giveBack(), true)
      look()
    })
    within("the balance when the clock is right again", yield* subject.balance, least, store.capacity)
  }
}

const whereItWaits: Bodies = {
  *"grants a waiter its tokens when there are enough"(trial) {
    const { time } = trial
    yield* trial.starts(0)
    const { asker, fiber } = yield* trial.waits(1)
    same("how often hold was called before tokens came", asker.holds, 0)
    yield* trial.deposits(1)
    yield* until(time, patienceMillis, () => asker.holds > 0)
    same("how often hold was called when the tokens had come", asker.holds, 1)
    const continues = yield* until(time, patienceMillis, () => fiber.pollUnsafe() !== undefined)
    same("whether the caller continues", continues, true)
    yield* trial.expects("a waiter got its tokens")
  },
  *"serves waiters when its tokens are set, if it can"(trial) {
    if (trial.store.set === undefined) return
    yield* trial.starts(0)
    const waiters = [yield* trial.waits(1), yield* trial.waits(2), yield* trial.waits(1)]
    yield* trial.sets(3.5)
    yield* until(trial.time, 10, () => waiters[1]!.asker.holds > 0)
    same("the waiters with tokens after set", waiters.map(({ asker }) => asker.holds).join(), "1,1,0")
    yield* trial.expects("set, and two waiters got their tokens")
  },
  *"serves waiters in order of arrival"(trial) {
    yield* trial.starts(0)
    const order: Array<number> = []
    for (const [place, units] of [3, 1, 2].entries()) yield* trial.waits(units, () => order.push(place + 1))
    yield* trial.deposits(1)
    yield* turns
    const newcomer = yield* trial.answer(trial.unit)
    if (order.length === 0) same("reserve of tokens for which others wait", typeof newcomer, "function")
    for (let count = 0; count < 100 && order.length < 3; count++) {
      yield* trial.deposits(1)
      yield* until(trial.time, 10, () => order.length === 3)
    }
    same("the order in which three waiters got their tokens", order.join(), "1,2,3")
  },
  *"forgets a waiter that is interrupted"(trial) {
    yield* trial.starts(0)
    const [first, second] = [yield* trial.waits(10), yield* trial.waits(1)]
    yield* Fiber.interrupt(first.fiber)
    yield* trial.deposits(1)
    yield* until(trial.time, patienceMillis, () => second.asker.holds > 0)
    same("how often hold was called for one behind an interrupted waiter", second.asker.holds, 1)
    same("how often hold was called for an interrupted waiter", first.asker.holds, 0)
    yield* trial.expects("a waiter was interrupted")
  },
  *"resizes past no waiter, and lets it have what comes back"(trial) {
    yield* trial.starts(1)
    const reservation = yield* trial.takes(1)
    if (reservation.resize === undefined) return
    const { asker } = yield* trial.waits(1)
    yield* trial.deposits(0.5)
    yield* trial.resizes("by tokens for which others wait", reservation, 1.25, false)
    yield* trial.resizes("that others wait for", reservation, 0.5, true)
    yield* until(trial.time, patienceMillis, () => asker.holds > 0)
    same("how often hold was called when a reservation had shrunk", asker.holds, 1)
    yield* trial.expects("a waiter got what a reservation held")
  },
  *"grants nothing when the patience has ended"(trial) {
    yield* trial.starts(0)
    const asker = trial.asker()
    yield* trial.asked(trial.size, asker, 50)
    if (asker.reservation !== undefined) yield* trial.settles(asker.reservation, "giveBack")
    const { holds } = asker
    yield* trial.deposits(10)
    yield* trial.time.elapse(100)
    same("how often hold was called after the patience had ended", asker.holds - holds, 0)
    yield* trial.expects("the patience had ended")
  },
  *"reports that it refuses what it can never grant"(trial) {
    const { capacity } = trial.store
    if (!Number.isFinite(capacity)) return
    const shortage = yield* refusal(trial, 2 * capacity)
    same("its answer for more tokens than the capacity", shortage, "refused")
  },
  *"does not report a refusal of what it could grant to a more patient caller"(trial) {
    const shortage = yield* refusal(trial, trial.size, 50)
    same("its answer for tokens that only the patience is too short for", shortage, undefined)
  }
}

/** The laws that need a `TestClock`. */
const virtually = <R>(make: Make<R>): Bodies<R> => ({
  "has taken nothing when a caller that asks is interrupted, at any step": alone(interrupted(make, 10)),
  "has taken nothing when a caller that asks for too much is interrupted, at any step": alone(interrupted(make, 0))
})

/**
 * The laws of every store, and those of stores that wait.
 *
 * @internal
 */
export const storeLawsOf = <R>(
  make: Make<R>,
  time: Time,
  onExceeded: "stop" | "wait"
): ReadonlyArray<Law<Exclude<R, Scope.Scope>>> =>
  lawsOf(
    trialOf(make),
    {
      "describes itself": describes(onExceeded),
      ...always,
      ...(onExceeded === "wait" ? whereItWaits : {}),
      ...(time.isVirtual ? virtually(make) : {})
    },
    time
  )
