import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  awsAdaptive,
  AwsModes,
  awsStandard,
  Backoff,
  InvalidOption,
  RetryDecision,
  RetryInfo,
  RetryObserver,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Pull from "effect/Pull"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { delayOf } from "../../src/engine/delay.ts"
import { compiledOf } from "../../src/engine/policy/policy.ts"
import { countedClock } from "../reliability/utils/clocks.ts"
import { constantRandom, Terminal, Throttled, TimedOut, Transient, Unsure } from "../utils/call.ts"

type AnyPolicy = RetryPolicy.RetryPolicy<any, any, any>

/** What a policy decides about the errors of one call, in turn: delays in milliseconds, then why it stops. */
const decisions = (policy: AnyPolicy, errors: ReadonlyArray<unknown>) =>
  Effect.gen(function*() {
    const step = yield* Schedule.toStep(policy)
    const seen: Array<number | string> = []
    for (const error of errors) {
      const decision = yield* Pull.matchEffect(step(0, error), {
        onSuccess: ([output]) => Effect.succeed(output),
        onDone: (output) => Effect.succeed(output),
        onFailure: () => Effect.die("failed")
      })
      seen.push(RetryDecision.isRetry(decision) ? decision.delayMillis : (decision as RetryDecision.Stop).reason)
    }
    return seen
  })

const repeated = (error: unknown, times: number) => Array.from({ length: times }, () => error)
const transient = new Transient()

describe("RetryPolicy", () => {
  describe("mapDelay", () => {
    it.effect("changes every delay in its place among the others, given the failure", () =>
      Effect.gen(function*() {
        const twiceAfterTimeouts = RetryPolicy.mapDelay((delay, { info }) =>
          info?.timeout ? Duration.times(delay, 2) : delay
        )
        const policy = Backoff.exponential(100).pipe(
          RetryPolicy.mapDelay((delay, { attempt }) => Duration.toMillis(delay) + attempt),
          twiceAfterTimeouts,
          RetryPolicy.capped(500)
        )
        const errors = [transient, new TimedOut(), transient, new TimedOut()]
        assert.deepStrictEqual(yield* decisions(policy, errors), [101, 404, 403, 500])
      }))

    const answers = [[-5, 0], [NaN, 0], ["250 millis", 250], [0.2, 1], ["nonsense", 0], [Infinity, Infinity]] as const
    for (const [answer, millis] of answers) {
      it.effect(`takes ${answer} for ${millis} ms`, () =>
        Effect.gen(function*() {
          const policy = RetryPolicy.mapDelay(Backoff.fixed(100), () => answer as number)
          assert.deepStrictEqual(yield* decisions(policy, [transient]), [millis])
        }))
    }

    it.effect("stops when it returns nothing, and what was taken for the retry goes back", () =>
      Effect.gen(function*() {
        let stops: ReadonlyArray<string> = []
        const policy = Backoff.fixed(1).pipe(
          RetryPolicy.mapDelay(() => undefined),
          RetryPolicy.mapDelay(() => assert.fail("asked after the end")),
          RetryPolicy.quotaGated({ cost: 14 })
        )
        yield* Effect.flip(withRetry(Effect.fail(transient), policy)).pipe(
          Effect.provide(RetryObserver.layer({
            onStop: ({ reason }) => {
              stops = [...stops, reason]
            }
          }))
        )
        assert.deepStrictEqual(stops, ["schedule"])
        assert.strictEqual(yield* RetryQuota.balance, 500)
      }).pipe(Effect.provide(RetryQuota.layer())))

    it("refuses what is not a function", () => {
      assert.throws(
        () => RetryPolicy.mapDelay(Backoff.fixed(1), 100 as never),
        /RetryPolicy.mapDelay: f must be a function from a delay and a failure to a delay, got 100/
      )
    })
  })

  describe("limits", () => {
    for (const attempts of [1, 2, 3]) {
      it.effect(`maxAttempts(${attempts}) sends ${attempts} times`, () =>
        Effect.gen(function*() {
          let sends = 0
          const call = Effect.suspend(() => {
            sends++
            return Effect.fail(transient)
          })
          const policy = Backoff.fixed(0).pipe(RetryPolicy.maxAttempts(attempts))
          yield* Effect.exit(withRetry(call, policy))
          assert.strictEqual(sends, attempts)
        }))
    }

    it("limits reads them all, in whatever order they were applied", () => {
      const free = Backoff.fixed(1)
      assert.deepStrictEqual(RetryPolicy.limits(free), {
        maxAttempts: Infinity,
        deadline: Duration.infinity,
        quota: undefined,
        gates: []
      })
      const bound = free.pipe(
        RetryPolicy.deadline("1 minute"),
        RetryPolicy.maxAttempts(5),
        RetryPolicy.quotaGated({ cost: 5, throttlingCost: 2 }),
        RetryPolicy.requires(AdaptiveRateLimiter.AdaptiveRateLimiter),
        RetryPolicy.deadline("3 seconds"),
        RetryPolicy.maxAttempts(7)
      )
      assert.deepStrictEqual(RetryPolicy.limits(bound), {
        maxAttempts: 5,
        deadline: Duration.seconds(3),
        quota: { cost: 5, timeoutCost: 5, throttlingCost: 2, longPolling: false },
        gates: ["effect-retry/AdaptiveRateLimiter"]
      })
    })

    it.effect("withoutDeadline removes earlier deadlines, and no later one", () =>
      Effect.gen(function*() {
        const hasty = Backoff.fixed("1 second").pipe(RetryPolicy.deadline(1500))
        assert.deepStrictEqual(yield* decisions(hasty, repeated(transient, 3)), [1000, 1000, 1000])
        const sent = (policy: AnyPolicy) =>
          Effect.gen(function*() {
            let sends = 0
            const call = Effect.suspend(() => {
              sends++
              return Effect.fail(transient)
            })
            const fiber = yield* Effect.forkChild(withRetry(call, RetryPolicy.maxAttempts(policy, 6)))
            yield* TestClock.adjust("10 seconds")
            yield* Effect.exit(Fiber.join(fiber))
            return sends
          })
        assert.strictEqual(yield* sent(hasty), 2)
        assert.strictEqual(yield* sent(hasty.pipe(RetryPolicy.withoutDeadline)), 6)
        assert.strictEqual(yield* sent(hasty.pipe(RetryPolicy.withoutDeadline, RetryPolicy.deadline(2500))), 3)
      }))

    it.effect("maxAttempts keeps the smaller of two limits", () =>
      Effect.gen(function*() {
        const policy = Backoff.fixed(0).pipe(RetryPolicy.maxAttempts(2), RetryPolicy.maxAttempts(5))
        assert.deepStrictEqual(yield* decisions(policy, repeated(transient, 2)), [0, "max-attempts"])
      }))

    const source = Backoff.fixed(7)

    it.effect("of two limits the stricter applies, in whatever order", () =>
      Effect.gen(function*() {
        const three = RetryPolicy.quotaGated({ cost: 3, throttlingCost: 8 })
        const five = RetryPolicy.quotaGated({ longPolling: true })
        const dearest = { cost: 5, timeoutCost: 5, throttlingCost: 8, longPolling: true }
        assert.deepStrictEqual(RetryPolicy.limits(source.pipe(three, five)).quota, dearest)
        assert.deepStrictEqual(RetryPolicy.limits(source.pipe(five, three)).quota, dearest)
        const strict = source.pipe(RetryPolicy.whileMaybeRetryable, RetryPolicy.whileRetryable)
        const reversed = source.pipe(RetryPolicy.whileRetryable, RetryPolicy.whileMaybeRetryable)
        assert.deepStrictEqual(yield* decisions(strict, [new Unsure()]), ["not-safe"])
        assert.deepStrictEqual(yield* decisions(reversed, [new Unsure()]), ["not-safe"])
        assert.deepStrictEqual(
          RetryPolicy.limits(source.pipe(RetryPolicy.deadline(9), RetryPolicy.deadline(8))).deadline,
          Duration.millis(8)
        )
      }))

    const bound = source.pipe(
      RetryPolicy.maxAttempts(2),
      RetryPolicy.deadline("1 second"),
      RetryPolicy.whileRetryable,
      RetryPolicy.quotaGated
    )
    const replaced = [
      RetryPolicy.withMaxAttempts(4),
      RetryPolicy.withDeadline("1 minute"),
      RetryPolicy.withMaybeRetryable,
      RetryPolicy.withQuota({ cost: 2 })
    ] as const
    const looser = {
      maxAttempts: 4,
      deadline: Duration.minutes(1),
      quota: { cost: 2, timeoutCost: 2, throttlingCost: 2, longPolling: false },
      gates: []
    }
    const around: ReadonlyArray<readonly [string, AnyPolicy]> = [
      ["alone", bound],
      ["in a max", RetryPolicy.max([bound, Schedule.forever])],
      ["in a min", RetryPolicy.min([bound, bound.pipe(RetryPolicy.capped(3))])],
      ["in a max in a min", RetryPolicy.min([RetryPolicy.max([bound, bound]), RetryPolicy.never])]
    ]
    it.effect.each(around)("a limit is replaced: %s", ([, policy]) =>
      Effect.gen(function*() {
        assert.deepStrictEqual(RetryPolicy.limits(policy.pipe(...replaced)), looser)
        const sent = { ...looser, quota: undefined }
        assert.notDeepEqual(RetryPolicy.limits(policy), sent)
        const errors = [new Unsure(), transient, new Unsure(), transient]
        const seen = yield* decisions(policy.pipe(...replaced), errors).pipe(Effect.provide(RetryQuota.layer()))
        assert.deepStrictEqual(seen.map((one) => typeof one), ["number", "number", "number", "string"])
      }))

    it.effect("a limit is replaced in what choose chooses; the parts of concat end where they did", () =>
      Effect.gen(function*() {
        const short = source.pipe(RetryPolicy.maxAttempts(2))
        const chosen = RetryPolicy.choose(() => short).pipe(RetryPolicy.withMaxAttempts(3))
        assert.deepStrictEqual(yield* decisions(chosen, repeated(transient, 3)), [7, 7, "max-attempts"])
        const both = short.pipe(RetryPolicy.concat(Backoff.fixed(9)), RetryPolicy.withMaxAttempts(4))
        assert.deepStrictEqual(yield* decisions(both, repeated(transient, 4)), [7, 9, 9, "max-attempts"])
        assert.strictEqual(RetryPolicy.limits(RetryPolicy.concat(short, short)).maxAttempts, 3)
      }))

    it.effect("whileRetryable retries what is safe, and nothing the classifier does not know", () =>
      Effect.gen(function*() {
        const policy = Backoff.fixed(7).pipe(RetryPolicy.whileRetryable)
        for (const error of [new Terminal(), new Unsure(), new Error("unknown"), "text", null, undefined, 7]) {
          const reason = error instanceof Terminal ? "final" : error instanceof Unsure ? "not-safe" : "unknown-error"
          assert.deepStrictEqual(yield* decisions(policy, [error]), [reason])
        }
        for (const error of [transient, new Throttled({}), new TimedOut()]) {
          assert.deepStrictEqual(yield* decisions(policy, [error]), [7])
        }
        const bold = Backoff.fixed(7).pipe(RetryPolicy.whileMaybeRetryable)
        assert.deepStrictEqual(yield* decisions(bold, [new Unsure()]), [7])
        assert.deepStrictEqual(yield* decisions(bold, [new Terminal()]), ["final"])
      }))

    describe("deadline", () => {
      const timely = Backoff.fixed("1 second").pipe(RetryPolicy.deadline("10 seconds"))
      const hidden = Schedule.max([timely, Schedule.forever])
      const drivers = { "Effect.retry": Effect.retry, withRetry } as const
      const places: { readonly [place: string]: Schedule.Schedule<unknown, never> } = {
        "a policy": timely,
        "a policy in a schedule": hidden,
        "a joined policy": RetryPolicy.max([timely, RetryPolicy.immediate]),
        "either of two policies": RetryPolicy.min([RetryPolicy.never, timely]),
        "a joined schedule": RetryPolicy.max([RetryPolicy.immediate, hidden]),
        "a joined policy in a schedule": Schedule.max([
          RetryPolicy.max([timely, RetryPolicy.immediate]),
          Schedule.forever
        ]),
        "a policy that another follows": RetryPolicy.concat(timely, RetryPolicy.never),
        "a policy in a changed schedule": Schedule.while(Schedule.passthrough(timely), () => Effect.succeed(true)),
        "a schedule made late": Schedule.fromStep(Effect.flatMap(Effect.succeed(1), () => Schedule.toStep(timely))),
        "a concatenated schedule": RetryPolicy.max([
          Schedule.concat(timely, Schedule.recurs(0)),
          RetryPolicy.immediate
        ]),
        "a chosen policy": RetryPolicy.choose(() => timely),
        "a joined choice": RetryPolicy.max([RetryPolicy.choose(() => hidden), RetryPolicy.immediate])
      }

      for (const [form, run] of Object.entries(drivers) as ReadonlyArray<[string, typeof Effect.retry]>) {
        for (const [place, policy] of Object.entries(places)) {
          for (const [first, sends] of [[8999, 2], [9000, 1], [20_000, 1]] as const) {
            it.effect(`${form}: a first attempt of ${first} ms leaves time for ${sends} attempts in all: ${place}`, () =>
              Effect.gen(function*() {
                yield* TestClock.adjust("1 hour")
                const times: Array<number> = []
                const call = Effect.gen(function*() {
                  times.push(yield* Clock.currentTimeMillis)
                  yield* Effect.sleep(first)
                  return yield* transient
                })
                const fiber = yield* Effect.forkChild(Effect.exit(run(call, policy as typeof timely)))
                yield* TestClock.adjust("1 minute")
                yield* Fiber.join(fiber)
                assert.strictEqual(times.length, sends)
              }))
          }
        }
      }

      it.effect("reads no clock for a success where nothing has one, though policies that have one exist", () =>
        Effect.gen(function*() {
          const clock = yield* countedClock
          const joined = RetryPolicy.max([
            awsStandard,
            Backoff.fixed(1),
            RetryPolicy.min([awsStandard, Backoff.fixed(2)])
          ])
          const plain = RetryPolicy.max([
            awsStandard,
            Schedule.recurs(5),
            Schedule.exponential(1),
            Schedule.jittered(Schedule.spaced(1))
          ])
          const followed = joined.pipe(RetryPolicy.concat(awsStandard), RetryPolicy.withMaxAttempts(9))
          for (const policy of [awsStandard, joined, plain, followed]) {
            assert.strictEqual(yield* clock.provide(withRetry(Effect.succeed(1), policy)), 1)
            assert.strictEqual(clock.readings, 0)
          }
          yield* clock.provide(withRetry(Effect.succeed(1), RetryPolicy.max([awsStandard, timely])))
          assert.strictEqual(clock.readings, 1)
        }).pipe(Effect.provide(RetryQuota.layer())))

      it.effect("ends the call when the retry could not begin in time, without sleeping", () =>
        Effect.gen(function*() {
          const slow = Backoff.fixed("1 hour").pipe(RetryPolicy.deadline("1 minute"))
          assert.strictEqual(yield* Effect.flip(withRetry(Effect.fail(transient), slow)), transient)
          assert.strictEqual(yield* Clock.currentTimeMillis, 0)
        }))

      it.effect("bounds a server's hint, and gives back what the retry would have cost", () =>
        Effect.gen(function*() {
          const hinted = awsStandard.pipe(RetryPolicy.deadline("3 seconds"))
          const error = yield* Effect.flip(withRetry(Effect.fail(new Throttled({ retryAfter: 4000 })), hinted))
          assert.strictEqual(error._tag, "Throttled")
          assert.strictEqual(yield* RetryQuota.balance, 500)
        }).pipe(Effect.provide(RetryQuota.layer())))

      it.effect("does not wait for a quota that cannot refill in time", () =>
        Effect.gen(function*() {
          const call = withRetry(Effect.fail(transient), awsStandard.pipe(RetryPolicy.deadline("3 seconds")))
          assert.strictEqual(yield* Effect.flip(call), transient)
          assert.strictEqual(yield* Clock.currentTimeMillis, 0)
        }).pipe(Effect.provide(RetryQuota.layer({ initial: 0, refillPerSecond: 1, onExceeded: "wait" }))))

      it.effect("does not hold back a poll that the quota refuses, if its retry would come too late anyway", () =>
        Effect.gen(function*() {
          const policy = Backoff.fixed("1 hour").pipe(
            RetryPolicy.deadline("1 minute"),
            RetryPolicy.quotaGated({ cost: 5, longPolling: true })
          )
          assert.deepStrictEqual(yield* decisions(policy, [transient]), ["quota-exhausted"])
          assert.strictEqual(yield* Clock.currentTimeMillis, 0)
        }).pipe(Effect.provide(RetryQuota.layer({ initial: 0 }))))

      it.effect("ends the wait for a quota that others empty, in time for the delay after it", () =>
        Effect.gen(function*() {
          const policy = Backoff.fixed("1 second").pipe(
            RetryPolicy.deadline("10 seconds"),
            RetryPolicy.quotaGated({ cost: 5 })
          )
          const first = yield* Effect.forkChild(RetryQuota.reserve(6))
          yield* TestClock.adjust(0)
          const fiber = yield* Effect.forkChild(Effect.exit(withRetry(Effect.fail(transient), policy)))
          yield* TestClock.adjust("8999 millis")
          assert.isUndefined(fiber.pollUnsafe())
          yield* TestClock.adjust("1 millis")
          assert.isDefined(fiber.pollUnsafe())
          assert.isDefined(first.pollUnsafe())
          assert.closeTo(yield* RetryQuota.balance, 3, 1e-9)
        }).pipe(Effect.provide(RetryQuota.layer({ initial: 0, refillPerSecond: 1, onExceeded: "wait" }))))

      for (const [form, run] of Object.entries(drivers) as ReadonlyArray<[string, typeof Effect.retry]>) {
        it.effect(`${form}: ends the wait of a retry for its send token, with the last error, and costs nothing`, () =>
          Effect.gen(function*() {
            const times: Array<number> = []
            const stops: Array<string> = []
            const observer: RetryObserver.RetryObserver = { onStop: ({ reason }) => void stops.push(reason) }
            const throttled = new Throttled({})
            const call = Effect.flatMap(Clock.currentTimeMillis, (now) => {
              times.push(now)
              return Effect.fail(throttled)
            })
            const timely = awsAdaptive.pipe(RetryPolicy.capped("1 millis"), RetryPolicy.deadline("1500 millis"))
            const fiber = yield* Effect.forkChild(
              Effect.flip(run(call, timely)).pipe(
                Effect.provideService(RetryObserver.CurrentObserver, observer)
              )
            )
            yield* TestClock.adjust("1499 millis")
            assert.isUndefined(fiber.pollUnsafe())
            yield* TestClock.adjust("1 millis")
            assert.isTrue(Object.is(yield* Fiber.join(fiber), throttled))
            assert.deepStrictEqual([times, stops], [[0], ["deadline"]])
            assert.strictEqual(yield* RetryQuota.balance, 500)
          }).pipe(Effect.provide(Layer.merge(RetryQuota.layer(), AdaptiveRateLimiter.layer()))))
      }

      it.effect("ends the second wait of a call for a send token as it ends the first", () =>
        Effect.gen(function*() {
          const times: Array<number> = []
          const call = Effect.flatMap(Clock.currentTimeMillis, (now) => {
            times.push(now)
            return Effect.fail(new Throttled({}))
          })
          const timely = awsAdaptive.pipe(RetryPolicy.capped("1 millis"), RetryPolicy.deadline("3 seconds"))
          const ended = Effect.andThen(Effect.exit(withRetry(call, timely)), Clock.currentTimeMillis)
          const fiber = yield* Effect.forkChild(ended)
          yield* TestClock.adjust("1 minute")
          assert.strictEqual(yield* Fiber.join(fiber), 3000)
          assert.deepStrictEqual(times, [0, 2000])
        }).pipe(Effect.provide(Layer.merge(RetryQuota.layer(), AdaptiveRateLimiter.layer()))))

      it.effect("does not send at the deadline, when tokens of quota or limiter come just then", () =>
        Effect.gen(function*() {
          const times: Array<number> = []
          const throttled = new Throttled({})
          const call = Effect.flatMap(Clock.currentTimeMillis, (now) => {
            times.push(now)
            return Effect.fail(throttled)
          })
          const timely = awsAdaptive.pipe(RetryPolicy.capped("1 millis"), RetryPolicy.deadline("2 seconds"))
          const fiber = yield* Effect.forkChild(Effect.exit(withRetry(call, timely)))
          yield* TestClock.adjust("1 minute")
          yield* Fiber.join(fiber)
          assert.deepStrictEqual(times, [0])
        }).pipe(Effect.provide(Layer.merge(RetryQuota.layer(), AdaptiveRateLimiter.layer()))))

      it.effect("does not retry at the deadline after a wait for the quota", () =>
        Effect.gen(function*() {
          const times: Array<number> = []
          const call = Effect.flatMap(Clock.currentTimeMillis, (now) => {
            times.push(now)
            return Effect.fail(transient)
          })
          const policy = Backoff.fixed("1 second").pipe(
            RetryPolicy.deadline("7 seconds"),
            RetryPolicy.quotaGated({ cost: 5 })
          )
          yield* Effect.forkChild(Effect.delay(RetryQuota.deposit(10), "6 seconds"))
          yield* Effect.forkChild(RetryQuota.reserve(9))
          yield* TestClock.adjust(0)
          const fiber = yield* Effect.forkChild(Effect.exit(withRetry(call, policy)))
          yield* TestClock.adjust("1 minute")
          yield* Fiber.join(fiber)
          assert.deepStrictEqual(times, [0])
          assert.strictEqual(yield* RetryQuota.balance, 20)
        }).pipe(
          Effect.provide(RetryQuota.layer({ capacity: 20, initial: 0, refillPerSecond: 1, onExceeded: "wait" }))
        ))

      it.effect("counts on the monotonic clock: a step of the wall clock does not move it", () =>
        Effect.gen(function*() {
          yield* TestClock.adjust("1 hour")
          let sends = 0
          const call = Effect.gen(function*() {
            if (sends++ === 0) yield* TestClock.setTime(0)
            return yield* transient
          })
          const policy = Backoff.fixed(0).pipe(RetryPolicy.deadline("1 minute"), RetryPolicy.maxAttempts(3))
          yield* Effect.exit(withRetry(call, policy))
          assert.strictEqual(sends, 3)
        }))

      it.effect("is the earlier of two", () =>
        Effect.gen(function*() {
          const policy = Backoff.fixed("2 seconds").pipe(
            RetryPolicy.deadline("1 second"),
            RetryPolicy.deadline("1 hour")
          )
          assert.deepStrictEqual(yield* decisions(policy, [transient]), ["deadline"])
        }))
    })
  })

  describe("order of the checks", () => {
    const empty = RetryQuota.layer({ initial: 0 })
    const gates = [
      RetryPolicy.maxAttempts(2),
      RetryPolicy.whileRetryable,
      RetryPolicy.quotaGated({ cost: 5 }),
      RetryPolicy.deadline("1 second")
    ]
    const orders = gates.flatMap((a) =>
      gates.flatMap((b) => gates.flatMap((c) => gates.map((d) => [a, b, c, d]))).filter((order) =>
        new Set(order).size === 4
      )
    )
    const policies = orders.map((order): AnyPolicy =>
      order.reduce(
        (policy: AnyPolicy, gate) => gate(policy as any) as AnyPolicy,
        Backoff.fixed("2 seconds") as AnyPolicy
      )
    )

    it.effect("is retryable, attempts, quota, delay, deadline, in whatever order the combinators came", () =>
      Effect.gen(function*() {
        assert.strictEqual(policies.length, 24)
        for (const policy of policies) {
          assert.deepStrictEqual(yield* decisions(policy, [new Terminal()]), ["final"])
          assert.deepStrictEqual(yield* decisions(policy, [transient]), ["quota-exhausted"])
          assert.deepStrictEqual(yield* decisions(policy, [transient, transient]), ["quota-exhausted", "max-attempts"])
          assert.deepStrictEqual(
            yield* decisions(policy, [transient, new Terminal()]),
            ["quota-exhausted", "final"]
          )
        }
      }).pipe(Effect.provide(empty)))

    const failures = {
      transient,
      throttled: new Throttled({ retryAfter: 5000 }),
      timedOut: new TimedOut(),
      unsure: new Unsure(),
      terminal: new Terminal()
    }

    it.effect.prop(
      "law: a refused retry does not wait and takes nothing, whatever the policy, the quota and the failure",
      [
        Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 23 })),
        Schema.Literals(["transient", "throttled", "timedOut", "unsure", "terminal"]),
        Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 20 })),
        Schema.Boolean
      ],
      ([index, failure, tokens, wait]) =>
        Effect.gen(function*() {
          const quota = yield* RetryQuota.make({
            capacity: 20,
            initial: tokens,
            ...(wait ? { refillPerSecond: 1, onExceeded: "wait" as const } : undefined)
          })
          const error = failures[failure]
          const start = yield* Clock.currentTimeMillis
          const policy = policies[index]!
          for (
            const call of [withRetry(Effect.fail(error), policy), Effect.retry(Effect.fail(error), policy)]
          ) {
            assert.strictEqual(yield* Effect.flip(Effect.provideService(call, RetryQuota.RetryQuota, quota)), error)
            assert.strictEqual(yield* quota.balance, tokens)
          }
          assert.strictEqual(yield* Clock.currentTimeMillis, start)
        })
    )
  })

  describe("quotaGated", () => {
    it.effect("refuses a cost above the capacity immediately, also where the quota would wait", () =>
      Effect.gen(function*() {
        const policy = Backoff.fixed(0).pipe(RetryPolicy.quotaGated({ cost: 11 }))
        assert.deepStrictEqual(yield* decisions(policy, [transient]), ["quota-exhausted"])
      }).pipe(Effect.provide(RetryQuota.layer({ capacity: 10, refillPerSecond: 1, onExceeded: "wait" }))))

    it.effect("charges a throttle that is a timeout, too, as a throttle", () =>
      Effect.gen(function*() {
        const policy = Backoff.fixed(0).pipe(
          RetryPolicy.quotaGated({ cost: 1, timeoutCost: 10, throttlingCost: 5 })
        )
        yield* Effect.exit(
          withRetry(
            Effect.fail({ [RetryInfo.TypeId]: RetryInfo.make({ throttling: true, timeout: true }) }),
            policy.pipe(RetryPolicy.maxAttempts(2))
          )
        )
        assert.strictEqual(yield* RetryQuota.balance, 495)
      }).pipe(Effect.provide(RetryQuota.layer())))

    it.effect("does not wait for tokens that a retry without a delay does not need", () =>
      Effect.gen(function*() {
        const policy = Backoff.fixed(100).pipe(
          RetryPolicy.honorRetryAfter({ atMost: "1 second", beyond: "stop" }),
          RetryPolicy.quotaGated({ cost: 5 })
        )
        assert.deepStrictEqual(yield* decisions(policy, [new Throttled({ retryAfter: 2000 })]), [
          "retry-after-too-long"
        ])
        assert.strictEqual(yield* Clock.currentTimeMillis, 0)
      }).pipe(Effect.provide(RetryQuota.layer({ initial: 0, refillPerSecond: 1, onExceeded: "wait" }))))

    it.effect("waits for a quota that refills, then backs off", () =>
      Effect.gen(function*() {
        const times: Array<number> = []
        const call = Effect.flatMap(Clock.currentTimeMillis, (now) => {
          times.push(now)
          return times.length < 2 ? Effect.fail(transient) : Effect.succeed("ok")
        })
        const policy = Backoff.fixed(100).pipe(RetryPolicy.quotaGated({ cost: 5 }))
        const fiber = yield* Effect.forkChild(withRetry(call, policy))
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(yield* Fiber.join(fiber), "ok")
        assert.deepStrictEqual(times, [0, 5100])
      }).pipe(Effect.provide(RetryQuota.layer({ initial: 0, refillPerSecond: 1, onExceeded: "wait" }))))

    it.effect("waits for a quota that refills even if the delay after that never ends", () =>
      Effect.gen(function*() {
        const delays: Array<number> = []
        const policy = Backoff.fixed(100).pipe(
          RetryPolicy.mapDelay(() => Infinity),
          RetryPolicy.quotaGated({ cost: 5 })
        )
        const observer: RetryObserver.RetryObserver = { onRetry: ({ delayMillis }) => void delays.push(delayMillis) }
        const call = Effect.provideService(
          withRetry(Effect.fail(transient), policy),
          RetryObserver.CurrentObserver,
          observer
        )
        const fiber = yield* Effect.forkChild(call)
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual([delays, fiber.pollUnsafe()], [[Infinity], undefined])
      }).pipe(Effect.provide(RetryQuota.layer({ initial: 0, refillPerSecond: 1, onExceeded: "wait" }))))

    it.effect("holds a long poll back for its delay, but not when attempts are used up", () =>
      Effect.gen(function*() {
        const policy = AwsModes.standard2026({ longPolling: true, maxAttempts: 2 }).pipe(RetryPolicy.jittered("none"))
        const poll = (error: unknown) =>
          Effect.gen(function*() {
            const before = yield* Clock.currentTimeMillis
            const fiber = yield* Effect.forkChild(Effect.exit(withRetry(Effect.fail(error), policy)))
            yield* TestClock.adjust(0)
            while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust(1)
            return (yield* Clock.currentTimeMillis) - before
          })
        const full = Effect.provideService(Random.Random, constantRandom(1))
        assert.strictEqual(yield* full(poll(transient)), 50)
        assert.strictEqual(yield* full(poll(new Throttled({}))), 1000)
        assert.strictEqual(yield* full(poll(new Terminal())), 0)
      }).pipe(Effect.provide(RetryQuota.layer({ initial: 0 }))))
  })

  describe("delays", () => {
    it.effect("capped bounds the result of jitter when applied after it, and its start when applied before", () =>
      Effect.gen(function*() {
        const base = Backoff.exponential("8 seconds")
        const half = Effect.provideService(Random.Random, constantRandom(0.5))
        const after = base.pipe(RetryPolicy.jittered("full"), RetryPolicy.capped("20 seconds"))
        const before = base.pipe(RetryPolicy.capped("20 seconds"), RetryPolicy.jittered("full"))
        assert.deepStrictEqual(yield* half(decisions(after, repeated(transient, 4))), [4000, 8000, 16_000, 20_000])
        assert.deepStrictEqual(yield* half(decisions(before, repeated(transient, 4))), [4000, 8000, 10_000, 10_000])
      }))

    it.effect.prop(
      "law: a delay never exceeds a cap that comes last, whatever the jitter and the attempt",
      [
        Schema.Literals(["none", "full", "equal"]),
        Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 60_000 })),
        Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 60_000 })),
        Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 0.9999999 })),
        Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))
      ],
      ([jitter, base, cap, random, share]) =>
        Effect.gen(function*() {
          for (const mode of [jitter, { proportional: share }] as const) {
            const policy = Backoff.exponential(base).pipe(
              RetryPolicy.jittered(mode),
              RetryPolicy.honorRetryAfter(),
              RetryPolicy.capped(cap)
            )
            const errors = repeated(new Throttled({ retryAfter: 99_999 }), 12)
            for (const delay of yield* decisions(policy, errors)) {
              assert.isAtLeast(delay as number, 0)
              assert.isAtMost(delay as number, cap)
            }
          }
        }).pipe(Effect.provideService(Random.Random, constantRandom(random)))
    )

    const extremes: ReadonlyArray<readonly [string, RetryPolicy.RetryPolicy]> = [
      ["exponential", Backoff.exponential("1 second", 2, { cap: "20 seconds" })],
      [
        "exponential, full jitter then cap",
        Backoff.exponential("1 second").pipe(RetryPolicy.capped("20 seconds"))
      ],
      ["linear", Backoff.linear("1 second", { cap: "20 seconds" })],
      ["fibonacci", Backoff.fibonacci("1 second", { cap: "20 seconds" })],
      ["a factor of 10", Backoff.exponential("1 second", 10, { cap: "20 seconds" })]
    ]
    for (const [name, policy] of extremes) {
      for (const retry of [1024, 1025, 1100, 1_000_000]) {
        it(`${name}: retry ${retry} waits exactly the cap`, () => {
          const { adjusts, source } = compiledOf(policy)
          const failure = {
            error: transient,
            info: undefined,
            attempt: retry,
            step: retry,
            restart: () => {},
            previousMillis: 0,
            random: constantRandom(0.5)
          }
          const delay = typeof source === "function" ? delayOf(source, adjusts, failure) : NaN
          assert.strictEqual(delay, 20_000)
        })
      }
    }

    it.effect("without a cap saturates, and never becomes Infinity or NaN", () =>
      Effect.gen(function*() {
        const policy = Backoff.exponential("1 second").pipe(RetryPolicy.jittered("full"))
        const { adjusts, source } = compiledOf(policy)
        const failure = {
          error: transient,
          info: undefined,
          attempt: 2000,
          step: 2000,
          restart: () => {},
          previousMillis: 0,
          random: constantRandom(0)
        }
        assert.strictEqual(typeof source === "function" ? delayOf(source, adjusts, failure) : NaN, 0)
        const last = (yield* decisions(Backoff.exponential("1 second", 1e6), repeated(transient, 60)))
          .at(-1)
        assert.strictEqual(last, Number.MAX_SAFE_INTEGER)
      }))

    describe("honorRetryAfter", () => {
      const rows: ReadonlyArray<readonly [RetryPolicy.HonorOptions, number, number | string]> = [
        [{}, 0, 1000],
        [{}, 500, 1000],
        [{}, 3000, 3000],
        [{}, 6000, 6000],
        [{}, 6001, 6000],
        [{}, 1e15, 6000],
        [{ atMost: "20 seconds" }, 19_000, 19_000],
        [{ atMost: "20 seconds" }, 21_000, 20_000],
        [{ atMost: "20 seconds", overshoot: "2 seconds" }, 19_000, 3000],
        [{ atMost: 0 }, 19_000, 1000],
        [{ beyond: "stop" }, 6000, 6000],
        [{ beyond: "stop" }, 6001, "retry-after-too-long"]
      ]

      it.effect("applies to the delays after a throttle too", () =>
        Effect.gen(function*() {
          const policy = Backoff.fixed(1).pipe(
            RetryPolicy.whenThrottled(
              Backoff.fixed(1).pipe(RetryPolicy.honorRetryAfter({ beyond: "stop" }))
            )
          )
          assert.deepStrictEqual(
            yield* decisions(policy, [new Throttled({ retryAfter: 6001 })]),
            ["retry-after-too-long"]
          )
        }))

      for (const [options, hint, expected] of rows) {
        it.effect(`${JSON.stringify(options)}: a hint of ${hint} ms on a delay of 1 s gives ${expected}`, () =>
          Effect.gen(function*() {
            const policy = Backoff.fixed("1 second").pipe(RetryPolicy.honorRetryAfter(options))
            assert.deepStrictEqual(yield* decisions(policy, [new Throttled({ retryAfter: hint })]), [expected])
          }))
      }

      it.effect("never makes an error retryable, nor revives a stopped policy", () =>
        Effect.gen(function*() {
          const policy = awsStandard.pipe(RetryPolicy.maxAttempts(1))
          assert.deepStrictEqual(yield* decisions(policy, [new Throttled({ retryAfter: 1 })]), ["max-attempts"])
        }).pipe(Effect.provide(RetryQuota.layer())))
    })

    it.effect("whenThrottled uses the other delays after a throttle, and keeps counting", () =>
      Effect.gen(function*() {
        const policy = Backoff.exponential(50).pipe(
          RetryPolicy.whenThrottled(Backoff.exponential(1000))
        )
        const throttled = new Throttled({})
        assert.deepStrictEqual(
          yield* decisions(policy, [transient, throttled, transient, throttled]),
          [50, 2000, 200, 8000]
        )
      }))

    it.effect("a backoff caps again after proportional jitter", () =>
      Effect.gen(function*() {
        const policy = Backoff.exponential(600, 2, { cap: 1000, jitter: { proportional: 0.5 } })
        const high = Effect.provideService(
          decisions(policy, repeated(transient, 3)),
          Random.Random,
          constantRandom(0.999)
        )
        assert.deepStrictEqual(yield* high, [900, 1000, 1000])
      }))

    it.effect("decorrelated grows from its own delay, not from what later steps make of it", () =>
      Effect.gen(function*() {
        const policy = Backoff.decorrelated(100, { cap: 10_000 }).pipe(RetryPolicy.capped(150))
        const { source } = compiledOf(policy)
        const seen: Array<number> = []
        const run = Effect.provideService(decisions(policy, repeated(transient, 3)), Random.Random, constantRandom(0.5))
        assert.deepStrictEqual(yield* run, [150, 150, 150])
        const failure = {
          error: transient,
          info: undefined,
          attempt: 2,
          step: 2,
          restart: () => {},
          previousMillis: 200,
          random: constantRandom(0.5)
        }
        seen.push(typeof source === "function" ? source(failure) : NaN)
        assert.deepStrictEqual(seen, [350])
      }))

    it.effect("decorrelated starts at base and stays between base and three times the delay before", () =>
      Effect.gen(function*() {
        const policy = Backoff.decorrelated(100, { cap: 10_000 })
        const delays = (yield* Effect.provideService(
          decisions(policy, repeated(transient, 6)),
          Random.Random,
          constantRandom(0.5)
        )) as ReadonlyArray<number>
        assert.deepStrictEqual(delays, [200, 350, 575, 913, 1419, 2179])
        const low = Effect.provideService(decisions(policy, repeated(transient, 3)), Random.Random, constantRandom(0))
        assert.deepStrictEqual(yield* low, [100, 100, 100])
      }))
  })

  it.effect("fromDelay takes delays from a function, and stops where it gives none", () =>
    Effect.gen(function*() {
      const policy = RetryPolicy.fromDelay(({ attempt }) => attempt < 3 ? attempt * 10 : undefined)
      assert.deepStrictEqual(yield* decisions(policy, repeated(transient, 3)), [10, 20, "schedule"])
      const odd = RetryPolicy.fromDelay(({ attempt }) => [NaN, -5, 0.2][attempt - 1])
      assert.deepStrictEqual(yield* decisions(odd, repeated(transient, 4)), [0, 0, 1, "schedule"])
    }))

  it.effect("fromDelay accepts any duration: none is refused, and none is endless", () =>
    Effect.gen(function*() {
      const given: ReadonlyArray<Duration.Input> = [
        "2 seconds",
        Duration.millis(30),
        { minutes: 1 },
        "-1 second",
        Infinity
      ]
      const policy = RetryPolicy.fromDelay(({ attempt }) => given[attempt - 1])
      assert.deepStrictEqual(
        yield* decisions(policy, repeated(transient, 6)),
        [2000, 30, 60_000, 0, Number.MAX_SAFE_INTEGER, "schedule"]
      )
      const wrong = RetryPolicy.fromDelay(() => "soon" as "1 second")
      assert.deepStrictEqual(yield* decisions(wrong, [transient]), [0])
    }))

  it.effect("fromDelay gets a new, immutable record for each failure", () =>
    Effect.gen(function*() {
      const seen: Array<RetryPolicy.Failure> = []
      const policy = RetryPolicy.fromDelay((failure) => {
        seen.push(failure)
        return failure.attempt * 10
      }).pipe(RetryPolicy.capped(15))
      const errors = [transient, new Throttled({}), new Error("unknown")]
      assert.deepStrictEqual(yield* decisions(policy, errors), [10, 15, 15])
      assert.deepStrictEqual(
        seen.map(({ attempt, previous }) => [attempt, Duration.toMillis(previous)]),
        [[1, 0], [2, 10], [3, 20]]
      )
      assert.deepStrictEqual(seen.map(({ error }) => error), errors)
      assert.deepStrictEqual(seen.map(({ info }) => info?.throttling), [false, true, undefined])
      for (const failure of seen) {
        assert.isTrue(Object.isFrozen(failure))
        assert.sameMembers(Object.keys(failure), ["attempt", "error", "info", "previous", "random"])
        assert.strictEqual(Object.getPrototypeOf(failure), Object.prototype)
      }
    }))

  it.effect("a delay function that throws is a defect of the call, and costs no token", () =>
    Effect.gen(function*() {
      const policy = RetryPolicy.fromDelay(() => {
        throw new Error("broken delay")
      }).pipe(RetryPolicy.quotaGated({ cost: 5 }))
      for (
        const run of [withRetry(Effect.fail(transient), policy), Effect.retry(Effect.fail(transient), policy)]
      ) {
        const exit = yield* Effect.exit(run)
        assert.isTrue(exit._tag === "Failure" && Cause.hasDies(exit.cause))
        assert.strictEqual(yield* RetryQuota.balance, 500)
      }
    }).pipe(Effect.provide(RetryQuota.layer())))

  describe("fromSchedule", () => {
    it.effect("takes delays and end from the schedule, and the rest from the policy", () =>
      Effect.gen(function*() {
        const policy = RetryPolicy.fromSchedule(Schedule.upTo(Schedule.exponential("100 millis"), { times: 3 })).pipe(
          RetryPolicy.capped("300 millis"),
          RetryPolicy.whileRetryable
        )
        assert.deepStrictEqual(yield* decisions(policy, repeated(transient, 4)), [100, 200, 300, "schedule"])
        assert.deepStrictEqual(yield* decisions(policy, [transient, new Terminal()]), [100, "final"])
        assert.strictEqual(
          yield* Effect.flip(withRetry(Effect.fail(new Terminal()), policy)).pipe(Effect.map((e) => e._tag)),
          "Terminal"
        )
      }))

    it.effect("starts over for every call", () =>
      Effect.gen(function*() {
        const policy = RetryPolicy.fromSchedule(Schedule.recurs(1))
        for (let i = 0; i < 3; i++) {
          let sends = 0
          const call = Effect.suspend(() => ++sends < 2 ? Effect.fail(transient) : Effect.succeed(sends))
          assert.strictEqual(yield* withRetry(call, policy), 2)
        }
      }))

    it.effect("fails with the schedule's own error", () =>
      Effect.gen(function*() {
        const broken = Schedule.modifyDelay(Schedule.forever, () => Effect.fail("broken schedule"))
        const error = yield* Effect.flip(withRetry(Effect.fail(transient), RetryPolicy.fromSchedule(broken)))
        assert.strictEqual(error, "broken schedule")
      }))
  })

  it.effect("is a Schedule like any other", () =>
    Effect.gen(function*() {
      const policy = Backoff.exponential(100)
      assert.isTrue(Schedule.isSchedule(policy))
      assert.isTrue(RetryPolicy.isRetryPolicy(policy))
      assert.isFalse(RetryPolicy.isRetryPolicy(Schedule.forever))
      const slowest = Schedule.max([policy, Schedule.spaced("300 millis")])
      const step = yield* Schedule.toStep(slowest)
      const delays: Array<number> = []
      for (let i = 0; i < 4; i++) {
        const [, delay] = yield* Effect.orDie(step(0, transient))
        delays.push(Duration.toMillis(delay))
      }
      assert.deepStrictEqual(delays, [300, 300, 400, 800])
      let polls = 0
      const poll = Effect.sync(() => ++polls)
      const fiber = yield* Effect.forkChild(Effect.repeat(poll, policy.pipe(Schedule.upTo({ times: 2 }))))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)
      assert.strictEqual(polls, 3)
    }))

  describe("refuses", () => {
    const bad: ReadonlyArray<readonly [string, unknown, () => unknown]> = [
      ...[NaN, Infinity, -1, "soon", null].flatMap((base: any) =>
        [
          ["base", base, () => Backoff.exponential(base)],
          ["base", base, () => Backoff.linear(base)],
          ["base", base, () => Backoff.fibonacci(base)],
          ["base", base, () => Backoff.decorrelated(base, { cap: 1000 })],
          ["delay", base, () => Backoff.fixed(base)],
          ["increment", base, () => Backoff.linear(1, { increment: base })]
        ] as const
      ),
      ...[NaN, Infinity, 0, 0.5, -2].map((factor) => ["factor", factor, () => Backoff.exponential(1, factor)] as const),
      ...[NaN, Infinity, 0, -1].flatMap((cap) =>
        [
          ["cap", cap, () => Backoff.exponential(1, 2, { cap })],
          ["cap", cap, () => RetryPolicy.capped(cap)],
          ["cap", cap, () => Backoff.decorrelated(1, { cap })]
        ] as const
      ),
      ["cap", "1 second", () => Backoff.exponential("2 seconds", 2, { cap: "1 second" })],
      ["cap", 99, () => Backoff.decorrelated(100, { cap: 99 })],
      ["jitter", "half", () => RetryPolicy.jittered("half" as "full")],
      ["proportional", 1.1, () => RetryPolicy.jittered({ proportional: 1.1 })],
      ["proportional", NaN, () => Backoff.fixed(1, { jitter: { proportional: NaN } })],
      ...[NaN, 0, -1, 1.5, "3", 2 ** 53].map((attempts) =>
        ["maxAttempts", attempts, () => RetryPolicy.maxAttempts(attempts as number)] as const
      ),
      ...[NaN, 0, -1, Infinity].map((limit) => ["deadline", limit, () => RetryPolicy.deadline(limit)] as const),
      ...[NaN, -1, Infinity].flatMap((cost) =>
        [
          ["cost", cost, () => RetryPolicy.quotaGated({ cost })],
          ["timeoutCost", cost, () => RetryPolicy.quotaGated({ cost: 1, timeoutCost: cost })],
          ["throttlingCost", cost, () => RetryPolicy.quotaGated({ cost: 1, throttlingCost: cost })],
          ["atMost", cost, () => RetryPolicy.honorRetryAfter({ atMost: cost })],
          ["overshoot", cost, () => RetryPolicy.honorRetryAfter({ overshoot: cost })]
        ] as const
      ),
      ["beyond", "wait", () => RetryPolicy.honorRetryAfter({ beyond: "wait" as "stop" })],
      ["self", "soon", () => RetryPolicy.capped("soon" as never, 1)],
      ["self", undefined, () => RetryPolicy.whileRetryable(undefined as never)],
      ["policies", [], () => RetryPolicy.max([])],
      ["policies", 5, () => RetryPolicy.min(5 as never)],
      ["policies[1]", 5, () => RetryPolicy.min([RetryPolicy.never, 5 as never])],
      ["that", 5, () => RetryPolicy.concat(RetryPolicy.never, 5 as never)],
      ["that", 5, () => RetryPolicy.whenThrottled(RetryPolicy.never, 5 as never)],
      ["policy", 5, () => RetryPolicy.choose(5 as never)],
      ["holds", 5, () => RetryPolicy.while(RetryPolicy.never, 5 as never)],
      ["delay", 5, () => RetryPolicy.fromDelay(5 as never)],
      ["schedule", 5, () => RetryPolicy.fromSchedule(5 as never)],
      ["gate", RetryQuota.RetryQuota, () => RetryPolicy.requires(RetryPolicy.never, RetryQuota.RetryQuota as never)],
      ["maxAttempts", 0, () => RetryPolicy.withMaxAttempts(0)],
      ["deadline", 0, () => RetryPolicy.withDeadline(0)],
      ["cost", -1, () => RetryPolicy.withQuota({ cost: -1 })],
      ["maxAttempts", 0, () => AwsModes.standard({ maxAttempts: 0 })],
      ["maxBackoff", 0, () => AwsModes.standard({ maxBackoff: 0 })],
      ["maxBackoff", NaN, () => AwsModes.standard({ maxBackoff: NaN })],
      ["maxBackoff", "1 millis", () => AwsModes.standard({ maxBackoff: "1 millis" })],
      ["maxBackoff", "20 seconds", () => AwsModes.standard2026({ base: "30 seconds" })],
      ["base", -1, () => AwsModes.standard2026({ base: -1 })]
    ]
    for (const [row, [field, value, make]] of bad.entries()) {
      it(`${field} of ${String(value)} (row ${row})`, () => {
        try {
          make()
          assert.fail("made it")
        } catch (error) {
          assert.instanceOf(error, InvalidOption)
          assert.strictEqual(error.field, field)
          assert.deepStrictEqual(error.value, value)
        }
      })
    }

    it("nothing valid", () => {
      RetryPolicy.maxAttempts(Infinity)
      RetryPolicy.maxAttempts(2 ** 53 - 1)
      Backoff.exponential(0, 2, { cap: 1 })
      Backoff.exponential("20 seconds", 1, { cap: "20 seconds" })
      RetryPolicy.quotaGated({ cost: 0 })
    })
  })
})
