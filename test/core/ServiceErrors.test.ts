/** Errors of databases and of language models, by their sources. docs/promises.md has the table. */
import Anthropic from "@anthropic-ai/sdk"
import { assert, describe, it } from "@effect/vitest"
import { Backoff, RetryClassifier, RetryPolicy, retryPromise } from "effect-retry"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as Kit from "effect-retry/testing"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as SqlError from "effect/sql/SqlError"
import OpenAI from "openai"
import { classifyDatabase } from "../../examples/promises.ts"
import { clientOf } from "../reliability/utils/http.ts"

const shown = (error: unknown): string => {
  const info = Option.getOrUndefined(RetryClassifier.defaultClassifier(error))
  if (info === undefined) return "unknown"
  const { retryAfter, safety, throttling, timeout } = info
  return [
    safety,
    throttling ? "throttling" : "",
    timeout ? "timeout" : "",
    retryAfter === undefined ? "" : `${Duration.toMillis(retryAfter)} ms`
  ].filter(Boolean).join(" ")
}

describe("SQLSTATE", () => {
  // PostgreSQL, Appendix A: "PostgreSQL Error Codes"; what is certain is that the statement had no effect.
  const states: ReadonlyArray<readonly [code: string, condition: string, facts: string]> = [
    ["40000", "transaction_rollback", "Yes"],
    ["40001", "serialization_failure", "Yes"],
    ["40P01", "deadlock_detected", "Yes"],
    ["40002", "transaction_integrity_constraint_violation", "unknown"],
    ["40003", "statement_completion_unknown", "Maybe"],
    ["53000", "insufficient_resources", "Yes"],
    ["53100", "disk_full", "Yes"],
    ["53200", "out_of_memory", "Yes"],
    ["53300", "too_many_connections", "Yes"],
    ["57P01", "admin_shutdown", "Maybe"],
    ["57P02", "crash_shutdown", "Maybe"],
    ["57P03", "cannot_connect_now", "Yes"],
    ["57P04", "database_dropped", "unknown"],
    ["57P05", "idle_session_timeout", "Maybe"],
    ["57014", "query_canceled", "unknown"],
    ["08000", "connection_exception", "Maybe"],
    ["08001", "sqlclient_unable_to_establish_sqlconnection", "Yes"],
    ["08003", "connection_does_not_exist", "Maybe"],
    ["08004", "sqlserver_rejected_establishment_of_sqlconnection", "Yes"],
    ["08006", "connection_failure", "Maybe"],
    ["08007", "transaction_resolution_unknown", "Maybe"],
    ["08P01", "protocol_violation", "unknown"],
    ["22P02", "invalid_text_representation", "No"],
    ["23505", "unique_violation", "No"],
    ["42601", "syntax_error", "No"],
    ["42501", "insufficient_privilege", "No"],
    ["28P01", "invalid_password", "unknown"],
    ["4000", "four digits", "unknown"],
    ["400010", "six digits", "unknown"]
  ]

  it.each(states)("%s, %s: %s", (code, condition, facts) => {
    // As pg and postgres.js show it, and as mysql2 does.
    assert.strictEqual(shown(Object.assign(new Error(condition), { code, severity: "ERROR" })), facts)
    assert.strictEqual(shown(Object.assign(new Error(condition), { code: "ER", sqlState: code })), facts)
    assert.strictEqual(shown(new Error("order", { cause: { code } })), facts)
  })

  // @effect/sql-pg, internal/sqlError.ts: what it has no reason for is an UnknownError.
  it.each([["53300", "Yes"], ["57P01", "Maybe"], ["57P03", "Yes"], ["22012", "No"]])(
    "%s in Effect's UnknownError: %s",
    (code, facts) => {
      const reason = new SqlError.UnknownError({ cause: Object.assign(new Error("x"), { code }) })
      assert.strictEqual(shown(new SqlError.SqlError({ reason })), facts)
      assert.strictEqual(shown(reason), facts)
    }
  )

  // As pg and mysql2 show it, and as the cause of what Effect makes of it.
  it.each(["22012", "23505", "42P01"])("%s is final", (code) => {
    const policy = Backoff.fixed(0).pipe(RetryPolicy.whileRetryable, RetryPolicy.maxAttempts(3))
    const ofPg = Object.assign(new Error("x"), { length: 99, name: "error", severity: "ERROR", code })
    const errors = [
      ofPg,
      Object.assign(new Error("x"), { code: "ER", errno: 1, sqlState: code }),
      new SqlError.SqlError({ reason: new SqlError.UnknownError({ cause: ofPg }) }),
      new SqlError.SqlError({ reason: new SqlError.ConstraintError({ cause: ofPg }) }),
      new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause: ofPg, operation: "query" }) })
    ]
    for (const error of errors) {
      const explanation = RetryPolicy.explain(policy, error)
      assert.include(explanation, { _tag: "WouldStop", reason: "final" })
    }
  })

  // @effect/sql-pg, PgConnection.ts, PgClient.ts: the operation is that of the driver, or "query" and the like.
  it.each<[unknown, string | undefined, string]>([
    [{ code: "08001" }, "query", "Yes"],
    [{ code: "08004" }, "query", "Yes"],
    [{ code: "53300" }, "query", "Yes"],
    [{ code: "57P03" }, "connect", "Yes"],
    [{ code: "08000" }, "query", "Maybe"],
    [{ code: "08006" }, "query", "Maybe"],
    [{ code: "08006" }, "connect", "Yes"],
    [{ code: "08007" }, undefined, "Maybe"],
    [{ code: "57P01" }, "query", "Maybe"],
    [{ message: "Connection terminated unexpectedly" }, "query", "Maybe"],
    [{ cause: { code: "08006" } }, "query", "Maybe"],
    [{ code: "ECONNRESET", syscall: "read" }, "query", "Maybe"],
    [{ code: "EPIPE", syscall: "write" }, undefined, "Maybe"],
    [{ code: "ECONNRESET", syscall: "read" }, "connect", "Yes"],
    [{ code: "ECONNREFUSED", syscall: "connect" }, "query", "Yes"],
    [{ code: "ECONNREFUSED" }, undefined, "Yes"],
    [new Error("Connection is closed"), "query", "Maybe"],
    ["gone", undefined, "Maybe"]
  ])("%o in Effect's ConnectionError of %s: %s", (cause, operation, facts) => {
    const reason = new SqlError.ConnectionError({ cause, ...(operation === undefined ? {} : { operation }) })
    assert.strictEqual(shown(new SqlError.SqlError({ reason })), facts)
    assert.strictEqual(shown(reason), facts)
    assert.strictEqual(shown(new Error("order", { cause: new SqlError.SqlError({ reason }) })), facts)
  })

  // pg 8, lib/client.js; pg-pool 3, index.js.
  it.each([
    ["Connection terminated unexpectedly", "Maybe"],
    ["Connection terminated due to connection timeout", "Yes timeout"],
    ["timeout exceeded when trying to connect", "Yes timeout"],
    ["Connection terminated", "unknown"],
    ["Connection terminated unexpectedly.", "unknown"]
  ])("pg says %j: %s", (message, facts) => {
    assert.strictEqual(shown(new Error(message)), facts)
  })
})

describe("MongoDB", () => {
  // mongodb/specifications, client-backpressure.md; transactions.md. node-mongodb-native, src/error.ts.
  const labeled = (labels: ReadonlyArray<string>, fields: object = {}) =>
    Object.assign(new Error("Rate limiter 'ingressRequestRateLimiter' rate exceeded"), {
      code: 462,
      codeName: "IngressRequestRateLimitExceeded",
      errorLabels: labels,
      ...fields
    })

  it.each<[ReadonlyArray<string>, object, string]>([
    [["SystemOverloadedError", "RetryableError"], {}, "Yes throttling"],
    [["SystemOverloadedError", "RetryableError"], { retryAfterMS: 250 }, "Yes throttling 250 ms"],
    [["SystemOverloadedError", "RetryableError"], { baseBackoffMS: 50 }, "Yes throttling 50 ms"],
    [["SystemOverloadedError", "RetryableError"], { retryAfterMS: -1 }, "Yes throttling"],
    [["SystemOverloadedError", "RetryableError"], { retryAfterMS: "soon" }, "Yes throttling"],
    [["SystemOverloadedError"], {}, "Maybe throttling"],
    [["RetryableError"], {}, "Yes"],
    [["TransientTransactionError"], {}, "Yes"],
    [["UnknownTransactionCommitResult"], {}, "unknown"],
    [[], {}, "unknown"]
  ])("%j %j: %s", (labels, fields, facts) => {
    assert.strictEqual(shown(labeled(labels, fields)), facts)
  })
})

describe("the recipe of the page for other drivers", () => {
  // Prisma, "Error message reference"; MySQL, "Server Error Message Reference"; Redis, src/server.c.
  it.each<[object, number]>([
    [{ code: "P2034" }, 3],
    [{ code: "P2002" }, 1],
    [{ code: "ER_LOCK_WAIT_TIMEOUT", sqlState: "HY000" }, 3],
    [{ code: "ER_LOCK_DEADLOCK", sqlState: "40001" }, 3],
    [{ message: "LOADING Redis is loading the dataset in memory" }, 3],
    [{ message: "WRONGTYPE Operation against a key" }, 1]
  ])("%j: %d sends", async (fields, sends) => {
    let sent = 0
    const policy = Backoff.fixed(0).pipe(RetryPolicy.whileRetryable, RetryPolicy.maxAttempts(3))
    const send = () => {
      sent++
      return Promise.reject(Object.assign(new Error(), fields))
    }
    const classify = (error: unknown) => classifyDatabase(error as object)
    await retryPromise(send, policy, { classify }).catch(() => {})
    assert.strictEqual(sent, sends)
  })
})

describe("Google", () => {
  // google.rpc, error_details.proto; bodies as in google-gemini/gemini-cli#8437 and googleapis/python-genai#1875.
  const quota = (quotaId: string) => ({
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    violations: [{ quotaMetric: "generativelanguage.googleapis.com/generate_content_free_tier_requests", quotaId }]
  })
  const retryInfo = (retryDelay: unknown) => ({ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay })
  const body = (...details: ReadonlyArray<object>) => ({
    error: { code: 429, message: "You exceeded your current quota", status: "RESOURCE_EXHAUSTED", details }
  })
  const minutely = body(quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier"), retryInfo("34.5s"))
  const daily = body(quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), retryInfo("34s"))

  /** Where clients put a body. */
  const places: Readonly<Record<string, (body: unknown) => unknown>> = {
    "@google/genai": (body) => Object.assign(new Error(JSON.stringify(body)), { name: "ApiError", status: 429 }),
    "@google/genai, in words": (body) =>
      Object.assign(
        new Error(JSON.stringify({ error: { message: JSON.stringify(body, null, 2), code: 429, status: "Too Many" } })),
        { name: "ApiError", status: 429 }
      ),
    gaxios: (body) => ({ status: 429, response: { status: 429, headers: {}, data: JSON.stringify([body]) } }),
    axios: (body) => ({ status: 429, response: { status: 429, headers: {}, data: body } }),
    "the AI SDK": (body) => ({ statusCode: 429, responseHeaders: {}, responseBody: JSON.stringify(body) }),
    openai: (body) => new OpenAI.APIError(429, (body as any).error, undefined, new Headers())
  }

  describe.each(Object.entries(places))("in an error of %s", (_, place) => {
    it("the retry delay is the hint", () => {
      assert.strictEqual(shown(place(minutely)), "Yes throttling 34500 ms")
    })

    it("a quota per day is final", () => {
      assert.strictEqual(shown(place(daily)), "No 34000 ms")
    })

    it.each(["soon", "-5s", "5", 5, "1e3s", `${"9".repeat(400)}s`])("a delay of %j is none", (delay) => {
      assert.strictEqual(shown(place(body(retryInfo(delay)))), "Yes throttling")
    })
  })

  it.effect("RetryHttp reads it, and gives up on a quota per day", () =>
    Effect.gen(function*() {
      const policy = Backoff.fixed(0).pipe(
        RetryPolicy.whileRetryable,
        RetryPolicy.honorRetryAfter({ atMost: "1 minute" }),
        RetryPolicy.maxAttempts(2)
      )
      const headers = { "content-type": "application/json; charset=UTF-8" }
      const timesOf = (body: object) => {
        const { client, times } = clientOf([{ status: 429, headers, body: JSON.stringify([body]) }, { status: 200 }])
        const sent = RetryHttp.retry(client, policy, { hintSpread: 0 }).get("http://a/")
        return Effect.as(Kit.runToEnd(sent), times)
      }
      const [first, second] = yield* timesOf(minutely)
      assert.strictEqual(second! - first!, 34_500)
      assert.strictEqual((yield* timesOf(daily)).length, 1)
    }))

  it("a header comes first", () => {
    assert.strictEqual(
      shown({ status: 429, response: { status: 429, headers: { "retry-after": "7" }, data: minutely } }),
      "Yes throttling 7000 ms"
    )
  })

  it("a body that is too long, cyclic or hostile is not read", () => {
    const cyclic: { error?: unknown } = {}
    cyclic.error = cyclic
    const thrower = new Proxy({}, {
      get: () => {
        throw new Error("no")
      }
    })
    for (const data of [JSON.stringify({ ...minutely, pad: "x".repeat(70_000) }), cyclic, thrower, "[[[[[[", null]) {
      assert.strictEqual(shown({ status: 429, response: { status: 429, headers: {}, data } }), "Yes throttling")
    }
  })
})

describe("language models", () => {
  // Anthropic, "Errors"; OpenAI, "Error codes", and the error event of the Responses API.
  const types: ReadonlyArray<readonly [type: string, facts: string]> = [
    ["overloaded_error", "Yes"],
    ["api_error", "Yes"],
    ["timeout_error", "Yes"],
    ["server_error", "Yes"],
    ["rate_limit_error", "Yes throttling"],
    ["rate_limit_exceeded", "Yes throttling"],
    ["insufficient_quota", "No"],
    ["invalid_request_error", "unknown"],
    ["authentication_error", "unknown"],
    ["not_overloaded_error", "unknown"]
  ]

  it.each(types)("%s inside a stream: %s", (type, facts) => {
    const message = "it says"
    // @anthropic-ai/sdk and openai, core/streaming.js: an error event after a status of 200.
    const anthropic = { type: "error", error: { type, message } }
    assert.strictEqual(shown(new Anthropic.APIError(undefined, anthropic, undefined, new Headers())), facts)
    assert.strictEqual(shown(new OpenAI.APIError(undefined, { type, message }, undefined, new Headers())), facts)
    assert.strictEqual(shown(new OpenAI.APIError(undefined, { code: type, message }, undefined, new Headers())), facts)
    // The AI SDK passes the event on.
    assert.strictEqual(shown(anthropic), facts)
  })

  it("with a status, the status decides", () => {
    const of = (status: number, type: string) =>
      shown({ status, headers: {}, error: { type: "error", error: { type } } })
    assert.strictEqual(of(529, "overloaded_error"), "Yes")
    assert.strictEqual(of(429, "api_error"), "Yes throttling")
    assert.strictEqual(of(400, "server_error"), "unknown")
    assert.strictEqual(of(503, "rate_limit_error"), "Yes throttling")
  })

  it("an event or an error with another type stays unknown", () => {
    for (const error of [new Event("error"), { type: "error" }, { type: 5 }, { error: "server_error" }]) {
      assert.strictEqual(shown(error), "unknown")
    }
  })
})
