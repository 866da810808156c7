/**
 * An engine whose workflows outlive the process: Effect's cluster on an embedded database, PostgreSQL as a library.
 */
import { NodeCrypto } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import { PGlite } from "@electric-sql/pglite"
import { PGLiteSocketServer } from "@electric-sql/pglite-socket"
import { Effect, Layer } from "effect"
import { ClusterWorkflowEngine, SingleRunner } from "effect/cluster"
import type { SqlClient } from "effect/sql"
import { rmSync } from "node:fs"

/** PGlite keeps its files in a folder, and speaks PostgreSQL through a socket. */
const embedded = (folder: string) =>
  Effect.gen(function*() {
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
    Effect.map(embedded(folder), (path) => PgClient.layer({ path, username: "postgres", maxConnections: 1 }))
  )

/** For one process. A long wait can be late by the polling interval, so the cluster polls every second here, not every ten. */
export const engineOn = <E>(database: Layer.Layer<SqlClient.SqlClient, E>) =>
  ClusterWorkflowEngine.layer.pipe(
    Layer.provideMerge(
      SingleRunner.layer({ runnerStorage: "memory", shardingConfig: { entityMessagePollInterval: "1 second" } })
    ),
    Layer.provide([database, NodeCrypto.layer]),
    Layer.orDie
  )

/** On a database in the process. */
export const engine = (folder: string) => engineOn(database(folder))

/** On a PostgreSQL server. */
export const engineOnServer = (options: PgClient.PgPoolConfig) => engineOn(PgClient.layer(options))
