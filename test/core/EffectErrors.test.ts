import { assert, describe, it } from "@effect/vitest"
import { RetryClassifier } from "effect-retry"
import * as AiError from "effect/ai/AiError"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import * as RateLimiter from "effect/persistence/RateLimiter"
import * as Redacted from "effect/Redacted"
import * as SqlError from "effect/sql/SqlError"
import * as TestClock from "effect/testing/TestClock"
import * as fs from "node:fs"

const words = (error: unknown): string => {
  const info = Option.getOrUndefined(RetryClassifier.defaultClassifier(error))
  if (info === undefined) return "unknown"
  const { retryAfter, safety, throttling, timeout } = info
  return [safety, throttling && "throttling", timeout && "timeout", retryAfter && `${Duration.toMillis(retryAfter)} ms`]
    .filter((word) => word !== false && word !== undefined).join(" ")
}

const read = (path: string) => fs.readFileSync(new URL(`../../${path}`, import.meta.url), "utf8")
const page = read("docs/effect-errors.md")

/** The row of the page says the same. */
const isInPage = (reason: string, expected: string): void =>
  assert.include(page, `| \`${reason}\` | ${expected === "No" || expected === "unknown" ? "-" : expected} |`)

/** A row of this error's table names the reason, together with others of its kind. */
const isInTable = (error: string, reason: string, expected: string): void => {
  const table = page.slice(page.indexOf(`| \`${error}\` | retried |`)).split("\n\n")[0]!
  const row = table.split("\n").find((row) => row.includes(`\`${reason}\``))
  assert.strictEqual(row?.endsWith(`| ${expected === "No" ? "-" : expected} |`), true)
}

const withCode = (code: string, cause?: unknown) => Object.assign(new Error(code, { cause }), { code })

describe("SqlError", () => {
  const sql = { cause: withCode("ECONNRESET") }
  const rows: ReadonlyArray<readonly [SqlError.SqlErrorReason, string]> = [
    [new SqlError.ConnectionError(sql), "Maybe"],
    [new SqlError.AuthenticationError(sql), "No"],
    [new SqlError.AuthorizationError(sql), "No"],
    [new SqlError.SqlSyntaxError(sql), "No"],
    [new SqlError.UniqueViolation({ ...sql, constraint: "orders_pkey" }), "No"],
    [new SqlError.ConstraintError(sql), "No"],
    [new SqlError.DeadlockError(sql), "Yes"],
    [new SqlError.SerializationError(sql), "Yes"],
    [new SqlError.LockTimeoutError(sql), "Yes"],
    [new SqlError.StatementTimeoutError(sql), "Yes"],
    [new SqlError.UnknownError(sql), "No"]
  ]
  for (const [reason, expected] of rows) {
    it(`${reason._tag}: ${expected}`, () => {
      const error = new SqlError.SqlError({ reason })
      assert.strictEqual(words(error), expected)
      assert.strictEqual(error.isRetryable, expected !== "No")
      assert.strictEqual(words({ _tag: "OrdersError", cause: error }), expected)
      assert.strictEqual(
        words(Effect.runSync(Effect.flip(Effect.unwrapReason(Effect.fail(error), "SqlError")))),
        expected
      )
      isInTable("SqlError", reason._tag, expected)
    })
  }

  it("has no other reasons", () => {
    assert.strictEqual(SqlError.SqlErrorReason.members.length, rows.length)
    assert.strictEqual(new Set(rows.map(([reason]) => reason._tag)).size, rows.length)
  })

  for (
    const [code, expected] of [
      ["SQLITE_BUSY", "Yes"],
      ["SQLITE_BUSY_SNAPSHOT", "Yes"],
      ["SQLITE_LOCKED", "Yes"],
      ["SQLITE_CANTOPEN", "Yes"],
      ["SQLITE_CONSTRAINT_UNIQUE", "No"],
      ["SQLITE_CORRUPT", "No"]
    ] as const
  ) {
    it(`of SQLite's ${code}, as Effect makes it: ${expected}`, () => {
      assert.strictEqual(
        words(new SqlError.SqlError({ reason: SqlError.classifySqliteError(withCode(code)) })),
        expected
      )
    })
  }
})

describe("AiError", () => {
  const description = "what it says"
  const http = (headers: Record<string, string | Redacted.Redacted<string>>) => ({ response: { status: 503, headers } })
  const network = (reason: "TransportError" | "EncodeError" | "InvalidUrlError") =>
    new AiError.NetworkError({ reason, method: "POST", url: "http://model.test/" })
  const rows: ReadonlyArray<readonly [AiError.AiErrorReason, string]> = [
    [new AiError.RateLimitError({}), "Yes throttling"],
    [new AiError.QuotaExhaustedError({}), "No"],
    [new AiError.AuthenticationError({ kind: "InvalidKey" }), "No"],
    [new AiError.ContentPolicyError({ description }), "No"],
    [new AiError.InvalidRequestError({ description }), "No"],
    [new AiError.InvalidResponseError({ description }), "No"],
    [new AiError.InternalProviderError({ description }), "Yes"],
    [network("TransportError"), "Yes"],
    [new AiError.InvalidOutputError({ description }), "Yes"],
    [new AiError.StructuredOutputError({ description, responseText: "" }), "Yes"],
    [new AiError.UnsupportedSchemaError({ description }), "No"],
    [new AiError.UnknownError({ description }), "No"],
    [new AiError.ToolNotFoundError({ toolName: "t", availableTools: [] }), "Yes"],
    [new AiError.ToolParameterValidationError({ toolName: "t", description }), "Yes"],
    [new AiError.InvalidToolResultError({ toolName: "t", description }), "No"],
    [new AiError.ToolResultEncodingError({ toolName: "t", toolResult: 1, description }), "No"],
    [new AiError.ToolConfigurationError({ toolName: "t", description }), "No"],
    [new AiError.ToolkitRequiredError({ pendingApprovals: [] }), "No"],
    [new AiError.InvalidUserInputError({ description }), "No"]
  ]
  const of = (reason: AiError.AiErrorReason) => AiError.make({ module: "Model", method: "generate", reason })

  for (const [reason, expected] of rows) {
    it(`${reason._tag}: ${expected}`, () => {
      const error = of(reason)
      assert.strictEqual(words(error), expected)
      assert.strictEqual(error.isRetryable, expected.startsWith("Yes"))
      assert.strictEqual(
        words(Effect.runSync(Effect.flip(Effect.unwrapReason(Effect.fail(error), "AiError")))),
        expected
      )
      isInTable("AiError", reason._tag, expected)
    })
  }

  it("has no other reasons", () => {
    assert.strictEqual(AiError.AiErrorReason.members.length, rows.length)
    assert.strictEqual(new Set(rows.map(([reason]) => reason._tag)).size, rows.length)
  })

  for (
    const [name, reason, expected] of [
      [
        "a throttle with its hint",
        new AiError.RateLimitError({ retryAfter: Duration.seconds(30) }),
        "Yes throttling 30000 ms"
      ],
      [
        "a throttle with the hint of its response",
        new AiError.RateLimitError({ http: http({ "retry-after": "7" }) }),
        "Yes throttling 7000 ms"
      ],
      [
        "its own hint before that of the response",
        new AiError.RateLimitError({ retryAfter: Duration.seconds(1), http: http({ "retry-after": "7" }) }),
        "Yes throttling 1000 ms"
      ],
      [
        "an overloaded provider",
        new AiError.InternalProviderError({ description, http: http({ "retry-after": "9" }) }),
        "Yes 9000 ms"
      ],
      [
        "a hint that is redacted",
        new AiError.InternalProviderError({ description, http: http({ "retry-after": Redacted.make("9") }) }),
        "Yes"
      ],
      ["no hint revives", new AiError.QuotaExhaustedError({ http: http({ "retry-after": "9" }) }), "No"],
      ["a request that cannot be encoded", network("EncodeError"), "No"],
      ["a URL that is none", network("InvalidUrlError"), "No"]
    ] as const
  ) {
    it(`${name}: ${expected}`, () => assert.strictEqual(words(of(reason)), expected))
  }

  for (
    const [status, expected] of [[400, "No"], [401, "No"], [403, "No"], [404, "No"], [429, "Yes throttling"], [
      500,
      "Yes"
    ], [529, "Yes"]] as const
  ) {
    it(`of the status ${status}, as Effect makes it: ${expected}`, () => {
      // Effect does not turn a 400 without a description into an InvalidRequestError.
      assert.strictEqual(words(of(AiError.reasonFromHttpStatus({ status, description }))), expected)
    })
  }
})

describe("RateLimiterError", () => {
  it.effect("RateLimitExceeded, as Effect makes it: throttling, with its hint", () =>
    Effect.gen(function*() {
      const limiter = yield* RateLimiter.RateLimiter
      const consume = limiter.consume({ key: "a", limit: 1, window: "10 seconds", onExceeded: "fail" })
      yield* consume
      assert.strictEqual(words(yield* Effect.flip(consume)), "Yes throttling 10000 ms")
      const reason = yield* Effect.flip(Effect.unwrapReason(consume, "RateLimiterError"))
      assert.strictEqual(words(reason), "Yes throttling 10000 ms")
      isInPage("RateLimitExceeded", "Yes throttling")
    }).pipe(Effect.provide(RateLimiter.layer.pipe(Layer.provide(RateLimiter.layerStoreMemory)))))

  for (
    const [cause, expected] of [[withCode("ECONNREFUSED"), "Yes"], [withCode("WRONGTYPE"), "unknown"], [
      undefined,
      "unknown"
    ]] as const
  ) {
    it(`RateLimitStoreError by ${cause?.code}: ${expected}`, () => {
      const reason = new RateLimiter.RateLimitStoreError({ message: "no store", cause })
      assert.strictEqual(words(new RateLimiter.RateLimiterError({ reason })), expected)
      assert.strictEqual(words(reason), expected)
      isInPage("RateLimitStoreError", "as its cause")
    })
  }

  it("has no other reasons", () => assert.strictEqual(RateLimiter.RateLimiterErrorReason.members.length, 2))
})

describe("CircuitBreakerError", () => {
  it.effect("CircuitOpen and CircuitHalfOpen, as Effect makes them: safe, as nothing was sent", () =>
    Effect.gen(function*() {
      const breaker = yield* CircuitBreaker.make({
        tripPolicy: CircuitBreaker.consecutive(1),
        openDuration: "4 seconds"
      })
      const call = <A, E>(self: Effect.Effect<A, E>) => Effect.flip(breaker.execute(self, { key: "a" }))
      yield* call(Effect.fail("down"))
      assert.strictEqual(words(yield* call(Effect.succeed(1))), "Yes 4000 ms")
      const rejected = breaker.execute(Effect.succeed(1), { key: "a" })
      const reason = yield* Effect.flip(Effect.unwrapReason(rejected, "CircuitBreakerError"))
      assert.strictEqual(words(reason), "Yes 4000 ms")
      isInPage("CircuitOpen", "Yes")
    }).pipe(Effect.scoped, Effect.provide(CircuitBreaker.layerStoreMemory())))

  const of = (reason: CircuitBreaker.CircuitBreakerErrorReason) => new CircuitBreaker.CircuitBreakerError({ reason })

  it("CircuitHalfOpen: Yes", () => {
    const reason = new CircuitBreaker.CircuitHalfOpen({ key: "a" })
    assert.deepStrictEqual([words(of(reason)), words(reason)], ["Yes", "Yes"])
    isInPage("CircuitHalfOpen", "Yes")
  })

  for (
    const [cause, expected] of [
      [withCode("ECONNREFUSED"), "Yes"],
      [{ _tag: "RedisError", cause: withCode("ECONNRESET") }, "Yes"],
      [withCode("WRONGTYPE"), "unknown"],
      [undefined, "unknown"]
    ] as const
  ) {
    it(`CircuitBreakerStoreError by ${JSON.stringify(cause)}: ${expected}`, () => {
      assert.strictEqual(
        words(of(new CircuitBreaker.CircuitBreakerStoreError({ message: "no store", cause }))),
        expected
      )
      isInPage("CircuitBreakerStoreError", "as its cause")
    })
  }

  it("has no other reasons", () => assert.strictEqual(CircuitBreaker.CircuitBreakerErrorReason.members.length, 3))
})

describe("an error that only has the name of a reason", () => {
  for (const _tag of ["RateLimitExceeded", "CircuitOpen", "DeadlockError", "RateLimitError"]) {
    it(`${_tag} is not known`, () => assert.strictEqual(words({ _tag, isRetryable: true, retryAfter: 5 }), "unknown"))
  }
})

describe("TimeoutError", () => {
  it.effect("of Effect.timeout: a timeout", () =>
    Effect.gen(function*() {
      const fiber = yield* Effect.forkChild(Effect.flip(Effect.timeout(Effect.never, "1 second")))
      yield* TestClock.adjust("1 second")
      const error = yield* Fiber.join(fiber)
      assert.instanceOf(error, Cause.TimeoutError)
      assert.strictEqual(words(error), "Yes timeout")
      isInPage("TimeoutError", "Yes timeout")
    }))
})

describe("HttpClientError", () => {
  const request = (method: "GET" | "POST") => HttpClientRequest.make(method)("http://service.test/")
  const response = (method: "GET" | "POST", status: number) =>
    HttpClientResponse.fromWeb(request(method), new Response(null, { status, headers: { "retry-after": "2" } }))
  const of = (reason: HttpClientError.HttpClientErrorReason) => new HttpClientError.HttpClientError({ reason })
  const terminated = new TypeError("terminated", { cause: withCode("UND_ERR_SOCKET") })
  const transport = (cause: unknown) => (method: "GET" | "POST") =>
    new HttpClientError.TransportError({ request: request(method), cause })
  const received = (
    Reason:
      | typeof HttpClientError.DecodeError
      | typeof HttpClientError.EmptyBodyError
      | typeof HttpClientError.StatusCodeError,
    status: number,
    cause?: unknown
  ) =>
  (method: "GET" | "POST") => new Reason({ request: request(method), response: response(method, status), cause })

  const rows: ReadonlyArray<
    readonly [string, (method: "GET" | "POST") => HttpClientError.HttpClientErrorReason, string, string]
  > = [
    ["`TransportError`", transport(withCode("ECONNRESET")), "Yes", "Maybe"],
    ["`TransportError`", transport("what"), "Yes", "Maybe"],
    ["... never sent", transport(new TypeError("fetch failed", { cause: withCode("ECONNREFUSED") })), "Yes", "Yes"],
    [
      "... never sent",
      transport(
        Object.assign(new Error("Stream closed with error code NGHTTP2_REFUSED_STREAM"), {
          code: "ERR_HTTP2_STREAM_ERROR"
        })
      ),
      "Yes",
      "Yes"
    ],
    ["... timed out", transport(withCode("UND_ERR_HEADERS_TIMEOUT")), "Yes timeout", "Maybe timeout"],
    ["`StatusCodeError` 429", received(HttpClientError.StatusCodeError, 429), "Yes throttling", "Yes throttling"],
    ["... 425", received(HttpClientError.StatusCodeError, 425), "Yes", "Yes"],
    ...[408, 503, 529].map((status) =>
      [
        "... 408, 5xx but 501, 505, 506, 508, 510, 511",
        received(HttpClientError.StatusCodeError, status),
        "Yes",
        "Maybe"
      ] as const
    ),
    ["... any other", received(HttpClientError.StatusCodeError, 404), "unknown", "unknown"],
    ["... any other", received(HttpClientError.StatusCodeError, 501, withCode("ECONNRESET")), "unknown", "unknown"],
    [
      "`EncodeError`",
      (method) => new HttpClientError.EncodeError({ request: request(method), cause: withCode("ECONNRESET") }),
      "No",
      "No"
    ],
    ["`InvalidUrlError`", (method) => new HttpClientError.InvalidUrlError({ request: request(method) }), "No", "No"],
    ["`DecodeError`", received(HttpClientError.DecodeError, 200, new SyntaxError("no JSON")), "No", "No"],
    ["... the body was cut off", received(HttpClientError.DecodeError, 200, terminated), "Yes", "Maybe"],
    [
      "... of a response with a retried status",
      received(HttpClientError.DecodeError, 503, new SyntaxError("no JSON")),
      "Yes",
      "Maybe"
    ],
    ["`EmptyBodyError`", received(HttpClientError.EmptyBodyError, 200), "No", "No"]
  ]
  for (const [name, reason, get, post] of rows) {
    it(`${name}: GET ${get}, POST ${post}`, () => {
      const plain = (error: unknown) => words(error).replace(" 2000 ms", "")
      assert.deepStrictEqual([plain(of(reason("GET"))), plain(of(reason("POST")))], [get, post])
      const dash = (expected: string) => expected === "No" || expected === "unknown" ? "-" : expected
      assert.include(page, `| ${name} | ${dash(get)} | ${dash(post)} |`)
    })
  }

  it("of a response with a hint has the hint", () => {
    assert.strictEqual(words(of(received(HttpClientError.StatusCodeError, 503)("GET"))), "Yes 2000 ms")
    assert.strictEqual(words(of(received(HttpClientError.StatusCodeError, 429)("POST"))), "Yes throttling 2000 ms")
  })

  it.effect("of a client over a broken connection, as Effect makes it", () =>
    Effect.gen(function*() {
      const client = HttpClient.make((request) =>
        Effect.fail(of(new HttpClientError.TransportError({ request, cause: withCode("ECONNRESET") })))
      )
      assert.strictEqual(words(yield* Effect.flip(client.get("http://service.test/"))), "Yes")
      assert.strictEqual(words(yield* Effect.flip(client.post("http://service.test/"))), "Maybe")
    }))
})
