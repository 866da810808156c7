/** One header, one answer: each header by each reader of the library. docs/http.md, "Hints", names the rows that differ. */
import { assert, describe, it } from "@effect/vitest"
import { Backoff, RetryClassifier, RetryInfo, RetryPolicy, withRetry } from "effect-retry"
import * as AwsSdk from "effect-retry/AwsSdk"
import * as CoolDown from "effect-retry/CoolDown"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Headers from "effect/http/Headers"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as TestClock from "effect/testing/TestClock"
import { responseOf } from "../reliability/utils/http.ts"
import { dynamo, failure, getItem } from "../utils/awsSdk.ts"

const nowMillis = Date.UTC(2026, 10, 20, 10, 53, 30)
const day = 86_400_000

type Wire = Readonly<Record<string, string>>

const hintOf = (info: Option.Option<RetryInfo.RetryInfo>): number | undefined => {
  const { retryAfter } = Option.getOrThrow(info)
  return retryAfter === undefined ? undefined : Duration.toMillis(retryAfter)
}

/** Each reader of the library, of a throttle with these headers, at `nowMillis`. */
const readers: Readonly<Record<string, (headers: Wire) => Effect.Effect<number | undefined, unknown>>> = {
  "RetryHttp.classifier": (headers) => Effect.sync(() => hintOf(RetryHttp.classifier(responseOf(headers)))),
  "RetryClassifier.defaultClassifier": (headers) =>
    Effect.sync(() => hintOf(RetryClassifier.defaultClassifier({ status: 429, headers }))),
  CoolDown: (headers) =>
    Effect.gen(function*() {
      const once = RetryPolicy.maxAttempts(Backoff.fixed(1), 1)
      yield* Effect.exit(withRetry(Effect.fail({ status: 429, headers }), once))
      const { phase, remaining } = yield* CoolDown.state
      return phase === "closed" ? Duration.toMillis(remaining) : undefined
    }).pipe(Effect.provide(CoolDown.layer({ atMost: "20000 days", spread: 0 }))),
  "AwsSdk.classifier": (headers) =>
    Effect.sync(() => hintOf(AwsSdk.classifier({ name: "ThrottlingException", $response: { headers } }))),
  "AwsSdk.send": (headers) =>
    Effect.map(
      Effect.flip(AwsSdk.send(dynamo([failure("ThrottlingException", 429, headers)]).client, getItem())),
      (error) => hintOf(RetryInfo.fromError(error))
    )
}

const inAws = ["AwsSdk.classifier", "AwsSdk.send"]

interface Row {
  readonly name: string
  readonly headers: Wire
  readonly millis: number | undefined
  /** To the clients of AWS, if that differs. */
  readonly aws?: number | undefined
  /** Where a wait of 0 is a hint, a cool-down is free all the same. RetryHttp cuts a hint to a day. */
  readonly note?: string
}

const after = (value: string, millis: number | undefined, name = value): Row => ({
  name: `retry-after: ${name}`,
  headers: { "retry-after": value },
  millis
})

const rows: ReadonlyArray<Row> = [
  // RFC 9110, 10.2.3 and 5.6.7.
  after("120", 120_000),
  after("0", 0),
  after("Fri, 20 Nov 2026 10:55:30 GMT", 120_000),
  after("Friday, 20-Nov-26 10:55:30 GMT", 120_000),
  after("Fri Nov 20 10:55:30 2026", 120_000),
  after("Sat Dec  5 10:53:30 2026", 15 * day),
  // A leap second is the second after.
  after("Fri, 20 Nov 2026 10:55:60 GMT", 150_000),
  after("Fri, 20 Nov 2026 10:53:60 GMT", 30_000),
  after("Fri, 20 Nov 2026 10:55:75 GMT", undefined),
  after("Fri, 20 Nov 2026 10:60:30 GMT", undefined),
  after("Fri, 20 Nov 2026 25:00:00 GMT", undefined),
  after("Fri, 31 Nov 2026 10:55:30 GMT", undefined),
  // The pivot of short years is 70, as in Effect: RFC 9110 asks for 50 years from now.
  after("Wednesday, 20-Nov-69 10:53:30 GMT", Date.UTC(2069, 10, 20, 10, 53, 30) - nowMillis),
  // smithy-typescript, parseRetryAfterHeader.spec.ts.
  after("not-a-number", undefined),
  after("Invalid Date GMT", undefined),
  // Neither is in RFC 9110; the SDK for JavaScript takes them.
  after("1.5", undefined),
  after("2026-11-20T10:55:30Z", undefined),
  after("", undefined),
  after("-5", undefined),
  after("+5", undefined),
  after("1e3", undefined),
  after("0x10", undefined),
  after(" 7 ", 7000),
  after("9".repeat(300), undefined, "300 digits"),
  {
    name: "retry-after by the clock of the response",
    headers: { "retry-after": "Fri, 20 Nov 2026 10:55:30 GMT", date: "Fri, 20 Nov 2026 10:55:20 GMT" },
    millis: 10_000
  },
  { name: "x-amz-retry-after", headers: { "x-amz-retry-after": "1500" }, millis: 1500 },
  { name: "x-amz-retry-after first", headers: { "x-amz-retry-after": "1500", "retry-after": "7" }, millis: 1500 },
  // Two answers, named on the page.
  { ...after("Sun, 06 Nov 1994 08:49:37 GMT", undefined), aws: 0 },
  { ...after("Wednesday, 20-Nov-75 10:53:30 GMT", undefined), aws: 0 },
  { ...after("7, 9", 9000), aws: undefined },
  // The names that ky 1.14 reads; `x-ratelimit-reset` of GitHub; OpenAI.
  ...[
    { "ratelimit-reset": "45" },
    { "x-ratelimit-reset": "45" },
    { "x-rate-limit-reset": "45" },
    { "x-ratelimit-retry-after": "45" },
    { "x-ratelimit-reset-tokens": "45s" },
    { ratelimit: `"default";r=0;t=45` }
  ].map((headers: Wire) => ({ name: Object.keys(headers)[0]!, headers, millis: 45_000, aws: undefined })),
  // RFC 9651, 3.3.1: an integer has at most 15 digits, else the field is ignored.
  { name: "RateLimit with 16 digits", headers: { ratelimit: `"a";r=0;t=${"1".repeat(16)}` }, millis: undefined },
  {
    name: "RateLimit, 16 digits in another item",
    headers: { ratelimit: `"a";r=0;t=3, "b";q=${"1".repeat(16)}` },
    millis: undefined
  }
]

describe.each(Object.entries(readers))("%s reads", (reader, read) => {
  it.effect.each(rows)("$name", (row) =>
    Effect.gen(function*() {
      yield* TestClock.setTime(nowMillis)
      const isAws = inAws.includes(reader)
      const expected = isAws && "aws" in row ? row.aws : row.millis
      const shown = reader === "CoolDown" && expected === 0
        ? undefined
        : reader === "RetryHttp.classifier" && expected !== undefined
        ? Math.min(expected, day)
        : expected
      assert.strictEqual(yield* read(row.headers), shown)
    }))
})

it.effect.each([
  ["x-rate-limit-reset", "x-rate-limit-remaining"],
  ["x-ratelimit-reset", "x-ratelimit-remaining"],
  ["ratelimit-reset", "ratelimit-remaining"]
])("%s counts after a 503 if nothing remains", ([reset, remaining]) =>
  Effect.sync(() => {
    const of = (left: string) =>
      hintOf(RetryClassifier.defaultClassifier({ status: 503, headers: { [reset!]: "45", [remaining!]: left } }))
    assert.deepStrictEqual([of("0"), of("1")], [45_000, undefined])
  }))

describe("a date is what Effect's reader makes of it", () => {
  const names = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
  const longNames = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
  const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
  const two = (n: number) => String(n).padStart(2, "0")

  /** Each form with each edge of a day, a month, an hour, a minute and a second, valid or not. */
  const dates = [0, 1, 9, 28, 29, 30, 31, 32].flatMap((dayOfMonth) =>
    months.flatMap((month, index) =>
      [1970, 1999, 2024, 2026, 2069].flatMap((year) =>
        ["00:00:00", "23:59:60", "12:59:59", "24:00:00", "12:60:00", "12:00:61"].flatMap((time) => [
          `${names[index % 7]}, ${two(dayOfMonth)} ${month} ${year} ${time} GMT`,
          `${longNames[index % 7]}, ${two(dayOfMonth)}-${month}-${two(year % 100)} ${time} GMT`,
          `${names[index % 7]} ${month} ${String(dayOfMonth).padStart(2)} ${time} ${year}`
        ])
      )
    )
  )

  it.effect("in each form, at each edge", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(0)
      let valid = 0
      for (const date of dates) {
        const theirs = Result.getOrUndefined(Headers.parseHttpDate(date))?.epochMilliseconds
        if (theirs !== undefined) valid++
        const ours = hintOf(RetryClassifier.defaultClassifier({ status: 429, headers: { "retry-after": date } }))
        assert.strictEqual(ours, theirs === undefined || theirs <= 0 ? undefined : theirs, date)
      }
      assert.isAbove(valid, 2500)
    }))
})
