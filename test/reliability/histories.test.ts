import { assert, describe, it } from "@effect/vitest"
import { AdaptiveRateLimiter, RetryQuota } from "effect-retry"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { budget } from "../utils/budget.ts"
import { QuotaModel } from "./utils/models.ts"
import { World } from "./utils/world.ts"

type Operation =
  | readonly ["reserve", cost: number]
  | readonly ["giveBack"]
  | readonly ["spend"]
  | readonly ["deposit", tokens: number]
  | readonly ["cancel"]

/** What each fiber does, in its order. A fiber that waits for its reservation can only cancel it. */
type Programs = ReadonlyArray<ReadonlyArray<Operation>>

interface Settings {
  readonly capacity: number
  readonly initial: number
  readonly waits: boolean
}

const exitOf = <A, E>(world: World, self: Effect.Effect<A, E>): Exit.Exit<A, E> | undefined => {
  const fiber = world.fork(self)
  world.settle()
  return fiber.pollUnsafe()
}

const valueOf = <A, E>(world: World, self: Effect.Effect<A, E>): A => {
  const exit = exitOf(world, self)
  if (exit === undefined || !Exit.isSuccess(exit)) throw new Error("it has not ended well")
  return exit.value
}

/** The model and the real quota, at the same point of a history. */
class History {
  readonly model: QuotaModel
  readonly counters: Array<number>
  private readonly world = new World()
  private readonly quota: RetryQuota.Service
  private readonly fibers: Array<Fiber.Fiber<Option.Option<RetryQuota.Reservation>, unknown> | undefined>
  private readonly programs: Programs

  constructor(programs: Programs, { capacity, initial, waits }: Settings) {
    this.programs = programs
    this.counters = programs.map(() => 0)
    this.fibers = programs.map(() => undefined)
    // A refill so slow that none comes: no time passes in a history.
    const perMilli = waits ? 1 : 0
    this.model = new QuotaModel({ capacity, initial, perMilli, waits })
    const onExceeded = waits ? "wait" : "stop"
    this.quota = valueOf(
      this.world,
      RetryQuota.make({ capacity, initial, refillPerSecond: perMilli * 1000, onExceeded })
    )
  }

  private isWaiting(who: number): boolean {
    return this.model.queue.some(({ id }) => id === who)
  }

  /** Which fibers can take a step now. */
  get enabled(): ReadonlyArray<number> {
    return this.programs.flatMap((program, who) => {
      const next = program[this.counters[who]!]
      return next === undefined || (this.isWaiting(who) && next[0] !== "cancel") ? [] : [who]
    })
  }

  /** All that the future depends on. */
  get state(): string {
    const { held, queue, tokens } = this.model
    return [this.counters.join(), tokens, queue.map(({ id }) => id).join(), [...held.keys()].sort().join()].join(";")
  }

  step(who: number): void {
    const operation = this.programs[who]![this.counters[who]!++]!
    switch (operation[0]) {
      case "reserve":
        this.model.reserve(who, operation[1])
        this.fibers[who] = this.world.fork(this.quota.reserve(operation[1]))
        break
      case "deposit":
        this.model.deposit(operation[1])
        valueOf(this.world, this.quota.deposit(operation[1]))
        break
      case "cancel":
        this.model.cancel(who)
        this.fibers[who]?.interruptUnsafe()
        break
      default:
        this.settle(who, operation[0])
    }
    this.world.settle()
  }

  private reservation(who: number): RetryQuota.Reservation | undefined {
    const exit = this.fibers[who]?.pollUnsafe()
    return exit !== undefined && Exit.isSuccess(exit) ? Option.getOrUndefined(exit.value) : undefined
  }

  private settle(who: number, how: "giveBack" | "spend"): void {
    const expected = this.model.settle(who, how)
    const held = this.reservation(who)
    const actual = held === undefined ? false : valueOf(this.world, held[how])
    if (actual !== expected) throw new Error(`${how} of ${who} is ${actual}`)
  }

  compare(): void {
    const balance = valueOf(this.world, this.quota.balance)
    if (Math.abs(balance - this.model.tokens) > 1e-9) throw new Error(`balance ${balance}, not ${this.model.tokens}`)
    for (const [who, fiber] of this.fibers.entries()) {
      const waits = fiber !== undefined && fiber.pollUnsafe() === undefined
      if (waits !== this.isWaiting(who)) throw new Error(`${who} ${waits ? "waits" : "does not wait"}`)
    }
  }
}

const played = (programs: Programs, settings: Settings, steps: ReadonlyArray<number>): History => {
  const history = new History(programs, settings)
  for (const who of steps) history.step(who)
  return history
}

const explained = (steps: ReadonlyArray<number>, check: () => void): void => {
  try {
    check()
  } catch (error) {
    throw new Error(`history ${steps.join()}: ${String(error)}`, { cause: error })
  }
}

/** Every history, whole: each order in which the operations can come. */
const everyHistory = (programs: Programs, settings: Settings): number => {
  let histories = 0
  const from = (steps: ReadonlyArray<number>): void => {
    const history = played(programs, settings, steps)
    // Follows the first enabled fiber, then backtracks to the others.
    const path = [...steps]
    const branches: Array<ReadonlyArray<number>> = []
    for (let { enabled } = history; enabled.length > 0; { enabled } = history) {
      for (const other of enabled.slice(1)) branches.push([...path, other])
      path.push(enabled[0]!)
      history.step(enabled[0]!)
      explained(path, () => history.compare())
    }
    histories++
    for (const branch of branches) from(branch)
  }
  from([])
  return histories
}

/** Every step from every reachable state: each history is a path through these. */
const everyStep = (programs: Programs, settings: Settings): { readonly states: number; readonly steps: number } => {
  const first: ReadonlyArray<number> = []
  const reached = new Map([[played(programs, settings, first).state, first]])
  let steps = 0
  for (const path of reached.values()) {
    for (const who of played(programs, settings, path).enabled) {
      const history = played(programs, settings, path)
      history.step(who)
      steps++
      const next = [...path, who]
      explained(next, () => history.compare())
      if (!reached.has(history.state)) reached.set(history.state, next)
    }
  }
  return { states: reached.size, steps }
}

const repeated = (count: number, program: ReadonlyArray<Operation>): Programs =>
  Array.from({ length: count }, () => program)

const paying: ReadonlyArray<Operation> = [["reserve", 2], ["giveBack"], ["reserve", 3], ["spend"]]
const mixed: ReadonlyArray<Operation> = [["deposit", 1], ["reserve", 3], ["spend"], ["deposit", 2]]
const fickle: ReadonlyArray<Operation> = [["reserve", 2], ["cancel"], ["giveBack"], ["giveBack"]]
const short: ReadonlyArray<Operation> = [["reserve", 2], ["giveBack"]]

const stops = { capacity: 5, initial: 4, waits: false }
const waits = { capacity: 5, initial: 4, waits: true }

describe("histories of operations, in every order", () => {
  for (
    const [name, programs, settings, least] of [
      ["2 fibers of 4 operations, a quota that refuses", [paying, mixed], stops, 70],
      [
        `3 fibers of 4 or ${budget(4, 2)} operations, a quota that refuses`,
        [paying, mixed, paying.slice(0, budget(4, 2))],
        stops,
        budget(34_650, 3150)
      ],
      [
        `3 fibers of 4 or ${budget(4, 2)} operations, a quota that waits`,
        [paying, mixed, fickle.slice(0, budget(4, 2))],
        waits,
        budget(3000, 300)
      ],
      [
        `${budget(5, 4)} fibers of 2 operations, a quota that waits`,
        repeated(budget(5, 4), short),
        { ...waits, initial: 2 },
        budget(500, 50)
      ]
    ] as ReadonlyArray<readonly [string, Programs, Settings, number]>
  ) {
    it(`each of them, whole: ${name}`, () => {
      assert.isAtLeast(everyHistory(programs, settings), least)
    })
  }

  for (
    const [name, programs, settings, least] of [
      ["a quota that refuses", repeated(budget(5, 4), paying), stops, budget(2000, 500)],
      ["a quota that waits", [paying, mixed, fickle, fickle, paying].slice(0, budget(5, 4)), waits, budget(2000, 500)]
    ] as ReadonlyArray<readonly [string, Programs, Settings, number]>
  ) {
    it(`each step from each state of ${programs.length} fibers of 4 operations: ${name}`, () => {
      const { states, steps } = everyStep(programs, settings)
      assert.isAtLeast(states, least)
      assert.isAbove(steps, states)
    })
  }
})

/** Runs a program under every order in which the scheduler can run what is ready, and checks each run. */
const everySchedule = (program: (world: World) => () => void): number => {
  let schedules = 0
  let prefix: ReadonlyArray<number> = []
  for (;;) {
    const taken: Array<{ readonly at: number; readonly of: number }> = []
    const choose = (ready: number): number => {
      const at = prefix[taken.length] ?? 0
      taken.push({ at, of: ready })
      return at
    }
    const world = new World(undefined, choose)
    explained(prefix, program(world))
    schedules++
    while (taken.length > 0 && taken.at(-1)!.at + 1 === taken.at(-1)!.of) taken.pop()
    const last = taken.pop()
    if (last === undefined) return schedules
    prefix = [...taken.map(({ at }) => at), last.at + 1]
  }
}

describe("the same fibers, in every order in which their tasks can run", () => {
  const using = (quota: RetryQuota.Service, cost: number, how: "giveBack" | "spend") =>
    Effect.andThen(
      Effect.yieldNow,
      Effect.acquireUseRelease(
        Effect.map(quota.reserve(cost), Option.getOrThrow),
        () => Effect.yieldNow,
        (held) => held[how]
      )
    )

  const most = budget(5, 4)
  /** How many wait, and which of them are interrupted. */
  const waiting = [[most, []], [4, [0]], [most, [1]], [4, [2]], [most, [most - 1]], [most - 1, [0, 1]]] as const
  for (const [many, interrupted] of waiting) {
    it(`${many} that wait for a quota, ${interrupted.length === 0 ? "none" : interrupted.join(" and ")} interrupted meanwhile`, () => {
      const schedules = everySchedule((world) => {
        const quota = valueOf(
          new World(),
          RetryQuota.make({ capacity: 3, initial: 2, refillPerSecond: 1000, onExceeded: "wait" })
        )
        const costs = [[2, "giveBack"], [3, "spend"], [1, "giveBack"], [3, "giveBack"], [2, "spend"]] as const
        const fibers = costs.slice(0, many).map(([cost, how]) => world.fork(using(quota, cost, how)))
        for (const target of interrupted) {
          world.fork(Effect.andThen(Effect.yieldNow, Effect.sync(() => fibers[target]!.interruptUnsafe())))
        }
        return () => {
          world.settle()
          world.advance(30)
          if (fibers.some((fiber) => fiber.pollUnsafe() === undefined)) throw new Error("somebody waits for ever")
          const balance = valueOf(world, quota.balance)
          if (balance !== 3) throw new Error(`the balance is ${balance}`)
          if (world.asleep > 0) throw new Error("a timer is left")
        }
      })
      assert.isAtLeast(schedules, budget(700, 20))
    })
  }

  for (const interrupted of [[0], [1, 2]]) {
    it(`${budget(4, 3)} that wait for a limiter whose rate changes, ${interrupted.join(" and ")} interrupted meanwhile`, () => {
      const schedules = everySchedule((world) => {
        const limiter = valueOf(world, AdaptiveRateLimiter.make())
        valueOf(world, limiter.update(true))
        let granted = 0
        const fibers = Array.from(
          { length: budget(4, 3) },
          () =>
            world.fork(Effect.andThen(Effect.yieldNow, Effect.andThen(limiter.acquire, Effect.sync(() => granted++))))
        )
        world.fork(Effect.andThen(Effect.yieldNow, limiter.update(false)))
        for (const target of interrupted) {
          world.fork(Effect.andThen(Effect.yieldNow, Effect.sync(() => fibers[target]!.interruptUnsafe())))
        }
        return () => {
          world.settle()
          world.advance(8000)
          if (fibers.some((fiber) => fiber.pollUnsafe() === undefined)) throw new Error("somebody waits for ever")
          if (granted !== fibers.length - interrupted.length) throw new Error(`${granted} were granted`)
          if (valueOf(world, limiter.state).waiting > 0 || world.asleep > 0) throw new Error("something is left")
        }
      })
      assert.isAtLeast(schedules, budget(500, 50))
    })
  }
})
