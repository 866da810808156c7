import { assert, describe, it } from "@effect/vitest"
import { RetryClassifier, RetryInfo } from "effect-retry"
import * as ReferenceClassifier from "effect-retry/aws/ReferenceClassifier"
import * as Duration from "effect/Duration"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import { sdkError } from "../utils/vectors.ts"

type Kind = "transient" | "throttling" | undefined

/** What each status is without a code, with a transient code, and with a throttling code. */
const rows: ReadonlyArray<readonly [status: number, bare: Kind]> = [
  [200, undefined],
  [400, undefined],
  [401, undefined],
  [403, undefined],
  [404, undefined],
  [408, "transient"],
  [409, undefined],
  [425, undefined],
  [429, "throttling"],
  [499, undefined],
  [500, "transient"],
  [501, undefined],
  [502, "transient"],
  [503, "transient"],
  [504, "transient"],
  [505, undefined],
  [509, "throttling"],
  [599, undefined]
]

const kindOf = (error: unknown): Kind => {
  const info = Option.getOrUndefined(ReferenceClassifier.classifier(error))
  if (info === undefined || info.safety !== "Yes") return undefined
  return info.throttling ? "throttling" : "transient"
}

describe("ReferenceClassifier", () => {
  for (const [status, bare] of rows) {
    it(`vector: ${status} without a code is ${bare ?? "not retried"}, whatever the shape of the error`, () => {
      assert.strictEqual(kindOf(sdkError({ status })), bare)
      assert.strictEqual(kindOf({ status }), bare)
      assert.strictEqual(kindOf({ statusCode: status }), bare)
      assert.strictEqual(kindOf({ response: { status } }), bare)
      assert.strictEqual(kindOf(new Error("outer", { cause: sdkError({ status }) })), bare)
    })

    it(`vector: ${status} is what a code says`, () => {
      const timedOut = status === 429 ? "throttling" : "transient"
      assert.strictEqual(kindOf(sdkError({ status, code: "RequestTimeout" })), timedOut)
      assert.strictEqual(kindOf(sdkError({ status, code: "RequestTimeoutException" })), timedOut)
      assert.strictEqual(kindOf(sdkError({ status, code: "ThrottlingException" })), "throttling")
      assert.strictEqual(kindOf(sdkError({ status, code: "SlowDown" })), "throttling")
      assert.strictEqual(kindOf({ status, Code: "RequestThrottled" }), "throttling")
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
    assert.strictEqual(kindOf(error(509)), "throttling")
    assert.strictEqual(kindOf(error(503)), "transient")
    assert.isUndefined(kindOf(error(404)))
  })

  for (const [status, bare] of rows) {
    it(`vector: ${status} of Effect's HTTP client is ${bare ?? "not retried"}`, () => {
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
    assert.isUndefined(kindOf({ ...sdkError({ status: 503 }), [RetryInfo.TypeId]: RetryInfo.notRetryable }))
  })

  it("knows the $retryable trait and network codes", () => {
    assert.strictEqual(kindOf({ ...sdkError({ status: 400 }), $retryable: { throttling: true } }), "throttling")
    assert.strictEqual(kindOf({ ...sdkError({ status: 400 }), $retryable: {} }), "transient")
    assert.strictEqual(kindOf({ code: "ECONNRESET" }), "transient")
  })

  it("knows nothing of anything else, and never throws", () => {
    const throwing = new Proxy({}, {
      get: () => {
        throw new Error("no")
      }
    })
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    for (const error of [undefined, null, 503, "503", Symbol.iterator, {}, { status: "503" }, throwing, proxy]) {
      assert.isUndefined(kindOf(error))
    }
    assert.isTrue(Option.isNone(RetryClassifier.classify(ReferenceClassifier.classifier, { $metadata: null })))
  })
})
