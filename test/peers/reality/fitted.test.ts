/** The simulator with what `effect-retry fit` makes of an access log, and the service that wrote it. */
import { assert } from "@effect/vitest"
import { availableParallelism } from "node:os"
import { type Comparison, toleranceOf } from "./compare.ts"
import { fitted } from "./fitted.ts"
import { judged } from "./judged.ts"

/** Recoveries are counted in whole seconds, real ones and predicted ones. */
const resolutionMillis = 2000

// Servers that wait for the CPU answer late: the simulator knows nothing of it. The row has the load of the machine.
const isQuiet = ({ load }: Comparison) => load <= 2 * availableParallelism()

judged(
  "what the simulator predicts with a fit of an access log is what is measured",
  fitted,
  (comparison) => {
    if (!isQuiet(comparison)) return
    const { recoveredMillis, succeeded } = comparison.backtest
    assert.closeTo(succeeded.error!, 0, toleranceOf(succeeded, 0.03))
    const { measured = 0, predicted } = recoveredMillis
    const atLeast = Math.max(0.2 * measured, resolutionMillis)
    assert.closeTo(predicted?.mean ?? Infinity, measured, toleranceOf(recoveredMillis, atLeast))
  },
  (comparisons) => {
    const errors = comparisons.filter(isQuiet).map(({ backtest }) => backtest.succeeded.error!)
    if (errors.length < 6) return
    assert.closeTo(errors.reduce((sum, error) => sum + error, 0) / errors.length, 0, 0.02)
  }
)
