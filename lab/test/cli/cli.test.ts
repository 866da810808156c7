import * as Explain from "@effect-retry/lab/Explain"
import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import { awsStandard } from "effect-retry/aws/AwsModes"
import * as RetryConfig from "effect-retry/RetryConfig"
import * as Effect from "effect/Effect"
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { budget, firstOf, onlyInFull } from "../../../test/utils/budget.ts"
import { inputOf, retrying } from "../utils/simulate.ts"
import { folder, good, lab, run } from "./commandLine.ts"

const here = folder()
const inHere = (name: string): string => join(here, name)
const text = (path: string): string => readFileSync(path, "utf8")

const small = {
  name: "small",
  duration: "10 seconds",
  drain: "5 seconds",
  fleets: [{ name: "app", to: "db", rate: 20, timeout: "1 second", policy: "naive" }],
  services: [{
    name: "db",
    connections: 100,
    latency: "10 millis",
    outages: [{ kind: "fail", from: "2 seconds", to: "4 seconds" }]
  }]
}
const smallFile = inHere("small.json")
writeFileSync(smallFile, JSON.stringify(small))

/** The outage of the scenario that ships, with little after it. */
const brief = inputOf("outage", { scenario: { duration: "40 seconds" } })
const briefFile = inHere("brief.json")
writeFileSync(briefFile, JSON.stringify(brief))

/** The commands, as the help lists them. */
const commandsOf = (help: string): ReadonlyArray<string> =>
  Array.from(help.split("\nLOOK:\n")[1]!.split("\nEXAMPLES\n")[0]!.matchAll(/^  (\w+)/gm), ([, command]) => command!)

describe("effect-retry", () => {
  it("shows its help without arguments, and its version", async () => {
    const help = await run([])
    assert.strictEqual(help.code, 0)
    assert.includeMembers([...commandsOf(help.out)], ["explain", "simulate", "scenarios", "open"])
    assert.strictEqual(await good(["--version"]), "effect-retry v1.2.3\n")
  })

  it("has help for each command, without color outside a terminal, in 100 columns except for the shells", async () => {
    for (const command of commandsOf(await good(["--help"]))) {
      const out = await good([command, "--help"])
      assert.include(out, `effect-retry ${command}`)
      assert.notInclude(out, "\u001b")
      const wide = out.split("\n").filter((line) => line.length > 100 && !line.includes("--completions"))
      assert.deepStrictEqual(wide, [])
    }
  })
})

describe("explain", () => {
  it("prints what Explain returns", async () => {
    const explanation = Explain.explain(awsStandard, { name: "awsStandard" })
    assert.strictEqual(await good(["explain", "awsStandard"]), `${Explain.toTable(explanation)}\n`)
    assert.deepStrictEqual(JSON.parse(await good(["explain", "awsStandard", "--json"])), explanation)
  })

  it("takes the options of Explain", async () => {
    const out = await good([
      "explain",
      "awsStandard",
      "--json",
      "--attempt",
      "2 seconds",
      "--failure",
      "throttled",
      "--retry-after",
      "1500",
      "--deadline",
      "20 seconds",
      "--failure-rate",
      "25%",
      "--failure-rate",
      "1"
    ])
    assert.deepStrictEqual(
      JSON.parse(out),
      Explain.explain(awsStandard, {
        name: "awsStandard",
        attempt: "2 seconds",
        failure: { throttling: true, retryAfter: 1500 },
        deadline: "20 seconds",
        failureRates: [0.25, 1]
      })
    )
  })

  it("knows every policy of the simulator", async () => {
    for (const name of firstOf(Simulator.policies, 3)) {
      assert.match(await good(["explain", name]), new RegExp(`^${name}: at most \\d+ attempts?,`))
    }
  })

  it("writes one attempt in the singular, in the table and in the picture", async () => {
    const path = inHere("none.svg")
    const { out } = await run(["explain", "none", "--svg", path])
    assert.match(out, /^none: at most 1 attempt, /)
    assert.match(text(path), /at most 1 attempt; /)
  })

  it("takes settings, with their quota", async () => {
    const { maxAttempts, quota } = JSON.parse(
      await good([
        "explain",
        JSON.stringify(retrying({ attempts: 4, cost: 14, quota: { capacity: 100 } })),
        "--json"
      ])
    )
    assert.strictEqual(maxAttempts, 4)
    assert.strictEqual(quota.capacity, 100)
    assert.deepStrictEqual(quota.costs, { transient: 14, timeout: 14, throttling: 14 })
  })

  it("notes that the budget of a policy is left out", async () => {
    assert.include(await good(["explain", "finagle"]), "The retry budget is left out")
    assert.notInclude(await good(["explain", "jitter"]), "budget")
  })

  it("names what depends on all calls, and includes a cool-down", async () => {
    const steps = [{ fixed: { delay: 0 } }, { maxAttempts: 2 }]
    const gated = JSON.stringify({ steps, concurrency: {}, throttle: {}, coolDown: { spread: 0 } })
    const out = await good(["explain", gated, "--failure", "throttled", "--retry-after", "1s"])
    assert.include(out, "The concurrency limit and throttle are left out: they depend on all calls of the client.")
    assert.include(out, "A failing call ends after 1 s.")
  })

  it("includes the hedges of a policy in the load", async () => {
    const steps = [{ fixed: { delay: 0 } }, { maxAttempts: 2 }]
    const hedged = JSON.stringify({ steps, hedge: { after: "50ms", share: 0.1 } })
    const out = await good(["explain", hedged, "--failure-rate", "0"])
    assert.match(out, /^0 % +1\.10 /m)
    assert.include(out, "The load includes hedges: at most 10 of 100 calls have one.")
  })

  it("writes a picture", async () => {
    const { code, err } = await run(["explain", "awsStandard", "--svg", inHere("policy.svg")])
    assert.strictEqual(code, 0)
    assert.strictEqual(err, `wrote ${inHere("policy.svg")}\n`)
    assert.match(text(inHere("policy.svg")), /^<svg/)
  })
})

describe("simulate", () => {
  it("runs a file as the simulator does", async () => {
    const result = await Effect.runPromise(
      Effect.flatMap(Simulator.decode(small), (scenario) => Simulator.run(scenario))
    )
    assert.deepStrictEqual(
      JSON.parse(await good(["simulate", "--runs", "1", smallFile, "--json"])),
      JSON.parse(JSON.stringify({ ...result, warnings: [] }))
    )
  })

  it("gives the same output for the same seed, and another for another", async () => {
    const first = await good(["simulate", smallFile])
    assert.strictEqual(await good(["simulate", smallFile]), first)
    assert.strictEqual(await good(["simulate", smallFile, "--seed", "1"]), first)
    assert.notStrictEqual(await good(["simulate", smallFile, "--seed", "2"]), first)
  })

  it("prints clients, services and what became of the calls", async () => {
    const out = await good(["simulate", "--runs", "1", "layers"])
    for (const words of ["front > orders", "database", "max-attempts 17, quota-exhausted 83", "275       0"]) {
      assert.include(out, words)
    }
    assert.isAtMost(Math.max(...out.split("\n").map((line) => line.length)), 100)
  })

  it("counts calls that never end as failed", async () => {
    const path = inHere("endless.json")
    const endless = {
      ...small.fleets[0],
      policy: retrying({ attempts: Infinity, source: { exponential: { base: 100 } } })
    }
    const outage = { kind: "fail", from: "5 seconds", to: "1 minute" }
    writeFileSync(
      path,
      JSON.stringify({ ...small, fleets: [endless], services: [{ name: "db", connections: 100, outages: [outage] }] })
    )
    const { clients: [client] } = JSON.parse(await good(["simulate", "--runs", "1", path, "--json"]))
    const { calls, failed, succeeded } = client.totals
    assert.deepStrictEqual([failed, calls > succeeded], [0, true])
    const out = await good(["simulate", "--runs", "1", path])
    assert.include(out, ` ${(100 * succeeded / calls).toFixed(1)} %`)
    assert.include(out, `  calls unfinished: ${calls - succeeded}\n`)
    assert.include(out, "recovered: not within 10 s\n")
    const page = inHere("endless.html")
    await good(["compare", "--runs", "1", path, "--policy", "none", "--report", page])
    assert.include(text(page), `${(100 * succeeded / calls).toFixed(1)} %`)
  })

  it("says that a budget stops retries", async () => {
    const line = "quota-exhausted: retries that the quota or budget denied"
    assert.include(await good(["simulate", "--runs", "1", "finagle-budget"]), line)
    assert.notInclude(await good(["simulate", "--runs", "1", "next-second"]), line)
  })

  it("says from when it counts, whichever service has the outage", async () => {
    const path = inHere("behind.json")
    const calls = [{ to: "store", policy: "none" }]
    const services = [{ name: "db", calls }, { ...small.services[0], name: "store" }]
    writeFileSync(path, JSON.stringify({ ...small, services }))
    assert.include(await good(["simulate", "--runs", "1", path]), "counted from the end of the last outage")
  })

  it("runs the scenario of a page again", async () => {
    const written = inHere("sent.html")
    const scenario = inHere("sent.json")
    writeFileSync(scenario, JSON.stringify({ ...small, description: "<b>\"5 > 4\" & '&lt;'</b>" }))
    const first = await good(["simulate", scenario, "--runs", "2", "--json", "--report", written])
    assert.deepStrictEqual(JSON.parse(await good(["simulate", written, "--runs", "2", "--json"])), JSON.parse(first))
  })

  it("writes a page that names the command", async () => {
    const path = inHere("it's.html")
    const out = await run(["simulate", "--runs", "1", smallFile, "--report", path])
    assert.strictEqual(out.code, 0)
    assert.strictEqual(out.err, `wrote ${path}\n`)
    const page = text(path)
    assert.match(page, /^<!doctype html>/i)
    assert.include(page, "effect-retry simulate")
    assert.isEmpty(readdirSync(here).filter((name) => name.includes(".tmp")))
  })

  it("reads a file that begins with a byte order mark", async () => {
    writeFileSync(inHere("bom.json"), `\uFEFF${JSON.stringify(small)}`)
    assert.strictEqual(
      await good(["simulate", "--runs", "1", inHere("bom.json")]),
      await good(["simulate", "--runs", "1", smallFile])
    )
  })

  it("prints no control character of a scenario", async () => {
    const path = inHere("evil.json")
    writeFileSync(path, JSON.stringify({ ...small, name: "a\u001b[31m\u202e" }))
    const out = await good(["simulate", "--runs", "1", path])
    assert.include(out, "a\\x1b[31m\\u202e")
    assert.notMatch(out.replaceAll("\n", ""), /[\p{Cc}\u202e]/u)
  })
})

describe("durations", () => {
  const short = {
    ...small,
    duration: "10s",
    drain: "5s",
    fleets: [{
      ...small.fleets[0],
      timeout: "1s",
      network: "5ms",
      policy: retrying({ source: { fixed: { delay: "100ms" } } })
    }],
    services: [{ name: "db", latency: { exponential: "10 ms" }, outages: [{ kind: "fail", from: "2s", to: "0.1m" }] }]
  }
  const long = {
    ...short,
    duration: "10 seconds",
    drain: "5 seconds",
    fleets: [{
      ...short.fleets[0],
      timeout: 1000,
      network: "5 millis",
      policy: retrying({ source: { fixed: { delay: "100 millis" } } })
    }],
    services: [{ name: "db", latency: { exponential: 10 }, outages: [{ kind: "fail", from: 2000, to: "6 seconds" }] }]
  }

  it("are written as people write them, in files", async () => {
    writeFileSync(inHere("short.json"), JSON.stringify(short))
    writeFileSync(inHere("long.json"), JSON.stringify(long))
    const first = await good(["simulate", inHere("short.json")])
    assert.strictEqual(
      first.replaceAll("100ms", "100 millis"),
      await good(["simulate", inHere("long.json")])
    )
  })

  it("are written as people write them, in flags", async () => {
    const steps = JSON.stringify({ steps: [{ fixed: { delay: "1s" } }, { maxAttempts: 2 }] })
    const args = (attempt: string, deadline: string) => [
      "explain",
      steps,
      "--attempt",
      attempt,
      "--deadline",
      deadline
    ]
    assert.strictEqual(await good(args("500ms", "2s")), await good(args("500", "2 seconds")))
    for (const [one, other] of firstOf([["0.5s", "500 millis"]] as const, 0)) {
      assert.strictEqual(await good(args(one, "1m")), await good(args(other, "60 seconds")))
    }
  })
})

describe("compare", () => {
  const rows = (out: string): ReadonlyArray<string> => {
    const lines = out.split("\n")
    const head = lines.findIndex((line) => line.startsWith("policy"))
    return lines.slice(head + 1, lines.indexOf("", head))
  }

  it("has the scenario as written first, then each policy once", async () => {
    const out = await good([
      "compare",
      smallFile,
      "--policy",
      "awsStandard",
      "--policy",
      "naive",
      "--policy",
      "awsStandard"
    ])
    assert.deepStrictEqual(rows(out).map((row) => row.split(" ")[0]), ["naive", "awsStandard"])
  })

  it("has the numbers of the runs", async () => {
    const { runs } = JSON.parse(await good(["compare", smallFile, "--policy", "none", "--runs", "1", "--json"]))
    assert.deepStrictEqual(runs.map(({ label }: { label: string }) => label), ["naive", "none"])
    const [, none] = rows(await good(["compare", smallFile, "--policy", "none", "--runs", "1"]))
    const { totals } = runs[1].results[0].clients[0]
    const cells = none!.trim().split(/ {2,}/)
    assert.strictEqual(cells[1], String(totals.calls))
    assert.strictEqual(cells[2], `${Number((100 * totals.succeeded / totals.calls).toFixed(1))} %`)
    assert.strictEqual(cells[3], "immediately")
    assert.strictEqual(cells[4], "1.00")
    assert.strictEqual(cells[5], `${Number(totals.latency.p50Millis.toPrecision(3))} ms`)
    assert.strictEqual(cells[6], `${Number(totals.latency.p99Millis.toPrecision(3))} ms`)
    const perSecond = runs[1].results[0].services[0].series.map(({ received }: { received: number }) => received)
    assert.strictEqual(cells[7], `${Math.max(...perSecond)}/s`)
  })

  it("distinguishes policies of the same name, and gives long names their own line", async () => {
    const label = "a policy with a name that is long"
    const out = await good([
      "compare",
      smallFile,
      "--policy",
      JSON.stringify(retrying({ label, attempts: 2 })),
      "--policy",
      JSON.stringify(retrying({ label, attempts: 4 }))
    ])
    const found = rows(out)
    assert.strictEqual(found[1], label)
    assert.match(found[2]!, /^ +\d/)
    assert.strictEqual(found[3], `${label} (2)`)
    assert.isAtMost(Math.max(...found.map((row) => row.length)), 100)
  })

  it("repeats the notes of a scenario, and speaks of no recovery where nothing bounds a service", async () => {
    const path = inHere("unbounded.json")
    const { connections: _, ...unbounded } = small.services[0]!
    writeFileSync(path, JSON.stringify({ ...small, notes: ["its capacity\u001b is unknown"], services: [unbounded] }))
    for (const runs of ["1", "5"]) {
      const compared = await run(["compare", path, "--policy", "none", "--runs", runs])
      assert.strictEqual(compared.err, `effect-retry: warning: ${path}: notes[0]: its capacity\\x1b is unknown\n`)
      assert.notMatch(compared.out, /recover/)
      const simulated = await run(["simulate", path, "--runs", runs])
      assert.strictEqual(simulated.err, compared.err)
      assert.notMatch(simulated.out, /recover/)
    }
    const page = inHere("unbounded.html")
    await good(["compare", path, "--policy", "none", "--runs", "5", "--report", page])
    assert.include(text(page), "cannot overload its service, which has no capacity")
    assert.notMatch(text(page).replace(/<style>[^]*?<\/style>|<script[^]*?<\/script>/g, ""), /recover/)
  })

  it("has a row for each fleet", async () => {
    const two = { ...small, fleets: [...small.fleets, { ...small.fleets[0], name: "batch", policy: "none" }] }
    writeFileSync(inHere("two.json"), JSON.stringify(two))
    const out = await good(["compare", "--runs", "1", inHere("two.json"), "--policy", "none"])
    assert.include(out, "90 % of calls in total succeed")
    assert.isAtMost(Math.max(...out.split("\n").map((line) => line.length)), 100)
    const found = rows(out)
    assert.deepStrictEqual(found.map((row) => row.split(/ {2,}/)[0]), [
      "as written: app",
      "as written: batch",
      "none: app",
      "none: batch"
    ])
  })

  it("summarizes several runs, with differences seed by seed", async () => {
    const args = ["compare", smallFile, "--policy", "none", "--runs", "4", "--seed", "3"]
    const { runs } = JSON.parse(await good([...args, "--json"]))
    assert.deepStrictEqual(runs[1].seeds, [3, 4, 5, 6])
    const shares = runs.map(({ results }: { results: ReadonlyArray<any> }) =>
      results.map(({ clients: [{ totals }] }) => totals.succeeded / totals.calls)
    )
    const mean = (values: ReadonlyArray<number>) => values.reduce((a, b) => a + b) / values.length
    assert.closeTo(runs[1].summary.succeeded.mean, mean(shares[1]), 1e-12)
    const each = shares[1].map((share: number, run: number) => share - shares[0][run])
    assert.closeTo(runs[1].difference.succeeded.mean, mean(each), 1e-12)
    const out = await good(args)
    assert.include(out, "4 runs, seeds 3 to 6: mean (5 to 95 % of the runs)")
    assert.match(out, /against naive, with the same seeds:/)
    assert.match(rows(out)[1]!, / 4 of 4/)
    assert.strictEqual(await good(args), out)
  })

  it("makes as many runs as are cheap, or as many as asked for", async () => {
    assert.include(await good(["simulate", smallFile]), "20 runs, seeds 1 to 20")
    assert.include(await good(["simulate", smallFile, "--runs", "1"]), "seed 1: one run, one random sample")
  })

  it("writes one page of all", async () => {
    const path = inHere("compared.html")
    await good(["compare", smallFile, "--policy", "awsStandard", "--report", path])
    assert.include(text(path), "awsStandard")
    assert.include(text(path), "naive")
    assert.notInclude(text(path), "Where each policy recovers")
  })

  it("begins the page with a map when it is asked to", async () => {
    const path = inHere("mapped.html")
    const input = inputOf("outage", {
      scenario: { duration: "6 seconds", drain: "2 seconds" },
      fleet: { rate: 8 },
      service: { capacity: 10, outages: [{ kind: "hold", from: "2 seconds", to: "4 seconds" }] }
    })
    writeFileSync(inHere("tiny.json"), JSON.stringify(input))
    await good(["compare", inHere("tiny.json"), "--policy", "none", "--runs", "1", "--report", path, "--map"])
    const page = text(path)
    assert.include(page, "Where each policy recovers")
    assert.isBelow(page.indexOf("Where each policy recovers"), page.indexOf("Load on database"))
    assert.strictEqual(page.split("aria-label=\"Where ").length - 1, 3)
  })

  it("refuses a map without a page, and one of a scenario without an outage, before anything runs", async () => {
    const mapped = (...args: ReadonlyArray<string>) => run(["compare", ...args, "--policy", "none", "--map"])
    const without = await mapped("outage")
    assert.deepStrictEqual([without.code, without.out], [2, ""])
    assert.include(without.err, "--map adds a map to the --report page")
    const calm = await mapped("steady-failures", "--report", inHere("calm.html"))
    assert.deepStrictEqual([calm.code, calm.out], [2, ""])
    assert.match(calm.err, /has no \w.* to map: give another parameter, such as `effect-retry map --[xy] \S+`/)
  })
})

describe("map", () => {
  // A fifth of the outage of the scenario that ships.
  const fifth = inHere("fifth.json")
  writeFileSync(fifth, JSON.stringify(inputOf("outage", { fleet: { rate: 56 }, service: { capacity: 60 } })))
  const args = [
    "map",
    fifth,
    "--policy",
    "none",
    "--x",
    "fleets.0.rate=20..48/2",
    "--y",
    "services.0.outages.0.length=1..9000/2"
  ]

  it("draws where each policy recovers, limps and collapses, with what theory says", async () => {
    const path = inHere("map.svg")
    const ran = await run([...args, "--runs", "1", "--svg", path])
    assert.deepStrictEqual([ran.code, ran.err], [0, `wrote ${path}\n`])
    assert.deepStrictEqual(ran.out.split("\n").slice(2, 7).map((line) => line.trim().split(/ {3,}/)), [
      ["retry once", "none"],
      ["in theory, recovers below 30/s", "in theory, recovers below 60/s"],
      ["9 s . #", "9 s . ."],
      ["1 ms . .", "1 ms . ."],
      ["20 48", "20 48"]
    ])
    assert.include(text(path), "retry once: Recovers in 3 of 4 cells, limps in 0, collapses in 1")
  })

  it("is data too", async () => {
    const { maps } = JSON.parse(await good([...args, "--runs", "1", "--json"]))
    assert.deepStrictEqual(maps.map(({ label }: { label: string }) => label), ["retry once", "none"])
    assert.deepStrictEqual(maps[0].rows, [["recovers", "recovers"], ["recovers", "collapses"]])
  })

  it("takes durations as people write them", async () => {
    const lengths = async (range: string) => {
      const y = `services.0.outages.0.length=${range}`
      const out = await good(["map", smallFile, "--x", "fleets.0.rate=10..20/2", "--y", y, "--runs", "1", "--json"])
      return JSON.parse(out).maps[0].y.values
    }
    assert.deepStrictEqual(await lengths("500ms..2s/2"), [500, 2000])
    assert.deepStrictEqual(await lengths("500..2000/2"), [500, 2000])
  })

  it("refuses what is not a parameter", async () => {
    const { code, err } = await run(["map", "outage", "--x", "fleets.0.speed=1..2"])
    assert.deepStrictEqual([code, err.trim()], [
      2,
      "effect-retry: fleets[0].speed: is not a key here: use one of name, to, policy, timeout, patience, network, processes, rate, arrivals, clients, think, pace, calls, processesOf, criticality"
    ])
  })
})

describe("scenarios", () => {
  it("lists every key that a scenario can have, with its description", async () => {
    const out = await good(["scenarios", "--keys"])
    const schema = JSON.parse(await good(["scenarios", "--keys", "--json"]))
    for (const name of ["Scenario", "Fleet", "Arrivals", "Service", "Costs", "Balancer"]) {
      for (const key of Object.keys(schema.$defs[name].properties)) {
        assert.match(out, new RegExp(`^  ${key.replace("$", "\\$")} +\\S`, "m"), `${name}.${key}`)
      }
    }
    assert.match(out, /^ {2}backlog +New connections held /m)
    assert.include(out, "hold  Keys: from, to, instance, backlog.")
  })

  const shipped = readdirSync(join(lab, "scenarios")).map((name) => name.replace(".json", "")).sort()

  it("lists the built-in scenarios and what they show, in 100 columns", async () => {
    const out = await good(["scenarios"])
    assert.deepStrictEqual(out.split("\n").flatMap((line) => /^\S+/.exec(line) ?? []), shipped)
    assert.isAtMost(Math.max(...out.split("\n").map((line) => line.length)), 100)
    const data: ReadonlyArray<{ name: string; description: string }> = JSON.parse(await good(["scenarios", "--json"]))
    assert.deepStrictEqual(data.map(({ name }) => name), shipped)
    for (const { description } of data) assert.isAbove(description.length, 20)
  })

  it("says where it looked if they are missing", async () => {
    const { code, err } = await run(["scenarios"], { folder: inHere("nowhere") })
    assert.strictEqual(code, 2)
    assert.include(err, "nowhere")
  })
})

describe("policies", () => {
  it("lists every name, and every key of settings, in 102 columns", async () => {
    const out = await good(["policies"])
    for (const name of Simulator.policies) assert.match(out, new RegExp(`^ {2}${name} +\\S`, "m"))
    const words = [
      "steps",
      "exponential",
      "decorrelated",
      "maxAttempts",
      "whileRetryable",
      "refillPerSecond",
      "breaker"
    ]
    for (const word of words) assert.match(out, new RegExp(`^ {2}${word} +\\S`, "m"))
    assert.include(out, "Keys: delay, jitter.")
    assert.isAtMost(Math.max(...out.split("\n").map((line) => line.length)), 102)
  })

  it("prints settings that do what the name does", async () => {
    // Overload, so that every quota, budget and gate matters.
    const service = { name: "service", capacity: 30, queue: 20, outages: [{ kind: "fail", from: "2s", to: "4s" }] }
    for (const name of firstOf(Simulator.policies, 4)) {
      const settings = await good(["policies", name])
      const scenario = (policy: unknown) => ({
        name: "overloaded",
        duration: "10s",
        fleets: [{ name: "clients", to: "service", rate: 60, timeout: "500ms", policy }],
        services: [service]
      })
      writeFileSync(inHere("named.json"), JSON.stringify(scenario(name)))
      writeFileSync(inHere("settings.json"), JSON.stringify(scenario(JSON.parse(settings))))
      const [first, second] = [
        await good(["simulate", inHere("named.json"), "--runs", "1"]),
        await good(["simulate", inHere("settings.json"), "--runs", "1"])
      ]
      assert.strictEqual(second, first)
    }
  })

  it("gives the data of all", async () => {
    const data: ReadonlyArray<{ name: string; settings: unknown }> = JSON.parse(await good(["policies", "--json"]))
    assert.deepStrictEqual(data.map(({ name }) => name), [...Simulator.policies])
    assert.deepStrictEqual(data[0]!.settings, null)
    assert.deepStrictEqual(data[4]!.settings, JSON.parse(await good(["policies", "awsStandard"])))
    assert.deepStrictEqual(JSON.parse(await good(["policies", "awsStandard", "--json"])), data[4])
  })

  it("gives a resource of a RetryConfig document for each that is not modeled", async () => {
    const data: ReadonlyArray<{ description: string; resource?: unknown }> = JSON.parse(
      await good(["policies", "--json"])
    )
    for (const { description, resource } of data) {
      assert.strictEqual(resource === undefined, description.includes("modeled"), description)
      await Effect.runPromise(RetryConfig.check({ resources: { orders: resource ?? {} } }))
    }
  })
})

describe("init", () => {
  it("writes a scenario that runs", async () => {
    const path = inHere("mine.json")
    assert.strictEqual(await good(["init", path]), `wrote ${path}; next: effect-retry simulate ${path}\n`)
    assert.include(await good(["simulate", "--runs", "1", path]), "my-service")
    const spaced = inHere("my own.json")
    assert.include(await good(["init", spaced]), `next: effect-retry simulate '${spaced}'\n`)
  })

  it("writes what is known about a service, and names what it guesses", async () => {
    const path = inHere("question.json")
    await good(["init", path, "--rate", "400", "--clients", "30", "--p99", "80ms", "--brownout", "20s"])
    const { description, fleets: [fleet], services: [service] } = JSON.parse(text(path))
    assert.strictEqual(
      description,
      "For 20s half of the requests fail immediately. Guesses, to replace with measurements: the capacity, the latency that was not given, the timeout."
    )
    assert.deepInclude(fleet, { rate: 400, processes: 30, timeout: "1s", policy: "awsStandard" })
    assert.deepStrictEqual(service, {
      name: "service",
      capacity: 600,
      latency: { p50: "12ms", p99: "80ms" },
      outages: [{ kind: "fail", from: "20s", to: "40s", share: 0.5 }]
    })
  })

  const known = ["--capacity", "500", "--p50", "30ms", "--p99", "900ms", "--timeout", "2.5s"]
  const outages: ReadonlyArray<readonly [kind: string, outage: object]> = [
    ["slow", { kind: "slow", from: "20s", to: "80s", factor: 20 }],
    ["drop", { kind: "drop", from: "20s", to: "80s", share: 0.5 }],
    ["hold", { kind: "hold", from: "20s", to: "80s" }]
  ]
  for (const [kind, outage] of outages) {
    it(`guesses nothing that was given about a brownout of kind ${kind}`, async () => {
      const path = inHere(`${kind}.json`)
      await good(["init", path, ...known, "--brownout", "1m", "--kind", kind])
      const { description, duration, fleets, services } = JSON.parse(text(path))
      assert.notInclude(description, "Guesses")
      assert.strictEqual(duration, "260s")
      assert.strictEqual(fleets[0].timeout, "2500ms")
      assert.deepStrictEqual(services[0], {
        name: "service",
        capacity: 500,
        latency: { p50: "30ms", p99: "900ms" },
        outages: [outage]
      })
    })
  }

  it("has the factor of a slow brownout, and the bound of the queue", async () => {
    const path = inHere("queue.json")
    await good(["init", path, "--brownout", "30s", "--kind", "slow", "--factor", "4.5", "--queue", "1500"])
    const { description, services: [{ outages: [outage], queue }] } = JSON.parse(text(path))
    assert.deepStrictEqual([outage.factor, queue], [4.5, 1500])
    assert.include(description, "the work takes 4.5 times as long")
  })

  it("answers the question of a newcomer in one command", async () => {
    const path = inHere("asked.json")
    const steps = JSON.stringify(retrying({ label: "three attempts", attempts: 3 }))
    const asked = ["--rate", String(budget(80, 20)), "--clients", "30", "--p99", "80ms", "--brownout", "20s"]
    const { code, err, out } = await run(["init", path, ...asked, "--policy", "none", "--policy", steps])
    assert.deepStrictEqual([code, err], [0, `wrote ${path}\n`])
    assert.strictEqual(JSON.parse(text(path)).fleets[0].policy, "none")
    for (const compared of firstOf([() => good(["compare", path, "--policy", steps])], 0)) {
      assert.strictEqual(out, await compared())
    }
    assert.match(out, /^none .* 9[12]\.\d/m)
    assert.match(out, /^three attempts .* 9[78]\.\d/m)
  })

  it("writes steps as they were typed", async () => {
    const path = inHere("steps.json")
    const settings = { steps: [{ fixed: { delay: "100ms" } }, { maxAttempts: 2 }, "whileRetryable"] }
    await good(["init", path, "--policy", JSON.stringify(settings)])
    assert.deepStrictEqual(JSON.parse(text(path)).fleets[0].policy, settings)
  })

  it("overwrites nothing without --force", async () => {
    const path = inHere("theirs.json")
    writeFileSync(path, "theirs")
    const { code, err } = await run(["init", path])
    assert.strictEqual(code, 2)
    assert.include(err, "--force")
    assert.strictEqual(text(path), "theirs")
    await good(["init", path, "--force"])
    assert.include(text(path), "$schema")
  })

  it("names the schema of the package that is installed above the file, otherwise the published one", async () => {
    const project = inHere("project")
    mkdirSync(join(project, "node_modules", "@effect-retry"), { recursive: true })
    mkdirSync(join(project, "sub"))
    symlinkSync(lab, join(project, "node_modules", "@effect-retry", "lab"))
    const schemaOf = async (path: string): Promise<string> => {
      await good(["init", path])
      return JSON.parse(text(path)).$schema
    }
    assert.strictEqual(
      await schemaOf(join(project, "a.json")),
      "./node_modules/@effect-retry/lab/dist/scenario.schema.json"
    )
    const inSub = await schemaOf(join(project, "sub", "b.json"))
    assert.strictEqual(inSub, "../node_modules/@effect-retry/lab/dist/scenario.schema.json")
    assert.strictEqual(
      await schemaOf(inHere("alone.json")),
      "https://unpkg.com/@effect-retry/lab@1.2.3/dist/scenario.schema.json"
    )
  })
})

describe("a file that is there", () => {
  const expecting = inHere("expecting.json")
  writeFileSync(expecting, JSON.stringify({ ...small, expect: { succeed: ">= 1 %" } }))
  const writers: ReadonlyArray<readonly [args: (path: string) => ReadonlyArray<string>, begins: string]> = [
    [(path) => ["simulate", smallFile, "--report", path], "<!DOCTYPE html>"],
    [(path) => ["explain", "none", "--svg", path], "<svg"],
    [(path) => ["check", expecting, "--junit", path], "<?xml"],
    [(path) => ["check", expecting, "--markdown", path], "<!-- effect-retry check"],
    [(path) => ["tune", smallFile, "--code", path], "import "]
  ]
  for (const [args, begins] of writers) {
    const typed = args("file")
    it(`is kept if it is no such one: ${typed.at(-2)}`, async () => {
      const path = inHere(`there-${typed.at(-2)}`)
      writeFileSync(path, "{}")
      const { code, err, out } = await run(args(path))
      assert.deepStrictEqual([code, out], [2, ""])
      assert.strictEqual(err, `effect-retry: cannot write ${JSON.stringify(path)}: a file of another kind is there\n`)
      assert.strictEqual(text(path), "{}")
    })

    it(`is replaced if it is empty, or such a one, and keeps who may read it: ${typed.at(-2)}`, async () => {
      for (const before of firstOf([`${begins} before`, ""], 1)) {
        const path = inHere(`own-${typed.at(-2)}`)
        writeFileSync(path, before, { mode: 0o600 })
        await run(args(path))
        assert.isTrue(text(path).startsWith(begins))
        assert.isAbove(text(path).length, before.length)
        assert.strictEqual(statSync(path).mode & 0o777, 0o600)
      }
    })
  }
})

describe("a link that is named as the file to write", () => {
  const target = inHere("target")
  const link = (name: string, to: string): string => {
    symlinkSync(to, inHere(name))
    return inHere(name)
  }

  const links = [["a file", link("to-file", target)], ["nothing", link("to-nothing", inHere("nothing"))]] as const
  const writers: ReadonlyArray<readonly [what: string, args: (path: string) => ReadonlyArray<string>]> = [
    ["a report", (path) => ["simulate", smallFile, "--report", path]],
    ["a picture", (path) => ["explain", "none", "--svg", path]],
    ["a scenario", (path) => ["init", path, "--force"]]
  ]
  for (const [what, args] of writers) {
    for (const [to, path] of links) {
      it(`to ${to} is refused for ${what}, and nothing is written there`, async () => {
        writeFileSync(target, "mine")
        const { code, err } = await run(args(path))
        assert.deepStrictEqual([code, text(target)], [2, "mine"])
        assert.strictEqual(err, `effect-retry: cannot write ${JSON.stringify(path)}: it is a link\n`)
        assert.isTrue(lstatSync(path).isSymbolicLink())
        assert.isFalse(existsSync(inHere("nothing")))
      })
    }
  }

  it("may lead to the folder of the file", async () => {
    mkdirSync(inHere("folder"))
    await good(["init", join(link("to-folder", inHere("folder")), "own.json")])
    assert.include(text(inHere("folder/own.json")), "$schema")
  })
})

describe("what is refused", () => {
  writeFileSync(inHere("bad.json"), JSON.stringify({ ...small, fleets: [{ ...small.fleets[0], rate: -1, polcy: 1 }] }))
  const broken: ReadonlyArray<readonly [json: string, where: string]> = [
    ["", "line 1, column 1: it ends too early"],
    ["{ \"name\": \n", "line 1, column 10: it ends too early"],
    ["{\n  \"name\": \"a\",\n}", "line 3, column 1: unexpected \"}\""],
    ["{\r\n  \"name\": \"a\"\r\n  \"seed\": 1\r\n}", "line 3, column 3: unexpected"],
    ["{ \"seed\": tru }", "line 1, column 11: unexpected \"tru\""],
    ["{ name: 1 }", "line 1, column 3: unexpected \"name\""],
    ["{} x", "line 1, column 4: unexpected \"x\""],
    ["// a\n{}", "line 1, column 1: unexpected \"/\""],
    ["{ \"name\": \"a\\q\" }", "line 1, column 11: unexpected"],
    ["{\n\"name\": \"a\tb\" }", "line 2, column 9: unexpected"]
  ]
  writeFileSync(inHere("file"), "")
  writeFileSync(inHere("page.html"), "<!doctype html><p>nothing</p>")
  const report = (path: string) => ["simulate", smallFile, "--report", path]

  const cases: ReadonlyArray<readonly [why: string, args: ReadonlyArray<string>, lines: ReadonlyArray<string>]> = [
    ["every mistake of a scenario, with its path", ["simulate", inHere("bad.json")], [
      `${inHere("bad.json")}: fleets[0].polcy: is not a key here`,
      `${inHere("bad.json")}: fleets[0].rate: expected a number from 0 to 1000000, got -1`
    ]],
    ...broken.map(([json, where], index) => {
      const path = inHere(`broken-${index}.json`)
      writeFileSync(path, json)
      return [`JSON that is broken: ${JSON.stringify(json)}`, ["simulate", path], [
        `${path}: is not valid JSON: ${where}`
      ]] as const
    }),
    ["a page without a scenario", ["simulate", inHere("page.html")], [
      `${inHere("page.html")}: is a page without a whole scenario: use the scenario's own file`
    ]],
    ["a file that does not exist", ["simulate", inHere("none.json")], ["no such file or folder"]],
    ["a folder", ["simulate", here], ["it is a folder"]],
    ["a misspelled scenario", ["simulate", "outag"], [
      "\"outag\" is neither a built-in scenario nor a file: did you mean outage?"
    ]],
    ["a scenario that is like none", ["simulate", "qqqqqqqqqq"], ["use one of adaptive, broken-instance"]],
    ["a misspelled policy", ["explain", "awsstandart"], [
      "unknown policy \"awsstandart\": did you mean awsStandard"
    ]],
    ["a policy that is like none", ["explain", "qqqqqqqqqq"], ["use one of none, naive,"]],
    ["a name of no policy", ["policies", "awsstandart"], ["unknown policy \"awsstandart\": did you mean awsStandard"]],
    ["settings that are not JSON", ["explain", "{a"], ["policy is not valid JSON: line 1, column 2: unexpected \"a\""]],
    ["every mistake of settings", ["explain", `{"steps":[{"fixed":{"delay":0,"cap":1}},{"maxAttempts":0}]}`], [
      "policy: steps[0].fixed.cap: is not a key here",
      "policy: steps[1].maxAttempts: expected a whole number of at least 1"
    ]],
    ["a policy that is unknown, before the scenario is read", ["compare", "none.json", "--policy", "x"], [
      "unknown policy \"x\": "
    ]],
    ["a comparison of nothing", ["compare", "outage"], [
      "Missing required flag: --policy",
      "see effect-retry compare --help"
    ]],
    ["a missing scenario", ["simulate"], ["Missing required argument: scenario", "see effect-retry simulate --help"]],
    ["an unknown command", ["simulat"], ["Did you mean this? simulate", "see effect-retry --help"]],
    ["an unknown command with --help", ["simulat", "--help"], [
      "Did you mean this? simulate",
      "see effect-retry --help"
    ]],
    ["an unknown command with -h", ["help", "-h"], ["Unknown subcommand \"help\"", "see effect-retry --help"]],
    ["a file in place of a policy", ["explain", "mine.json"], [
      "\"mine.json\" is a file, not a policy: a scenario runs with effect-retry simulate"
    ]],
    ["an unknown flag", ["simulate", "outage", "--sead", "1"], ["--sead", "see effect-retry simulate --help"]],
    ["a negative seed", ["simulate", "outage", "--seed=-1"], ["a whole number from 0", "see "]],
    ["a seed that is too large", ["simulate", "outage", "--seed", "1e300"], ["--seed", "see "]],
    ["what is not a duration", ["explain", "none", "--attempt", "soon"], [
      "Expected: milliseconds, or a text such as \"250ms\"",
      "see "
    ]],
    ["a deadline of nothing", ["explain", "naive", "--deadline", "0"], ["deadline must be "]],
    ["a failure rate above 1", ["explain", "none", "--failure-rate", "2"], ["a number from 0 to 1", "see "]],
    ["a failure rate above 100 %", ["explain", "none", "--failure-rate", "101%"], ["or a percentage", "see "]],
    ["a folder that does not exist", report(join(here, "no", "r.html")), ["no such file or folder"]],
    ["a folder to write to", report(here), ["it is a folder"]],
    ["a path through a file", report(join(here, "file", "r.html")), ["part of its path is not a folder"]],
    ["a picture that cannot be written", ["explain", "none", "--svg", join(here, "no", "p.svg")], ["cannot write"]],
    ["a start that makes no scenario", ["init", inHere("new.json"), "--p50", "3s", "--p99", "2s"], [
      "services[0].latency: expected p50 above 0 and p99 not below it"
    ]],
    ["a brownout of no kind", ["init", inHere("new.json"), "--brownout", "2s", "--kind", "grey"], ["--kind", "see "]],
    ["a rate of nothing", ["init", inHere("new.json"), "--rate", "0"], ["a number above 0", "see "]],
    ["a start that cannot be written", ["init", join(here, "no", "s.json")], ["cannot write"]]
  ]
  for (const [why, args, lines] of cases) {
    it(`is ${why}: exit code 2, a clear line each, and nothing written`, async () => {
      const before = readdirSync(here)
      const { code, err, out } = await run(args)
      assert.strictEqual(code, 2)
      assert.strictEqual(out, "")
      const found = err.trimEnd().split("\n")
      assert.strictEqual(found.length, lines.length, err)
      for (const [index, line] of lines.entries()) {
        assert.match(found[index]!, /^effect-retry: /)
        assert.include(found[index], line)
      }
      assert.deepStrictEqual(readdirSync(here), before)
    })
  }

  it("is a path that cannot be written, before anything runs", async () => {
    for (const path of [here, join(here, "no", "r.html")]) {
      const args = ["simulate", "--runs", "1", "ten-thousand-clients", "--report", path]
      const { code, progress } = await run(args, { onProgress: (interrupt) => interrupt() })
      assert.deepStrictEqual([code, progress], [2, []])
    }
  })

  it("leaves an existing page unchanged when it cannot be replaced, and no other file", async () => {
    const path = inHere("page")
    mkdirSync(path)
    const before = readdirSync(here)
    assert.strictEqual((await run(report(path))).code, 2)
    assert.deepStrictEqual(readdirSync(here), before)
  })

  it("is a scenario in which time is stuck", async () => {
    const path = inHere("still.json")
    const endless = { name: "c", to: "s", clients: 1 }
    writeFileSync(path, JSON.stringify({ name: "still", fleets: [endless], services: [{ name: "s", failureRate: 1 }] }))
    const { code, err } = await run(["simulate", path])
    assert.strictEqual(code, 2)
    assert.match(err, /^effect-retry: still .*virtual time is stuck/)
  })
})

describe("progress", () => {
  it("is shown on a terminal, with the time left, and cleared at the end", async () => {
    const { code, progress } = await run(["simulate", "--runs", "1", briefFile], { onProgress: () => {} })
    assert.strictEqual(code, 0)
    assert.isAbove(progress.length, 1)
    assert.strictEqual(progress.at(-1), "\r\u001b[2K")
    const shown = progress.map((text) => text.replace("\r\u001b[2K", ""))
    const running = shown.filter((text) => text.endsWith(" attempts")).at(-1)!
    assert.match(running, /^█+░+ \d+ %, [\d.]+ s, [\d.]+ s left: retry once, [\d,]+ attempts$/)
    assert.match(shown.at(-2)!, /^█{20} 100 %, [\d.]+ s: retry once, with other capacities$/)
  })

  onlyInFull(() => {
    it("is one share of all that is planned, which never falls, with the time that went by", async () => {
      const args = ["compare", briefFile, "--policy", "none", "--policy", "awsStandard", "--runs", "2"]
      const { progress } = await run(args, { onProgress: () => {} })
      const found = progress.flatMap((text) => [...text.matchAll(/ (\d+) %, ([\d.]+) (s|min)/g)])
      const shares = found.map(([, share]) => Number(share))
      assert.isAbove(shares.length, 5)
      assert.deepStrictEqual(shares, [...shares].sort((a, b) => a - b))
      assert.isAbove(shares.at(-1)!, 80)
      const times = found.map(([, , time, unit]) => Number(time) * (unit === "s" ? 1 : 60))
      assert.deepStrictEqual(times, [...times].sort((a, b) => a - b))
    })
  })

  it("is not shown elsewhere", async () => {
    assert.deepStrictEqual((await run(["simulate", smallFile])).progress, [])
  })
})

describe("Ctrl-C", () => {
  it("keeps the results so far, marked as partial", async () => {
    const path = inHere("partial.html")
    const { code, err, out, progress } = await run([
      "simulate",
      "--runs",
      "1",
      "ten-thousand-clients",
      "--report",
      path
    ], {
      onProgress: (interrupt) => interrupt()
    })
    assert.strictEqual(code, 130)
    assert.match(out, /^PARTIAL: stopped after [\d.]+ (ms|s) of virtual time, with awsStandard\n/)
    assert.strictEqual(err, `wrote ${path}\n`)
    assert.match(text(path), /partial/i)
    assert.strictEqual(progress.at(-1), "\r\u001b[2K")
  })

  it("keeps the complete runs of a comparison", async () => {
    const { code, out } = await run([
      "compare",
      briefFile,
      "--policy",
      "awsStandard",
      "--policy",
      "none",
      "--runs",
      "1",
      "--json"
    ], {
      onProgress: (interrupt, text) => {
        if (text.includes("awsStandard, 1 of 3 runs done")) interrupt()
      }
    })
    assert.strictEqual(code, 130)
    const { runs }: { runs: ReadonlyArray<{ label: string; results: ReadonlyArray<{ partial: boolean }> }> } = JSON
      .parse(out)
    assert.deepStrictEqual(
      runs.map(({ label, results: [result] }) => [label, result?.partial]),
      [["retry once", false], ["awsStandard", true]]
    )
  })
})
