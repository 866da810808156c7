import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { awsStandard2026, Backoff, InvalidOption, RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as Operations from "effect-retry/aws/Operations"
import * as RequestHeaders from "effect-retry/aws/RequestHeaders"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as TestClock from "effect/testing/TestClock"
import * as Aws2026 from "../../examples/aws-2026.ts"
import { constantRandom, Transient } from "../utils/call.ts"
import { inTime } from "../utils/inTime.ts"
import { type Driver, drivers, type Policy, type SdkError, sdkError, type Wire } from "../utils/vectors.ts"
import { dated, invocationIds, max, requests, ttl } from "../vectors/requestHeaders.ts"

const s3 = { service: "s3", operation: "GetObject" }
const getItem = { service: "dynamodb", operation: "GetItem" }

const readTimeout = "10 seconds" as const

const everySecond = Backoff.fixed("1 second").pipe(RetryPolicy.maxAttempts(3))

/** The loop of a retry strategy. */
const requestLoop: Driver = {
  name: "RetryStrategy.run",
  run: (call, policy) => RetryStrategy.run(call).pipe(Effect.provide(RetryStrategy.layer(policy)))
}

describe("RequestHeaders", () => {
  describe("amz-sdk-request", () => {
    for (const driver of [...drivers, requestLoop]) {
      it.effect.each(requests)(
        `vector: $name, by ${driver.name}`,
        ({ operation, responses, service }) =>
          Effect.gen(function*() {
            const policy = Operations.forOperation({ service, operation })
            const { call, seen } = recording(
              { maxAttempts: policy },
              responses.map(({ error = { status: 200 } }) => error)
            )
            assert.deepStrictEqual(yield* inTime(calledBy(driver, call, policy)), Exit.succeed(200))
            assert.deepStrictEqual(
              seen.map((headers) => headers["amz-sdk-request"]),
              responses.map(({ header }) => header)
            )
          }).pipe(Effect.provide(RetryQuota.layer()))
      )
    }

    it.effect.each(dated)("vector: $name", ({ given, responses }) =>
      Effect.gen(function*() {
        const { answerAfterMs, maxAttempts, readTimeoutMs, retryAfterMs, startsAt, ...form } = given
        yield* TestClock.setTime(DateTime.toEpochMillis(DateTime.makeUnsafe(startsAt)))
        const seen: Array<string> = []
        const send = Effect.gen(function*() {
          const headers = yield* RequestHeaders.headers({ maxAttempts, readTimeout: readTimeoutMs, ...form })
          const { date } = responses[seen.push(headers["amz-sdk-request"]) - 1]!
          yield* Effect.sleep(answerAfterMs)
          yield* RequestHeaders.observeDate(date)
          if (seen.length < responses.length) return yield* new Transient()
        })
        const policy = Backoff.fixed(retryAfterMs).pipe(RetryPolicy.maxAttempts(maxAttempts))
        yield* inTime(send.pipe(withRetry(policy), RequestHeaders.withInvocation))
        assert.deepStrictEqual(seen, responses.map(({ header }) => header))
      }))

    it.effect.each(ttl)(
      "vector: $name",
      ({ date, header, maxAttempts, now, readTimeoutMs, ttlPosition }) =>
        Effect.gen(function*() {
          const options = { maxAttempts, readTimeout: readTimeoutMs, ttlPosition }
          assert.strictEqual(yield* requestAt(now, date, options), header)
        })
    )

    it.effect("ignores a date that is not text", () =>
      Effect.gen(function*() {
        const date = ["Thu, 02 Jan 2020 03:04:05 GMT"] as unknown as string
        const request = yield* requestAt("2020-01-02T03:04:05Z", date, { maxAttempts: 3, readTimeout })
        assert.strictEqual(request, "attempt=1; max=3")
      }))

    it.effect.each(
      [
        ...max.map(({ header, maxAttempts }) =>
          [maxAttempts, maxAttempts === "none" ? Infinity : maxAttempts, header] as const
        ),
        ["a policy", Operations.make({ maxAttempts: 9 })(s3), "attempt=1; max=9"],
        ["a policy with a smaller limit on top", RetryPolicy.maxAttempts(2)(everySecond), "attempt=1; max=2"],
        ["a policy without a limit", Backoff.fixed("1 second"), "attempt=1"]
      ] as const
    )("takes max from %s", ([, maxAttempts, expected]) =>
      Effect.gen(function*() {
        const headers = yield* RequestHeaders.withInvocation(RequestHeaders.headers({ maxAttempts }))
        assert.strictEqual(headers["amz-sdk-request"], expected)
      }))

    it.effect("counts the attempts of any schedule", () =>
      Effect.gen(function*() {
        const { call, seen } = recording({ maxAttempts: 3 }, [{ status: 500 }, { status: 500 }, { status: 200 }])
        yield* RequestHeaders.withInvocation(Effect.retry(call, Schedule.recurs(2)))
        assert.deepStrictEqual(numbers(seen), [1, 2, 3])
      }))

    it.effect("counts the attempts of each request loop, inside an attempt of another call too", () =>
      Effect.gen(function*() {
        const seen: Array<RequestHeaders.RequestHeaders> = []
        const send = Effect.flatMap(RequestHeaders.headers({ maxAttempts: awsStandard2026 }), (headers) => {
          seen.push(headers)
          return Effect.fail(new Transient())
        })
        const program = RequestHeaders.withInvocation(RetryStrategy.run(send)).pipe(
          Effect.provide(RetryStrategy.layer(awsStandard2026))
        )
        yield* inTime(Effect.retry(program, Schedule.recurs(1)))
        assert.deepStrictEqual(numbers(seen), [1, 2, 3, 1, 2, 3])
        assert.strictEqual(ids(seen).size, 2)
      }).pipe(Effect.provide(RetryQuota.layer())))

    it.effect("counts the innermost of retries within retries, so one invocation around both repeats numbers", () =>
      Effect.gen(function*() {
        const seen: Array<RequestHeaders.RequestHeaders> = []
        const send = Effect.flatMap(RequestHeaders.headers({ maxAttempts: 2 }), (headers) => {
          seen.push(headers)
          return Effect.fail(new Transient())
        })
        const inner = send.pipe(withRetry(RetryPolicy.maxAttempts(2)(everySecond)))
        yield* inTime(RequestHeaders.withInvocation(Effect.retry(inner, Schedule.recurs(1))))
        assert.deepStrictEqual([numbers(seen), ids(seen).size], [[1, 2, 1, 2], 1])
        yield* inTime(Effect.retry(RequestHeaders.withInvocation(inner), Schedule.recurs(1)))
        assert.deepStrictEqual([numbers(seen.slice(4)), ids(seen).size], [[1, 2, 1, 2], 3])
      }))

    it.effect("takes the number from a custom loop, whatever schedule is around", () =>
      Effect.gen(function*() {
        const seen: Array<RequestHeaders.RequestHeaders> = []
        const strategy = yield* RetryStrategy.make(awsStandard2026)
        const note = (attempt: number) =>
          Effect.map(RequestHeaders.headers({ maxAttempts: 3, maxInFirst: false, attempt }), (headers) => {
            seen.push(headers)
          })
        const call = Effect.gen(function*() {
          const first = yield* strategy.acquireInitialToken()
          yield* note(first.attempt)
          const second = yield* strategy.refreshRetryToken(first, new Transient())
          yield* Effect.repeat(note(second.attempt), Schedule.recurs(1))
        })
        yield* inTime(RequestHeaders.withInvocation(call))
        assert.deepStrictEqual(seen.map((headers) => headers["amz-sdk-request"]), [
          "attempt=1",
          "attempt=2; max=3",
          "attempt=2; max=3"
        ])
        assert.strictEqual(ids(seen).size, 1)
      }).pipe(Effect.provide(RetryQuota.layer())))
  })

  describe("amz-sdk-invocation-id", () => {
    for (const driver of drivers) {
      it.effect.each(invocationIds.cases)(
        `vector: $name, by ${driver.name}`,
        ({ attempts, calls, distinct }) =>
          Effect.gen(function*() {
            const policy = Operations.forOperation(s3)
            const responses = Array.from(
              { length: attempts },
              (_, send) => ({ status: send < attempts - 1 ? 500 : 200 })
            )
            for (const concurrency of [1, "unbounded"] as const) {
              const seen = yield* inTime(Effect.forEach(
                Array.from({ length: calls }),
                () => {
                  const one = recording({ maxAttempts: policy }, responses)
                  return Effect.as(calledBy(driver, one.call, policy), one.seen)
                },
                { concurrency }
              ))
              const sent = (yield* seen).flat()
              assert.strictEqual(sent.length, calls * attempts)
              assert.strictEqual(ids(sent).size, distinct)
            }
          }).pipe(Effect.provide(RetryQuota.layer()))
      )
    }

    it.effect("is a UUID of version 4", () =>
      Effect.gen(function*() {
        const one = RequestHeaders.withInvocation(RequestHeaders.headers({ maxAttempts: 3 }))
        const seen = yield* Effect.replicateEffect(one, 200)
        assert.strictEqual(ids(seen).size, 200)
        for (const id of ids(seen)) {
          assert.match(id, new RegExp(invocationIds.pattern.regex))
        }
        assert.deepStrictEqual([...new Set([...ids(seen)].map((id) => id[19]))].sort(), ["8", "9", "a", "b"])
      }))

    for (
      const [chance, id] of [
        [0, "00000000-0000-4000-8000-000000000000"],
        [1 - 2 ** -53, "ffffffff-ffff-4fff-bfff-ffffffffffff"],
        [1, "00000000-0000-4000-8000-000000000000"]
      ] as const
    ) {
      it.effect(`is well formed for the random number ${chance}`, () =>
        Effect.gen(function*() {
          const call = Effect.map(RequestHeaders.Invocation, (invocation) => invocation.id)
          const random = Effect.provideService(Random.Random, constantRandom(chance))
          assert.strictEqual(yield* RequestHeaders.withInvocation(call).pipe(random), id)
        }))
    }

    it.effect("is repeated by a seed", () =>
      Effect.gen(function*() {
        const one = RequestHeaders.withInvocation(RequestHeaders.headers({ maxAttempts: 3 }))
        const seeded = (seed: string) => Effect.all([one, one]).pipe(Random.withSeed(seed))
        assert.deepStrictEqual(yield* seeded("a"), yield* seeded("a"))
        assert.strictEqual(ids([...yield* seeded("a"), ...yield* seeded("b")]).size, 4)
      }))
  })

  describe("withInvocation", () => {
    const innerCalls = [
      ["a retried call", (call: Sending) => call.pipe(withRetry(everySecond))],
      ["a call with a schedule", (call: Sending) => Effect.retry(call, Schedule.recurs(1))],
      ["a call that is not retried", (call: Sending) => call]
    ] as const

    it.effect.each(innerCalls)("gives %s inside an attempt its own id and count", ([, run]) =>
      Effect.gen(function*() {
        const outer: Array<RequestHeaders.RequestHeaders> = []
        const inner: Array<RequestHeaders.RequestHeaders> = []
        const note = (seen: Array<RequestHeaders.RequestHeaders>) =>
          Effect.map(RequestHeaders.headers({ maxAttempts: 3 }), (headers) => void seen.push(headers))
        const send = note(outer).pipe(
          Effect.andThen(RequestHeaders.withInvocation(run(note(inner)))),
          Effect.andThen(note(outer)),
          Effect.andThen(Effect.fail(new Transient()))
        )
        yield* inTime(send.pipe(withRetry(everySecond), RequestHeaders.withInvocation))
        assert.deepStrictEqual(numbers(outer), [1, 1, 2, 2, 3, 3])
        assert.deepStrictEqual(numbers(inner), [1, 1, 1])
        assert.strictEqual(ids(outer).size, 1)
        assert.strictEqual(ids([...outer, ...inner]).size, 4)
      }))

    it.effect("keeps the skew of each call to itself", () =>
      Effect.gen(function*() {
        const headers = RequestHeaders.headers({ maxAttempts: 3, readTimeout })
        yield* RequestHeaders.withInvocation(RequestHeaders.observeDate("Thu, 01 Jan 1970 00:10:00 GMT"))
        const before = yield* RequestHeaders.withInvocation(headers)
        assert.strictEqual(before["amz-sdk-request"], "attempt=1; max=3")
      }))

    it.effect("regression: hides no retry from its account, even inside the retried effect", () =>
      Effect.gen(function*() {
        const policy = Operations.forOperation(s3)
        const { call, seen } = recording({ maxAttempts: policy }, [{ status: 500 }, { status: 500 }, { status: 200 }])
        yield* inTime(Effect.retry(RequestHeaders.withInvocation(call), policy))
        assert.strictEqual(ids(seen).size, 3)
        assert.strictEqual(yield* RetryQuota.balance, 486)
      }).pipe(Effect.provide(RetryQuota.layer())))

    it("requires only what is inside, and headers require a call around them", () => {
      const headers = RequestHeaders.headers({ maxAttempts: 3 })
      expectTypeOf(headers).toEqualTypeOf<
        Effect.Effect<RequestHeaders.RequestHeaders, never, RequestHeaders.Invocation>
      >()
      expectTypeOf(RequestHeaders.withInvocation(headers)).toEqualTypeOf<
        Effect.Effect<RequestHeaders.RequestHeaders>
      >()
      // @ts-expect-error no call encloses the attempt
      // @effect-diagnostics-next-line missingEffectContext:off
      void (() => Effect.runPromise(headers))
    })
  })

  for (
    const [field, options, value] of [
      ["maxAttempts", { maxAttempts: 0 }, 0],
      ["maxAttempts", { maxAttempts: 1.5 }, 1.5],
      ["maxAttempts", { maxAttempts: NaN }, NaN],
      ["maxAttempts", { maxAttempts: undefined as unknown as number }, undefined],
      ["readTimeout", { maxAttempts: 3, readTimeout: 0 }, 0],
      ["readTimeout", { maxAttempts: 3, readTimeout: NaN }, NaN],
      ["readTimeout", { maxAttempts: 3, readTimeout: Infinity }, Infinity],
      ["ttlPosition", { maxAttempts: 3, ttlPosition: "middle" as "first" }, "middle"],
      ["maxInFirst", { maxAttempts: 3, maxInFirst: 0 as unknown as boolean }, 0],
      ["attempt", { maxAttempts: 3, attempt: 0 }, 0],
      ["attempt", { maxAttempts: 3, attempt: 1.5 }, 1.5],
      ["attempt", { maxAttempts: 3, attempt: Infinity }, Infinity],
      ["attempt", { maxAttempts: 3, attempt: "2" as unknown as number }, "2"]
    ] as const
  ) {
    it(`refuses ${field} ${String(value)}`, () => {
      const error = Result.getOrThrow(Result.flip(Result.try(() => void RequestHeaders.headers(options))))
      assert.instanceOf(error, InvalidOption)
      assert.deepStrictEqual(
        [error.constructorName, error.field, error.value],
        ["RequestHeaders.headers", field, value]
      )
    })
  }

  describe("example aws-2026", () => {
    const bodies = { headers: { date: "Thu, 01 Jan 1970 00:00:01 GMT" } }

    it.effect("sends the headers of each attempt, and follows the server's hint", () =>
      Effect.gen(function*() {
        const seen: Array<RequestHeaders.RequestHeaders> = []
        const transport: Aws2026.Transport = (_operation, headers) =>
          Effect.sync(() =>
            seen.push(headers) < 3
              ? { status: 500, headers: { ...bodies.headers, "x-amz-retry-after": "2000" } }
              : { status: 200, ...bodies }
          )
        yield* inTime(Aws2026.call(transport, getItem))
        assert.deepStrictEqual(seen.map((headers) => headers["amz-sdk-request"]), [
          "attempt=1; max=4",
          "ttl=19700101T000013Z; attempt=2; max=4",
          "ttl=19700101T000013Z; attempt=3; max=4"
        ])
        assert.strictEqual(ids(seen).size, 1)
      }).pipe(Effect.provide(RetryQuota.layer())))

    it.effect("holds a long poll back when the quota refuses it", () =>
      Effect.gen(function*() {
        const transport: Aws2026.Transport = () => Effect.succeed({ status: 503, ...bodies })
        const poll = Aws2026.call(transport, { service: "sqs", operation: "ReceiveMessage" }).pipe(
          Effect.provideService(Random.Random, constantRandom(1))
        )
        const fiber = yield* Effect.forkChild(poll, { startImmediately: true })
        yield* TestClock.adjust(49)
        assert.isUndefined(fiber.pollUnsafe())
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(fiber.pollUnsafe(), Exit.fail({ status: 503, ...bodies }))
      }).pipe(Effect.provide(RetryQuota.layer({ initial: 0 }))))
  })
})

type Sending = Effect.Effect<void, never, RequestHeaders.Invocation>

/** A call that gets the responses in turn, and keeps the headers of its sends. */
const recording = (options: RequestHeaders.Options, responses: ReadonlyArray<Wire>) => {
  const seen: Array<RequestHeaders.RequestHeaders> = []
  const call = Effect.flatMap(RequestHeaders.headers(options), (headers) => {
    const wire = responses[seen.push(headers) - 1]!
    return wire.status === 200 ? Effect.succeed(200) : Effect.fail(sdkError(wire))
  })
  return { call, seen }
}

/** A driver takes calls that need nothing, so the invocation is provided within. */
const calledBy = (driver: Driver, call: Effect.Effect<number, SdkError, RequestHeaders.Invocation>, policy: Policy) =>
  Effect.flatMap(
    RequestHeaders.Invocation,
    (invocation) => driver.run(Effect.provideService(call, RequestHeaders.Invocation, invocation), policy, () => {})
  ).pipe(
    RequestHeaders.withInvocation
  )

const ids = (seen: ReadonlyArray<RequestHeaders.RequestHeaders>) =>
  new Set(seen.map((headers) => headers["amz-sdk-invocation-id"]))

const numbers = (seen: ReadonlyArray<RequestHeaders.RequestHeaders>) =>
  seen.map((headers) => Number(/attempt=(\d+)/.exec(headers["amz-sdk-request"])![1]))

/** The `amz-sdk-request` of a call that is sent at `now`, just after this date came from the server. */
const requestAt = (now: string, date: string, options: RequestHeaders.Options) =>
  Effect.gen(function*() {
    yield* TestClock.setTime(DateTime.toEpochMillis(DateTime.makeUnsafe(now)))
    yield* RequestHeaders.observeDate(date)
    return (yield* RequestHeaders.headers(options))["amz-sdk-request"]
  }).pipe(RequestHeaders.withInvocation)
