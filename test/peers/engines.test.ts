/** Every engine computes the same, to the last digit: simulations, explanations, and what the command line prints. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { build } from "esbuild"
import { execFile } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { inputOf, shipped } from "../../lab/test/utils/simulate.ts"
import { asked, browsers, serving, startBrowser } from "../utils/browsers.ts"
import { temporaryFolder } from "../utils/peers.ts"
import type { Answers, Case } from "./engines/program.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const node = (major: number): string => path.join(root, `test/runtimes/node_modules/node${major}/bin/node`)

const policies = ["written", "naive", "awsAdaptive", "finagle"]

/** What ships, shortened where it is long, and a scenario with every function whose last digits engines may disagree on. */
const cases: ReadonlyArray<Case> = [
  ...shipped.map((name): Case => ({
    name,
    scenario: inputOf(name, {
      scenario: { duration: name === "ten-thousand-clients" ? "2 seconds" : "20 seconds", drain: "10 seconds" }
    }),
    policies: name === "client-throttling" || name === "ten-thousand-clients" ? ["written"] : policies
  })),
  {
    name: "every distribution",
    policies: ["written", "awsAdaptive", "envoy", "awsGeneralReference"],
    scenario: {
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
  }
]

const program = async (): Promise<string> => {
  const { outputFiles } = await build({
    stdin: {
      contents: `import { answer } from "./program.ts"\nglobalThis.computed = () => answer(${JSON.stringify(cases)})`,
      resolveDir: path.join(root, "test/peers/engines"),
      loader: "ts"
    },
    tsconfig: path.join(root, "tsconfig.json"),
    bundle: true,
    write: false,
    format: "esm",
    platform: "browser",
    target: "es2022"
  })
  return outputFiles[0]!.text
}

const ended = (command: string, args: ReadonlyArray<string>) =>
  asked(() => promisify(execFile)(command, [...args], { maxBuffer: 2 ** 28 }).then(({ stdout }) => stdout))

describe("Node 20, 22 and 24, Chromium and Firefox", () => {
  it.live("have the same traces, and the same results to the last digit", () =>
    Effect.gen(function*() {
      const folder = yield* temporaryFolder
      const script = yield* asked(program)
      const file = path.join(folder, "main.mjs")
      fs.writeFileSync(file, `${script}\nconsole.log(JSON.stringify(await computed()))`)
      const expected: Answers = JSON.parse(yield* ended(node(20), [file]))
      assert.isAbove(Object.keys(expected).length, 40)
      for (const major of [22, 24]) {
        assert.deepStrictEqual(JSON.parse(yield* ended(node(major), [file])), expected, `Node ${major}`)
      }
      const origin = yield* serving({ "/": `<!doctype html><script type="module">${script}</script>` })
      for (const browser of browsers) {
        const started = yield* startBrowser(browser)
        const found = yield* asked(async () => {
          const page = await started.newPage()
          await page.goto(origin)
          return await page.evaluate("computed()")
        })
        assert.deepStrictEqual(found, expected, browser)
      }
    }).pipe(Effect.scoped), 400_000)

  it.live("print the same JSON", () =>
    Effect.gen(function*() {
      const folder = yield* temporaryFolder
      fs.mkdirSync(path.join(folder, "node_modules"))
      fs.symlinkSync(path.join(root, "node_modules/effect"), path.join(folder, "node_modules/effect"))
      fs.cpSync(path.join(root, "lab/scenarios"), path.join(folder, "scenarios"), { recursive: true })
      fs.writeFileSync(path.join(folder, "package.json"), `{"type":"module"}`)
      yield* ended(process.execPath, [path.join(root, "lab/scripts/build.mjs"), folder])
      const lines = [
        ["compare", "next-second", "--policy", "awsAdaptive", "--policy", "jitter", "--runs", "3", "--json"],
        [
          "map",
          "outage",
          "--policy",
          "finagle",
          "--x",
          "fleets.0.rate=60..300/3",
          "--y",
          "services.0.outages.0.length=1000..9000/2",
          "--json"
        ],
        ["explain", "awsAdaptive", "--failure-rate", "0.37", "--json"]
      ]
      for (const line of lines) {
        const printed = [20, 22, 24].map((major) => ended(node(major), [path.join(folder, "dist/bin.js"), ...line]))
        const [first, ...others] = yield* Effect.all(printed)
        assert.isAbove(first!.length, 1000)
        for (const other of others) assert.strictEqual(other, first, line[0])
      }
    }).pipe(Effect.scoped), 400_000)
})
