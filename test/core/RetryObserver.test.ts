import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  awsAdaptive,
  awsStandard,
  Backoff,
  InvalidOption,
  ResourceLimiters,
  RetryDecision,
  RetryMetrics,
  RetryObserver,
  RetryPolicy,
  RetryPromise,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import * as Tracer from "effect/Tracer"
import { constantRandom, scripted, Terminal, Throttled, TimedOut, Transient } from "../utils/call.ts"
import { inTime as ending } from "../utils/inTime.ts"

/** How an effect ends, with a constant random number. */
const inTime = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  ending(Effect.provideService(self, Random.Random, constantRandom(0.5)), "10 minutes")

/** A tracer that keeps the events of all spans. */
const recording = () => {
  const events: Array<readonly [string, Record<string, unknown> | undefined]> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      span.event = (name, _time, attributes) => void events.push([name, attributes])
      return span
    }
  })
  return { events, tracer }
}

const drivers = [
  ["Effect.retry", <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.retry(self, awsStandard)],
  ["withRetry", <A, E, R>(self: Effect.Effect<A, E, R>) => withRetry(self, awsStandard)]
] as const

describe("RetryObserver", () => {
  for (const [form, run] of drivers) {
    it.effect(`${form}: each retry and each stop is an event of the span`, () =>
      Effect.gen(function*() {
        const { events, tracer } = recording()
        const call = scripted([new Transient(), new Throttled({}), new TimedOut()])
        yield* inTime(Effect.withSpan(run(call.effect), "call").pipe(Effect.provideService(Tracer.Tracer, tracer)))
        assert.deepStrictEqual(events, [
          ["retry", { "retry.attempt": 1, "retry.delay_ms": 500, "retry.class": "transient", "retry.cost": 5 }],
          ["retry", { "retry.attempt": 2, "retry.delay_ms": 1000, "retry.class": "throttling", "retry.cost": 5 }],
          ["retry.stopped", { "retry.reason": "max-attempts", "retry.attempts": 3, "retry.class": "timeout" }]
        ])
      }).pipe(Effect.provide(RetryQuota.layer())))

    it.effect(`${form}: nothing of the error is in the events`, () =>
      Effect.gen(function*() {
        const { events, tracer } = recording()
        const secret = Object.assign(new Error("secret"), {
          $metadata: { httpStatusCode: 500, requestId: "secret" },
          $response: { headers: { authorization: "secret", "x-amz-retry-after": "700" }, body: "secret" },
          url: "https://x.test/?token=secret"
        })
        yield* inTime(
          Effect.withSpan(run(Effect.fail(secret)), "call").pipe(Effect.provideService(Tracer.Tracer, tracer))
        )
        const retries = events.filter(([name]) => name.startsWith("retry"))
        assert.strictEqual(retries.length, 3)
        assert.notInclude(JSON.stringify(retries), "secret")
      }).pipe(Effect.provide(RetryQuota.layer())))

    it.effect(`${form}: none switches the events off`, () =>
      Effect.gen(function*() {
        const { events, tracer } = recording()
        const error = new Transient()
        const exit = yield* inTime(
          Effect.withSpan(run(Effect.fail(error)), "call").pipe(
            Effect.provideService(Tracer.Tracer, tracer),
            Effect.provide(RetryObserver.layerOnly(RetryObserver.none))
          )
        )
        assert.strictEqual(Exit.isFailure(exit) && Cause.squash(exit.cause), error)
        assert.deepStrictEqual(events.filter(([name]) => name.startsWith("retry")), [])
      }).pipe(Effect.provide(RetryQuota.layer())))

    it.effect(`${form}: an observer that throws is a defect of the call, and no token is lost`, () =>
      Effect.gen(function*() {
        const broken: RetryObserver.RetryObserver = {
          onRetry: () => {
            throw new Error("broken observer")
          }
        }
        const exit = yield* inTime(
          Effect.provideService(run(Effect.fail(new Transient())), RetryObserver.CurrentObserver, broken)
        )
        assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
        assert.strictEqual(yield* RetryQuota.balance, 500)
        const caught = Effect.catchDefect(
          Effect.provideService(run(Effect.fail(new Transient())), RetryObserver.CurrentObserver, broken),
          () => Effect.void
        )
        const fiber = yield* Effect.forkChild(Effect.andThen(Effect.exit(caught), Effect.never))
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(yield* RetryQuota.balance, 500)
        yield* Fiber.interrupt(fiber)
      }).pipe(Effect.provide(RetryQuota.layer())))
  }

  it.effect("a span gets 128 events, then one that marks the limit, and no more; the next span gets its own", () =>
    Effect.gen(function*() {
      const { events, tracer } = recording()
      const endless = Effect.retry(
        Effect.fail(new Transient()),
        Backoff.fixed("1 second").pipe(RetryPolicy.maxAttempts(500))
      )
      const run = Effect.exit(Effect.withSpan(endless, "daemon")).pipe(Effect.provideService(Tracer.Tracer, tracer))
      yield* inTime(run)
      const names = events.map(([name]) => name).filter((name) => name.startsWith("retry"))
      assert.deepStrictEqual(names, [...Array.from({ length: 128 }, () => "retry"), "retry.dropped"])
      assert.strictEqual(events[128]?.[1]?.["retry.attempt"], 129)
      const again = Effect.withSpan(withRetry(scripted([new Transient()]).effect, awsStandard), "other")
      yield* inTime(Effect.provideService(again, Tracer.Tracer, tracer))
      assert.strictEqual(events.filter(([name]) => name.startsWith("retry")).length, 130)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("layer adds to the span events, and to another layer; layerOnly replaces them", () =>
    Effect.gen(function*() {
      const heard: Array<string> = []
      const hearing = (name: string): RetryObserver.RetryObserver => ({ onStop: () => void heard.push(name) })
      const namesWith = (layer: Layer.Layer<never>) =>
        Effect.gen(function*() {
          const { events, tracer } = recording()
          const call = Effect.withSpan(withRetry(Effect.fail(new Terminal()), awsStandard), "call")
          yield* inTime(Effect.provide(Effect.provideService(call, Tracer.Tracer, tracer), layer))
          return [events.map(([name]) => name).filter((name) => name.startsWith("retry")), heard.splice(0)]
        })
      const two = RetryObserver.layer(hearing("b")).pipe(Layer.provide(RetryObserver.layer(hearing("a"))))
      assert.deepStrictEqual(yield* namesWith(RetryObserver.layer(hearing("mine"))), [["retry.stopped"], ["mine"]])
      assert.deepStrictEqual(yield* namesWith(two), [["retry.stopped"], ["a", "b"]])
      assert.deepStrictEqual(yield* namesWith(RetryObserver.layerOnly(hearing("mine"))), [[], ["mine"]])
    }).pipe(Effect.provide(RetryQuota.layer())))

  for (const [form, run] of drivers) {
    it.effect(`${form}: the resource of the call is on span events, and in what each callback is given`, () =>
      Effect.gen(function*() {
        const { events, tracer } = recording()
        const told: Array<readonly [string, string | undefined]> = []
        const tells = (callback: string) => (_: unknown, _error: unknown, context: RetryObserver.Caller) =>
          void told.push([callback, Context.get(context, RetryObserver.CurrentResource)])
        const observer = {
          onAttempt: tells("onAttempt"),
          onRetry: tells("onRetry"),
          onStop: tells("onStop")
        }
        const call = Effect.suspend(() => run(scripted([new Transient(), new Terminal()]).effect)).pipe(
          Effect.withSpan("call"),
          Effect.provideService(Tracer.Tracer, tracer),
          Effect.provide(RetryObserver.layer(observer))
        )
        yield* inTime(Effect.provide(call, ResourceLimiters.quota("orders")))
        yield* inTime(Effect.provide(call, ResourceLimiters.get("customers")))
        yield* inTime(call.pipe(
          Effect.provideService(RetryObserver.CurrentResource, "mine"),
          Effect.provide(RetryQuota.layer())
        ))
        yield* inTime(Effect.provide(call, RetryQuota.layer()))
        const names = ["orders", "customers", "mine", undefined]
        const retryEvents = events.filter(([name]) => name.startsWith("retry"))
        assert.deepStrictEqual(
          retryEvents.map(([name, attributes]) => [name, attributes?.["retry.resource"]]),
          names.flatMap((resource) => [["retry", resource], ["retry.stopped", resource]])
        )
        assert.notProperty(retryEvents[6]?.[1], "retry.resource")
        assert.sameDeepMembers(
          told,
          names.flatMap((resource) =>
            ["onAttempt", "onRetry", "onAttempt", "onStop"].map((callback) => [callback, resource] as const)
          )
        )
      }).pipe(Effect.provide(ResourceLimiters.layer())))
  }

  for (const [name, policy] of [["a quota", awsStandard], ["no quota", Backoff.fixed(100)]] as const) {
    it.effect(`the resource around a retry is given with each of its sends and outcomes, under a policy with ${name}`, () =>
      Effect.gen(function*() {
        const told: Array<string | undefined> = []
        const tells = (context: RetryObserver.Caller) =>
          void told.push(Context.get(context, RetryObserver.CurrentResource))
        const sends = scripted([new Transient(), new Transient()])
        yield* inTime(
          Effect.retry(sends.effect, policy as typeof awsStandard).pipe(
            Effect.provideService(RetryObserver.CurrentResource, "orders"),
            Effect.provide(RetryObserver.layer({
              onAttempt: (_succeeded, _error, context) => tells(context),
              onSend: ({ context }) => tells(context)
            }))
          )
        )
        assert.deepStrictEqual(told, Array.from({ length: 6 }, () => "orders"))
      }).pipe(Effect.provide(RetryQuota.layer())))
  }

  it.effect("a strategy names the resource of its quota, whatever the caller", () =>
    Effect.gen(function*() {
      const resources: Array<string | undefined> = []
      const tells = (_: unknown, _error: unknown, context: RetryObserver.Caller) =>
        void resources.push(Context.get(context, RetryObserver.CurrentResource))
      const observed = RetryObserver.layer({ onAttempt: tells, onRetry: tells, onStop: tells })
      const strategy = Layer.provide(RetryStrategy.layer(awsStandard), ResourceLimiters.quota("orders"))
      const call = RetryStrategy.run(scripted([new Transient()]).effect)
      yield* inTime(Effect.provide(call, [strategy, observed]))
      assert.deepStrictEqual(resources, ["orders", "orders", "orders"])
    }).pipe(Effect.provide(ResourceLimiters.layer())))

  describe("merged layers", () => {
    const heard: Array<string> = []
    const on = (name: string): RetryObserver.RetryObserver => ({ onStop: () => void heard.push(name) })
    const add = (name: string) => RetryObserver.layer(on(name))
    const only = (name: string) => RetryObserver.layerOnly(on(name))
    const stops = <A, E>(self: Effect.Effect<A, E, RetryQuota.RetryQuota>) =>
      Effect.gen(function*() {
        const { events, tracer } = recording()
        const exit = Effect.exit(Effect.withSpan(self, "call")).pipe(Effect.provideService(Tracer.Tracer, tracer))
        yield* inTime(exit)
        return [...events.map(([name]) => name).filter((name) => name === "retry.stopped"), ...heard.splice(0)]
      }).pipe(Effect.provide(RetryQuota.layer()))
    const failing = Effect.fail(new Terminal())
    const call = withRetry(failing, awsStandard)
    const under = (layer: Layer.Layer<never>) => stops(Effect.provide(call, layer))

    const cases: ReadonlyArray<readonly [name: string, layer: Layer.Layer<never>, notified: ReadonlyArray<string>]> = [
      ["two", Layer.merge(add("a"), add("b")), ["retry.stopped", "a", "b"]],
      ["three", Layer.mergeAll(add("a"), add("b"), add("c")), ["retry.stopped", "a", "b", "c"]],
      ["merges of merges", Layer.merge(Layer.merge(add("a"), add("b")), Layer.merge(add("c"), add("d"))), [
        "retry.stopped",
        "a",
        "b",
        "c",
        "d"
      ]],
      ["one over another", Layer.merge(Layer.provide(add("b"), add("a")), add("c")), ["retry.stopped", "a", "b", "c"]],
      ["one that shows another", Layer.merge(add("c"), Layer.provideMerge(add("b"), add("a"))), [
        "retry.stopped",
        "c",
        "a",
        "b"
      ]],
      ["under another", Layer.provide(add("c"), Layer.merge(add("a"), add("b"))), ["retry.stopped", "a", "b", "c"]],
      ["one that replaces the span events, first", Layer.merge(only("x"), add("a")), ["x", "a"]],
      ["one that replaces the span events, last", Layer.merge(add("a"), only("x")), ["a", "x"]],
      ["two that replace them", Layer.merge(only("x"), only("y")), ["x", "y"]],
      ["replaced", Layer.provide(only("x"), Layer.merge(add("a"), add("b"))), ["x"]],
      ["replaced, and added to", Layer.provideMerge(add("c"), Layer.provideMerge(only("x"), add("a"))), ["x", "c"]]
    ]
    for (const [name, layer, notified] of cases) {
      it.effect(`all are notified: ${name}`, () =>
        Effect.gen(function*() {
          assert.deepStrictEqual(yield* under(layer), notified)
        }))
    }

    it.effect("the same layer twice is one, two layers of one observer are two", () =>
      Effect.gen(function*() {
        const layer = add("a")
        assert.deepStrictEqual(yield* under(Layer.merge(layer, layer)), ["retry.stopped", "a"])
        const observer = on("a")
        const two = Layer.merge(RetryObserver.layer(observer), RetryObserver.layer(observer))
        assert.deepStrictEqual(yield* under(two), ["retry.stopped", "a", "a"])
      }))

    it.effect("add to those around, once", () =>
      Effect.gen(function*() {
        const inner = Effect.provide(call, Layer.merge(add("b"), add("c")))
        const around = Effect.provide(inner, Layer.merge(add("a"), add("x")))
        assert.deepStrictEqual(yield* stops(around), ["retry.stopped", "a", "x", "b", "c"])
        const again = Effect.provide(Effect.provide(call, [add("b")]), [add("a")])
        assert.deepStrictEqual(yield* stops(again), ["retry.stopped", "a", "b"])
      }))

    it.effect("a service of one's own replaces them all, and what is added inside adds to it", () =>
      Effect.gen(function*() {
        const layers = Layer.merge(add("a"), add("b"))
        const own = Effect.provideService(call, RetryObserver.CurrentObserver, on("x"))
        assert.deepStrictEqual(yield* stops(Effect.provide(own, layers)), ["x"])
        const inner = Effect.provideService(
          Effect.provide(call, add("c")),
          RetryObserver.CurrentObserver,
          RetryObserver.spanEvents
        )
        assert.deepStrictEqual(yield* stops(Effect.provide(inner, layers)), ["retry.stopped", "c"])
      }))

    it.effect("RetryMetrics.layer is one of them", () =>
      Effect.gen(function*() {
        for (const reversed of [false, true]) {
          const two = [RetryMetrics.layer(), add("a")] as const
          const layers = reversed ? Layer.merge(two[1], two[0]) : Layer.merge(two[0], two[1])
          const counted = Effect.gen(function*() {
            yield* Effect.exit(call)
            const stops = (yield* Metric.snapshot).filter(({ id }) => id === "retry_stops_total")
            heard.push(`${stops.length} counted`)
          }).pipe(Effect.provide(layers), Effect.provideService(Metric.MetricRegistry, new Map() as any))
          assert.deepStrictEqual(yield* stops(counted), ["retry.stopped", "a", "1 counted"])
        }
      }))

    it.effect("a callback of any of them sees attempts, calls and sends, under each loop", () =>
      Effect.gen(function*() {
        const all: RetryObserver.RetryObserver = {
          onAttempt: () => void heard.push("attempt"),
          onSend: () => void heard.push("send"),
          onCall: (self) => Effect.andThen(Effect.sync(() => heard.push("call")), self)
        }
        const promised = Effect.flatMap(Effect.context<never>(), (context) =>
          Effect.promise(() => {
            const reject = () => Promise.reject(new Terminal())
            return RetryPromise.retryPromise(reject, awsStandard, { context }).catch(() => undefined)
          }))
        const loops = [
          call,
          RetryObserver.call(Effect.retry(failing, awsStandard)),
          promised,
          RetryStrategy.run(failing).pipe(Effect.provide(RetryStrategy.layer(awsStandard)))
        ]
        for (const layers of [[RetryObserver.layer(all), add("a")], [add("a"), RetryObserver.layer(all)]] as const) {
          for (const loop of loops) {
            const seen = yield* stops(Effect.provide(loop, Layer.merge(layers[0], layers[1])))
            assert.deepStrictEqual(seen.slice().sort(), ["a", "attempt", "call", "retry.stopped", "send"])
          }
        }
      }))
  })

  it("combine notifies both, the first one first", () => {
    const told: Array<string> = []
    const combined = RetryObserver.combine(
      { onAttempt: () => void told.push("first"), onStop: () => void told.push("stop") },
      { onAttempt: () => void told.push("second") }
    )
    combined.onAttempt?.(true, undefined, {} as any)
    combined.onStop?.({} as any, undefined, {} as any)
    assert.deepStrictEqual(told, ["first", "second", "stop"])
    assert.isUndefined(combined.onRetry)
  })

  it("the type of a callback allows nothing, or an effect that needs no services and cannot fail", () => {
    const observers: ReadonlyArray<RetryObserver.RetryObserver> = [
      { onAttempt: () => undefined, onRetry: () => Effect.void, onStop: () => {} },
      { onHedge: ({ event }) => event === "won" ? Effect.logDebug(event) : undefined },
      // @ts-expect-error: a value would be lost
      { onAttempt: () => 1 },
      // @ts-expect-error: the effect can fail
      // @effect-diagnostics-next-line missingEffectError:off
      { onRetry: () => Effect.fail("no") },
      // @ts-expect-error: nobody provides the quota
      // @effect-diagnostics-next-line missingEffectContext:off
      { onStop: () => Effect.asVoid(RetryQuota.balance) }
    ]
    assert.strictEqual(observers.length, 5)
  })
})

describe("RetryMetrics", () => {
  const reading = Effect.map(Metric.snapshot, (snapshots) =>
    Object.fromEntries(
      snapshots.filter(({ id }) => id.startsWith("retry_")).map(({ attributes, id, state }) => [
        [id, ...Object.entries(attributes ?? {}).map((pair) => pair.join("=")).sort()].join(" "),
        "count" in state ? state.count : "value" in state ? state.value : state
      ])
    ))
  const ownRegistry = <A, E, R>(self: Effect.Effect<A, E, R>) =>
    Effect.provideService(self, Metric.MetricRegistry, new Map() as any)

  for (const [form, run] of drivers) {
    const called = form === "Effect.retry" ? RetryObserver.call : <A>(self: A): A => self
    it.effect(`${form}: counts attempts, calls, retries, delays and stops, and shows the balance`, () =>
      Effect.gen(function*() {
        yield* inTime(called(run(scripted([new Transient(), new Throttled({})]).effect)))
        yield* inTime(called(run(scripted([new Terminal()]).effect)))
        const seen = yield* reading
        assert.deepStrictEqual(seen, {
          "retry_attempts_total error.type=Transient outcome=failure": 1,
          "retry_attempts_total error.type=Throttled outcome=failure": 1,
          "retry_attempts_total error.type=Terminal outcome=failure": 1,
          "retry_attempts_total outcome=success": 1,
          "retry_attempt_duration_seconds outcome=failure unit=s": 3,
          "retry_attempt_duration_seconds outcome=success unit=s": 1,
          "retry_call_duration_seconds outcome=failure unit=s": 1,
          "retry_call_duration_seconds outcome=success unit=s": 1,
          "retry_retries_total class=transient": 1,
          "retry_retries_total class=throttling": 1,
          "retry_delay_seconds class=transient unit=s": 1,
          "retry_delay_seconds class=throttling unit=s": 1,
          "retry_stops_total reason=final": 1,
          "retry_quota_balance": 495,
          "retry_quota_capacity": 500,
          "retry_quota_empty_since_seconds unit=s": 0
        })
      }).pipe(ownRegistry, Effect.provide(Layer.merge(RetryQuota.layer(), RetryMetrics.layer())), ownRegistry))
  }

  it.effect("shows the balance after a stop, too", () =>
    Effect.gen(function*() {
      yield* Effect.orDie(RetryQuota.reserve(100))
      RetryMetrics.make().onStop?.(
        new RetryDecision.Stop({ attempt: 1, info: undefined }, "quota-exhausted"),
        undefined,
        yield* Effect.context<never>()
      )
      assert.strictEqual((yield* reading)["retry_quota_balance"], 400)
    }).pipe(ownRegistry, Effect.provide(RetryQuota.layer()), ownRegistry))

  it.effect("shows the fill rate of the limiter", () =>
    Effect.gen(function*() {
      yield* inTime(withRetry(scripted([new Throttled({})]).effect, awsAdaptive))
      assert.isAtLeast((yield* reading)["retry_fill_rate"] as number, 0.5)
    }).pipe(
      ownRegistry,
      Effect.provide(Layer.mergeAll(RetryQuota.layer(), AdaptiveRateLimiter.layer(), RetryMetrics.layer()))
    ))

  it.effect("does nothing until it is provided", () =>
    Effect.gen(function*() {
      yield* inTime(withRetry(Effect.fail(new Transient()), awsStandard))
      assert.deepStrictEqual(yield* reading, {})
    }).pipe(ownRegistry, Effect.provide(RetryQuota.layer())))

  it.effect("keeps the observer that was in force", () =>
    Effect.gen(function*() {
      let told = 0
      const program = inTime(withRetry(Effect.fail(new Terminal()), awsStandard)).pipe(
        Effect.provide(RetryMetrics.layer().pipe(Layer.provide(RetryObserver.layer({ onStop: () => void told++ }))))
      )
      yield* program
      assert.strictEqual(told, 1)
    }).pipe(ownRegistry, Effect.provide(RetryQuota.layer())))

  describe("by resource", () => {
    /** One call of each resource, which fails once and is throttled once. */
    const callOf = (resource: string) =>
      withRetry(scripted([new Transient(), new Throttled({})]).effect, awsAdaptive).pipe(
        Effect.provide(ResourceLimiters.get(resource))
      )
    const metered = (options?: RetryMetrics.Options) =>
      Layer.mergeAll(
        ResourceLimiters.layer({ quota: { capacity: 100 }, idleTimeToLive: "1 hour" }),
        RetryMetrics.layer(options)
      )

    it.effect("each has metrics of its own, and its own gauges", () =>
      Effect.gen(function*() {
        yield* inTime(callOf("orders"))
        yield* inTime(callOf("customers"))
        yield* inTime(
          withRetry(Effect.fail(new Terminal()), awsStandard).pipe(Effect.provide(ResourceLimiters.quota("orders")))
        )
        const { "retry_fill_rate resource=customers": customers, "retry_fill_rate resource=orders": orders, ...seen } =
          yield* reading
        assert.isAtLeast(customers as number, 0.5)
        assert.isAtLeast(orders as number, 0.5)
        assert.deepStrictEqual(seen, {
          "retry_attempts_total error.type=Transient outcome=failure resource=orders": 1,
          "retry_attempts_total error.type=Throttled outcome=failure resource=orders": 1,
          "retry_attempts_total outcome=success resource=orders": 1,
          "retry_attempt_duration_seconds outcome=failure resource=orders unit=s": 3,
          "retry_attempt_duration_seconds outcome=success resource=orders unit=s": 1,
          "retry_call_duration_seconds outcome=success resource=orders unit=s": 1,
          "retry_retries_total class=transient resource=orders": 1,
          "retry_retries_total class=throttling resource=orders": 1,
          "retry_delay_seconds class=transient resource=orders unit=s": 1,
          "retry_delay_seconds class=throttling resource=orders unit=s": 1,
          "retry_quota_balance resource=orders": 95,
          "retry_quota_capacity resource=orders": 100,
          "retry_quota_empty_since_seconds resource=orders unit=s": 0,
          "retry_attempts_total error.type=Terminal outcome=failure resource=orders": 1,
          "retry_call_duration_seconds outcome=failure resource=orders unit=s": 1,
          "retry_stops_total reason=final resource=orders": 1,
          "retry_attempts_total error.type=Transient outcome=failure resource=customers": 1,
          "retry_attempts_total error.type=Throttled outcome=failure resource=customers": 1,
          "retry_attempts_total outcome=success resource=customers": 1,
          "retry_attempt_duration_seconds outcome=failure resource=customers unit=s": 2,
          "retry_attempt_duration_seconds outcome=success resource=customers unit=s": 1,
          "retry_call_duration_seconds outcome=success resource=customers unit=s": 1,
          "retry_retries_total class=transient resource=customers": 1,
          "retry_retries_total class=throttling resource=customers": 1,
          "retry_delay_seconds class=transient resource=customers unit=s": 1,
          "retry_delay_seconds class=throttling resource=customers unit=s": 1,
          "retry_quota_balance resource=customers": 95,
          "retry_quota_capacity resource=customers": 100,
          "retry_quota_empty_since_seconds resource=customers unit=s": 0
        })
      }).pipe(ownRegistry, Effect.provide(metered()), ownRegistry))

    it.effect("two tables that drain their quotas differently show two balances", () =>
      Effect.gen(function*() {
        const drain = (resource: string, tokens: number) =>
          Effect.orDie(RetryQuota.reserve(tokens)).pipe(
            Effect.andThen(Effect.exit(withRetry(Effect.fail(new Terminal()), awsStandard))),
            Effect.provide(ResourceLimiters.quota(resource))
          )
        yield* drain("orders", 30)
        yield* drain("customers", 80)
        const seen = yield* reading
        assert.strictEqual(seen["retry_quota_balance resource=orders"], 70)
        assert.strictEqual(seen["retry_quota_balance resource=customers"], 20)
        assert.notProperty(seen, "retry_quota_balance")
      }).pipe(ownRegistry, Effect.provide(metered()), ownRegistry))

    const stop = (resource: string) =>
      Effect.exit(withRetry(Effect.fail(new Terminal()), awsStandard)).pipe(
        Effect.provide(ResourceLimiters.quota(resource))
      )
    const stopsAndGauges = Effect.map(
      reading,
      (seen) => Object.fromEntries(Object.entries(seen).filter(([name]) => /^retry_(stops|quota_balance)/.test(name)))
    )

    for (const [most, named] of [[0, []], [1, ["a"]], [2, ["a", "b"]], [3, ["a", "b", "c"]]] as const) {
      it.effect(`with capacity ${most}, the others share one value, and have no gauge`, () =>
        Effect.gen(function*() {
          for (const resource of ["a", "b", "c", "a", "b", "c"]) yield* stop(resource)
          const others = 6 - 2 * named.length
          assert.deepStrictEqual(yield* stopsAndGauges, {
            ...Object.fromEntries(named.flatMap((resource) => [
              [`retry_stops_total reason=final resource=${resource}`, 2],
              [`retry_quota_balance resource=${resource}`, 100]
            ])),
            ...(others === 0 ? {} : { "retry_stops_total reason=final resource=(others)": others })
          })
        }).pipe(ownRegistry, Effect.provide(metered({ capacity: most })), ownRegistry))
    }

    it.effect("1,000 resources make 100 series of a metric, and one for the others", () =>
      Effect.gen(function*() {
        for (let n = 0; n < 1000; n++) yield* stop(`tenant-${n}`)
        const names = Object.keys(yield* stopsAndGauges)
        assert.strictEqual(names.filter((name) => name.startsWith("retry_stops")).length, 101)
        assert.strictEqual(names.filter((name) => name.startsWith("retry_quota_balance")).length, 100)
      }).pipe(ownRegistry, Effect.provide(metered()), ownRegistry))

    it.effect("a layer that is provided for each call keeps the limit: it is that of the registry", () =>
      Effect.gen(function*() {
        for (const resource of ["a", "b", "c", "(others)"]) {
          yield* Effect.provide(stop(resource), RetryMetrics.layer({ capacity: 2 }))
        }
        assert.deepStrictEqual(yield* stopsAndGauges, {
          "retry_stops_total reason=final resource=a": 1,
          "retry_quota_balance resource=a": 500,
          "retry_stops_total reason=final resource=b": 1,
          "retry_quota_balance resource=b": 500,
          "retry_stops_total reason=final resource=(others)": 2
        })
        yield* ownRegistry(Effect.gen(function*() {
          yield* Effect.provide(stop("c"), RetryMetrics.layer({ capacity: 2 }))
          assert.strictEqual((yield* stopsAndGauges)["retry_stops_total reason=final resource=c"], 1)
        }))
      }).pipe(ownRegistry, Effect.provide(ResourceLimiters.layer())))

    for (const capacity of [-1, 1.5, NaN, "10"] as ReadonlyArray<number>) {
      it(`refuses capacity ${JSON.stringify(capacity)}`, () => {
        for (const make of [RetryMetrics.make, RetryMetrics.layer]) {
          try {
            make({ capacity })
            assert.fail("took it")
          } catch (error) {
            assert.instanceOf(error, InvalidOption)
            assert.strictEqual(error.field, "capacity")
          }
        }
      })
    }
  })
})
