import { assert, describe, it } from "@effect/vitest"
import { Backoff, RetryClassifier, RetryInfo, RetryPolicy, withRetry } from "effect-retry"
import * as AiError from "effect/ai/AiError"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import * as RateLimiter from "effect/persistence/RateLimiter"
import * as SqlError from "effect/sql/SqlError"

const of = (error: unknown) => Option.getOrUndefined(RetryClassifier.defaultClassifier(error))

const shortly = (error: unknown): string => {
  const info = of(error)
  if (info === undefined) return "unknown"
  return [
    info.safety,
    info.throttling ? "throttling" : "",
    info.timeout ? "timeout" : "",
    info.retryAfter === undefined ? "" : `${Duration.toMillis(info.retryAfter)} ms`
  ].filter((word) => word !== "").join(" ")
}

const response = (request: HttpClientRequest.HttpClientRequest, status: number, headers: Record<string, string> = {}) =>
  HttpClientResponse.fromWeb(request, new Response(null, { status, headers }))

const statusError = (method: "GET" | "POST", status: number, headers?: Record<string, string>) => {
  const request = HttpClientRequest.make(method)("http://service.test/")
  return new HttpClientError.HttpClientError({
    reason: new HttpClientError.StatusCodeError({ request, response: response(request, status, headers) })
  })
}

const transportError = (method: "GET" | "POST", cause: unknown) =>
  new HttpClientError.HttpClientError({
    reason: new HttpClientError.TransportError({
      request: HttpClientRequest.make(method)("http://service.test/"),
      cause
    })
  })

const withCode = (code: string, cause?: unknown) => Object.assign(new Error("network", { cause }), { code })

describe("RetryClassifier", () => {
  it("finds the request and who aborted behind a Cause in the chain of causes", () => {
    const post = Object.assign(withCode("ECONNRESET"), { config: { method: "post" } })
    const aborted = Object.assign(new Error("aborted"), { name: "AbortError" })
    for (const wrap of [(error: unknown) => error, (error: unknown) => Cause.fail(error)]) {
      assert.strictEqual(of(new Error("charge failed", { cause: wrap(post) }))?.safety, "Maybe")
      assert.strictEqual(of(wrap(post))?.safety, "Maybe")
      assert.strictEqual(of(withCode("ECONNRESET", wrap(aborted)))?.safety, "No")
    }
  })

  it("finds a timeout that is the cause of a TransportError", () => {
    assert.isTrue(of(transportError("GET", new DOMException("late", "TimeoutError")))?.timeout)
    assert.isFalse(of(transportError("GET", new Error("lost")))?.timeout)
  })

  describe("a Cause", () => {
    const { classify } = RetryClassifier
    const safetyOf = (cause: Cause.Cause<unknown>) =>
      Option.getOrUndefined(classify(RetryClassifier.defaultClassifier, cause))?.safety

    it("is classified by its first failure", () => {
      assert.strictEqual(safetyOf(Cause.fail(new Cause.TimeoutError())), "Yes")
      assert.strictEqual(safetyOf(Cause.fail(statusError("POST", 503))), "Maybe")
      assert.strictEqual(safetyOf(Cause.fail("no idea")), undefined)
      assert.strictEqual(safetyOf(Cause.combine(Cause.interrupt(), Cause.fail(statusError("GET", 503)))), "Yes")
    })

    it("is looked into wherever it is, as an error or as the cause of one", () => {
      const lost = new Error("order", { cause: { code: "ECONNRESET" } })
      const wrapped = new Error("order", { cause: Cause.fail(lost) })
      const answered = Object.assign(new Error("no", { cause: { code: "ECONNRESET" } }), { status: 404 })
      const cyclic: { cause?: unknown } = {}
      cyclic.cause = Cause.fail(cyclic)
      const directly = (error: unknown) => Option.getOrUndefined(RetryClassifier.defaultClassifier(error))?.safety
      assert.deepStrictEqual(
        [
          Cause.fail(lost),
          wrapped,
          Cause.fail(wrapped),
          Cause.fail(answered),
          new Error("x", { cause: Cause.die(lost) }),
          cyclic
        ]
          .map(directly),
        ["Yes", "Yes", "Yes", undefined, "No", undefined]
      )
    })

    it("with a defect, or with an interruption alone, is never retried", () => {
      assert.strictEqual(safetyOf(Cause.die("bug")), "No")
      assert.strictEqual(safetyOf(Cause.interrupt()), "No")
      assert.strictEqual(safetyOf(Cause.empty), "No")
      assert.strictEqual(safetyOf(Cause.combine(Cause.fail(new Cause.TimeoutError()), Cause.die("bug"))), "No")
    })
  })

  describe("defaultClassifier", () => {
    const rows: ReadonlyArray<readonly [string, unknown, string]> = [
      [
        "an error with facts of its own",
        { [RetryInfo.TypeId]: RetryInfo.throttled("2 seconds") },
        "Yes throttling 2000 ms"
      ],
      ["Effect's TimeoutError", new Cause.TimeoutError(), "Yes timeout"],
      ["HTTP 503 of a GET", statusError("GET", 503), "Yes"],
      ["HTTP 503 of a POST", statusError("POST", 503), "Maybe"],
      ["HTTP 429 of a POST", statusError("POST", 429, { "retry-after": "3" }), "Yes throttling 3000 ms"],
      ["HTTP 503 with a hint", statusError("GET", 503, { "retry-after": " 120 " }), "Yes 120000 ms"],
      ["HTTP 400", statusError("GET", 400), "unknown"],
      ["HTTP 501", statusError("GET", 501), "unknown"],
      ["a broken GET", transportError("GET", withCode("ECONNRESET")), "Yes"],
      ["a broken POST", transportError("POST", withCode("ECONNRESET")), "Maybe"],
      [
        "a POST that was never sent",
        transportError("POST", new TypeError("fetch failed", { cause: withCode("ECONNREFUSED") })),
        "Yes"
      ],
      [
        "a POST whose name server failed",
        transportError("POST", Object.assign(withCode("EAI_FAIL"), { syscall: "getaddrinfo" })),
        "Yes"
      ],
      [
        "a POST that lost its route on the way",
        transportError("POST", Object.assign(withCode("EHOSTUNREACH"), { syscall: "read" })),
        "Maybe"
      ],
      [
        "a POST that no address of a host took",
        transportError(
          "POST",
          Object.assign(withCode("ETIMEDOUT"), { errors: [withCode("ECONNREFUSED"), withCode("ENETUNREACH")] })
        ),
        "Yes timeout"
      ],
      [
        "a lost SQL connection",
        new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause: "gone" }) }),
        "Maybe"
      ],
      ["an SQL syntax error", new SqlError.SqlError({ reason: new SqlError.SqlSyntaxError({ cause: "what" }) }), "No"],
      [
        "a throttled model",
        AiError.make({
          module: "Test",
          method: "test",
          reason: new AiError.RateLimitError({ retryAfter: Duration.seconds(30) })
        }),
        "Yes throttling 30000 ms"
      ],
      [
        "a model without credit",
        AiError.make({
          module: "Test",
          method: "test",
          reason: new AiError.QuotaExhaustedError({})
        }),
        "No"
      ],
      [
        "Effect's rate limiter",
        new RateLimiter.RateLimiterError({
          reason: new RateLimiter.RateLimitExceeded({
            retryAfter: Duration.seconds(2),
            key: "k",
            limit: 1,
            remaining: 0
          })
        }),
        "Yes throttling 2000 ms"
      ],
      [
        "an open circuit",
        new CircuitBreaker.CircuitBreakerError({
          reason: new CircuitBreaker.CircuitOpen({ key: "k", retryAfter: Duration.seconds(4) })
        }),
        "Yes 4000 ms"
      ],
      [
        "an AWS throttle in a 400",
        { name: "ThrottlingException", $metadata: { httpStatusCode: 400 } },
        "Yes throttling"
      ],
      ["an AWS validation error", { name: "ValidationException", $metadata: { httpStatusCode: 400 } }, "unknown"],
      ["an AWS JSON type", { __type: "com.amazonaws.dynamodb.v20120810#ThrottlingException" }, "Yes throttling"],
      [
        "an AWS JSON type with a URL",
        { __type: "ThrottlingException:http://internal.amazon.com/coral/com.amazon.coral.service/" },
        "Yes throttling"
      ],
      [
        "an AWS 429 with a transient name",
        { name: "RequestTimeout", $metadata: { httpStatusCode: 429 } },
        "Yes throttling"
      ],
      ["an AWS 429 with a transient trait", { $retryable: {}, $metadata: { httpStatusCode: 429 } }, "Yes throttling"],
      ["an AWS XML code", { Code: "SlowDown", $metadata: { httpStatusCode: 503 } }, "Yes throttling"],
      ["an AWS 500 with a hint", {
        $metadata: { httpStatusCode: 500 },
        $response: { headers: { "retry-after": "9", "x-amz-retry-after": "250" } }
      }, "Yes 250 ms"],
      ["an AWS 408, which is no transient status there", { $metadata: { httpStatusCode: 408 } }, "unknown"],
      ["an AWS 408 that shows its status twice", { $metadata: { httpStatusCode: 408 }, status: 408 }, "unknown"],
      ["a plain 408", { status: 408 }, "Yes"],
      ["a plain 425", { statusCode: 425 }, "Yes"],
      [
        "a response in an error",
        { response: { status: 429, headers: { "retry-after": "1" } } },
        "Yes throttling 1000 ms"
      ],
      ["a skew the signer has corrected", { name: "X", $metadata: { clockSkewCorrected: true } }, "Yes"],
      ["a connection that was refused", withCode("ECONNREFUSED"), "Yes"],
      ["a connection that timed out", withCode("ETIMEDOUT"), "Yes timeout"],
      ["a name that is not found for now", withCode("EAI_AGAIN"), "Yes"],
      ["a file that is not there", withCode("ENOENT"), "unknown"],
      ["a failed fetch in a browser", new TypeError("Failed to fetch"), "Yes"],
      ["another TypeError", new TypeError("x is not a function"), "unknown"],
      ["gRPC UNAVAILABLE", { code: 14, details: "" }, "Yes"],
      ["gRPC RESOURCE_EXHAUSTED", { code: 8, details: "" }, "Yes throttling"],
      ["gRPC DEADLINE_EXCEEDED", { code: 4, details: "" }, "Maybe timeout"],
      ["gRPC INVALID_ARGUMENT", { code: 3, details: "" }, "unknown"],
      ["gRPC ABORTED, which is no matter of one call", { code: 10, details: "" }, "unknown"],
      ["a number that is no gRPC status", { code: 14 }, "unknown"],
      ["what caused the reason of an error", { reason: { cause: withCode("ECONNREFUSED") } }, "Yes"],
      ["an HTTP 400, whatever caused it", { status: 400, cause: { status: 503 } }, "unknown"],
      [
        "an AWS 400, whatever caused it",
        { $metadata: { httpStatusCode: 400 }, cause: withCode("ECONNRESET") },
        "unknown"
      ],
      ["a trait that says no", { $retryable: false }, "unknown"],
      ["headers of fetch", { status: 429, headers: new Headers({ "Retry-After": "2" }) }, "Yes throttling 2000 ms"],
      ["headers as HTTP writes them", { status: 503, headers: { "Retry-After": "3" } }, "Yes 3000 ms"],
      ["a cause ten deep", Array.from({ length: 10 }).reduce((cause) => ({ cause }), { status: 503 }), "Yes"],
      ["a cause eleven deep", Array.from({ length: 11 }).reduce((cause) => ({ cause }), { status: 503 }), "unknown"]
    ]
    for (const [name, error, expected] of rows) {
      it(`${name}: ${expected}`, () => assert.strictEqual(shortly(error), expected))
    }
  })

  describe("server's hints", () => {
    const rows: ReadonlyArray<readonly [string, unknown, number | undefined]> = [
      ["retry-after", "0", 0],
      ["retry-after", "120", 120_000],
      ["retry-after", "\t5\r\n", 5000],
      ["retry-after", "9".repeat(20), Number.MAX_SAFE_INTEGER],
      ["retry-after", "9".repeat(400), undefined],
      ...["", " ", "-5", "+5", "1.5", "5.", "1e9", "0x10", "１２", "١٢", "12 s", "Infinity", "NaN", "soon"]
        .map((value) => ["retry-after", value, undefined] as const),
      ["retry-after", "1, 2", 2000],
      ["retry-after", 5, undefined],
      ["retry-after", ["5"], undefined],
      ["retry-after", { toString: () => "5" }, undefined],
      ["x-amz-retry-after", "250", 250],
      ["x-amz-retry-after", "-1", undefined],
      ["x-amz-retry-after", "1e400", undefined]
    ]
    for (const [header, value, expected] of rows) {
      it(`${header}: ${String(JSON.stringify(value)).slice(0, 30)} is ${expected}`, () => {
        const retryAfter = of({ status: 503, headers: { [header]: value } })?.retryAfter
        assert.strictEqual(retryAfter === undefined ? undefined : Duration.toMillis(retryAfter), expected)
      })
    }
  })

  describe("hostile errors", () => {
    const cyclic: { cause?: unknown } = {}
    cyclic.cause = cyclic
    let deep: unknown = "bottom"
    for (let i = 0; i < 10_000; i++) deep = { cause: deep }
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    const throwing = new Proxy({}, {
      get: () => {
        throw new Error("trap")
      }
    })
    const rows: ReadonlyArray<readonly [string, unknown]> = [
      ["undefined", undefined],
      ["null", null],
      ["a string", "boom"],
      ["a number", 7],
      ["a bigint", 1n],
      ["a symbol", Symbol("boom")],
      ["a function", () => 1],
      ["a frozen object", Object.freeze({})],
      ["an object without prototype", Object.create(null)],
      [
        "a throwing getter",
        Object.defineProperty({}, "name", {
          get: () => {
            throw new Error("getter")
          }
        })
      ],
      [
        "a throwing retryAfter",
        Object.defineProperty({ _tag: "AiError" }, "retryAfter", {
          get: () => {
            throw new Error("getter")
          }
        })
      ],
      ["a proxy that throws", throwing],
      ["a revoked proxy", proxy],
      ["a cyclic cause", cyclic],
      ["a cause 10,000 deep", deep],
      ["a name of the prototype", { name: "__proto__", code: "constructor", _tag: "toString" }],
      ["a status that is text", { status: "503" }],
      ["headers that are text", { status: 400, headers: "retry-after: 1" }],
      [
        "facts that a peer made up",
        JSON.parse(
          `{"${RetryInfo.TypeId}":{"${RetryInfo.TypeId}":"${RetryInfo.TypeId}","safety":"Yes","retryAfter":"soon"}}`
        )
      ],
      ["facts that are none", { [RetryInfo.TypeId]: { safety: "Yes" } }]
    ]
    for (const [name, error] of rows) {
      it(`${name} is unknown, not a crash`, () => assert.strictEqual(shortly(error), "unknown"))

      it.effect(`${name} is unchanged after a retried call`, () =>
        Effect.gen(function*() {
          const policy = Backoff.fixed(0).pipe(RetryPolicy.whileRetryable)
          assert.strictEqual(yield* Effect.flip(withRetry(Effect.fail(error), policy)), error)
        }))
    }

    it("a getter that throws hides only what it guards", () => {
      const error = Object.defineProperty({ status: 503 }, "name", {
        get: () => {
          throw new Error("getter")
        }
      })
      assert.strictEqual(shortly(error), "Yes")
    })
  })

  describe("chains", () => {
    const first: RetryClassifier.RetryClassifier = (error) =>
      error === 1 ? Option.some(RetryInfo.throttled()) : Option.none()
    const second: RetryClassifier.RetryClassifier = () => Option.some(RetryInfo.timedOut)

    it("ask the first classifier that knows", () => {
      const chain = first.call.length === 0
        ? RetryClassifier.orElse(first, second)
        : RetryClassifier.orElse(second)(first)
      assert.isTrue(Option.getOrThrow(chain(1)).throttling)
      assert.isTrue(Option.getOrThrow(chain(2)).timeout)
    })

    it("go on after a classifier that throws", () => {
      const chain = RetryClassifier.orElse(() => {
        throw new Error("broken classifier")
      }, second)
      assert.isTrue(Option.getOrThrow(chain(1)).timeout)
    })

    it("ask about what only looks like a cause, and about the failure of a cause", () => {
      const busy = RetryClassifier.chain([(error: any) => error.error === "busy" ? second(error) : Option.none()])
      const body = JSON.parse(`{"~effect/Cause":"x","error":"busy","reasons":[null]}`)
      for (const error of [body, Cause.fail(body), new Error("x", { cause: body })]) {
        const ask = error instanceof Error ? RetryClassifier.followingCause(busy) : busy
        assert.isTrue(Option.getOrThrow(RetryClassifier.classify(ask, error)).timeout)
        assert.isTrue(Option.getOrThrow(ask(error)).timeout)
      }
      assert.strictEqual(Option.getOrThrow(busy(Cause.die(body))).safety, "No")
    })

    it("can be vetoed, and a veto is final", () => {
      const vetoed = RetryClassifier.vetoing(second, (error) => error === "never")
      assert.strictEqual(Option.getOrThrow(vetoed("never")).safety, "No")
      assert.strictEqual(Option.getOrThrow(RetryClassifier.orElse(vetoed, second)("never")).safety, "No")
      assert.isTrue(Option.getOrThrow(vetoed("else")).timeout)
    })

    it("a veto reaches causes, and a predicate that throws forbids", () => {
      const vetoed = RetryClassifier.vetoing(second, (error) => error === "never")
      assert.strictEqual(Option.getOrThrow(vetoed({ cause: { cause: "never" } })).safety, "No")
      const broken = RetryClassifier.vetoing(second, () => {
        throw new Error("broken predicate")
      })
      assert.strictEqual(Option.getOrThrow(broken("any")).safety, "No")
    })

    it.effect("are what policies ask, once provided", () =>
      Effect.gen(function*() {
        let sends = 0
        const call = Effect.suspend(() => ++sends < 3 ? Effect.fail("flaky") : Effect.succeed(sends))
        const policy = Backoff.fixed(0).pipe(RetryPolicy.whileRetryable)
        assert.strictEqual(yield* Effect.flip(withRetry(call, policy)), "flaky")
        sends = 0
        const known = RetryClassifier.layer((error) =>
          error === "flaky" ? Option.some(RetryInfo.transient) : Option.none()
        )
        assert.strictEqual(yield* Effect.provide(withRetry(call, policy), known), 3)
      }))
  })
})
