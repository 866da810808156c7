import { aligned, tableWithin, widthOf } from "../explain/layout.ts"
import type { Scenario, Sensitivity, TunedPolicy, Tuning } from "../Simulator.ts"
import { counted, percent } from "./charts/format.ts"
import { type Screen, unbounded } from "./screen.ts"
import { duration, plain } from "./text.ts"

const points = (value: number): string => {
  const text = (value * 100).toFixed(1)
  return Number(text) === 0 ? "0.0" : `${value > 0 ? "+" : ""}${text}`
}

const row = (one: TunedPolicy): readonly [string, ...Array<string>] => [
  plain(one.label),
  `${(one.behind * 100).toFixed(1)}`,
  percent(one.worst.succeeded),
  one.worst.sendsPerCall.toFixed(2),
  duration(one.worst.p99Millis),
  percent(one.worst.recovered)
]

/** The widest half of the bars. */
const most = 16

/** Bars on both sides of the chosen policy's result. */
const tornado = (
  base: number,
  sensitivity: ReadonlyArray<Sensitivity>,
  columns: number
): ReadonlyArray<string> => {
  const changes = sensitivity.map(({ higher, lower, path }) => ({
    path,
    lower: lower.succeeded - base,
    higher: higher.succeeded - base
  }))
  const greatest = Math.max(1e-9, ...changes.flatMap(({ higher, lower }) => [Math.abs(lower), Math.abs(higher)]))
  const lines = aligned([
    ["parameter", "-10 %", "+10 %"],
    ...changes.map(({ higher, lower, path }) => [plain(path), points(lower), points(higher)])
  ])
  const halfWidth = Math.min(most, Math.floor((columns - widthOf(lines[0]!) - 3) / 2))
  const bar = ({ higher, lower }: (typeof changes)[number]): string => {
    const [down, up] = [Math.max(0, -Math.min(lower, higher)), Math.max(0, lower, higher)]
    const length = (size: number) => Math.round(size / greatest * halfWidth)
    return `${"#".repeat(length(down)).padStart(halfWidth)}|${"#".repeat(length(up))}`
  }
  return lines.map((line, n) => n === 0 || halfWidth < 4 ? line : `${line}  ${bar(changes[n - 1]!)}`.trimEnd())
}

/** How many policies are not in the table, if any. */
const leftOut = (count: number): ReadonlyArray<string> =>
  count === 0 ? [] : [
    `${counted(count)} more ${count === 1 ? "is" : "are"} no better in behind, sends or p99: --json lists ${
      count === 1 ? "it" : "them"
    } too`
  ]

/** Policies by their worst case, and what the chosen one depends on, as plain text. */
export const tuneText = (
  { name, seed }: Scenario,
  tuning: Tuning,
  { columns, paint }: Screen = unbounded
): string => {
  const { chosen, outages, policies, runs, sensitivity } = tuning
  const front = policies.filter((one) => one.isOnFront || one === chosen)
  const base = chosen.worst.succeeded
  return [
    `${plain(name)}: ${counted(policies.length)} ${policies.length === 1 ? "policy" : "policies"}, ${runs} ${
      runs === 1 ? "run" : "runs"
    } each, seeds ${seed} to ${seed + runs - 1}`,
    `outages: ${outages.map(plain).join(", ")}`,
    "",
    ...tableWithin(columns, {
      heads: ["policy", "behind", "succeed", "sends/call", "p99", "recovers"],
      rows: front.map(row),
      notes: front.map((one) => one === chosen ? paint("good", "<- chosen") : "")
    }),
    "",
    "behind: the most points of success behind the best policy of an outage; other columns: the worst over all outages",
    ...leftOut(policies.length - front.length),
    "",
    `${plain(chosen.label)}, ${plain(chosen.worstOutage)}: ${
      percent(base)
    } succeed; change in points when one parameter changes`,
    ...tornado(base, sensitivity, columns)
  ].join("\n")
}
