import { assert, describe, it } from "@effect/vitest"
import { AdaptiveRateLimiter, RetryQuota } from "effect-retry"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { LimiterModel, QuotaModel } from "./utils/models.ts"
import { Chance } from "./utils/random.ts"
import { World } from "./utils/world.ts"

const resultOf = <A, E>(fiber: Fiber.Fiber<A, E>): A | undefined => {
  const exit = fiber.pollUnsafe()
  return exit !== undefined && Exit.isSuccess(exit) ? exit.value : undefined
}

/** Runs an effect that ends immediately. */
const now = <A, E>(world: World, self: Effect.Effect<A, E>): A => {
  const fiber = world.fork(self)
  world.settle()
  const exit = fiber.pollUnsafe()
  if (exit === undefined || !Exit.isSuccess(exit)) throw new Error(`it has not ended well: ${String(exit)}`)
  return exit.value
}

/** Many times cheaper than the assertions of a library: there would be millions of them. */
const same = (what: string, actual: unknown, expected: unknown): void => {
  if (!Object.is(actual, expected)) throw new Error(`${what} is ${String(actual)}, not ${String(expected)}`)
}

const close = (what: string, actual: number, expected: number, tolerance: number): void => {
  if (!(Math.abs(actual - expected) <= tolerance)) throw new Error(`${what} is ${actual}, not ${expected}`)
}

const within = (what: string, actual: number, least: number, most: number): void => {
  if (!(actual >= least && actual <= most)) throw new Error(`${what} is ${actual}, not from ${least} to ${most}`)
}

interface Subject<Command> {
  readonly run: (command: Command) => void
  /** Throws where the model and the real one differ. */
  readonly compare: () => void
  /** After the last command: what must hold in the end. */
  readonly finish: () => void
}

const outcomeOf = <Command>(make: () => Subject<Command>, commands: ReadonlyArray<Command>): unknown => {
  try {
    const subject = make()
    for (const command of commands) {
      subject.run(command)
      subject.compare()
    }
    subject.finish()
    return undefined
  } catch (error) {
    return error
  }
}

/** The failing commands, without those that are not needed. */
const shrunk = <Command>(make: () => Subject<Command>, commands: ReadonlyArray<Command>): ReadonlyArray<Command> => {
  let failing = commands
  for (let size = Math.ceil(failing.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < failing.length;) {
      const fewer = [...failing.slice(0, at), ...failing.slice(at + size)]
      if (outcomeOf(make, fewer) === undefined) at += size
      else failing = fewer
    }
  }
  return failing
}

/** Draws commands for each seed, and runs the model and the real one side by side. */
const agrees = <Command>(
  seeds: number,
  make: (chance: Chance) => () => Subject<Command>,
  draw: (chance: Chance) => Command
): void => {
  for (let seed = 1; seed <= seeds; seed++) {
    const chance = new Chance(seed)
    const subject = make(chance)
    const commands = Array.from({ length: 60 }, () => draw(chance))
    if (outcomeOf(subject, commands) === undefined) continue
    const fewest = shrunk(subject, commands)
    assert.fail(`SEED=${seed}: ${JSON.stringify(fewest)}: ${String(outcomeOf(subject, fewest))}`)
  }
}

type QuotaCommand =
  | readonly ["reserve", cost: number]
  | readonly ["giveBack" | "spend" | "cancel", which: number]
  | readonly ["deposit", tokens: number]
  | readonly ["advance" | "stepWall", millis: number]

const quotaSubject = (options: { capacity: number; initial: number; perMilli: number; waits: boolean }) => () => {
  const world = new World()
  const model = new QuotaModel(options)
  const quota = now(
    world,
    RetryQuota.make({
      capacity: options.capacity,
      initial: options.initial,
      refillPerSecond: options.perMilli * 1000,
      onExceeded: options.waits ? "wait" : "stop"
    })
  )
  const fibers: Array<Fiber.Fiber<Option.Option<RetryQuota.Reservation>, unknown>> = []
  const refused = new Set<number>()
  const cancelled = new Set<number>()
  const reservation = (which: number) => {
    const fiber = fibers[which]
    return fiber === undefined ? undefined : Option.getOrUndefined(resultOf(fiber) ?? Option.none())
  }
  const settle = (how: "giveBack" | "spend", which: number) => {
    const held = reservation(which)
    const expected = model.settle(which, how)
    same(`${how} ${which}`, held === undefined ? false : now(world, held[how]), expected)
  }
  const cancel = (which: number) => {
    const fiber = fibers[which]
    if (fiber === undefined) return
    if (fiber.pollUnsafe() === undefined) cancelled.add(which)
    fiber.interruptUnsafe()
    model.cancel(which)
  }
  const commands: Readonly<Record<QuotaCommand[0], (argument: number) => void>> = {
    reserve: (cost) => {
      if (model.reserve(fibers.length, cost) === "refused") refused.add(fibers.length)
      fibers.push(world.fork(quota.reserve(cost)))
    },
    giveBack: (which) => settle("giveBack", which % (fibers.length + 1)),
    spend: (which) => settle("spend", which % (fibers.length + 1)),
    cancel: (which) => cancel(which % (fibers.length + 1)),
    deposit: (tokens) => {
      model.deposit(tokens)
      now(world, quota.deposit(tokens))
    },
    advance: (millis) => {
      model.advance(millis)
      world.advance(millis)
    },
    stepWall: (millis) => {
      world.wallMillis += millis
    }
  }
  const subject: Subject<QuotaCommand> = {
    run: ([command, argument]) => {
      commands[command](argument)
      world.settle()
    },
    compare: () => {
      const balance = now(world, quota.balance)
      within("the balance", balance, 0, options.capacity)
      close("the balance", balance, model.tokens, 1e-6)
      const waiting = fibers.flatMap((fiber, id) => fiber.pollUnsafe() === undefined ? [id] : [])
      same("who waits", waiting.join(), model.queue.map(({ id }) => id).join())
      within("the timers", world.asleep, 0, 1)
      for (const [id, fiber] of fibers.entries()) {
        const expected = fiber.pollUnsafe() !== undefined && !cancelled.has(id) && !refused.has(id)
        same(`the reservation of ${id}`, reservation(id) !== undefined, expected)
      }
    },
    finish: () => {
      // What is still held goes back; then waiters are served in the time that the refill takes.
      for (const id of Array.from(model.held.keys())) settle("giveBack", id)
      const wanted = model.queue.reduce((sum, { cost }) => sum + cost, 0)
      if (options.waits) {
        const millis = Math.ceil(wanted / options.perMilli)
        model.advance(millis)
        world.advance(millis)
        same("who still waits", fibers.filter((fiber) => fiber.pollUnsafe() === undefined).length, 0)
        subject.compare()
        for (const id of Array.from(model.held.keys())) settle("giveBack", id)
        subject.compare()
      }
      same("the timers", world.asleep, 0)
    }
  }
  return subject
}

const drawQuota = (chance: Chance): QuotaCommand => {
  const kind = chance.pick(
    [
      "reserve",
      "reserve",
      "reserve",
      "giveBack",
      "spend",
      "cancel",
      "deposit",
      "advance",
      "advance",
      "stepWall"
    ] as const
  )
  switch (kind) {
    case "reserve":
      return [kind, chance.below(9)]
    case "deposit":
      return [kind, chance.below(16) / 4]
    case "advance":
      return [kind, chance.below(chance.pick([3, 30, 300]))]
    case "stepWall":
      return [kind, (chance.below(3) - 1) * 3_600_000]
    default:
      return [kind, chance.below(40)]
  }
}

type LimiterCommand =
  | readonly ["acquire" | "succeed" | "throttle"]
  | readonly ["cancel", which: number]
  | readonly ["advance" | "stepWall", millis: number]

const limiterSubject = () => {
  const world = new World()
  const model = new LimiterModel()
  const limiter = now(world, AdaptiveRateLimiter.make())
  const granted: Array<number> = []
  const fibers: Array<Fiber.Fiber<unknown, unknown>> = []
  const update = (throttled: boolean) => {
    model.update(throttled)
    now(world, limiter.update(throttled))
  }
  const commands: Readonly<Record<LimiterCommand[0], (argument: number) => void>> = {
    acquire: () => {
      const id = fibers.length
      model.acquire(id)
      fibers.push(world.fork(Effect.andThen(limiter.acquire, Effect.sync(() => granted.push(id)))))
    },
    succeed: () => update(false),
    throttle: () => update(true),
    cancel: (which) => {
      fibers[which % (fibers.length + 1)]?.interruptUnsafe()
      model.cancel(which % (fibers.length + 1))
    },
    advance: (millis) => {
      model.advance(millis)
      world.advance(millis)
    },
    stepWall: (millis) => {
      world.wallMillis += millis
    }
  }
  const subject: Subject<LimiterCommand> = {
    run: ([command, argument = 0]) => {
      commands[command](argument)
      world.settle()
    },
    compare: () => {
      const state = now(world, limiter.state)
      for (const [name, value] of Object.entries(state)) {
        if (typeof value === "number") within(name, value, 0, Number.MAX_VALUE)
      }
      within("the capacity", state.capacity, 0, state.maxCapacity + 1e-9)
      same("enabled", state.enabled, model.enabled)
      same("who was granted, in which order,", granted.join(), model.granted.join())
      same("who waits", state.waiting, model.queue.length)
      for (
        const [what, actual, expected] of [
          ["fillRate", state.fillRate, model.fillRate],
          ["measuredTxRate", state.measuredTxRate, model.measured],
          ["lastMaxRate", state.lastMaxRate, model.lastMaxRate],
          ["maxCapacity", state.maxCapacity, model.maxTokens]
        ] as const
      ) close(what, actual, expected, 1e-9 * Math.max(1, expected))
      within("the timers", world.asleep, 0, 1)
    },
    finish: () => {
      // No waiter waits longer than the line ahead of it takes at the current rate.
      const millis = Math.ceil((model.queue.length + 1) / model.fillRate * 1000)
      model.advance(millis)
      world.advance(millis)
      subject.compare()
      same("who still waits", fibers.filter((fiber) => fiber.pollUnsafe() === undefined).length, 0)
      same("the timers", world.asleep, 0)
    }
  }
  return subject
}

const drawLimiter = (chance: Chance): LimiterCommand => {
  const kind = chance.pick(
    [
      "acquire",
      "acquire",
      "acquire",
      "succeed",
      "succeed",
      "throttle",
      "cancel",
      "advance",
      "advance",
      "stepWall"
    ] as const
  )
  switch (kind) {
    case "cancel":
      return [kind, chance.below(40)]
    case "advance":
      return [kind, chance.below(chance.pick([5, 200, 2500]))]
    case "stepWall":
      return [kind, (chance.below(3) - 1) * 3_600_000]
    default:
      return [kind]
  }
}

describe("the real ones do as their models do, over random commands", () => {
  it("a quota that refuses", () => {
    agrees(150, (chance) => {
      const capacity = 1 + chance.below(20)
      return quotaSubject({
        capacity,
        initial: chance.below(capacity + 1),
        perMilli: chance.pick([0, 0.25]),
        waits: false
      })
    }, drawQuota)
  })

  it("a quota that waits", () => {
    agrees(300, (chance) => {
      const capacity = 1 + chance.below(20)
      const perMilli = chance.pick([2, 1, 0.5, 0.25, 0.125])
      return quotaSubject({ capacity, initial: chance.below(capacity + 1), perMilli, waits: true })
    }, drawQuota)
  })

  it("an adaptive limiter", () => {
    agrees(200, () => limiterSubject, drawLimiter)
  })
})
