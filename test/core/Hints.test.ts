import { assert, describe, it } from "@effect/vitest"
import {
  awsStandard,
  awsStandard2026,
  Backoff,
  RetryClassifier,
  RetryPolicy,
  type RetryQuota,
  withRetry
} from "effect-retry"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as Kit from "effect-retry/testing"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import { clientOf, responseOf } from "../reliability/utils/http.ts"

const day = 86_400_000
const nowMillis = Date.UTC(2026, 10, 20, 12, 0, 0)
const dateOf = (millis: number) => new Date(millis).toUTCString()

type Headers = Record<string, unknown>

const millisOf = (classifier: RetryClassifier.RetryClassifier, error: unknown): number | undefined => {
  const info = Option.getOrThrow(classifier(error))
  return info.retryAfter === undefined ? undefined : Duration.toMillis(info.retryAfter)
}

/** What the HTTP adapter reads, with the clock at `nowMillis`. */
const ofHttp = (headers: Headers, status = 429): Effect.Effect<number | undefined> =>
  Effect.andThen(
    TestClock.setTime(nowMillis),
    Effect.sync(() => millisOf(RetryHttp.classifier, responseOf(headers, status)))
  )

/** What the core reads of an error with headers: the same, except for the limit of one day. */
const ofCore = (headers: Headers): number | undefined =>
  millisOf(RetryClassifier.defaultClassifier, { status: 429, headers })

const send = (client: ReturnType<typeof clientOf>["client"], policy: RetryPolicy.RetryPolicy<any, never, any>) =>
  Effect.exit(Kit.runToEnd(RetryHttp.retry(client, policy, { hintSpread: 0 }).get("http://a/"), { atMost: "40 days" }))

/** 100 ms, then 200, then 400, and hints up to a minute. */
const hinted = Backoff.exponential("100 millis").pipe(
  RetryPolicy.honorRetryAfter({ atMost: "1 minute" }),
  RetryPolicy.maxAttempts(3)
)

describe("hints of servers", () => {
  it.effect("a hint of 0 is a hint, and the computed backoff is the least", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* ofHttp({ "retry-after": "0" }), 0)
      assert.strictEqual(ofCore({ "retry-after": "0" }), 0)
      const { client, times } = clientOf([{ status: 429, headers: { "retry-after": "0" } }, { status: 200 }])
      yield* send(client, hinted)
      assert.deepStrictEqual(times[1]! - times[0]!, 100)
    }))

  const dates: ReadonlyArray<readonly [name: string, header: string, millis: number | undefined]> = [
    ["in the past", dateOf(nowMillis - 1000), undefined],
    ["32 years ago", "Sun, 06 Nov 1994 08:49:37 GMT", undefined],
    ["of this moment", dateOf(nowMillis), undefined],
    ["in a minute", dateOf(nowMillis + 60_000), 60_000],
    ["in the year 9999", "Fri, 31 Dec 9999 23:59:59 GMT", day],
    ["in the form of RFC 850", "Friday, 20-Nov-26 12:01:00 GMT", 60_000],
    ["in the form of asctime", "Fri Nov 20 12:01:00 2026", 60_000],
    ["without GMT", "Fri, 20 Nov 2026 12:01:00", undefined],
    ["with another zone", "Fri, 20 Nov 2026 12:01:00 CET", undefined],
    ["that is no day", "Mon, 31 Feb 2026 00:00:00 GMT", undefined],
    ["of ISO 8601", "2026-11-20T12:01:00Z", undefined]
  ]
  for (const [name, header, millis] of dates) {
    it.effect(`a date ${name} is ${millis === undefined ? "no wait" : `${millis} ms`}`, () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* ofHttp({ "retry-after": header }), millis)
        const core = ofCore({ "retry-after": header })
        assert.strictEqual(core === undefined ? undefined : Math.min(core, day), millis)
      }))
  }

  for (
    const text of [
      "-5",
      "+5",
      "1.5",
      "5.",
      "1e9",
      "0x10",
      "１２",
      "١٢",
      "12 s",
      "",
      "   ",
      "12\r\nx: y",
      "1\n2",
      "-3",
      "Infinity",
      "NaN",
      "null",
      "12;13"
    ]
  ) {
    it.effect(`${JSON.stringify(text)} is no number of seconds, nor any date`, () =>
      Effect.gen(function*() {
        for (const header of ["retry-after", "x-amz-retry-after"]) {
          assert.isUndefined(yield* ofHttp({ [header]: text }))
          assert.isUndefined(ofCore({ [header]: text }))
        }
      }))
  }
  it.effect("blanks around a number do not count", () =>
    Effect.gen(function*() {
      for (const text of [" 12", "12 ", "\t12 \t", "012"]) {
        assert.strictEqual(yield* ofHttp({ "retry-after": text }), 12_000)
        assert.strictEqual(ofCore({ "retry-after": text }), 12_000)
      }
    }))

  for (const text of ["1000000000", "2147483648", "8640000000001", "9".repeat(20), "9".repeat(250), "9".repeat(400)]) {
    it.effect(`a wait of ${text.slice(0, 20)}${text.length > 20 ? "..." : ""} seconds is cut to the bound of the policy`, () =>
      Effect.gen(function*() {
        const { client, times } = clientOf([{ status: 429, headers: { "retry-after": text } }, { status: 200 }])
        yield* send(client, hinted)
        assert.strictEqual(times[1]! - times[0]!, text.length > 256 ? 100 : 60_000)
        const core = ofCore({ "retry-after": text })
        assert.isTrue(core === undefined || (Number.isFinite(core) && core > 0))
        const call = Kit.outcomes([Kit.failure({ status: 429, headers: { "retry-after": text } }), Kit.ok()])
        yield* Effect.exit(Kit.runToEnd(withRetry(call.send, hinted)))
        const [first, second] = call.timeline.at("attempt")
        assert.strictEqual(second! - first!, text.length > 256 ? 100 : 60_000)
      }))
  }

  it.effect("of several values in one header the longest counts, and an invalid one is skipped", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* ofHttp({ "retry-after": "5, 20" }), 20_000)
      assert.strictEqual(yield* ofHttp({ "retry-after": "20,5" }), 20_000)
      assert.strictEqual(yield* ofHttp({ "retry-after": "soon, 5" }), 5000)
      assert.strictEqual(yield* ofHttp({ "retry-after": `5, ${dateOf(nowMillis + 30_000)}` }), 30_000)
      assert.strictEqual(yield* ofHttp({ "retry-after": `1, ${"9".repeat(30)}` }), day)
      // Not text: no hint, and no TypeError.
      for (const value of [["5", "20"], 5, null, {}, Symbol("5")]) {
        assert.isUndefined(yield* ofHttp({ "retry-after": value }))
        assert.isUndefined(ofCore({ "retry-after": value }))
      }
    }))

  it.effect("x-amz-retry-after, in milliseconds, goes before retry-after, in whatever order they come", () =>
    Effect.gen(function*() {
      for (
        const headers of [
          { "x-amz-retry-after": "1500", "retry-after": "7" },
          { "retry-after": "7", "x-amz-retry-after": "1500" }
        ]
      ) {
        assert.strictEqual(yield* ofHttp(headers), 1500)
        assert.strictEqual(ofCore(headers), 1500)
      }
      assert.strictEqual(ofCore({ "x-amz-retry-after": "soon", "retry-after": "7" }), 7000)
    }))

  for (const status of [200, 204, 301, 400, 401, 403, 404, 409, 501]) {
    it.effect(`a hint does not make ${status} worth a retry`, () =>
      Effect.gen(function*() {
        const { client, times } = clientOf([{ status, headers: { "retry-after": "1" } }])
        yield* send(client, hinted)
        assert.strictEqual(times.length, 1)
        const info = RetryClassifier.defaultClassifier({ status, headers: { "retry-after": "1" } })
        assert.isTrue(Option.isNone(info))
      }))
  }
  it.effect("a hint revives no call whose attempts, quota or time are used up", () =>
    Effect.gen(function*() {
      const failure = Kit.throttledFor("1 second")
      const once = Kit.outcomes([failure], { afterwards: "repeat" })
      yield* Effect.exit(Kit.runToEnd(withRetry(once.send, RetryPolicy.maxAttempts(1)(hinted))))
      assert.strictEqual(once.sends, 1)
      const poor = Kit.outcomes([failure], { afterwards: "repeat" })
      yield* Effect.exit(Kit.runToEnd(withRetry(poor.send, awsStandard)))
      assert.strictEqual(poor.sends, 1)
      const late = Kit.outcomes([Kit.throttledFor("5 seconds")], { afterwards: "repeat" })
      const exit = yield* Effect.exit(Kit.runToEnd(
        Effect.andThen(
          Effect.exit(withRetry(late.send, RetryPolicy.deadline("3 seconds")(hinted))),
          Effect.clockWith((clock) => Effect.succeed(clock.currentTimeMillisUnsafe()))
        )
      ))
      // It is not slept on either: the call ends immediately.
      assert.strictEqual(late.sends, 1)
      assert.strictEqual(exit._tag === "Success" ? exit.value - late.timeline.at("attempt")[0]! : -1, 0)
    }).pipe(Effect.provide(Kit.TestQuota.layer({ initial: 4 }))))

  it.effect("a date counts from the Date of the response, whatever the own clock says", () =>
    Effect.gen(function*() {
      for (const skew of [-3_600_000, 0, 3_600_000]) {
        const headers = { "retry-after": dateOf(nowMillis + skew + 45_000), date: dateOf(nowMillis + skew) }
        assert.strictEqual(yield* ofHttp(headers), 45_000)
      }
      assert.strictEqual(yield* ofHttp({ "retry-after": dateOf(nowMillis + 45_000), date: "yesterday" }), 45_000)
    }))

  for (
    const [name, policy, sends, lastMillis] of [
      ["three attempts", hinted, 3, 2000],
      [
        "a deadline",
        RetryPolicy.deadline("10500 millis")(
          RetryPolicy.maxAttempts(1000)(
            Backoff.fixed(1).pipe(RetryPolicy.honorRetryAfter({ atMost: "1 minute" }))
          )
        ),
        11,
        10_000
      ],
      ["the quota, 2.1", awsStandard2026, 3, 2000]
    ] as ReadonlyArray<readonly [string, RetryPolicy.RetryPolicy<any, never, RetryQuota.RetryQuota>, number, number]>
  ) {
    it.effect(`a server that throttles for ever with retry-after 1 is left alone after ${name}`, () =>
      Effect.gen(function*() {
        const { client, times } = clientOf([{ status: 429, headers: { "retry-after": "1" } }])
        yield* send(client, policy)
        assert.strictEqual(times.length, sends)
        assert.isAtLeast(times.at(-1)! - times[0]!, lastMillis)
      }).pipe(Effect.provide([Kit.TestQuota.layer(), Kit.fixedRandom(0)])))
  }
})
