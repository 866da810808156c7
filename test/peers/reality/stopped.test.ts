/** The simulator and a server whose capacity has to be measured first, which moves with whatever else the machine does. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { availableParallelism } from "node:os"
import { predict, run, table, toleranceOf } from "./compare.ts"
import { proxied } from "./systems.ts"

describe("the success that the simulator predicts is the success that is measured", () => {
  for (const policy of proxied.policies) {
    it.live(`${proxied.name}: ${policy}`, () =>
      Effect.gen(function*() {
        const comparison = yield* Effect.flatMap(run(proxied, policy), (measurement) => predict(measurement, 40))
        console.log(table([comparison]))
        // The row has the load of the machine: other work is in the real run, and not in the simulated one.
        if (comparison.load > availableParallelism()) return
        const { succeeded } = comparison.backtest
        assert.closeTo(succeeded.error!, 0, toleranceOf(succeeded, 0.03))
      }))
  }
})
