/** What closes a resource: hints of failures and, before any of them, of successes. */
import { assert, describe, it } from "@effect/vitest"
import { Backoff, RetryPolicy, RetryPromise, RetryQuota, withRetry } from "effect-retry"
import * as CoolDown from "effect-retry/CoolDown"
import * as RetryGrpc from "effect-retry/RetryGrpc"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as TestClock from "effect/testing/TestClock"
import { responseOf } from "../reliability/utils/http.ts"

const once = Backoff.fixed(1).pipe(RetryPolicy.maxAttempts(1))

/** For how long a resource is closed, in seconds; 0 when it is free. */
const closedFor = Effect.map(
  CoolDown.state,
  ({ phase, remaining }) => phase === "closed" ? Duration.toSeconds(remaining) : 0
)

const answer = (status: number, headers: Record<string, string>) => new Response("body", { status, headers })

const thrower = new Proxy({}, {
  get: () => {
    throw new Error("a property that throws")
  }
})

const used = { "ratelimit": `"default";r=0;t=30` }
const github = { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "45" }

const values: ReadonlyArray<readonly [what: string, value: unknown, seconds: number]> = [
  ["a Response with a window that is used up", answer(200, used), 30],
  ["a Response with one that is not", answer(200, { ratelimit: `"default";r=1;t=30` }), 0],
  ["a Response with one of two used up", answer(200, { ratelimit: `"day";r=9;t=3000, "second";r=0;t=2` }), 2],
  ["a Response with a malformed RateLimit", answer(200, { ratelimit: "r=0;t=30" }), 0],
  ["a Response with headers as GitHub has them", answer(200, github), 45],
  ["a 403 as GitHub has it, which is an answer", answer(403, github), 45],
  ["a 403 with Retry-After", answer(403, { "retry-after": "7" }), 7],
  ["a 202 with Retry-After: a job that runs", answer(202, { "retry-after": "7" }), 0],
  ["a 503 to come, in days", answer(200, { ratelimit: `"default";r=0;t=86400` }), 60],
  [
    "a response of OpenAI",
    answer(200, { "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6s" }),
    6
  ],
  ["a response of Effect's client", responseOf(used), 30],
  ["a response of axios", { status: 200, headers: { RateLimit: used.ratelimit }, data: "body" }, 30],
  ["a response of got", { statusCode: 200, headers: used, body: "body" }, 30],
  ["a row of a table that has headers", { headers: used }, 0],
  ["headers that are none", { status: 200, headers: "ratelimit" }, 0],
  ["headers that throw", { status: 200, headers: thrower }, 0],
  ["a value that throws", thrower, 0],
  ["null", null, 0],
  ["a number", 5, 0],
  ["undefined", undefined, 0]
]

const failures: ReadonlyArray<readonly [what: string, error: unknown, seconds: number]> = [
  ["a 429 with Retry-After", { status: 429, headers: { "retry-after": "7" } }, 7],
  ["a 403 with Retry-After, which no classifier knows", { status: 403, headers: { "retry-after": "7" } }, 7],
  ["an error that such a 403 has caused", new Error("lost", { cause: answer(403, github) }), 45],
  ["an error without an answer", new Error("lost"), 0],
  ["an error that throws", thrower, 0],
  [
    "UNAVAILABLE with pushback",
    { code: 14, details: "", metadata: new Map([["grpc-retry-pushback-ms", "5000"]]) },
    5
  ],
  [
    "INTERNAL with pushback, which no classifier knows",
    { code: 13, details: "", metadata: new Map([["grpc-retry-pushback-ms", "5000"]]) },
    5
  ],
  [
    "UNAVAILABLE with a pushback that forbids a retry",
    { code: 14, details: "", metadata: new Map([["grpc-retry-pushback-ms", "-1"]]) },
    0
  ]
]

describe("a cool-down", () => {
  for (const [what, value, seconds] of values) {
    it.effect(`of ${what}: ${seconds === 0 ? "stays free" : `is closed for ${seconds} s`}`, () =>
      Effect.gen(function*() {
        yield* withRetry(Effect.succeed(value), once)
        assert.strictEqual(yield* closedFor, seconds)
      }).pipe(Effect.provide(CoolDown.layer())))
  }

  for (const [what, error, seconds] of failures) {
    it.effect(`of ${what}: ${seconds === 0 ? "stays free" : `is closed for ${seconds} s`}`, () =>
      Effect.gen(function*() {
        yield* Effect.exit(withRetry(Effect.fail(error), once))
        assert.strictEqual(yield* closedFor, seconds)
      }).pipe(Effect.provide(CoolDown.layer())))
  }

  it.effect("is closed by a custom hint function; one that throws, or returns an invalid duration, says nothing", () =>
    Effect.gen(function*() {
      yield* withRetry(Effect.succeed("throw"), once)
      assert.strictEqual(yield* closedFor, 0)
      yield* withRetry(Effect.succeed("nothing"), once)
      assert.strictEqual(yield* closedFor, 0)
      yield* withRetry(Effect.succeed("close"), once)
      assert.strictEqual(yield* closedFor, 3)
    }).pipe(Effect.provide(CoolDown.layer({
      hint: ({ value }) => {
        if (value === "throw") throw new Error("mistaken")
        return value === "close" ? Duration.seconds(3) : "soon" as never
      }
    }))))
})

describe("before any 429, the first response without anything left closes the resource", () => {
  const client = (headers: Record<string, string>) => {
    const sent: Array<string> = []
    const plain = HttpClient.make((request) =>
      Effect.sync(() => {
        sent.push(request.url)
        return HttpClientResponse.fromWeb(request, answer(200, headers))
      })
    )
    return { sent, plain }
  }

  it.effect("for RetryHttp", () =>
    Effect.gen(function*() {
      const { plain, sent } = client(used)
      const http = RetryHttp.retry(plain, RetryPolicy.maxAttempts(Backoff.fixed(1), 3))
      yield* http.get("http://a/1")
      assert.instanceOf(yield* Effect.flip(http.get("http://a/2")), CoolDown.CoolingDown)
      assert.deepStrictEqual(sent, ["http://a/1"])
      yield* TestClock.adjust("40 seconds")
      yield* http.get("http://a/3")
      assert.deepStrictEqual(sent, ["http://a/1", "http://a/3"])
    }).pipe(Effect.provide(CoolDown.layer())))

  it.effect("for RetryHttp with a custom header", () =>
    Effect.gen(function*() {
      const { plain, sent } = client({ "x-vendor-left": "0", "x-vendor-wait": "20" })
      const http = RetryHttp.retry(plain, RetryPolicy.maxAttempts(Backoff.fixed(1), 3))
      yield* http.get("http://a/1")
      assert.instanceOf(yield* Effect.flip(http.get("http://a/2")), CoolDown.CoolingDown)
      assert.strictEqual(yield* closedFor, 20)
      assert.deepStrictEqual(sent, ["http://a/1"])
    }).pipe(Effect.provide(CoolDown.layer({ hint: RetryHttp.hintOf([RetryHttp.hintSeconds("x-vendor-wait")]) }))))

  it.effect("for a policy under Effect.retry, and for promises", () =>
    Effect.gen(function*() {
      const coolDown = yield* CoolDown.make()
      const context = Context.add(yield* Effect.context(), CoolDown.CoolDown, coolDown)
      let sends = 0
      const fetched = () => {
        sends++
        return Promise.resolve(answer(200, used))
      }
      const call = () =>
        Effect.promise(() =>
          RetryPromise.retryPromise(fetched, once, { context }).then(({ status }) => status, (error: unknown) => error)
        )
      assert.strictEqual(yield* call(), 200)
      assert.instanceOf(yield* call(), CoolDown.CoolingDown)
      assert.strictEqual(sends, 1)
    }))

  it.effect("and for gRPC, the first pushback", () =>
    Effect.gen(function*() {
      let sends = 0
      const call = RetryGrpc.unary<string>((_, callback) => {
        sends++
        const metadata = new Map([["grpc-retry-pushback-ms", "30000"]])
        callback(Object.assign(new Error("busy"), { code: 14, details: "busy", metadata }))
        return { cancel: () => {} }
      })
      yield* Effect.exit(withRetry(call, once))
      assert.instanceOf(yield* Effect.flip(withRetry(call, once)), CoolDown.CoolingDown)
      assert.strictEqual(sends, 1)
    }).pipe(Effect.provide([CoolDown.layer(), RetryQuota.layer()])))
})
