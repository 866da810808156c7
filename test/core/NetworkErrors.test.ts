import { assert, describe, it } from "@effect/vitest"
import { RetryClassifier } from "effect-retry"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Option from "effect/Option"
import { secondsOf } from "../utils/cpu.ts"
import { networkErrors, noNetworkErrors, refusals } from "../vectors/networkErrors.ts"

const words = (classifier: RetryClassifier.RetryClassifier, error: unknown): string =>
  Option.match(classifier(error), {
    onNone: () => "unknown",
    onSome: ({ safety, timeout }) => timeout ? `${safety} timeout` : safety
  })

const sent = (method: "GET" | "POST", cause: unknown) =>
  new HttpClientError.HttpClientError({
    reason: new HttpClientError.TransportError({
      request: HttpClientRequest.make(method)("http://service.test/"),
      cause
    })
  })

describe("network failures", () => {
  for (const { error, is, of, post, when } of networkErrors) {
    it(`vector: ${of}, ${when}: ${is}, of a POST ${post}`, () => {
      assert.strictEqual(words(RetryClassifier.defaultClassifier, error), is)
      assert.strictEqual(words(RetryClassifier.defaultClassifier, { _tag: "OrdersError", cause: error }), is)
      for (const classifier of [RetryClassifier.effectErrors, RetryHttp.classifier]) {
        assert.strictEqual(Option.getOrThrow(classifier(sent("GET", error))).safety, "Yes")
        assert.strictEqual(Option.getOrThrow(classifier(sent("POST", error))).safety, post)
      }
    })
  }

  for (const [why, error] of noNetworkErrors) {
    it(`${why} is none`, () => assert.strictEqual(words(RetryClassifier.defaultClassifier, error), "unknown"))
  }

  it("a long message takes no time", () => {
    const long = new Error(`error sending request for url (${"dns error: ".repeat(100_000)})`)
    assert.isBelow(secondsOf(() => RetryClassifier.defaultClassifier(long)), 1)
  })
})

describe("requests that fetch refuses", () => {
  for (const [of, error] of refusals) {
    it(`vector: ${of}, ${String(error)}: no HTTP client sends it again`, () => {
      assert.strictEqual(words(RetryHttp.classifier, sent("GET", error)), "No")
      assert.strictEqual(words(RetryClassifier.defaultClassifier, error), "unknown")
    })
  }
})

describe("a request that the caller aborts", () => {
  const aborted = new DOMException("This operation was aborted", "AbortError")
  const errors = {
    itself: aborted,
    "a cause": new Error("order", { cause: aborted }),
    "axios": { name: "CanceledError", code: "ERR_CANCELED", message: "canceled" },
    "axios over fetch, before its cause": { code: "ERR_NETWORK", message: "Network Error", cause: aborted },
    "an abort with what it broke": Object.assign(new Error("x", { cause: { code: "EPIPE" } }), { name: "AbortError" })
  }
  it.each(Object.entries(errors))("is final: %s", (_, error) => {
    assert.strictEqual(words(RetryClassifier.defaultClassifier, error), "No")
    assert.strictEqual(words(RetryClassifier.defaultClassifier, sent("GET", error)), "No")
  })

  it("is none if it was aborted by a timeout, or if the server has answered", () => {
    const late = new DOMException("late", "TimeoutError")
    const error = Object.assign(new Error("x", { cause: late }), { name: "AbortError" })
    assert.strictEqual(words(RetryClassifier.defaultClassifier, error), "Yes timeout")
    assert.strictEqual(words(RetryHttp.classifier, sent("GET", error)), "Yes timeout")
    assert.strictEqual(words(RetryClassifier.defaultClassifier, { status: 503, cause: aborted }), "Yes")
  })
})
