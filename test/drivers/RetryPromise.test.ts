import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  awsAdaptive,
  AwsModes,
  awsStandard,
  awsStandard2026,
  Backoff,
  InvalidOption,
  RetryClassifier,
  RetryInfo,
  RetryObserver,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import { make, retryPromise } from "effect-retry/RetryPromise"
import type { AttemptContext, AttemptFunction, CallOptions, ContextOptions } from "effect-retry/RetryPromise"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as Scheduler from "effect/Scheduler"
import { getEventListeners } from "node:events"
import { vi } from "vitest"
import * as Promises from "../../examples/promises.ts"
import { constantRandom, Terminal, Throttled, TimedOut, Transient, Unsure } from "../utils/call.ts"

const realImmediate = setImmediate
const turn = () => new Promise<void>((resolve) => realImmediate(resolve))

/** A clock that jumps to the next sleeper whenever there is nothing else to do. */
class VirtualClock implements Clock.Clock {
  now = 0
  readonly sleepers: Array<{ readonly at: number; readonly wake: () => void }> = []
  readonly currentTimeMillis = Effect.sync(() => this.currentTimeMillisUnsafe())
  readonly currentTimeNanos = Effect.sync(() => this.currentTimeNanosUnsafe())
  readonly monotonicTimeNanos = Effect.sync(() => this.monotonicTimeNanosUnsafe())

  currentTimeMillisUnsafe(): number {
    return this.now
  }
  currentTimeNanosUnsafe(): bigint {
    return BigInt(Math.round(this.now * 1e6))
  }
  monotonicTimeNanosUnsafe(): bigint {
    return this.currentTimeNanosUnsafe()
  }
  sleep(duration: Duration.Duration): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      const sleeper = { at: this.now + Duration.toMillis(duration), wake: () => resume(Effect.void) }
      this.sleepers.push(sleeper)
      return Effect.sync(() => this.remove(sleeper))
    })
  }
  private remove(sleeper: { readonly at: number }): void {
    const index = this.sleepers.findIndex((other) => other === sleeper)
    if (index >= 0) this.sleepers.splice(index, 1)
  }
  /** Moves the time until the promise is settled. */
  async until<A>(promise: Promise<A>): Promise<PromiseSettledResult<A>> {
    let result: PromiseSettledResult<A> | undefined
    void Promise.allSettled([promise]).then(([settled]) => {
      result = settled
    })
    for (;;) {
      for (let turns = 0; turns < 3; turns++) await turn()
      if (result !== undefined) return result
      const next = this.sleepers.reduce<VirtualClock["sleepers"][number] | undefined>(
        (first, sleeper) => first === undefined || sleeper.at < first.at ? sleeper : first,
        undefined
      )
      if (next === undefined) throw new Error("nothing happens any more")
      this.now = next.at
      this.remove(next)
      next.wake()
    }
  }
}

const seeded = (seed: number) => {
  let state = seed
  const next = () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32
  return { next, random: { nextDoubleUnsafe: next, nextIntUnsafe: () => Math.floor(next() * 2 ** 31) } }
}

/** A context with a quota and a clock of its own. */
const world = (options?: RetryQuota.Options, random: Random.Random = constantRandom(0.5)) => {
  const clock = new VirtualClock()
  const base = Context.make(Clock.Clock, clock).pipe(Context.add(Random.Random, random))
  const quota = Effect.runSyncWith(base)(RetryQuota.make(options))
  const context = Context.add(base, RetryQuota.RetryQuota, quota)
  return { clock, context, quota, balance: () => Effect.runSyncWith(context)(quota.balance) }
}

/** The context of a world, with a limiter. */
const limited = ({ context }: ReturnType<typeof world>) =>
  Context.add(
    context,
    AdaptiveRateLimiter.AdaptiveRateLimiter,
    Effect.runSyncWith(context)(AdaptiveRateLimiter.make())
  )

/** A function that fails with each of the errors in turn, then returns "ok". */
const scripted = (errors: ReadonlyArray<unknown>, onSend: (attempt: AttemptContext) => void = () => {}) => {
  let sends = 0
  const f: AttemptFunction<string> = (attempt) => {
    onSend(attempt)
    const send = sends++
    return send < errors.length ? Promise.reject(errors[send]) : Promise.resolve("ok")
  }
  return f
}

const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length

describe("retryPromise", () => {
  it("needs a function and a policy, nothing else", async () => {
    assert.strictEqual(await retryPromise(() => 1, awsStandard), 1)
    assert.strictEqual(await retryPromise(() => Promise.resolve("a"), awsStandard), "a")
    assert.strictEqual(await retryPromise(async ({ attempt }) => attempt, awsStandard), 1)
    const thenable = { then: (resolve: (value: string) => void) => resolve("thenable") }
    assert.strictEqual(
      await retryPromise<string, RetryQuota.RetryQuota>(() => thenable as PromiseLike<string>, awsStandard),
      "thenable"
    )
  })

  it("calls the function again after the delays of the policy, with the number of the attempt", async () => {
    const { balance, clock, context } = world()
    const attempts: Array<readonly [number, number]> = []
    const call = scripted([new Transient(), new Transient()], ({ attempt }) => attempts.push([attempt, clock.now]))
    const result = await clock.until(retryPromise(call, awsStandard, { context }))
    assert.deepStrictEqual(result, { status: "fulfilled", value: "ok" })
    assert.deepStrictEqual(attempts, [[1, 0], [2, 500], [3, 1500]])
    assert.strictEqual(balance(), 495)
  })

  it("waits in real timers where no clock is given", async () => {
    vi.useFakeTimers()
    try {
      const times: Array<number> = []
      const policy = Backoff.exponential("1 hour").pipe(RetryPolicy.maxAttempts(3))
      const start = Date.now()
      const result = retryPromise(scripted([1, 2], () => times.push(Date.now() - start)), policy)
      await vi.advanceTimersByTimeAsync(3 * 3_600_000)
      assert.strictEqual(await result, "ok")
      assert.deepStrictEqual(times, [0, 3_600_000, 10_800_000])
    } finally {
      vi.useRealTimers()
    }
  })

  for (
    const [name, error] of [
      ["an Error", new Error("boom")],
      ["a frozen object", Object.freeze({ a: 1 })],
      ["undefined", undefined],
      ["null", null],
      ["a string", "boom"],
      ["a NaN", NaN]
    ] as const
  ) {
    it(`rejects with the failure itself: ${name}, rejected or thrown`, async () => {
      const fails = [() => Promise.reject(error), () => {
        throw error
      }]
      for (const fail of fails) {
        const [result] = await Promise.allSettled([retryPromise(fail, awsStandard)])
        assert.strictEqual(result.status, "rejected")
        assert.isTrue(Object.is((result as PromiseRejectedResult).reason, error))
      }
    })
  }

  it("treats what is thrown, and a thenable that throws, as failures to retry", async () => {
    const { clock, context } = world()
    let sends = 0
    const result = await clock.until(retryPromise(
      () => {
        if (++sends === 1) throw new Transient()
        if (sends === 2) {
          return {
            get then(): never {
              throw new Transient()
            }
          }
        }
        return "ok"
      },
      awsStandard,
      { context }
    ))
    assert.deepStrictEqual([result.status, sends], ["fulfilled", 3])
  })

  it("does not retry what the classifier does not know", async () => {
    let sends = 0
    const [result] = await Promise.allSettled([
      retryPromise(() => Promise.reject(new Error(`${++sends}`)), awsStandard)
    ])
    assert.deepStrictEqual([result.status, sends], ["rejected", 1])
  })

  for (
    const [name, policy] of [
      [
        "a delay",
        RetryPolicy.fromDelay(() => {
          throw new RangeError("delay")
        })
      ],
      [
        "a schedule",
        RetryPolicy.fromSchedule(Schedule.fromStep(Effect.succeed(() => Effect.die(new RangeError("step")))))
      ]
    ] as const
  ) {
    it(`rejects with what ${name} of the policy throws`, async () => {
      const [result] = await Promise.allSettled([retryPromise(scripted([new Transient()]), policy)])
      assert.instanceOf((result as PromiseRejectedResult).reason, RangeError)
    })
  }

  it("rejects with what an observer throws, and gives the tokens back", async () => {
    const { balance, clock, context } = world()
    const observer: RetryObserver.RetryObserver = {
      onRetry: () => {
        throw new RangeError("observer")
      }
    }
    const observed = Context.add(context, RetryObserver.CurrentObserver, observer)
    const result = await clock.until(retryPromise(scripted([new Transient()]), awsStandard, { context: observed }))
    assert.instanceOf((result as PromiseRejectedResult).reason, RangeError)
    assert.strictEqual(balance(), 500)
  })

  it("asks the classifier of the context", async () => {
    const { clock, context } = world()
    const known: RetryClassifier.RetryClassifier = (error) =>
      error === "flaky" ? Option.some(RetryInfo.transient) : Option.none()
    const result = await clock.until(
      retryPromise(scripted(["flaky"]), awsStandard, {
        context: Context.add(context, RetryClassifier.CurrentClassifier, known)
      })
    )
    assert.strictEqual(result.status, "fulfilled")
  })

  it("rejects when the signal or the context is invalid, and calls nothing", async () => {
    const none: CallOptions = JSON.parse("{}")
    let sends = 0
    const f = () => Promise.reject(++sends)
    for (const value of [{}, "signal", 5, new EventTarget(), { aborted: false }]) {
      const options = Object.assign({}, none, { signal: value })
      for (const call of [() => retryPromise(f, awsStandard, options), () => make(awsStandard)(f, options)]) {
        const [result] = await Promise.allSettled([call()])
        const { reason } = result as PromiseRejectedResult
        assert.instanceOf(reason, InvalidOption)
        assert.deepInclude(reason, { constructorName: "retryPromise", field: "signal", value })
      }
    }
    for (const context of ["{}", "null", "5"]) {
      const options: CallOptions & ContextOptions = JSON.parse(`{"context": ${context}}`)
      const [result] = await Promise.allSettled([retryPromise(f, awsStandard, options)])
      const { reason } = result as PromiseRejectedResult
      assert.instanceOf(reason, InvalidOption)
      assert.deepInclude(reason, { constructorName: "retryPromise", field: "context", value: JSON.parse(context) })
      assert.throws(() => make(awsStandard, options), InvalidOption, "context")
    }
    assert.strictEqual(sends, 0)
  })

  it("treats null as no signal, as fetch does", async () => {
    assert.strictEqual(await retryPromise(async () => 1, awsStandard, { signal: null }), 1)
    assert.strictEqual(await make(awsStandard)(async () => 1, { signal: null }), 1)
  })

  it("rejects when the policy is invalid", async () => {
    const none: typeof awsStandard = JSON.parse("{}")
    const [result] = await Promise.allSettled([retryPromise(() => 1, none)])
    assert.instanceOf((result as PromiseRejectedResult).reason, InvalidOption)
    assert.throws(() => make(none), InvalidOption)
  })
})

describe("the quota of a promise", () => {
  const drain = async (retry: <A>(f: AttemptFunction<A>) => Promise<A>) => {
    let sends = 0
    await Promise.allSettled([retry(() => Promise.reject(++sends && new Transient()))])
    return sends
  }
  const unhurried = () => RetryPolicy.capped("1 millis")(AwsModes.standard())

  it("is one for each policy object: an outage with one leaves the others full", async () => {
    const [one, other] = [unhurried(), unhurried()]
    let sends = 0
    for (let calls = 0; calls < 60; calls++) sends += await drain((f) => retryPromise(f, one))
    assert.strictEqual(sends, 60 + 100)
    assert.strictEqual(await drain((f) => retryPromise(f, one)), 1)
    assert.strictEqual(await drain((f) => retryPromise(f, other)), 3)
  })

  it("is one for each function that is made, as its options say", async () => {
    const policy = unhurried()
    const [one, other] = [make(policy, { quota: { capacity: 5 } }), make(policy, { quota: { capacity: 10 } })]
    assert.strictEqual(await drain(one), 2)
    assert.strictEqual(await drain(one), 1)
    assert.strictEqual(await drain(other), 3)
    assert.strictEqual(await drain(make(policy)), 3)
  })

  it("is that of the context, unless the options make one", async () => {
    const { balance, context } = world({ capacity: 5 })
    const { clock: _, ...real } = {
      clock: undefined,
      context: Context.make(RetryQuota.RetryQuota, Context.get(context, RetryQuota.RetryQuota))
    }
    assert.strictEqual(await drain(make(unhurried(), real)), 2)
    assert.strictEqual(balance(), 0)
    assert.strictEqual(await drain(make(unhurried(), real)), 1)
    assert.strictEqual(await drain(make(unhurried(), { ...real, quota: {} })), 3)
    assert.strictEqual(balance(), 0)
  })

  it("throws when it is impossible", () => {
    assert.throws(() => make(awsStandard, { quota: { capacity: 0 } }), InvalidOption, "capacity")
    assert.throws(() => make(awsAdaptive, { limiter: { beta: 2 } }), InvalidOption, "beta")
  })

  it("comes with a limiter where the policy asks for one, and only there", async () => {
    const busy = new Throttled({})
    for (
      const [policy, options, expected] of [
        [awsAdaptive, {}, [0, 2000]],
        [awsStandard, {}, [0, 500]],
        [awsStandard, { limiter: {} }, [0, 2000]]
      ] as const
    ) {
      const { clock, context } = world()
      const times: Array<number> = []
      const retry = make(policy, { context, ...options })
      await clock.until(retry(scripted([busy], () => times.push(clock.now))))
      assert.deepStrictEqual(times, [...expected])
    }
  })

  it("a limiter that fails fast ends a call with its own error, and rejects the next with RateLimitExceeded", async () => {
    const { clock, context } = world()
    const retry = make(awsAdaptive, { context, limiter: { onExceeded: "fail" } })
    const busy = new Throttled({})
    const ends = [await clock.until(retry(scripted([busy]))), await clock.until(retry(scripted([])))]
    const [retried, first] = ends.map((end) => (end as PromiseRejectedResult).reason)
    assert.strictEqual(retried, busy)
    assert.instanceOf(first, AdaptiveRateLimiter.RateLimitExceeded)
  })
})

describe("abort", () => {
  const reason = new Error("the user left")

  it("before the call: the function is never called", async () => {
    let sends = 0
    const [result] = await Promise.allSettled([
      retryPromise(() => ++sends, awsStandard, { signal: AbortSignal.abort(reason) })
    ])
    assert.deepStrictEqual(result, { status: "rejected", reason })
    assert.strictEqual(sends, 0)
  })

  for (const falsy of [null, 0, ""]) {
    it(`rejects with the reason, even ${JSON.stringify(falsy)}`, async () => {
      const controller = new AbortController()
      const result = retryPromise(() => new Promise(() => {}), awsStandard, { signal: controller.signal })
      controller.abort(falsy)
      assert.deepStrictEqual(await Promise.allSettled([result]), [{ status: "rejected", reason: falsy }])
      assert.deepStrictEqual(
        await Promise.allSettled([retryPromise(() => 1, awsStandard, { signal: AbortSignal.abort(falsy) })]),
        [{ status: "rejected", reason: falsy }]
      )
    })
  }

  it("in the backoff: rejects immediately, leaves no timer and no listener, gives the tokens back", async () => {
    const { balance, clock, context } = world()
    const controller = new AbortController()
    let sends = 0
    const result = retryPromise(() => Promise.reject(++sends && new Transient()), awsStandard, {
      context,
      signal: controller.signal
    })
    for (let turns = 0; turns < 5; turns++) await turn()
    assert.deepStrictEqual([sends, clock.sleepers.length, balance(), listeners(controller.signal)], [1, 1, 495, 1])
    controller.abort(reason)
    let settled: unknown
    void result.catch((error: unknown) => {
      settled = error
    })
    await Promise.resolve().then(() => {}).then(() => {})
    assert.strictEqual(settled, reason)
    assert.deepStrictEqual([sends, clock.sleepers.length, balance(), listeners(controller.signal)], [1, 0, 500, 0])
  })

  it("in a real backoff leaves no timer", async () => {
    const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length
    const before = timers()
    const controller = new AbortController()
    const policy = Backoff.fixed("1 hour")
    const calls = Array.from(
      { length: 50 },
      () => retryPromise(() => Promise.reject(reason), policy, { signal: controller.signal })
    )
    await turn()
    // The test runner has timers too, which may come and go.
    assert.approximately(timers() - before, 50, 5)
    controller.abort(reason)
    const results = await Promise.allSettled(calls)
    assert.isTrue(results.every((result) => result.status === "rejected" && result.reason === reason))
    assert.approximately(timers() - before, 0, 5)
  })

  it("while waiting for the quota: rejects immediately, leaves no timer, gives the tokens back", async () => {
    const { balance, clock, context } = world({ capacity: 5, refillPerSecond: 1, onExceeded: "wait" })
    const controller = new AbortController()
    const { signal } = controller
    const call = () => retryPromise(() => Promise.reject(new Transient()), awsStandard, { context, signal })
    const calls = [call(), call(), call()]
    for (let turns = 0; turns < 5; turns++) await turn()
    assert.strictEqual(balance(), 0)
    assert.isAtLeast(clock.sleepers.length, 2)
    controller.abort(reason)
    assert.isTrue((await Promise.allSettled(calls)).every((result) => "reason" in result && result.reason === reason))
    assert.deepStrictEqual([clock.sleepers.length, balance(), listeners(signal)], [0, 5, 0])
  })

  for (
    const [name, adaptive, quota, untilSent] of [
      [
        "what a first send costs",
        false,
        { capacity: 5, firstAttemptCost: 5, refillPerSecond: 1, onExceeded: "wait" },
        5000
      ],
      ["the limiter", true, {}, 2000]
    ] as const
  ) {
    it(`while waiting for ${name}: the function is never called, and who comes after waits no longer`, async () => {
      const env = world(quota)
      const { clock } = env
      const context: Context.Context<never> = adaptive ? limited(env) : env.context
      const controller = new AbortController()
      const once = RetryPolicy.maxAttempts(1)(awsStandard)
      await clock.until(retryPromise(() => Promise.reject(new Throttled({})), once, { context }))
      const start = clock.now
      let sends = 0
      const calls = Array.from(
        { length: 20 },
        () => retryPromise(() => ++sends, awsStandard, { context, signal: controller.signal })
      )
      for (let turns = 0; turns < 5; turns++) await turn()
      assert.isAtLeast(clock.sleepers.length, 1)
      controller.abort(reason)
      assert.isTrue((await Promise.allSettled(calls)).every((result) => "reason" in result && result.reason === reason))
      assert.deepStrictEqual([sends, clock.sleepers.length, listeners(controller.signal)], [0, 0, 0])
      assert.deepStrictEqual(await clock.until(retryPromise(() => clock.now - start, awsStandard, { context })), {
        status: "fulfilled",
        value: untilSent
      })
    })
  }

  it("in an attempt: its own signal is aborted with the same reason, its late failure is ignored", async () => {
    const unhandled: Array<unknown> = []
    const note = (error: unknown) => void unhandled.push(error)
    process.on("unhandledRejection", note)
    try {
      const controller = new AbortController()
      let fail: ((error: unknown) => void) | undefined
      const signals: Array<AbortSignal> = []
      const result = retryPromise(
        ({ signal }) => {
          signals.push(signal)
          return new Promise((_, reject) => {
            fail = reject
          })
        },
        awsStandard,
        { signal: controller.signal }
      )
      assert.notStrictEqual(signals[0], controller.signal)
      controller.abort(reason)
      assert.deepStrictEqual(await Promise.allSettled([result]), [{ status: "rejected", reason }])
      assert.strictEqual(signals[0]!.reason, reason)
      fail!(new Error("late"))
      for (let turns = 0; turns < 5; turns++) await turn()
      assert.deepStrictEqual(unhandled, [])
    } finally {
      process.off("unhandledRejection", note)
    }
  })

  it("by the function itself, while it is called, ends the call", async () => {
    for (const attempt of [1, 2]) {
      const { clock, context } = world()
      const controller = new AbortController()
      let sends = 0
      const result = await clock.until(retryPromise(
        () => {
          if (++sends === attempt) controller.abort(reason)
          throw new Transient()
        },
        awsStandard,
        { context, signal: controller.signal }
      ))
      assert.deepStrictEqual([result, sends], [{ status: "rejected", reason }, attempt])
    }
  })

  it("after the call changes nothing, and signals of attempts stay quiet", async () => {
    const controller = new AbortController()
    const signals: Array<AbortSignal> = []
    const retried = scripted([], ({ signal }) => signals.push(signal))
    assert.strictEqual(await retryPromise(retried, awsStandard, { signal: controller.signal }), "ok")
    controller.abort(reason)
    await turn()
    assert.isFalse(signals[0]!.aborted)
  })

  it("leaves the listeners of a long-lived signal flat over 10,000 calls", async () => {
    const { signal } = new AbortController()
    const retry = make(RetryPolicy.capped("1 millis")(AwsModes.standard()))
    const calls = [
      () => Promise.resolve(1),
      () => 1,
      () => Promise.reject(new Terminal()),
      () => {
        throw new Terminal()
      }
    ]
    let most = 0
    for (let round = 0; round < 2500; round++) {
      const running = calls.map((f) => retry<unknown>(f, { signal }))
      most = Math.max(most, listeners(signal))
      await Promise.allSettled(running)
      if (round % 500 === 0) assert.strictEqual(listeners(signal), 0)
    }
    assert.strictEqual(most, 1)
    assert.strictEqual(listeners(signal), 0)
  })

  it("at any step leaves the balance where the sends have put it", async () => {
    const base = new Scheduler.MixedScheduler()
    const lost: Array<number> = []
    let steps = 0
    for (;; steps++) {
      const { balance, clock, context } = world()
      const controller = new AbortController()
      let seen = 0
      let sends = 0
      const scheduler: Scheduler.Scheduler = {
        executionMode: base.executionMode,
        makeDispatcher: () => base.makeDispatcher(),
        shouldYield: (fiber) => {
          if (++seen === steps + 1) controller.abort(reason)
          return base.shouldYield(fiber)
        }
      }
      const result = await clock.until(retryPromise(
        () => Promise.reject(++sends && new Transient()),
        awsStandard,
        { context: Context.add(context, Scheduler.Scheduler, scheduler), signal: controller.signal }
      ))
      assert.strictEqual(result.status, "rejected")
      assert.strictEqual(listeners(controller.signal), 0)
      assert.strictEqual(clock.sleepers.length, 0)
      const retries = Math.max(0, sends - 1)
      // A retry takes its first step one scheduler step after it is handed over: until then it counts as sent.
      if (500 - balance() !== retries * 5) lost.push(steps)
      assert.include([retries * 5, (retries + 1) * 5], 500 - balance())
      if (!controller.signal.aborted) break
      assert.strictEqual((result as PromiseRejectedResult).reason, reason)
    }
    assert.isAbove(steps, 10)
    assert.isAtMost(lost.length, 2)
  })

  it("of 60 calls in their backoff leaves the quota full", async () => {
    const { balance, context } = world()
    const controller = new AbortController()
    const calls = Array.from(
      { length: 60 },
      () => retryPromise(() => Promise.reject(new Transient()), awsStandard, { context, signal: controller.signal })
    )
    for (let turns = 0; turns < 5; turns++) await turn()
    assert.strictEqual(balance(), 200)
    controller.abort()
    await Promise.allSettled(calls)
    assert.strictEqual(balance(), 500)
  })
})

describe("the law: retryPromise and withRetry send, wait, pay and end alike", () => {
  const errors = [
    new Transient(),
    new Throttled({ retryAfter: 1500 }),
    new TimedOut(),
    new Unsure(),
    new Terminal(),
    "what"
  ]

  type Outcome = (typeof errors)[number]

  /** Twenty calls with random outcomes, and everything observable about them. */
  const story = async (
    seed: number,
    quota: RetryQuota.Options,
    run: (send: () => Promise<string>, env: ReturnType<typeof world>) => Promise<string>
  ) => {
    const { next, random } = seeded(seed)
    const env = world(quota, random)
    const outcomes = Array.from({ length: 200 }, () => {
      const chance = Math.floor(next() * (errors.length + 4))
      return chance < 3 ? errors[chance] : chance < errors.length ? errors[chance % 4 === 3 ? chance : 0] : undefined
    })
    const seen: Array<unknown> = []
    for (let call = 0; call < 20; call++) {
      const result = await env.clock.until(run(() => {
        seen.push(env.clock.now)
        const outcome = outcomes.shift()
        return outcome === undefined ? Promise.resolve("ok") : Promise.reject(outcome)
      }, env))
      seen.push(result.status === "fulfilled" ? result.value : result.reason, env.clock.now, env.balance())
    }
    return seen
  }

  for (
    const [name, policy, quota] of [
      ["awsStandard", awsStandard, { capacity: 30 }],
      ["awsStandard2026", awsStandard2026, { capacity: 60 }],
      ["a quota that refills", awsStandard, { capacity: 10, refillPerSecond: 1, onExceeded: "wait" }],
      ["first attempts that cost", awsStandard, { capacity: 200, firstAttemptCost: 2 }],
      ["a deadline", RetryPolicy.deadline("2 seconds")(awsStandard), {}],
      [
        "a lifted schedule",
        RetryPolicy.fromSchedule(Schedule.fibonacci("100 millis")).pipe(
          RetryPolicy.maxAttempts(6),
          RetryPolicy.whileMaybeRetryable,
          RetryPolicy.quotaGated({ cost: 3 })
        ),
        { capacity: 50 }
      ]
    ] as const
  ) {
    it(`${name}, over 10 seeds`, async () => {
      let sends = 0
      for (let seed = 1; seed <= 10; seed++) {
        const promised = await story(seed, quota, (send, { context }) => retryPromise(send, policy, { context }))
        const effectful = await story(
          seed,
          quota,
          (send, { context }) =>
            Effect.runPromiseWith(context)(
              withRetry(Effect.tryPromise({ try: send, catch: (error) => error as Outcome }), policy)
            )
        )
        assert.deepStrictEqual(promised, effectful)
        sends += promised.length - 60
      }
      assert.isAbove(sends, 210)
    })
  }

  it("awsAdaptive, over 10 seeds", async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const contexts = new Map<unknown, ReturnType<typeof limited>>()
      const contextOf = (env: ReturnType<typeof world>) => {
        const known = contexts.get(env) ?? limited(env)
        contexts.set(env, known)
        return known
      }
      const promised = await story(
        seed,
        {},
        (send, env) => retryPromise(send, awsAdaptive, { context: contextOf(env) })
      )
      const effectful = await story(
        seed,
        {},
        (send, env) =>
          Effect.runPromiseWith(contextOf(env))(
            withRetry(Effect.tryPromise({ try: send, catch: (error) => error as Outcome }), awsAdaptive)
          )
      )
      assert.deepStrictEqual(promised, effectful)
      assert.strictEqual(contexts.size, 2)
    }
  })
})

describe("types", () => {
  interface Store {
    readonly get: Effect.Effect<number>
  }
  const Store = Context.Service<Store>("test/Store")
  class Odd extends Data.TaggedError("Odd") {}
  const stored = RetryPolicy.fromSchedule(
    Schedule.fromStep(Effect.map(Store, () => () => Effect.succeed<[number, Duration.Duration]>([1, Duration.zero])))
  )
  const options: CallOptions = {}

  it("give the value, and refuse a policy whose services are not provided", () => {
    expectTypeOf(() => retryPromise(() => 1, awsStandard)).returns.toEqualTypeOf<Promise<number>>()
    expectTypeOf(() => retryPromise(async () => "a", awsAdaptive, options)).returns.toEqualTypeOf<Promise<string>>()
    // @ts-expect-error it needs a Store
    void (() => retryPromise(() => 1, stored))
    // @ts-expect-error it needs a Store, still
    void (() => make(stored, {}))
    void (() => make(stored, { context: Context.make(Store, { get: Effect.succeed(1) }) }))
    const odd = RetryPolicy.fromSchedule(Schedule.identity<Odd>())
    // @ts-expect-error a promise may reject with anything
    void (() => retryPromise(() => 1, odd))
  })

  it("a policy that needs a service of the context has it", async () => {
    const context = Context.make(Store, { get: Effect.succeed(1) })
    assert.strictEqual(await retryPromise(scripted(["a", "b"]), stored, { context }), "ok")
    assert.strictEqual(await make(stored, { context })(scripted(["a", "b"])), "ok")
  })
})

describe("examples/promises.ts", () => {
  /** A client that fails with each of the errors in turn, then answers with the path, and stops at its signal. */
  const clientOf = (errors: ReadonlyArray<unknown>) => {
    const paths: Array<string> = []
    const client: Promises.Client = {
      get: (path, { signal }) =>
        new Promise((resolve, reject) => {
          const send = paths.push(path) - 1
          signal.addEventListener("abort", () => reject(signal.reason))
          if (send >= errors.length) resolve(path)
          else if (errors[send] !== "hangs") reject(errors[send])
        })
    }
    return { client, paths }
  }

  /** Lets faked time pass until the promise is settled. */
  const inNoTime = async <A>(promise: () => Promise<A>): Promise<PromiseSettledResult<A>> => {
    vi.useFakeTimers()
    try {
      let result: PromiseSettledResult<A> | undefined
      void Promise.allSettled([promise()]).then(([settled]) => {
        result = settled
      })
      while (result === undefined) {
        await vi.advanceTimersByTimeAsync(100)
        await turn()
      }
      return result
    } finally {
      vi.useRealTimers()
    }
  }

  const down = { status: 503 }

  it("getPage retries, and fails with the client's error", async () => {
    const passing = clientOf([down, down])
    assert.deepStrictEqual(await inNoTime(() => Promises.getPage(passing.client, "/")), {
      status: "fulfilled",
      value: "/"
    })
    assert.strictEqual(passing.paths.length, 3)
    const failing = clientOf([down, down, down])
    assert.deepStrictEqual(await inNoTime(() => Promises.getPage(failing.client, "/")), {
      status: "rejected",
      reason: down
    })
  })

  it("getPage stops when the caller does", async () => {
    const { client, paths } = clientOf(["hangs"])
    const controller = new AbortController()
    const page = Promises.getPage(client, "/", controller.signal)
    controller.abort("enough")
    assert.deepStrictEqual(await Promise.allSettled([page]), [{ status: "rejected", reason: "enough" }])
    assert.strictEqual(paths.length, 1)
  })

  it("ordersAndCustomers: the outage of one leaves the other its retries", async () => {
    const { client, paths } = clientOf(Array.from({ length: 200 }, () => down))
    const { customer, order } = Promises.ordersAndCustomers(client)
    for (let call = 0; call < 10; call++) await inNoTime(() => order(call))
    assert.strictEqual(paths.length, 10 + 20)
    await inNoTime(() => customer(1))
    assert.strictEqual(paths.length, 10 + 20 + 3)
  })

  it("getQuickly retries an attempt that hangs", async () => {
    const { client, paths } = clientOf(["hangs"])
    const page = await inNoTime(() => Promises.getQuickly(client, "/", new AbortController().signal, 1))
    assert.deepStrictEqual([page, paths.length], [{ status: "fulfilled", value: "/" }, 2])
  })

  it("sharing: a promise pays from the quota of the runtime", async () => {
    const runtime = ManagedRuntime.make(RetryQuota.layer({ capacity: 50 }))
    const { client } = clientOf([down, down])
    assert.deepStrictEqual(await inNoTime(() => Promises.sharing(client, runtime)), {
      status: "fulfilled",
      value: { page: "/", balance: 45 }
    })
  })
})

// Last, because once `outermostOnly` is used, attempts are marked and calls that succeed take another path.
describe("nesting", () => {
  it("inside an attempt of another call multiplies, whatever the policy: it cannot be detected", async () => {
    const { clock, context } = world()
    const policy = Backoff.fixed("1 second").pipe(RetryPolicy.maxAttempts(3), RetryPolicy.outermostOnly)
    let sends = 0
    const inner = () => retryPromise(() => Promise.reject(++sends), policy, { context })
    await clock.until(retryPromise(inner, policy, { context }))
    assert.strictEqual(sends, 9)
  })
})
