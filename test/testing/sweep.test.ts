import { assert, describe, it } from "@effect/vitest"
import { attempt, awsAdaptive, AwsModes, awsStandard, awsStandard2026, RetryQuota, withRetry } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"

const failureOf = <R>(swept: Effect.Effect<number, never, R>) =>
  Effect.map(Effect.exit(swept), (exit) => {
    const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
    assert.instanceOf(defect, Kit.SweepFailure)
    return defect as Kit.SweepFailure
  })

const reserved = Effect.map(Effect.orDie(RetryQuota.reserve(5)), Option.getOrThrow)

describe("sweep", () => {
  it.effect("interrupts at every step, then runs undisturbed, and tells how many steps there were", () =>
    Effect.gen(function*() {
      const ends: Array<string> = []
      const program = Effect.onExit(
        Effect.andThen(Effect.sleep("1 minute"), Effect.sleep("1 minute")),
        (exit) => Effect.sync(() => ends.push(exit._tag))
      )
      const checked: Array<number> = []
      const steps = yield* Kit.sweep(program, (step) => Effect.sync(() => checked.push(step)))
      assert.isAbove(steps, 5)
      assert.deepStrictEqual(checked, Array.from({ length: steps + 1 }, (_, n) => n + 1))
      assert.strictEqual(ends.at(-1), "Success")
      assert.isAbove(ends.filter((end) => end === "Failure").length, 3)
    }))

  it.effect("fails as its check does", () =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(
        Kit.sweep(Effect.sleep(5), (step) => step === 2 ? Effect.die("found") : Effect.void)
      )
      assert.deepStrictEqual(exit, Exit.die("found"))
    }))
})

describe("sweepQuota", () => {
  const call = Effect.suspend(() => Kit.outcomes([Kit.transient, Kit.throttled, Kit.ok()], { latency: 10 }).send)

  for (
    const [name, program] of [
      ["withRetry", withRetry(call, awsStandard)],
      ["Effect.retry", Effect.retry(attempt(call), awsStandard)],
      ["retry behaviour 2.1", withRetry(call, awsStandard2026)],
      ["a call that fails", withRetry(call, AwsModes.standard({ maxAttempts: 2 }))],
      ["a time-out around", Effect.timeout(withRetry(call, awsStandard), "700 millis")],
      [
        "two calls at once",
        Effect.all([withRetry(call, awsStandard), withRetry(call, awsStandard)], { concurrency: 2 })
      ]
    ] as ReadonlyArray<readonly [string, Effect.Effect<unknown, unknown, RetryQuota.RetryQuota>]>
  ) {
    it.effect(`finds no token lost: ${name}`, () =>
      Effect.gen(function*() {
        assert.isAbove(yield* Kit.sweepQuota(program), 20)
      }).pipe(Effect.provide(Kit.fixedRandom(0.5))))
  }

  for (
    const [name, quota] of [
      ["waits", { capacity: 10, initial: 0, refillPerSecond: 1, whenExhausted: "wait" }],
      ["is paid for first attempts", { capacity: 100, firstAttemptCost: 3 }],
      ["has a first attempt wait", {
        capacity: 9,
        initial: 2,
        firstAttemptCost: 3,
        refillPerSecond: 1,
        whenExhausted: "wait"
      }],
      ["runs dry", { capacity: 500, initial: 6 }],
      ["gains by successes", { capacity: 500, initial: 100, successIncrement: 1 }]
    ] as const
  ) {
    it.effect(`finds no token lost of a quota that ${name}`, () =>
      Effect.gen(function*() {
        assert.isAbove(yield* Kit.sweepQuota(withRetry(call, awsStandard), { quota }), 20)
      }).pipe(Effect.provide(Kit.fixedRandom(0.5))))
  }

  it.effect("begins each run with a new quota", () =>
    Effect.gen(function*() {
      const seen: Array<number> = []
      const spending = Effect.andThen(
        Effect.tap(RetryQuota.balance, (balance) => Effect.sync(() => seen.push(balance))),
        Effect.flatMap(reserved, ({ spend }) => spend).pipe(Effect.uninterruptible)
      )
      yield* Kit.sweepQuota(spending)
      assert.isAbove(seen.length, 3)
      assert.deepStrictEqual(new Set(seen), new Set([500]))
    }))

  it.effect("finds no waiter left at a limiter around", () =>
    Effect.gen(function*() {
      assert.isAbove(yield* Kit.sweepQuota(withRetry(call, awsAdaptive)), 20)
      assert.strictEqual((yield* Kit.limiterState).waiting, 0)
    }).pipe(Effect.provide([Kit.testLimiter({ fillRate: 2 }), Kit.fixedRandom(0.5)])))

  it.effect("finds a reservation that an interruption leaves open", () =>
    Effect.gen(function*() {
      const leaking = Effect.flatMap(reserved, ({ giveBack }) => Effect.andThen(Effect.sleep(10), giveBack))
      const { actual, expected, message, what } = yield* failureOf(Kit.sweepQuota(leaking))
      assert.deepStrictEqual([what, actual, expected], ["held", 5, 0])
      assert.match(message, /^interrupted at step \d+, the effect leaves a held of 5 where 0 is right$/)
    }))

  it.effect("finds a leak of a single step, and nothing where the reservation is bracketed", () =>
    Effect.gen(function*() {
      const leaking = Effect.flatMap(reserved, ({ giveBack }) => giveBack)
      assert.strictEqual((yield* failureOf(Kit.sweepQuota(leaking))).what, "held")
      const safe = Effect.acquireUseRelease(reserved, () => Effect.sleep(10), ({ giveBack }) => giveBack)
      assert.isAbove(yield* Kit.sweepQuota(safe), 5)
    }))

  it.effect("finds a retry whose tokens never come back, as where it is interrupted in its back-off", () =>
    Effect.gen(function*() {
      const leaky = Effect.gen(function*() {
        const quota = yield* RetryQuota.RetryQuota
        const { store } = quota
        // What goes back to this store is lost.
        const lossy = Object.assign(Object.create(store), { put: () => {} })
        return yield* Effect.provideService(withRetry(call, awsStandard), RetryQuota.RetryQuota, {
          ...quota,
          store: Object.assign(lossy, {
            take: (...args: Parameters<typeof store.take>) => {
              const held = store.take(...args)
              return held === undefined ? undefined : Object.assign(held, { store: lossy })
            }
          })
        })
      })
      const { actual, expected, what } = yield* failureOf(Kit.sweepQuota(leaky))
      assert.deepStrictEqual([what, actual, expected], ["balance", 495, 500])
    }).pipe(Effect.provide(Kit.fixedRandom(0.5))))

  it.effect("finds a balance that is more than there should be", () =>
    Effect.gen(function*() {
      const generous = Effect.orDie(RetryQuota.deposit(1))
      const quota = { capacity: 500, initial: 400 }
      const { actual, expected, what } = yield* failureOf(Kit.sweepQuota(generous, { quota }))
      assert.deepStrictEqual([what, actual, expected], ["balance", 401, 400])
    }))

  it.effect("finds a fiber that is left waiting for tokens", () =>
    Effect.gen(function*() {
      const quota = { capacity: 10, initial: 0, refillPerSecond: 0.001, whenExhausted: "wait" } as const
      const leaving = Effect.andThen(Effect.forkDetach(Effect.orDie(RetryQuota.reserve(5))), Effect.yieldNow)
      assert.strictEqual((yield* failureOf(Kit.sweepQuota(leaving, { quota }))).what, "waiting")
    }))
})
