import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as OtlpMetrics from "effect/observability/OtlpMetrics"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import * as fs from "node:fs"
import * as http from "node:http"
import * as path from "node:path"
import { newPage, serving, startBrowser } from "../utils/browsers.ts"
import { freePort } from "../utils/peers.ts"
import { outage } from "./telemetry/outage.ts"
import { type Drawn, pageOf } from "./telemetry/page.ts"
import { promtool, shipped, startPrometheus } from "./telemetry/prometheus.ts"

interface Panel extends Pick<Drawn, "title" | "type" | "gridPos"> {
  readonly description?: string
  readonly fieldConfig?: {
    readonly defaults: {
      readonly unit?: string
      readonly thresholds?: { readonly steps: ReadonlyArray<{ readonly color: string; readonly value: number | null }> }
    }
  }
  readonly targets?: ReadonlyArray<{ readonly expr: string; readonly legendFormat: string }>
}

const { panels }: { readonly panels: ReadonlyArray<Panel> } = JSON.parse(
  fs.readFileSync(path.join(shipped, "effect-retry.json"), "utf8")
)

/** A query of the dashboard, for everything there is. */
const queryOf = (expr: string): string =>
  expr.replaceAll("$__rate_interval", "2m").replaceAll(/\$(?:job|instance|resource)\b/g, ".*")

const queries = panels.flatMap(({ targets = [], title }) =>
  targets.map(({ expr, legendFormat }) => ({ title: `${title}: ${legendFormat}`, query: queryOf(expr) }))
)

const ownRegistry = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.provideService(self, Metric.MetricRegistry, new Map())

const pictures = path.join(shipped, "../../test/bench/output")

const minute = 60_000
const begin = 1_700_000_000_000

/** No alert is for these: a resource that was left alone with an empty quota, and one call in a minute, which is retried. */
const harmless = (now: number): ReadonlyArray<string> => [
  `retry_quota_empty_since_seconds{resource="left"} ${begin / 1000}`,
  `retry_attempts_total{resource="quiet",outcome="success"} ${Math.floor(now / minute)}`,
  `retry_retries_total{resource="quiet",class="transient"} ${Math.floor(now / minute)}`
]

/** What a scrape every 15 seconds finds in a simulated hour; `orders` is down from minute 20 to 35. */
const scraped = Effect.gen(function*() {
  yield* TestClock.setTime(begin)
  const samples: Array<string> = []
  let now = 0
  yield* Effect.forkScoped(outage({ isDown: () => now >= 20 * minute && now < 35 * minute, everyMillis: 1000 }))
  for (; now < 60 * minute; now += 15_000) {
    yield* TestClock.adjust(15_000)
    const text = yield* PrometheusMetrics.format()
    for (const line of [...text.split("\n"), ...harmless(now)]) {
      const [, name, labels = "", value] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
      if (name === undefined) continue
      const target = [`job="shop"`, `instance="a"`, ...(labels === "" ? [] : [labels])].join(",")
      samples.push(`${name}{${target}} ${value} ${(begin + now + 15_000) / 1000}`)
    }
  }
  return samples
}).pipe(Effect.scoped, Random.withSeed("outage"), ownRegistry, Effect.provide(TestClock.layer()))

/** The name of a series in the legend. */
const labelOf = (format: string, metric: Series["metric"]): string =>
  format.replaceAll(/\{\{(\w+)\}\}/g, (_, name) => metric[name] ?? "")

const seconds = Array.from({ length: 241 }, (_, index) => begin / 1000 + 15 * index)

interface Series {
  readonly metric: Readonly<Record<string, string>>
  readonly values: ReadonlyArray<readonly [seconds: number, value: string]>
}

interface Rule {
  readonly name: string
  readonly query: string
  /** For how long it holds before the alarm is raised, in seconds. */
  readonly duration: number
}

/** When an alarm is raised by what holds at these moments, 15 seconds apart. */
const raisedAt = (values: Series["values"], duration: number): ReadonlyArray<number> => {
  let since = NaN
  let last = NaN
  const raised = new Set<number>()
  for (const [at] of values) {
    if (at - last !== 15) since = at
    last = at
    if (at - since >= duration) raised.add(since + duration)
  }
  return [...raised]
}

/** Opens the dashboard in Chromium, and leaves a picture of it in test/bench/output. */
const looked = (html: string, drawn: ReadonlyArray<Drawn>) =>
  Effect.gen(function*() {
    const browser = yield* startBrowser("Chromium")
    const origin = yield* serving({ "/": html })
    const page = yield* Effect.promise(() => newPage(browser))
    const problems: Array<string> = []
    page.on("pageerror", (error) => problems.push(String(error)))
    yield* Effect.promise(() => page.setViewport({ width: 1280, height: 1800 }))
    yield* Effect.promise(() => page.goto(origin))
    yield* Effect.promise(() => page.waitForNetworkIdle())
    const shown: ReadonlyArray<ReadonlyArray<string>> = yield* Effect.promise(() =>
      page.$$eval(".panel", (all) =>
        all.map((panel) =>
          [panel.querySelector("h2,h3"), ...panel.querySelectorAll(".label")]
            .map((node) =>
              node?.textContent ?? ""
            )
        ))
    )
    assert.deepStrictEqual(problems, [])
    assert.deepStrictEqual(shown, drawn.map(({ lines, title }) => [title, ...lines.map(({ label }) => label)]))
    fs.mkdirSync(pictures, { recursive: true })
    yield* Effect.promise(() => page.screenshot({ path: path.join(pictures, "dashboard.png"), fullPage: true }))
  })

describe("the dashboard and the alerts with Prometheus", () => {
  it("promtool accepts the alerts, and their tests pass", () => {
    assert.include(promtool(["check", "rules", path.join(shipped, "alerts.yml")]), "4 rules found")
    assert.include(promtool(["test", "rules", path.join(shipped, "alerts.test.yml")]), "SUCCESS")
  })

  it.live("every query of every panel shows something of a simulated outage, and every alert is raised by it", () =>
    Effect.gen(function*() {
      const prometheus = yield* startPrometheus(yield* scraped)
      const range = (query: string): Effect.Effect<ReadonlyArray<Series>, unknown> =>
        Effect.map(
          prometheus.get("query_range", {
            query,
            start: `${begin / 1000}`,
            end: `${(begin + 60 * minute) / 1000}`,
            step: "15"
          }),
          ({ result }) => result
        )
      const drawn = yield* Effect.forEach(panels, ({ fieldConfig, gridPos, targets = [], title, type }) =>
        Effect.map(
          Effect.forEach(targets, ({ expr, legendFormat }) =>
            Effect.map(range(queryOf(expr)), (found) =>
              found.map(({ metric, values }) => {
                const at = new Map(values)
                const valueAt = (second: number) =>
                  Number(at.get(second) ?? "NaN")
                return {
                  label: labelOf(legendFormat, metric),
                  values: seconds.map((second) => Number.isFinite(valueAt(second)) ? valueAt(second) : null)
                }
              }))),
          (lines) => ({ title, type, gridPos, unit: fieldConfig?.defaults.unit ?? "", lines: lines.flat() })
        ))
      yield* looked(pageOf(seconds, drawn), drawn)
      assert.isAtLeast(queries.length, 23)
      for (const { query, title } of queries) {
        const points = (yield* range(query)).flatMap(({ values }) => values).filter(([, value]) => value !== "NaN")
        assert.isAbove(points.length, 10, title)
      }
      const { groups } = yield* prometheus.get("rules", {})
      const rules: ReadonlyArray<Rule> = groups[0].rules
      assert.deepStrictEqual(rules.map(({ name }) => name), [
        "RetryShareHigh",
        "RetryQuotaEmpty",
        "RetryConcurrencyLimitFalling",
        "RetryCoolDown"
      ])
      for (const { duration, name, query } of rules) {
        const raised = (yield* range(query)).flatMap(({ metric, values }) =>
          raisedAt(values, duration).map((at) => [metric["resource"], at] as const)
        )
        assert.deepStrictEqual([...new Set(raised.map(([resource]) => resource))], ["orders"], name)
        const minutes = raised.map(([, at]) => (at * 1000 - begin) / minute)
        assert.isAbove(Math.min(...minutes), 20, name)
        assert.isBelow(Math.max(...minutes), 36, name)
      }
      // A stat of the first row is red while the expression of its alert holds.
      for (const { description = "", fieldConfig, targets: [target] = [], type } of panels) {
        const rule = rules.find(({ name }) => type === "stat" && name !== "RetryCoolDown" && description.includes(name))
        if (rule === undefined) continue
        const steps = fieldConfig!.defaults.thresholds!.steps
        const colorOf = (value: number) => steps.filter((step) => value >= (step.value ?? -Infinity)).at(-1)!.color
        const timesOf = (series: ReadonlyArray<Series>) =>
          [
            ...new Set(series.flatMap(({ values }) => values.map(([at]) => at)))
          ].sort()
        const red = (yield* range(queryOf(target!.expr))).map(({ metric, values }) => ({
          metric,
          values: values.filter(([, value]) => colorOf(Number(value)) === "red")
        }))
        assert.deepStrictEqual(timesOf(red), timesOf(yield* range(rule.query)), rule.name)
      }
    }).pipe(Effect.scoped))

  it.live("Effect's exporter serves Prometheus the names that the queries ask for, and the OTLP exporter sends the same", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      const sent = new Map<string, Set<string>>()
      const collector = yield* Effect.acquireRelease(
        Effect.callback<http.Server>((resume) => {
          const server = http.createServer((request, response) => {
            const chunks: Array<Buffer> = []
            request.on("data", (chunk) => chunks.push(chunk)).on("end", () => {
              const { resourceMetrics } = JSON.parse(Buffer.concat(chunks).toString())
              for (const metric of resourceMetrics[0].scopeMetrics[0].metrics) {
                const { dataPoints } = metric.sum ?? metric.gauge ?? metric.histogram
                const keys = dataPoints.flatMap(({ attributes }: any) => attributes.map(({ key }: any) => key))
                sent.set(metric.name, new Set([...(sent.get(metric.name) ?? []), ...keys]))
              }
              response.end("{}")
            })
          })
          server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
        }),
        (server) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
      )
      const { port: collecting } = collector.address() as { readonly port: number }
      const served = PrometheusMetrics.layerHttp().pipe(
        HttpRouter.serve,
        Layer.provide(NodeHttpServer.layer(http.createServer, { port, host: "127.0.0.1" }))
      )
      const otlp = OtlpMetrics.layer({
        url: `http://127.0.0.1:${collecting}/v1/metrics`,
        exportInterval: "500 millis",
        resource: { serviceName: "shop" }
      }).pipe(Layer.provide([FetchHttpClient.layer, OtlpSerialization.layerJson]))
      const begun = Date.now()
      yield* Effect.forkScoped(
        Effect.provide(
          outage({ isDown: () => Date.now() - begun > 2000, everyMillis: 20 }),
          Layer.mergeAll(served, otlp)
        )
      )
      const prometheus = yield* startPrometheus([], [port])
      yield* Effect.sleep("12 seconds")
      const scrape = yield* Effect.tryPromise(() => fetch(`http://127.0.0.1:${port}/metrics`).then((one) => one.text()))
      promtool(["check", "metrics"], scrape)
      for (const { query, title } of queries) {
        const { result } = yield* prometheus.get("query", { query: query.replaceAll(/\[\d[mh]\]/g, "[10s]") })
        assert.isAtLeast(result.length, 1, title)
      }
      for (const [, name, labels] of queries.flatMap(({ query }) => [...query.matchAll(/(retry_[a-z_]+)\{(.*?)\}/g)])) {
        const metric = name!.replace(/_(bucket|count)$/, "")
        assert.isTrue(sent.has(metric), metric)
        assert.strictEqual(sent.get(metric)!.has("resource"), labels!.includes("resource="), metric)
      }
      assert.isTrue(sent.get("retry_attempts_total")!.has("error.type"))
    }).pipe(Effect.scoped, ownRegistry))
})
