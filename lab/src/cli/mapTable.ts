import { widthOf } from "../explain/layout.ts"
import type { Axis, Scenario, Verdict, VerdictMap } from "../Simulator.ts"
import { counted, isTime, millis, runLength } from "./charts/format.ts"
import { type Screen, type State, unbounded } from "./screen.ts"
import { plain } from "./text.ts"

/** The map of a policy. */
export interface PolicyMap extends VerdictMap {
  readonly label: string
}

const marks: { readonly [Of in Verdict]: readonly [state: State, mark: string] } = {
  recovers: ["good", "."],
  limps: ["doubtful", "o"],
  collapses: ["bad", "#"]
}

/** A value of an axis: durations with their unit. */
const valueOf = ({ path }: Axis, value: number): string => {
  const rounded = Number(value.toPrecision(3))
  return isTime(path) ? millis(rounded) : counted(rounded)
}

/** Cells apart from each other if there is room; of more than fit, every second, third and so on. */
const cellsIn = (columns: number, count: number) => {
  if (2 * count - 1 <= columns) return { gap: " ", every: 1 }
  return { gap: "", every: Math.ceil(count / columns) }
}

const mapLines = (
  { label, recoversBelow, rows, x, y }: PolicyMap,
  { columns, paint }: Screen
): ReadonlyArray<string> => {
  const heads = y.values.map((value) => valueOf(y, value))
  const width = Math.max(...heads.map(({ length }) => length))
  const { every, gap } = cellsIn(columns - width - 1, x.values.length)
  const shown = <A>(values: ReadonlyArray<A>) => values.filter((_, n) => n % every === 0)
  const across = shown(x.values)
  const [left, right] = [valueOf(x, across[0]!), valueOf(x, across.at(-1)!)]
  const space = Math.max(1, across.length * (gap.length + 1) - gap.length - left.length - right.length)
  return [
    plain(label),
    ...recoversBelow === undefined || !x.path.endsWith("rate")
      ? []
      : [`in theory, recovers below ${counted(Math.floor(recoversBelow))}/s`],
    ...rows.map((row, n) =>
      `${heads[n]!.padStart(width)} ${shown(row).map((verdict) => paint(...marks[verdict])).join(gap)}`
    ).reverse(),
    `${" ".repeat(width)} ${left}${" ".repeat(space)}${right}`,
    ...every === 1 ? [] : [`one value of x in ${every} is shown in ${columns} columns`],
    ""
  ]
}

const between = 4

/** Blocks of lines, as many next to each other as there is room for. */
const nextToEachOther = (blocks: ReadonlyArray<ReadonlyArray<string>>, columns: number): ReadonlyArray<string> => {
  const width = Math.max(...blocks.flatMap((lines) => lines.map(widthOf)))
  const count = Math.max(1, Math.min(3, Math.floor((columns + between) / (width + between))))
  return blocks.flatMap((_, n) => {
    if (n % count > 0) return []
    const row = blocks.slice(n, n + count)
    // Below, since a block may lack the line of theory.
    const height = Math.max(...row.map(({ length }) => length))
    const full = row.map((
      [head = "", ...lines]
    ) => [head, ...Array<string>(height - 1 - lines.length).fill(""), ...lines])
    return Array.from(
      { length: height },
      (_, line) =>
        full.map((lines) => lines[line]! + " ".repeat(width - widthOf(lines[line]!))).join(" ".repeat(between))
          .trimEnd()
    )
  })
}

/** The maps of several policies as plain text. */
export const mapTable = (
  scenario: Scenario,
  maps: readonly [PolicyMap, ...Array<PolicyMap>],
  screen: Screen = unbounded
): string => {
  const [{ x, y }] = maps
  const [good, doubtful, bad] = [marks.recovers, marks.limps, marks.collapses].map((one) => screen.paint(...one))
  return [
    `${plain(scenario.name)}: x is ${plain(x.path)}, y is ${plain(y.path)}`,
    "",
    ...nextToEachOther(maps.map((map) => mapLines(map, screen)), screen.columns),
    `${good!} recovers: gets back to 90 % of the success rate before the outage, within the ${
      runLength(scenario)
    } of the run`,
    `${doubtful!} limps: not within the run; ${bad!} collapses: not within the run, and in theory never`
  ].join("\n")
}
