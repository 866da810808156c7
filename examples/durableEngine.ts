/**
 * An engine whose workflows outlive the process: Effect's cluster on a database inside it, PostgreSQL as a library.
 */
import { NodeCrypto } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import { PGlite } from "@electric-sql/pglite"
import { PGLiteSocketServer } from "@electric-sql/pglite-socket"
import { Effect, Layer } from "effect"
import { ClusterWorkflowEngine, SingleRunner } from "effect/cluster"
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
        // A process that was killed has left its socket behind.
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

/** For one process. Long waits are as late as the cluster polls, so it polls every second here, not every ten. */
export const engine = (folder: string) =>
  ClusterWorkflowEngine.layer.pipe(
    Layer.provideMerge(
      SingleRunner.layer({ runnerStorage: "memory", shardingConfig: { entityMessagePollInterval: "1 second" } })
    ),
    Layer.provide([database(folder), NodeCrypto.layer]),
    Layer.orDie
  )
