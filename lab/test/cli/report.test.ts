import * as Explain from "@effect-retry/lab/Explain"
import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import { awsStandard } from "effect-retry/aws/AwsModes"
import * as Backoff from "effect-retry/Backoff"
import * as RetryPolicy from "effect-retry/RetryPolicy"
import * as Effect from "effect/Effect"
import * as Crypto from "node:crypto"
import { explainSvg } from "../../src/cli/charts/explainChart.ts"
import { report, type Run } from "../../src/cli/charts/report.ts"
import { factsOf } from "../../src/simulator/facts.ts"
import { tagsOf } from "../utils/markup.ts"
import { simulate } from "../utils/simulate.ts"
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
        assert.strictEqual(count("desc"), pictures.length)
        assert.strictEqual(count("caption"), count("table"))
      }
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

  it.effect("escapes whatever others have named", () =>
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
        "Load on db",
        "Waiting at db",
        "Success rate",
        "Latency of app",
        "Balance of the retry quota"
      ])
      assert.include(page, ">outage</text>")
      for (const label of ["requests", "answered well", "calls, without their retries", "capacity"]) {
        assert.include(page, `<bdi>${label}</bdi></li>`)
      }
    }))

  it.effect("draws several policies in one picture", () =>
    Effect.gen(function*() {
      const [first, ...others] = yield* several
      const page = report([first, ...others], { command })
      assert.deepStrictEqual(titlesOf(page), [
        "Load on db",
        "Waiting at db",
        "Success rate of app",
        "Latency of app, p50",
        "Latency of app, p99",
        "Balance of the retry quota, app",
        "Retry budget left, app",
        "Requests that reached each service"
      ])
      const load = page.slice(page.indexOf("Load on db"), page.indexOf("Waiting at db"))
      for (const label of ["quota", "none", "finagle", "calls, without their retries"]) {
        assert.include(load, `<bdi>${label}</bdi></li>`)
      }
      const balance = page.slice(page.indexOf("Balance of the retry quota, app"), page.indexOf("Retry budget left"))
      assert.notInclude(balance, "<bdi>none</bdi>")
    }))

  it.effect("draws the fill rate of a limiter, and against the limit", () =>
    Effect.gen(function*() {
      const result = yield* simulate("adaptive")
      const page = pageOf({ label: "awsAdaptive", result, results: [result] })
      assert.include(titlesOf(page), "Fill rate of the rate limiter")
      assert.include(page, "<bdi>limit</bdi></li>")
    }))

  it.effect("leaves out what has no data, and the course of time where there is none", () =>
    Effect.gen(function*() {
      const result = yield* simulate("layers")
      const page = pageOf({ label: "quota", result, results: [result] })
      assert.deepStrictEqual(titlesOf(page), ["Requests that reached each service"])
      assert.include(page, "275 (2.75 per call)")
      const nothing = pageOf(yield* runOf("none", { ...short, fleets: [{ name: "app", to: "db", rate: 0 }] }))
      tagsOf(nothing)
      assert.include(nothing, "No calls were made.")
      assert.notInclude(titlesOf(nothing), "Success rate")
      assert.notMatch(nothing, /NaN|Infinity|undefined/)
    }))

  it.effect("says in words what the totals say", () =>
    Effect.gen(function*() {
      const run = yield* one
      const { calls, failed, succeeded } = factsOf(run.result)
      const text = pageOf(run).replace(/<[^>]*>/g, "")
      assert.strictEqual(calls, run.result.clients[0]?.totals.calls)
      assert.include(
        text,
        `${calls} calls were made, and ${
          Number((100 * succeeded / (succeeded + failed)).toFixed(1))
        } % of them succeeded.`
      )
      assert.match(
        text,
        /At its peak, 5 s after the start, [\d,.]+ requests per second reached db, [\d.]+ times the calls/
      )
    }))

  it.effect("tells when the calls were well again, and when they were not", () =>
    Effect.gen(function*() {
      const { result } = yield* runOf("none", short, "none")
      const { recovery } = factsOf(result)
      assert.strictEqual(recovery.kind, "recovered")
      const { bucketMillis, clients: [client] } = result
      if (recovery.kind !== "recovered" || client === undefined) return
      assert.strictEqual(recovery.afterMillis, recovery.atMillis - 5000)
      const within = client.series.filter(({ fromMillis }) => fromMillis < 10_000)
      const ill = within.filter(({ failed, succeeded }) => succeeded < 0.9 * (succeeded + failed))
      assert.strictEqual(ill.at(-1)!.fromMillis + bucketMillis, recovery.atMillis)
      const cut = { ...client, series: client.series.slice(0, 5) }
      assert.strictEqual(factsOf({ ...result, clients: [cut] }).recovery.kind, "ill at the end")
      assert.strictEqual(factsOf({ ...result, clients: [{ ...client, series: ill }] }).recovery.kind, "never well")
      assert.strictEqual(factsOf({ ...result, clients: [{ ...client, series: [] }] }).recovery.kind, "unknown")
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

  it.effect("says how to make it again: command, seed, trace hash, scenario", () =>
    Effect.gen(function*() {
      const run = yield* one
      const page = pageOf(run)
      assert.include(page, `<pre><code>${command}</code></pre>`)
      assert.include(page, run.result.traceHash)
      assert.include(page, "<dt>Seed</dt><dd>7</dd>")
      assert.include(page, "&quot;capacity&quot;: 60")
    }))

  it.effect("is the same page of the same runs, whatever was drawn before", () =>
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
      assert.include(page, "94 more are not")
      assert.include(page, "96 more are not")
      assert.include(page, "Each point stands for 34 s")
      tagsOf(page)
    }))
})

describe("a page of several runs", () => {
  it.effect("ranks the policies by how often they recover, and draws bands", () =>
    Effect.gen(function*() {
      const runs = yield* Effect.forEach(["naive", "none"] as const, (policy) =>
        Effect.gen(function*() {
          const scenario = Simulator.withPolicy(yield* Simulator.decode(short), policy)
          const [first, ...others] = yield* Simulator.runs(scenario, { runs: 5 })
          return { label: policy, result: first!, results: [first!, ...others] } as const
        }))
      const page = report([runs[0]!, runs[1]!], { command: "x" })
      assert.include(page, "Of each policy 5 runs")
      assert.include(page, "A line is the median of 5 runs")
      assert.match(page, /fill-opacity="0\.15"|opacity="0\.15"/)
      tagsOf(page)
    }))
})

describe("explainSvg", () => {
  const explanation = Explain.explain(awsStandard, { name: "awsStandard", attempt: "2 seconds" })

  it("is a picture of its own: well formed, with a title, what it shows in words, and colours for a dark ground", () => {
    const svg = explainSvg(explanation)
    const [root] = tagsOf(svg)
    assert.strictEqual(root?.attributes.get("xmlns"), "http://www.w3.org/2000/svg")
    assert.include(svg, "<title>What awsStandard does</title>")
    assert.include(svg, "Retry 2: delay from 0 ms to 2 s, p50 1 s, p99 1.98 s, sent after 7 s at the latest.")
    assert.include(svg, "prefers-color-scheme:dark")
    assertInert(svg)
  })

  it("shows delays, the worst case, and where the quota bites", () => {
    const svg = explainSvg(explanation)
    for (
      const text of ["Delay before each retry", "least to most", "p50", "p99", "7 s", "the quota bites from 32.1 %"]
    ) {
      assert.include(svg, `>${text}</text>`)
    }
    assert.include(svg, ">A call that fails ends after 9 s at most.</text>")
  })

  it("leaves out what there is none of: retries, a quota", () => {
    const none = explainSvg(Explain.explain(RetryPolicy.maxAttempts(1)(Backoff.fixed({ delay: 0 }))))
    assert.notInclude(none, "Delay before each retry")
    const free = explainSvg(Explain.explain(RetryPolicy.maxAttempts(3)(Backoff.fixed({ delay: 100 }))))
    assert.include(free, ">attempts per call</text>")
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
