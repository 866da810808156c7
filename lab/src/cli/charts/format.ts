import { millis, percent } from "../../explain/table.ts"
import type { Unit } from "./figure.ts"

const digits = (value: number, places: number): string => `${Number(value.toFixed(places))}`

/** `950`, `1.2k`, `3.4M`: short enough for an axis. */
const short = (value: number): string => {
  const size = Math.abs(value)
  if (size >= 1e9) return `${digits(value / 1e9, 1)}G`
  if (size >= 1e6) return `${digits(value / 1e6, 1)}M`
  if (size >= 10_000) return `${digits(value / 1e3, 1)}k`
  return digits(value, size < 10 ? 2 : 1)
}

/** A whole number with its thousands apart: `1,234,567`; one with a fraction is given two places. */
export const counted = (value: number): string => {
  const [whole = "", fraction] = digits(value, 2).split(".")
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",")
  return fraction === undefined ? grouped : `${grouped}.${fraction}`
}

/** A number at an axis. */
export const tick = (unit: Unit, value: number): string => {
  if (unit === "share") return `${digits(value * 100, 1)} %`
  return unit === "duration" && value > 0 ? millis(Number(value.toPrecision(3))) : short(value)
}

/** A number in a table. */
export const cell = (unit: Unit, value: number | null): string => {
  if (value === null) return "\u2013"
  if (unit === "share") return percent(value)
  return unit === "duration" ? millis(Number(value.toPrecision(4))) : counted(value)
}

/** How long a time axis is, and in what it counts. */
export const timeUnit = (untilMillis: number): { readonly name: string; readonly millis: number } => {
  if (untilMillis <= 300_000) return { name: "seconds", millis: 1000 }
  return untilMillis <= 18_000_000 ? { name: "minutes", millis: 60_000 } : { name: "hours", millis: 3_600_000 }
}

/** A time of the run, in the unit of the time axis. */
export const moment = (atMillis: number, untilMillis: number): string => {
  const unit = timeUnit(untilMillis)
  return `${counted(atMillis / unit.millis)} ${unit.name === "seconds" ? "s" : unit.name === "minutes" ? "min" : "h"}`
}

export { limit, millis, percent } from "../../explain/table.ts"
