/** What charts draw, and what they write at it. */
import { assert, describe, it } from "@effect/vitest"
import { backtestReport } from "../../src/cli/charts/backtestReport.ts"
import { barChart } from "../../src/cli/charts/barChart.ts"
import { boundsOf, leastBound } from "../../src/cli/charts/bounds.ts"
import {
  across,
  highest,
  last,
  perSecond,
  rasterOf,
  read,
  successShare,
  timesOf
} from "../../src/cli/charts/buckets.ts"
import { unescaped } from "../../src/cli/charts/escape.ts"
import { ceilingOf, domainOf, type Figure, greatest, isLogarithmic, type Line } from "../../src/cli/charts/figure.ts"
import { columnsOf, figureHtml } from "../../src/cli/charts/figureHtml.ts"
import { cell, counted, moment, rounded, runLength, share, ticks, timeUnit } from "../../src/cli/charts/format.ts"
import { mapHtml, mapSvg } from "../../src/cli/charts/mapChart.ts"
import { numbers } from "../../src/cli/charts/numbers.ts"
import { lookOf, reference } from "../../src/cli/charts/palette.ts"
import { planOf } from "../../src/cli/charts/plan.ts"
import { report } from "../../src/cli/charts/report.ts"
import { loadFigure } from "../../src/cli/charts/serviceFigures.ts"
import { setup } from "../../src/cli/charts/setup.ts"
import { shadesOf } from "../../src/cli/charts/shades.ts"
import { headline } from "../../src/cli/charts/successChart.ts"
import { bandThrough, lineThrough } from "../../src/cli/charts/svg.ts"
import { timePanel } from "../../src/cli/charts/timePanel.ts"
import { around, type Made, made, runsOf } from "./made.ts"

const wordsOf = (markup: string): string => unescaped(markup.replace(/<[^>]*>/g, " ")).replace(/\s+/g, " ").trim()

/** The texts of a picture, in their order. */
const textsOf = (markup: string): ReadonlyArray<string> =>
  [...markup.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text]) => unescaped(text!))

describe("a number", () => {
  it("has its thousands apart, and two places at most", () => {
    assert.deepStrictEqual([0, 999, 1000, 1_234_567, 1234.5, 0.126].map(counted), [
      "0",
      "999",
      "1,000",
      "1,234,567",
      "1,234.5",
      "0.13"
    ])
  })

  it("of a measured count has three digits below ten, and no fraction above", () => {
    assert.deepStrictEqual([0, 9.876, 9.999, 10.4, -9.876, -12.5, 1234.5].map(rounded), [
      "0",
      "9.88",
      "10",
      "10",
      "-9.88",
      "-12",
      "1,235"
    ])
  })

  it("of a share always has one place", () => {
    assert.deepStrictEqual([0, 0.84, 0.9999, 1].map(share), ["0.0 %", "84.0 %", "100.0 %", "100.0 %"])
  })

  it("at an axis has the unit of all, from ten thousand on a thousandth", () => {
    assert.deepStrictEqual(ticks("number", [0, 5000, 9999]), ["0", "5,000", "10,000"])
    assert.deepStrictEqual(ticks("number", [0, 5000, 10_000]), ["0", "5k", "10k"])
    assert.deepStrictEqual(ticks("per second", [0, 500_000, 1_000_000]), ["0", "0.5M", "1M"])
    assert.deepStrictEqual(ticks("number", [2_000_000_000]), ["2G"])
    assert.deepStrictEqual(ticks("share", [0, 0.125, 1]), ["0 %", "12.5 %", "100 %"])
    assert.deepStrictEqual(ticks("duration", [0, 20, 1234]), ["0", "20 ms", "1.23 s"])
  })

  it("in a table is written by its unit, and unknown as a dash", () => {
    assert.deepStrictEqual(
      [cell("share", 0.5), cell("duration", 1234.5), cell("ratio", 1.5), cell("number", 1234.5), cell("share", null)],
      ["50.0 %", "1.23 s", "1.50", "1,235", "–"]
    )
  })

  it("of a time is in seconds up to five minutes, in minutes up to five hours, then in hours", () => {
    assert.deepStrictEqual([300_000, 300_001, 18_000_000, 18_000_001].map((millis) => timeUnit(millis).name), [
      "s",
      "min",
      "min",
      "h"
    ])
    assert.deepStrictEqual([moment(1500, 300_000), moment(90_000, 600_000), moment(5_400_000, 2e7)], [
      "1.5 s",
      "1.5 min",
      "1.5 h"
    ])
    assert.strictEqual(runLength(made({ shares: [100, 100] }).scenario), "2 s")
  })
})

describe("buckets become points", () => {
  const run = runsOf("x", { shares: Array<number>(301).fill(100) })

  it("of which a line has at most 300, each of as many buckets", () => {
    assert.deepInclude(rasterOf([run]), { bucketMillis: 1000, perPoint: 2, points: 151, untilMillis: 301_000 })
    assert.deepInclude(rasterOf([runsOf("x", { shares: Array<number>(300).fill(100) })]), { perPoint: 1, points: 300 })
  })

  it("in their middle or at their end, and not after the run", () => {
    const raster = { bucketMillis: 1000, perPoint: 2, points: 2, untilMillis: 3000 }
    assert.deepStrictEqual([timesOf(raster, "middle"), timesOf(raster, "end")], [[1000, 3000], [2000, 3000]])
  })

  const buckets = made({ shares: [100, 50, undefined] }).clients[0]!.series
  const raster = { bucketMillis: 1000, perPoint: 2, points: 3, untilMillis: 3000 }

  it("that are left out where there is no bucket, or less than half of one", () => {
    const calls = perSecond<typeof buckets[number]>((bucket) => bucket.calls)
    assert.deepStrictEqual(read(raster, buckets, 3000, calls), [100, 100, null])
    assert.deepStrictEqual(read(raster, buckets, 2500, calls), [100, 200, null])
    assert.deepStrictEqual(read(raster, buckets, 2499, calls), [100, null, null])
  })

  it("by their sum, their highest, their last, or the share of calls that succeeded", () => {
    assert.deepStrictEqual(read(raster, buckets, 3000, successShare), [0.75, null, null])
    const well = (bucket: typeof buckets[number]) => bucket.succeeded === 0 ? null : bucket.succeeded
    assert.deepStrictEqual(read(raster, buckets, 3000, highest(well)), [100, null, null])
    assert.strictEqual(highest(well)([...buckets].reverse(), 3), 100)
    assert.deepStrictEqual(read(raster, buckets, 3000, last(well)), [50, null, null])
  })

  it("of several runs together: the median and the range, unless fewer than half have a value", () => {
    assert.deepStrictEqual(across([[1, null]]), { values: [1, null] })
    assert.deepStrictEqual(across([]), { values: [] })
    assert.deepStrictEqual(across([[1, 1, null], [3, null, null], [2, null]]), {
      values: [2, null, null],
      band: { low: [1.1, null, null], high: [2.9, null, null] }
    })
    assert.deepStrictEqual(across([[1], [null]]).values, [1])
  })
})

const line = (values: Line["values"], label = "a", band?: Line["band"]): Line => ({
  label,
  look: lookOf(0),
  values,
  ...band === undefined ? {} : { band }
})

const figureOf = (lines: ReadonlyArray<Line>, changes: Partial<Figure> = {}): Figure => ({
  title: "Load",
  what: "Requests.",
  axis: "requests per second",
  unit: "per second",
  times: lines[0]!.values.map((_, n) => (n + 0.5) * 1000),
  untilMillis: lines[0]!.values.length * 1000,
  panels: [{ name: "Load", look: lookOf(0), lines, references: [] }],
  shades: [],
  ...changes
})

describe("an axis of values", () => {
  const most = (values: Line["values"], changes: Partial<Figure> = {}) => domainOf(figureOf([line(values)], changes))

  it("begins at 0 and ends a little above the greatest value, band or reference", () => {
    assert.deepStrictEqual(most([50, null, 100]), [0, 106])
    assert.deepStrictEqual(most([0, 0]), [0, 1])
    assert.deepStrictEqual(domainOf(figureOf([line([100], "a", { low: [50], high: [200] })])), [0, 212])
    const figure = figureOf([line([100])])
    assert.deepStrictEqual(domainOf({ ...figure, panels: [{ ...figure.panels[0]!, references: [line([300])] }] }), [
      0,
      318
    ])
    assert.strictEqual(greatest([null]), 0)
  })

  it("is from 0 to 1 for shares", () => {
    assert.deepStrictEqual(most([0.5], { unit: "share" }), [0, 1])
  })

  it("is logarithmic for durations that differ by more than a factor of 50", () => {
    const is = (values: Line["values"], unit: Figure["unit"] = "duration") =>
      isLogarithmic(figureOf([line(values)], { unit }))
    assert.deepStrictEqual([is([0, 1, 50]), is([0, 1, 51]), is([1, 51], "number")], [false, true, false])
    assert.deepStrictEqual(most([0, 2, 200], { unit: "duration" }), [2, 200])
  })

  it("ends below a short peak that is more than three times as high as nearly all values", () => {
    const values = (peak: number) => [...Array<number>(99).fill(100), peak]
    const end = (peak: number, unit: Figure["unit"] = "number") => ceilingOf(figureOf([line(values(peak))], { unit }))
    assert.deepStrictEqual([end(300), end(301), end(301, "share"), end(301, "duration")], [
      undefined,
      140,
      undefined,
      undefined
    ])
    assert.deepStrictEqual(most(values(301)), [0, 140])
    assert.isUndefined(ceilingOf(figureOf([line([0, 0, 5])])))
  })
})

describe("a picture over time", () => {
  const size = { width: 400, height: 200 }
  const draw = (lines: ReadonlyArray<Line>, changes: Partial<Figure> = {}, references: ReadonlyArray<Line> = []) => {
    const figure = figureOf(lines, changes)
    return timePanel(figure, { ...figure.panels[0]!, references }, size).markup
  }
  const named = (markup: string): string => unescaped(/aria-label="([^"]*)"/.exec(markup)![1]!)

  it("is described in words: the range of each line, and how it ends", () => {
    assert.strictEqual(
      named(draw([line([5, 20, null, 10]), line([null, null, null, null], "b")])),
      "Load. Over time, requests per second. a: from 5 to 20, in the end 10. b: no values."
    )
    const figure = figureOf([line([5])])
    assert.match(named(timePanel(figure, { ...figure.panels[0]!, name: "naive" }, size).markup), /^Load, naive\. /)
  })

  it("names several lines at their ends, and a single one not", () => {
    assert.include(textsOf(draw([line([5, 5], "first"), line([9, 9], "second")])), "first")
    assert.notInclude(textsOf(draw([line([5, 5], "first")])), "first")
    assert.include(textsOf(draw([line([5], "a".repeat(40)), line([9])])).join(), "…")
  })

  it("shows the numbers of each point, with ranges where they are known and differ", () => {
    const band = { low: [5, 9, null], high: [15, 9, null] }
    const said = textsOf(draw([line([10, 9, null], "a", band), line([1, 2, null], "b")], { times: [500, 1500, 2500] }))
    assert.deepStrictEqual(said.slice(-3), ["0.5 s: a 10 (5 to 15), b 1", "1.5 s: a 9, b 2", "2.5 s: –"])
    assert.strictEqual(textsOf(draw([line([10])])).at(-1), "0.5 s: 10")
  })

  it("shows the numbers of fifty points at most", () => {
    const stops = (count: number) => draw([line(Array<number>(count).fill(1))]).split("class=\"h ").length - 1
    assert.deepStrictEqual([stops(49), stops(50), stops(51), stops(300)], [49, 50, 50, 50])
  })

  it("finds the numbers of a point around it: next to each other, over the whole plot and its full height", () => {
    const areas = [...draw([line([1, 1, 1, 1])]).matchAll(/class="h h\d+" d="M([\d.]+) 0h([\d.]+)v200/g)]
      .map(([, from, wide]) => [Number(from), Number(wide)] as const)
    assert.deepStrictEqual(areas, [46, 132, 218, 304].map((from) => [from, 86]))
  })

  it("says how high a peak goes that leaves it", () => {
    const flat = Array<number>(99).fill(100)
    assert.include(textsOf(draw([line([1000, ...flat])])), "↑ 1,000")
    assert.include(textsOf(draw([line([...flat, 1000])])), "1,000 ↑")
    assert.notInclude(textsOf(draw([line([300, ...flat])])).join(), "↑")
  })

  it("says what a gap means, if it is wide enough for the words", () => {
    const values = (empty: number) => [...Array<null>(empty).fill(null), ...Array<number>(100 - empty).fill(1)]
    const says = (empty: number, gap?: string) =>
      textsOf(draw([line(values(empty))], { gap })).includes("no call ended")
    assert.deepStrictEqual([says(60, "no call ended"), says(2, "no call ended"), says(60)], [true, false, false])
  })

  it("names a bound, with its value if it is always the same", () => {
    const words = (values: Line["values"], label = "capacity") =>
      textsOf(draw([line([50, 50])], {}, [{ label, look: reference(0), values }])).join()
    assert.include(words([60, 60]), "capacity 60")
    assert.match(words([60, 80]), /capacity(,|$)/)
    assert.notInclude(words([60, 60], ""), "60")
    assert.notInclude(words([null, null]), "capacity")
  })

  it("names up to three shades, along the shade where it is narrow", () => {
    const shade = (from: number, to: number) => ({ what: "outage", fromMillis: from, toMillis: to })
    const outages = (...shades: ReadonlyArray<ReturnType<typeof shade>>) =>
      draw([line(Array<number>(10).fill(1))], { shades })
    const count = (markup: string) => markup.split(">outage<").length - 1
    const wide = outages(shade(0, 5000))
    assert.strictEqual(count(wide), 1)
    assert.notInclude(wide, "rotate")
    assert.include(outages(shade(0, 500)), "rotate")
    const four = [0, 1000, 2000, 3000].map((from) => shade(from, from + 100))
    assert.deepStrictEqual([count(outages(...four.slice(1))), count(outages(...four))], [3, 0])
  })

  it("says that an axis is logarithmic", () => {
    const axis = (values: Line["values"]) => textsOf(draw([line(values)], { unit: "duration", axis: "latency" }))
    assert.include(axis([1, 1000]), "latency, logarithmic")
    assert.includeMembers([...axis([1, 1000])], ["1 ms", "10 ms", "100 ms", "1 s"])
    assert.include(axis([1, 10]), "latency")
  })

  it("has times below, in the unit of the whole", () => {
    const times = textsOf(draw([line([1, 1])], { untilMillis: 600_000, times: [100_000, 500_000] }))
    assert.includeMembers([...times], ["0 min", "2 min", "10 min"])
  })
})

describe("a headline", () => {
  it("begins with what stays up, then what is back in all runs, in some, in none", () => {
    const course = (label: string, outcome: string, backMillis?: number) => ({
      ...line([1], label),
      outcome,
      backMillis
    })
    assert.strictEqual(
      headline({
        times: [500],
        untilMillis: 1000,
        shades: [],
        courses: [
          course("naive", "not within the run"),
          course("some", "back in 7 of 10 runs"),
          course("slow", "back after 9 s", 9000),
          course("fast", "back after 1 s", 1000),
          course("best", "stays up")
        ]
      }),
      "best: stays up; fast: back after 1 s; slow: back after 9 s; some: back in 7 of 10 runs; naive: not within the run"
    )
  })
})

describe("a line", () => {
  it("has a gap where there is no value", () => {
    assert.strictEqual(lineThrough([[0, 1], [1, 2], [2, null], [3, 4], [4, 5]]), "M0,1L1,2M3,4L4,5")
    assert.strictEqual(lineThrough([]), "")
    assert.strictEqual(bandThrough([[0, 1, 2], [1, 1, 2], [2, null, 2]]), "M0,2L1,2L1,1L0,1Z")
  })
})

describe("a figure of a page", () => {
  const many = Array.from({ length: 51 }, (_, n) => n)
  const tableOf = (figure: Figure) => /<details>.*<\/details>/s.exec(figureHtml(figure, 1).markup)![0]

  it("has its numbers in a table of at most 25 rows", () => {
    const rows = (figure: Figure) => tableOf(figure).split("<th scope=\"row\">").length - 1
    assert.deepStrictEqual([25, 26, 51].map((length) => rows(figureOf([line(many.slice(0, length))]))), [25, 13, 17])
    assert.include(tableOf(figureOf([line([1])])), "<caption>Load, requests per second</caption>")
    assert.include(tableOf(figureOf([line(many)])), "<caption>Load, requests per second, every 3 points</caption>")
    assert.match(wordsOf(tableOf(figureOf([line([7, null])]))), / 0\.5 s 7 1\.5 s –$/)
  })

  it("names a column by its picture, its line, or both", () => {
    const heads = (...panels: ReadonlyArray<readonly [name: string, ...labels: Array<string>]>) => {
      const figure = figureOf([line([1])])
      const table = tableOf({
        ...figure,
        panels: panels.map(([name, ...labels]) => ({
          name,
          look: lookOf(0),
          lines: labels.map((label) => line([1], label)),
          references: []
        }))
      })
      return [...table.matchAll(/<th scope="col">([^<]*)</g)].map(([, head]) => head)
    }
    assert.deepStrictEqual(heads(["naive", "a"]), ["time", "naive"])
    assert.deepStrictEqual(heads(["Load", "a", "b"]), ["time", "a", "b"])
    assert.deepStrictEqual(heads(["naive", "p50", "p99"], ["none", "p50"]), [
      "time",
      "naive, p50",
      "naive, p99",
      "none"
    ])
  })

  it("explains the arrow of a peak, if it has one", () => {
    const flat = Array<number>(99).fill(100)
    assert.include(
      figureHtml(figureOf([line([...flat, 1000])]), 1).markup,
      " An arrow shows how high a short peak goes."
    )
    assert.notInclude(figureHtml(figureOf([line(flat)]), 1).markup, "arrow")
  })

  it("has as many columns as pictures, so that the last row is not nearly empty", () => {
    assert.deepStrictEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].map(columnsOf), [2, 2, 3, 4, 5, 3, 4, 4, 3, 5, 4])
  })
})

describe("shades", () => {
  const shades = (...outages: ReadonlyArray<readonly [kind: "fail" | "slow", from: number, to: number]>) => {
    const service = {
      outages: outages.map(([kind, from, to]) => ({ kind, from, to, ...kind === "slow" ? { factor: 2 } : {} }))
    }
    return shadesOf(made({ shares: Array<number>(10).fill(100), service }).scenario, 10_000)
  }
  const shade = (what: string, fromMillis: number, toMillis: number) => ({ what, fromMillis, toMillis })

  it("are in order, and end with the run", () => {
    assert.deepStrictEqual(shades(["slow", 5000, 20_000], ["fail", 1000, 2000], ["fail", 10_000, 12_000]), [
      shade("outage", 1000, 2000),
      shade("slow", 5000, 10_000)
    ])
  })

  it("are one where they overlap or nearly touch: slow only if all of it is", () => {
    assert.deepStrictEqual(shades(["slow", 1000, 2000], ["slow", 2020, 3000]), [shade("slow", 1000, 3000)])
    assert.lengthOf(shades(["slow", 1000, 2000], ["slow", 2021, 3000]), 2)
    assert.deepStrictEqual(shades(["slow", 1000, 5000], ["fail", 2000, 3000]), [shade("outage", 1000, 5000)])
  })
})

describe("what a service can handle", () => {
  const bounds = (service: object) =>
    boundsOf(made({ shares: [100], service }).scenario, "s").map(({ at, isEstimated, label }) => [
      label,
      at(0),
      isEstimated
    ])

  it("is its capacity, or what its workers do if they are never idle, and its limit", () => {
    assert.deepStrictEqual(bounds({}), [])
    assert.deepStrictEqual(bounds({ capacity: 60 }), [["capacity", 60, false]])
    assert.deepStrictEqual(bounds({ workers: 4, instances: 2, latency: "20 millis", slowdown: "5 millis" }), [
      ["capacity", 320, true]
    ])
    assert.deepStrictEqual(bounds({ capacity: 60, limit: { requests: 20 } }), [
      ["capacity", 60, false],
      ["limit", 20, false]
    ])
  })

  it("is unknown of workers that take no time, or wait for other services; and of no such service", () => {
    assert.deepStrictEqual(bounds({ workers: 4, latency: 0 }), [])
    const { scenario } = made({ shares: [100] })
    assert.deepStrictEqual(boundsOf(scenario, "other"), [])
    assert.strictEqual(leastBound(scenario, "s", 0), Infinity)
    const both = made({ shares: [100], service: { capacity: 60, limit: { requests: 20 } } }).scenario
    assert.strictEqual(leastBound(both, "s", 0), 20)
  })
})

describe("what is simulated", () => {
  const said = (changes: Partial<Made>, ...others: ReadonlyArray<Made>) =>
    wordsOf(setup([runsOf("x", { shares: Array<number>(10).fill(100), ...changes }, ...others)]).markup)

  it("is the load: how many calls, processes and how long they wait", () => {
    assert.include(said({}), "f to s : 100 calls per second, one process, no timeout")
    assert.include(
      said({ fleet: { processes: 1200, timeout: "1500 millis" } }),
      "100 calls per second, 1,200 processes, timeout 1.5 s"
    )
    const clients = (clients: number) => said({ fleet: { rate: undefined, clients } })
    assert.include(clients(1), "one client, one call after the other")
    assert.include(clients(12), "12 clients, one call after the other")
    const points = [{ at: 0, rate: 5 }, { at: 1000, rate: 50 }, { at: 2000, rate: 20 }]
    assert.include(said({ fleet: { rate: points } }), "up to 50 calls per second")
    assert.include(
      said({ fleet: { rate: undefined, arrivals: { bucket: 1000, calls: [3, 7, 5] } } }),
      "up to 7 calls per second, as recorded"
    )
  })

  it("is what the service can handle, and the headroom of the one with the least", () => {
    assert.include(said({ service: { capacity: undefined } }), "s : no bound")
    assert.notInclude(said({}), "Headroom")
    assert.include(
      said({ service: { capacity: 400, instances: 3 } }),
      "s : 3 instances, capacity 1,200 requests per second Headroom 92 % : 100 of 1,200 per second at s before"
    )
    assert.include(said({ service: { workers: 4, latency: "20 millis" } }), "4 workers, capacity about 200 requests")
    assert.include(said({ service: { capacity: 80 } }), "-25 % : 100 of 80 per second")
  })

  it("is what goes wrong: how long, of how much, in which way", () => {
    const trouble = (outage: object, fleet: object = {}) =>
      said({ fleet, service: { outages: [{ from: "2 seconds", to: "5 seconds", ...outage }] } })
    const where = "Trouble 3 s at s , from 2 s to 5 s: "
    assert.include(trouble({ kind: "fail" }), `${where}requests fail `)
    assert.include(trouble({ kind: "fail", share: 0.25 }), `${where}25 % of requests fail `)
    assert.include(trouble({ kind: "drop" }, { timeout: 1000 }), `${where}requests get no answer `)
    assert.include(trouble({ kind: "hold" }), `${where}requests are held and delivered at its end `)
    assert.include(trouble({ kind: "slow", factor: 20 }), `${where}work is slow, 20 times as long `)
    assert.notInclude(said({}), "Trouble")
  })

  it("names three of each, and counts the rest", () => {
    const outages = [1, 2, 3, 4, 5].map((from) => ({ kind: "fail", from: from * 1000, to: from * 1000 + 500 }))
    assert.match(said({ service: { outages } }), /from 3 s to 3\.5 s: requests fail and 2 more Runs/)
    assert.notInclude(said({ service: { outages: outages.slice(2) } }), "more")
  })

  it("is how many runs, with which seeds", () => {
    const one: Made = { shares: [100], seed: 4 }
    assert.match(said(one), /Runs one, seed 4: one random sample, which shows no range$/)
    assert.match(said({}, one, one), /Runs 3, seeds 1 to 3: means, and from 5 to 95 % of the runs$/)
    const several = wordsOf(setup([runsOf("x", one), runsOf("y", one)]).markup)
    assert.match(several, /Runs one of each policy, with the same seed 4: /)
  })
})

describe("the table of all numbers", () => {
  const run = runsOf("x", {
    shares: [100, 50],
    sends: 1.5,
    failures: { timeout: 1, unavailable: 1234 },
    stops: { "quota-exhausted": 2 },
    latency: { p50Millis: 20, p90Millis: null }
  })
  const rowsOf = (markup: string) => [...markup.matchAll(/<tr>.*?<\/tr>/gs)].map(([row]) => wordsOf(row))

  it("has a group of rows for each client and service, and those failures that happened", () => {
    assert.deepStrictEqual(rowsOf(numbers([run]).markup), [
      "all in all x",
      "f , calls to s",
      "calls 200",
      "of those that finished, succeeded 75.0 %",
      "requests per call 1.50",
      "p50 of calls that succeeded 20 ms",
      "p90 –",
      "p99 1 ms",
      "longest 1 ms",
      "requests that failed: timeout 1",
      "requests that failed: unavailable 1,234",
      "calls that finally failed: timeout 1",
      "calls that finally failed: unavailable 1,234",
      "calls no longer retried: quota-exhausted 2",
      "s , the service",
      "requests 300",
      "per call of all fleets 1.50",
      "succeeded 150",
      "failed 0",
      "wasted: finished after the client gave up 0"
    ])
  })

  it("has a column for each policy, with 0 for a failure that only others had", () => {
    const well = runsOf("y", { shares: [undefined], partial: true })
    const rows = rowsOf(numbers([run, well]).markup)
    assert.include(rows, "all in all x y (partial)")
    assert.include(rows, "requests that failed: timeout 1 0")
    assert.include(rows, "of those that finished, succeeded 75.0 % –")
  })

  it("says of what its figures are, and how many are left out", () => {
    const caption = (count: number, ...others: ReadonlyArray<Made>) => {
      const { label, result, results } = runsOf("x", { shares: [100] }, ...others)
      const clients = Array.from({ length: count }, (_, n) => ({ ...result.clients[0]!, name: `f${n}` }))
      const [, ...rest] = results
      const first = { ...result, clients }
      return /<caption>(.*?)<\/caption>/.exec(numbers([{ label, result: first, results: [first, ...rest] }]).markup)![1]
    }
    assert.strictEqual(caption(12), "One run.")
    assert.strictEqual(caption(13), "One run. Of 13 clients the 12 busiest.")
    assert.strictEqual(caption(1, { shares: [100] }), "Means of all runs, and from 5 to 95 % of them.")
  })
})

describe("the load on a service", () => {
  const loadOf = (made: Partial<Made>, ...others: ReadonlyArray<Made>) => {
    const runs = [made, ...others].map((one, n) => runsOf(`${n}`, { shares: [100, 100], ...one }))
    return loadFigure(planOf([runs[0]!, ...runs.slice(1)]), "s")
  }
  const labels = ({ panels }: Figure) =>
    panels.map(({ lines, references }) => [
      lines.map(({ label }) => label),
      references.map(({ label }) => label)
    ])

  it("of one run has what succeeded, of several only what came", () => {
    const one = loadOf({})
    assert.deepStrictEqual(labels(one), [[["requests", "succeeded"], [""]]])
    assert.strictEqual(one.what, "Requests that reach the service; thin gray line: calls, without their retries.")
    const two = loadOf({}, { shares: [100, 100] })
    assert.deepStrictEqual(labels(two), [[["requests"], [""]], [["requests"], [""]]])
    assert.include(two.what, "the service, retries included; thin")
  })

  it("has the bounds of the service, unless they are more than four times as high as the load", () => {
    const bounds = (capacity: number) => labels(loadOf({ service: { capacity } }))[0]![1]
    assert.deepStrictEqual([bounds(400), bounds(401)], [["", "capacity"], [""]])
  })

  it("has the calls of several runs only if all make the same", () => {
    const closed: Made = { shares: [100, 100], fleet: { rate: undefined, clients: 5 } }
    assert.deepStrictEqual(labels(loadOf(closed))[0]![1], [""])
    const two = loadOf(closed, closed)
    assert.deepStrictEqual(labels(two)[0]![1], [])
    assert.strictEqual(two.what, "Requests that reach the service, retries included.")
  })
})

describe("the figures of a page", () => {
  const titles = (made: Made) =>
    [...report([runsOf("x", made)], { command: "c" }).matchAll(/<h3>([^<]*)</g)].map(([, title]) => title)

  it("leave out requests per call if there are hardly any retries", () => {
    const shares = [100, 100]
    assert.include(titles({ shares, sends: 1.03 }), "Requests per call of f")
    assert.notInclude(titles({ shares, sends: 1.02 }), "Requests per call of f")
  })

  it("are none if there is only one point", () => {
    assert.deepStrictEqual(titles({ shares: [100] }), [])
    const page = report([runsOf("x", { shares: [100] })], { command: "c" })
    assert.include(page, "Everything happened within 1 s: there is nothing to plot over time.")
  })
})

describe("bars", () => {
  it("are described in words, with names that are shortened where they do not fit", () => {
    const bars = [{ label: "a".repeat(30), value: 10, note: "10 (1.00 per call)" }, { label: "b", value: 5, note: "5" }]
    const { markup } = barChart({ title: "Requests", what: "In total.", bars })
    assert.include(markup, `aria-label="Requests. ${"a".repeat(30)}: 10 (1.00 per call). b: 5."`)
    assert.deepStrictEqual(textsOf(markup).slice(1), ["10 (1.00 per call)", "b", "5"])
    assert.match(textsOf(markup)[0]!, /^a{10,17}…$/)
    const [first, second] = [...markup.matchAll(/<path[^>]* d="M[\d.]+ [\d.]+h([\d.]+)v/g)].map(([, wide]) =>
      Number(wide)
    )
    assert.closeTo(first! / second!, 2, 0.01)
  })
})

describe("a map", () => {
  const { scenario } = made({
    shares: Array<number>(10).fill(100),
    fleet: { name: "app" },
    service: { outages: [{ kind: "fail", from: 1000, to: 3000 }] },
    scenario: { name: "shop" }
  })
  const map = {
    label: "naive",
    x: { path: "fleets.0.rate", values: [50, 100, 150] },
    y: { path: "services.0.outages.0.length", values: [1000, 2000] },
    rows: [["recovers", "recovers", "limps"], ["recovers", "limps", "collapses"]],
    recoversBelow: 120.7
  } as const
  const pictureOf = (changes: object = {}) => mapSvg({ scenario, maps: [{ ...map, ...changes }] })

  it("says in words how many cells recover, limp and collapse, and what theory says", () => {
    assert.include(
      pictureOf(),
      "<title>Where shop recovers</title><desc>naive: Recovers in 3 of 6 cells, limps in 2, collapses in 1; in theory it recovers below 120 per second.</desc>"
    )
    assert.include(pictureOf({ recoversBelow: undefined }), "collapses in 1.</desc>")
    const texts = textsOf(pictureOf())
    assert.includeMembers([...texts], [
      "Where shop recovers",
      "recovers within the 10 s of the run",
      "limps: not within the run",
      "collapses: in theory never",
      "dashed: theory",
      "naive",
      "in theory below 120 per second"
    ])
    assert.include(textsOf(pictureOf({ recoversBelow: undefined })), "theory gives no bound")
  })

  it("names the axes in words where they are known, else by their paths", () => {
    assert.includeMembers([...textsOf(pictureOf())], ["calls per second of app", "length of the outage of s", "1 s"])
    const brackets = { x: { ...map.x, path: "fleets[0].rate" }, y: { ...map.y, path: "services[0].outages[0].length" } }
    assert.includeMembers([...textsOf(pictureOf(brackets))], ["calls per second of app", "length of the outage of s"])
    const others = textsOf(pictureOf({ x: { path: "fleets.0.processes", values: [1, 2, 3] } }))
    assert.include(others, "fleets.0.processes")
    assert.include(textsOf(pictureOf({ y: { path: "fleets.0.timeout", values: [0, 2000] } })), "fleets.0.timeout")
  })

  it("draws neighbors in a row that are alike as one area", () => {
    assert.strictEqual(/<g shape-rendering="crispEdges">(.*?)<\/g>/.exec(pictureOf())![1]!.split("<path").length - 1, 5)
  })

  it("draws where theory puts the edge, if x is the rate and the edge is on the map", () => {
    const dashed = (changes: object) => (pictureOf(changes).match(/stroke-dasharray/g) ?? []).length
    assert.deepStrictEqual(
      [
        dashed({}),
        dashed({ recoversBelow: 25 }),
        dashed({ recoversBelow: 24 }),
        dashed({ recoversBelow: 176 }),
        dashed({ recoversBelow: undefined }),
        dashed({ x: { ...map.x, path: "fleets.0.processes" } })
      ],
      [1, 1, 0, 0, 0, 0]
    )
  })

  it("marks the scenario as written, if it is on the map", () => {
    assert.include(textsOf(pictureOf()), "this scenario")
    for (const values of [[200, 300, 400], [10, 20, 30]]) {
      assert.notInclude(textsOf(pictureOf({ x: { ...map.x, values } })), "this scenario")
    }
    assert.notInclude(textsOf(pictureOf({ y: { ...map.y, values: [4000, 5000] } })), "this scenario")
    const side = (values: ReadonlyArray<number>) =>
      /text-anchor="(\w+)"[^>]*>this scenario</.exec(pictureOf({ x: { ...map.x, values } }))?.[1] ?? "start"
    assert.deepStrictEqual([side([100, 200, 300]), side([20, 60, 100])], ["start", "end"])
  })

  it("stands next to those of other policies, up to four in a row", () => {
    const widthOf = (count: number) => {
      const maps = Array.from({ length: count }, (_, n) => ({ ...map, label: `policy ${n}` }))
      const [, width, height] = /width="(\d+)" height="(\d+)"/.exec(
        mapSvg({ scenario, maps: [map, ...maps.slice(1)] })
      )!
      return [Number(width), Number(height)]
    }
    assert.deepStrictEqual([1, 2, 3, 4, 5].map(widthOf), [
      [800, 332],
      [800, 332],
      [964, 332],
      [1280, 332],
      [1280, 598]
    ])
  })

  it("of a page has the same words", () => {
    const words = wordsOf(mapHtml({ scenario, maps: [map] }).markup)
    assert.match(
      words,
      /^Where each policy recovers What becomes of the calls after an outage, .* recovers within the 10 s of the run limps: not within the run collapses: in theory never naive in theory below 120 per second /
    )
    assert.include(
      mapHtml({ scenario, maps: [{ ...map, recoversBelow: undefined }] }).markup,
      "aria-label=\"Where naive recovers. Recovers in 3 of 6 cells, limps in 2, collapses in 1.\""
    )
  })
})

describe("a page of backtests", () => {
  const { scenario } = made({ shares: [100, 100], scenario: { name: "shop", description: "Two sales." } })
  const found = (predicted: number | undefined, seconds = 2) => {
    const spread = predicted === undefined ? undefined : around(predicted)
    const compared = (measured: number | undefined) => ({
      measured,
      predicted: spread,
      error: undefined,
      isInside: undefined
    })
    return {
      succeeded: compared(0.5),
      sendsPerCall: compared(1.5),
      p50Millis: compared(undefined),
      p99Millis: compared(undefined),
      recoveredMillis: compared(undefined),
      recovery: undefined,
      bucketMillis: 1000,
      series: Array.from({ length: seconds }, (_, n) => ({
        fromMillis: n * 1000,
        succeeded: { measured: 5, predicted: spread },
        attempts: { measured: 8, predicted: spread }
      }))
    }
  }
  const measured = {
    bucket: 1000,
    series: [1, 2].map(() => ({ calls: 10, attempts: 10, succeeded: 5, failed: 5 }))
  } as any
  const series = (name: string, predicted: number | undefined, seconds?: number) => ({
    name,
    scenario,
    measured,
    found: found(predicted, seconds)
  })

  it("has its description, and the figures over the whole time: measured, then predicted", () => {
    const words = wordsOf(backtestReport([series("before", 1), series("after", undefined)]))
    assert.include(words, "shop: measured and predicted Two sales. Over the whole time: measured, then the mean")
    assert.include(words, " before 50.0 % 100.0 % 1.50 1.00 – 1 ms after 50.0 % – 1.50 – – – ")
    const plain = { ...series("x", 1), scenario: made({ shares: [100] }).scenario }
    assert.notInclude(backtestReport([plain]), "description\"")
  })

  it("has one row of charts, which end with the longest series", () => {
    const page = backtestReport([series("before", 1), series("after", 1, 5)])
    assert.include(page, "<div class=\"figures many\">")
    assert.include(page, ">5 s</text>")
    assert.include(backtestReport([series("before", 1)]), "<div class=\"figures one\">")
    assert.notInclude(backtestReport([series("before", 1)]), ">5 s</text>")
  })

  it("draws the calls that began, and what the service can handle only against the load", () => {
    const bounded = made({ shares: [100, 100], service: { capacity: 12 } }).scenario
    const page = backtestReport([{ ...series("x", 1), scenario: bounded }])
    const [succeeded, load] = page.split("<h3>Load on the service")
    assert.notInclude(succeeded!, "capacity 12<")
    assert.include(load!, ">capacity 12<")
    assert.include(succeeded!, "Thin and gray: the calls that began.")
  })
})
