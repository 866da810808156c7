/** What commands print is as wide as the terminal, and in color where there is color. */
import { assert, describe, it } from "@effect/vitest"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { firstOf } from "../../../test/utils/budget.ts"
import { tableWithin, widthOf, within } from "../../src/explain/layout.ts"
import { written } from "../fit/generated.ts"
import { folder, run } from "./commandLine.ts"

const here = folder()
const file = (name: string, text: string): string => {
  const path = join(here, name)
  writeFileSync(path, text)
  return path
}

const small = file(
  "small.json",
  JSON.stringify({
    name: "small",
    duration: "20 seconds",
    fleets: [{ name: "application", to: "database", rate: 20, timeout: "1 second", policy: "naive" }],
    services: [{
      name: "database",
      capacity: 22,
      latency: "10 millis",
      outages: [{ kind: "fail", from: "2 seconds", to: "4 seconds" }]
    }]
  })
)
const seconds = Array.from({ length: 20 }, () => ({ calls: 20, attempts: 21, succeeded: 19, failed: 1 }))
const measured = file("measured.json", JSON.stringify({ series: seconds, p50: 52, p99: "0.2s" }))
const log = file("access.log", written("nginx"))

const long =
  `{"label":"a policy with a name that is longer than any column of a table","steps":[{"fixed":{"delay":0}},{"maxAttempts":2}]}`
const rate = "fleets.0.rate=10..30/3"
const length = "services.0.outages.0.length=1000..3000/3"

const commands: ReadonlyArray<ReadonlyArray<string>> = [
  [],
  ["explain", "awsStandard2026", "--attempt", "2s", "--retry-after", "1s", "--deadline", "20s"],
  ["simulate", small, "--runs", "1"],
  ["simulate", small, "--runs", "3"],
  ["compare", small, "--policy", "awsStandard", "--policy", long, "--runs", "3"],
  ["compare", small, "--policy", "awsStandard", "--runs", "1"],
  ["map", small, "--policy", "awsStandard", "--x", rate, "--y", length, "--runs", "1"],
  ["check", small, "--runs", "3", "--expect", "succeed >= 1 %", "--expect", "p99 <= 60s"],
  [
    "sweep",
    small,
    "fleets.0.rate",
    "--from",
    "10",
    "--to",
    "20",
    "--step",
    "5",
    "--runs",
    "2",
    "--expect",
    "succeed >= 1 %"
  ],
  ["tune", small, "--policy", "awsStandard", "--policy", "none", "--runs", "1"],
  ["backtest", small, "--measured", measured, "--runs", "2"],
  ["fit", log],
  ["scenarios"],
  ["scenarios", "--keys"],
  ["policies"],
  ...["explain", "simulate", "compare", "map", "check", "sweep", "tune", "backtest", "fit", "scenarios", "policies"]
    .concat("init", "open").map((name) => [name, "--help"])
]

/** What cannot be broken: code, and a word. */
const isWhole = (line: string): boolean =>
  /^(import|export| {2}(RetryPolicy|RetryQuota|withRetry)\b)|^\s*\S+( \\)?$/.test(line)

describe("the width of what is printed", () => {
  for (const args of commands) {
    it(`is at most that of the terminal: ${args.map((one) => one.replace(here, "")).join(" ").slice(0, 60)}`, async () => {
      for (const columns of firstOf([80, 60, 100, 152], 2)) {
        const { code, err, out } = await run(args, { columns })
        assert.strictEqual(code, 0, err)
        const wide = out.split("\n").filter((line) => widthOf(line) > columns && !isWhole(line))
        assert.deepStrictEqual(wide, [], `${columns} columns`)
      }
    })
  }

  it("is 80 columns where nothing is known", async () => {
    const { out } = await run(["policies"], { columns: 0 })
    assert.include([79, 80], Math.max(...out.split("\n").map(widthOf)))
  })
})

describe("color", () => {
  it("says how well it went, and takes no room", async () => {
    const args = ["compare", small, "--policy", "awsStandard", "--runs", "3"]
    const plain = await run(args, { columns: 80 })
    const colored = await run(args, { columns: 80, isColored: true })
    assert.notInclude(plain.out, "\u001b")
    assert.match(colored.out, /\p{Cc}\[3[123]m\d of 3/u)
    assert.match(colored.out, /\p{Cc}\[32m█+\p{Cc}\[0m/u)
    assert.strictEqual(colored.out.replaceAll(/\p{Cc}\[\d+m/gu, ""), plain.out)
  })
})

describe("a table", () => {
  const table = {
    heads: ["policy", "succeed", "recovers", "peak"],
    rows: [["a", "94 % (93 to 95 %)", "3 of 3 in 2 s (1 to 3 s)", "150/s"], ["b", "9 %", "0 of 3", "9/s"]] as const
  }
  const at = (columns: number) => tableWithin(columns, { ...table, rows: [[...table.rows[0]], [...table.rows[1]]] })

  it("has ranges in their cells where there is room", () => {
    assert.deepStrictEqual(at(58), [
      "policy            succeed                  recovers   peak",
      "a       94 % (93 to 95 %)  3 of 3 in 2 s (1 to 3 s)  150/s",
      "b                     9 %                    0 of 3    9/s"
    ])
  })

  it("has them in a line below where there is less", () => {
    assert.deepStrictEqual(at(57), [
      "policy       succeed       recovers   peak",
      "a               94 %  3 of 3 in 2 s  150/s",
      "        (93 to 95 %)     (1 to 3 s)",
      "b                9 %         0 of 3    9/s"
    ])
  })

  it("leaves out columns from the right where that is too wide, and says which", () => {
    assert.deepStrictEqual(at(41).at(-1), "not shown in 41 columns: peak")
    assert.deepStrictEqual(at(30), [
      "policy       succeed",
      "a               94 %",
      "        (93 to 95 %)",
      "b                9 %",
      "not shown in 30 columns:",
      "recovers, peak"
    ])
  })

  it("gives a long name a line of its own, and a note that does not fit too", () => {
    const name = "a name that is longer than any column"
    const notes = ["as many as it takes", ""]
    const shown = tableWithin(40, { heads: ["", "value"], rows: [[name, "1"], ["b", "2"]], noteHead: "why", notes })
    assert.deepStrictEqual(shown, ["   value  why", name, "       1  as many as it takes", "b      2"])
    const narrow = tableWithin(20, { heads: ["", "value"], rows: [["a", "1"], ["b", "2"]], noteHead: "why", notes })
    assert.deepStrictEqual(narrow, ["   value", "a      1", "  as many as it", "  takes", "b      2"])
  })
})

describe("a line that is too wide", () => {
  it("goes on in the next, between words and indented", () => {
    assert.strictEqual(within("  one two three\nfour", 10), "  one\n    two\n    three\nfour")
    assert.strictEqual(within("  one two three", 15), "  one two three")
  })
})
