/**
 * An engine whose workflows outlive the process: Effect's cluster on an
 * embedded database, PostgreSQL as a library.
 */
import { NodeClusterSocket, NodeCrypto } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import { PGlite } from "@electric-sql/pglite"
import { PGLiteSocketServer } from "@electric-sql/pglite-socket"
import { Data, Effect, Layer, Option } from "effect"
import {
  ClusterWorkflowEngine,
  type MessageStorage,
  RunnerAddress,
  type Sharding,
  SingleRunner
} from "effect/cluster"
import type { SqlClient } from "effect/sql"
import { randomUUID } from "node:crypto"
import { mkdirSync, readdirSync, rmSync } from "node:fs"
import { connect, createServer, type Server } from "node:net"

/**
 * Another process has the folder open: two of them would destroy the
 * database.
 */
export class FolderInUse
  extends Data.TaggedError("FolderInUse")<{ readonly folder: string }>
{
  override get message() {
    return `${this.folder} is open in another process: `
      + "for several, use a PostgreSQL server"
  }
}

/**
 * Whether a process listens on a socket. A killed one has left its file
 * behind.
 */
const isAlive = (path: string) =>
  Effect.callback<boolean>((resume) => {
    const socket = connect(path)
    const answer = (is: boolean) => {
      socket.destroy()
      resume(Effect.succeed(is))
    }
    socket.once("connect", () => answer(true))
    socket.once("error", (error: NodeJS.ErrnoException) =>
      answer(!/^(ECONNREFUSED|ENOENT)$/.test(error.code ?? "")))
  })

/**
 * A folder for one process, as long as that one lives. Each listens on
 * a socket of its own before it looks for others: of those that start
 * at the same moment, one at most sees none.
 */
const owned = (folder: string) =>
  Effect.gen(function*() {
    const own = `owner-${randomUUID().slice(0, 8)}`
    mkdirSync(folder, { recursive: true })
    yield* Effect.acquireRelease(
      Effect.callback<Server>((resume) => {
        const server = createServer((socket) => socket.destroy())
        server.once("error", (error) => resume(Effect.die(error)))
        server.listen(`${folder}/${own}`, () =>
          resume(Effect.succeed(server)))
      }),
      (server) =>
        Effect.sync(() => server.close())
    )
    for (
      const other of readdirSync(folder).filter((name) =>
        name.startsWith("owner-") && name !== own
      )
    ) {
      if (yield* isAlive(`${folder}/${other}`)) {
        return yield* new FolderInUse({ folder })
      }
      rmSync(`${folder}/${other}`, { force: true })
    }
  })

/**
 * PGlite keeps its files in a folder, and speaks PostgreSQL through a
 * socket.
 */
const embedded = (folder: string) =>
  Effect.gen(function*() {
    yield* owned(folder)
    const path = `${folder}/.s.PGSQL.5432`
    const db = yield* Effect.acquireRelease(
      Effect.promise(() => PGlite.create(`${folder}/data`)),
      (db) => Effect.promise(() => db.close())
    )
    yield* Effect.acquireRelease(
      Effect.promise(async () => {
        // A killed process has left its socket behind.
        rmSync(path, { force: true })
        const server = new PGLiteSocketServer({ db, path })
        await server.start()
        return server
      }),
      (server) => Effect.promise(() => server.stop())
    )
    return path
  })

/** PGlite has one session, so the driver gets one connection. */
const database = (folder: string) =>
  Layer.unwrap(
    Effect.map(embedded(folder), (path) =>
      PgClient.layer({ path, username: "postgres", maxConnections: 1 }))
  )

/**
 * A long wait can be late by the polling interval, so the cluster polls
 * every second here, not every ten.
 */
const shardingConfig = {
  entityMessagePollInterval: "1 second"
} as const

/** The engine of a runner, which keeps its messages in a database. */
const engineOf = <A, E, R, E2>(
  runner: Layer.Layer<
    A | Sharding.Sharding | MessageStorage.MessageStorage,
    E,
    R
  >,
  database: Layer.Layer<SqlClient.SqlClient, E2>
) =>
  ClusterWorkflowEngine.layer.pipe(
    Layer.provideMerge(runner),
    Layer.provide([database, NodeCrypto.layer]),
    Layer.orDie
  )

/**
 * On a database in the process, which believes that it is alone: the
 * folder is refused to any other.
 */
export const engine = (folder: string) =>
  engineOf(
    SingleRunner.layer({ runnerStorage: "memory", shardingConfig }),
    database(folder)
  )

/**
 * On a PostgreSQL server, for any number of processes: one of them
 * works, and another takes over when that one ends. Which one it is,
 * they agree on in the database.
 */
export const engineOnServer = (options: PgClient.PgPoolConfig) =>
  engineOf(
    SingleRunner.layer({ shardingConfig }),
    PgClient.layer(options)
  )

/**
 * The same, for processes that share the work. They reach each other on
 * this port.
 */
export const engineInCluster = (
  options: PgClient.PgPoolConfig,
  host: string,
  port: number
) => {
  const address = Option.some(RunnerAddress.make(host, port))
  return engineOf(
    NodeClusterSocket.layer({
      storage: "sql",
      shardingConfig: {
        ...shardingConfig,
        runnerAddress: address,
        runnerListenAddress: address
      }
    }),
    PgClient.layer(options)
  )
}
