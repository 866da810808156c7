/** Policies of policies, conditions on the error, and the gates that a policy requires. */
import { assert, describe, it } from "@effect/vitest"
import {
  awsStandard,
  awsStandard2026,
  Backoff,
  type RetryDecision,
  RetryPolicy,
  RetryQuota,
  type RetryQuotaStore,
  SendGate,
  withRetry,
  withRetryOrElse
} from "effect-retry"
import { ConcurrencyLimiter, fixed, layer as limiterLayer } from "effect-retry/ConcurrencyLimiter"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { accountOf, type AnyPolicy, countingGate, lineOf, noting } from "../utils/account.ts"
import { Throttled, Transient } from "../utils/call.ts"
import { drivers, ending, type Policy } from "../utils/ending.ts"

const loops = {
  withRetry: (policy: AnyPolicy) => accountOf((call) => withRetry(call, policy), 9),
  "Effect.retry": (policy: AnyPolicy) => accountOf((call) => Effect.retry(call, policy), 9)
}

const slow = Backoff.fixed(100).pipe(RetryPolicy.maxAttempts(3), RetryPolicy.quotaGated)
const quick = Backoff.fixed(50).pipe(RetryPolicy.maxAttempts(4), RetryPolicy.quotaGated({ cost: 7 }))
const named = Schedule.exponential("100 millis")

/** A call that fails nine times, with 100 tokens. */
const rows: ReadonlyArray<readonly [name: string, AnyPolicy, account: string]> = [
  ["never", RetryPolicy.never, "0; 100; 1/1; - max-attempts"],
  [
    "immediate",
    RetryPolicy.immediate.pipe(RetryPolicy.maxAttempts(3)),
    "0 0 0; 100; 3/3; - r0 - r0 - max-attempts"
  ],
  ["max", RetryPolicy.max([slow, quick]), "0 100 200; 86; 3/3; - r7 - r7 - max-attempts"],
  [
    "concat",
    slow.pipe(RetryPolicy.concat(quick)),
    "0 100 200 250 300 350; 69; 6/6; - r5 - r5 - r7 - r7 - r7 - max-attempts"
  ],
  [
    "choose",
    RetryPolicy.choose(({ attempt }) => attempt % 2 === 1 ? slow : quick),
    "0 100 150; 88; 3/3; - r5 - r7 - max-attempts"
  ],
  [
    "while",
    slow.pipe(RetryPolicy.while(({ attempt }) => attempt < 2)),
    "0 100; 95; 2/2; - r5 - condition"
  ],
  [
    "two conditions",
    slow.pipe(RetryPolicy.while(() => true), RetryPolicy.while(() => false)),
    "0; 100; 1/1; - condition"
  ],
  ["withMaxAttempts", slow.pipe(RetryPolicy.withMaxAttempts(2)), "0 100; 95; 2/2; - r5 - max-attempts"],
  [
    "combinators of a plain schedule",
    named.pipe(RetryPolicy.jittered, RetryPolicy.capped(150), RetryPolicy.quotaGated, RetryPolicy.maxAttempts(4)),
    "0 50 150 300; 85; 4/4; - r5 - r5 - r5 - max-attempts"
  ],
  [
    "a policy around a schedule around a policy",
    slow.pipe(Schedule.upTo({ times: 1 }), RetryPolicy.mapDelay(() => 10)),
    "0 10; 95; 2/2; - r5 - schedule"
  ]
]

describe.each(Object.entries(loops))("by %s", (_, run) => {
  it.effect.each(rows)("%s", ([, policy, account]) =>
    Effect.gen(function*() {
      assert.strictEqual(lineOf(yield* run(policy)), account)
    }))
})

/** What a policy decides about failures in turn. */
const decisions = <E>(policy: RetryPolicy.RetryPolicy<E>, errors: ReadonlyArray<E>) =>
  Effect.gen(function*() {
    const step = yield* Schedule.toStep(policy)
    const seen: Array<number | string> = []
    for (const error of errors) {
      const decision = yield* Effect.map(step(0, error), ([decision]) => decision).pipe(
        Effect.catchCause((cause) =>
          Effect.succeed(cause.reasons.filter(Cause.isFailReason)[0]!.error.value as RetryDecision.RetryDecision)
        )
      )
      seen.push(decision._tag === "Retry" ? decision.delayMillis : decision.reason)
    }
    return seen
  })

describe("whenThrottled", () => {
  const [other, throttled] = [new Transient(), new Throttled({})]

  it.effect("keeps the limits of both", () =>
    Effect.gen(function*() {
      const policy = Backoff.fixed(1).pipe(
        RetryPolicy.maxAttempts(4),
        RetryPolicy.whenThrottled(
          Backoff.linear(10).pipe(RetryPolicy.while(({ attempt }) => attempt !== 3), RetryPolicy.capped(30))
        )
      )
      assert.deepStrictEqual(yield* decisions(policy, [other, throttled, other, throttled]), [1, 20, 1, "max-attempts"])
      assert.deepStrictEqual(yield* decisions(policy, [throttled, throttled, throttled]), [10, 20, "condition"])
    }))

  it.effect("takes any schedules", () =>
    Effect.gen(function*() {
      const policy = RetryPolicy.whenThrottled(Schedule.spaced("1 second"), Schedule.spaced("1 minute")).pipe(
        RetryPolicy.mapDelay((delay) => delay)
      )
      assert.deepStrictEqual(yield* decisions(policy, [other, throttled, other]), [1000, 60_000, 1000])
    }))
})

describe("choose", () => {
  it.effect("counts failures once, for all of them", () =>
    Effect.gen(function*() {
      const [one, other] = [Backoff.linear(1), Backoff.linear(100)]
      const policy = RetryPolicy.choose(({ info }) => info?.throttling ? other : one)
      const [calm, throttled] = [new Transient(), new Throttled({})]
      assert.deepStrictEqual(yield* decisions(policy, [calm, throttled, calm, throttled]), [1, 200, 3, 400])
    }))

  it.effect("counts failures once, for policies of policies too", () =>
    Effect.gen(function*() {
      const odd = RetryPolicy.max([
        Backoff.linear(10).pipe(RetryPolicy.maxAttempts(7)),
        RetryPolicy.immediate
      ])
      const even = RetryPolicy.concat(
        RetryPolicy.maxAttempts(Backoff.linear(100), 4),
        Backoff.linear(1000)
      )
      const policy = RetryPolicy.choose(({ attempt }) => attempt % 2 === 1 ? odd : even)
      const failures = Array.from({ length: 7 }, () => new Transient())
      assert.deepStrictEqual(yield* decisions(policy, failures), [10, 200, 30, 1000, 50, 3000, "max-attempts"])
    }))

  it.effect("has the randomness of the caller in its failure, as while has", () =>
    Effect.gen(function*() {
      const drawn: Array<number> = []
      const draw = ({ random }: RetryPolicy.Failure) => drawn.push(random.nextDoubleUnsafe()) > 0
      const policy = RetryPolicy.choose((failure) => draw(failure) ? RetryPolicy.immediate : RetryPolicy.never)
      yield* decisions(policy.pipe(RetryPolicy.while(draw)), [new Transient()])
      assert.strictEqual(drawn.length, 2)
    }))

  it.effect("what is no schedule is a defect that says so, and costs no token", () =>
    Effect.gen(function*() {
      const policy = RetryPolicy.choose(() => 5 as unknown as RetryPolicy.RetryPolicy).pipe(RetryPolicy.quotaGated)
      for (const call of [withRetry(Effect.fail("no"), policy), Effect.retry(Effect.fail("no"), policy)]) {
        const exit = yield* Effect.exit(call)
        assert.include(String(exit), "RetryPolicy.choose: policy must be a schedule")
      }
      assert.strictEqual(yield* RetryQuota.balance, 500)
    }).pipe(Effect.provide(RetryQuota.layer())))
})

it("limits of joined policies", () => {
  const of = (policy: AnyPolicy) => {
    const { maxAttempts, quota } = RetryPolicy.limits(policy)
    return [maxAttempts, quota?.cost]
  }
  assert.deepStrictEqual(of(RetryPolicy.max([slow, quick])), [3, 7])
  assert.deepStrictEqual(of(RetryPolicy.min([slow, quick])), [4, 5])
  assert.deepStrictEqual(of(RetryPolicy.min([slow, Schedule.forever])), [Infinity, undefined])
  assert.deepStrictEqual(of(RetryPolicy.max([slow, quick]).pipe(RetryPolicy.maxAttempts(2))), [2, 7])
  assert.deepStrictEqual(of(RetryPolicy.concat(slow, quick)), [6, 7])
  assert.deepStrictEqual(of(awsStandard2026.pipe(RetryPolicy.withMaxAttempts(5))), [5, 14])
})

describe("requires", () => {
  class Closed extends Data.TaggedError("Closed") {
    readonly [SendGate.Refused] = true
  }
  class Door extends SendGate.Service<Door, Closed>()("test/Door") {}
  const closed = SendGate.layer(Door, { order: 1, enter: () => Effect.fail(new Closed()) })

  it.effect("a gate of one's own refuses, and its error is that of the call", () =>
    Effect.gen(function*() {
      const policy = slow.pipe(RetryPolicy.requires(Door))
      const call: Effect.Effect<string, Transient, RetryQuota.RetryQuota> = Effect.fail(new Transient()).pipe(
        withRetry(policy),
        Effect.catchTag("Closed", () => Effect.succeed("closed")),
        Effect.provide(closed)
      )
      assert.strictEqual(yield* call, "closed")
      assert.strictEqual(yield* RetryQuota.balance, 500)
      assert.deepStrictEqual(RetryPolicy.limits(policy).gates, ["test/Door"])
      assert.include(String(policy), "RetryPolicy.requires(Door)")
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("a gate of the library holds back sends", () =>
    Effect.gen(function*() {
      const policy = RetryPolicy.max([slow.pipe(RetryPolicy.requires(ConcurrencyLimiter)), Schedule.forever])
      let inFlight = 0
      let most = 0
      const call = Effect.acquireUseRelease(
        Effect.sync(() => most = Math.max(most, ++inFlight)),
        () => Effect.sleep(10),
        () => Effect.sync(() => inFlight--)
      )
      const fiber = yield* Effect.forkChild(
        Effect.forEach(Array.from({ length: 10 }), () => withRetry(call, policy), { concurrency: "unbounded" })
      )
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)
      assert.strictEqual(most, 2)
      assert.deepStrictEqual(RetryPolicy.limits(policy).gates, ["effect-retry/ConcurrencyLimiter"])
      assert.include(String(policy), "RetryPolicy.requires(ConcurrencyLimiter.ConcurrencyLimiter)")
    }).pipe(Effect.provide([limiterLayer({ rule: fixed(2) }), RetryQuota.layer()])))

  it("does not make sends look for a gate that nobody provides", () => {
    let isRead = false
    class Quiet extends SendGate.Service<Quiet>()("test/Quiet") {}
    const base = Object.getPrototypeOf(Quiet)
    const { get } = Object.getOwnPropertyDescriptor(base, "key")!
    Object.defineProperty(base, "key", {
      configurable: true,
      get: () => {
        isRead = true
        return get!()
      }
    })
    RetryPolicy.requires(slow, Quiet)
    assert.isFalse(isRead)
    assert.isTrue(Context.isKey(Quiet))
  })
})

it.effect("the reason of a condition reaches the fallback", () =>
  Effect.gen(function*() {
    const policy = awsStandard.pipe(
      RetryPolicy.while(({ error }: RetryPolicy.Failure<Transient>) => error._tag !== "Transient")
    )
    const reason = yield* Effect.fail(new Transient()).pipe(
      withRetryOrElse(policy, (_, { reason }) => Effect.succeed(reason))
    )
    assert.strictEqual(reason, "condition")
  }).pipe(Effect.provide(RetryQuota.layer())))

describe("provided", () => {
  /** A policy with 20 tokens and a gate of its own, and how often its layer was built. */
  const brought = () => {
    let builds = 0
    const { layer, passes } = countingGate()
    const quota = Layer.tap(RetryQuota.layer({ capacity: 20 }), () => Effect.sync(() => void builds++))
    const policy: RetryPolicy.RetryPolicy = Backoff.fixed(100).pipe(
      RetryPolicy.maxAttempts(3),
      RetryPolicy.quotaGated,
      RetryPolicy.provided(Layer.merge(quota, layer))
    )
    return { policy, passes, builds: () => builds }
  }
  const failing = Effect.fail(new Transient())
  const ways: Readonly<
    Record<
      string,
      (call: Effect.Effect<never, Transient>, policy: RetryPolicy.RetryPolicy) => Effect.Effect<unknown, unknown>
    >
  > = {
    withRetry: (call, policy) => withRetry(call, policy),
    "Effect.retry": (call, policy) => Effect.retry(call, policy),
    "Effect.retry, joined": (call, policy) => Effect.retry(call, RetryPolicy.max([policy, RetryPolicy.immediate])),
    "withRetry, chosen": (call, policy) => withRetry(call, RetryPolicy.choose(() => policy)),
    "Effect.retry, inside Schedule": (call, policy) => Effect.retry(call, Schedule.max([policy, Schedule.forever])),
    "withRetry, inside Schedule": (call, policy) => withRetry(call, Schedule.max([policy, Schedule.forever])),
    RetryStrategy: (call, policy) =>
      Effect.flatMap(
        RetryStrategy.make(policy),
        (strategy) => Effect.provideService(RetryStrategy.run(call), RetryStrategy.RetryStrategy, strategy)
      )
  }
  const late = ["withRetry, chosen", "withRetry, inside Schedule"]

  it.effect.each(Object.entries(ways))("brings quota and gates: %s", ([name, drive]) =>
    Effect.gen(function*() {
      const { builds, passes, policy } = brought()
      const seen: Array<boolean> = []
      const call = Effect.andThen(
        Effect.contextWith((context: Context.Context<never>) =>
          Effect.sync(() => seen.push(Context.getOrUndefined(context, RetryQuota.RetryQuota) !== undefined))
        ),
        failing
      )
      const fiber = yield* Effect.forkChild(
        Effect.all([0, 1, 2, 3].map(() => Effect.exit(drive(call, policy))))
      )
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)
      // 20 tokens are 4 retries: two calls of three sends, then single ones.
      assert.strictEqual(seen.length, 8)
      assert.isFalse(seen.some((it) => it))
      assert.strictEqual(builds(), 1)
      const unseen = late.includes(name) ? 4 : 0
      assert.deepStrictEqual(passes, { entered: 8 - unseen, settled: 8 - unseen, canceled: 0 })
    }))

  it.effect("a build that fails is an error of the call, and is tried again", () =>
    Effect.gen(function*() {
      let builds = 0
      const layer = Layer.unwrap(
        Effect.suspend(() => ++builds === 1 ? Effect.fail("no redis") : Effect.succeed(RetryQuota.layer()))
      )
      const policy = awsStandard.pipe(RetryPolicy.provided(layer))
      assert.strictEqual(yield* Effect.flip(withRetry(Effect.succeed(1), policy)), "no redis")
      assert.strictEqual(yield* withRetry(Effect.succeed(1), policy), 1)
      assert.strictEqual(yield* Effect.retry(Effect.succeed(1), policy), 1)
      assert.strictEqual(builds, 2)
    }))

  type AnyFallible = RetryPolicy.RetryPolicy<unknown, string>
  const unbuilt: AnyFallible = RetryPolicy.provided(
    slow,
    Layer.effect(RetryQuota.RetryQuota, Effect.fail("no redis"))
  )
  const orElse = () => Effect.succeed("else")
  const forms: Readonly<
    Record<string, (call: Effect.Effect<string, Transient>, policy: AnyFallible) => Effect.Effect<string, unknown>>
  > = {
    withRetry: (call, policy) => withRetry(call, policy),
    "Effect.retry": (call, policy) => Effect.retry(call, policy),
    withRetryOrElse: (call, policy) => withRetryOrElse(call, policy, orElse),
    "Effect.retryOrElse": (call, policy) => Effect.retryOrElse(call, policy, orElse),
    "withRetry of a join": (call, policy) => withRetry(call, RetryPolicy.max([RetryPolicy.immediate, policy])),
    "Effect.retry of a join": (call, policy) => Effect.retry(call, RetryPolicy.max([RetryPolicy.immediate, policy])),
    "Effect.retry of a Schedule.max": (call, policy) =>
      Effect.retry(call, Schedule.max([policy, RetryPolicy.immediate])),
    "Effect.retry of another Schedule.max": (call, policy) =>
      Effect.retry(call, Schedule.max([RetryPolicy.immediate, policy]))
  }

  it.effect.each(Object.entries(forms))(
    "where a build fails, nothing is sent: %s",
    ([, run]) =>
      Effect.gen(function*() {
        const { notes, observe } = noting()
        const { layer: gate, passes } = countingGate()
        let sends = 0
        const call = Effect.suspend(() => (sends++, failing))
        const error = yield* Effect.flip(Effect.provide(observe(run(call, unbuilt)), gate))
        assert.deepStrictEqual([error, sends, passes.entered, notes], ["no redis", 0, 0, []])
      })
  )

  const failingLate: Readonly<Record<string, AnyFallible>> = {
    "a choice": RetryPolicy.choose(() => unbuilt),
    "a part that begins later": RetryPolicy.fromSchedule(Schedule.concat(Schedule.recurs(0), unbuilt))
  }

  it.effect.each(Object.entries(failingLate))(
    "where a build fails later, the call has ended, once: %s",
    ([, policy]) =>
      Effect.gen(function*() {
        for (const run of [forms["withRetry"]!, forms["Effect.retry"]!]) {
          const { notes, observe } = noting()
          assert.strictEqual(yield* Effect.flip(observe(run(failing, policy))), "no redis")
          assert.deepStrictEqual(notes, ["-", "schedule"])
        }
      })
  )

  it.effect("the fallback does not see the services", () =>
    Effect.gen(function*() {
      const { policy } = brought()
      const own = withRetry(failing, slow).pipe(Effect.exit, Effect.andThen(RetryQuota.balance))
      const fiber = yield* Effect.forkChild(
        withRetryOrElse(failing, policy, () => own).pipe(Effect.provide(RetryQuota.layer({ capacity: 50 })))
      )
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* Fiber.join(fiber), 40)
    }))

  it("prints", () => {
    assert.strictEqual(
      String(RetryPolicy.never.pipe(RetryPolicy.provided(RetryQuota.layer()))),
      "RetryPolicy.never.pipe(RetryPolicy.provided(<layer>))"
    )
  })
})

const held = (answer: ReturnType<RetryQuotaStore.RetryQuotaStore["reserve"]>): RetryQuotaStore.Reservation => {
  assert(typeof answer === "object")
  return { cost: answer.cost, giveBack: () => answer.giveBack(), spend: () => answer.spend() }
}

describe("what a join takes over from what is around it, and leaves to it", () => {
  const failing = Effect.fail(new Transient())
  const ended = <A, E, R>(self: Effect.Effect<A, E, R>) =>
    Effect.gen(function*() {
      const started = yield* Clock.currentTimeMillis
      const fiber = yield* Effect.forkChild(Effect.andThen(Effect.exit(self), Clock.currentTimeMillis))
      yield* TestClock.adjust("1 hour")
      return { millis: (yield* Fiber.join(fiber)) - started }
    })
  const second = Backoff.fixed("1 second").pipe(RetryPolicy.maxAttempts(4), RetryPolicy.quotaGated)
  const dear = second.pipe(RetryPolicy.withQuota({ cost: 7 }))

  it.effect("a deadline around it bounds its wait for tokens", () =>
    Effect.gen(function*() {
      for (const policy of [second, RetryPolicy.max([second, second]), RetryPolicy.min([second, second])]) {
        const { millis } = yield* ended(withRetry(failing, policy.pipe(RetryPolicy.deadline("5 seconds"))))
        assert.isAtMost(millis, 5000)
      }
    }).pipe(
      Effect.provide(RetryQuota.layer({ capacity: 5, initial: 0, onExceeded: "wait", refillPerSecond: 0.01 }))
    ))

  const chosen: AnyPolicy = RetryPolicy.choose(() => second)
  const free = { retries: Schedule.spaced("1 minute"), stops: RetryPolicy.never, ends: Schedule.recurs(0) }
  const waits: ReadonlyArray<readonly [name: string, policy: AnyPolicy, millis: number, reason: string]> = [
    ["max, where another stops", RetryPolicy.max([second, free.stops]), 0, "max-attempts"],
    ["max, where a schedule ends", RetryPolicy.max([second, free.ends]), 0, "schedule"],
    ["max in a max that stops", RetryPolicy.max([RetryPolicy.max([second, second]), free.stops]), 0, "max-attempts"],
    [
      "min, where another goes on",
      RetryPolicy.min([second, free.retries]).pipe(RetryPolicy.maxAttempts(2)),
      60_000,
      ""
    ],
    ...[chosen, RetryPolicy.max([second, RetryPolicy.immediate]), RetryPolicy.concat(second, second)].map((inside) =>
      [
        "a policy of policies in a min, where another goes on",
        RetryPolicy.min([free.retries, inside]).pipe(RetryPolicy.maxAttempts(2)),
        60_000,
        ""
      ] as const
    ),
    ["max, for the dearest", RetryPolicy.max([second, dear]).pipe(RetryPolicy.maxAttempts(2)), 701_000, ""],
    ["max, for the dearest", RetryPolicy.max([dear, second]).pipe(RetryPolicy.maxAttempts(2)), 701_000, ""],
    ["min, for the cheapest", RetryPolicy.min([dear, second]).pipe(RetryPolicy.maxAttempts(2)), 501_000, ""],
    ["min, for the cheapest", RetryPolicy.min([second, dear]).pipe(RetryPolicy.maxAttempts(2)), 501_000, ""]
  ]

  for (const [name, policy, millis, reason] of waits) {
    for (const { form, run } of drivers) {
      it.effect(`waits for tokens only while its answer depends on them: ${name}: ${form}`, () =>
        Effect.gen(function*() {
          const { atMillis, stops } = yield* ending(run(failing, policy as Policy))
          assert.deepStrictEqual([atMillis, stops[0]!.reason], [millis, reason === "" ? "max-attempts" : reason])
        }).pipe(
          Effect.provide(RetryQuota.layer({ capacity: 10, initial: 0, onExceeded: "wait", refillPerSecond: 0.01 }))
        ))
    }
  }

  const dearer = second.pipe(RetryPolicy.withQuota({ cost: 9 }))
  const mins: ReadonlyArray<readonly [costs: string, policies: ReadonlyArray<AnyPolicy>, cost: number]> = [
    ["5, 7", [second, dear], 5],
    ["7, 5", [dear, second], 5],
    ["7, 9, 5", [dear, dearer, second], 5],
    ["0, 5", [free.retries, second], 0],
    ["5, 0", [second, free.retries], 0]
  ]

  for (const [costs, policies, cost] of mins) {
    for (const { form, run } of drivers) {
      it.effect(`min pays the cheapest of ${costs} also in a remote store that cannot resize: ${form}`, () =>
        Effect.gen(function*() {
          const quota = yield* RetryQuota.make({ capacity: 100 })
          const { store } = quota
          const reserve: typeof store.reserve = (cost, clock) => (_patience, hold) =>
            Effect.sync(() => {
              const { giveBack, spend } = held(store.reserve(cost, clock))
              hold({ cost, giveBack, spend })
            })
          const remote = RetryQuota.fromStore({
            capacity: 100,
            successIncrement: 1,
            firstAttemptCost: 0,
            onExceeded: "stop",
            reserve,
            deposit: (tokens, clock) => store.deposit(tokens, clock),
            balance: (clock) => store.balance(clock)
          })
          const policy = RetryPolicy.min(policies).pipe(RetryPolicy.maxAttempts(2))
          yield* ending(Effect.provideService(run(failing, policy), RetryQuota.RetryQuota, remote))
          assert.strictEqual(yield* quota.balance, 100 - cost)
        }))
    }
  }

  it.effect("a part of a concat that waits for no tokens has not ended", () =>
    Effect.gen(function*() {
      const endless = RetryPolicy.withMaxAttempts(second, Infinity)
      const sentAt = (policy: AnyPolicy) =>
        Effect.gen(function*() {
          const quota = RetryQuota.layer({ capacity: 10, initial: 0, onExceeded: "wait", refillPerSecond: 0.01 })
          const at: Array<number> = []
          const started = yield* Clock.currentTimeMillis
          const call = Effect.andThen(Clock.currentTimeMillis, (now) => {
            at.push(now - started)
            return failing
          })
          const limited = RetryPolicy.min([policy, free.retries]).pipe(RetryPolicy.maxAttempts(12))
          yield* ended(Effect.provide(withRetry(call, limited), quota))
          return at
        })
      const at = yield* sentAt(endless)
      assert.strictEqual(at[10], 541_000)
      assert.deepStrictEqual(yield* sentAt(RetryPolicy.concat(endless, RetryPolicy.never)), at)
    }))

  it.effect("a delay past a deadline inside it is not slept", () =>
    Effect.gen(function*() {
      const late = RetryPolicy.max([second.pipe(RetryPolicy.deadline("5 seconds")), Schedule.spaced("1 minute")])
      assert.strictEqual((yield* ended(withRetry(failing, late))).millis, 0)
      assert.strictEqual((yield* ended(Effect.retry(failing, late))).millis, 0)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("a choice finds a schedule again, whose count goes on", () =>
    Effect.gen(function*() {
      const two = Schedule.recurs(2)
      let sends = 0
      const call = Effect.suspend(() => (sends++, failing))
      yield* Effect.exit(Effect.retry(call, RetryPolicy.choose(() => two)))
      assert.strictEqual(sends, 3)
    }))

  it.effect("a policy with a quota of its own pays from that, wherever it stands", () =>
    Effect.gen(function*() {
      const own = second.pipe(RetryPolicy.provided(RetryQuota.layer({ capacity: 5 })))
      for (const policy of [RetryPolicy.choose(() => own), RetryPolicy.max([own, Schedule.recurs(9)])]) {
        yield* ended(withRetry(failing, policy))
        assert.strictEqual(yield* RetryQuota.balance, 500)
      }
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("a retried stream in a retried stream has a run of its own", () =>
    Effect.gen(function*() {
      const outer = second.pipe(RetryPolicy.withMaxAttempts(2))
      const stream = Stream.fromEffect(failing).pipe(Stream.retry(second), Stream.retry(outer))
      yield* ended(Stream.runDrain(stream))
      assert.strictEqual(yield* RetryQuota.balance, 500 - 5 * (3 + 1 + 3))
    }).pipe(Effect.provide(RetryQuota.layer())))
})
