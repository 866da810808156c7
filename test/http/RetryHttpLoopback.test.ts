import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { assert, describe, it } from "@effect/vitest"
import { Backoff, Hedge, RetryPolicy, withRetry } from "effect-retry"
import * as RetryBudget from "effect-retry/RetryBudget"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as http from "node:http"
import type * as net from "node:net"
import { countedClock } from "../reliability/utils/clocks.ts"
import { turn, until } from "../utils/until.ts"

type Handler = (
  request: http.IncomingMessage,
  response: http.ServerResponse,
  /** Which request it is, from 1. */
  nth: number
) => void

interface Seen {
  /** The number of the socket that each request came over. */
  readonly sockets: Array<number>
  readonly bodies: Array<string>
  /** Requests whose client went away before the response was finished. */
  aborted: number
}

/** A server on loopback that counts, for each request, how many sockets there have been. */
const serve = (handler: Handler) =>
  Effect.gen(function*() {
    const known: Array<net.Socket> = []
    const seen: Seen = { sockets: [], bodies: [], aborted: 0 }
    const server = http.createServer((request, response) => {
      if (!known.includes(request.socket)) known.push(request.socket)
      const nth = seen.sockets.push(known.indexOf(request.socket) + 1)
      let body = ""
      request.on("data", (chunk) => body += String(chunk))
      request.on("end", () => seen.bodies.push(body))
      response.on("close", () => {
        if (!response.writableFinished) seen.aborted++
      })
      handler(request, response, nth)
    })
    yield* Effect.acquireRelease(
      Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
      () =>
        Effect.callback<void>((resume) => {
          server.close(() => resume(Effect.void))
          server.closeAllConnections()
        })
    )
    const { port } = server.address() as net.AddressInfo
    return { seen, url: `http://127.0.0.1:${port}/` }
  })

/** Answers with each of the statuses in turn, the body in one piece with the head, or open until the client goes. */
const statuses = (answers: ReadonlyArray<number>, body: "whole" | "open" = "whole"): Handler => (_, response, nth) => {
  const status = answers[nth - 1] ?? 200
  response.writeHead(status, { "content-type": "text/plain" })
  if (status >= 400 && body === "open") response.write(`body ${nth}`)
  else response.end(`body ${nth}`)
}

const latch = () => {
  let open = () => {}
  const promise = new Promise<void>((resolve) => {
    open = resolve
  })
  return { promise, open }
}

const policy = Backoff.fixed("20 millis").pipe(RetryPolicy.maxAttempts(4))

/** Runs a call. Its backoffs pass when nothing else sleeps: when the body that was refused has been read. */
const driven = <A, E, R>(call: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const clock = yield* countedClock
    const fiber = yield* Effect.forkChild(clock.provide(call))
    while (fiber.pollUnsafe() === undefined) {
      yield* turn
      if (clock.asleep === 1) yield* TestClock.adjust("20 millis")
    }
    return yield* Fiber.join(fiber)
  })

/** What sends over a connection of its own, in Node: an `Agent` of the kind that `fetch` uses. */
const newConnection: RetryHttp.Options["newConnection"] = (send) =>
  Effect.suspend(() => {
    const shared = Reflect.get(globalThis, Symbol.for("undici.globalDispatcher.1"))
    const dispatcher: unknown = new shared.constructor()
    return Effect.provideService(send, FetchHttpClient.RequestInit, { dispatcher } as RequestInit)
  })

const clients: ReadonlyArray<readonly [string, Layer.Layer<HttpClient.HttpClient>]> = [
  ["fetch", FetchHttpClient.layer],
  ["node:http", NodeHttpClient.layerNodeHttpOptions({ keepAlive: true })]
]

for (const [name, layer] of clients) {
  describe(`RetryHttp over a real connection of ${name}`, () => {
    const socketsOf = (handler: Handler, options?: RetryHttp.Options) =>
      Effect.gen(function*() {
        const { seen, url } = yield* serve(handler)
        const client = RetryHttp.retry(yield* HttpClient.HttpClient, policy, options)
        const response = yield* driven(client.get(url))
        assert.strictEqual(yield* response.text, `body ${seen.sockets.length}`)
        return seen.sockets
      }).pipe(Effect.scoped, Effect.provide(layer))

    it.effect("uses one socket for all attempts after throttling", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* socketsOf(statuses([429, 429, 429, 200])), [1, 1, 1, 1])
      }))

    it.effect("uses another socket after every transient failure", () =>
      Effect.gen(function*() {
        const sockets = yield* socketsOf(statuses([500, 502, 503, 200]), name === "fetch" ? { newConnection } : {})
        assert.deepStrictEqual(sockets, [1, 2, 3, 4])
      }))

    it.live("closes a response that has not arrived in full", () =>
      Effect.gen(function*() {
        const { seen, url } = yield* serve(statuses([503, 503, 200], "open"))
        const response = yield* RetryHttp.retry(yield* HttpClient.HttpClient, policy).get(url)
        assert.strictEqual(response.status, 200)
        assert.deepStrictEqual(seen.sockets, [1, 2, 3])
        yield* until(() => seen.aborted === 2)
      }).pipe(Effect.scoped, Effect.provide(layer)))

    /** The first request hangs. The second ends its response when the first is gone, or when it is read. */
    const hedging = (scoped: boolean) =>
      Effect.gen(function*() {
        const gone = latch()
        const read = latch()
        const { seen, url } = yield* serve((_, response, nth) => {
          if (nth === 1) return void response.on("close", gone.open)
          response.write("the beginning, ")
          void (scoped ? read : gone).promise.then(() => response.end("the end"))
        })
        const budget = yield* RetryBudget.bucket()
        const hedged = RetryHttp.hedge(yield* HttpClient.HttpClient, { after: 0 })
        const text = Effect.gen(function*() {
          const response = yield* (scoped ? HttpClient.withScope(hedged) : hedged).get(url)
          if (scoped) assert.strictEqual(seen.aborted, 0)
          read.open()
          return yield* response.text
        })
        const whole = yield* Effect.provide(Effect.scoped(text), Hedge.layer({ budget }))
        assert.strictEqual(whole, "the beginning, the end")
        yield* Effect.promise(() => gone.promise)
        assert.deepStrictEqual([seen.sockets.length, seen.aborted], [2, 1])
      }).pipe(Effect.scoped, Effect.provide(layer))

    it.live("aborts the request that loses while the body of the winner is read", () => hedging(false))

    it.live("aborts the request that loses when the scope of both closes", () => hedging(true))

    it.effect("uses one socket for everything as retry behavior 2.1 does, if configured so", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(
          yield* socketsOf(statuses([503, 429, 500, 200]), { reuseConnection: "always" }),
          [1, 1, 1, 1]
        )
      }))

    it.effect("hands over the last response, its body still to be read", () =>
      Effect.gen(function*() {
        const sockets = yield* socketsOf(statuses([429, 429, 429, 429]))
        assert.strictEqual(sockets.length, 4)
      }))

    it.live("resends a GET when the connection breaks, but not a POST", () =>
      Effect.gen(function*() {
        const { seen, url } = yield* serve((request, response, nth) => {
          if (nth < 3 || request.method === "POST") request.socket.resetAndDestroy()
          else response.end("ok")
        })
        const client = RetryHttp.retry(yield* HttpClient.HttpClient, policy)
        assert.strictEqual(yield* Effect.flatMap(client.get(url), (response) => response.text), "ok")
        assert.strictEqual(seen.sockets.length, 3)
        const error = yield* Effect.flip(client.post(url, { body: HttpBody.text("once") }))
        assert.strictEqual(error.reason._tag, "TransportError")
        assert.strictEqual(seen.sockets.length, 4)
      }).pipe(Effect.scoped, Effect.provide(layer)))

    it.live("resends a POST that no server was there to accept", () =>
      Effect.gen(function*() {
        const url = yield* Effect.scoped(Effect.map(serve(statuses([])), ({ url }) => url))
        let attempts = 0
        const counting = HttpClient.transformResponse(
          yield* HttpClient.HttpClient,
          (send) => Effect.andThen(Effect.sync(() => void attempts++), send)
        )
        yield* Effect.flip(RetryHttp.retry(counting, policy).post(url))
        assert.strictEqual(attempts, 4)
      }).pipe(Effect.provide(layer)))

    /** A POST that a server answers with this redirect; what the redirect leads to fails with each of the statuses in turn. */
    const redirected = (redirect: number, failures: ReadonlyArray<number>, follow: "below" | "above" | "fetch") =>
      Effect.gen(function*() {
        const requests: Array<string> = []
        const { url } = yield* serve((request, response) => {
          requests.push(`${request.method} ${request.url}`)
          if (request.url === "/") response.writeHead(redirect, { location: "/next" }).end()
          else response.writeHead(failures[requests.filter((line) => line.endsWith("/next")).length - 1] ?? 200).end()
        })
        const client = yield* HttpClient.HttpClient
        const retry = RetryHttp.retry(policy)
        const clients = {
          below: retry(HttpClient.followRedirects(client)),
          above: HttpClient.followRedirects(retry(client)),
          fetch: retry(client)
        }
        const { status } = yield* follow === "fetch"
          ? clients.fetch.post(url)
          : Effect.provideService(clients[follow].post(url), FetchHttpClient.RequestInit, { redirect: "manual" })
        return [status, ...requests]
      }).pipe(Effect.scoped, Effect.provide(layer))

    it.live("sends a POST once if it was redirected to something else, which fails", () =>
      Effect.gen(function*() {
        for (const redirect of [301, 302, 303]) {
          for (const failure of [429, 503]) {
            const once = [failure, "POST /", "GET /next"]
            assert.deepStrictEqual(yield* redirected(redirect, [failure], "below"), once)
            if (name === "fetch") assert.deepStrictEqual(yield* redirected(redirect, [failure], "fetch"), once)
          }
        }
      }))

    it.live("sends a POST once if it was redirected to a closed port", () =>
      Effect.gen(function*() {
        const nobody = yield* Effect.scoped(Effect.map(serve(statuses([])), ({ url }) => url))
        const { seen, url } = yield* serve((_, response) => void response.writeHead(303, { location: nobody }).end())
        const client = RetryHttp.retry(HttpClient.followRedirects(yield* HttpClient.HttpClient), policy)
        const post = Effect.provideService(client.post(url), FetchHttpClient.RequestInit, { redirect: "manual" })
        const error = yield* Effect.flip(post)
        assert.strictEqual(error.reason._tag, "TransportError")
        assert.strictEqual(seen.sockets.length, 1)
      }).pipe(Effect.scoped, Effect.provide(layer)))

    it.live("resends a POST that carries a key and was redirected to something else", () =>
      Effect.gen(function*() {
        const sent: Array<string> = []
        const { url } = yield* serve((request, response) => {
          sent.push(`${request.method} ${request.headers["idempotency-key"]}`)
          if (request.url === "/") response.writeHead(303, { location: "/next" }).end()
          else response.writeHead(sent.length === 2 ? 503 : 200).end()
        })
        const client = RetryHttp.retry(HttpClient.followRedirects(yield* HttpClient.HttpClient), policy)
        const { status } = yield* client.post(url, { headers: { "idempotency-key": "k" } })
        assert.strictEqual(status, 200)
        assert.deepStrictEqual(sent, ["POST k", "GET k", "POST k", "GET k"])
      }).pipe(Effect.scoped, Effect.provide(layer)))

    it.live("resends only what fails if redirects are followed above it", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* redirected(303, [503, 429], "above"), [
          200,
          "POST /",
          "GET /next",
          "GET /next",
          "GET /next"
        ])
      }))

    it.live("resends a POST that was redirected as a POST, and turned away there", () =>
      Effect.gen(function*() {
        const twice = [200, "POST /", "POST /next", "POST /", "POST /next"]
        assert.deepStrictEqual(yield* redirected(307, [429], "below"), twice)
        assert.deepStrictEqual(yield* redirected(307, [503], "below"), [503, "POST /", "POST /next"])
      }))

    it.live("does not mistake an unusual URL for a redirect", () =>
      Effect.gen(function*() {
        const { seen, url } = yield* serve(statuses([429, 200]))
        const post = HttpClientRequest.post(`${url}a b/%7e/../ü?q=1 2`, { urlParams: { x: "ä&" }, hash: "part" })
        const response = yield* RetryHttp.retry(yield* HttpClient.HttpClient, policy).execute(post)
        assert.strictEqual(response.status, 200)
        assert.strictEqual(seen.sockets.length, 2)
      }).pipe(Effect.scoped, Effect.provide(layer)))

    it.live("does not refetch a body that breaks off", () =>
      Effect.gen(function*() {
        const { seen, url } = yield* serve((_, response) => {
          response.writeHead(200, { "content-length": "1000" })
          response.write("half")
          setTimeout(() => response.destroy(), 20)
        })
        const response = yield* RetryHttp.retry(yield* HttpClient.HttpClient, policy).get(url)
        const error = yield* Effect.flip(response.text)
        assert.strictEqual(error.reason._tag, "DecodeError")
        assert.strictEqual(seen.sockets.length, 1)
      }).pipe(Effect.scoped, Effect.provide(layer)))

    it.live("leaves refetching a body that breaks off to a retry around the reading", () =>
      Effect.gen(function*() {
        const { seen, url } = yield* serve((_, response, nth) => {
          response.writeHead(200, { "content-length": "4" })
          response.write("ha")
          setTimeout(() => nth < 3 ? response.destroy() : response.end("lf"), 20)
        })
        const client = yield* HttpClient.HttpClient
        const read = Effect.flatMap(client.get(url), (response) => response.text)
        assert.strictEqual(yield* withRetry(read, RetryPolicy.whileRetryable(policy)), "half")
        assert.strictEqual(seen.sockets.length, 3)
      }).pipe(Effect.scoped, Effect.provide(layer)))

    it.effect("aborts an attempt at its limit, and sends the next over another socket", () =>
      Effect.gen(function*() {
        const { seen, url } = yield* serve((_, response, nth) => {
          if (nth > 1) response.end("ok")
        })
        const clock = yield* countedClock
        const client = RetryHttp.retry(yield* HttpClient.HttpClient, policy, { attemptTimeout: "100 millis" })
        const call = yield* Effect.forkChild(clock.provide(client.get(url)))
        yield* until(() => seen.sockets.length === 1)
        yield* TestClock.adjust(99)
        assert.strictEqual(clock.sleeps, 1)
        yield* TestClock.adjust(1)
        yield* until(() => seen.aborted === 1 && clock.sleeps === 2)
        yield* TestClock.adjust("20 millis")
        assert.strictEqual(yield* (yield* Fiber.join(call)).text, "ok")
        assert.deepStrictEqual(seen.sockets, [1, 2])
      }).pipe(Effect.scoped, Effect.provide(layer)))

    it.effect("aborts the request that is interrupted", () =>
      Effect.gen(function*() {
        const { seen, url } = yield* serve((_, response, nth) => {
          if (nth === 1) response.writeHead(503).end()
        })
        const client = RetryHttp.retry(yield* HttpClient.HttpClient, policy)
        const clock = yield* countedClock
        const fiber = yield* Effect.forkChild(clock.provide(client.get(url)))
        yield* until(() => clock.asleep === 1)
        yield* TestClock.adjust("20 millis")
        yield* until(() => seen.sockets.length === 2)
        yield* Fiber.interrupt(fiber)
        yield* until(() => seen.aborted === 1)
        assert.deepStrictEqual([seen.sockets.length, clock.asleep], [2, 0])
      }).pipe(Effect.scoped, Effect.provide(layer)))

    const upload = (body: HttpBody.HttpBody) =>
      Effect.gen(function*() {
        const { seen, url } = yield* serve((request, response, nth) => {
          request.on("end", () => response.writeHead(nth < 3 ? 429 : 200).end())
        })
        const put = HttpClientRequest.put(url).pipe(HttpClientRequest.setBody(body))
        const response = yield* RetryHttp.retry(yield* HttpClient.HttpClient, policy).execute(put)
        return { status: response.status, bodies: seen.bodies }
      }).pipe(Effect.scoped, Effect.provide(layer))

    it.live("uploads a stream once", () =>
      Effect.gen(function*() {
        const body = HttpBody.stream(Stream.make(new TextEncoder().encode("once")))
        assert.deepStrictEqual(yield* upload(body), { status: 429, bodies: ["once"] })
      }))

    it.live("uploads what a factory makes, made for each attempt", () =>
      Effect.gen(function*() {
        let made = 0
        const body = RetryHttp.bodyFactory(() => Stream.make(new TextEncoder().encode(`body ${++made}`)))
        assert.deepStrictEqual(yield* upload(body), { status: 200, bodies: ["body 1", "body 2", "body 3"] })
      }))
  })
}

describe("RetryHttp over fetch", () => {
  const bad: ReadonlyArray<readonly [string, HttpClientRequest.HttpClientRequest]> = [
    ["value of a header", HttpClientRequest.get("http://127.0.0.1:9/", { headers: { a: "1\n2" } })],
    ["name of a header", HttpClientRequest.get("http://127.0.0.1:9/", { headers: { "a b": "1" } })],
    ["scheme", HttpClientRequest.get("ftp://127.0.0.1:9/")],
    ["URL, with a password", HttpClientRequest.get("http://user:password@127.0.0.1:9/")],
    ["port", HttpClientRequest.get("http://127.0.0.1:1/")],
    ["method", HttpClientRequest.make("TRACE")("http://127.0.0.1:9/")]
  ]
  for (const [name, request] of bad) {
    it.live(`does not retry what fetch refuses to send: a ${name}`, () =>
      Effect.gen(function*() {
        let attempts = 0
        const counting = HttpClient.transformResponse(
          yield* HttpClient.HttpClient,
          (send) => Effect.andThen(Effect.sync(() => void attempts++), send)
        )
        const error = yield* Effect.flip(RetryHttp.retry(counting, policy).execute(request))
        assert.strictEqual(error.reason._tag, "TransportError")
        assert.strictEqual(attempts, 1)
      }).pipe(Effect.provide(FetchHttpClient.layer)))
  }
})
