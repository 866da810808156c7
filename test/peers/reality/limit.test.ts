/** The simulator and a server whose capacity is a setting. */
import { assert } from "@effect/vitest"
import { judged } from "./judged.ts"
import { limited } from "./systems.ts"

judged("what the simulator predicts of nginx that throttles is what is measured", limited, ({ backtest }) => {
  assert.closeTo(backtest.succeeded.error!, 0, 0.03)
  assert.closeTo(backtest.sendsPerCall.error!, 0, 0.05)
})
