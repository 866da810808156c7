/** The results of a run, as printed and saved. */
import type { Samples, Spread } from "./harness.ts"
import { quotient, spread } from "./harness.ts"

interface Row {
  readonly name: string
  readonly value: Spread
  /** As a multiple of the first row, round by round. */
  readonly multiple?: Spread
}

export interface Table {
  readonly title: string
  readonly unit: string
  readonly rows: ReadonlyArray<Row>
}

/** A limit, and what the run found. */
export interface Floor {
  readonly name: string
  readonly atMost: number
  readonly found: Spread
}

export const exactly = (value: number): Spread => ({ median: value, low: value, high: value })

export const table = (title: string, unit: string, values: ReadonlyMap<string, Spread>): Table => ({
  title,
  unit,
  rows: [...values].map(([name, value]) => ({ name, value }))
})

/** Nanoseconds by subject, the first one being what the others are multiples of. */
export const timed = (title: string, samples: Samples): Table => {
  const first = samples.values().next().value!
  const rows = [...samples].map(([name, values]) => ({
    name,
    value: spread(values),
    multiple: quotient(values, first)
  }))
  return { title, unit: "ns", rows }
}

const digits = (value: number): string => value >= 100 ? value.toFixed(0) : value.toFixed(2)

const range = ({ high, low, median }: Spread): string =>
  low === high ? digits(median) : `${digits(median)}  [${digits(low)} .. ${digits(high)}]`

export const isHeld = ({ atMost, found }: Floor): boolean => found.median <= atMost

export const printTable = ({ rows, title, unit }: Table): void => {
  console.log(`\n${title}, ${unit}`)
  for (const { multiple, name, value } of rows) {
    const times = multiple === undefined ? "" : `${digits(multiple.median)} times the first`
    console.log(`  ${name.padEnd(60)} ${range(value).padEnd(28)} ${times}`.trimEnd())
  }
}

export const printFloors = (floors: ReadonlyArray<Floor>): void => {
  console.log("\nFloors")
  for (const floor of floors) {
    const verdict = isHeld(floor) ? "pass" : "MISS"
    console.log(`  ${verdict}  ${floor.name.padEnd(72)} at most ${digits(floor.atMost)}: ${range(floor.found)}`)
  }
}
