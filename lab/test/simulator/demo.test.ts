import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { policies } from "../../../examples/outage/Page.ts"
import { budget } from "../../../test/utils/budget.ts"
import { inMemory } from "../../../test/utils/outage.ts"
import { inputOf } from "../utils/simulate.ts"

const seeds = budget(6, 3)

const mean = (values: ReadonlyArray<number>) => values.reduce((sum, value) => sum + value, 0) / values.length

describe("demo", () => {
  it.live(
    "predicts what the program of `npm start` does in virtual time: within 3 points, and 5 % of the attempts",
    () =>
      Effect.gen(function*() {
        const runs = yield* Effect.forEach(
          Array.from({ length: seeds }, (_, index) => index + 1),
          (seed) => Simulator.inVirtualTime(inMemory, { seed })
        )
        const scenario = yield* Simulator.decode(inputOf("demo"))
        for (const [index, [name, input]] of Object.entries(policies).entries()) {
          const program = runs.map((figures) => figures[index]!)
          assert.strictEqual(program[0]!.name, name)
          const policy = yield* Simulator.decodePolicy(input)
          const predicted = Simulator.summarize(
            yield* Simulator.runs(Simulator.withPolicy(scenario, policy), { runs: budget(20, 5) })
          )
          const succeeded = mean(program.map(({ succeeded }) => succeeded))
          const attempts = mean(program.map(({ requestsPerCall }) => requestsPerCall))
          assert.closeTo(predicted.succeeded!.mean, succeeded, 0.03, name)
          assert.closeTo(predicted.sendsPerCall!.mean / attempts, 1, 0.05, name)
        }
      })
  )
})
