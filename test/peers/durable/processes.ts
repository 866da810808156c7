import { PgClient } from "@effect/sql-pg"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { build } from "esbuild"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { temporaryFolder } from "../../utils/peers.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))

/** A program of this folder, built once: each of its processes would read every file of the library. */
export const built = (name: string) =>
  Effect.gen(function*() {
    const folder = yield* temporaryFolder
    const outfile = path.join(folder, `${name}.mjs`)
    fs.symlinkSync(path.join(root, "node_modules"), path.join(folder, "node_modules"))
    yield* Effect.promise(() =>
      build({
        entryPoints: [path.join(root, `test/peers/durable/${name}.ts`)],
        outfile,
        bundle: true,
        packages: "external",
        format: "esm",
        platform: "node",
        tsconfig: path.join(root, "tsconfig.json")
      })
    )
    return outfile
  })

/** Creates a database on a PostgreSQL server; returns it as the programs take it. */
export const created = (port: number, name: string) =>
  Effect.flatMap(PgClient.PgClient, (sql) => sql`CREATE DATABASE ${sql(name)}`).pipe(
    Effect.provide(PgClient.layer({ host: "127.0.0.1", port, username: "postgres", database: "postgres" })),
    // It listens before it is ready.
    Effect.retry({ schedule: Schedule.spaced("100 millis"), times: 100 }),
    Effect.as(`${port}/${name}`)
  )
