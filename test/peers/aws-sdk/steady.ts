import * as fs from "node:fs"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { setTimeout as sleep } from "node:timers/promises"
import type { Side } from "./sides.ts"

/** What became of a side's calls, second by second. */
export interface Course {
  readonly name: string
  readonly ok: Array<number>
  readonly failed: Array<number>
  readonly sent: Array<number>
}

/** What became of all sides. */
export interface Steady {
  readonly courses: ReadonlyArray<Course>
  /** By how many seconds the wall clock has stepped. */
  readonly stepSeconds: number
  /** By how much the machine held the process up, at most, in 99 of 100 looks. */
  readonly heldUpMillis: number
}

/** How the rate is to be looked at. */
export interface Options {
  readonly seconds: number
  /** Concurrent callers of each side, without a pause between calls. */
  readonly callers: number
  /** Steps the wall clock of the process: when, in seconds, and by how much. */
  readonly step?: { readonly at: number; readonly by: number; readonly file: string } | undefined
}

/** All sides at the same time, each against an endpoint of its own. */
export const steady = async (
  sides: ReadonlyArray<Side>,
  ports: ReadonlyArray<number>,
  options: Options
): Promise<Steady> => {
  const start = performance.now()
  const wall = Date.now()
  const elapsed = () => (performance.now() - start) / 1000
  const stepping = options.step === undefined ? undefined : stepAt(options.step)
  const courses = sides.map((side, index) => course(side, ports[index]!, options, elapsed))
  const delay = monitorEventLoopDelay({ resolution: 10 })
  const starting = setTimeout(() => delay.enable(), 4000)
  const seen = await Promise.all(courses)
  await stepping
  clearTimeout(starting)
  return {
    courses: seen,
    stepSeconds: (Date.now() - wall) / 1000 - elapsed(),
    heldUpMillis: Math.max(0, delay.percentile(99) / 1e6 - 10)
  }
}

const stepAt = async ({ at, by, file }: NonNullable<Options["step"]>) => {
  await sleep(at * 1000)
  fs.writeFileSync(file, `${by}`)
}

const course = async (side: Side, port: number, { callers, seconds }: Options, elapsed: () => number) => {
  const zeros = () => Array.from({ length: seconds }, () => 0)
  const seen: Course = { name: side.name, ok: zeros(), failed: zeros(), sent: zeros() }
  const end = new AbortController()
  const count = (row: Array<number>) => {
    const second = Math.floor(elapsed())
    if (second < seconds && !end.signal.aborted) row[second]!++
  }
  side.watch.current = { sent: () => count(seen.sent) }
  const caller = async () => {
    while (!end.signal.aborted) {
      await side.call(port, { signal: end.signal }).then(() => count(seen.ok), () => count(seen.failed))
    }
  }
  const all = Promise.all(Array.from({ length: callers }, caller))
  await sleep(seconds * 1000 - elapsed() * 1000)
  end.abort()
  await all
  return seen
}
