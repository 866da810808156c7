import { assert, describe, it } from "@effect/vitest"
import type { RetryClassifier } from "effect-retry"
import { InvalidOption, RetryDecision, RetryQuota, withRetry } from "effect-retry"
import * as JavaV1 from "effect-retry/aws/legacy/JavaV1"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import * as Example from "../../../examples/java-v1.ts"
import { Throttled, Transient } from "../../utils/call.ts"
import {
  type Driver,
  drivers,
  type Policy,
  type SdkError,
  sdkError,
  steppedDelays,
  withRandom
} from "../../utils/vectors.ts"

/** The greatest number that chance gives. */
const almostOne = 1 - 2 ** -53

const maxInt = 2 ** 31 - 1

const transient = sdkError({ status: 500 })
const throttling = sdkError({ status: 400, code: "ThrottlingException" })
const terminal = sdkError({ status: 400, code: "ValidationException" })

const request = HttpClientRequest.post("http://service.test/")

const statusError = (status: number, headers: Record<string, string> = {}) =>
  new HttpClientError.HttpClientError({
    reason: new HttpClientError.StatusCodeError({
      request,
      response: HttpClientResponse.fromWeb(request, new Response(null, { status, headers }))
    })
  })

const transportError = (cause?: unknown) =>
  new HttpClientError.HttpClientError({ reason: new HttpClientError.TransportError({ request, cause }) })

const encodeError = new HttpClientError.HttpClientError({ reason: new HttpClientError.EncodeError({ request }) })

/** How long a call waited before each retry, and why it stopped; `errors` are its outcomes in turn, then it succeeds. */
const played = (driver: Driver, policy: Policy, errors: ReadonlyArray<SdkError>) =>
  Effect.gen(function*() {
    const sentAt: Array<number> = []
    let reason: string = "success"
    const call = Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const error = errors[sentAt.push(now) - 1]
      return error === undefined ? Effect.succeed(200) : Effect.fail(error)
    })
    const run = driver.run(call, policy, (decision) => {
      if (RetryDecision.isStop(decision)) reason = decision.reason
    })
    const fiber = yield* Effect.forkChild(Effect.exit(run), { startImmediately: true })
    yield* TestClock.adjust("1000 days")
    assert.isDefined(fiber.pollUnsafe())
    return { delays: sentAt.slice(1).map((at, send) => at - sentAt[send]!), reason }
  }).pipe(Effect.provide(RetryQuota.layer()))

interface BackoffVector {
  readonly name: string
  readonly policy: Policy
  readonly random: number
  readonly from?: number
  readonly delays: ReadonlyArray<number>
}

const sdk = { baseDelay: 100, maxBackoff: 20_000 }
const unbounded = { baseDelay: 100, maxBackoff: maxInt }
const least = { baseDelay: 1, maxBackoff: 1 }
const shifted = { baseDelay: 1, maxBackoff: maxInt }

// Source: aws-sdk-java PredefinedBackoffStrategiesTest.java, for the ceilings and their halves.
const ceilings = [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 20_000, 20_000]
const halves = [50, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]

const exponential = (random: number) => ({ policy: JavaV1.exponentialBackoff(sdk), random })
const full = (random: number) => ({ policy: JavaV1.fullJitterBackoff(sdk), random })
const equal = (random: number) => ({ policy: JavaV1.equalJitterBackoff(sdk), random })

const backoffs: ReadonlyArray<BackoffVector> = [
  { name: "exponential", ...exponential(0.5), delays: ceilings },
  { name: "full jitter, least", ...full(0), delays: ceilings.map(() => 0) },
  { name: "full jitter, most", ...full(almostOne), delays: ceilings.map((ceiling) => ceiling - 1) },
  { name: "full jitter, 0.5", ...full(0.5), delays: halves },
  { name: "full jitter, whole milliseconds", ...full(0.333), delays: [33, 66, 133, 266] },
  { name: "equal jitter, least", ...equal(0), delays: halves },
  { name: "equal jitter, most", ...equal(almostOne), delays: ceilings },
  { name: "equal jitter, 0.5", ...equal(0.5), delays: [75, 150, 300, 600, 1200, 2400, 4800, 9600, 15_000, 15_000] },
  {
    name: "equal jitter, odd ceiling, least",
    policy: JavaV1.equalJitterBackoff({ baseDelay: 25, maxBackoff: 20_000 }),
    random: 0,
    delays: [12, 25]
  },
  {
    name: "equal jitter, odd ceiling, most",
    policy: JavaV1.equalJitterBackoff({ baseDelay: 25, maxBackoff: 20_000 }),
    random: almostOne,
    delays: [24, 50]
  },
  { name: "exponential, 1 ms", policy: JavaV1.exponentialBackoff(least), random: 0.5, delays: [1, 1] },
  { name: "full jitter, 1 ms", policy: JavaV1.fullJitterBackoff(least), random: almostOne, delays: [0, 0] },
  { name: "equal jitter, 1 ms", policy: JavaV1.equalJitterBackoff(least), random: almostOne, delays: [0, 0] },
  {
    name: "base above the highest ceiling",
    policy: JavaV1.exponentialBackoff({ baseDelay: 500, maxBackoff: 300 }),
    random: 0.5,
    delays: [300, 300]
  },
  {
    name: "exponential up to the greatest int",
    policy: JavaV1.exponentialBackoff(unbounded),
    random: 0.5,
    from: 25,
    delays: [100 * 2 ** 24, maxInt, maxInt]
  },
  {
    name: "exponential from the greatest int",
    policy: JavaV1.exponentialBackoff({ baseDelay: maxInt, maxBackoff: maxInt }),
    random: 0.5,
    from: 41,
    delays: [maxInt]
  },
  {
    name: "exponential, exponent bound",
    policy: JavaV1.exponentialBackoff(shifted),
    random: 0.5,
    from: 30,
    delays: [2 ** 29, 2 ** 30, 2 ** 30, 2 ** 30]
  },
  {
    name: "full jitter, exponent bound",
    policy: JavaV1.fullJitterBackoff(shifted),
    random: almostOne,
    from: 30,
    delays: [2 ** 29 - 1, 2 ** 30 - 1, 2 ** 30 - 1]
  },
  {
    name: "equal jitter, exponent bound",
    policy: JavaV1.equalJitterBackoff(shifted),
    random: 0,
    from: 30,
    delays: [2 ** 28, 2 ** 29, 2 ** 29]
  },
  { name: "retry 1,100", policy: JavaV1.exponentialBackoff(shifted), random: 0.5, from: 1100, delays: [2 ** 30] }
]

interface PolicyVector {
  readonly name: string
  readonly policy: Policy
  readonly random: number
  readonly errors: ReadonlyArray<SdkError>
  readonly delays: ReadonlyArray<number>
  readonly reason: string
}

const times = (count: number, error: SdkError): ReadonlyArray<SdkError> => Array<SdkError>(count).fill(error)

const inAMinute: SdkError & { readonly $response: unknown } = {
  ...sdkError({ status: 503 }),
  $response: { headers: { "retry-after": "60" } }
}

const { defaultPolicy, dynamoDBPolicy } = JavaV1

const policies: ReadonlyArray<PolicyVector> = [
  {
    name: "default, 4 attempts, full jitter from 100 ms",
    policy: defaultPolicy,
    random: 0.5,
    errors: times(9, transient),
    delays: [50, 100, 200],
    reason: "max-attempts"
  },
  {
    name: "default, throttles, equal jitter from 500 ms, least",
    policy: defaultPolicy,
    random: 0,
    errors: times(9, throttling),
    delays: [250, 500, 1000],
    reason: "max-attempts"
  },
  {
    name: "default, throttles, equal jitter from 500 ms, most",
    policy: defaultPolicy,
    random: almostOne,
    errors: times(9, throttling),
    delays: [500, 1000, 2000],
    reason: "max-attempts"
  },
  {
    name: "default, the retries count through both",
    policy: defaultPolicy,
    random: 0.5,
    errors: [transient, throttling, transient],
    delays: [50, 750, 200],
    reason: "success"
  },
  {
    name: "default, not retryable",
    policy: defaultPolicy,
    random: 0.5,
    errors: [transient, terminal],
    delays: [50],
    reason: "final"
  },
  {
    name: "default, no hint is followed",
    policy: defaultPolicy,
    random: 0.5,
    errors: [inAMinute],
    delays: [50],
    reason: "success"
  },
  {
    name: "DynamoDB, 11 attempts, full jitter from 25 ms",
    policy: dynamoDBPolicy,
    random: almostOne,
    errors: times(99, transient),
    delays: [24, 49, 99, 199, 399, 799, 1599, 3199, 6399, 12_799],
    reason: "max-attempts"
  },
  {
    name: "DynamoDB, throttles, equal jitter from 500 ms up to 20 s",
    policy: dynamoDBPolicy,
    random: 0,
    errors: times(99, throttling),
    delays: [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000, 10_000, 10_000],
    reason: "max-attempts"
  },
  {
    name: "full jitter up to 20 s",
    policy: JavaV1.policy({ maxRetries: 10 }),
    random: almostOne,
    errors: times(99, transient),
    delays: ceilings.map((ceiling) => ceiling - 1),
    reason: "max-attempts"
  },
  {
    name: "no retries",
    policy: JavaV1.policy({ maxRetries: 0 }),
    random: 0.5,
    errors: [transient],
    delays: [],
    reason: "max-attempts"
  },
  {
    name: "own bases and ceiling",
    policy: JavaV1.policy({ baseDelay: "1 second", throttledBaseDelay: "2 seconds", maxBackoff: "3 seconds" }),
    random: 0.5,
    errors: [transient, transient, transient],
    delays: [500, 1000, 1500],
    reason: "success"
  },
  {
    name: "own bases and ceiling, throttles",
    policy: JavaV1.policy({ baseDelay: "1 second", throttledBaseDelay: "2 seconds", maxBackoff: "3 seconds" }),
    random: 0,
    errors: [throttling, throttling, transient],
    delays: [1000, 1500, 0],
    reason: "success"
  }
]

type Verdict = "throttled" | "timed out" | "retried" | "not retried"

const verdict = (classifier: RetryClassifier.RetryClassifier, error: unknown): Verdict =>
  Option.match(classifier(error), {
    onNone: () => "not retried" as const,
    onSome: ({ safety, throttling, timeout }) => {
      if (safety !== "Yes") return "not retried"
      if (throttling) return "throttled"
      return timeout ? "timed out" : "retried"
    }
  })

// Source: aws-sdk-java RetryUtils.java of the late 1.x, PredefinedRetryPolicies.java.
const codes: Record<Verdict, ReadonlyArray<string>> = {
  "throttled": [
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "ProvisionedThroughputExceededException",
    "SlowDown",
    "TooManyRequestsException",
    "RequestLimitExceeded",
    "BandwidthLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "EC2ThrottledException",
    "PriorRequestNotComplete"
  ],
  "timed out": ["TimeoutError"],
  "retried": [
    "TransactionInProgressException",
    "RequestTimeout",
    "RequestTimeoutException",
    "IDPCommunicationError",
    "RequestTimeTooSkewed",
    "RequestExpired",
    "InvalidSignatureException",
    "SignatureDoesNotMatch",
    "AuthFailure",
    "RequestInTheFuture"
  ],
  "not retried": [
    "ValidationException",
    "LimitExceededException",
    "ExpiredTokenException",
    "throttling"
  ]
}

const statuses: Record<Verdict, ReadonlyArray<number>> = {
  "throttled": [429],
  "timed out": [],
  "retried": [500, 502, 503, 504],
  "not retried": [200, 307, 400, 403, 404, 408, 428, 430, 499, 501, 505]
}

const rows = <A>(table: Record<Verdict, ReadonlyArray<A>>) =>
  Object.entries(table).flatMap(([expected, given]) => given.map((given) => ({ given, expected })))

describe("JavaV1", () => {
  describe("backoff", () => {
    it.effect.each(backoffs)("vector: $name", ({ delays, from = 1, policy, random }) =>
      Effect.gen(function*() {
        const count = from - 1 + delays.length
        assert.deepStrictEqual((yield* steppedDelays(policy, count, transient)).slice(from - 1), delays)
        if (from > 1) return
        for (const driver of drivers) {
          const { delays: slept } = yield* played(driver, policy, times(count, transient))
          assert.deepStrictEqual(slept, delays, driver.name)
        }
      }).pipe(withRandom(random), Effect.provide(RetryQuota.layerUnlimited)))
  })

  describe("policy", () => {
    for (const driver of drivers) {
      it.effect.each(policies)(
        `vector: $name, ${driver.name}`,
        ({ delays, errors, policy, random, reason }) =>
          Effect.gen(function*() {
            assert.deepStrictEqual(yield* played(driver, policy, errors), { delays, reason })
          }).pipe(withRandom(random))
      )
    }

    it.effect("waits to the millisecond", () =>
      Effect.gen(function*() {
        const sends = yield* Effect.sync(() => ({ count: 0 }))
        const call = Effect.suspend(() => (++sends.count, Effect.fail(throttling)))
        const fiber = yield* Effect.forkChild(withRetry(call, defaultPolicy), { startImmediately: true })
        yield* TestClock.adjust(374)
        assert.strictEqual(sends.count, 1)
        yield* TestClock.adjust(1)
        assert.strictEqual(sends.count, 2)
        yield* TestClock.adjust("1 hour")
        assert.isDefined(fiber.pollUnsafe())
      }).pipe(withRandom(0.5)))
  })

  describe("classifier", () => {
    it.each(rows(codes))("vector: code $given is $expected", ({ expected, given }) => {
      for (const error of [{ name: given }, { code: given, statusCode: 400 }, { Code: given }]) {
        assert.strictEqual(verdict(JavaV1.classifier, error), expected)
      }
    })

    it.each(rows(statuses))("vector: status $given is $expected", ({ expected, given }) => {
      const errors = [
        { $metadata: { httpStatusCode: given } },
        { statusCode: given },
        { status: given },
        { response: { status: given } },
        statusError(given)
      ]
      for (const error of errors) {
        assert.strictEqual(verdict(JavaV1.classifier, error), expected)
      }
    })

    it.each([
      [{ code: "ECONNRESET" }, "retried"],
      [{ code: "ENOTFOUND" }, "retried"],
      [{ code: "ETIMEDOUT" }, "timed out"],
      [{ name: "Wrapped", cause: { code: "ECONNREFUSED" } }, "retried"],
      [{ code: "Throttling", statusCode: 503 }, "throttled"],
      [{ code: "SignatureDoesNotMatch", statusCode: 500 }, "retried"],
      [{ code: "503 Slow Down", statusCode: 503 }, "throttled"],
      [{ code: "400 Request Timeout", statusCode: 400 }, "retried"],
      [{ code: "400 Slow Down", statusCode: 403 }, "not retried"],
      [{ code: "400 Bad Request", statusCode: 400 }, "not retried"],
      [transportError(), "retried"],
      [transportError({ code: "ECONNRESET" }), "retried"],
      [transportError({ code: "ETIMEDOUT" }), "timed out"],
      [{ name: "Wrapped", cause: transportError() }, "retried"],
      [{ _tag: "Other", reason: { _tag: "TransportError" } }, "not retried"],
      [encodeError, "not retried"],
      [new Transient(), "retried"],
      [new Throttled({}), "throttled"],
      [{ code: "ENOSPC" }, "not retried"],
      [undefined, "not retried"],
      [null, "not retried"],
      ["Throttling", "not retried"]
    ])("vector: %j is %s", (error, expected) => {
      assert.strictEqual(verdict(JavaV1.classifier, error), expected)
    })

    it.effect("decides what is retried and what is a throttle", () =>
      Effect.gen(function*() {
        const underWay = sdkError({ status: 400, code: "TransactionInProgressException" })
        const limited = sdkError({ status: 400, code: "LimitExceededException" })
        for (const driver of drivers) {
          const of = (error: SdkError) => played(driver, defaultPolicy, [error])
          assert.deepStrictEqual(yield* of(underWay), { delays: [375], reason: "success" })
          assert.deepStrictEqual(yield* of(underWay).pipe(Effect.provide(JavaV1.layer)), {
            delays: [50],
            reason: "success"
          })
          assert.deepStrictEqual(yield* of(limited).pipe(Effect.provide(JavaV1.layer)), {
            delays: [],
            reason: "final"
          })
        }
      }).pipe(withRandom(0.5)))
  })

  describe("options", () => {
    it.each(
      [
        ["baseDelay", 0, () => JavaV1.policy({ baseDelay: 0 })],
        ["baseDelay", NaN, () => JavaV1.fullJitterBackoff({ baseDelay: NaN, maxBackoff: 1 })],
        ["baseDelay", -1, () => JavaV1.equalJitterBackoff({ baseDelay: -1, maxBackoff: 1 })],
        ["throttledBaseDelay", Duration.infinity, () => JavaV1.policy({ throttledBaseDelay: Duration.infinity })],
        ["maxBackoff", 0, () => JavaV1.policy({ maxBackoff: 0 })],
        ["maxBackoff", Infinity, () => JavaV1.exponentialBackoff({ baseDelay: 1, maxBackoff: Infinity })],
        ["maxRetries", -1, () => JavaV1.policy({ maxRetries: -1 })],
        ["maxRetries", 1.5, () => JavaV1.policy({ maxRetries: 1.5 })],
        ["maxRetries", NaN, () => JavaV1.policy({ maxRetries: NaN })]
      ] as const
    )("refuses %s %s", (field, _value, make) => {
      try {
        make()
      } catch (error) {
        assert.instanceOf(error, InvalidOption)
        assert.strictEqual(error.field, field)
        assert.match(error.constructorName, /^JavaV1\.\w+$/)
        return
      }
      assert.fail("takes it")
    })
  })

  describe("example", () => {
    const [driver] = drivers as [Driver]

    it.effect("describe: retries as the SDK does, by its own classifier", () =>
      Effect.gen(function*() {
        const sentAt: Array<number> = []
        const errors = [{ name: "SlowDown" }, { code: "ECONNRESET" }]
        const send = Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const error = errors[sentAt.push(now) - 1]
          return error === undefined ? Effect.succeed("ok") : Effect.fail(error)
        })
        const fiber = yield* Effect.forkChild(Example.describe(send), { startImmediately: true })
        yield* TestClock.adjust("1 minute")
        assert.isDefined(fiber.pollUnsafe())
        assert.deepStrictEqual(sentAt, [0, 375, 475])
      }).pipe(withRandom(0.5)))

    it.effect("patient: own delays and 5 retries", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* played(driver, Example.patient, times(9, throttling)), {
          delays: [500, 1000, 2000, 2500, 2500],
          reason: "max-attempts"
        })
      }).pipe(withRandom(0)))

    it.effect("withQuota: takes 5 for a retry, after a throttle none", () =>
      Effect.gen(function*() {
        const balances: Array<number> = []
        const quota = yield* RetryQuota.RetryQuota
        for (const error of [transient, throttling]) {
          const call = Effect.fail(error)
          const fiber = yield* Effect.forkChild(withRetry(call, Example.withQuota), { startImmediately: true })
          yield* TestClock.adjust("1 hour")
          assert.isDefined(fiber.pollUnsafe())
          balances.push(yield* quota.balance)
        }
        assert.deepStrictEqual(balances, [485, 485])
      }).pipe(withRandom(0.5), Effect.provide(RetryQuota.layer())))
  })
})
