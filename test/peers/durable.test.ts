import { assert, describe, it } from "@effect/vitest"
import { PGlite } from "@electric-sql/pglite"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import { freePort, startPostgres, temporaryFolder } from "../utils/peers.ts"
import { shared } from "../utils/shared.ts"
import { built, created } from "./durable/processes.ts"

const program = shared(built("worker"))

/** Runs a process to its end, and answers the signal that ended it, or the code if it failed. */
const run = (...args: ReadonlyArray<string>): Effect.Effect<string | number | null> =>
  Effect.callback((resume) => {
    const child = spawn(process.execPath, [program(), ...args], { stdio: "inherit" })
    child.once("exit", (code, signal) => resume(Effect.succeed(signal ?? (code || null))))
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

/** What the process finds when it goes on, in place of its second failure. */
const forged = (sent: object) => (database: PGlite) =>
  database.query(
    `UPDATE cluster_replies SET payload = $1 WHERE request_id =
      (SELECT request_id FROM cluster_messages WHERE message_id LIKE '%/activity/charge/2')`,
    [JSON.stringify({ _tag: "Success", value: { _tag: "Complete", exit: { _tag: "Success", value: sent } } })]
  )

const retried = { _tag: "Retried", error: { _tag: "Down" }, cost: 0 }

const writers: ReadonlyArray<readonly [what: string, write: (database: PGlite) => Promise<unknown>, then: string]> = [
  [
    "forgets a send: it is made again",
    async (database) => {
      await database.query(
        `DELETE FROM cluster_replies WHERE request_id =
          (SELECT request_id FROM cluster_messages WHERE message_id LIKE '%/activity/charge/2')`
      )
      await database.query("DELETE FROM cluster_messages WHERE message_id LIKE '%/activity/charge/2'")
    },
    "began-2 began-3 began-4 paid"
  ],
  ["forges a result: the call has it", forged({ _tag: "Succeeded", value: "forged" }), "forged"],
  [
    "forges times and the state of the backoff: the policy still counts",
    forged({ ...retried, atMillis: 0, delayMillis: -1e308, step: 1_000_000, previousMillis: 1e308 }),
    "began-3 began-4 paid"
  ],
  [
    "writes what cannot be read: the call ends, and nothing is sent",
    forged({ ...retried, atMillis: "0'; DROP TABLE cluster_messages; --", delayMillis: "soon" }),
    ""
  ]
]

// What SECURITY.md promises of who can write to the database.
describe.concurrent("who writes to the database of a call", () => {
  it.live.each(writers)("%s", ([, write, then]) =>
    Effect.gen(function*() {
      const folder = yield* temporaryFolder
      const journal = `${folder}/journal`
      assert.strictEqual(yield* run(folder, journal, "began-3"), "SIGKILL")
      const before = fs.readFileSync(journal, "utf8")
      const database = yield* Effect.promise(() => PGlite.create(`${folder}/data`))
      yield* Effect.promise(() => write(database))
      yield* Effect.promise(() => database.close())
      const code = yield* run(folder, journal, "never")
      const lines = fs.readFileSync(journal, "utf8").slice(before.length).split("\n").map((line) => line.split(" ")[0]!)
      assert.strictEqual(lines.filter((line) => /^(?:began-.|paid|forged)$/.test(line)).join(" "), then)
      assert.strictEqual(code === null, then !== "")
    }))

  it("is asked by the engine alone: no source of the library has SQL", () => {
    const files = fs.readdirSync("src", { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"))
    const sources = files.map((file) => fs.readFileSync(`src/${file}`, "utf8"))
    assert.isAbove(sources.length, 100)
    for (const source of sources) assert.notMatch(source, /effect\/sql|\bSqlClient\b|\bsql`|\bSELECT \w/)
  })
})
