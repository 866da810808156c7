import { assert, describe, it } from "@effect/vitest"
import { RetryQuota, withRetry } from "effect-retry"
import * as JavaV1 from "effect-retry/aws/legacy/JavaV1"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as TestClock from "effect/testing/TestClock"
import * as Example from "../../../examples/legacy-modes.ts"
import { Throttled, Transient } from "../../utils/call.ts"
import { type CallVector, verdictOf } from "../../utils/conformance.ts"
import { refuses } from "../../utils/refuses.ts"
import {
  type Driver,
  drivers,
  played,
  type SdkError,
  sdkError,
  steppedDelays,
  type Wire,
  withRandom
} from "../../utils/vectors.ts"
import { backoffs, calls, errors } from "../../vectors/javaV1.ts"

const transient = sdkError({ status: 500 })
const throttling = sdkError({ status: 400, code: "ThrottlingException" })
const { defaultPolicy } = JavaV1

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

const times = (count: number, error: SdkError): ReadonlyArray<SdkError> => Array<SdkError>(count).fill(error)

const backoffOf = {
  none: JavaV1.exponentialBackoff,
  full: JavaV1.fullJitterBackoff,
  equal: JavaV1.equalJitterBackoff
}

const policyOf = ({ baseMs, dynamoDB, maxAttempts, maxBackoffMs, throttledBaseMs }: CallVector["given"]) => {
  const own = { baseDelay: baseMs, throttledBaseDelay: throttledBaseMs, maxBackoff: maxBackoffMs }
  if (dynamoDB) return JavaV1.dynamoDBPolicy
  if (maxAttempts === undefined && Object.values(own).every((value) => value === undefined)) return JavaV1.defaultPolicy
  return JavaV1.policy({ ...own, maxRetries: maxAttempts === undefined ? undefined : maxAttempts - 1 })
}

/** The shapes in which an error comes. */
const shapesOf = (wire: Wire): ReadonlyArray<unknown> => {
  const { code, network, status } = wire
  if (network !== undefined) return [sdkError(wire), { name: "Wrapped", cause: sdkError(wire) }]
  const coded = [{ name: code, $metadata: { httpStatusCode: status } }, { code, statusCode: status }, {
    Code: code,
    status
  }]
  return code === undefined
    ? [...coded, { response: { status } }, statusError(status!)]
    : status === 400
    ? [...coded, ...(code.startsWith("400") ? [] : [{ name: code }, { code }, { Code: code }])]
    : coded
}

describe("JavaV1", () => {
  describe("backoff", () => {
    it.effect.each(backoffs)(
      "vector: $name",
      ({ baseMs, delaysMs: delays, from = 1, jitter, maxBackoffMs, random }) =>
        Effect.gen(function*() {
          const policy = backoffOf[jitter]({ baseDelay: baseMs, maxBackoff: maxBackoffMs })
          const count = from - 1 + delays.length
          assert.deepStrictEqual((yield* steppedDelays(policy, count, transient)).slice(from - 1), delays)
          if (from > 1) return
          for (const driver of drivers) {
            const { delays: slept } = yield* played(driver, policy, times(count, transient))
            assert.deepStrictEqual(slept, delays, driver.name)
          }
        }).pipe(withRandom(random), Effect.provide(RetryQuota.layerUnlimited))
    )
  })

  describe("policy", () => {
    for (const driver of drivers) {
      it.effect.each(calls)(`vector: $name, ${driver.name}`, ({ errors, expected, given }) =>
        Effect.gen(function*() {
          assert.deepStrictEqual(yield* played(driver, policyOf(given), errors.map(sdkError)), expected)
        }).pipe(withRandom(given.random), Effect.provide(JavaV1.layer)))
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
    it.each(errors)("vector: $error is $verdict", ({ error, timeout, verdict }) => {
      for (const shape of shapesOf(error)) {
        assert.deepStrictEqual(
          verdictOf(JavaV1.classifier, shape),
          { verdict, ...(timeout && { timeout }) },
          JSON.stringify(shape)
        )
      }
    })

    it.each([
      [{ code: "ENOTFOUND" }, "transient"],
      [{ code: "ETIMEDOUT" }, "timeout"],
      [{ name: "TimeoutError" }, "timeout"],
      [transportError(), "transient"],
      [transportError({ code: "ECONNRESET" }), "transient"],
      [transportError({ code: "ETIMEDOUT" }), "timeout"],
      [{ name: "Wrapped", cause: transportError() }, "transient"],
      [{ _tag: "Other", reason: { _tag: "TransportError" } }, "final"],
      [encodeError, "final"],
      [new Transient(), "transient"],
      [new Throttled({}), "throttling"],
      [{ code: "ENOSPC" }, "final"],
      [undefined, "final"],
      [null, "final"],
      ["Throttling", "final"]
    ])("%j is %s", (error, expected) => {
      const { timeout, verdict } = { timeout: false, ...verdictOf(JavaV1.classifier, error) }
      assert.strictEqual(timeout ? "timeout" : verdict, expected)
    })

    it.effect("is not asked if the layer is not provided: the default classifier decides", () =>
      Effect.gen(function*() {
        const underWay = sdkError({ status: 400, code: "TransactionInProgressException" })
        for (const driver of drivers) {
          assert.deepStrictEqual(yield* played(driver, defaultPolicy, [underWay]), {
            delays: [375],
            outcome: "success"
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
      assert.match(refuses(make, { field }).constructorName, /^JavaV1\.\w+$/)
    })
  })

  describe("example", () => {
    const [driver] = drivers as [Driver]

    it.effect("asJava: retries as the SDK does, by its own classifier", () =>
      Effect.gen(function*() {
        const sentAt: Array<number> = []
        const errors = [{ name: "SlowDown" }, { code: "ECONNRESET" }]
        const send = Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const error = errors[sentAt.push(now) - 1]
          return error === undefined ? Effect.succeed("ok") : Effect.fail(error)
        })
        const fiber = yield* Effect.forkChild(Example.asJava(send), { startImmediately: true })
        yield* TestClock.adjust("1 minute")
        assert.isDefined(fiber.pollUnsafe())
        assert.deepStrictEqual(sentAt, [0, 375, 475])
      }).pipe(withRandom(0.5)))

    it.effect("patient: own delays and 5 retries", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* played(driver, Example.patient, times(9, throttling)), {
          delays: [500, 1000, 2000, 2500, 2500],
          outcome: "max-attempts"
        })
      }).pipe(withRandom(0)))
  })
})
