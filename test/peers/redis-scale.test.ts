import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import { type QuotaExchange, quotaScript, type QuotaSettings } from "../../src/redis/internal/quotaClient.ts"
import { freePort, startRedis } from "../utils/peers.ts"
import { command, exchanges, quotaAt, timed, urlOf } from "./redis/fleet.ts"

const settings: QuotaSettings = {
  key: "retry-quota:scale",
  capacity: 1e6,
  initial: 1e6,
  refillPerSecond: 0,
  leaseMillis: 1000,
  idleMillis: 3_600_000,
  inOrder: false
}

const connect = (port: number) =>
  Effect.map(Layer.build(NodeRedis.layer({ url: urlOf(port) })), (context) => Context.get(context, Redis.Redis))

/** An exchange of another process. */
const exchange = (redis: Redis.Redis["Service"], wanted: QuotaExchange["wanted"] = []) =>
  redis.eval(quotaScript)(settings, { client: crypto.randomUUID(), sequence: 1, sections: [], wanted })

/** How long pings that are sent while an effect runs take, in milliseconds, in order of size. */
const pingsDuring = <A, E, R>(redis: Redis.Redis["Service"], meanwhile: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(meanwhile)
    const all: Array<number> = []
    while (fiber.pollUnsafe() === undefined || all.length === 0) {
      const [, millis] = yield* timed(redis.send("PING"))
      all.push(millis)
    }
    yield* Fiber.join(fiber)
    return all.sort((a, b) => a - b)
  })

/** The lower quartile. An exchange that holds up Redis for long holds up nearly all pings. */
const quartileOf = (sorted: ReadonlyArray<number>): number => sorted[Math.ceil(sorted.length / 4) - 1]!

const shown = (rounds: ReadonlyArray<number>): string => rounds.map((millis) => millis.toFixed(2)).join(", ")

/**
 * How long Redis is held up by an exchange: what a PING waits for, in milliseconds. The pings themselves are compared with
 * those sent to the idle Redis. A busy machine holds up both, now and then: only the calmest of the rounds counts.
 */
const pings = (port: number, what: string) =>
  Effect.gen(function*() {
    const [asking, pinging] = [yield* connect(port), yield* connect(port)]
    const some = Effect.forEach(Array.from({ length: 20 }), () => exchange(asking), { discard: true })
    const [idle, busy]: [Array<number>, Array<number>] = [[], []]
    yield* command(port, "CONFIG", "RESETSTAT")
    for (let round = 0; round < 8; round++) {
      idle.push(quartileOf(yield* pingsDuring(pinging, Effect.sleep(20))))
      busy.push(quartileOf(yield* pingsDuring(pinging, some)))
    }
    console.log(
      `lower quartile of the pings, 8 rounds, ms: ${shown(busy)} next to 20 exchanges, ${what}; ${shown(idle)} without`
    )
    assert.isBelow(Math.min(...busy), Math.min(...idle) + 5)
    const stats = String(yield* command(port, "INFO", "commandstats"))
    const held = Number(/cmdstat_evalsha:.*usec_per_call=([\d.]+)/.exec(stats)?.[1]) / 1000
    console.log(`an exchange holds Redis up for ${held.toFixed(3)} ms, ${what}`)
    return held
  })

/** An hour passes, as far as the leases and clients of the quota know. */
const anHourLater = (port: number) =>
  command(
    port,
    "EVAL",
    `local all = redis.call("ZRANGEBYSCORE", KEYS[1], "(0", "+inf")
    for _, member in ipairs(all) do redis.call("ZINCRBY", KEYS[1], -3600000, member) end`,
    "1",
    settings.key
  )

describe("a quota that 100,000 processes have used within the hour", () => {
  it.live("lets a PING between its exchanges through within 5 ms, and removes 100 at a time of what has expired", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const redis = yield* connect(port)
      yield* Effect.forEach(
        Array.from({ length: 100_000 }, (_, id) => id),
        (id) => exchange(redis, id % 1000 === 0 ? [`${id}:1`] : []),
        { concurrency: 500, discard: true }
      )
      yield* Effect.sleep(1100)
      assert.isBelow(yield* pings(port, "leases expire"), 5)
      assert.strictEqual(-Number(yield* command(port, "ZSCORE", settings.key, "tokens")), settings.capacity)
      yield* anHourLater(port)
      const members = Effect.map(command(port, "ZCARD", settings.key), Number)
      const before = yield* members
      assert.isAbove(before, 200_000)
      yield* exchange(redis)
      // A client has two members, and there is a new one.
      assert.strictEqual(yield* members, before - 200 + 2)
      assert.isBelow(yield* pings(port, "clients expire"), 5)
      assert.strictEqual(yield* members, before - 161 * 200 + 161 * 2)
    }))
})

describe("what a shared quota costs Redis", () => {
  it.live("is one exchange in 2 seconds at most for a busy process without failures", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const quota = yield* quotaAt(urlOf(port), { name: "busy", timeout: "20 seconds" })
      yield* quota.balance
      const before = yield* exchanges(port)
      const successes = Effect.andThen(quota.deposit(1), Effect.sleep(5))
      yield* Effect.timeoutOption(Effect.forever(successes), 6500)
      const asked = (yield* exchanges(port)) - before
      assert.isAbove(asked, 0)
      assert.isAtMost(asked, 3)
    }))

  it.live("is so little that a core carries thousands of processes", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const cpu = Effect.map(command(port, "INFO", "cpu"), (info) =>
        [...String(info).matchAll(/used_cpu_(?:user|sys):([\d.]+)/g)].reduce((sum, [, each]) =>
          sum + Number(each), 0))
      const quotas = yield* Effect.forEach(
        Array.from({ length: 100 }),
        () =>
          quotaAt(urlOf(port), { name: "cost", capacity: 1e6, timeout: "20 seconds" }),
        { concurrency: "unbounded" }
      )
      const each = 100
      const measured = (what: string, use: (quota: typeof quotas[number]) => Effect.Effect<unknown, unknown>) =>
        Effect.gen(function*() {
          const [cpuBefore, before] = [yield* cpu, yield* exchanges(port)]
          yield* Effect.forEach(quotas, (quota) =>
            Effect.forEach(Array.from({ length: each }), () =>
              use(quota), { discard: true }), {
            concurrency: "unbounded",
            discard: true
          })
          const asked = (yield* exchanges(port)) - before
          const micros = ((yield* cpu) - cpuBefore) * 1e6 / asked
          console.log(`${what}: ${micros.toFixed(1)} us of the core of Redis, ${asked} exchanges`)
          assert.isAtLeast(asked, each * quotas.length)
          return micros
        })
      const deposits = yield* measured("an exchange of deposits", (quota) =>
        Effect.andThen(quota.deposit(1), quota.balance))
      yield* measured("an exchange of a retry", (quota) =>
        Effect.flatMap(quota.reserve(1), (taken) =>
          Option.getOrThrow(taken).giveBack))
      assert.isBelow(deposits, 200)
    }))
})
