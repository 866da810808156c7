import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { assert, describe, it } from "@effect/vitest"
import { RetryPolicy, withRetry } from "effect-retry"
import * as AdaptiveRateLimiterRedis from "effect-retry/AdaptiveRateLimiterRedis"
import * as CoolDown from "effect-retry/CoolDown"
import * as CoolDownRedis from "effect-retry/CoolDownRedis"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import { readFileSync } from "node:fs"
import { freePort, startRedis } from "../utils/peers.ts"
import { command, eventually, exchanges, urlOf } from "./redis/fleet.ts"

const once = RetryPolicy.fromDelay(() => undefined)

const options: CoolDownRedis.Options = {
  name: "orders",
  timeout: "1 second",
  fallbackTime: "200 millis",
  lookInterval: "100 millis",
  spread: 0.2
}

/** A process of a fleet, as far as Redis can tell: it has a connection and a client of its own. */
const coolDownAt = (port: number, own: Partial<CoolDownRedis.Options> = {}) =>
  Effect.flatMap(
    Layer.build(NodeRedis.layer({ url: urlOf(port) })),
    (redis) => Effect.provideContext(CoolDownRedis.make({ ...options, ...own }), redis)
  )

const through = <A, E>(coolDown: CoolDown.Service, send: Effect.Effect<A, E>) =>
  withRetry(send, once).pipe(Effect.provideService(CoolDown.CoolDown, coolDown))

const isIn = (coolDown: CoolDown.Service, phase: CoolDown.State["phase"]) =>
  Effect.map(coolDown.state, (state) => state.phase === phase)

/** Sends until it is stopped. */
const isTold = (coolDown: CoolDown.Service) =>
  Effect.flatMap(
    isIn(coolDown, "closed"),
    (isClosed) => isClosed ? Effect.succeed(true) : Effect.as(Effect.exit(through(coolDown, Effect.void)), false)
  )

describe("a cool-down in Redis", () => {
  it.live("one hint closes the resource for five processes, one probes, the others follow it", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const fleet = yield* Effect.replicateEffect(coolDownAt(port), 5)
      yield* fleet[0]!.close("2 seconds")
      for (const process of fleet.slice(1)) yield* eventually(isTold(process), "it knows")
      const begun: Array<number> = []
      const send = Effect.gen(function*() {
        begun.push(yield* Clock.currentTimeMillis)
        yield* Effect.sleep(300)
      })
      const calls = yield* Effect.forEach(fleet, (process) => Effect.forkChild(through(process, send)))
      for (const call of calls) assert.isTrue(Exit.isSuccess(yield* Fiber.await(call)))
      assert.isAtLeast(begun[1]! - begun[0]!, 295)
      assert.strictEqual(begun.length, 5)
      yield* eventually(Effect.map(command(port, "EXISTS", "cool-down:orders"), (is) => is === 0), "it is open")
      for (const process of fleet) assert.strictEqual((yield* process.state).phase, "free")
    }))

  it.live("the commands that the page allows suffice for quotas, cool-downs and rates", () =>
    Effect.gen(function*() {
      const page = readFileSync(new URL("../../docs/fleet.md", import.meta.url), "utf8")
      const rules = /^ACL SETUSER orders on >PASSWORD ([^`]+)/m.exec(page)![1]!.trim().split(/\s+/)
      const port = yield* freePort
      yield* startRedis(port)
      yield* command(port, "ACL", "SETUSER", "orders", "on", ">secret", ...rules)
      const redis = yield* Layer.build(NodeRedis.layer({ url: `redis://orders:secret@127.0.0.1:${port}` }))
      const lines: Array<string> = []
      const logs = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
      yield* Effect.gen(function*() {
        const quota = yield* RetryQuotaRedis.make({ name: "a:b", timeout: "5 seconds" })
        assert.isTrue(Option.isSome(Option.fromUndefinedOr(yield* quota.reserve(5))))
        const coolDown = yield* CoolDownRedis.make({ ...options, timeout: "5 seconds" })
        yield* coolDown.close("100 millis")
        yield* through(coolDown, Effect.void)
        const limiter = yield* AdaptiveRateLimiterRedis.make({ name: "orders", timeout: "5 seconds" })
        yield* limiter.update(true)
        const keys = ["retry-quota:a%003Ab", "cool-down:orders", "rate-limit:orders"]
        yield* eventually(Effect.map(command(port, "DBSIZE"), (size) => Number(size) >= 2), "they have exchanged")
        for (const key of keys.slice(0, 1)) assert.strictEqual(yield* command(port, "EXISTS", key), 1)
      }).pipe(Effect.provideContext(redis), Effect.provide(logs))
      assert.deepStrictEqual(lines.filter((line) => line.includes("fallback")), [])
    }))

  const year = 365 * 86_400_000
  const writes: Readonly<Record<string, (nowMillis: number) => ReadonlyArray<string>>> = {
    "a closing that ends in a year": (now) => ["until", String(now + year), "closing", "x"],
    "a probe that ends in a year": (now) => ["until", "0", "closing", "x", "holder", "x", "probe", String(now + year)],
    "a closing without an end": () => ["until", "1e308", "closing", "x"]
  }
  for (const [what, fields] of Object.entries(writes)) {
    it.live(`${what}, written by others, closes the resource for at most as long as the options allow`, () =>
      Effect.gen(function*() {
        const port = yield* freePort
        yield* startRedis(port)
        const process = yield* coolDownAt(port, { atMost: "1 second", probeTime: "1 second" })
        yield* command(port, "HSET", "cool-down:orders", ...fields(yield* Clock.currentTimeMillis))
        const send = yield* Effect.forkChild(Effect.forever(through(process, Effect.sleep(10))))
        yield* eventually(Effect.map(isIn(process, "free"), (isFree) => !isFree), "it is closed, as was asked")
        yield* eventually(isIn(process, "free"), "it is open again")
        yield* Fiber.interrupt(send)
        yield* eventually(Effect.map(command(port, "EXISTS", "cool-down:orders"), (is) => is === 0), "the key is gone")
      }))
  }

  for (const value of ["nan", "inf", "-1e308", "x"]) {
    it.live(`what is no time, written by others, ends with the next probe: ${value}`, () =>
      Effect.gen(function*() {
        const port = yield* freePort
        yield* startRedis(port)
        const process = yield* coolDownAt(port, { atMost: "1 second", probeTime: "1 second" })
        yield* command(port, "HSET", "cool-down:orders", "until", value, "closing", "x", "holder", "x", "probe", value)
        const send = yield* Effect.forkChild(Effect.forever(through(process, Effect.sleep(10))))
        yield* eventually(Effect.map(command(port, "EXISTS", "cool-down:orders"), (is) => is === 0), "the key is gone")
        yield* Fiber.interrupt(send)
      }))
  }

  it.live("a hundred thousand sends in two seconds ask Redis fewer than a hundred times", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const process = yield* coolDownAt(port)
      for (let round = 0; round < 20; round++) {
        for (let call = 0; call < 5000; call++) yield* through(process, Effect.void)
        yield* Effect.sleep(100)
      }
      const count = yield* exchanges(port)
      console.log(`exchanges for 100,000 sends: ${count}`)
      assert.isAtLeast(count, 10)
      assert.isBelow(count, 100)
    }))

  it.live("a server that is stopped: each process decides alone, and shares again when it resumes", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      const server = yield* startRedis(port)
      const [first, second] = yield* Effect.replicateEffect(coolDownAt(port, { spread: 0, timeout: "200 millis" }), 2)
      server.kill("SIGSTOP")
      yield* first!.close("1 second")
      yield* through(second!, Effect.void)
      yield* Effect.sleep(600)
      assert.isTrue(yield* isIn(second!, "free"))
      yield* through(first!, Effect.void)
      assert.isTrue(yield* isIn(first!, "free"))
      yield* first!.close("30 seconds")
      server.kill("SIGCONT")
      yield* eventually(isTold(second!), "it knows")
    }))

  it.live("a server that restarts without its data: a closed process stays so until the hint is over, then opens", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      const server = yield* startRedis(port)
      const process = yield* coolDownAt(port, { maxWait: "10 seconds" })
      yield* process.close("2 seconds")
      yield* Effect.sleep(200)
      const ended = Effect.callback<void>((resume) => void server.once("exit", () => resume(Effect.void)))
      const gone = yield* Effect.forkChild(ended, { startImmediately: true })
      server.kill("SIGKILL")
      yield* Fiber.join(gone)
      yield* startRedis(port)
      assert.isTrue(yield* isIn(process, "closed"))
      yield* through(process, Effect.void)
      assert.isTrue(yield* isIn(process, "free"))
    }))

  it.live("a replica that takes no writes: the process decides alone until it is promoted", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const [first, second] = yield* Effect.replicateEffect(coolDownAt(port), 2)
      yield* command(port, "REPLICAOF", "127.0.0.1", "1")
      yield* first!.close("20 seconds")
      yield* Effect.sleep(300)
      yield* through(second!, Effect.void)
      assert.isTrue(yield* isIn(second!, "free"))
      yield* command(port, "REPLICAOF", "NO", "ONE")
      yield* eventually(isTold(second!), "it knows")
    }))
})
