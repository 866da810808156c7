import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Random from "effect/Random"
import { type Refusal, refusal } from "./refusal.ts"
import { quoted } from "./text.ts"

const reasons: { readonly [code: string]: string } = {
  ENOENT: "no such file or folder",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only",
  ENOSPC: "the disk is full",
  EISDIR: "it is a folder",
  ENOTDIR: "part of its path is not a folder",
  ENAMETOOLONG: "its name is too long"
}

/** Why a file could not be read or written, in plain words. */
export const whyNot = (error: Error): string =>
  "code" in error ? reasons[String(error.code)] ?? error.message : error.message

const why = ({ reason }: PlatformError): string => reason.cause instanceof Error ? whyNot(reason.cause) : reason.message

const cannot = (what: "read" | "write", path: string) => (error: PlatformError): Refusal =>
  refusal(`cannot ${what} ${quoted(path)}: ${why(error)}`)

/** A file that cannot be read. */
export const unreadable = (path: string) => cannot("read", path)

/** The text of a file. */
export const read = Effect.fnUntraced(function*(path: string) {
  const fs = yield* FileSystem.FileSystem
  return yield* Effect.mapError(fs.readFileString(path), unreadable(path))
})

/** Files being written, under their temporary names. Code that ends the process immediately removes them. */
export const unfinished = new Set<string>()

interface Target {
  readonly path: string
  readonly folder: string
  readonly kind: "new" | "file" | "device"
  /** What is there. */
  readonly info: FileSystem.File.Info | undefined
}

/** The streams of the process, which the system names by links. */
const isStream = (path: string): boolean => /^\/(?:dev|proc\/self)\/(?:fd\/\d+|stdout|stderr)$/.test(path)

/** What is at a path; refuses what cannot be written. A link is not followed: in a shared folder others can place one. */
const targetOf = Effect.fnUntraced(function*(path: string) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const isLink = Effect.match(fs.readLink(path), { onFailure: () => false, onSuccess: () => !isStream(path) })
  if (yield* isLink) return yield* refusal(`cannot write ${quoted(path)}: it is a link`)
  const info = yield* fs.stat(path).pipe(
    Effect.catchIf(({ reason }) => reason._tag === "NotFound", () => Effect.undefined)
  )
  if (info?.type === "Directory") return yield* refusal(`cannot write ${quoted(path)}: it is a folder`)
  const kind = info === undefined ? "new" : info.type === "File" ? "file" : "device"
  // What the shell has opened has a name of its own if it is a file.
  const own = kind === "file" && isStream(path) ? yield* fs.realPath(path) : path
  const folder = paths.dirname(own)
  if (kind !== "device") yield* fs.access(folder, { writable: true })
  if (kind !== "new") yield* fs.access(own, { writable: true })
  const target: Target = { path: own, folder, kind, info }
  return target
})

const targetFor = (path: string) =>
  Effect.catchTag(targetOf(path), "PlatformError", (error) => cannot("write", path)(error))

/**
 * Refuses a path that cannot be written, before any work is done for it. A file that is there is replaced only if it is
 * empty, or begins like what is to be written.
 */
export const writable = Effect.fnUntraced(function*(path: string, begins = "") {
  const target = yield* targetFor(path)
  if (begins === "" || target.kind !== "file" || target.path !== path) return
  const before = yield* read(path)
  if (before === "" || before.startsWith(begins)) return
  return yield* refusal(`cannot write ${quoted(path)}: a file of another kind is there`)
})

/** Refuses a path that already exists, unless it may be overwritten. */
export const writableNew = Effect.fnUntraced(function*(path: string, force: boolean) {
  const fs = yield* FileSystem.FileSystem
  const exists = yield* Effect.orElseSucceed(fs.exists(path), () => false)
  if (exists && !force) return yield* refusal(`${quoted(path)} already exists: --force overwrites it`)
  yield* writable(path)
})

/** Writes a file as a whole or not at all: its last step replaces what is at the path, and follows no link. */
export const write = Effect.fnUntraced(function*(path: string, text: string) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const target = yield* targetFor(path)
  if (target.kind === "device") {
    return yield* Effect.mapError(fs.writeFileString(target.path, text), cannot("write", path))
  }
  const salt = yield* Random.nextIntBetween(0, 1e9)
  const temporary = paths.join(target.folder, `.${paths.basename(target.path)}.${salt}.tmp`)
  unfinished.add(temporary)
  yield* fs.writeFileString(temporary, text, { flag: "wx", mode: (target.info?.mode ?? 0o666) & 0o777 }).pipe(
    Effect.andThen(fs.rename(temporary, target.path)),
    Effect.onError(() => Effect.ignore(fs.remove(temporary, { force: true }))),
    Effect.ensuring(Effect.sync(() => unfinished.delete(temporary))),
    Effect.mapError(cannot("write", path)),
    Effect.uninterruptible
  )
})
