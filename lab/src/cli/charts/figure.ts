import type { Readings } from "./buckets.ts"
import type { Look } from "./palette.ts"

/** A line over time. */
export interface Line {
  readonly label: string
  readonly look: Look
  /** One for each of the times; `null` where there is none. */
  readonly values: ReadonlyArray<number | null>
  /** Between what most runs lie, if there are several. */
  readonly band?: Readings["band"]
}

/** What an axis counts. */
export type Unit = "per second" | "share" | "duration" | "number"

/** A stretch of time in which something was wrong. */
export interface Shade {
  readonly what: string
  readonly fromMillis: number
  readonly toMillis: number
}

/** Lines over the same time. */
export interface Figure {
  readonly title: string
  /** What it shows, in a sentence. */
  readonly what: string
  /** What the numbers are, such as `requests per second`. */
  readonly axis: string
  readonly unit: Unit
  /** Where the values lie, in milliseconds. */
  readonly times: ReadonlyArray<number>
  readonly untilMillis: number
  readonly lines: ReadonlyArray<Line>
  readonly shades: ReadonlyArray<Shade>
}

/** The numbers of all lines. */
const valuesOf = ({ lines }: Figure): ReadonlyArray<number> =>
  lines.flatMap(({ values }) => values.filter((value) => value !== null))

/** The greatest of numbers; 0 of none. */
export const greatest = (values: ReadonlyArray<number | null>): number =>
  values.reduce<number>((most, value) => value !== null && value > most ? value : most, 0)

/** A peak this many times as high as nearly all the rest would leave nothing of the rest to see. */
const peakFrom = 3
const nearlyAll = 0.98

/** Where the value axis ends although a short peak goes on; `undefined` where it shows everything. */
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
