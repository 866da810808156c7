import { assert, describe, it } from "@effect/vitest"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { written } from "../fit/generated.ts"
import { folder, good, refused, run } from "./commandLine.ts"

const here = folder()
const inHere = (name: string): string => join(here, name)

const log = written("nginx")
writeFileSync(inHere("access.log"), log)
writeFileSync(inHere("access.log.gz"), gzipSync(log))

describe("fit", () => {
  it("reports the findings in a log, with their uncertainty", async () => {
    const out = await good(["fit", inHere("access.log")])
    for (
      const line of [
        /^nginx: 8,\d{3} lines, 0 malformed$/m,
        /^rate +6\d\/s +6\d\/s to 6\d\/s +8,\d{3} requests in 2 min, up to 2\d\d\/s$/m,
        /^p50 at low load +\d\d(\.\d)? ms +\d\d(\.\d)? ms to \d\d(\.\d)? ms +\d{3} requests, at \d\d\/s$/m,
        /^500 +(1\.\d|2(\.\d)?) % /m,
        /^retried +0 % .* from attempt numbers$/m,
        /^capacity +100\/s .* in which all requests waited$/m,
        /^assumed, since no log records it: policy none, timeout 1 second, 4 processes$/m
      ]
    ) {
      assert.match(out, line)
    }
    assert.deepStrictEqual(out.split("\n").filter((line) => line.length > 110), [])
  })

  it("reads compressed logs alike, and damaged ones up to the damage", async () => {
    const plain = JSON.parse(await good(["fit", inHere("access.log"), "--json"]))
    const packed = JSON.parse(await good(["fit", inHere("access.log.gz"), "--json"]))
    assert.deepStrictEqual(packed.fitted, plain.fitted)
    writeFileSync(inHere("cut.log.gz"), gzipSync(log).subarray(0, -20_000))
    const out = await good(["fit", inHere("cut.log.gz")])
    assert.match(out, /cut\.log\.gz is damaged; read up to the damage: /)
  })

  it("writes a scenario that simulate runs, but not over an existing file", async () => {
    const path = inHere("scenario.json")
    assert.include(await good(["fit", inHere("access.log"), "--out", path]), "next: effect-retry simulate")
    const scenario = JSON.parse(readFileSync(path, "utf8"))
    assert.strictEqual(scenario.name, "access.log")
    assert.closeTo(scenario.services[0].capacity, 100, 3)
    const { err, out } = await run(["simulate", path, "--runs", "2"])
    assert.match(out, /^succeed /m)
    assert.include(
      err,
      `warning: ${path}: notes[0]: assumed, since no log records it: policy none, timeout 1 second, 4 processes`
    )
    assert.include(await refused(["fit", inHere("access.log"), "--out", path]), "--force overwrites it")
    await good(["fit", inHere("access.log"), "--out", path, "--force", "--capacity", "250", "--take", "10 seconds"])
    const busy = JSON.parse(readFileSync(path, "utf8"))
    assert.deepStrictEqual([busy.duration, busy.services[0].capacity], ["10 seconds", 250])
  })

  it("writes nothing that simulate would refuse", async () => {
    const path = inHere("refused.json")
    assert.include(
      await refused(["fit", inHere("access.log"), "--out", path, "--capacity", "1e300"]),
      "the scenario would be refused: services[0].capacity: expected a number above 0"
    )
    assert.isFalse(existsSync(path))
  })

  it("without a capacity says that nothing shows what retries cost, in each command that reads the scenario", async () => {
    const quiet = log.split("\n").slice(0, 2000).join("\n")
    writeFileSync(inHere("quiet.log"), quiet)
    const path = inHere("quiet.json")
    const note = "without a capacity nothing overloads the service, and retries cost nothing: measure it"
    assert.include(await good(["fit", inHere("quiet.log"), "--out", path]), note)
    const compared = await run(["compare", path, "--policy", "jitter", "--runs", "2"])
    assert.include(compared.err, note)
    assert.notMatch(compared.out, /recover/)
    writeFileSync(inHere("quiet.measured.csv"), "calls,attempts,succeeded,failed\n40,40,40,0\n")
    for (
      const args of [
        ["backtest", path, "--measured", inHere("quiet.measured.csv"), "--runs", "1"],
        ["check", path, "--expect", "succeed >= 1 %", "--runs", "1"],
        ["sweep", path, "fleets.0.rate", "--from", "10", "--to", "20", "--expect", "succeed >= 1 %", "--runs", "1"]
      ]
    ) {
      assert.include((await run(args)).err, note, args[0])
    }
    const outage = inHere("quiet-outage.json")
    const scenario = JSON.parse(readFileSync(path, "utf8"))
    scenario.services[0].outages = [{ kind: "fail", from: "5s", to: "10s" }]
    writeFileSync(outage, JSON.stringify(scenario))
    for (
      const args of [
        ["map", outage, "--policy", "naive", "--x", "fleets.0.timeout=1s..2s/2", "--runs", "1"],
        ["tune", outage, "--policy", "none", "--policy", "naive", "--runs", "1"],
        ["check", outage, "--expect", "recoveredWithin <= 30s", "--runs", "1"],
        ["check", outage, "--expect", "recoversInRuns 1 of 1"],
        ["sweep", outage, "fleets.0.rate", "--from", "10", "--to", "20", "--expect", "recoveredWithin <= 30s"]
      ]
    ) {
      assert.include(await refused(args), "not known: no service has a capacity", args[0])
    }
  })

  const line = (second: number, status: number, took: string): string =>
    `10.0.0.1 - - [26/Nov/2026:02:${String(Math.floor(second / 60)).padStart(2, "0")}:${
      String(second % 60).padStart(2, "0")
    } +0000] "GET / HTTP/1.1" ${status} 0 "-" "c" ${took}\n`

  it("says from when to when requests fail, and that what the service could do then cannot be seen", async () => {
    const isOut = (second: number) => second >= 60 && second < 660
    writeFileSync(
      inHere("outage.log"),
      Array.from(
        { length: 720 },
        (_, second) => (isOut(second) ? line(second, 499, "1.000").repeat(50) : line(second, 200, "0.030").repeat(10))
      ).join("")
    )
    const out = await good(["fit", inHere("outage.log")])
    assert.match(
      out,
      /^failing from 2026-11-26 02:00:59 to 02:1[01]:\d\d UTC \(10 min\), \d+(\.\d+)?\/s before, up to \d\d\/s$/m
    )
    assert.match(out, /^capacity +at least \d+\/s +cannot be seen: of requests that failed, no log shows the work$/m)
    assert.include(out, "\ntimeout 1 second: 30000 requests ended without an answer after it\n")
  })

  it("without a successful answer says so, and not that durations are missing", async () => {
    writeFileSync(inHere("all499.log"), Array.from({ length: 60 }, (_, second) => line(second, 499, "1.000")).join(""))
    const out = await good(["fit", inHere("all499.log")])
    assert.match(out, /^latency +unknown +no successful answers in the log$/m)
    assert.match(out, /^capacity +unknown +no successful answers in the log$/m)
    writeFileSync(inHere("untimed.log"), line(0, 200, ""))
    assert.match(await good(["fit", inHere("untimed.log")]), /^capacity +unknown +no durations in the log$/m)
  })

  it("counts broken lines, and quotes the first", async () => {
    writeFileSync(inHere("broken.csv"), `${written("csv")}\u001b[31mno,"line\n`)
    const out = await good(["fit", inHere("broken.csv")])
    assert.match(out, /^csv: 8,\d{3} lines, 1 malformed$/m)
    assert.include(out, "the first malformed line: \"\\u001b[31mno")
    assert.notInclude(out, "\u001b")
  })

  it("warns before all else where more than one of twenty lines is malformed, and says what is wrong", async () => {
    const of = (second: number, status: string) =>
      `{"time":"2026-03-03T12:00:${String(second).padStart(2, "0")}Z","duration_ms":20,"status":${status}}\n`
    const lines = Array.from({ length: 19 }, (_, second) => of(second, "200")).join("")
    writeFileSync(inHere("one.jsonl"), lines + of(20, "\"reset\""))
    const one = await run(["fit", inHere("one.jsonl")])
    assert.strictEqual(one.err, "")
    assert.include(one.out, "the first malformed line: status is \"reset\" in \"{")
    writeFileSync(inHere("two.jsonl"), lines + of(20, "\"reset\"") + of(21, "\"reset\""))
    const two = await run(["fit", inHere("two.jsonl"), "--json"])
    assert.match(
      two.err.replaceAll(/\s+/g, " "),
      /^effect-retry: warning: .*two\.jsonl: 9\.5 % of the lines are malformed, and left out: status is "reset" in "\{/
    )
  })

  it("accepts field names", async () => {
    writeFileSync(
      inHere("own.csv"),
      written("csv").replace("time,request,agent,status,request_time", "at,what,who,code,t")
    )
    const fields = ["--time", "at", "--duration", "t", "--status", "code"]
    assert.include(await refused(["fit", inHere("own.csv"), ...fields]), "field \"t\" is unclear: --unit s, --unit ms")
    assert.match(await good(["fit", inHere("own.csv"), ...fields, "--unit", "s"]), /^capacity +100\/s/m)
  })

  it("refuses a file that is not a log, or is missing", async () => {
    writeFileSync(inHere("novel.txt"), "It was a dark night.\n\u001bIt rained.\n")
    writeFileSync(inHere("empty.log"), "")
    const novel = await refused(["fit", inHere("novel.txt")])
    assert.include(novel, "no line could be parsed, such as \"It was a dark night.\"")
    assert.include(novel, "nginx, alb, envoy, otlp, json, csv")
    assert.include(await refused(["fit", inHere("empty.log")]), "the log is empty")
    assert.include(await refused(["fit", inHere("none.log")]), "no such file or folder")
    assert.include(await refused(["fit", here]), "it is a folder")
    assert.include(await refused(["fit", inHere("access.log"), "--out", here]), "already exists")
    assert.isFalse(existsSync(inHere("none.log")))
  })
})
