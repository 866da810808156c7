import { short } from "../../internal/tryGet.ts"

/** The units that people write, and Effect's names for them. */
const units: { readonly [short: string]: string } = {
  ns: "nanos",
  us: "micros",
  µs: "micros",
  ms: "millis",
  s: "seconds",
  m: "minutes",
  min: "minutes",
  h: "hours",
  d: "days",
  w: "weeks"
}

const written = /^(\d+(?:\.\d+)?) ?([a-zµ]+)$/

/** `500ms` as `500 millis`, which Effect's `Duration` reads. Other values stay unchanged. */
export const spelledOut = (value: unknown): unknown => {
  const [, amount, unit = ""] = written.exec(short(value)) ?? []
  return Object.hasOwn(units, unit) ? `${amount} ${units[unit]}` : value
}
