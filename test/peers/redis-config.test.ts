import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { assert, describe, it } from "@effect/vitest"
import { RetryQuota } from "effect-retry"
import * as CoolDown from "effect-retry/CoolDown"
import * as RetryConfig from "effect-retry/RetryConfig"
import * as RetryConfigRedis from "effect-retry/RetryConfigRedis"
import * as Kit from "effect-retry/testing"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import { redisLayer as clusterLayer } from "../../examples/fleetCluster.ts"
import { freePort, startRedis } from "../utils/peers.ts"
import { startCluster } from "./redis/cluster.ts"
import { command, eventually, exchanges, urlOf } from "./redis/fleet.ts"

const names = ["orders", "payments", "search"]

const slow = { timeout: "2 seconds" }

/** Quota, limiter and cool-down of three resources. Calls that succeed fill the quotas, which takes long. */
const three = {
  resources: Object.fromEntries(
    names.map((name) => [name, {
      quota: { capacity: 1_000_000, initial: 0, redis: slow },
      limiter: { redis: slow },
      coolDown: { redis: slow }
    }])
  )
}

type Process = Context.Context<RetryConfig.RetryConfig>

const processOn = <E>(redis: Layer.Layer<Redis.Redis, E>, json: unknown) =>
  Layer.build(Layer.provide(RetryConfig.layer(json), RetryConfigRedis.layerConnecting(redis)))

const inside = (process: Process) => <A, E>(self: Effect.Effect<A, E, RetryConfig.RetryConfig>) =>
  Effect.provideContext(self, process)

const seen = <A, S>(process: Process, self: Effect.Effect<A, never, S>) =>
  self.pipe(Effect.provide(RetryConfig.resource("orders") as any), inside(process) as any) as Effect.Effect<A>

const balance = (process: Process) => seen(process, RetryQuota.balance)

const phase = (process: Process) => seen(process, Effect.map(CoolDown.state, ({ phase }) => phase))

const call = (
  process: Process,
  send: Effect.Effect<unknown, unknown> = Effect.fail(new Kit.Transient()),
  name = "orders"
) => Effect.exit(send.pipe(RetryConfig.retry(name), inside(process)))

/** Calls of each resource, for this long. */
const traffic = (process: Process, millis: number) =>
  Effect.gen(function*() {
    const until = performance.now() + millis
    while (performance.now() < until) {
      for (const name of names) yield* call(process, Effect.void, name)
      yield* Effect.sleep(2)
    }
  })

/** Counts the steps of the process in which it sends something. */
const counting = <E>(redis: Layer.Layer<Redis.Redis, E>) => {
  const steps = { count: 0, isOpen: false }
  const evaluate = (service: Redis.Redis["Service"]): Redis.Redis["Service"]["eval"] => (script) => (...params) =>
    Effect.suspend(() => {
      if (!steps.isOpen) {
        steps.count++
        steps.isOpen = true
        setImmediate(() => steps.isOpen = false)
      }
      return service.eval(script)(...params)
    })
  const counted = Redis.Redis.useSync((service) => ({ ...service, eval: evaluate(service) }))
  return { steps, layer: Layer.provide(Layer.effect(Redis.Redis, counted), redis) }
}

/** How often Redis has read from a connection. */
const reads = (port: number) =>
  Effect.map(
    command(port, "INFO", "stats"),
    (info) => Number(/total_reads_processed:(\d+)/.exec(String(info))?.[1])
  )

/** Commands and messages that Redis reads from a process with three resources, in this many seconds. */
const counted = (process: Process, ports: ReadonlyArray<number>, seconds: number) =>
  Effect.gen(function*() {
    yield* traffic(process, 1000)
    const of = (count: (port: number) => Effect.Effect<number, unknown>) =>
      Effect.map(Effect.forEach(ports, count), (all) => all.reduce((sum, each) => sum + each, 0))
    // What it costs to look.
    const looks = yield* of(reads)
    const before = { commands: yield* of(exchanges), messages: yield* of(reads) }
    const look = before.messages - looks
    yield* traffic(process, seconds * 1000)
    return {
      commands: (yield* of(exchanges)) - before.commands,
      messages: (yield* of(reads)) - before.messages - look
    }
  })

describe("a document in Redis", () => {
  it.live(
    "of three resources, with quota, limiter and cool-down each, is one message per interval, not nine",
    () =>
      Effect.gen(function*() {
        const port = yield* freePort
        yield* startRedis(port)
        const process = yield* processOn(NodeRedis.layer({ url: urlOf(port) }), three)
        const { commands, messages } = yield* counted(process, [port], 5)
        console.log(`quota, limiter and cool-down of 3 resources, 5 s: ${commands} exchanges in ${messages} messages`)
        assert.isAtLeast(messages, 5)
        // Nearly 1 if each goes by itself. In a turn, some of the nine are not due.
        assert.isAtLeast(commands / messages, 4)
      })
  )

  it.live("in a cluster it is one message per node that has a key", () =>
    Effect.gen(function*() {
      const { primaries } = yield* startCluster()
      const ports = primaries.map(({ port }) => port)
      const { layer, steps } = counting(clusterLayer(ports.map((port) => urlOf(port))))
      const process = yield* processOn(layer, three)
      const { commands, messages } = yield* counted(process, ports, 5)
      console.log(
        `the same in a cluster of 3 nodes: ${commands} exchanges in ${messages} messages, of ${steps.count} turns in 6 s`
      )
      assert.isAtLeast(messages, 5)
      // The turns are those of one second more.
      assert.isAtLeast(commands / steps.count, 3)
      assert.isAtMost(messages, 3 * steps.count)
    }))

  const policy = {
    steps: [{ fixed: { delay: "10 millis" } }, { maxAttempts: 2 }, "whileRetryable", { quotaGated: { cost: 4 } }]
  }
  const orders = (entry: object) => ({ resources: { orders: { policy, ...entry } } })
  const shared = (capacity: number) =>
    orders({ quota: { capacity, redis: slow }, coolDown: { redis: { ...slow, lookInterval: "50 millis" } } })

  it.live(
    "a live change keeps the fleet's share of tokens, moves quotas to Redis and back, and loses nothing",
    () =>
      Effect.gen(function*() {
        const port = yield* freePort
        yield* startRedis(port)
        const redis = NodeRedis.layer({ url: urlOf(port) })
        const [one, two] = [
          yield* processOn(redis, shared(100)),
          yield* processOn(redis, orders({ quota: { capacity: 100 } }))
        ]
        const isSeen = (process: Process, tokens: number) =>
          eventually(Effect.map(balance(process), (balance) => Math.abs(balance - tokens) < 1e-9), `${tokens} are seen`)
        yield* isSeen(one, 100)
        const isThere = Effect.map(command(port, "EXISTS", "retry-quota:orders"), (count) => count === 1)
        yield* eventually(isThere, "Redis has it")
        for (let calls = 0; calls < 5; calls++) yield* call(one)
        yield* isSeen(one, 80)
        assert.strictEqual(yield* balance(two), 100)
        yield* inside(two)(RetryConfig.set(shared(100)))
        yield* isSeen(two, 80)
        yield* inside(one)(RetryConfig.set(shared(50)))
        yield* isSeen(one, 40)
        yield* isSeen(two, 80)
        // A retry is in progress while its quota moves out of Redis.
        let sends = 0
        const send = Effect.suspend(() => ++sends === 1 ? Effect.fail(new Kit.Transient()) : Effect.sleep("500 millis"))
        const held = yield* Effect.forkChild(call(one, send))
        yield* isSeen(two, 72)
        yield* inside(one)(RetryConfig.set(orders({ quota: { capacity: 50 } })))
        yield* Fiber.join(held)
        yield* isSeen(two, 80)
        assert.strictEqual(yield* balance(one), 36)
      })
  )

  it.live(
    "a hint to one process closes all; a section that is no longer shared opens by itself",
    () =>
      Effect.gen(function*() {
        const port = yield* freePort
        yield* startRedis(port)
        const redis = NodeRedis.layer({ url: urlOf(port) })
        const [one, two] = [yield* processOn(redis, shared(100)), yield* processOn(redis, shared(100))]
        yield* traffic(two, 200)
        yield* call(one, Effect.fail(new Kit.Throttled({ retryAfter: "30 seconds" })))
        const isClosed = Effect.andThen(call(two, Effect.void), Effect.map(phase(two), (phase) => phase === "closed"))
        yield* eventually(isClosed, "it is closed")
        yield* inside(two)(RetryConfig.set(orders({})))
        assert.strictEqual((yield* call(two, Effect.succeed(1)))._tag, "Success")
      })
  )

  it.live(
    "a Redis that is gone and comes back: each process decides alone, and shares again",
    () =>
      Effect.gen(function*() {
        const port = yield* freePort
        const json = orders({
          quota: { capacity: 100, redis: { fallbackTime: "100 millis", fallback: { capacity: 20 } } }
        })
        const process = yield* processOn(NodeRedis.layer({ url: urlOf(port) }), json)
        yield* call(process)
        assert.strictEqual(yield* balance(process), 16)
        yield* startRedis(port)
        yield* eventually(Effect.map(balance(process), (tokens) => tokens === 100), "Redis decides")
      })
  )
})
