import type { Scenario, Verdict, VerdictMap } from "../Simulator.ts"
import { counted, runLength } from "./charts/format.ts"
import { plain } from "./text.ts"

/** The map of a policy. */
export interface PolicyMap extends VerdictMap {
  readonly label: string
}

const marks: { readonly [Of in Verdict]: string } = { recovers: ".", limps: "o", collapses: "#" }

const rounded = (value: number): string => counted(Number(value.toPrecision(3)))

const mapLines = ({ label, recoversBelow, rows, x, y }: PolicyMap): ReadonlyArray<string> => {
  const heads = y.values.map(rounded)
  const width = Math.max(...heads.map(({ length }) => length))
  const [left, right] = [rounded(x.values[0]!), rounded(x.values.at(-1)!)]
  const gap = Math.max(1, 2 * x.values.length - 1 - left.length - right.length)
  return [
    plain(label) +
    (recoversBelow === undefined || !x.path.endsWith("rate")
      ? ""
      : `: in theory, recovers below ${counted(Math.floor(recoversBelow))}/s`),
    ...rows.map((row, n) => `${heads[n]!.padStart(width)} ${row.map((verdict) => marks[verdict]).join(" ")}`).reverse(),
    `${" ".repeat(width)} ${left}${" ".repeat(gap)}${right}`,
    ""
  ]
}

/** The maps of several policies as plain text. */
export const mapTable = (scenario: Scenario, maps: readonly [PolicyMap, ...Array<PolicyMap>]): string => {
  const [{ x, y }] = maps
  return [
    `${plain(scenario.name)}: x is ${plain(x.path)}, y is ${plain(y.path)}`,
    "",
    ...maps.flatMap(mapLines),
    `. recovers: gets back to 90 % of the success rate before the outage, within the ${runLength(scenario)} of the run`,
    "o limps: not within the run; # collapses: not within the run, and in theory never"
  ].join("\n")
}
