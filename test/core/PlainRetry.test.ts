/**
 * A policy as a plain schedule. One table holds for `withRetry` and for the loops of Effect: when each send is made, the
 * balance after the call, the passes of a gate, the notifications. It runs on each version of Effect that the peer range
 * admits: `.ci/versions.mjs`.
 */
import { assert, describe, it } from "@effect/vitest"
import { attempt, awsStandard, awsStandard2026, Backoff, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as Channel from "effect/Channel"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as ExecutionPlan from "effect/ExecutionPlan"
import * as Fiber from "effect/Fiber"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { accountOf, type AnyPolicy, type Call, type Drive, lineOf } from "../utils/account.ts"
import { Transient } from "../utils/call.ts"

type Loop = <A, E, R>(self: Effect.Effect<A, E, R>, policy: AnyPolicy) => Effect.Effect<A, E, R | RetryQuota.RetryQuota>

const loops: ReadonlyArray<readonly [name: string, loop: Loop]> = [
  ["withRetry", (self, policy) => withRetry(self, policy)],
  ["Effect.retry", (self, policy) => Effect.retry(self, policy)]
]

const P = Backoff.fixed(100).pipe(RetryPolicy.maxAttempts(3), RetryPolicy.quotaGated({ cost: 5 }))
const R = Backoff.fixed(50).pipe(RetryPolicy.maxAttempts(4), RetryPolicy.quotaGated({ cost: 7 }))
const always = 9
const failing = Effect.fail(new Transient())
const call = (fails: number, then: Effect.Effect<string> = Effect.succeed("ok")): Call => {
  let sends = 0
  return Effect.suspend((): Call => ++sends <= fails ? failing : then)
}

/** Starts an effect in a fiber that lives on when it has ended. */
const started = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.forkChild(Effect.andThen(Effect.exit(self), Effect.never))

const request = HttpClientRequest.get("http://x.test/")
const client = (call: Call, status = 200) =>
  HttpClient.make((request) =>
    Effect.mapBoth(call, {
      onSuccess: () => HttpClientResponse.fromWeb(request, new Response("x", { status })),
      onFailure: (cause) =>
        new HttpClientError.HttpClientError({ reason: new HttpClientError.TransportError({ request, cause }) })
    })
  )

describe("facts", () => {
  const facts: ReadonlyArray<
    readonly [
      name: string,
      expected: number,
      quota: RetryQuota.Options,
      run: (loop: Loop) => Effect.Effect<number, Transient, RetryQuota.RetryQuota>
    ]
  > = [
    ...([["awsStandard", 1100, awsStandard], ["awsStandard2026", 1035, awsStandard2026]] as const).map((
      [name, expected, policy]
    ) =>
      [`sends of 1,000 calls of a dead service under ${name}`, expected, {}, (loop: Loop) =>
        Effect.gen(function*() {
          let sends = 0
          const dead = Effect.suspend(() => (sends++, failing))
          for (let n = 0; n < 1000; n++) {
            const fiber = yield* Effect.forkChild(Effect.exit(loop(dead, policy)))
            yield* TestClock.adjust("1 minute")
            yield* Fiber.join(fiber)
          }
          return sends
        })] as const
    ),
    ["balance of a dry quota after 500 good calls of one fiber", 500, { initial: 0 }, (loop) =>
      Effect.gen(function*() {
        for (let n = 0; n < 500; n++) yield* loop(call(0), awsStandard)
        return yield* RetryQuota.balance
      })],
    [
      "balance of a dry quota after 500 good calls of a fiber each",
      500,
      { initial: 0 },
      (loop) =>
        Effect.gen(function*() {
          for (let n = 0; n < 500; n++) yield* Fiber.join(yield* Effect.forkChild(loop(call(0), awsStandard)))
          return yield* RetryQuota.balance
        })
    ],
    ["balance when a retry has succeeded, in a fiber that lives on", 500, {}, (loop) =>
      Effect.gen(function*() {
        yield* started(loop(call(1), awsStandard))
        yield* TestClock.adjust("1 second")
        return yield* RetryQuota.balance
      })],
    ["balance after an interruption in the delay", 500, {}, (loop) =>
      Effect.gen(function*() {
        const fiber = yield* Effect.forkChild(loop(call(always), awsStandard))
        yield* TestClock.adjust(0)
        yield* Fiber.interrupt(fiber)
        return yield* RetryQuota.balance
      })],
    ["balance after an interruption of a retry in flight", 495, {}, (loop) =>
      Effect.gen(function*() {
        const fiber = yield* Effect.forkChild(loop(call(1, Effect.never), awsStandard))
        yield* TestClock.adjust("5 seconds")
        yield* Fiber.interrupt(fiber)
        return yield* RetryQuota.balance
      })],
    ["balance after a retry with a defect that its fiber survives", 495, {}, (loop) =>
      Effect.gen(function*() {
        yield* started(loop(call(1, Effect.die("defect")), awsStandard))
        yield* TestClock.adjust("5 seconds")
        return yield* RetryQuota.balance
      })],
    [
      "retries in flight of 50 calls whose retries hang, with 20 tokens",
      4,
      { capacity: 20 },
      (loop) =>
        Effect.gen(function*() {
          let inFlight = 0
          const hanging = Effect.suspend(() => (inFlight++, Effect.never))
          for (let n = 0; n < 50; n++) {
            yield* Effect.forkChild(loop(call(1, hanging), awsStandard))
            yield* TestClock.adjust("1 second")
          }
          yield* TestClock.adjust("5 seconds")
          return inFlight
        })
    ],
    ["sends in flight of ten callers under ConcurrencyLimiter.fixed(2)", 2, {}, (loop) =>
      Effect.gen(function*() {
        let inFlight = 0
        let most = 0
        let sends = 0
        const slow = Effect.acquireUseRelease(
          Effect.sync(() => (sends++, most = Math.max(most, ++inFlight))),
          () => Effect.sleep("1 second"),
          () => Effect.sync(() => inFlight--)
        )
        for (let n = 0; n < 10; n++) yield* Effect.forkChild(Effect.exit(loop(slow, awsStandard)))
        yield* TestClock.adjust("60 seconds")
        assert.strictEqual(sends, 10)
        return most
      }).pipe(
        Effect.provide(ConcurrencyLimiter.layer({ rule: ConcurrencyLimiter.fixed(2), maxWait: "1 minute" }))
      )],
    [
      "balance when upTo has stopped after one retry, in a fiber that lives on",
      495,
      {},
      (loop) =>
        Effect.gen(function*() {
          yield* started(loop(failing, Schedule.upTo(awsStandard, { times: 1 })))
          yield* TestClock.adjust("1 minute")
          return yield* RetryQuota.balance
        })
    ]
  ]

  for (const [name, expected, quota, run] of facts) {
    for (const [form, loop] of loops) {
      it.effect(`${name}: ${expected} by ${form}`, () =>
        Effect.gen(function*() {
          assert.strictEqual(yield* run(loop), expected)
        }).pipe(Effect.provide(RetryQuota.layer(quota))))
    }
  }
})

describe("accounts", () => {
  const inOne = P.pipe(
    Schedule.addDelay(() => Effect.succeed(10)),
    Schedule.jittered,
    Schedule.map(() => Effect.succeed(1)),
    Schedule.tap(() => Effect.void)
  )
  const short = Schedule.max([Schedule.upTo(P, { times: 5 }), Schedule.jittered(R)])
  const joined = RetryPolicy.max([P, R])
  const plainMax = Schedule.max([P, R])
  const concat = RetryPolicy.concat(P, R)

  /** When it is sent; balance (100 before); passes entered and settled; notifications. The last column: by `Effect.retry`. */
  const rows: ReadonlyArray<
    readonly [name: string, policy: AnyPolicy, fails: number, expected: string, plain?: string]
  > = [
    ["P", P, 0, "0; 101; 1/1; +"],
    ["P", P, 1, "0 100; 100; 2/2; - r5 +"],
    ["P", P, always, "0 100 200; 90; 3/3; - r5 - r5 - max-attempts"],
    ["RetryPolicy.max([P, R])", joined, 0, "0; 101; 1/1; +"],
    ["RetryPolicy.max([P, R])", joined, 1, "0 100; 100; 2/2; - r7 +"],
    ["RetryPolicy.max([P, R])", joined, always, "0 100 200; 86; 3/3; - r7 - r7 - max-attempts"],
    ["Schedule.max([P, R])", plainMax, 0, "0; 101; 1/1; +"],
    ["Schedule.max([P, R])", plainMax, 1, "0 100; 100; 2/2; - r7 +"],
    ["Schedule.max([P, R])", plainMax, always, "0 100 200; 86; 3/3; - r7 - r7 - max-attempts"],
    ["max([upTo(P), jittered(R)])", short, 1, "0 100; 100; 2/2; - r7 +"],
    ["max([upTo(P), jittered(R)])", short, always, "0 100 200; 86; 3/3; - r7 - r7 - max-attempts"],
    ["RetryPolicy.min([P, R])", RetryPolicy.min([P, R]), 1, "0 50; 100; 2/2; - r5 +"],
    [
      "RetryPolicy.min([P, R])",
      RetryPolicy.min([P, R]),
      always,
      "0 50 100 150; 83; 4/4; - r5 - r5 - r7 - max-attempts"
    ],
    ["Schedule.min([P, R])", Schedule.min([P, R]), 1, "0 50; 100; 2/2; - r7 +"],
    ["Schedule.min([P, R])", Schedule.min([P, R]), always, "0 50 100 150; 79; 4/4; - r7 - r7 - r7 - max-attempts"],
    ["Schedule.max([P, recurs(1)])", Schedule.max([P, Schedule.recurs(1)]), 1, "0 100; 100; 2/2; - r5 +"],
    ["Schedule.max([P, recurs(1)])", Schedule.max([P, Schedule.recurs(1)]), always, "0 100; 95; 2/2; - r5 - schedule"],
    ["RetryPolicy.concat(P, R)", concat, 1, "0 100; 100; 2/2; - r5 +"],
    [
      "RetryPolicy.concat(P, R)",
      concat,
      always,
      "0 100 200 250 300 350; 69; 6/6; - r5 - r5 - r7 - r7 - r7 - max-attempts"
    ],
    [
      "Schedule.concat(P, R)",
      Schedule.concat(P, R),
      always,
      "0 100 200 250 300 350; 69; 6/6; - r5 - r5 - r7 - r7 - r7 - max-attempts",
      "0 100 200 250 300 350; 69; 5/5; r5 - r5 - r7 - r7 - r7 - max-attempts"
    ],
    [
      "Schedule.concat(recurs(1), P)",
      Schedule.concat(Schedule.recurs(1), P),
      always,
      "0 0 100 200; 90; 4/4; - r0 - r5 - r5 - max-attempts",
      "0 0 100 200; 90; 2/2; r5 - r5 - max-attempts"
    ],
    ["addDelay, jittered, map, tap", inOne, 1, "0 110; 100; 2/2; - r5 +"],
    ["addDelay, jittered, map, tap", inOne, always, "0 110 220; 90; 3/3; - r5 - r5 - max-attempts"]
  ]

  for (const [name, policy, fails, expected, plain = expected] of rows) {
    for (const [form, loop] of loops) {
      it.effect(`${name}, ${fails} failures, by ${form}`, () =>
        Effect.gen(function*() {
          const account = yield* accountOf((call) => loop(call, policy), fails)
          assert.strictEqual(lineOf(account), form === "withRetry" ? expected : plain)
        }))
    }
  }
})

describe("other loops", () => {
  const plan = ExecutionPlan.make({ provide: Context.empty(), schedule: P, attempts: 10 })

  const named = Effect.fn("call")(function*(call: Call) {
    return yield* call
  }, Effect.retry(P))

  const whole = ["0; 101; 1/1; +", "0 100; 100; 2/2; - r5 +", "0 100 200; 90; 3/3; - r5 - r5 - max-attempts"] as const
  const once = [whole[0], whole[1], "0 100; 95; 2/2; - r5 - schedule"] as const
  // The schedule begins at the first failure: the first send is not seen, its retries are.
  const late = ["0; 100; 0/0; ", "0 100; 100; 1/1; r5 +", "0 100 200; 90; 2/2; r5 - r5 - max-attempts"] as const

  const rows: ReadonlyArray<readonly [name: string, drive: Drive, none: string, one: string, all: string]> = [
    ["retryOrElse", (call) => Effect.retryOrElse(call, P, () => Effect.succeed("else")), ...whole],
    ["a builder", (call) => Effect.retry(call, ($) => $(P)), ...whole],
    ["Effect.fn", named, ...whole],
    ["Effect.uninterruptible", (call) => Effect.uninterruptible(Effect.retry(call, P)), ...whole],
    ["ExecutionPlan", (call) => Effect.withExecutionPlan(call, plan), ...whole],
    ["HttpClient.retry", (call) => HttpClient.retry(client(call), P).execute(request), ...whole],
    [
      "HttpClient.retry with times",
      (call) => HttpClient.retry(client(call), { schedule: P, times: 1 }).execute(request),
      ...once
    ],
    ["retryTransient", (call) => HttpClient.retryTransient(client(call), { schedule: P }).execute(request), ...whole],
    [
      "retryTransient with times",
      (call) => HttpClient.retryTransient(client(call), { schedule: P, times: 1 }).execute(request),
      ...once
    ],
    ["{ schedule }", (call) => Effect.retry(call, { schedule: P }), ...whole],
    ["{ schedule, times }", (call) => Effect.retry(call, { schedule: P, times: 1 }), ...once],
    [
      "{ schedule, while }",
      (call) => {
        let failures = 0
        return Effect.retry(call, { schedule: P, while: () => ++failures < 2 })
      },
      ...once
    ],
    [
      "{ schedule, until }",
      (call) => {
        let failures = 0
        return Effect.retry(call, { schedule: P, until: () => Effect.sync(() => ++failures >= 2) })
      },
      ...once
    ],
    [
      "{ schedule, times: 0 }",
      (call) => Effect.retry(call, { schedule: P, times: 0 }),
      whole[0],
      "0; 100; 1/1; - schedule",
      "0; 100; 1/1; - schedule"
    ],
    ["Stream.retry", (call) => Stream.runDrain(Stream.retry(Stream.fromEffect(call), P)), ...late],
    [
      "Stream.retry of a Schedule.max",
      (call) => Stream.runDrain(Stream.retry(Stream.fromEffect(call), Schedule.max([P, R]))),
      late[0],
      "0 100; 100; 1/1; r7 +",
      "0 100 200; 86; 2/2; r7 - r7 - max-attempts"
    ],
    ["Channel.retry", (call) => Channel.runDrain(Channel.retry(Channel.fromEffect(call), P)), ...late],
    // The first send is a lone one, each retry is that of the policy.
    [
      "Stream.retry of an attempt",
      (call) => Stream.runDrain(Stream.retry(Stream.fromEffect(attempt(call)), P)),
      ...whole
    ]
  ]

  for (const [name, drive, ...expected] of rows) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const lines = yield* Effect.forEach([0, 1, always], (fails) => Effect.map(accountOf(drive, fails), lineOf))
        assert.deepStrictEqual(lines, expected)
      }))
  }
})

describe("repetitions", () => {
  const sent = "0 100 200; 100; 0/0; "
  const rows: ReadonlyArray<readonly [name: string, drive: Drive, fails: number, expected: string]> = [
    ["Effect.repeat", (call) => Effect.repeat(call, P), 0, sent],
    ["Effect.repeat with times", (call) => Effect.repeat(call, { schedule: P, times: 1 }), 0, "0 100; 100; 0/0; "],
    ["Effect.repeat of what fails", (call) => Effect.repeat(call, P), always, "0; 100; 0/0; "],
    ["Effect.repeat by a Schedule.max", (call) => Effect.repeat(call, Schedule.max([P, R])), 0, sent],
    ["Effect.repeat by a RetryPolicy.max", (call) => Effect.repeat(call, RetryPolicy.max([P, R])), 0, sent],
    ["Effect.repeatOrElse", (call) => Effect.repeatOrElse(call, P, (error) => Effect.fail(error)), 0, sent],
    ["Effect.schedule", (call) => Effect.schedule(call, P), 0, "100 200; 100; 0/0; "],
    ["Effect.scheduleFrom", (call) => Effect.scheduleFrom(call, "ok", P), 0, "100 200; 100; 0/0; "],
    ["Stream.repeat", (call) => Stream.runDrain(Stream.repeat(Stream.fromEffect(call), P)), 0, sent],
    // What is retried, paid and seen is the whole repetition, which ends with the last of the responses.
    [
      "retryTransient of responses",
      (call) => HttpClient.retryTransient(client(call, 503), { schedule: P }).execute(request),
      0,
      "0 100 200; 101; 1/1; +"
    ],
    // What is repeated may be a retried call: each repetition has an account of its own.
    [
      "Effect.repeat of a retried call",
      (call) => Effect.repeat(Effect.retry(call, P), P),
      1,
      "0 100 200 300; 102; 4/4; - r5 + + +"
    ],
    [
      "Effect.repeat of withRetry",
      (call) => Effect.repeat(withRetry(call, P), P),
      1,
      "0 100 200 300; 102; 4/4; - r5 + + +"
    ],
    // The send of the outer call is the whole repetition.
    [
      "a retried repetition",
      (call) => Effect.retry(Effect.repeat(call, Backoff.fixed(10).pipe(RetryPolicy.maxAttempts(2))), P),
      1,
      "0 100 110; 100; 2/2; - r5 +"
    ]
  ]

  for (const [name, drive, fails, expected] of rows) {
    it.effect(`${name} pays nothing for what it repeats`, () =>
      Effect.gen(function*() {
        assert.strictEqual(lineOf(yield* accountOf(drive, fails)), expected)
      }))
  }
})

describe("loops in loops", () => {
  const Q = Backoff.fixed(10).pipe(RetryPolicy.maxAttempts(2), RetryPolicy.quotaGated({ cost: 3 }))
  const alone = Q.pipe(RetryPolicy.outermostOnly)
  const tapped = (tap: Effect.Effect<unknown, never, RetryQuota.RetryQuota>) => Schedule.tap(P, () => tap)
  const retriedTap = (loop: Loop) => Effect.orDie(Effect.suspend(() => loop(call(1), Q)))
  const failedTap = (loop: Loop) => Effect.ignore(loop(failing, Q))

  /** The balance of 100 tokens after each, with `outer` and `inner` by each loop. A success deposits 1. */
  const rows: ReadonlyArray<
    readonly [
      name: string,
      expected: number,
      run: (outer: Loop, inner: Loop) => Effect.Effect<unknown, unknown, RetryQuota.RetryQuota>
    ]
  > = [
    ["a retry in a tap, which succeeds", 100, (outer, inner) => outer(call(1), tapped(retriedTap(inner)))],
    ["a retry in a tap, which fails and is ignored", 97, (outer, inner) => outer(call(1), tapped(failedTap(inner)))],
    ["one call after the other", 90, (outer, inner) => Effect.andThen(outer(call(1), P), inner(failing, P))],
    ["a retry of a retry that fails each time", 81, (outer, inner) => outer(inner(failing, Q), P)],
    [
      "a retry of a retry by outermostOnly, which fails once",
      100,
      (outer, inner) => outer(inner(call(1), alone), P)
    ],
    ["a retry of a retry by outermostOnly, which succeeds", 101, (outer, inner) => outer(inner(call(0), alone), P)],
    [
      "a retry of a stream that is retried once",
      101,
      (outer) => outer(Stream.runDrain(Stream.retry(Stream.fromEffect(call(1)), Q)), P)
    ],
    [
      "a retry that interrupts itself",
      95,
      (outer) => outer(call(1, Effect.interrupt), P)
    ]
  ]

  for (const [name, expected, run] of rows) {
    for (const [outerName, outer] of loops) {
      for (const [innerName, inner] of loops) {
        it.effect(`${name}: ${expected} by ${outerName} around ${innerName}`, () =>
          Effect.gen(function*() {
            const fiber = yield* Effect.forkChild(Effect.exit(run(outer, inner)))
            yield* TestClock.adjust("1 hour")
            yield* Fiber.join(fiber)
            assert.strictEqual(yield* RetryQuota.balance, expected)
          }).pipe(Effect.provide(RetryQuota.layer({ initial: 100 }))))
      }
    }
  }
})
