import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import { rmSync } from "node:fs"
import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { Worker } from "node:worker_threads"
import { unfinished, whyNot } from "./files.ts"
import { Installed } from "./Installed.ts"
import { exitCode, main } from "./main.ts"
import { startSource } from "./sources.ts"
import { Threads, worthAThread } from "./Threads.ts"

/** The version in package.json, inserted by the build. */
declare const VERSION: string | undefined

const isBuilt = typeof VERSION === "string"

const installed = {
  version: isBuilt ? VERSION : "not built",
  folder: fileURLToPath(new URL(isBuilt ? ".." : "../..", import.meta.url))
}

const threads = {
  available: availableParallelism(),
  afterAttempts: worthAThread,
  start: () => {
    if (isBuilt) return new Worker(new URL("./worker.js", import.meta.url))
    return startSource(new URL("./worker.ts", import.meta.url))
  }
}

// The reader of a pipe may stop reading: then there is nothing more to print.
const ends = (error: NodeJS.ErrnoException): never => process.exit(error.code === "EPIPE" ? 0 : 2)
process.stderr.on("error", ends)
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") process.stderr.write(`effect-retry: cannot write the standard output: ${whyNot(error)}\n`)
  ends(error)
})

// The first Ctrl-C ends the run and shows what there is, the second ends the process: by the signal, since an exit would wait
// for a file whose writing never ends.
let interrupted = false
process.on("SIGINT", () => {
  if (!interrupted) {
    interrupted = true
    return
  }
  for (const path of unfinished) rmSync(path, { force: true })
  process.removeAllListeners("SIGINT")
  process.kill(process.pid, "SIGINT")
})

main.pipe(
  Effect.provideService(Installed, installed),
  Effect.provideService(Threads, threads),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain({
    disableErrorReporting: true,
    // The process ends by itself, when all it has printed has arrived.
    teardown: (exit) => {
      process.exitCode = exitCode(exit)
    }
  })
)
