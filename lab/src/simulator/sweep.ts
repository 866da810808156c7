import * as Effect from "effect/Effect"
import { runsExpected } from "./expectations.ts"
import { type Judgment, judgmentsOf } from "./judgment.ts"
import { withValue } from "./paths.ts"
import { decadeOf, halvings } from "./portable.ts"
import { InvalidScenario } from "./problem.ts"
import type { Runner } from "./runner.ts"
import type { Scenario } from "./scenario.ts"

/**
 * A value that was tried.
 *
 * @category models
 * @since 0.1.0
 */
export interface SweepPoint {
  readonly value: number
  /** Whether all expectations hold. */
  readonly holds: boolean
  readonly judgments: ReadonlyArray<Judgment>
}

/**
 * Where in a range the expectations of a scenario hold.
 *
 * @category models
 * @since 0.1.0
 */
export interface Sweep {
  readonly path: string
  /** How far apart the values of the range are. */
  readonly step: number
  readonly runs: number
  /**
   * - `"smallest"`: they hold from `value` on, and one step below it they do not.
   * - `"largest"`: they hold up to `value`, and one step above it they do not.
   * - `"everywhere"`, `"nowhere"`: at every value that was tried, or at none.
   */
  readonly kind: "smallest" | "largest" | "everywhere" | "nowhere"
  readonly value: number | undefined
  /** The value next to it with which they do not hold. */
  readonly beside: number | undefined
  /** Whether they change once at most over the values that were tried; otherwise `value` is one of several. */
  readonly monotone: boolean
  /** What was tried, in the order of the values. */
  readonly points: ReadonlyArray<SweepPoint>
}

/** The options of a sweep. */
export interface SweepOptions {
  /** A path into the scenario, like that of an `Axis`. */
  readonly path: string
  readonly from: number
  readonly to: number
  /** The precision of the answer. Default: 1 between whole numbers, otherwise about a thousandth of the range. */
  readonly step?: number | undefined
  /** Runs of each value, each with a seed of its own. Default: the number in `recoversInRuns`, otherwise 20. */
  readonly runs?: number | undefined
  /** Called after each value, with the expected number of values. */
  readonly onProgress?: ((point: SweepPoint, done: number, of: number) => Effect.Effect<void>) | undefined
}

const usualRuns = 20
/** Stretches of the range tried before any is halved: a change that reverses within one goes unseen. */
const stretches = 6

const usualStep = (from: number, to: number): number => {
  const range = to - from
  return Number.isInteger(from) && Number.isInteger(to) && range >= 10
    ? 1
    : decadeOf(range / 500)
}

/** A whole number of steps from one end to the other. */
const gridOf = ({ from, step, to }: SweepOptions) => {
  const width = step ?? usualStep(from, to)
  const last = Math.max(1, Math.round((to - from) / width))
  const valueAt = (index: number): number => index === last ? to : Number((from + index * width).toPrecision(12))
  return { width, last, valueAt }
}

type Points = ReadonlyMap<number, SweepPoint>

const inOrder = (points: Points): ReadonlyArray<readonly [index: number, point: SweepPoint]> =>
  [...points].sort(([a], [b]) => a - b)

/** Neighbors where the expectations hold for only one. */
const changesOf = (points: Points): ReadonlyArray<readonly [below: number, above: number]> => {
  const sorted = inOrder(points)
  return sorted.slice(1).flatMap(([above, point], n) => {
    const [below, before] = sorted[n]!
    return before.holds === point.holds ? [] : [[below, above] as const]
  })
}

/** The change that is the answer: the one next to an end at which they hold, otherwise the first. */
const decisive = (points: Points, last: number): readonly [below: number, above: number] | undefined => {
  const changes = changesOf(points)
  return points.get(last)!.holds ? changes.at(-1) : changes[0]
}

const found = (points: Points, last: number): Pick<Sweep, "kind" | "value" | "beside"> => {
  const change = decisive(points, last)
  if (change === undefined) {
    return { kind: points.get(0)!.holds ? "everywhere" : "nowhere", value: undefined, beside: undefined }
  }
  const [below, above] = change
  const [low, high] = [points.get(below)!, points.get(above)!]
  return high.holds
    ? { kind: "smallest", value: high.value, beside: low.value }
    : { kind: "largest", value: low.value, beside: high.value }
}

/** Refuses a range that cannot be swept. */
const problemOf = ({ expect }: Scenario, { from, path, step, to }: SweepOptions): InvalidScenario | undefined => {
  const refuse = (path: string, problem: string) => new InvalidScenario({ problems: [{ path, problem }] })
  if (expect === undefined) return refuse("expect", "is missing: the sweep looks for where it holds")
  if (!(from < to)) return refuse(path, `cannot go from ${from} to ${to}: it must increase`)
  return step === undefined || (step > 0 && step <= to - from)
    ? undefined
    : refuse(path, `cannot go from ${from} to ${to} in steps of ${step}`)
}

/** Looks at both ends and between them, then halves the stretch in which the expectations change, down to one step. */
export const sweepOf = Effect.fnUntraced(function*(scenario: Scenario, options: SweepOptions, runner: Runner) {
  const problem = problemOf(scenario, options)
  if (problem !== undefined) return yield* problem
  const { onProgress, path } = options
  const runs = options.runs ?? runsExpected(scenario.expect) ?? usualRuns
  const { last, valueAt, width } = gridOf(options)
  const points = new Map<number, SweepPoint>()
  const coarse = new Set(Array.from({ length: stretches + 1 }, (_, n) => Math.round(last * n / stretches)))
  const about = coarse.size + halvings(last / stretches)
  const look = Effect.fnUntraced(function*(index: number) {
    const value = valueAt(index)
    const changed = yield* Effect.flatMap(withValue(scenario, path, value), runner.decode)
    const judgments = judgmentsOf(yield* runner.run(changed, runs))
    const point = { value, holds: judgments.every(({ holds }) => holds), judgments }
    points.set(index, point)
    if (onProgress !== undefined) yield* onProgress(point, points.size, Math.max(about, points.size))
  })
  for (const index of coarse) yield* look(index)
  while (true) {
    const [below, above] = decisive(points, last) ?? [0, 1]
    if (above - below <= 1) break
    yield* look(Math.floor((below + above) / 2))
  }
  const monotone = changesOf(points).length <= 1
  const sweep: Sweep = {
    path,
    step: width,
    runs,
    ...found(points, last),
    monotone,
    points: inOrder(points).map(([, point]) => point)
  }
  return sweep
})
