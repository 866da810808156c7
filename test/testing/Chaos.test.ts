import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import { Backoff, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as Chaos from "effect-retry/Chaos"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as Kit from "effect-retry/testing"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as TestClock from "effect/testing/TestClock"
import * as fs from "node:fs"
import * as Example from "../../examples/chaos.ts"
import { refuses } from "../utils/refuses.ts"
import { sweep } from "../utils/sweep.ts"

const chaos = (options: Chaos.Options) => Layer.provide(Chaos.layer(options), Chaos.armed)

const send = Effect.succeed("answer")

/** The fate of each send in turn, as one letter. */
const played = (count: number, name = "orders") =>
  Effect.map(
    Effect.replicateEffect(Effect.exit(Effect.timeoutOption(Chaos.around(send, name), 0)), count),
    (exits) => exits.map((exit) => Exit.isFailure(exit) ? "f" : exit.value._tag === "None" ? "d" : ".").join("")
  )

describe("Chaos", () => {
  it.effect("does nothing where it is not provided", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* Chaos.around(send, "orders"), "answer")
      const own = Effect.succeed("own")
      assert.strictEqual(yield* Chaos.around(own, "orders"), "own")
    }))

  it("needs to be armed: the type of the layer says so, and it is not built without", () => {
    const layer: Layer.Layer<Chaos.Chaos, never, Chaos.Armed> = Chaos.layer({ outages: [] })
    const unarmed = Layer.provide(layer, Layer.effectContext(Effect.context<never>() as Effect.Effect<never>))
    assert.isTrue(Exit.isFailure(Effect.runSyncExit(Effect.scoped(Layer.build(unarmed)))))
  })

  it.effect("logs at Warning that it is armed", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const logger = Logger.layer([Logger.make(({ logLevel, message }) => void lines.push(`${logLevel} ${message}`))])
      yield* Effect.scoped(Layer.build(Layer.provide(chaos({ outages: [{ kind: "fail" }], seed: 7 }), logger)))
      assert.deepStrictEqual(lines, ["Warn chaos is armed: 1 outages, seed 7"])
    }))

  it.effect("hits the share that it says, within three standard deviations, by 20 seeds", () =>
    Effect.gen(function*() {
      const sends = 2000
      for (let seed = 0; seed < 20; seed++) {
        const fates = yield* Effect.provide(
          played(sends),
          Layer.fresh(chaos({ seed, outages: [{ kind: "fail", share: 0.1 }] }))
        )
        const failed = fates.split("f").length - 1
        assert.isAtMost(Math.abs(failed - 0.1 * sends), 3.5 * Math.sqrt(sends * 0.1 * 0.9))
      }
    }))

  it.effect("is repeated by its seed, send by send, whatever else is sent and whenever", () =>
    Effect.gen(function*() {
      const outages: ReadonlyArray<Chaos.Outage> = [{ kind: "fail", share: 0.3 }, { kind: "drop", share: 0.3 }]
      const layer = Layer.fresh(chaos({ seed: "a seed", outages }))
      const run = Effect.provide(played(200), layer)
      const first = yield* run
      assert.include(first, "f")
      assert.include(first, "d")
      assert.strictEqual(yield* run, first)
      const beside = Effect.gen(function*() {
        const halves: Array<string> = []
        for (let half = 0; half < 2; half++) {
          yield* TestClock.adjust("1 minute")
          yield* played(17, "others")
          halves.push(yield* played(100))
        }
        return halves.join("")
      })
      assert.strictEqual(yield* Effect.provide(beside, layer), first)
      const other = yield* Effect.provide(played(200), Layer.fresh(chaos({ seed: "another", outages })))
      assert.notStrictEqual(other, first)
    }))

  it.effect("keeps to its times: a send is held until the end, then failed or slow", () =>
    Effect.gen(function*() {
      const times: Array<number> = []
      const timed = Effect.andThen(
        Effect.sleep(100),
        Effect.map(Clock.currentTimeMillis, (now) => void times.push(now))
      )
      for (const at of [0, 1000, 3000, 5000, 7000]) {
        yield* Effect.forkChild(
          Effect.delay(Effect.exit(Chaos.around(timed, "orders")), at),
          { startImmediately: true }
        )
      }
      yield* TestClock.adjust(10_000)
      // Free; held until 2 s; failed; three times as long plus 50 ms, which includes the work itself; free.
      assert.deepStrictEqual(times, [100, 2100, 5100, 7100])
      assert.deepStrictEqual((yield* Chaos.counts).get("orders"), {
        sends: 5,
        failed: 1,
        dropped: 0,
        held: 1,
        slowed: 1
      })
    }).pipe(Effect.provide(chaos({
      outages: [
        { kind: "hold", from: "1 second", to: "2 seconds" },
        { kind: "fail", from: "3 seconds", to: "4 seconds" },
        { kind: "slow", from: "5 seconds", to: "6 seconds", factor: 3, by: 50 }
      ]
    }))))

  it.effect("a slow send takes its factor, and more on top", () =>
    Effect.gen(function*() {
      const fiber = yield* Effect.forkChild(Chaos.around(Effect.sleep(100), "orders"), { startImmediately: true })
      yield* TestClock.adjust(349)
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.isTrue(Exit.isSuccess(fiber.pollUnsafe()!))
    }).pipe(Effect.provide(chaos({ outages: [{ kind: "slow", factor: 3, by: 50 }] }))))

  it.effect("hits only those that it names", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* played(3, "users"), "...")
      assert.strictEqual(yield* played(3), "fff")
      assert.deepStrictEqual([...(yield* Chaos.counts).keys()], ["orders"])
    }).pipe(Effect.provide(chaos({ outages: [{ kind: "fail" }], only: ["orders"] }))))

  it.effect("keeps a limited number of names apart", () =>
    Effect.gen(function*() {
      for (let name = 0; name < 1100; name++) yield* played(1, `name ${name}`)
      const counts = yield* Chaos.counts
      assert.strictEqual(counts.size, 1001)
      assert.strictEqual(counts.get("")?.sends, 100)
    }).pipe(Effect.provide(chaos({ outages: [] }))))

  it.effect("takes the outages of a scenario of the simulator as they are", () =>
    Effect.gen(function*() {
      const json = fs.readFileSync(new URL("../../lab/scenarios/outage.json", import.meta.url), "utf8")
      const { services } = yield* Simulator.decodeJson(json)
      const outages = services.flatMap((service) => service.outages)
      assert.isAbove(outages.length, 0)
      yield* Effect.scoped(Layer.build(chaos({ outages })))
    }))
})

describe("an injected failure is a failure of the send itself", () => {
  const policy = Backoff.fixed(100).pipe(
    RetryPolicy.maxAttempts(3),
    RetryPolicy.whileRetryable,
    RetryPolicy.quotaGated({ cost: 5 })
  )
  const drivers = {
    withRetry: <A, E>(self: Effect.Effect<A, E>) => withRetry(self, policy),
    "Effect.retry": <A, E>(self: Effect.Effect<A, E>) => Effect.retry(self, policy)
  }
  for (const [name, driver] of Object.entries(drivers)) {
    it.effect(`${name}: it is retried and paid for, and never sent`, () =>
      Effect.gen(function*() {
        let sends = 0
        const call = Effect.sync(() => sends++)
        const fiber = yield* Effect.forkChild(Effect.flip(driver(Chaos.around(call, "orders"))), {
          startImmediately: true
        })
        yield* TestClock.adjust(1000)
        const failure = yield* Fiber.join(fiber)
        assert.instanceOf(failure, Chaos.ChaosFailure)
        assert.strictEqual(failure.message, `send 3 of "orders" fails on purpose`)
        assert.strictEqual(sends, 0)
        assert.strictEqual(yield* RetryQuota.balance, 490)
      }).pipe(Effect.provide([RetryQuota.layer({ capacity: 500 }), chaos({ outages: [{ kind: "fail" }] })])))
  }

  it.effect("a send that is dropped times out, and cuts a limit", () =>
    Effect.gen(function*() {
      const call = Chaos.around(send, "orders").pipe(Effect.timeout(100), withRetry(policy))
      const fiber = yield* Effect.forkChild(Effect.exit(call), { startImmediately: true })
      yield* TestClock.adjust(1000)
      assert.isTrue(Exit.isFailure(yield* Fiber.join(fiber)))
      assert.isBelow((yield* ConcurrencyLimiter.state).limit, 2)
    }).pipe(
      Effect.provide([RetryQuota.layer(), ConcurrencyLimiter.layer(), chaos({ outages: [{ kind: "drop" }] })])
    ))

  it.effect("is what the caller makes of it: another error, or an answer", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Chaos.around(send, "orders", () => Effect.fail("refused" as const)))
      assert.strictEqual(error, "refused")
      assert.strictEqual(yield* Chaos.around(send, "orders", ({ send }) => Effect.succeed(500 + send)), 502)
    }).pipe(Effect.provide(chaos({ outages: [{ kind: "fail" }] }))))
})

it.effect("whatever interrupts it, a send that is held, slow or dropped leaves nothing behind", () =>
  Effect.gen(function*() {
    for (const outage of [{ kind: "hold", to: 50 }, { kind: "slow", by: 50 }, { kind: "drop" }] as const) {
      const program = Chaos.around(Effect.sleep(10), "orders").pipe(
        Effect.timeoutOption(200),
        Effect.provide(Layer.fresh(chaos({ outages: [outage] })))
      )
      assert.isAtLeast(yield* sweep(program, () => Effect.void), 5)
    }
  }))

const refused: ReadonlyArray<[field: string, options: Chaos.Options]> = [
  ["outages", { outages: "all" as never }],
  ["outages[0]", { outages: [null as never] }],
  ["outages[0].kind", { outages: [{ kind: "vanish" as never }] }],
  ["outages[1].share", { outages: [{ kind: "fail" }, { kind: "fail", share: 1.1 }] }],
  ["outages[0].share", { outages: [{ kind: "drop", share: Number.NaN }] }],
  ["outages[0].from", { outages: [{ kind: "fail", from: -1 }] }],
  ["outages[0].to", { outages: [{ kind: "fail", from: 5, to: 5 }] }],
  ["outages[0].to", { outages: [{ kind: "hold" } as never] }],
  ["outages[0].factor", { outages: [{ kind: "slow", factor: 0.5 }] }],
  ["outages[0].from", { outages: [{ kind: "fail", from: "soon" }] }],
  ["outages[0].by", { outages: [{ kind: "slow", by: Infinity }] }],
  ["outages[0].factor", { outages: [{ kind: "slow" }] }],
  ["option", { outages: [{ kind: "fail", factor: 3 } as never] }],
  ["option", { outages: [{ kind: "drop", by: 3 } as never] }],
  ["option", { outages: [{ kind: "hold", to: 5, share: 0.5 } as never] }],
  ["seed", { outages: [], seed: Number.NaN }],
  ["only", { outages: [], only: "orders" as never }]
]
for (const [field, options] of refused) {
  it(`refuses an impossible ${field}: ${JSON.stringify(options)}`, () => {
    refuses(() => Chaos.layer(options), { constructorName: "Chaos.layer", field })
  })
}

describe("examples/chaos", () => {
  it.effect("a rehearsal gives the same result each time", () =>
    Effect.gen(function*() {
      const run = Kit.runToEnd(Example.rehearsal(Effect.as(Effect.sleep(20), "ordered")))
      const first = yield* run
      assert.isAbove(first.done, 900)
      assert.isAbove(first.sends.failed, 80)
      assert.isAbove(first.sends.slowed, 10)
    }).pipe(Effect.provide(Kit.seededRandom(1))))
})
