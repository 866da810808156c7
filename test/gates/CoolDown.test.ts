import { assert, describe, it } from "@effect/vitest"
import { awsStandard2026, Backoff, InvalidOption, RetryInfo, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as CoolDown from "effect-retry/CoolDown"
import { SendGateSuite } from "effect-retry/testing"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import { countedClock } from "../reliability/utils/clocks.ts"
import { constantRandom, invalidOptionOf, Throttled } from "../utils/call.ts"
import { sweep, thinned } from "../utils/sweep.ts"

const once = RetryPolicy.fromDelay(() => undefined)

/** A server that refuses until a given time, and says how long to wait; the times of the sends that reach it. */
const server = (untilMillis: number, rttMillis = 0) => {
  const sends: Array<number> = []
  const send = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    sends.push(now)
    yield* Effect.sleep(rttMillis)
    if (now < untilMillis) return yield* new Throttled({ retryAfter: untilMillis - now })
  })
  return { sends, send }
}

const seeded = (seed: number): Random.Random => {
  let state = seed
  const draw = () => (state = state * 48271 % 2147483647) / 2147483647
  for (let skip = 0; skip < 5; skip++) draw()
  return { nextDoubleUnsafe: draw, nextIntUnsafe: () => Math.floor(draw() * 2 ** 31) }
}

describe("the probe: ten calls in 0.9 s, asked at 0 to wait until 2 s", () => {
  const drivers = {
    withRetry: <E>(send: Effect.Effect<void, E>) => withRetry(send, awsStandard2026),
    "Effect.retry": <E>(send: Effect.Effect<void, E>) => Effect.retry(send, awsStandard2026)
  }
  for (const [name, driver] of Object.entries(drivers)) {
    for (const rttMillis of [0, 5, 50]) {
      for (const seed of [1, 2, 3]) {
        it.effect(`${name}, a server that answers after ${rttMillis} ms, seed ${seed}`, () =>
          Effect.gen(function*() {
            const { send, sends } = server(2000, rttMillis)
            const calls = yield* Effect.forEach(Array.from({ length: 10 }), (_, call) =>
              Effect.forkChild(Effect.delay(driver(send), call * 100), { startImmediately: true }))
            yield* TestClock.adjust(4000)
            for (const call of calls) {
              assert.isTrue(Exit.isSuccess(call.pollUnsafe()!))
            }
            const early = rttMillis === 0 ? 1 : Math.ceil((rttMillis + 1) / 100)
            assert.strictEqual(
              sends.filter((at) =>
                at < 2000
              ).length,
              early
            )
            const late = sends.filter((at) => at >= 2000)
            assert.strictEqual(new Set(late).size, late.length)
            if (rttMillis > 0) {
              const under = (at: number) => late.filter((other) => other <= at && other > at - rttMillis).length
              for (const at of late) assert.isAtMost(under(at), 2 * Math.max(0.5, under(at - rttMillis)))
            }
          }).pipe(
            Effect.provide([RetryQuota.layer(), CoolDown.layer()]),
            Effect.provideService(Random.Random, seeded(seed))
          ))
      }
    }
  }
})

describe("CoolDown", () => {
  it.effect("spreads a hundred callers over at least a tenth of the hint", () =>
    Effect.gen(function*() {
      const { send, sends } = server(2000)
      yield* Effect.forkChild(Effect.exit(withRetry(send, once)), { startImmediately: true })
      for (let call = 0; call < 100; call++) {
        yield* Effect.forkChild(withRetry(send, once), { startImmediately: true })
      }
      yield* TestClock.adjust(5000)
      const late = sends.slice(1)
      assert.strictEqual(late.length, 100)
      assert.isAtLeast(late.at(-1)! - late[0]!, 200)
      assert.isAtLeast(late[0]!, 2000)
      assert.isAtMost(late.at(-1)!, 4000)
    }).pipe(Effect.provide(CoolDown.layer())))

  it.effect("refuses those who would wait too long, and says when to come back", () =>
    Effect.gen(function*() {
      const { send, sends } = server(10_000)
      const error = yield* Effect.flip(withRetry(send, once))
      assert.instanceOf(error, Throttled)
      yield* TestClock.adjust(1000)
      const refusal: unknown = yield* Effect.flip(withRetry(send, once))
      assert.instanceOf(refusal, CoolDown.CoolingDown)
      assert.deepStrictEqual(refusal.retryAfter, Duration.seconds(10))
      assert.strictEqual(refusal.message, "the resource is cooling down: try again in 10s")
      assert.strictEqual(Option.getOrThrow(RetryInfo.fromError(refusal)).safety, "No")
      assert.strictEqual(sends.length, 1)
      assert.deepStrictEqual(yield* CoolDown.state, {
        phase: "closed",
        remaining: Duration.seconds(9),
        waiting: 0
      })
      yield* TestClock.adjust(8000)
      const waits = yield* Effect.forkChild(withRetry(send, once), { startImmediately: true })
      yield* TestClock.adjust(1999)
      assert.isUndefined(waits.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(sends, [0, 11_000])
      assert.strictEqual((yield* CoolDown.state).phase, "free")
    }).pipe(
      Effect.provide(CoolDown.layer()),
      Effect.provideService(Random.Random, constantRandom(0.5))
    ))

  it.effect("lets no send wait with maxWait 0", () =>
    Effect.gen(function*() {
      const { send } = server(100)
      yield* Effect.flip(withRetry(send, once))
      assert.instanceOf(yield* Effect.flip(withRetry(send, once)), CoolDown.CoolingDown)
    }).pipe(Effect.provide(CoolDown.layer({ maxWait: 0 }))))

  it.effect("a later, shorter hint does not open it earlier; a longer one keeps it closed", () =>
    Effect.gen(function*() {
      const left = Effect.map(CoolDown.state, ({ remaining }) => Duration.toMillis(remaining))
      yield* CoolDown.close("10 seconds")
      yield* TestClock.adjust(1000)
      yield* CoolDown.close("2 seconds")
      assert.strictEqual(yield* left, 9000)
      yield* CoolDown.close("20 seconds")
      assert.strictEqual(yield* left, 20_000)
      yield* CoolDown.close("1 day")
      assert.strictEqual(yield* left, 60_000)
      assert.strictEqual((yield* invalidOptionOf(CoolDown.close(-1))).field, "hint")
    }).pipe(Effect.provide(CoolDown.layer())))

  it.effect("opens with one probe; a throttle without a hint goes back to one, a hint closes it again", () =>
    Effect.gen(function*() {
      const answers: Array<Effect.Effect<void, Throttled>> = [
        Effect.fail(new Throttled({})),
        Effect.fail(new Throttled({ retryAfter: 1000 })),
        Effect.void,
        Effect.void,
        Effect.void
      ]
      const sends: Array<number> = []
      const send = Effect.gen(function*() {
        sends.push(yield* Clock.currentTimeMillis)
        yield* Effect.sleep(100)
        yield* answers.shift() ?? Effect.void
      })
      yield* CoolDown.close(1000)
      for (let call = 0; call < 5; call++) {
        yield* Effect.forkChild(Effect.exit(withRetry(send, once)), { startImmediately: true })
      }
      yield* TestClock.adjust(10_000)
      // The first probe is throttled at 1,100, the second is told to wait at 1,200; then one, two, and no more wait.
      assert.deepStrictEqual(sends, [1000, 1100, 2200, 2300, 2301])
    }).pipe(
      Effect.provide(CoolDown.layer({ spread: 0 })),
      Effect.provideService(Random.Random, constantRandom(0))
    ))

  it.effect("a hint of zero means nothing: the next in line follows the probe", () =>
    Effect.gen(function*() {
      const sends: Array<number> = []
      const send = Effect.gen(function*() {
        sends.push(yield* Clock.currentTimeMillis)
        yield* Effect.sleep(100)
        if (sends.length === 1) return yield* new Throttled({ retryAfter: 0 })
      })
      yield* CoolDown.close(1000)
      for (let call = 0; call < 2; call++) {
        yield* Effect.forkChild(Effect.exit(withRetry(send, once)), { startImmediately: true })
      }
      yield* TestClock.adjust(10_000)
      assert.deepStrictEqual(sends, [1000, 1100])
    }).pipe(
      Effect.provide(CoolDown.layer({ spread: 0 })),
      Effect.provideService(Random.Random, constantRandom(0))
    ))

  it.effect("reads no clock while it is free", () =>
    Effect.gen(function*() {
      const clock = yield* countedClock
      yield* Effect.void.pipe(withRetry(once), clock.provide)
      assert.strictEqual(clock.readings, 0)
    }).pipe(Effect.provide(CoolDown.layer())))

  it.effect("a retry waits no longer than its deadline", () =>
    Effect.gen(function*() {
      const { send, sends } = server(1500)
      const policy = Backoff.fixed(10).pipe(RetryPolicy.deadline(1000))
      const fiber = yield* Effect.forkChild(Effect.flip(withRetry(send, policy)), { startImmediately: true })
      yield* TestClock.adjust(1000)
      assert.instanceOf(yield* Fiber.join(fiber), Throttled)
      assert.strictEqual(sends.length, 1)
    }).pipe(Effect.provide(CoolDown.layer())))

  it.effect("whatever interrupts them, calls leave nothing behind: it opens, one after the other", () =>
    Effect.gen(function*() {
      const made = Effect.tap(CoolDown.make({ spread: 0 }), ({ close }) => Effect.orDie(close(50)))
      let coolDown = yield* made
      const call = Effect.exit(withRetry(Effect.sleep(20), once))
      const program = Effect.suspend(() =>
        Effect.all([call, call, call], { concurrency: 3 }).pipe(Effect.provideService(CoolDown.CoolDown, coolDown))
      )
      const steps = yield* sweep(program, () =>
        Effect.gen(function*() {
          assert.strictEqual((yield* coolDown.state).waiting, 0)
          yield* TestClock.adjust(100)
          const after = yield* Effect.forkChild(Effect.provideService(call, CoolDown.CoolDown, coolDown), {
            startImmediately: true
          })
          yield* TestClock.adjust(20)
          assert.isTrue(Exit.isSuccess(after.pollUnsafe()!))
          coolDown = yield* made
        }))
      assert.isAtLeast(steps, 30)
    }))

  it.effect("takes its options from configuration", () =>
    Effect.gen(function*() {
      yield* CoolDown.close("1 minute")
      assert.deepStrictEqual((yield* CoolDown.state).remaining, Duration.seconds(5))
    }).pipe(
      Effect.provide(Layer.provide(
        CoolDown.layerConfig({ atMost: Config.Duration("AT_MOST") }),
        ConfigProvider.layer(ConfigProvider.fromUnknown({ AT_MOST: "5 seconds" }))
      ))
    ))

  const refused: ReadonlyArray<[field: string, options: CoolDown.Options]> = [
    ["atMost", { atMost: 0 }],
    ["spread", { spread: 1.1 }],
    ["maxWait", { maxWait: -1 }],
    ["maxWaiters", { maxWaiters: 0.5 }],
    ["probeTime", { probeTime: 0 }],
    ["hint", { hint: 5 as never }]
  ]
  for (const [field, options] of refused) {
    it(`refuses an impossible ${field}`, () => {
      try {
        CoolDown.layer(options)
      } catch (error) {
        assert.instanceOf(error, InvalidOption)
        return assert.strictEqual(error.field, field)
      }
      assert.fail("was not refused")
    })
  }
})

const gateOf = (options: CoolDown.Options, closed: Duration.Input) =>
  Effect.gen(function*() {
    const { close, gate } = yield* CoolDown.make(options)
    yield* Effect.orDie(close(closed))
    return gate
  })

const gates = {
  "a cool-down that is free": [gateOf({}, 0), { onExceeded: "never" }],
  "a cool-down that is closed": [gateOf({ maxWait: "1 hour", spread: 0 }, "1 second"), {}],
  "a cool-down that lets nobody wait": [gateOf({ maxWait: 0 }, "1 minute"), { onExceeded: "refuses", reopens: false }]
} satisfies Record<string, readonly [Effect.Effect<any>, SendGateSuite.Options]>

describe.each(Object.entries(gates))("the contract of a gate: %s", (_, [make, options]) => {
  for (const law of SendGateSuite.laws(make, options)) it.effect(law.name, () => thinned(5)(law.run))
})
