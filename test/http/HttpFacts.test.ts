import { assert, describe, it } from "@effect/vitest"
import { RetryClassifier } from "effect-retry"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import { responseOf } from "../reliability/utils/http.ts"

/** Mon, 05 Aug 2019 09:27:00 GMT, the present of the examples in the draft. */
const nowMillis = Date.UTC(2019, 7, 5, 9, 27, 0)

type Headers = Readonly<Record<string, string>>

const factsOf = (classifier: RetryClassifier.RetryClassifier, failure: unknown): string => {
  const info = Option.getOrUndefined(RetryClassifier.classify(classifier, failure))
  if (info === undefined) return "-"
  const hint = info.retryAfter === undefined ? [] : `${Duration.toMillis(info.retryAfter)} ms`
  return [info.safety, info.throttling ? "throttling" : [], hint].flat().join(" ")
}

/** Every shape in which an answer comes: they say the same. */
const shapes: ReadonlyArray<readonly [name: string, of: (status: number, headers: Headers, body: object) => unknown]> =
  [
    ["a Response", (status, headers) => new Response(null, { status, headers })],
    ["openai", (status, headers, body: any) => ({ status, headers: new Headers(headers), ...body, error: body.error })],
    ["Anthropic", (status, headers, body) => ({ status, headers: new Headers(headers), error: body, requestID: "1" })],
    ["axios", (status, headers, data) => ({ status, code: "ERR_BAD_REQUEST", response: { status, headers, data } })],
    ["got", (statusCode, headers, body) => ({ response: { statusCode, headers, body: JSON.stringify(body) } })],
    ["ky", (status, headers) => ({ response: new Response(null, { status, headers }) })],
    [
      "ofetch",
      (status, headers, data) => ({ statusCode: status, data, response: new Response(null, { status, headers }) })
    ],
    ["undici", (statusCode, headers, body) => ({ statusCode, headers, body: JSON.stringify(body) })],
    ["Vercel", (statusCode, responseHeaders, data) => ({ statusCode, responseHeaders, data })],
    [
      "Azure",
      (statusCode, headers) => ({ statusCode, response: { status: statusCode, headers: new Headers(headers) } })
    ],
    ["node:http", (statusCode, headers) => ({ statusCode, headers })],
    ["headers as HTTP writes them", (status, headers) => ({
      status,
      headers: Object.fromEntries(
        Object.entries(headers).map((
          [name, value]
        ) => [name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase()), value])
      )
    })]
  ]

/** Shapes that have the body. */
const withBody = ["openai", "Anthropic", "axios", "got", "ofetch", "undici", "Vercel"]

interface Row {
  readonly name: string
  readonly status: number
  readonly headers?: Headers
  readonly facts: string
}

const table = (rows: ReadonlyArray<Row>) => {
  for (const { facts, headers = {}, name, status } of rows) {
    it.effect(`${name}: ${facts}, as a response of Effect and in the error of any client`, () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(nowMillis)
        assert.strictEqual(factsOf(RetryHttp.classifier, responseOf(headers, status)), facts)
        for (const [shape, of] of shapes) {
          const error = of(status, headers, {})
          const expected = facts === "No" && status >= 501 && !("x-should-retry" in headers) ? ["-", "No"] : [facts]
          assert.include(expected, factsOf(RetryClassifier.defaultClassifier, error), shape)
        }
      }))
  }
}

describe("statuses", () => {
  const transient = [408, 425, 500, 502, 503, 504, 507, 509, 520, 521, 522, 523, 524, 525, 526, 527, 529, 530, 598, 599]
  const answers = [
    400,
    401,
    402,
    403,
    404,
    405,
    406,
    407,
    409,
    410,
    411,
    412,
    413,
    415,
    422,
    423,
    424,
    426,
    428,
    431,
    451
  ]
  table([
    ...transient.map((status) => ({ name: String(status), status, facts: "Yes" })),
    ...answers.map((status) => ({ name: String(status), status, facts: "-" })),
    ...[501, 505, 506, 508, 510, 511].map((status) => ({ name: String(status), status, facts: "No" })),
    { name: "429", status: 429, facts: "Yes throttling" }
  ])
})

// openai 6.49 and @anthropic-ai/sdk 1.12, client.js: the header decides before the status. Envoy never retries what
// has x-envoy-overloaded; Finagle not what has its nack; gRPC proposal A6 for pushback.
describe("which fact decides", () => {
  table([
    { name: "429, x-should-retry: false", status: 429, headers: { "x-should-retry": "false" }, facts: "No" },
    { name: "500, x-should-retry: false", status: 500, headers: { "x-should-retry": "false" }, facts: "No" },
    { name: "409, x-should-retry: true", status: 409, headers: { "x-should-retry": "true" }, facts: "Yes" },
    { name: "501, x-should-retry: true", status: 501, headers: { "x-should-retry": "true" }, facts: "Yes" },
    { name: "409, x-should-retry: yes", status: 409, headers: { "x-should-retry": "yes" }, facts: "-" },
    { name: "503, x-envoy-overloaded", status: 503, headers: { "x-envoy-overloaded": "true" }, facts: "No" },
    {
      name: "503, x-envoy-ratelimited",
      status: 503,
      headers: { "x-envoy-ratelimited": "true" },
      facts: "Yes throttling"
    },
    { name: "503, finagle nack", status: 503, headers: { "finagle-http-nonretryable-nack": "true" }, facts: "No" },
    { name: "503, pushback -1", status: 503, headers: { "grpc-retry-pushback-ms": "-1" }, facts: "No" },
    { name: "503, pushback x", status: 503, headers: { "grpc-retry-pushback-ms": "soon" }, facts: "No" },
    { name: "503, pushback 250", status: 503, headers: { "grpc-retry-pushback-ms": "250" }, facts: "Yes 250 ms" },
    { name: "503, pushback 0", status: 503, headers: { "grpc-retry-pushback-ms": "0" }, facts: "Yes 0 ms" }
  ])
})

const limited = (headers: Headers, hint: string, status = 429): Row => ({
  name: `${status} ${Object.entries(headers).map(([name, value]) => `${name}: ${value}`).join(", ")}`,
  status,
  headers,
  facts: `Yes${status === 429 ? " throttling" : ""}${hint && ` ${hint}`}`
})

// draft-ietf-httpapi-ratelimit-headers @0669b82c, its examples; then RFC 9651 for what is malformed.
describe("RateLimit", () => {
  const ratelimit = (ratelimit: string, hint: string, status?: number) => limited({ ratelimit }, hint, status)
  table([
    ratelimit(`"default";r=50;t=30`, "30000 ms"),
    ratelimit(`"default";r=50;t=30`, "", 503),
    ratelimit(`"default";r=999;pk=:dHJpYWwxMjEzMjM=:`, ""),
    ratelimit(`"default";r=300000000;t=60;pk=:QXBwLTk5OQ==:`, "60000 ms"),
    ratelimit(`"problemPolicy";r=0;t=10`, "10000 ms"),
    ratelimit(`"problemPolicy";r=0;t=10`, "10000 ms", 503),
    ratelimit(`"dayLimit";r=100;t=36000`, "36000000 ms"),
    limited({ ratelimit: `"dynamic";r=0;t=20`, "ratelimit-policy": `"dynamic";q=15;w=20` }, "20000 ms"),
    limited({
      ratelimit: `"default";r=0;t=5`,
      "retry-after": "Mon, 05 Aug 2019 09:27:05 GMT",
      date: "Mon, 05 Aug 2019 09:27:00 GMT"
    }, "5000 ms"),
    limited({ ratelimit: `"dynamic";r=15;t=40`, "retry-after": "20" }, "20000 ms"),
    ratelimit(`"burst";r=0;t=5, "daily";r=100;t=36000`, "5000 ms"),
    ratelimit(`"burst";r=0;t=5,"daily";r=0;t=36000`, "36000000 ms"),
    ratelimit(`"burst";r=3;t=5, "daily";r=100;t=36000`, "36000000 ms"),
    ratelimit(`"a, b;r=0";r=5;t=7`, "7000 ms"),
    ratelimit(`"a\\"b";r=0;t=7;acme-x="y;t=9";acme-flag`, "7000 ms"),
    ratelimit(`"a";r=0;t=7;t=8`, "8000 ms"),
    ratelimit(`"a";r=0`, ""),
    ratelimit(`"a";t=7`, ""),
    ratelimit(`"a";r=-1;t=7`, ""),
    ratelimit(`"a";r=0;t=-7`, ""),
    ratelimit(`"a";r=0;t=1.5`, ""),
    ratelimit(`"a";r=0;t=7,`, ""),
    ratelimit(`"a";r=0;t=7 "b"`, ""),
    ratelimit(`"a";R=0;t=7`, ""),
    ratelimit(`"a;r=0;t=7`, ""),
    ratelimit(`"a";r=;t=7`, ""),
    ratelimit(`a;r=0;t=7`, ""),
    ratelimit(`limit=10, remaining=0, reset=5`, ""),
    ratelimit("", ""),
    ratelimit(`"a";r=0;t=7;x="${"9".repeat(1024)}"`, ""),
    limited({ ratelimit: `"c";r=0;t=9`, "ratelimit-policy": `"c";q=4;qu="concurrent-requests"` }, "", 503),
    limited({ ratelimit: `"c";r=0;t=9`, "ratelimit-policy": `"c";q=65535;qu="content-bytes";w=10` }, "9000 ms"),
    limited({ ratelimit: `"c";r=0;t=9`, "ratelimit-policy": `"other";q=4;qu="concurrent-requests"` }, "9000 ms", 503)
  ])
})

// The header order is that of openai 6.49 client.js; the rows with numbers are published by vercel/ai
// retry-with-exponential-backoff.test.ts, which falls back on its own delay where there is no hint.
describe("hints of LLM services", () => {
  const anthropic = (bucket: string, remaining: string, reset: string) => ({
    [`anthropic-ratelimit-${bucket}-remaining`]: remaining,
    [`anthropic-ratelimit-${bucket}-reset`]: reset
  })
  table([
    limited({ "retry-after-ms": "3000", "retry-after": "10" }, "3000 ms"),
    limited({ "retry-after": "30" }, "30000 ms"),
    limited({ "retry-after-ms": "70000" }, "70000 ms"),
    limited({ "retry-after-ms": "invalid", "retry-after": "not-a-number" }, ""),
    limited({ "retry-after-ms": "-1000" }, ""),
    limited({ "retry-after-ms": "0", "retry-after": "10" }, "0 ms"),
    limited({ "retry-after-ms": "120" }, "120 ms"),
    limited({ "x-ratelimit-reset-tokens": "6m0s" }, "360000 ms"),
    limited({ "x-ratelimit-reset-requests": "1s" }, "1000 ms"),
    limited({ "x-ratelimit-reset-requests": "17ms" }, "17 ms"),
    limited({ "x-ratelimit-reset-requests": "2m59.56s" }, "179560 ms"),
    limited({ "x-ratelimit-reset-tokens": "1h0m0.5s" }, "3600500 ms"),
    limited({ "x-ratelimit-reset-tokens": "23h" }, "82800000 ms"),
    limited({ "x-ratelimit-reset-tokens": "6m0" }, ""),
    limited({ "x-ratelimit-reset-tokens": "soon" }, ""),
    limited({ "x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-reset-requests": "1s" }, "360000 ms"),
    limited({
      "x-ratelimit-reset-tokens": "6m0s",
      "x-ratelimit-remaining-tokens": "9000",
      "x-ratelimit-reset-requests": "1s",
      "x-ratelimit-remaining-requests": "0"
    }, "1000 ms"),
    limited({ "x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "1" }, "", 503),
    limited({ "x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "0" }, "360000 ms", 503),
    limited({ "anthropic-ratelimit-requests-reset": "2019-08-05T09:27:12Z" }, "12000 ms"),
    limited({ "anthropic-ratelimit-tokens-reset": "2019-08-05T11:27:12.5+02:00" }, "12500 ms"),
    limited({ "anthropic-ratelimit-tokens-reset": "2019-08-05T09:26:59Z" }, ""),
    limited({ "anthropic-ratelimit-tokens-reset": "2019-08-05" }, ""),
    limited({
      ...anthropic("input-tokens", "0", "2019-08-05T09:27:02Z"),
      ...anthropic("output-tokens", "8000", "2019-08-05T09:27:50Z")
    }, "2000 ms"),
    limited({ "retry-after": "3", ...anthropic("requests", "0", "2019-08-05T09:28:00Z") }, "3000 ms")
  ])
})

describe("problems that bodies name", () => {
  const openai = (code: string) => ({ error: { message: "", type: code, param: null, code } })
  const problem = (name: string) => ({ type: `https://iana.org/assignments/http-problem-types#${name}`, title: "" })
  const rows: ReadonlyArray<readonly [status: number, body: object, facts: string, headers?: Headers]> = [
    [429, openai("insufficient_quota"), "No"],
    [429, openai("billing_not_active"), "No"],
    [429, openai("billing_hard_limit_reached"), "No"],
    [429, openai("rate_limit_exceeded"), "Yes throttling"],
    [429, openai("insufficient_quota"), "Yes throttling", { "x-should-retry": "true" }],
    [500, openai("insufficient_quota"), "Yes"],
    [400, openai("insufficient_quota"), "-"],
    [529, { type: "error", error: { type: "overloaded_error", message: "" } }, "Yes"],
    [429, problem("quota-exceeded"), "Yes throttling"],
    [503, problem("temporary-reduced-capacity"), "Yes throttling"],
    [429, problem("abnormal-usage-detected"), "No"],
    [429, { type: "about:blank" }, "Yes throttling"],
    [503, {}, "Yes"]
  ]
  for (const [status, body, facts, headers = {}] of rows) {
    it(`${status} ${JSON.stringify(body).slice(0, 90)} is ${facts}`, () => {
      for (const [shape, of] of shapes) {
        if (!withBody.includes(shape)) continue
        assert.strictEqual(factsOf(RetryClassifier.defaultClassifier, of(status, headers, body)), facts, shape)
      }
    })
  }

  it("a body that is long, not JSON, cyclic or a trap names none", () => {
    const cyclic: Record<string, unknown> = {}
    cyclic["error"] = cyclic
    const bodies = [
      `{"code":"insufficient_quota","x":"${"9".repeat(65_536)}"}`,
      "{",
      "null",
      "[]",
      cyclic,
      new Proxy({}, {
        get: () => {
          throw new Error("trap")
        }
      })
    ]
    for (const body of bodies) {
      const error = { response: { status: 429, data: body } }
      assert.strictEqual(factsOf(RetryClassifier.defaultClassifier, error), "Yes throttling")
    }
  })
})

it("a POST of Effect's client that was turned away is safe, in the error as in the response", () => {
  const post = HttpClientRequest.post("http://a/")
  for (
    const [status, headers, facts] of [
      [503, { "x-envoy-ratelimited": "true" }, "Yes throttling"],
      [409, { "x-should-retry": "true" }, "Yes"],
      [425, {}, "Yes"],
      [529, {}, "Maybe"],
      [429, { "x-should-retry": "false" }, "No"]
    ] as const
  ) {
    const response = responseOf(headers, status, post)
    assert.strictEqual(factsOf(RetryHttp.classifier, response), facts)
    const error = { _tag: "HttpClientError", reason: { _tag: "StatusCodeError", request: post, response } }
    assert.strictEqual(factsOf(RetryClassifier.defaultClassifier, error), facts)
  }
})
