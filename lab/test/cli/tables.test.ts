/** The tables that the commands print, of figures that nothing has simulated. */
import type * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import { backtestTable } from "../../src/cli/backtestTable.ts"
import { checkJUnit } from "../../src/cli/checkJUnit.ts"
import { checkText } from "../../src/cli/checkText.ts"
import { comparisonTable } from "../../src/cli/comparisonTable.ts"
import { edgeLines } from "../../src/cli/edges.ts"
import type { Checked } from "../../src/cli/judgments.ts"
import { mapTable } from "../../src/cli/mapTable.ts"
import { legend, peakOf, seedsLine, share, spread } from "../../src/cli/outcome.ts"
import { simulationTable } from "../../src/cli/simulationTable.ts"
import { sweepText } from "../../src/cli/sweepText.ts"
import { tuneText } from "../../src/cli/tuneText.ts"
import { warningTexts } from "../../src/cli/warnings.ts"
import { around, type Made, made, runsOf } from "./made.ts"

/** An outage of two seconds, from which the calls recover a second later. */
const recovering: Made = {
  shares: [0, 0, 0, 100, 100, 100],
  outageEnd: "2 seconds",
  sends: 1.5,
  failures: { unavailable: 1234, timeout: 5 },
  stops: { "quota-exhausted": 7, "max-attempts": 2 },
  latency: { p50Millis: 20, p90Millis: 30, p99Millis: 1234.5, maxMillis: 2000 }
}

const lines = (text: string): ReadonlyArray<string> => text.split("\n").map((line) => line.replace(/ +/g, " ").trim())

describe("a figure", () => {
  it("of several runs has their range where it is written differently", () => {
    const write = (value: number) => value.toFixed(1)
    assert.strictEqual(spread(undefined, write), "-")
    assert.strictEqual(spread(around(1, 0.98, 1.02), write), "1.0")
    assert.strictEqual(spread(around(1, 0.9, 1), write), "1.0 (0.9 to 1.0)")
  })

  it("of the peak load has one place below 10 requests a second, and is a dash if there are none", () => {
    const peak = (load: number) => {
      const result = made({ shares: [100], load })
      return peakOf(result, result.services)
    }
    assert.deepStrictEqual([0, 9.96, 9.94, 10.4, 12_345.6].map(peak), ["-", "10/s", "9.9/s", "10/s", "12,346/s"])
  })

  it("of the calls is of all when a run is over, and of those that ended before", () => {
    const of = (partial: boolean, open: number) => {
      const result = made({ shares: [50], open, partial })
      return share(result, result.clients[0]!)
    }
    assert.deepStrictEqual([of(false, 100), of(true, 100)], ["25 %", "50 %"])
    const nothing = made({ shares: [undefined] })
    assert.strictEqual(share(nothing, nothing.clients[0]!), "-")
  })
})

describe("the line of seeds", () => {
  it("says that one run is a sample, and which seeds several have", () => {
    const [first, second] = [made({ shares: [100], seed: 7 }), made({ shares: [100], seed: 8 })]
    assert.strictEqual(seedsLine([first]), "seed 7: one run, one random sample; --runs 20 shows a range")
    assert.strictEqual(seedsLine([first, second]), "2 runs, seeds 7 to 8: mean (5 to 95 % of the runs)")
  })
})

describe("the legend", () => {
  it("names what there is more than one of, and from when recovery counts", () => {
    const one = made({ shares: [100] })
    assert.deepStrictEqual(legend(one, "busiest"), [
      "succeed: calls that succeed; p50 to max: their latency, retries included",
      "peak load: most requests per second, in steps of 1 s",
      "recovered: from then on 90 % of calls succeed, counted from the start"
    ])
    const { fleets: [fleet], services: [service] } = one.scenario
    const [outage] = made({ shares: [100], outageEnd: "1 second" }).scenario.services
    const two = { ...one, scenario: { ...one.scenario, fleets: [fleet, fleet] as const, services: [service, outage!] } }
    assert.deepStrictEqual(legend(two as any, "busiest").slice(1), [
      "peak load: most requests per second to the busiest service, in steps of 1 s",
      "recovered: from then on 90 % of calls in total succeed, counted from the end of the last outage"
    ])
    assert.notInclude(legend(two as any, "each").join(), "busiest")
  })
})

describe("the table of simulate", () => {
  it("has the clients, the services, how calls ended, and when they recovered", () => {
    assert.deepStrictEqual(lines(simulationTable(runsOf("x", recovering))), [
      "s: 6 s of virtual time, seed 1, trace abc",
      "",
      "clients calls succeed sends/call p50 p90 p99 max",
      "f 600 50 % 1.50 20 ms 30 ms 1.23 s 2 s",
      "",
      "services requests answered failed wasted peak load",
      "s 900 300 0 0 150/s",
      "",
      "f, policy none",
      "calls failed: unavailable 1,234, timeout 5",
      "retrying stopped: quota-exhausted 7, max-attempts 2",
      "recovered: 1 s",
      "seed 1: one run, one random sample; --runs 20 shows a range",
      "",
      "succeed: calls that succeed; p50 to max: their latency, retries included",
      "peak load: most requests per second, in steps of 1 s",
      "recovered: from then on 90 % of calls succeed, counted from the end of the last outage",
      "wasted: work finished after its client had given up",
      "quota-exhausted: retries that the quota or budget denied"
    ])
  })

  it("leaves out what did not happen, and says what has not ended", () => {
    const well = simulationTable(runsOf("x", { shares: [100] }))
    for (const words of ["calls failed", "stopped", "unfinished", "quota-exhausted", "PARTIAL"]) {
      assert.notInclude(well, words)
    }
    const text = simulationTable(runsOf("x", { shares: [50], open: 1234, partial: true }))
    assert.match(text, /^PARTIAL: stopped after 1 s of virtual time, with x\n/)
    assert.include(text, "\n  calls unfinished: 1,234\n")
    assert.include(text, "\n  retrying stopped: -\n")
  })

  it("of several runs without an outage counts the recovery from the start of the run", () => {
    const { outageEnd: _, ...busy } = recovering
    const runs = runsOf("x", busy, busy)
    const meaning = "90 % of calls succeed, and how long after the start of the run"
    const shown = [lines(simulationTable(runs)), lines(comparisonTable([runs, runsOf("y", busy, busy)]))]
    for (const [index, sentence] of ["gets back to", "runs that get back to"].entries()) {
      assert.include(shown[index]!, `recovers: ${sentence} where ${meaning}`)
    }
  })

  it("of several runs has means and ranges", () => {
    const later: Made = { ...recovering, shares: [0, 0, 0, 0, 0, 100], sends: 2 }
    assert.deepStrictEqual(lines(simulationTable(runsOf("x", recovering, later))), [
      "s",
      "2 runs, seeds 1 to 2: mean (5 to 95 % of the runs)",
      "",
      "calls",
      "succeed 33.3 % (18.3 to 48.3 %)",
      "sends/call 1.75 (1.52 to 1.98)",
      "p50 20 ms",
      "p99 1.23 s",
      "peak load 175/s (153 to 198/s)",
      "recovers 2 of 2 in 2 s (1.1 to 2.9 s)",
      "",
      "services requests answered wasted",
      "s 1,050 (915 to 1,185) 200 (110 to 290) 0",
      "",
      "p50, p99: of calls that succeed, retries included, of the busiest clients; wasted: work whose client had given up",
      "recovers: gets back to 90 % of the success rate before the outage, and how long after it",
      "--runs 1 shows one run in full"
    ])
  })
})

describe("the table of compare", () => {
  it("has a row for each policy", () => {
    const text = comparisonTable([runsOf("mine", recovering), runsOf("other", { shares: [100] })])
    assert.deepStrictEqual(lines(text).slice(0, 8), [
      "s",
      "",
      "seed 1; first as written, then with other policies",
      "",
      "policy calls succeed recovered sends/call p50 p99 peak load",
      "mine 600 50 % 1 s 1.50 20 ms 1.23 s 150/s",
      "other 100 100 % always healthy 1.00 1 ms 1 ms 100/s",
      ""
    ])
  })

  it("has a row for each fleet, if there are several, but none for services that call others", () => {
    const { result } = runsOf("x", { shares: [100] })
    const [client] = result.clients
    const clients = [client!, { ...client!, name: "g" }, { ...client!, name: "s > t", kind: "service" as const }]
    const two = { ...result, clients }
    const text = comparisonTable([{ label: "x", result: two, results: [two] }])
    assert.deepStrictEqual(lines(text).slice(5, 8).map((line) => line.split(" 100")[0]), ["x: f", "x: g", ""])
  })

  it("marks the policy during which it was stopped", () => {
    const cut = runsOf("cut", { shares: [100], partial: true })
    const text = comparisonTable([runsOf("whole", { shares: [100] }), cut])
    assert.match(text, /^PARTIAL: stopped after 1 s of virtual time, with cut\n/)
  })

  it("of several runs has ranges, and the difference from the first, seed by seed", () => {
    const bounded: Made = { ...recovering, service: { capacity: 1234.5 }, fleet: { timeout: "1 second" } }
    const worse: Made = { ...recovering, shares: [0, 0, 0, 0, 100, 100], sends: 2 }
    const text = comparisonTable([
      runsOf("mine", bounded, bounded),
      runsOf("worse", worse, worse),
      runsOf("same", recovering, recovering)
    ])
    assert.deepStrictEqual(lines(text), [
      "s",
      "",
      "2 runs, seeds 1 to 2: mean (5 to 95 % of the runs); first as written, then with other policies",
      "",
      "policy succeed recovers sends/call p99 peak load below",
      "mine 50 % 2 of 2 in 1 s 1.50 1.23 s 150/s 1,234/s",
      "worse 33.3 % 2 of 2 in 2 s 2.00 1.23 s 200/s -",
      "same 50 % 2 of 2 in 1 s 1.50 1.23 s 150/s -",
      "",
      "against mine, with the same seeds:",
      "policy succeed, points sends/call",
      "worse -16.7 +0.50",
      "same 0.0 0.00",
      "",
      "succeed: calls that succeed",
      "recovers: runs that get back to 90 % of the success rate before the outage, and how long after it",
      "p99: latency of the calls of the busiest clients that succeed, retries included",
      "peak load: most requests per second at the busiest service",
      "below: in theory, it recovers from any outage below this many calls per second"
    ])
    const alone = comparisonTable([runsOf("mine", recovering, recovering)])
    assert.notMatch(alone, /against|below/)
    const better = comparisonTable([runsOf("mine", worse, worse), runsOf("better", recovering, recovering)])
    assert.include(lines(better), "better +16.7 -0.50")
  })
})

describe("what is said of an edge", () => {
  const runs = [runsOf("a", recovering), runsOf("b", recovering)] as const
  const edge = (less: string, written: string, more: string, isNear = true) => ({ less, written, more, isNear }) as any

  it("is which policy is near one, and on which side", () => {
    assert.deepStrictEqual(edgeLines(runs, [undefined, edge("collapses", "recovers", "recovers")]), [
      "near an edge: b recovers, but collapses with 10 % less capacity"
    ])
    assert.deepStrictEqual(edgeLines(runs, [edge("collapses", "limps", "recovers"), edge("x", "x", "x", false)]), [
      "near an edge: a limps, but collapses with 10 % less capacity, and recovers with 10 % more"
    ])
    assert.deepStrictEqual(edgeLines(runs, [edge("limps", "limps", "recovers")]), [
      "near an edge: a limps, but recovers with 10 % more"
    ])
    assert.deepStrictEqual(edgeLines(runs, []), [])
  })
})

describe("the table of backtest", () => {
  const { scenario } = made(recovering)
  const nothing = { measured: undefined, predicted: undefined, error: undefined, isInside: undefined }
  const bucket = (second: number) => ({
    fromMillis: second * 1000,
    succeeded: { measured: 1234.4, predicted: around(1000, 900, 1100) },
    attempts: { measured: 9, predicted: undefined }
  })
  const found: Simulator.Backtest = {
    succeeded: { measured: 0.8, predicted: around(0.825, 0.81, 0.84), error: 0.025, isInside: false },
    sendsPerCall: { measured: 1.5, predicted: around(1.4, 1.3, 1.6), error: -0.0667, isInside: true },
    p50Millis: nothing,
    p99Millis: { ...nothing, predicted: around(20) },
    recoveredMillis: { measured: 3000, predicted: around(2000), error: -1 / 3, isInside: false },
    recovery: { measured: true, predicted: { runs: 19, of: 20, afterMillis: around(2000) } },
    bucketMillis: 1000,
    series: [bucket(0)]
  }

  it("has what was measured and predicted, and the error in points or in percent; a dash for what is unknown", () => {
    assert.deepStrictEqual(lines(backtestTable(scenario, found)), [
      "s: measured, and predicted with the same calls in 20 runs",
      "",
      "measured predicted error inside",
      "succeed 80 % 82.5 % (81 to 84 %) +2.5 points no",
      "sends/call 1.50 1.40 (1.30 to 1.60) -6.7 % yes",
      "p50 - - - -",
      "p99 - 20 ms - -",
      "recovers after 3 s 2 s, 19 of 20 -33.3 % no",
      "",
      "from succeed/s predicted sent/s predicted",
      "0 ms 1,234 1,000 (900 to 1,100) 9 -",
      "",
      "predicted: mean (5 to 95 % of the runs); inside: whether the measured value is in that range",
      "recovers after: how long after the last outage, and in how many runs"
    ])
  })

  it("says what did not recover, and nothing of it without an outage", () => {
    const series = [bucket(0), bucket(1)]
    const predicted = { runs: 0, of: 20, afterMillis: undefined }
    const neither = { ...found, series, recoveredMillis: nothing, recovery: { measured: false, predicted } }
    assert.include(
      lines(backtestTable(scenario, neither)),
      "recovers after not within 2 s not within 2 s, 0 of 20 - -"
    )
    const immediately = { ...found, recoveredMillis: nothing, recovery: { measured: true, predicted } }
    assert.include(lines(backtestTable(scenario, immediately)), "recovers after 0 ms not within 1 s, 0 of 20 - -")
    assert.notInclude(backtestTable(scenario, { ...found, recovery: undefined }), "recovers")
    const unpredicted = { ...found, succeeded: nothing }
    assert.match(backtestTable(scenario, unpredicted), /^s: .* in 0 runs\n/)
  })

  it("has at most twelve buckets, from the first on", () => {
    const shown = (count: number) =>
      backtestTable(scenario, { ...found, series: Array.from({ length: count }, (_, n) => bucket(n)) })
        .split("\n").filter((line) => line.includes("1,234")).map((line) => line.split("  ")[0])
    assert.strictEqual(shown(12).length, 12)
    assert.deepStrictEqual(shown(13), ["0 ms", "2 s", "4 s", "6 s", "8 s", "10 s", "12 s"])
  })
})

describe("a map in text", () => {
  const { scenario } = made(recovering)
  const map = {
    label: "naive",
    x: { path: "fleets.0.rate", values: [20, 1234] },
    y: { path: "services.0.outages.0.length", values: [1000, 10_000] },
    rows: [["recovers", "limps"], ["limps", "collapses"]],
    recoversBelow: 1234.9
  } as const

  it("has the least of y at the bottom, a sign for each verdict, and what theory says of a rate", () => {
    assert.deepStrictEqual(mapTable(scenario, [map]).split("\n"), [
      "s: x is fleets.0.rate, y is services.0.outages.0.length",
      "",
      "naive",
      "in theory, recovers below 1,234/s",
      "10 s o #",
      " 1 s . o",
      "     20 1,230",
      "",
      ". recovers: gets back to 90 % of the success rate before the outage, within the 6 s of the run",
      "o limps: not within the run; # collapses: not within the run, and in theory never"
    ])
  })

  it("leaves out the theory where there is none, or x is not the rate", () => {
    assert.notInclude(mapTable(scenario, [{ ...map, recoversBelow: undefined }]), "theory, recovers")
    const other = { ...map, x: { ...map.x, path: "fleets.0.timeout" } }
    assert.notInclude(mapTable(scenario, [other, other]), "theory, recovers")
  })

  it("writes the ends of x below the first and the last cell", () => {
    const values = [1, 2, 3, 4, 5]
    const row = values.map(() => "recovers" as const)
    const wide = mapTable(scenario, [{ ...map, x: { ...map.x, values }, rows: [row, row] }]).split("\n")
    assert.strictEqual(wide[4], "10 s . . . . .")
    assert.strictEqual(wide[6], "     1       5")
  })
})

const judgment = (holds: boolean): Simulator.Judgment => ({
  name: "succeed",
  comparison: ">=",
  bound: 0.9,
  found: holds ? 0.95 : 0.5,
  spread: around(holds ? 0.95 : 0.5, 0.4, 0.96),
  runs: 3,
  holds
})

describe("the text of sweep", () => {
  const { scenario } = made({ shares: [100], seed: 4 })
  const point = (value: number, holds: boolean) => ({ value, holds, judgments: [judgment(holds)] })
  const found: Simulator.Sweep = {
    path: "services.0.capacity",
    step: 10,
    runs: 3,
    points: [point(10, false), point(20, true), point(30, true)],
    kind: "smallest",
    value: 20,
    beside: 10,
    monotone: true
  }

  it("has each value with what was found, without a range, and the answer", () => {
    assert.deepStrictEqual(lines(sweepText(scenario, found)), [
      "s: 3 runs of each value, seeds 4 to 6",
      "",
      "services.0.capacity",
      "10 FAILED not succeed >= 90 %: 50 %",
      "20 ok succeed 95 %",
      "30 ok succeed 95 %",
      "",
      "The smallest services.0.capacity that satisfies the expectations is 20; 10 does not."
    ])
    assert.match(sweepText(scenario, { ...found, runs: 1 }), /^s: 1 run of each value, seeds 4 to 4\n/)
  })

  it("doubts an answer at an end of the range, or beyond it, and one that is not monotonic", () => {
    const last = (changes: object) => lines(sweepText(scenario, { ...found, ...changes })).slice(7)
    const atEnd = "It is at the end of the range: there may be better values beyond it."
    assert.deepStrictEqual(last({ value: 30, beside: 20 }), [
      "The smallest services.0.capacity that satisfies the expectations is 30; 20 does not.",
      atEnd
    ])
    assert.deepStrictEqual(last({ kind: "largest", value: 10, beside: 20 }), [
      "The largest services.0.capacity that satisfies the expectations is 10; 20 does not.",
      atEnd
    ])
    for (const changes of [{ value: 10 }, { kind: "largest", value: 30 }]) assert.lengthOf(last(changes), 1)
    assert.deepStrictEqual(last({ kind: "everywhere", value: undefined }), [
      "The expectations hold from 10 to 30.",
      "Every value tried satisfies them: the answer is beyond the range."
    ])
    assert.deepStrictEqual(last({ kind: "nowhere", value: undefined }), [])
    assert.deepStrictEqual(last({ monotone: false }).slice(1), [
      "It is not monotonic: the expectations start and stop holding along the range, so check the values above."
    ])
  })
})

describe("the text of tune", () => {
  const { scenario } = made({ shares: [100], seed: 4 })
  const policy = (label: string, isOnFront: boolean, succeeded: number): Simulator.TunedPolicy => ({
    label,
    policy: "naive",
    isOnFront,
    behind: 1 - succeeded,
    worst: { succeeded, sendsPerCall: 1.234, p99Millis: 1234, recovered: 0.5 },
    worstOutage: "twice as long"
  } as unknown as Simulator.TunedPolicy)
  const chosen = policy("best", true, 0.9)
  const change = (path: string, lower: number, higher: number) => ({
    path,
    lower: { succeeded: lower },
    higher: { succeeded: higher }
  })
  const found = {
    runs: 2,
    outages: ["as written", "twice as long"],
    policies: [chosen, policy("other", true, 0.8), policy("third", false, 0.7)],
    chosen,
    sensitivity: [change("a.b", 0.8, 0.95), change("c", 0.9004, 0.9), change("d", 0.92, 0.94)]
  } as unknown as Simulator.Tuning

  it("has the front, the chosen policy, and what its result depends on", () => {
    assert.deepStrictEqual(lines(tuneText(scenario, found)).slice(0, 16), [
      "s: 3 policies, 2 runs each, seeds 4 to 5",
      "outages: as written, twice as long",
      "",
      "policy behind succeed sends/call p99 recovers",
      "best 10.0 90 % 1.23 1.23 s 50 % <- chosen",
      "other 20.0 80 % 1.23 1.23 s 50 %",
      "",
      "behind: the most points of success behind the best policy of an outage; other columns: the worst over all outages",
      "1 more is no better in behind, sends or p99: --json lists it too",
      "",
      "best, twice as long: 90 % succeed; change in points when one parameter changes",
      "parameter -10 % +10 %",
      "a.b -10.0 +5.0 ################|########",
      "c 0.0 0.0 |",
      "d +2.0 +4.0 |######"
    ])
  })

  it("counts one policy and one run in the singular, more that are left out in the plural", () => {
    const one = tuneText(scenario, { ...found, runs: 1, policies: [chosen] })
    assert.match(one, /^s: 1 policy, 1 run each, seeds 4 to 4\n/)
    assert.notInclude(one, " more ")
    const more = { ...found, policies: [chosen, policy("b", false, 0.8), policy("c", false, 0.7)] }
    assert.include(tuneText(scenario, more), "\n2 more are no better in behind, sends or p99: --json lists them too\n")
  })

  it("has the chosen policy in its table, even if it is not on the front", () => {
    const beaten = policy("beaten", false, 0.9)
    const text = tuneText(scenario, { ...found, chosen: beaten, policies: [beaten, chosen] })
    assert.match(text, /^beaten .*<- chosen$/m)
    assert.notInclude(text, " more ")
  })
})

const checked: Checked = {
  source: "a<b>.json",
  name: "shop",
  seeds: [1, 3],
  judgments: [judgment(true), judgment(false)],
  warnings: ["<first>", "second"]
}

describe("check", () => {
  it("prints each scenario with its file and seeds, and what was expected and found", () => {
    assert.deepStrictEqual(lines(checkText([checked, { ...checked, source: "shop", judgments: [judgment(true)] }])), [
      "shop (a<b>.json): 3 runs, seeds 1 to 3",
      "expected found",
      "succeed >= 90 % ok 95 % (40 to 96 %)",
      "succeed >= 90 % FAILED 50 % (40 to 96 %)",
      "",
      "shop: 3 runs, seeds 1 to 3",
      "expected found",
      "succeed >= 90 % ok 95 % (40 to 96 %)",
      "",
      "1 of 3 expectations failed"
    ])
  })

  it("writes JUnit XML: a suite for each scenario, a test for each expectation, a message for what failed", () => {
    const name = "name=\"succeed &gt;= 90 %\" classname=\"shop (a&lt;b&gt;.json)\" time=\"0\""
    const message = "expected succeed &gt;= 90 %, found 50 % (40 to 96 %)"
    assert.strictEqual(
      checkJUnit([checked, { ...checked, judgments: [judgment(true)], warnings: [] }]),
      `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="effect-retry check" tests="3" failures="1" errors="0" time="0">
  <testsuite name="shop" tests="2" failures="1" errors="0" skipped="0" time="0">
    <testcase ${name}/>
    <testcase ${name}>
      <failure message="${message}" type="expectation">${message}; 3 runs, seeds 1 to 3</failure>
    </testcase>
    <system-err>&lt;first&gt;
second</system-err>
  </testsuite>
  <testsuite name="shop" tests="1" failures="0" errors="0" skipped="0" time="0">
    <testcase ${name}/>
  </testsuite>
</testsuites>
`
    )
  })
})

describe("a warning", () => {
  it("names the policy that it is of", () => {
    const lost: Made = { ...recovering, shares: [100, 100, 0, 0, 0, 0] }
    assert.deepStrictEqual(warningTexts(runsOf("mine", recovering, lost)).filter((text) => text.startsWith("mine")), [
      "mine: recovers in 1 of 2 runs: it is on the edge, where a small change decides"
    ])
  })
})
