import { millis } from "../../explain/table.ts"
import type { Scenario } from "../../simulator/scenario.ts"
import { millis as toMillis } from "../../simulator/units.ts"
import type { Unit } from "./figure.ts"

const digits = (value: number, places: number): string => `${Number(value.toFixed(places))}`

/** A whole number with its thousands apart: `1,234,567`; one with a fraction is given two places. */
export const counted = (value: number): string => {
  const [whole = "", fraction] = digits(value, 2).split(".")
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",")
  return fraction === undefined ? grouped : `${grouped}.${fraction}`
}

/** Three digits of a number: figures measured in buckets are no more exact. */
const threeDigits = (value: number): number => Number(value.toPrecision(3))

/** A count, whose fraction is dropped once it is large. */
export const rounded = (value: number): string => counted(Math.abs(value) < 10 ? threeDigits(value) : Math.round(value))

/** A share in percent, always with one place: `84.0 %`. */
export const share = (value: number): string => `${(value * 100).toFixed(1)} %`

const sizes = [[1e9, "G"], [1e6, "M"], [1e3, "k"]] as const

/** Numbers at an axis, all in the same unit: `0`, `5k`, `10k`. The last one says what they count. */
export const ticks = (unit: Unit, values: ReadonlyArray<number>): ReadonlyArray<string> => {
  if (unit === "share") return values.map((value) => `${digits(value * 100, 1)} %`)
  if (unit === "duration") return values.map((value) => value === 0 ? "0" : millis(threeDigits(value)))
  const most = Math.max(...values)
  const [size, sign] = (most >= 10_000 ? sizes.find(([size]) => most >= size) : undefined) ?? [1, ""] as const
  return values.map((value) => value === 0 ? "0" : `${counted(threeDigits(value / size))}${sign}`)
}

/** A number in a table. */
export const cell = (unit: Unit, value: number | null): string => {
  if (value === null) return "\u2013"
  switch (unit) {
    case "share":
      return share(value)
    case "duration":
      return millis(threeDigits(value))
    case "ratio":
      return value.toFixed(2)
    default:
      return rounded(value)
  }
}

/** How long a time axis is, and in what it counts. */
export const timeUnit = (untilMillis: number): { readonly name: string; readonly millis: number } => {
  if (untilMillis <= 300_000) return { name: "s", millis: 1000 }
  return untilMillis <= 18_000_000 ? { name: "min", millis: 60_000 } : { name: "h", millis: 3_600_000 }
}

/** A time of the run, in the unit of the time axis. */
export const moment = (atMillis: number, untilMillis: number): string => {
  const unit = timeUnit(untilMillis)
  return `${counted(atMillis / unit.millis)} ${unit.name}`
}

/** Whether the values of a parameter are durations, in milliseconds. */
export const isTime = (path: string): boolean => /(length|timeout|from|to|latency|network|queueTimeout)$/.test(path)

/** How long a run makes calls, in the unit of most scenarios: `200 s`. A run shows nothing of the time after it. */
export const runLength = (scenario: Scenario): string => `${rounded(toMillis(scenario.duration) / 1000)} s`

export { limit, millis, percent, sampled } from "../../explain/table.ts"
