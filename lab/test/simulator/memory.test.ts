import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"

describe("the memory of a simulation", () => {
  it.live("what a simulation remembers does not grow with its requests: a hash and its buckets", () =>
    Effect.gen(function*() {
      const run = (rate: number) =>
        Effect.flatMap(
          Simulator.decode({
            name: "growth",
            duration: "10 seconds",
            fleets: [{ name: "f", to: "s", rate, policy: "awsStandard" }],
            services: [{ name: "s", failureRate: 0.3 }]
          }),
          Simulator.run
        )
      const [small, large] = [yield* run(10), yield* run(2000)]
      const size = (result: unknown) => JSON.stringify(result).length
      assert.isBelow(size(large), 2 * size(small))
    }))
})
