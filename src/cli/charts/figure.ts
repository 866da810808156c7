import type { Look } from "./palette.ts"

/** A line over time. */
export interface Line {
  readonly label: string
  readonly look: Look
  /** One for each of the times; `null` where there is none. */
  readonly values: ReadonlyArray<number | null>
}

/** What an axis counts. */
export type Unit = "per second" | "share" | "duration" | "number"

/** A stretch of time in which something was wrong. */
export interface Shade {
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
export const valuesOf = ({ lines }: Figure): ReadonlyArray<number> =>
  lines.flatMap(({ values }) => values.filter((value) => value !== null))
