/** What a report says of policies before it shows anything: which does best, and why. */
import { assert, describe, it } from "@effect/vitest"
import { unescaped } from "../../src/cli/charts/escape.ts"
import { ranked } from "../../src/cli/charts/ranking.ts"
import { rankTable } from "../../src/cli/charts/rankTable.ts"
import type { Run } from "../../src/cli/charts/run.ts"
import { verdict } from "../../src/cli/charts/verdict.ts"
import { type Made, runsOf } from "./made.ts"

const ranks = (...runs: readonly [Run, ...Array<Run>]) => ranked(runs)

const wordsOf = (markup: string): string => unescaped(markup.replace(/<[^>]*>/g, "")).replace(/\s+/g, " ").trim()

const said = (...runs: readonly [Run, ...Array<Run>]): string => wordsOf(verdict(ranks(...runs)).markup)

/** An outage of two seconds, then the calls recover, or do not. */
const recovering: Made = { shares: [0, 0, 0, 100, 100, 100, 100, 100], outageEnd: "2 seconds" }
const better: Made = { ...recovering, shares: [0, 0, 100, 100, 100, 100, 100, 100] }
const lost: Made = { ...recovering, shares: [0, 0, 100, 100, 50, 50, 50, 50] }

describe("what a page says of one policy", () => {
  const rows: ReadonlyArray<readonly [fate: string, made: Made, says: string]> = [
    ["always", recovering, "recovers in its one run, 1 s after the outage. 62.5 %"],
    ["always", better, "recovers in its one run. 75.0 %"],
    ["always", { shares: [0, 100] }, "recovers in its one run, 1 s after the start. 50.0 %"],
    [
      "undisturbed",
      { shares: [100, 90] },
      "does not fall below 90 % of its success rate within the 2 s of the run. 95.0 %"
    ],
    ["unrecovered", lost, "does not recover within the 8 s of the run. 50.0 %"],
    [
      "ill",
      { shares: [80, 80] },
      "has fewer than 90 % of calls succeed all the time within the 2 s of the run. 80.0 %"
    ],
    ["not yet", { ...lost, partial: true }, "has not recovered yet. 50.0 %"],
    ["not yet", { shares: [80], partial: true }, "has not recovered yet. 80.0 %"],
    ["unknown", { shares: [undefined], open: 5, partial: true }, "has no finished calls. –"]
  ]
  for (const [fate, made, says] of rows) {
    it(`is, if its calls are ${fate}: ${says}`, () => {
      const run = runsOf("quota", { ...made, sends: 1.234 })
      assert.strictEqual(ranks(run)[0].fate, fate)
      assert.strictEqual(said(run), `quota ${says} of its calls succeed, with 1.23 requests per call.`)
    })
  }

  it("is that no calls were made, if none were", () => {
    assert.strictEqual(said(runsOf("quota", { shares: [undefined] })), "No calls were made.")
    const none = runsOf("a", { shares: [undefined] })
    assert.strictEqual(said(none, runsOf("b", { shares: [undefined] })), "No calls were made.")
    assert.include(said(none, runsOf("b", { shares: [100] })), "b does best")
  })

  it("is in how many runs calls recover, with ranges where the runs differ", () => {
    assert.match(
      said(runsOf("quota", recovering, recovering)),
      /^quota recovers in all 2 runs, 1 s after the outage\. 62\.5 % of/
    )
    const later: Made = { ...recovering, shares: [0, 0, 0, 0, 0, 100, 100, 100] }
    assert.match(
      said(runsOf("quota", recovering, later)),
      /^quota recovers in all 2 runs, 2 s \(1\.1 s to 2\.9 s\) after the outage\. 50\.0 % \(38\.8 % to 61\.3 %\) of/
    )
    assert.match(said(runsOf("quota", recovering, lost)), /^quota recovers in 1 of 2 runs, 1 s after the outage\./)
    assert.match(said(runsOf("quota", better, recovering)), /all 2 runs, 500 ms \(50 ms to 950 ms\) after the outage\./)
  })

  it("is in whole seconds if they take longer than ten", () => {
    const shares = [...Array<number>(130).fill(0), 100]
    assert.match(said(runsOf("quota", { shares, outageEnd: "1 second" })), /one run, 129 s after the outage\./)
  })

  it("is which load keeps them down, if it is more than the service can handle", () => {
    const down = (capacity: number | undefined, load: number) =>
      said(runsOf("quota", { ...lost, load, ...capacity === undefined ? {} : { service: { capacity } } }))
    const why = ": long after the outage 1,101 requests per second still reach s, which can handle 1,100. "
    assert.include(down(1100, 1101), why)
    for (const said of [down(1100, 1100), down(undefined, 1101)]) assert.notInclude(said, "still reach")
    assert.notInclude(said(runsOf("quota", { ...recovering, load: 1000, service: { capacity: 60 } })), "still reach")
  })
})

describe("what a page says of several policies", () => {
  it("names `none` so that it is not read as no policy, and the one of the scenario", () => {
    const [written, other] = [runsOf("mine", recovering), runsOf("none", better)]
    assert.match(said(written, other), /^none \(no retries\) does best: it recovers in its one run\. 75\.0 % of/)
    assert.include(said(written, other), "Next is mine (the scenario's own policy), which recovers in its one run, 1 s")
    assert.notInclude(said(written), "own policy")
    assert.match(said(runsOf("none", recovering), runsOf("x", better)), /Next is none \(no retries\), which/)
  })

  it("ranks by runs that recover, then by calls that succeed, then by the fewest requests", () => {
    const all: readonly [Run, ...Array<Run>] = [
      runsOf("lost", { ...lost, shares: [0, 0, 100, 100, 100, 100, 100, 0] }),
      runsOf("many", { ...recovering, sends: 2 }),
      runsOf("few", recovering),
      runsOf("better", { ...better, sends: 3 })
    ]
    assert.deepStrictEqual(ranks(...all).map(({ run }) => run.label), ["better", "few", "many", "lost"])
  })

  it("names the second, unless it is lost; a difference that may be chance is a tie", () => {
    const [first, second] = [runsOf("a", better, better), runsOf("b", recovering, recovering)]
    assert.match(
      said(first, second),
      /Next is b, which recovers in all 2 runs, 1 s after the outage, with 62\.5 % of calls\.$/
    )
    const [mixed, others] = [runsOf("a", better, recovering, better), runsOf("b", recovering, better, recovering)]
    assert.include(
      said(mixed, others),
      "b is equally good: with the same seeds, its success rate differs by 4.2 points, which is within random variation."
    )
    for (const made of [lost, { shares: [80, 80] }, { ...lost, partial: true }]) {
      assert.notMatch(said(runsOf("a", better), runsOf("b", made)), /Next is|equally/)
    }
  })

  it("names the best that retries, if the best does not retry and the second does neither", () => {
    const alone = runsOf("none", better)
    const second = runsOf("second", { ...better, shares: [0, 0, 99, 100, 100, 100, 100, 100] })
    const third = runsOf("naive", { ...recovering, policy: "naive" })
    assert.include(said(alone, second, third), "Of those that retry, naive does best.")
    const lostToo = runsOf("naive", { ...lost, policy: "naive" })
    const retrying = runsOf("naive", { ...better, policy: "naive" })
    for (
      const words of [
        said(alone, third),
        said(alone, second),
        said(alone, second, lostToo),
        said(retrying, second, third)
      ]
    ) {
      assert.notInclude(words, "Of those that retry")
    }
  })

  it("names those that are on the edge, the best apart", () => {
    const edge = (label: string) => runsOf(label, recovering, lost)
    const best = runsOf("best", better, better)
    assert.include(said(best, edge("a")), " a is on the edge: it is random which runs recover.")
    assert.include(said(best, edge("a"), edge("b")), " a and b are on the edge: it is random which runs recover.")
    assert.notInclude(said(edge("a"), runsOf("b", lost, lost)), "on the edge")
  })

  it("names those that do not recover, and the load that keeps all of them down", () => {
    const down = (label: string, load: number) => runsOf(label, { ...lost, load, service: { capacity: 90 } })
    const best = runsOf("best", better)
    assert.include(
      said(best, down("a", 120)),
      " a does not recover within the 8 s of the run: long after the outage 120 requests per second still reach s, which can handle 90."
    )
    assert.include(
      said(best, down("a", 120), down("b", 130), down("c", 140)),
      " a, b and c do not recover within the 8 s of the run: long after the outage 120, 130 and 140 requests per second"
    )
    assert.match(said(best, down("a", 120), down("b", 80)), / a and b do not recover within the 8 s of the run\.$/)
    const [first, second] = [down("a", 120), down("b", 130)]
    assert.match(
      said(first, second),
      /^a \(the scenario's own policy\) does best: it does not recover .* 120 .* b does not/
    )
    assert.notInclude(said(best, runsOf("edge", recovering)), "not recover")
  })
})

describe("the table of policies by rank", () => {
  /** The rows below the head, each cell in words. */
  const rowsOf = (...runs: readonly [Run, ...Array<Run>]): ReadonlyArray<ReadonlyArray<string>> =>
    [...rankTable(ranks(...runs)).markup.matchAll(/<tr role="row".*?<\/tr>/gs)].map(([row]) =>
      [...row.matchAll(/<t[hd][^>]*>(.*?)<\/t[hd]>/gs)].map(([, cell]) => wordsOf(cell!))
    )
  const figures = { service: { capacity: 90 }, latency: { p99Millis: 1234.5 } }

  it("has a column for each figure, with the range of most runs below the mean", () => {
    const later: Made = { ...recovering, shares: [0, 0, 0, 0, 0, 100, 100, 100], sends: 2 }
    assert.deepStrictEqual(rowsOf(runsOf("quota", { ...recovering, ...figures }, { ...later, ...figures })), [
      [
        "policy",
        "recovers",
        "time after the outage",
        "calls that succeed",
        "requests per call",
        "p99",
        "peak load, per second",
        "load afterwards, per second"
      ],
      [
        "quota",
        "✓ recovers",
        "2 s 1.1 s to 2.9 s",
        "50.0 % 38.8 % to 61.3 %",
        "1.50 1.05 to 1.95",
        "1.23 s",
        "150 105 to 195",
        "150 105 to 195"
      ]
    ])
  })

  it("has a badge in words for what becomes of the calls", () => {
    const badges: ReadonlyArray<readonly [words: string, ...runs: readonly [Made, ...Array<Made>]]> = [
      ["✓ stays healthy", { shares: [100] }],
      ["✓ recovers", recovering],
      ["~ in 1 of 3 runs", recovering, lost, lost],
      ["✗ not within the run", lost],
      ["✗ healthy at no time", { shares: [80] }],
      ["~ not yet", { ...lost, partial: true }],
      ["~ no call ended", { shares: [undefined], open: 1, partial: true }]
    ]
    for (const [words, ...runs] of badges) assert.strictEqual(rowsOf(runsOf("x", ...runs))[1]![1], words)
    assert.include(rankTable(ranks(runsOf("x", recovering))).markup, "class=\"badge good\"")
    assert.include(rankTable(ranks(runsOf("x", recovering, lost))).markup, "class=\"badge doubtful\"")
    assert.include(rankTable(ranks(runsOf("x", lost))).markup, "class=\"badge bad\"")
  })

  it("leaves out the columns that no policy has: a time, a load afterwards, a bound in theory", () => {
    const headOf = (...runs: readonly [Run, ...Array<Run>]) => rowsOf(...runs)[0]!.join()
    assert.notMatch(headOf(runsOf("x", better)), /time|recovers below/)
    assert.match(headOf(runsOf("y", better), runsOf("x", recovering)), /time after the outage/)
    assert.match(headOf(runsOf("x", { shares: [0, 100] })), /time after the start/)
    assert.notMatch(headOf(runsOf("x", { shares: [100] })), /afterwards/)
    const bounded = { service: { capacity: 1234.5 }, fleet: { timeout: "1 second" } }
    const [head, first, second] = rowsOf(runsOf("none", { ...better, ...bounded }), runsOf("x", recovering))
    assert.strictEqual(head!.at(-1), "recovers below, per second")
    assert.deepStrictEqual([first!.at(-1), second!.at(-1)], ["1,234", "–"])
  })

  it("explains the columns that it has", () => {
    const words = wordsOf(rankTable(ranks(runsOf("x", recovering))).markup)
    assert.match(
      words,
      / Recovers: gets back to 90 % of the success rate before the outage\. p99: of calls that succeed, retries included\. Load afterwards: in the last half of the time after the outage\.$/
    )
  })

  it("shows an en dash for what is unknown", () => {
    const nothing = runsOf("x", { shares: [undefined], load: 0, latency: { p99Millis: null } })
    const [, , row] = rowsOf(runsOf("y", recovering), nothing)
    assert.deepStrictEqual(row, ["x", "~ no call ended", "–", "–", "–", "–", "–", "–"])
  })

  it("has a load in bold that is more than the service can handle", () => {
    const after = (load: number) => rankTable(ranks(runsOf("x", { ...lost, load, service: { capacity: 90 } }))).markup
    assert.include(after(91), "<strong>91</strong>")
    assert.notInclude(after(90), "<strong>")
    assert.notInclude(rankTable(ranks(runsOf("x", { ...lost, load: 91 }))).markup, "<strong>")
  })

  it("marks the best of several, unless its calls are lost too, and what is partial", () => {
    const marked = (...runs: readonly [Run, ...Array<Run>]) =>
      rankTable(ranks(...runs)).markup.includes("class=\"best\"")
    assert.deepStrictEqual(
      [
        marked(runsOf("a", better), runsOf("b", lost)),
        marked(runsOf("a", better)),
        marked(runsOf("a", lost), runsOf("b", lost))
      ],
      [true, false, false]
    )
    const [, whole, cut] = rowsOf(runsOf("a", better), runsOf("b", { ...recovering, partial: true }))
    assert.deepStrictEqual([whole![0], cut![0]], ["a", "b (partial)"])
  })

  it("says by what it is sorted, if there is more than one", () => {
    const caption = (...runs: readonly [Run, ...Array<Run>]) =>
      wordsOf(/<caption>(.*?)<\/caption>/.exec(rankTable(ranks(...runs)).markup)![1]!)
    assert.strictEqual(caption(runsOf("a", better)), "What happens to the calls.")
    assert.strictEqual(
      caption(runsOf("a", better), runsOf("b", better)),
      "Best first: by runs that recover, then calls that succeed, then requests per call."
    )
  })

  it("has a bar that is full to the mean, with a line over what most runs have", () => {
    const { markup } = rankTable(ranks(runsOf("a", { shares: [100] }, { shares: [50] })))
    assert.include(markup, "<path class=\"full\" d=\"M0 0h75v8h-75z\"/><path class=\"range\" d=\"M52.5 4H97.5\"/>")
    assert.notInclude(rankTable(ranks(runsOf("a", { shares: [undefined] }))).markup, "class=\"bar\"")
  })
})
