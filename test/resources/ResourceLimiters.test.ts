import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  awsAdaptive,
  awsStandard,
  Hedge,
  InvalidOption,
  ResourceLimiters,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as ClientThrottle from "effect-retry/ClientThrottle"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import * as RetryBudget from "effect-retry/RetryBudget"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { shared } from "../../src/internal/shared.ts"
import { Throttled, Transient } from "../utils/call.ts"
import { sweep } from "../utils/sweep.ts"

const stateOf = (key: string) =>
  Effect.all({ balance: RetryQuota.balance, limiter: AdaptiveRateLimiter.state }).pipe(
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
    const ofThree = ResourceLimiters.layer({ capacity: 3 })

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

    it.effect("keys that strangers invent make nobody forget an outage", () =>
      Effect.gen(function*() {
        const limiters = yield* ResourceLimiters.ResourceLimiters
        const within = <A, E, R>(key: string, call: Effect.Effect<A, E, R>) =>
          Effect.exit(Effect.provide(withRetry(call, awsAdaptive), ResourceLimiters.get(key)))
        const overloaded = Effect.fail({ status: 503, headers: { "retry-after": "3600" } })
        const failures: Readonly<Record<string, Effect.Effect<never, unknown>>> = {
          "without tokens": Effect.fail(new Transient()),
          throttled: Effect.fail(new Throttled({})),
          closed: overloaded
        }
        for (const [key, failure] of Object.entries(failures)) {
          const call = yield* Effect.forkChild(Effect.repeat(within(key, failure), { times: 4 }))
          yield* TestClock.adjust("1 minute")
          yield* Fiber.interrupt(call)
        }
        for (let n = 0; n < 50; n++) yield* within(`invented-${n}`, Effect.void)
        assert.isAtMost(yield* limiters.count, 5)
        const states = yield* Effect.scoped(Effect.forEach(Object.keys(failures), (key) =>
          Effect.gen(function*() {
            const { coolDown, limiter, quota } = yield* limiters.use(key)
            return [(yield* quota.balance) < 500, (yield* limiter.state).enabled, (yield* coolDown!.state).phase]
          })))
        assert.deepStrictEqual(states, [[true, false, "free"], [true, true, "free"], [false, false, "closed"]])
      }).pipe(Effect.provide(ResourceLimiters.layer({ capacity: 5, coolDown: { atMost: "1 hour" } }))))

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

    it.effect("never exceeds its bound, in any order of use, and forgets nothing needlessly", () =>
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

    it.effect("closes the layer of one that is forgotten, when it is no longer used", () =>
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
        }).pipe(Effect.provide(ResourceLimiters.layer({ quota: shared, capacity: 2, idleTimeToLive: "1 minute" })))
      }))

    it.effect("builds the layer of a resource once for all concurrent callers, even if the first one leaves", () =>
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

  describe("the other parts of a resource", () => {
    const used = (key: string) => ResourceLimiters.ResourceLimiters.use((resources) => resources.use(key))
    const provided = (key: string) => Effect.provide(Effect.context(), ResourceLimiters.get(key))
    const has = (key: string) =>
      Effect.map(provided(key), (context) =>
        [
          Context.getOrUndefined(context, ConcurrencyLimiter.ConcurrencyLimiter),
          Context.getOrUndefined(context, ClientThrottle.ClientThrottle),
          Context.getOrUndefined(context, CoolDown.CoolDown)
        ].map((gate) => gate !== undefined))

    it.effect("get has the gates with options, by key too", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* has("a"), [true, false, true])
        assert.deepStrictEqual(yield* has("b"), [true, false, false])
      }).pipe(Effect.provide(ResourceLimiters.layer({
        concurrency: {},
        coolDown: (key) => key === "a" ? {} : undefined
      }))))

    it.effect("has none without options", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* has("a"), [false, false, false])
        const { concurrency, coolDown, throttle } = yield* Effect.scoped(used("a"))
        assert.deepStrictEqual([concurrency, coolDown, throttle], [undefined, undefined, undefined])
      }).pipe(Effect.provide(ResourceLimiters.layer())))

    it.effect("a full limit of one holds back none of another, and all the calls of one share it", () =>
      Effect.gen(function*() {
        const call = (key: string) =>
          Effect.exit(Effect.provide(withRetry(Effect.sleep("1 second"), awsStandard), ResourceLimiters.get(key)))
        const calls = yield* Effect.forkChild(
          Effect.all(["a", "a", "a", "b"].map(call), { concurrency: "unbounded" })
        )
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual((yield* Fiber.join(calls)).map(Exit.isSuccess), [true, true, false, true])
        const limits = yield* Effect.scoped(Effect.flatMap(used("a"), ({ concurrency }) => concurrency!.state))
        assert.deepStrictEqual(limits, { limit: 2, inFlight: 0, waiting: 0 })
      }).pipe(Effect.provide(ResourceLimiters.layer({
        concurrency: { rule: ConcurrencyLimiter.fixed(2), onExceeded: "fail" }
      }))))

    it.effect("what a server says to one call closes its resource for the others, and no other resource", () =>
      Effect.gen(function*() {
        const busy = Effect.fail({ response: { status: 429, headers: { "retry-after": "30" } } })
        const call = (self: Effect.Effect<unknown, unknown>, key: string) =>
          Effect.provide(withRetry(self, RetryPolicy.maxAttempts(awsStandard, 1)), ResourceLimiters.get(key))
        yield* Effect.exit(call(busy, "a"))
        const error = yield* Effect.flip(call(Effect.succeed(1), "a"))
        assert.instanceOf(error, CoolDown.CoolingDown)
        assert.strictEqual(yield* call(Effect.succeed(1), "b"), 1)
      }).pipe(Effect.provide(ResourceLimiters.layer({ coolDown: {} }))))

    it.effect("a throttle counts the calls of its resource", () =>
      Effect.gen(function*() {
        const fail = (key: string) =>
          Effect.exit(Effect.provide(
            withRetry(Effect.fail(new Transient()), RetryPolicy.maxAttempts(awsStandard, 1)),
            ResourceLimiters.get(key)
          ))
        for (let n = 0; n < 3; n++) yield* fail("a")
        const requests = (key: string) =>
          Effect.scoped(
            Effect.flatMap(used(key), ({ throttle }) => Effect.map(throttle!.state, (now) => now.requests))
          )
        assert.deepStrictEqual([yield* requests("a"), yield* requests("b")], [3, 0])
      }).pipe(Effect.provide(ResourceLimiters.layer({
        throttle: { counts: "sent" }
      }))))

    it.effect("are made for the keys that use them, when these first do", () => {
      const made: Array<string> = []
      const make = (part: string) => (key: string) => {
        made.push(`${part} of ${key}`)
        return {}
      }
      return Effect.gen(function*() {
        yield* Effect.provide(Effect.void, ResourceLimiters.quota("a"))
        assert.deepStrictEqual(made, ["quota of a"])
        yield* Effect.provide(Effect.void, ResourceLimiters.get("a"))
        yield* Effect.provide(Effect.void, ResourceLimiters.get("a"))
        assert.deepStrictEqual(made.slice(1).sort(), ["coolDown of a", "limiter of a", "throttle of a"])
        yield* Effect.provide(Effect.void, ResourceLimiters.hedge("a"))
        yield* Effect.provide(Effect.void, ResourceLimiters.hedge("a"))
        assert.deepStrictEqual(made.slice(4), ["hedge of a"])
      }).pipe(Effect.provide(ResourceLimiters.layer({
        quota: make("quota"),
        limiter: make("limiter"),
        throttle: make("throttle"),
        coolDown: make("coolDown"),
        hedge: make("hedge")
      })))
    })

    it.effect("quota leaves the gates out", () =>
      Effect.gen(function*() {
        const context = yield* Effect.provide(Effect.context(), ResourceLimiters.quota("a"))
        assert.isUndefined(Context.getOrUndefined(context, CoolDown.CoolDown))
      }).pipe(Effect.provide(ResourceLimiters.layer({ coolDown: {} }))))

    it.effect("an unlimited limiter holds no send back", () =>
      Effect.gen(function*() {
        yield* Effect.provide(AdaptiveRateLimiter.update(true), ResourceLimiters.get("a"))
        const call = Effect.provide(withRetry(Effect.void, awsAdaptive), ResourceLimiters.get("a"))
        for (let n = 0; n < 10; n++) yield* call
        assert.strictEqual(yield* Clock.currentTimeMillis, 0)
      }).pipe(Effect.provide(ResourceLimiters.layer({ limiter: "unlimited" }))))

    it.effect("the quota of a key can be a budget of several", () =>
      Effect.gen(function*() {
        const fail = (key: string) =>
          Effect.exit(Effect.provide(withRetry(Effect.fail(new Transient()), awsStandard), ResourceLimiters.get(key)))
        const calls = yield* Effect.forkChild(fail("a"))
        yield* TestClock.adjust("5 seconds")
        yield* Fiber.join(calls)
        assert.deepStrictEqual([(yield* stateOf("a")).balance, (yield* stateOf("b")).balance], [0, 2])
      }).pipe(Effect.provide(ResourceLimiters.layer({
        quota: () =>
          RetryQuota.layerStore(RetryBudget.all([
            RetryBudget.bucket({ capacity: 100 }),
            RetryBudget.share({ share: 0, minPerSecond: 0.2 })
          ]))
      }))))

    it.effect("hedges of one are paid by its own calls, and its latencies are its own", () =>
      Effect.gen(function*() {
        const sends: Array<string> = []
        const read = (key: string, millis: number) =>
          Effect.suspend(() => {
            sends.push(key)
            return Effect.sleep(millis)
          }).pipe(
            Hedge.hedged({ after: "10 millis" }),
            withRetry(awsAdaptive),
            Effect.provide([ResourceLimiters.get(key), ResourceLimiters.hedge(key)])
          )
        const runs = yield* Effect.forkChild(Effect.gen(function*() {
          for (let n = 0; n < 4; n++) yield* read("a", 1)
          sends.length = 0
          yield* read("a", 100)
          yield* read("b", 100)
        }))
        yield* TestClock.adjust("10 seconds")
        yield* Fiber.join(runs)
        assert.deepStrictEqual(sends, ["a", "a", "b"])
        const latencies = (key: string) =>
          Effect.map(Effect.provide(Hedge.state, ResourceLimiters.hedge(key)), (now) => now.latencies)
        assert.deepStrictEqual([yield* latencies("a"), yield* latencies("b")], [6, 1])
      }).pipe(Effect.provide(ResourceLimiters.layer({ hedge: { share: 0.2 } }))))

    it.effect("a hedged call that is interrupted leaves nothing behind, at any step", () =>
      Effect.gen(function*() {
        let running = 0
        const send = Effect.acquireUseRelease(
          Effect.sync(() => running++),
          () => Effect.sleep("20 millis"),
          () => Effect.sync(() => running--)
        )
        const call = send.pipe(
          Hedge.hedged({ after: "10 millis" }),
          withRetry(awsStandard),
          Effect.provide([ResourceLimiters.get("a"), ResourceLimiters.hedge("a")])
        )
        const steps = yield* sweep(call, () =>
          Effect.gen(function*() {
            const { concurrency, quota } = yield* Effect.scoped(used("a"))
            const { inFlight, waiting } = yield* concurrency!.state
            assert.deepStrictEqual([running, inFlight, waiting, yield* quota.balance], [0, 0, 0, 500])
          }))
        assert.isAtLeast(steps, 30)
      }).pipe(Effect.provide(ResourceLimiters.layer({ concurrency: {}, hedge: { share: 1 } }))))

    it.effect("no hedge is made after the deadline, also of the first hedged call of a process, provided inside it", () =>
      Effect.gen(function*() {
        yield* Effect.sync(() => {
          shared.marking = false
        })
        yield* Layer.build(ResourceLimiters.layer({ hedge: {} }))
        let sends = 0
        const read = Effect.suspend(() => {
          sends++
          return Effect.never
        }).pipe(
          Hedge.hedged({ after: "2 seconds" }),
          Effect.provide(ResourceLimiters.hedge("a")),
          withRetry(awsAdaptive.pipe(RetryPolicy.deadline("1 second"))),
          Effect.provide(ResourceLimiters.get("a"))
        )
        const fiber = yield* Effect.forkChild(read)
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual(sends, 1)
        yield* Fiber.interrupt(fiber)
      }).pipe(Effect.scoped, Effect.provide(ResourceLimiters.layer({ hedge: { share: 1 } }))))
  })

  describe("refuses", () => {
    const bad: ReadonlyArray<readonly [string, ResourceLimiters.Options]> = [
      ["idleTimeToLive", { idleTimeToLive: 0 }],
      ["idleTimeToLive", { idleTimeToLive: NaN }],
      ["capacity", { capacity: 0 }],
      ["capacity", { capacity: 1.5 }],
      ["capacity", { capacity: NaN }],
      ["capacity", { quota: { capacity: 0 } }],
      ["beta", { limiter: { beta: 2 } }],
      ["maxWait", { concurrency: { maxWait: 0 } }],
      ["k", { throttle: { k: 0.5 } }],
      ["spread", { coolDown: { spread: 2 } }],
      ["share", { hedge: { share: 2 } }]
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
