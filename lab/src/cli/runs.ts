import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Simulator from "../Simulator.ts"
import { Executor } from "../simulator/executor.ts"
import { inOrder } from "../simulator/inOrder.ts"
import { seedsOf } from "../simulator/runs.ts"
import { counted } from "./charts/format.ts"
import type { Run, Runs } from "./charts/run.ts"
import { part, type Progress, progress } from "./progress.ts"
import { refusal } from "./refusal.ts"
import { plain } from "./text.ts"

/** A scenario to run, and its name among others. */
export interface Plan {
  readonly label: string
  readonly scenario: Simulator.Scenario
}

const usualRuns = 20
const leastRuns = 5
/** What comes after the runs is about a fifth of the work: the same with more and less capacity. */
const shareOfRuns = 0.8
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

/** What is done of all runs: it shows the run in progress that started first. */
class Shown {
  private readonly going = new Map<object, number>()
  private done = 0

  constructor(readonly progress: Progress, public of: number) {}

  private share(): number {
    return [...this.going.values()].reduce((sum, fraction) => sum + fraction, this.done) / this.of
  }

  private runs(): string {
    return this.of === 1 ? "" : `, ${this.done} of ${this.of} runs done`
  }

  /** Shows the progress of a run. */
  during<A, E, R>(
    label: string,
    self: (onProgress: (progress: Simulator.Progress) => Effect.Effect<void>) => Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R> {
    return Effect.suspend(() => {
      const one = {}
      this.going.set(one, 0)
      return Effect.ensuring(
        self(({ attempts, fraction }) => {
          this.going.set(one, fraction)
          return this.going.keys().next().value === one
            ? this.progress.show(this.share(), `${plain(label)}${this.runs()}, ${counted(attempts)} attempts`)
            : Effect.void
        }),
        Effect.sync(() => {
          this.going.delete(one)
          this.done++
        })
      )
    })
  }
}

const refused = ({ label, scenario }: Plan) =>
  Effect.mapError(({ message }: Simulator.SimulationStalled) => refusal(`${scenario.name} (${label}): ${message}`))

/** Runs a plan with its seed in this thread. Interrupted, it passes the result so far. */
const first = Effect.fnUntraced(function*<E, R>(
  plan: Plan,
  shown: Shown,
  interrupted: (partial: Simulator.SimulationResult) => Effect.Effect<void, E, R>
) {
  const { here } = yield* Executor
  const simulation = yield* Simulator.make(plan.scenario)
  return yield* shown.during(plan.label, (onProgress) => here(simulation, { onProgress })).pipe(
    refused(plan),
    Effect.ensuring(shown.progress.clear),
    Effect.onInterrupt(() => Effect.flatMap(simulation.result, interrupted))
  )
})

/** Runs all plans with more seeds, up to this many rows. */
const more = Effect.fnUntraced(function*(plans: ReadonlyArray<Plan>, rows: Rows, until: number, shown: Shown) {
  const { concurrency, run } = yield* Executor
  const jobs = Array.from({ length: until - rows.length }, () => rows.push([]) - 1).flatMap((row) =>
    plans.map((plan, place) => ({ plan, row, place }))
  )
  yield* inOrder(
    jobs,
    ({ place, plan, row }) =>
      shown.during(plan.label, (onProgress) => run(seedsOf(plan.scenario, row + 2)[row + 1]!, { onProgress }))
        .pipe(
          refused(plan),
          Effect.tap((result) => Effect.sync(() => void (rows[row]![place] = result)))
        ),
    concurrency
  ).pipe(Effect.ensuring(shown.progress.clear))
})

/**
 * Runs one plan after the other with their seed, and all of them with the seeds after it: in other threads meanwhile, or in this
 * one afterwards. Passes the results to `finish`. Interrupted, it passes the results so far: of the first seed also the run in
 * progress, partial.
 */
export const runAll = Effect.fnUntraced(function*<E, R>(
  plans: readonly [Plan, ...Array<Plan>],
  asked: Option.Option<number>,
  finish: (runs: Runs, isWhole: boolean, rest: Progress) => Effect.Effect<void, E, R>,
  whole?: Progress
) {
  const { concurrency } = yield* Executor
  const all = whole ?? (yield* progress)
  const rest = part(all, shareOfRuns, 1)
  // As many as there may be: what turns out not to be needed is a step forward.
  const shown = new Shown(part(all, 0, shareOfRuns), plans.length * Option.getOrElse(asked, () => usualRuns))
  const rows: Rows = []
  const begin = Effect.fnUntraced(function*(plan: Plan, before: ReadonlyArray<Run>) {
    const withResult = (result: Simulator.SimulationResult): Runs => {
      const run: Run = { label: plan.label, result, results: [result] }
      const [first, ...rest] = [...before, run]
      return first === undefined ? [run] : [first, ...rest]
    }
    return withResult(yield* first(plan, shown, (partial) => finish(withResult(partial), false, rest)))
  })
  const least = Option.getOrElse(asked, () => leastRuns)
  const early = concurrency > 1 && least > 1
    ? yield* Effect.forkScoped(more(plans, rows, least - 1, shown))
    : undefined
  const [one, ...others] = plans
  let runs = yield* begin(one, [])
  for (const plan of others) runs = yield* begin(plan, runs)
  const count = Option.getOrElse(asked, () => affordable(runs))
  shown.of = plans.length * count
  const further = Effect.gen(function*() {
    if (early !== undefined) yield* Fiber.join(early)
    if (rows.length + 1 < count) yield* more(plans, rows, count - 1, shown)
  })
  yield* Effect.onExit(
    further,
    (exit) =>
      Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? finish(added(runs, rows), false, rest) : Effect.void
  )
  yield* finish(added(runs, rows), true, rest)
}, Effect.scoped)
