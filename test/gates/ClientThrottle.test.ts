import { assert, describe, it } from "@effect/vitest"
import { awsStandard, InvalidOption, RetryInfo, RetryPolicy, RetryQuota, SendGate, withRetry } from "effect-retry"
import * as ClientThrottle from "effect-retry/ClientThrottle"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import { SendGateSuite } from "effect-retry/testing"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { countedClock } from "../reliability/utils/clocks.ts"
import { budget, firstOf } from "../utils/budget.ts"
import { constantRandom, scripted, Terminal, Throttled, TimedOut, Transient } from "../utils/call.ts"
import { sweep, thinned } from "../utils/sweep.ts"
import * as Vectors from "../vectors/clientThrottle.ts"

/** Seeded random numbers. */
const seeded = (seed: number): Random.Random => {
  let state = seed
  const draw = () => (state = state * 48271 % 2147483647) / 2147483647
  return { nextDoubleUnsafe: draw, nextIntUnsafe: () => Math.floor(draw() * 2 ** 31) }
}

/** A gate that counts the sends. */
class Counting extends SendGate.Service<Counting>()("test/Counting") {}

const once = RetryPolicy.fromDelay(() => undefined)

/** A throttle that is driven by hand: its time is a variable. */
const driven = (options: ClientThrottle.Options, random: Random.Random = constantRandom(0.5)) =>
  Effect.gen(function*() {
    const throttle = yield* ClientThrottle.make(options).pipe(Effect.provideService(Random.Random, random))
    let nowMillis = 0
    /** A send that passes, or `undefined` if it is refused. */
    const enter = (): SendGate.Pass | undefined => {
      let held: SendGate.Pass | undefined
      throttle.gate.enter({
        attempt: 1,
        context: Context.empty(),
        get nowMillis() {
          return nowMillis
        },
        hold: (pass) => {
          held = pass
        }
      })
      return held
    }
    const end = (pass: SendGate.Pass | undefined, tag: SendGate.Outcome["_tag"]) =>
      pass?.settle({
        _tag: tag,
        value: undefined,
        error: undefined,
        info: tag === "Failure" ? RetryInfo.transient : undefined,
        nowMillis
      })
    return {
      enter,
      end,
      pass: (millis: number) => {
        nowMillis += millis
      },
      rejection: Effect.map(throttle.state, ({ rejection }) => rejection)
    }
  })

/** Google, Site Reliability Engineering, chapter 21. */
const published: ClientThrottle.Options = { k: 2, window: "2 minutes", maxRejection: 1, counts: "sent" }

/** A number of requests, all in progress together, some of which are accepted. */
const counted = (requests: number, accepts: number, options: ClientThrottle.Options) =>
  Effect.gen(function*() {
    const { end, enter, rejection } = yield* driven(options, constantRandom(1))
    const passes = Array.from({ length: requests }, enter)
    for (const [place, pass] of passes.entries()) end(pass, place < accepts ? "Success" : "Failure")
    return yield* rejection
  })

describe("the formula", () => {
  for (
    const [requests, accepts, k, rejection] of Vectors.rejection.filter(([requests]) =>
      requests <= budget(120_000, 1000)
    )
  ) {
    for (const counts of ["settled", "sent"] as const) {
      it.effect(`${requests} requests, ${accepts} accepted, K ${k}: ${rejection} are refused, counted when ${counts}`, () =>
        Effect.gen(function*() {
          const options = { ...published, k, counts }
          assert.approximately(yield* counted(requests, accepts, options), rejection, 1e-11)
          assert.approximately(yield* counted(requests, accepts, { k, counts }), Math.min(0.9, rejection), 1e-11)
        }))
    }
  }

  for (const [requests, accepts, rejection] of Vectors.failsafeGo) {
    it.effect(`failsafe-go: ${requests} requests, ${accepts} accepted: ${rejection} are refused`, () =>
      Effect.gen(function*() {
        assert.approximately(yield* counted(requests, accepts, { k: 1 / 0.9, maxRejection: 0.8 }), rejection, 1e-9)
      }))
  }
})

describe("a service that accepts a number of sends, and rejects the rest", () => {
  const offers = firstOf([1, 2, 0.5, 1.1, 1.5, 2.5, 3, 5, 10], 2)
  const perSecond = 100
  const step = 100
  for (const [k, offered, load] of Vectors.steady.filter(([, offered]) => offers.includes(offered))) {
    it.effect(
      `K ${k}: offered ${offered} times its capacity, it sees ${load} times of it, within 3 %`,
      () =>
        Effect.gen(function*() {
          const throttle = yield* driven({ ...published, k }, seeded(7))
          let seen = 0
          // It can use later what it has not used: randomness leaves gaps.
          let room = 0
          const steps = 3 * 120_000 / step
          for (let count = 0; count < steps; count++) {
            throttle.pass(step)
            room = Math.min(room + perSecond * step / 1000, 20 * perSecond)
            for (let request = Math.round(offered * perSecond * step / 1000); request > 0; request--) {
              const pass = throttle.enter()
              if (pass === undefined) continue
              throttle.end(pass, room >= 1 ? "Success" : "Failure")
              if (room >= 1) room--
              if (count >= 2 * steps / 3) seen++
            }
          }
          const capacity = perSecond * 120
          assert.approximately(seen / capacity, load, 0.03 * load)
        })
    )
  }
})

describe("ClientThrottle", () => {
  it.effect("refuses nothing of a burst into an empty window; as published it refuses the second", () =>
    Effect.gen(function*() {
      const burst = yield* driven({}, constantRandom(0))
      const passes = Array.from({ length: 1000 }, burst.enter)
      assert.notInclude(passes, undefined)
      for (const pass of passes) burst.end(pass, "Success")
      assert.strictEqual(yield* burst.rejection, 0)

      const asPublished = yield* driven(published, constantRandom(0))
      assert.isDefined(asPublished.enter())
      assert.isUndefined(asPublished.enter())
    }))

  it.effect("sends at least one in ten when all fail, and recovers in a few windows", () =>
    Effect.gen(function*() {
      const throttle = yield* driven({}, seeded(3))
      const sentOf = (outcome: "Success" | "Failure") => {
        let sent = 0
        for (let request = 0; request < 1000; request++) {
          throttle.pass(10)
          const pass = throttle.enter()
          if (pass !== undefined) sent++
          throttle.end(pass, outcome)
        }
        return sent
      }
      assert.strictEqual(sentOf("Success"), 1000)
      sentOf("Failure")
      assert.approximately(sentOf("Failure"), 100, 30)
      assert.approximately(yield* throttle.rejection, 0.9, 1e-9)
      for (let window = 0; window < 4; window++) sentOf("Success")
      assert.strictEqual(sentOf("Success"), 1000)
    }))

  it.effect("is shut for good as published, if the window holds no success", () =>
    Effect.gen(function*() {
      const throttle = yield* driven({ ...published, window: "10 seconds" }, seeded(3))
      let sent = 0
      for (let request = 0; request < 3000; request++) {
        throttle.pass(10)
        const pass = throttle.enter()
        throttle.end(pass, "Failure")
        if (request >= 1000 && pass !== undefined) sent++
      }
      assert.isAtMost(sent, 10)
    }))

  it.effect("forgets what is older than its window, to a tenth of it", () =>
    Effect.gen(function*() {
      const throttle = yield* driven({ window: 1000 })
      const one = (outcome: "Success" | "Failure") => throttle.end(throttle.enter(), outcome)
      one("Failure")
      assert.strictEqual(yield* throttle.rejection, 0.5)
      throttle.pass(999)
      one("Success")
      throttle.pass(1)
      one("Success")
      assert.strictEqual(yield* throttle.rejection, 0)
      throttle.pass(10_000)
      assert.isDefined(throttle.enter())
    }))

  it.effect("counts timeouts, throttles and retryable failures as rejected, and no others", () =>
    Effect.gen(function*() {
      const throttle = yield* ClientThrottle.ClientThrottle
      const accepts = Effect.map(throttle.state, ({ accepts, requests }) => [requests, accepts])
      const errors: ReadonlyArray<unknown> = [new TimedOut(), new Throttled({}), new Transient()]
      for (const error of errors) yield* Effect.flip(withRetry(Effect.fail(error), once))
      assert.deepStrictEqual(yield* accepts, [3, 0])
      for (const error of [new Terminal(), new Error("unknown")]) {
        yield* Effect.flip(withRetry(Effect.fail(error), once))
      }
      yield* withRetry(Effect.void, once)
      assert.deepStrictEqual(yield* accepts, [6, 3])
      yield* Effect.exit(withRetry(Effect.die("defect"), once))
      assert.deepStrictEqual(yield* accepts, [6, 3])
    }).pipe(
      Effect.provide(ClientThrottle.layer()),
      Effect.provideService(Random.Random, constantRandom(0.99))
    ))

  it.effect("is strained while it refuses sends: then no hedge is made", () =>
    Effect.gen(function*() {
      const throttle = yield* ClientThrottle.ClientThrottle
      const isStrained = (millis: number) => throttle.gate.isStrained!(millis)
      assert.isFalse(isStrained(0))
      yield* Effect.flip(withRetry(Effect.fail(new Transient()), once))
      assert.isTrue(isStrained(0))
      assert.isTrue(isStrained(9999))
      assert.isFalse(isStrained(10_000))
    }).pipe(Effect.provide(ClientThrottle.layer())))

  it.effect("asks isRejection where it is given", () =>
    Effect.gen(function*() {
      yield* Effect.flip(withRetry(Effect.fail("busy"), once))
      yield* Effect.flip(withRetry(Effect.fail(new Transient()), once))
      assert.deepInclude(yield* ClientThrottle.state, { requests: 2, accepts: 1 })
    }).pipe(
      Effect.provide(ClientThrottle.layer({ isRejection: ({ error }) => error === "busy" })),
      Effect.provideService(Random.Random, constantRandom(0.99))
    ))

  const drivers = {
    withRetry: <A, E>(send: Effect.Effect<A, E>) => withRetry(send, awsStandard),
    "Effect.retry": <A, E>(send: Effect.Effect<A, E>) => Effect.retry(send, awsStandard)
  }
  for (const [name, driver] of Object.entries(drivers)) {
    it.effect(`refuses with ClientThrottled, never sent and not retried, under ${name}`, () =>
      Effect.gen(function*() {
        const quota = yield* RetryQuota.RetryQuota
        yield* Effect.flip(withRetry(Effect.fail(new Transient()), once))
        const call = scripted([])
        const refusal: unknown = yield* Effect.flip(driver(call.effect))
        assert.instanceOf(refusal, ClientThrottle.ClientThrottled)
        assert.strictEqual(refusal.rejection, 0.5)
        assert.strictEqual(refusal.message, "the service rejects so many sends that 50 % are not made")
        assert.strictEqual(Option.getOrThrow(RetryInfo.fromError(refusal)).safety, "No")
        assert.strictEqual(call.sends, 0)
        assert.strictEqual(yield* quota.balance, 500)
        assert.deepInclude(yield* ClientThrottle.state, { requests: 2, accepts: 0 })
      }).pipe(
        Effect.provide([RetryQuota.layer(), ClientThrottle.layer()]),
        Effect.provideService(Random.Random, constantRandom(0))
      ))
  }

  for (const counts of ["settled", "sent"] as const) {
    it.effect(`what a later gate refuses is no request, counted when ${counts}`, () =>
      Effect.gen(function*() {
        const holding = yield* Effect.forkChild(withRetry(Effect.sleep(1000), once), { startImmediately: true })
        for (let call = 0; call < 5; call++) {
          const refusal = yield* Effect.flip(withRetry(Effect.void, once))
          assert.instanceOf(refusal, ConcurrencyLimiter.ConcurrencyLimitExceeded)
        }
        yield* TestClock.adjust(1000)
        assert.isDefined(holding.pollUnsafe())
        assert.deepStrictEqual(yield* ClientThrottle.state, { requests: 1, accepts: 1, rejection: 0 })
      }).pipe(
        Effect.provide([
          ClientThrottle.layer({ counts }),
          ConcurrencyLimiter.layer({ rule: ConcurrencyLimiter.fixed(1), onExceeded: "fail" })
        ]),
        Effect.provideService(Random.Random, constantRandom(0.999))
      ))
  }

  it.effect("a request that left the window before it is canceled is not taken off twice", () =>
    Effect.gen(function*() {
      const throttle = yield* driven({ ...published, window: 1000 })
      const early = throttle.enter()
      throttle.pass(2000)
      const late = throttle.enter()
      early?.cancel()
      assert.strictEqual(yield* throttle.rejection, 0.5)
      late?.cancel()
      assert.strictEqual(yield* throttle.rejection, 0)
    }))

  it.effect("reads the clock once per send, and not before it while nothing is rejected", () =>
    Effect.gen(function*() {
      const clock = yield* countedClock
      yield* Effect.void.pipe(withRetry(once), clock.provide)
      assert.strictEqual(clock.readings, 1)
    }).pipe(Effect.provide(ClientThrottle.layer())))

  it.effect("whatever interrupts them, calls that were not made are no requests, and all others are", () =>
    Effect.gen(function*() {
      let throttle = yield* ClientThrottle.make(published)
      const full = ConcurrencyLimiter.layer({ rule: ConcurrencyLimiter.fixed(1) })
      let sent = 0
      const pass: SendGate.Pass = { settle: () => sent++, cancel: () => undefined }
      const counting = SendGate.layer(Counting, { order: 999, enter: (send) => send.hold(pass) })
      const call = Effect.exit(withRetry(Effect.sleep(20), once))
      const program = Effect.suspend(() =>
        Effect.all([call, call, call], { concurrency: 3 }).pipe(
          Effect.provideService(ClientThrottle.ClientThrottle, throttle),
          Effect.provide([full, counting])
        )
      )
      const steps = yield* sweep(program, () =>
        Effect.gen(function*() {
          assert.strictEqual((yield* throttle.state).requests, sent)
          sent = 0
          throttle = yield* ClientThrottle.make(published)
        })).pipe(thinned(5))
      assert.isAtLeast(steps, 30)
    }).pipe(Effect.provideService(Random.Random, constantRandom(0.999))))

  it.effect.prop(
    "law: refuses by the counts of its window alone, never more than maxRejection, nothing while 1 / K is accepted",
    [
      Schema.Number.check(Schema.isBetween({ minimum: 1, maximum: 10 })),
      Schema.Number.check(Schema.isBetween({ minimum: 0, maximum: 1 })),
      Schema.Array(Schema.Tuple([Schema.Boolean, Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3000 }))]))
    ],
    ([k, maxRejection, sends]) =>
      Effect.gen(function*() {
        let random = 0
        const drawn = { nextDoubleUnsafe: () => random, nextIntUnsafe: () => 0 }
        const throttle = yield* driven({ k, maxRejection }, drawn)
        // Computed by hand: what each tenth of the window holds.
        const slices: Array<{ readonly at: number; readonly accepted: boolean }> = []
        let now = 0
        for (const [place, [ok, millis]] of sends.entries()) {
          now += millis
          throttle.pass(millis)
          random = (place * 7 % 10) / 10
          const at = Math.floor(now / 1000)
          const kept = slices.filter((slice) => slice.at > at - 10)
          const accepts = kept.filter(({ accepted }) => accepted).length
          const chance = Math.min(maxRejection, (kept.length - k * accepts) / (kept.length + 1))
          const pass = throttle.enter()
          assert.strictEqual(pass === undefined, random < chance)
          if (accepts * k >= kept.length) assert.isDefined(pass)
          throttle.end(pass, ok ? "Success" : "Failure")
          slices.push({ at, accepted: pass !== undefined && ok })
        }
      })
  )

  it.effect("takes its options from configuration", () =>
    Effect.gen(function*() {
      yield* Effect.flip(withRetry(Effect.fail(new Transient()), once))
      assert.strictEqual((yield* ClientThrottle.state).rejection, 0.25)
    }).pipe(
      Effect.provide(Layer.provide(
        ClientThrottle.layerConfig({ maxRejection: Config.Number("MOST") }),
        ConfigProvider.layer(ConfigProvider.fromUnknown({ MOST: "0.25" }))
      ))
    ))

  const refused: ReadonlyArray<[field: string, options: ClientThrottle.Options]> = [
    ["k", { k: 0.99 }],
    ["k", { k: Infinity }],
    ["k", { k: Number.NaN }],
    ["window", { window: 0 }],
    ["window", { window: "soon" as never }],
    ["maxRejection", { maxRejection: 1.01 }],
    ["maxRejection", { maxRejection: -0.1 }],
    ["counts", { counts: "never" as never }],
    ["isRejection", { isRejection: 5 as never }]
  ]
  for (const [field, options] of refused) {
    it(`refuses an impossible ${field}: ${String(Object.values(options))}`, () => {
      try {
        ClientThrottle.layer(options)
      } catch (error) {
        assert.instanceOf(error, InvalidOption)
        return assert.strictEqual(error.field, field)
      }
      assert.fail("was not refused")
    })
  }
})

const gateOf = (options: ClientThrottle.Options, random: number) =>
  ClientThrottle.make(options).pipe(
    Effect.map(({ gate }) => gate),
    Effect.provideService(Random.Random, constantRandom(random))
  )

const gates = {
  "a throttle": [gateOf({}, 0), { onExceeded: "never" }],
  "a throttle as published, by whose chance nothing is refused": [
    gateOf(published, 0.999),
    { onExceeded: "never" }
  ]
} satisfies Record<
  string,
  readonly [Effect.Effect<SendGate.SendGate<ClientThrottle.ClientThrottled>>, SendGateSuite.Options]
>

describe.each(Object.entries(gates))("the contract of a gate: %s", (_, [make, options]) => {
  for (const law of SendGateSuite.laws(make, options)) it.effect(law.name, () => thinned(5)(law.run))
})
