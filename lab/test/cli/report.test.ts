import * as Explain from "@effect-retry/lab/Explain"
import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import { awsStandard } from "effect-retry/aws/AwsModes"
import * as Backoff from "effect-retry/Backoff"
import * as RetryPolicy from "effect-retry/RetryPolicy"
import * as Effect from "effect/Effect"
import * as Crypto from "node:crypto"
import { explainSvg } from "../../src/cli/charts/explainChart.ts"
import type { Figure } from "../../src/cli/charts/figure.ts"
import { lookOf } from "../../src/cli/charts/palette.ts"
import { report, type Run } from "../../src/cli/charts/report.ts"
import { widthOf } from "../../src/cli/charts/shortened.ts"
import { timePanel } from "../../src/cli/charts/timePanel.ts"
import { runSummaryOf } from "../../src/simulator/runSummary.ts"
import { tagsOf } from "../utils/markup.ts"
import { inputOf, simulate } from "../utils/simulate.ts"
import { hostile, hostileScenario, runOf, short } from "./scenarios.ts"

const command = "effect-retry simulate short.json --report out.html"

const titlesOf = (page: string): ReadonlyArray<string> =>
  [...page.matchAll(/<h3>([^<]*)<\/h3>/g)].map(([, title = ""]) => title)

const one = runOf("quota", short)
const several = Effect.all([one, runOf("none", short, "none"), runOf("finagle", short, "finagle")])

const pageOf = (run: Run): string => report([run], { command })

const changed = (run: Run, result: Partial<Simulator.SimulationResult>): Run => ({
  ...run,
  result: { ...run.result, ...result },
  results: [{ ...run.result, ...result }]
})

/** Nothing that runs, loads, or that the policy of the page refuses. */
const assertInert = (page: string) => {
  const tags = tagsOf(page)
  const names = new Set(tags.map(({ name }) => name))
  for (
    const name of ["script", "img", "image", "iframe", "object", "link", "base", "form", "foreignObject", "a", "use"]
  ) {
    assert.isFalse(names.has(name), name)
  }
  for (const { attributes } of tags) {
    for (const [key, value] of attributes) {
      assert.isFalse(
        key === "style" || key.startsWith("on") || key.endsWith("href") || key === "src",
        `${key}="${value}"`
      )
      if (value.includes("url(")) assert.match(value, /^url\(#[\w-]+\)$/)
    }
  }
}

describe("report", () => {
  it.effect("is well-formed markup with one page, one heading, a language and no id twice", () =>
    Effect.gen(function*() {
      const [first, ...others] = yield* several
      for (const page of [pageOf(first), report([first, ...others], { command })]) {
        const tags = tagsOf(page)
        const count = (name: string) => tags.filter((tag) => tag.name === name).length
        assert.deepStrictEqual(["html", "head", "body", "main", "h1", "title"].map(count).slice(0, 5), [1, 1, 1, 1, 1])
        assert.strictEqual(tags[0]?.attributes.get("lang"), "en")
        const ids = tags.flatMap(({ attributes }) => attributes.get("id") ?? [])
        assert.strictEqual(new Set(ids).size, ids.length)
        const pictures = tags.filter(({ attributes, name }) => name === "svg" && attributes.get("role") === "img")
        assert.isAbove(pictures.length, 4)
        for (const { attributes } of pictures) assert.match(attributes.get("aria-label") ?? "", /\. .*\d/)
        const others = tags.filter(({ attributes, name }) => name === "svg" && attributes.get("role") !== "img")
        for (const { attributes } of others) assert.strictEqual(attributes.get("aria-hidden"), "true")
        const groups = tags.filter(({ attributes }) => attributes.get("tabindex") === "0")
        for (const { attributes } of groups) assert.isAbove(attributes.get("aria-label")?.length ?? 0, 0)
        assert.strictEqual(count("caption"), count("table"))
      }
    }))

  it.effect("shows the policy as written first where its charts scroll, on narrow screens", () =>
    Effect.gen(function*() {
      const [first, ...others] = yield* several
      const page = report([first, ...others], { command })
      const heads = [...page.matchAll(/<div( class="first")?><h4>.*?<bdi>([^<]*)</g)]
      assert.isAbove(heads.length, 6)
      for (const [, mark, label] of heads) assert.strictEqual(mark !== undefined, label === "quota", label)
      assert.match(page, /max-width:34rem\)\{[^@]*\.panels>\.first\{order:-1\}/)
    }))

  it.effect("allows nothing but its one style, by hash", () =>
    Effect.gen(function*() {
      const page = pageOf(yield* one)
      const style = /<style>([\s\S]*?)<\/style>/.exec(page)?.[1] ?? ""
      const hash = Crypto.createHash("sha256").update(style).digest("base64")
      const policy = `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'`
      assert.include(page, `<meta http-equiv="Content-Security-Policy" content="${policy}" />`)
      assert.strictEqual(page.split("<style").length, 2)
      assert.isBelow(page.indexOf("Content-Security-Policy"), page.indexOf("<title>"))
      assertInert(page)
    }))

  it.effect("escapes all names from outside", () =>
    Effect.gen(function*() {
      const first = yield* runOf(hostile.label, hostileScenario)
      const second = yield* runOf(`${hostile.label}2`, hostileScenario, "naive")
      for (const runs of [[first], [first, second]] as const) {
        const page = report(runs, { command: hostile.command })
        assertInert(page)
        assert.include(page, "&lt;script&gt;alert(7)&lt;/script&gt;")
        assert.include(page, "style=&quot;color:red&quot; \ufffd\ufffd\ufffd {a|b} zr0-c0")
        for (const forbidden of ["\u202e", "\u0007", "\ud800"]) assert.notInclude(page, forbidden)
      }
    }))

  it.effect("draws load, queue, success, latency and balance of one run, with the outage", () =>
    Effect.gen(function*() {
      const page = pageOf(yield* one)
      assert.deepStrictEqual(titlesOf(page), [
        "Requests per call of app",
        "Load on db",
        "Wasted work at db",
        "Waiting at db",
        "Latency of app",
        "Balance of the retry quota"
      ])
      for (const label of ["outage", "requests", "succeeded", "capacity 60", "p50", "p99"]) {
        assert.include(page, `>${label}</text>`)
      }
    }))

  it.effect("draws a picture of each policy, with the same axes", () =>
    Effect.gen(function*() {
      const [first, ...others] = yield* several
      const page = report([first, ...others], { command })
      assert.deepStrictEqual(titlesOf(page), [
        "Requests per call of app",
        "Load on db",
        "Wasted work at db",
        "Waiting at db",
        "Latency of app",
        "Balance of the retry quota",
        "Retry budget left",
        "Requests that reached each service"
      ])
      const pictures = (from: string, to: string) =>
        page.slice(page.indexOf(`<h3>${from}`), page.indexOf(`<h3>${to}`)).split("<svg viewBox=\"0 0 390").slice(1)
      assert.match(page, /<figure class="success"><div class="wide"><svg [^>]*aria-label="Calls that succeed\. /)
      for (const run of [first, ...others]) assert.include(page, `>${run.label}:</tspan>`)
      const loads = pictures("Load on", "Wasted work")
      assert.strictEqual(loads.length, 3)
      const axis = (picture: string) =>
        [...picture.matchAll(/text-anchor="end">([\d,k]+)<\/text>/g)].map(([, tick]) => tick)
      for (const picture of loads) {
        assert.deepStrictEqual(axis(picture), axis(loads[0]!))
        assert.include(picture, ">capacity 60</text>")
      }
      assert.strictEqual(pictures("Balance of", "Retry budget").length, 1)
    }))

  it.effect("shows the numbers of a time in all pictures together, without a script", () =>
    Effect.gen(function*() {
      const page = pageOf(yield* one)
      assert.include(page, "main:has(.h3:hover) .t3{visibility:visible}")
      const figures = titlesOf(page).length
      assert.strictEqual(page.split("class=\"t t3\"").length - 1, figures)
      assert.strictEqual(page.split("class=\"h h3\"").length - 1, figures)
      assert.match(
        page,
        /class="t t3"><path d="[^"]*"\/><text x="\d+" y="11">[\d.]+ s: requests \d+, succeeded \d+<\/text>/
      )
    }))

  it.effect("draws the fill rate of a limiter, and against the limit", () =>
    Effect.gen(function*() {
      const result = yield* simulate("adaptive")
      const page = pageOf({ label: "awsAdaptive", result, results: [result] })
      assert.include(titlesOf(page), "Fill rate of the rate limiter")
      assert.include(page, ">limit 20</text>")
    }))

  it("the name of an outage along its shade is clear of the name of a bound in the middle", () => {
    const line = (label: string, values: ReadonlyArray<number>) => ({ label, look: lookOf(0), values })
    const figure: Figure = {
      title: "Load",
      what: "Requests.",
      axis: "requests per second",
      unit: "per second",
      times: [0, 10_000, 20_000, 30_000],
      untilMillis: 35_000,
      panels: [{
        name: "naive",
        look: lookOf(0),
        lines: [line("measured", [40, 80, 160, 40]), line("predicted", [40, 80, 160, 40])],
        references: [line("capacity", [83, 83, 83, 83])]
      }],
      shades: [{ what: "outage", fromMillis: 15_000, toMillis: 22_000 }]
    }
    const drawn = timePanel(figure, figure.panels[0]!, { width: 222, height: 165 }).markup
    const heightOf = (text: RegExp) => Number(text.exec(drawn)![1])
    const bound = heightOf(/<text[^>]* y="([\d.]+)"[^>]*>capacity 83</)
    const top = heightOf(/<text[^>]* y="([\d.]+)"[^>]*text-anchor="end"[^>]*rotate[^>]*>outage</)
    assert.isBelow(top + widthOf("outage") * 10 / 12, bound - 10)
  })

  it.effect("leaves out what has no data, and charts over time if there is no time", () =>
    Effect.gen(function*() {
      const result = yield* simulate("layers")
      const page = pageOf({ label: "quota", result, results: [result] })
      assert.deepStrictEqual(titlesOf(page), ["Requests that reached each service"])
      assert.include(page, "275 (2.75 per call)")
      const nothing = pageOf(yield* runOf("none", { ...short, fleets: [{ name: "app", to: "db", rate: 0 }] }))
      tagsOf(nothing)
      assert.include(nothing, "No calls were made.")
      assert.notInclude(titlesOf(nothing).join(), "Success rate")
      assert.notMatch(nothing, /NaN|Infinity|undefined/)
    }))

  it.effect("begins with what becomes of the calls, in the numbers that decide", () =>
    Effect.gen(function*() {
      const run = yield* one
      const { attemptsPerCall, share } = runSummaryOf(run.result)
      const [, said = ""] = /<p class="verdict">(.*?)<\/p>/.exec(pageOf(run)) ?? []
      const words = said.replace(/<[^>]*>/g, "")
      assert.match(words, /^quota recovers in its one run, \S+ s after the outage\. /)
      assert.include(
        words,
        `${(100 * share!).toFixed(1)} % of its calls succeed, with ${attemptsPerCall!.toFixed(2)} requests`
      )
    }))

  it.effect("shows what is simulated: load, service, headroom, trouble, runs", () =>
    Effect.gen(function*() {
      const text = pageOf(yield* one).replace(/<[^>]*>/g, "")
      for (
        const said of [
          "app to db: 40 calls per second, one process, timeout 500 ms",
          "db: capacity 60 requests per second",
          "33 %: 40 of 60 per second at db before any retry",
          "2 s at db, from 3 s to 5 s: requests are held and delivered at its end",
          "one, seed 7: one random sample"
        ]
      ) {
        assert.include(text, said)
      }
    }))

  it.effect("says when the calls recovered, and when they did not", () =>
    Effect.gen(function*() {
      const { result } = yield* runOf("none", short, "none")
      const { recovery } = runSummaryOf(result)
      assert.strictEqual(recovery.kind, "recovered")
      const { bucketMillis, clients: [client] } = result
      if (recovery.kind !== "recovered" || client === undefined) return
      assert.strictEqual(recovery.afterMillis, recovery.atMillis - 5000)
      const within = client.series.filter(({ fromMillis }) => fromMillis < 10_000)
      const ill = within.filter(({ failed, succeeded }) => succeeded < 0.9 * (succeeded + failed))
      assert.strictEqual(ill.at(-1)!.fromMillis + bucketMillis, recovery.atMillis)
      const cut = { ...client, series: client.series.slice(0, 5) }
      assert.strictEqual(runSummaryOf({ ...result, clients: [cut] }).recovery.kind, "ill at the end")
      assert.strictEqual(runSummaryOf({ ...result, clients: [{ ...client, series: ill }] }).recovery.kind, "never well")
      assert.strictEqual(runSummaryOf({ ...result, clients: [{ ...client, series: [] }] }).recovery.kind, "unknown")
    }))

  it.effect("marks a partial run", () =>
    Effect.gen(function*() {
      const run = yield* one
      const partial = changed(run, { partial: true })
      assert.notMatch(pageOf(run), /partial/i)
      assert.include(pageOf(partial), `<p class="warn" role="note"><strong>Partial.</strong> This run was stopped`)
      assert.include(pageOf(partial), "<title>short (partial)")
      const page = report([run, { ...partial, label: "cut" }], { command })
      assert.include(page, "<strong>Partial.</strong> <bdi>cut</bdi>: these runs were stopped")
      assert.include(page, "<bdi>cut</bdi> (partial)")
      assert.notInclude(page, "<bdi>quota</bdi> (partial)")
    }))

  it.effect("shows how to reproduce it: command, seed, trace hash, scenario", () =>
    Effect.gen(function*() {
      const run = yield* one
      const page = pageOf(run)
      assert.include(page, `<pre><code>${command}</code></pre>`)
      assert.include(page, run.result.traceHash)
      assert.include(page, "The same scenario with the same seed, 7, gives the same run")
      assert.include(page, "&quot;capacity&quot;: 60")
    }))

  it.effect("is the same page for the same runs, whatever was drawn before", () =>
    Effect.gen(function*() {
      const [first, ...others] = yield* several
      const before = report([first, ...others], { command })
      pageOf(first)
      assert.strictEqual(report([first, ...others], { command }), before)
    }))

  it.effect("thins out: 10,000 buckets, 100 fleets and 100 services give a page below 1 MiB", () =>
    Effect.gen(function*() {
      const run = yield* one
      const { result: { clients: [client], scenario, services: [service] } } = run
      if (client === undefined || service === undefined) return assert.fail()
      const times = Array.from({ length: 10_000 }, (_, n) => n * 1000)
      const series = times.map((fromMillis, n) => ({ ...client.series[n % client.series.length]!, fromMillis }))
      const load = times.map((fromMillis, n) => ({ ...service.series[n % service.series.length]!, fromMillis }))
      const hundred = Array.from({ length: 100 }, (_, n) => n)
      const long = changed(run, {
        untilMillis: 10_000_000,
        clients: hundred.map((n) => ({ ...client, name: `fleet ${n}`, to: `service ${n}`, series })),
        services: hundred.map((n) => ({ ...service, name: `service ${n}`, series: load })),
        scenario: { ...scenario, duration: 10_000_000 }
      })
      const page = report([long, { ...long, label: "again" }], { command })
      assert.isBelow(page.length, 2 ** 20)
      assert.include(page, "94 more are left out")
      assert.include(page, "96 more are left out")
      assert.include(page, "Each point covers 34 s")
      tagsOf(page)
    }))
})

/** Behind by more than the timeout, a service recovers only with clients that do not add to the load. */
const outage = (policy: Simulator.Policy, runs: number) =>
  Effect.gen(function*() {
    const input = inputOf("outage", {
      scenario: { duration: "60 seconds" },
      fleet: { rate: 40 },
      service: { capacity: 60 }
    })
    const scenario = Simulator.withPolicy(yield* Simulator.decode(input), policy)
    const [first, ...others] = yield* Simulator.runs(scenario, { runs })
    return { label: String(policy), result: first!, results: [first!, ...others] } as const
  })

const verdictOf = (page: string): string =>
  (/<p class="verdict">([^]*?)<dl/.exec(page)?.[1] ?? "").replace(/<[^>]*>/g, "").replace(/\s+/g, " ")

describe("a page of several runs", () => {
  it.live(
    "names the best policy and why: ranks by recovery, then success, then load, and shows what keeps the others down",
    () =>
      Effect.gen(function*() {
        const naive = yield* outage("naive", 5)
        const standard = yield* outage("awsStandard", 5)
        const page = report([naive, standard], { command: "x" })
        assert.match(verdictOf(page), /^awsStandard does best: it recovers in all 5 runs, \d+ s .*after the outage\. /)
        assert.match(
          verdictOf(page),
          /naive \(the scenario&#39;s own policy\) does not recover within the \d+ s of the run: long after the outage 1[12]\d requests per second still reach database, which can handle 60\./
        )
        const [, table = ""] = page.split("<table class=\"rank\"")
        const rows = [...table.matchAll(/<th role="rowheader"[^>]*>.*?<bdi>(\w+)<\/bdi>/g)].map(([, label]) => label)
        assert.deepStrictEqual(rows.slice(0, 2), ["awsStandard", "naive"])
        assert.match(
          table,
          /<span class="badge good">.*?recovers<\/span>[^]*<span class="badge bad">.*?not within the run<\/span>/
        )
        assert.include(page, "A line is the median of 5 runs")
        assert.include(page, "fill-opacity=\"0.2\"")
        tagsOf(page)
      })
  )

  it.live("calls a difference within random variation a tie", () =>
    Effect.gen(function*() {
      const first = yield* outage("awsStandard", 4)
      const page = report([first, { ...first, label: "twin" }], { command: "x" })
      assert.include(
        verdictOf(page),
        "twin is equally good: with the same seeds, its success rate differs by 0.0 points"
      )
    }))

  it.live("gives means of all runs in its table of numbers", () =>
    Effect.gen(function*() {
      const run = yield* outage("awsStandard", 4)
      const page = report([run], { command: "x" })
      const calls = run.results.map(({ clients }) => clients[0]!.totals.calls)
      const mean = Math.round(calls.reduce((sum, count) => sum + count, 0) / calls.length)
      assert.match(
        page.replaceAll(",", ""),
        new RegExp(`<th scope="row">calls</th><td>${mean} <small>\\d+ to \\d+</small></td>`)
      )
    }))

  it.live("begins with a map when it is given one, in the order of the policies", () =>
    Effect.gen(function*() {
      const naive = yield* outage("naive", 1)
      const none = yield* outage("none", 1)
      const map = {
        x: { path: "fleets.0.rate", values: [20, 40] },
        y: { path: "services.0.outages.0.length", values: [1000, 10_000] },
        rows: [["recovers", "recovers"], ["limps", "collapses"]],
        recoversBelow: 20
      } as const
      const maps = {
        scenario: naive.result.scenario,
        maps: [{ ...map, label: "naive" }, { ...map, label: "none" }]
      } as const
      const page = report([naive, none], { command: "x", maps })
      assert.strictEqual(titlesOf(page)[0], "Where each policy recovers")
      assert.isBelow(page.indexOf("Where none recovers"), page.indexOf("Where naive recovers"))
      assert.include(
        page,
        "aria-label=\"Where naive recovers. Recovers in 2 of 4 cells, limps in 1, collapses in 1; in theory"
      )
      assert.include(page, ">this scenario</text>")
      tagsOf(page)
    }))
})

describe("explainSvg", () => {
  const explanation = Explain.explain(awsStandard, { name: "awsStandard", attempt: "2 seconds" })

  it("is a picture of its own: well-formed, with a title, a description in words, and colors for a dark background", () => {
    const svg = explainSvg(explanation)
    const [root] = tagsOf(svg)
    assert.strictEqual(root?.attributes.get("xmlns"), "http://www.w3.org/2000/svg")
    assert.include(svg, "<title>What awsStandard does</title>")
    assert.include(svg, "Retry 2: delay from 0 ms to 2 s, p50 1 s, p99 1.98 s, sent after 7 s at the latest.")
    assert.include(svg, "prefers-color-scheme:dark")
    assertInert(svg)
  })

  it("shows delays as ranges with their percentiles, the worst case, and where the quota refuses", () => {
    const svg = explainSvg(explanation)
    for (
      const text of [
        "Delay before each retry",
        "shortest to longest",
        "p50",
        "p99",
        "500 ms",
        "7 s",
        "the quota refuses retries from 32.1 %"
      ]
    ) {
      assert.include(svg, `>${text}</text>`)
    }
    assert.include(svg, "A failing call ends after at most 9 s.</text>")
  })

  it("says to where delays are drawn, and which are sampled", () => {
    const said = (policy: Parameters<typeof Explain.explain>[0]) =>
      />(From the shortest [^<]*)<\/text>/.exec(explainSvg(Explain.explain(policy)))?.[1]
    const three = RetryPolicy.maxAttempts(3)
    assert.strictEqual(said(three(Backoff.fixed(100))), "From the shortest to the longest.")
    assert.strictEqual(
      said(three(Backoff.decorrelated(100, { cap: "10 seconds" }))),
      "From the shortest to the longest. ~ marks percentiles of samples."
    )
  })

  it("leaves out what is missing: retries, a quota", () => {
    const none = explainSvg(Explain.explain(RetryPolicy.maxAttempts(1)(Backoff.fixed(0))))
    assert.notInclude(none, "Delay before each retry")
    const free = explainSvg(Explain.explain(RetryPolicy.maxAttempts(3)(Backoff.fixed(100))))
    assert.notInclude(free, "quota")
    assert.notMatch(none + free, /NaN|Infinity|undefined/)
  })

  it("escapes the name", () => {
    const svg = explainSvg({ ...explanation, name: hostile.name + hostile.description })
    assertInert(svg)
  })

  it("is the same picture of the same explanation", () => {
    assert.strictEqual(explainSvg(explanation), explainSvg(explanation))
  })
})
