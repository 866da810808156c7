import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { InvalidOption, RetryClassifier, RetryDecision, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as GeneralReference from "effect-retry/aws/legacy/GeneralReference"
import * as Waiter from "effect-retry/Waiter"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import { awsThrottlingCodes } from "../../../src/internal/facts/codes.ts"
import { Terminal, Throttled, Transient } from "../../utils/call.ts"
import { drivers, type SdkError, sdkError } from "../../utils/vectors.ts"

type Verdict = "throttled" | "server" | "no"

const verdict = (error: unknown): Verdict =>
  Option.match(RetryClassifier.classify(GeneralReference.classifier, error), {
    onNone: () => "no" as const,
    onSome: ({ fault, safety, throttling, timeout }) => {
      assert.isFalse(timeout)
      if (safety !== "Yes") return "no"
      if (throttling) return "throttled"
      assert.strictEqual(fault, "server")
      return "server"
    }
  })

const statuses: Record<Verdict, ReadonlyArray<number>> = {
  throttled: [429],
  server: [500, 501, 502, 503, 504, 505, 507, 509, 511, 599],
  no: [0, 200, 301, 307, 400, 401, 403, 404, 408, 409, 412, 425, 428, 430, 499, 600]
}

const rows = Object.entries(statuses).flatMap(([expected, all]) => all.map((status) => ({ expected, status })))

describe("GeneralReference", () => {
  describe("classifier", () => {
    it.each(rows)("vector: status $status is $expected", ({ expected, status }) => {
      for (
        const error of [
          { $metadata: { httpStatusCode: status } },
          { statusCode: status },
          { status },
          { response: { status } },
          { _tag: "HttpClientError", reason: { response: { status } } }
        ]
      ) {
        assert.strictEqual(verdict(error), expected)
      }
    })

    it.each([...awsThrottlingCodes])("vector: code %s is throttled, whatever the status", (code) => {
      for (const status of [400, 403, 503]) {
        for (
          const error of [{ name: code }, { code }, { Code: code }, { __type: `com.amazonaws#${code}` }, {
            __type: `${code}:http://internal.amazon.com/coral/`
          }]
        ) {
          assert.strictEqual(verdict({ ...error, status }), "throttled")
        }
      }
    })

    it.each<[name: string, error: unknown, expected: Verdict]>([
      ["an unknown error", new Error("bug"), "no"],
      ["a code that no SDK throttles by", { code: "ValidationException" }, "no"],
      ["a code in lower case", { code: "throttling" }, "no"],
      ["RequestTimeout", { code: "RequestTimeout", status: 400 }, "no"],
      ["a failure of the network", { code: "ECONNRESET" }, "no"],
      ["a timeout", { _tag: "TimeoutError" }, "no"],
      ["a status that is no number", { status: "503" }, "no"],
      ["nothing", undefined, "no"],
      ["null", null, "no"],
      ["a string", "Throttling", "no"],
      ["the cause of a wrapper: 503", new Error("wrapped", { cause: { status: 503 } }), "server"],
      ["the cause of a wrapper: throttle", { cause: { cause: { code: "SlowDown" } } }, "throttled"],
      ["the cause of a client error", { status: 404, cause: { status: 503 } }, "no"],
      ["own facts: a server's fault", new Transient(), "server"],
      ["own facts: a throttle", new Throttled({}), "throttled"],
      ["own facts before the status", Object.assign(new Terminal(), { status: 503 }), "no"]
    ])("vector: %s", (_name, error, expected) => {
      assert.strictEqual(verdict(error), expected)
    })

    it("knows the server's hint", () => {
      const headers = { "retry-after": "3" }
      for (
        const error of [
          { status: 503, headers },
          { statusCode: 429, response: { headers } },
          { name: "SlowDown", $response: { headers } },
          { reason: { response: { status: 500, headers } } }
        ]
      ) {
        const info = Option.getOrThrow(GeneralReference.classifier(error))
        assert.deepStrictEqual(info.retryAfter, Duration.seconds(3))
      }
    })
  })

  describe("policy", () => {
    const server = sdkError({ status: 501 })
    const throttle = sdkError({ status: 400, code: "ThrottlingException" })
    const client = sdkError({ status: 404 })
    const broken: SdkError & { readonly code: string } = { ...sdkError({ status: 0 }), code: "ECONNRESET" }
    const hinted = { ...server, $response: { headers: { "retry-after": "60" } } }
    const { policy } = GeneralReference
    const always = (error: SdkError) => Array<SdkError>(99).fill(error)

    const vectors = [
      ["the defaults", policy(), always(server), [100, 200, 400], "max-attempts"],
      ["throttles wait no longer", policy(), [throttle, server, throttle], [100, 200, 400], "success"],
      ["a client error", policy(), [server, client], [100], "final"],
      ["a failure of the network", policy(), [broken], [], "unknown-error"],
      ["no hint is followed", policy(), [hinted], [100], "success"],
      ["no retries", policy({ maxRetries: 0 }), always(server), [], "max-attempts"],
      [
        "up to 20 seconds",
        policy({ maxRetries: 10 }),
        always(server),
        [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 20_000, 20_000],
        "max-attempts"
      ],
      [
        "a longest wait",
        policy({ maxRetries: 5, maxWaitInterval: "1 second" }),
        always(throttle),
        [100, 200, 400, 800, 1000],
        "max-attempts"
      ],
      [
        "a longest wait below the first",
        policy({ maxRetries: 2, maxWaitInterval: 30 }),
        always(server),
        [30, 30],
        "max-attempts"
      ]
    ] as const

    for (const driver of drivers) {
      for (const [name, policy, errors, delays, expected] of vectors) {
        it.effect(`vector: ${name}, ${driver.name}`, () =>
          Effect.gen(function*() {
            const sentAt: Array<number> = []
            let reason = "success"
            const call = Effect.flatMap(Clock.currentTimeMillis, (now) => {
              const error = errors[sentAt.push(now) - 1]
              return error === undefined ? Effect.succeed(200) : Effect.fail(error)
            })
            const run = driver.run(call, policy, (decision) => {
              if (RetryDecision.isStop(decision)) reason = decision.reason
            })
            const fiber = yield* Effect.forkChild(Effect.exit(run), { startImmediately: true })
            yield* TestClock.adjust("1 hour")
            assert.isDefined(fiber.pollUnsafe())
            assert.deepStrictEqual([sentAt.slice(1).map((at, send) => at - sentAt[send]!), reason], [delays, expected])
          }).pipe(Effect.provide([RetryQuota.layer(), GeneralReference.layer])))
      }
    }

    it("asks nothing of a call", () => {
      expectTypeOf(policy()).toEqualTypeOf<RetryPolicy.RetryPolicy>()
      assert.isTrue(RetryPolicy.isRetryPolicy(policy()))
    })
  })

  describe("polling", () => {
    interface Job {
      readonly status: GeneralReference.Status
    }
    const status = (job: Job) => job.status
    const pending: Job = { status: "NOT_READY" }
    const slower: Job = { status: "THROTTLED" }
    const done: Job = { status: "SUCCESS" }
    const unavailable = { _tag: "Response", $metadata: { httpStatusCode: 503 } }
    const busy = { _tag: "Response", $metadata: { httpStatusCode: 429 } }
    type Step = Job | Throttled | Terminal | typeof busy

    /** Plays a script, of which the last step repeats; tells when polls began and how it ended. */
    const play = (waiter: Waiter.Waiter<Job>, script: ReadonlyArray<Step>, pollMillis = 0) =>
      Effect.gen(function*() {
        const began: Array<number> = []
        const poll = Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const step = script[Math.min(began.push(now), script.length) - 1]!
          const polled = "status" in step ? Effect.succeed(step) : Effect.fail(step)
          return pollMillis > 0 ? Effect.delay(polled, pollMillis) : polled
        })
        const fiber = yield* Effect.forkChild(Effect.exit(Waiter.waitUntil(poll, waiter)), { startImmediately: true })
        yield* TestClock.adjust("1 day")
        return { began, exit: fiber.pollUnsafe()!.pipe(Exit.getSuccess, Option.getOrThrow) }
      }).pipe(Effect.provide(GeneralReference.layer))

    const byDefault = GeneralReference.polling({ status })
    const six = GeneralReference.polling({ status, maxPolls: 6 })

    for (
      const [name, waiter, script, polls, expected] of [
        ["SUCCESS immediately", byDefault, [done], [100], "success"],
        ["NOT_READY goes on", byDefault, [pending, pending, done], [100, 300, 700], "success"],
        ["THROTTLED goes on", byDefault, [slower, pending, done], [100, 300, 700], "success"],
        ["a throttle that is an error goes on", byDefault, [busy, new Throttled({}), done], [100, 300, 700], "success"],
        ["another status", byDefault, [pending, { status: "CANCELLED" }], [
          100,
          300
        ], "wait failed after 2 polls: the status is CANCELLED"],
        ["another error", byDefault, [pending, new Terminal()], [
          100,
          300
        ], "wait failed after 2 polls: no acceptor matched the error"],
        ["a server error is another", byDefault, [unavailable, done], [
          100
        ], "wait failed after 1 poll: no acceptor matched the error"],
        ["no more than 10 polls", byDefault, [pending], [
          100,
          300,
          700,
          1500,
          3100,
          6300,
          12_700,
          25_500,
          45_500,
          65_500
        ], "the delays have ended after 1m 5s 500ms of 10m, 10 polls"],
        [
          "no more than asked for",
          six,
          [pending],
          [100, 300, 700, 1500, 3100, 6300],
          "the delays have ended after 6s 300ms of 10m, 6 polls"
        ],
        ["one poll", GeneralReference.polling({ status, maxPolls: 1 }), [pending], [
          100
        ], "the delays have ended after 100ms of 10m, 1 poll"],
        ["a longest wait", GeneralReference.polling({ status, maxPolls: 5, maxWaitInterval: 300 }), [pending], [
          100,
          300,
          600,
          900,
          1200
        ], "the delays have ended after 1s 200ms of 10m, 5 polls"],
        [
          "a longest wait below the first",
          GeneralReference.polling({ status, maxPolls: 3, maxWaitInterval: 10 }),
          [pending],
          [10, 20, 30],
          "the delays have ended after 30ms of 10m, 3 polls"
        ],
        [
          "the time, with a last poll at its end",
          GeneralReference.polling({ status, maxPolls: Infinity, maxWait: "1 second" }),
          [pending],
          [100, 300, 700, 1000],
          "still waiting after 1s of 1s, 4 polls"
        ]
      ] as ReadonlyArray<[string, Waiter.Waiter<Job>, ReadonlyArray<Step>, ReadonlyArray<number>, string]>
    ) {
      it.effect(`vector: ${name}`, () =>
        Effect.gen(function*() {
          const { began, exit } = yield* play(waiter, script)
          assert.deepStrictEqual(began, [...polls])
          if (Exit.isSuccess(exit)) {
            assert.strictEqual(expected, "success")
            assert.deepStrictEqual([exit.value.attempts, Duration.toMillis(exit.value.elapsed)], [
              polls.length,
              polls.at(-1)
            ])
          } else {
            assert.strictEqual((yield* Effect.flip(exit)).message, expected)
          }
        }))
    }

    it.effect("waits after the polls, however long they take", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual((yield* play(byDefault, [pending, pending, done], 1000)).began, [100, 1300, 2700])
      }))

    it.effect("takes the classifier of the fiber for what is a throttle", () =>
      Effect.gen(function*() {
        const odd = { _tag: "Odd" }
        let polls = 0
        const poll = Effect.suspend(() => ++polls === 1 ? Effect.fail(odd) : Effect.succeed(done))
        const wait = Waiter.waitUntil(poll, byDefault).pipe(
          Effect.provide(
            RetryClassifier.layer((error) =>
              error === odd ? GeneralReference.classifier({ status: 429 }) : Option.none()
            )
          )
        )
        const fiber = yield* Effect.forkChild(wait, { startImmediately: true })
        yield* TestClock.adjust("1 minute")
        assert.isTrue(Exit.isSuccess(fiber.pollUnsafe()!))
        assert.strictEqual(polls, 2)
      }))

    it.effect("continues after a server error that is retried within the poll", () =>
      Effect.gen(function*() {
        const began: Array<number> = []
        const poll = Effect.flatMap(Clock.currentTimeMillis, (now) =>
          began.push(now) === 1 ? Effect.fail(unavailable) : Effect.succeed(began.length === 2 ? pending : done))
        const wait = poll.pipe(withRetry(GeneralReference.policy()), Waiter.waitUntil(byDefault))
        const fiber = yield* Effect.forkChild(wait, { startImmediately: true })
        yield* TestClock.adjust("1 minute")
        assert.isTrue(Exit.isSuccess(fiber.pollUnsafe()!))
        assert.deepStrictEqual(began, [100, 200, 400])
      }).pipe(Effect.provide(GeneralReference.layer)))
  })

  describe("options", () => {
    const status = () => "SUCCESS"
    const { policy, polling } = GeneralReference
    const wrong = [NaN, Infinity, -1, 0, "no duration" as "1 second"]
    const bad: ReadonlyArray<readonly [constructorName: string, field: string, value: unknown, make: () => unknown]> = [
      ...[NaN, -1, 1.5, "3" as unknown as number].map((maxRetries) =>
        ["policy", "maxRetries", maxRetries, () => policy({ maxRetries })] as const
      ),
      ...wrong.map((maxWaitInterval) =>
        ["policy", "maxWaitInterval", maxWaitInterval, () => policy({ maxWaitInterval })] as const
      ),
      ...[NaN, -1, 0, 1.5].map((maxPolls) =>
        ["polling", "maxPolls", maxPolls, () => polling({ status, maxPolls })] as const
      ),
      ...[...wrong, 0.5].map((maxWaitInterval) =>
        ["polling", "maxWaitInterval", maxWaitInterval, () => polling({ status, maxWaitInterval })] as const
      ),
      ...[...wrong, 100].map((maxWait) => ["polling", "maxWait", maxWait, () => polling({ status, maxWait })] as const),
      ["polling", "status", undefined, () => polling({ status: undefined as any })]
    ]
    for (const [row, [name, field, value, make]] of bad.entries()) {
      it(`${name} refuses ${field} of ${String(value)} (row ${row})`, () => {
        try {
          make()
          assert.fail("made it")
        } catch (error) {
          assert.instanceOf(error, InvalidOption)
          assert.deepStrictEqual([error.constructorName, error.field], [`GeneralReference.${name}`, field])
          assert.deepStrictEqual(error.value, value)
        }
      })
    }

    it("takes what is right", () => {
      policy({ maxRetries: Infinity, maxWaitInterval: 1 })
      polling({ status, maxPolls: Infinity, maxWaitInterval: 1, maxWait: 2 })
      polling({ status, maxWait: 101 })
    })
  })
})
