import * as NodeStream from "@effect/platform-node/NodeStream"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Stream from "effect/Stream"
import { createGunzip } from "node:zlib"
import type { Log } from "../fit/log.ts"
import { unreadable } from "./files.ts"
import type { Progress } from "./progress.ts"
import { plain } from "./text.ts"

const chunkBytes = 128 * 1024

/** The compressed data is truncated or damaged. */
class Damaged extends Data.TaggedError("Damaged")<{ readonly why: string }> {}

const unpacked = (path: string) => <E, R>(file: Stream.Stream<Uint8Array, E, R>) =>
  path.endsWith(".gz")
    ? NodeStream.pipeThroughDuplex(file, {
      evaluate: () => createGunzip({ chunkSize: chunkBytes }),
      chunkSize: 4,
      onError: (error) => new Damaged({ why: error instanceof Error ? error.message : String(error) })
    })
    : file

/** Reads a log to its end, however long it is. Damage ends it early, with a remark. */
export const readLog = Effect.fnUntraced(function*(path: string, log: Log, progress: Progress) {
  const fs = yield* FileSystem.FileSystem
  const { size } = yield* Effect.mapError(fs.stat(path), unreadable(path))
  let done = 0
  const remark = yield* fs.stream(path, { chunkSize: chunkBytes }).pipe(
    Stream.mapError(unreadable(path)),
    Stream.tap((bytes) => {
      done += bytes.length
      return progress.show(Math.min(1, done / Math.max(1, Number(size))), plain(path))
    }),
    unpacked(path),
    Stream.runForEach((bytes) => Effect.sync(() => log.push(bytes))),
    Effect.as(undefined),
    Effect.catchTag(
      "Damaged",
      ({ why }) => Effect.succeed(`${plain(path)} is damaged; read up to the damage: ${plain(why)}`)
    )
  )
  log.endOfFile()
  return remark
})
