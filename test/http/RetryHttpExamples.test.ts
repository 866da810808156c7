import { assert, describe, it } from "@effect/vitest"
import { awsStandard2026, Hedge, RetryObserver, type RetryPolicy, RetryQuota } from "effect-retry"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as Kit from "effect-retry/testing"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Http from "../../examples/http.ts"
import { clientOf } from "../reliability/utils/http.ts"

/** Sends the call to a server that answers with each of the statuses in turn; returns what was sent. */
const sent = <A, E>(
  call: Effect.Effect<A, E, HttpClient.HttpClient | RetryQuota.RetryQuota>,
  statuses: ReadonlyArray<number>
) =>
  Effect.gen(function*() {
    const requests: Array<HttpClientRequest.HttpClientRequest> = []
    const bodies: Array<string> = []
    const client = HttpClient.make((request) =>
      Effect.gen(function*() {
        const status = statuses[Math.min(requests.push(request), statuses.length) - 1]!
        if (request.body._tag === "Stream") {
          bodies.push(yield* Stream.mkString(Stream.decodeText(Stream.orDie(request.body.stream))))
        }
        return HttpClientResponse.fromWeb(request, new Response("", { status }))
      })
    )
    const fiber = yield* Effect.forkChild(
      Effect.exit(call).pipe(
        Effect.provideService(HttpClient.HttpClient, client),
        Effect.provide(RetryQuota.layer())
      )
    )
    while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust("1 second")
    return { exit: yield* Fiber.join(fiber), requests, bodies }
  })

describe("examples/http", () => {
  it.effect("retries a GET, at most twice, and fails as a filtered client does", () =>
    Effect.gen(function*() {
      const first = yield* sent(Http.getOrder(7), [503, 200])
      assert.strictEqual(first.exit._tag, "Success")
      assert.deepStrictEqual(first.requests.map(({ url }) => url), Array(2).fill("https://shop.example/orders/7"))
      const second = yield* sent(Http.getOrder(7), [503])
      assert.strictEqual(second.exit._tag, "Failure")
      assert.strictEqual(second.requests.length, 3)
    }))

  it.effect("sends a late read again through a layer, and retries it", () =>
    Effect.gen(function*() {
      let requests = 0
      const client = HttpClient.make((request) =>
        Effect.delay(
          Effect.sync(() =>
            HttpClientResponse.fromWeb(request, new Response("", { status: requests < 3 ? 503 : 200 }))
          ),
          ++requests === 1 ? "1 minute" : 10
        )
      )
      const live = Http.hedgingLayer.pipe(
        Layer.provide([
          Layer.succeed(HttpClient.HttpClient, client),
          RetryQuota.layer(),
          Hedge.layer({ share: 1 })
        ])
      )
      const call = Effect.provide(HttpClient.get("https://shop.example/orders/7"), live)
      const fiber = yield* Effect.forkChild(call, { startImmediately: true })
      yield* TestClock.adjust(200)
      assert.strictEqual(requests, 2)
      yield* TestClock.adjust("2 minutes")
      assert.strictEqual((yield* Fiber.join(fiber)).status, 200)
    }))

  it.effect("retries an order with its key", () =>
    Effect.gen(function*() {
      const { requests } = yield* sent(Http.order("tea", "key-1"), [500, 200])
      assert.deepStrictEqual(requests.map(({ headers }) => headers["idempotency-key"]), ["key-1", "key-1"])
    }))

  it.effect("retries a search", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* sent(Http.search("tea"), [500, 200])).requests.length, 2)
    }))

  it.effect("uploads a reopened stream", () =>
    Effect.gen(function*() {
      let opened = 0
      const open = () => Stream.make(new TextEncoder().encode(`stream ${++opened}`))
      assert.deepStrictEqual((yield* sent(Http.upload("a", open), [500, 200])).bodies, ["stream 1", "stream 2"])
    }))

  it.effect("retries for code that uses a client and knows of no retries, from one quota", () =>
    Effect.gen(function*() {
      const quota = yield* RetryQuota.make({ capacity: 500 })
      const layer = Layer.provide(Http.layer, Layer.succeed(RetryQuota.RetryQuota, quota))
      const get = Effect.flatMap(HttpClient.HttpClient, (client) => client.get("http://a/"))
      const spent = sent(Effect.andThen(get, get).pipe(Effect.provide(layer)), [503])
      assert.strictEqual((yield* spent).requests.length, 6)
      assert.strictEqual(yield* quota.balance, 500 - 4 * 14)
    }))

  it.effect("does not slow the calls of a host after a 429", () => {
    const statuses = [429]
    const base = HttpClient.make((request) =>
      Effect.sync(() => HttpClientResponse.fromWeb(request, new Response("", { status: statuses.pop() ?? 200 })))
    )
    const live = Http.perHost.pipe(Layer.provide(Layer.succeed(HttpClient.HttpClient, base)))
    return Effect.gen(function*() {
      const get = HttpClient.get("https://shop.example/orders/7")
      yield* Kit.runToEnd(get)
      const start = yield* Clock.currentTimeMillis
      yield* Kit.runToEnd(Effect.replicateEffect(get, 10))
      assert.strictEqual(yield* Clock.currentTimeMillis, start)
    }).pipe(Effect.provide(live))
  })

  it("knows a server's own header and status", () => {
    const response = HttpClientResponse.fromWeb(
      HttpClientRequest.get("http://a/"),
      new Response("", { status: 423, headers: { "x-vendor-wait": "3" } })
    )
    const info = Option.getOrThrow(RetryHttp.makeClassifier(Http.vendor)(response))
    assert.deepStrictEqual(info.retryAfter, Duration.seconds(3))
  })
})

describe("the policy for servers other than AWS", () => {
  const waits: ReadonlyArray<readonly [seconds: number, aws: number, patient: number | undefined]> = [
    [3, 3000, 3000],
    [60, 5000, 60_000],
    [3600, 5000, undefined]
  ]
  for (const [seconds, aws, patient] of waits) {
    it.effect(`Retry-After: ${seconds} is ${aws} ms to awsStandard2026, to patient ${patient ?? "the end"}`, () =>
      Effect.gen(function*() {
        const wait = (policy: RetryPolicy.RetryPolicy<any, never, RetryQuota.RetryQuota>) =>
          Effect.gen(function*() {
            const { client, times } = clientOf([
              { status: 429, headers: { "retry-after": String(seconds) } },
              { status: 200 }
            ])
            yield* Kit.runToEnd(RetryHttp.retry(client, policy, { hintSpread: 0 }).get("http://a/"))
            return times.length === 1 ? undefined : times[1]! - times[0]!
          })
        assert.strictEqual(yield* wait(awsStandard2026), aws)
        assert.strictEqual(yield* wait(Http.patient), patient)
      }).pipe(Effect.provide([Kit.TestQuota.layer(), Kit.fixedRandom(0)])))
  }

  it.effect("the last response is the result, and the reason is reported", () =>
    Effect.gen(function*() {
      const { client, times } = clientOf([{ status: 429, headers: { "retry-after": "3600" } }])
      const reasons: Array<string> = []
      const response = yield* RetryHttp.retry(client, Http.patient).get("http://a/").pipe(
        Effect.provideService(RetryObserver.CurrentObserver, {
          onStop: ({ reason }) => Effect.sync(() => void reasons.push(reason))
        })
      )
      assert.strictEqual(response.status, 429)
      assert.strictEqual(times.length, 1)
      assert.deepStrictEqual(reasons, ["retry-after-too-long"])
    }).pipe(Effect.provide(Kit.TestQuota.layer())))

  it.effect("payments have a key, and tell proxies not to retry", () =>
    Effect.gen(function*() {
      const { exit, requests } = yield* sent(Effect.flatMap(Http.payments, (client) => client.post("http://a/")), [
        500,
        409,
        200
      ])
      assert.strictEqual(exit._tag, "Success")
      assert.strictEqual(new Set(requests.map(({ headers }) => headers["idempotency-key"])).size, 1)
      assert.deepStrictEqual(requests.map(({ headers }) => headers["x-envoy-max-retries"]), ["0", "0", "0"])
    }))
})
