import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  AwsModes,
  awsStandard,
  Backoff,
  RetryMetrics,
  RetryObserver,
  RetryPolicy,
  RetryQuota,
  SendGate,
  withRetry
} from "effect-retry"
import * as SmithyGuide from "effect-retry/aws/legacy/SmithyGuide"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import * as Hedge from "effect-retry/Hedge"
import * as RetryConfig from "effect-retry/RetryConfig"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import * as Tracer from "effect/Tracer"
import { constantRandom, scripted, Terminal, TimedOut, Transient } from "../utils/call.ts"

/** Runs with a registry of its own. */
const ownRegistry = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.provideService(self, Metric.MetricRegistry, new Map())

const nameOf = ({ attributes, id }: Metric.Metric.Snapshot): string =>
  [id, ...Object.entries(attributes ?? {}).filter(([key]) => key !== "unit").map((pair) => pair.join("=")).sort()]
    .join(" ")

/** The values of the metrics whose names match; of histograms, sum and count. */
const reading = (pattern: RegExp) =>
  Effect.map(Metric.snapshot, (snapshots) =>
    Object.fromEntries(
      snapshots.filter(({ id }) => pattern.test(id)).map((snapshot) => {
        const { state } = snapshot
        const value = "sum" in state ? [state.count, Math.round(state.sum * 1e6) / 1e6] : "count" in state
          ? state.count
          : "value" in state
          ? state.value
          : undefined
        return [nameOf(snapshot), value]
      })
    ))

/** Waits a second before each retry; three attempts. */
const policy = Backoff.fixed("1 second").pipe(RetryPolicy.whileRetryable, RetryPolicy.maxAttempts(3))

/** A send of this duration. */
const taking = <A, E>(self: Effect.Effect<A, E>, millis: number) => Effect.andThen(Effect.sleep(millis), self)

const inTime = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(Effect.provideService(self, Random.Random, constantRandom(0.5)))
    yield* TestClock.adjust("10 minutes")
    return yield* Fiber.await(fiber)
  })

const metered = RetryMetrics.layer()

type Run = <A, E>(self: Effect.Effect<A, E>) => Effect.Effect<A, unknown>
const drivers: ReadonlyArray<readonly [string, Run]> = [
  ["withRetry", (self) => withRetry(self, policy)],
  ["Effect.retry", (self) => RetryObserver.call(Effect.retry(self, policy))],
  ["RetryStrategy.run", (self) => RetryStrategy.run(self).pipe(Effect.provide(RetryStrategy.layer(policy)))]
]

describe("RetryMetrics, timed", () => {
  for (const [form, run] of drivers) {
    it.effect(`${form}: an attempt takes what the send takes; a call, all that is between`, () =>
      Effect.gen(function*() {
        yield* inTime(run(taking(scripted([new Transient(), new Transient()]).effect, 200)))
        yield* inTime(run(taking(Effect.fail(new Terminal()), 300)))
        assert.deepStrictEqual(yield* reading(/duration|_delay/), {
          "retry_attempt_duration_seconds outcome=failure": [3, 0.7],
          "retry_attempt_duration_seconds outcome=success": [1, 0.2],
          "retry_call_duration_seconds outcome=failure": [1, 0.3],
          "retry_call_duration_seconds outcome=success": [1, 2.6],
          "retry_delay_seconds class=transient": [2, 2]
        })
      }).pipe(Effect.provide(metered), ownRegistry))

    it.effect(`${form}: what is interrupted, or dies, has an outcome too: unknown`, () =>
      Effect.gen(function*() {
        yield* inTime(Effect.timeoutOption(run(taking(Effect.succeed(1), 60_000)), "2 seconds"))
        yield* inTime(Effect.exit(run(Effect.die("broken"))))
        assert.deepStrictEqual(yield* reading(/duration|attempts/), {
          "retry_attempts_total outcome=unknown": 2,
          "retry_attempt_duration_seconds outcome=unknown": [2, 2],
          "retry_call_duration_seconds outcome=unknown": [2, 2]
        })
      }).pipe(Effect.provide(metered), ownRegistry))

    it.effect(`${form}: with a quota and gates each send is still counted once`, () =>
      Effect.gen(function*() {
        yield* inTime(run(taking(scripted([new Transient(), new Transient()]).effect, 100)))
        assert.deepStrictEqual(yield* reading(/attempts/), {
          "retry_attempts_total error.type=Transient outcome=failure": 2,
          "retry_attempts_total outcome=success": 1
        })
      }).pipe(
        Effect.provide([RetryQuota.layer(), ConcurrencyLimiter.layer(), CoolDown.layer(), metered]),
        ownRegistry
      ))

    it.effect(`${form}: counts the retries without any gate`, () =>
      Effect.gen(function*() {
        yield* inTime(run(scripted([new Transient(), new TimedOut()]).effect))
        assert.deepStrictEqual(yield* reading(/retries/), {
          "retry_retries_total class=transient": 1,
          "retry_retries_total class=timeout": 1
        })
      }).pipe(Effect.provide(metered), ownRegistry))

    it.effect(`${form}: counts the retries that are sent, no hedges, and none that a gate refuses`, () =>
      Effect.gen(function*() {
        const call = scripted([new Transient(), new TimedOut()])
        yield* inTime(run(taking(call.effect, 100)))
        const counts = { ...yield* reading(/retries|_delay_/) }
        assert.deepStrictEqual(counts, {
          "retry_retries_total class=transient": 1,
          "retry_delay_seconds class=transient": [1, 1],
          "retry_delay_seconds class=timeout": [1, 1]
        })
        yield* inTime(run(scripted([new TimedOut(), new TimedOut()]).effect))
        assert.strictEqual((yield* reading(/retries/))["retry_retries_total class=timeout"], undefined)
        let sends = 0
        const hedged = Hedge.hedged(Effect.suspend(() => ++sends === 1 ? Effect.never : Effect.succeed(1)), {
          after: 10
        })
        yield* TestClock.adjust("1 minute")
        yield* inTime(run(Effect.provideService(hedged, Hedge.Hedge, yield* Hedge.Hedge)))
        assert.deepStrictEqual(yield* reading(/retries|hedges/), {
          "retry_retries_total class=transient": 1,
          "retry_hedges_total event=sent": 1,
          "retry_hedges_total event=won": 1
        })
      }).pipe(
        Effect.provide([
          ConcurrencyLimiter.layer({ rule: { ...ConcurrencyLimiter.adaptive(), limit: () => 9 } }),
          Layer.unwrap(Effect.map(RetryQuota.make(), ({ store }) => Hedge.layer({ budget: store }))),
          metered
        ]),
        ownRegistry
      ))
  }

  it.effect("a retried effect is counted as one send each time, whatever races inside it", () =>
    Effect.gen(function*() {
      const call = scripted([new Transient(), new Transient()])
      let sends = 0
      const both = Effect.suspend(() => {
        sends++
        return Effect.all([call.effect, call.effect], { concurrency: 2, mode: "default" })
      })
      yield* inTime(Effect.retry(both, AwsModes.standard({ maxAttempts: 5 })))
      const seen = yield* reading(/attempts/)
      const total = Object.values(seen).reduce<number>((sum, count) => sum + (count as number), 0)
      assert.isAbove(call.sends, sends)
      assert.strictEqual(total, sends)
    }).pipe(Effect.provide([RetryQuota.layer(), metered]), ownRegistry))

  it.effect("a success whose policy refunds on its own is a success", () =>
    Effect.gen(function*() {
      yield* inTime(
        RetryStrategy.run(Effect.succeed(1)).pipe(Effect.provide(SmithyGuide.layer(SmithyGuide.april2026)))
      )
      assert.deepStrictEqual(yield* reading(/attempts/), { "retry_attempts_total outcome=success": 1 })
    }).pipe(Effect.provide([RetryQuota.layer(), metered]), ownRegistry))

  it.effect("shows how long each gate makes sends wait, and which it refuses", () =>
    Effect.gen(function*() {
      const send = withRetry(taking(Effect.succeed(1), 200), policy)
      yield* inTime(Effect.all([send, send, send].map((one) => Effect.exit(one)), { concurrency: 3 }))
      assert.deepStrictEqual(yield* reading(/_wait_/), {
        "retry_wait_seconds gate=ConcurrencyLimiter outcome=passed": [1, 0.2],
        "retry_wait_seconds gate=ConcurrencyLimiter outcome=refused": [1, 0.25]
      })
    }).pipe(
      Effect.provide([ConcurrencyLimiter.layer({ rule: ConcurrencyLimiter.fixed(1) }), metered]),
      ownRegistry
    ))

  it.effect("shows how long retries wait for tokens, and a wait that is interrupted", () =>
    Effect.gen(function*() {
      const call = withRetry(
        Effect.fail(new Transient()),
        Backoff.fixed(1).pipe(RetryPolicy.maxAttempts(2), RetryPolicy.quotaGated({ cost: 1 }))
      )
      yield* inTime(Effect.exit(call))
      yield* Effect.orDie(RetryQuota.reserve(1))
      yield* inTime(Effect.timeoutOption(call, "250 millis"))
      assert.deepStrictEqual(yield* reading(/_wait_/), {
        "retry_wait_seconds gate=RetryQuota outcome=passed": [1, 1],
        "retry_wait_seconds gate=RetryQuota outcome=unknown": [1, 0.25]
      })
    }).pipe(
      Effect.provide([
        RetryQuota.layer({ capacity: 1, initial: 0, refillPerSecond: 1, onExceeded: "wait" }),
        metered
      ]),
      ownRegistry
    ))

  class Slow extends SendGate.Service<Slow>()("test/Slow") {}

  it.effect("gates without a name count as one, and no more than 20 names are kept apart", () =>
    Effect.gen(function*() {
      const pass: SendGate.Pass = { settle: () => undefined, cancel: () => undefined }
      const gate = (name?: string): SendGate.SendGate<never> => ({
        name,
        order: 1,
        enter: (send) => Effect.sync(() => send.hold(pass))
      })
      const through = (name?: string) =>
        withRetry(Effect.succeed(1), policy).pipe(Effect.provide(SendGate.layer(Slow, gate(name))))
      yield* through()
      for (let n = 0; n < 30; n++) yield* through(`gate-${n}`)
      const names = Object.keys(yield* reading(/_wait_/))
      assert.strictEqual(names.length, 21)
      assert.include(names, "retry_wait_seconds gate=gate outcome=passed")
      assert.include(names, "retry_wait_seconds gate=(others) outcome=passed")
    }).pipe(Effect.provide(metered), ownRegistry))

  it.effect("error.type is the status, the code, the tag or the name, never a message; at most 50 of them", () =>
    Effect.gen(function*() {
      const failing = (error: unknown) => inTime(withRetry(Effect.fail(error), policy))
      const errors = [
        Object.assign(new Error("secret"), { $metadata: { httpStatusCode: 403 } }),
        Object.assign(new Error("secret"), { code: "EACCES" }),
        new TypeError("secret"),
        new Error("secret"),
        "secret",
        ...Array.from({ length: 100 }, (_, n) => Object.assign(new Error("secret"), { code: `E${n}` }))
      ]
      for (const error of errors) yield* failing(error)
      const names = Object.keys(yield* reading(/attempts/))
      assert.strictEqual(names.length, 50)
      for (const type of ["403", "EACCES", "TypeError", "_OTHER", "E40"]) {
        assert.include(names, `retry_attempts_total error.type=${type} outcome=failure`)
      }
      assert.notInclude(names.join(), "secret")
      // A peer that invents names hides none of those that the library reads.
      for (const code of ["ECONNREFUSED", "ETIMEDOUT", "ThrottlingException"]) {
        yield* failing(Object.assign(new Error("secret"), { code }))
        assert.include(
          Object.keys(yield* reading(/attempts/)),
          `retry_attempts_total error.type=${code} outcome=failure`
        )
      }
      yield* failing(Object.assign(new Error("secret"), { $metadata: { httpStatusCode: 503 } }))
      assert.include(Object.keys(yield* reading(/attempts/)), "retry_attempts_total error.type=503 outcome=failure")
    }).pipe(Effect.provide(metered), ownRegistry))
})

describe("RetryMetrics, hedged", () => {
  it.effect("the first send of a hedged call is counted once, by the retry around it", () =>
    Effect.gen(function*() {
      yield* inTime(withRetry(Hedge.hedged(Effect.succeed(1)), policy))
      assert.deepStrictEqual(yield* reading(/attempts/), { "retry_attempts_total outcome=success": 1 })
    }).pipe(Effect.provide([Hedge.layer(), metered]), ownRegistry))
})

describe("RetryMetrics, gauges", () => {
  it.effect("show the limiter, the cool-down and the quota as they are when read", () =>
    Effect.gen(function*() {
      const limiter = yield* ConcurrencyLimiter.ConcurrencyLimiter
      const coolDown = yield* CoolDown.CoolDown
      yield* Effect.forkChild(withRetry(taking(Effect.succeed(1), 5000), policy))
      yield* TestClock.adjust("1 second")
      const gauges = reading(/concurrency|cool_down|quota/)
      assert.deepStrictEqual(yield* gauges, {
        retry_concurrency_limit: 20,
        retry_concurrency_in_flight: 1,
        retry_concurrency_waiting: 0,
        retry_cool_down_phase: 0,
        retry_quota_balance: 500,
        retry_quota_capacity: 500,
        retry_quota_empty_since_seconds: 0
      })
      yield* Effect.orDie(RetryQuota.reserve(40))
      yield* Effect.orDie(coolDown.close("1 minute"))
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* limiter.state).inFlight, 0)
      const later = yield* gauges
      assert.strictEqual(later["retry_concurrency_in_flight"], 0)
      assert.strictEqual(later["retry_cool_down_phase"], 2)
      assert.strictEqual(later["retry_quota_balance"], 461)
    }).pipe(
      Effect.provide([RetryQuota.layer(), ConcurrencyLimiter.layer(), CoolDown.layer(), metered]),
      ownRegistry
    ))

  it.effect("are those that a gate of the user's brings, but for one that throws", () =>
    Effect.gen(function*() {
      class Own extends SendGate.Service<Own>()("test/RetryMetrics/gauges") {}
      const pass: SendGate.Pass = { settle: () => undefined, cancel: () => undefined }
      const gauges: ReadonlyArray<SendGate.Gauge> = [
        { name: "own_open", description: "Whether it is open", read: (gate) => gate.order },
        { name: "own_clock", description: "When it was read", read: (_gate, nowMillis) => nowMillis },
        { name: "own_slip", description: "A slip", read: ({ nothing }) => nothing.there }
      ]
      const gate = SendGate.layer(Own, { order: 7, gauges, enter: (send) => send.hold(pass) })
      yield* Effect.provide(withRetry(Effect.succeed(1), policy), gate)
      yield* TestClock.adjust("1 second")
      const shown = yield* reading(/own/)
      assert.strictEqual(shown["own_open"], 7)
      assert.strictEqual(shown["own_clock"], 1000)
    }).pipe(Effect.provide(metered), ownRegistry))

  it.effect("are those of a resource of RetryConfig", () =>
    Effect.gen(function*() {
      yield* withRetry(Effect.succeed(1), policy).pipe(Effect.provide(RetryConfig.resource("orders")))
      assert.deepStrictEqual(yield* reading(/fill_rate|concurrency|cool_down/), {
        "retry_fill_rate resource=orders": 0.5,
        "retry_concurrency_limit resource=orders": 20,
        "retry_concurrency_in_flight resource=orders": 0,
        "retry_concurrency_waiting resource=orders": 0,
        "retry_cool_down_phase resource=orders": 0
      })
    }).pipe(
      Effect.provide([RetryConfig.layer({ default: { limiter: {}, concurrency: {}, coolDown: {} } }), metered]),
      ownRegistry
    ))

  it.effect("the quota is empty since the first refusal, until it can pay for a retry again", () =>
    Effect.gen(function*() {
      const failing = Effect.exit(withRetry(Effect.fail(new Transient()), awsStandard))
      const since = Effect.map(reading(/empty/), (seen) => seen["retry_quota_empty_since_seconds"])
      yield* inTime(failing)
      assert.strictEqual(yield* since, 0)
      yield* inTime(failing)
      yield* inTime(failing)
      const empty = yield* since
      assert.isAbove(empty as number, 0)
      yield* inTime(failing)
      assert.strictEqual(yield* since, empty)
      for (let n = 0; n < 4; n++) yield* withRetry(Effect.succeed(1), awsStandard)
      assert.strictEqual(yield* since, empty)
      yield* withRetry(Effect.succeed(1), awsStandard)
      assert.strictEqual(yield* since, 0)
    }).pipe(Effect.provide([RetryQuota.layer({ capacity: 10, successIncrement: 1 }), metered]), ownRegistry))

  it.effect("those of a recreated quota follow the new one", () =>
    Effect.gen(function*() {
      const stop = Effect.exit(withRetry(Effect.fail(new Terminal()), awsStandard))
      yield* Effect.provide(stop, RetryQuota.layer({ capacity: 10 }))
      yield* Effect.provide(stop, RetryQuota.layer({ capacity: 20 }))
      assert.strictEqual((yield* reading(/capacity/))["retry_quota_capacity"], 20)
    }).pipe(Effect.provide(metered), ownRegistry))

  it.effect("are of what the calls go through, and of nothing that is not there", () =>
    Effect.gen(function*() {
      const stop = Effect.exit(withRetry(Effect.fail(new Terminal()), awsStandard))
      const gauges = reading(/fill_rate|concurrency|cool_down|quota/)
      const without = yield* ownRegistry(Effect.andThen(stop, gauges)).pipe(Effect.provide(RetryQuota.layer()))
      assert.deepStrictEqual(Object.keys(without).sort(), [
        "retry_quota_balance",
        "retry_quota_capacity",
        "retry_quota_empty_since_seconds"
      ])
      const all = Effect.provide(stop, [AdaptiveRateLimiter.layer(), ConcurrencyLimiter.layer(), CoolDown.layer()])
      // A call without them comes after one with them: it has nothing to show, and takes nothing away.
      const seen = yield* ownRegistry(Effect.andThen(Effect.andThen(all, stop), gauges)).pipe(
        Effect.provide(RetryQuota.layer())
      )
      assert.deepStrictEqual(Object.keys(seen).sort(), [
        "retry_concurrency_in_flight",
        "retry_concurrency_limit",
        "retry_concurrency_waiting",
        "retry_cool_down_phase",
        "retry_fill_rate",
        ...Object.keys(without).sort()
      ])
      assert.isAbove(seen["retry_fill_rate"] as number, 0)
    }).pipe(Effect.provide(metered)))

  it.effect("are kept by resource, and all beyond the most have their counts together and no gauges", () =>
    Effect.gen(function*() {
      const stop = Effect.exit(withRetry(Effect.fail(new Terminal()), awsStandard))
      for (const resource of ["a", "b", "a", "c", "d", "(others)"]) {
        yield* Effect.provideService(stop, RetryObserver.CurrentResource, resource)
      }
      yield* stop
      assert.deepStrictEqual(yield* reading(/stops/), {
        "retry_stops_total reason=final": 1,
        "retry_stops_total reason=final resource=a": 2,
        "retry_stops_total reason=final resource=b": 1,
        "retry_stops_total reason=final resource=(others)": 3
      })
      assert.deepStrictEqual(Object.keys(yield* reading(/capacity/)).sort(), [
        "retry_quota_capacity",
        "retry_quota_capacity resource=a",
        "retry_quota_capacity resource=b"
      ])
    }).pipe(Effect.provide([RetryQuota.layer(), RetryMetrics.layer({ capacity: 2 })]), ownRegistry))

  it("counters only count up, and times are in seconds with the boundaries of OpenTelemetry", () => {
    const all: ReadonlyArray<unknown> = Object.values(RetryMetrics)
    const ofType = (type: string): ReadonlyArray<unknown> =>
      all.filter(Metric.isMetric).filter((metric) => metric.type === type)
    const counters = ofType("Counter") as ReadonlyArray<Metric.Counter<number>>
    const histograms = ofType("Histogram") as ReadonlyArray<Metric.Histogram<number>>
    assert.deepStrictEqual([counters.length, histograms.length], [4, 4])
    Effect.runSync(ownRegistry(Effect.gen(function*() {
      for (const metric of counters) {
        yield* Metric.update(metric, 2)
        yield* Metric.update(metric, -1)
        assert.deepStrictEqual(yield* Metric.value(metric), { count: 2, incremental: true }, metric.id)
        assert.match(metric.id, /_total$/)
      }
      for (const metric of histograms) {
        const { buckets } = yield* Metric.value(metric)
        assert.deepStrictEqual(
          buckets.map(([boundary]) => boundary).filter(Number.isFinite),
          [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60],
          metric.id
        )
        assert.match(metric.id, /_seconds$/)
      }
    })))
  })

  it.effect("hedges are counted by what became of them", () =>
    Effect.gen(function*() {
      const context = yield* Effect.context<never>()
      for (const event of ["sent", "won", "sent", "lost", "refused"] as const) {
        RetryMetrics.make().onHedge?.({ event, hedge: 1, reason: undefined }, undefined, context)
      }
      assert.deepStrictEqual(yield* reading(/hedges/), {
        "retry_hedges_total event=sent": 2,
        "retry_hedges_total event=won": 1,
        "retry_hedges_total event=lost": 1,
        "retry_hedges_total event=refused": 1
      })
    }).pipe(ownRegistry))
})

describe("RetryMetrics, exported", () => {
  it.effect("Effect's exporter for Prometheus gives each metric the name and the labels that the pages use", () =>
    Effect.gen(function*() {
      yield* inTime(withRetry(scripted([new Transient()]).effect, awsStandard))
      const text = yield* PrometheusMetrics.format()
      assert.include(text, `retry_attempts_total{outcome="failure",error_type="Transient"} 1`)
      assert.include(text, `retry_delay_seconds_bucket{class="transient",le="0.5"} 1`)
      assert.include(text, "# TYPE retry_quota_balance gauge")
    }).pipe(Effect.provide([RetryQuota.layer(), metered]), ownRegistry))
})

describe("RetryObserver, around", () => {
  it.effect("onCall and onWait can put spans around calls and waits; both observers of two are around", () =>
    Effect.gen(function*() {
      const spans: Array<string> = []
      const tracer = Tracer.make({
        span: (options) => {
          spans.push(options.name)
          return new Tracer.NativeSpan(options)
        }
      })
      const sends: Array<number> = []
      const spanning: RetryObserver.RetryObserver = {
        onCall: (call) => Effect.withSpan(call, "call"),
        onSend: ({ attempt }) => sends.push(attempt),
        onWait: (wait, gate) => Effect.withSpan(wait, `wait ${gate}`)
      }
      const send = withRetry(taking(scripted([new Transient()]).effect, 100), policy)
      yield* inTime(
        Effect.all([send, withRetry(Effect.succeed(1), policy)], { concurrency: 2 }).pipe(
          Effect.provide(
            Layer.merge(
              ConcurrencyLimiter.layer({ rule: ConcurrencyLimiter.fixed(1) }),
              RetryObserver.layerOnly(RetryObserver.combine(spanning, spanning))
            )
          ),
          Effect.provideService(Tracer.Tracer, tracer)
        )
      )
      assert.deepStrictEqual(spans, [
        "call",
        "call",
        "call",
        "call",
        "wait ConcurrencyLimiter",
        "wait ConcurrencyLimiter"
      ])
      assert.deepStrictEqual(sends, [1, 1, 1, 1, 2, 2])
    }))

  for (const [form, run] of drivers) {
    it.effect(`sends and what the observer sees are inside what onCall returns: ${form}`, () =>
      Effect.gen(function*() {
        const seen: Array<string> = []
        const see = (context: RetryObserver.Caller) => {
          const span = Context.getOrUndefined(context, Tracer.ParentSpan)
          seen.push(span?._tag === "Span" ? span.name : "none")
        }
        const observer: RetryObserver.RetryObserver = {
          onCall: (call) => Effect.withSpan(call, "call"),
          onRetry: (_, __, context) => see(context)
        }
        let sends = 0
        const send = Effect.withFiber(({ context }) => {
          see(context)
          return sends++ < 2 ? Effect.fail(new Transient()) : Effect.void
        })
        yield* inTime(Effect.provideService(run(send), RetryObserver.CurrentObserver, observer))
        assert.deepStrictEqual(seen, ["call", "call", "call", "call", "call"])
      }))
  }
})
