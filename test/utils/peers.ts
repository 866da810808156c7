import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as ChildProcess from "node:child_process"
import * as fs from "node:fs"
import * as net from "node:net"
import * as os from "node:os"
import * as path from "node:path"

/** A server that did not come up. */
export class PeerError extends Data.TaggedError("PeerError")<{ readonly message: string }> {}

const handedOut = new Set<number>()

/**
 * A port of 127.0.0.1 without a listener, from 10,000 to 19,999. Systems give higher ones to outgoing connections: one of
 * those could be taken by a client before the server listens. A node of a Redis cluster also has the port 10,000 above.
 */
export const freePort: Effect.Effect<number> = Effect.suspend(() => {
  const port = 10_000 + Math.floor(Math.random() * 10_000)
  return handedOut.has(port) ? freePort : Effect.flatMap(canListen(port), (can) => {
    if (!can) return freePort
    handedOut.add(port)
    return Effect.succeed(port)
  })
})

const canListen = (port: number): Effect.Effect<boolean> =>
  Effect.callback<boolean>((resume) => {
    const server = net.createServer()
    server.once("error", () => resume(Effect.succeed(false)))
    server.listen(port, "127.0.0.1", () => server.close(() => resume(Effect.succeed(true))))
  })

/** A folder that is removed with the scope. */
export const temporaryFolder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "effect-retry-"))),
  (folder) => Effect.sync(() => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))
)

const listens = (port: number): Effect.Effect<boolean> =>
  Effect.callback<boolean>((resume) => {
    const socket = net.connect(port, "127.0.0.1")
    const answer = (is: boolean) => () => {
      socket.destroy()
      resume(Effect.succeed(is))
    }
    socket.once("connect", answer(true))
    socket.once("error", answer(false))
  })

/** The user that a server runs as, and the signal that ends it. */
interface ServerOptions {
  readonly user?: User | undefined
  readonly signal?: NodeJS.Signals | undefined
}

interface User {
  readonly uid: number
  readonly gid: number
}

/** Starts a program that listens on the port, and waits until it does. It is killed with the scope. */
export const startServer = (
  command: string,
  args: ReadonlyArray<string>,
  port: number,
  { signal = "SIGKILL", user }: ServerOptions = {}
): Effect.Effect<ChildProcess.ChildProcess, PeerError, Scope.Scope> =>
  Effect.gen(function*() {
    let failure = ""
    const server = yield* Effect.acquireRelease(
      Effect.sync(() => ChildProcess.spawn(command, args, { stdio: "ignore", ...user })),
      (server) => stop(server, signal)
    )
    server.once("error", (error) => {
      failure = error.message
    })
    server.once("exit", (code) => {
      failure ||= `exit code ${code}`
    })
    while (failure === "") {
      if (yield* listens(port)) return server
      yield* Effect.sleep(25)
    }
    return yield* new PeerError({ message: `${command} does not listen on ${port}: ${failure}` })
  })

const stop = (server: ChildProcess.ChildProcess, signal: NodeJS.Signals): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    if (server.pid === undefined || server.exitCode !== null || server.signalCode !== null) return resume(Effect.void)
    server.once("exit", () => resume(Effect.void))
    // A stopped process takes no other signal than SIGKILL.
    server.kill(signal)
  })

/** nginx with this content of its `http` block, in the foreground, one process. */
export const startNginx = (
  http: string,
  port: number
): Effect.Effect<ChildProcess.ChildProcess, PeerError, Scope.Scope> =>
  Effect.gen(function*() {
    const folder = yield* temporaryFolder
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${name};`)
    const config = path.join(folder, "nginx.conf")
    fs.writeFileSync(
      config,
      `daemon off; master_process off; pid nginx.pid; error_log stderr crit;
      events { worker_connections 4096; }
      http { access_log off; ${temporary.join(" ")} ${http} }`
    )
    return yield* startServer("nginx", ["-p", folder, "-c", config], port)
  })

/** What speaks the protocol of Redis: redis-server, which is required, and Valkey where it is installed. */
export const redisPrograms = (): ReadonlyArray<string> => [
  "redis-server",
  ...(ChildProcess.spawnSync("valkey-server", ["--version"]).error === undefined ? ["valkey-server"] : [])
]

/** A redis-server, or another program of its kind, without persistence. */
export const startRedis = (
  port: number,
  options: ReadonlyArray<string> = [],
  program = "redis-server"
): Effect.Effect<ChildProcess.ChildProcess, PeerError, Scope.Scope> =>
  startServer(program, ["--port", `${port}`, "--bind", "127.0.0.1", "--save", "", ...options], port)

/** Where Debian has the programs of PostgreSQL, the newest first: they are not on the PATH. */
const postgresFolder = (): string => {
  const home = "/usr/lib/postgresql"
  const versions = fs.existsSync(home) ? fs.readdirSync(home).map(Number).filter(Number.isInteger) : []
  return versions.length === 0 ? "" : path.join(home, String(Math.max(...versions)), "bin")
}

/** PostgreSQL refuses to run as root: then it runs as the user that its package creates. */
const postgresUser = (): User | undefined => {
  if (process.getuid?.() !== 0) return undefined
  const idOf = (flag: string) => Number(ChildProcess.execFileSync("id", [flag, "postgres"], { encoding: "utf8" }))
  return { uid: idOf("-u"), gid: idOf("-g") }
}

/** A PostgreSQL server with a new database, whose user is `postgres` and has no password. */
export const startPostgres = (
  port: number
): Effect.Effect<ChildProcess.ChildProcess, PeerError, Scope.Scope> =>
  Effect.gen(function*() {
    const folder = yield* temporaryFolder
    const programs = postgresFolder()
    const user = postgresUser()
    if (user !== undefined) fs.chownSync(folder, user.uid, user.gid)
    const data = path.join(folder, "data")
    const made = ChildProcess.spawnSync(
      path.join(programs, "initdb"),
      [
        "--pgdata",
        data,
        "--username",
        "postgres",
        "--auth",
        "trust",
        "--no-sync",
        "--locale",
        "C",
        "--encoding",
        "UTF8"
      ],
      { encoding: "utf8", ...user }
    )
    if (made.status !== 0) {
      return yield* new PeerError({ message: `initdb: ${made.error?.message ?? made.stderr}` })
    }
    return yield* startServer(
      path.join(programs, "postgres"),
      ["-D", data, "-p", `${port}`, "-h", "127.0.0.1", "-k", folder],
      port,
      { user, signal: "SIGQUIT" }
    )
  })
