import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { assert, describe, it } from "@effect/vitest"
import { AwsModes, Backoff, RetryPolicy, RetryQuota } from "effect-retry"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as Latch from "effect/Latch"
import * as fs from "node:fs"
import * as http from "node:http"
import * as net from "node:net"
import * as path from "node:path"
import { freePort, startNginx, startServer, temporaryFolder } from "../utils/peers.ts"

/** nginx that lets 20 requests a second through to itself, and asks all others to come again in a second. */
const throttling = (port: number, upstream: number) => `
  limit_req_zone $server_port zone=rate:1m rate=20r/s;
  limit_req_zone $server_port zone=slow:1m rate=1r/m;
  server {
    listen 127.0.0.1:${port};
    limit_req_status 429;
    location / {
      limit_req zone=rate burst=4 nodelay;
      error_page 429 = @throttled;
      proxy_pass http://127.0.0.1:${upstream};
      add_header x-connection $connection always;
    }
    location /slow {
      limit_req zone=slow;
      error_page 429 = @throttled;
      proxy_pass http://127.0.0.1:${upstream};
    }
    location @throttled {
      internal;
      add_header retry-after 1 always;
      add_header x-connection $connection always;
      return 429 "slow down";
    }
    location /broken {
      add_header x-connection $connection always;
      return 503 "broken";
    }
  }
  server { listen 127.0.0.1:${upstream}; location / { return 200 "ok"; } }`

const startThrottling = Effect.gen(function*() {
  const [port, upstream] = [yield* freePort, yield* freePort]
  yield* startNginx(throttling(port, upstream), port)
  return `http://127.0.0.1:${port}`
})

interface Sent {
  readonly at: number
  readonly status: number
  readonly connection: string | undefined
}

/** The client, and what it sent. */
const counted = <E, R>(client: HttpClient.HttpClient.With<E, R>) => {
  const sends: Array<Sent> = []
  const counting = HttpClient.tap(client, (response) =>
    Effect.map(Clock.currentTimeMillis, (at) => {
      sends.push({ at, status: response.status, connection: response.headers["x-connection"] })
    }))
  return { client: counting, sends }
}

const layerNode = NodeHttpClient.layerNodeHttpOptions({ keepAlive: true })

describe("RetryHttp with nginx", () => {
  it.live("gets 40 requests through a limit of 20 a second, none of them before its second has passed", () =>
    Effect.gen(function*() {
      const url = yield* startThrottling
      const base = yield* HttpClient.HttpClient
      const policy = Backoff.exponential("100 millis", 2, { jitter: "full" }).pipe(
        RetryPolicy.honorRetryAfter({ atMost: "5 seconds" }),
        RetryPolicy.maxAttempts(10)
      )
      const calls = yield* Effect.forEach(
        Array.from({ length: 40 }),
        () =>
          Effect.gen(function*() {
            const { client, sends } = counted(base)
            const response = yield* RetryHttp.retry(client, policy, { hintSpread: 1 }).get(url)
            assert.strictEqual(response.status, 200)
            yield* response.text
            return sends
          }),
        { concurrency: "unbounded" }
      )
      const gaps = calls.flatMap((sends) => sends.slice(1).map((send, index) => send.at - sends[index]!.at))
      const total = calls.flat().length
      console.log(`limit_req: 40 calls, ${total} sends, ${gaps.length} retries after ${Math.min(...gaps)} ms or more`)
      assert.isAbove(gaps.length, 0)
      assert.isAtLeast(Math.min(...gaps), 990)
      // They are spread at random over the second after that.
      assert.isAbove(Math.max(...gaps) - Math.min(...gaps), 200)
      assert.isBelow(total, 40 * 3)
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer)))

  const connectionsOf = (where: string, options?: RetryHttp.Options) =>
    Effect.gen(function*() {
      const url = yield* startThrottling
      const { client, sends } = counted(yield* HttpClient.HttpClient)
      const policy = Backoff.fixed("20 millis").pipe(RetryPolicy.maxAttempts(3))
      // The one request that is let through in a minute.
      yield* Effect.flatMap((yield* HttpClient.HttpClient).get(`${url}/slow`), (response) => response.text)
      yield* Effect.flatMap(RetryHttp.retry(client, policy, options).get(url + where), (response) => response.text)
      const connections = new Set(sends.map(({ connection }) => connection))
      return [sends.map(({ status }) => status), connections.size] as const
    }).pipe(Effect.scoped, Effect.provide(layerNode))

  it.live("keeps its connection after throttling", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* connectionsOf("/slow"), [[429, 429, 429], 1])
      assert.deepStrictEqual(yield* connectionsOf("/slow", { reuseConnection: "never" }), [[429, 429, 429], 3])
    }))

  it.live("leaves its connection after a 503, and keeps it if configured", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* connectionsOf("/broken"), [[503, 503, 503], 3])
      assert.deepStrictEqual(yield* connectionsOf("/broken", { reuseConnection: "always" }), [[503, 503, 503], 1])
    }))

  it.live("gets a GET through when what is behind nginx comes up, and does not repeat a POST after its 502", () =>
    Effect.gen(function*() {
      const [port, upstream] = [yield* freePort, yield* freePort]
      yield* startNginx(
        `server { listen 127.0.0.1:${port}; location / { proxy_pass http://127.0.0.1:${upstream}; } }`,
        port
      )
      const url = `http://127.0.0.1:${port}/`
      const { client, sends } = counted(yield* HttpClient.HttpClient)
      const retrying = RetryHttp.retry(client, Backoff.fixed("100 millis").pipe(RetryPolicy.maxAttempts(30)))
      assert.strictEqual((yield* retrying.post(url)).status, 502)
      assert.strictEqual(sends.length, 1)
      yield* Effect.forkScoped(Effect.delay(upstreamOn(upstream), "500 millis"))
      const response = yield* retrying.get(url)
      assert.strictEqual(response.status, 200)
      assert.isAtLeast(sends.length, 4)
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer)))

  it.live("does not repeat a POST that nginx has passed on, though its 503 asks for it", () =>
    Effect.gen(function*() {
      const [port, upstream] = [yield* freePort, yield* freePort]
      let passedOn = 0
      yield* upstreamOn(upstream, 2000, () => void passedOn++)
      yield* startNginx(
        `server {
          listen 127.0.0.1:${port};
          location /orders {
            proxy_pass http://127.0.0.1:${upstream};
            proxy_read_timeout 100ms;
            error_page 504 =503 @later;
          }
          location @later { internal; add_header retry-after 0 always; return 503 "later"; }
        }`,
        port
      )
      const policy = Backoff.fixed("20 millis").pipe(RetryPolicy.maxAttempts(3))
      const client = RetryHttp.retry(yield* HttpClient.HttpClient, policy)
      const response = yield* client.post(`http://127.0.0.1:${port}/orders`)
      assert.deepStrictEqual([response.status, response.headers["retry-after"], passedOn], [503, "0", 1])
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer)))
})

/** A server that answers `delayMillis` after `onRequest`. */
const upstreamOn = (port: number, delayMillis = 0, onRequest: () => void | Promise<void> = () => {}) =>
  Effect.acquireRelease(
    Effect.callback<http.Server>((resume) => {
      const server = http.createServer(async (_, response) => {
        await onRequest()
        setTimeout(() => response.end("ok"), delayMillis)
      })
      server.listen(port, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
  )

describe("RetryHttp with haproxy", () => {
  it.live("gets every call through a queue that answers 503, within its quota", () =>
    Effect.gen(function*() {
      const [port, upstream] = [yield* freePort, yield* freePort]
      const folder = yield* temporaryFolder
      const config = path.join(folder, "haproxy.cfg")
      fs.writeFileSync(
        config,
        `defaults
  mode http
  timeout connect 60s
  timeout client 60s
  timeout server 60s
  timeout queue 2s
listen queue
  bind 127.0.0.1:${port}
  server one 127.0.0.1:${upstream} maxconn 1
`
      )
      // The first request is answered when as many have been refused as wait behind it: on any machine, one time each.
      const [calls, waiting] = [20, 19]
      const refusedAll = Latch.makeUnsafe()
      yield* upstreamOn(upstream, 0, () => Effect.runPromise(refusedAll.await))
      yield* startServer("haproxy", ["-db", "-q", "-f", config], port)
      const { client, sends } = counted(yield* HttpClient.HttpClient)
      const refused = () => sends.filter(({ status }) => status === 503).length
      const watched = HttpClient.tap(client, () => refused() < waiting ? Effect.void : refusedAll.open)
      const quota = yield* RetryQuota.make()
      const policy = AwsModes.standard2026({ base: "500 millis", maxAttempts: 8 })
      const statuses = yield* Effect.forEach(
        Array.from({ length: calls }),
        () => Effect.map(RetryHttp.retry(watched, policy).get(`http://127.0.0.1:${port}/`), ({ status }) => status),
        { concurrency: "unbounded" }
      ).pipe(Effect.provideService(RetryQuota.RetryQuota, quota))
      console.log(
        `queue: ${calls} calls, ${sends.length} sends, ${refused()} of them 503, balance ${yield* quota.balance}`
      )
      assert.isAtLeast(refused(), waiting)
      assert.deepStrictEqual(new Set(statuses), new Set([200]))
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer)))
})

type Treatment = "through" | "black hole" | "reset" | "reset in the body"

/** A TCP proxy that treats each connection as configured. */
const proxy = (target: number, treatments: ReadonlyArray<Treatment>) =>
  Effect.gen(function*() {
    const port = yield* freePort
    const sockets = new Set<net.Socket>()
    let connections = 0
    const server = net.createServer((socket) => {
      const treatment = treatments[connections++] ?? "through"
      sockets.add(socket)
      socket.on("error", () => {})
      if (treatment === "black hole") return void socket.resume()
      if (treatment === "reset") return void socket.once("data", () => socket.resetAndDestroy())
      const onward = net.connect(target, "127.0.0.1")
      sockets.add(onward)
      onward.on("error", () => socket.destroy())
      socket.on("close", () => onward.destroy())
      socket.pipe(onward)
      if (treatment === "through") return void onward.pipe(socket)
      onward.once("data", (chunk: Buffer) => {
        socket.write(chunk.subarray(0, chunk.length - 10), () => setTimeout(() => socket.resetAndDestroy(), 20))
      })
    })
    yield* Effect.acquireRelease(
      Effect.callback<void>((resume) => void server.listen(port, "127.0.0.1", () => resume(Effect.void))),
      () =>
        Effect.callback<void>((resume) => {
          server.close(() => resume(Effect.void))
          for (const socket of sockets) socket.destroy()
        })
    )
    return { url: `http://127.0.0.1:${port}/`, connections: () => connections }
  })

for (const [name, layer] of [["fetch", FetchHttpClient.layer], ["node:http", layerNode]] as const) {
  describe(`RetryHttp with a bad network before nginx, by ${name}`, () => {
    const through = (treatments: ReadonlyArray<Treatment>, method: "get" | "post" = "get") =>
      Effect.gen(function*() {
        const port = yield* freePort
        yield* startNginx(
          `server { listen 127.0.0.1:${port}; location / { return 200 "twenty bytes or more"; } }`,
          port
        )
        const { connections, url } = yield* proxy(port, treatments)
        const policy = Backoff.fixed("20 millis").pipe(RetryPolicy.maxAttempts(4))
        const client = RetryHttp.retry(yield* HttpClient.HttpClient, policy, { attemptTimeout: "200 millis" })
        const outcome = yield* client[method](url).pipe(
          Effect.flatMap((response) => response.text),
          Effect.catchTag("HttpClientError", ({ reason }) => Effect.succeed(reason._tag))
        )
        return [outcome, connections()] as const
      }).pipe(Effect.scoped, Effect.provide(layer))

    it.live("gets through after a black hole and a reset", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* through(["black hole", "reset"]), ["twenty bytes or more", 3])
      }))

    it.live("sends a POST into a black hole, or a reset, once", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* through(["black hole"], "post"), ["TransportError", 1])
        assert.deepStrictEqual(yield* through(["reset"], "post"), ["TransportError", 1])
      }))

    it.live("refetches nothing whose body has begun", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* through(["reset in the body"]), ["DecodeError", 1])
      }))
  })
}
