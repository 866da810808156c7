import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  awsAdaptive,
  awsStandard,
  InvalidOption,
  ResourceLimiters,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { Throttled, Transient } from "../utils/call.ts"

const stateOf = (key: string) =>
  Effect.all({ balance: RetryQuota.balance, limiter: AdaptiveRateLimiter.snapshot }).pipe(
    Effect.provide(ResourceLimiters.get(key))
  )

/** Keeps a resource in use. */
const using = (key: string) => Effect.forkScoped(Effect.provide(Effect.never, ResourceLimiters.get(key)))

describe("ResourceLimiters", () => {
  it.effect("an outage of one resource leaves balance and rate of the others untouched", () =>
    Effect.gen(function*() {
      const fresh = yield* stateOf("dynamodb:customers")
      let healthyCalls = 0
      const down = Effect.suspend(() => Effect.fail(healthyCalls % 2 === 0 ? new Throttled({}) : new Transient()))
      const outage = Effect.forEach(
        Array.from({ length: 200 }),
        () => Effect.exit(Effect.provide(withRetry(down, awsAdaptive), ResourceLimiters.get("dynamodb:orders"))),
        { concurrency: "unbounded" }
      )
      const fiber = yield* Effect.forkChild(outage)
      yield* TestClock.adjust("1 minute")
      const before = yield* Clock.currentTimeMillis
      for (let i = 0; i < 20; i++) {
        const healthy = Effect.sync(() => ++healthyCalls)
        yield* Effect.provide(withRetry(healthy, awsAdaptive), ResourceLimiters.get("dynamodb:customers"))
      }
      assert.strictEqual((yield* Clock.currentTimeMillis) - before, 0)
      const orders = yield* stateOf("dynamodb:orders")
      assert.isBelow(orders.balance, 500)
      assert.isTrue(orders.limiter.enabled)
      const customers = yield* stateOf("dynamodb:customers")
      assert.strictEqual(customers.balance, fresh.balance)
      assert.deepStrictEqual(
        [customers.limiter.enabled, customers.limiter.fillRate, customers.limiter.waiting],
        [false, fresh.limiter.fillRate, 0]
      )
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.provide(ResourceLimiters.layer())))

  it.effect("gives the same key the same quota, and other keys others", () =>
    Effect.gen(function*() {
      const take = (key: string) => Effect.provide(RetryQuota.reserve(100), ResourceLimiters.get(key))
      yield* take("a")
      yield* take("a")
      yield* take("")
      assert.deepStrictEqual(
        yield* Effect.forEach(["a", "b", ""], (key) => Effect.map(stateOf(key), (state) => state.balance)),
        [300, 500, 400]
      )
    }).pipe(Effect.provide(ResourceLimiters.layer())))

  it.effect("forgets a resource that was idle for its time, and keeps one that is in use", () =>
    Effect.scoped(Effect.gen(function*() {
      for (const key of ["idle", "used"]) {
        yield* Effect.provide(RetryQuota.reserve(100), ResourceLimiters.get(key))
      }
      yield* using("used")
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual((yield* stateOf("idle")).balance, 400)
      yield* TestClock.adjust("60 seconds")
      assert.strictEqual((yield* stateOf("idle")).balance, 500)
      assert.strictEqual((yield* stateOf("used")).balance, 400)
    })).pipe(Effect.provide(ResourceLimiters.layer({ idleTimeToLive: "1 minute" }))))

  it.effect("quota gives the quota without the limiter, the same as get gives", () =>
    Effect.gen(function*() {
      yield* Effect.provide(AdaptiveRateLimiter.update(true), ResourceLimiters.get("a"))
      const call = withRetry(Effect.succeed("at once"), awsStandard)
      for (let i = 0; i < 10; i++) yield* Effect.provide(call, ResourceLimiters.quota("a"))
      assert.strictEqual(yield* Clock.currentTimeMillis, 0)
      yield* Effect.provide(RetryQuota.reserve(100), ResourceLimiters.quota("a"))
      assert.strictEqual((yield* stateOf("a")).balance, 400)
    }).pipe(Effect.provide(ResourceLimiters.layer())))

  it.effect("makes quotas and limiters by key", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* stateOf("small")).balance, 10)
      assert.strictEqual((yield* stateOf("large")).balance, 1000)
    }).pipe(Effect.provide(ResourceLimiters.layer({
      quota: (key) => ({ capacity: key === "small" ? 10 : 1000 }),
      limiter: { beta: 0.5 }
    }))))

  it.effect("works with Effect.retry's driver as with withRetry", () =>
    Effect.gen(function*() {
      const call = Effect.provide(withRetry(Effect.fail(new Transient()), awsStandard), ResourceLimiters.get("a"))
      const fiber = yield* Effect.forkChild(Effect.exit(call))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)
      assert.strictEqual((yield* stateOf("a")).balance, 490)
    }).pipe(Effect.provide(ResourceLimiters.layer())))

  describe("when there are too many", () => {
    const take = (key: string) => Effect.provide(Effect.orDie(RetryQuota.reserve(100)), ResourceLimiters.quota(key))
    const balanceOf = (key: string) => Effect.provide(RetryQuota.balance, ResourceLimiters.quota(key))
    const count = ResourceLimiters.ResourceLimiters.use((limiters) => limiters.count)
    const ofThree = ResourceLimiters.layer({ maxResources: 3 })

    it.effect("forgets the one that has been idle longest, and keeps the others", () =>
      Effect.gen(function*() {
        for (const key of ["a", "b", "c"]) {
          yield* take(key)
          yield* TestClock.adjust("1 second")
        }
        yield* take("a")
        assert.strictEqual(yield* count, 3)
        yield* take("d")
        assert.strictEqual(yield* count, 3)
        assert.deepStrictEqual(yield* Effect.forEach(["a", "c", "d", "b"], balanceOf), [300, 400, 400, 500])
      }).pipe(Effect.provide(ofThree)))

    it.effect("forgets idle ones before those in use, however long they have been in use", () =>
      Effect.scoped(Effect.gen(function*() {
        for (const key of ["a", "b", "c"]) yield* take(key)
        yield* using("a")
        yield* using("b")
        yield* TestClock.adjust("1 second")
        for (let n = 0; n < 10; n++) {
          yield* take(`other-${n}`)
          assert.strictEqual(yield* count, 3)
        }
        assert.deepStrictEqual(yield* Effect.forEach(["a", "b"], balanceOf), [400, 400])
      })).pipe(Effect.provide(ofThree)))

    it.effect("forgets the one whose last use began first when all are in use; its calls keep it until they end", () =>
      Effect.scoped(Effect.gen(function*() {
        const resources = yield* ResourceLimiters.ResourceLimiters
        const first = yield* resources.use("a")
        yield* Effect.orDie(first.quota.reserve(100))
        for (const key of ["b", "c", "d"]) {
          yield* using(key)
          yield* TestClock.adjust("1 second")
        }
        assert.strictEqual(yield* resources.count, 3)
        assert.strictEqual(yield* first.quota.balance, 400)
        const anew = yield* resources.use("a")
        assert.deepStrictEqual([anew === first, yield* anew.quota.balance], [false, 500])
        assert.strictEqual(yield* first.quota.balance, 400)
      })).pipe(Effect.provide(ofThree)))

    it.effect("is never above its bound, whatever is used in whatever order, and forgets nothing that it need not", () =>
      Effect.gen(function*() {
        const resources = yield* ResourceLimiters.ResourceLimiters
        const open: Array<{ readonly key: string; readonly scope: Scope.Closeable }> = []
        for (let n = 0; n < 3000; n++) {
          const random = (n * 7919) % 101
          if (random % 3 === 0 && open.length > 0) {
            const [left] = open.splice(random % open.length, 1)
            yield* Scope.close(left!.scope, Exit.void)
          } else {
            const scope = yield* Scope.make()
            const key = `key-${random % 7}`
            const used = yield* Scope.provide(resources.use(key), scope)
            assert.strictEqual(used.key, key)
            open.push({ key, scope })
          }
          assert.isAtMost(yield* resources.count, 3)
          if (n % 500 === 0) yield* TestClock.adjust("11 minutes")
        }
        yield* Effect.forEach(open, ({ scope }) => Scope.close(scope, Exit.void))
        assert.strictEqual(yield* resources.count, 3)
        yield* TestClock.adjust("10 minutes")
        assert.strictEqual(yield* resources.count, 0)
      }).pipe(Effect.provide(ofThree)))

    it.effect("closes the layer of one that is forgotten, when nobody uses it any more", () =>
      Effect.gen(function*() {
        const events: Array<string> = []
        const shared = (key: string) =>
          Layer.effect(
            RetryQuota.RetryQuota,
            Effect.acquireRelease(
              Effect.andThen(Effect.sync(() => events.push(`open ${key}`)), RetryQuota.make()),
              () => Effect.sync(() => events.push(`close ${key}`))
            )
          )
        yield* Effect.gen(function*() {
          const holder = yield* Scope.make()
          const resources = yield* ResourceLimiters.ResourceLimiters
          const [first] = yield* Scope.provide(Effect.all([resources.use("a"), resources.use("b")]), holder)
          yield* take("c")
          assert.deepStrictEqual(events, ["open a", "open b", "open c"])
          assert.strictEqual(yield* first!.quota.balance, 500)
          yield* Scope.close(holder, Exit.void)
          yield* Effect.yieldNow
          assert.deepStrictEqual(events.slice(3), ["close a"])
          yield* TestClock.adjust("1 minute")
          assert.deepStrictEqual(events.slice(4).sort(), ["close b", "close c"])
        }).pipe(Effect.provide(ResourceLimiters.layer({ quota: shared, maxResources: 2, idleTimeToLive: "1 minute" })))
      }))

    it.effect("builds the layer of a resource once for all who come at the same time, also when the first one goes", () =>
      Effect.gen(function*() {
        let built = 0
        const slow = () =>
          Layer.effect(
            RetryQuota.RetryQuota,
            Effect.andThen(Effect.delay(Effect.sync(() => built++), "1 second"), RetryQuota.make())
          )
        yield* Effect.gen(function*() {
          const first = yield* Effect.forkChild(take("a"))
          const others = yield* Effect.forkChild(Effect.all([take("a"), take("a")], { concurrency: "unbounded" }))
          yield* TestClock.adjust("500 millis")
          yield* Fiber.interrupt(first)
          yield* TestClock.adjust("500 millis")
          yield* Fiber.join(others)
          assert.deepStrictEqual([built, yield* balanceOf("a")], [1, 300])
        }).pipe(Effect.provide(ResourceLimiters.layer({ quota: slow })))
      }))

    it.effect("tries again to build a layer that died", () =>
      Effect.gen(function*() {
        let built = 0
        const flaky = () =>
          Layer.effect(RetryQuota.RetryQuota, Effect.suspend(() => ++built === 1 ? Effect.die("x") : RetryQuota.make()))
        yield* Effect.gen(function*() {
          assert.isTrue(Exit.hasDies(yield* Effect.exit(take("a"))))
          yield* take("a")
          assert.deepStrictEqual([built, yield* balanceOf("a")], [2, 400])
        }).pipe(Effect.provide(ResourceLimiters.layer({ quota: flaky })))
      }))
  })

  describe("refuses", () => {
    const bad: ReadonlyArray<readonly [string, ResourceLimiters.Options]> = [
      ["idleTimeToLive", { idleTimeToLive: 0 }],
      ["idleTimeToLive", { idleTimeToLive: NaN }],
      ["maxResources", { maxResources: 0 }],
      ["maxResources", { maxResources: 1.5 }],
      ["maxResources", { maxResources: NaN }],
      ["capacity", { quota: { capacity: 0 } }],
      ["beta", { limiter: { beta: 2 } }]
    ]
    for (const [field, options] of bad) {
      it(field, () => {
        try {
          ResourceLimiters.layer(options)
          assert.fail("made it")
        } catch (error) {
          assert.instanceOf(error, InvalidOption)
          assert.strictEqual(error.field, field)
        }
      })
    }
  })
})
