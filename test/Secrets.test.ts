import { GetItemCommand } from "@aws-sdk/client-dynamodb"
import { PutObjectCommand, S3Client } from "@aws-sdk/client-s3"
import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  attempt,
  awsStandard,
  Backoff,
  RetryClassifier,
  RetryObserver,
  RetryPolicy,
  RetryPromise,
  RetryQuota,
  Waiter,
  withRetry
} from "effect-retry"
import * as AwsSdk from "effect-retry/AwsSdk"
import * as RetryGrpc from "effect-retry/RetryGrpc"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as Kit from "effect-retry/testing"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Stream from "effect/Stream"
import { Readable } from "node:stream"
import { inspect } from "node:util"
import { timedOut } from "../src/http/internal/classifyResponse.ts"
import { clientOf, responseOf } from "./reliability/utils/http.ts"
import { dynamo, handlerOf, played, settings, throttle } from "./utils/awsSdk.ts"
import { FakeRedis } from "./utils/fakeRedis.ts"
import { renderings, told } from "./utils/told.ts"

const secret = "s3cr3t-planted"

describe("secrets planted in requests and responses", () => {
  const request = HttpClientRequest.post(`https://${secret}:${secret}@host:8443/path?token=${secret}#${secret}`).pipe(
    HttpClientRequest.setUrlParam("key", secret),
    HttpClientRequest.setHash(secret),
    HttpClientRequest.setHeader("authorization", `Bearer ${secret}`),
    HttpClientRequest.setHeader("idempotency-key", secret),
    HttpClientRequest.bodyText(secret)
  )
  const answers = [
    { status: 503, headers: { "set-cookie": secret, "retry-after": secret }, body: secret },
    { error: Object.assign(new Error(secret), { code: "ECONNRESET", url: `https://host/?token=${secret}` }) },
    { status: 429, headers: { "x-request-id": secret }, body: secret },
    { status: 503, headers: { location: `https://host/?token=${secret}` }, body: secret }
  ] as const
  const policy = Backoff.fixed(10).pipe(
    RetryPolicy.maxAttempts(5),
    RetryPolicy.whileRetryable,
    RetryPolicy.quotaGated({ cost: 5 })
  )

  const http = (answers: Parameters<typeof clientOf>[0], sent = request) => {
    const { client, times } = clientOf(answers)
    const foreign = new Set<unknown>()
    const spanned = HttpClient.transformResponse(client, (send) =>
      send.pipe(
        Effect.tapError((error) => Effect.sync(() => foreign.add(error))),
        Effect.withSpan("send")
      ))
    const call = RetryHttp.retry(spanned, policy, { attemptTimeout: "1 second" }).execute(sent)
    // Effect's own spans of requests are not ours.
    const heard = Effect.provideService(told(Kit.runToEnd(call), foreign), HttpClient.TracerDisabledWhen, () => true)
    return { heard, times }
  }

  it.effect("appear in no log or span of RetryHttp", () =>
    Effect.gen(function*() {
      const { heard, times } = http(answers)
      const { exit, spans, text } = yield* heard
      assert.strictEqual(times.length, 5)
      assert.strictEqual(spans, 6)
      assert.isTrue(Exit.isSuccess(exit))
      assert.include(text, "http.request.resend_count")
      assert.include(text, "retry.stopped")
      assert.notInclude(text, secret)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("appear in no error of an attempt that takes too long: it shows the method and the path", () =>
    Effect.gen(function*() {
      const { heard, times } = http([...answers, "never"])
      const { exit, text } = yield* heard
      assert.strictEqual(times.length, 5)
      const error: unknown = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
      assert.strictEqual(
        String(error),
        "HttpClientError: Transport: no response within 1s (POST https://host:8443/path)"
      )
      assert.notInclude(text, secret)
    }).pipe(Effect.provide(RetryQuota.layer())))

  const addresses: ReadonlyArray<readonly [string, string]> = [
    [`https://host/a/b?${secret}`, "https://host/a/b"],
    [`https://${secret}@host`, "https://host/"],
    [`http://user:${secret}@[::1]:80/a#${secret}`, "http://[::1]/a"],
    [`https:user:${secret}@host/a`, "https://host/a"],
    [`/a/b?${secret}`, "/a/b"],
    [`a?${secret}`, "/a"],
    [`//user:${secret}@host/a`, "/a"],
    [`user:${secret}@host/a`, ""],
    [`data:text/plain,${secret}`, ""],
    [`https://user:${secret}@host:99999/a`, ""],
    [`?${secret}`, "/"]
  ]
  for (const [address, place] of addresses) {
    it(`appear in no timeout error: for ${address} it shows ${JSON.stringify(place)}`, () => {
      const error = timedOut(HttpClientRequest.setUrl(request, address), 1000)
      assert.strictEqual(error.message, `Transport: no response within 1s (POST ${place})`)
      assert.notInclude(renderings(error), secret)
    })
  }

  it.effect("appear in no log or span of a request whose body is a stream", () =>
    Effect.gen(function*() {
      const body = HttpBody.stream(Stream.make(new TextEncoder().encode(secret)))
      const { heard, times } = http(answers, HttpClientRequest.setBody(request, body))
      const { text } = yield* heard
      assert.strictEqual(times.length, 1)
      assert.include(text, "The request is not sent again")
      assert.include(text, "http.request.body.one_shot")
      assert.notInclude(text, secret)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("appear in no log or span of attempt, nor with the observer's own events", () =>
    Effect.gen(function*() {
      const tokens: Array<string> = []
      const observer = RetryObserver.combine(RetryObserver.spanEvents, {
        onRetry: (token) => void tokens.push(JSON.stringify(token)),
        onStop: (stopped) => void tokens.push(JSON.stringify(stopped))
      })
      const failure = Object.assign(new Error(secret), {
        status: 503,
        headers: { "retry-after": secret },
        body: secret
      })
      const call = Effect.retry(Effect.fail(failure), policy)
      const { text } = yield* told(
        Kit.runToEnd(Effect.provide(call, RetryObserver.layer(observer))),
        new Set<unknown>([failure])
      )
      assert.strictEqual(tokens.length, 5)
      assert.notInclude(text + tokens.join(), secret)
    }).pipe(Effect.provide(RetryQuota.layer())))

  const credentials = { accessKeyId: secret, secretAccessKey: secret, sessionToken: secret }
  const refusal = {
    ...throttle,
    headers: { "x-amz-retry-after": secret, "x-secret": secret },
    body: JSON.stringify({ __type: "com.amazonaws#ThrottlingException", message: secret })
  }
  const getSecret = () => new GetItemCommand({ TableName: "t", Key: { id: { S: secret } } })

  /** A third-party error, as it is before we see it. */
  interface Seen {
    readonly shown: string
    readonly keys: ReadonlyArray<PropertyKey>
  }
  const seen = (error: unknown): Seen => ({
    shown: inspect(error, { depth: Infinity }),
    keys: Reflect.ownKeys(error as object)
  })

  /** What the SDK's own retries add to an error of theirs too. */
  const counts = /,\n\s+attempts: \d+,\n\s+totalRetryDelay: \d+/

  /** A third-party error comes out unchanged, but for this many hidden keys, which contain no secret. */
  const isUntouched = (exit: Exit.Exit<unknown, unknown>, foreign: ReadonlyMap<unknown, Seen>, added: number) => {
    const error = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
    const before = foreign.get(error)
    const now = seen(error)
    assert.strictEqual(now.shown.replace(counts, ""), before?.shown)
    const keys = now.keys.filter((key) => !before?.keys.includes(key))
    assert.strictEqual(keys.length, added, keys.map(String).join())
    for (const key of keys) assert.notInclude(renderings(Reflect.get(error as object, key)), secret)
  }

  /** Notes what a client of the SDK throws, before `AwsSdk.send` sees it. */
  const noting = (client: { send: (...args: ReadonlyArray<any>) => any }): ReadonlyMap<unknown, Seen> => {
    const foreign = new Map<unknown, Seen>()
    const { send } = client
    client.send = function(...args) {
      return Reflect.apply(send, this, args).catch((error: unknown) => {
        foreign.set(error, seen(error))
        throw error
      })
    }
    return foreign
  }

  it.effect("appear in no log or span of AwsSdk.send, nor into what it adds to the error of the SDK", () =>
    Effect.gen(function*() {
      const { client, requests } = dynamo([refusal], { credentials })
      const foreign = noting(client)
      const { exit, text } = yield* told(played(withRetry(AwsSdk.send(client, getSecret()), awsStandard)), foreign)
      assert.strictEqual(requests.length, 3)
      assert.include(new TextDecoder().decode(requests[0]!.body as Uint8Array), secret)
      assert.include(text, "retry.stopped")
      assert.notInclude(text, secret)
      isUntouched(exit, foreign, 1)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("appear in no log, span or error of AwsSdk.send whose input has a stream", () =>
    Effect.gen(function*() {
      const { handler, requests } = handlerOf([{ ...refusal, body: `<Error><Code>SlowDown</Code>${secret}</Error>` }])
      const client = new S3Client({ ...settings, credentials, requestHandler: handler })
      const foreign = noting(client)
      const command = new PutObjectCommand({
        Bucket: "b",
        Key: secret,
        Metadata: { secret },
        Body: Readable.from([secret]),
        ContentLength: secret.length
      })
      const send = AwsSdk.send(client, command)
      const { exit, text } = yield* told(played(withRetry(send, awsStandard)), foreign)
      assert.strictEqual(requests.length, 1)
      assert.include(text, "PutObjectCommand is not retried")
      assert.notInclude(text, secret)
      isUntouched(exit, foreign, 2)

      const again = yield* told(played(send), foreign)
      assert.isTrue(Exit.isFailure(again.exit))
      assert.strictEqual(requests.length, 1)
      assert.notInclude(again.text, secret)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("appear in no error of AwsSdk.send whose stream was sent before", () =>
    Effect.gen(function*() {
      const { handler, requests } = handlerOf([{ status: 200 }])
      const client = new S3Client({ ...settings, credentials, requestHandler: handler })
      const Body = Readable.from([secret])
      const send = AwsSdk.send(client, new PutObjectCommand({ Bucket: "b", Key: secret, Body, ContentLength: 14 }))
      const { exit, text } = yield* told(played(Effect.andThen(send, send)))
      assert.strictEqual(requests.length, 1)
      assert.isTrue(Exit.isFailure(exit))
      assert.include(text, "the stream in the input of PutObjectCommand was already sent")
      assert.notInclude(text, secret)
    }))

  it.effect("appear in no log, span or refusal of AwsSdk.makeRetryStrategy, and the error of the SDK stays what it is", () =>
    Effect.gen(function*() {
      const foreign = new Map<unknown, Seen>()
      const refused: Array<unknown> = []
      const calls = Effect.gen(function*() {
        const retryStrategy = yield* AwsSdk.makeRetryStrategy(awsStandard)
        const { client } = dynamo([refusal], { credentials, retryStrategy, maxAttempts: retryStrategy.maxAttempts })
        const refresh = retryStrategy.refreshRetryTokenForRetry.bind(retryStrategy)
        retryStrategy.refreshRetryTokenForRetry = (token, info) => {
          foreign.set(info.error, seen(info.error))
          return refresh(token, info).catch((error: unknown) => {
            refused.push(error)
            throw error
          })
        }
        return yield* Effect.promise(() => client.send(getSecret()))
      })
      const { exit, text } = yield* told(played(calls), foreign)
      assert.strictEqual(foreign.size, 3)
      assert.strictEqual(refused.length, 1)
      assert.include(renderings(refused[0]), "RetryRefused")
      assert.notInclude(renderings(refused[0]), secret)
      assert.include(text, "retry.stopped")
      assert.notInclude(text, secret)
      assert.isTrue(foreign.has(Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined))
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("appear in no log or span of RetryGrpc, which adds nothing to the error", () =>
    Effect.gen(function*() {
      class Metadata {
        readonly values = new Map([["authorization", secret]])
        readonly clone = () => new Metadata()
        readonly set = (key: string, value: string) => this.values.set(key, value)
      }
      const sent: Array<Metadata> = []
      const foreign = new Map<unknown, Seen>()
      const call = RetryGrpc.unary<never>((send, callback) => {
        sent.push(send.metadata(new Metadata()))
        const error = Object.assign(new Error(`14 UNAVAILABLE: ${secret}`), {
          code: 14,
          details: `No connection established. Last error: ${secret}`,
          metadata: { get: (key: string) => [key === "grpc-retry-pushback-ms" ? "10" : secret] }
        })
        foreign.set(error, seen(error))
        callback(error)
        return { cancel: () => {} }
      }, { timeout: "1 second" })
      const classifier = RetryClassifier.layer(RetryGrpc.makeClassifier({ idempotent: false }))
      const retried = withRetry(call, RetryGrpc.honorPushback()(policy)).pipe(Effect.provide(classifier))
      const { exit, text } = yield* told(Kit.runToEnd(retried), foreign)
      assert.deepStrictEqual(
        sent.map(({ values }) => values.get("grpc-previous-rpc-attempts")),
        [undefined, "1", "2", "3", "4"]
      )
      assert.include(text, "retry.stopped")
      assert.notInclude(text, secret)
      isUntouched(exit, foreign, 0)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("appear in no log or span of RetryPromise, which adds nothing to the error", () =>
    Effect.gen(function*() {
      const foreign = new Map<unknown, Seen>()
      const send: RetryPromise.AttemptFunction<never> = () => {
        const error = Object.assign(new Error(secret), {
          status: 503,
          headers: { "retry-after": secret },
          body: secret
        })
        foreign.set(error, seen(error))
        return Promise.reject(error)
      }
      const call = Effect.flatMap(Effect.context<never>(), (context) =>
        Effect.promise(() => RetryPromise.retryPromise(send, policy, { context })))
      const { exit, text } = yield* told(played(call), foreign)
      assert.strictEqual(foreign.size, 5)
      assert.include(text, "retry.stopped")
      assert.notInclude(text, secret)
      isUntouched(exit, foreign, 0)
    }))

  class SocketClosedUnexpectedlyError extends Error {}
  const coded = (code: string) => Object.assign(new Error(secret), { code, address: secret, input: secret })
  const named = (name: string) => Object.assign(new Error(secret), { name })
  const address = `redis://user:pa/${secret}@redis.internal:6379/0?password=${secret}`
  const reasons: ReadonlyArray<readonly [shown: string, cause: unknown]> = [
    [
      "ERR unknown command 'HELLO'",
      new Error(`ERR unknown command 'HELLO', with args beginning with: '3' '${secret}'`)
    ],
    ["ERR unknown command 'AUTH'", new Error(`ERR unknown command \`AUTH\`, with args beginning with: \`${secret}\``)],
    ["ERR", new Error(`ERR unknown command '${secret}', with args beginning with: `)],
    [
      "ERR Error running script",
      new Error(`ERR Error running script (call to f_${secret}): @user_script:1: ${secret}`)
    ],
    ["ERR", new Error(`ERR invalid password ${secret}`.replace("password ", "password-"))],
    ["WRONGPASS", new Error(`WRONGPASS invalid username-password pair or user is disabled: ${secret}`)],
    ["NOAUTH", new Error(`NOAUTH ${secret}`)],
    ["NOPERM", new Error(`NOPERM No permissions to access a key: ${secret}`)],
    ["MOVED", new Error(`MOVED 3999 ${secret}:6381`)],
    ["READONLY", new Error("READONLY You can't write against a read only replica.")],
    ["OOM", new Error("an outer one", { cause: new Error("OOM") })],
    ["NOAUTH", new Error("NOAUTH", { cause: secret })],
    ["ECONNREFUSED", Object.assign(new Error(`connect ECONNREFUSED ${address}`), { code: "ECONNREFUSED" })],
    ["ENOTFOUND", coded("ENOTFOUND")],
    ["ERR_INVALID_URL", coded("ERR_INVALID_URL")],
    ["SELF_SIGNED_CERT_IN_CHAIN", coded("SELF_SIGNED_CERT_IN_CHAIN")],
    ["ECONNRESET", new AggregateError([coded("ECONNRESET")], secret, { cause: coded("ECONNRESET") })],
    ["ECONNREFUSED", Object.assign(named("ReconnectStrategyError"), { originalError: coded("ECONNREFUSED") })],
    ["SocketClosedUnexpectedlyError", new SocketClosedUnexpectedlyError(secret)],
    ["MaxRetriesPerRequestError", named("MaxRetriesPerRequestError")],
    ["RedisError", named(secret)],
    ["RedisError", coded(secret)],
    ["RedisError", new Error(address)],
    ["RedisError", new Error(`ERR${secret}`)],
    ["RedisError", secret],
    ["RedisError", undefined]
  ]
  for (const [index, [shown, cause]] of reasons.entries()) {
    it.effect(`appear in no log of a shared quota that Redis does not answer (${index}): ${shown}`, () =>
      Effect.gen(function*() {
        const redis = { ...new FakeRedis().service, eval: () => () => Effect.fail(new Redis.RedisError({ cause })) }
        const quota = RetryQuotaRedis.make({ name: "test" }).pipe(Effect.provideService(Redis.Redis, redis))
        const { text } = yield* told(Effect.scoped(Effect.flatMap(quota, ({ reserve }) => reserve(5))))
        assert.include(text, `Redis does not answer, the local fallback decides: ${shown}"`)
        assert.notInclude(text, secret)
      }))
  }

  it.effect("appear in no log of a shared quota where Redis fails after the timeout", () =>
    Effect.gen(function*() {
      const late = Effect.delay(Effect.fail(new Redis.RedisError({ cause: new Error(secret) })), 200)
      const redis = { ...new FakeRedis().service, eval: () => () => late }
      const quota = RetryQuotaRedis.make({ name: "test" }).pipe(Effect.provideService(Redis.Redis, redis))
      const call = Effect.flatMap(quota, ({ reserve }) => Effect.andThen(reserve(5), Effect.sleep("2 seconds")))
      const { text } = yield* told(Kit.runToEnd(Effect.scoped(call)))
      assert.include(text, "the local fallback decides: no answer within 50 ms")
      assert.notInclude(text, secret)
    }))

  it.effect("appear in no log of a shared quota whose layer cannot connect", () =>
    Effect.gen(function*() {
      const redis = Layer.effect(Redis.Redis, Effect.fail({ _tag: "ConfigError", message: address, url: address }))
      const quota = RetryQuotaRedis.layerConnecting({ name: "test" }, redis)
      const call = Effect.flatMap(RetryQuota.RetryQuota, ({ reserve }) => reserve(5))
      const { text } = yield* told(Effect.provide(Effect.delay(call, "1 second"), quota).pipe(Kit.runToEnd))
      assert.include(text, "the local fallback decides: an unknown error")
      assert.notInclude(text, secret)
    }))

  it.effect("appear in no error of a waiter, which gives the outcome to callers that ask for it", () =>
    Effect.gen(function*() {
      const response = responseOf({ "x-secret": secret }, 200, request, secret)
      const never = Waiter.output("success", () => false)
      const wait = (acceptors: Waiter.Options<unknown, unknown>["acceptors"], poll: Effect.Effect<unknown, unknown>) =>
        told(Kit.runToEnd(Waiter.waitUntil(poll, Waiter.make({ acceptors, maxWait: "3 seconds" }))))
      const inVain = yield* wait([never, Waiter.output("failure")], Effect.succeed(response))
      const unknown = yield* wait([never], Effect.fail({ message: secret, response }))
      const tooLong = yield* wait([never], Effect.succeed(response))
      for (const { exit, text } of [inVain, unknown, tooLong]) {
        assert.match(text, /\d polls?/)
        assert.notInclude(text, secret)
        const error: unknown = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
        const outcome = error instanceof Waiter.WaiterFailed ? error.outcome : (error as Waiter.WaiterTimedOut).last
        assert.include(renderings(outcome), secret)
      }
    }))

  it.effect("appear in no error that the library itself makes", () =>
    Effect.gen(function*() {
      const limiter = yield* AdaptiveRateLimiter.make({ onExceeded: "fail" })
      yield* limiter.update(true)
      const send = attempt(Effect.fail({ message: secret }))
      const refused = yield* Effect.flip(Effect.provideService(send, AdaptiveRateLimiter.AdaptiveRateLimiter, limiter))
      const poor = yield* RetryQuota.make({ capacity: 1, initial: 0, firstAttemptCost: 1 })
      const unpaid = yield* Effect.flip(Effect.provideService(send, RetryQuota.RetryQuota, poor))
      for (const error of [refused, unpaid]) assert.notInclude(`${String(error)} ${JSON.stringify(error)}`, secret)
    }))
})
