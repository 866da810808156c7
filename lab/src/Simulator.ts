/**
 * What policies do to services, and services to policies: a simulator that runs the library's own code.
 *
 * A scenario is fleets of clients and the services they call: a rate of calls, a policy, processes with quotas of their
 * own; a capacity, a queue, time-outs, outages, layers. {@link run} has the library's own policies, quotas and gates decide
 * about every call, in a virtual time that jumps from one event to the next, and answers with time series and totals.
 * Chance comes from the seed of the scenario: the same scenario gives the same run, to the last event.
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
import { Chance } from "./simulator/chance.ts"
import { judgeMost, type Verdict } from "./simulator/judge.ts"
import { mapOf, type MapOptions, type VerdictMap } from "./simulator/map.ts"
import { type PolicyName, policyNames } from "./simulator/policyNames.ts"
import { type Policy as PolicyModel, Policy as PolicySchema } from "./simulator/policySchema.ts"
import { fromSchema, InvalidScenario } from "./simulator/problem.ts"
import type { SimulationResult } from "./simulator/result.ts"
import { type Difference, differenceOf, runSeeds, type RunsOptions, type Summary, summaryOf } from "./simulator/runs.ts"
import {
  type Scenario as ScenarioModel,
  Scenario as ScenarioSchema,
  type ScenarioInput as ScenarioInputModel
} from "./simulator/scenario.ts"
import { Running, type RunOptions, type SimulationStalled } from "./simulator/simulation.ts"
import { recoversBelow as thresholdOf } from "./simulator/theory.ts"
import { VirtualTime } from "./simulator/time.ts"
import { inspect, problemOf } from "./simulator/validate.ts"

export type { FailureKind } from "./simulator/failure.ts"
export type { Verdict } from "./simulator/judge.ts"
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

/**
 * What is simulated, with all its defaults: what {@link decode} makes.
 *
 * @category models
 * @since 0.1.0
 */
export type Scenario = ScenarioModel

/**
 * A scenario as it is written, with no more than it has to say.
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
 * The policies that a scenario can name. `"none"`, `"naive"` (three attempts at once), `"backoff"` (100 milliseconds,
 * doubling) and `"jitter"` (the same with full jitter) need nothing. Those of AWS are the library's own, with the quota
 * and the limiter that their SDK has, one in each process; the oldest SDKs have none. `"grpc"`, `"finagle"`, `"envoy"`,
 * `"sre"` and `"tokenBucket"` are `"jitter"` within the retry budget of that system, with its published defaults.
 *
 * @category constructors
 * @since 0.1.0
 */
export const policies: ReadonlyArray<PolicyName> = policyNames

const strictly = { onExcessProperty: "error", errors: "all" } as const

const decodeScenario = Schema.decodeUnknownEffect(ScenarioSchema)
const decodeSettings = Schema.decodeUnknownEffect(PolicySchema)

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
        new InvalidScenario({ problems: [{ path: "", problem: `is no JSON: ${(error as Error).message}` }] })
    }),
    decode
  )

/**
 * Reads a policy: a name, or steps as `JSON.stringify(policy)` gives them, beside what each process has of its own.
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
 * The scenario with another policy in all its fleets. What services call each other with stays.
 *
 * @category combinators
 * @since 0.1.0
 */
export const withPolicy = (scenario: Scenario, policy: Policy): Scenario => {
  const [first, ...others] = scenario.fleets
  return { ...scenario, fleets: [{ ...first, policy }, ...others.map((fleet) => ({ ...fleet, policy }))] }
}

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
  /** Runs to the end. Interrupted, it stops where it is; run again, it goes on from there as if nothing had been. */
  readonly run: (options?: RunOptions) => Effect.Effect<SimulationResult, SimulationStalled>
  /** What has been seen so far: `partial` unless the run has come to its end. */
  readonly result: Effect.Effect<SimulationResult>
}

/**
 * Makes a simulation, for those who want to stop it and keep what it has shown.
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
 * Runs a scenario to its end. It ends when all calls have, at the latest with `duration` and `drain`.
 *
 * **Example** (An outage, and who recovers)
 *
 * ```ts
 * const program = Effect.gen(function*() {
 *   const scenario = yield* Simulator.decodeJson(json)
 *   const { services } = yield* Simulator.run(Simulator.withPolicy(scenario, "awsStandard"))
 *   return services[0]?.totals.received
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
 * Runs a scenario several times, each with a seed of its own: that of the scenario, and those after it. One run is one draw
 * of chance; what can be relied on is what {@link summarize} says of many. Policies that are run with the same number are
 * paired: see {@link difference}.
 *
 * **Example** (How often a service comes back)
 *
 * ```ts
 * const program = Effect.gen(function*() {
 *   const scenario = yield* Simulator.decodeJson(json)
 *   const { recovery } = Simulator.summarize(yield* Simulator.runs(scenario, { runs: 5 }))
 *   return `recovers in ${recovery.runs} of ${recovery.of}`
 * })
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const runs = (
  scenario: Scenario,
  options?: RunsOptions
): Effect.Effect<ReadonlyArray<SimulationResult>, SimulationStalled> =>
  runSeeds(scenario, options?.run ?? ((seeded) => run(seeded)), options ?? {})

/**
 * What several runs of a scenario come to: of each figure the mean, the median and the range from 5 to 95 percent of the
 * runs, and in how many of them the calls recovered.
 *
 * @category running
 * @since 0.1.0
 */
export const summarize: (results: ReadonlyArray<SimulationResult>) => Summary = summaryOf

/**
 * What a second policy changes against a first, seed by seed: as calls arrive alike in both, much of what chance does to
 * each cancels out, and a difference whose range does not hold 0 is one of the policies.
 *
 * @category running
 * @since 0.1.0
 */
export const difference: (
  first: ReadonlyArray<SimulationResult>,
  second: ReadonlyArray<SimulationResult>
) => Difference = differenceOf

/**
 * What becomes of the calls after the outage of a scenario, by what most of so many runs say (default 5), each with a seed
 * of its own. A run ends as soon as that can be said: from the pace at which what waits becomes less.
 *
 * @category running
 * @since 0.1.0
 */
export const verdict = (
  scenario: Scenario,
  options?: { readonly runs?: number | undefined }
): Effect.Effect<Verdict, SimulationStalled> => judgeMost(scenario, options?.runs ?? 5)

/**
 * What becomes of a scenario for each pair of two parameters: where it recovers, limps and collapses.
 *
 * **Example** (Load and length of the outage)
 *
 * ```ts
 * const program = Effect.gen(function*() {
 *   const scenario = yield* Simulator.decodeJson(json)
 *   const { rows } = yield* Simulator.map(scenario, {
 *     x: { path: "fleets.0.rate", values: [100, 200] },
 *     y: { path: "services.0.outages.0.length", values: [2000, 8000] },
 *     runs: 1
 *   })
 *   return rows
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
 * The calls per second below which a scenario recovers from an outage, however long, as theory has it: while a service
 * with a `capacity` is behind by more than the time-out all attempts fail, and it catches up only where the calls, sent as
 * often as the policy lets them then, are fewer than it bears. `undefined` where that is not told so simply: for more than
 * one fleet or service, bounded queues, limiters, Envoy's budget.
 *
 * @category running
 * @since 0.1.0
 */
export const recoversBelow: (scenario: Scenario) => number | undefined = thresholdOf

/**
 * An effect that waits for something that virtual time does not bring: everything sleeps for ever.
 *
 * @category errors
 * @since 0.1.0
 */
export class NothingHappens extends Data.TaggedError("NothingHappens")<{
  /** Where virtual time stands. */
  readonly atMillis: number
}> {
  override get message(): string {
    return `everything waits at ${this.atMillis} ms, and nothing in virtual time will wake it`
  }
}

const stepsPerTurn = 4096

/**
 * Runs an effect in a virtual time of its own, which begins at 0 and jumps over all waiting, and with chance from a seed.
 * The effect and what it forks must wait for nothing but time and each other: a promise or a socket is not waited for,
 * and the effect fails with `NothingHappens`.
 *
 * @category running
 * @since 0.1.0
 */
export const inVirtualTime = <A, E, R>(
  self: Effect.Effect<A, E, R>,
  options?: {
    /** What decides chance: a whole number. Default 1. */
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
