import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { RetryClassifier, RetryPolicy, withRetry } from "effect-retry"
import * as GeneralReference from "effect-retry/aws/legacy/GeneralReference"
import * as Waiter from "effect-retry/Waiter"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import { awsThrottlingCodes } from "../../../src/internal/classification/errorCodes.ts"
import { Terminal, Throttled, Transient } from "../../utils/call.ts"
import { verdictOf } from "../../utils/conformance.ts"
import { refuses } from "../../utils/refuses.ts"
import { drivers, played, type SdkError, sdkError, type Wire, withRandom } from "../../utils/vectors.ts"
import { calls, errors, polling as vectors } from "../../vectors/generalReference.ts"

const { classifier } = GeneralReference

/** The shapes in which an error comes. */
const shapesOf = (wire: Wire): ReadonlyArray<unknown> => {
  const { code, network, status } = wire
  if (network !== undefined) return [sdkError(wire)]
  if (code === undefined) {
    return [
      { $metadata: { httpStatusCode: status } },
      { statusCode: status },
      { status },
      { response: { status } },
      { _tag: "HttpClientError", reason: { response: { status } } }
    ]
  }
  return [{ name: code }, { code }, { Code: code }, { __type: `com.amazonaws#${code}` }, {
    __type: `${code}:http://internal.amazon.com/coral/`
  }].map((error) => ({ ...error, status }))
}

/** How a wait that fails says so. */
const endings = {
  failure: /^wait failed after/,
  "max-polls": /^the delays have ended after/,
  "max-wait": /^still waiting after/
}

describe("GeneralReference", () => {
  describe("classifier", () => {
    it.each(errors)("vector: $error is $verdict", ({ error, verdict }) => {
      for (const shape of shapesOf(error)) assert.deepStrictEqual(verdictOf(classifier, shape), { verdict })
    })

    it("knows all throttling codes of the SDKs, whatever the status", () => {
      const throttles = new Set(
        errors.flatMap(({ error: { code }, verdict }) => verdict === "throttling" && code || [])
      )
      assert.deepStrictEqual([...throttles].sort(), [...awsThrottlingCodes].sort())
      for (const code of throttles) {
        for (const status of [400, 403, 503]) {
          for (const shape of shapesOf({ code, status })) {
            assert.deepStrictEqual(verdictOf(classifier, shape), { verdict: "throttling" })
          }
        }
      }
    })

    it.each<[name: string, error: unknown, expected: string]>([
      ["an unknown error", new Error("bug"), "final"],
      ["a timeout", { _tag: "TimeoutError" }, "final"],
      ["a status below the range", { status: 0 }, "final"],
      ["a status above the range", { status: 600 }, "final"],
      ["a status that is not a number", { status: "503" }, "final"],
      ["nothing", undefined, "final"],
      ["null", null, "final"],
      ["a string", "Throttling", "final"],
      ["the cause of a wrapper: 503", new Error("wrapped", { cause: { status: 503 } }), "transient"],
      ["the cause of a wrapper: throttle", { cause: { cause: { code: "SlowDown" } } }, "throttling"],
      ["the cause of a client error", { status: 404, cause: { status: 503 } }, "final"],
      ["own facts: a server's fault", new Transient(), "transient"],
      ["own facts: a throttle", new Throttled({}), "throttling"],
      ["own facts before the status", Object.assign(new Terminal(), { status: 503 }), "final"]
    ])("%s", (_name, error, expected) => {
      const classify = (given: unknown) => RetryClassifier.classify(classifier, given)
      assert.deepStrictEqual(verdictOf(classify, error), { verdict: expected })
    })

    it("says that a server error is the server's fault", () => {
      assert.strictEqual(Option.getOrThrow(classifier({ status: 501 })).fault, "server")
    })

    it("knows the server's hint", () => {
      const headers = { "retry-after": "3" }
      for (
        const error of [
          { status: 503, headers },
          { statusCode: 429, response: { headers } },
          { name: "SlowDown", $response: { headers } },
          { reason: { response: { status: 500, headers } } }
        ]
      ) {
        const info = Option.getOrThrow(GeneralReference.classifier(error))
        assert.deepStrictEqual(info.retryAfter, Duration.seconds(3))
      }
    })
  })

  describe("policy", () => {
    const { policy } = GeneralReference

    for (const driver of drivers) {
      it.effect.each(calls)(`vector: $name, ${driver.name}`, ({ errors, expected, given }) => {
        const { maxAttempts, maxBackoffMs, random } = given
        const made = policy({
          maxRetries: maxAttempts === undefined ? undefined : maxAttempts - 1,
          maxWaitInterval: maxBackoffMs
        })
        return Effect.gen(function*() {
          assert.deepStrictEqual(yield* played(driver, made, errors.map(sdkError)), expected)
        }).pipe(withRandom(random), Effect.provide(GeneralReference.layer))
      })
    }

    it("requires no services", () => {
      expectTypeOf(policy()).toEqualTypeOf<RetryPolicy.RetryPolicy>()
      assert.isTrue(RetryPolicy.isRetryPolicy(policy()))
    })
  })

  describe("polling", () => {
    interface Job {
      readonly status: GeneralReference.Status
    }
    const status = (job: Job) => job.status
    const pending: Job = { status: "NOT_READY" }
    const done: Job = { status: "SUCCESS" }
    const unavailable = sdkError({ status: 503 })
    type Step = Job | SdkError

    /** Plays a script, whose last step repeats; returns when polls began and how it ended. */
    const play = (waiter: Waiter.Waiter<Job>, script: ReadonlyArray<Step>, pollMillis = 0) =>
      Effect.gen(function*() {
        const began: Array<number> = []
        const poll = Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const step = script[Math.min(began.push(now), script.length) - 1]!
          const polled = "status" in step ? Effect.succeed(step) : Effect.fail(step)
          return pollMillis > 0 ? Effect.delay(polled, pollMillis) : polled
        })
        const fiber = yield* Effect.forkChild(Effect.exit(Waiter.waitUntil(poll, waiter)), { startImmediately: true })
        yield* TestClock.adjust("1 day")
        return { began, exit: fiber.pollUnsafe()!.pipe(Exit.getSuccess, Option.getOrThrow) }
      }).pipe(Effect.provide(GeneralReference.layer))

    const byDefault = GeneralReference.polling({ status })

    it.effect.each(vectors)("vector: $name", ({ answers, given, outcome, pollsAtMs }) =>
      Effect.gen(function*() {
        const { maxBackoffMs, maxPolls, maxWaitMs, pollTakesMs } = given
        const waiter = GeneralReference.polling({
          status,
          maxPolls: maxPolls === "none" ? Infinity : maxPolls,
          maxWaitInterval: maxBackoffMs,
          maxWait: maxWaitMs
        })
        const steps = answers.map((answer) => "error" in answer ? sdkError(answer.error) : answer)
        const { began, exit } = yield* play(waiter, steps, pollTakesMs)
        assert.deepStrictEqual(began, pollsAtMs)
        if (Exit.isFailure(exit)) {
          const { message } = yield* Effect.flip(exit)
          return assert.match(message, endings[outcome as keyof typeof endings])
        }
        assert.strictEqual(outcome, "success")
        const { attempts, elapsed } = exit.value
        assert.deepStrictEqual([attempts, Duration.toMillis(elapsed)], [
          pollsAtMs.length,
          pollsAtMs.at(-1)! + (pollTakesMs ?? 0)
        ])
      }))

    it.effect.each(
      [
        [[pending, { status: "CANCELLED" }], "wait failed after 2 polls: the status is CANCELLED"],
        [[unavailable], "wait failed after 1 poll: no acceptor matched the error"],
        [[pending], "the delays have ended after 1m 5s 500ms of 10m, 10 polls"]
      ] as ReadonlyArray<[ReadonlyArray<Step>, string]>
    )("says why it ends: %j", ([script, expected]) =>
      Effect.gen(function*() {
        const { exit } = yield* play(byDefault, script)
        assert.strictEqual((yield* Effect.flip(exit)).message, expected)
      }))

    it.effect("asks the fiber's classifier what is a throttle", () =>
      Effect.gen(function*() {
        const odd = { _tag: "Odd" }
        let polls = 0
        const poll = Effect.suspend(() => ++polls === 1 ? Effect.fail(odd) : Effect.succeed(done))
        const wait = Waiter.waitUntil(poll, byDefault).pipe(
          Effect.provide(
            RetryClassifier.layer((error) =>
              error === odd ? GeneralReference.classifier({ status: 429 }) : Option.none()
            )
          )
        )
        const fiber = yield* Effect.forkChild(wait, { startImmediately: true })
        yield* TestClock.adjust("1 minute")
        assert.isTrue(Exit.isSuccess(fiber.pollUnsafe()!))
        assert.strictEqual(polls, 2)
      }))

    it.effect("continues after a server error that is retried within the poll", () =>
      Effect.gen(function*() {
        const began: Array<number> = []
        const poll = Effect.flatMap(Clock.currentTimeMillis, (now) =>
          began.push(now) === 1 ? Effect.fail(unavailable) : Effect.succeed(began.length === 2 ? pending : done))
        const wait = poll.pipe(withRetry(GeneralReference.policy()), Waiter.waitUntil(byDefault))
        const fiber = yield* Effect.forkChild(wait, { startImmediately: true })
        yield* TestClock.adjust("1 minute")
        assert.isTrue(Exit.isSuccess(fiber.pollUnsafe()!))
        assert.deepStrictEqual(began, [100, 200, 400])
      }).pipe(Effect.provide(GeneralReference.layer)))
  })

  describe("options", () => {
    const status = () => "SUCCESS"
    const { policy, polling } = GeneralReference
    const wrong = [NaN, Infinity, -1, 0, "no duration" as "1 second"]
    const bad: ReadonlyArray<readonly [constructorName: string, field: string, value: unknown, make: () => unknown]> = [
      ...[NaN, -1, 1.5, "3" as unknown as number].map((maxRetries) =>
        ["policy", "maxRetries", maxRetries, () => policy({ maxRetries })] as const
      ),
      ...wrong.map((maxWaitInterval) =>
        ["policy", "maxWaitInterval", maxWaitInterval, () => policy({ maxWaitInterval })] as const
      ),
      ...[NaN, -1, 0, 1.5].map((maxPolls) =>
        ["polling", "maxPolls", maxPolls, () => polling({ status, maxPolls })] as const
      ),
      ...[...wrong, 0.5].map((maxWaitInterval) =>
        ["polling", "maxWaitInterval", maxWaitInterval, () => polling({ status, maxWaitInterval })] as const
      ),
      ...[...wrong, 100].map((maxWait) => ["polling", "maxWait", maxWait, () => polling({ status, maxWait })] as const),
      ["polling", "status", undefined, () => polling({ status: undefined as any })]
    ]
    for (const [row, [name, field, value, make]] of bad.entries()) {
      it(`${name} refuses ${field} of ${String(value)} (row ${row})`, () => {
        refuses(make, { constructorName: `GeneralReference.${name}`, field, value })
      })
    }

    it("accepts valid options", () => {
      policy({ maxRetries: Infinity, maxWaitInterval: 1 })
      polling({ status, maxPolls: Infinity, maxWaitInterval: 1, maxWait: 2 })
      polling({ status, maxWait: 101 })
    })
  })
})
