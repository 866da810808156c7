/** The simulator with what `effect-retry fit` makes of an access log, and the service that wrote it. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { availableParallelism } from "node:os"
import { type Comparison, type Measurement, predict, run, table } from "./compare.ts"
import { fitted } from "./fitted.ts"

const rows = fitted.flatMap((system) => system.policies.map((policy) => ({ system, policy })))

/** Recoveries are counted in whole seconds, real ones and predicted ones. */
const resolutionMillis = 2000

describe("what the simulator predicts with a fit of an access log is what is measured", () => {
  let measurements: ReadonlyArray<Measurement>
  const comparisons: Array<Comparison> = []

  // All at the same time, for they wait most of it; the simulations, which do not, come after them.
  beforeAll(async () => {
    const runs = Effect.forEach(rows, ({ policy, system }) => run(system, policy), { concurrency: "unbounded" })
    measurements = await Effect.runPromise(runs)
  })

  afterAll(() => console.log(table(comparisons)))

  rows.forEach(({ policy, system }, index) => {
    it.effect(`${system.name}: ${policy}`, () =>
      Effect.gen(function*() {
        const comparison = yield* predict(measurements[index]!)
        comparisons.push(comparison)
        const { backtest: { recoveredMillis, succeeded }, heldUpMillis, load } = comparison
        // A client that stands still sends what it missed in one burst, and servers that wait for the CPU answer late:
        // the simulator knows nothing of either. The row has the load of the machine.
        if (heldUpMillis > 50 || load > 2 * availableParallelism()) return
        assert.closeTo(succeeded.error!, 0, 0.03)
        const { measured = 0, predicted } = recoveredMillis
        assert.closeTo(predicted?.mean ?? Infinity, measured, Math.max(0.2 * measured, resolutionMillis))
      }))
  })
})
