/** Values that cannot be read, as the error and as the result of a call, through all gates at once and every driver. */
import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  attempt,
  awsAdaptive,
  awsStandard,
  Hedge,
  RetryClassifier,
  RetryPromise,
  RetryQuota,
  SendGate,
  withRetry
} from "effect-retry"
import * as CircuitBreakerGate from "effect-retry/CircuitBreakerGate"
import * as ClientThrottle from "effect-retry/ClientThrottle"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import * as RetryBudget from "effect-retry/RetryBudget"
import * as RetryDriver from "effect-retry/RetryDriver"
import * as RetryGrpc from "effect-retry/RetryGrpc"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as RetryStream from "effect-retry/RetryStream"
import * as TokenLimiter from "effect-retry/TokenLimiter"
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { budget } from "../utils/budget.ts"
import { driven } from "../utils/driven.ts"
import { withRandom } from "../utils/vectors.ts"
import { inTime } from "./utils/inTime.ts"

const throwing = () => {
  throw new Error("it cannot be read")
}

const revoked = (target: object = {}): object => {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}

/** An object whose property cannot be read. */
const guarding = (...names: ReadonlyArray<string>): object =>
  Object.defineProperties({}, Object.fromEntries(names.map((name) => [name, { get: throwing, enumerable: true }])))

const cyclic = () => {
  const error = new Error("a")
  return Object.assign(error, { cause: error, reason: error, response: error, headers: error })
}

const withHeaders = (headers: unknown) => ({ status: 503, headers, response: { status: 503, headers } })

const headersOf = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`x-${n}`, "1"]))

/** Keys by which Effect knows its own values, except for the end of a stream: JSON from outside may have them too. */
const typeIds = [
  "Cause",
  "Cause/Reason",
  "Channel",
  "Deferred",
  "Effect",
  "Exit",
  "Fiber",
  "Option",
  "Result",
  "Stream",
  "http/HttpClientError",
  "http/HttpClientResponse",
  "http/HttpIncomingMessage",
  "persistence/CircuitBreaker/CircuitBreakerError",
  "persistence/RateLimiter/RateLimiterError",
  "sql/SqlError",
  "time/Duration"
].map((name) => `~effect/${name}`)

const lookAlikes = Object.fromEntries(typeIds.map((id) => [
  `what only looks like ${id}`,
  () => ({ [id]: id, _tag: "Failure", cause: { [id]: id }, reason: { [id]: id }, reasons: [null] })
]))

/** It is read in more than one way. */
const causes: Readonly<Record<string, () => unknown>> = {
  "a cause without reasons": () => JSON.parse(`{"~effect/Cause":"x","error":"busy"}`),
  "a cause whose reasons are text": () => ({ "~effect/Cause": "x", reasons: "Fail" }),
  "a cause whose reasons are of no kind": () => ({ "~effect/Cause": "x", reasons: [{}] }),
  "a cause whose reasons cannot be read": () => Object.assign(guarding("reasons"), { "~effect/Cause": "x" }),
  "a cause that can be read once": () => {
    let reads = 0
    return {
      "~effect/Cause": "x",
      get reasons() {
        return reads++ === 0 ? [{ _tag: "Fail", error: "a" }] : throwing()
      }
    }
  }
}

const values: Readonly<Record<string, () => unknown>> = {
  ...lookAlikes,
  ...causes,
  "undefined": () => undefined,
  "null": () => null,
  "NaN": () => Number.NaN,
  "a symbol": () => Symbol("a"),
  "a revoked proxy": revoked,
  "a revoked function": () => revoked(throwing),
  "a proxy whose traps throw": () =>
    new Proxy({}, { get: throwing, has: throwing, ownKeys: throwing, getPrototypeOf: throwing }),
  "getters that throw": () =>
    guarding(
      "status",
      "statusCode",
      "headers",
      "response",
      "cause",
      "reason",
      "name",
      "message",
      "code",
      "usage",
      "_tag"
    ),
  "a cause that throws": () => Object.defineProperty(new Error("a"), "cause", { get: throwing }),
  "a cycle": cyclic,
  "headers that are revoked": () => withHeaders(revoked()),
  "headers whose names cannot be listed": () => withHeaders(new Proxy({}, { ownKeys: throwing })),
  "headers whose values throw": () => withHeaders(guarding("retry-after", "x-ratelimit-limit-tokens")),
  "headers whose get throws": () => withHeaders({ get: throwing }),
  "headers without end": () =>
    withHeaders({
      *[Symbol.iterator]() {
        for (;;) yield ["a", "b"]
      }
    }),
  "so many headers": () => withHeaders(headersOf(10_000)),
  "hints of all kinds": () => withHeaders({ "retry-after": "1e308", "ratelimit-reset": "-1", "retry-after-ms": "NaN" }),
  "a date at the end of time": () => withHeaders({ "retry-after": new Date(8.64e15).toUTCString() }),
  "a usage that is revoked": () => ({ usage: revoked() }),
  "a usage of nonsense": () => ({ usage: { input_tokens: -1, output_tokens: "5", prompt_tokens: Number.NaN } }),
  "facts of nonsense": () => ({ "~effect-retry/RetryInfo": 5, $retryable: revoked(), $metadata: revoked() })
}

type Call = Effect.Effect<unknown, unknown, any>

const promised = (send: Effect.Effect<unknown, unknown>): Call =>
  Effect.contextWith((context: Context.Context<never>) =>
    Effect.callback((resume) => {
      const retry = RetryPromise.make(awsStandard, { context })
      void retry(() => Effect.runPromise(send)).then(
        (value) => resume(Effect.succeed(value)),
        (error) => resume(Effect.fail(error))
      )
    })
  )

/** A client whose every request comes to this, with no span that would read the response. */
const clientOf = (send: Effect.Effect<unknown, unknown>): HttpClient.HttpClient.With<unknown> =>
  HttpClient.makeWith(
    Effect.andThen(send) as (request: unknown) => Effect.Effect<HttpClientResponse.HttpClientResponse, unknown>,
    Effect.succeed
  )

const request = HttpClientRequest.get("http://a/")

/** The same as the cause of what Effect's clients fail with. */
const transported = (send: Effect.Effect<unknown, unknown>): Call =>
  Effect.mapError(
    RetryHttp.retry(
      clientOf(Effect.mapError(send, (cause) => {
        const reason = new HttpClientError.TransportError({ request, cause })
        return new HttpClientError.HttpClientError({ reason })
      })),
      awsAdaptive
    ).execute(request),
    (error: any) => HttpClientError.isHttpClientError(error) ? (error.reason as any).cause : error
  )

const unary = (send: Effect.Effect<unknown, unknown>) =>
  RetryGrpc.unary<unknown>((_, callback) => {
    Effect.runCallback(Effect.matchEager(send, {
      onFailure: (error) => callback(error as RetryGrpc.GrpcError),
      onSuccess: (value) => callback(null, value)
    }))
    return { cancel: () => undefined }
  })

const hedgingPolicy = { maxAttempts: 2, hedgingDelay: "5 millis", nonFatalStatusCodes: [14] }

const drivers: Readonly<Record<string, (send: Effect.Effect<unknown, unknown>) => Call>> = {
  "withRetry": (send) => withRetry(send, awsAdaptive),
  "Effect.retry": (send) => Effect.retry(send, awsAdaptive),
  "attempt": (send) => attempt(send),
  "Hedge.hedged": (send) => withRetry(Hedge.hedged(send, { after: 5 }), awsAdaptive),
  "RetryStrategy.run": (send) =>
    Effect.flatMap(
      RetryStrategy.make(awsAdaptive),
      (strategy) => Effect.provideService(RetryStrategy.run(send), RetryStrategy.RetryStrategy, strategy)
    ),
  "RetryDriver": (send) => driven(send, RetryDriver.make(awsAdaptive)),
  "RetryStream.resume": (send) =>
    Effect.map(
      Stream.runCollect(RetryStream.resume(awsAdaptive, () => Stream.fromEffect(send))),
      ([value]) => value
    ),
  "RetryPromise.make": promised,
  "RetryHttp.retry": (send) => RetryHttp.retry(clientOf(send), awsAdaptive).execute(request),
  "RetryHttp.retry, as a cause": transported,
  "RetryHttp.hedge": (send) => RetryHttp.hedge(clientOf(send), { after: 5 }).execute(request),
  "RetryGrpc.unary": (send) => withRetry(unary(send), awsAdaptive),
  "RetryGrpc.hedged": (send) => withRetry(RetryGrpc.hedged(hedgingPolicy)(unary(send)), awsAdaptive)
}

const breaker = CircuitBreakerGate.layer({ key: "a" }).pipe(
  Layer.provide(CircuitBreaker.layer({ tripPolicy: CircuitBreaker.consecutive(1000), openDuration: "1 second" })),
  Layer.provide(CircuitBreaker.layerStoreMemory())
)

const budgets = RetryQuota.layerStore(
  RetryBudget.all([
    RetryBudget.bucket(),
    RetryBudget.grpc({ maxTokens: 1000 }),
    RetryBudget.share(),
    RetryBudget.inFlight()
  ])
)

const gates = Layer.mergeAll(
  breaker,
  budgets,
  Hedge.layer(),
  CoolDown.layer(),
  ClientThrottle.layer(),
  AdaptiveRateLimiter.layer(),
  TokenLimiter.layer({ tokens: 1_000_000, estimate: 1 }),
  ConcurrencyLimiter.layer({ rule: ConcurrencyLimiter.fixed(1), onExceeded: "fail" })
)

const free = Effect.gen(function*() {
  const limiter = yield* ConcurrencyLimiter.ConcurrencyLimiter
  assert.deepInclude(yield* limiter.state, { inFlight: 0, waiting: 0 })
  const healthy = yield* inTime(withRetry(Effect.succeed("ok"), awsAdaptive))
  assert.deepStrictEqual(healthy, Exit.succeed("ok") as never)
})

const isRefused = (error: any): boolean => typeof error?._tag === "string" && error[SendGate.Refused] === true

/** Whether one can ask for a property: a promise asks its value for `then`, and a stream of Effect its error for a key. */
const isAskable = (value: unknown): boolean => {
  try {
    return Reflect.has(Object(value), "then") || true
  } catch {
    return false
  }
}

const asks = ["RetryPromise.make", "RetryStream.resume"]

/** Whether another value comes out. To a client of gRPC, `null` says that there is no error. */
const isChanged = (driver: string, value: unknown): boolean =>
  asks.includes(driver) ? !isAskable(value) : value === null && driver.startsWith("RetryGrpc")

describe("a value that cannot be read", () => {
  for (const [driver, call] of Object.entries(drivers)) {
    for (const [name, make] of Object.entries(values)) {
      it.effect(`comes out of ${driver} as it is, and nothing is kept: ${name}`, () =>
        Effect.gen(function*() {
          const value = make()
          if (!isChanged(driver, value)) {
            const succeeded = yield* inTime(call(Effect.succeed(value)))
            assert.isTrue(Exit.isSuccess(succeeded!) && Object.is(succeeded.value, value), "the success")
            // It may have been a hint.
            yield* TestClock.adjust("1 hour")
            yield* free
          }
          const failed = yield* inTime(call(Effect.fail(value)))
          const reason = Exit.isFailure(failed!) ? failed.cause.reasons[0] : undefined
          const error = reason !== undefined && Cause.isFailReason(reason) ? reason.error : reason
          // A gate that has learned from the first send may refuse the next.
          const isOwn = Object.is(error, value) || isRefused(error)
          assert.isTrue(isOwn || isChanged(driver, value), "the failure")
          yield* TestClock.adjust("1 hour")
          yield* free
        }).pipe(Effect.provide(gates), withRandom(0.999)))
    }
  }

  // More than a server can send: clients of Node take 16 KiB.
  const headers = budget(1_000_000, 100_000)

  it.effect(`may have ${headers} headers`, () =>
    Effect.gen(function*() {
      const value = withHeaders(headersOf(headers))
      const exit = yield* inTime(withRetry(Effect.fail(value), awsStandard))
      assert.isTrue(Exit.isFailure(exit!))
      yield* TestClock.adjust("1 hour")
      yield* free
    }).pipe(Effect.provide(gates), withRandom(0.999)))

  it.effect("is read by name: in any case the first two thousand headers, in lowercase all", () =>
    Effect.gen(function*() {
      const hintOf = (others: number, name: string) =>
        Effect.sync(() =>
          Option.flatMapNullishOr(
            RetryClassifier.defaultClassifier(withHeaders({ ...headersOf(others), [name]: "7" })),
            ({ retryAfter }) => retryAfter && Duration.toSeconds(retryAfter)
          )
        )
      assert.deepStrictEqual(yield* hintOf(1999, "Retry-AFTER"), Option.some(7))
      assert.deepStrictEqual(yield* hintOf(2000, "Retry-AFTER"), Option.none())
      assert.deepStrictEqual(yield* hintOf(2000, "retry-after"), Option.some(7))
    }))
})
