/**
 * A simulator of clients and services under load and in outages, which runs the library's own code.
 *
 * A scenario is fleets of clients and the services they call: a rate of calls, a policy, processes with quotas of their
 * own; a capacity, a queue, timeouts, outages, layers. {@link run} has the library's own policies, quotas and gates decide
 * about every call, in a virtual time that jumps from one event to the next, and returns time series and totals.
 * All randomness comes from the scenario's seed: the same scenario gives the same run, to the last event.
 *
 * The time is that of Effect's `Clock`. Any effect that waits for nothing but time can run in it, see
 * {@link inVirtualTime}.
 *
 * @since 0.1.0
 */

import { toJsonSchema } from "effect-retry/RetryPolicySchema"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as Scheduler from "effect/Scheduler"
import * as Schema from "effect/Schema"
import { type Backtest, backtestOf, withArrivals } from "./simulator/backtest.ts"
import { Chance } from "./simulator/chance.ts"
import { type Edge, edgeOf } from "./simulator/edge.ts"
import { type Verdict, verdictOf } from "./simulator/judge.ts"
import { type Judgment, judgmentsOf } from "./simulator/judgment.ts"
import { mapOf, type MapOptions, type VerdictMap } from "./simulator/map.ts"
import {
  type Measured as MeasuredModel,
  Measured as MeasuredSchema,
  type MeasuredInput as MeasuredInputModel
} from "./simulator/measured.ts"
import { type PolicyName, policyNames } from "./simulator/policyNames.ts"
import { type Policy as PolicyModel, Policy as PolicySchema } from "./simulator/policySchema.ts"
import { fromSchema, InvalidScenario, type Problem } from "./simulator/problem.ts"
import type { SimulationResult } from "./simulator/result.ts"
import type { Runner } from "./simulator/runner.ts"
import { type Difference, differenceOf, runSeeds, type RunsOptions, type Summary, summaryOf } from "./simulator/runs.ts"
import {
  type Scenario as ScenarioModel,
  Scenario as ScenarioSchema,
  type ScenarioInput as ScenarioInputModel
} from "./simulator/scenario.ts"
import { Running, type RunOptions, type SimulationStalled } from "./simulator/simulation.ts"
import { type Sweep, sweepOf, type SweepOptions } from "./simulator/sweep.ts"
import { recoversBelow as thresholdOf } from "./simulator/theory.ts"
import { VirtualTime } from "./simulator/time.ts"
import { tuneOf, type TuneOptions, type Tuning } from "./simulator/tune.ts"
import { millis } from "./simulator/units.ts"
import { inspect, problemOf } from "./simulator/validate.ts"
import { warningsOf } from "./simulator/warnings.ts"
import { withPolicy as withPolicyIn } from "./simulator/withPolicy.ts"

export type { Backtest, Compared, ComparedBucket } from "./simulator/backtest.ts"
export type { Edge } from "./simulator/edge.ts"
export type { FailureKind } from "./simulator/failure.ts"
export type { Verdict } from "./simulator/judge.ts"
export type { Judgment } from "./simulator/judgment.ts"
export type { Axis, MapOptions, VerdictMap } from "./simulator/map.ts"
export type { PolicyName } from "./simulator/policyNames.ts"
export { InvalidScenario } from "./simulator/problem.ts"
export type { Problem } from "./simulator/problem.ts"
export type {
  ClientBucket,
  ClientCounts,
  ClientResult,
  Gauges,
  Latency,
  ServiceBucket,
  ServiceCounts,
  ServiceResult,
  SimulationResult,
  Tally
} from "./simulator/result.ts"
export type { Difference, Recoveries, RunsOptions, Summary } from "./simulator/runs.ts"
export { type Progress, type RunOptions, SimulationStalled } from "./simulator/simulation.ts"
export type { Spread } from "./simulator/spread.ts"
export type { Sweep, SweepOptions, SweepPoint } from "./simulator/sweep.ts"
export type { Sensitivity, TunedPolicy, TuneOptions, Tuning, TuningFigures } from "./simulator/tune.ts"

/**
 * What is simulated, with all its defaults: what {@link decode} makes.
 *
 * @category models
 * @since 0.1.0
 */
export type Scenario = ScenarioModel

/**
 * A scenario as written, without its defaults.
 *
 * @category models
 * @since 0.1.0
 */
export type ScenarioInput = ScenarioInputModel

/**
 * A policy by name or by its steps.
 *
 * @category models
 * @since 0.1.0
 */
export type Policy = PolicyModel

/**
 * What was measured: what clients did, bucket by bucket, from time 0 of a scenario on.
 *
 * @category models
 * @since 0.1.0
 */
export type Measured = MeasuredModel

/**
 * A measured series as written.
 *
 * @category models
 * @since 0.1.0
 */
export type MeasuredInput = MeasuredInputModel

/**
 * The policies that a scenario can name. `"none"`, `"naive"` (two immediate retries), `"backoff"` (100 milliseconds,
 * doubling) and `"jitter"` (the same with full jitter) need nothing. Those of AWS are the library's own, with the quota
 * and the limiter that their SDK has, one in each process; `"awsJavaScriptV2"` and `"awsGeneralReference"` have none.
 * `"grpc"`, `"finagle"`, `"envoy"`, `"sre"` and `"tokenBucket"` are `"jitter"` within the retry budget of that system,
 * with its published defaults.
 *
 * @category constructors
 * @since 0.1.0
 */
export const policies: ReadonlyArray<PolicyName> = policyNames

const strictly = { onExcessProperty: "error", errors: "all" } as const

const decodeScenario = Schema.decodeUnknownEffect(ScenarioSchema)
const decodeSettings = Schema.decodeUnknownEffect(PolicySchema)
const decodeSeries = Schema.decodeUnknownEffect(MeasuredSchema)

/**
 * Reads a scenario, and fills in its defaults. Fails with everything that is wrong with it, each with its path: unknown
 * keys, wrong values, and what does not go together.
 *
 * @category decoding
 * @since 0.1.0
 */
export const decode: (input: unknown) => Effect.Effect<Scenario, InvalidScenario> = Effect.fnUntraced(
  function*(input) {
    const scenario = yield* Effect.mapError(decodeScenario(input, strictly), (error) => fromSchema(error, input))
    const problems = inspect(scenario)
    return problems.length === 0 ? scenario : yield* new InvalidScenario({ problems })
  }
)

/**
 * Reads a scenario from the text of a file; see {@link decode}.
 *
 * @category decoding
 * @since 0.1.0
 */
export const decodeJson = (json: string): Effect.Effect<Scenario, InvalidScenario> =>
  Effect.flatMap(
    Effect.try({
      try: (): unknown => JSON.parse(json),
      catch: (error) =>
        new InvalidScenario({ problems: [{ path: "", problem: `is not valid JSON: ${(error as Error).message}` }] })
    }),
    decode
  )

/**
 * Reads a policy: a name, or steps as `JSON.stringify(policy)` gives them, next to what each process has of its own.
 *
 * @category decoding
 * @since 0.1.0
 */
export const decodePolicy: (input: unknown) => Effect.Effect<Policy, InvalidScenario> = Effect.fnUntraced(
  function*(input) {
    const policy = yield* Effect.mapError(decodeSettings(input, strictly), (error) => fromSchema(error, input))
    const problem = problemOf(policy)
    if (problem === undefined) return policy
    return yield* new InvalidScenario({ problems: [problem] })
  }
)

/**
 * Reads a measured series. Fails with everything that is wrong with it, each with its path.
 *
 * @category decoding
 * @since 0.1.0
 */
export const decodeMeasured: (input: unknown) => Effect.Effect<Measured, InvalidScenario> = Effect.fnUntraced(
  function*(input) {
    const measured = yield* Effect.mapError(decodeSeries(input, strictly), (error) => fromSchema(error, input))
    if (millis(measured.bucket) > 0) return measured
    return yield* new InvalidScenario({ problems: [{ path: "bucket", problem: "must be above 0" }] })
  }
)

/**
 * The scenario with another policy in all its fleets. The policies between services stay the same.
 *
 * @category combinators
 * @since 0.1.0
 */
export const withPolicy: (scenario: Scenario, policy: Policy) => Scenario = withPolicyIn

/**
 * The JSON Schema of scenarios, draft 2020-12, for editors. The package has it as a file.
 *
 * @category decoding
 * @since 0.1.0
 */
export const jsonSchema = (): unknown => toJsonSchema(ScenarioSchema)

/**
 * A scenario that runs, or has run.
 *
 * @category models
 * @since 0.1.0
 */
export interface Simulation {
  /** Runs to the end. Interrupted, it stops where it is; run again, it continues from there as if never interrupted. */
  readonly run: (options?: RunOptions) => Effect.Effect<SimulationResult, SimulationStalled>
  /** The result so far: `partial` unless the run has ended. */
  readonly result: Effect.Effect<SimulationResult>
}

/**
 * Makes a simulation that can be stopped early without losing its result so far.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (scenario: Scenario): Effect.Effect<Simulation> =>
  Effect.sync(() => {
    const running = new Running(scenario)
    return {
      run: (options) => running.run(options ?? {}),
      result: Effect.sync(() => running.result)
    }
  })

/**
 * Runs a scenario to its end. It ends when all calls have ended, or after `duration` plus `drain`.
 *
 * **Example** (An outage, and who recovers)
 *
 * ```ts
 * const program = Effect.gen(function*() {
 *  const scenario = yield* Simulator.decodeJson(json)
 *  const { services } = yield* Simulator.run(Simulator.withPolicy(scenario, "awsStandard"))
 *  return services[0]?.totals.received
 * })
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const run = (
  scenario: Scenario,
  options?: RunOptions
): Effect.Effect<SimulationResult, SimulationStalled> =>
  Effect.flatMap(make(scenario), (simulation) => simulation.run(options))

/**
 * Runs a scenario several times, each with its own seed: that of the scenario, and those after it. One run is one random
 * sample; rely on what {@link summarize} says of many. Policies that are run with the same number of runs are paired:
 * see {@link difference}.
 *
 * **Example** (How often a service comes back)
 *
 * ```ts
 * const program = Effect.gen(function*() {
 *  const scenario = yield* Simulator.decodeJson(json)
 *  const { recovery } = Simulator.summarize(yield* Simulator.runs(scenario, { runs: 5 }))
 *  return `recovers in ${recovery.runs} of ${recovery.of}`
 * })
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const runs = (
  scenario: Scenario,
  options?: RunsOptions
): Effect.Effect<ReadonlyArray<SimulationResult>, SimulationStalled> => runSeeds(scenario, options ?? {})

const runner: Runner = { decode, run: (changed, count) => runs(changed, { runs: count }) }

/**
 * Summarizes several runs of a scenario: the mean, median and 5 to 95 percent range of each figure, and in how many
 * runs the calls recovered.
 *
 * @category running
 * @since 0.1.0
 */
export const summarize: (results: ReadonlyArray<SimulationResult>) => Summary = summaryOf

/**
 * How a second policy differs from a first, seed by seed. Calls arrive alike in both, so most of the random variation
 * cancels out: a difference whose range excludes 0 comes from the policies.
 *
 * @category running
 * @since 0.1.0
 */
export const difference: (
  first: ReadonlyArray<SimulationResult>,
  second: ReadonlyArray<SimulationResult>
) => Difference = differenceOf

/**
 * Checks runs of a scenario against its `expect`: one judgment for each expectation, none if it has none.
 *
 * **Details**
 *
 * - `succeed`, `sendsPerCall` and `p99` bound the mean of the runs. A bare value is the least share that succeeds, and the
 *  most of the others; `"< 1.2"` says otherwise.
 * - `recoversInRuns` is the least number of runs that recover: `"18 of 20"`, or the same share of another number.
 * - `recoveredWithin` bounds how long after the last outage that many runs have recovered: all, without `recoversInRuns`.
 *
 * **Example** (In a test)
 *
 * ```ts
 * const program = Effect.gen(function*() {
 *  const scenario = yield* Simulator.decode({ ...JSON.parse(json), expect: { sendsPerCall: "<= 1.2" } })
 *  const judgments = Simulator.judge(yield* Simulator.runs(scenario, { runs: 5 }))
 *  return judgments.every(({ holds }) => holds)
 * })
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const judge: (results: ReadonlyArray<SimulationResult>) => ReadonlyArray<Judgment> = judgmentsOf

/**
 * What is allowed in a scenario, and probably not meant: an outage outside of the run, or one after which there is no time
 * to recover; a latency that is longer than the timeout. Of results, also that only some of the runs recover.
 *
 * @category running
 * @since 0.1.0
 */
export const warnings = (
  scenario: Scenario,
  results?: ReadonlyArray<SimulationResult>
): ReadonlyArray<Problem> => warningsOf(scenario, results ?? [])

/**
 * What becomes of the calls after the outage of a scenario, by the majority of `runs` (default 5), each with its own seed and
 * to its end. `"limps"` is about the run: a longer one may recover.
 *
 * @category running
 * @since 0.1.0
 */
export const verdict = (
  scenario: Scenario,
  options?: { readonly runs?: number | undefined }
): Effect.Effect<Verdict, SimulationStalled> => verdictOf(scenario, options?.runs ?? 5)

/**
 * What becomes of the calls if the services can handle a tenth less, or a tenth more, than the scenario says: `undefined`
 * without an outage, or without a known capacity. Where the three differ, the scenario is on an edge: a measured capacity
 * is rarely that exact.
 *
 * @category running
 * @since 0.1.0
 */
export const edge = (
  scenario: Scenario,
  options?: { readonly runs?: number | undefined }
): Effect.Effect<Edge | undefined, SimulationStalled> => edgeOf(scenario, options?.runs ?? 5)

/**
 * Compares a measured series with a scenario's prediction. The scenario is run with the calls of its first fleet as they
 * were counted, in every bucket: only their outcome is predicted. Time 0 of both must be the same.
 *
 * **Example** (How far off a scenario is)
 *
 * ```ts
 * const program = Effect.gen(function*() {
 *  const scenario = yield* Simulator.decodeJson(json)
 *  const measured = yield* Simulator.decodeMeasured({
 *    series: [{ calls: 300, attempts: 310, succeeded: 290, failed: 10 }]
 *  })
 *  const { succeeded } = yield* Simulator.backtest(scenario, measured, { runs: 5 })
 *  return `off by ${succeeded.error}`
 * })
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const backtest = (
  scenario: Scenario,
  measured: Measured,
  options?: RunsOptions
): Effect.Effect<Backtest, SimulationStalled> => {
  const counted = withArrivals(scenario, measured)
  return Effect.map(runs(counted, options), (results) => backtestOf(counted, measured, results))
}

/**
 * What becomes of a scenario for each pair of two parameters: where it recovers, limps and collapses.
 * Fails with `InvalidScenario` where nothing bounds a service.
 *
 * **Example** (Load and length of the outage)
 *
 * ```ts
 * const program = Effect.gen(function*() {
 *  const scenario = yield* Simulator.decodeJson(json)
 *  const { rows } = yield* Simulator.map(scenario, {
 *    x: { path: "fleets.0.rate", values: [100, 200] },
 *    y: { path: "services.0.outages.0.length", values: [2000, 8000] },
 *    runs: 1
 *  })
 *  return rows
 * })
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const map = (
  scenario: Scenario,
  options: MapOptions
): Effect.Effect<VerdictMap, InvalidScenario | SimulationStalled> => mapOf(scenario, decode, options)

/**
 * Looks for the smallest value of a parameter, or the largest, with which the expectations of a scenario hold: at both ends
 * of the range and between them, then by halves. The answer holds for the values tried: a change back and forth between
 * two of them goes unseen. If the expectations change more than once (`monotone` is false), it is one of several.
 *
 * **Example** (The smallest quota)
 *
 * ```ts
 * const program = Effect.gen(function*() {
 *  const scenario = yield* Simulator.decode({ ...JSON.parse(json), expect: { sendsPerCall: "<= 1.1" } })
 *  const { kind, value } = yield* Simulator.sweep(Simulator.withPolicy(scenario, "awsStandard"), {
 *    path: "fleets.0.policy.quota.capacity",
 *    from: 10,
 *    to: 1000,
 *    step: 330,
 *    runs: 1
 *  })
 *  return `${kind}: ${value}`
 * })
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const sweep = (
  scenario: Scenario,
  options: SweepOptions
): Effect.Effect<Sweep, InvalidScenario | SimulationStalled> => sweepOf(scenario, options, runner)

/**
 * Runs policies in a family of outages, and chooses one by its worst case: of those for which the expectations of the scenario
 * hold, if there are any, those that recover in the most runs; of these, those within half a point of the most success; of
 * these the one with the least load. Those on the front, which no other beats in success, load and latency together, are
 * the alternatives; `sensitivity` shows what the choice depends on. Fails with `InvalidScenario` without an outage, or a bound of
 * a service: then retries cost nothing.
 *
 * **Example** (A policy for a scenario)
 *
 * ```ts
 * const program = Effect.gen(function*() {
 *  const scenario = yield* Simulator.decodeJson(json)
 *  const { chosen } = yield* Simulator.tune(scenario, { policies: ["none", "jitter", "awsStandard"], runs: 1 })
 *  return chosen.label
 * })
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const tune = (
  scenario: Scenario,
  options?: TuneOptions
): Effect.Effect<Tuning, InvalidScenario | SimulationStalled> => tuneOf(scenario, options ?? {}, runner)

/**
 * The calls per second below which a scenario recovers from an outage, however long, in theory: while a service
 * with a `capacity` is behind by more than the timeout all attempts fail, and it catches up only if the calls, sent as
 * often as the policy then allows, are fewer than it can handle. `undefined` where theory has no simple answer: for more than
 * one fleet or service, bounded queues, limiters, Envoy's budget.
 *
 * @category running
 * @since 0.1.0
 */
export const recoversBelow: (scenario: Scenario) => number | undefined = thresholdOf

/**
 * An effect that waits for something outside virtual time, so it would never end.
 *
 * @category errors
 * @since 0.1.0
 */
export class NothingHappens extends Data.TaggedError("NothingHappens")<{
  /** The virtual time at which it stopped. */
  readonly atMillis: number
}> {
  override get message(): string {
    return `everything waits at ${this.atMillis} ms, and nothing in virtual time will wake it`
  }
}

const stepsPerTurn = 4096

/**
 * Runs an effect in its own virtual time, which begins at 0 and jumps over all waiting, with randomness from a seed.
 * The effect and what it forks must wait for nothing but time and each other: a promise or a socket is not waited for,
 * and the effect fails with `NothingHappens`.
 *
 * @category running
 * @since 0.1.0
 */
export const inVirtualTime = <A, E, R>(
  self: Effect.Effect<A, E, R>,
  options?: {
    /** The seed of all randomness: a whole number. Default 1. */
    readonly seed?: number | undefined
  }
): Effect.Effect<A, E | NothingHappens, R> =>
  Effect.contextWith((context: Context.Context<R>) => {
    const time = new VirtualTime()
    const inside = context.pipe(
      Context.add(Clock.Clock, time),
      Context.add(Scheduler.Scheduler, time.scheduler),
      Context.add(Random.Random, new Chance(options?.seed ?? 1, "virtual"))
    )
    return Effect.suspend(() => {
      const fiber = Effect.runForkWith(inside)(self)
      fiber.addObserver(() => {
        time.halted = true
      })
      const turn = (): Effect.Effect<A, E | NothingHappens> => {
        const idle = fiber.pollUnsafe() === undefined && time.pass(Infinity, stepsPerTurn) === "idle"
        const exit = fiber.pollUnsafe()
        if (exit !== undefined) return Exit.isSuccess(exit) ? Effect.succeed(exit.value) : Effect.failCause(exit.cause)
        return idle
          ? Effect.fail(new NothingHappens({ atMillis: time.nowMillis }))
          : Effect.flatMap(Effect.yieldNow, turn)
      }
      return Effect.onInterrupt(turn(), () =>
        Effect.sync(() => {
          fiber.interruptUnsafe()
          time.pass(time.nowMillis, stepsPerTurn)
        }))
    })
  })
