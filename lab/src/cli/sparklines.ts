import { tableWithin } from "../explain/layout.ts"
import { summarize } from "../Simulator.ts"
import { millis } from "../simulator/units.ts"
import { meanSuccessOf } from "./charts/buckets.ts"
import { percent, runLength } from "./charts/format.ts"
import { planOf } from "./charts/plan.ts"
import type { Run, Runs } from "./charts/run.ts"
import type { Screen, State } from "./screen.ts"
import { plain } from "./text.ts"

const bars = "▁▂▃▄▅▆▇█"
const most = 60
const least = 12

const stateOf = (share: number): State => share >= 0.9 ? "good" : share >= 0.5 ? "doubtful" : "bad"

/** The parts of a whole, each with the average of what falls into it; `null` where nothing does. */
const resampled = (values: ReadonlyArray<number | null>, width: number): ReadonlyArray<number | null> =>
  Array.from({ length: width }, (_, n) => {
    const [from, to] = [n, n + 1].map((part) => part * values.length / width)
    const part = values.slice(Math.floor(from!), Math.max(Math.floor(from!) + 1, Math.floor(to!)))
    const found = part.filter((value) => value !== null)
    return found.length === 0 ? null : found.reduce((sum, value) => sum + value, 0) / found.length
  })

/** Shares over time, in the colors of their states. */
const sparkline = (shares: ReadonlyArray<number | null>, width: number, { paint }: Screen): string => {
  const stretches: Array<{ readonly state: State | undefined; text: string }> = []
  for (const share of resampled(shares, width)) {
    const state = share === null ? undefined : stateOf(share)
    const sign = share === null ? " " : bars[Math.min(bars.length - 1, Math.floor(share * bars.length))]!
    const last = stretches.at(-1)
    if (last?.state === state && last !== undefined) last.text += sign
    else stretches.push({ state, text: sign })
  }
  return stretches.map(({ state, text }) => state === undefined ? text : paint(state, text)).join("")
}

/** Where services were in trouble, below the shares. */
const outageLine = (runs: Runs, width: number, untilMillis: number): ReadonlyArray<string> => {
  const { shades } = planOf(runs)
  const marks = Array.from({ length: width }, (_, n) => {
    const [from, to] = [n * untilMillis / width, (n + 1) * untilMillis / width]
    return shades.some(({ fromMillis, toMillis }) => fromMillis < to && toMillis > from) ? "^" : " "
  }).join("").trimEnd()
  return marks === "" || shades.length > 1 || marks.length + 7 > width ? [] : [`${marks} ${shades[0]!.what}`]
}

/**
 * A line for each policy, the best first: how many of its calls succeed, what they send, and the share of those that succeed
 * over time. Nothing where there is no time to plot.
 */
export const sparklines = (runs: Runs, screen: Screen): ReadonlyArray<string> => {
  const { raster } = planOf(runs)
  const { scenario } = runs[0].result
  const points = Math.min(
    raster.points,
    Math.floor(millis(scenario.duration) / (raster.bucketMillis * raster.perPoint))
  )
  if (points < 2) return []
  const found = runs
    .map((run) => ({ run, ...summarize(run.results) }))
    .sort((a, b) => (b.succeeded?.mean ?? 0) - (a.succeeded?.mean ?? 0))
  const text = (width: number) => (run: Run): string =>
    sparkline(meanSuccessOf(raster, run).slice(0, points), width, screen)
  const rows = found.map(({ run, sendsPerCall, succeeded }): readonly [string, string, string] => [
    plain(run.label),
    succeeded === undefined ? "-" : percent(succeeded.mean),
    sendsPerCall === undefined ? "-" : sendsPerCall.mean.toFixed(2)
  ])
  const names = Math.max(...rows.map(([name]) => name.length).filter((length) => length <= 26), 6)
  const width = Math.min(most, points, screen.columns - names - 23)
  if (width < least) return []
  const outage = outageLine(runs, width, points * raster.bucketMillis * raster.perPoint)
  return tableWithin(screen.columns, {
    heads: ["policy", "succeed", "sends/call"],
    rows: [...rows, ...outage.map((): readonly [string, string, string] => ["", "", ""])],
    noteHead: `calls that succeed, over ${runLength(scenario)}`.slice(0, Math.max(width, 20)),
    notes: [...found.map(({ run }) => text(width)(run)), ...outage]
  })
}
