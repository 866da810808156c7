import { assert, describe, it } from "@effect/vitest"
import { getRetryAfterHint } from "@smithy/core/retry"
import { AwsModes, InvalidOption, RetryClassifier, RetryQuota } from "effect-retry"
import * as Operations from "effect-retry/aws/Operations"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import { vi } from "vitest"
import {
  type Driver,
  drivers,
  playVector,
  type Policy,
  type SdkError,
  sdkError,
  type Wire,
  withRandom
} from "../utils/vectors.ts"
import {
  hintHeaders,
  hints2026,
  hintsOfFinalErrors,
  operations,
  operationSettings,
  standard2026
} from "../vectors/standard2026.ts"

const longPolls = [
  { service: "sqs", operation: "ReceiveMessage" },
  { service: "sfn", operation: "GetActivityTask" },
  { service: "states", operation: "GetActivityTask" },
  { service: "swf", operation: "PollForActivityTask" },
  { service: "swf", operation: "PollForDecisionTask" }
]
const receive = longPolls[0]!
const getItem = { service: "dynamodb", operation: "GetItem" }
const getObject = { service: "s3", operation: "GetObject" }

const named = ({ operation, service }: Operations.Operation) => `${service} ${operation}`

describe("Operations", () => {
  describe("settings", () => {
    const settingsOf = (kind: keyof typeof operationSettings) => {
      const { baseMs, longPolling, maxAttempts } = operationSettings[kind]
      return { base: Duration.millis(baseMs), maxAttempts, longPolling }
    }

    it.each(operations)(`vector: "$service" "$operation" is $is`, ({ is, operation, service }) => {
      assert.deepStrictEqual(Operations.settings({ service, operation }), settingsOf(is))
    })

    it("treats names that are not strings as unknown", () => {
      const operation: Operations.Operation = { service: undefined, operation: 5 } as any
      assert.deepStrictEqual(Operations.settings(operation), settingsOf("ordinary"))
      assert.deepStrictEqual(Operations.settings({ service: "sqs", operation: null } as any), settingsOf("ordinary"))
    })
  })

  describe("make", () => {
    it("has one policy for each of the three settings", () => {
      const policyOf = Operations.make()
      const policies = [...longPolls, getItem, getObject, getObject].map(policyOf)
      assert.strictEqual(new Set(policies).size, 3)
      assert.strictEqual(Operations.forOperation(receive), Operations.forOperation(longPolls[4]!))
    })

    it("refuses attempts and backoffs out of range", () => {
      assert.throws(() => Operations.make({ maxAttempts: 0 }), InvalidOption)
      assert.throws(() => Operations.make({ maxBackoff: "49 millis" }), InvalidOption)
      assert.doesNotThrow(() => Operations.make({ maxAttempts: 1, maxBackoff: "50 millis" }))
    })
  })

  for (const driver of drivers) {
    describe(`by ${driver.name}`, () => {
      for (const operation of longPolls) {
        it.effect.each(standard2026.filter(({ given }) => given.longPolling))(
          `vector: $name, ${named(operation)}`,
          (vector) => playVector(vector, policyWith(vector.given)(operation), driver)
        )
      }

      for (const service of ["DynamoDB", "DynamoDB Streams"]) {
        const policy = Operations.forOperation({ service, operation: "any" })
        it.effect.each(standard2026.filter(({ given }) => given.dynamoDB))(
          `vector: $name, ${service}`,
          (vector) => playVector(vector, policy, driver)
        )
      }

      it.effect.each(standard2026.filter(({ given }) => !given.longPolling && !given.dynamoDB))(
        "vector: $name, an ordinary operation",
        (vector) => playVector(vector, policyWith(vector.given)(getObject), driver)
      )

      it.effect("applies configured attempts to DynamoDB too", () =>
        playVector(
          {
            name: "",
            given: {},
            responses: [
              { status: 500, expected: { outcome: "retry", quota: 486, delay: 0.025 } },
              { status: 500, expected: { outcome: "max-attempts", quota: 486 } }
            ]
          },
          Operations.make({ maxAttempts: 2, maxBackoff: undefined })(getItem),
          driver
        ))

      it.effect("keeps DynamoDB's attempts if only the backoff is set", () =>
        playVector(
          {
            name: "",
            given: {},
            responses: [
              { status: 500, expected: { outcome: "retry", quota: 486, delay: 0.025 } },
              { status: 500, expected: { outcome: "retry", quota: 472, delay: 0.05 } },
              { status: 500, expected: { outcome: "retry", quota: 458, delay: 0.06 } },
              { status: 500, expected: { outcome: "max-attempts", quota: 458 } }
            ]
          },
          Operations.make({ maxAttempts: undefined, maxBackoff: "60 millis" })(getItem),
          driver
        ))

      it.effect("does not hold back a long poll that is not retryable", () =>
        Effect.gen(function*() {
          const error = sdkError({ status: 400, code: "QueueDoesNotExist" })
          const run = yield* played(driver, Operations.forOperation(receive), [error])
          assert.deepStrictEqual(run, { exit: Exit.fail(error), sentAt: [0], endedAt: 0, balance: 0 })
        }).pipe(Effect.provide(RetryQuota.layer({ initial: 0 }))))

      it.effect("does not hold back a long poll that succeeds", () =>
        Effect.gen(function*() {
          const run = yield* played(driver, Operations.forOperation(receive), [])
          assert.deepStrictEqual(run, { exit: Exit.succeed(200), sentAt: [0], endedAt: 0, balance: 1 })
        }).pipe(Effect.provide(RetryQuota.layer({ initial: 0 }))))

      it.effect("lets a long poll that is held back be interrupted immediately", () =>
        Effect.gen(function*() {
          const error = sdkError({ status: 500 })
          const call = driver.run(Effect.fail(error), Operations.forOperation(receive), () => {}).pipe(withRandom(1))
          const fiber = yield* Effect.forkChild(call, { startImmediately: true })
          yield* TestClock.adjust(49)
          assert.isUndefined(fiber.pollUnsafe())
          yield* Fiber.interrupt(fiber)
          assert.isTrue(Exit.hasInterrupts(fiber.pollUnsafe()!))
          assert.strictEqual(yield* RetryQuota.balance, 0)
        }).pipe(Effect.provide(RetryQuota.layer({ initial: 0 }))))
    })
  }
})

describe("x-amz-retry-after", () => {
  it.each(hintHeaders)("vector: $name", ({ headers, hintMs }) => {
    const info = Option.getOrThrow(RetryClassifier.defaultClassifier(sdkError({ status: 500, headers })))
    assert.strictEqual(info.retryAfter === undefined ? null : Duration.toMillis(info.retryAfter), hintMs)
  })

  it.each(hintHeaders)("vector: $name, to the SDK for JavaScript", ({ headers, javaScriptMs }) => {
    const now = Date.UTC(2026, 2, 17, 17, 37, 54)
    const clock = vi.spyOn(Date, "now").mockReturnValue(now)
    const hint = getRetryAfterHint({ statusCode: 500, headers })
    clock.mockRestore()
    assert.strictEqual(hint === undefined ? null : hint.getTime() - now, javaScriptMs)
  })

  it("is missing from an error without a response", () => {
    assert.isUndefined(Option.getOrThrow(RetryClassifier.defaultClassifier(sdkError({ status: 500 }))).retryAfter)
  })

  it("differs from JavaScript in dates, and if both headers are present", () => {
    const differing = hintHeaders.filter(({ hintMs, javaScriptMs }) => javaScriptMs !== hintMs).map(({ name }) => name)
    assert.deepStrictEqual(differing, ["a date", "a date and seconds", "an ISO date", "both"])
  })

  for (const driver of drivers) {
    describe(`through standard2026, by ${driver.name}`, () => {
      const policy = AwsModes.standard2026()

      it.effect.each(hints2026)("vector: $name", ({ delayMs, error: wire, header }) =>
        Effect.gen(function*() {
          const error = withHeaders(wire, header === undefined ? {} : { "x-amz-retry-after": header })
          const run = yield* played(driver, policy, [error])
          assert.deepStrictEqual(run, {
            exit: Exit.succeed(200),
            sentAt: [0, delayMs],
            endedAt: delayMs,
            balance: 500
          })
        }).pipe(Effect.provide(RetryQuota.layer())))

      it.effect("adds at most 5 s to the delay of each retry", () =>
        Effect.gen(function*() {
          const error = withHeaders({ status: 500 }, { "x-amz-retry-after": "60000" })
          const run = yield* played(driver, policy, [error, error, error])
          assert.deepStrictEqual(run, {
            exit: Exit.fail(error),
            sentAt: [0, 5050, 10_150],
            endedAt: 10_150,
            balance: 472
          })
        }).pipe(Effect.provide(RetryQuota.layer())))

      it.effect.each(hintsOfFinalErrors)(
        "vector: makes no $error retryable",
        ({ error: wire, header }) =>
          Effect.gen(function*() {
            const error = withHeaders(wire, { "x-amz-retry-after": header })
            const run = yield* played(driver, policy, [error])
            assert.deepStrictEqual(run, { exit: Exit.fail(error), sentAt: [0], endedAt: 0, balance: 500 })
          }).pipe(Effect.provide(RetryQuota.layer()))
      )
    })
  }
})

/** The policies of a client with the settings of a published case; what only the operation decides is left out. */
const policyWith = ({ maxAttempts, maxBackoff }: AwsModes.Options) => Operations.make({ maxAttempts, maxBackoff })

const withHeaders = (wire: Wire, headers: Record<string, string>): SdkError =>
  Object.assign(sdkError(wire), { $response: { headers } })

/** Plays a call that fails with each of the errors in turn, then succeeds: how and when it ends, and when it sends. */
const played = (driver: Driver, policy: Policy, errors: ReadonlyArray<SdkError>) =>
  Effect.gen(function*() {
    const sentAt: Array<number> = []
    const call = Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const sends = sentAt.push(now)
      return sends > errors.length ? Effect.succeed(200) : Effect.fail(errors[sends - 1]!)
    })
    const program = driver.run(call, policy, () => {}).pipe(withRandom(1), Effect.exit)
    const fiber = yield* Effect.forkChild(Effect.all([program, Clock.currentTimeMillis]), { startImmediately: true })
    yield* TestClock.adjust("1 hour")
    const [exit, endedAt] = yield* Fiber.join(fiber)
    return { exit, sentAt, endedAt, balance: yield* RetryQuota.balance }
  })
