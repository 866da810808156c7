/** The simulator with what `effect-retry fit` makes of an access log, and the service that wrote it. */
import { assert } from "@effect/vitest"
import { availableParallelism } from "node:os"
import { fitted } from "./fitted.ts"
import { judged } from "./judged.ts"

/** Recoveries are counted in whole seconds, real ones and predicted ones. */
const resolutionMillis = 2000

judged("what the simulator predicts with a fit of an access log is what is measured", fitted, ({ backtest, load }) => {
  // Servers that wait for the CPU answer late: the simulator knows nothing of it. The row has the load of the machine.
  if (load > 2 * availableParallelism()) return
  const { recoveredMillis, succeeded } = backtest
  assert.closeTo(succeeded.error!, 0, 0.03)
  const { measured = 0, predicted } = recoveredMillis
  assert.closeTo(predicted?.mean ?? Infinity, measured, Math.max(0.2 * measured, resolutionMillis))
})
