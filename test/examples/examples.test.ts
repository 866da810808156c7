import { assert, describe, it } from "@effect/vitest"
import { AdaptiveRateLimiter, RetryMetrics, RetryObserver, RetryQuota } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import * as Adaptive from "../../examples/adaptive.ts"
import * as EffectSchedules from "../../examples/effect-schedules.ts"
import * as ErrorsWithFacts from "../../examples/errors-with-facts.ts"
import * as FirstRetry from "../../examples/first-retry.ts"
import * as NestedLayers from "../../examples/nested-layers.ts"
import * as OneWord from "../../examples/one-word.ts"
import * as OwnClassifier from "../../examples/own-classifier.ts"
import * as OwnPolicy from "../../examples/own-policy.ts"
import * as QuotaPerResource from "../../examples/quota-per-resource.ts"
import * as ServerHint from "../../examples/server-hint.ts"
import * as Serverless from "../../examples/serverless.ts"
import * as TimeTravel from "../../examples/time-travel.ts"
import * as WhyItStopped from "../../examples/why-it-stopped.ts"
import { constantRandom, Terminal, Transient } from "../utils/call.ts"

describe("examples", () => {
  describe("first-retry", () => {
    const throttled = Object.assign(new Error("slow down"), { name: "ThrottlingException" })
    const unavailable = Object.assign(new Error("later"), { status: 503 })

    it.effect("retries what a client throws, after 500 and 1000 ms", () =>
      Effect.gen(function*() {
        const { client, times } = yield* clientOf([throttled, unavailable])
        assert.deepStrictEqual(yield* travel(FirstRetry.program(client)), Exit.succeed(["order-1", "customer-1"]))
        assert.deepStrictEqual(times, [0, 500, 1500, 1500])
      }))

    it.effect("gives up after three attempts, with the client's own error", () =>
      Effect.gen(function*() {
        const { client, times } = yield* clientOf([throttled, throttled, throttled])
        const error = yield* Effect.flip(yield* travel(FirstRetry.program(client)))
        assert.strictEqual(error.cause, throttled)
        assert.deepStrictEqual(times, [0, 500, 1500])
      }))

    it.effect("does not retry an unknown error", () =>
      Effect.gen(function*() {
        const { client, times } = yield* clientOf([new Error("no such table")])
        assert.isTrue(Exit.isFailure(yield* travel(FirstRetry.program(client))))
        assert.deepStrictEqual(times, [0])
      }))
  })

  it.effect("one-word: the method retries, its quota pays 5 and gets 5 back", () =>
    Effect.gen(function*() {
      const busy = new ErrorsWithFacts.TableBusy({ table: "orders" })
      const { send, times } = recording([busy, busy])
      const layer = OneWord.Orders.layerNoDeps.pipe(Layer.provide(Layer.succeed(OneWord.Table, { get: () => send })))
      const program = Effect.gen(function*() {
        const orders = yield* OneWord.Orders
        return [yield* orders.get(1), yield* RetryQuota.balance]
      }).pipe(Effect.provide(Layer.provideMerge(layer, RetryQuota.layer())))
      assert.deepStrictEqual(yield* travel(program), Exit.succeed(["ok", 495]))
      assert.deepStrictEqual(times, [0, 500, 1500])
    }))

  describe("errors-with-facts", () => {
    const { AnswerLost, CardDeclined, TableBusy } = ErrorsWithFacts
    for (
      const [name, error, sends, balance] of [
        ["a throttle at 5 tokens a retry", new TableBusy({ table: "payments" }), 3, 490],
        ["a lost answer of an idempotent write at 10", new AnswerLost({ idempotent: true }), 3, 480],
        ["no lost answer of another write", new AnswerLost({ idempotent: false }), 1, 500],
        ["no declined card", new CardDeclined({ code: "51" }), 1, 500]
      ] as const
    ) {
      it.effect(`retries ${name}`, () =>
        Effect.gen(function*() {
          const { send, times } = recording([error, error, error])
          assert.deepStrictEqual(yield* withBalance(ErrorsWithFacts.pay(send)), [Exit.fail(error), balance])
          assert.strictEqual(times.length, sends)
        }).pipe(Effect.provide(RetryQuota.layer())))
    }
  })

  describe("own-classifier", () => {
    for (
      const [name, error, sends] of [
        ["retries a locked database", { code: "SQLITE_BUSY" }, 3],
        ["retries what the default chain knows", { status: 503 }, 3],
        ["never retries in maintenance", { status: 503, maintenance: true }, 1],
        ["does not retry an unknown error", { code: "SQLITE_CORRUPT" }, 1]
      ] as const
    ) {
      it.effect(name, () =>
        Effect.gen(function*() {
          const { send, times } = recording([error, error, error])
          assert.deepStrictEqual(yield* travel(OwnClassifier.save(send)), Exit.fail(error))
          assert.strictEqual(times.length, sends)
        }).pipe(Effect.provide(RetryQuota.layer())))
    }
  })

  describe("own-policy", () => {
    for (
      const [chance, expected] of [
        [0, [0, 50, 150, 350, 750, 1250, 1750, 2250, 2750]],
        [0.5, [0, 75, 225, 525, 1125, 1875, 2625]],
        [0.999, [0, 100, 300, 700, 1500, 2500]]
      ] as const
    ) {
      it.effect(`grows up to the cap, is jittered, ends before the deadline: random ${chance}`, () =>
        Effect.gen(function*() {
          const { send, times } = recording(Array<Transient>(20).fill(new Transient()))
          yield* travel(OwnPolicy.load(send), chance)
          assert.deepStrictEqual(times, [...expected])
        }))
    }

    it.effect("retries attempts that hang for 500 ms, and fails with the last one's TimeoutError", () =>
      Effect.gen(function*() {
        const { send, times } = recording([])
        const exit = yield* travel(OwnPolicy.load(Effect.andThen(send, Effect.never)))
        assert.deepStrictEqual(times, [0, 575, 1225, 2025])
        assert.strictEqual((yield* Effect.flip(exit))._tag, "TimeoutError")
      }))

    it.effect("takes one more limit: three attempts", () =>
      Effect.gen(function*() {
        const { send, times } = recording(Array<Transient>(20).fill(new Transient()))
        yield* travel(Effect.retry(send, OwnPolicy.brief))
        assert.deepStrictEqual(times, [0, 75, 225])
      }))
  })

  describe("server-hint", () => {
    for (
      const [hint, program, expected] of [
        ["200 millis", ServerHint.search, [0, 1000, 2000]],
        ["3 seconds", ServerHint.search, [0, 3000, 6000]],
        ["1 hour", ServerHint.search, [0, 6000, 12_000]],
        ["1 minute", ServerHint.searchOrGiveUp, [0, 60_000, 120_000]],
        ["60001 millis", ServerHint.searchOrGiveUp, [0]]
      ] as const
    ) {
      it.effect(`sends at ${expected.join(", ")} with a hint of ${hint}`, () =>
        Effect.gen(function*() {
          const error = new ServerHint.TooManyRequests({ retryAfter: Duration.fromInputUnsafe(hint) })
          const { send, times } = recording([error, error, error])
          assert.deepStrictEqual(yield* travel(program(send)), Exit.fail(error))
          assert.deepStrictEqual(times, [...expected])
        }))
    }
  })

  it.effect("quota-per-resource: the outage of one table leaves the other's quota full", () =>
    Effect.gen(function*() {
      const orders = recording(Array<Transient>(20).fill(new Transient()))
      const customers = recording([new Transient(), new Transient()])
      yield* travel(QuotaPerResource.ofTable("orders", orders.send))
      assert.strictEqual(yield* QuotaPerResource.balanceOf("orders"), 0)
      assert.strictEqual(yield* QuotaPerResource.balanceOf("customers"), 10)
      yield* travel(QuotaPerResource.ofTable("orders", orders.send))
      assert.deepStrictEqual(orders.times, [0, 500, 1500, 1500])
      assert.deepStrictEqual(
        yield* travel(QuotaPerResource.ofTable("customers", customers.send)),
        Exit.succeed("ok")
      )
      assert.deepStrictEqual(customers.times, [1500, 2000, 3000])
      assert.strictEqual(yield* QuotaPerResource.balanceOf("customers"), 5)
      assert.strictEqual(yield* QuotaPerResource.balanceOf("orders"), 0)
    }).pipe(Effect.provide(QuotaPerResource.layer)))

  it.effect("quota-per-resource: a bulkhead for reports, a limit for the rest, and a cool-down for each", () =>
    Effect.gen(function*() {
      const call = (service: string) => Effect.exit(QuotaPerResource.readOf(service, Effect.sleep("500 millis")))
      const calls = yield* Effect.forkChild(
        Effect.all(["reports", "reports", "reports", "orders", "orders", "orders"].map(call), {
          concurrency: "unbounded"
        })
      )
      yield* TestClock.adjust("1 minute")
      const served = (yield* Fiber.join(calls)).map(Exit.isSuccess)
      assert.deepStrictEqual(served, [true, true, false, true, true, true])
    }).pipe(Effect.provide(QuotaPerResource.guarded)))

  it.effect("quota-per-resource: each table has a gauge of its own", () =>
    Effect.gen(function*() {
      const balanceOf = (resource: string) =>
        Effect.map(Metric.value(Metric.withAttributes(RetryMetrics.quotaBalance, { resource })), ({ value }) => value)
      for (const [table, failures] of [["invoices", 3], ["parcels", 1]] as const) {
        const { send } = recording(Array<Transient>(failures).fill(new Transient()))
        yield* travel(QuotaPerResource.ofTable(table, send).pipe(Effect.provide(QuotaPerResource.metrics)))
      }
      assert.deepStrictEqual(
        [yield* balanceOf("dynamodb:invoices"), yield* balanceOf("dynamodb:parcels")],
        [0, 10]
      )
    }).pipe(Effect.provide(QuotaPerResource.layer)))

  describe("adaptive", () => {
    const busy = new ErrorsWithFacts.TableBusy({ table: "orders" })

    it.effect("holds sends back once throttled: the first retry until 2000 ms, a new call after it", () =>
      Effect.gen(function*() {
        const { send, times } = recording([busy])
        assert.deepStrictEqual(yield* travel(Adaptive.put(send)), Exit.succeed("ok"))
        assert.deepStrictEqual(times, [0, 2000])
        assert.deepStrictEqual(yield* travel(Adaptive.put(send)), Exit.succeed("ok"))
        assert.isAbove(times[2]!, 2000)
      }).pipe(Effect.provide(Adaptive.layerWaiting)))

    it.effect("says when to come back, and gives the tokens of the unsent retry back", () =>
      Effect.gen(function*() {
        const { send, times } = recording([busy])
        assert.deepStrictEqual(yield* withBalance(Effect.flip(Adaptive.putOrBusy(send))), [Exit.succeed(busy), 500])
        assert.deepStrictEqual(yield* withBalance(Adaptive.putOrBusy(send)), [
          Exit.succeed("busy, try again in 1s 500ms"),
          500
        ])
        assert.deepStrictEqual(times, [0])
      }).pipe(Effect.provide(Adaptive.layerFailing)))
  })

  describe("serverless", () => {
    const busy = new ErrorsWithFacts.TableBusy({ table: "orders" })
    const asProcess = Effect.provide(Layer.fresh(Serverless.layer))
    const left = Effect.all([
      Effect.map(RetryQuota.state, ({ tokens }) => tokens),
      Effect.map(AdaptiveRateLimiter.state, ({ enabled }) => enabled)
    ])

    it.effect("begins with what the last process has left, at its rate", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* asProcess(left), [500, false])
        const first = recording([busy, busy, busy])
        yield* asProcess(travel(Serverless.handle(first.send)))
        assert.deepStrictEqual(first.times, [0, 2000, 4000])
        assert.deepStrictEqual(yield* asProcess(left), [490, true])
        const second = recording([])
        const start = yield* Clock.currentTimeMillis
        assert.deepStrictEqual(yield* asProcess(travel(Serverless.handle(second.send))), Exit.succeed("ok"))
        assert.isAbove(second.times[0]!, start)
        assert.deepStrictEqual(yield* asProcess(left), [491, true])
      }).pipe(Effect.provide(KeyValueStore.layerMemory)))

    it.effect("saves after a request that is interrupted", () =>
      Effect.gen(function*() {
        const { send } = recording([busy])
        yield* Effect.gen(function*() {
          const fiber = yield* Effect.forkChild(Serverless.handle(send))
          yield* TestClock.adjust("1 millis")
          yield* Fiber.interrupt(fiber)
        }).pipe(asProcess)
        assert.deepStrictEqual(yield* asProcess(left), [500, true])
      }).pipe(Effect.provide(KeyValueStore.layerMemory)))

    it.effect("begins afresh, with a warning, if what was saved cannot be read or does not fit", () =>
      Effect.gen(function*() {
        const { set } = yield* KeyValueStore.KeyValueStore
        const logged: Array<unknown> = []
        const logger = Logger.layer([Logger.make(({ message }) => logged.push(message))])
        for (const text of ["", "null", "{", `{"quota":{"tokens":501,"capacity":500}}`]) {
          yield* set("retries of orders", text)
          assert.deepStrictEqual(yield* Effect.provide(asProcess(left), logger), [500, false])
        }
        assert.lengthOf(logged, 4)
      }).pipe(Effect.provide(KeyValueStore.layerMemory)))
  })

  describe("why-it-stopped", () => {
    const error = new Transient()

    it("explains what the policy would do about an error", () => {
      const { explained } = WhyItStopped
      const line = "would stop: unknown-error, TypeError: the classifier does not know it"
      assert.strictEqual(explained(new TypeError("fetch failed")), line)
      assert.strictEqual(explained(error), "would retry after 0 to 1 s at 5 tokens")
    })

    const { orCached, orCachedBySchedule } = WhyItStopped
    for (const [form, cached] of Object.entries({ orCached, orCachedBySchedule })) {
      it.effect(`${form}: answers from the cache when the quota has run dry`, () =>
        Effect.gen(function*() {
          const { send, times } = recording([error])
          assert.deepStrictEqual(yield* travel(cached(send)), Exit.succeed("from the cache"))
          assert.deepStrictEqual(times, [0])
        }).pipe(Effect.provide(RetryQuota.layer({ capacity: 4 }))))

      it.effect(`${form}: fails with the call's own error for any other reason`, () =>
        Effect.gen(function*() {
          const terminal = new Terminal()
          const exit = yield* travel(cached(recording([terminal]).send))
          assert.strictEqual(yield* Effect.flip(exit), terminal)
        }).pipe(Effect.provide(RetryQuota.layer())))
    }

    it.effect("warns of the stop with the error, before the call ends", () =>
      Effect.gen(function*() {
        const lines: Array<unknown> = []
        const logger = Logger.layer([Logger.make(({ message }) => void lines.push(message))])
        const terminal = new Terminal()
        const layer = Layer.merge(RetryObserver.layer(WhyItStopped.warning), logger)
        yield* travel(WhyItStopped.orCached(recording([terminal]).send).pipe(Effect.provide(layer)))
        assert.deepStrictEqual(lines, [["gave up: final", terminal]])
      }).pipe(Effect.provide(RetryQuota.layer())))

    it.effect("logs why a call is not retried, at the default level", () =>
      Effect.gen(function*() {
        const lines: Array<unknown> = []
        const logger = Logger.layer([Logger.make(({ logLevel, message }) => void lines.push([logLevel, message]))])
        const call = WhyItStopped.orCached(recording([error, new Terminal()]).send)
        yield* travel(Effect.provide(call, Layer.merge(WhyItStopped.logs, logger)))
        assert.deepStrictEqual(lines, [["Warn", ["not retried after 2 attempts: final, Terminal"]]])
      }).pipe(Effect.provide(RetryQuota.layer())))

    it.effect("logs retries and the stop, and counts them", () =>
      Effect.gen(function*() {
        const stops = Metric.withAttributes(RetryMetrics.stops, { reason: "max-attempts" })
        const before = yield* Metric.value(stops)
        const lines: Array<string> = []
        const observed = WhyItStopped.observed((line) => lines.push(line))
        const { send } = recording([error, error, error])
        yield* travel(WhyItStopped.orCached(send).pipe(Effect.provide(observed)))
        assert.deepStrictEqual(lines, [
          "retry 1 in 500 ms for 5 tokens",
          "retry 2 in 1000 ms for 5 tokens",
          "stopped after 3: max-attempts"
        ])
        assert.strictEqual((yield* Metric.value(stops)).count - before.count, 1)
      }).pipe(Effect.provide(RetryQuota.layer())))
  })

  describe("nested-layers", () => {
    for (
      const [name, program, expected] of [
        ["store", NestedLayers.store, [0, 100, 200]],
        ["service", NestedLayers.service, [0, 100, 200]],
        ["multiplied", NestedLayers.multiplied, [0, 100, 200, 300, 400, 500, 600, 700, 800]]
      ] as const
    ) {
      it.effect(`${name} sends ${expected.length} times`, () =>
        Effect.gen(function*() {
          const { send, times } = recording(Array<Transient>(20).fill(new Transient()))
          yield* travel(program(send))
          assert.deepStrictEqual(times, [...expected])
        }))
    }
  })

  it.effect("time-travel: sends at 0, 500 and 1500 ms, and spends 10 tokens", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* TimeTravel.timesOfSends, { before: 2, times: [0, 500, 1500], balance: 490 })
    }))

  describe("effect-schedules", () => {
    const error = new Transient()

    it.effect("lifted: delays of the schedule, capped, five attempts, four retries paid", () =>
      Effect.gen(function*() {
        const { send, times } = recording(Array<Transient>(20).fill(error))
        assert.deepStrictEqual(yield* withBalance(EffectSchedules.poll(send)), [Exit.fail(error), 480])
        assert.deepStrictEqual(times, [0, 100, 200, 400, 650])
      }).pipe(Effect.provide(RetryQuota.layer())))

    it.effect("watch: logs every delay", () =>
      Effect.gen(function*() {
        const lines: Array<unknown> = []
        const logger = Logger.layer([Logger.make(({ message }) => void lines.push(message))])
        yield* travel(EffectSchedules.watch(recording([error, error]).send).pipe(Effect.provide(logger)))
        assert.deepStrictEqual(lines.flat(), ["retry in 500ms", "retry in 1s"])
      }).pipe(Effect.provide(RetryQuota.layer())))

    it.effect("limited: the tokens of the retry that is never sent come back at once", () =>
      Effect.gen(function*() {
        const { send, times } = recording([error, error, error])
        const [exit, balance] = yield* withBalance(EffectSchedules.limited(send))
        assert.strictEqual(yield* Effect.flip(exit), error)
        assert.strictEqual(balance, 495)
        assert.deepStrictEqual(times, [0, 500])
      }).pipe(Effect.provide(RetryQuota.layer())))
  })
})

/** A call that fails with each of the errors in turn, then succeeds; `times` says when it was sent. */
const recording = <E>(errors: ReadonlyArray<E>) => {
  const times: Array<number> = []
  const send: Effect.Effect<string, E> = Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const sends = times.push(now)
    return sends > errors.length ? Effect.succeed("ok") : Effect.fail(errors[sends - 1]!)
  })
  return { send, times }
}

/** A client that throws each of the errors in turn, then answers with the key. */
const clientOf = (errors: ReadonlyArray<unknown>) =>
  Clock.clockWith((clock) => {
    const times: Array<number> = []
    const getItem = (key: string): Promise<string> => {
      const sends = times.push(clock.currentTimeMillisUnsafe())
      return sends > errors.length ? Promise.resolve(key) : Promise.reject(errors[sends - 1])
    }
    return Effect.succeed({ client: { getItem }, times })
  })

/** How a program ends, in time that moves as far as it sleeps, with constant randomness. */
const travel = <A, E, R>(program: Effect.Effect<A, E, R>, chance = 0.5) =>
  Kit.runToEnd(Effect.exit(Effect.provideService(program, Random.Random, constantRandom(chance))))

/** How a program ends, and what it leaves of the quota. */
const withBalance = <A, E, R>(program: Effect.Effect<A, E, R>) => Effect.all([travel(program), RetryQuota.balance])
