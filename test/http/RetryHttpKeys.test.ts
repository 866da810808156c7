import { assert, describe, it } from "@effect/vitest"
import { Backoff, RetryPolicy } from "effect-retry"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import type * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"

const threeTimes = Backoff.fixed(0).pipe(RetryPolicy.whileRetryable, RetryPolicy.maxAttempts(3))

/** A client whose server answers with each status in turn, the last one forever. */
const clientOf = (...statuses: ReadonlyArray<number>) => {
  const requests: Array<HttpClientRequest.HttpClientRequest> = []
  const client = HttpClient.make((request) =>
    Effect.sync(() => {
      const status = statuses[Math.min(requests.push(request), statuses.length) - 1]!
      return HttpClientResponse.fromWeb(request, new Response(null, { status }))
    })
  )
  const keys = () => requests.map(({ headers }) => headers["idempotency-key"])
  return { client, requests, keys }
}

const uuid = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/

describe("RetryHttp.idempotencyKey", () => {
  it.effect("is one UUID per call, kept across its retries, below retry and above", () =>
    Effect.gen(function*() {
      for (
        const compose of [
          (client: HttpClient.HttpClient) => client.pipe(RetryHttp.idempotencyKey(), RetryHttp.retry(threeTimes)),
          (client: HttpClient.HttpClient) => client.pipe(RetryHttp.retry(threeTimes), RetryHttp.idempotencyKey())
        ]
      ) {
        const { client, keys } = clientOf(500)
        yield* compose(client).post("http://a/")
        yield* compose(client).post("http://a/")
        const [first, , , second] = keys()
        assert.match(first!, uuid)
        assert.match(second!, uuid)
        assert.notStrictEqual(first, second)
        assert.deepStrictEqual(keys(), [first, first, first, second, second, second])
      }
    }))

  it.effect("is for what is not idempotent and has no key", () =>
    Effect.gen(function*() {
      const { client, keys } = clientOf(200)
      const keyed = RetryHttp.idempotencyKey({ make: ({ method }) => `key of ${method}` })(client)
      yield* keyed.get("http://a/")
      yield* keyed.put("http://a/")
      yield* keyed.patch("http://a/")
      yield* keyed.post("http://a/")
      yield* keyed.post("http://a/", { headers: { "Idempotency-Key": "mine" } })
      assert.deepStrictEqual(keys(), [undefined, undefined, "key of PATCH", "key of POST", "mine"])
    }))

  const rows: ReadonlyArray<readonly [statuses: ReadonlyArray<number>, keyed: number, plain: number, why: string]> = [
    [[409, 200], 2, 1, "in flight"],
    [[500, 409, 200], 3, 1, "in flight, after a failure"],
    [[422, 200], 1, 1, "the key of another request"],
    [[500, 422], 2, 1, "the key of another request, after a failure"],
    [[400, 200], 1, 1, "an answer"]
  ]
  for (const [statuses, keyed, plain, why] of rows) {
    it.effect(`a POST that is answered ${statuses} is sent ${keyed} times with a key, without ${plain}: ${why}`, () =>
      Effect.gen(function*() {
        const withKey = clientOf(...statuses)
        const response = yield* withKey.client.pipe(RetryHttp.idempotencyKey(), RetryHttp.retry(threeTimes)).post(
          "http://a/"
        )
        assert.strictEqual(withKey.requests.length, keyed)
        assert.strictEqual(response.status, statuses[keyed - 1])
        const without = clientOf(...statuses)
        yield* RetryHttp.retry(without.client, threeTimes).post("http://a/")
        assert.strictEqual(without.requests.length, plain)
      }))
  }

  it.effect("a 422 stays final even if the user otherwise retries it", () =>
    Effect.gen(function*() {
      const { client, requests } = clientOf(422)
      const options = { retryStatus: (status: number) => status === 422 }
      yield* RetryHttp.retry(client, threeTimes, options).get("http://a/")
      assert.strictEqual(requests.length, 3)
      yield* client.pipe(RetryHttp.retry(threeTimes, options), RetryHttp.idempotencyKey()).post("http://a/")
      assert.strictEqual(requests.length, 4)
    }))
})

it.effect("disableProxyRetries is sent to Envoy and Linkerd on every send, and not without the option", () =>
  Effect.gen(function*() {
    const said = ({ headers }: HttpClientRequest.HttpClientRequest) => [
      headers["x-envoy-max-retries"],
      headers["l5d-retry-limit"]
    ]
    for (const disableProxyRetries of [true, false, undefined]) {
      const { client, requests } = clientOf(500)
      const expected = disableProxyRetries === true ? ["0", "0"] : [undefined, undefined]
      yield* RetryHttp.retry(client, threeTimes, { disableProxyRetries }).get("http://a/")
      const transform = yield* RetryHttp.transform(threeTimes, { disableProxyRetries })
      yield* transform(client).get("http://a/")
      assert.deepStrictEqual(requests.map(said), Array(6).fill(expected))
    }
  }))
