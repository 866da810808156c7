import { assert, describe, it } from "@effect/vitest"
import { InvalidOption, SendGate } from "effect-retry"
import { SendGateSuite } from "effect-retry/testing"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { isBroken, lawOf } from "../utils/brokenLaws.ts"
import { thinned } from "../utils/sweep.ts"

type Gate = SendGate.SendGate
type Pass = SendGate.Pass

class Full {
  readonly [SendGate.Refused] = true
}

interface Waiter {
  readonly send: SendGate.Send
  readonly resume: () => void
}

/** A gate with room for three sends. Each part of it can be replaced by a wrong one. */
class Room implements Gate {
  order = 100
  free = 3
  readonly line: Array<Waiter> = []

  enter(send: SendGate.Send): void | Effect.Effect<void, unknown> {
    if (this.free === 0) return this.full(send)
    this.free--
    return send.hold(this.pass())
  }

  full(send: SendGate.Send): Effect.Effect<void, unknown> {
    return Effect.callback<void>((resume) => {
      const waiter = { send, resume: () => resume(Effect.void) }
      this.line.push(waiter)
      return Effect.sync(() => this.leave(waiter))
    })
  }

  leave(waiter: Waiter): void {
    const place = this.line.indexOf(waiter)
    if (place >= 0) this.line.splice(place, 1)
  }

  pass(): Pass {
    return { settle: (outcome) => this.settled(outcome), cancel: () => this.canceled() }
  }

  settled(_: SendGate.Outcome): void {
    this.released()
  }

  canceled(): void {
    this.released()
  }

  released(): void {
    const next = this.next()
    if (next === undefined) {
      this.free++
    } else {
      next.send.hold(this.pass())
      next.resume()
    }
  }

  next(): Waiter | undefined {
    return this.line.shift()
  }
}

const room = (changes: (room: Room) => Partial<Room> = () => ({})) =>
  Effect.sync((): Gate => {
    const room = new Room()
    return Object.assign(room, changes(room))
  })

const refusing = (changes: (room: Room) => Partial<Room> = () => ({})) =>
  room((room) => ({ full: () => Effect.fail(new Full()), ...changes(room) }))

const open = (enter: Gate["enter"]): Effect.Effect<Gate> => Effect.succeed({ order: 1, enter })

const free: Pass = { settle: () => undefined, cancel: () => undefined }

/** Lets no send pass once the clock shows an earlier time than before. */
const monotonous = room((room) => {
  const enter = room.enter.bind(room)
  let latest = 0
  return {
    enter: (send) => {
      const now = Context.get(send.context, Clock.Clock).currentTimeMillisUnsafe()
      if (now < latest) latest = Infinity
      latest = Math.max(latest, now)
      return latest === Infinity ? Effect.never : enter(send)
    }
  }
})

const settlesOnly = (tag: SendGate.Outcome["_tag"]) =>
  room((room) => ({
    settled: (outcome) => {
      if (outcome._tag === tag) room.released()
    }
  }))

/** Interrupted waiters stay in the line. */
const haunted = room(() => ({ leave: () => undefined }))

/** Refuses with an error that nothing marks, and lets the next send pass. */
const unmarked = () => {
  let asked = 0
  return refusing(() => ({
    full: (send) => ++asked % 2 === 0 ? Effect.sync(() => send.hold(free)) : Effect.fail("full")
  }))
}

type Gates = Readonly<Record<string, ReadonlyArray<Effect.Effect<Gate>>>>

/** Gates that break each law. */
const gates: Gates = {
  "has a place in the order of gates": [room(() => ({ order: NaN }))],
  "gives one pass to each send it admits, and none to others": [
    open(() => undefined),
    open((send) => (send.hold(free), send.hold(free))),
    open((send) => (send.hold(free), Effect.void)),
    room(() => ({ full: () => Effect.void })),
    room(() => ({ full: () => Effect.die("broken") })),
    room(() => ({ full: (send) => Effect.andThen(Effect.sync(() => send.hold(free)), Effect.fail(new Full())) })),
    room(() => ({ full: () => Effect.fail("not marked") })),
    open(() => {
      throw new Error("broken")
    })
  ],
  "holds a send back when it is full": [
    open((send) => send.hold(free)),
    refusing(),
    room(() => ({ full: (send) => Effect.sync(() => send.hold(free)) }))
  ],
  "undoes the effect of passing when a pass is canceled": [
    room(() => ({ canceled: () => undefined })),
    room((room) => ({ canceled: () => (room.released(), room.released()) }))
  ],
  "settles a send that ended with any value, even one that cannot be read": [
    room((room) => ({ settled: ({ error }) => void ((error as any).status, room.released()) })),
    room((room) => ({ settled: ({ value }) => void ((value as any)?.status, room.released()) }))
  ],
  "lets sends pass again when those before have ended in any way": [
    settlesOnly("Success"),
    settlesOnly("Failure"),
    room((room) => ({ settled: (outcome) => outcome._tag === "Unknown" ? undefined : room.released() })),
    room(() => ({ settled: () => undefined }))
  ],
  "lets sends pass again when a clock has gone back": [monotonous],
  "lets waiters pass in order of arrival": [
    room(() => ({ full: () => Effect.never })),
    room(() => ({ full: () => Effect.sleep("1 minute") })),
    room((room) => ({ next: () => room.line.pop() })),
    room((room) => ({
      released: () => {
        room.free++
        const next = room.line[0]
        if (next !== undefined) {
          // In the meantime another send can take its place.
          Effect.runFork(Effect.andThen(
            Effect.yieldNow,
            Effect.sync(() => {
              room.free--
              room.line.shift()
              next.send.hold(room.pass())
              next.resume()
            })
          ))
        }
      }
    }))
  ],
  "has taken nothing when a waiter is interrupted, at any step": [
    haunted,
    room((room) => ({
      full: () => Effect.onInterrupt(Effect.sleep("1 minute"), () => Effect.sync(() => room.free--))
    }))
  ]
}

const gatesThatRefuse: Gates = {
  "refuses with an error that is marked, and takes nothing": [
    unmarked(),
    refusing((room) => ({ full: () => (room.free--, Effect.fail(new Full())) })),
    refusing((room) => {
      let refused = 0
      return { full: () => ++refused === 3 ? (room.free = -1, Effect.fail(new Full())) : Effect.fail(new Full()) }
    })
  ]
}

const gatesThatNeverHoldBack: Gates = { "holds no send back": [room(), refusing()] }

const kinds = { waits: gates, refuses: gatesThatRefuse, never: gatesThatNeverHoldBack } as const

describe("SendGateSuite.laws", () => {
  const references = { waits: room(), refuses: refusing(), never: open((send) => send.hold(free)) } as const
  for (const [onExceeded, make] of Object.entries(references)) {
    describe(`of a gate that keeps them: ${onExceeded}`, () => {
      const laws = SendGateSuite.laws(make, { onExceeded: onExceeded as SendGateSuite.Options["onExceeded"] })
      for (const law of laws) it.effect(law.name, () => thinned(5)(law.run))
    })
  }

  for (const [onExceeded, gates] of Object.entries(kinds)) {
    for (const [name, makes] of Object.entries(gates)) {
      for (const [place, make] of makes.entries()) {
        it.effect(`finds a gate, ${place + 1}, that breaks the law: ${name}`, () =>
          isBroken(
            lawOf(SendGateSuite.laws(make, { onExceeded: onExceeded as SendGateSuite.Options["onExceeded"] }), name)
          ))
      }
    }
  }

  it("sees each of its laws broken", () => {
    const all = (["waits", "refuses", "never"] as const).flatMap((onExceeded) =>
      SendGateSuite.laws(room(), { onExceeded }).map(({ name }) => name)
    )
    const broken = Object.keys({ ...gates, ...gatesThatRefuse, ...gatesThatNeverHoldBack })
    assert.deepStrictEqual(broken.sort(), [...new Set(all)].sort())
  })

  it.effect("say what is wrong, and what would be right", () =>
    Effect.gen(function*() {
      const laws = SendGateSuite.laws(open((send) => send.hold(free)))
      const error = yield* isBroken(lawOf(laws, "holds a send back when it is full"))
      assert.strictEqual(
        error.message,
        "holds a send back when it is full: whether one of 100 sends is held back: false, expected true"
      )
    }))

  it.effect("hold for a gate that never opens, if it is declared so", () =>
    Effect.gen(function*() {
      const closed = open(() => Effect.fail(new Full()))
      for (const { run } of SendGateSuite.laws(closed, { onExceeded: "refuses", reopens: false })) yield* run
    }).pipe(thinned(20)))

  it.live("need no TestClock around them", () =>
    Effect.gen(function*() {
      for (const { run } of SendGateSuite.laws(room())) yield* run
    }).pipe(thinned(20)))

  it("refuse impossible options", () => {
    assert.throws(() => SendGateSuite.laws(room(), { most: 0 }), InvalidOption)
    assert.throws(() => SendGateSuite.laws(room(), { onExceeded: "sometimes" as "never" }), InvalidOption)
  })
})
