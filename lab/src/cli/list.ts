import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as flags from "./flags.ts"
import { asJson } from "./output.ts"
import { shipped, shippedNames } from "./scenarios.ts"
import { described } from "./text.ts"

export const list = Command.make(
  "scenarios",
  { json: flags.json },
  Effect.fnUntraced(function*({ json }) {
    const names = yield* shippedNames
    const found = yield* Effect.forEach(
      names,
      (name) => Effect.map(shipped(name), ({ description }) => ({ name, description }))
    )
    if (json) return yield* Console.log(asJson(found))
    yield* Console.log(described(found.map(({ description, name }) => [name, description])).join("\n"))
  })
).pipe(
  Command.withShortDescription("List the scenarios that ship"),
  Command.withDescription("Lists the scenarios that ship, and what each shows.")
)
