import { checks } from "../../internal/checks.ts"

/** What is expected of the events of one name. */
export interface Clause {
  readonly name: string
  /** Milliseconds; empty if there must be none. */
  readonly times: ReadonlyArray<number>
}

const units: ReadonlyMap<string, number> = new Map([
  ["ms", 1],
  ["milli", 1],
  ["millis", 1],
  ["s", 1000],
  ["second", 1000],
  ["seconds", 1000],
  ["min", 60_000],
  ["minute", 60_000],
  ["minutes", 60_000],
  ["h", 3_600_000],
  ["hour", 3_600_000],
  ["hours", 3_600_000]
])

const reject = (text: string): never =>
  checks("Timeline.expect").reject("expected", text, `text such as "attempts at 0 ms, 430 ms, 1.2 s; no retries"`)

const timeOf = (text: string): number => {
  if (text === "0") return 0
  const [, amount, unit] = /^(\d+(?:\.\d+)?) ?([a-z]+)$/.exec(text) ?? reject(text)
  return Number(amount) * (units.get(unit!) ?? reject(text))
}

const clauseOf = (text: string): Clause => {
  const [, none] = /^no (\S.*)$/.exec(text) ?? []
  if (none !== undefined) return { name: none, times: [] }
  const [, name, times] = /^(\S.*?) at (.+)$/.exec(text) ?? reject(text)
  return { name: name!, times: times!.split(/, and | and |,/).map((time) => timeOf(time.trim())) }
}

/** Parses the expectations of a timeline: clauses separated by semicolons. */
export const parse = (text: string): ReadonlyArray<Clause> => text.split(";").map((clause) => clauseOf(clause.trim()))

/** A time to the nanosecond: in milliseconds below one second, else in seconds. */
export const formatTime = (millis: number): string =>
  millis < 1000 ? `${Number(millis.toFixed(6))} ms` : `${Number((millis / 1000).toFixed(9))} s`

/** The inverse of {@link parse}. */
export const format = ({ name, times }: Clause): string =>
  times.length === 0 ? `no ${name}` : `${name} at ${times.map(formatTime).join(", ")}`
