import { afterAll, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { type Comparison, type Measurement, predict, run, table } from "./compare.ts"
import type { System } from "./systems.ts"

/** Runs systems with their policies, and judges each by a test of its own, and then all of them, but those whose client was held up. */
export const judged = (
  title: string,
  systems: ReadonlyArray<System>,
  judge: (comparison: Comparison) => void,
  judgeAll: (comparisons: ReadonlyArray<Comparison>) => void = () => {}
): void => {
  const rows = systems.flatMap((system) => system.policies.map((policy) => ({ system, policy })))
  describe(title, () => {
    let measurements: ReadonlyArray<Measurement>
    const comparisons: Array<Comparison> = []

    // All at the same time, for they wait most of it; the simulations, which do not, come after them.
    beforeAll(async () => {
      const runs = Effect.forEach(rows, ({ policy, system }) => run(system, policy), { concurrency: "unbounded" })
      measurements = await Effect.runPromise(runs)
    })

    // A client that stands still sends what it missed in one burst, which the simulator knows nothing of.
    const isFair = ({ heldUpMillis }: Comparison) => heldUpMillis <= 50

    afterAll(() => {
      console.log(table(comparisons))
      judgeAll(comparisons.filter(isFair))
    })

    rows.forEach(({ policy, system }, index) => {
      it.effect(`${system.name}: ${policy}`, () =>
        Effect.gen(function*() {
          const comparison = yield* predict(measurements[index]!, 40)
          comparisons.push(comparison)
          if (isFair(comparison)) judge(comparison)
        }))
    })
  })
}
