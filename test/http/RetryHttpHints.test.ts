import { assert, describe, it } from "@effect/vitest"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"

const request = HttpClientRequest.get("http://a/")

/** A response with exactly these headers, including those that no `Response` would accept. */
const responseOf = (headers: Record<string, unknown>, status = 429): HttpClientResponse.HttpClientResponse =>
  Object.create(HttpClientResponse.fromWeb(request, new Response(null, { status })), {
    headers: { value: headers },
    status: { value: status }
  })

const nowMillis = Date.UTC(2026, 2, 17, 17, 37, 54)
const httpDate = (millis: number) => new Date(millis).toUTCString()
const day = 86_400_000

/** The hint in milliseconds, of the default readers, with a clock that shows `nowMillis`. */
const hintOf = (
  headers: Record<string, unknown>,
  status?: number,
  options?: RetryHttp.ClassifierOptions
): Effect.Effect<number | undefined> =>
  Effect.gen(function*() {
    yield* TestClock.setTime(nowMillis)
    const info = RetryHttp.makeClassifier(options)(responseOf(headers, status))
    const hint = Option.getOrUndefined(info)?.retryAfter
    return hint === undefined ? undefined : Duration.toMillis(hint)
  })

type Row = readonly [headers: Record<string, unknown>, millis: number | undefined]

const table = (name: string, rows: ReadonlyArray<Row>, status?: number) =>
  describe(name, () => {
    for (const [headers, millis] of rows) {
      const shown = Object.entries(headers).map(([key, value]) => `${key}: ${String(value).slice(0, 60)}`).join(", ")
      it.effect(`${shown} is ${millis === undefined ? "no hint" : `${millis} ms`}`, () =>
        Effect.gen(function*() {
          assert.strictEqual(yield* hintOf(headers, status), millis)
        }))
    }
  })

describe("RetryHttp hints", () => {
  table("retry-after", [
    [{}, undefined],
    [{ "retry-after": "120" }, 120_000],
    [{ "retry-after": " 120\t" }, 120_000],
    [{ "retry-after": "0" }, 0],
    [{ "retry-after": "007" }, 7000],
    [{ "retry-after": httpDate(nowMillis + 60_000) }, 60_000],
    [{ "retry-after": "Tuesday, 17-Mar-26 17:38:54 GMT" }, 60_000],
    [{ "retry-after": "Tue Mar 17 17:38:54 2026" }, 60_000],
    [{ "retry-after": httpDate(nowMillis) }, undefined],
    [{ "retry-after": httpDate(nowMillis - 1000) }, undefined],
    [{ "retry-after": "Sun, 06 Nov 1994 08:49:37 GMT" }, undefined],
    [{ "retry-after": "Fri, 31 Dec 9999 23:59:59 GMT" }, day],
    [{ "retry-after": "120, 240" }, 240_000],
    [{ "retry-after": "240, x, 120" }, 240_000],
    [{ "retry-after": `${httpDate(nowMillis + 30_000)}, 45` }, 45_000],
    [{ "retry-after": `15, ${httpDate(nowMillis + 30_000)}` }, 30_000],
    [{ "retry-after": "86399" }, 86_399_000],
    [{ "retry-after": "86401" }, day],
    [{ "retry-after": "2147483648" }, day],
    [{ "retry-after": "8640000000001" }, day],
    [{ "retry-after": "99999999999999999999" }, day],
    [{ "retry-after": "9".repeat(256) }, day],
    [{ "retry-after": "9".repeat(257) }, undefined]
  ])

  table(
    "a retry-after that is neither a whole number nor an HTTP date",
    [
      "",
      " ",
      ",",
      "-5",
      "+5",
      "-0",
      "1.5",
      "5.",
      ".5",
      "1e9",
      "0x10",
      "１２",
      "١٢",
      "12 s",
      "12s",
      "1_000",
      "NaN",
      "Infinity",
      "1e400",
      "null",
      "not-a-number",
      "Invalid Date GMT",
      "2026-03-17T17:38:24Z",
      "Tue, 17 Mar 2026 17:38:54",
      "Tue, 17 Mar 2026 17:38:54 CET",
      "Mon, 31 Feb 2026 00:00:00 GMT",
      "12\u0000",
      "1\r\n2",
      "\u00a012"
    ].map((header) => [{ "retry-after": header }, undefined] as const)
  )

  table("headers that no HTTP client makes", [
    [{ "retry-after": 12 }, undefined],
    [{ "retry-after": ["12"] }, undefined],
    [{ "retry-after": null }, undefined],
    [{ "retry-after": "12", date: 12 }, 12_000],
    [{ "retry-after": Symbol("12") }, undefined]
  ])

  table("milliseconds", [
    [{ "x-amz-retry-after": "5000" }, 5000],
    [{ "x-amz-retry-after": "0" }, 0],
    [{ "x-amz-retry-after": "abc" }, undefined],
    [{ "x-amz-retry-after": "-100" }, undefined],
    [{ "x-amz-retry-after": "" }, undefined],
    [{ "x-amz-retry-after": "Infinity" }, undefined],
    [{ "x-amz-retry-after": "1e400" }, undefined],
    [{ "x-amz-retry-after": "0x10" }, undefined],
    [{ "x-amz-retry-after": "9".repeat(200) }, day],
    [{ "retry-after-ms": "1500" }, 1500],
    [{ "retry-after-ms": "1500.5" }, undefined],
    [{ "x-ms-retry-after-ms": "1500, 2500" }, 2500]
  ])

  table("more than one header: the order is ours, not the server's", [
    [{ "retry-after": "10", "x-amz-retry-after": "9999" }, 9999],
    [{ "x-amz-retry-after": "9999", "retry-after": "10" }, 9999],
    [{ "x-amz-retry-after": "abc", "retry-after": "10" }, 10_000],
    [{ "x-ms-retry-after-ms": "3", "retry-after-ms": "2", "retry-after": "1" }, 2],
    [{ "x-ratelimit-reset": "3", "ratelimit-reset": "2" }, 2000],
    [{ "ratelimit-reset": "3", "retry-after": "1" }, 1000]
  ])

  table("the Date header is the present of dates and reset times", [
    [{ "retry-after": httpDate(nowMillis + 60_000), date: httpDate(nowMillis + 50_000) }, 10_000],
    [{ "retry-after": httpDate(nowMillis + 60_000), date: "nonsense" }, 60_000],
    [{ "retry-after": httpDate(nowMillis + 60_000), date: httpDate(nowMillis + 61_000) }, undefined],
    [{ "x-ratelimit-reset": `${nowMillis / 1000 + 60}`, date: httpDate(nowMillis + 50_000) }, 10_000],
    [{ "retry-after": "60", date: httpDate(nowMillis + 50_000) }, 60_000]
  ])

  const epochSeconds = nowMillis / 1000

  table("reset times after a 429", [
    [{ "ratelimit-reset": "30" }, 30_000],
    [{ "ratelimit-reset": "0" }, 0],
    [{ "x-ratelimit-reset": `${epochSeconds + 30}` }, 30_000],
    [{ "x-ratelimit-reset": `${nowMillis + 1500}` }, 1500],
    [{ "x-ratelimit-reset": `${epochSeconds - 30}` }, undefined],
    [{ "x-ratelimit-reset": "999999999" }, day],
    [{ "x-ratelimit-reset": "-1" }, undefined],
    [{ "x-ratelimit-reset": "1470173023.123" }, undefined],
    [{ "x-ratelimit-reset": "9".repeat(100) }, day]
  ])

  table("reset times after a 503", [
    [{ "x-ratelimit-reset": "30" }, undefined],
    [{ "x-ratelimit-reset": "30", "x-ratelimit-remaining": "1" }, undefined],
    [{ "x-ratelimit-reset": "30", "x-ratelimit-remaining": "0" }, 30_000],
    [{ "ratelimit-reset": "30", "ratelimit-remaining": "0" }, 30_000]
  ], 503)

  it("reads a date without a clock only against the Date header", () => {
    const hint = (headers: Record<string, unknown>) =>
      Option.getOrThrow(RetryHttp.classifier(responseOf(headers))).retryAfter
    const date = httpDate(nowMillis + 60_000)
    assert.isUndefined(hint({ "retry-after": date }))
    assert.deepStrictEqual(hint({ "retry-after": date, date: httpDate(nowMillis) }), Duration.seconds(60))
  })

  it.effect("asks the next reader if one throws or returns something other than a duration", () =>
    Effect.gen(function*() {
      const made: ReadonlyArray<unknown> = [Number.NaN, -1, "soon", null, Duration.seconds(-1)]
      for (const value of made) {
        const hints = [() => value as number, ...RetryHttp.defaultHints]
        assert.strictEqual(yield* hintOf({ "retry-after": "5" }, 429, { hints }), 5000)
      }
      const throwing: RetryHttp.HintReader = () => {
        throw new Error("reader")
      }
      assert.strictEqual(
        yield* hintOf({ "retry-after": "5" }, 429, { hints: [throwing, ...RetryHttp.defaultHints] }),
        5000
      )
      assert.strictEqual(yield* hintOf({}, 429, { hints: [() => "3 seconds"] }), 3000)
      assert.strictEqual(yield* hintOf({}, 429, { hints: [() => Duration.infinity] }), day)
    }))

  describe("whatever a header holds", () => {
    const names = [
      "x-amz-retry-after",
      "retry-after-ms",
      "x-ms-retry-after-ms",
      "retry-after",
      "ratelimit-reset",
      "x-ratelimit-reset"
    ]
    const pieces = [
      "0",
      "12",
      "1773769074",
      "1773769074339",
      "9".repeat(40),
      "-",
      "+",
      ".",
      "e",
      "x",
      " ",
      "\t",
      ",",
      "Tue",
      "Tuesday",
      "17 Mar 2026 17:38:54 GMT",
      "17-Mar-26",
      "17:38:54",
      "GMT",
      "Mar",
      "\u0000",
      "\r\n",
      "１"
    ] as const
    const text = Schema.Union([Schema.String, Schema.Array(Schema.Literals(pieces))])
    const header = Schema.Struct({ name: Schema.Literals([...names, "date", "x-ratelimit-remaining"]), text })

    it.effect.prop(
      "law: the hint is none, or from 0 to a day",
      [Schema.Array(header).check(Schema.isMaxLength(4)), Schema.Literals([429, 503])],
      ([headers, status]) =>
        Effect.gen(function*() {
          const entries = headers.map(({ name, text }) => [name, typeof text === "string" ? text : text.join("")])
          const millis = yield* hintOf(Object.fromEntries(entries), status)
          assert.isTrue(millis === undefined || (millis >= 0 && millis <= day), String(millis))
        }),
      { arbitrary: { runs: 1000 } } as any
    )
  })
})
