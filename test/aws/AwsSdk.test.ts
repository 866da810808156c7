import { ConditionalCheckFailedException, DynamoDBClient, type GetItemCommandOutput } from "@aws-sdk/client-dynamodb"
import { PutObjectCommand, S3Client } from "@aws-sdk/client-s3"
import { ReceiveMessageCommand, type ReceiveMessageCommandOutput, SQSClient } from "@aws-sdk/client-sqs"
import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { ConfiguredRetryStrategy, isThrottlingError, isTransientError } from "@smithy/core/retry"
import {
  AdaptiveRateLimiter,
  awsDynamoDB2026,
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
import * as RequestHeaders from "effect-retry/aws/RequestHeaders"
import * as AwsSdk from "effect-retry/AwsSdk"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as fs from "node:fs"
import { Readable } from "node:stream"
import { fileURLToPath } from "node:url"
import * as Example from "../../examples/aws-sdk.ts"
import * as codes from "../../src/internal/classification/errorCodes.ts"
import {
  type Answer,
  busy,
  coded,
  dynamo,
  failed,
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
import { sweep } from "../utils/sweep.ts"
import { withRandom } from "../utils/vectors.ts"

const withQuota = Effect.provide(RetryQuota.layer())

const infoOf = (error: unknown) => {
  const info = Option.getOrUndefined(RetryInfo.fromError(error))
  return info === undefined ? undefined : [info.safety, info.throttling, info.timeout, info.fault]
}

/** The error of one send to a server with this answer. */
const errorOf = (answer: Answer) => Effect.flip(AwsSdk.send(dynamo([answer]).client, getItem()))

/** The headers that distinguish retries from calls. */
const headersOf = ({ headers }: { readonly headers: Record<string, string> }) => [
  headers["amz-sdk-request"],
  headers["amz-sdk-invocation-id"]
]

const uuid4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const s3 = (answers: ReadonlyArray<Answer>) => {
  const { handler, requests } = handlerOf(answers)
  return {
    client: new S3Client({
      ...settings,
      requestHandler: handler,
      requestChecksumCalculation: "WHEN_REQUIRED"
    }),
    requests
  }
}

const slowDown: Answer = { status: 503, body: "<Error><Code>SlowDown</Code><Message>m</Message></Error>" }

const put = (Body: any) => new PutObjectCommand({ Bucket: "bucket", Key: "key", Body, ContentLength: 3 })

const chunks = () => Readable.from([Buffer.from("abc")])

/** Collects the warnings. */
const warnings = () => {
  const seen: Array<unknown> = []
  const logger = Logger.make(({ logLevel, message }) => {
    if (logLevel === "Warn") seen.push(...[message].flat())
  })
  return { seen, provide: Effect.provide(Logger.layer([logger])) }
}

describe("AwsSdk.sendWithRetry", () => {
  it.effect("retries by the policy, whose attempts are in the header from the first send on", () =>
    Effect.gen(function*() {
      const { client, requests } = dynamo([busy, busy, ok])
      const call = AwsSdk.sendWithRetry(client, getItem(), awsDynamoDB2026)
      yield* played(call)
      assert.deepStrictEqual(
        requests.map((request) => headersOf(request)[0]),
        ["attempt=1; max=4", "attempt=2; max=4", "attempt=3; max=4"]
      )
      assert.strictEqual(new Set(requests.map((request) => headersOf(request)[1])).size, 1)
    }).pipe(Effect.provide(RetryQuota.layer())))

  for (
    const [name, answer] of [
      ["of the service", busy],
      ["of the network", { throws: coded({ code: "ECONNRESET" }) }]
    ] as const
  ) {
    it.effect(`its error counts attempts and delays like that of the client's own retries: ${name}`, () =>
      Effect.gen(function*() {
        const { client } = dynamo([answer])
        const error = yield* played(Effect.flip(AwsSdk.sendWithRetry(client, getItem(), awsStandard2026)))
        const { attempts, totalRetryDelay } = error.$metadata!
        assert.deepStrictEqual([attempts, totalRetryDelay], [3, 75])
      }).pipe(withRandom(0.5), Effect.provide(RetryQuota.layer())))
  }
})

describe("AwsSdk.send", () => {
  describe("sends once", () => {
    for (
      const [name, config] of [
        ["by default", {}],
        ["with maxAttempts 10", { maxAttempts: 10 }],
        ["with retryMode adaptive", { retryMode: "adaptive", maxAttempts: 10 }],
        ["with a retryStrategy", { retryStrategy: new ConfiguredRetryStrategy(10, 0) }],
        ["with cacheMiddleware", { cacheMiddleware: true, maxAttempts: 10 }]
      ] as const
    ) {
      it.effect(`${name}`, () =>
        Effect.gen(function*() {
          const { client, requests } = dynamo([busy], config)
          const error = yield* Effect.flip(AwsSdk.send(client, getItem()))
          assert.strictEqual(error.name, "InternalServerError")
          assert.strictEqual(requests.length, 1)
        }))
    }

    it.effect("leaves the client's own calls with their retries", () =>
      Effect.gen(function*() {
        const { client, requests } = dynamo([busy], { retryStrategy: new ConfiguredRetryStrategy(4, 0) })
        const before = client.middlewareStack.identify()
        const own = Effect.promise(() => client.send(getItem()).then(() => 0, (error) => error.$metadata.attempts))
        const command = getItem()
        assert.strictEqual(yield* own, 4)
        const keys = Object.keys(client)
        yield* Effect.flip(AwsSdk.send(client, command))
        assert.deepStrictEqual(Object.keys(client), keys)
        assert.strictEqual(requests.length, 5)
        assert.strictEqual(yield* own, 4)
        assert.strictEqual(yield* Effect.promise(() => client.send(command).catch((e) => e.$metadata.attempts)), 4)
        assert.deepStrictEqual(client.middlewareStack.identify(), before)
      }))

    it.effect("also while the client makes calls of its own, and for a command that is sent again", () =>
      Effect.gen(function*() {
        const { client, requests } = dynamo([busy], { retryStrategy: new ConfiguredRetryStrategy(3, 0) })
        const own = Effect.promise(() => client.send(getItem()).catch(() => 0))
        const send = Effect.flip(AwsSdk.send(client, getItem()))
        yield* Effect.all([own, send, send, own], { concurrency: "unbounded" })
        assert.strictEqual(requests.length, 3 + 1 + 1 + 3)
      }))

    it.effect("through the send of the client, so that a replaced one is used", () =>
      Effect.gen(function*() {
        const { client, requests } = dynamo([busy])
        client.send = (() => Promise.resolve({ $metadata: {}, Item: { id: { S: "mocked" } } })) as never
        const { Item } = yield* AwsSdk.send(client, getItem())
        assert.strictEqual(Item?.["id"]?.S, "mocked")
        assert.strictEqual(requests.length, 0)
      }))

    it.effect("with the middleware that the user has put around the SDK's", () =>
      Effect.gen(function*() {
        const { client, requests } = dynamo([ok])
        client.middlewareStack.addRelativeTo(
          (next: any) => (args: any) => {
            args.request.headers["x-mine"] = "1"
            return next(args)
          },
          { relation: "after", toMiddleware: "retryMiddleware", name: "mine" }
        )
        yield* AwsSdk.send(client, getItem())
        assert.strictEqual(requests[0]!.headers["x-mine"], "1")
      }))
  })

  describe("interruption", () => {
    it.effect("aborts the request", () =>
      Effect.gen(function*() {
        const { client, requests } = dynamo([{ hangs: true }])
        const fiber = yield* Effect.forkChild(AwsSdk.send(client, getItem()), { startImmediately: true })
        yield* flush
        assert.deepStrictEqual(requests.map((request) => request.aborted()), [false])
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(requests.map((request) => request.aborted()), [true])
        const exit = yield* Fiber.await(fiber)
        assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause), "no AbortError is seen")
      }))

    it.effect("aborts the request that also has the user's signal", () =>
      Effect.gen(function*() {
        const { client, requests } = dynamo([{ hangs: true }])
        const call = AwsSdk.send(client, getItem(), { abortSignal: new AbortController().signal })
        const fiber = yield* Effect.forkChild(call, { startImmediately: true })
        yield* flush
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(requests.map((request) => request.aborted()), [true])
      }))

    it.effect("before the request leaves sends nothing", () =>
      Effect.gen(function*() {
        const { client, requests } = dynamo([ok])
        const fiber = yield* Effect.forkChild(AwsSdk.send(client, getItem()), { startImmediately: true })
        yield* Fiber.interrupt(fiber)
        yield* flush
        assert.strictEqual(requests.length, 0)
      }))

    it.effect("by a timeout of the attempt aborts it, and the next one is sent", () =>
      Effect.gen(function*() {
        const { client, requests } = dynamo([{ hangs: true }, ok])
        const timed = Effect.timeout(AwsSdk.send(client, getItem()), "1 second")
        yield* played(timed.pipe(withRetry(awsStandard), withQuota))
        assert.deepStrictEqual(requests.map((request) => request.aborted()), [true, false])
      }))

    it.effect("at any step of a call leaves the quota full, or less what was sent without success", () =>
      Effect.gen(function*() {
        const quota = yield* RetryQuota.make()
        const call = Effect.suspend(() =>
          AwsSdk.send(dynamo([throttle, busy, ok]).client, getItem()).pipe(withRetry(awsStandard2026))
        )
        const balances = new Set<number>()
        const noted = Effect.gen(function*() {
          yield* flush
          balances.add(yield* quota.balance)
          yield* Effect.orDie(quota.deposit(500))
        })
        const provided: Effect.Effect<unknown, AwsSdk.SdkError> = Effect.provideService(
          call,
          RetryQuota.RetryQuota,
          quota
        )
        const steps = yield* sweep(provided, () => noted)
        assert.deepStrictEqual([...balances].sort(), [500 - 5 - 14, 500 - 5, 500])
        assert.isAbove(steps, 20)
      }))

    it.effect("of the user's own signal is an AbortError, which is not retried", () =>
      Effect.gen(function*() {
        for (const late of [false, true]) {
          const controller = new AbortController()
          const { client, requests } = dynamo([{ hangs: true }])
          if (!late) controller.abort()
          const call = AwsSdk.send(client, getItem(), { abortSignal: controller.signal }).pipe(
            withRetry(awsStandard),
            withQuota
          )
          const fiber = yield* Effect.forkChild(Effect.flip(call), { startImmediately: true })
          yield* flush
          controller.abort()
          const error = yield* Fiber.join(fiber)
          assert.strictEqual(error.name, "AbortError")
          assert.strictEqual(requests.length, late ? 1 : 0)
          assert.deepStrictEqual(infoOf(error), ["No", false, false, "other"])
        }
      }))
  })

  it.effect("the user's own signal aborts the stream of an output, which is read after the send", () =>
    Effect.gen(function*() {
      const { client, requests } = dynamo([ok])
      const controller = new AbortController()
      yield* played(AwsSdk.send(client, getItem(), { abortSignal: controller.signal }))
      assert.isFalse(requests[0]!.aborted())
      controller.abort()
      assert.isTrue(requests[0]!.aborted())
    }))

  describe("errors", () => {
    it.effect("keep their class, their identity and their visible shape, and count the sends as the SDK does", () =>
      Effect.gen(function*() {
        const thrown: Array<object> = []
        const shapes: Array<unknown> = []
        const { client } = dynamo([failure("ConditionalCheckFailedException")])
        client.middlewareStack.addRelativeTo(
          (next: any) => (args: any) =>
            next(args).catch((error: any) => {
              thrown.push(error)
              shapes.push([Object.keys(error), { ...error.$metadata, attempts: 1, totalRetryDelay: 0 }])
              throw error
            }),
          { relation: "after", toMiddleware: "retryMiddleware", name: "watch" }
        )
        const error = yield* Effect.flip(AwsSdk.send(client, getItem()).pipe(withRetry(awsStandard), withQuota))
        assert.strictEqual(error, thrown[0])
        assert.instanceOf(error, ConditionalCheckFailedException)
        assert.deepStrictEqual([Object.keys(error), { ...error.$metadata }], shapes[0])
        assert.deepStrictEqual(infoOf(error), ["No", false, false, "client"])
      }))

    it.effect("are caught by their name and by their class", () =>
      Effect.gen(function*() {
        const { client } = dynamo([failure("ConditionalCheckFailedException")])
        const byClass = AwsSdk.send(client, getItem()).pipe(
          Effect.catchIf((error) => error instanceof ConditionalCheckFailedException, (error) => {
            expectTypeOf(error).toExtend<ConditionalCheckFailedException>()
            return Effect.succeed(error.$fault)
          })
        )
        const byName = AwsSdk.send(client, getItem()).pipe(
          Effect.catchIf(({ name }) => name === "ConditionalCheckFailedException", () => Effect.succeed("caught"))
        )
        assert.deepStrictEqual([yield* byClass, yield* byName], ["client", "caught"])
      }))

    it.effect("that are frozen are unchanged, and are retried", () =>
      Effect.gen(function*() {
        const frozen = Object.freeze(Object.assign(new Error("reset"), { code: "ECONNRESET" }))
        const { client, requests } = dynamo([{ throws: frozen }])
        const error = yield* Effect.flip(played(AwsSdk.send(client, getItem()).pipe(withRetry(awsStandard), withQuota)))
        assert.strictEqual(error, frozen)
        assert.strictEqual(requests.length, 3)
      }))

    for (
      const [name, hostile] of [
        ["a revoked proxy", () => {
          const { proxy, revoke } = Proxy.revocable({}, {})
          revoke()
          return proxy
        }],
        ["a proxy that allows nothing", () => new Proxy(new Error("p"), { defineProperty: () => assert.fail("no") })],
        ["getters that throw", () => ({
          get name(): string {
            throw new Error("no")
          },
          get $metadata() {
            throw new Error("no")
          }
        })],
        ["an object without prototype", () => Object.create(null)]
      ] as ReadonlyArray<readonly [string, () => unknown]>
    ) {
      it.effect(`that are hostile are unchanged: ${name}`, () =>
        Effect.gen(function*() {
          const error = hostile()
          const { client, requests } = dynamo([ok])
          client.send = () => Promise.reject(error)
          const exit = yield* Effect.exit(
            played(AwsSdk.send(client, getItem()).pipe(withRetry(awsStandard), withQuota))
          )
          assert.isTrue(failed(exit) === error)
          assert.strictEqual(requests.length, 0)
        }))
    }

    for (const value of [undefined, null, "text", 0, Symbol.for("s")]) {
      it.effect(`that are not objects are wrapped: ${String(value)}`, () =>
        Effect.gen(function*() {
          const { client } = dynamo([{ throws: value }])
          const error = yield* Effect.flip(AwsSdk.send(client, getItem()))
          assert.instanceOf(error, Error)
          assert.include(error.message, String(value))
          assert.deepStrictEqual(infoOf(error), ["No", false, false, "other"])
        }))
    }

    it.effect("that are thrown before there is a promise are failures", () =>
      Effect.gen(function*() {
        const { client } = dynamo([ok])
        const bad = new Error("sync")
        client.middlewareStack.add(() => {
          throw bad
        }, { step: "build" })
        assert.strictEqual(yield* Effect.flip(AwsSdk.send(client, getItem())), bad)
      }))

    it.effect("during serialization are failures, and are not retried", () =>
      Effect.gen(function*() {
        const { client, requests } = dynamo([ok])
        const circular: any = {}
        circular.self = circular
        const command = getItem()
        command.input.Key = circular
        const error = yield* Effect.flip(AwsSdk.send(client, command).pipe(withRetry(awsStandard), withQuota))
        assert.instanceOf(error, Error)
        assert.strictEqual(requests.length, 0)
      }))
  })

  describe("facts", () => {
    const skewed = (error: object) => Object.assign(new Error("skew"), error)

    for (
      const [name, answer, expected] of [
        ["ThrottlingException", throttle, ["Yes", true, false, "client"]],
        ["ProvisionedThroughputExceededException", failure("ProvisionedThroughputExceededException"), [
          "Yes",
          true,
          false,
          "client"
        ]],
        ["a bare 429", failure("Whatever", 429), ["Yes", true, false, "client"]],
        ["SlowDown of the server's fault", failure("SlowDown", 503), ["Yes", true, false, "server"]],
        ["500", busy, ["Yes", false, false, "server"]],
        ["503", failure("ServiceUnavailable", 503), ["Yes", false, false, "server"]],
        ["501", failure("NotImplemented", 501), ["No", false, false, "server"]],
        ["ValidationException", invalid, ["No", false, false, "client"]],
        ["a body that is not valid JSON", { status: 502, body: "<html>" }, ["Yes", false, false, "server"]],
        ["ECONNRESET", { throws: Object.assign(new Error("r"), { code: "ECONNRESET" }) }, [
          "Yes",
          false,
          false,
          "server"
        ]],
        ["TimeoutError", { throws: Object.assign(new Error("t"), { name: "TimeoutError" }) }, [
          "Yes",
          false,
          true,
          "other"
        ]],
        ["a cause that is transient", { throws: new Error("e", { cause: { code: "EPIPE" } }) }, [
          "Yes",
          false,
          false,
          "server"
        ]],
        ["a corrected clock", {
          throws: skewed({ name: "RequestTimeTooSkewed", $fault: "client", $metadata: { clockSkewCorrected: true } })
        }, ["Yes", false, false, "client"]],
        ["a wrong clock that was not corrected", {
          throws: skewed({ name: "RequestTimeTooSkewed", $fault: "client", $metadata: { httpStatusCode: 403 } })
        }, ["No", false, false, "client"]],
        ["Signature expired", failure("InvalidSignatureException"), ["No", false, false, "client"]],
        ["InvalidSignatureException: Signature expired", {
          throws: Object.assign(new Error("Signature expired: 2019"), { name: "InvalidSignatureException" })
        }, ["Yes", false, false, "server"]],
        ["IDPCommunicationErrorException of STS", {
          throws: Object.assign(new Error("idp"), {
            name: "IDPCommunicationErrorException",
            $fault: "client",
            $metadata: { httpStatusCode: 400 }
          })
        }, ["Yes", false, false, "client"]],
        ["IDPCommunicationError on the wire", {
          throws: Object.assign(new Error("idp"), { name: "Unknown", Code: "IDPCommunicationError" })
        }, ["Yes", false, false, "server"]],
        ["$retryable", { throws: Object.assign(new Error("r"), { $retryable: {}, $fault: "server" }) }, [
          "Yes",
          false,
          false,
          "server"
        ]],
        ["$retryable.throttling", { throws: Object.assign(new Error("r"), { $retryable: { throttling: true } }) }, [
          "Yes",
          true,
          false,
          "client"
        ]],
        ["$retryable: undefined", { throws: Object.assign(new Error("r"), { $retryable: undefined }) }, [
          "No",
          false,
          false,
          "other"
        ]],
        ["AbortError with a transient cause", {
          throws: Object.assign(new Error("a", { cause: { code: "EPIPE" } }), { name: "AbortError" })
        }, ["No", false, false, "other"]],
        ["an unknown error", { throws: new Error("?") }, ["No", false, false, "other"]],
        ["facts of its own", { throws: Object.assign(new Error("own"), { [RetryInfo.TypeId]: RetryInfo.timedOut }) }, [
          "Yes",
          false,
          true,
          "other"
        ]]
      ] as ReadonlyArray<readonly [string, Answer, ReturnType<typeof infoOf>]>
    ) {
      it.effect(`of ${name}`, () =>
        Effect.map(errorOf(answer), (error) => assert.deepStrictEqual(infoOf(error), expected)))
    }

    for (
      const [name, headers, expected] of [
        ["x-amz-retry-after", { "x-amz-retry-after": "1500" }, 1500],
        ["retry-after in seconds", { "retry-after": "7" }, 7000],
        ["retry-after as a date", { "retry-after": "Thu, 01 Jan 1970 00:00:09 GMT" }, 9000],
        ["retry-after as a date in the past", { "retry-after": "Wed, 31 Dec 1969 00:00:09 GMT" }, 0],
        ["x-amz-retry-after before retry-after", { "retry-after": "7", "x-amz-retry-after": "1500" }, 1500],
        ["retry-after that is nothing", { "retry-after": "soon" }, undefined],
        ["no header", {}, undefined]
      ] as const
    ) {
      it.effect(`has the hint of the response: ${name}`, () =>
        Effect.gen(function*() {
          const error = yield* errorOf(failure("ThrottlingException", 400, headers))
          const { retryAfter } = Option.getOrThrow(RetryInfo.fromError(error))
          assert.strictEqual(retryAfter === undefined ? undefined : Duration.toMillis(retryAfter), expected)
        }))
    }

    it("of errors from other sends come from the classifier, if it knows them", () => {
      const facts = (error: unknown) =>
        Option.getOrUndefined(Option.map(RetryClassifier.classify(AwsSdk.classifier, error), ({ safety }) => safety))
      assert.deepStrictEqual(
        [{ name: "IDPCommunicationErrorException" }, { name: "AbortError" }, new Error("?"), null, 1].map(facts),
        ["Yes", "No", undefined, undefined, undefined]
      )
    })

    it.effect("are seen by a policy with any classifier of the chain", () =>
      Effect.gen(function*() {
        const answer = { throws: coded({ Code: "IDPCommunicationError" }) }
        const { client, requests } = dynamo([answer, ok])
        yield* played(AwsSdk.send(client, getItem()).pipe(withRetry(awsStandard), withQuota))
        assert.strictEqual(requests.length, 2)
      }))
  })

  describe("headers", () => {
    const retried = {
      "Effect.retry": (call: Effect.Effect<unknown, AwsSdk.SdkError>) => Effect.retry(call, awsStandard2026),
      "withRetry": (call: Effect.Effect<unknown, AwsSdk.SdkError>) => withRetry(call, awsStandard2026),
      "a plain schedule": (call: Effect.Effect<unknown, AwsSdk.SdkError>) => Effect.retry(call, Schedule.recurs(2)),
      "RetryStrategy.run": (call: Effect.Effect<unknown, AwsSdk.SdkError>) =>
        RetryStrategy.run(call).pipe(Effect.provide(RetryStrategy.layer(awsStandard2026)))
    }
    for (const [name, retry] of Object.entries(retried)) {
      for (const enclosed of [false, true]) {
        it.effect(`count the attempts of a call under one id: ${name}${enclosed ? ", enclosed" : ""}`, () =>
          Effect.gen(function*() {
            const { client, requests } = dynamo([throttle, busy, ok, busy, ok])
            const call = retry(AwsSdk.send(client, getItem(), { maxAttempts: 3 }))
            const calls = enclosed ? RequestHeaders.withInvocation(call) : call
            yield* played(Effect.andThen(calls, calls).pipe(withQuota))
            const seen = requests.map(headersOf)
            assert.deepStrictEqual(seen.map(([request]) => request), [1, 2, 3, 1, 2].map((n) => `attempt=${n}; max=3`))
            const ids = seen.map(([, id]) => id!)
            assert.match(ids[0]!, uuid4)
            assert.deepStrictEqual(ids, [ids[0]!, ids[0]!, ids[0]!, ids[3]!, ids[3]!])
            assert.notStrictEqual(ids[0], ids[3])
          }))
      }
    }

    it.effect("have no max by default, and that of a policy", () =>
      Effect.gen(function*() {
        const { client, requests } = dynamo([ok])
        yield* AwsSdk.send(client, getItem())
        yield* AwsSdk.send(client, getItem(), { maxAttempts: awsStandard })
        assert.deepStrictEqual(requests.map((request) => headersOf(request)[0]), ["attempt=1", "attempt=1; max=3"])
      }))

    it.effect("keep counting if the error in between was mapped, inside withInvocation", () =>
      Effect.gen(function*() {
        const { client, requests } = dynamo([busy, busy, ok])
        const mapped = Effect.mapError(AwsSdk.send(client, getItem()), (error) => coded({}, error))
        yield* played(RequestHeaders.withInvocation(withRetry(mapped, awsStandard)).pipe(withQuota))
        assert.deepStrictEqual(
          requests.map((request) => headersOf(request)[0]),
          ["attempt=1", "attempt=2", "attempt=3"]
        )
        assert.strictEqual(new Set(requests.map((request) => headersOf(request)[1])).size, 1)
      }))

    it.effect("of another operation inside the retried effect are those of its own call", () =>
      Effect.gen(function*() {
        const { client, requests } = dynamo([busy, ok, ok])
        const sqs = handlerOf([ok])
        const poll = new SQSClient({ ...settings, requestHandler: sqs.handler })
        const both = Effect.andThen(
          AwsSdk.send(poll, new ReceiveMessageCommand({ QueueUrl: "https://sqs.eu-west-1.amazonaws.com/1/q" })),
          AwsSdk.send(client, getItem())
        )
        yield* played(both.pipe(withRetry(awsStandard), withQuota))
        assert.deepStrictEqual(sqs.requests.map((request) => headersOf(request)[0]), ["attempt=1", "attempt=1"])
        assert.deepStrictEqual(requests.map((request) => headersOf(request)[0]), ["attempt=1", "attempt=2"])
      }))

    it.effect("are signed with their request", () =>
      Effect.gen(function*() {
        const { client, requests } = dynamo([ok])
        yield* AwsSdk.send(client, getItem())
        assert.include(requests[0]!.headers["authorization"], "AWS4-HMAC-SHA256")
      }))

    it.effect("$metadata counts attempts and backoffs across the retries", () =>
      Effect.gen(function*() {
        const { client } = dynamo([throttle, busy, ok])
        const { $metadata } = yield* played(AwsSdk.send(client, getItem()).pipe(withRetry(awsStandard)), 1).pipe(
          withRandom(0.5),
          withQuota
        )
        assert.deepStrictEqual([$metadata.attempts, $metadata.totalRetryDelay], [3, 500 + 1000])
      }))

    it("an impossible maxAttempts is an InvalidOption", () => {
      for (const maxAttempts of [0, -1, 1.5, NaN]) {
        assert.throws(() => AwsSdk.send(dynamo([ok]).client, getItem(), { maxAttempts }), InvalidOption)
      }
    })
  })

  describe("streams", () => {
    const insistent = Backoff.fixed(10).pipe(RetryPolicy.maxAttempts(5))

    for (
      const [name, make] of [
        ["a Readable", chunks],
        ["a ReadableStream", () => new Blob(["abc"]).stream()]
      ] as const
    ) {
      it.effect(`are sent once, which a warning says: ${name}`, () =>
        Effect.gen(function*() {
          for (const policy of [awsStandard, insistent]) {
            const { client, requests } = s3([slowDown])
            const { provide, seen } = warnings()
            const stops: Array<string> = []
            const call = AwsSdk.send(client, put(make())).pipe(
              withRetry(policy),
              withQuota,
              Effect.provideService(RetryObserver.CurrentObserver, { onStop: ({ reason }) => void stops.push(reason) })
            )
            const error = yield* Effect.flip(played(provide(call)))
            assert.strictEqual(error.name, "SlowDown")
            assert.strictEqual(requests.length, 1)
            assert.deepStrictEqual(stops, ["vetoed"])
            assert.deepStrictEqual(infoOf(error), ["No", false, false, "other"])
            assert.deepStrictEqual(seen, [
              "PutObjectCommand is not retried: its input has a stream, which can be sent only once"
            ])
          }
        }))
    }

    it.effect("are not sent again by a plain schedule, nor after a frozen error", () =>
      Effect.gen(function*() {
        const frozen = Object.freeze(Object.assign(new Error("reset"), { code: "ECONNRESET" }))
        const { client, requests } = s3([{ throws: frozen }, { status: 200 }])
        const error = yield* Effect.flip(AwsSdk.send(client, put(chunks())).pipe(Effect.retry(Schedule.recurs(3))))
        assert.strictEqual(error, frozen)
        assert.strictEqual(requests.length, 1)
      }))

    it.effect("give no warning if nothing would have been retried", () =>
      Effect.gen(function*() {
        const { client } = s3([{ status: 403, body: "<Error><Code>AccessDenied</Code></Error>" }])
        const { provide, seen } = warnings()
        yield* Effect.flip(provide(AwsSdk.send(client, put(chunks()))))
        assert.deepStrictEqual(seen, [])
      }))

    it.effect("that were never sent can still be sent", () =>
      Effect.gen(function*() {
        const { handler, requests } = handlerOf([{ status: 200 }])
        let calls = 0
        const credentials = () =>
          calls++ === 0
            ? Promise.reject(coded({ code: "ECONNREFUSED" }))
            : Promise.resolve(settings.credentials)
        const client = new S3Client({ ...settings, credentials, requestHandler: handler })
        yield* played(AwsSdk.send(client, put(chunks())).pipe(withRetry(awsStandard), withQuota))
        assert.strictEqual(requests.length, 1)
      }))

    it.effect("that went out with an interrupted send are not sent again", () =>
      Effect.gen(function*() {
        for (const command of [(body: Readable) => put(body), (body: Readable) => () => put(body)]) {
          const { client, requests } = s3([{ hangs: true }, { status: 200 }])
          const timed = AwsSdk.send(client, command(chunks())).pipe(Effect.timeout("1 second"))
          const error = yield* Effect.flip(played(timed.pipe(withRetry(insistent))))
          assert.strictEqual(requests.length, 1)
          assert.instanceOf(error, AwsSdk.StreamUsed)
          assert.strictEqual(error.message, "the stream in the input of PutObjectCommand was already sent")
          assert.deepStrictEqual(infoOf(error), ["No", false, false, "other"])
        }
      }))

    it.effect("that were sent successfully are not sent again when what follows is retried", () =>
      Effect.gen(function*() {
        const { client, requests } = s3([{ status: 200 }])
        const call = AwsSdk.send(client, put(chunks())).pipe(
          Effect.andThen(Effect.fail(coded({ code: "ECONNRESET" }))),
          withRetry(insistent)
        )
        assert.instanceOf(yield* Effect.flip(played(call)), AwsSdk.StreamUsed)
        assert.strictEqual(requests.length, 1)
      }))

    for (
      const [name, body] of [["a string", "abc"], ["a buffer", Buffer.from("abc")], [
        "a Blob",
        new Blob(["abc"])
      ]] as const
    ) {
      it.effect(`of other kinds are made again for each attempt: ${name}`, () =>
        Effect.gen(function*() {
          const { client, requests } = s3([slowDown, { status: 200 }])
          yield* played(AwsSdk.send(client, put(body)).pipe(withRetry(awsStandard), withQuota))
          assert.strictEqual(requests.length, 2)
        }))
    }

    it.effect("that a function makes again are sent again", () =>
      Effect.gen(function*() {
        const { client, requests } = s3([slowDown, { status: 200 }])
        const bodies: Array<Readable> = []
        const anew = AwsSdk.send(client, () => put(bodies[bodies.push(chunks()) - 1]))
        yield* played(anew.pipe(withRetry(awsStandard), withQuota))
        assert.strictEqual(requests.length, 2)
        assert.deepStrictEqual(requests.map(({ body }) => body), bodies)
      }))

    it.effect("that a function returns twice are not", () =>
      Effect.gen(function*() {
        const { client, requests } = s3([slowDown, { status: 200 }])
        const same = chunks()
        const call = AwsSdk.send(client, () => put(same))
        const error = yield* Effect.flip(played(call.pipe(withRetry(awsStandard), withQuota)))
        assert.strictEqual(error.name, "SlowDown")
        assert.strictEqual(requests.length, 1)
      }))
  })

  describe("docs/aws-sdk.md", () => {
    const page = fs.readFileSync(new URL("../../docs/aws-sdk.md", import.meta.url), "utf8")
    const status = (httpStatusCode: number) => coded({ $fault: "server", $metadata: { httpStatusCode } })
    const named = (name: string) => coded({ name, $fault: "client", $metadata: { httpStatusCode: 400 } })
    const code = (code: string) => coded({ code })

    const rows: ReadonlyArray<readonly [string, ReadonlyArray<Error>, string, string]> = [
      [
        "a throttling code as `name`, status 429, `$retryable.throttling`",
        [...codes.awsThrottlingCodes].map(named).concat(
          status(429),
          coded({ name: "RequestTimeout", $metadata: { httpStatusCode: 429 } }),
          coded({ $retryable: { throttling: true } })
        ),
        "throttling",
        "throttling"
      ],
      [
        "a throttling code only as `Code` or `__type`, or only in the cause",
        [
          coded({ Code: "SlowDown" }),
          coded({ __type: "a#SlowDown" }),
          coded({ __type: "SlowDown:http://internal.amazon.com/coral/" }),
          coded({}, named("SlowDown"))
        ],
        "throttling",
        "no"
      ],
      [
        "`$retryable`, `RequestTimeout`, `RequestTimeoutException`, status 500, 502, 503, 504",
        [
          coded({ $retryable: {} }),
          named("RequestTimeout"),
          named("RequestTimeoutException"),
          ...[500, 502, 503, 504].map(status)
        ],
        "transient",
        "transient"
      ],
      ["`TimeoutError`, `ETIMEDOUT`", [named("TimeoutError"), code("ETIMEDOUT")], "transient, a timeout", "transient"],
      [
        "other network errors: `ECONNRESET`, `ECONNREFUSED`, `EPIPE`, `EHOSTUNREACH`, `ENETUNREACH`, `ENOTFOUND`, `EAI_AGAIN`; or one as the cause",
        ["ECONNRESET", "ECONNREFUSED", "EPIPE", "EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND", "EAI_AGAIN"].map(code)
          .concat(
            coded({}, code("EPIPE"))
          ),
        "transient",
        "transient"
      ],
      [
        "a refused HTTP/2 stream, a `fetch` that failed in a browser",
        [
          coded({ code: "ERR_HTTP2_STREAM_ERROR", message: "Stream closed with error code NGHTTP2_REFUSED_STREAM" }),
          ...[
            "Failed to fetch",
            "NetworkError when attempting to fetch resource",
            "The Internet connection appears to be offline",
            "Load failed",
            "Network request failed"
          ].map((message) => new TypeError(message))
        ],
        "transient",
        "transient"
      ],
      ["`UND_ERR_SOCKET`", [code("UND_ERR_SOCKET")], "transient", "no"],
      [
        "`ESOCKETTIMEDOUT`, `UND_ERR_CONNECT_TIMEOUT`, `UND_ERR_HEADERS_TIMEOUT`, `UND_ERR_BODY_TIMEOUT`",
        [...codes.timeoutCodes].filter((name) => name !== "ETIMEDOUT").map(code),
        "transient, a timeout",
        "no"
      ],
      [
        "an error that corrected the client's clock (`$metadata.clockSkewCorrected`)",
        [coded({ name: "RequestTimeTooSkewed", $metadata: { clockSkewCorrected: true } })],
        "transient",
        "transient"
      ],
      [
        "`InvalidSignatureException`: `Signature expired`",
        [Object.assign(coded({ name: "InvalidSignatureException" }), { message: "Signature expired: then" })],
        "transient",
        "transient"
      ],
      [
        "`IDPCommunicationErrorException` of STS, with `$retryable`",
        [coded({ name: "IDPCommunicationErrorException", $retryable: {} })],
        "transient",
        "transient"
      ],
      [
        "`IDPCommunicationError` without it",
        [named("IDPCommunicationError"), coded({ Code: "IDPCommunicationError" })],
        "transient",
        "no"
      ],
      [
        "anything else: 501, 4xx, a wrong clock that was not corrected, an unknown error",
        [status(501), named("ValidationException"), named("RequestTimeTooSkewed"), coded({})],
        "no",
        "no"
      ],
      ["`AbortError`", [coded({ name: "AbortError" }, code("EPIPE"))], "no", "no"]
    ]

    const ours = (error: Error) =>
      Effect.map(errorOf({ throws: error }), (failure) => {
        const { safety, throttling, timeout } = Option.getOrThrow(RetryInfo.fromError(failure))
        if (safety !== "Yes") return "no"
        return throttling ? "throttling" : timeout ? "transient, a timeout" : "transient"
      })

    const sdks = (error: any) => isThrottlingError(error) ? "throttling" : isTransientError(error) ? "transient" : "no"

    for (const [cell, errors, here, sdk] of rows) {
      it.effect(`is right about ${cell}`, () =>
        Effect.gen(function*() {
          for (const error of errors) {
            assert.strictEqual(sdks(error), sdk, error.name)
            assert.strictEqual(yield* ours(error), here, error.name)
          }
          assert.include(page, `| ${cell} | ${here} | ${sdk} |`)
        }))
    }
  })

  describe("examples/aws-sdk", () => {
    it.effect("getOrder makes four attempts at most", () =>
      Effect.gen(function*() {
        const item = { status: 200, body: JSON.stringify({ Item: { id: { S: "7" } } }) }
        const { client, requests } = dynamo([busy, throttle, busy, item])
        assert.deepStrictEqual(yield* played(Example.getOrder(client, "7")), { id: { S: "7" } })
        assert.strictEqual(headersOf(requests[3]!)[0], "attempt=4; max=4")
      }).pipe(withQuota))

    it.effect("create catches an error of the SDK", () =>
      Effect.gen(function*() {
        const { client } = dynamo([busy, failure("ConditionalCheckFailedException"), ok])
        assert.strictEqual(yield* played(Example.create(client, "7")), "was there")
        assert.strictEqual(yield* played(Example.create(client, "8")), "created")
      }).pipe(withQuota))

    it.effect("upload sends another stream for each attempt", () =>
      Effect.gen(function*() {
        const { client, requests } = s3([slowDown, { status: 200 }])
        yield* played(Example.upload(client, fileURLToPath(new URL("../../package.json", import.meta.url))))
        assert.strictEqual(new Set(requests.map(({ body }) => body)).size, 2)
      }).pipe(withQuota))

    it.effect("makeClient makes a client that retries by the policy", () =>
      Effect.gen(function*() {
        const { handler, requests } = handlerOf([throttle, ok])
        const client = yield* Example.makeClient({ ...settings, requestHandler: handler })
        const { $metadata } = yield* played(Effect.promise(() => client.send(getItem())))
        assert.deepStrictEqual([$metadata.attempts, requests.length], [2, 2])
        assert.strictEqual(headersOf(requests[1]!)[0], "attempt=2; max=3")
      }).pipe(withQuota, Effect.provide(AdaptiveRateLimiter.layer())))

    it("plainClient is a client for code without Effect", async () => {
      const { handler, requests } = handlerOf([ok])
      const client = Example.plainClient({ ...settings, requestHandler: handler })
      const { $metadata } = await client.send(getItem())
      assert.deepStrictEqual([$metadata.attempts, requests.length], [1, 1])
      assert.strictEqual(headersOf(requests[0]!)[0], "attempt=1; max=4")
    })
  })

  it("types outputs by their command, and fails with SdkError only", () => {
    const { client } = dynamo([ok])
    const sqs = new SQSClient(settings)
    expectTypeOf(AwsSdk.send(client, getItem())).toEqualTypeOf<
      Effect.Effect<GetItemCommandOutput, AwsSdk.SdkError>
    >()
    expectTypeOf(AwsSdk.send(sqs, new ReceiveMessageCommand({ QueueUrl: "q" }))).toEqualTypeOf<
      Effect.Effect<ReceiveMessageCommandOutput, AwsSdk.SdkError>
    >()
    // @ts-expect-error a command of another service
    void AwsSdk.send(sqs, getItem())
    expectTypeOf(withRetry(AwsSdk.send(client, getItem()), awsStandard)).toEqualTypeOf<
      Effect.Effect<GetItemCommandOutput, AwsSdk.SdkError, RetryQuota.RetryQuota>
    >()
    assert.instanceOf(client, DynamoDBClient)
  })
})
