import { assert, describe, it } from "@effect/vitest"
import { awsStandard, InvalidOption, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as CircuitBreakerGate from "effect-retry/CircuitBreakerGate"
import * as CoolDown from "effect-retry/CoolDown"
import { type Law, SendGateSuite } from "effect-retry/testing"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import * as TestClock from "effect/testing/TestClock"
import { budget } from "../utils/budget.ts"
import { Terminal, Transient } from "../utils/call.ts"
import { sweep, thinned } from "../utils/sweep.ts"

const breakerOf = (failures: number, openDuration: Duration.Input = "30 seconds") =>
  CircuitBreaker.layer({ tripPolicy: CircuitBreaker.consecutive(failures), openDuration }).pipe(
    Layer.provide(CircuitBreaker.layerStoreMemory())
  )

/** The gate, its breaker, and a quota. */
const gated = (failures: number, openDuration?: Duration.Input) =>
  Layer.merge(
    RetryQuota.layer(),
    Layer.provideMerge(CircuitBreakerGate.layer({ key: "orders" }), breakerOf(failures, openDuration))
  )

const once = RetryPolicy.maxAttempts(awsStandard, 1)

const tagOf = Effect.map(CircuitBreaker.CircuitBreaker.use((breaker) => breaker.state("orders")), ({ _tag }) => _tag)

const makeGate = CircuitBreakerGate.make({ key: "orders" })

/** A circuit whose next send is a probe. */
const halfOpen = Effect.gen(function*() {
  const breaker = yield* CircuitBreaker.CircuitBreaker
  yield* Effect.exit(breaker.execute(Effect.fail("x"), { key: "orders" }))
  return yield* makeGate
})

const gates: Readonly<Record<string, ReadonlyArray<Law>>> = {
  "a circuit that is closed": SendGateSuite.laws(Effect.provide(makeGate, breakerOf(1_000_000)), {
    most: budget(100, 20),
    onExceeded: "never"
  }),
  "a circuit that is half open": SendGateSuite.laws(Effect.provide(halfOpen, breakerOf(1, 0)), {
    onExceeded: "refuses"
  })
}

describe.each(Object.entries(gates))("the contract of a gate: %s", (_, laws) => {
  for (const law of laws) it.effect(law.name, () => thinned(5)(law.run))
})

/** Each answer takes 10 milliseconds, as from another process. */
const slowStore = Layer.effect(
  CircuitBreaker.CircuitBreakerStore,
  Effect.map(CircuitBreaker.CircuitBreakerStore, (store) => ({
    ...store,
    admit: (key: string) => Effect.delay(store.admit(key), 10),
    record: (options: Parameters<typeof store.record>[0]) => Effect.delay(store.record(options), 10)
  }))
).pipe(Layer.provide(CircuitBreaker.layerStoreMemory()))

describe("CircuitBreakerGate", () => {
  const forms = {
    withRetry: <A, E, R>(self: Effect.Effect<A, E, R>) => withRetry(self, awsStandard),
    "Effect.retry": <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.retry(self, awsStandard)
  } as const

  for (const [name, retried] of Object.entries(forms)) {
    it.effect(`${name}: sees every send, and lets none pass while the circuit is open; the retry costs nothing`, () =>
      Effect.gen(function*() {
        let sends = 0
        const call = retried(Effect.suspend(() => {
          sends++
          return Effect.fail(new Transient())
        }))
        const calls = yield* Effect.forkChild(
          Effect.all(Array.from({ length: 10 }, () => Effect.exit(call)), { concurrency: "unbounded" })
        )
        yield* TestClock.adjust(0)
        assert.deepStrictEqual([sends, yield* tagOf], [5, "Open"])
        yield* TestClock.adjust("10 seconds")
        yield* Fiber.join(calls)
        assert.deepStrictEqual([sends, yield* RetryQuota.balance], [5, 500])
        const error: unknown = yield* Effect.flip(call)
        assert.instanceOf(error, CircuitBreakerGate.CircuitRefused)
        assert.deepStrictEqual([error.reason, error.retryAfter], ["CircuitOpen", Duration.seconds(20)])
        assert.deepStrictEqual([sends, yield* RetryQuota.balance], [5, 500])
      }).pipe(Effect.provide(gated(5))))
  }

  it.effect("the other way around, Effect's breaker outside the retry sees calls", () =>
    Effect.gen(function*() {
      let sends = 0
      const send = Effect.suspend(() => {
        sends++
        return Effect.fail(new Transient())
      })
      const breaker = yield* CircuitBreaker.CircuitBreaker
      const call = Effect.exit(breaker.execute(withRetry(send, awsStandard), { key: "orders" }))
      const calls = yield* Effect.forkChild(Effect.all(Array.from({ length: 6 }, () => call)))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(calls)
      assert.deepStrictEqual([sends, yield* tagOf], [15, "Open"])
    }).pipe(Effect.provide(Layer.merge(RetryQuota.layer(), breakerOf(5)))))

  it.effect("one circuit on both sides of a retry: what the gate refuses does not count", () =>
    Effect.gen(function*() {
      const breaker = yield* CircuitBreaker.CircuitBreaker
      yield* Effect.exit(withRetry(Effect.fail(new Transient()), once))
      const around = breaker.execute(withRetry(Effect.succeed(1), awsStandard), { key: "calls" })
      assert.instanceOf(yield* Effect.flip(around), CircuitBreakerGate.CircuitRefused)
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual(yield* breaker.execute(withRetry(Effect.succeed(1), awsStandard), { key: "calls" }), 1)
    }).pipe(Effect.provide(gated(1))))

  it.effect("one probe when the time is over: the others are refused, and its success closes the circuit", () =>
    Effect.gen(function*() {
      yield* Effect.exit(withRetry(Effect.fail(new Transient()), once))
      yield* TestClock.adjust("30 seconds")
      const probe = yield* Effect.forkChild(withRetry(Effect.sleep("1 second"), once))
      yield* TestClock.adjust(0)
      const error: unknown = yield* Effect.flip(withRetry(Effect.void, once))
      assert.instanceOf(error, CircuitBreakerGate.CircuitRefused)
      assert.deepStrictEqual([error.reason, error.retryAfter], ["CircuitHalfOpen", undefined])
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(probe)
      assert.strictEqual(yield* tagOf, "Closed")
      yield* withRetry(Effect.void, once)
    }).pipe(Effect.provide(gated(1))))

  it.effect("a probe that is interrupted, dies, or is never made leaves its place to the next", () =>
    Effect.gen(function*() {
      yield* Effect.exit(withRetry(Effect.fail(new Transient()), once))
      yield* TestClock.adjust("30 seconds")
      const probe = yield* Effect.forkChild(withRetry(Effect.never, once))
      yield* TestClock.adjust(0)
      yield* Fiber.interrupt(probe)
      yield* Effect.exit(withRetry(Effect.die("x"), once))
      assert.strictEqual(yield* tagOf, "HalfOpen")
      yield* withRetry(Effect.void, once)
      assert.strictEqual(yield* tagOf, "Closed")
    }).pipe(Effect.provide(gated(1))))

  it.effect("a probe that hangs leaves its place to the next after its time, and no other send does", () =>
    Effect.gen(function*() {
      const slow = yield* Effect.forkChild(withRetry(Effect.delay(Effect.fail(new Transient()), "2 minutes"), once))
      yield* TestClock.adjust("90 seconds")
      assert.strictEqual(yield* tagOf, "Closed")
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual(yield* tagOf, "Open")
      yield* Fiber.await(slow)
      yield* TestClock.adjust("30 seconds")
      const probe = yield* Effect.forkChild(withRetry(Effect.never, once))
      yield* TestClock.adjust("59999 millis")
      assert.instanceOf(yield* Effect.flip(withRetry(Effect.void, once)), CircuitBreakerGate.CircuitRefused)
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* tagOf, "HalfOpen")
      yield* withRetry(Effect.void, once)
      assert.strictEqual(yield* tagOf, "Closed")
      yield* Fiber.interrupt(probe)
      assert.strictEqual(yield* tagOf, "Closed")
    }).pipe(Effect.provide(gated(1))))

  it.effect("a negative answer does not open it; a hint of the server lengthens the time", () =>
    Effect.gen(function*() {
      yield* Effect.exit(withRetry(Effect.fail(new Terminal()), once))
      yield* Effect.exit(withRetry(Effect.fail("what"), once))
      assert.strictEqual(yield* tagOf, "Closed")
      const busy = { response: { status: 429, headers: { "retry-after": "60" } } }
      yield* Effect.exit(withRetry(Effect.fail(busy), once))
      yield* TestClock.adjust("50 seconds")
      const error: unknown = yield* Effect.flip(withRetry(Effect.void, once))
      assert.instanceOf(error, CircuitBreakerGate.CircuitRefused)
      assert.deepStrictEqual(error.retryAfter, Duration.seconds(10))
    }).pipe(Effect.provide(gated(1))))

  it.effect("with a cool-down: nothing is sent while it is open, then one probe, then more and more", () =>
    Effect.gen(function*() {
      let inFlight = 0
      let most = 0
      const sent: Array<number> = []
      const send = Effect.acquireUseRelease(
        Effect.gen(function*() {
          most = Math.max(most, ++inFlight)
          sent.push(yield* Clock.currentTimeMillis)
        }),
        () => Effect.sleep("100 millis"),
        () => Effect.sync(() => inFlight--)
      )
      yield* Effect.exit(withRetry(Effect.fail(new Transient()), once))
      assert.strictEqual((yield* CoolDown.state).phase, "closed")
      yield* TestClock.adjust("500 millis")
      const calls = yield* Effect.forkChild(
        Effect.all(Array.from({ length: 20 }, () => Effect.exit(withRetry(send, once))), { concurrency: "unbounded" })
      )
      yield* TestClock.adjust("400 millis")
      assert.deepStrictEqual(sent, [])
      yield* TestClock.adjust("10 seconds")
      assert.isTrue((yield* Fiber.join(calls)).every(Exit.isSuccess))
      assert.strictEqual(sent.length, 20)
      assert.strictEqual(sent.filter((at) => at < sent[0]! + 100).length, 1)
      assert.isBelow(most, 20)
      assert.deepStrictEqual([yield* tagOf, (yield* CoolDown.state).phase], ["Closed", "free"])
    }).pipe(Effect.provide(Layer.merge(CoolDown.layer(), gated(1, "1 second")))))

  it.effect("a store that does not respond: sends pass or are refused, as the breaker is configured", () =>
    Effect.gen(function*() {
      const down = Effect.fail(
        new CircuitBreaker.CircuitBreakerError({
          reason: new CircuitBreaker.CircuitBreakerStoreError({ message: "down" })
        })
      )
      const store = Layer.succeed(CircuitBreaker.CircuitBreakerStore, {
        admit: () => down,
        record: () => down,
        state: () => down
      })
      const send = (onStoreError: "allow" | "fail") =>
        withRetry(Effect.succeed(1), awsStandard).pipe(
          Effect.provide(
            CircuitBreakerGate.layer({ key: "orders" }).pipe(
              Layer.provide(CircuitBreaker.layer({
                tripPolicy: CircuitBreaker.consecutive(1),
                openDuration: "1 second",
                onStoreError
              })),
              Layer.provide(store)
            )
          )
        )
      assert.strictEqual(yield* send("allow"), 1)
      const error: unknown = yield* Effect.flip(send("fail"))
      assert.instanceOf(error, CircuitBreakerGate.CircuitRefused)
      assert.strictEqual(error.reason, "CircuitBreakerStoreError")
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("whatever interrupts them, calls leave the place of the probe free", () =>
    Effect.gen(function*() {
      yield* Effect.exit(withRetry(Effect.fail(new Transient()), once))
      yield* TestClock.adjust("30 seconds")
      const trip = Effect.exit(withRetry(Effect.fail(new Transient()), once))
      const steps = yield* sweep(withRetry(Effect.sleep(20), once), () =>
        Effect.gen(function*() {
          yield* TestClock.adjust("1 minute")
          yield* withRetry(Effect.void, once)
          assert.strictEqual(yield* Effect.orDie(tagOf), "Closed")
          yield* trip
          yield* TestClock.adjust("30 seconds")
        }))
      assert.isAtLeast(steps, 20)
    }).pipe(Effect.provide(gated(1))))

  it.effect("a store that answers later: a send waits for it, and whatever interrupts that frees the probe", () =>
    Effect.gen(function*() {
      yield* Effect.forkScoped(Effect.exit(withRetry(Effect.fail(new Transient()), once)))
      yield* TestClock.adjust("1 minute")
      const steps = yield* sweep(withRetry(Effect.sleep(20), once), () =>
        Effect.gen(function*() {
          yield* TestClock.adjust("1 minute")
          const next = yield* Effect.forkChild(withRetry(Effect.void, once))
          yield* TestClock.adjust("1 second")
          assert.isTrue(Exit.isSuccess(next.pollUnsafe()!))
          assert.strictEqual(yield* Effect.orDie(tagOf), "Closed")
          yield* Effect.forkScoped(Effect.exit(withRetry(Effect.fail(new Transient()), once)))
          yield* TestClock.adjust("1 minute")
        }))
      assert.isAtLeast(steps, 20)
    }).pipe(
      Effect.scoped,
      Effect.provide([
        RetryQuota.layer(),
        CircuitBreakerGate.layer({ key: "orders" }).pipe(
          Layer.provideMerge(
            CircuitBreaker.layer({ tripPolicy: CircuitBreaker.consecutive(1), openDuration: "30 seconds" })
          ),
          Layer.provide(slowStore)
        )
      ])
    ))

  it("refuses options that are impossible", () => {
    for (const [field, options] of [["key", { key: 1 }], ["isFailure", { key: "a", isFailure: true }]] as const) {
      try {
        CircuitBreakerGate.layer(options as never)
        assert.fail("made it")
      } catch (error) {
        assert.instanceOf(error, InvalidOption)
        assert.strictEqual(error.field, field)
      }
    }
  })
})
