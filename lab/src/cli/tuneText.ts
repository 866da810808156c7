import { aligned } from "../explain/table.ts"
import { codeOf } from "../policyCode.ts"
import type { Scenario, Sensitivity, TunedPolicy, Tuning } from "../Simulator.ts"
import { counted, percent } from "./charts/format.ts"
import { duration, plain } from "./text.ts"

const points = (value: number): string => {
  const text = (value * 100).toFixed(1)
  return Number(text) === 0 ? "0.0" : `${value > 0 ? "+" : ""}${text}`
}

const row = (chosen: TunedPolicy) => (one: TunedPolicy): ReadonlyArray<string> => [
  plain(one.label),
  `${(one.behind * 100).toFixed(1)}`,
  percent(one.worst.succeeded),
  one.worst.sendsPerCall.toFixed(2),
  duration(one.worst.p99Millis),
  percent(one.worst.recovered),
  one === chosen ? "<- chosen" : ""
]

const halfWidth = 16

/** Bars on both sides of the chosen policy's result. */
const tornado = (base: number, sensitivity: ReadonlyArray<Sensitivity>): ReadonlyArray<string> => {
  const changes = sensitivity.map(({ higher, lower, path }) => ({
    path,
    lower: lower.succeeded - base,
    higher: higher.succeeded - base
  }))
  const most = Math.max(1e-9, ...changes.flatMap(({ higher, lower }) => [Math.abs(lower), Math.abs(higher)]))
  const bar = ({ higher, lower }: (typeof changes)[number]): string => {
    const [down, up] = [Math.max(0, -Math.min(lower, higher)), Math.max(0, lower, higher)]
    const length = (size: number) => Math.round(size / most * halfWidth)
    return `${"#".repeat(length(down)).padStart(halfWidth)}|${"#".repeat(length(up))}`
  }
  const lines = aligned([
    ["parameter", "-10 %", "+10 %"],
    ...changes.map(({ higher, lower, path }) => [plain(path), points(lower), points(higher)])
  ])
  return lines.map((line, n) => n === 0 ? line : `${line}  ${bar(changes[n - 1]!)}`.trimEnd())
}

/** How many policies are not in the table, if any. */
const leftOut = (count: number): ReadonlyArray<string> =>
  count === 0 ? [] : [
    `${counted(count)} more ${count === 1 ? "is" : "are"} no better in behind, sends or p99: --json lists ${
      count === 1 ? "it" : "them"
    } too`
  ]

/** Policies by their worst case, what the chosen one depends on, and its code, as plain text. */
export const tuneText = ({ name, seed }: Scenario, tuning: Tuning): string => {
  const { chosen, outages, policies, runs, sensitivity } = tuning
  const front = policies.filter((one) => one.isOnFront || one === chosen)
  const base = chosen.worst.succeeded
  return [
    `${plain(name)}: ${counted(policies.length)} ${policies.length === 1 ? "policy" : "policies"}, ${runs} ${
      runs === 1 ? "run" : "runs"
    } each, seeds ${seed} to ${seed + runs - 1}`,
    `outages: ${outages.map(plain).join(", ")}`,
    "",
    ...aligned([["policy", "behind", "succeed", "sends/call", "p99", "recovers", ""], ...front.map(row(chosen))])
      .map((line) => line.trimEnd()),
    "",
    "behind: the most points of success behind the best policy of an outage; other columns: the worst over all outages",
    ...leftOut(policies.length - front.length),
    "",
    `${plain(chosen.label)}, ${plain(chosen.worstOutage)}: ${
      percent(base)
    } succeed; change in points when one parameter changes`,
    ...tornado(base, sensitivity),
    "",
    codeOf(chosen.policy).trimEnd()
  ].join("\n")
}
