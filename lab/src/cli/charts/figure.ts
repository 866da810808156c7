import type { Readings } from "./buckets.ts"
import type { Look } from "./palette.ts"

/** A line over time. */
export interface Line {
  readonly label: string
  readonly look: Look
  /** One for each of the times; `null` where there is none. */
  readonly values: ReadonlyArray<number | null>
  /** The range of most runs, if there are several. */
  readonly band?: Readings["band"]
}

/** Lines in one picture. */
export interface Panel {
  /** What the picture is of, such as a policy; the same in all figures of a page. */
  readonly name: string
  readonly look: Look
  readonly lines: ReadonlyArray<Line>
  /** What the lines are measured against, such as a capacity: thin, and not among the numbers. */
  readonly references: ReadonlyArray<Line>
}

/** What an axis counts. */
export type Unit = "per second" | "share" | "duration" | "number" | "ratio"

/** A stretch of time in which something was wrong. */
export interface Shade {
  readonly what: string
  readonly fromMillis: number
  readonly toMillis: number
}

/** Pictures of the same over the same time, with the same axes. */
export interface Figure {
  readonly title: string
  /** What it shows, in a sentence. */
  readonly what: string
  /** What the numbers are, such as `requests per second`. */
  readonly axis: string
  readonly unit: Unit
  /** What a gap without values means. */
  readonly gap?: string | undefined
  /** Where the values lie, in milliseconds. */
  readonly times: ReadonlyArray<number>
  readonly untilMillis: number
  readonly panels: ReadonlyArray<Panel>
  readonly shades: ReadonlyArray<Shade>
}

/** The numbers of all lines. */
const valuesOf = ({ panels }: Figure): ReadonlyArray<number> =>
  panels.flatMap(({ lines }) => lines.flatMap(({ values }) => values.filter((value) => value !== null)))

/** The greatest of numbers; 0 of none. */
export const greatest = (values: ReadonlyArray<number | null>): number =>
  values.reduce<number>((most, value) => value !== null && value > most ? value : most, 0)

/** A peak this many times as high as nearly all the rest would flatten the rest. */
const peakFrom = 3
const nearlyAll = 0.98

/** Where the value axis ends although a short peak goes higher; `undefined` where it shows everything. */
export const ceilingOf = (figure: Figure): number | undefined => {
  if (figure.unit === "share" || figure.unit === "duration") return undefined
  const values = [...valuesOf(figure)].sort((a, b) => a - b)
  const usual = values[Math.floor(values.length * nearlyAll)] ?? 0
  return usual > 0 && values.at(-1)! > usual * peakFrom ? usual * 1.4 : undefined
}

/** Durations that differ by more are drawn on a logarithmic axis. */
const logarithmicFrom = 50

/** Whether the value axis is logarithmic. */
export const isLogarithmic = (figure: Figure): boolean => {
  if (figure.unit !== "duration") return false
  const values = valuesOf(figure).filter((value) => value > 0)
  const least = values.reduce((a, b) => Math.min(a, b), Infinity)
  return greatest(values) > least * logarithmicFrom
}

/** The range of the values of all pictures. */
export const domainOf = (figure: Figure): readonly [number, number] => {
  if (figure.unit === "share") return [0, 1]
  const values = valuesOf(figure)
  if (isLogarithmic(figure)) {
    const positive = values.filter((value) => value > 0)
    return [positive.reduce((a, b) => Math.min(a, b), Infinity), greatest(positive)]
  }
  const shown = figure.panels.flatMap(({ lines, references }) => [
    ...lines.map(({ band }) => greatest(band?.high ?? [])),
    ...references.map(({ values }) => greatest(values))
  ])
  return [0, ceilingOf(figure) ?? (Math.max(greatest(values), ...shown) * 1.06 || 1)]
}
