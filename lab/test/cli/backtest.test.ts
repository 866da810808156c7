import { assert, describe, it } from "@effect/vitest"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { folder, run } from "./commandLine.ts"

const here = folder()
const at = (name: string, text: string): string => {
  const path = join(here, name)
  writeFileSync(path, text)
  return path
}

const scenario = at(
  "shop.json",
  JSON.stringify({
    name: "shop",
    duration: "5s",
    fleets: [{ name: "clients", to: "server", rate: 10, timeout: "1s", policy: "none" }],
    services: [{ name: "server", capacity: 20, outages: [{ kind: "fail", from: "2s", to: "3s" }] }]
  })
)

const series = [
  { calls: 10, attempts: 10, succeeded: 10, failed: 0 },
  { calls: 12, attempts: 12, succeeded: 12, failed: 0 },
  { calls: 10, attempts: 10, succeeded: 0, failed: 10 },
  { calls: 8, attempts: 8, succeeded: 8, failed: 0 },
  { calls: 10, attempts: 10, succeeded: 10, failed: 0 }
]

const json = at("measured.json", JSON.stringify({ series, p50: 52, p99: "0.2s" }))
const csv = at(
  "measured.csv",
  ["time,calls,attempts,succeeded,failed", ...series.map((bucket, second) => [second, ...Object.values(bucket)].join())]
    .join("\n")
)

describe("backtest", () => {
  it("prints each figure as measured and as predicted, and both over time", async () => {
    const { code, err, out } = await run(["backtest", scenario, "--measured", json])
    assert.deepStrictEqual([code, err], [0, ""])
    assert.include(out, "shop: measured, and predicted with the same calls in 20 runs")
    assert.match(out, /^succeed +80 % +80 % +[+-]?0\.0 points +yes$/m)
    assert.match(out, /^sends\/call +1\.00 +1\.00 +0\.0 % +yes$/m)
    assert.match(out, /^p50 +52 ms +5\d(\.\d)? ms .*%/m)
    assert.match(out, /^recovers after +0 ms +0 ms, 20 of 20/m)
    assert.match(out, /^2 s +0 +[01] /m)
  })

  it("reads JSON and CSV alike, and answers with data", async () => {
    const [first, second] = await Promise.all(
      [json, csv].map(async (path) =>
        JSON.parse((await run(["backtest", scenario, "--measured", path, "--json", "--runs", "3"])).out)
      )
    )
    assert.deepStrictEqual(first.series, second.series)
    assert.deepStrictEqual(first.succeeded, second.succeeded)
    assert.strictEqual(first.p50Millis.measured, 52)
    assert.isUndefined(second.p50Millis.measured)
    assert.deepStrictEqual(first.series[2].succeeded.measured, 0)
  })

  it("draws both lines, with the band of the runs and the outage", async () => {
    const svg = join(here, "both.svg")
    const { err } = await run(["backtest", scenario, "--measured", csv, "--svg", svg, "--policy", "naive"])
    assert.strictEqual(err, `wrote ${svg}\n`)
    const drawn = readFileSync(svg, "utf8")
    for (const text of ["succeeded per second", "sent per second", ">measured<", ">predicted<", "outage"]) {
      assert.include(drawn, text)
    }
    assert.match(drawn, /^<svg [^>]*role="img"[^>]*><title>[^<]*measured and predicted<\/title><desc>[^<]*in the end/)
    assert.include(drawn, "prefers-color-scheme:dark")
    assert.strictEqual(drawn.match(/ fill-opacity="0.2"/g)!.length, 2)
  })

  it("writes a page of several series, each with its policy, on the same axes and with the capacity", async () => {
    const [before, after] = [
      at("before.json", JSON.stringify({ series })),
      at("after.json", JSON.stringify({ series }))
    ]
    const page = join(here, "both.html")
    const policies = ["--policy", "none", "--policy", "naive"]
    const asked = ["backtest", scenario, "--measured", before, "--measured", after, "--runs", "3"]
    const { err, out } = await run([...asked, ...policies, "--report", page])
    assert.strictEqual(err, `wrote ${page}\n`)
    assert.match(out, /^before: measured, and predicted[^]*\n\nafter: measured, and predicted/)
    const drawn = readFileSync(page, "utf8")
    assert.strictEqual(drawn.match(/<svg[^>]*role="img"/g)!.length, 4)
    for (
      const text of [
        "<bdi>before</bdi>",
        "<bdi>after</bdi>",
        "Load on the service",
        "Thin and gray",
        "capacity",
        "outage"
      ]
    ) {
      assert.include(drawn, text)
    }
    const [none, naive] = JSON.parse((await run([...asked, ...policies, "--json"])).out)
    assert.deepStrictEqual([none.name, naive.name], ["before", "after"])
    assert.strictEqual(none.sendsPerCall.predicted.mean, 1)
    assert.isAbove(naive.sendsPerCall.predicted.mean, 1.2)
  })

  it.each([
    { asked: ["--svg", join(here, "x.svg")], expected: "--svg draws one series" },
    { asked: ["--policy", "none", "--policy", "naive", "--policy", "none"], expected: "--policy is given 3 times" }
  ])("refuses flags that do not fit two series: $expected", async ({ asked, expected }) => {
    const { code, err } = await run(["backtest", scenario, "--measured", json, "--measured", csv, ...asked])
    assert.strictEqual(code, 2)
    assert.include(err, expected)
  })

  for (
    const [what, name, text, expected] of [
      ["a file that is not JSON", "a.json", "{", "a.json: is not valid JSON"],
      ["an unknown key", "b.json", JSON.stringify({ series, p95: 3 }), "b.json: p95: is not a key here"],
      ["a head without a name", "c.csv", "calls,attempts\n1,1", "c.csv: its header has no succeeded, failed"],
      ["what is not a count", "d.csv", "calls,attempts,succeeded,failed\n1,1,1,0\n1,x,1,0", `line 3: attempts is "x"`],
      ["an empty file", "e.csv", "", "e.csv: its header has no calls"],
      ["a head alone", "f.csv", "calls,attempts,succeeded,failed", "f.csv: series[0]: is missing"]
    ] as const
  ) {
    it(`refuses ${what}`, async () => {
      const { code, err } = await run(["backtest", scenario, "--measured", at(name, text)])
      assert.strictEqual(code, 2)
      assert.include(err, expected)
    })
  }
})

describe("an edge", () => {
  const edgy = at(
    "edgy.json",
    JSON.stringify({
      name: "edgy",
      duration: "60s",
      fleets: [{ name: "clients", to: "server", rate: 90, timeout: "1s", policy: "none" }],
      services: [{ name: "server", capacity: 97, outages: [{ kind: "hold", from: "5s", to: "8s" }] }]
    })
  )

  it("is reported after the table and in the data, and only if there is one", async () => {
    const line = /^near an edge: none (recovers|limps), but collapses with 10 % less capacity/m
    assert.match((await run(["simulate", edgy, "--runs", "2"])).out, line)
    const compared = (await run(["compare", edgy, "--policy", "naive", "--runs", "2"])).out
    assert.match(compared, line)
    assert.notInclude(compared, "near an edge: naive")
    const one = JSON.parse((await run(["simulate", edgy, "--runs", "1", "--json"])).out)
    assert.deepStrictEqual([one.edge.less, one.edge.isNear], ["collapses", true])
    const { runs } = JSON.parse((await run(["compare", edgy, "--policy", "naive", "--runs", "2", "--json"])).out)
    assert.deepStrictEqual(runs.map(({ edge }: any) => edge.isNear), [true, false])
    assert.notInclude((await run(["simulate", scenario, "--runs", "2"])).out, "near an edge")
  })
})
