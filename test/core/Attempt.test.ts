import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import {
  attempt,
  awsAdaptive,
  awsStandard,
  awsStandard2026,
  Backoff,
  RetryDecision,
  RetryObserver,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import type { AdaptiveRateLimiter } from "effect-retry"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { constantRandom, scripted, Terminal, Throttled, TimedOut, Transient, Unsure } from "../utils/call.ts"
import { drivers } from "../utils/drivers.ts"
import { inTime } from "../utils/inTime.ts"
import { sweep } from "../utils/sweep.ts"
import { unmarked } from "../utils/unmarked.ts"

unmarked()

type Standard = typeof awsStandard

describe.each(drivers)("$form", ({ run }) => {
  it.effect("gives back the tokens of the retry that succeeds, and spends those of the one that fails", () =>
    Effect.gen(function*() {
      const call = scripted([new Transient(), new Transient()])
      const exit = yield* inTime(run(call.effect, awsStandard))
      assert.deepStrictEqual(exit, Exit.succeed("ok"))
      assert.strictEqual(call.sends, 3)
      assert.strictEqual(yield* RetryQuota.balance, 495)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("adds one token when the call needs no retry", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* run(Effect.succeed(1), awsStandard), 1)
      assert.strictEqual(yield* RetryQuota.balance, 11)
    }).pipe(Effect.provide(RetryQuota.layer({ initial: 10 }))))

  it.effect("charges a timeout 10 and a throttle 5", () =>
    Effect.gen(function*() {
      yield* inTime(run(scripted([new TimedOut(), new Terminal()]).effect, awsStandard))
      assert.strictEqual(yield* RetryQuota.balance, 490)
      yield* inTime(run(scripted([new Throttled({}), new Terminal()]).effect, awsStandard))
      assert.strictEqual(yield* RetryQuota.balance, 485)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("charges an error that the classifier does not know like any other", () =>
    Effect.gen(function*() {
      const policy = Backoff.fixed(1).pipe(
        RetryPolicy.maxAttempts(2),
        RetryPolicy.quotaGated({ cost: 3, timeoutCost: 20, throttlingCost: 10 })
      )
      yield* inTime(run(Effect.fail({ unknown: true }), policy))
      assert.strictEqual(yield* RetryQuota.balance, 497)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("fails with the last error itself", () =>
    Effect.gen(function*() {
      const errors = [new Transient(), new Transient(), new Transient()]
      const exit = yield* inTime(run(scripted(errors).effect, awsStandard))
      assert.isTrue(Exit.isFailure(exit))
      assert.strictEqual(Exit.isFailure(exit) && Cause.squash(exit.cause), errors[2])
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("decides on the first of several simultaneous failures, and fails with that alone", () =>
    Effect.gen(function*() {
      const [first, second] = [new Transient(), new Terminal()]
      const both = Effect.failCause(Cause.combine(Cause.fail(first), Cause.fail(second)))
      const exit = yield* inTime(run(both, awsStandard))
      assert.strictEqual(yield* RetryQuota.balance, 490)
      assert.deepStrictEqual(exit, yield* inTime(Effect.retry(both, { times: 2 })))
      assert.strictEqual(Exit.isFailure(exit) && exit.cause.reasons.length, 1)
      assert.strictEqual(Exit.isFailure(exit) && Cause.squash(exit.cause), first)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("retries no failure that a defect or an interruption came with, unless Effect.retry does", () =>
    Effect.gen(function*() {
      for (const other of [Cause.die("defect"), Cause.interrupt(1)]) {
        for (const cause of [Cause.combine(Cause.fail(new Transient()), other), other]) {
          let [ours, theirs] = [0, 0]
          const exit = yield* inTime(run(Effect.suspend(() => (ours++, Effect.failCause(cause))), awsStandard))
          const plain = Effect.retry(Effect.suspend(() => (theirs++, Effect.failCause(cause))), { times: 2 })
          assert.deepStrictEqual(exit, yield* inTime(plain))
          assert.strictEqual(ours, theirs)
        }
      }
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("is exactly 35 retries in an outage at cost 14, then none", () =>
    Effect.gen(function*() {
      let sends = 0
      const call = Effect.suspend(() => {
        sends++
        return Effect.fail(new Transient())
      })
      yield* inTime(
        Effect.forEach(Array.from({ length: 100 }), () => Effect.exit(run(call, awsStandard2026))),
        "1 hour"
      )
      assert.strictEqual(sends, 135)
      assert.strictEqual(yield* RetryQuota.balance, 10)
    }).pipe(Effect.provide(RetryQuota.layer())))

  for (const [name, effect] of [["defect", Effect.die("boom")], ["interruption", Effect.interrupt]] as const) {
    it.effect(`never retries a ${name}, and books it neither as success nor as failure`, () =>
      Effect.gen(function*() {
        let sends = 0
        const call = Effect.suspend(() => {
          sends++
          return effect
        })
        const exit = yield* inTime(run(call, awsStandard))
        assert.isTrue(Exit.isFailure(exit))
        assert.strictEqual(sends, 1)
        assert.strictEqual(yield* RetryQuota.balance, 100)
      }).pipe(Effect.provide(RetryQuota.layer({ initial: 100 }))))
  }

  describe("a first attempt that costs", () => {
    const quota = (options: RetryQuota.Options) =>
      Effect.provide(RetryQuota.layer({ capacity: 10, firstAttemptCost: 4, ...options }))

    it.effect("pays, and has the success increment back", () =>
      Effect.gen(function*() {
        const during = yield* run(RetryQuota.balance, awsStandard)
        assert.deepStrictEqual([during, yield* RetryQuota.balance], [6, 7])
      }).pipe(quota({})))

    it.effect("is refused with a typed error, unsent and unretried, when the quota is short", () =>
      Effect.gen(function*() {
        let sends = 0
        const exit = yield* inTime(run(Effect.sync(() => ++sends), awsStandard))
        const error = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
        assert.instanceOf(error, RetryQuota.QuotaExhausted)
        assert.deepStrictEqual([error.cost, error.balance, sends], [4, 3, 0])
        assert.strictEqual(yield* RetryQuota.balance, 3)
      }).pipe(quota({ initial: 3 })))

    it.effect("waits for a quota that refills", () =>
      Effect.gen(function*() {
        const fiber = yield* Effect.forkChild(run(Clock.currentTimeMillis, awsStandard))
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(yield* Fiber.join(fiber), 2000)
      }).pipe(quota({ initial: 0, refillPerSecond: 2, onExceeded: "wait" })))

    it.effect("interrupted at any step, has paid only if it was sent", () =>
      Effect.gen(function*() {
        const service = yield* RetryQuota.make({ capacity: 10, firstAttemptCost: 4 })
        let sent = 0
        const program = run(
          Effect.suspend(() => {
            sent++
            return Effect.never
          }),
          awsStandard
        )
        const seen = new Set<number>()
        yield* sweep(
          Effect.timeout(Effect.provideService(program, RetryQuota.RetryQuota, service), "1 second"),
          () =>
            Effect.gen(function*() {
              const balance = yield* service.balance
              assert.isTrue(balance === 10 ? sent === 0 : balance === 6)
              seen.add(balance)
              yield* Effect.orDie(service.deposit(10))
              sent = 0
            })
        )
        assert.deepStrictEqual([...seen].sort(), [10, 6])
      }))
  })

  describe("interruption", () => {
    const failing = Effect.fail(new Transient())

    for (
      const [name, interrupted] of [
        ["Fiber.interrupt", (self: Effect.Effect<never, Transient, RetryQuota.RetryQuota>) =>
          Effect.gen(function*() {
            const fiber = yield* Effect.forkChild(self)
            yield* TestClock.adjust("500 millis")
            yield* Fiber.interrupt(fiber)
          })],
        [
          "Effect.timeout",
          (self: Effect.Effect<never, Transient, RetryQuota.RetryQuota>) => inTime(Effect.timeout(self, "500 millis"))
        ],
        [
          "Effect.raceFirst",
          (self: Effect.Effect<never, Transient, RetryQuota.RetryQuota>) =>
            inTime(Effect.raceFirst(self, Effect.sleep("500 millis")))
        ]
      ] as const
    ) {
      it.effect(`by ${name} in the backoff gives the tokens back`, () =>
        Effect.gen(function*() {
          yield* interrupted(
            run(failing, awsStandard).pipe(Effect.provideService(Random.Random, constantRandom(0.999)))
          )
          assert.strictEqual(yield* RetryQuota.balance, 500)
        }).pipe(Effect.provide(RetryQuota.layer())))
    }

    it.effect("of 60 calls in the backoff leaves the quota full", () =>
      Effect.gen(function*() {
        const fibers = yield* Effect.forEach(
          Array.from({ length: 60 }),
          () =>
            Effect.forkChild(run(failing, awsStandard).pipe(Effect.provideService(Random.Random, constantRandom(0.9))))
        )
        yield* TestClock.adjust("8 millis")
        assert.strictEqual(yield* RetryQuota.balance, 200)
        yield* Fiber.interruptAll(fibers)
        assert.strictEqual(yield* RetryQuota.balance, 500)
      }).pipe(Effect.provide(RetryQuota.layer())))

    it.effect("of a retry that was sent leaves its tokens spent", () =>
      Effect.gen(function*() {
        let sends = 0
        const call = Effect.suspend(() => sends++ === 0 ? Effect.fail(new Transient()) : Effect.never)
        const fiber = yield* Effect.forkChild(run(call, awsStandard))
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(sends, 2)
        yield* Fiber.interrupt(fiber)
        assert.strictEqual(yield* RetryQuota.balance, 495)
      }).pipe(Effect.provide(RetryQuota.layer())))

    it.effect("at any step loses no token: a retry that never left costs nothing", () =>
      Effect.gen(function*() {
        const quota = yield* RetryQuota.make()
        let sends = 0
        let handedOver = 0
        const observer: RetryObserver.RetryObserver = { onRetry: () => void handedOver++ }
        const call = Effect.suspend(() => {
          sends++
          return Effect.fail(new Transient())
        })
        const program = run(call, awsStandard).pipe(
          Effect.provideService(RetryQuota.RetryQuota, quota),
          Effect.provideService(RetryObserver.CurrentObserver, observer),
          Effect.provideService(Random.Random, constantRandom(0.5))
        )
        const lost: Array<number> = []
        const steps = yield* sweep(program, (step) =>
          Effect.gen(function*() {
            const spent = 500 - (yield* quota.balance)
            const retried = Math.max(0, sends - 1)
            assert.isAtMost(retried, handedOver)
            // A retry takes its first step one scheduler step after it is handed over: until then it counts as sent.
            if (spent !== retried * 5) lost.push(step)
            assert.isTrue(spent === retried * 5 || spent === (retried + 1) * 5)
            yield* Effect.orDie(quota.deposit(500))
            sends = handedOver = 0
          }))
        assert.isAbove(steps, 20)
        assert.isAtMost(lost.length, 2)
      }))
  })

  it.effect("gives the tokens back to a send under a timeout of its own, in a child fiber", () =>
    Effect.gen(function*() {
      let sends = 0
      const call = Effect.suspend(() => sends++ < 1 ? Effect.never : Effect.succeed("ok"))
      const limited = Effect.timeout(call, "1 second")
      const exit = yield* inTime(run(limited, awsStandard))
      assert.deepStrictEqual(exit, Exit.succeed("ok"))
      assert.strictEqual(yield* RetryQuota.balance, 500)
    }).pipe(Effect.provide(RetryQuota.layer())))

  describe("nested", () => {
    it.effect("gives the first attempt of an inner call its own metadata", () =>
      Effect.gen(function*() {
        const seen: Array<number> = []
        let failures = 0
        const inner = Effect.flatMap(Schedule.CurrentMetadata, (metadata) => {
          seen.push(metadata.attempt)
          return failures++ % 2 === 0 ? Effect.fail(new Transient()) : Effect.succeed(failures)
        })
        let outerFailed = false
        const outer = Effect.flatMap(run(inner, awsStandard), () => {
          if (outerFailed) return Effect.succeed("ok")
          outerFailed = true
          return Effect.fail(new Transient())
        }).pipe(Effect.provideService(RetryQuota.RetryQuota, yield* RetryQuota.make()))
        const exit = yield* inTime(run(outer, awsStandard))
        assert.deepStrictEqual(exit, Exit.succeed("ok"))
        assert.deepStrictEqual(seen, [0, 1, 0, 1])
      }).pipe(Effect.provide(RetryQuota.layer())))

    it.effect("leaves the tokens of the outer retry taken while it runs", () =>
      Effect.gen(function*() {
        const balances: Array<number> = []
        const inner = run(
          Effect.flatMap(RetryQuota.balance, (now) => Effect.sync(() => balances.push(now))),
          awsStandard
        )
        const outer = Effect.andThen(inner, Effect.fail(new Transient()))
        yield* inTime(run(outer, awsStandard))
        assert.deepStrictEqual(balances, [90, 86, 82])
      }).pipe(Effect.provide(RetryQuota.layer({ initial: 90 }))))

    it.effect("never settles the tokens of the outer retry", () =>
      Effect.gen(function*() {
        let sends = 0
        const outer = Effect.suspend(() => {
          sends++
          return Effect.andThen(run(Effect.succeed(1), awsStandard), Effect.fail(new Transient()))
        })
        yield* inTime(run(outer, awsStandard))
        assert.strictEqual(sends, 3)
        assert.strictEqual(yield* RetryQuota.balance, 90 + 1 + 1 + 1 - 10)
      }).pipe(Effect.provide(RetryQuota.layer({ initial: 90 }))))
  })
})

it.effect("an attempt that nothing retries is the effect itself, paid for as a first attempt", () =>
  Effect.gen(function*() {
    assert.strictEqual(yield* attempt(Effect.succeed(1)), 1)
    const error = new Transient()
    assert.strictEqual(yield* Effect.flip(attempt(Effect.fail(error))), error)
    yield* RetryQuota.RetryQuota.use((quota) => quota.reserve(5))
    yield* attempt(Effect.void)
    assert.strictEqual(yield* RetryQuota.balance, 496)
  }).pipe(Effect.provide(RetryQuota.layer())))

describe("a policy without a quota", () => {
  const policy = Backoff.fixed("1 second").pipe(RetryPolicy.whileRetryable)
  const forms = [
    ["Effect.retry", (self: Effect.Effect<number, Terminal>) => Effect.retry(self, policy)],
    ["withRetry", (self: Effect.Effect<number, Terminal>) => withRetry(self, policy)]
  ] as const
  for (const [form, run] of forms) {
    it(`needs none, and a call that is not retried ends in the step in which it fails: ${form}`, () => {
      const error = new Terminal()
      assert.deepStrictEqual(Effect.runFork(run(Effect.succeed(1))).pollUnsafe(), Exit.succeed(1))
      assert.deepStrictEqual(Effect.runFork(run(Effect.fail(error))).pollUnsafe(), Exit.fail(error))
    })
  }
})

describe("withRetry", () => {
  const outcome = Schema.Literals(["transient", "throttled", "timeout", "unsure", "terminal", "defect", "ok"])

  const errorOf = {
    transient: () => Effect.fail(new Transient()),
    throttled: () => Effect.fail(new Throttled({ retryAfter: 1234 })),
    timeout: () => Effect.fail(new TimedOut()),
    unsure: () => Effect.fail(new Unsure()),
    terminal: () => Effect.fail(new Terminal()),
    defect: () => Effect.die("boom"),
    ok: () => Effect.succeed("ok")
  }

  const policies: ReadonlyArray<Standard> = [
    awsStandard,
    awsStandard2026,
    awsStandard2026.pipe(RetryPolicy.deadline("700 millis")),
    Backoff.decorrelated("10 millis", { cap: "1 second" }).pipe(
      RetryPolicy.maxAttempts(6),
      RetryPolicy.whileMaybeRetryable,
      RetryPolicy.quotaGated({ cost: 3 })
    ),
    RetryPolicy.fromSchedule(Schedule.upTo(Schedule.exponential("20 millis"), { times: 3 })).pipe(
      RetryPolicy.quotaGated({ cost: 1, longPolling: true })
    )
  ]

  /** To the millionth: the clock advances with every run, and the rounding error of a refill grows with it. */
  const micro = (tokens: number) => Math.round(tokens * 1e6) / 1e6

  /** All that a run shows: exit, sends and their times, metadata, stops, balances. */
  const observe = (
    run: (typeof drivers)[number]["run"],
    policy: Standard,
    script: ReadonlyArray<keyof typeof errorOf>,
    options: { readonly tokens: number; readonly seed: number; readonly wait: boolean }
  ) =>
    Effect.gen(function*() {
      const quota = yield* RetryQuota.make({
        capacity: 30,
        initial: options.tokens,
        ...(options.wait ? { refillPerSecond: 4, onExceeded: "wait" as const } : undefined)
      })
      const log: Array<unknown> = []
      let sends = 0
      const start = yield* Clock.currentTimeMillis
      const call = Effect.gen(function*() {
        const { elapsed, elapsedSincePrevious, attempt, output, input } = yield* Schedule.CurrentMetadata
        log.push([
          (yield* Clock.currentTimeMillis) - start,
          [attempt, elapsed, elapsedSincePrevious, (input as { _tag?: string } | undefined)?._tag],
          RetryDecision.isRetry(output) ? [output.delayMillis, output.cost] : output,
          micro(quota.store.balance(yield* Clock.clockWith(Effect.succeed)))
        ])
        return yield* errorOf[script[sends++] ?? "ok"]()
      })
      const observer: RetryObserver.RetryObserver = {
        onStop: ({ attempts, delayMillis, reason }) => void log.push([reason, attempts, delayMillis])
      }
      const exit = yield* inTime(
        Effect.onExit(run(call, policy), () => Effect.map(Clock.currentTimeMillis, (now) => void log.push(now - start)))
          .pipe(
            Effect.provideService(RetryQuota.RetryQuota, quota),
            Effect.provideService(RetryObserver.CurrentObserver, observer),
            Random.withSeed(options.seed)
          ),
        "2 hours"
      )
      log.push(Exit.isSuccess(exit) ? exit.value : (Cause.squash(exit.cause) as { _tag?: string })._tag ?? "defect")
      log.push(micro(yield* quota.balance))
      return log
    })

  it.effect.prop(
    "law: decides, waits, pays and tells the attempt the same as Effect.retry",
    [
      Schema.Array(outcome).check(Schema.isMaxLength(7)),
      Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: policies.length - 1 })),
      Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 30 })),
      Schema.Boolean
    ],
    ([script, index, tokens, wait]) =>
      Effect.gen(function*() {
        const policy = policies[index]!
        const [first, second] = yield* Effect.all(
          drivers.map(({ run }) => observe(run, policy, script, { tokens, seed: 7, wait }))
        )
        assert.deepStrictEqual(second, first)
      }),
    { arbitrary: { runs: 300 } } as any
  )

  it.effect("fails as the last attempt did, with its trace", () =>
    Effect.gen(function*() {
      const traced = yield* Effect.forEach(
        [[new Terminal()], [new Transient(), new Transient(), new Transient()]],
        (errors: ReadonlyArray<Transient | Terminal>) =>
          inTime(withRetry(Effect.withSpan(scripted(errors).effect, "call"), awsStandard))
      )
      for (const exit of traced) {
        const annotations = Exit.isFailure(exit) ? [...exit.cause.reasons[0]!.annotations.values()] : []
        assert.deepStrictEqual(annotations.map((frame) => (frame as { name?: string }).name), ["call"])
      }
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("of an attempt books each send once", () =>
    Effect.gen(function*() {
      yield* withRetry(attempt(Effect.succeed(1)), awsStandard)
      assert.strictEqual(yield* RetryQuota.balance, 101)
    }).pipe(Effect.provide(RetryQuota.layer({ initial: 100 }))))

  it.effect("is Effect.retry for a schedule that is not a policy", () =>
    Effect.gen(function*() {
      const call = scripted([new Transient(), new Transient()])
      assert.strictEqual(yield* withRetry(call.effect, Schedule.recurs(2)), "ok")
      assert.strictEqual(call.sends, 3)
    }))

  it.effect("stays flat over 20,000 retries", () =>
    Effect.gen(function*() {
      let sends = 0
      const call = Effect.suspend(() => ++sends < 20_000 ? Effect.fail(new Transient()) : Effect.succeed(sends))
      const policy = Backoff.fixed(0)
      assert.strictEqual(yield* withRetry(call, policy), 20_000)
    }))
})

describe("Effect.retry", () => {
  const natural: ReadonlyArray<readonly [string, Schedule.Schedule<unknown, any, any, RetryQuota.RetryQuota>]> = [
    ["Schedule.upTo", awsStandard.pipe(Schedule.upTo({ times: 5 }))],
    ["Schedule.map", Schedule.map(awsStandard, () => Effect.succeed("hidden"))],
    ["Schedule.passthrough", Schedule.passthrough(awsStandard)],
    ["Schedule.tap that reads the balance", Schedule.tap(awsStandard, () => RetryQuota.balance)],
    [
      "Schedule.modifyDelay",
      Schedule.modifyDelay(awsStandard, ({ duration }) => Effect.succeed(Duration.sum(duration, Duration.millis(7))))
    ],
    ["Schedule.max", Schedule.max([awsStandard, Schedule.spaced("10 seconds")])],
    ["Schedule.while", Schedule.while(awsStandard, () => Effect.succeed(true))]
  ]
  for (const [name, policy] of natural) {
    it.effect(`${name} around a policy: success gives back, failure spends`, () =>
      Effect.gen(function*() {
        const run = (errors: ReadonlyArray<unknown>) => Effect.retry(scripted(errors).effect, policy)
        const fiber = yield* Effect.forkChild(Effect.gen(function*() {
          yield* Effect.exit(run([new Transient()]))
          const afterSuccess = yield* RetryQuota.balance
          yield* Effect.exit(run([new Transient(), new Transient(), new Transient()]))
          return [afterSuccess, yield* RetryQuota.balance]
        }))
        yield* TestClock.adjust("10 minutes")
        assert.deepStrictEqual(yield* Fiber.join(fiber), [100, 90])
      }).pipe(Effect.provide(RetryQuota.layer({ initial: 100 }))))
  }

  it.effect("ends in the defect of a send, the first or a later one, with a quota and without", () =>
    Effect.gen(function*() {
      const timed = Backoff.fixed(1).pipe(RetryPolicy.deadline("1 minute"))
      for (const policy of [awsStandard, Backoff.fixed(1), timed]) {
        for (const failures of [0, 1]) {
          for (
            const run of [withRetry, (self: Effect.Effect<never, Transient>) => Effect.retry(self, policy)]
          ) {
            let sends = 0
            const send = Effect.suspend(() => sends++ < failures ? Effect.fail(new Transient()) : Effect.die("defect"))
            assert.deepStrictEqual(yield* inTime(run(send, policy)), Exit.die("defect"))
          }
        }
      }
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("pays from the quota around the retry, and sees none that is provided inside the retried effect", () =>
    Effect.gen(function*() {
      const inner = yield* RetryQuota.make({ initial: 50 })
      const call = scripted([new Transient()])
      const own = Effect.provideService(attempt(call.effect), RetryQuota.RetryQuota, inner)
      yield* inTime(Effect.retry(own, awsStandard))
      assert.strictEqual(call.sends, 2)
      assert.deepStrictEqual([yield* RetryQuota.balance, yield* inner.balance], [100, 50])
    }).pipe(Effect.provide(RetryQuota.layer({ initial: 100 }))))

  it.effect("with { schedule, times } loses no token: those of a retry that is never made go back", () =>
    Effect.gen(function*() {
      const call = scripted([new Transient(), new Transient(), new Transient()])
      const program = Effect.retry(call.effect, { schedule: awsStandard, times: 1 })
      const fiber = yield* Effect.forkChild(Effect.andThen(Effect.exit(program), Effect.sleep("1 hour")))
      yield* TestClock.adjust("30 minutes")
      assert.strictEqual(call.sends, 2)
      assert.strictEqual(yield* RetryQuota.balance, 495)
      yield* TestClock.adjust("1 hour")
      yield* Fiber.join(fiber)
      assert.strictEqual(yield* RetryQuota.balance, 495)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("gives those tokens back at once, in a fiber that retries again, too", () =>
    Effect.gen(function*() {
      const stopping = Effect.exit(
        Effect.retry(Effect.fail(new Transient()), { schedule: awsStandard, times: 0 })
      )
      const fiber = yield* Effect.forkChild(Effect.andThen(Effect.repeat(stopping, Schedule.recurs(30)), Effect.never))
      yield* TestClock.adjust(0)
      assert.strictEqual(yield* RetryQuota.balance, 500)
      yield* TestClock.adjust("30 minutes")
      assert.strictEqual(yield* RetryQuota.balance, 500)
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(yield* RetryQuota.balance, 500)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("gives those tokens back at once, in a fiber that retries by withRetry, too", () =>
    Effect.gen(function*() {
      const failing = Effect.fail(new Transient())
      const stopping = Effect.exit(Effect.retry(failing, { schedule: awsStandard, times: 0 }))
      const fiber = yield* Effect.forkChild(
        Effect.andThen(
          stopping,
          withRetry(failing, Backoff.fixed("1 hour").pipe(RetryPolicy.quotaGated({ cost: 7 })))
        )
      )
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* RetryQuota.balance, 493)
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(yield* RetryQuota.balance, 500)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("a retried call between a decision and its retry does not make the retry free", () =>
    Effect.gen(function*() {
      const report = Effect.exit(Effect.retry(Effect.fail(new Terminal()), awsStandard))
      const policy = Schedule.tap(awsStandard, () => report)
      yield* inTime(Effect.retry(Effect.fail(new Transient()), policy))
      assert.strictEqual(yield* RetryQuota.balance, 490)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("a call that succeeds with a repeat, a retry or a timeout inside leaves nothing taken", () =>
    Effect.gen(function*() {
      type Call = Effect.Effect<string, Transient>
      const inside: ReadonlyArray<(self: Call) => Effect.Effect<unknown, Transient>> = [
        (self) => Effect.repeat(attempt(self), Schedule.recurs(1)),
        (self) => Effect.retry(attempt(self), Schedule.recurs(0)),
        (self) => withRetry(self, Backoff.fixed(0).pipe(RetryPolicy.maxAttempts(1)))
      ]
      for (const inner of inside) {
        const call = scripted([new Transient()])
        const policy: Schedule.Schedule<unknown, any, never, RetryQuota.RetryQuota> = awsStandard
        const program = Effect.retry(inner(call.effect), policy)
        const fiber = yield* Effect.forkChild(Effect.andThen(program, Effect.never))
        yield* TestClock.adjust("1 minute")
        assert.isAtLeast(yield* RetryQuota.balance, 100)
        yield* Fiber.interrupt(fiber)
      }
    }).pipe(Effect.provide(RetryQuota.layer({ initial: 100 }))))

  it.effect("two policies that both granted a retry get their tokens back after a success", () =>
    Effect.gen(function*() {
      const gated = (cost: number) => Backoff.fixed(10).pipe(RetryPolicy.quotaGated({ cost }))
      for (const both of [Schedule.min([gated(5), gated(7)]), Schedule.max([gated(7), gated(5)])]) {
        const program = Effect.retry(scripted([new Transient()]).effect, both)
        const fiber = yield* Effect.forkChild(Effect.andThen(program, Effect.never))
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(yield* RetryQuota.balance, 500)
        yield* Fiber.interrupt(fiber)
      }
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("leaves no observer on a fiber whose retries are never made", () =>
    Effect.gen(function*() {
      const stopping = Effect.exit(
        Effect.retry(Effect.fail(new Transient()), { schedule: awsStandard, times: 0 })
      )
      const fiber = yield* Effect.forkChild(Effect.andThen(Effect.repeat(stopping, Schedule.recurs(200)), Effect.never))
      yield* TestClock.adjust("1 minute")
      const observers = (fiber as unknown as { readonly _observers?: ReadonlyArray<unknown> })._observers
      assert.isAtMost(observers?.length ?? 0, 3)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("does not have a retry that holds no quota tokens pay as a first attempt", () =>
    Effect.gen(function*() {
      const policy = Schedule.map(
        Backoff.fixed(10).pipe(RetryPolicy.maxAttempts(3)),
        () => Effect.succeed("hidden")
      )
      yield* inTime(Effect.retry(scripted([new Transient(), new Transient()]).effect, policy))
      assert.strictEqual(yield* RetryQuota.balance, 5)
    }).pipe(Effect.provide(RetryQuota.layer({ capacity: 10, initial: 9, firstAttemptCost: 4 }))))

  it.effect("a retried effect that fails puts nothing in for what succeeds inside it", () =>
    Effect.gen(function*() {
      const both = Effect.andThen(attempt(Effect.succeed("healthy")), attempt(Effect.fail(new Transient())))
      yield* inTime(Effect.retry(both, awsStandard))
      assert.strictEqual(yield* RetryQuota.balance, 100 - 10)
    }).pipe(Effect.provide(RetryQuota.layer({ initial: 100 }))))

  it.effect("spends the tokens of a retry whose output a combinator hides", () =>
    Effect.gen(function*() {
      const hidden = Schedule.map(awsStandard, () => Effect.succeed("hidden"))
      const call = scripted([new Transient(), new Transient(), new Transient()])
      yield* inTime(Effect.retry(call.effect, hidden))
      assert.strictEqual(call.sends, 3)
      assert.strictEqual(yield* RetryQuota.balance, 490)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("says why it stopped as the last output", () =>
    Effect.gen(function*() {
      const told = Effect.retryOrElse(
        Effect.fail(new Terminal()),
        awsStandard,
        (error, output) => Effect.succeed([error._tag, RetryDecision.isStop(output) && output.reason])
      )
      assert.deepStrictEqual(yield* told, ["Terminal", "final"])
    }).pipe(Effect.provide(RetryQuota.layer())))
})

describe("types", () => {
  class Fault extends Data.TaggedError("Fault")<{}> {}
  const call: Effect.Effect<number, Fault> = Effect.fail(new Fault())

  it("ask for the quota, and for the limiter in adaptive mode, with its error", () => {
    const standard = Effect.retry(call, awsStandard)
    expectTypeOf(standard).toEqualTypeOf<Effect.Effect<number, Fault, RetryQuota.RetryQuota>>()
    const short = withRetry(call, awsStandard)
    expectTypeOf(short).toEqualTypeOf<Effect.Effect<number, Fault, RetryQuota.RetryQuota>>()
    expectTypeOf(call.pipe(withRetry(awsStandard))).toEqualTypeOf<Effect.Effect<number, Fault, RetryQuota.RetryQuota>>()
    const adaptive = withRetry(call, awsAdaptive)
    expectTypeOf(adaptive).toEqualTypeOf<
      Effect.Effect<
        number,
        Fault | AdaptiveRateLimiter.RateLimitExceeded,
        RetryQuota.RetryQuota | AdaptiveRateLimiter.AdaptiveRateLimiter
      >
    >()
  })

  it("refuse a program without its services", () => {
    // @ts-expect-error the quota is not provided
    // @effect-diagnostics-next-line missingEffectContext:off
    void (() => Effect.runPromise(Effect.retry(call, awsStandard)))
    // @ts-expect-error the limiter is not provided
    // @effect-diagnostics-next-line missingEffectContext:off
    void (() => Effect.runPromise(Effect.provide(withRetry(call, awsAdaptive), RetryQuota.layer())))
    void (() => Effect.runPromise(Effect.provide(Effect.retry(call, awsStandard), RetryQuota.layer())))
  })

  it("keep the user's error: catchTag finds it", () => {
    const caught = Effect.retry(call, awsStandard).pipe(Effect.catchTag("Fault", (fault) => {
      expectTypeOf(fault).toExtend<Fault>()
      return Effect.succeed(0)
    }))
    expectTypeOf(caught).toEqualTypeOf<Effect.Effect<number, never, RetryQuota.RetryQuota>>()
  })

  it("let a policy for some errors retry those only", () => {
    const policy = RetryPolicy.fromSchedule(Schedule.recurs(1).pipe(Schedule.setInputType<Fault>())).pipe(
      RetryPolicy.quotaGated({ cost: 1 })
    )
    expectTypeOf(withRetry(call, policy)).toEqualTypeOf<Effect.Effect<number, Fault, RetryQuota.RetryQuota>>()
    // @ts-expect-error the policy takes no such error
    // @effect-diagnostics-next-line missingEffectError:off
    void (() => withRetry(Effect.fail("text"), policy))
  })
})
