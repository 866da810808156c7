import { assert, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import { fileURLToPath } from "node:url"
import { describePeers } from "../utils/peers.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))

interface Flow {
  readonly call: string
  readonly moves: number
  readonly path: ReadonlyArray<string>
}

const script = ["--import", "tsx", "scripts/flow.ts", "--json"]
const flows = (): ReadonlyArray<Flow> =>
  JSON.parse(execFileSync(process.execPath, script, { cwd: root, encoding: "utf8" }))

/** The moves of the first edition: e949599. */
const firstEdition: { readonly [call: string]: number } = {
  "withRetry(call, awsStandard)": 112,
  "Effect.retry(attempt(call), awsStandard)": 109
}

describePeers("docs/maintaining.md", () => {
  it(
    "lists the files that a failing call enters, in their order; it moves between them half as often as before",
    () => {
      const calls = flows()
      for (const { call, moves } of calls) {
        if (firstEdition[call] !== undefined) assert.isAtMost(moves, firstEdition[call] / 2, call)
      }
      const entered = calls.find(({ call }) => call === "withRetry(call, awsStandard)")!.path
      const page = fs.readFileSync(`${root}/docs/maintaining.md`, "utf8")
      const table = page.slice(page.indexOf("| file | why |")).split("\n\n")[0]!.split("\n").slice(2)
      assert.deepStrictEqual(
        table.map((row) => /^\| `([^`]+)`/.exec(row)![1]),
        [...new Set(entered)].map((file) => file.replace(/\.ts$/, ""))
      )
    },
    300_000
  )
})
