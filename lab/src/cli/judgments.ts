import type { Judgment, SimulationResult } from "../Simulator.ts"
import { counted, percent } from "./charts/format.ts"
import { spread } from "./outcome.ts"
import { duration } from "./text.ts"

/** The judgments of a scenario's expectations. */
export interface Checked {
  /** The scenario as given: a file, or a name. */
  readonly source: string
  readonly name: string
  readonly seeds: readonly [first: number, last: number]
  readonly judgments: ReadonlyArray<Judgment>
  readonly warnings: ReadonlyArray<string>
}

/** Consecutive seeds of runs. */
export const seedsOf = (results: ReadonlyArray<SimulationResult>): readonly [first: number, last: number] => [
  results[0]!.scenario.seed,
  results.at(-1)!.scenario.seed
]

/** How many runs, with which seeds. */
export const runsText = ([first, last]: readonly [first: number, last: number]): string =>
  first === last ? `1 run, seed ${first}` : `${last - first + 1} runs, seeds ${first} to ${last}`

type Write = (value: number) => string

const writes: { readonly [Name in Judgment["name"]]: Write } = {
  succeed: percent,
  sendsPerCall: (value) => `${Number(value.toFixed(3))}`,
  p99: duration,
  recoveredWithin: duration,
  recoversInRuns: (value) => counted(value)
}

/** `succeed >= 99 %`. */
export const expectationText = ({ bound, comparison, name, runs }: Judgment): string =>
  `${name} ${comparison} ${writes[name](bound)}${name === "recoversInRuns" ? ` of ${counted(runs)}` : ""}`

/** `97.4 % (96.8 % to 98 %)`. */
export const foundText = ({ found, name, runs, spread: range }: Judgment): string => {
  if (name === "recoversInRuns") return `${counted(found ?? 0)} of ${counted(runs)}`
  if (found === null) return name === "recoveredWithin" ? "too few runs recover" : "no call succeeded"
  return range === undefined ? writes[name](found) : spread(range, writes[name])
}

/** How many of all expectations have failed. */
export const failedOf = (all: ReadonlyArray<Checked>): { readonly failed: number; readonly of: number } => {
  const judgments = all.flatMap(({ judgments }) => judgments)
  return { failed: judgments.filter(({ holds }) => !holds).length, of: judgments.length }
}

/** `2 of 5 expectations failed`. */
export const failedText = ({ failed, of }: ReturnType<typeof failedOf>): string =>
  failed === 0
    ? `${counted(of)} of ${counted(of)} expectations hold`
    : `${counted(failed)} of ${counted(of)} expectations failed`
