/** A process that has a folder open until it is killed, and says when it does: `folder.ts folder`. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { engine } from "../../../examples/durableEngine.ts"

await Effect.runPromise(
  Effect.andThen(Console.log("open"), Effect.never).pipe(Effect.provide(engine(process.argv[2]!)))
)
