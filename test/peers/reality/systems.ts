import type * as Simulator from "@effect-retry/lab/Simulator"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { freePort, type PeerError, startNginx, startServer, temporaryFolder } from "../../utils/peers.ts"
import { capacity, type Load } from "./client.ts"
import type { SubjectName } from "./policies.ts"

/** Half of what a request and its answer take between two processes, in milliseconds: sockets and event loops. */
export const network = 0.5

/** A real system, and its description for the simulator. */
export interface System {
  readonly name: string
  readonly policies: ReadonlyArray<SubjectName>
  /** Starts it; returns where to send what, what happens meanwhile, and the scenario of the same. */
  readonly start: Effect.Effect<Started, PeerError, Scope.Scope>
}

export interface Started {
  readonly load: Load
  /** What goes wrong, from the first call on. */
  readonly trouble: Effect.Effect<void>
  readonly service: Omit<Simulator.ScenarioInput["services"][number], "name">
}

const program = fileURLToPath(new URL("./server.ts", import.meta.url))

export const serve = (port: number, kind: string, ...numbers: ReadonlyArray<number>) =>
  startServer(process.execPath, ["--import", "tsx", program, kind, `${port}`, ...numbers.map(String)], port)

export const pass = "proxy_http_version 1.1; proxy_set_header Connection '';"

/** nginx that throttles, before a server that has nothing to do. */
const throttling = Effect.gen(function*() {
  const [port, upstream] = [yield* freePort, yield* freePort]
  yield* serve(upstream, "pool", 1000, 0, 0)
  yield* startNginx(
    `limit_req_zone $server_port zone=rate:1m rate=40r/s;
    upstream pool { server 127.0.0.1:${upstream}; keepalive 64; }
    server {
      listen 127.0.0.1:${port};
      limit_req_status 429;
      location / { limit_req zone=rate burst=20 nodelay; proxy_pass http://pool; ${pass} }
    }`,
    port
  )
  return `http://127.0.0.1:${port}/`
})

const throttled = (seconds: number): System["start"] =>
  Effect.map(throttling, (url): Started => ({
    load: { url, rate: 45, seconds, timeoutMillis: 1000 },
    trouble: Effect.void,
    service: { latency: 1, limit: { requests: 40, burst: 20 } }
  }))

const slow = { fromSeconds: 10, seconds: 10 }

/** Something that is so for a while. */
export const during = (
  { fromSeconds, seconds }: { readonly fromSeconds: number; readonly seconds: number },
  begin: () => void,
  end = begin
): Effect.Effect<void> =>
  Effect.sleep(fromSeconds * 1000).pipe(
    Effect.andThen(Effect.sync(begin)),
    Effect.andThen(Effect.sleep(seconds * 1000)),
    Effect.andThen(Effect.sync(end))
  )

const workers = 8
const workMillis = 50

/** How long a worker takes, as it is measured: as many clients as there are workers, and no queue. */
const workOf = (url: string) =>
  Effect.map(
    Effect.orDie(capacity(url, { keepAlive: true, clients: workers, seconds: 10 })),
    (perSecond) => ({ exponential: workers * 1000 / perSecond - 2 * network })
  )

const slowOutage = {
  kind: "slow",
  from: `${slow.fromSeconds}s`,
  to: `${slow.fromSeconds + slow.seconds}s`,
  factor: 10
} as const

/** haproxy with a queue of 200 ms before a server that can handle all. */
const queueing: System["start"] = Effect.gen(function*() {
  const [port, upstream] = [yield* freePort, yield* freePort]
  const pool = yield* serve(upstream, "pool", 1000, workMillis, 0)
  const config = path.join(yield* temporaryFolder, "haproxy.cfg")
  fs.writeFileSync(
    config,
    `global
  maxconn 4000
defaults
  mode http
  timeout connect 1s
  timeout client 60s
  timeout server 60s
  timeout queue 200ms
listen queue
  bind 127.0.0.1:${port} backlog 4096
  server one 127.0.0.1:${upstream} maxconn ${workers}
`
  )
  yield* startServer("haproxy", ["-db", "-q", "-f", config], port)
  return {
    load: { url: `http://127.0.0.1:${port}/`, rate: 100, seconds: 45, timeoutMillis: 1000 },
    trouble: during(slow, () => pool.kill("SIGUSR2")),
    service: {
      workers: 8,
      latency: { exponential: 50 },
      queueTimeout: 200,
      dropsAbandoned: true,
      outages: [slowOutage]
    }
  }
})

/** A server of 8 workers, with a queue of 200. */
const pooling: System["start"] = Effect.gen(function*() {
  const port = yield* freePort
  const pool = yield* serve(port, "pool", workers, workMillis, 200)
  const url = `http://127.0.0.1:${port}/`
  return {
    load: { url, rate: 100, seconds: 40, timeoutMillis: 1000 },
    trouble: during(slow, () => pool.kill("SIGUSR2")),
    service: { workers, latency: yield* workOf(url), queue: 200, outages: [slowOutage] }
  }
})

const burnMillis = 4
const stopMillis = 8000

/** nginx that passes on what comes, and closes the connection to the server when its own client gives up. */
const passing = (upstream: number) =>
  Effect.gen(function*() {
    const port = yield* freePort
    yield* startNginx(
      `upstream burner { server 127.0.0.1:${upstream}; keepalive 256; }
      server { listen 127.0.0.1:${port} backlog=4096; location / { proxy_pass http://burner; ${pass} } }`,
      port
    )
    return port
  })

interface Stopping {
  /** The load, as a share of what the server can handle. The nearer to 1, the more a small error of that moves the recovery. */
  readonly share: number
  readonly seconds: number
  /** When it is stopped. */
  readonly fromSeconds: number
  /** How long each measurement of its capacity takes. */
  readonly measuringSeconds: number
  /** Starts what is in front of the server; returns its port. */
  readonly front: (port: number) => Effect.Effect<number, PeerError, Scope.Scope>
}

/** A server that burns CPU, stopped for a while. Its capacity is measured first: with connections that are kept, and with new ones. */
const burning = ({ fromSeconds, front, measuringSeconds, seconds, share }: Stopping): System["start"] =>
  Effect.gen(function*() {
    const port = yield* freePort
    const server = yield* serve(port, "burner", burnMillis)
    const url = `http://127.0.0.1:${yield* front(port)}/`
    const measured = (at: string, keepAlive: boolean) =>
      Effect.orDie(capacity(at, { keepAlive, clients: 8, seconds: measuringSeconds }))
    // The first seconds of a process are slower than the rest.
    yield* measured(url, true)
    const kept = yield* measured(url, true)
    // The connections of the server: a proxy keeps them, whatever its clients do.
    const fresh = yield* measured(`http://127.0.0.1:${port}/`, false)
    const rate = Math.round(share * kept)
    console.log(
      `burner: ${kept.toFixed(1)} requests/s on connections that are kept, ${
        fresh.toFixed(1)
      } on new ones; ${rate} calls/s`
    )
    return {
      load: { url, rate, seconds, timeoutMillis: 1000 },
      trouble: during(
        { fromSeconds, seconds: stopMillis / 1000 },
        () => server.kill("SIGSTOP"),
        () => server.kill("SIGCONT")
      ),
      service: {
        capacity: kept,
        costs: { connecting: Math.max(0, 1000 / fresh - 1000 / kept) },
        outages: [{ kind: "hold", from: fromSeconds * 1000, to: fromSeconds * 1000 + stopMillis, backlog: 4096 }]
      }
    }
  })

/** Their capacity is a setting, and they hardly use the CPU: other work on the machine changes little. */
export const limited: ReadonlyArray<System> = [
  { name: "nginx, limit of 40/s", policies: ["none", "full jitter", "awsStandard"], start: throttled(40) },
  { name: "adaptive through nginx", policies: ["awsAdaptive"], start: throttled(60) }
]

export const proxied: System = {
  name: "nginx in front of it, stopped for 8 s",
  policies: ["awsStandard", "awsStandard, D"],
  start: burning({ share: 0.5, seconds: 42, fromSeconds: 5, measuringSeconds: 2.5, front: passing })
}

export const systems: ReadonlyArray<System> = [
  ...limited,
  {
    name: "haproxy, queue of 200 ms, slow for 10 s",
    policies: ["none", "three attempts", "awsStandard"],
    start: queueing
  },
  {
    name: "Node, 8 workers, queue of 200, slow for 10 s",
    policies: ["none", "three attempts", "awsStandard", "awsStandard, D"],
    start: pooling
  },
  {
    name: "Node, 4 ms of CPU each, stopped for 8 s",
    policies: ["none", "three attempts", "awsStandard", "awsStandard, D", "awsStandard, D, cool-down, budget"],
    start: burning({ share: 0.7, seconds: 70, fromSeconds: 10, measuringSeconds: 4, front: Effect.succeed })
  },
  proxied
]
