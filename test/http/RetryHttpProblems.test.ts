/** What the body of a refusal says beyond its status, over real connections. Time stands still, so that no body is late. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { assert, describe, it } from "@effect/vitest"
import { Backoff, RetryPolicy } from "effect-retry"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import { fromWeb, type HttpClientResponse } from "effect/http/HttpClientResponse"
import type * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as http from "node:http"
import type * as net from "node:net"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import * as zlib from "node:zlib"
import { countedClock } from "../reliability/utils/clocks.ts"
import { turn, until } from "../utils/until.ts"

setFlagsFromString("--expose-gc")
const gc: () => void = runInNewContext("gc")

interface Seen {
  sends: number
  /** Responses whose client went away before they were finished. */
  aborted: number
  readonly sockets: Set<net.Socket>
}

const serve = (answer: (response: http.ServerResponse, nth: number) => void) =>
  Effect.gen(function*() {
    const seen: Seen = { sends: 0, aborted: 0, sockets: new Set() }
    const server = http.createServer((request, response) => {
      seen.sockets.add(request.socket)
      response.on("close", () => response.writableFinished || seen.aborted++)
      answer(response, ++seen.sends)
    })
    yield* Effect.acquireRelease(
      Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
      () =>
        Effect.callback<void>((resume) => {
          server.close(() => resume(Effect.void))
          server.closeAllConnections()
        })
    )
    return { seen, url: `http://127.0.0.1:${(server.address() as net.AddressInfo).port}/` }
  })

const policy = Backoff.fixed(0).pipe(RetryPolicy.maxAttempts(3))
const once = RetryPolicy.maxAttempts(policy, 1)

const problem = (fields: object) => JSON.stringify(fields)
const noMoney = problem({ error: { message: "no money", code: "insufficient_quota", type: "insufficient_quota" } })
const tooMany = problem({ error: { message: "slow down", code: "rate_limit_exceeded" } })

const bodies: Readonly<Record<string, (response: HttpClientResponse) => Effect.Effect<string, unknown>>> = {
  text: (response) => response.text,
  json: (response) => Effect.map(response.json, (json) => JSON.stringify(json)),
  arrayBuffer: (response) => Effect.map(response.arrayBuffer, (bytes) => new TextDecoder().decode(bytes)),
  stream: (response) => Stream.mkString(Stream.decodeText(response.stream))
}

const clients: ReadonlyArray<readonly [string, Layer.Layer<HttpClient.HttpClient>]> = [
  ["fetch", FetchHttpClient.layer],
  ["node:http", NodeHttpClient.layerNodeHttpOptions({ keepAlive: true })]
]

describe("the body of a refusal that does not arrive is waited for", () => {
  it.effect.each<[string, RetryHttp.Options, RetryPolicy.RetryPolicy, number]>([
    ["for a second", {}, RetryPolicy.deadline(once, 1001), 1000],
    ["until the attempt is over", { attemptTimeout: 200 }, once, 200],
    ["until the deadline", {}, RetryPolicy.deadline(once, 300), 300],
    ["until the deadline of a joined policy", {}, RetryPolicy.min([RetryPolicy.deadline(once, 300)]), 300],
    ["until the first of both", { attemptTimeout: 200 }, RetryPolicy.deadline(once, 100), 100]
  ])("%s", ([, options, policy, millis]) =>
    Effect.gen(function*() {
      const clock = yield* countedClock
      const stalled = () => new ReadableStream({ start: (body) => body.enqueue(new TextEncoder().encode("{")) })
      const client = HttpClient.make((request) =>
        Effect.sync(() =>
          fromWeb(request, new Response(stalled(), { status: 429, headers: { "content-type": "application/json" } }))
        )
      )
      const call = yield* Effect.forkChild(clock.provide(RetryHttp.retry(client, policy, options).get("http://a/")))
      yield* until(() => clock.asleep === 1)
      yield* TestClock.adjust(millis - 1)
      assert.strictEqual(clock.asleep, 1)
      yield* TestClock.adjust(1)
      assert.strictEqual(clock.asleep, 0)
      assert.strictEqual((yield* Fiber.join(call)).status, 429)
    }))
})

describe.each(clients)("RetryHttp reads what a refusal says: %s", (client, layer) => {
  const calls = (
    answer: (response: http.ServerResponse, nth: number) => void,
    use: (response: HttpClientResponse, seen: Seen) => Effect.Effect<void, unknown>
  ) =>
    Effect.gen(function*() {
      const { seen, url } = yield* serve(answer)
      const response = yield* RetryHttp.retry(yield* HttpClient.HttpClient, policy).get(url)
      yield* use(response, seen)
    }).pipe(Effect.scoped, Effect.provide(layer))

  for (const [name, read] of Object.entries(bodies)) {
    it.effect(`a call without credit is sent once, and its response can still be read: ${name}`, () =>
      calls(
        (response) => response.writeHead(429, { "content-type": "application/json; charset=utf-8" }).end(noMoney),
        (response, seen) =>
          Effect.gen(function*() {
            assert.strictEqual(seen.sends, 1)
            assert.strictEqual(response.status, 429)
            assert.strictEqual(response.headers["content-type"], "application/json; charset=utf-8")
            assert.strictEqual(yield* read(response), noMoney)
          })
      ))
  }

  it.effect.each<[string, number, string, string, number]>([
    ["another 429", 429, "application/json", tooMany, 3],
    [
      "a problem type that is final",
      429,
      "application/problem+json",
      problem({ type: "https://iana.org/assignments/http-problem-types#abnormal-usage-detected" }),
      1
    ],
    [
      "a problem type that is not",
      503,
      "application/problem+json",
      problem({ type: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity" }),
      3
    ],
    ["a body that does not say that it is JSON", 429, "text/plain", noMoney, 3],
    ["an empty body", 429, "application/json", "", 3],
    ["a body that is broken", 429, "application/json", "{\"error\":", 3],
    ["a status whose body says nothing", 500, "application/json", noMoney, 3]
  ])("%s", ([, status, type, body, sends]) =>
    calls(
      (response) => response.writeHead(status, { "content-type": type }).end(body),
      (response, seen) =>
        Effect.gen(function*() {
          assert.strictEqual(seen.sends, sends)
          assert.strictEqual(yield* response.text, body)
        })
    ))

  it.effect("in pieces, and compressed", () =>
    calls(
      (response) => {
        const zipped = zlib.gzipSync(noMoney)
        response.writeHead(429, { "content-type": "application/json", "content-encoding": "gzip" })
        response.write(zipped.subarray(0, 10))
        setTimeout(() => response.end(zipped.subarray(10)), 20)
      },
      (response, seen) =>
        Effect.gen(function*() {
          // node:http leaves a body compressed.
          assert.strictEqual(seen.sends, client === "fetch" ? 1 : 3)
          assert.include(client === "fetch" ? yield* response.text : noMoney, noMoney)
        })
    ))

  it.effect("a body that is too long is not parsed, and its reader gets all of it", () => {
    const long = problem({ error: { code: "insufficient_quota", message: "x".repeat(300_000) } })
    return calls(
      (response) => response.writeHead(429, { "content-type": "application/json" }).end(long),
      (response, seen) =>
        Effect.gen(function*() {
          assert.strictEqual(seen.sends, 3)
          assert.strictEqual(yield* response.text, long)
        })
    )
  })

  it.effect("a body that does not arrive delays a retry by a second, and its connection is closed", () =>
    Effect.gen(function*() {
      const { seen, url } = yield* serve((response, nth) => {
        response.writeHead(nth === 1 ? 429 : 200, { "content-type": "application/json" })
        response.write("{")
        if (nth > 1) response.end("}")
      })
      const clock = yield* countedClock
      const client = RetryHttp.retry(yield* HttpClient.HttpClient, policy)
      const call = yield* Effect.forkChild(clock.provide(client.get(url)))
      yield* until(() => clock.asleep === 1)
      yield* TestClock.adjust(999)
      assert.deepStrictEqual([seen.sends, clock.asleep], [1, 1])
      yield* TestClock.adjust(1)
      assert.strictEqual(clock.asleep, 0)
      assert.strictEqual(yield* (yield* Fiber.join(call)).text, "{}")
      yield* until(() => seen.aborted === 1)
      assert.strictEqual(seen.sends, 2)
    }).pipe(Effect.scoped, Effect.provide(layer)))

  it.effect("the rest of a body that comes late goes to the reader of the response", () =>
    Effect.gen(function*() {
      let end = () => {}
      const { seen, url } = yield* serve((response, nth) => {
        response.writeHead(429, { "content-type": "application/json" })
        response.write("[1,")
        if (nth === 3) end = () => response.end("2]")
        else response.end("2]")
      })
      const clock = yield* countedClock
      const client = RetryHttp.retry(yield* HttpClient.HttpClient, policy)
      const call = yield* Effect.forkChild(clock.provide(client.get(url)))
      yield* until(() => seen.sends === 3 && clock.asleep === 1)
      yield* TestClock.adjust(1000)
      const response = yield* Fiber.join(call)
      end()
      assert.deepStrictEqual(yield* response.json, [1, 2])
      assert.strictEqual(seen.sends, 3)
    }).pipe(Effect.scoped, Effect.provide(layer)))

  /** Calls of a server that stalls after the first byte of JSON, each decided a second later. */
  const stalled = <A>(count: number, use: (response: HttpClientResponse) => A) =>
    Effect.gen(function*() {
      const ends: Array<() => void> = []
      const { seen, url } = yield* serve((response) => {
        response.writeHead(429, { "content-type": "application/json" })
        response.write("[1,")
        ends.push(() => response.end("2]"))
      })
      const clock = yield* countedClock
      const client = RetryHttp.retry(yield* HttpClient.HttpClient, RetryPolicy.maxAttempts(policy, 1))
      const calls = yield* Effect.forEach(Array.from({ length: count }), () =>
        Effect.forkChild(clock.provide(Effect.map(client.get(url), use))))
      yield* until(() =>
        seen.sends === count && clock.asleep === count
      )
      yield* TestClock.adjust("1 second")
      return { seen, ends, results: yield* Effect.forEach(calls, Fiber.join) }
    })

  it.effect("the connections of bodies that stall end with the responses that nobody reads", () =>
    Effect.gen(function*() {
      const { results, seen } = yield* stalled(5, ({ status }) => status)
      assert.deepStrictEqual(results, [429, 429, 429, 429, 429])
      yield* until(() => {
        gc()
        return seen.aborted === 5
      })
    }).pipe(Effect.scoped, Effect.provide(layer)))

  it.effect("a late body is whole for its reader, also where nothing else refers to the response", () =>
    Effect.gen(function*() {
      const late = yield* stalled(2, (response) => [response.text, Stream.mkString(Stream.decodeText(response.stream))])
      for (let n = 0; n < 5; n++) {
        gc()
        yield* turn
      }
      for (const end of late.ends) end()
      const bodies = late.results.map(([text, stream], index) => index === 0 ? text! : stream!)
      assert.deepStrictEqual(yield* Effect.all(bodies), ["[1,2]", "[1,2]"])
    }).pipe(Effect.scoped, Effect.provide(layer)))

  it.effect("a reader that is interrupted closes the connection", () =>
    Effect.gen(function*() {
      const { results, seen } = yield* stalled(1, (response) => response)
      const reading = yield* Effect.forkChild(results[0]!.text, { startImmediately: true })
      yield* turn
      yield* Fiber.interrupt(reading)
      yield* until(() => seen.aborted === 1)
      assert.strictEqual(results[0]!.status, 429)
    }).pipe(Effect.scoped, Effect.provide(layer)))

  it.effect("one socket serves all sends after throttling", () =>
    calls(
      (response, nth) => response.writeHead(nth < 3 ? 429 : 200, { "content-type": "application/json" }).end(tooMany),
      (response, seen) =>
        Effect.gen(function*() {
          yield* response.text
          assert.deepStrictEqual([seen.sends, seen.sockets.size], [3, 1])
        })
    ))

  it.effect("a call that is interrupted while it reads closes its connection", () =>
    Effect.gen(function*() {
      const { seen, url } = yield* serve((response) => {
        response.writeHead(429, { "content-type": "application/json" })
        response.write("{")
      })
      const client = RetryHttp.retry(yield* HttpClient.HttpClient, policy)
      const clock = yield* countedClock
      const call = yield* Effect.forkChild(clock.provide(client.get(url)))
      yield* until(() => clock.asleep === 1)
      yield* Fiber.interrupt(call)
      yield* until(() => seen.aborted === 1)
      assert.deepStrictEqual([seen.sends, clock.asleep], [1, 0])
    }).pipe(Effect.scoped, Effect.provide(layer)))
})
