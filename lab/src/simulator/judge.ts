import * as Effect from "effect/Effect"
import { Executor } from "./executor.ts"
import type { SimulationResult } from "./result.ts"
import { seedsOf } from "./runs.ts"
import { afterOf, runSummaryOf } from "./runSummary.ts"
import type { Scenario } from "./scenario.ts"
import { recoversBelow } from "./theory.ts"
import { millis } from "./units.ts"

/**
 * What becomes of the calls after an outage, as a whole run shows it.
 *
 * - `"recovers"`: they return to nine tenths of the share of successes before it, and stay there until the end of the run.
 * - `"limps"`: not within the run. A longer run may recover.
 * - `"collapses"`: not within the run, nor in theory in any longer one: more calls are made than the service recovers below
 *   (`recoversBelow`), it is behind by more than the timeout, and the run shows the backlog grow, or fill the queue.
 *
 * @category models
 * @since 0.1.0
 */
export type Verdict = "recovers" | "limps" | "collapses"

/** Of a full queue; the next moment a request may leave it. */
const nearlyFull = 0.9

/** Whether the backlog grows in the last half of the time after the outage, or fills the queue, and in theory without end. */
const growsWithoutEnd = ({ bucketMillis, scenario, services: [service] }: SimulationResult): boolean => {
  const { capacity, outages, queue = Infinity } = scenario.services[0]
  const [{ rate, timeout }] = scenario.fleets
  const bound = recoversBelow(scenario)
  if (bound === undefined || typeof rate !== "number" || rate <= bound) return false
  const endMillis = millis(scenario.duration)
  const outageMillis = Math.max(0, ...outages.map(({ to }) => millis(to)))
  const queuedBy = (atMillis: number): number =>
    service?.series.filter(({ fromMillis }) => fromMillis + bucketMillis <= atMillis).at(-1)?.queued ?? 0
  const queued = queuedBy(endMillis)
  const grows = queued > queuedBy((outageMillis + endMillis) / 2) || queued >= nearlyFull * queue
  return outageMillis < endMillis && grows && queued * 1000 > Number(capacity) * millis(timeout!)
}

/** The verdict of a run that has ended. */
const verdictOfRun = (result: SimulationResult): Verdict =>
  afterOf(runSummaryOf(result).recovery) !== undefined ? "recovers" : growsWithoutEnd(result) ? "collapses" : "limps"

/**
 * What becomes of the calls in most of several runs, each with its own seed and to its end: `"limps"` where neither most
 * recover nor most collapse. Runs that could no longer change the verdict are skipped.
 */
export const verdictOf = Effect.fnUntraced(function*(scenario: Scenario, runs: number) {
  const executor = yield* Executor
  const counts = { recovers: 0, limps: 0, collapses: 0 }
  for (const seeded of seedsOf(scenario, runs)) {
    const one = verdictOfRun(yield* executor.run(seeded, {}))
    if (++counts[one] * 2 > runs) return one
  }
  return "limps"
})
