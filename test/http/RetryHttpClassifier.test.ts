import { assert, describe, it } from "@effect/vitest"
import { RetryClassifier, type RetryInfo } from "effect-retry"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as Cause from "effect/Cause"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"

const get = HttpClientRequest.get("http://a/")
const post = HttpClientRequest.post("http://a/")

const response = (request: HttpClientRequest.HttpClientRequest, status: number, headers?: Record<string, string>) =>
  HttpClientResponse.fromWeb(request, new Response(null, { status, ...(headers && { headers }) }))

const transport = (request: HttpClientRequest.HttpClientRequest, cause: unknown) =>
  new HttpClientError.HttpClientError({ reason: new HttpClientError.TransportError({ request, cause }) })

/** The facts in one word: safety, then what is special. `-` is a response that is not a failure. */
const factsOf = (failure: unknown): string => {
  const info: RetryInfo.RetryInfo | undefined = Option.getOrUndefined(
    RetryClassifier.classify(RetryHttp.classifier, failure)
  )
  if (info === undefined) return "-"
  return [info.safety, info.throttling ? "throttling" : [], info.timeout ? "timeout" : []].flat().join(" ")
}

describe("RetryHttp.classifier", () => {
  describe("statuses", () => {
    const rows: ReadonlyArray<readonly [status: number, get: string, post: string]> = [
      [200, "-", "-"],
      [204, "-", "-"],
      [304, "-", "-"],
      [400, "-", "-"],
      [401, "-", "-"],
      [403, "-", "-"],
      [404, "-", "-"],
      [407, "-", "-"],
      [408, "Yes", "Maybe"],
      [409, "-", "-"],
      [424, "-", "-"],
      [425, "Yes", "Yes"],
      [426, "-", "-"],
      [428, "-", "-"],
      [429, "Yes throttling", "Yes throttling"],
      [431, "-", "-"],
      [499, "-", "-"],
      [500, "Yes", "Maybe"],
      [501, "No", "No"],
      [502, "Yes", "Maybe"],
      [503, "Yes", "Maybe"],
      [504, "Yes", "Maybe"],
      [505, "No", "No"],
      [506, "No", "No"],
      [507, "Yes", "Maybe"],
      [508, "No", "No"],
      [509, "Yes", "Maybe"],
      [510, "No", "No"],
      [511, "No", "No"],
      [520, "Yes", "Maybe"],
      [529, "Yes", "Maybe"],
      [599, "Yes", "Maybe"]
    ]
    for (const [status, ofGet, ofPost] of rows) {
      it(`${status} is ${ofGet}, of a POST ${ofPost}, as a response and as a StatusCodeError`, () => {
        for (const [request, expected] of [[get, ofGet], [post, ofPost]] as const) {
          const answer = response(request, status)
          assert.strictEqual(factsOf(answer), expected)
          assert.strictEqual(
            factsOf(
              new HttpClientError.HttpClientError({
                reason: new HttpClientError.StatusCodeError({ request, response: answer })
              })
            ),
            expected
          )
        }
      })
    }

    it("a hint does not say that a POST was turned away: gateways send it for what they have passed on", () => {
      for (const status of [408, 500, 502, 503, 504]) {
        assert.strictEqual(factsOf(response(post, status, { "retry-after": "1" })), "Maybe")
      }
    })
  })

  it("if fetch has followed a redirect, a POST does not count as turned away", () => {
    const redirected = (
      request: HttpClientRequest.HttpClientRequest,
      status: number,
      headers?: Record<string, string>
    ) => factsOf(Object.create(response(request, status, headers), { url: { value: "http://a/next" } }))
    assert.strictEqual(redirected(post, 429), "Maybe throttling")
    assert.strictEqual(redirected(post, 425), "Maybe")
    assert.strictEqual(redirected(post, 503, { "x-should-retry": "true" }), "Maybe")
    assert.strictEqual(redirected(get, 429), "Yes throttling")
  })

  describe("methods", () => {
    const rows: ReadonlyArray<readonly [method: string, safety: string]> = [
      ["GET", "Yes"],
      ["HEAD", "Yes"],
      ["OPTIONS", "Yes"],
      ["TRACE", "Yes"],
      ["QUERY", "Yes"],
      ["PUT", "Yes"],
      ["DELETE", "Yes"],
      ["POST", "Maybe"],
      ["PATCH", "Maybe"],
      ["CONNECT", "Maybe"],
      ["PURGE", "Maybe"],
      ["get", "Maybe"]
    ]
    for (const [method, safety] of rows) {
      it(`${method} is ${safety} safe after a 500`, () => {
        assert.strictEqual(factsOf(response({ ...get, method } as HttpClientRequest.HttpClientRequest, 500)), safety)
      })
    }
  })

  describe("x-should-retry", () => {
    const rows: ReadonlyArray<readonly [status: number, value: string, safety: string]> = [
      [503, "false", "No"],
      [429, "FALSE", "No"],
      [404, "false", "No"],
      [500, "true", "Yes"],
      [409, " true ", "Yes"],
      [501, "true", "Yes"],
      [200, "true", "-"],
      [200, "false", "-"],
      [500, "1", "Maybe"],
      [500, "", "Maybe"],
      [409, "yes", "-"]
    ]
    for (const [status, value, safety] of rows) {
      it(`${JSON.stringify(value)} makes the ${status} of a POST ${safety}`, () => {
        assert.strictEqual(factsOf(response(post, status, { "x-should-retry": value })), safety)
      })
    }
  })

  describe("transport", () => {
    const coded = (code: string, more?: object) => Object.assign(new Error(code), { code }, more)
    const connecting = coded("ETIMEDOUT", { syscall: "connect" })
    const named = (name: string) => Object.assign(new Error(name), { name })
    const rows: ReadonlyArray<readonly [name: string, cause: unknown, get: string, post: string]> = [
      ["no cause", undefined, "Yes", "Maybe"],
      ["ECONNREFUSED", coded("ECONNREFUSED"), "Yes", "Yes"],
      ["ENOTFOUND", coded("ENOTFOUND"), "Yes", "Yes"],
      ["EAI_AGAIN", coded("EAI_AGAIN"), "Yes", "Yes"],
      ["EHOSTUNREACH", coded("EHOSTUNREACH"), "Yes", "Yes"],
      ["ENETUNREACH", coded("ENETUNREACH"), "Yes", "Yes"],
      ["a connect timeout of undici", coded("UND_ERR_CONNECT_TIMEOUT"), "Yes timeout", "Yes timeout"],
      ["a connect timeout of Node", coded("ETIMEDOUT", { syscall: "connect" }), "Yes timeout", "Yes timeout"],
      ["a timeout of an open connection", coded("ETIMEDOUT", { syscall: "read" }), "Yes timeout", "Maybe timeout"],
      ["a name server in trouble", coded("EAI_FAIL", { syscall: "getaddrinfo" }), "Yes", "Yes"],
      [
        "a refused HTTP/2 stream",
        coded("ERR_HTTP2_STREAM_ERROR", { message: "Stream closed with error code NGHTTP2_REFUSED_STREAM" }),
        "Yes",
        "Yes"
      ],
      [
        "a closed HTTP/2 session",
        coded("ERR_HTTP2_SESSION_ERROR", { message: "Session closed with error code NGHTTP2_REFUSED_STREAM" }),
        "Yes",
        "Maybe"
      ],
      ["a route that is lost while connected", coded("EHOSTUNREACH", { syscall: "read" }), "Yes", "Maybe"],
      [
        "timeouts of all addresses",
        coded("ETIMEDOUT", { errors: [connecting, connecting] }),
        "Yes timeout",
        "Yes timeout"
      ],
      ["errors that are not all of connecting", coded("E", { errors: [connecting, coded("EPIPE")] }), "Yes", "Maybe"],
      ["no errors", coded("E", { errors: [] }), "Yes", "Maybe"],
      ["a name server that refused", coded("ECONNREFUSED", { syscall: "queryA" }), "Yes", "Yes"],
      ["words of a timeout", new Error("Request timed out"), "Yes", "Maybe"],
      ["ECONNRESET", coded("ECONNRESET", { syscall: "read" }), "Yes", "Maybe"],
      ["EPIPE", coded("EPIPE"), "Yes", "Maybe"],
      ["UND_ERR_SOCKET", coded("UND_ERR_SOCKET"), "Yes", "Maybe"],
      ["UND_ERR_HEADERS_TIMEOUT", coded("UND_ERR_HEADERS_TIMEOUT"), "Yes timeout", "Maybe timeout"],
      ["the limit of an attempt", new Cause.TimeoutError(), "Yes timeout", "Maybe timeout"],
      ["fetch in Node", new TypeError("fetch failed", { cause: coded("ECONNREFUSED") }), "Yes", "Yes"],
      ["fetch in a browser", new TypeError("Failed to fetch"), "Yes", "Maybe"],
      ["a signal of the caller", named("AbortError"), "No", "No"],
      ["a bad certificate", coded("CERT_HAS_EXPIRED"), "No", "No"],
      ["a certificate of another host", coded("ERR_TLS_CERT_ALTNAME_INVALID"), "No", "No"],
      ["a self-signed certificate", coded("DEPTH_ZERO_SELF_SIGNED_CERT"), "No", "No"],
      ["a bad header", new TypeError("fetch failed", { cause: coded("ERR_INVALID_CHAR") }), "No", "No"],
      ["a bad argument", coded("UND_ERR_INVALID_ARG"), "No", "No"],
      ["a bad header of node:http", coded("ERR_HTTP_INVALID_HEADER_VALUE"), "No", "No"],
      ["a bad path of node:http", coded("ERR_UNESCAPED_CHARACTERS"), "No", "No"],
      ["a wrong content-length", coded("UND_ERR_REQ_CONTENT_LENGTH_MISMATCH"), "No", "No"],
      ["what undici does not support", coded("UND_ERR_NOT_SUPPORTED"), "No", "No"],
      ["a dispatcher that was destroyed", coded("UND_ERR_DESTROYED"), "No", "No"],
      ["a dispatcher that was closed", coded("UND_ERR_CLOSED"), "No", "No"],
      ["a request that undici aborted", coded("UND_ERR_ABORTED", { name: "AbortError" }), "No", "No"],
      ["a response that undici cannot parse", coded("HPE_INVALID_CONSTANT"), "Yes", "Maybe"],
      ["a response cut short", coded("UND_ERR_RES_CONTENT_LENGTH_MISMATCH"), "Yes", "Maybe"],
      ["a text", "ECONNREFUSED", "Yes", "Maybe"],
      ["null", null, "Yes", "Maybe"],
      ["a code that is not text", { code: 7, message: 7, syscall: {} }, "Yes", "Maybe"]
    ]
    for (const [name, cause, ofGet, ofPost] of rows) {
      it(`${name} is ${ofGet}, of a POST ${ofPost}`, () => {
        assert.strictEqual(factsOf(transport(get, cause)), ofGet)
        assert.strictEqual(factsOf(transport(post, cause)), ofPost)
        const byDefault = Option.getOrThrow(RetryClassifier.defaultClassifier(transport(get, cause)))
        assert.strictEqual(byDefault.safety, ofGet.split(" ")[0])
      })
    }

    it("looks ten causes deep, and ends at a cycle", () => {
      const nested = (depth: number): unknown =>
        depth === 0 ? coded("ECONNREFUSED") : new Error("outer", { cause: nested(depth - 1) })
      assert.strictEqual(factsOf(transport(post, nested(10))), "Yes")
      assert.strictEqual(factsOf(transport(post, nested(11))), "Maybe")
      const cycle: { cause?: unknown } = {}
      cycle.cause = cycle
      assert.strictEqual(factsOf(transport(post, cycle)), "Maybe")
    })

    it("is not stopped by an error that throws when it is looked at", () => {
      const { proxy, revoke } = Proxy.revocable({}, {})
      revoke()
      const trap = {
        get code() {
          throw new Error("getter")
        }
      }
      assert.strictEqual(factsOf(transport(get, proxy)), "Yes")
      assert.strictEqual(factsOf(transport(get, trap)), "Yes")
    })
  })

  describe("other reasons", () => {
    const error = (reason: HttpClientError.HttpClientErrorReason) => new HttpClientError.HttpClientError({ reason })
    const reset = Object.assign(new Error("reset"), { code: "ECONNRESET" })

    it("a request that cannot be made is never sent again", () => {
      assert.strictEqual(factsOf(error(new HttpClientError.EncodeError({ request: get, cause: reset }))), "No")
      assert.strictEqual(factsOf(error(new HttpClientError.InvalidUrlError({ request: get }))), "No")
    })

    it("a body that breaks off is not fetched again, unless the status is a reason", () => {
      const decode = (status: number) =>
        error(
          new HttpClientError.DecodeError({ request: get, response: response(get, status), cause: reset })
        )
      assert.strictEqual(factsOf(decode(200)), "No")
      assert.strictEqual(factsOf(decode(404)), "No")
      assert.strictEqual(factsOf(decode(503)), "Yes")
    })

    it("knows nothing but HTTP", () => {
      const others = [undefined, null, "503", 503, { status: 503 }, new Error("503"), reset, () => 503]
      for (const other of others) assert.strictEqual(factsOf(other), "-")
    })
  })
})
