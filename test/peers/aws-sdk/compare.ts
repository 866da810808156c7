/**
 * The SDK's own retry strategies and ours, side by side, where those of the SDK have known defects.
 *
 * `node --import tsx test/peers/aws-sdk/compare.ts` prints what both did.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { execFile } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { promisify } from "node:util"
import { type PeerError, temporaryFolder } from "../../utils/peers.ts"
import { isIdle, isOurs, misses } from "./bounds.ts"
import type { Comparison } from "./comparison.ts"
import { type Ports, startEndpoints } from "./servers.ts"
import type { Steady } from "./steady.ts"
import { table } from "./table.ts"
import type { Seen, Task } from "./worker.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))
const worker = fileURLToPath(new URL("worker.ts", import.meta.url))

/** The standard output of a program that succeeds. It is killed when the effect is interrupted. */
const output = (command: string, args: ReadonlyArray<string>, env: NodeJS.ProcessEnv = {}) =>
  Effect.promise((signal) =>
    promisify(execFile)(command, args, {
      cwd: root,
      env: { ...process.env, ...env },
      maxBuffer: 1e8,
      signal,
      killSignal: "SIGKILL"
    }).then(({ stdout }) => stdout)
  )

const run = <Part extends Task["part"]>(
  part: Part,
  ports: Ports,
  clock?: WallClock
): Effect.Effect<Seen[Part]> => {
  const task: Task = { part, ports, clockFile: clock?.file }
  const args = ["--no-warnings", "--import", "tsx", worker, JSON.stringify(task)]
  return Effect.map(output(process.execPath, args, clock?.env), (stdout): Seen[Part] => JSON.parse(stdout))
}

/** A wall clock that goes as a file says; the monotonic clock goes on as it does. */
interface WallClock {
  readonly file: string
  readonly env: NodeJS.ProcessEnv
}

const wallClock: Effect.Effect<WallClock, never, Scope.Scope> = Effect.gen(function*() {
  const library = yield* output("faketime", ["-f", "+0", "printenv", "LD_PRELOAD"])
  const file = path.join(yield* temporaryFolder, "clock")
  yield* Effect.sync(() => fs.writeFileSync(file, "+0"))
  return {
    file,
    env: {
      LD_PRELOAD: library.trim(),
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: "1",
      DONT_FAKE_MONOTONIC: "1"
    }
  }
})

/** Whether the run says something of our sides, not of a machine that holds the process up. */
const tells = ({ courses, heldUpMillis }: Steady): boolean =>
  heldUpMillis < 20 || courses.every((course) => isOurs(course) ? misses(course).length === 0 : !isIdle(course))

/** Repeated, but not forever, on a busy machine. */
const untilItTells = (self: Effect.Effect<Steady>): Effect.Effect<Steady> =>
  Effect.repeat(self, { times: 4, until: tells })

/** With a steady wall clock and with one that steps, at the same time. */
const rates = (ports: Ports) =>
  Effect.all({
    steady: untilItTells(run("rate", { ...ports, limited: ports.limited.slice(0, 4) })),
    stepped: Effect.flatMap(wallClock, (clock) => run("rate", { ...ports, limited: ports.limited.slice(4) }, clock))
      .pipe(Effect.scoped, untilItTells)
  }, { concurrency: "unbounded" })

/** Runs all parts, each in a process of its own, against one nginx. */
export const compare: Effect.Effect<Comparison, PeerError, Scope.Scope> = Effect.gen(function*() {
  const ports = yield* startEndpoints(8)
  const parts = { rates: rates(ports), rest: run("rest", ports), herds: run("herds", ports) }
  const { herds, rates: { steady, stepped }, rest } = yield* Effect.all(parts, { concurrency: "unbounded" })
  return { steady, stepped, rest, herds }
})

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  console.log(table(await Effect.runPromise(Effect.scoped(compare))))
}
