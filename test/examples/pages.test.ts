/** What the pages say about calls inside calls, deadlines, refused sends and streams. */
import { assert, describe, it } from "@effect/vitest"
import {
  attempt,
  awsStandard,
  ResourceLimiters,
  RetryMetrics,
  RetryObserver,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as RetryLlm from "effect-retry/RetryLlm"
import * as RetryPropagation from "effect-retry/RetryPropagation"
import * as Kit from "effect-retry/testing"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"

/** Lines of the log, and counters that are not 0, such as `retry_stops_total reason=final`. */
const watched = () => {
  const lines: Array<string> = []
  const layer = Layer.mergeAll(
    RetryMetrics.layer(),
    RetryObserver.layer(RetryObserver.logger),
    Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))]),
    Layer.succeed(Metric.MetricRegistry, new Map())
  )
  const counters = Effect.map(Metric.snapshot, (metrics) =>
    metrics.filter(({ type }) => type === "Counter").map(({ attributes, id }) => {
      const named = Object.entries(attributes ?? {}).map(([name, value]) => `${name}=${value}`)
      return [id, ...named].join(" ")
    }))
  return { counters, layer, lines }
}

describe("docs/limits: a call of another resource inside an attempt", () => {
  const limits = ResourceLimiters.layer({
    limiter: "unlimited",
    concurrency: (key) => {
      if (key === "orders") return { rule: ConcurrencyLimiter.fixed(10), maxWait: "20 millis" }
      if (key === "single") return { rule: ConcurrencyLimiter.fixed(1), maxWait: "1 second" }
      return key === "own" ? {} : undefined
    }
  })
  const mailOf = (key: string) =>
    Effect.sleep("50 millis").pipe(withRetry(awsStandard), Effect.provide(ResourceLimiters.get(key)))
  const succeeded = <A, E, R>(call: Effect.Effect<A, E, R>) =>
    Effect.map(
      Kit.runToEnd(Effect.all(Array.from({ length: 10 }, () => Effect.exit(call)), { concurrency: "unbounded" })),
      (exits) => exits.filter(Exit.isSuccess).length
    )
  const around = <A, E, R>(call: Effect.Effect<A, E, R>, key = "orders") =>
    call.pipe(withRetry(awsStandard), Effect.provide(ResourceLimiters.get(key)))

  it.effect("passes the outer gates too, unless it has gates of the kind, or the outer ones are around the lone send", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* succeeded(around(mailOf("mail"))), 5)
      assert.isTrue(Exit.isFailure(yield* Kit.runToEnd(Effect.exit(around(mailOf("mail"), "single")))))
      assert.strictEqual(yield* succeeded(around(mailOf("own"))), 10)
      const order = attempt(Effect.sleep("10 millis")).pipe(Effect.provide(ResourceLimiters.get("orders")))
      const both = Effect.andThen(order, mailOf("mail")).pipe(
        withRetry(awsStandard),
        Effect.provide(ResourceLimiters.quota("orders"))
      )
      assert.strictEqual(yield* succeeded(both), 10)
    }).pipe(Effect.provide(limits)))
})

describe("docs/policies: a deadline", () => {
  const endedAfter = <E>(call: Effect.Effect<unknown, E, RetryQuota.RetryQuota>) =>
    Effect.gen(function*() {
      const exit = yield* Kit.runToEnd(Effect.timeoutOption(Effect.exit(call), "1 minute"))
      return Option.isSome(exit) ? yield* Clock.currentTimeMillis : undefined
    }).pipe(Effect.provide(RetryQuota.layer()))

  it.effect("of a policy lets a running attempt end", () =>
    Effect.map(endedAfter(Effect.never.pipe(withRetry(awsStandard.pipe(RetryPolicy.deadline("5 seconds"))))), (millis) => {
      assert.isUndefined(millis)
    }))

  const hanging = Effect.never.pipe(withRetry(awsStandard))

  it.effect("RetryPropagation.withDeadline around the retry interrupts it", () =>
    Effect.map(endedAfter(RetryPropagation.withDeadline("5 seconds")(hanging)), (millis) => {
      assert.strictEqual(millis, 5000)
    }))

  it.effect("Effect.timeout around the retry interrupts it", () =>
    Effect.map(endedAfter(Effect.timeout(hanging, "5 seconds")), (millis) => {
      assert.strictEqual(millis, 5000)
    }))
})

describe("docs/observing", () => {
  it.effect("a refused first send is logged as an attempt, and counted as a stop without its gate", () => {
    const { counters, layer, lines } = watched()
    return Effect.gen(function*() {
      const call = Effect.exit(Effect.sleep("1 second").pipe(withRetry(awsStandard)))
      yield* Kit.runToEnd(Effect.all([call, call], { concurrency: "unbounded" }))
      assert.deepStrictEqual(lines, ["not retried after 1 attempt: vetoed, ConcurrencyLimitExceeded"])
      assert.deepStrictEqual([...(yield* counters)].sort(), [
        "retry_attempts_total outcome=success",
        "retry_stops_total reason=vetoed"
      ])
    }).pipe(Effect.provide([
      RetryQuota.layer(),
      ConcurrencyLimiter.layer({ rule: ConcurrencyLimiter.fixed(1), onExceeded: "fail" }),
      layer
    ]))
  })

  const part = (content: string) => ({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })
  const answered = <A, E>(parts: Stream.Stream<A, E>) =>
    Kit.runToEnd(Effect.exit(Stream.runDrain(RetryLlm.untilAnswer(parts, RetryLlm.openai)))).pipe(
      Effect.provide(RetryQuota.layer())
    )

  it.effect("a stream that breaks after its first word is a success, and nothing is logged", () => {
    const { counters, layer, lines } = watched()
    return Effect.gen(function*() {
      const exit = yield* answered(Stream.concat(Stream.make(part("It")), Stream.fail({ code: "ECONNRESET" })))
      assert.isTrue(Exit.isFailure(exit))
      assert.deepStrictEqual(lines, [])
      assert.deepStrictEqual(yield* counters, ["retry_attempts_total outcome=success"])
    }).pipe(Effect.provide(layer))
  })

  it.effect("a stream that ends without an answer is Unbegun", () => {
    const { layer, lines } = watched()
    return Effect.gen(function*() {
      yield* answered(Stream.make(part("")))
      assert.deepStrictEqual(lines, ["not retried after 3 attempts: max-attempts, Unbegun"])
    }).pipe(Effect.provide(layer))
  })

  it("a plain Error is _OTHER, whatever its message", () => {
    assert.strictEqual(RetryObserver.errorType(new Error("no such table")), "_OTHER")
    assert.strictEqual(RetryObserver.errorType(new Response("", { status: 503 })), "503")
  })
})
