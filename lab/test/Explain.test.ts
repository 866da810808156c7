import * as Explain from "@effect-retry/lab/Explain"
import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  awsAdaptive,
  awsDynamoDB2026,
  AwsModes,
  awsStandard,
  awsStandard2026,
  Backoff,
  InvalidOption,
  RetryInfo,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import { fixedRandom, outcomes, runToEnd, timeline, transient } from "effect-retry/testing"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import { patient } from "../../examples/own-policy.ts"
import { budget, firstOf } from "../../test/utils/budget.ts"

/** With fewer samples, where they are no figure of the test. */
const explain: typeof Explain.explain = (policy, options) =>
  Explain.explain(policy, { samples: budget(300, 100), ...options })

const spread = ({ delay }: Explain.Retry) => [delay.minMillis, delay.p50Millis, delay.p99Millis, delay.maxMillis]
const spreads = (explanation: Explain.Explanation) => explanation.retries.map(spread)
const ends = (explanation: Explain.Explanation) => explanation.ends.map((end) => [end.attempts, end.reason, end.share])

const thrownBy = (f: () => unknown): unknown => {
  try {
    f()
  } catch (error) {
    return error
  }
  return assert.fail("nothing was thrown")
}

describe("Explain", () => {
  describe("delays", () => {
    for (
      const [name, policy, failure, expected] of [
        ["awsStandard", awsStandard, {}, [[0, 500, 990, 1000], [0, 1000, 1980, 2000]]],
        ["awsStandard2026", awsStandard2026, {}, [[0, 25, 50, 50], [0, 50, 99, 100]]],
        ["awsStandard2026 after throttles", awsStandard2026, { throttling: true }, [
          [0, 500, 990, 1000],
          [0, 1000, 1980, 2000]
        ]],
        ["a hint, as a floor", awsStandard, { retryAfter: 1200 }, [[1200, 1200, 1200, 1200], [1200, 1200, 1980, 2000]]],
        ["no jitter", RetryPolicy.maxAttempts(4)(Backoff.exponential(100)), {}, [
          [100, 100, 100, 100],
          [200, 200, 200, 200],
          [400, 400, 400, 400]
        ]],
        ["equal jitter", RetryPolicy.maxAttempts(2)(Backoff.fixed(1000, { jitter: "equal" })), {}, [
          [500, 750, 995, 1000]
        ]],
        [
          "proportional jitter, the cap after it",
          Backoff.exponential(1000, 2, { cap: 1000, jitter: { proportional: 0.5 } }).pipe(
            RetryPolicy.maxAttempts(2)
          ),
          {},
          [[500, 1000, 1000, 1000]]
        ],
        [
          "a delay that falls with chance",
          RetryPolicy.fromDelay(({ random }) => 1000 * (1 - random.nextDoubleUnsafe())).pipe(
            RetryPolicy.maxAttempts(2)
          ),
          {},
          [[0, 500, 990, 1000]]
        ]
      ] as const
    ) {
      it(`are exact: ${name}`, () => {
        const explanation = explain(policy, { failure })
        assert.deepStrictEqual(spreads(explanation), expected.map((row) => [...row]))
        assert.isTrue(explanation.retries.every(({ delay }) => delay.exact))
      })
    }

    it("law: exact percentiles are those that many samples come to", () => {
      const policy = Backoff.exponential(1000, 2, { cap: 8000, jitter: "full" }).pipe(RetryPolicy.maxAttempts(5))
      const exact = explain(policy)
      const reference = explain(
        // Two draws where one would do: so the percentiles can only be sampled.
        Backoff.exponential(1000, 2, { cap: 8000 }).pipe(
          RetryPolicy.jittered("full"),
          RetryPolicy.jittered({ proportional: 0 }),
          RetryPolicy.maxAttempts(5)
        ),
        { samples: budget(10_000, 3000) }
      )
      for (const [n, { delay }] of exact.retries.entries()) {
        const sampled = reference.retries[n]!.delay
        assert.isTrue(delay.exact)
        assert.isFalse(sampled.exact)
        assert.closeTo(sampled.p50Millis! / delay.p50Millis!, 1, 0.03)
        assert.closeTo(sampled.p99Millis! / delay.p99Millis!, 1, 0.01)
        assert.deepStrictEqual([sampled.minMillis, sampled.maxMillis], [delay.minMillis, delay.maxMillis])
      }
    })

    it("are sampled where they depend on the delay before, between exact extremes", () => {
      const policy = Backoff.decorrelated(100, { cap: 5000 }).pipe(RetryPolicy.maxAttempts(6))
      const { retries } = explain(policy)
      assert.deepStrictEqual(retries.map(({ delay }) => delay.exact), [true, false, false, false, false])
      assert.deepStrictEqual(retries.map(({ delay }) => [delay.minMillis, delay.maxMillis]), [
        [100, 300],
        [100, 900],
        [100, 2700],
        [100, 5000],
        [100, 5000]
      ])
    })

    it("are those of the retries made, where a deadline rules out the longer ones", () => {
      // Any delay up to a second is as likely as another, and those above 600 ms are not made.
      const policy = Backoff.exponential(1000, 2, { cap: 1000, jitter: "full" }).pipe(
        RetryPolicy.maxAttempts(2),
        RetryPolicy.deadline("600 millis")
      )
      const { retries: [first], samples } = Explain.explain(policy, { failureRates: [] })
      assert.strictEqual(samples, 5000)
      assert.closeTo(first!.share, 0.6, 0.03)
      assert.closeTo(first!.delay.p50Millis!, 300, 15)
      assert.closeTo(first!.delay.p99Millis!, 594, 6)
      assert.deepStrictEqual([first!.delay.minMillis, first!.delay.maxMillis, first!.delay.exact], [0, 600, false])
    })

    it("take the samples that are asked for, and no more", () => {
      let delays = 0
      const counted = RetryPolicy.fromDelay(({ random }) => {
        delays++
        return 1000 * random.nextDoubleUnsafe()
      }).pipe(RetryPolicy.maxAttempts(2), RetryPolicy.deadline("10 seconds"))
      const countOf = (samples: number) => {
        delays = 0
        Explain.explain(counted, { samples })
        return delays
      }
      assert.isBelow(countOf(20), 100)
      // Without the deadline only the extremes matter: a thousand samples show them.
      assert.isBelow(countOf(2000), 3500)
    })

    it("use more samples where not all of them are exact", () => {
      assert.strictEqual(Explain.explain(awsStandard, { failureRates: [] }).samples, 1000)
      const dependent = Backoff.decorrelated(100, { cap: 5000 }).pipe(RetryPolicy.maxAttempts(3))
      assert.strictEqual(Explain.explain(dependent, { failureRates: [], retries: 2 }).samples, 5000)
      assert.strictEqual(explain(dependent, { samples: 200 }).samples, 200)
    })

    it("do not count as exact because few were sampled", () => {
      const { retries } = explain(Backoff.decorrelated(100, { cap: 5000 }), { samples: 1, retries: 4 })
      assert.deepStrictEqual(retries.map(({ delay }) => delay.exact), [true, false, false, false])
    })

    for (const value of [0, 0.3, 0.77]) {
      it.effect(`law: a real call has the delays and the end that are explained, chance ${value}`, () =>
        Effect.gen(function*() {
          for (const policy of [awsStandard, awsDynamoDB2026, patient, RetryPolicy.fromSchedule(Schedule.recurs(3))]) {
            const events = timeline()
            const call = outcomes([transient], { afterwards: "repeat", latency: 7 })
            yield* call.send.pipe(
              withRetry(policy),
              Effect.provide([events.layer, fixedRandom(value), RetryQuota.layer()]),
              Effect.exit,
              runToEnd
            )
            const explanation = explain(policy, { attempt: 7 })
            const [first = 0, ...rest] = call.timeline.at("attempt")
            const sent = rest.map((at) => at - first)
            assert.isAtMost(sent.length, explanation.retries.length)
            for (const [n, at] of sent.entries()) {
              assert.isAtMost(at, explanation.retries[n]!.latestMillis)
              const { maxMillis, minMillis } = explanation.retries[n]!.delay
              const delay = at - (sent[n - 1] ?? 0) - 7
              assert.isTrue(minMillis! <= delay && delay <= maxMillis!, `retry ${n + 1} after ${delay} ms`)
            }
            const stopped = events.events.at(-1)!.name
            const known = ends(explanation).some(([attempts, reason]) => attempts === call.sends && reason === stopped)
            assert.isTrue(known, `${call.sends} attempts, ${stopped}`)
          }
        }))
    }
  })

  describe("the end of a call", () => {
    it("is shown with its reason, after its retry", () => {
      const explanation = explain(awsStandard)
      assert.deepStrictEqual(ends(explanation), [[3, "max-attempts", 1]])
      assert.deepStrictEqual(explanation.retries.map(({ ends }) => ends.map(({ reason }) => reason)), [[], [
        "max-attempts"
      ]])
      assert.isTrue(explanation.complete)
    })

    it("comes immediately for an error that is not retried", () => {
      const explanation = explain(awsStandard, { failure: RetryInfo.notRetryable, attempt: 30 })
      assert.deepStrictEqual([explanation.retries, ends(explanation)], [[], [[1, "final", 1]]])
      assert.deepStrictEqual(explanation.latency, { minMillis: 30, p50Millis: 30, p99Millis: 30, maxMillis: 30 })
      assert.strictEqual(explanation.failure.safety, "No")
      assert.strictEqual(explanation.quota, null)
      assert.strictEqual(explanation.load.at(-1)!.attempts, 1)
    })

    it("differs at random with a deadline, in shares that add up to 1", () => {
      const explanation = explain(patient)
      const total = explanation.ends.reduce((sum, { share }) => sum + share, 0)
      assert.closeTo(total, 1, 1e-9)
      assert.deepStrictEqual(explanation.ends.map(({ attempts, reason }) => [attempts, reason]), [
        [6, "deadline"],
        [7, "deadline"],
        [8, "deadline"],
        [9, "deadline"]
      ])
      assert.deepStrictEqual(explanation.retries.map(({ latestMillis }) => latestMillis), [
        100,
        300,
        700,
        1500,
        2500,
        3000,
        3000,
        3000
      ])
      for (const [n, { share }] of explanation.retries.entries()) {
        const longer = explanation.ends.filter(({ attempts }) => attempts > n + 1)
        assert.closeTo(share, longer.reduce((sum, { share }) => sum + share, 0), 1e-9)
      }
      assert.strictEqual(explanation.latency.maxMillis, 3000)
      assert.isAtMost(explanation.latency.p99Millis!, 3000)
      assert.include(explanation.notes[0], "Delays are those of retries actually made")
      assert.deepStrictEqual(explain(awsStandard, { deadline: "1 minute" }).notes, [])
    })

    it("comes no later than a deadline and one attempt", () => {
      const explanation = explain(awsStandard, { deadline: "2 seconds", attempt: "1 second" })
      assert.strictEqual(explanation.deadlineMillis, 2000)
      assert.strictEqual(explanation.latency.maxMillis, 3000)
      assert.deepStrictEqual(new Set(explanation.ends.map(({ reason }) => reason)), new Set(["deadline"]))
      const policy = explain(RetryPolicy.deadline("500 millis")(awsStandard), { deadline: "2 seconds" })
      assert.strictEqual(policy.deadlineMillis, 500)
      const later = explain(awsStandard, { deadline: "1 minute", attempt: "1 second" })
      assert.strictEqual(later.latency.maxMillis, 6000)
    })

    for (
      const [name, policy, options, shown] of [
        ["ten retries of an endless policy", AwsModes.standard2026({ maxAttempts: Infinity }), {}, 10],
        ["as many as are asked for", AwsModes.standard2026({ maxAttempts: Infinity }), { retries: 12 }, 12],
        ["fewer than the policy makes", awsDynamoDB2026, { retries: 2 }, 2],
        ["a hundred of a policy with a limit", RetryPolicy.maxAttempts(200)(Backoff.fixed(5)), {
          samples: 5
        }, 100]
      ] as const
    ) {
      it(`is not looked for further than ${name}`, () => {
        const explanation = explain(policy, options)
        assert.strictEqual(explanation.retries.length, shown)
        assert.isFalse(explanation.complete)
        assert.deepStrictEqual(ends(explanation), [[shown + 1, "not-followed", 1]])
        assert.deepStrictEqual(explanation.latency, {
          minMillis: null,
          p50Millis: null,
          p99Millis: null,
          maxMillis: null
        })
        assert.include(explanation.notes[0], `first ${shown} retries`)
      })
    }

    it("is complete where the limit is exactly what the policy makes", () => {
      assert.isTrue(explain(awsDynamoDB2026, { retries: 3 }).complete)
    })

    it("comes by the deadline, even if the calls were not followed that far", () => {
      const policy = RetryPolicy.deadline("30 seconds")(Backoff.fixed(100))
      const explanation = explain(policy, { attempt: 50, failureRates: [1, 0.5], samples: 20 })
      assert.isFalse(explanation.complete)
      assert.deepStrictEqual(explanation.latency, {
        minMillis: null,
        p50Millis: null,
        p99Millis: null,
        maxMillis: 30_050
      })
      // A retry begins every 150 ms, and the last of them before 30 s.
      assert.deepStrictEqual(explanation.load.map(({ attempts }) => attempts), [200, 2])
      const whole = explain(policy, { attempt: 50, failureRates: [1], retries: 300, samples: 20 })
      assert.deepStrictEqual([whole.complete, whole.load[0]!.attempts], [true, 200])
    })

    it("comes when the retry quota of the call is used up", () => {
      const explanation = explain(awsStandard, { quota: { capacity: 500, initial: 9 } })
      assert.deepStrictEqual(ends(explanation), [[2, "quota-exhausted", 1]])
      assert.deepStrictEqual(explanation.retries.map(({ balance, cost }) => [cost, balance]), [[5, 4]])
      assert.strictEqual(explanation.quota!.retriesInOutage, 1)
      assert.strictEqual(explanation.load.at(-1)!.attemptsWithoutQuota, 3)
    })

    it("is held back by long polling, which counts as latency", () => {
      const policy = AwsModes.standard2026({ longPolling: true })
      const { latency, retries } = explain(policy, { quota: { initial: 0 } })
      assert.deepStrictEqual([retries.length, latency.maxMillis], [0, 50])
    })

    it("waits for a quota that makes it wait, within the deadline", () => {
      const quota = { capacity: 10, initial: 0, refillPerSecond: 2, onExceeded: "wait" } as const
      const explanation = explain(awsStandard, { quota })
      assert.deepStrictEqual(explanation.retries.map(({ latestMillis }) => latestMillis), [3500, 7000])
      assert.strictEqual(explanation.latency.maxMillis, 7000)
      assert.strictEqual(explanation.notes.length, 3)
      assert.isTrue(explanation.load.every(({ attempts, attemptsWithoutQuota }) => attempts === attemptsWithoutQuota))
      const hurried = explain(awsStandard, { quota, deadline: "5 seconds" })
      assert.deepStrictEqual(ends(hurried), [[2, "deadline", 1]])
      assert.strictEqual(hurried.load.at(-1)!.attemptsWithoutQuota, 3)
    })
  })

  describe("the quota", () => {
    it("is paid by the class of the failure", () => {
      const classes = { transient: 5, timeout: 10, throttling: 5 }
      const explanation = explain(awsStandard, { failure: { timeout: true } })
      assert.deepStrictEqual(explanation.retries.map(({ balance, cost, costs }) => ({ balance, cost, costs })), [
        { balance: 490, cost: 10, costs: classes },
        { balance: 480, cost: 10, costs: classes }
      ])
      assert.deepStrictEqual(explanation.quota!.costs, classes)
      assert.deepStrictEqual(explain(awsStandard2026).retries[1]!.costs, {
        transient: 14,
        timeout: 14,
        throttling: 5
      })
    })

    it("does not matter to a policy without one", () => {
      const { load, quota, retries } = explain(patient)
      assert.deepStrictEqual([quota, retries[0]!.balance, retries[0]!.cost], [null, null, 0])
      assert.isTrue(load.every(({ attempts, attemptsWithoutQuota }) => attempts === attemptsWithoutQuota))
    })

    for (
      const [cost, retries, left, policy, failure] of [
        [5, 100, 0, AwsModes.standard({ maxAttempts: Infinity }), {}],
        [10, 50, 0, AwsModes.standard({ maxAttempts: Infinity }), { timeout: true }],
        [14, 35, 10, AwsModes.standard2026({ maxAttempts: Infinity }), {}]
      ] as const
    ) {
      it(`of 500 tokens pays for exactly ${retries} retries at ${cost} each in an outage, and keeps ${left}`, () => {
        const explanation = explain(policy, { failure, retries: 200, samples: 3 })
        assert.deepStrictEqual(ends(explanation), [[retries + 1, "quota-exhausted", 1]])
        assert.strictEqual(explanation.retries.at(-1)!.balance, left)
        assert.strictEqual(explanation.quota!.retriesInOutage, retries)
      })
    }

    for (
      const [name, expected, policy, failure] of [
        ["3 attempts at 5", 0.3207, awsStandard, {}],
        ["3 attempts at 10", 0.2460, awsStandard, { timeout: true }],
        ["3 attempts at 14", 0.2149, awsStandard2026, {}],
        ["4 attempts at 14", 0.2117, awsDynamoDB2026, {}],
        ["endless attempts at 14", 1 / (1 + Math.sqrt(14)), AwsModes.standard2026({ maxAttempts: Infinity }), {}]
      ] as const
    ) {
      it(`bites from a failure rate of ${expected.toFixed(4)}: ${name}`, () => {
        assert.closeTo(explain(policy, { failure, samples: 1 }).quota!.bitesAt!, expected, 5e-5)
      })
    }

    it("takes effect from the start if successes add nothing, and never if a retry costs nothing", () => {
      const bitesAt = (policy: Parameters<typeof Explain.explain>[0], quota: RetryQuota.Options) =>
        explain(policy, { quota, samples: 1 }).quota!.bitesAt
      assert.closeTo(bitesAt(awsStandard, { successIncrement: 0 })!, 0, 1e-9)
      assert.strictEqual(bitesAt(RetryPolicy.withQuota({ cost: 0 })(awsStandard), {}), null)
      const half = bitesAt(awsStandard, { successIncrement: 0.5 })!
      assert.closeTo(5 * half ** 2 * (1 + half), 0.5 * (1 - half), 1e-9)
    })

    for (const initial of [0, 4]) {
      it(`is known and bounds the load though its ${initial} tokens pay for no retry`, () => {
        const { load, quota, retries } = explain(awsStandard, {
          quota: { initial },
          failureRates: [0.3, 0.5, 1]
        })
        assert.deepStrictEqual([retries.length, quota!.initial, quota!.retriesInOutage], [0, initial, 0])
        assert.deepStrictEqual(quota!.costs, { transient: 5, timeout: 10, throttling: 5 })
        assert.closeTo(quota!.bitesAt!, 0.3207, 5e-5)
        assert.deepStrictEqual(load.map(({ attempts }) => attempts!.toFixed(6)), ["1.390000", "1.200000", "1.000000"])
      })
    }

    it("refuses every retry if its capacity is below the cost of one", () => {
      const { load, notes, quota } = explain(awsStandard, { quota: { capacity: 4 } })
      assert.strictEqual(quota!.bitesAt, 0)
      assert.isTrue(load.every(({ attempts, failureRate, success }) => attempts === 1 && success === 1 - failureRate))
      assert.deepStrictEqual(notes, [])
    })

    it("that is small comes with a warning: it sometimes empties earlier", () => {
      const { load, notes } = explain(awsStandard, { quota: { capacity: 10 }, failureRates: [0.3] })
      assert.match(notes[0]!, /lower failure rates/)
      const { attempts } = Effect.runSync(realLoad(awsStandard, 0.3, 20_000, { capacity: 10 }))
      assert.isBelow(attempts, load[0]!.attempts! - 0.05)
      assert.deepStrictEqual(explain(awsStandard).notes, [])
    })

    it("is that of the options, or refuses them", () => {
      assert.strictEqual(explain(awsStandard, { quota: { capacity: 50 } }).quota!.retriesInOutage, 10)
      assert.instanceOf(thrownBy(() => explain(awsStandard, { quota: { capacity: -1 } })), InvalidOption)
    })
  })

  describe("the load", () => {
    const loads = (policy: Parameters<typeof Explain.explain>[0], failureRates: ReadonlyArray<number>) =>
      explain(policy, { failureRates, samples: 1 }).load

    for (
      const [name, policy, failureRate, attempts, success] of [
        ["standard", awsStandard, 0.3, 1.39, 0.972],
        ["standard", awsStandard, 0.5, 1.2, 0.6],
        ["standard", awsStandard, 0.75, 1.0667, 0.2667],
        ["2.1", awsStandard2026, 0.25, 1.2143, 0.9107],
        ["2.1", awsStandard2026, 0.3, 1.1667, 0.816],
        ["2.1", awsStandard2026, 0.5, 1.0714, 0.5357],
        ["standard", awsStandard, 0, 1, 1],
        ["standard", awsStandard, 1, 1, 0]
      ] as const
    ) {
      it(`of ${name} at a failure rate of ${failureRate} is ${attempts}, and ${success} of the calls succeed`, () => {
        const [load] = loads(policy, [failureRate])
        assert.closeTo(load!.attempts!, attempts, 5e-5)
        assert.closeTo(load!.success, success, 1.1e-3)
      })
    }

    it("has no bound for an endless policy in an outage, without a quota", () => {
      const endless = Backoff.fixed(5)
      assert.deepStrictEqual(loads(endless, [0.5, 1]), [
        { failureRate: 0.5, attempts: 2, attemptsWithoutQuota: 2, success: 1 },
        { failureRate: 1, attempts: null, attemptsWithoutQuota: null, success: 0 }
      ])
    })

    it("counts the retries that a limit allows beyond those shown", () => {
      const [at1, half] = explain(RetryPolicy.maxAttempts(20)(Backoff.fixed(5)), {
        retries: 3,
        failureRates: [1, 0.9]
      }).load
      assert.strictEqual(at1!.attempts, 20)
      assert.closeTo(half!.attempts!, (1 - 0.9 ** 20) / 0.1, 1e-9)
    })

    for (
      const [name, policy, failureRate] of firstOf(
        [
          ["standard", awsStandard, 0.5],
          ["DynamoDB 2.1", awsDynamoDB2026, 0.15],
          ["standard", awsStandard, 0.25],
          ["2.1", awsStandard2026, 0.3]
        ] as const,
        2
      )
    ) {
      it(`is what 40,000 real calls of ${name} make at a failure rate of ${failureRate}, within one percent`, () => {
        const [load] = loads(policy, [failureRate])
        const { attempts, success } = Effect.runSync(realLoad(policy, failureRate, 40_000))
        assert.closeTo(attempts / load!.attempts!, 1, 0.01)
        assert.closeTo(success, load!.success, 0.01)
      })
    }
  })

  describe("schedules", () => {
    it("are explained as they are", () => {
      const explanation = explain(Schedule.exponential("100 millis").pipe(Schedule.upTo({ times: 3 })))
      assert.deepStrictEqual(spreads(explanation), [100, 200, 400].map((delay) => Array(4).fill(delay)))
      assert.deepStrictEqual(ends(explanation), [[4, "schedule", 1]])
      assert.strictEqual(explanation.maxAttempts, null)
    })

    it("are explained with their jitter, and cut when they never end", () => {
      const explanation = explain(Schedule.jittered(Schedule.spaced("1 second")))
      assert.strictEqual(explanation.retries.length, 10)
      assert.deepStrictEqual(spreads(explanation)[0], [800, 1000, 1196, 1200])
    })

    it("that look at the error get one", () => {
      const busy = Schedule.spaced(5).pipe(
        Schedule.while(({ input }: { readonly input: unknown }) =>
          (input as { readonly busy?: boolean }).busy === true
        ),
        Schedule.upTo({ times: 2 })
      )
      assert.strictEqual(explain(busy).retries.length, 0)
      const explanation = explain(busy, { error: { busy: true } })
      assert.strictEqual(explanation.retries.length, 2)
      assert.deepStrictEqual([explanation.failure.class, explanation.failure.safety], ["unknown", null])
      const known = explain(busy, { error: { busy: true, name: "ThrottlingException" } })
      assert.strictEqual(known.failure.class, "throttling")
    })

    it("that fail end the call", () => {
      const failing = Schedule.spaced(5).pipe(Schedule.tap(() => Effect.fail("no")))
      assert.deepStrictEqual(ends(explain(failing)), [[1, "policy-error", 1]])
    })

    for (const none of [undefined, null, {}, "awsStandard", Effect.void]) {
      it(`are required: ${String(none)} is not one`, () => {
        const error = thrownBy(() => explain(none as any))
        assert.instanceOf(error, InvalidOption)
        assert.strictEqual((error as InvalidOption).field, "policy")
      })
    }

    it("that wait for something external are refused", () => {
      const outside = Schedule.spaced(5).pipe(Schedule.tap(() => Effect.promise(() => new Promise(() => {}))))
      const error = thrownBy(() => explain(outside))
      assert.instanceOf(error, InvalidOption)
      assert.strictEqual((error as InvalidOption).field, "policy")
    })

    it("that throw, throw", () => {
      const bug = new Error("bug")
      assert.strictEqual(
        thrownBy(() =>
          explain(RetryPolicy.fromDelay(() => {
            throw bug
          }))
        ),
        bug
      )
    })

    it("need no services but the quota and the limiter", () => {
      class Other extends Context.Service<Other, {}>()("Other") {}
      const needy = Schedule.spaced(5).pipe(Schedule.tap(() => Other.use(() => Effect.void)))
      // @ts-expect-error: nobody provides the service
      const explained = () => explain(needy)
      assert.isFunction(explained)
      expectTypeOf(explain(awsAdaptive)).toEqualTypeOf<Explain.Explanation>()
    })
  })

  it("leaves out the wait for a send token, with a note", () => {
    const explanation = explain(awsAdaptive, { failure: { throttling: true } })
    assert.deepStrictEqual(spreads(explanation), spreads(explain(awsStandard)))
    assert.include(explanation.notes[0], "rate limiter token")
  })

  it("gives the attempt's share of the latency", () => {
    const { attemptMillis, latency, retries } = explain(awsStandard, { attempt: "2 seconds" })
    assert.strictEqual(attemptMillis, 2000)
    assert.deepStrictEqual([latency.minMillis, latency.maxMillis], [6000, 9000])
    assert.deepStrictEqual(retries.map(({ latestMillis }) => latestMillis), [3000, 7000])
  })

  it("makes sends wait for a cool-down, and counts hedges in the load", () => {
    const policy = Backoff.fixed(0).pipe(RetryPolicy.maxAttempts(2))
    const failure = RetryInfo.throttled("1 second")
    const plain = explain(policy, { failure, samples: 50 })
    assert.strictEqual(plain.latency.maxMillis, 0)
    const cooled = explain(policy, { failure, samples: 50, coolDown: { spread: 0 } })
    assert.deepStrictEqual([cooled.latency.minMillis, cooled.latency.maxMillis], [1000, 1000])
    assert.strictEqual(cooled.retries[0]!.latestMillis, 1000)
    assert.strictEqual(cooled.retries[0]!.delay.maxMillis, 0)
    const spread = explain(policy, { failure, samples: 500, coolDown: { spread: 0.5 } })
    assert.isAtLeast(spread.latency.minMillis!, 1000)
    assert.closeTo(spread.latency.maxMillis!, 1500, 25)
    const hedged = explain(policy, { samples: 20, hedge: { share: 0.05 }, failureRates: [0, 1] })
    assert.deepStrictEqual(hedged.load.map(({ attempts }) => attempts), [1.05, 2.05])
    assert.include(hedged.notes.join(), "at most 5 of 100 calls have one")
    assert.throws(() => explain(policy, { hedge: { share: 2 } }), /share/)
    assert.throws(() => explain(policy, { coolDown: { spread: -1 } }), /spread/)
  })

  it("is the same for the same seed, and differs in samples only for another", () => {
    const policy = Backoff.decorrelated(100, { cap: 5000 }).pipe(RetryPolicy.maxAttempts(4))
    assert.deepStrictEqual(explain(policy, { seed: "a" }), explain(policy, { seed: "a" }))
    const [a, b] = ["a", "b"].map((seed) => explain(policy, { seed }))
    assert.notDeepEqual(a!.latency, b!.latency)
    assert.deepStrictEqual(a!.latency.maxMillis, b!.latency.maxMillis)
  })

  for (
    const [name, explanation] of [
      [
        "an endless policy",
        explain(AwsModes.standard({ maxAttempts: Infinity }), { name: "endless", samples: 5 })
      ],
      ["a policy with a deadline", explain(patient, { failure: RetryInfo.throttled("1 hour"), samples: 5 })],
      ["a policy that costs nothing", explain(RetryPolicy.withQuota({ cost: 0 })(awsStandard), { samples: 5 })]
    ] as const
  ) {
    it(`survives JSON: ${name}`, () => {
      assert.deepStrictEqual(JSON.parse(JSON.stringify(explanation)), explanation)
    })
  }

  it.effect("leaves alone the effect that asks for it", () =>
    Effect.gen(function*() {
      const call = outcomes([transient, transient], { afterwards: "repeat" })
      const asking = RetryPolicy.fromDelay(() => explain(awsStandard, { samples: 3 }).latency.maxMillis!)
      const events = timeline()
      yield* call.send.pipe(
        withRetry(RetryPolicy.maxAttempts(3)(asking)),
        Effect.provide(events.layer),
        Effect.exit,
        runToEnd
      )
      call.timeline.expect("attempts at 0 ms, 3 s, 6 s")
      events.expect("retries at 0 ms, 3 s; max-attempts at 6 s")
    }))

  for (
    const [field, options] of [
      ["attempt", { attempt: -1 }],
      ["attempt", { attempt: NaN }],
      ["attempt", { attempt: Infinity }],
      ["deadline", { deadline: 0 }],
      ["retries", { retries: 0 }],
      ["retries", { retries: 1.5 }],
      ["retries", { retries: 1001 }],
      ["samples", { samples: 0 }],
      ["samples", { samples: Infinity }],
      ["failureRates", { failureRates: [0, 1.1] }],
      ["failureRates", { failureRates: [NaN] }]
    ] as const
  ) {
    it(`refuses an impossible ${field}: ${Object.values(options)}`, () => {
      const error = thrownBy(() => explain(awsStandard, options))
      assert.instanceOf(error, InvalidOption)
      assert.deepStrictEqual([(error as InvalidOption).constructorName, (error as InvalidOption).field], [
        "Explain.explain",
        field
      ])
    })
  }
})

/** Attempts per call, and the share that succeeds, when attempts fail at a rate and waiting takes no time. */
const realLoad = (
  policy: RetryPolicy.RetryPolicy<unknown, never, RetryQuota.RetryQuota>,
  failureRate: number,
  calls: number,
  quota?: RetryQuota.Options
) =>
  Effect.gen(function*() {
    const random = yield* Random.Random
    const clock = yield* Clock.Clock
    let attempts = 0
    let succeeded = 0
    const error = { [RetryInfo.TypeId]: RetryInfo.transient }
    const call = Effect.suspend(() => {
      attempts++
      return random.nextDoubleUnsafe() < failureRate ? Effect.fail(error) : Effect.sync(() => succeeded++)
    }).pipe(withRetry(policy), Effect.ignore)
    const quick: Clock.Clock = Object.assign(Object.create(clock), { sleep: () => Effect.void })
    const many = Effect.gen(function*() {
      // The burst of a full quota is no part of the long run.
      for (let n = 0; n < calls / 4; n++) yield* call
      attempts = succeeded = 0
      for (let n = 0; n < calls; n++) yield* call
    })
    yield* Effect.provideService(many, Clock.Clock, quick)
    return { attempts: attempts / calls, success: succeeded / calls }
  }).pipe(Random.withSeed(7), Effect.provide(Layer.merge(RetryQuota.layer(quota), AdaptiveRateLimiter.layerUnlimited)))
