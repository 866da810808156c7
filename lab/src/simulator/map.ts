import * as Effect from "effect/Effect"
import { bounded } from "./bounds.ts"
import { Executor } from "./executor.ts"
import { inOrder } from "./inOrder.ts"
import { type Verdict, verdictOf } from "./judge.ts"
import { withValue } from "./paths.ts"
import type { InvalidScenario } from "./problem.ts"
import type { Scenario } from "./scenario.ts"
import { recoversBelow } from "./theory.ts"

/**
 * A parameter of a map: a path into the scenario, such as `fleets.0.rate` or `services.0.outages.0.length` (milliseconds),
 * and the values that it takes.
 *
 * @category models
 * @since 0.1.0
 */
export interface Axis {
  readonly path: string
  readonly values: ReadonlyArray<number>
}

/**
 * The verdicts on a scenario for each pair of values.
 *
 * @category models
 * @since 0.1.0
 */
export interface VerdictMap {
  readonly x: Axis
  readonly y: Axis
  /** A row for each value of `y`, with a verdict for each value of `x`: that of the majority of runs. */
  readonly rows: ReadonlyArray<ReadonlyArray<Verdict>>
  /** Calls per second below which every cell recovers in theory; `undefined` where theory has no simple answer, or several. */
  readonly recoversBelow: number | undefined
}

/** The options of a map. */
export interface MapOptions {
  readonly x: Axis
  readonly y: Axis
  /** Runs of each cell; those that could no longer change the majority are skipped. Default 5. */
  readonly runs?: number | undefined
  /** Called after each row: how many of how many cells are done. */
  readonly onProgress?: ((done: number, of: number) => Effect.Effect<void>) | undefined
}

type Decode = (input: unknown) => Effect.Effect<Scenario, InvalidScenario>

export const mapOf = Effect.fnUntraced(function*(
  scenario: Scenario,
  decode: Decode,
  { onProgress, runs = 5, x, y }: MapOptions
) {
  const executor = yield* Executor
  const rows: Array<ReadonlyArray<Verdict>> = []
  const bounds = new Set<number | undefined>()
  for (const height of y.values) {
    const high = yield* Effect.flatMap(withValue(scenario, y.path, height), decode)
    const cell = (width: number) =>
      Effect.flatMap(Effect.flatMap(withValue(high, x.path, width), decode), (changed) => {
        bounds.add(recoversBelow(changed))
        return Effect.andThen(bounded([changed]), verdictOf(changed, runs))
      })
    rows.push(yield* inOrder(x.values, cell, executor.concurrency))
    if (onProgress !== undefined) yield* onProgress(rows.length * x.values.length, x.values.length * y.values.length)
  }
  return { x, y, rows, recoversBelow: bounds.size === 1 ? [...bounds][0] : undefined }
})
