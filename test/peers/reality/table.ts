/**
 * Every system with every policy: `npx tsx test/peers/reality/table.ts` takes twenty minutes, prints
 * the table, and leaves the measured series and the scenarios in `test/bench/output/reality`, for `effect-retry backtest`.
 */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { type Comparison, predict, run, table } from "./compare.ts"
import { fitted } from "./fitted.ts"
import { type System, systems } from "./systems.ts"

const folder = new URL("../../bench/output/reality/", import.meta.url)

const fileOf = ({ policy, system }: Comparison, what: string): URL =>
  new URL(`${`${system} ${policy}`.replaceAll(/[^A-Za-z0-9]+/g, "-")}.${what}.json`, folder)

const keep = (comparison: Comparison) =>
  Effect.sync(() => {
    fs.mkdirSync(folder, { recursive: true })
    fs.writeFileSync(fileOf(comparison, "scenario"), JSON.stringify(comparison.scenario, undefined, 2))
    fs.writeFileSync(fileOf(comparison, "measured"), JSON.stringify(comparison.measured))
  })

const compared = (systems: ReadonlyArray<System>, concurrency: number) =>
  Effect.forEach(
    systems.flatMap((system) => system.policies.map((policy) => [system, policy] as const)),
    ([system, policy]) => run(system, policy),
    { concurrency }
  ).pipe(Effect.flatMap(Effect.forEach((measurement) => Effect.tap(predict(measurement), keep))))

// Those that are fitted hardly use the CPU, and each needs a minute and a half for its log: they run at the same time.
const comparisons = Effect.zipWith(compared(systems, 1), compared(fitted, Infinity), (a, b) => [...a, ...b])
console.log(table(await Effect.runPromise(comparisons)))
