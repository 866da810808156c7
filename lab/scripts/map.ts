/**
 * The map in the README: where three policies recover from the scenario `outage` with 100 processes, for each load and
 * each length of the outage. `npx tsx lab/scripts/map.ts` runs it, for some minutes, and writes the verdicts to
 * docs/outage-map.json; `--draw` only redraws the picture from them.
 */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { fileURLToPath } from "node:url"
import { mapSvg } from "../src/cli/charts/mapChart.ts"
import { plansOf } from "../src/cli/compare.ts"
import type { PolicyMap } from "../src/cli/mapTable.ts"
import * as Simulator from "../src/Simulator.ts"

const root = new URL("../../", import.meta.url)
const verdicts = new URL("docs/outage-map.json", root)

/** The picture. */
export const file = "docs/outage-map.svg"

/** Runs of each cell. */
export const runs = 5

/** The scenario with each policy: first its own. */
export const plans = Effect.gen(function*() {
  const outage = JSON.parse(fs.readFileSync(new URL("lab/scenarios/outage.json", root), "utf8"))
  const [fleet] = outage.fleets
  const scenario = yield* Simulator.decode({
    ...outage,
    name: "a service called by 100 processes",
    fleets: [{ ...fleet, processes: 100 }]
  })
  return plansOf(scenario, ["awsStandard", "limited"])
})

const steps = (from: number, to: number, step: number): ReadonlyArray<number> =>
  Array.from({ length: (to - from) / step + 1 }, (_, n) => from + n * step)

const axes = {
  x: { path: "fleets.0.rate", values: steps(60, 300, 15) },
  y: { path: "services.0.outages.0.length", values: steps(1000, 15_000, 2000) }
}

/** The verdicts that are committed, in the order of the plans. */
export const read = (): readonly [PolicyMap, ...Array<PolicyMap>] => JSON.parse(fs.readFileSync(verdicts, "utf8"))

/** The picture of the verdicts. */
export const drawn = Effect.map(plans, ([{ scenario }]) => mapSvg({ scenario, maps: read() }))

const measured = Effect.gen(function*() {
  const maps = yield* Effect.forEach(
    yield* plans,
    ({ label, scenario }) => Effect.map(Simulator.map(scenario, { ...axes, runs }), (map) => ({ label, ...map }))
  )
  const lines = maps.map(({ rows, ...map }) =>
    `${JSON.stringify(map).slice(0, -1)},"rows":[\n${rows.map((row) => `  ${JSON.stringify(row)}`).join(",\n")}\n]}`
  )
  fs.writeFileSync(verdicts, `[${lines.join(",\n")}]\n`)
})

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (!process.argv.includes("--draw")) await Effect.runPromise(measured)
  fs.writeFileSync(new URL(file, root), await Effect.runPromise(drawn))
}
