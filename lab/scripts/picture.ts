/**
 * The picture of the README: the share of calls that succeed in the scenario `outage`, with three policies.
 * `npx tsx lab/scripts/picture.ts` runs it and writes the files. With `--card` it also writes the card that links to the site
 * show, as a bitmap: that needs a Chromium, at `CHROMIUM` or /usr/bin/chromium.
 */
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import type { Runs } from "../src/cli/charts/run.ts"
import { successSvg } from "../src/cli/charts/success.ts"
import { narrow, wide } from "../src/cli/charts/successChart.ts"
import { plansOf } from "../src/cli/compare.ts"
import * as Simulator from "../src/Simulator.ts"
import { seedsOf } from "../src/simulator/runs.ts"

const root = new URL("../../", import.meta.url)

/** Runs of each policy. */
const count = 3

const names: { readonly [label: string]: string } = {
  "retry once": "retry once",
  awsStandard: "AWS standard mode",
  limited: "concurrency limit"
}

/** The scenario with each policy, the best first. */
const runs = Effect.gen(function*() {
  const scenario = yield* Simulator.decode(
    JSON.parse(fs.readFileSync(new URL("lab/scenarios/outage.json", root), "utf8"))
  )
  const plans = [...plansOf(scenario, ["awsStandard", "limited"])].reverse()
  const [first, ...others] = yield* Effect.forEach(
    plans,
    ({ label, scenario }) =>
      Effect.map(Effect.forEach(seedsOf(scenario, count), (seeded) => Simulator.run(seeded)), ([result, ...more]) => ({
        label: names[label]!,
        result: result!,
        results: [result!, ...more] as const
      }))
  )
  return [first!, ...others] satisfies Runs
})

const title = "The outage lasts 10 s. How long does it last for the callers?"

const card = { width: 1120, height: 460, type: 23 }

/** The files, and what is in them. */
export const pictures: Effect.Effect<{ readonly [file: string]: string }, unknown> = Effect.map(runs, (runs) => ({
  "docs/outage-picture.svg": successSvg(title, runs, wide),
  "docs/outage-picture-narrow.svg": successSvg(title, runs, narrow),
  "docs/site/social-card.svg": successSvg(title, runs, card)
}))

const bitmap = (svg: string, png: string): void => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "effect-retry-"))
  const page = path.join(folder, "card.html")
  fs.writeFileSync(
    page,
    `<body style="margin:0;height:630px;background:#fff;display:grid;place-content:center">${
      fs.readFileSync(svg, "utf8")
    }<b style="font:600 30px system-ui,sans-serif;color:#57606b;margin:8px 0 0 90px">effect-retry</b></body>`
  )
  execFileSync(process.env["CHROMIUM"] ?? "/usr/bin/chromium", [
    "--headless",
    "--no-sandbox",
    "--hide-scrollbars",
    "--window-size=1200,630",
    `--screenshot=${png}`,
    page
  ])
  fs.rmSync(folder, { recursive: true })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [file, text] of Object.entries(await Effect.runPromise(pictures))) {
    fs.writeFileSync(new URL(file, root), text)
  }
  if (process.argv.includes("--card")) {
    const at = (name: string) => fileURLToPath(new URL(`docs/site/${name}`, root))
    bitmap(at("social-card.svg"), at("social-card.png"))
  }
}
