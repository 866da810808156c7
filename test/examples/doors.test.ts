import { assert, it, vi } from "@effect/vitest"
import { RetryQuota } from "effect-retry"
import { range } from "effect/Array"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import { httpLayer } from "../../examples/doors/effect.ts"
import { shop, stores } from "../../examples/effect-limits.ts"
import { busy, getItem, handlerOf, ok, played, settings } from "../utils/awsSdk.ts"

/** A `fetch` that answers with each status in turn, then with the last. */
const fetching = (...statuses: ReadonlyArray<number>) => {
  const asked: Array<string> = []
  const answer: typeof fetch = async (input) => {
    asked.push(String(input))
    return new Response(null, { status: statuses[Math.min(asked.length, statuses.length) - 1]! })
  }
  return { asked, layer: Layer.succeed(FetchHttpClient.Fetch, answer) }
}

it.effect("every client above the layer of the README retries, and the last response is the result", () =>
  Effect.gen(function*() {
    const server = fetching(503, 200, 503)
    const get = HttpClient.get("http://shop.example").pipe(
      Effect.map(({ status }) => status),
      played,
      Effect.provide([httpLayer, server.layer])
    )
    assert.deepStrictEqual([yield* get, server.asked.length], [200, 2])
    assert.strictEqual(yield* get, 503)
    assert.isAbove(server.asked.length, 4)
  }))

it("the fetch of the README is called as fetch, and the last response is the result", async () => {
  const asked: Array<number> = []
  vi.stubGlobal("fetch", async () => new Response(null, { status: [503, 200, 503][asked.push(1) - 1] ?? 503 }))
  const { fetch } = await import("../../examples/doors/fetch.ts")
  assert.deepStrictEqual([(await fetch("http://shop.example")).status, asked.length], [200, 2])
  const post = await fetch("http://shop.example", { method: "POST" })
  vi.unstubAllGlobals()
  assert.deepStrictEqual([post.status, asked.length], [503, 3])
})

it("the client of the README is called as usual and retried by the policy", async () => {
  const { handler, requests } = handlerOf([busy, busy, ok])
  vi.stubEnv("AWS_REGION", settings.region)
  vi.stubEnv("AWS_ACCESS_KEY_ID", "a")
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "b")
  const { client } = await import("../../examples/doors/aws-sdk.ts")
  client.config.requestHandler = handler
  await client.send(getItem())
  vi.unstubAllEnvs()
  assert.strictEqual(requests.length, 3)
})

it.effect("under the rate limiter and the breaker of Effect, ten requests of a second reach a service, five one that is down", () =>
  Effect.gen(function*() {
    let sends = 0
    const answering = (status: number) =>
      HttpClient.make((request) =>
        Effect.sync(() => {
          sends++
          return HttpClientResponse.fromWeb(request, new Response(null, { status }))
        })
      )
    const calls = (status: number) =>
      Effect.gen(function*() {
        sends = 0
        const client = yield* Effect.provideService(shop, HttpClient.HttpClient, answering(status))
        const all = Effect.forEach(range(1, 20), () => Effect.exit(client.get("http://shop.example")), {
          concurrency: "unbounded"
        })
        yield* Effect.forkScoped(all)
        yield* TestClock.adjust("500 millis")
        return sends
      }).pipe(Effect.scoped, Effect.provide([stores, RetryQuota.layer()]))
    assert.strictEqual(yield* calls(200), 10)
    assert.strictEqual(yield* calls(503), 5)
  }))
