import { assert, describe, it } from "@effect/vitest"
import { InvalidOption, RetryPolicy, withRetry } from "effect-retry"
import * as CoolDown from "effect-retry/CoolDown"
import * as CoolDownRedis from "effect-retry/CoolDownRedis"
import { SendGateSuite } from "effect-retry/testing"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redis from "effect/persistence/Redis"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import { validated } from "../../src/redis/internal/coolDown.ts"
import { Throttled } from "../utils/call.ts"
import { FakeCoolDown } from "../utils/fakeCoolDown.ts"
import { sweep, thinned } from "../utils/sweep.ts"

const once = RetryPolicy.fromDelay(() => undefined)

/** A server that refuses until a moment, and says how long that is; when which process sent. */
const server = (untilMillis: number, rttMillis = 10) => {
  const sends: Array<readonly [process: number, at: number]> = []
  const sendOf = (process: number) =>
    Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      sends.push([process, now])
      yield* Effect.sleep(rttMillis)
      if (now < untilMillis) return yield* new Throttled({ retryAfter: untilMillis - now })
    })
  return { sends, sendOf }
}

/** This many processes of a fleet. */
const fleet = (size: number, redis: FakeCoolDown, options: Partial<CoolDownRedis.Options> = {}) =>
  Effect.replicateEffect(CoolDownRedis.make({ name: "orders", ...options }), size).pipe(
    Effect.provideService(Redis.Redis, redis.service)
  )

const through = <A, E>(coolDown: CoolDown.Service, send: Effect.Effect<A, E>) =>
  Effect.forkChild(Effect.exit(withRetry(send, once).pipe(Effect.provideService(CoolDown.CoolDown, coolDown))), {
    startImmediately: true
  })

const phases = (processes: ReadonlyArray<CoolDown.Service>) =>
  Effect.forEach(processes, ({ state }) => Effect.map(state, ({ phase }) => phase))

const logged = () => {
  const lines: Array<string> = []
  return { lines, layer: Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))]) }
}

describe("a fleet", () => {
  it.effect("the hint of one process closes the resource for all; one probes, the others follow when it has succeeded", () =>
    Effect.gen(function*() {
      const { sendOf, sends } = server(5000, 100)
      const redis = new FakeCoolDown()
      const processes = yield* fleet(10, redis)
      yield* through(processes[0]!, sendOf(0))
      yield* TestClock.adjust(300)
      // The others do not know yet: what they send meanwhile is refused, and the next look tells them.
      for (const process of processes) yield* through(process, Effect.void)
      yield* TestClock.adjust(300)
      assert.deepStrictEqual(new Set(yield* phases(processes)), new Set(["closed"]))
      assert.strictEqual(sends.length, 1)
      yield* TestClock.adjust(3400)
      for (const [index, process] of processes.entries()) {
        for (let call = 0; call < 3; call++) yield* through(process, sendOf(index))
      }
      yield* TestClock.adjust(6000)
      const late = sends.slice(1)
      assert.strictEqual(late.length, 30)
      const [, probeAt] = late[0]!
      assert.isAtLeast(probeAt, 5000)
      assert.isAtMost(probeAt, 6000)
      // One send of the whole fleet until the probe is answered.
      assert.isAtLeast(late[1]![1], probeAt + 100)
      assert.strictEqual(redis.closed, undefined)
      assert.deepStrictEqual(new Set(yield* phases(processes)), new Set(["free"]))
    }))

  it.effect("when the one that probes gets a hint again, all are closed again", () =>
    Effect.gen(function*() {
      const { sendOf, sends } = server(3000)
      const redis = new FakeCoolDown()
      const processes = yield* fleet(5, redis, { spread: 0 })
      yield* processes[0]!.close(1000)
      yield* TestClock.adjust(1)
      for (const process of processes.slice(1)) yield* through(process, Effect.void)
      yield* TestClock.adjust(250)
      for (const [index, process] of processes.entries()) yield* through(process, sendOf(index))
      yield* TestClock.adjust(1200)
      assert.strictEqual(sends.length, 1)
      assert.isAtMost(sends[0]![1], 1300)
      yield* TestClock.adjust(5000)
      assert.strictEqual(sends.slice(1).every(([, at]) => at >= 3000), true)
    }))

  it.effect("when the one that probes dies, another one probes after the probe time", () =>
    Effect.gen(function*() {
      const redis = new FakeCoolDown()
      const [first, second] = yield* fleet(2, redis, { spread: 0, probeTime: "2 seconds", maxWait: "10 seconds" })
      yield* first!.close(1000)
      yield* TestClock.adjust(1)
      yield* through(second!, Effect.void)
      yield* TestClock.adjust(999)
      const hangs = yield* through(first!, Effect.never)
      const waits = yield* through(second!, Effect.void)
      yield* TestClock.adjust(1900)
      assert.isUndefined(hangs.pollUnsafe())
      assert.isUndefined(waits.pollUnsafe())
      yield* TestClock.adjust(500)
      assert.isTrue(Exit.isSuccess(waits.pollUnsafe()!))
    }))

  it.effect("while probes hang, the fleet makes one send per probe time; the first answer opens the resource for all", () =>
    Effect.gen(function*() {
      const redis = new FakeCoolDown()
      const processes = yield* fleet(3, redis, { spread: 0, probeTime: "2 seconds", maxWait: "20 seconds" })
      const sends: Array<number> = []
      const send = Effect.gen(function*() {
        const now = yield* Clock.currentTimeMillis
        sends.push(now)
        if (now < 8000) return yield* Effect.never
      })
      yield* processes[0]!.close(1000)
      yield* TestClock.adjust(1)
      for (const process of processes.slice(1)) yield* through(process, Effect.void)
      yield* TestClock.adjust(300)
      for (let half = 0; half < 24; half++) {
        for (const process of processes) yield* through(process, send)
        yield* TestClock.adjust(500)
      }
      const early = sends.filter((at) => at < 8000)
      assert.strictEqual(early.length, 4)
      for (const [index, at] of early.entries()) assert.isAtLeast(at - (early[index - 1] ?? -Infinity), 2000)
      assert.strictEqual(sends.length, 3 * 24)
      assert.deepStrictEqual(yield* phases(processes), ["free", "free", "free"])
      assert.strictEqual(redis.closed, undefined)
    }))

  it.effect("a hint that reached Redis late: a waiting process opens as soon as it is over in Redis too", () =>
    Effect.gen(function*() {
      const redis = new FakeCoolDown()
      const [process] = yield* fleet(1, redis, { spread: 0, maxWait: "10 seconds" })
      redis.onItsWayMillis = 40
      yield* process!.close(1000)
      yield* TestClock.adjust(500)
      redis.onItsWayMillis = 0
      const { sendOf, sends } = server(0, 0)
      yield* through(process!, sendOf(0))
      yield* TestClock.adjust(2000)
      assert.deepStrictEqual(sends, [[0, 1040]])
    }))

  it.effect("asks nothing while it sends nothing, and a few times a second however much it sends", () =>
    Effect.gen(function*() {
      const redis = new FakeCoolDown()
      const [process] = yield* fleet(1, redis)
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(redis.exchanges, 0)
      for (let second = 0; second < 10; second++) {
        for (let call = 0; call < 100; call++) {
          yield* through(process!, Effect.void)
          yield* TestClock.adjust(10)
        }
      }
      assert.isAtLeast(redis.exchanges, 40)
      assert.isAtMost(redis.exchanges, 81)
    }))

  it.effect("a longer hint of another process keeps it closed, a shorter one does not open it", () =>
    Effect.gen(function*() {
      const redis = new FakeCoolDown()
      const [first, second] = yield* fleet(2, redis, { spread: 0 })
      const left = Effect.map(first!.state, ({ remaining }) => Math.round(Duration.toSeconds(remaining)))
      yield* first!.close("10 seconds")
      yield* TestClock.adjust(10)
      yield* second!.close("2 seconds")
      yield* TestClock.adjust(10)
      assert.strictEqual(yield* left, 10)
      yield* second!.close("30 seconds")
      yield* TestClock.adjust(10)
      // It asks when its own hint is over, before it opens.
      yield* TestClock.adjust("9990 millis")
      yield* through(first!, Effect.void)
      yield* TestClock.adjust(10)
      assert.strictEqual(yield* left, 20)
    }))
})

describe("where Redis does not answer", () => {
  for (const mood of ["silent", "refusing", "garbage"] as const) {
    it.effect(`(${mood}) the process follows its own hints, opens on its own, and shares again when Redis is back`, () =>
      Effect.gen(function*() {
        const { layer, lines } = logged()
        const redis = new FakeCoolDown()
        redis.mood = mood
        const [first, second] = yield* Effect.provide(fleet(2, redis, { spread: 0 }), layer)
        yield* first!.close("1 second")
        yield* TestClock.adjust(500)
        assert.deepStrictEqual(yield* phases([first!, second!]), ["closed", "free"])
        const call = yield* through(first!, Effect.void)
        yield* TestClock.adjust(600)
        assert.isTrue(Exit.isSuccess(call.pollUnsafe()!))
        assert.isTrue(lines[0]?.startsWith(`cool-down "orders": Redis does not answer, this process decides alone: `))
        redis.mood = "fine"
        yield* first!.close("50 seconds")
        yield* TestClock.adjust("35 seconds")
        yield* through(second!, Effect.void)
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* phases([first!, second!]), ["closed", "closed"])
        assert.isTrue(lines.some((line) => line.endsWith("Redis answers again, the fleet shares it")))
      }))
  }

  it.effect("a process that waits for another's probe continues alone", () =>
    Effect.gen(function*() {
      const redis = new FakeCoolDown()
      const [first, second] = yield* fleet(2, redis, { spread: 0, maxWait: "10 seconds" })
      yield* first!.close(1000)
      yield* TestClock.adjust(1)
      yield* through(second!, Effect.void)
      yield* TestClock.adjust(999)
      yield* through(first!, Effect.never)
      const waits = yield* through(second!, Effect.void)
      yield* TestClock.adjust(300)
      assert.isUndefined(waits.pollUnsafe())
      redis.mood = "refusing"
      yield* TestClock.adjust(300)
      assert.isTrue(Exit.isSuccess(waits.pollUnsafe()!))
    }))

  it.effect("a process that has opened alone is not closed again by the same hint, and one that first sees it is", () =>
    Effect.gen(function*() {
      const redis = new FakeCoolDown()
      const [first, second] = yield* fleet(2, redis, { spread: 0, fallbackTime: "1 second" })
      yield* first!.close(1000)
      yield* TestClock.adjust(10)
      redis.mood = "refusing"
      const call = yield* through(first!, Effect.void)
      yield* TestClock.adjust(2000)
      assert.isTrue(Exit.isSuccess(call.pollUnsafe()!))
      redis.mood = "fine"
      for (const process of [first!, second!]) yield* through(process, Effect.void)
      yield* TestClock.adjust(2000)
      assert.deepStrictEqual(yield* phases([first!, second!]), ["free", "closed"])
    }))

  it.effect("when Redis has lost what it knew, a process that is closed stays so until the hint is over", () =>
    Effect.gen(function*() {
      const redis = new FakeCoolDown()
      const [first] = yield* fleet(1, redis, { spread: 0 })
      yield* first!.close(2000)
      yield* TestClock.adjust(100)
      redis.closed = undefined
      const call = yield* through(first!, Effect.void)
      yield* TestClock.adjust(1800)
      assert.isUndefined(call.pollUnsafe())
      yield* TestClock.adjust(200)
      assert.isTrue(Exit.isSuccess(call.pollUnsafe()!))
    }))

  it.effect("a layer that connects by itself decides alone until it has", () =>
    Effect.gen(function*() {
      const redis = new FakeCoolDown()
      let reachable = false
      const layer = Layer.effect(
        Redis.Redis,
        Effect.suspend(() => reachable ? Effect.succeed(redis.service) : Effect.fail("ECONNREFUSED"))
      )
      const services = yield* Layer.build(CoolDownRedis.layerConnecting({ name: "orders", spread: 0 }, layer))
      const coolDown = Context.get(services, CoolDown.CoolDown)
      yield* coolDown.close(500)
      const call = yield* through(coolDown, Effect.void)
      yield* TestClock.adjust(500)
      assert.isTrue(Exit.isSuccess(call.pollUnsafe()!))
      reachable = true
      yield* coolDown.close("50 seconds")
      yield* TestClock.adjust("2 seconds")
      assert.isDefined(redis.closed)
    }))
})

it.effect("whatever interrupts them, calls leave nothing behind: it opens", () =>
  Effect.gen(function*() {
    const begin = Effect.gen(function*() {
      const [coolDown] = yield* fleet(1, new FakeCoolDown(), { spread: 0, maxWait: "10 seconds" })
      yield* Effect.orDie(coolDown!.close(50))
      return coolDown!
    })
    let coolDown = yield* begin
    const call = Effect.exit(withRetry(Effect.sleep(20), once))
    const program = Effect.suspend(() =>
      Effect.all([call, call, call], { concurrency: 3 }).pipe(Effect.provideService(CoolDown.CoolDown, coolDown))
    )
    const steps = yield* sweep(program, () =>
      Effect.gen(function*() {
        assert.strictEqual((yield* coolDown.state).waiting, 0)
        const after = yield* through(coolDown, Effect.sleep(20))
        yield* TestClock.adjust(1000)
        assert.isTrue(Exit.isSuccess(after.pollUnsafe()!))
        coolDown = yield* begin
      }))
    assert.isAtLeast(steps, 30)
  }))

it.effect("takes its options from configuration", () =>
  Effect.gen(function*() {
    yield* CoolDown.close("1 minute")
    assert.deepStrictEqual((yield* CoolDown.state).remaining, Duration.seconds(5))
  }).pipe(
    Effect.provide(Layer.provide(
      CoolDownRedis.layerConfig({ name: Config.succeed("orders"), atMost: Config.Duration("AT_MOST") }),
      [
        ConfigProvider.layer(ConfigProvider.fromUnknown({ AT_MOST: "5 seconds" })),
        Layer.succeed(Redis.Redis, new FakeCoolDown().service)
      ]
    ))
  ))

const refused: ReadonlyArray<[field: string, options: Partial<CoolDownRedis.Options>]> = [
  ["name", { name: "" }],
  ["prefix", { prefix: 5 as never }],
  ["timeout", { timeout: 0 }],
  ["lookInterval", { lookInterval: -1 }],
  ["probeTime", { probeTime: Infinity }],
  ["fallbackTime", { fallbackTime: "soon" as never }],
  ["spread", { spread: 2 }],
  ["maxWait", { maxWait: -1 }]
]
for (const [field, options] of refused) {
  it(`refuses an impossible ${field}`, () => {
    try {
      CoolDownRedis.layer({ name: "orders", ...options })
    } catch (error) {
      assert.instanceOf(error, InvalidOption)
      assert.strictEqual(error.constructorName, "CoolDownRedis.make")
      return assert.strictEqual(error.field, field)
    }
    assert.fail("was not refused")
  })
}

it("the key of a name is that of no other name and prefix, in no slot that the name picks", () => {
  const keyOf = (options: { readonly name: string; readonly prefix?: string }) => validated(options).terms.settings.key
  assert.strictEqual(keyOf({ name: "orders-2.eu_west" }), "cool-down:orders-2.eu_west")
  const names = ["b", "a:b", "{a}", "{a}b", "a%003Ab", "a b", "\n", "\0", "\ud800", "é", "x".repeat(1000)]
  const keys = ["", "a:", "{a}"].flatMap((prefix) => names.map((name) => keyOf({ name, prefix })))
  assert.strictEqual(new Set(keys).size, keys.length)
  for (const name of names) assert.match(keyOf({ name }), /^cool-down:[\w.%-]+$/)
})

const gateOf = (closed: Duration.Input, options: Partial<CoolDownRedis.Options>) =>
  Effect.gen(function*() {
    const [coolDown] = yield* fleet(1, new FakeCoolDown(), options)
    yield* Effect.orDie(coolDown!.close(closed))
    return coolDown!.gate
  }).pipe(Effect.provideService(Random.Random, { nextDoubleUnsafe: () => 0.5, nextIntUnsafe: () => 1 }))

describe.each(
  [
    ["free", gateOf(0, {}), { onExceeded: "never" }],
    ["closed", gateOf("1 second", { maxWait: "1 hour", spread: 0 }), {}]
  ] as const
)("the contract of a gate: a shared cool-down that is %s", (_, make, options) => {
  for (const law of SendGateSuite.laws(make, options)) {
    // The first to ask waits for the answer of Redis, and leaves it behind when interrupted.
    if (law.name !== "has taken nothing when a waiter is interrupted, at any step") {
      it.effect(law.name, () => thinned(5)(law.run))
    }
  }
})
