import { assert, describe, it } from "@effect/vitest"
import { InvalidOption, RetryQuota, RetryQuotaStore } from "effect-retry"
import * as RetryBudget from "effect-retry/RetryBudget"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { invalidOptionOf } from "../utils/call.ts"
import { sweep } from "../utils/sweep.ts"

const amount = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 50 }))

describe("RetryQuota", () => {
  describe("reserve", () => {
    it.effect("takes tokens until there are too few", () =>
      Effect.gen(function*() {
        const quota = yield* RetryQuota.make({ capacity: 12 })
        assert.isTrue(Option.isSome(yield* quota.reserve(5)))
        assert.isTrue(Option.isSome(yield* quota.reserve(5)))
        assert.isTrue(Option.isNone(yield* quota.reserve(5)))
        assert.strictEqual(yield* quota.balance, 2)
        assert.isTrue(Option.isSome(yield* quota.reserve(2)))
        assert.strictEqual(yield* quota.balance, 0)
      }))

    it.effect("has exactly 100 winners among 10,000 fibers at 500 tokens and cost 5", () =>
      Effect.gen(function*() {
        const quota = yield* RetryQuota.make()
        const taken = yield* Effect.forEach(Array.from({ length: 10_000 }), () => quota.reserve(5), {
          concurrency: "unbounded"
        })
        assert.strictEqual(taken.filter(Option.isSome).length, 100)
        assert.strictEqual(yield* quota.balance, 0)
      }))

    it.effect("settles a reservation once", () =>
      Effect.gen(function*() {
        const quota = yield* RetryQuota.make({ capacity: 10 })
        const first = Option.getOrThrow(yield* quota.reserve(4))
        assert.isTrue(yield* first.giveBack)
        assert.isFalse(yield* first.giveBack)
        assert.isFalse(yield* first.spend)
        assert.strictEqual(yield* quota.balance, 10)
        const second = Option.getOrThrow(yield* quota.reserve(4))
        assert.isTrue(yield* second.spend)
        assert.isFalse(yield* second.giveBack)
        assert.strictEqual(yield* quota.balance, 6)
      }))

    for (const cost of [NaN, -1, Infinity, 501, "5" as unknown as number]) {
      it.effect(`dies of a cost of ${String(cost)}, naming it`, () =>
        Effect.gen(function*() {
          const quota = yield* RetryQuota.make()
          const error = yield* invalidOptionOf(quota.reserve(cost))
          assert.deepStrictEqual([error.field, error.value], ["cost", cost])
          assert.strictEqual(yield* quota.balance, 500)
        }))
    }
  })

  describe("deposit", () => {
    it.effect("never goes above the capacity", () =>
      Effect.gen(function*() {
        const quota = yield* RetryQuota.make({ capacity: 10, initial: 9.5 })
        yield* quota.deposit(0.4)
        assert.closeTo(yield* quota.balance, 9.9, 1e-12)
        yield* quota.deposit(100)
        assert.strictEqual(yield* quota.balance, 10)
      }))

    it.effect("adds fractions without loss: ten times 0.1 pay for 1", () =>
      Effect.gen(function*() {
        const quota = yield* RetryQuota.make({ capacity: 10, initial: 0 })
        for (let i = 0; i < 10; i++) yield* quota.deposit(0.1)
        assert.isTrue(Option.isSome(yield* quota.reserve(1)))
        assert.isAtLeast(yield* quota.balance, 0)
      }))

    it.effect("dies of a negative number of tokens", () =>
      Effect.gen(function*() {
        const quota = yield* RetryQuota.make()
        const error = yield* invalidOptionOf(quota.deposit(-1))
        assert.strictEqual(error.field, "tokens")
      }))
  })

  it.effect.prop("law: the balance stays from 0 to the capacity", [
    Schema.Array(Schema.Tuple([Schema.Boolean, amount]))
  ], ([
    steps
  ]) =>
    Effect.gen(function*() {
      const quota = yield* RetryQuota.make({ capacity: 50, initial: 25 })
      let expected = 25
      for (const [isReserve, tokens] of steps) {
        if (isReserve) {
          const taken = yield* quota.reserve(tokens)
          if (Option.isSome(taken)) expected -= tokens
        } else {
          yield* quota.deposit(tokens)
          expected = Math.min(50, expected + tokens)
        }
        const balance = yield* quota.balance
        assert.isAtLeast(balance, 0)
        assert.isAtMost(balance, 50)
        assert.closeTo(balance, expected, 1e-6)
      }
    }))

  describe("refill", () => {
    it.effect("refills over time, up to the capacity", () =>
      Effect.gen(function*() {
        const quota = yield* RetryQuota.make({ capacity: 10, initial: 0, refillPerSecond: 2 })
        yield* TestClock.adjust("1500 millis")
        assert.closeTo(yield* quota.balance, 3, 1e-9)
        yield* TestClock.adjust("100 days")
        assert.strictEqual(yield* quota.balance, 10)
      }))

    it.effect("is not moved by a step of the wall clock", () =>
      Effect.gen(function*() {
        yield* TestClock.adjust("1 hour")
        const quota = yield* RetryQuota.make({ capacity: 10, initial: 0, refillPerSecond: 1 })
        yield* TestClock.setTime(0)
        yield* TestClock.adjust("2 seconds")
        assert.closeTo(yield* quota.balance, 2, 1e-9)
      }))
  })

  describe("onExceeded: wait", () => {
    const waiting = RetryQuota.make({ capacity: 10, initial: 0, refillPerSecond: 1, onExceeded: "wait" })

    it.effect("waits for the refill, to the millisecond", () =>
      Effect.gen(function*() {
        const quota = yield* waiting
        const fiber = yield* Effect.forkChild(quota.reserve(3))
        yield* TestClock.adjust("2999 millis")
        assert.isUndefined(fiber.pollUnsafe())
        yield* TestClock.adjust("1 millis")
        assert.isTrue(Option.isSome(yield* Fiber.join(fiber)))
        assert.closeTo(yield* quota.balance, 0, 1e-9)
      }))

    it.effect("serves first come, first served, whatever they cost, and loses no refill", () =>
      Effect.gen(function*() {
        const quota = yield* waiting
        const served: Array<string> = []
        for (const [name, cost] of [["big", 8], ["small", 1], ["middle", 3]] as const) {
          yield* Effect.forkChild(Effect.tap(quota.reserve(cost), () => Effect.sync(() => served.push(name))))
          yield* Effect.yieldNow
        }
        yield* TestClock.adjust("7999 millis")
        assert.deepStrictEqual(served, [])
        yield* TestClock.adjust("1 millis")
        assert.deepStrictEqual(served, ["big"])
        yield* TestClock.adjust("1 seconds")
        assert.deepStrictEqual(served, ["big", "small"])
        yield* TestClock.adjust("2999 millis")
        assert.deepStrictEqual(served, ["big", "small"])
        yield* TestClock.adjust("1 millis")
        assert.deepStrictEqual(served, ["big", "small", "middle"])
      }))

    it.effect("loses no refill to whole milliseconds, nor to a timer that comes late", () =>
      Effect.gen(function*() {
        const quota = yield* RetryQuota.make({ capacity: 10, initial: 0, refillPerSecond: 3, onExceeded: "wait" })
        const served: Array<number> = []
        for (let i = 0; i < 6; i++) {
          const reserved = Effect.andThen(
            quota.reserve(10),
            Effect.map(Clock.currentTimeMillis, (now) => served.push(now))
          )
          yield* Effect.forkChild(reserved)
          yield* Effect.yieldNow
        }
        yield* TestClock.adjust("21 seconds")
        assert.deepStrictEqual(served, [3334, 6667, 10_000, 13_334, 16_667, 20_000])
        assert.closeTo(yield* quota.balance, 3, 1e-9)
      }))

    it.effect("lets no one overtake, even if there are tokens for the late one", () =>
      Effect.gen(function*() {
        const quota = yield* waiting
        const big = yield* Effect.forkChild(quota.reserve(5))
        yield* TestClock.adjust("3 seconds")
        const small = yield* Effect.forkChild(quota.reserve(1))
        yield* TestClock.adjust(0)
        assert.isUndefined(small.pollUnsafe())
        yield* TestClock.adjust("2 seconds")
        assert.isDefined(big.pollUnsafe())
        assert.isUndefined(small.pollUnsafe())
        yield* TestClock.adjust("1 seconds")
        assert.isDefined(small.pollUnsafe())
      }))

    it.effect("serves the head early when a deposit comes in", () =>
      Effect.gen(function*() {
        const quota = yield* waiting
        const fiber = yield* Effect.forkChild(quota.reserve(5))
        yield* TestClock.adjust("1 seconds")
        yield* quota.deposit(4)
        yield* TestClock.adjust(0)
        assert.isDefined(fiber.pollUnsafe())
      }))

    it.effect("lets those behind move up when the head is interrupted", () =>
      Effect.gen(function*() {
        const quota = yield* waiting
        const head = yield* Effect.forkChild(quota.reserve(9))
        yield* TestClock.adjust(0)
        const next = yield* Effect.forkChild(quota.reserve(1))
        yield* TestClock.adjust("2 seconds")
        assert.isUndefined(next.pollUnsafe())
        yield* Fiber.interrupt(head)
        yield* TestClock.adjust(0)
        assert.isDefined(next.pollUnsafe())
        assert.closeTo(yield* quota.balance, 1, 1e-9)
      }))

    it.effect("loses no token to an interruption, at any step it comes", () =>
      Effect.gen(function*() {
        const quota = yield* RetryQuota.make({ capacity: 1e6, initial: 0, refillPerSecond: 1, onExceeded: "wait" })
        const clock = yield* Clock.Clock
        let taken = 0
        let handedOver = 0
        const asking = Effect.suspend(() => {
          const ask = quota.store.reserve(2, clock) as RetryQuotaStore.Ask
          return ask(Duration.infinity, ({ cost }) => {
            handedOver++
            taken += cost
          })
        })
        const steps = yield* sweep(
          asking,
          () =>
            Effect.gen(function*() {
              const flowedIn = (yield* Clock.currentTimeMillis) / 1000
              const rest = yield* quota.balance
              assert.closeTo(rest + taken, flowedIn, 1e-6)
              yield* Effect.orDie(quota.reserve(rest))
              taken += rest
            })
        )
        assert.isAbove(handedOver, 1)
        assert.isAbove(steps, handedOver)
      }))
  })

  it.effect("layerUnlimited never runs out", () =>
    Effect.gen(function*() {
      for (let i = 0; i < 1000; i++) assert.isTrue(Option.isSome(yield* RetryQuota.reserve(1e12)))
      assert.strictEqual(yield* RetryQuota.balance, Infinity)
      assert.strictEqual((yield* invalidOptionOf(RetryQuota.reserve(Infinity))).field, "cost")
      assert.strictEqual(yield* RetryQuota.balance, Infinity)
    }).pipe(Effect.provide(RetryQuota.layerUnlimited)))

  it.effect.each(
    [
      ["in memory", RetryBudget.bucket({ capacity: 7 }), 7],
      ["that counts retries", RetryBudget.inFlight({ atLeast: 2, share: 0 }), 2]
    ] as const
  )("pays from a store that is provided: %s", ([, store, balance]) =>
    Effect.gen(function*() {
      assert.strictEqual(yield* RetryQuota.balance, balance)
      assert.isTrue(Option.isSome(yield* RetryQuota.reserve(1)))
      assert.strictEqual(yield* RetryQuota.balance, balance - 1)
    }).pipe(Effect.provide(
      Layer.provide(RetryQuota.layerStore(RetryQuotaStore.Store), Layer.effect(RetryQuotaStore.Store, store))
    )))

  it.effect("gives each layer a quota of its own", () =>
    Effect.gen(function*() {
      const [first, second] = [RetryQuota.layer({ capacity: 10 }), RetryQuota.layer({ capacity: 10 })]
      const drained = Effect.andThen(RetryQuota.reserve(10), RetryQuota.balance)
      assert.strictEqual(yield* Effect.provide(drained, first), 0)
      assert.strictEqual(yield* Effect.provide(RetryQuota.balance, second), 10)
    }))

  describe("state, set and restore", () => {
    const wait = { capacity: 10, initial: 0, refillPerSecond: 0.001, onExceeded: "wait" } as const

    it.effect("shows tokens and capacity, and sets tokens from 0 to the capacity", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* RetryQuota.state, { tokens: 10, capacity: 10 })
        for (const [tokens, set] of [[3.5, 3.5], [-1, 0], [11, 10], [-Infinity, 0], [Infinity, 10]] as const) {
          yield* RetryQuota.set(tokens)
          assert.deepStrictEqual(yield* RetryQuota.state, { tokens: set, capacity: 10 })
        }
        const { constructorName, field, value } = yield* invalidOptionOf(RetryQuota.set(NaN))
        assert.deepStrictEqual([constructorName, field, value], ["RetryQuota.set", "tokens", NaN])
      }).pipe(Effect.provide(RetryQuota.layer({ capacity: 10 }))))

    it.effect("serves those who wait, in their order, as far as the tokens that are set go", () =>
      Effect.gen(function*() {
        const served: Array<number> = []
        for (const cost of [4, 3, 2]) {
          yield* Effect.forkChild(Effect.andThen(RetryQuota.reserve(cost), Effect.sync(() => served.push(cost))))
          yield* Effect.yieldNow
        }
        yield* RetryQuota.set(8)
        for (let turn = 0; turn < 10; turn++) yield* Effect.yieldNow
        assert.deepStrictEqual(served, [4, 3])
        assert.strictEqual(yield* RetryQuota.balance, 1)
      }).pipe(Effect.provide(RetryQuota.layer(wait))))

    it.effect("deposits or takes the difference in a store that cannot set its tokens", () =>
      Effect.gen(function*() {
        const { store } = yield* RetryQuota.make({ capacity: 10 })
        const quota = RetryQuota.fromStore({
          capacity: 10,
          successIncrement: 0,
          firstAttemptCost: 0,
          onExceeded: "stop",
          reserve: (cost, clock) => store.reserve(cost, clock),
          deposit: (tokens, clock) => store.deposit(tokens, clock),
          balance: (clock) => store.balance(clock)
        })
        for (const [tokens, set] of [[4, 4], [7, 7], [99, 10], [-1, 0]] as const) {
          yield* quota.set(tokens)
          assert.deepStrictEqual(yield* quota.state, { tokens: set, capacity: 10 })
        }
      }))

    it.effect("takes nothing from a store that counts retries, and sets all of several that must grant", () =>
      Effect.gen(function*() {
        const counting = RetryQuota.fromStore(yield* RetryBudget.inFlight())
        const before = yield* counting.balance
        yield* counting.set(1)
        assert.strictEqual(yield* counting.balance, before)
        const [a, b] = yield* Effect.all([RetryQuota.make({ capacity: 10 }), RetryQuota.make({ capacity: 20 })])
        const both = RetryQuota.fromStore(yield* RetryBudget.all([Effect.succeed(a.store), Effect.succeed(b.store)]))
        yield* both.set(15)
        assert.deepStrictEqual([yield* a.balance, yield* b.balance, yield* both.balance], [10, 10, 10])
        yield* both.set(4)
        assert.deepStrictEqual([yield* a.balance, yield* b.balance], [4, 4])
      }))

    it.effect("begins with a saved state instead of the initial tokens, or with its share of another capacity", () =>
      Effect.gen(function*() {
        const begun = (options: RetryQuota.Options) =>
          Effect.map(RetryQuota.make(options), ({ store }) => store.balance(clock))
        const clock = yield* Clock.Clock
        const quota = yield* RetryQuota.make({ capacity: 10, initial: 0.1 + 0.2 })
        const saved: RetryQuota.State = JSON.parse(JSON.stringify(yield* quota.state))
        assert.strictEqual(yield* begun({ capacity: 10, restore: saved }), 0.1 + 0.2)
        assert.strictEqual(yield* begun({ capacity: 10, initial: 9, restore: { tokens: 0, capacity: 10 } }), 0)
        assert.strictEqual(yield* begun({ capacity: 20, restore: { tokens: 5, capacity: 10 } }), 10)
        assert.strictEqual(yield* begun({ restore: { tokens: 49, capacity: 49 } }), 500)
        assert.strictEqual(yield* begun({ restore: undefined }), 500)
      }))

    it("rejects a saved state that cannot be, naming the field", () => {
      for (
        const [restore, field, value] of [
          [{ tokens: 11, capacity: 10 }, "restore.tokens", 11],
          [{ tokens: -1, capacity: 10 }, "restore.tokens", -1],
          [{ tokens: "5", capacity: 10 }, "restore.tokens", "5"],
          [{ capacity: 10 }, "restore.tokens", undefined],
          [{ tokens: 0, capacity: 0 }, "restore.capacity", 0],
          [{ tokens: null, capacity: null }, "restore.capacity", null],
          [{ tokens: 5, capacity: 10, waiting: 0 }, "option", "restore.waiting"],
          [null, "restore", null],
          [[5, 10], "restore", [5, 10]]
        ] as const
      ) {
        try {
          RetryQuota.layer({ restore: restore as never })
          assert.fail("accepted")
        } catch (error) {
          assert.instanceOf(error, InvalidOption)
          const { constructorName, field: found, value: given } = error as InvalidOption
          assert.deepStrictEqual([constructorName, found, given], ["RetryQuota.make", field, value])
        }
      }
    })
  })

  describe("layerConfig", () => {
    const state = (env: Record<string, string>) =>
      RetryQuota.RetryQuota.use((quota) =>
        Effect.map(quota.balance, (balance) => [quota.capacity, balance, quota.onExceeded])
      ).pipe(
        Effect.provide(RetryQuota.layerConfig({
          capacity: Config.Finite("CAPACITY").pipe(Config.withDefault(500)),
          initial: Config.Finite("INITIAL"),
          refillPerSecond: Config.succeed(1),
          onExceeded: Config.Literals(["stop", "wait"], "ON_EXCEEDED")
        })),
        Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(env))
      )

    it.effect("takes its options from configuration", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* state({ INITIAL: "7", ON_EXCEEDED: "wait" }), [500, 7, "wait"])
        assert.deepStrictEqual(yield* state({ CAPACITY: "9", INITIAL: "0", ON_EXCEEDED: "stop" }), [9, 0, "stop"])
      }))

    it.effect("takes all options from one setting", () =>
      Effect.gen(function*() {
        const balance = RetryQuota.balance.pipe(
          Effect.provide(RetryQuota.layerConfig(Config.map(Config.Finite("CAPACITY"), (capacity) => ({ capacity })))),
          Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown({ CAPACITY: "12" }))
        )
        assert.strictEqual(yield* balance, 12)
      }))

    it.effect("fails with a typed error for an impossible option, and for a missing one", () =>
      Effect.gen(function*() {
        const impossible = yield* Effect.flip(state({ CAPACITY: "9", INITIAL: "10", ON_EXCEEDED: "stop" }))
        assert.instanceOf(impossible, InvalidOption)
        assert.deepStrictEqual(
          [impossible.constructorName, impossible.field, impossible.value],
          ["RetryQuota.make", "initial", 10]
        )
        assert.instanceOf(yield* Effect.flip(state({ INITIAL: "1" })), Config.ConfigError)
        assert.instanceOf(yield* Effect.flip(state({ INITIAL: "1", ON_EXCEEDED: "never" })), Config.ConfigError)
      }))
  })

  describe("refuses", () => {
    const bad: ReadonlyArray<readonly [string, RetryQuota.Options]> = [
      ["capacity", { capacity: NaN }],
      ["capacity", { capacity: 0 }],
      ["capacity", { capacity: -1 }],
      ["capacity", { capacity: Infinity }],
      ["capacity", { capacity: "500" as unknown as number }],
      ["initial", { capacity: 10, initial: 11 }],
      ["initial", { initial: -1 }],
      ["initial", { initial: NaN }],
      ["refillPerSecond", { refillPerSecond: -1 }],
      ["refillPerSecond", { refillPerSecond: Infinity }],
      ["refillPerSecond", { onExceeded: "wait" }],
      ["firstAttemptCost", { firstAttemptCost: NaN }],
      ["firstAttemptCost", { capacity: 10, firstAttemptCost: 11 }],
      ["successIncrement", { successIncrement: -1 }],
      ["successIncrement", { capacity: 10, successIncrement: 11 }],
      ["onExceeded", { onExceeded: "sometimes" as "wait" }]
    ]
    for (const [field, options] of bad) {
      it(`${field} in ${JSON.stringify(options)}`, () => {
        for (const make of [RetryQuota.make, RetryQuota.layer]) {
          try {
            make(options)
            assert.fail("made it")
          } catch (error) {
            assert.instanceOf(error, InvalidOption)
            assert.strictEqual(error.field, field)
            assert.include(error.message, field)
          }
        }
      })
    }
  })
})
