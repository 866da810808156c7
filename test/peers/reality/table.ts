/**
 * Every system with every policy, one after the other: `npx tsx test/peers/reality/table.ts` takes a quarter of an hour, prints
 * the table, and leaves the measured series and the scenarios in `test/bench/output/reality`, for `effect-retry backtest`.
 */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { type Comparison, predict, run, table } from "./compare.ts"
import { systems } from "./systems.ts"

const folder = new URL("../../bench/output/reality/", import.meta.url)

const fileOf = ({ policy, system }: Comparison, what: string): URL =>
  new URL(`${`${system} ${policy}`.replaceAll(/[^A-Za-z0-9]+/g, "-")}.${what}.json`, folder)

const keep = (comparison: Comparison) =>
  Effect.sync(() => {
    fs.mkdirSync(folder, { recursive: true })
    fs.writeFileSync(fileOf(comparison, "scenario"), JSON.stringify(comparison.scenario, undefined, 2))
    fs.writeFileSync(fileOf(comparison, "measured"), JSON.stringify(comparison.measured))
  })

const rows = systems.flatMap((system) => system.policies.map((policy) => [system, policy] as const))
const comparisons = Effect.forEach(
  rows,
  ([system, policy]) => run(system, policy).pipe(Effect.flatMap(predict), Effect.tap(keep))
)
console.log(table(await Effect.runPromise(comparisons)))
