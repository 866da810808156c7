/** The line of those that wait for a gate. */
import { assert, describe, it } from "@effect/vitest"
import { type Criticality, CurrentCriticality } from "effect-retry/Criticality"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Scheduler from "effect/Scheduler"
import * as TestClock from "effect/testing/TestClock"
import { type Linked, List } from "../../src/internal/linkedList.ts"
import { Line, type LineOptions } from "../../src/internal/waitingLine.ts"
import { countedClock } from "../reliability/utils/clocks.ts"

/** A line for places that are given by hand. */
const subject = (options: Partial<LineOptions<string, void>> = {}) =>
  Effect.gen(function*() {
    const clock = yield* countedClock
    const context = Context.make(Clock.Clock, clock.clock)
    const log: Array<string> = []
    const room = { places: 0 }
    const line = new Line<string>({
      order: "fifo",
      maxWaiters: Infinity,
      maxWaitMillis: () => 250,
      opensInMillis: () => Infinity,
      isOpen: () => room.places > 0,
      refused: (reason, nowMillis) => `${reason} at ${nowMillis}`,
      ...options
    })
    const wait = (name: string, criticality: Criticality = "normal") =>
      line.wait(Context.add(context, CurrentCriticality, criticality), () => {
        room.places--
        log.push(name)
      }).pipe(
        Effect.catch((refusal) => Effect.sync(() => log.push(`${name} ${refusal}`))),
        clock.provide
      )
    const joins = (name: string, criticality?: Criticality) =>
      Effect.forkChild(wait(name, criticality), { startImmediately: true })
    const admit = (places: number) => {
      room.places = places
      line.admit({ nowMillis: 0 })
    }
    return { admit, clock, joins, line, log, room, wait }
  })

describe("a line", () => {
  it.effect("treats an unknown criticality as normal", () =>
    Effect.gen(function*() {
      const { admit, joins, log } = yield* subject({ maxWaiters: 4 })
      const given = ["sheddable", "high", "normal", "toString", "critical"]
      for (const name of given) yield* joins(name, name as Criticality)
      yield* TestClock.adjust(0)
      admit(4)
      assert.deepStrictEqual(log, ["sheddable queue-full at 0", "critical", "high", "normal", "toString"])
    }))

  it.effect("refuses each after its own wait, whatever matters more or less than it", () =>
    Effect.gen(function*() {
      const orders: ReadonlyArray<ReadonlyArray<Criticality>> = [
        ["critical", "normal", "sheddable"],
        ["sheddable", "normal", "critical"],
        ["normal", "sheddable", "critical"],
        ["normal", "critical", "sheddable"]
      ]
      for (const order of orders) {
        const began = yield* Clock.currentTimeMillis
        const { joins, log } = yield* subject({ refused: (_, nowMillis) => `${nowMillis - began}` })
        for (const criticality of order) {
          yield* joins(criticality, criticality)
          yield* TestClock.adjust(100)
        }
        yield* TestClock.adjust(1000)
        assert.deepStrictEqual(log, order.map((criticality, place) => `${criticality} ${250 + 100 * place}`))
      }
    }))

  it.effect("of those that came at the same moment, refuses what matters more first", () =>
    Effect.gen(function*() {
      const { joins, log } = yield* subject()
      for (const criticality of ["sheddable", "critical", "normal"] as const) yield* joins(criticality, criticality)
      yield* TestClock.adjust(250)
      assert.deepStrictEqual(log, ["critical full at 250", "normal full at 250", "sheddable full at 250"])
    }))

  it.effect("needs one timer for any number", () =>
    Effect.gen(function*() {
      const { admit, clock, joins, line, log } = yield* subject()
      for (let waiter = 0; waiter < 20; waiter++) {
        yield* joins(String(waiter), (["normal", "critical", "sheddable"] as const)[waiter % 3]!)
        yield* TestClock.adjust(1)
      }
      assert.deepStrictEqual([clock.most, clock.asleep], [1, 1])
      admit(5)
      yield* TestClock.adjust(0)
      assert.deepStrictEqual([log.length, clock.asleep, line.size], [5, 1, 15])
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual([log.length, clock.most, clock.asleep, line.size], [20, 1, 0, 0])
    }))

  it.effect("one that goes before the one with the timer passes when it can, not when the other could", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const clock = yield* Clock.Clock
      const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
      // Each waits until a moment of its own.
      const line = new Line<string, number>({
        order: "fifo",
        maxWaiters: 10,
        maxWaitMillis: () => 1000,
        opensInMillis: (nowMillis, atMillis) => Math.max(0, atMillis - nowMillis),
        isOpen: ({ nowMillis }, atMillis) => nowMillis >= atMillis,
        refused: (reason) => reason
      })
      const joins = (name: string, criticality: Criticality, atMillis: number) =>
        Effect.forkChild(
          line.wait(
            Context.make(Clock.Clock, clock).pipe(Context.add(CurrentCriticality, criticality)),
            () => log.push(`${name} at ${now()}`),
            atMillis
          ),
          { startImmediately: true }
        )
      yield* joins("normal", "normal", 500)
      yield* joins("critical", "critical", 100)
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(log, ["critical at 100"])
      yield* TestClock.adjust(400)
      assert.deepStrictEqual(log, ["critical at 100", "normal at 500"])
    }))

  it.effect("takes other options: waiters keep their time, and the next passes by the new order", () =>
    Effect.gen(function*() {
      const { admit, joins, line, log, room } = yield* subject()
      for (const name of "abc") yield* joins(name)
      line.change({ order: "lifo", maxWaiters: 4, maxWaitMillis: () => 100 })
      for (const name of "de") yield* joins(name)
      assert.deepStrictEqual(log.splice(0), ["e queue-full at 0"])
      admit(2)
      assert.deepStrictEqual(log.splice(0), ["d", "c"])
      yield* TestClock.adjust(249)
      assert.deepStrictEqual([log.splice(0), line.size], [[], 2])
      // The one with the timer asks again.
      room.places = 1
      line.change({ order: "fifo" })
      yield* TestClock.adjust(0)
      assert.deepStrictEqual(log.splice(0), ["a"])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(log, ["b full at 250"])
    }))

  it.live("the next takes over the timer while it goes to sleep, whatever the step", () =>
    Effect.gen(function*() {
      const sizes: Array<number> = []
      for (let at = 1; at <= 60; at++) {
        const { clock, line, wait } = yield* subject({ maxWaitMillis: () => 1e9 })
        const first = Effect.runFork(wait("first"))
        let steps = 0
        const scheduler = new Scheduler.MixedScheduler()
        const leaving: Scheduler.Scheduler = {
          executionMode: scheduler.executionMode,
          makeDispatcher: () => scheduler.makeDispatcher(),
          shouldYield: (fiber) => {
            if (++steps !== at) return scheduler.shouldYield(fiber)
            queueMicrotask(() => {
              sizes.push(line.size)
              first.interruptUnsafe()
            })
            return true
          }
        }
        const next = Effect.runFork(Effect.provideService(wait("next"), Scheduler.Scheduler, leaving))
        for (let turn = 0; turn < 5; turn++) {
          yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        }
        assert.strictEqual(clock.asleep, 1, `step ${at}`)
        for (const one of [first, next]) one.interruptUnsafe()
      }
      assert.includeMembers(sizes, [1, 2])
    }))

  /** Runs `meanwhile` where a fiber yields at this step, before the fiber goes on. */
  const yieldingAt = (at: number, meanwhile: () => void): Scheduler.Scheduler => {
    const scheduler = new Scheduler.MixedScheduler()
    let steps = 0
    return {
      executionMode: scheduler.executionMode,
      makeDispatcher: () => scheduler.makeDispatcher(),
      shouldYield: (fiber) => {
        if (++steps !== at) return scheduler.shouldYield(fiber)
        queueMicrotask(meanwhile)
        return true
      }
    }
  }
  const settled = Effect.promise(async () => {
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
  })

  it.live("holds no more than maxWaiters, whatever the step in which another send comes", () =>
    Effect.gen(function*() {
      const sizes = new Set<number>()
      for (let at = 1; at <= 60; at++) {
        const { line, log, wait } = yield* subject({ maxWaitMillis: () => 1e9, maxWaiters: 1 })
        let other: Fiber.Fiber<unknown> | undefined
        const scheduler = yieldingAt(at, () => {
          other = Effect.runFork(wait("other"))
        })
        const one = Effect.runFork(Effect.provideService(wait("one"), Scheduler.Scheduler, scheduler))
        yield* settled
        sizes.add(line.size)
        if (other !== undefined) assert.strictEqual(log.length, 1, `step ${at}`)
        for (const fiber of [one, other]) fiber?.interruptUnsafe()
      }
      assert.deepStrictEqual([...sizes], [1])
    }))

  it.live("a refused send does not pass, whatever the step in which a place comes free", () =>
    Effect.gen(function*() {
      const logs = new Set<string>()
      for (let at = 1; at <= 60; at++) {
        const { admit, log, wait } = yield* subject({ maxWaitMillis: () => 0, refused: (reason) => reason })
        const scheduler = yieldingAt(at, () => admit(1))
        yield* Effect.promise(() =>
          Effect.runPromise(Effect.provideService(wait("one"), Scheduler.Scheduler, scheduler))
        )
        logs.add(log.join())
      }
      assert.deepStrictEqual([...logs], ["one full", "one"])
    }))

  for (const [what, waiters] of [["alone", 0], ["behind another", 1]] as const) {
    for (const displaced of [false, true]) {
      it.live(
        `${what}, one whose wait ends while it goes to sleep ${displaced ? "is refused" : "passes"}, whatever the step`,
        () =>
          Effect.gen(function*() {
            const sizes: Array<number> = []
            for (let at = 1; at <= 60; at++) {
              const { line, log, room, wait } = yield* subject({ maxWaitMillis: () => 1e9, maxWaiters: waiters + 1 })
              const others = Array.from({ length: waiters }, () => Effect.runFork(wait("other")))
              let steps = 0
              let size: number | undefined
              const scheduler = new Scheduler.MixedScheduler()
              const ending: Scheduler.Scheduler = {
                executionMode: scheduler.executionMode,
                makeDispatcher: () => scheduler.makeDispatcher(),
                shouldYield: (fiber) => {
                  if (++steps !== at) return scheduler.shouldYield(fiber)
                  // Before the fiber that yields here goes on.
                  queueMicrotask(() => {
                    sizes.push(size = line.size)
                    if (displaced) {
                      others.push(Effect.runFork(wait("critical", "critical")))
                    } else {
                      room.places = 2
                      line.admit({ nowMillis: 0 })
                    }
                  })
                  return true
                }
              }
              const fiber = Effect.runFork(Effect.provideService(wait("late"), Scheduler.Scheduler, ending))
              for (let turn = 0; turn < 5; turn++) {
                yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
              }
              if (size !== undefined && size > waiters) {
                assert.isDefined(fiber.pollUnsafe(), `step ${at}`)
                assert.match(log.join(), displaced ? /late queue-full/ : /late/)
              }
              for (const one of [fiber, ...others]) one.interruptUnsafe()
            }
            assert.isAbove(Math.max(...sizes), waiters)
          })
      )
    }
  }
})

describe("a list", () => {
  class Item implements Linked<Item> {
    list: List<any> | undefined = undefined
    previous: Item | undefined = undefined
    next: Item | undefined = undefined
  }
  const chain = (list: List<Item>) => {
    const items: Array<Item> = []
    for (let item = list.first; item !== undefined; item = item.next) items.push(item)
    return items
  }

  it("law: whatever is appended and removed, it holds the rest in order", () => {
    const list = new List<Item>()
    const items = Array.from({ length: 6 }, () => new Item())
    let held: Array<Item> = []
    let seed = 7
    for (let step = 0; step < 500; step++) {
      const item = items[(seed = seed * 48271 % 2147483647) % items.length]!
      if (held.includes(item)) {
        assert.isTrue(list.remove(item))
        held = held.filter((other) => other !== item)
        assert.deepStrictEqual([item.list, item.previous, item.next], [undefined, undefined, undefined])
      } else {
        assert.isFalse(list.remove(item))
        list.append(item)
        held.push(item)
      }
      assert.isTrue(chain(list).every((one, place) => one === held[place]))
      assert.deepStrictEqual([list.size, chain(list).length, list.last === held.at(-1)], [
        held.length,
        held.length,
        true
      ])
    }
  })

  it("removes no item of another list", () => {
    const [one, other] = [new List<Item>(), new List<Item>()]
    const item = new Item()
    one.append(item)
    assert.isFalse(other.remove(item))
    assert.deepStrictEqual([one.size, other.size], [1, 0])
  })
})
