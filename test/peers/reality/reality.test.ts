import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { availableParallelism } from "node:os"
import { afterAll } from "vitest"
import { compare, type Comparison, head, row } from "./compare.ts"
import { systems } from "./systems.ts"

/** Where the measured series and scenarios go, for `effect-retry backtest`. */
const folder = new URL("../../bench/output/reality/", import.meta.url)

const fileOf = ({ policy, system }: Comparison, what: string): URL =>
  new URL(`${`${system} ${policy}`.replaceAll(/[^A-Za-z0-9]+/g, "-")}.${what}.json`, folder)

const keep = (comparison: Comparison): void => {
  fs.mkdirSync(folder, { recursive: true })
  fs.writeFileSync(fileOf(comparison, "scenario"), JSON.stringify(comparison.scenario, undefined, 2))
  fs.writeFileSync(fileOf(comparison, "measured"), JSON.stringify(comparison.measured))
}

describe("the simulator and reality", () => {
  const rows: Array<string> = []
  afterAll(() => console.log([...head, ...rows].join("\n")))

  for (const system of systems) {
    for (const policy of system.policies) {
      it.live(`${system.name}: ${policy}`, () =>
        Effect.gen(function*() {
          const comparison = yield* compare(system, policy)
          const { backtest: { recoveredMillis, recovery, sendsPerCall, succeeded }, load } = comparison
          rows.push(row(comparison))
          keep(comparison)
          // The row has the load of the machine: other work is in the real run, and not in the simulated one.
          if (system.asserts === "nothing" || load > availableParallelism()) return
          assert.closeTo(succeeded.error!, 0, 0.03)
          if (system.asserts === "success") return
          assert.closeTo(sendsPerCall.error!, 0, 0.05)
          if (recovery === undefined) return
          const often = recovery.predicted.runs / recovery.predicted.of
          assert.isTrue(recovery.measured ? often > 0 : often < 1)
          if (recovery.measured) {
            const { predicted, measured } = recoveredMillis
            assert.closeTo(predicted!.mean, measured!, Math.max(2000, measured! * 0.15))
          }
        }))
    }
  }
})
