import * as Effect from "effect/Effect"
import { bounded } from "./bounds.ts"
import { Executor } from "./executor.ts"
import { familyOf, type Member } from "./family.ts"
import { inOrder } from "./inOrder.ts"
import { judgmentsOf } from "./judgment.ts"
import { resolve } from "./policy.ts"
import type { Policy } from "./policySchema.ts"
import { InvalidScenario } from "./problem.ts"
import type { SimulationResult } from "./result.ts"
import type { Runner } from "./runner.ts"
import { summaryOf } from "./runs.ts"
import type { Scenario } from "./scenario.ts"
import { type Parameter, parametersOf } from "./sensitivity.ts"
import type { SimulationStalled } from "./simulation.ts"
import { withPolicy } from "./withPolicy.ts"

/**
 * The results of a policy: means of the runs.
 *
 * @category models
 * @since 0.1.0
 */
export interface TuningFigures {
  /** The share of the calls that succeed, from 0 to 1. */
  readonly succeeded: number
  /** Attempts per call. */
  readonly sendsPerCall: number
  /** How long 99 of 100 calls that succeed take, of the busiest fleet; `null` where none does. */
  readonly p99Millis: number | null
  /** The share of the runs that recover, from 0 to 1. */
  readonly recovered: number
  /** Whether the expectations of the scenario hold; true where it has none. */
  readonly holds: boolean
}

/**
 * A policy that was tried.
 *
 * @category models
 * @since 0.1.0
 */
export interface TunedPolicy {
  readonly label: string
  readonly policy: Policy
  /** The worst of each figure over all outages. */
  readonly worst: TuningFigures
  /** The outage in which the fewest calls succeed. */
  readonly worstOutage: string
  /** How far it is behind the most successful policy of any outage: a share of the calls, from 0 to 1. */
  readonly behind: number
  /** The figures of each outage, in the order of `outages`. */
  readonly figures: ReadonlyArray<TuningFigures>
  /**
   * Whether no other is better in one of three and no worse in the others: how far it is behind, and the load and the latency
   * of its worst case. Of those that are alike, the one with the least load.
   */
  readonly isOnFront: boolean
}

/**
 * The chosen policy in its worst outage when one parameter is a tenth lower, and a tenth higher.
 *
 * @category models
 * @since 0.1.0
 */
export interface Sensitivity {
  readonly path: string
  readonly lower: TuningFigures
  readonly higher: TuningFigures
}

/**
 * Policies for a scenario, by their results in outages like its own.
 *
 * @category models
 * @since 0.1.0
 */
export interface Tuning {
  readonly runs: number
  /** The names of the outages. */
  readonly outages: ReadonlyArray<string>
  /** Every policy that was tried: those on the front first, by how far they are behind. */
  readonly policies: ReadonlyArray<TunedPolicy>
  readonly chosen: TunedPolicy
  /** The parameters of the scenario and the policy, those that change success the most first. */
  readonly sensitivity: ReadonlyArray<Sensitivity>
}

/** The options of tuning. */
export interface TuneOptions {
  /** The policies to choose from. Default: full jitter with three bases, two to four attempts, three costs of a retry, and none. */
  readonly policies?: ReadonlyArray<Policy> | undefined
  /** The scenarios to do well in. Default: outages like those of the scenario, shorter, longer, and of other kinds. */
  readonly others?: ReadonlyArray<Scenario> | undefined
  /** Runs of each policy in each outage, with the same seeds. Default 5. */
  readonly runs?: number | undefined
  /** Called after each policy in each outage, and after each change of a parameter. */
  readonly onProgress?: ((done: number, of: number, label: string) => Effect.Effect<void>) | undefined
}

/** Full jitter up to 20 seconds; a quota of 500 tokens where a retry costs any. */
const jittered = (base: number, attempts: number, cost: number): unknown => ({
  label: `${base} ms, ${attempts} attempts, ${cost === 0 ? "no quota" : `cost ${cost}`}`,
  steps: [
    { exponential: { base: `${base} millis`, cap: "20 seconds", jitter: "full" } },
    { maxAttempts: attempts },
    "whileRetryable",
    ...cost === 0 ? [] : [{ quotaGated: { cost } }]
  ]
})

/** The policies tried by default. */
const usualPolicies: ReadonlyArray<unknown> = [
  "none",
  ...[25, 100, 500].flatMap((base) =>
    [2, 3, 4].flatMap((attempts) => [0, 5, 14].map((cost) => jittered(base, attempts, cost)))
  )
]

const figuresOf = (results: ReadonlyArray<SimulationResult>): TuningFigures => {
  const { p99Millis, recovery, sendsPerCall, succeeded } = summaryOf(results)
  return {
    succeeded: succeeded?.mean ?? 0,
    sendsPerCall: sendsPerCall?.mean ?? 0,
    p99Millis: p99Millis?.mean ?? null,
    recovered: recovery.runs / recovery.of,
    holds: judgmentsOf(results).every(({ holds }) => holds)
  }
}

const worstOf = (figures: ReadonlyArray<TuningFigures>): TuningFigures => {
  const latencies = figures.map(({ p99Millis }) => p99Millis)
  return {
    succeeded: Math.min(...figures.map(({ succeeded }) => succeeded)),
    sendsPerCall: Math.max(...figures.map(({ sendsPerCall }) => sendsPerCall)),
    p99Millis: latencies.includes(null) ? null : Math.max(...latencies.map((millis) => millis ?? 0)),
    recovered: Math.min(...figures.map(({ recovered }) => recovered)),
    holds: figures.every(({ holds }) => holds)
  }
}

type Tried = Omit<TunedPolicy, "isOnFront">

/** The figures compared: differences within random variation count as none. */
const compared = ({ behind, worst: { p99Millis, sendsPerCall } }: Tried): readonly [number, number, number] => [
  Number(behind.toFixed(3)),
  Number(sendsPerCall.toFixed(2)),
  p99Millis === null ? Infinity : Number(p99Millis.toPrecision(2))
]

/** Whether a policy is better in one of the three and no worse in the others; or alike, and comes before. */
const dominates = (a: Tried, b: Tried): boolean => {
  const [left, right] = [compared(a), compared(b)]
  return left.every((value, n) => value <= right[n]!) &&
    (left.some((value, n) => value < right[n]!) || a.worst.sendsPerCall < b.worst.sendsPerCall)
}

/** Success that differs by less does not decide. */
const halfAPoint = 0.005

/**
 * The policy to take: of those for which the expectations hold, if there are any, those that recover the most; of these those
 * within half a point of being least behind; of these the one with the least load, then the least latency.
 */
const choiceOf = (policies: ReadonlyArray<TunedPolicy>): TunedPolicy => {
  const least = (of: ReadonlyArray<TunedPolicy>, figure: (one: TunedPolicy) => number, within = 0) => {
    const lowest = Math.min(...of.map(figure))
    return of.filter((one) => figure(one) <= lowest + within)
  }
  const good = least(least(policies, ({ worst }) => -Number(worst.holds)), ({ worst }) => -worst.recovered)
  const near = least(good, ({ behind }) => behind, halfAPoint)
  const light = least(near, ({ worst }) => worst.sendsPerCall)
  return least(light, ({ worst }) => worst.p99Millis ?? Infinity)[0]!
}

const tenth = 0.1

const swingOf = ({ higher, lower }: Sensitivity): number => Math.abs(higher.succeeded - lower.succeeded)

const byFront = (a: TunedPolicy, b: TunedPolicy): number =>
  Number(b.isOnFront) - Number(a.isOnFront) || a.behind - b.behind || a.worst.sendsPerCall - b.worst.sendsPerCall

const membersOf = (scenario: Scenario, others: TuneOptions["others"]): ReadonlyArray<Member> =>
  others === undefined || others.length === 0
    ? familyOf(scenario)
    : [scenario, ...others].map((one) => ({ name: one.name, scenario: one }))

/** The results of policies, from their figures in each outage. */
const triedOf = (
  policies: ReadonlyArray<Policy>,
  members: ReadonlyArray<Member>,
  figures: ReadonlyArray<ReadonlyArray<TuningFigures>>
): ReadonlyArray<TunedPolicy> => {
  const most = members.map((_, outage) => Math.max(...figures.map((of) => of[outage]!.succeeded)))
  const tried = policies.map((policy, n): Tried => {
    const own = figures[n]!
    const worst = worstOf(own)
    return {
      label: resolve(policy).label,
      policy,
      figures: own,
      worst,
      worstOutage: members[own.findIndex(({ succeeded }) => succeeded === worst.succeeded)]!.name,
      behind: Math.max(...own.map(({ succeeded }, outage) => most[outage]! - succeeded))
    }
  })
  return tried
    .map((one) => ({ ...one, isOnFront: !tried.some((other) => dominates(other, one)) }))
    .sort(byFront)
}

type Figures = Effect.Effect<TuningFigures, SimulationStalled>

type Counter = (of: number, label: string) => Effect.Effect<void>

/** What the chosen policy depends on in its worst outage. */
const sensitivityOf = Effect.fnUntraced(function*(
  scenario: Scenario,
  policy: Policy,
  runner: { readonly decode: Runner["decode"]; readonly figures: (scenario: Scenario) => Figures },
  count: Counter
) {
  const { concurrency } = yield* Executor
  const parameters = parametersOf(withPolicy(scenario, policy), policy)
  const swing = Effect.fnUntraced(function*({ path, times }: Parameter) {
    const of = (factor: number) => Effect.flatMap(runner.decode(times(factor)), runner.figures)
    const [lower, higher] = yield* inOrder([1 - tenth, 1 + tenth], of, concurrency)
    const found: Sensitivity = { path, lower: lower!, higher: higher! }
    yield* count(parameters.length, path)
    return found
  })
  const found = yield* inOrder(parameters, swing, concurrency)
  return found.sort((a, b) => swingOf(b) - swingOf(a))
})

/** The policies tried by default. */
const usual = (scenario: Scenario, { decode }: Runner) =>
  Effect.map(
    decode({
      ...scenario,
      fleets: usualPolicies.map((policy, n) => ({ ...scenario.fleets[0], name: `${n}`, processes: 1, policy }))
    }),
    ({ fleets }) => fleets.map(({ policy }) => policy)
  )

const counting = (onProgress: TuneOptions["onProgress"]): Counter => {
  let done = 0
  return (of, label) => onProgress === undefined ? Effect.void : onProgress(++done, of, label)
}

/** Runs every policy in every outage, chooses one, and changes what it depends on. */
export const tuneOf = Effect.fnUntraced(function*(scenario: Scenario, options: TuneOptions, runner: Runner) {
  const { onProgress, others, runs = 5 } = options
  const members = membersOf(scenario, others)
  if (members.length === 0) {
    return yield* new InvalidScenario({
      problems: [{ path: "services", problem: "have no outage to tune for: add \"outages\" to one" }]
    })
  }
  yield* bounded(members.map(({ scenario }) => scenario))
  const policies = options.policies ?? (yield* usual(scenario, runner))
  const count = counting(onProgress)
  const figuresFor = (one: Scenario) => Effect.map(runner.run(one, runs), figuresOf)
  const { concurrency } = yield* Executor
  const pairs = policies.flatMap((policy) => members.map((member) => ({ policy, member })))
  const found = yield* inOrder(pairs, ({ member, policy }) =>
    Effect.tap(
      figuresFor(withPolicy(member.scenario, policy)),
      () => count(pairs.length, resolve(policy).label)
    ), concurrency)
  const figures = policies.map((_, n) => found.slice(n * members.length, (n + 1) * members.length))
  const tried = triedOf(policies, members, figures)
  const chosen = choiceOf(tried)
  const worst = members.find(({ name }) => name === chosen.worstOutage)!.scenario
  const tuning: Tuning = {
    runs,
    outages: members.map(({ name }) => name),
    policies: tried,
    chosen,
    sensitivity: yield* sensitivityOf(
      worst,
      chosen.policy,
      { decode: runner.decode, figures: figuresFor },
      counting(onProgress)
    )
  }
  return tuning
})
