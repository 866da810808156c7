/** The same digits from every engine: runs in Node 20, 22 and 24, Chromium and Firefox, with threads and without. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { build } from "esbuild"
import { execFile } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import type { Page } from "puppeteer-core"
import { written } from "../../lab/test/fit/generated.ts"
import { traces } from "../../lab/test/simulator/traces.ts"
import { inputOf } from "../../lab/test/utils/simulate.ts"
import { newPage, serving, startBrowser } from "../utils/browsers.ts"
import type { Asked, Printed } from "./digits/commands.ts"
import type { Inputs, Results } from "./digits/results.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const lab = path.join(root, "lab")
const majors = [20, 22, 24]
const node = (major: number): string => path.join(root, `test/runtimes/node_modules/node${major}/bin/node`)

const small = {
  name: "small",
  duration: "10s",
  drain: "5s",
  fleets: [{
    name: "app",
    to: "db",
    rate: 30,
    network: { p50: "1ms", p99: "9ms" },
    timeout: "500ms",
    policy: "awsAdaptive"
  }],
  services: [{
    name: "db",
    capacity: 40,
    latency: { p50: "20ms", p99: "180ms" },
    outages: [{ kind: "fail", from: "3s", to: "4s", share: 0.5 }]
  }],
  expect: { succeed: ">= 90 %" }
}

/** Every function whose last digits engines may disagree on. */
const everyDistribution = {
  name: "every distribution",
  duration: "30 seconds",
  fleets: [
    {
      name: "open",
      to: "service",
      processes: 3,
      rate: [{ at: 0, rate: 20 }, { at: "20 seconds", rate: 60, ramp: true }],
      timeout: "700 millis",
      network: { normal: { mean: 5, deviation: 2 } },
      policy: {
        steps: [
          { exponential: { base: 37, factor: 1.3, jitter: "full" } },
          { maxAttempts: 9 },
          "whileRetryable",
          { honorRetryAfter: {} }
        ],
        concurrency: { published: "vegas" },
        coolDown: {},
        throttle: {}
      }
    },
    {
      name: "closed",
      to: "service",
      clients: 7,
      think: { lognormal: { median: 150, sigma: 0.7 } },
      pace: { uniform: { from: 100, to: 300 } },
      timeout: "1 second",
      policy: {
        steps: [{ decorrelated: { base: 21, cap: 900 } }, { maxAttempts: 5 }],
        concurrency: { published: "gradient2" }
      }
    }
  ],
  services: [{
    name: "service",
    capacity: 70,
    latency: { p50: 12, p99: 80 },
    limit: { requests: 60, retryAfter: "300 millis" },
    failureRate: 0.05,
    outages: [{ kind: "slow", from: "8 seconds", to: "12 seconds", factor: 3.7 }]
  }]
}

const crowd = "ten-thousand-clients"

const measured = { series: [{ calls: 10, attempts: 10, succeeded: 10, failed: 0 }] }

const inputs: Inputs = {
  scenarios: {
    ...Object.fromEntries(Object.keys(traces).map((name) => [name, inputOf(name, { scenario: { seed: 1 } })])),
    [crowd]: inputOf(crowd, { scenario: { duration: "2 seconds", drain: "10 seconds" } }),
    [everyDistribution.name]: everyDistribution
  },
  policies: {
    ...Object.fromEntries(
      Object.entries(traces).map(([name, hashes]) => [name, Object.keys(hashes) as Array<"written">])
    ),
    [crowd]: ["written"],
    [everyDistribution.name]: ["written", "awsAdaptive", "envoy", "awsGeneralReference"]
  },
  small,
  measured
}

const policies = ["--policy", "none", "--policy", "jitter"]
const commands: Asked["commands"] = [
  ["simulate", "small.json", "--runs", "4"],
  ["compare", "small.json", ...policies, "--runs", "3"],
  [
    "map",
    "small.json",
    "--x",
    "fleets.0.rate=10..40/3",
    "--y",
    "services.0.outages.0.length=500..2000/2",
    "--runs",
    "3"
  ],
  ["check", "small.json", "small.json", "--runs", "3"],
  ["sweep", "small.json", "services.0.capacity", "--from", "10", "--to", "40", "--step", "10", "--runs", "3"],
  ["tune", "small.json", ...policies, "--runs", "2"],
  ["backtest", "small.json", "--measured", "measured.json", "--runs", "3"],
  ["compare", "next-second", "--policy", "awsAdaptive", "--policy", "jitter", "--runs", "3"],
  [
    "map",
    "outage",
    "--policy",
    "finagle",
    "--x",
    "fleets.0.rate=60..300/3",
    "--y",
    "services.0.outages.0.length=1000..9000/2",
    "--runs",
    "3"
  ],
  ["explain", "awsAdaptive"],
  ["explain", "awsAdaptive", "--failure-rate", "0.37"],
  ["explain", "awsDynamoDB2026", "--deadline", "3s"],
  ["fit", "access.log"]
].map((args) => [...args, "--json"])

/** A difference is reported by its place: the texts are long. */
const same = (found: string, expected: string, what: string): void => {
  if (found === expected) return
  let at = 0
  while (found[at] === expected[at]) at++
  const near = (text: string) => text.slice(Math.max(0, at - 80), at + 40)
  assert.strictEqual(near(found), near(expected), `${what}, character ${at}`)
}

describe("the digits of figures", () => {
  let folder: string
  let script: string
  let expected: Results

  const outputOf = (major: number, script: string, argument: unknown): Promise<string> =>
    promisify(execFile)(node(major), [script, JSON.stringify(argument)], { cwd: folder, maxBuffer: 2 ** 28 }).then((
      { stdout }
    ) => stdout)

  const bundled = (entry: string, file: string) =>
    build({
      entryPoints: [path.join(root, entry)],
      outfile: path.join(folder, file),
      bundle: true,
      format: "esm",
      platform: "node",
      mainFields: ["module", "main"],
      tsconfig: path.join(root, "tsconfig.json"),
      logLevel: "warning"
    })

  beforeAll(async () => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), "effect-retry-"))
    const write = (name: string, text: string) => fs.writeFileSync(path.join(folder, name), text)
    write("small.json", JSON.stringify(small))
    write("measured.json", JSON.stringify(measured))
    write("access.log", written("nginx"))
    await bundled("test/peers/digits/commands.ts", "commands.mjs")
    await bundled("lab/src/cli/worker.ts", "worker.mjs")
    const { outputFiles } = await build({
      entryPoints: [path.join(root, "test/peers/digits/results.ts")],
      bundle: true,
      write: false,
      format: "iife",
      globalName: "program",
      platform: "browser",
      target: "es2022",
      tsconfig: path.join(root, "tsconfig.json"),
      logLevel: "warning"
    })
    script = outputFiles[0]!.text
    write(
      "results.mjs",
      `${script}
program.resultsOf(${JSON.stringify(inputs)}).then((results) => process.stdout.write(JSON.stringify(results)))`
    )
    expected = JSON.parse(await outputOf(20, "results.mjs", null))
  })

  afterAll(() => fs.rmSync(folder, { recursive: true }))

  const agrees = ({ texts, traces: found }: Results, engine: string): void => {
    assert.deepInclude(found, traces)
    assert.deepStrictEqual(Object.keys(texts), Object.keys(expected.texts))
    for (const [name, text] of Object.entries(texts)) same(text, expected.texts[name]!, `${engine}: ${name}`)
  }

  it("are those of the known traces, from all runs and searches", () => {
    agrees(expected, "Node 20")
    assert.isAbove(Object.keys(expected.texts).length, 90)
  })

  for (const major of [22, 24]) {
    it(`are the same in Node ${major}`, async () => {
      agrees(JSON.parse(await outputOf(major, "results.mjs", null)), `Node ${major}`)
    })
  }

  const inPage = (page: Page) => page.evaluate(`program.resultsOf(${JSON.stringify(inputs)})`) as Promise<Results>

  const inWorker = (page: Page) =>
    page.evaluate(`new Promise((resolve, reject) => {
      const text = ${JSON.stringify(`${script}\nonmessage = ({ data }) => program.resultsOf(data).then(postMessage)`)}
      const worker = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })))
      worker.onerror = ({ message }) => reject(new Error(message))
      worker.onmessage = ({ data }) => resolve(data)
      worker.postMessage(${JSON.stringify(inputs)})
    })`) as Promise<Results>

  // A worker runs on the same engine as its page.
  const places = [["Chromium", "a page", inPage], ["Firefox", "a worker", inWorker]] as const
  for (const [name, where, results] of places) {
    it.live(`are the same in ${name}, in ${where}`, () =>
      Effect.gen(function*() {
        const browser = yield* startBrowser(name)
        const origin = yield* serving({ "/": "<!doctype html><title>program</title>" })
        const found = yield* Effect.promise(async () => {
          const page = await newPage(browser)
          await page.goto(origin)
          await page.evaluate(`${script};globalThis.program = program`)
          return results(page)
        })
        agrees(found, name)
      }).pipe(Effect.scoped))
  }

  it("are printed the same by --json in Node 20, 22 and 24, with threads and without", async () => {
    const printed: Array<readonly [engine: string, Printed]> = []
    for (const major of majors) {
      for (const worker of [undefined, path.join(folder, "worker.mjs")]) {
        const found: Printed = JSON.parse(await outputOf(major, "commands.mjs", { commands, folder: lab, worker }))
        assert.strictEqual(found.threads, worker === undefined ? 0 : 18)
        printed.push([`Node ${major}, ${found.threads} threads`, found])
      }
    }
    const [[, first]] = printed as [readonly [string, Printed]]
    for (const [engine, { outputs }] of printed) {
      commands.forEach((args, index) => {
        JSON.parse(outputs[index]!)
        same(outputs[index]!, first.outputs[index]!, `${engine}: ${args.join(" ")}`)
      })
    }
  })
})
