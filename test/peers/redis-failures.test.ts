import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { assert, describe, it } from "@effect/vitest"
import { RetryQuota } from "effect-retry"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import * as Scope from "effect/Scope"
import { freePort, startRedis, temporaryFolder } from "../utils/peers.ts"
import { decisions, isOnFallback, logged } from "../utils/sharedQuota.ts"
import { command, eventually, exchanges, quotaAt, startWorker, timed, urlOf } from "./redis/fleet.ts"

const winners = (quota: RetryQuota.Service, asks: number, cost = 5) =>
  Effect.map(
    Effect.forEach(Array.from({ length: asks }), () => quota.reserve(cost), { concurrency: "unbounded" }),
    (taken) => taken.flatMap((each) => Option.isSome(each) ? [each.value] : [])
  )

let names = 0
/** Options with a name of their own, since metrics are those of the process. */
const named = (options?: Partial<RetryQuotaRedis.Options>): RetryQuotaRedis.Options => ({
  name: `failures-${names++}`,
  timeout: "1 second",
  fallbackTime: "200 millis",
  ...options
})

/** The tokens in Redis: its scores are values, negated. */
const tokensAt = (port: number, options: RetryQuotaRedis.Options) =>
  Effect.map(command(port, "ZSCORE", keyOf(options), "tokens"), (score) => -Number(score))

const keyOf = ({ name }: RetryQuotaRedis.Options) => `retry-quota:${name}`

/** Redis decides again: what it says is true for the fleet. */
const recovered = ({ name }: RetryQuotaRedis.Options) =>
  eventually(Effect.map(isOnFallback(name), (is) => !is), "Redis answers again")

describe("what another user writes into the key", () => {
  for (
    const [score, member] of [
      ["-50", "tokens"],
      ["+inf", "tokens"],
      ["-inf", "tokens"],
      ["1e15", "tokens"],
      ["5", "tokens"],
      ["5", "capacity"],
      ["-0", "capacity"],
      ["-inf", "capacity"],
      ["5", "at"],
      ["+inf", "at"],
      ["-1e300", "at"],
      ["1", "foreign"],
      ["1", "lease:x"],
      ["1", "lease:x:1:-1e300"],
      ["1", "lease:x:1:nan"],
      ["1", "lease:x:1:1e300"]
    ] as const
  ) {
    it.live(`is at most a full or an empty quota, which refills: ZADD ${score} ${member}`, () =>
      Effect.gen(function*() {
        const port = yield* freePort
        yield* startRedis(port)
        const options = named({ capacity: 100, refillPerSecond: 1000, timeout: "20 seconds" })
        const quota = yield* quotaAt(urlOf(port), options)
        assert.lengthOf(yield* winners(quota, 1), 1)
        yield* command(port, "ZADD", keyOf(options), score, member)
        yield* winners(quota, 1)
        assert.isFalse(yield* isOnFallback(options.name))
        yield* eventually(Effect.map(quota.balance, (tokens) => tokens === 100), "it has refilled")
        assert.lengthOf(yield* winners(quota, 1, 90), 1)
        const left = yield* command(port, "ZRANGEBYSCORE", keyOf(options), "-inf", "1000")
        assert.sameMembers((left as Array<string>).filter((name) => !name.startsWith("seq:")), [
          "at",
          "capacity",
          "tokens"
        ])
        assert.isFalse(yield* isOnFallback(options.name))
      }))
  }
})

describe("a fleet", () => {
  it.live("of three processes retries exactly 100 times at 500 tokens and cost 5", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const options = named({ capacity: 500, timeout: "20 seconds" })
      const workers = yield* Effect.forEach([1, 2, 3], () => startWorker(port, options, "outage"), {
        concurrency: "unbounded"
      })
      yield* Effect.forEach(workers, ({ go }) => go)
      const retries = yield* Effect.forEach(workers, ({ line }) => Effect.map(line, Number), {
        concurrency: "unbounded"
      })
      console.log(`retries of three processes: ${retries.join(" + ")}`)
      assert.strictEqual(retries.reduce((sum, each) => sum + each), 100)
      const quota = yield* quotaAt(urlOf(port), options)
      assert.strictEqual(yield* quota.balance, 0)
    }))

  it.live("gets the tokens of a killed process back after the lease time, and not before", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const options = named({ capacity: 100, leaseTime: "4 seconds" })
      const worker = yield* startWorker(port, options, "holding")
      yield* worker.go
      assert.strictEqual(yield* worker.line, "50")
      worker.process.kill("SIGKILL")
      const quota = yield* quotaAt(urlOf(port), options)
      assert.strictEqual(yield* quota.balance, 50)
      yield* Effect.sleep(1000)
      assert.strictEqual(yield* quota.balance, 50)
      yield* eventually(Effect.map(quota.balance, (tokens) => tokens === 100), "the leases have ended")
    }))

  it.live("gives nothing back twice for a process that was stopped for longer than the lease time", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const options = named({ capacity: 100, leaseTime: "1 second", timeout: "20 seconds" })
      const worker = yield* startWorker(port, options, "holding")
      yield* worker.go
      assert.strictEqual(yield* worker.line, "50")
      worker.process.kill("SIGSTOP")
      const quota = yield* quotaAt(urlOf(port), options)
      yield* eventually(Effect.map(quota.balance, (tokens) => tokens === 100), "the leases have ended")
      const taken = yield* winners(quota, 12)
      for (const lease of taken) yield* lease.spend
      assert.strictEqual(yield* quota.balance, 40)
      worker.process.kill("SIGCONT")
      yield* worker.go
      assert.strictEqual(yield* worker.line, "40")
      assert.strictEqual(yield* quota.balance, 40)
    }))

  it.live("spends what it retries, no more and no less, though its server forgets scripts, is killed and comes back", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      const durable = ["--appendonly", "yes", "--appendfsync", "always", "--dir", yield* temporaryFolder]
      const server = yield* startRedis(port, durable)
      const options = named({ capacity: 5000, fallbackTime: "50 millis", fallback: { initial: 0 } })
      const workers = yield* Effect.forEach([1, 2, 3], () => startWorker(port, options, "longOutage"), {
        concurrency: "unbounded"
      })
      const spent = (tokens: number) =>
        eventually(
          Effect.map(tokensAt(port, options), (left) => left < 5000 - tokens),
          `${tokens} tokens are spent`
        )
      yield* Effect.forEach(workers, ({ go }) => go)
      yield* spent(200)
      yield* command(port, "SCRIPT", "FLUSH")
      yield* spent(600)
      server.kill("SIGKILL")
      yield* eventually(Effect.sync(() => server.signalCode !== null), "the server is dead")
      yield* startRedis(port, durable)
      const before = 5000 - (yield* tokensAt(port, options))
      yield* spent(before + 400)
      const retries = yield* Effect.forEach(workers, ({ line }) => Effect.map(line, Number), {
        concurrency: "unbounded"
      })
      console.log(`retries of three processes with a server that was killed: ${retries.join(" + ")}`)
      const sum = retries.reduce((total, each) => total + each)
      assert.isAtMost(sum, 1000)
      const quota = yield* quotaAt(urlOf(port), options)
      yield* eventually(Effect.map(quota.balance, (tokens) => tokens === 5000 - 5 * sum), "all is reported")
    }))
})

describe("a shared quota", () => {
  it.live("whose server is killed decides locally, and sends the server everything when it is back", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      const folder = yield* temporaryFolder
      const durable = ["--appendonly", "yes", "--appendfsync", "always", "--dir", folder]
      const server = yield* startRedis(port, durable)
      const { layer, lines } = logged()
      yield* Effect.gen(function*() {
        const options = named({ capacity: 500, fallback: { capacity: 20 } })
        const quota = yield* quotaAt(urlOf(port), options)
        const taken = yield* winners(quota, 20)
        assert.strictEqual(yield* quota.balance, 400)
        server.kill("SIGKILL")
        yield* eventually(Effect.sync(() => server.signalCode !== null), "the server is dead")

        const local = yield* winners(quota, 50)
        assert.strictEqual(local.length, 4)
        assert.strictEqual(yield* quota.balance, 0)
        // Ten of Redis' leases go back and ten are spent while it is down; the local ones do not concern Redis.
        for (const lease of taken.slice(0, 10)) yield* lease.giveBack
        for (const lease of taken.slice(10)) yield* lease.spend
        assert.strictEqual(yield* quota.balance, 0)

        yield* startRedis(port, durable)
        yield* recovered(options)
        assert.strictEqual(yield* quota.balance, 450)
        for (const lease of local) yield* lease.giveBack
        assert.strictEqual(yield* quota.balance, 450)
        assert.strictEqual(yield* decisions(options.name, "redis"), 20)
        assert.strictEqual(yield* decisions(options.name, "fallback"), 50)
      }).pipe(Effect.provide(layer))
      assert.strictEqual(lines.length, 2, lines.join("\n"))
      assert.match(lines[0]!, /^Warn: retry quota "failures-\d+": Redis does not answer, the local fallback decides: /)
      assert.match(lines[1]!, /^Info: retry quota "failures-\d+": Redis answers again and decides$/)
    }))

  it.live("whose server is stopped waits no longer than it says, and nothing is spent twice", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      const server = yield* startRedis(port)
      const options = named({ capacity: 500 })
      const quota = yield* quotaAt(urlOf(port), options)
      const before = yield* winners(quota, 10)
      assert.strictEqual(yield* quota.balance, 450)
      server.kill("SIGSTOP")
      const [local, millis] = yield* timed(winners(quota, 20))
      assert.strictEqual(local.length, 20)
      // The server stays stopped: a caller that waits for it, or again, waits longer than the timeout of a second.
      assert.isAtLeast(millis, 990)
      assert.isBelow(millis, 5000)
      const [more, next] = yield* timed(winners(quota, 20))
      assert.strictEqual(more.length, 20)
      assert.isBelow(next, 900)
      for (const lease of before.slice(0, 5)) yield* lease.spend
      yield* Effect.sleep(700)
      server.kill("SIGCONT")
      yield* recovered(options)
      // What Redis granted while no caller listened any more has gone back: 500 - 5 spent * 5 - 5 held * 5.
      assert.strictEqual(yield* quota.balance, 450)
      for (const lease of before.slice(5)) yield* lease.giveBack
      assert.strictEqual(yield* quota.balance, 475)
      yield* Effect.sleep(300)
      assert.strictEqual(yield* quota.balance, 475)
    }))

  it.live("whose process was too busy to read takes the answers that came meanwhile", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const options = named({ timeout: "300 millis" })
      const quota = yield* quotaAt(urlOf(port), options)
      yield* quota.balance
      for (let round = 0; round < 3; round++) {
        yield* command(port, "CLIENT", "PAUSE", "150")
        const asked = yield* Effect.forkChild(quota.reserve(1))
        yield* Effect.sleep(50)
        // After this, Node fires its timers before it reads.
        yield* Effect.yieldNow
        const start = performance.now()
        while (performance.now() < start + 500);
        assert.isTrue(Option.isSome(yield* Fiber.join(asked)))
      }
      assert.strictEqual(yield* decisions(options.name, "fallback"), 0)
    }))

  it.live("survives SCRIPT FLUSH without a log line", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const { layer, lines } = logged()
      const options = named({ capacity: 20 })
      yield* Effect.gen(function*() {
        const quota = yield* quotaAt(urlOf(port), options)
        assert.strictEqual((yield* winners(quota, 2)).length, 2)
        yield* command(port, "SCRIPT", "FLUSH")
        assert.strictEqual((yield* winners(quota, 9)).length, 2)
        assert.strictEqual(yield* quota.balance, 0)
      }).pipe(Effect.provide(layer))
      assert.deepStrictEqual(lines, [])
      assert.strictEqual(yield* decisions(options.name, "fallback"), 0)
    }))

  const refusals = [
    {
      what: "OOM",
      begin: (port: number) => command(port, "CONFIG", "SET", "maxmemory", "1"),
      end: (port: number) => command(port, "CONFIG", "SET", "maxmemory", "0")
    },
    {
      what: "READONLY",
      begin: (port: number) => command(port, "REPLICAOF", "127.0.0.1", "1"),
      end: (port: number) => command(port, "REPLICAOF", "NO", "ONE")
    },
    {
      what: "NOREPLICAS",
      begin: (port: number) => command(port, "CONFIG", "SET", "min-replicas-to-write", "1"),
      end: (port: number) => command(port, "CONFIG", "SET", "min-replicas-to-write", "0")
    }
  ]
  for (const { begin, end, what } of refusals) {
    it.live(`whose server answers ${what} decides locally, and loses nothing`, () =>
      Effect.gen(function*() {
        const port = yield* freePort
        yield* startRedis(port)
        const { layer, lines } = logged()
        yield* Effect.gen(function*() {
          const options = named({ capacity: 100 })
          const quota = yield* quotaAt(urlOf(port), options)
          const [first, second] = yield* winners(quota, 2)
          assert.strictEqual(yield* quota.balance, 90)
          yield* begin(port)
          yield* first!.giveBack
          const local = yield* winners(quota, 50)
          assert.strictEqual(local.length, 18)
          yield* second!.spend
          yield* end(port)
          yield* recovered(options)
          assert.strictEqual(yield* quota.balance, 95)
        }).pipe(Effect.provide(layer))
        assert.strictEqual(lines.length, 2, lines.join("\n"))
        assert.include(lines[0], what)
      }))
  }

  it.live("whose connection is cut again and again answers all, and loses nothing", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const options = named({ capacity: 1000, fallbackTime: "20 millis", fallback: { initial: 0 } })
      const quota = yield* quotaAt(urlOf(port), options)
      let granted = 0
      let spent = 0
      for (let round = 0; round < 15; round++) {
        const asked = yield* Effect.forkChild(winners(quota, 10), { startImmediately: true })
        yield* command(port, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        for (const lease of yield* Fiber.join(asked)) {
          const isSpent = granted++ % 2 === 0
          if (isSpent) spent++
          yield* (isSpent ? lease.spend : lease.giveBack)
        }
        yield* Effect.sleep(20 * (round % 4))
      }
      console.log(`Redis granted ${granted} of 150 while its connection was cut 15 times`)
      assert.isAbove(spent, 0)
      yield* recovered(options)
      yield* eventually(Effect.map(quota.balance, (tokens) => tokens === 1000 - 5 * spent), "all is reported")
      assert.strictEqual(yield* command(port, "ZCARD", keyOf(options)), 5)
    }).pipe(Effect.provide(logged().layer)))

  it.live("whose exchanges arrive twice counts each once", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const context = yield* Layer.build(NodeRedis.layer({ url: urlOf(port) }))
      const redis = Context.get(context, Redis.Redis)
      const copies: Array<string> = []
      const twice: Redis.Redis["Service"] = {
        ...redis,
        eval: (script) => (...params) =>
          Effect.tap(redis.eval(script)(...params), () =>
            Effect.matchEffect(redis.eval(script)(...params), {
              onFailure: ({ cause }) => Effect.sync(() => copies.push(String(cause))),
              onSuccess: () => Effect.die("a copy was taken for new")
            }))
      }
      const options = named({ capacity: 100, initial: 50 })
      const quota = yield* Effect.provideService(RetryQuotaRedis.make(options), Redis.Redis, twice)
      const [first, second] = yield* winners(quota, 3)
      yield* quota.deposit(7)
      yield* first!.giveBack
      yield* second!.spend
      assert.strictEqual(yield* quota.balance, 50 - 15 + 7 + 5)
      assert.strictEqual(yield* decisions(options.name, "fallback"), 0)
      assert.isAbove(copies.length, 1)
      for (const copy of copies) assert.include(copy, "STALE")
    }))

  it.live("whose responses are lost has its updates counted once, though it sends them again", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const context = yield* Layer.build(NodeRedis.layer({ url: urlOf(port) }))
      const redis = Context.get(context, Redis.Redis)
      let isLost = false
      const lossy: Redis.Redis["Service"] = {
        ...redis,
        eval: (script) => (...params) =>
          Effect.filterOrFail(
            redis.eval(script)(...params),
            () => !isLost,
            () => new Redis.RedisError({ cause: new Error("the answer is lost") })
          )
      }
      const options = named({ capacity: 100, initial: 50 })
      const quota = yield* Effect.provideService(RetryQuotaRedis.make(options), Redis.Redis, lossy)
      const [first, second] = yield* winners(quota, 2)
      yield* quota.deposit(7)
      yield* first!.giveBack
      yield* second!.spend
      isLost = true
      assert.strictEqual((yield* winners(quota, 1)).length, 1)
      assert.isTrue(yield* isOnFallback(options.name))
      isLost = false
      yield* recovered(options)
      assert.strictEqual(yield* quota.balance, 50 - 10 + 7 + 5)
      assert.strictEqual(yield* command(port, "ZCARD", keyOf(options)), 5)
    }).pipe(Effect.provide(logged().layer)))

  it.live("loses nothing, and keeps refilling, though the clock of Redis steps back by an hour", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const options = named({ capacity: 1e6, initial: 0, refillPerSecond: 1000 })
      const quota = yield* quotaAt(urlOf(port), options)
      yield* quota.deposit(5000)
      const before = yield* quota.balance
      // For the script, a clock that went back is one that counted in the future.
      yield* command(port, "ZINCRBY", keyOf(options), "-3600000", "at")
      const stepped = yield* quota.balance
      assert.strictEqual(stepped, Number(before))
      yield* Effect.sleep(200)
      const after = yield* quota.balance
      assert.isAtLeast(after - stepped, 190)
    }))

  it.live("starts over when Redis has lost it, gives nothing back twice, and says so once", () => {
    const { layer, lines } = logged(/has lost the retry quota/)
    return Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const quota = yield* quotaAt(urlOf(port), named({ capacity: 100, initial: 60 }))
      const taken = yield* winners(quota, 4)
      assert.strictEqual(yield* quota.balance, 40)
      yield* command(port, "FLUSHALL")
      for (const lease of taken) yield* lease.giveBack
      assert.strictEqual(yield* quota.balance, 60)
      yield* command(port, "FLUSHALL")
      assert.strictEqual(yield* quota.balance, 60)
      assert.lengthOf(lines, 1)
    }).pipe(Effect.provide(layer))
  })

  it.live("does not delay a start that finds no Redis, and shares as soon as there is one", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      const { layer, lines } = logged()
      const options = named({ capacity: 100, fallback: { capacity: 10 } })
      const quotaLayer = RetryQuotaRedis.layerConnecting(options, NodeRedis.layer({ url: urlOf(port) }))
      yield* Effect.gen(function*() {
        const quota = yield* RetryQuota.RetryQuota
        assert.strictEqual((yield* winners(quota, 9)).length, 2)
        yield* eventually(Effect.sync(() => lines.length === 1), "the first connection has failed")
        yield* startRedis(port)
        yield* recovered(options)
        assert.strictEqual((yield* winners(quota, 40)).length, 20)
      }).pipe(Effect.provide(Layer.provideMerge(quotaLayer, layer)))
      assert.strictEqual(lines.length, 2, lines.join("\n"))
      assert.include(lines[0], "ECONNREFUSED")
    }))

  it.live("logs no password of a server that repeats what it is sent, as Redis 5 does, and shares over RESP 2", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      const password = "s3cr3t-planted"
      yield* startRedis(port, ["--rename-command", "HELLO", "", "--requirepass", password])
      const url = `redis://:${password}@127.0.0.1:${port}`
      const { layer, lines } = logged()
      const call = Effect.gen(function*() {
        const quota = yield* RetryQuota.RetryQuota
        assert.strictEqual((yield* winners(quota, 1)).length, 1)
        yield* eventually(Effect.sync(() => lines.length === 1), "the first connection has failed")
      })
      yield* Effect.provide(
        call,
        Layer.provideMerge(RetryQuotaRedis.layerConnecting(named(), NodeRedis.layer({ url })), layer)
      )
      assert.match(lines[0]!, /the local fallback decides: ERR unknown command 'HELLO'$/)
      const options = named()
      yield* Effect.provide(
        recovered(options),
        RetryQuotaRedis.layerConnecting(options, NodeRedis.layer({ url, RESP: 2 }))
      )
    }))

  it.live("that connects by itself closes in time though its server is stopped", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      const server = yield* startRedis(port)
      const options = named()
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(
        RetryQuotaRedis.layerConnecting(options, NodeRedis.layer({ url: urlOf(port) })),
        scope
      )
      yield* recovered(options)
      const quota = Context.get(context, RetryQuota.RetryQuota)
      assert.strictEqual((yield* winners(quota, 2)).length, 2)
      server.kill("SIGSTOP")
      yield* quota.deposit(1)
      const closed = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      yield* eventually(Effect.sync(() => closed.pollUnsafe() !== undefined), "it is closed")
      server.kill("SIGCONT")
    }))

  const limits: ReadonlyArray<readonly [string, Partial<RetryQuotaRedis.Options>]> = [
    ["the longest times", { idleTimeToLive: 1e20, leaseTime: 1e19 }],
    ["hardly a refill", { refillPerSecond: 1e-18 }],
    ["hardly a refill, waited for", { refillPerSecond: 1e-18, onExceeded: "wait" }],
    ["the least refill that is one", { refillPerSecond: Number.MIN_VALUE }],
    ["numbers that JavaScript writes with an exponent", { prefix: "1e21:", successIncrement: 1e-7 }],
    ["a name of odd characters", { prefix: "{a}\u0000\r\n*2\"'%s \u{1F600}\uD800 " }]
  ]
  for (const [what, given] of limits) {
    it.live(`works with ${what}, and its key has a time to live`, () =>
      Effect.gen(function*() {
        const port = yield* freePort
        yield* startRedis(port)
        const options = named({ capacity: 12, ...given })
        const quota = yield* quotaAt(urlOf(port), options)
        yield* winners(quota, 2)
        const left = Number(yield* command(port, "PTTL", `${options.prefix ?? "retry-quota:"}${options.name}`))
        assert.isAbove(left, 0)
        const asked = yield* Effect.forkChild(quota.reserve(5), { startImmediately: true })
        yield* quota.balance
        if (options.onExceeded === "wait") yield* Fiber.interrupt(asked)
        else assert.isTrue(Option.isNone(yield* Fiber.join(asked)))
        assert.strictEqual(yield* decisions(options.name, "fallback"), 0)
        yield* quota.deposit(12)
        assert.strictEqual(yield* quota.balance, 12)
      }))
  }

  for (const capacity of [1e21, 2 ** 1000]) {
    it.live(`counts exactly with ${capacity} tokens`, () =>
      Effect.gen(function*() {
        const port = yield* freePort
        yield* startRedis(port)
        const options = named({ capacity, fallback: { capacity: 1 } })
        const quota = yield* quotaAt(urlOf(port), options)
        assert.strictEqual((yield* winners(quota, 5, capacity / 4)).length, 4)
        assert.strictEqual(yield* quota.balance, 0)
        yield* quota.deposit(capacity / 3)
        assert.strictEqual(yield* quota.balance, capacity / 3)
      }))
  }

  it.live("goes without what it may not do: a user without rights", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const { layer, lines } = logged()
      yield* command(port, "ACL", "SETUSER", "guest", "on", ">secret", "~*", "+@connection", "+script")
      yield* Effect.gen(function*() {
        const quota = yield* quotaAt(urlOf(port, "guest:secret@"), named({ capacity: 10 }))
        assert.strictEqual((yield* winners(quota, 9)).length, 2)
      }).pipe(Effect.provide(layer))
      yield* eventually(Effect.sync(() => lines.length > 0), "it is logged")
      assert.strictEqual(lines.length, 1)
      assert.include(lines[0], "NOPERM")
    }))
})

describe("the keys of a shared quota", () => {
  it.live("are one for each quota, with a time to live that each exchange renews", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const options = named({ capacity: 20, leaseTime: "10 seconds", idleTimeToLive: "20 seconds" })
      const quota = yield* quotaAt(urlOf(port), options)
      yield* winners(quota, 3)
      assert.deepStrictEqual(yield* command(port, "KEYS", "*"), [keyOf(options)])
      for (let i = 0; i < 3; i++) {
        const left = Number(yield* command(port, "PTTL", keyOf(options)))
        assert.isAbove(left, 10_000)
        assert.isAtMost(left, 20_000)
        yield* command(port, "PEXPIRE", keyOf(options), "9000")
        yield* quota.balance
      }
    }))

  it.live("are gone when the quota was unused for its time to live", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const options = named({ capacity: 20, leaseTime: "1 second", idleTimeToLive: "2 seconds" })
      const quota = yield* quotaAt(urlOf(port), options)
      yield* winners(quota, 3)
      yield* eventually(Effect.map(command(port, "DBSIZE"), (keys) => keys === 0), "the key is gone")
      assert.strictEqual(yield* quota.balance, 20)
    }))

  it.live("are the only ones that the script touches, and declared: it works for a user of these keys, and in a cluster", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port, ["--cluster-enabled", "yes", "--dir", yield* temporaryFolder])
      yield* command(port, "CLUSTER", "ADDSLOTSRANGE", "0", "16383")
      yield* eventually(
        Effect.map(command(port, "CLUSTER", "INFO"), (info) => String(info).includes("cluster_state:ok")),
        "the cluster is up"
      )
      const allowed = ["~retry-quota:*", "+@connection", "+evalsha", "+script", "+zscore", "+zadd", "+zrem"]
      yield* command(
        port,
        "ACL",
        "SETUSER",
        "fleet",
        "on",
        ">secret",
        ...allowed,
        "+zrangebyscore",
        "+pexpire",
        "+time"
      )
      const options = named({ capacity: 20, leaseTime: "300 millis" })
      const quota = yield* quotaAt(urlOf(port, "fleet:secret@"), options)
      const [first, second] = yield* winners(quota, 9)
      yield* first!.giveBack
      yield* second!.spend
      assert.strictEqual(yield* quota.balance, 5)
      yield* Effect.sleep(400)
      assert.strictEqual(yield* quota.balance, 15)
      assert.strictEqual(yield* decisions(options.name, "fallback"), 0)
      const args = ["EVALSHA", "0".repeat(40), "1", keyOf(options), "20"]
      assert.deepStrictEqual(yield* command(port, "COMMAND", "GETKEYS", ...args), [keyOf(options)])
    }))

  it.live("hold as much as there are leases, and nothing of those that are settled", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const options = named({ capacity: 500 })
      const quota = yield* quotaAt(urlOf(port), options)
      for (const lease of yield* winners(quota, 100)) yield* lease.giveBack
      assert.strictEqual(yield* quota.balance, 500)
      // The tokens, of how many, when they were counted, the number of this client, and when that is forgotten.
      assert.strictEqual(yield* command(port, "ZCARD", keyOf(options)), 5)
    }))
})

describe("what a shared quota costs", () => {
  it.live("is nothing on the way of a success, and one round trip for a retry", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* startRedis(port)
      const quota = yield* quotaAt(urlOf(port), named({ initial: 0, timeout: "20 seconds" }))
      yield* quota.balance
      const before = yield* exchanges(port)
      const [, millis] = yield* timed(Effect.gen(function*() {
        for (let i = 0; i < 10_000; i++) yield* quota.deposit(0.01)
      }))
      assert.closeTo(yield* quota.balance, 100, 1e-6)
      const asked = (yield* exchanges(port)) - before
      console.log(`10,000 deposits: ${millis.toFixed(1)} ms, ${asked} exchanges`)
      assert.isAtMost(asked, 2 + millis / 100)

      const trips: Array<number> = []
      const askedBefore = yield* exchanges(port)
      const [, whole] = yield* timed(Effect.gen(function*() {
        for (let i = 0; i < 1000; i++) {
          const [taken, trip] = yield* timed(quota.reserve(1))
          trips.push(trip)
          yield* Option.getOrThrow(taken).giveBack
        }
      }))
      trips.sort((a, b) => a - b)
      const at = (share: number) => trips[Math.floor(share * trips.length)]!.toFixed(3)
      console.log(`a reservation on loopback: median ${at(0.5)} ms, 99th of 100 ${at(0.99)} ms`)
      assert.isAtMost((yield* exchanges(port)) - askedBefore, 1010 + whole / 100)

      const [all, together] = yield* timed(winners(quota, 1000, 0.01))
      assert.strictEqual(all.length, 1000)
      console.log(`1,000 reservations at the same time: ${together.toFixed(1)} ms`)
    }))
})
