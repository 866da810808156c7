import { assert, describe, it } from "@effect/vitest"
import { existsSync, mkdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { arrivalsText } from "../../src/fit/arrivals.ts"
import { written } from "../fit/generated.ts"
import { folder, good, refused } from "./commandLine.ts"

const here = folder()
const at = (name: string, text: string): string => {
  const path = join(here, name)
  writeFileSync(path, text)
  return path
}

const scenario = (arrivals: object, name = "scenario.json"): string =>
  at(
    name,
    JSON.stringify({
      name: "recorded",
      duration: "4s",
      fleets: [{ name: "clients", to: "server", timeout: "1s", policy: "none", arrivals }],
      services: [{ name: "server", capacity: 50 }]
    })
  )

/** The calls of each second of each run. */
const callsIn = async (path: string): Promise<ReadonlyArray<ReadonlyArray<number>>> => {
  const { results } = JSON.parse(await good(["simulate", path, "--json", "--runs", "2"]))
  return results.map(({ clients: [{ series }], scenario: { duration } }: any) =>
    series.slice(0, parseFloat(duration)).map(({ calls }: { calls: number }) => calls)
  )
}

describe("a scenario with arrivals in a file", () => {
  mkdirSync(join(here, "days"))
  for (
    const [what, file, text, bucket] of [
      ["JSON of counts", "counts.json", JSON.stringify({ bucket: "1s", calls: [3, 0, 25, 7] })],
      ["CSV of counts", "counts.csv", "calls\n3\n0\n25\n7\n"],
      [
        "CSV of counts in buckets of another length",
        "half.csv",
        "at_home,calls\n1,3\n1,0\n1,0\n1,0\n1,20\n1,5\n2,7\n",
        "500ms"
      ],
      ["JSON of times", "days/times.json", JSON.stringify({ at: times([3, 0, 25, 7]) })],
      ["CSV of times", "days/times.csv", `﻿at\r\n${times([3, 0, 25, 7]).join("\r\n")}`]
    ] as const
  ) {
    it(`has the calls of the file in every run: ${what}`, async () => {
      at(file, text)
      const found = await callsIn(scenario({ file, ...bucket === undefined ? {} : { bucket } }))
      assert.deepStrictEqual(found, [[3, 0, 25, 7], [3, 0, 25, 7]])
    })
  }

  it("says in its report that they are recorded", async () => {
    at("counts.json", JSON.stringify({ calls: [3, 0, 25, 7] }))
    const page = join(here, "page.html")
    await good(["simulate", scenario({ file: "counts.json" }), "--runs", "2", "--report", page])
    assert.include(readFileSync(page, "utf8"), "up to 25 calls per second, as recorded")
  })

  const bad: ReadonlyArray<
    readonly [what: string, file: string, text: string | undefined, says: string, besides?: object]
  > = [
    [
      "is not there",
      "none.json",
      undefined,
      `cannot read "${join(here, "none.json")}": no such file or folder`
    ],
    ["is a folder", "days", undefined, `cannot read "${join(here, "days")}": it is not a file`],
    [
      "is broken JSON",
      "bad.json",
      "{\n  \"at\": [1, 2,, 3]\n}",
      ": is not valid JSON: line 2, column 15: unexpected \",\""
    ],
    [
      "has half a call",
      "bad.json",
      "{\n  \"calls\": [1,\n    0.5]\n}",
      ": line 3, column 5: calls[1]: expected an integer, got 0.5"
    ],
    [
      "has a word for a time",
      "bad.json",
      "{\"at\": [1, \"now\"]}",
      ": line 1, column 12: at[1]: expected number, got \"now\""
    ],
    ["has another key", "bad.json", "{\n\"at\": [1],\n \"rate\": 5}", ": line 3, column 10: rate: is not a key here"],
    ["has neither", "bad.json", " {}", ": line 1, column 2: expected either at or calls"],
    ["is a list", "bad.json", "[1]", ": line 1, column 1: expected object, got a list"],
    ["is CSV with half a call", "bad.csv", "calls\n1\n0.5\n", ": line 3: calls is \"0.5\", not a whole number from 0"],
    ["is CSV with no time", "bad.csv", "x,at\n1,5\n1,\n", ": line 3: at is \"\", not a number of milliseconds from 0"],
    ["is CSV with a line too short", "bad.csv", "x,calls\n1,5\n1\n", ": line 3: it has 1 of 2 cells"],
    ["is CSV with other names", "bad.csv", "time\n1\n", ": line 1: its header needs either at (milliseconds) or calls"],
    [
      "has a bucket that the scenario has, too",
      "bad.json",
      "{\"bucket\":\"1s\",\"calls\":[1]}",
      "fleets[0].arrivals.bucket: the file \"bad.json\" has it too",
      { bucket: "2s" }
    ],
    [
      "is above the scenario",
      "../bad.json",
      undefined,
      "\"../bad.json\" is not in the folder of the scenario or below"
    ],
    ["is anywhere", "/etc/passwd", undefined, "\"/etc/passwd\" is not in the folder of the scenario or below"]
  ]
  for (const [what, file, text, says, besides] of bad) {
    it(`is refused with the place where the file ${what}`, async () => {
      if (text !== undefined) at(file, text)
      const said = await refused(["simulate", scenario({ file, ...besides })])
      assert.include(said, says)
      assert.strictEqual(said.split("\n").length, 1)
      if (says.startsWith(":")) assert.include(said, join(here, file))
    })
  }

  it("is refused if a link leads out of the folder, and shows nothing of the file", async () => {
    const elsewhere = join(folder(), "secret.csv")
    writeFileSync(elsewhere, "calls\nsecret\n")
    symlinkSync(elsewhere, join(here, "link.csv"))
    const said = await refused(["simulate", scenario({ file: "link.csv" })])
    assert.include(said, "\"link.csv\" is not in the folder of the scenario or below")
    assert.notInclude(said, "secret")
    symlinkSync(at("counts.csv", "calls\n3\n"), join(here, "inside.csv"))
    assert.deepStrictEqual((await callsIn(scenario({ file: "inside.csv" })))[0]!.slice(0, 1), [3])
  })

  it("is refused if two columns have one name", async () => {
    at("twice.csv", "calls,calls,calls\n3,4,5\n")
    const [warn, warned] = [console.warn, [] as Array<unknown>]
    console.warn = (...args) => void warned.push(args)
    const said = await refused(["simulate", scenario({ file: "twice.csv" })])
    console.warn = warn
    assert.include(said, "line 1: two columns are called \"calls\"")
    assert.deepStrictEqual(warned, [])
  })

  it("is refused if the file is too large", async () => {
    const path = at("large.json", "")
    truncateSync(path, 32 * 1024 * 1024 + 1)
    assert.include(await refused(["simulate", scenario({ file: "large.json" })]), "it is larger than 32 MB")
    const half = `{"calls": [1]${" ".repeat(17 * 1024 * 1024)}}`
    at("half.json", half)
    const input = JSON.parse(readFileSync(scenario({ file: "half.json" }), "utf8"))
    const [fleet] = input.fleets
    const two = at("two.json", JSON.stringify({ ...input, fleets: [fleet, { ...fleet, name: "others" }] }))
    assert.include(await refused(["simulate", two]), "with the arrivals before it, it is larger than 32 MB")
  })
})

describe("fit --arrivals", () => {
  it("writes as CSV what backtest reads", async () => {
    const of = (second: number, status: number, attempt: number) =>
      JSON.stringify({ time: `2026-03-03T12:00:0${second}Z`, duration_ms: 0, status, attempt })
    const log = at(
      "retried.jsonl",
      [of(0, 200, 1), of(0, 503, 1), of(0, 503, 2), of(1, 200, 3), of(1, 200, 1), of(2, 500, 1)].join("\n")
    )
    const [out, csv] = [join(here, "retried.json"), join(here, "retried.csv")]
    await good(["fit", log, "--out", out, "--arrivals", csv])
    assert.strictEqual(
      readFileSync(csv, "utf8"),
      "calls,attempts,succeeded,failed\n2,3,1,1\n1,2,2,0\n1,1,0,1\n"
    )
    assert.match(await good(["backtest", out, "--measured", csv, "--runs", "2"]), /^sends\/call +1\.50 /m)
    assert.strictEqual(
      arrivalsText(
        "wide.csv",
        [{ fromMillis: 0, requests: 3, calls: 2, failed: 1, refused: 0, abandoned: 0 }],
        "2 seconds"
      ),
      "calls\n2\n"
    )
  })

  const log = at("access.log", written("nginx"))

  for (const name of ["calls.json", "calls.csv"]) {
    it(`writes the calls of each second, and a scenario that has exactly these: ${name}`, async () => {
      const [path, file] = [join(here, `${name}.scenario.json`), join(here, name)]
      const { fitted } = JSON.parse(
        await good(["fit", log, "--json", "--out", path, "--arrivals", file, "--take", "90s"])
      )
      const [fleet] = JSON.parse(readFileSync(path, "utf8")).fleets
      assert.deepStrictEqual([fleet.rate, fleet.arrivals.file], [undefined, name])
      const counts: ReadonlyArray<number> = fitted.series.buckets.map(({ calls }: { calls: number }) => calls)
      const [first, second] = await callsIn(path)
      assert.strictEqual(first!.length, 90)
      assert.include(counts.join(), first!.join())
      assert.deepStrictEqual(second, first)
    })
  }

  it("refuses a file that the scenario cannot name, or that exists", async () => {
    const out = join(here, "new.json")
    const calls = join(here, "there.csv")
    const fit = (...flags: ReadonlyArray<string>) => refused(["fit", log, ...flags])
    assert.include(await fit("--arrivals", calls), "--arrivals goes with --out")
    assert.include(await fit("--out", join(here, "days", "new.json"), "--arrivals", calls), "in the folder of")
    assert.include(await fit("--out", out, "--arrivals", out), "has to be another file")
    at("there.csv", "calls\n")
    assert.include(await fit("--out", out, "--arrivals", calls), "already exists: --force overwrites it")
    assert.isFalse(existsSync(out))
  })
})

/** Times in each second, the last first. */
function times(calls: ReadonlyArray<number>): ReadonlyArray<number> {
  return calls.flatMap((count, second) => Array.from({ length: count }, (_, n) => 1000 * second + 7.5 * n)).reverse()
}
