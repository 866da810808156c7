/**
 * Real systems that are not described by hand: their access log is fitted, of a minute and a half in which they are quiet, then
 * get more than they can do, then are quiet again. Only what goes wrong afterwards is said.
 */
import type * as Simulator from "@effect-retry/lab/Simulator"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { ChildProcess } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { fittedOf } from "../../../lab/src/fit/fitted.ts"
import { Log } from "../../../lab/src/fit/log.ts"
import { scenarioOf } from "../../../lab/src/fit/scenario.ts"
import { freePort, type PeerError, startNginx, startServer, temporaryFolder } from "../../utils/peers.ts"
import { measure } from "./client.ts"
import { during, pass, serve, type Started, type System } from "./systems.ts"

type Outage = NonNullable<Simulator.ScenarioInput["services"][number]["outages"]>[number]

const millis = 100
const quietSeconds = 40
const busySeconds = 14
const againSeconds = 35

/** A service. The load follows from its workers; the fit does not know them. */
interface Subject {
  readonly name: string
  readonly workers: number
  /** The servers behind nginx. */
  readonly servers: ReadonlyArray<(port: number) => Effect.Effect<ChildProcess, PeerError, Scope.Scope>>
  /** Of nginx's server. */
  readonly settings?: string
  /** What goes wrong, and for how long. */
  readonly seconds: number
  readonly begin: (server: ChildProcess) => void
  readonly end: (server: ChildProcess) => void
  readonly outage: { readonly kind: "hold" | "slow"; readonly instance?: number; readonly factor?: number }
}

const fromSeconds = 8

/**
 * Of the capacity. Nearer to it one run is random: the simulated success of equal runs without a limit has a standard
 * deviation of 2 to 3 points at 0.65, and of 1 to 2 at 0.5.
 */
const loadShare = 0.5
const format = `log_format timed '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent '
  '"$http_referer" "$http_user_agent" rt=$request_time ua="$upstream_addr"';`

const proxied = ({ servers, settings = "" }: Subject) =>
  Effect.gen(function*() {
    const [port, log] = [yield* freePort, path.join(yield* temporaryFolder, "access.log")]
    const started: Array<ChildProcess> = []
    const ports: Array<number> = []
    for (const start of servers) {
      const upstream = yield* freePort
      started.push(yield* start(upstream))
      ports.push(upstream)
    }
    yield* startNginx(
      `${format}
      limit_conn_zone $server_port zone=connections:1m;
      upstream service { ${ports.map((port) => `server 127.0.0.1:${port} max_fails=0;`).join(" ")} keepalive 256; }
      server {
        listen 127.0.0.1:${port} backlog=4096;
        access_log ${log} timed;
        location / { ${settings} proxy_pass http://service; ${pass} }
      }`,
      port
    )
    return { log, url: `http://127.0.0.1:${port}/`, server: started[0]! }
  })

/** What `effect-retry fit` makes of a log. */
const serviceOf = (file: string) => {
  const log = new Log({})
  log.push(fs.readFileSync(file))
  log.endOfFile()
  const { name: _, ...service } =
    scenarioOf(fittedOf(log.meter), { name: "log", takeMillis: 600_000 }).scenario.services[0]
  return service
}

const systemOf = (subject: Subject): System => ({
  name: subject.name,
  policies: ["awsStandard", "awsStandard, D"],
  start: Effect.gen(function*() {
    const { log, server, url } = yield* proxied(subject)
    const capacity = subject.workers * 1000 / millis
    const load = (share: number, seconds: number, after = 0) =>
      Effect.delay(
        measure({ url, rate: share * capacity, seconds, timeoutMillis: 60_000 }, (send) => send),
        after * 1000
      )
    yield* Effect.all([
      load(0.3, quietSeconds),
      load(1.8, busySeconds, quietSeconds),
      load(0.3, againSeconds, quietSeconds + busySeconds)
    ], { concurrency: "unbounded" })
    const service = serviceOf(log)
    const { begin, end, outage, seconds } = subject
    const lasting = { ...outage, from: `${fromSeconds}s`, to: `${fromSeconds + seconds}s` } as Outage
    const started: Started = {
      load: { url, rate: loadShare * capacity, seconds: 50, timeoutMillis: 1000 },
      trouble: during({ fromSeconds, seconds }, () => begin(server), () => end(server)),
      service: { ...service, outages: [lasting] }
    }
    return started
  })
})

const stopping = {
  begin: (server: ChildProcess) => void server.kill("SIGSTOP"),
  end: (server: ChildProcess) => void server.kill("SIGCONT")
}
const slowing = {
  begin: (server: ChildProcess) => void server.kill("SIGUSR2"),
  end: (server: ChildProcess) => void server.kill("SIGUSR2")
}

const pool = (workers: number, queue: number, factor: number) => (port: number) =>
  serve(port, "pool", workers, millis, queue, factor)

const python = fileURLToPath(new URL("./pool.py", import.meta.url))

const subjects: ReadonlyArray<Subject> = [
  {
    name: "nginx, Python, 8 threads, stopped for 6 s",
    workers: 8,
    servers: [(port: number) => startServer("python3", [python, `${port}`, "8", `${millis}`], port)],
    seconds: 6,
    ...stopping,
    outage: { kind: "hold" }
  },
  {
    name: "nginx, two instances of 6 workers, one stopped for 10 s",
    workers: 12,
    servers: [pool(6, 100_000, 1), pool(6, 100_000, 1)],
    seconds: 10,
    ...stopping,
    outage: { kind: "hold", instance: 0 }
  },
  {
    name: "nginx, 24 connections, 12 workers, 3 times as slow for 15 s",
    workers: 12,
    servers: [pool(12, 100_000, 3)],
    settings: "limit_conn connections 24;",
    seconds: 15,
    ...slowing,
    outage: { kind: "slow", factor: 3 }
  },
  {
    name: "nginx, 8 workers, queue of 16, 3 times as slow for 15 s",
    workers: 8,
    servers: [pool(8, 16, 3)],
    seconds: 15,
    ...slowing,
    outage: { kind: "slow", factor: 3 }
  }
]

export const fitted: ReadonlyArray<System> = subjects.map(systemOf)
