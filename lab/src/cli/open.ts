import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as ChildProcess from "effect/process/ChildProcess"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Stdio from "effect/Stdio"
import { read, write } from "./files.ts"
import * as flags from "./flags.ts"
import { Installed } from "./Installed.ts"
import { writableIfAsked } from "./output.ts"
import { refusal } from "./refusal.ts"
import { plain, quoted } from "./text.ts"

/** The playground that ships. */
const shippedPage = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const { folder } = yield* Installed
  const page = paths.join(folder, "dist", "playground.html")
  if (yield* Effect.orElseSucceed(fs.exists(page), () => false)) return page
  return yield* refusal(`the built-in playground is not at ${quoted(page)}`)
})

/** Commands that open a file: on Linux, on macOS, on Windows. The first that exists is used. */
const openers = ["xdg-open", "open", "explorer.exe"]

/** Shows a page in the browser; returns whether any command could. */
const shownBy = Effect.fnUntraced(function*(page: string) {
  const spawner = yield* ChildProcessSpawner
  for (const opener of openers) {
    const command = ChildProcess.make(opener, [page], { stdin: "ignore", stdout: "ignore", stderr: "ignore" })
    if (yield* Effect.match(spawner.exitCode(command), { onFailure: () => false, onSuccess: () => true })) return true
  }
  return false
})

export const open = Command.make(
  "open",
  { out: flags.file("out", "Write the page to a file instead, to keep or to share") },
  Effect.fnUntraced(function*({ out }) {
    const page = yield* shippedPage
    if (Option.isSome(out)) {
      yield* writableIfAsked(out, "page")
      yield* write(out.value, yield* read(page))
      return yield* Console.log(`wrote ${plain(out.value)}`)
    }
    yield* Console.log(page)
    const { stdoutIsTerminal } = yield* Stdio.Stdio
    if (!(yield* stdoutIsTerminal) || (yield* shownBy(page))) return
    yield* Console.error("no browser was found: open the page yourself")
  })
).pipe(
  Command.withShortDescription("Open the playground: a page to try policies in"),
  Command.withDescription(
    "Opens the playground in the browser and prints its path: one HTML file that needs neither a " +
      "server nor a network. Draw an outage, compare up to four policies, and take the scenario or the " +
      "code with you. In a pipe it only prints the path."
  ),
  Command.withExamples([
    { command: "effect-retry open" },
    { command: "effect-retry open --out playground.html" }
  ])
)
