import * as ByteSize from "effect/ByteSize"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { Refusal } from "../../internal/invalidField.ts"

/** What is there in place of a document. */
const notJson = (problem: string, expected = "JSON"): Refusal => new Refusal(["document"], problem, expected)

/** What is there if the file cannot be read. */
const unread = (path: string, { reason: { _tag } }: PlatformError): Refusal =>
  notJson(
    _tag === "NotFound" ? "nothing: it was not found" : `nothing: it cannot be read (${_tag})`,
    `JSON in the file ${path}`
  )

/** Parses a string, or says why not: with nothing of it. */
export const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return notJson(text.trim() === "" ? "an empty string" : `${text.length} characters that are not JSON`)
  }
}

/** How long to wait for an incomplete file: editors and copies write in steps. */
const graceMillis = 40

/** The largest document, in bytes. */
const maxSize = 1_048_576

const readFile = (path: string): Effect.Effect<unknown, PlatformError, FileSystem.FileSystem> =>
  FileSystem.FileSystem.use((fs) =>
    Effect.flatMap(fs.stat(path), ({ size, type }) => {
      // A read of a pipe would wait until something is written into it.
      if (type !== "File") return Effect.succeed(notJson(`no file but a ${type}`))
      const bytes = Number(ByteSize.toBigInt(size))
      if (bytes > maxSize) return Effect.succeed(notJson(`${bytes} bytes, more than ${maxSize}`))
      return Effect.map(fs.readFileString(path), jsonOf)
    })
  )

/** A file that cannot be read, or is half written, is read again, once. */
const readAgain = (path: string): Effect.Effect<unknown, never, FileSystem.FileSystem> => {
  const again = Effect.andThen(Effect.sleep(graceMillis), readFile(path))
  return readFile(path).pipe(
    Effect.flatMap((json) => json instanceof Refusal ? again : Effect.succeed(json)),
    Effect.catch(() => again),
    Effect.catch((error) => Effect.succeed(unread(path, error)))
  )
}

/**
 * When to look: at changes of the folder, since editors replace the old file, and a mounted volume replaces the folder;
 * and from time to time, since not every file system reports changes.
 */
const moments = (path: string, every: Duration.Duration, ready: Deferred.Deferred<void>) =>
  Effect.gen(function*() {
    const { dirname } = yield* Path.Path
    const fs = yield* FileSystem.FileSystem
    const changes = fs.watch(dirname(path), { onReady: () => Deferred.doneUnsafe(ready, Effect.void) }).pipe(
      Stream.catchCause((cause) =>
        Stream.fromEffectDrain(Effect.andThen(
          Effect.logWarning(`RetryConfig: ${path} is not watched, only read from time to time`, cause),
          Deferred.succeed(ready, undefined)
        ))
      )
    )
    return Stream.merge(changes, Stream.fromSchedule(Schedule.spaced(every)))
  })

/** The content of a file now, and whenever it may have changed. It must exist at the start, and may be gone later. */
export const documentsOf = (
  path: string,
  every: Duration.Duration
): Stream.Stream<unknown, PlatformError, FileSystem.FileSystem | Path.Path> => {
  const ready = Deferred.makeUnsafe<void>()
  const later = Stream.unwrap(moments(path, every, ready)).pipe(
    Stream.buffer({ capacity: 1, strategy: "sliding" }),
    Stream.mapEffect(() => readAgain(path))
  )
  // A change while it is read for the first time is seen too.
  const first = Stream.fromEffect(
    Effect.andThen(Effect.timeoutOption(Deferred.await(ready), "1 second"), readFile(path))
  )
  return Stream.merge(first, later)
}
