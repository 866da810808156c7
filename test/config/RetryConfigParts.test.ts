import { assert, describe, it } from "@effect/vitest"
import { RetryQuota } from "effect-retry"
import * as ClientThrottle from "effect-retry/ClientThrottle"
import * as RetryConfig from "effect-retry/RetryConfig"
import * as Kit from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import { sweep } from "../utils/sweep.ts"

const orders = (entry: object) => ({ resources: { orders: entry } })

const policy = {
  steps: [{ fixed: { delay: "10 millis" } }, { maxAttempts: 2 }, "whileRetryable", { quotaGated: { cost: 1 } }]
}

/** A way to call by the document. */
type Way = <A, E>(self: Effect.Effect<A, E>) => Effect.Effect<A, unknown, RetryConfig.RetryConfig>

const ways: Readonly<Record<string, Way>> = {
  "RetryConfig.retry": RetryConfig.retry("orders"),
  "Effect.retry(attempt, live)": (self) =>
    Effect.provide(Effect.retry(self, RetryConfig.live("orders")), RetryConfig.resource("orders"))
}

/** How many sends a number of failing calls make. */
const sendsOf = (way: Way, calls: number) =>
  Effect.gen(function*() {
    let sends = 0
    const send = Effect.suspend(() => {
      sends++
      return Effect.fail(new Kit.Transient())
    })
    const fiber = yield* Effect.forkChild(Effect.forEach(Array.from({ length: calls }), () => Effect.exit(way(send))))
    yield* TestClock.adjust("100 millis")
    for (let step = 0; fiber.pollUnsafe() === undefined && step < 1000; step++) yield* TestClock.adjust("10 millis")
    yield* Fiber.join(fiber)
    return sends
  })

const share = (share: number, window: string = "1 hour") => ({ share: { share, minPerSecond: 0, window } })

for (const [name, way] of Object.entries(ways)) {
  describe(`budgets of a document, by ${name}`, () => {
    it.effect("a share bounds retries in addition to the quota; it is resized with the calls that have paid", () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* sendsOf(way, 10), 12)
        yield* RetryConfig.set(orders({ policy, budgets: share(0.5) }))
        // 20 calls have paid for 10 retries in all, of which 2 were made.
        assert.strictEqual(yield* sendsOf(way, 10), 18)
        yield* RetryConfig.set(orders({ policy }))
        assert.strictEqual(yield* sendsOf(way, 10), 20)
      }).pipe(Effect.provide(RetryConfig.layer(orders({ policy, budgets: share(0.2) })))))

    it.effect("the quota and each of the budgets must grant a retry", () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* sendsOf(way, 10), 13)
        yield* RetryConfig.set(orders({ policy, quota: { capacity: 3 } }))
        assert.strictEqual(yield* sendsOf(way, 10), 10)
        yield* RetryConfig.set(orders({ policy, quota: { capacity: 300 }, budgets: { grpc: {} } }))
        // Above one half of ten tokens: the first four failures leave six.
        assert.strictEqual(yield* sendsOf(way, 10), 10)
      }).pipe(
        Effect.provide(RetryConfig.layer(orders({ policy, quota: { capacity: 3 }, budgets: share(1) })))
      ))

    it.effect("first sends pay the fee of the quota, and no budget", () =>
      Effect.gen(function*() {
        const quota = { capacity: 100, firstAttemptCost: 2 }
        yield* RetryConfig.set(orders({ policy, quota, budgets: share(0.5) }))
        const balance = RetryQuota.RetryQuota.use(({ store }) =>
          Effect.clockWith((clock) => Effect.succeed(store.balance(clock)))
        ).pipe(Effect.provide(RetryConfig.resource("orders")))
        assert.strictEqual(yield* sendsOf(way, 4), 6)
        yield* RetryConfig.set(orders({ policy, quota }))
        assert.strictEqual(yield* balance, 100 - 4 * 2 - 2)
      }).pipe(Effect.provide(RetryConfig.layer(orders({ policy, quota: { capacity: 100, firstAttemptCost: 2 } })))))

    it.effect("a share of what is in flight", () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* sendsOf(way, 5), 5)
        yield* RetryConfig.set(orders({ policy, budgets: { inFlight: { share: 0, atLeast: 1 } } }))
        assert.strictEqual(yield* sendsOf(way, 5), 10)
      }).pipe(
        Effect.provide(RetryConfig.layer(orders({ policy, budgets: { inFlight: { share: 0, atLeast: 0 } } })))
      ))

    it.effect("whatever interrupts a call while budgets change, nothing of theirs stays held", () =>
      Effect.gen(function*() {
        const context = yield* Layer.build(RetryConfig.layer(orders({ policy, budgets: { inFlight: { atLeast: 5 } } })))
        const quota = yield* RetryQuota.RetryQuota.pipe(
          Effect.provide(RetryConfig.resource("orders")),
          Effect.provideContext(context)
        )
        const call = Effect.exit(way(Effect.andThen(Effect.sleep(5), Effect.fail(new Kit.Transient()))))
        const change = (atLeast: number) =>
          Effect.andThen(Effect.sleep(12), RetryConfig.set(orders({ policy, budgets: { inFlight: { atLeast } } })))
        const steps = yield* sweep(
          Effect.suspend(() => Effect.all([call, change(7), call], { concurrency: 3 })).pipe(
            Effect.provideContext(context)
          ),
          () =>
            Effect.gen(function*() {
              yield* RetryConfig.set(
                orders({ policy, quota: { capacity: 900 }, budgets: { inFlight: { atLeast: 5 } } })
              )
              const balance = yield* Effect.clockWith((clock) => Effect.succeed(quota.store.balance(clock)))
              assert.strictEqual(balance, 5)
            }).pipe(Effect.provideContext(context), Effect.orDie)
        )
        assert.isAtLeast(steps, 15)
      }).pipe(Effect.scoped))
  })
}

describe("a throttle of a document", () => {
  const throttle = ClientThrottle.state.pipe(
    Effect.provide(RetryConfig.resource("orders") as Layer.Layer<any, never, RetryConfig.RetryConfig>)
  )
  const once = { steps: [{ fixed: { delay: 1 } }, { maxAttempts: 1 }] }
  const fail = RetryConfig.retry("orders")(Effect.fail(new Kit.Transient()))

  it.effect("refuses at random, keeps its counts when k changes, and starts over with another window", () =>
    Effect.gen(function*() {
      let refused = 0
      const many = Effect.forEach(Array.from({ length: 200 }), () =>
        Effect.map(Effect.flip(fail), (error) => {
          if ((error as { readonly _tag: string })._tag === "ClientThrottled") refused++
        }))
      yield* many
      assert.isAbove(refused, 100)
      const before = yield* throttle
      assert.isAbove(before.rejection, 0.8)
      yield* RetryConfig.set(orders({ policy: once, throttle: { maxRejection: 0.5 } }))
      assert.deepStrictEqual(yield* throttle, { ...before, rejection: 0.5 })
      yield* RetryConfig.set(orders({ policy: once, throttle: { maxRejection: 0.5, window: "1 minute" } }))
      assert.deepStrictEqual(yield* throttle, { requests: 0, accepts: 0, rejection: 0 })
      yield* RetryConfig.set(orders({ policy: once }))
      refused = 0
      yield* many
      assert.strictEqual(refused, 0)
    }).pipe(Effect.provide(RetryConfig.layer(orders({ policy: once, throttle: {} })))))

  it.effect("a send that was in progress when the window changed is not counted in the new one", () =>
    Effect.gen(function*() {
      const slow = yield* Effect.forkChild(
        Effect.exit(
          RetryConfig.retry("orders")(Effect.andThen(Effect.sleep("1 second"), Effect.fail(new Kit.Transient())))
        )
      )
      yield* TestClock.adjust(1)
      yield* RetryConfig.set(orders({ policy: once, throttle: { counts: "settled" } }))
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(slow)
      assert.deepStrictEqual(yield* throttle, { requests: 0, accepts: 0, rejection: 0 })
    }).pipe(Effect.provide(RetryConfig.layer(orders({ policy: once, throttle: { counts: "sent" } })))))
})

describe("hedges of a document", () => {
  /** How many sends a call makes whose first one takes a second. */
  const call = () =>
    Effect.gen(function*() {
      let sends = 0
      const send = Effect.suspend(() => Effect.as(Effect.sleep(sends++ === 0 ? "1 second" : "10 millis"), "done"))
      const fiber = yield* Effect.forkChild(send.pipe(RetryConfig.hedged("orders"), RetryConfig.retry("orders")))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Fiber.join(fiber), "done")
      return sends
    })

  it.effect("are made where the document says so, of calls that ask for it", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* call(), 1)
      yield* RetryConfig.set(orders({ hedge: { after: "100 millis", share: 1 } }))
      assert.strictEqual(yield* call(), 2)
      yield* RetryConfig.set(orders({ retries: "off", hedge: { after: "100 millis", share: 1 } }))
      assert.strictEqual(yield* call(), 1)
      yield* RetryConfig.set({})
      assert.strictEqual(yield* call(), 1)
    }).pipe(Effect.provide(RetryConfig.layer({}))))

  it.effect("keep the calls that have paid for them, whatever share of them is a hedge now", () =>
    Effect.gen(function*() {
      const hedge = (share: number, rest = {}) =>
        orders({ hedge: { after: "100 millis", share, shareWindow: 3_600_000, ...rest } })
      yield* RetryConfig.set(hedge(0.1))
      for (const _ of Array.from({ length: 9 })) assert.strictEqual(yield* call(), 1)
      assert.strictEqual(yield* call(), 2)
      // The next four of calls have paid for two hedges at 0.5, not one at 0.1.
      for (const _ of Array.from({ length: 4 })) assert.strictEqual(yield* call(), 1)
      yield* RetryConfig.set(hedge(0.5))
      assert.deepStrictEqual([yield* call(), yield* call(), yield* call()], [2, 2, 2])
      yield* RetryConfig.set(hedge(0.5, { shareWindow: 7_200_000 }))
      assert.deepStrictEqual([yield* call(), yield* call()], [1, 2])
    }).pipe(Effect.provide(RetryConfig.layer({}))))

  it.effect("are not made while a gate of the document is strained", () =>
    Effect.gen(function*() {
      const hedge = { after: "100 millis", share: 1 }
      const document = (rest: object) => orders({ policy: { maxAttempts: 1 }, hedge, ...rest })
      const dropped = RetryConfig.retry("orders")(Effect.fail(new Kit.Throttled({})))
      yield* RetryConfig.set(document({ concurrency: { initial: 20, minimum: 5 } }))
      assert.strictEqual(yield* call(), 2)
      yield* Effect.exit(dropped)
      assert.strictEqual(yield* call(), 1)
      yield* RetryConfig.set(document({}))
      assert.strictEqual(yield* call(), 2)
      yield* RetryConfig.set(document({ concurrency: { initial: 20, minimum: 5 } }))
      assert.strictEqual(yield* call(), 1)
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* call(), 2)
    }).pipe(Effect.provide(RetryConfig.layer({}))))

  it.effect("whatever interrupts a hedged call while the document changes, no send goes on", () =>
    Effect.gen(function*() {
      let open = 0
      const send = Effect.acquireUseRelease(
        Effect.sync(() => open++),
        () => Effect.sleep(40),
        () => Effect.sync(() => open--)
      )
      const document = (after: number) => orders({ hedge: { after, share: 1 } })
      const context = yield* Layer.build(RetryConfig.layer(document(10)))
      const both = Effect.suspend(() =>
        Effect.all([
          Effect.exit(send.pipe(RetryConfig.hedged("orders"), RetryConfig.retry("orders"))),
          Effect.andThen(Effect.sleep(5), RetryConfig.set(document(20))),
          Effect.exit(send.pipe(RetryConfig.hedged("orders"), RetryConfig.retry("orders")))
        ], { concurrency: 3 })
      ).pipe(Effect.provideContext(context))
      const steps = yield* sweep(both, () =>
        Effect.gen(function*() {
          yield* TestClock.adjust(0)
          assert.strictEqual(open, 0)
        }))
      assert.isAtLeast(steps, 10)
    }).pipe(Effect.scoped))
})
