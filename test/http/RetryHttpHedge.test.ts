import { assert, describe, it } from "@effect/vitest"
import {
  awsStandard,
  Hedge,
  RetryClassifier,
  RetryInfo,
  RetryObserver,
  RetryQuota,
  type RetryQuotaStore
} from "effect-retry"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"

const unlimited: RetryQuotaStore.RetryQuotaStore = {
  capacity: Infinity,
  successIncrement: 0,
  firstAttemptCost: 0,
  onExceeded: "stop",
  reserve: (cost) => ({ cost, giveBack: () => true, spend: () => true }),
  deposit: () => {},
  balance: () => Infinity
}

/** A server that answers each request after that many milliseconds with a status; what it was asked, and what was closed. */
const server = (turns: ReadonlyArray<readonly [millis: number, status: number]>) => {
  const told = { at: [] as Array<number>, aborted: [] as Array<number>, closed: [] as Array<number> }
  const client = HttpClient.make((request, _url, signal) =>
    Effect.gen(function*() {
      const index = told.at.push(yield* Clock.currentTimeMillis)
      signal.addEventListener("abort", () => told.aborted.push(index))
      const [millis, status] = turns[Math.min(index, turns.length) - 1]!
      yield* Effect.sleep(millis)
      const body = new ReadableStream({
        pull: (controller) => controller.enqueue(new Uint8Array([index])),
        cancel: () => void told.closed.push(index)
      })
      return HttpClientResponse.fromWeb(request, new Response(body, { status, headers: { "x-send": String(index) } }))
    })
  )
  return { client, told }
}

const get = HttpClientRequest.get("http://a/")
const post = HttpClientRequest.post("http://a/")

const run = <E, R>(
  client: HttpClient.HttpClient.With<E, R>,
  request: HttpClientRequest.HttpClientRequest,
  millis = 2000
) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(client.execute(request), { startImmediately: true })
    for (let time = 0; time < millis; time += 10) yield* TestClock.adjust(10)
    // Bodies are closed by promises.
    for (let turn = 0; turn < 10; turn++) yield* Effect.promise(() => Promise.resolve())
    const exit = fiber.pollUnsafe()
    const response = exit !== undefined && Exit.isSuccess(exit) ? exit.value : undefined
    return { status: response?.status, send: response?.headers["x-send"] }
  }).pipe(Effect.provide([Hedge.layer({ budget: unlimited }), RetryQuota.layer()]))

describe("a client that hedges", () => {
  const hedge = RetryHttp.hedge({ after: 50 })

  it.effect("takes the first response, and aborts the other request", () =>
    Effect.gen(function*() {
      const { client, told } = server([[1000, 200], [10, 200]])
      assert.deepStrictEqual(yield* run(hedge(client), get), { status: 200, send: "2" })
      assert.deepStrictEqual([told.at, told.aborted, told.closed], [[0, 50], [1], []])
    }))

  it.effect("prefers a good response to a faster bad one, and closes the body of the bad one", () =>
    Effect.gen(function*() {
      const { client, told } = server([[10, 503], [100, 200]])
      assert.deepStrictEqual(yield* run(hedge(client), get), { status: 200, send: "2" })
      assert.deepStrictEqual([told.at, told.closed], [[0, 10], [1]])
    }))

  it.effect("returns the first response when all are bad, body and all, and closes the others", () =>
    Effect.gen(function*() {
      const { client, told } = server([[100, 503], [10, 500]])
      assert.deepStrictEqual(yield* run(hedge(client), get), { status: 503, send: "1" })
      assert.deepStrictEqual([told.at, told.closed], [[0, 50], [2]])
    }))

  it.effect("treats a response that is not a failure, such as 404, as a success", () =>
    Effect.gen(function*() {
      const { client, told } = server([[1000, 200], [10, 404]])
      assert.deepStrictEqual(yield* run(hedge(client), get), { status: 404, send: "2" })
      assert.deepStrictEqual(told.aborted, [1])
    }))

  it.effect("ends with a failure that the classifier around it forbids to send again", () =>
    Effect.gen(function*() {
      const { client, told } = server([[10, 503], [10, 200]])
      const forbids = RetryClassifier.layer(() => Option.some(RetryInfo.notRetryable))
      assert.deepStrictEqual(yield* Effect.provide(run(hedge(client), get), forbids), { status: 503, send: "1" })
      assert.deepStrictEqual([told.at, told.closed], [[0], []])
    }))

  it.effect("closes a response that its caller does not get: it is interrupted while an observer waits", () =>
    Effect.gen(function*() {
      const { client, told } = server([[1000, 200], [10, 200]])
      const waits = RetryObserver.layer({ onHedge: ({ event }) => event === "won" ? Effect.never : undefined })
      const fiber = yield* Effect.forkChild(Effect.provide(run(hedge(client), get), waits), { startImmediately: true })
      yield* TestClock.adjust(100)
      yield* Fiber.interrupt(fiber)
      for (let turn = 0; turn < 10; turn++) yield* Effect.promise(() => Promise.resolve())
      assert.deepStrictEqual(told.closed, [2])
    }))

  it.effect("hedges the retry too, under retry", () =>
    Effect.gen(function*() {
      const { client, told } = server([[10, 503], [10, 503], [1000, 200], [10, 200]])
      const both = client.pipe(hedge, RetryHttp.retry(awsStandard))
      const { status } = yield* run(both, get, 5000)
      assert.deepStrictEqual([status, told.at.length], [200, 4])
      assert.deepStrictEqual([...told.closed].sort(), [1, 2])
    }))

  const requests: ReadonlyArray<[name: string, request: HttpClientRequest.HttpClientRequest, sends: number]> = [
    ["a GET", get, 2],
    ["a PUT", HttpClientRequest.put("http://a/"), 2],
    ["a POST", post, 1],
    ["a POST with a key", HttpClientRequest.setHeader(post, "idempotency-key", "k"), 2],
    [
      "a PUT whose body may be used up",
      HttpClientRequest.put("http://a/").pipe(
        HttpClientRequest.setBody(HttpBody.stream(Stream.make(new Uint8Array([1])), "text/plain"))
      ),
      1
    ]
  ]
  for (const [name, request, sends] of requests) {
    it.effect(`${name} is sent ${sends === 1 ? "once" : "twice"}`, () =>
      Effect.gen(function*() {
        const { client, told } = server([[100, 200]])
        assert.strictEqual((yield* run(hedge(client), request)).status, 200)
        assert.strictEqual(told.at.length, sends)
      }))
  }

  it.effect("a POST that is marked is sent twice", () =>
    Effect.gen(function*() {
      const { client, told } = server([[100, 200]])
      yield* RetryHttp.repeatable(run(hedge(client), post))
      assert.strictEqual(told.at.length, 2)
    }))

  it("refuses impossible options in its own name", () => {
    assert.throws(() => RetryHttp.hedge({ after: -1 }), /RetryHttp\.hedge.*after/)
    assert.throws(() => RetryHttp.hedge({ classifier: 5 as never }), /RetryHttp\.hedge.*classifier/)
    assert.throws(() => RetryHttp.hedge(server([[1, 200]]).client, { atMost: 11 }), /RetryHttp\.hedge.*atMost/)
  })
})
