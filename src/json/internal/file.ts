import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"

/** A text that is no JSON. */
export class NotJson {
  readonly problem: string
  constructor(problem: string) {
    this.problem = problem
  }
}

/** What a text holds. Nothing of the text itself is in what is wrong with it. */
export const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return new NotJson(text.trim() === "" ? "an empty text" : `${text.length} characters that are not JSON`)
  }
}

/** How long a file that is not whole is given: editors and copies write in steps. */
const graceMillis = 40

const readFile = (path: string): Effect.Effect<unknown, PlatformError, FileSystem.FileSystem> =>
  FileSystem.FileSystem.use((fs) => Effect.map(fs.readFileString(path), jsonOf))

/** What cannot be read, or is half written, is read again, once. */
const readAgain = (path: string): Effect.Effect<unknown, never, FileSystem.FileSystem> => {
  const again = Effect.andThen(Effect.sleep(graceMillis), readFile(path))
  return readFile(path).pipe(
    Effect.flatMap((json) => json instanceof NotJson ? again : Effect.succeed(json)),
    Effect.catch(() => again),
    Effect.catch((error) => Effect.succeed(new NotJson(error.reason._tag)))
  )
}

/**
 * When to look: at the folder, since editors put another file in the place of the old one, and a mounted volume another
 * folder; and every now and then, since not every file system tells.
 */
const moments = (path: string, every: Duration.Duration, ready: Deferred.Deferred<void>) =>
  Effect.gen(function*() {
    const { dirname } = yield* Path.Path
    const fs = yield* FileSystem.FileSystem
    const told = fs.watch(dirname(path), { onReady: () => Deferred.doneUnsafe(ready, Effect.void) }).pipe(
      Stream.catchCause((cause) =>
        Stream.fromEffectDrain(Effect.andThen(
          Effect.logWarning(`RetryConfig: ${path} is not watched, only read every now and then`, cause),
          Deferred.succeed(ready, undefined)
        ))
      )
    )
    return Stream.merge(told, Stream.fromSchedule(Schedule.spaced(every)))
  })

/** What a file holds now, and whenever it may have changed. It must be there at the beginning, and may be gone later. */
export const documentsOf = (
  path: string,
  every: Duration.Duration
): Stream.Stream<unknown, PlatformError, FileSystem.FileSystem | Path.Path> => {
  const ready = Deferred.makeUnsafe<void>()
  const later = Stream.unwrap(moments(path, every, ready)).pipe(
    Stream.buffer({ capacity: 1, strategy: "sliding" }),
    Stream.mapEffect(() => readAgain(path))
  )
  // A change while it is read for the first time is seen, too.
  const first = Stream.fromEffect(
    Effect.andThen(Effect.timeoutOption(Deferred.await(ready), "1 second"), readFile(path))
  )
  return Stream.merge(first, later)
}
