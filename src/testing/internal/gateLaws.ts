import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { ended, endings, type Entry, type GateSubject } from "./gateSubject.ts"
import { alone, type Body, type Law, lawsOf, same, within } from "./law.ts"
import { sweepEach } from "./sweep.ts"
import { earlier, ran, stopped, until, virtual } from "./time.ts"

/**
 * What a gate does with a send that it holds back.
 *
 * @internal
 */
export type OnExceeded = "waits" | "refuses" | "never"

/**
 * Makes a gate, a new one each time.
 *
 * @internal
 */
export type Make<R> = Effect.Effect<GateSubject, never, R | Scope.Scope>

/** How long a gate may hold a send back, in milliseconds. */
const hourMillis = 3_600_000

/** The bodies of laws about a gate, with a twin that sees the same except for what the law is about. */
type Bodies<R = never> = Readonly<Record<string, Body<readonly [subject: GateSubject, twin: GateSubject], R>>>

const holdsBack = (onExceeded: OnExceeded): Bodies[string] =>
  function*([subject]) {
    const last = yield* subject.filled
    if (onExceeded === "never") return same("whether a send is held back", last !== undefined, false)
    same(`whether one of ${subject.most} sends is held back`, last !== undefined, true)
    const exit = yield* ran(last!.answered, 0)
    const found = exit === undefined ? "waits" : last!.passes === 0 ? "refuses" : "lets it pass"
    same("what becomes of a send that is held back", found, onExceeded)
  }

/** What a program, a server or another library may fail or succeed with. */
const unreadable = (): ReadonlyArray<unknown> => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  const throwing = () => {
    throw new Error("it cannot be read")
  }
  return [undefined, null, Number.NaN, Symbol("a"), proxy, new Proxy({}, { get: throwing, ownKeys: throwing })]
}

/** Nothing stays full forever. */
const reopens = (subject: GateSubject, what: string) =>
  Effect.gen(function*() {
    yield* virtual.elapse(hourMillis)
    const entry = yield* subject.enter()
    yield* ran(entry.answered, hourMillis)
    same(`how many sends pass an hour after ${what}`, entry.passes, 1)
    yield* subject.ends()
  })

/** Ends sends, and lets time pass, until the condition holds. */
const released = (subject: GateSubject, condition: () => boolean) =>
  Effect.gen(function*() {
    while (!condition() && subject.open.length > 0) {
      yield* subject.ends(undefined, subject.open.splice(-1))
      yield* until(virtual, 0, condition)
    }
    yield* until(virtual, hourMillis, condition)
  })

const interrupted = <R>(make: Make<R>) =>
  sweepEach(
    Effect.gen(function*() {
      const [subject, twin] = yield* Effect.all([make, make])
      for (const each of [subject, twin]) yield* each.filled
      return { subject, twin, before: subject.open.length }
    }),
    ({ subject }) =>
      Effect.flatMap(subject.enter(), ({ waiting }) => Effect.timeoutOption(waiting ?? Effect.void, 10_000)),
    Effect.fnUntraced(function*({ before, subject, twin }) {
      within("how often hold was called", subject.open.length - before, 0, 1)
      for (const each of [subject, twin]) each.cancels()
      same("how many sends pass after one that waited was interrupted", yield* subject.room, yield* twin.room)
    })
  )

const always: Bodies = {
  *"has a place in the order of gates"([{ gate }]) {
    yield* Effect.sync(() => same("whether the order is a finite number", Number.isFinite(gate.order), true))
  },
  *"gives one pass to each send it admits, and none to others"([subject]) {
    for (const attempt of [1, 2, 3, 1000]) {
      yield* subject.enter(attempt)
      yield* subject.ends()
    }
    const last = yield* subject.filled
    if (last !== undefined) yield* ran(last.answered, hourMillis)
  },
  *"undoes the effect of passing when a pass is canceled"([subject, twin]) {
    const [first, second] = [yield* subject.room, yield* subject.room]
    same("how many sends pass after as many were canceled", second, first)
    same("how many sends pass after as many were canceled", yield* subject.room, yield* twin.room)
  },
  *"settles a send that ended with any value, even one that cannot be read"([subject]) {
    for (const value of unreadable()) {
      for (const ending of [ended("Success", value), ended("Failure", undefined, value)]) {
        yield* subject.enter()
        const exit = yield* Effect.exit(subject.ends(ending))
        same("whether a pass can be settled with any value", Exit.isSuccess(exit), true)
      }
    }
  }
}

const inTime: Bodies = {
  *"lets sends pass again when those before have ended in any way"([subject]) {
    for (const ending of endings) {
      yield* subject.filled
      yield* subject.ends(ending)
      yield* reopens(subject, `all before have ended with ${ending._tag}`)
    }
  },
  *"lets sends pass again when a clock has gone back"([subject]) {
    yield* virtual.elapse(2 * hourMillis)
    yield* subject.filled
    yield* subject.ends()
    yield* Effect.clockWith((clock) => subject.enter(1, earlier(clock, hourMillis)))
    yield* subject.ends()
    yield* reopens(subject, "the clock has gone back")
  }
}

const whereItWaits: Bodies = {
  *"lets waiters pass in order of arrival"([subject]) {
    yield* subject.filled
    const order: Array<Entry> = []
    const waiters = yield* Effect.replicateEffect(subject.waiter, 3)
    // Sends without a place in line are refused.
    const inLine = waiters.filter(({ fiber }) => fiber.pollUnsafe() === undefined)
    const passed = (): number => {
      for (const { entry } of inLine) if (entry.passes > 0 && !order.includes(entry)) order.push(entry)
      return order.length
    }
    yield* subject.ends(undefined, subject.open.splice(0, 1))
    const isFirst = passed() > 0
    const newcomer = yield* subject.enter()
    if (!isFirst) same("how many newcomers pass while others wait", newcomer.passes, 0)
    for (let next = 1; next <= inLine.length; next++) yield* released(subject, () => passed() >= next)
    const places = order.map((entry) => inLine.findIndex((waiter) => waiter.entry === entry) + 1)
    same("the order in which waiters pass", places.join(), inLine.map((_, place) => place + 1).join())
    for (const { fiber } of inLine) yield* stopped(fiber)
  }
}

const whereItRefuses: Bodies = {
  *"refuses with an error that is marked, and takes nothing"([subject, twin]) {
    for (const each of [subject, twin]) yield* each.filled
    for (let count = 0; count < 3; count++) {
      const { entry, fiber } = yield* subject.waiter
      yield* Fiber.join(fiber)
      same("how many passes a refused send gets", entry.passes, 0)
    }
    for (const each of [subject, twin]) each.cancels()
    same("how many sends pass after others were refused", yield* subject.room, yield* twin.room)
  }
}

/**
 * The laws of a gate.
 *
 * @internal
 */
export const gateLawsOf = <R>(
  make: Make<R>,
  onExceeded: OnExceeded,
  isReopening: boolean
): ReadonlyArray<Law<Exclude<R, Scope.Scope>>> =>
  lawsOf(Effect.all([make, make]), {
    ...always,
    [onExceeded === "never" ? "holds no send back" : "holds a send back when it is full"]: holdsBack(onExceeded),
    ...(isReopening && inTime),
    ...(onExceeded === "refuses" && whereItRefuses),
    ...(onExceeded === "waits" && {
      ...whereItWaits,
      "has taken nothing when a waiter is interrupted, at any step": alone(interrupted(make))
    })
  })
