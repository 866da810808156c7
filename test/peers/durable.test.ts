import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import { freePort, startPostgres, temporaryFolder } from "../utils/peers.ts"
import { shared } from "../utils/shared.ts"
import { built, created } from "./durable/processes.ts"

const program = shared(built("worker"))

/** Runs a process to its end, and answers the signal that ended it. */
const run = (...args: ReadonlyArray<string>): Effect.Effect<string | null> =>
  Effect.callback((resume) => {
    const child = spawn(process.execPath, [program(), ...args], { stdio: "inherit" })
    child.once("exit", (_code, signal) => resume(Effect.succeed(signal)))
    return Effect.sync(() => child.kill("SIGKILL"))
  })

const steps = [1, 2, 3, 4].flatMap((attempt) => [
  `began-${attempt}`,
  `ended-${attempt}`,
  ...(attempt === 4 ? [] : [`waits-${attempt}`])
])

/** A PostgreSQL server; each test has a database of its own. */
const server = shared(Effect.tap(freePort, startPostgres))

type Database = (folder: string, step: string) => Effect.Effect<string, unknown>

const databases: ReadonlyArray<readonly [name: string, made: Database]> = [
  ["a database in it", Effect.succeed],
  ["a PostgreSQL server", (_, step) => created(server(), step)]
]

for (const [name, made] of databases) {
  // They wait most of the time.
  describe.concurrent(`a process with ${name} that is killed with signal 9`, () => {
    it.live.each(steps)(
      "at %s: the next one goes on, sends no earlier, and resends nothing but what was in flight",
      (doom) =>
        Effect.gen(function*() {
          const folder = yield* temporaryFolder
          const database = yield* made(folder, doom)
          const journal = `${folder}/journal`
          assert.strictEqual(yield* run(database, journal, doom), "SIGKILL")
          assert.isNull(yield* run(database, journal, "never"))
          const lines = fs.readFileSync(journal, "utf8").trim().split("\n").map((line) =>
            line.split(" ") as [string, string]
          )
          assert.strictEqual(lines.at(-1)![0], "paid")
          const times = (name: string) => lines.filter(([is]) => is === name).map(([, time]) => Number(time))
          const inFlight = /^(?:began|ended)-(\d)$/.exec(doom)?.[1]
          for (const attempt of [1, 2, 3, 4]) {
            const began = times(`began-${attempt}`)
            assert.strictEqual(began.length, inFlight === String(attempt) ? 2 : 1, `${attempt}`)
            const due = attempt === 1 ? 0 : times(`ended-${attempt - 1}`).at(-1)! + 2000
            assert.isAtLeast(began[0]!, due)
          }
        })
    )
  })
}
