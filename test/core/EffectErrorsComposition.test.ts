import { assert, describe, it } from "@effect/vitest"
import { ResourceLimiters, RetryQuota } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import * as fs from "node:fs"
import * as Breaker from "../../examples/circuit-breaker.ts"
import * as Plan from "../../examples/execution-plan.ts"
import { constantRandom, Terminal, Transient } from "../utils/call.ts"

const read = (name: string) => fs.readFileSync(new URL(`../../docs/${name}.md`, import.meta.url), "utf8")

const services = Layer.merge(CircuitBreaker.layerStoreMemory(), RetryQuota.layer())

/** How a program ends, in time that moves as far as it sleeps, with a constant random number. */
const travel = <A, E, R>(program: Effect.Effect<A, E, R>) =>
  Kit.runToEnd(Effect.exit(Effect.provideService(program, Random.Random, constantRandom(0.5))))

describe("a circuit breaker", () => {
  const orders = { inside: Breaker.order, outside: Breaker.orderTheOtherWayRound } as const

  /** A service that answers after 100 ms, with errors until it has recovered; `times` says when it was asked. */
  const serviceUntil = (wellAt: number, error: unknown = new Transient()) => {
    const times: Array<number> = []
    const send = Effect.gen(function*() {
      times.push(yield* Clock.currentTimeMillis)
      yield* Effect.sleep("100 millis")
      if ((yield* Clock.currentTimeMillis) < wellAt) return yield* Effect.fail(error)
      return "ok"
    })
    return { send, times }
  }

  const breakerOf = (openDuration: Duration.Input, failures = 5) =>
    CircuitBreaker.make({ tripPolicy: CircuitBreaker.consecutive(failures), openDuration })

  const tenAtOnce = <R = never>(
    order: <A, E>(
      breaker: CircuitBreaker.CircuitBreaker,
      send: Effect.Effect<A, E>
    ) => Effect.Effect<A, unknown, RetryQuota.RetryQuota | R>,
    made: ReturnType<typeof breakerOf> = breakerOf("30 seconds")
  ) =>
    Effect.gen(function*() {
      const breaker = yield* made
      const { send, times } = serviceUntil(Infinity)
      let openAt: number | undefined
      const calls = yield* Effect.forkChild(travel(Effect.all(
        Array.from({ length: 10 }, () => Effect.exit(order(breaker, send))),
        { concurrency: 10 }
      )))
      while (calls.pollUnsafe() === undefined) {
        const { _tag } = yield* breaker.state("orders")
        if (_tag === "Open") openAt ??= yield* Clock.currentTimeMillis
        yield* Effect.yieldNow
      }
      const [exits, sends] = [yield* Fiber.join(calls), times.length]
      const spent = 500 - (yield* RetryQuota.balance)
      yield* TestClock.setTime(40_000)
      const probe = yield* travel(order(breaker, send))
      return { exits, openAt, sends, spent, probe, probes: times.length - sends }
    }).pipe(Effect.scoped, Effect.provide(services))

  const soonWell = (order: typeof Breaker.order) =>
    Effect.gen(function*() {
      const breaker = yield* breakerOf("1500 millis", 1)
      const { send, times } = serviceUntil(1200)
      return { exit: yield* travel(order(breaker, send)), times }
    }).pipe(Effect.scoped, Effect.provide(services))

  it.effect("inside the retry: ten calls are ten sends, then nothing is sent, and the probe is one", () =>
    Effect.gen(function*() {
      const { openAt, probe, probes, sends, spent } = yield* tenAtOnce(orders.inside)
      assert.deepStrictEqual({ sends, openAt, spent, probes }, { sends: 10, openAt: 100, spent: 50, probes: 1 })
      assert.isTrue(Exit.isFailure(probe))
    }))

  it.effect("outside it: the same ten calls are forty sends, most of them at an open circuit, and the probe is four", () =>
    Effect.gen(function*() {
      const { openAt, probes, sends, spent } = yield* tenAtOnce(orders.outside)
      assert.deepStrictEqual({ sends, openAt, spent, probes }, { sends: 40, openAt: 750, spent: 150, probes: 4 })
    }))

  it.effect("as a gate: ten calls are ten sends that cost no token, and the probe is one", () =>
    Effect.gen(function*() {
      const breaker = yield* CircuitBreaker.CircuitBreaker
      const { openAt, probe, probes, sends, spent } = yield* tenAtOnce(
        (_, send) => Breaker.orderGated(send),
        Effect.succeed(breaker)
      )
      assert.deepStrictEqual({ sends, openAt, spent, probes }, { sends: 10, openAt: 100, spent: 0, probes: 1 })
      assert.isTrue(Exit.isFailure(probe))
    }).pipe(Effect.provide(Layer.provideMerge(Breaker.gated, services))))

  it("the page says so", () => {
    const page = read("limits")
    for (
      const [what, inside, outside] of [
        ["sends until all have failed", "10", "40"],
        ["the circuit is open after", "100 ms", "750 ms"],
        ["tokens spent", "50", "150"],
        ["sends of the probe that finds the service still down", "1", "4"]
      ] as const
    ) {
      assert.include(page, `| ${what} | ${inside} | ${outside} |`)
    }
  })

  it.effect("inside: a circuit that opens for a short time is waited for; outside: the call sends on meanwhile", () =>
    Effect.gen(function*() {
      const inside = yield* soonWell(orders.inside)
      assert.deepStrictEqual([inside.exit, inside.times], [Exit.succeed("ok"), [0, 1600]])
      yield* TestClock.setTime(0)
      const outside = yield* soonWell(orders.outside)
      assert.isTrue(Exit.isFailure(outside.exit))
      assert.strictEqual(outside.times.length, 4)
    }))

  it.effect("inside: one that is open for long ends the call immediately, unsent, without a token", () =>
    Effect.gen(function*() {
      const breaker = yield* breakerOf("30 seconds", 1)
      const { send, times } = serviceUntil(Infinity)
      yield* travel(Breaker.order(breaker, send))
      const [sends, balance, now] = [times.length, yield* RetryQuota.balance, yield* Clock.currentTimeMillis]
      const error = yield* Effect.flip(yield* travel(Breaker.order(breaker, send)))
      assert.instanceOf(error, CircuitBreaker.CircuitBreakerError)
      assert.deepStrictEqual([times.length, yield* RetryQuota.balance, yield* Clock.currentTimeMillis], [
        sends,
        balance,
        now
      ])
    }).pipe(Effect.scoped, Effect.provide(services)))

  it.effect("inside: a call that a retry rescues leaves the circuit closed, and a send that hangs counts as failed", () =>
    Effect.gen(function*() {
      const breaker = yield* breakerOf("30 seconds", 3)
      const { send, times } = serviceUntil(260)
      assert.deepStrictEqual(yield* travel(Breaker.order(breaker, send)), Exit.succeed("ok"))
      assert.strictEqual(times.length, 3)
      assert.strictEqual((yield* breaker.state("orders"))._tag, "Closed")
      yield* travel(
        Effect.forEach([1, 2, 3], () => Effect.exit(Breaker.order(breaker, Effect.never)), { concurrency: 3 })
      )
      assert.strictEqual((yield* breaker.state("orders"))._tag, "Open")
    }).pipe(Effect.scoped, Effect.provide(services)))

  it.effect("outside, with a policy of its own around it: waits for an open circuit, and multiplies nothing", () =>
    Effect.gen(function*() {
      const breaker = yield* breakerOf("1500 millis", 1)
      const { send, times } = serviceUntil(2000)
      const first = yield* travel(Breaker.orderPatiently(breaker, send))
      assert.isTrue(Exit.isFailure(first))
      assert.strictEqual(times.length, 4)
      const openedAt = yield* Clock.currentTimeMillis
      assert.deepStrictEqual(yield* travel(Breaker.orderPatiently(breaker, send)), Exit.succeed("ok"))
      assert.deepStrictEqual(times.slice(4), [openedAt + 1500])
    }).pipe(Effect.scoped, Effect.provide(services)))

  it.effect("an answer that says no opens nothing, a defect does", () =>
    Effect.gen(function*() {
      const breaker = yield* breakerOf("30 seconds", 1)
      for (const error of [new Terminal(), { status: 404 }, "what"]) {
        yield* travel(Breaker.order(breaker, serviceUntil(Infinity, error).send))
        assert.strictEqual((yield* breaker.state("orders"))._tag, "Closed")
      }
      yield* travel(Breaker.order(breaker, Effect.die("boom")))
      assert.strictEqual((yield* breaker.state("orders"))._tag, "Open")
    }).pipe(Effect.scoped, Effect.provide(services)))

  it.effect("opens for as long as the service asks", () =>
    Effect.gen(function*() {
      const breaker = yield* breakerOf("1 second", 1)
      const busy = { response: { status: 429, headers: { "retry-after": "60" } } }
      yield* travel(Breaker.order(breaker, serviceUntil(Infinity, busy).send))
      const error = yield* Effect.flip(yield* travel(Breaker.order(breaker, Effect.succeed(1))))
      assert.instanceOf(error, CircuitBreaker.CircuitBreakerError)
      assert.strictEqual(error.reason._tag, "CircuitOpen")
      yield* TestClock.adjust("50 seconds")
      assert.strictEqual((yield* breaker.state("orders"))._tag, "Open")
    }).pipe(Effect.scoped, Effect.provide(services)))
})

describe("an execution plan", () => {
  /** Two providers that fail with their errors in turn, then answer with their name; `log` says who was asked. */
  const providers = (first: ReadonlyArray<unknown>, second: ReadonlyArray<unknown>) => {
    const log: Array<string> = []
    const provider = (name: string, errors: ReadonlyArray<unknown>): Plan.Send => {
      let sends = 0
      return () =>
        Effect.suspend(() => {
          log.push(name)
          const error = errors[sends++]
          return error === undefined ? Effect.succeed(name) : Effect.fail(error)
        })
    }
    return { log, first: provider("1", first), second: provider("2", second) }
  }
  const down = Array.from({ length: 100 }, () => new Transient())
  const balance = (name: string) => RetryQuota.balance.pipe(Effect.provide(ResourceLimiters.quota(name)))

  it.effect("retries the first provider as its policy says, then moves on to the second", () =>
    Effect.gen(function*() {
      const { first, log, second } = providers(down, [])
      assert.deepStrictEqual(yield* travel(Plan.send(first, second)), Exit.succeed("2"))
      assert.deepStrictEqual(log, ["1", "1", "1", "2"])
      assert.deepStrictEqual([yield* balance("mail:first"), yield* balance("mail:second")], [0, 10])
    }).pipe(Effect.provide(Plan.layer)))

  it.effect("in an outage of the first keeps the retries of the second", () =>
    Effect.gen(function*() {
      const { first, log, second } = providers(down, [undefined, new Transient(), new Transient()])
      yield* travel(Plan.send(first, second))
      log.length = 0
      assert.deepStrictEqual(yield* travel(Plan.send(first, second)), Exit.succeed("2"))
      assert.deepStrictEqual(log, ["1", "2", "2", "2"])
    }).pipe(Effect.provide(Plan.layer)))

  it.effect("moves on immediately after an error that is not retried", () =>
    Effect.gen(function*() {
      const { first, log, second } = providers([new Terminal()], [])
      assert.deepStrictEqual(yield* travel(Plan.send(first, second)), Exit.succeed("2"))
      assert.deepStrictEqual(log, ["1", "2"])
    }).pipe(Effect.provide(Plan.layer)))

  it.effect("fails with the last provider's own error", () =>
    Effect.gen(function*() {
      const last = new Terminal()
      const { first, second } = providers(down, [last])
      assert.strictEqual(yield* Effect.flip(yield* travel(Plan.send(first, second))), last)
    }).pipe(Effect.provide(Plan.layer)))

  it.effect("sends six times while both are down; with a retry around it as well eighteen times", () =>
    Effect.gen(function*() {
      const once = providers(down, down)
      yield* travel(Plan.send(once.first, once.second))
      assert.deepStrictEqual(once.log, ["1", "1", "1", "2", "2", "2"])
      const both = providers(down, down)
      yield* travel(Plan.multiplied(both.first, both.second))
      assert.strictEqual(both.log.length, 18)
      assert.include(read("effect-errors"), "| 3 + 3 | 3 * (3 + 3) | 3 + 2 |")
    }).pipe(Effect.provide(ResourceLimiters.layer())))

  it.effect("with the policy as schedule of its steps: one outage uses up the retries of all", () =>
    Effect.gen(function*() {
      const { first, log, second } = providers(down, [new Transient()])
      const exit = yield* travel(Plan.scheduled(first, second))
      assert.isTrue(Exit.isFailure(exit))
      assert.deepStrictEqual([log, yield* balance("mail")], [["1", "1", "1"], 0])
    }).pipe(Effect.provide(Plan.layer)))

  it.effect("... and an error that is not retried never reaches the second provider", () =>
    Effect.gen(function*() {
      const { first, log, second } = providers([new Terminal()], [])
      assert.isTrue(Exit.isFailure(yield* travel(Plan.scheduled(first, second))))
      assert.deepStrictEqual(log, ["1"])
    }).pipe(Effect.provide(Plan.layer)))

  it.effect("... and the second has an attempt less, after a backoff", () =>
    Effect.gen(function*() {
      const both = providers(down, down)
      yield* travel(Plan.scheduled(both.first, both.second))
      assert.deepStrictEqual(both.log, ["1", "1", "1", "2", "2"])
    }).pipe(Effect.provide(ResourceLimiters.layer())))
})
