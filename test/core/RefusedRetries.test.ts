/** A refused retry ends the call with the error of its last attempt, and the stop names the gate, whatever drives the call. */
import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  Backoff,
  RetryInfo,
  RetryObserver,
  RetryPolicy,
  retryPromise,
  RetryQuota,
  SendGate,
  withRetry,
  withRetryOrElse
} from "effect-retry"
import * as CircuitBreakerGate from "effect-retry/CircuitBreakerGate"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import * as RetryDriver from "effect-retry/RetryDriver"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as RetryMetrics from "effect-retry/RetryMetrics"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as Kit from "effect-retry/testing"
import type * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as Tracer from "effect/Tracer"
import { Throttled, TimedOut, Transient } from "../utils/call.ts"
import { driven } from "../utils/driven.ts"

class Closed extends Data.TaggedError("Closed")<{}> {
  readonly [SendGate.Refused] = true
}
class Door extends SendGate.Service<Door, Closed>()("test/RefusedRetries/Door") {}

/** Lets this many sends pass; refuses the others immediately, or after a wait. */
const door = (passes: number, millis = 0) => {
  const held = { passed: 0, settled: 0 }
  const pass: SendGate.Pass = { settle: () => void held.settled++, cancel: () => void held.settled++ }
  const refusal = millis === 0 ? Effect.fail(new Closed()) : Effect.delay(Effect.fail(new Closed()), millis)
  const layer = SendGate.layer(Door, {
    name: "Door",
    order: 1,
    enter: (send) => held.passed === passes ? refusal : void (held.passed++, send.hold(pass))
  })
  return { held, layer }
}

const policy = Backoff.fixed(10).pipe(RetryPolicy.quotaGated({ cost: 5 }), RetryPolicy.maxAttempts(5))

type Call = Effect.Effect<unknown, unknown>
type Run = (call: Call) => Effect.Effect<unknown, unknown, RetryQuota.RetryQuota>

const drivers: ReadonlyArray<readonly [string, Run]> = [
  ["withRetry", (call) => withRetry(call, policy)],
  ["withRetryOrElse", (call) => withRetryOrElse(call, policy, (error) => Effect.fail(error))],
  ["Effect.retry", (call) => Effect.retry(call, policy)],
  [
    "Effect.retry with a schedule around the policy",
    (call) => Effect.retry(call, Schedule.max([policy, Schedule.recurs(9)]))
  ],
  ["Stream.retry", (call) => Stream.runDrain(Stream.retry(Stream.fromEffect(call), policy))],
  ["RetryStrategy", (call) =>
    Effect.flatMap(
      RetryStrategy.make(policy),
      (strategy) => Effect.provideService(RetryStrategy.run(call), RetryStrategy.RetryStrategy, strategy)
    )],
  ["RetryDriver", (call) => driven(call, RetryDriver.make(policy))],
  [
    "retryPromise",
    (call) =>
      Effect.contextWith((context: Context.Context<RetryQuota.RetryQuota>) =>
        Effect.promise(() =>
          retryPromise(() => Effect.runPromise(Effect.orDie(call)), policy, { context }).then(
            Effect.succeed,
            (error: unknown) => Effect.fail(error)
          )
        ).pipe(Effect.flatten)
      )
  ]
]

/** Whatever service a gate has, calls find it. */
const layerOf = (layer: Layer.Layer<any>): Layer.Layer<never> => layer

interface Told {
  readonly reason: string
  readonly gate: string | undefined
  readonly attempts: number
}

const ended = (run: Run, errors: ReadonlyArray<unknown>, layer: Layer.Layer<any>) =>
  Effect.gen(function*() {
    const stops: Array<Told> = []
    let sends = 0
    const call = Effect.suspend(() => Effect.fail(errors[sends++]))
    const observer: RetryObserver.RetryObserver = {
      onStop: ({ attempts, gate, reason }) => void stops.push({ attempts, gate, reason })
    }
    const error = yield* Kit.runToEnd(
      Effect.flip(run(call)).pipe(Effect.provide([layerOf(layer), RetryObserver.layerOnly(observer)]))
    )
    return { error, sends, stops, balance: yield* RetryQuota.balance }
  })

describe("a retry that a gate refuses", () => {
  const errors = [new Transient(), new Transient()]
  for (const [name, run] of drivers) {
    // A stream begins its policy at the first failure, so its first send asks no gate; promises run on the real clock.
    const passes = (sends: number) => name === "Stream.retry" ? sends - 1 : sends
    for (const millis of name === "retryPromise" ? [0] : [0, 50]) {
      it.effect(`${name}: ends the call with the error of its last attempt, after ${millis} ms`, () =>
        Effect.gen(function*() {
          for (const sends of [1, 2]) {
            const { held, layer } = door(passes(sends), millis)
            const before = yield* RetryQuota.balance
            const seen = yield* ended(run, errors, layer)
            assert.strictEqual(seen.error, errors[sends - 1])
            assert.deepStrictEqual(seen.stops, [{ attempts: sends, gate: "Door", reason: "vetoed" }])
            assert.deepStrictEqual([seen.sends, held.passed - held.settled], [sends, 0])
            // The retry that was not made costs nothing.
            assert.strictEqual(seen.balance, before - 5 * (sends - 1))
          }
        }).pipe(Effect.provide(RetryQuota.layer())))
    }

    if (name !== "Stream.retry" && name !== "RetryStrategy") {
      it.effect(`${name}: a first send that is refused fails with the error of the gate`, () =>
        Effect.gen(function*() {
          const seen = yield* ended(run, errors, door(0).layer)
          assert.instanceOf(seen.error, Closed)
          assert.deepStrictEqual(seen.stops, [{ attempts: 1, gate: undefined, reason: "vetoed" }])
          assert.deepStrictEqual([seen.sends, seen.balance], [0, 500])
        }).pipe(Effect.provide(RetryQuota.layer())))
    }
  }

  it.effect("RetryHttp: ends the request with its last response", () =>
    Effect.gen(function*() {
      let sends = 0
      const client = HttpClient.make((request) =>
        Effect.sync(() =>
          HttpClientResponse.fromWeb(request, new Response("busy", { status: ++sends === 1 ? 503 : 502 }))
        )
      )
      const response = yield* Kit.runToEnd(
        Effect.provide(RetryHttp.retry(client, policy).get("http://a/"), door(2).layer)
      )
      assert.deepStrictEqual([response.status, sends], [502, 2])
    }).pipe(Effect.provide(RetryQuota.layer())))

  const gates: ReadonlyArray<readonly [string, unknown, Layer.Layer<never>]> = [
    ["ConcurrencyLimiter", new TimedOut(), layerOf(ConcurrencyLimiter.layer())],
    ["CoolDown", RetryInfo.annotation({ retryAfter: "30 seconds" }), layerOf(CoolDown.layer())],
    [
      "AdaptiveRateLimiter",
      new Throttled({}),
      layerOf(AdaptiveRateLimiter.layer({ onExceeded: "fail", minFillRate: 1e-6, minCapacity: 1 }))
    ],
    [
      "CircuitBreaker",
      new Transient(),
      layerOf(
        CircuitBreakerGate.layer({ key: "orders" }).pipe(
          Layer.provide(CircuitBreaker.layer({ tripPolicy: CircuitBreaker.consecutive(1), openDuration: "1 hour" })),
          Layer.provide(CircuitBreaker.layerStoreMemory())
        )
      )
    ]
  ]
  for (const [gate, error, layer] of gates) {
    it.effect(`ends with its own error also where the gate is ${gate}`, () =>
      Effect.gen(function*() {
        const seen = yield* ended((call) => withRetry(call, policy), [error], layer as Layer.Layer<any>)
        assert.strictEqual(seen.error, error)
        assert.deepStrictEqual(seen.stops, [{ attempts: 1, gate, reason: "vetoed" }])
      }).pipe(Effect.provide(RetryQuota.layer())))
  }

  it.effect("is named on the span, in the log, and on the metric", () =>
    Effect.gen(function*() {
      const events: Array<unknown> = []
      const lines: Array<unknown> = []
      const span = Object.assign(
        yield* Effect.makeSpan("call"),
        { event: (name: string, _: bigint, attributes: unknown) => void events.push([name, attributes]) }
      )
      const stopped = Metric.withAttributes(RetryMetrics.stops, {
        resource: "refused-retries",
        reason: "vetoed",
        gate: "Door"
      })
      yield* Kit.runToEnd(Effect.ignore(withRetry(Effect.fail(errors[0]), policy))).pipe(
        Effect.provide([
          door(1).layer,
          Logger.layer([Logger.make(({ message }) => void lines.push(message))]),
          Layer.mergeAll(RetryObserver.layer(RetryObserver.logger), RetryMetrics.layer())
        ]),
        Effect.provideService(RetryObserver.CurrentResource, "refused-retries"),
        Effect.provideService(Tracer.ParentSpan, span)
      )
      assert.deepStrictEqual(events.at(-1), ["retry.stopped", {
        "retry.reason": "vetoed",
        "retry.gate": "Door",
        "retry.attempts": 1,
        "retry.class": "transient",
        "retry.resource": "refused-retries"
      }])
      assert.deepStrictEqual(lines.flat(), [
        "not retried after 1 attempt: vetoed by Door, Transient (refused-retries)"
      ])
      assert.strictEqual((yield* Metric.value(stopped)).count, 1)
    }).pipe(Effect.provide(RetryQuota.layer())))
})
