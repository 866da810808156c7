import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Simulator from "../Simulator.ts"
import { Executor } from "../simulator/executor.ts"
import { inOrder } from "../simulator/inOrder.ts"
import { seedsOf } from "../simulator/runs.ts"
import type { Run, Runs } from "./charts/run.ts"
import { type Place, type ProgressLine, progressLine, toldOn } from "./progress.ts"
import { refusal } from "./refusal.ts"
import { plain } from "./text.ts"

/** A scenario to run, and its name among others. */
export interface Plan {
  readonly label: string
  readonly scenario: Simulator.Scenario
}

const usualRuns = 20
const leastRuns = 5
/** This many attempts of a policy run in seconds. */
const cheapAttempts = 5_000_000

/** As many runs as are cheap: that depends on the scenario alone, not on the machine. */
const affordable = (runs: ReadonlyArray<Run>): number => {
  const attempts = Math.max(1, ...runs.map(({ result }) => result.attempts))
  return Math.max(leastRuns, Math.min(usualRuns, Math.floor(cheapAttempts / attempts)))
}

/** The results of all seeds but the first: a row for each seed, with a result for each plan. */
type Rows = Array<Array<Simulator.SimulationResult>>

/** Adds results. A seed that not every plan has run with is left out, as it could not be paired, and so are those after it. */
const added = (runs: Runs, rows: Rows): Runs => {
  const broken = rows.findIndex((row) => Object.keys(row).length < runs.length)
  const whole = broken < 0 ? rows : rows.slice(0, broken)
  const [first, ...others] = runs
  const add = (run: Run, place: number): Run => ({
    ...run,
    results: [...run.results, ...whole.map((row) => row[place]!)]
  })
  return [add(first, 0), ...others.map((run, place) => add(run, place + 1))]
}

/** Shows the progress of one run at a time: of the runs in progress, the one that started first. */
class Shown {
  private readonly going = new Set<object>()

  constructor(readonly line: ProgressLine) {}

  /** Shows the progress of a run. */
  during<A, E, R>(
    label: string,
    place: Place,
    self: (onProgress: (progress: Simulator.Progress) => Effect.Effect<void>) => Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R> {
    return Effect.suspend(() => {
      const show = toldOn(this.line, plain(label), place)
      const one = {}
      this.going.add(one)
      return Effect.ensuring(
        self((progress) => this.going.values().next().value === one ? show(progress) : Effect.void),
        Effect.sync(() => void this.going.delete(one))
      )
    })
  }
}

const refused = ({ label, scenario }: Plan) =>
  Effect.mapError(({ message }: Simulator.SimulationStalled) => refusal(`${scenario.name} (${label}): ${message}`))

/** Runs a plan with its seed in this thread. Interrupted, it passes the result so far. */
const first = Effect.fnUntraced(function*<E, R>(
  plan: Plan,
  place: Place,
  shown: Shown,
  interrupted: (partial: Simulator.SimulationResult) => Effect.Effect<void, E, R>
) {
  const { here } = yield* Executor
  const simulation = yield* Simulator.make(plan.scenario)
  return yield* shown.during(plan.label, place, (onProgress) => here(simulation, { onProgress })).pipe(
    refused(plan),
    Effect.ensuring(shown.line.clear),
    Effect.onInterrupt(() => Effect.flatMap(simulation.result, interrupted))
  )
})

/** Runs all plans with more seeds, up to this many rows. */
const more = Effect.fnUntraced(function*(plans: ReadonlyArray<Plan>, rows: Rows, until: number, shown: Shown) {
  const { concurrency, run } = yield* Executor
  const jobs = Array.from({ length: until - rows.length }, () => rows.push([]) - 1).flatMap((row) =>
    plans.map((plan, place) => ({
      plan,
      row,
      place,
      index: { index: (row + 1) * plans.length + place, of: (until + 1) * plans.length, atOnce: concurrency }
    }))
  )
  yield* inOrder(
    jobs,
    ({ index, place, plan, row }) =>
      shown.during(plan.label, index, (onProgress) => run(seedsOf(plan.scenario, row + 2)[row + 1]!, { onProgress }))
        .pipe(
          refused(plan),
          Effect.tap((result) => Effect.sync(() => void (rows[row]![place] = result)))
        ),
    concurrency
  ).pipe(Effect.ensuring(shown.line.clear))
})

/**
 * Runs one plan after the other with their seed, and all of them with the seeds after it: in other threads meanwhile, or in this
 * one afterwards. Passes the results to `finish`. Interrupted, it passes the results so far: of the first seed also the run in
 * progress, partial.
 */
export const runAll = Effect.fnUntraced(function*<E, R>(
  plans: readonly [Plan, ...Array<Plan>],
  asked: Option.Option<number>,
  finish: (runs: Runs, isWhole: boolean) => Effect.Effect<void, E, R>
) {
  const { concurrency } = yield* Executor
  const shown = new Shown(yield* progressLine)
  const rows: Rows = []
  const begin = Effect.fnUntraced(function*(plan: Plan, index: number, before: ReadonlyArray<Run>) {
    const withResult = (result: Simulator.SimulationResult): Runs => {
      const run: Run = { label: plan.label, result, results: [result] }
      const [first, ...rest] = [...before, run]
      return first === undefined ? [run] : [first, ...rest]
    }
    const place = { index, of: plans.length }
    return withResult(yield* first(plan, place, shown, (partial) => finish(withResult(partial), false)))
  })
  const least = Option.getOrElse(asked, () => leastRuns)
  const early = concurrency > 1 && least > 1
    ? yield* Effect.forkScoped(more(plans, rows, least - 1, shown))
    : undefined
  const [one, ...others] = plans
  let runs = yield* begin(one, 0, [])
  for (const [index, plan] of others.entries()) runs = yield* begin(plan, index + 1, runs)
  const count = Option.getOrElse(asked, () => affordable(runs))
  const rest = Effect.gen(function*() {
    if (early !== undefined) yield* Fiber.join(early)
    if (rows.length + 1 < count) yield* more(plans, rows, count - 1, shown)
  })
  yield* Effect.onExit(
    rest,
    (exit) =>
      Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? finish(added(runs, rows), false) : Effect.void
  )
  yield* finish(added(runs, rows), true)
}, Effect.scoped)
