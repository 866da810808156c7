import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { assert, describe, it } from "@effect/vitest"
import type * as AdaptiveRateLimiter from "effect-retry/AdaptiveRateLimiter"
import * as AdaptiveRateLimiterRedis from "effect-retry/AdaptiveRateLimiterRedis"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import {
  type LimiterExchange,
  type LimiterReply,
  limiterReplyOf,
  limiterScript
} from "../../src/redis/internal/limiter.ts"
import { freePort, startNginx, startRedis } from "../utils/peers.ts"
import { command, eventually, startProcess, urlOf } from "./redis/fleet.ts"

const rate = 200
const processes = 10
const warmUp = 15
const seconds = 30

/** nginx that lets this many requests a second through, and throttles the rest. */
const limited = (port: number) => `
  limit_req_zone $binary_remote_addr zone=fleet:1m rate=${rate}r/s;
  limit_req_status 429;
  server {
    listen 127.0.0.1:${port};
    keepalive_requests 1000000;
    location / { limit_req zone=fleet burst=100 nodelay; empty_gif; }
  }`

interface Second {
  readonly accepted: number
  readonly throttled: number
}

const sum = (values: ReadonlyArray<number>) => values.reduce((sum, value) => sum + value, 0)

/** What ten processes get of the limit, once they have found it. */
const measured = (limiter: (redis: number) => string) =>
  Effect.gen(function*() {
    const [redis, port] = [yield* freePort, yield* freePort]
    yield* startRedis(redis)
    yield* startNginx(limited(port), port)
    const fleet = yield* Effect.forEach(
      Array.from({ length: processes }),
      () => startProcess("sender.ts", [limiter(redis), String(port), String(warmUp + seconds), "orders"]),
      { concurrency: 2 }
    )
    for (const { go } of fleet) yield* go
    const counts: Array<ReadonlyArray<Second>> = []
    for (const { line } of fleet) {
      counts.push((JSON.parse(yield* line) as Array<Second>).slice(warmUp))
    }
    const accepted = counts.map((seconds) => sum(seconds.map(({ accepted }) => accepted)))
    const throttled = sum(counts.flat().map(({ throttled }) => throttled))
    const mean = sum(accepted) / processes
    return {
      ofLimit: sum(accepted) / (rate * seconds),
      throttled: throttled / (throttled + sum(accepted)),
      least: Math.min(...accepted) / mean,
      most: Math.max(...accepted) / mean
    }
  })

const percent = (share: number) => `${(100 * share).toFixed(1)} %`

const print = (name: string, { least, most, ofLimit, throttled }: Effect.Success<ReturnType<typeof measured>>) =>
  console.log(
    `${processes} processes, ${rate} requests/s at nginx, ${name}: ${percent(ofLimit)} of the limit, ` +
      `${percent(throttled)} of the sends throttled, a process has ${percent(least)} to ${percent(most)} of the mean`
  )

/** A process of a fleet, as far as Redis can tell: it has a connection and a client of its own. */
const limiterAt = (port: number, own: Partial<AdaptiveRateLimiterRedis.Options> = {}) =>
  Effect.flatMap(
    Layer.build(NodeRedis.layer({ url: urlOf(port) })),
    (redis) =>
      Effect.provideContext(
        AdaptiveRateLimiterRedis.make({
          name: "orders",
          timeout: "300 millis",
          fallbackTime: "100 millis",
          lookInterval: "50 millis",
          ...own
        }),
        redis
      )
  )

/** Sends for this long, about two hundred times a second. */
const sends = (limiter: AdaptiveRateLimiter.Service, millis: number) =>
  Effect.gen(function*() {
    const until = performance.now() + millis
    while (performance.now() < until) {
      yield* limiter.update(false)
      yield* Effect.sleep(5)
    }
  })

const isLimited = (limiter: AdaptiveRateLimiter.Service) =>
  Effect.andThen(limiter.update(false), Effect.map(limiter.state, ({ enabled }) => enabled))

const settings = {
  key: "limit",
  beta: 0.7,
  scaleConstant: 0.4,
  minFillRate: 0.5,
  memberMillis: 60_000,
  cutMillis: 0,
  idleMillis: 60_000
}

const nothing = { cuts: 0, lastMaxRate: 0, millis: 0 }

/** Exchanges of processes by name, as the script answers them. */
const exchanging = (port: number, key = settings.key) =>
  Effect.map(
    Layer.build(NodeRedis.layer({ url: urlOf(port) })),
    (redis) => (client: string, rate: number, own: Partial<LimiterExchange> = {}) =>
      Redis.Redis.use(({ eval: evaluate }) =>
        evaluate(limiterScript)({ ...settings, key }, {
          client,
          rate,
          isHungry: false,
          isThrottled: false,
          ...nothing,
          ...own
        })
      ).pipe(
        Effect.map((answer) => limiterReplyOf(answer)!),
        Effect.provideContext(redis)
      )
  )

describe("an adaptive limiter in Redis", () => {
  it.live("its script: the first throttle cuts what the fleet sends, and the parts are fair", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const exchange = yield* exchanging(port)
      yield* exchange("a", 10)
      yield* exchange("b", 30)
      yield* exchange("c", 40)
      const cut = yield* exchange("d", 20, { isThrottled: true })
      assert.deepStrictEqual([cut.cuts, cut.lastMaxRate, cut.measured], [1, 100, 100])
      // 70 a second for four: 10 and 20 are less than the fair part, the others share the rest.
      const rate = (share: number) => share * 70
      assert.approximately(rate(cut.share), 20, 0.1)
      const hungry = { isHungry: true, ...cut }
      yield* exchange("b", 20, hungry)
      yield* exchange("c", 20, hungry)
      yield* Effect.sleep(120)
      const level = yield* exchange("a", 4, cut)
      assert.approximately(level.share * 70 / (70 - 4 - 20), 0.5, 0.02)
      // A throttle that belongs to the cut before it changes nothing.
      assert.strictEqual((yield* exchange("b", 20, { ...nothing, isThrottled: true })).cuts, 1)
      const again = yield* exchange("b", 20, { ...cut, isThrottled: true, isHungry: true })
      assert.strictEqual(again.cuts, 2)
      assert.approximately(again.lastMaxRate, 70, 4)
    }))

  it.live("its script: a process that no longer reports has no part, and what Redis has lost comes back", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const exchange = yield* exchanging(port)
      const { cuts, lastMaxRate } = yield* exchange("a", 50, { isThrottled: true })
      yield* command(port, "HSET", "limit", "c:dead", "1000 1 1")
      yield* Effect.sleep(120)
      const { measured } = yield* exchange("a", 50, { cuts, lastMaxRate, millis: 0 })
      assert.strictEqual(measured, 50)
      assert.strictEqual(yield* command(port, "HEXISTS", "limit", "c:dead"), 0)
      yield* command(port, "FLUSHALL")
      const back = yield* exchange("a", 50, { cuts, lastMaxRate, millis: 1000 })
      assert.deepStrictEqual([back.cuts, back.lastMaxRate], [1, 50])
      assert.approximately(back.millis, 1000, 1)
      assert.isAbove(Number(yield* command(port, "PTTL", "limit")), 50_000)
    }))

  it.live("its script: whatever another user writes into a field, the curve goes on and the next throttle counts", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const values = ["1e18", "-1e18", "inf", "nan", "x", "1 2", "inf 0 0", "1 0 nan"]
      const writes = ["cuts", "last", "at", "level", "leveled", "measured", "c:a", "c:b"].flatMap((field) =>
        values.map((value) => [field, value] as const)
      )
      const written = ([field, value]: readonly [string, string]) =>
        Effect.gen(function*() {
          const key = `${field} ${value}`
          const exchange = yield* exchanging(port, key)
          let known: LimiterReply = yield* exchange("a", 50, { isThrottled: true })
          yield* command(port, "HSET", key, field, value)
          const waits: Array<number> = []
          for (let look = 0; look < 3; look++) {
            yield* Effect.sleep(110)
            known = yield* exchange("a", 50, known)
            waits.push(known?.millis)
          }
          const { cuts } = yield* exchange("a", 50, { ...known, isThrottled: true })
          assert.deepStrictEqual([waits[2]! - waits[1]! >= 100, cuts > known.cuts], [true, true], `${key}: ${waits}`)
        })
      yield* Effect.forEach(writes, written, { concurrency: 16, discard: true })
    }))

  it.live("a throttle of one process limits the others with their next look", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const fleet = yield* Effect.replicateEffect(limiterAt(port), 3)
      const sending = yield* Effect.forEach(fleet, (limiter) => Effect.forkChild(sends(limiter, 1500)))
      yield* Effect.sleep(1300)
      yield* fleet[0]!.update(true)
      for (const limiter of fleet) yield* eventually(isLimited(limiter), "it is limited")
      yield* Fiber.joinAll(sending)
      const rates = yield* Effect.forEach(fleet, ({ state }) => Effect.map(state, ({ fillRate }) => fillRate))
      assert.isAbove(Math.min(...rates), 1)
    }))

  it.live("a server that is stopped: each goes on by its own throttles, and shares again when it resumes", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      const server = yield* startRedis(port)
      const [first, second] = yield* Effect.replicateEffect(limiterAt(port), 2)
      yield* Effect.all([sends(first!, 1200), sends(second!, 1200)], { concurrency: 2 })
      server.kill("SIGSTOP")
      yield* first!.update(true)
      yield* Effect.sleep(600)
      yield* first!.update(true)
      assert.isTrue((yield* first!.state).enabled)
      assert.isFalse((yield* second!.state).enabled)
      server.kill("SIGCONT")
      const throttled = Effect.andThen(first!.update(true), isLimited(second!))
      yield* eventually(throttled, "it is limited")
    }))

  it.live("a server that restarts without its data, and a replica that takes no writes: the rate is kept", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      const server = yield* startRedis(port)
      // Long enough for a busy machine: a cut without an answer is one of this process alone.
      const first = yield* limiterAt(port, { timeout: "5 seconds" })
      yield* sends(first, 1200)
      yield* first.update(true)
      // Redis is first to know: its answer may still be unread here.
      yield* eventually(isLimited(first), "it is cut")
      assert.strictEqual(yield* command(port, "HGET", "rate-limit:orders", "cuts"), "1")
      const { lastMaxRate } = yield* first.state
      const ended = Effect.callback<void>((resume) => void server.once("exit", () => resume(Effect.void)))
      const gone = yield* Effect.forkChild(ended, { startImmediately: true })
      server.kill("SIGKILL")
      yield* Fiber.join(gone)
      yield* sends(first, 200)
      yield* startRedis(port)
      const isBack = command(port, "HGET", "rate-limit:orders", "cuts").pipe(Effect.map((cuts) => cuts === "1"))
      yield* eventually(Effect.andThen(first.update(false), isBack), "Redis knows it again")
      assert.approximately((yield* first.state).lastMaxRate, lastMaxRate, lastMaxRate / 5)
      yield* command(port, "REPLICAOF", "127.0.0.1", "1")
      yield* sends(first, 300)
      assert.isTrue((yield* first.state).enabled)
    }))

  it.live(
    "ten processes on one limit of nginx: within 5 % of it, and each within 20 % of the mean",
    () =>
      Effect.gen(function*() {
        const shared = yield* measured(urlOf)
        print("shared", shared)
        assert.isAtLeast(shared.ofLimit, 0.95)
        assert.isAtMost(shared.ofLimit, 1.05)
        assert.isAtLeast(shared.least, 0.8)
        assert.isAtMost(shared.most, 1.2)
      })
  )

  // Only on request: a test that is skipped fails CI.
  if (process.env["COMPARE"] !== undefined) {
    it.live(
      "for comparison: each with a limiter of its own",
      () => Effect.map(measured(() => "own"), (own) => print("each for itself", own))
    )
  }
})
