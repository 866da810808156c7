import type { DynamoDBClient, DynamoDBClientConfig } from "@aws-sdk/client-dynamodb"
import { PutObjectCommand, S3Client } from "@aws-sdk/client-s3"
import { ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs"
import { assert, describe, it } from "@effect/vitest"
import { StandardRetryStrategy } from "@smithy/core/retry"
import type { RetryErrorInfo, RetryStrategyV2, RetryToken } from "@smithy/types"
import {
  AdaptiveRateLimiter,
  awsAdaptive,
  AwsModes,
  awsStandard,
  awsStandard2026,
  Backoff,
  RetryClassifier,
  RetryInfo,
  RetryMetrics,
  RetryObserver,
  RetryPolicy,
  RetryQuota
} from "effect-retry"
import * as AwsSdk from "effect-retry/AwsSdk"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import { TestQuota } from "effect-retry/testing"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as TestClock from "effect/testing/TestClock"
import { getEventListeners } from "node:events"
import { Readable } from "node:stream"
import { signalOf } from "../../src/aws/internal/sdk/clientStrategy.ts"
import {
  type Answer,
  answered,
  busy,
  coded,
  dynamo,
  failure,
  flush,
  getItem,
  handlerOf,
  invalid,
  ok,
  played,
  settings,
  throttle
} from "../utils/awsSdk.ts"
import { budget } from "../utils/budget.ts"
import { constantRandom } from "../utils/call.ts"
import { seeded } from "../utils/smithy.ts"
import { withRandom } from "../utils/vectors.ts"

const withQuota = (options?: RetryQuota.Options) => Effect.provide(RetryQuota.layer(options))

/** How a call of the client ended. */
interface Outcome {
  readonly error: any
  readonly attempts: number | undefined
  readonly delay: number | undefined
}

const outcomeOf = (call: Promise<{ readonly $metadata: any }>): Promise<Outcome> =>
  call.then(
    ({ $metadata }) => ({ error: undefined, attempts: $metadata.attempts, delay: $metadata.totalRetryDelay }),
    (error) => ({ error, attempts: error.$metadata?.attempts, delay: error.$metadata?.totalRetryDelay })
  )

/** Waits for a call of the client. */
const ended = (call: () => Promise<{ readonly $metadata: any }>): Effect.Effect<Outcome> =>
  Effect.promise(() => outcomeOf(call()))

const outcome = (client: DynamoDBClient, options?: { readonly abortSignal: AbortSignal }): Promise<Outcome> =>
  outcomeOf(client.send(getItem(), options))

const get = (client: DynamoDBClient, abortSignal?: AbortSignal) =>
  Effect.promise(() => outcome(client, abortSignal === undefined ? undefined : { abortSignal }))

/** A client of DynamoDB over a handler, with the strategy of a policy. */
const strategic = (
  policy: RetryPolicy.RetryPolicy<any, any, any>,
  answers: ReadonlyArray<Answer>,
  config: DynamoDBClientConfig = {}
) =>
  Effect.map(
    AwsSdk.makeRetryStrategy(policy) as Effect.Effect<AwsSdk.ClientStrategy, never, RetryQuota.RetryQuota>,
    (retryStrategy) => ({
      retryStrategy,
      ...dynamo(answers, { retryStrategy, maxAttempts: retryStrategy.maxAttempts, ...config })
    })
  )

const requestHeaders = (requests: ReadonlyArray<{ readonly headers: Record<string, string> }>) =>
  requests.map(({ headers }) => headers["amz-sdk-request"])

/** A limiter that one throttle has enabled: a token every two seconds, and none yet. */
const limited = Layer.effect(
  AdaptiveRateLimiter.AdaptiveRateLimiter,
  Effect.tap(AdaptiveRateLimiter.make(), (limiter) => limiter.update(true))
)

const client = (errorType: RetryErrorInfo["errorType"], error: unknown = new Error("?")): RetryErrorInfo =>
  ({ errorType, error }) as RetryErrorInfo

/** What a refresh leads to: the delay that it waited, or its refusal. */
const refreshed = (strategy: RetryStrategyV2, info: RetryErrorInfo) =>
  played(
    Effect.promise(async () => {
      const token = await strategy.acquireInitialRetryToken("")
      return strategy.refreshRetryTokenForRetry(token, info).then(
        (next) => next.$retryLog?.acquisitionDelay,
        (error) => error.reason ?? error.name
      )
    }),
    1
  )

const anything = Backoff.fixed(10).pipe(RetryPolicy.maxAttempts(5))

describe("AwsSdk.retryStrategy", () => {
  const sends = async (retryStrategy: RetryStrategyV2, ...answers: ReadonlyArray<Answer>) => {
    const { client, requests } = dynamo(answers, { retryStrategy })
    await client.send(getItem()).catch(() => undefined)
    return requests.length
  }

  it("retries by awsStandard2026, or the policy that it is given", async () => {
    const { maxAttempts, mode } = AwsSdk.retryStrategy()
    assert.deepStrictEqual([mode, maxAttempts], ["standard", 3])
    assert.strictEqual(await sends(AwsSdk.retryStrategy(), busy, ok), 2)
    assert.strictEqual(await sends(AwsSdk.retryStrategy(), invalid, ok), 1)
    assert.strictEqual(await sends(AwsSdk.retryStrategy(AwsModes.standard2026({ maxAttempts: 2 })), busy), 2)
  })

  it("has a quota of its own, which its clients share", async () => {
    const policy = Backoff.fixed(0).pipe(RetryPolicy.maxAttempts(5), RetryPolicy.quotaGated({ cost: 250 }))
    const [one, two] = [AwsSdk.retryStrategy(policy), AwsSdk.retryStrategy(policy)]
    assert.strictEqual(await sends(one, busy), 3)
    assert.strictEqual(await sends(one, busy), 1)
    assert.strictEqual(await sends(two, busy), 3)
  })

  it.each([["options", { maxAttempts: 3 }], ["a number", 3], ["a schedule", Schedule.recurs(3)]])(
    "refuses %s in place of a policy",
    (_, wrong: any) => {
      assert.throws(() => AwsSdk.retryStrategy(wrong), /^AwsSdk.retryStrategy: policy must be a policy, such as/)
      assert.throws(() => AwsSdk.makeRetryStrategy(wrong), /^AwsSdk.makeRetryStrategy: policy must be a policy/)
      assert.throws(() => RetryStrategy.make(wrong), /^RetryStrategy.make: policy must be a policy/)
    }
  )

  it("has a limiter of its own if the policy is adaptive", async () => {
    const strategy = AwsSdk.retryStrategy(awsAdaptive)
    assert.strictEqual(strategy.mode, "adaptive")
    assert.strictEqual(await sends(strategy, ok), 1)
  })
})

describe("AwsSdk.makeRetryStrategy", () => {
  describe("in the loop of a client", () => {
    for (
      const [name, answers, expected] of [
        ["a success", [ok], { attempts: 1, delay: 0, balance: 500, sent: 1 }],
        ["a retry that succeeds", [busy, ok], { attempts: 2, delay: 25, balance: 500, sent: 2 }],
        ["a throttle", [throttle, ok], { attempts: 2, delay: 500, balance: 500, sent: 2 }],
        ["two retries", [throttle, busy, ok], { attempts: 3, delay: 550, balance: 495, sent: 3 }],
        ["all attempts", [busy], { error: "InternalServerError", attempts: 3, delay: 75, balance: 472, sent: 3 }],
        ["a client error", [invalid], { error: "ValidationException", attempts: 1, delay: 0, balance: 500, sent: 1 }],
        ["a persistent server error", [failure("NotImplemented", 501)], {
          error: "NotImplemented",
          attempts: 1,
          delay: 0,
          balance: 500,
          sent: 1
        }],
        ["a network error", [{ throws: Object.assign(new Error("r"), { code: "ECONNRESET" }) }, ok], {
          attempts: 2,
          delay: 25,
          balance: 500,
          sent: 2
        }],
        ["a hint", [failure("SlowDown", 503, { "x-amz-retry-after": "2000" }), ok], {
          attempts: 2,
          delay: 2000,
          balance: 500,
          sent: 2
        }],
        ["a hint beyond all dates", [failure("SlowDown", 503, { "retry-after": "99999999999999" }), ok], {
          attempts: 2,
          delay: 5500,
          balance: 500,
          sent: 2
        }]
      ] as ReadonlyArray<readonly [string, ReadonlyArray<Answer>, Record<string, unknown>]>
    ) {
      it.effect(`counts attempts, backoff and quota: ${name}`, () =>
        Effect.gen(function*() {
          const { client, requests } = yield* strategic(awsStandard2026, answers)
          const { attempts, delay, error } = yield* played(get(client), 1)
          const seen = { attempts, delay, balance: yield* RetryQuota.balance, sent: requests.length }
          assert.deepStrictEqual(error === undefined ? seen : { error: error.name, ...seen }, expected)
          assert.deepStrictEqual(
            requestHeaders(requests),
            Array.from({ length: requests.length }, (_, index) => `attempt=${index + 1}; max=3`)
          )
        }).pipe(withRandom(0.5), withQuota()))
    }

    it.effect("fails with the error of the last attempt, the same object", () =>
      Effect.gen(function*() {
        const errors = [1, 2, 3].map((n) => Object.assign(new Error(String(n)), { code: "EPIPE" }))
        const { client } = yield* strategic(awsStandard, errors.map((throws) => ({ throws })))
        const { attempts, error } = yield* played(get(client))
        assert.strictEqual(error, errors[2])
        assert.strictEqual(attempts, 3)
      }).pipe(withQuota()))

    it.effect("stops when the quota is exhausted", () =>
      Effect.gen(function*() {
        const { client, requests } = yield* strategic(awsStandard2026, [busy])
        const { attempts } = yield* played(get(client))
        assert.deepStrictEqual([attempts, requests.length, yield* RetryQuota.balance], [1, 1, 13])
      }).pipe(withQuota({ capacity: 500, initial: 13 })))

    it.effect("waits for send tokens, and logs the backoff only", () =>
      Effect.gen(function*() {
        const { client } = yield* strategic(awsAdaptive, [throttle, ok])
        const start = yield* Clock.currentTimeMillis
        const { attempts, delay } = yield* played(get(client), 10)
        assert.deepStrictEqual([attempts, delay], [2, 500])
        assert.isAtLeast((yield* Clock.currentTimeMillis) - start, 2000 + 500)
        const { waiting } = yield* AdaptiveRateLimiter.state
        assert.strictEqual(waiting, 0)
      }).pipe(withRandom(0.5), withQuota(), Effect.provide(limited)))

    it.effect("fails the first attempt when the limiter fails fast", () =>
      Effect.gen(function*() {
        const { client, requests } = yield* strategic(awsAdaptive, [ok])
        yield* AdaptiveRateLimiter.update(true)
        const { error } = yield* played(get(client))
        assert.strictEqual(error._tag, "RateLimitExceeded")
        assert.strictEqual(requests.length, 0)
      }).pipe(withQuota(), Effect.provide(AdaptiveRateLimiter.layer({ onExceeded: "fail" }))))

    it.effect("ends a call whose retry the limiter refuses with the error of the client", () =>
      Effect.gen(function*() {
        const { client, requests } = yield* strategic(awsAdaptive, [throttle, ok])
        const { attempts, error } = yield* played(get(client), 10)
        assert.deepStrictEqual([error.name, attempts, requests.length], ["ThrottlingException", 1, 1])
        assert.strictEqual(yield* RetryQuota.balance, 500)
      }).pipe(withQuota(), Effect.provide(AdaptiveRateLimiter.layer({ onExceeded: "fail" }))))

    it.effect("gives the client its mode", () =>
      Effect.gen(function*() {
        for (const [policy, id] of [[awsStandard, "E"], [awsAdaptive, "F"]] as const) {
          const { client, requests, retryStrategy } = yield* strategic(policy, [ok])
          yield* played(get(client))
          assert.match(requests[0]!.headers["user-agent"]!, new RegExp(` m/[A-Za-z,]*${id}`))
          assert.strictEqual(retryStrategy.maxAttempts, 3)
        }
      }).pipe(withQuota(), Effect.provide(AdaptiveRateLimiter.layer())))

    it.effect("never sends a stream again", () =>
      Effect.gen(function*() {
        const retryStrategy = yield* AwsSdk.makeRetryStrategy(awsStandard)
        const { handler, requests } = handlerOf([{ status: 503, body: "<Error><Code>SlowDown</Code></Error>" }])
        const logger = { trace: () => {}, debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
        const s3 = new S3Client({ ...settings, requestHandler: handler, retryStrategy, logger })
        const Body = Readable.from([Buffer.from("abc")])
        const put = new PutObjectCommand({ Bucket: "bucket", Key: "key", Body, ContentLength: 3 })
        const { error } = yield* played(ended(() => s3.send(put)))
        assert.deepStrictEqual([error.name, requests.length, yield* RetryQuota.balance], ["SlowDown", 1, 500])
      }).pipe(withQuota()))

    it.effect("holds back a long poll that the quota refuses, and only a long poll", () =>
      Effect.gen(function*() {
        const retryStrategy = yield* AwsSdk.makeRetryStrategy(awsStandard2026)
        const { handler, requests } = handlerOf([throttle])
        const sqs = new SQSClient({ ...settings, requestHandler: handler, retryStrategy })
        const poll = new ReceiveMessageCommand({ QueueUrl: "https://sqs.eu-west-1.amazonaws.com/1/q" })
        const elapsed = (call: Effect.Effect<Outcome>) =>
          Effect.gen(function*() {
            const start = yield* Clock.currentTimeMillis
            const { attempts } = yield* played(call, 1)
            return [attempts, (yield* Clock.currentTimeMillis) - start]
          })
        assert.deepStrictEqual(yield* elapsed(ended(() => sqs.send(poll))), [1, 500])
        assert.strictEqual(requests.length, 1)
        const { client } = yield* strategic(awsStandard2026, [throttle])
        assert.deepStrictEqual(yield* elapsed(get(client)), [1, 0])
      }).pipe(withRandom(0.5), withQuota({ capacity: 500, initial: 4 })))

    it.effect("stops at the deadline of the policy", () =>
      Effect.gen(function*() {
        const policy = Backoff.fixed(300).pipe(RetryPolicy.deadline("1 second"))
        const { client, requests } = yield* strategic(policy, [busy])
        const { delay } = yield* played(get(client), 10)
        assert.deepStrictEqual([requests.length, delay], [4, 900])
      }).pipe(withQuota()))
  })

  it.effect("has its attempts counted and timed as they end, whoever delivers its tokens", () =>
    Effect.gen(function*() {
      const answers = [ok, busy, ok, invalid]
      const retryStrategy = yield* AwsSdk.makeRetryStrategy(awsStandard)
      const slow = answered(() => Effect.runPromise(Effect.as(Effect.yieldNow, answers.shift()!)), {
        retryStrategy,
        maxAttempts: 3
      })
      for (let call = 0; call < 3; call++) yield* played(get(slow))
      const counted = (yield* Metric.snapshot).filter(({ id }) => id === "retry_attempts_total")
      assert.deepStrictEqual(
        counted.map(({ attributes, state }) => [attributes!["outcome"], (state as any).count]).sort(),
        [["failure", 1], ["failure", 1], ["success", 2]]
      )
    }).pipe(
      Effect.provide([RetryQuota.layer(), RetryMetrics.layer()]),
      Effect.provideService(Metric.MetricRegistry, new Map())
    ))

  it.effect("has the name that it is made under, with one quota for several", () =>
    Effect.gen(function*() {
      for (const name of ["orders", "files"]) {
        const { client } = yield* strategic(awsStandard, [busy, ok]).pipe(
          Effect.provideService(RetryObserver.CurrentResource, name)
        )
        yield* played(get(client))
      }
      const balances = (yield* Metric.snapshot).filter(({ id }) => id === "retry_quota_balance")
      assert.deepStrictEqual(balances.map(({ attributes }) => attributes!["resource"]), ["orders", "files"])
    }).pipe(
      Effect.provide([RetryQuota.layer(), RetryMetrics.layer()]),
      Effect.provideService(Metric.MetricRegistry, new Map())
    ))

  describe("classifies", () => {
    it.effect("by the classifier of the context first", () =>
      Effect.gen(function*() {
        const { client, requests } = yield* strategic(awsStandard, [invalid, ok])
        yield* played(get(client))
        assert.strictEqual(requests.length, 2)
      }).pipe(
        withQuota(),
        Effect.provide(RetryClassifier.layer((error: any) =>
          error.name === "ValidationException" ? Option.some(RetryInfo.transient) : Option.none()
        ))
      ))

    it.effect("a veto of the classifier as final, whatever the SDK says", () =>
      Effect.gen(function*() {
        const { client, requests } = yield* strategic(awsStandard, [busy])
        yield* played(get(client))
        assert.strictEqual(requests.length, 1)
      }).pipe(withQuota(), Effect.provide(RetryClassifier.layer(() => Option.some(RetryInfo.notRetryable)))))

    for (
      const [errorType, expected] of [
        ["TRANSIENT", 25],
        ["THROTTLING", 500],
        ["SERVER_ERROR", "unknown-error"],
        ["CLIENT_ERROR", "final"]
      ] as const
    ) {
      it.effect(`an error that it does not know by its errorType: ${errorType}`, () =>
        Effect.gen(function*() {
          const strategy = yield* AwsSdk.makeRetryStrategy(awsStandard2026)
          assert.strictEqual(yield* refreshed(strategy, client(errorType)), expected)
        }).pipe(withRandom(0.5), withQuota()))
    }

    it.effect("a CLIENT_ERROR as final, even for a policy that retries anything", () =>
      Effect.gen(function*() {
        const strategy = yield* AwsSdk.makeRetryStrategy(anything)
        assert.strictEqual(yield* refreshed(strategy, client("CLIENT_ERROR")), "final")
        assert.strictEqual(yield* refreshed(strategy, client("SERVER_ERROR")), 10)
        assert.strictEqual(yield* refreshed(strategy, client("CLIENT_ERROR", { code: "EPIPE" })), 10)
      }))

    for (
      const [name, policy] of [["by awsStandard", awsStandard], [
        "by a policy that retries anything",
        anything
      ]] as const
    ) {
      it.effect(`a CLIENT_ERROR ${name} as sendWithRetry does, and shows it to observers`, () =>
        Effect.gen(function*() {
          const seen: Array<unknown> = []
          const observing = Effect.provideService(RetryObserver.CurrentObserver, {
            onStop: ({ attempts, reason }, error: any) =>
              void seen.push([attempts, reason, error?.name, error?.$metadata?.httpStatusCode, error?.$fault])
          })
          const { client } = yield* observing(strategic(policy, [invalid]))
          const { error } = yield* played(get(client))
          const once = dynamo([invalid]).client
          yield* played(observing(Effect.flip(AwsSdk.sendWithRetry(once, getItem(), awsStandard))))
          assert.strictEqual(error.name, "ValidationException")
          const expected = [1, "final", "ValidationException", 400, error.$fault]
          assert.deepStrictEqual(seen, [expected, expected])
        }).pipe(withQuota()))
    }

    it.effect("a CLIENT_ERROR that a classifier vetoes as vetoed", () =>
      Effect.gen(function*() {
        const strategy = yield* AwsSdk.makeRetryStrategy(anything)
        assert.strictEqual(yield* refreshed(strategy, client("CLIENT_ERROR")), "vetoed")
      }).pipe(
        Effect.provide(RetryClassifier.layer(RetryClassifier.vetoing(RetryClassifier.defaultClassifier, () => true)))
      ))

    for (
      const [name, hint, expected] of [
        ["ahead", new Date(3000), 3000],
        ["behind", new Date(-3000), 25],
        ["invalid", new Date(NaN), 25],
        ["the last there is", new Date(8.64e15), 5025]
      ] as const
    ) {
      it.effect(`with the hint of the SDK: ${name}`, () =>
        Effect.gen(function*() {
          const strategy = yield* AwsSdk.makeRetryStrategy(awsStandard2026)
          const info = { ...client("TRANSIENT"), retryAfterHint: hint }
          assert.strictEqual(yield* refreshed(strategy, info), expected)
        }).pipe(withRandom(0.5), withQuota()))
    }

    for (
      const error of [
        undefined,
        null,
        "text",
        0,
        Object.create(null),
        new Proxy({}, { get: () => assert.fail() })
      ]
    ) {
      it.effect("errors of any shape", () =>
        Effect.gen(function*() {
          const strategy = yield* AwsSdk.makeRetryStrategy(awsStandard2026)
          assert.strictEqual(yield* refreshed(strategy, { errorType: "TRANSIENT", error } as any), 25)
        }).pipe(withRandom(0.5), withQuota()))
    }
  })

  describe("an abort", () => {
    const sixty = (policy: RetryPolicy.RetryPolicy<any, any, any>, isTold: boolean) =>
      Effect.gen(function*() {
        const { client, requests } = yield* strategic(policy, [busy])
        if (isTold) client.middlewareStack.use(AwsSdk.abortPlugin)
        const errors: Array<string> = []
        for (let call = 0; call < 30; call++) {
          const controller = new AbortController()
          const fiber = yield* Effect.forkChild(get(client, controller.signal), { startImmediately: true })
          yield* flush
          controller.abort()
          errors.push((yield* Fiber.join(fiber)).error.name)
          yield* flush
        }
        const first = yield* RetryQuota.balance
        return { first, requests: requests.length, errors: new Set(errors) }
      })

    for (const isTold of [false, true]) {
      it.effect(`in the backoff gives the tokens back, ${isTold ? "immediately" : "when it ends"}`, () =>
        Effect.gen(function*() {
          const { errors, first, requests } = yield* sixty(awsStandard2026, isTold)
          assert.strictEqual(requests, 30)
          assert.deepStrictEqual([...errors], ["AbortError"])
          assert.strictEqual(first, isTold ? 500 : 500 - 30 * 14)
          yield* TestClock.adjust(25)
          yield* flush
          assert.strictEqual(yield* RetryQuota.balance, 500)
        }).pipe(withRandom(0.5), withQuota()))
    }

    it.effect("of first attempts that wait for a send token leaves no trace", () =>
      Effect.gen(function*() {
        const waits = (ghosts: number) =>
          Effect.gen(function*() {
            const { client } = yield* strategic(awsAdaptive, [ok])
            const controller = new AbortController()
            for (let call = 0; call < ghosts; call++) {
              yield* Effect.forkChild(get(client, controller.signal), { startImmediately: true })
            }
            yield* flush
            assert.strictEqual((yield* AdaptiveRateLimiter.state).waiting, ghosts)
            controller.abort()
            yield* TestClock.adjust(50)
            const times: Array<number> = []
            for (let call = 0; call < 3; call++) {
              const start = yield* Clock.currentTimeMillis
              // Aborted waiters pass a send token on one by one, a turn of the event loop each.
              yield* played(get(client), 10, 60)
              times.push((yield* Clock.currentTimeMillis) - start)
            }
            assert.strictEqual((yield* AdaptiveRateLimiter.state).waiting, 0)
            return times
          }).pipe(Effect.provide(Layer.fresh(limited)))
        // So that the limiter's half seconds begin at the same point.
        yield* TestClock.setTime(1_000_000)
        const control = yield* waits(0)
        yield* TestClock.setTime(2_000_000)
        const after = yield* waits(20)
        assert.deepStrictEqual(after, control)
        assert.isAtLeast(control[0]!, 1000)
      }).pipe(withQuota()))

    for (const isTold of [false, true]) {
      it.effect(`of a retry that waits for a send token leaves no trace${isTold ? ", immediately" : ""}`, () =>
        Effect.gen(function*() {
          const { client } = yield* strategic(awsAdaptive, [throttle])
          if (isTold) client.middlewareStack.use(AwsSdk.abortPlugin)
          const controller = new AbortController()
          const fiber = yield* Effect.forkChild(get(client, controller.signal), { startImmediately: true })
          yield* flush
          yield* TestClock.adjust(2000)
          yield* flush
          yield* TestClock.adjust(500)
          yield* flush
          assert.strictEqual((yield* AdaptiveRateLimiter.state).waiting, 1)
          controller.abort()
          assert.strictEqual((yield* Fiber.join(fiber)).error.name, "AbortError")
          yield* flush
          assert.strictEqual((yield* AdaptiveRateLimiter.state).waiting, isTold ? 0 : 1)
          assert.strictEqual(yield* RetryQuota.balance, isTold ? 500 : 495)
          yield* TestClock.adjust(2000)
          yield* flush
          const { capacity, waiting } = yield* AdaptiveRateLimiter.state
          assert.deepStrictEqual([waiting, capacity, yield* RetryQuota.balance], [0, 1, 500])
        }).pipe(withRandom(0.5), withQuota(), Effect.provide(Layer.fresh(limited))))
    }

    it.effect("of first attempts that wait for a send token takes them out of the queue immediately, if reported", () =>
      Effect.gen(function*() {
        const { client, requests } = yield* strategic(awsAdaptive, [ok])
        client.middlewareStack.use(AwsSdk.abortPlugin)
        const controller = new AbortController()
        const fibers = yield* Effect.forEach(
          [1, 2, 3],
          () => Effect.forkChild(get(client, controller.signal), { startImmediately: true })
        )
        const other = yield* Effect.forkChild(get(client, new AbortController().signal), { startImmediately: true })
        yield* flush
        assert.strictEqual((yield* AdaptiveRateLimiter.state).waiting, 4)
        controller.abort()
        const errors = yield* Effect.forEach(
          fibers,
          (fiber) => Effect.map(Fiber.join(fiber), ({ error }) => error.name)
        )
        assert.deepStrictEqual(errors, ["AbortError", "AbortError", "AbortError"])
        yield* flush
        assert.strictEqual((yield* AdaptiveRateLimiter.state).waiting, 1)
        const { attempts } = yield* played(Fiber.join(other))
        assert.deepStrictEqual([attempts, requests.length], [1, 1])
      }).pipe(withQuota(), Effect.provide(Layer.fresh(limited))))

    it.effect("is known while its call is in progress, and no longer", () =>
      Effect.gen(function*() {
        const { client } = yield* strategic(awsStandard2026, [busy, ok])
        client.middlewareStack.use(AwsSdk.abortPlugin)
        const scopes: Array<string> = []
        client.middlewareStack.add((next, context) => (args) => {
          scopes.push(String(context["partition_id"]))
          return next(args)
        }, { step: "finalizeRequest", priority: "low" })
        const { signal } = new AbortController()
        const call = yield* Effect.forkChild(get(client, signal), { startImmediately: true })
        yield* flush
        assert.deepStrictEqual(scopes.map(signalOf), [signal])
        yield* played(Fiber.join(call))
        assert.deepStrictEqual([...new Set(scopes)].map(signalOf), [undefined])
      }).pipe(withRandom(0.5), withQuota()))

    it.effect("of one call does not count for another with the same error", () =>
      Effect.gen(function*() {
        for (const isFirst of [false, true]) {
          const shared = coded({ code: "ECONNRESET" })
          const { client, requests } = yield* strategic(awsStandard2026, [{ throws: shared }, { throws: shared }, ok])
          client.middlewareStack.use(AwsSdk.abortPlugin)
          const controller = new AbortController()
          const calls = [get(client, controller.signal), get(client)]
          const fibers = yield* Effect.forEach(
            isFirst ? calls : calls.reverse(),
            (call) => Effect.tap(Effect.forkChild(call, { startImmediately: true }), flush)
          )
          assert.strictEqual(requests.length, 2)
          controller.abort()
          const outcomes = yield* Effect.forEach(fibers, (fiber) => played(Fiber.join(fiber)))
          const [aborted, other] = isFirst ? outcomes : outcomes.reverse()
          assert.deepStrictEqual([aborted!.error.name, other!.error, other!.attempts], ["AbortError", undefined, 2])
        }
      }).pipe(withQuota()))

    it.effect("in flight is neither success nor failure; a retry in flight is spent", () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const observer: RetryObserver.RetryObserver = {
          onAttempt: (success) => void seen.push(success),
          onStop: ({ reason }) => void seen.push(reason)
        }
        for (const answers of [[{ hangs: true }], [busy, { hangs: true }]]) {
          const { client, requests } = yield* Effect.provideService(
            strategic(awsStandard2026, answers),
            RetryObserver.CurrentObserver,
            observer
          )
          const controller = new AbortController()
          const fiber = yield* Effect.forkChild(get(client, controller.signal), { startImmediately: true })
          yield* flush
          yield* TestClock.adjust(1000)
          yield* flush
          assert.strictEqual(requests.length, answers.length)
          controller.abort()
          assert.strictEqual((yield* Fiber.join(fiber)).error.name, "AbortError")
          yield* flush
          yield* TestClock.adjust(60_000)
          const { balance, held } = yield* TestQuota.state
          assert.deepStrictEqual([balance, held], [answers.length === 1 ? 500 : 486, 0])
        }
        assert.deepStrictEqual(seen, [false])
      }).pipe(Effect.provide(TestQuota.layer())))

    for (const isTold of [false, true]) {
      it.effect(`before the call sends nothing and takes nothing${isTold ? ", if reported" : ""}`, () =>
        Effect.gen(function*() {
          const { client, requests } = yield* strategic(awsStandard2026, [ok])
          if (isTold) client.middlewareStack.use(AwsSdk.abortPlugin)
          const { error } = yield* played(get(client, AbortSignal.abort()))
          yield* flush
          assert.strictEqual(error.name, "AbortError")
          assert.deepStrictEqual([requests.length, yield* RetryQuota.balance], [0, 500])
        }).pipe(withQuota({ firstAttemptCost: 5 })))
    }

    it.effect("leaves no listener on the signal of a call that has ended", () =>
      Effect.gen(function*() {
        const { client } = yield* strategic(awsStandard2026, [busy, ok, invalid])
        client.middlewareStack.use(AwsSdk.abortPlugin)
        const { signal } = new AbortController()
        for (let call = 0; call < 2; call++) yield* played(get(client, signal))
        assert.deepStrictEqual(getEventListeners(signal, "abort"), [])
      }).pipe(withQuota()))

    /** Lets time pass a millisecond at a time, and promises continue when backoffs end. */
    const passed = (millis: number) =>
      Effect.forEach(
        Array.from({ length: millis }),
        (_, time) => Effect.andThen(TestClock.adjust(1), time % 25 === 24 ? flush : Effect.void),
        { discard: true }
      )

    for (const isTold of [false, true]) {
      it.effect(`law: at any millisecond it costs what was sent without success, no more${isTold ? ", if reported" : ""}`, () =>
        Effect.gen(function*() {
          const balances = new Set<number>()
          for (let at = 0; at <= 80; at += at % 25 === 24 || at % 25 === 0 ? 1 : 4) {
            for (let turns = 0; turns < budget(3, 2); turns++) {
              const quota = yield* RetryQuota.make()
              const { client, requests } = yield* Effect.provideService(
                strategic(awsStandard2026, [busy, busy, busy]),
                RetryQuota.RetryQuota,
                quota
              )
              if (isTold) client.middlewareStack.use(AwsSdk.abortPlugin)
              const controller = new AbortController()
              const fiber = yield* Effect.forkChild(get(client, controller.signal), { startImmediately: true })
              yield* flush
              yield* passed(at)
              for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
              controller.abort()
              yield* played(Fiber.join(fiber))
              yield* flush
              yield* TestClock.adjust(100)
              yield* flush
              const balance = yield* quota.balance
              balances.add(balance)
              assert.strictEqual(balance, 500 - 14 * (requests.length - 1), `${at} ms, ${turns}`)
            }
          }
          assert.deepStrictEqual([...balances].sort(), [472, 486, 500])
        }).pipe(withRandom(0.5)))
    }
  })

  describe("a delivered token", () => {
    /** A strategy whose first attempt takes 100 of the quota, so that it shows whether the token went back. */
    const costly = Effect.provide(RetryQuota.layer({ firstAttemptCost: 100 }))
    const aborted = () => Promise.reject(new Error("aborted"))

    for (
      const [name, take, balance] of [
        ["is kept when it is awaited", async (promise) => void await promise, 400],
        ["is kept when the caller's code listens", async (promise) => promise.then(() => undefined), 400],
        [
          "is kept when it wins a race",
          async (promise) => void await Promise.race([promise, new Promise<never>(() => {})]).finally(() => {}),
          400
        ],
        [
          "is kept through a wrapper",
          async (promise) => void await Promise.race([(async () => promise)(), new Promise<never>(() => {})]),
          400
        ],
        [
          "is kept through a wrapper that waits for more",
          async (promise) => void await (async () => (await Promise.all([promise, Promise.resolve(1)]))[0])(),
          400
        ],
        ["is kept when nobody listens yet", async () => {}, 400],
        [
          "goes back when it loses a race",
          async (promise) => Promise.race([promise, aborted()]).catch(() => {}).then(() => {}),
          500
        ]
      ] as ReadonlyArray<readonly [string, (promise: Promise<RetryToken>) => Promise<void>, number]>
    ) {
      it.effect(name, () =>
        Effect.gen(function*() {
          const strategy = yield* AwsSdk.makeRetryStrategy(awsStandard2026)
          yield* Effect.promise(() => take(strategy.acquireInitialRetryToken("")))
          yield* flush
          assert.strictEqual(yield* RetryQuota.balance, balance)
        }).pipe(costly))
    }
  })

  it.effect("tokens say what the SDK asks of them: how often it was retried, what that cost, how long it waited", () =>
    Effect.gen(function*() {
      const strategy = yield* AwsSdk.makeRetryStrategy(
        anything.pipe(RetryPolicy.quotaGated({ cost: 7, throttlingCost: 3 }))
      )
      const facts = (token: any) => [
        token.getRetryCount(),
        token.getRetryDelay(),
        token.getRetryCost(),
        token.isLongPoll(),
        token.$retryLog.acquisitionDelay
      ]
      const refresh = (token: RetryToken, info: RetryErrorInfo) =>
        played(Effect.promise(() => strategy.refreshRetryTokenForRetry(token, info)), 1)
      const first = yield* Effect.promise(() => strategy.acquireInitialRetryToken("orders:longpoll"))
      const second = yield* refresh(first, client("TRANSIENT"))
      const third = yield* refresh(second, client("THROTTLING"))
      assert.deepStrictEqual([first, second, third].map(facts), [
        [0, 0, undefined, true, 0],
        [1, 0, 7, true, 10],
        [2, 0, 3, true, 10]
      ])
      const plain = yield* Effect.promise(() => strategy.acquireInitialRetryToken("orders"))
      assert.deepStrictEqual(facts(plain), [0, 0, undefined, false, 0])
    }).pipe(withQuota()))

  describe("recordSuccess never throws", () => {
    const token = (strategy: RetryStrategyV2) => Effect.promise(() => strategy.acquireInitialRetryToken(""))

    it.effect("for a used token, which it books once", () =>
      Effect.gen(function*() {
        const strategy = yield* AwsSdk.makeRetryStrategy(awsStandard)
        const first = yield* token(strategy)
        for (let time = 0; time < 3; time++) strategy.recordSuccess(first)
        assert.strictEqual(yield* RetryQuota.balance, 401)
      }).pipe(withQuota({ initial: 400 })))

    it.effect("for a token of another strategy, and for a value that is not a token", () =>
      Effect.gen(function*() {
        const strategy = yield* AwsSdk.makeRetryStrategy(awsStandard)
        const foreign = yield* token(yield* AwsSdk.makeRetryStrategy(awsStandard))
        const sdk = yield* token(new StandardRetryStrategy(3))
        for (const each of [foreign, sdk, {}, undefined, null]) strategy.recordSuccess(each as RetryToken)
        assert.strictEqual(yield* RetryQuota.balance, 400)
        for (const each of [foreign, sdk, {}, undefined, null]) {
          const refused = yield* Effect.promise(() =>
            strategy.refreshRetryTokenForRetry(each as RetryToken, client("TRANSIENT")).catch(({ reason }) => reason)
          )
          assert.strictEqual(refused, "foreign")
        }
      }).pipe(withQuota({ initial: 400 })))

    it.effect("when an observer does; the call succeeds", () =>
      Effect.gen(function*() {
        const { client, requests } = yield* strategic(awsStandard, [ok])
        const { attempts, error } = yield* played(get(client))
        assert.deepStrictEqual([error, attempts, requests.length], [undefined, 1, 1])
      }).pipe(
        withQuota(),
        Effect.provideService(RetryObserver.CurrentObserver, {
          onAttempt: () => {
            throw new Error("observer")
          }
        })
      ))

    it.effect("and an observer that throws at a retry ends the call with its own error, the quota full", () =>
      Effect.gen(function*() {
        const { client, requests } = yield* strategic(awsStandard, [busy])
        const { error } = yield* played(get(client))
        assert.deepStrictEqual([error.name, requests.length], ["InternalServerError", 1])
        assert.strictEqual(yield* RetryQuota.balance, 500)
      }).pipe(
        withQuota(),
        Effect.provideService(RetryObserver.CurrentObserver, {
          onRetry: () => {
            throw new Error("observer")
          }
        })
      ))
  })

  describe("next to the strategy of the SDK", () => {
    const wall = 1_700_000_000_000

    /** Time that does not pass: sleeps end immediately. */
    const still = {
      currentTimeMillisUnsafe: () => wall,
      currentTimeMillis: Effect.succeed(wall),
      currentTimeNanosUnsafe: () => BigInt(wall) * 1_000_000n,
      currentTimeNanos: Effect.succeed(BigInt(wall) * 1_000_000n),
      monotonicTimeNanosUnsafe: () => 0n,
      monotonicTimeNanos: Effect.succeed(0n),
      sleep: () => Effect.void
    }

    /** Runs the SDK with its randomness, clock and timers replaced; every sleep ends immediately. */
    const replaced = <A>(chance: () => number, run: () => Promise<A>) =>
      Effect.promise(async () => {
        const { random } = Math
        const { now } = Date
        const timer = globalThis.setTimeout
        Math.random = chance
        Date.now = () => wall
        globalThis.setTimeout = ((done: () => void) => void queueMicrotask(done)) as never
        try {
          return await run()
        } finally {
          Math.random = random
          Date.now = now
          globalThis.setTimeout = timer
        }
      })

    const hints: ReadonlyArray<(next: () => number) => Record<string, string>> = [
      () => ({}),
      () => ({}),
      (next) => ({ "retry-after": String(Math.floor(next() * 9)) }),
      (next) => ({ "x-amz-retry-after": String(Math.floor(next() * 9000)) }),
      (next) => ({ "retry-after": new Date(wall + Math.floor(next() * 9) * 1000).toUTCString() }),
      () => ({ "x-amz-retry-after": "-5" })
    ]

    const kinds: ReadonlyArray<(headers: Record<string, string>) => Answer> = [
      () => ok,
      () => ok,
      (headers) => ({ ...busy, headers }),
      (headers) => ({ ...busy, headers }),
      (headers) => ({ ...throttle, headers }),
      (headers) => failure("Unknown", 429, headers),
      (headers) => failure("ServiceUnavailable", 503, headers),
      (headers) => failure("NotImplemented", 501, headers),
      (headers) => ({ ...invalid, headers }),
      () => ({ throws: Object.assign(new Error("reset"), { code: "ECONNRESET" }) }),
      () => ({ throws: Object.assign(new Error("slow"), { name: "TimeoutError" }) }),
      () => ({ throws: new Error("unknown") }),
      (headers) => ({ status: 502, body: "<html>", headers })
    ]

    /** A script, as functions: two clients must not share the errors that they are given. */
    const scriptOf = (next: () => number) =>
      Array.from({ length: 40 }, () => {
        const headers = hints[Math.floor(next() * hints.length)]!(next)
        const kind = kinds[Math.floor(next() * kinds.length)]!
        return () => kind(headers)
      })

    const begun = (next: () => number) =>
      Effect.gen(function*() {
        const maxAttempts = [1, 2, 3, 4, 8][Math.floor(next() * 5)]!
        const script = scriptOf(next)
        const initial = next() < 0.5 ? 500 : Math.floor(next() * 60)
        // Eighths of 64 and 1000 milliseconds are whole.
        const chance = Math.floor(next() * 8) / 8
        const js = new StandardRetryStrategy({ maxAttempts, baseDelay: 64 })
        Object.assign(js, { capacity: initial })
        const quota = yield* RetryQuota.make({ initial })
        const ours = yield* AwsSdk.makeRetryStrategy(AwsModes.standard2026({ maxAttempts, base: 64 })).pipe(
          Effect.provideService(RetryQuota.RetryQuota, quota),
          Effect.provideService(Clock.Clock, still),
          Effect.provideService(Random.Random, constantRandom(chance))
        )
        const over = (retryStrategy: RetryStrategyV2) =>
          dynamo(script.map((answer) => answer()), { retryStrategy, maxAttempts })
        return { js, quota, chance, theirs: over(js), mine: over(ours) }
      })

    const none = { calls: 0, retries: 0, delayed: 0, failures: 0, exhausted: 0 }

    const count = (seen: typeof none, { attempts, delay, error }: Outcome, capacity: number) => {
      seen.calls++
      seen.retries += attempts! - 1
      if (delay! > 0) seen.delayed++
      if (error === undefined) return
      seen.failures++
      if (capacity < 14) seen.exhausted++
    }

    it.effect("law: does the same: attempts, delays, headers, errors, capacity", () =>
      Effect.gen(function*() {
        const seen = { ...none }
        for (let seed = 0; seed < budget(60, 15); seed++) {
          const { chance, js, mine, quota, theirs } = yield* begun(seeded(seed))
          const run = ({ client }: ReturnType<typeof dynamo>) => replaced(() => chance, () => outcome(client))
          for (let call = 0; call < 12 && theirs.requests.length < 35; call++) {
            const [a, b] = [yield* run(theirs), yield* run(mine)]
            const told = `seed ${seed}, call ${call}`
            assert.deepStrictEqual([b.attempts, b.delay, b.error?.name], [a.attempts, a.delay, a.error?.name], told)
            assert.deepStrictEqual(requestHeaders(mine.requests), requestHeaders(theirs.requests), told)
            assert.strictEqual(yield* quota.balance, js.getCapacity(), told)
            count(seen, a, js.getCapacity())
          }
        }
        const least = { calls: 300, retries: 150, delayed: 50, failures: 50, exhausted: 20 }
        for (const [name, value] of Object.entries(least)) {
          assert.isAbove(seen[name as keyof typeof seen], budget(value, value / 5), name)
        }
      }))
  })
})
