import { assert, describe } from "@effect/vitest"
import { attempt, awsStandard, InvalidOption, RetryQuota, RetryStrategy, withRetry } from "effect-retry"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import { constantRandom, scripted, Transient } from "./call.ts"

/** A store to be tested: how it is made, and how time passes for it. */
export interface Subject<R> {
  readonly make: (options?: RetryQuota.Options) => Effect.Effect<RetryQuota.Service, unknown, R | Scope.Scope>
  readonly elapse: (millis: number) => Effect.Effect<void>
  /** What a refill may be off by, in tokens: nothing under a test clock. */
  readonly slack: number
  /** `it.effect` or `it.live`, with what the store needs. */
  readonly test: (name: string, body: () => Effect.Effect<unknown, unknown, R | Scope.Scope>) => void
}

const drivers = {
  "Effect.retry": <A>(call: Effect.Effect<A, Transient>) => Effect.retry(attempt(call), awsStandard),
  "withRetry": <A>(call: Effect.Effect<A, Transient>) => withRetry(call, awsStandard),
  "RetryStrategy": <A>(call: Effect.Effect<A, Transient>) =>
    Effect.provide(RetryStrategy.request(call), RetryStrategy.layer(awsStandard))
}

/** Calls without a back-off: the chance is 0. */
const at = <A, E, R>(quota: RetryQuota.Service, call: Effect.Effect<A, E, R | RetryQuota.RetryQuota>) =>
  call.pipe(
    Effect.provideService(RetryQuota.RetryQuota, quota),
    Effect.provideService(Random.Random, constantRandom(0))
  )

/** What every store of a quota does, wherever it keeps the tokens. */
export const quotaContract = <R>(name: string, { elapse, make, slack, test }: Subject<R>): void => {
  describe(`the contract of a quota: ${name}`, () => {
    describe("reserve", () => {
      test("takes tokens until there are too few", () =>
        Effect.gen(function*() {
          const quota = yield* make({ capacity: 12 })
          assert.isTrue(Option.isSome(yield* quota.reserve(5)))
          assert.isTrue(Option.isSome(yield* quota.reserve(5)))
          assert.isTrue(Option.isNone(yield* quota.reserve(5)))
          assert.strictEqual(yield* quota.balance, 2)
          assert.isTrue(Option.isSome(yield* quota.reserve(2)))
          assert.strictEqual(yield* quota.balance, 0)
        }))

      test("has exactly 100 winners among 2,000 fibers at 500 tokens and cost 5", () =>
        Effect.gen(function*() {
          const quota = yield* make()
          const taken = yield* Effect.forEach(Array.from({ length: 2000 }), () => quota.reserve(5), {
            concurrency: "unbounded"
          })
          assert.strictEqual(taken.filter(Option.isSome).length, 100)
          assert.strictEqual(yield* quota.balance, 0)
        }))

      test("settles a reservation once", () =>
        Effect.gen(function*() {
          const quota = yield* make({ capacity: 10 })
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

      test("takes what another reservation has given back just before", () =>
        Effect.gen(function*() {
          const quota = yield* make({ capacity: 5 })
          for (let i = 0; i < 10; i++) {
            const taken = Option.getOrThrow(yield* quota.reserve(5))
            yield* taken.giveBack
          }
          assert.strictEqual(yield* quota.balance, 5)
        }))

      test("grants a cost of nothing though there is nothing", () =>
        Effect.gen(function*() {
          const quota = yield* make({ capacity: 5, initial: 0 })
          const nothing = Option.getOrThrow(yield* quota.reserve(0))
          assert.isTrue(yield* nothing.giveBack)
          assert.strictEqual(yield* quota.balance, 0)
        }))

      for (const cost of [NaN, -1, Infinity, 501]) {
        test(`fails for a cost of ${String(cost)}, naming it`, () =>
          Effect.gen(function*() {
            const quota = yield* make()
            const error = yield* Effect.flip(quota.reserve(cost))
            assert.instanceOf(error, InvalidOption)
            assert.deepStrictEqual([error.field, error.value], ["cost", cost])
            assert.strictEqual(yield* quota.balance, 500)
          }))
      }
    })

    describe("deposit", () => {
      test("never goes above the capacity", () =>
        Effect.gen(function*() {
          const quota = yield* make({ capacity: 10, initial: 9.5 })
          yield* quota.deposit(0.4)
          assert.closeTo(yield* quota.balance, 9.9, 1e-12)
          yield* quota.deposit(100)
          assert.strictEqual(yield* quota.balance, 10)
        }))

      test("adds fractions without loss: ten times 0.1 pay for 1", () =>
        Effect.gen(function*() {
          const quota = yield* make({ capacity: 10, initial: 0 })
          for (let i = 0; i < 10; i++) yield* quota.deposit(0.1)
          assert.isTrue(Option.isSome(yield* quota.reserve(1)))
          assert.isAtLeast(yield* quota.balance, 0)
        }))

      test("fails for a negative number of tokens", () =>
        Effect.gen(function*() {
          const quota = yield* make()
          const error = yield* Effect.flip(quota.deposit(-1))
          assert.strictEqual(error.field, "tokens")
        }))
    })

    test("keeps the balance from 0 to the capacity, whatever is taken and put in", () =>
      Effect.gen(function*() {
        const quota = yield* make({ capacity: 50, initial: 25 })
        let expected = 25
        const random = Random.withSeed(Random.nextIntBetween(0, 50), "quota")
        for (let step = 0; step < 60; step++) {
          const tokens = ((yield* random) * (step + 7)) % 51
          if (step % 2 === 0) {
            const taken = yield* quota.reserve(tokens)
            assert.strictEqual(Option.isSome(taken), tokens <= expected)
            if (Option.isSome(taken)) expected -= tokens
          } else {
            yield* quota.deposit(tokens)
            expected = Math.min(50, expected + tokens)
          }
          assert.closeTo(yield* quota.balance, expected, 1e-6)
        }
      }))

    test("refills over time, up to the capacity", () =>
      Effect.gen(function*() {
        const quota = yield* make({ capacity: 30, initial: 0, refillPerSecond: 100 })
        const before = yield* quota.balance
        yield* elapse(100)
        const after = yield* quota.balance
        assert.isAtLeast(after - before, 10 - 1e-6)
        assert.isAtMost(after - before, 10 + slack)
        yield* elapse(400)
        assert.strictEqual(yield* quota.balance, 30)
      }))

    describe("whenExhausted: wait", () => {
      const waiting = make({ capacity: 10, initial: 0, refillPerSecond: 50, whenExhausted: "wait" })

      test("waits for the refill", () =>
        Effect.gen(function*() {
          const quota = yield* waiting
          yield* quota.balance
          const fiber = yield* Effect.forkChild(quota.reserve(8))
          yield* elapse(120)
          assert.isUndefined(fiber.pollUnsafe())
          yield* elapse(60)
          assert.isTrue(Option.isSome(yield* Fiber.join(fiber)))
          assert.closeTo(yield* quota.balance, 1, 0.2 + slack)
        }))

      test("serves first come, first served, whatever they cost", () =>
        Effect.gen(function*() {
          const quota = yield* waiting
          yield* quota.balance
          const served: Array<string> = []
          const fibers: Array<Fiber.Fiber<unknown, unknown>> = []
          for (const [who, cost] of [["big", 8], ["small", 1], ["middle", 3]] as const) {
            fibers.push(
              yield* Effect.forkChild(Effect.tap(quota.reserve(cost), () => Effect.sync(() => served.push(who))))
            )
            yield* Effect.yieldNow
          }
          yield* elapse(100)
          assert.deepStrictEqual(served, [])
          yield* elapse(250)
          assert.deepStrictEqual(served, ["big", "small", "middle"])
          for (const fiber of fibers) yield* Fiber.join(fiber)
        }))

      test("an interrupted waiter leaves no trace", () =>
        Effect.gen(function*() {
          const quota = yield* waiting
          yield* quota.balance
          const first = yield* Effect.forkChild(quota.reserve(10))
          yield* Effect.yieldNow
          const second = yield* Effect.forkChild(quota.reserve(2))
          yield* elapse(60)
          yield* Fiber.interrupt(first)
          yield* elapse(40)
          assert.isTrue(Option.isSome(yield* Fiber.join(second)))
          assert.closeTo(yield* quota.balance, 3, 0.2 + slack)
        }))
    })

    for (const [driver, run] of Object.entries(drivers)) {
      describe(driver, () => {
        test("puts one token in for a call that needs no retry", () =>
          Effect.gen(function*() {
            const quota = yield* make({ initial: 100 })
            yield* at(quota, run(Effect.succeed("ok")))
            assert.strictEqual(yield* quota.balance, 101)
          }))

        test("gives the tokens of the last retry back, and leaves those of failed ones spent", () =>
          Effect.gen(function*() {
            const quota = yield* make({ initial: 100 })
            const call = scripted([new Transient(), new Transient()])
            const fiber = yield* Effect.forkChild(at(quota, run(call.effect)))
            yield* elapse(30)
            assert.strictEqual(yield* Fiber.join(fiber), "ok")
            assert.strictEqual(call.sends, 3)
            assert.strictEqual(yield* quota.balance, 95)
          }))

        test("stops when there are too few tokens, with the error of the call itself", () =>
          Effect.gen(function*() {
            const quota = yield* make({ initial: 9 })
            const errors = [new Transient(), new Transient(), new Transient()]
            const call = scripted(errors)
            const fiber = yield* Effect.forkChild(Effect.flip(at(quota, run(call.effect))))
            yield* elapse(30)
            assert.strictEqual(yield* Fiber.join(fiber), errors[1])
            assert.strictEqual(call.sends, 2)
            assert.strictEqual(yield* quota.balance, 4)
          }))

        test("takes the cost of a first attempt, and fails without it", () =>
          Effect.gen(function*() {
            const quota = yield* make({ capacity: 10, initial: 5, firstAttemptCost: 3, successIncrement: 0 })
            assert.strictEqual(yield* at(quota, run(Effect.succeed("ok"))), "ok")
            assert.strictEqual(yield* quota.balance, 2)
            let sends = 0
            const exit = yield* Effect.exit(at(quota, run(Effect.sync(() => ++sends))))
            // The request loop of a strategy makes the first attempt whatever the strategy says.
            assert.strictEqual(Exit.isSuccess(exit), driver === "RetryStrategy")
            assert.strictEqual(yield* quota.balance, 2)
          }))

        test("gives the tokens of a retry back that is interrupted in its back-off", () =>
          Effect.gen(function*() {
            const quota = yield* make({ initial: 100 })
            const call = run(Effect.fail(new Transient()))
            const fiber = yield* Effect.forkChild(
              call.pipe(
                Effect.provideService(RetryQuota.RetryQuota, quota),
                Effect.provideService(Random.Random, constantRandom(0.9))
              )
            )
            yield* elapse(30)
            assert.strictEqual(yield* quota.balance, 95)
            yield* Fiber.interrupt(fiber)
            assert.strictEqual(yield* quota.balance, 100)
          }))
      })
    }
  })
}
