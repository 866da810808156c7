import * as ByteSize from "effect/ByteSize"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type * as Layer from "effect/Layer"
import * as PlatformError from "effect/PlatformError"

/** What a path leads to: a text, a directory, or an error. */
export type Entry = string | { readonly type: FileSystem.File.Type } | { readonly fails: PlatformError.SystemErrorTag }

/** A file system of these entries; `reads` lists the texts that were read. */
export const filesOf = (
  entries: Readonly<Record<string, Entry>>
): { readonly layer: Layer.Layer<FileSystem.FileSystem>; readonly reads: Array<string> } => {
  const reads: Array<string> = []
  const failing = (tag: PlatformError.SystemErrorTag, method: string, path: string) =>
    Effect.fail(
      PlatformError.systemError({ _tag: tag, module: "FileSystem", method, pathOrDescriptor: path })
    )
  const find = (path: string): Entry => Object.hasOwn(entries, path) ? entries[path]! : { fails: "NotFound" }
  const layer = FileSystem.layerNoop({
    stat: (path) => {
      const entry = find(path)
      if (typeof entry === "object" && "fails" in entry && entry.fails === "NotFound") {
        return failing("NotFound", "stat", path)
      }
      const size = ByteSize.bytes(typeof entry === "string" ? Buffer.byteLength(entry) : 0)
      const type = typeof entry === "object" && "type" in entry ? entry.type : "File"
      return Effect.succeed({ size, type } as FileSystem.File.Info)
    },
    readFileString: (path) => {
      reads.push(path)
      const entry = find(path)
      if (typeof entry === "string") return Effect.succeed(entry)
      return failing("fails" in entry ? entry.fails : "BadResource", "readFile", path)
    }
  })
  return { layer, reads }
}
