import { assert, describe, it } from "@effect/vitest"
import { RetryClassifier, RetryInfo } from "effect-retry"
import * as ReferenceClassifier from "effect-retry/aws/ReferenceClassifier"
import * as Duration from "effect/Duration"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import { sdkError } from "../utils/vectors.ts"
import { reference, referenceCodes } from "../vectors/classification.ts"

type Kind = "transient" | "throttled" | "no"

const kindOf = (error: unknown): Kind => {
  const info = Option.getOrUndefined(ReferenceClassifier.classifier(error))
  if (info === undefined || info.safety !== "Yes") return "no"
  return info.throttling ? "throttled" : "transient"
}

describe("ReferenceClassifier", () => {
  for (const { is: bare, status } of reference) {
    it(`vector: ${status} without a code is ${bare}, whatever the shape of the error`, () => {
      assert.strictEqual(kindOf(sdkError({ status })), bare)
      assert.strictEqual(kindOf({ status }), bare)
      assert.strictEqual(kindOf({ statusCode: status }), bare)
      assert.strictEqual(kindOf({ response: { status } }), bare)
      assert.strictEqual(kindOf(new Error("outer", { cause: sdkError({ status }) })), bare)
    })

    it(`vector: ${status} is what a code says`, () => {
      for (const { code, is } of referenceCodes) {
        for (const error of [sdkError({ status, code }), { status, Code: code }, { statusCode: status, code }]) {
          assert.strictEqual(kindOf(error), status === 429 ? "throttled" : is, JSON.stringify(error))
        }
      }
      assert.strictEqual(kindOf(sdkError({ status, code: "ValidationException" })), bare)
    })
  }

  it("reads the server's hint at every status it knows", () => {
    for (const status of [408, 429, 500, 502, 503, 504, 509]) {
      const error = { ...sdkError({ status }), $response: { headers: { "x-amz-retry-after": "1500" } } }
      const info = Option.getOrThrow(ReferenceClassifier.classifier(error))
      assert.strictEqual(Duration.toMillis(info.retryAfter!), 1500)
      const other = Option.getOrThrow(ReferenceClassifier.classifier({ status, headers: { "retry-after": "2" } }))
      assert.strictEqual(Duration.toMillis(other.retryAfter!), 2000)
    }
  })

  it("knows Effect's HTTP errors", () => {
    const error = (status: number) => ({
      _tag: "HttpClientError",
      reason: { _tag: "StatusCodeError", request: { method: "GET" }, response: { status, headers: {} } }
    })
    assert.strictEqual(kindOf(error(509)), "throttled")
    assert.strictEqual(kindOf(error(503)), "transient")
    assert.strictEqual(kindOf(error(404)), "no")
  })

  for (const { is: bare, status } of reference) {
    it(`vector: ${status} of Effect's HTTP client is ${bare}`, () => {
      const request = HttpClientRequest.get("http://service.test/")
      const web = new Response(null, { status })
      const error = new HttpClientError.HttpClientError({
        reason: new HttpClientError.StatusCodeError({ request, response: HttpClientResponse.fromWeb(request, web) })
      })
      assert.strictEqual(kindOf(error), bare)
      assert.strictEqual(kindOf(new Error("outer", { cause: error })), bare)
    })
  }

  it("knows a request of Effect's HTTP client that was not answered", () => {
    const request = HttpClientRequest.get("http://service.test/")
    const reason = new HttpClientError.TransportError({ request, cause: new Error("reset") })
    assert.strictEqual(kindOf(new HttpClientError.HttpClientError({ reason })), "transient")
  })

  it("lets the error's own facts decide first", () => {
    assert.strictEqual(kindOf({ ...sdkError({ status: 503 }), [RetryInfo.TypeId]: RetryInfo.notRetryable }), "no")
  })

  it("knows the $retryable trait and network codes", () => {
    assert.strictEqual(kindOf({ ...sdkError({ status: 400 }), $retryable: { throttling: true } }), "throttled")
    assert.strictEqual(kindOf({ ...sdkError({ status: 400 }), $retryable: {} }), "transient")
    assert.strictEqual(kindOf({ code: "ECONNRESET" }), "transient")
  })

  it("knows nothing else, and never throws", () => {
    const throwing = new Proxy({}, {
      get: () => {
        throw new Error("no")
      }
    })
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    for (const error of [undefined, null, 503, "503", Symbol.iterator, {}, { status: "503" }, throwing, proxy]) {
      assert.strictEqual(kindOf(error), "no")
    }
    assert.isTrue(Option.isNone(RetryClassifier.classify(ReferenceClassifier.classifier, { $metadata: null })))
  })
})
