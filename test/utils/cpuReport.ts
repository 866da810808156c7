import type { TestProject } from "vitest/node"
import { childrenSeconds, secondsOf } from "./cpu.ts"

/** Where `cpuOfFile.ts` leaves the CPU seconds of a file. */
declare module "vitest" {
  interface TaskMeta {
    cpuSeconds?: number
  }
}

/** What a piece of work takes on the machine that `CPU_LIMIT` is meant for. */
const referenceSeconds = 0.11

/** Memory and arithmetic, as in a test; long against the hundredths in which CPU time is counted. */
const piece = () => {
  const counts = new Map<string, { readonly count: number }>()
  for (let index = 0; index < 1_500_000; index++) {
    const key = `key ${Math.imul(index, 7919) % 4099}`
    counts.set(key, { count: (counts.get(key)?.count ?? 0) + index })
  }
}

/** Does pieces of work while the tests run, and returns how many times slower than the reference they are. */
const measurePace = (): () => number => {
  let pieces = 0
  let seconds = 0
  const measure = () => {
    pieces += 1
    seconds += secondsOf(piece)
  }
  const timer = setInterval(measure, 10_000)
  return () => {
    clearInterval(timer)
    if (pieces === 0) measure()
    return seconds / pieces / referenceSeconds
  }
}

/** The CPU seconds that the command may take at this pace: a slow machine may take more, a fast one not less. */
export const allowanceOf = (limit: number, pace: number): number => limit * Math.max(1, pace)

/** The CPU seconds that the command may take on the reference machine. */
export const limitOf = (value: string | undefined): number => {
  const limit = value === undefined ? Infinity : Number(value)
  if (limit > 0) return limit
  throw new Error(`CPU_LIMIT must be a positive number of seconds, got "${value}"`)
}

interface Seconds {
  readonly files: ReadonlyArray<readonly [name: string, seconds: number]>
  /** Of the children that have ended. */
  readonly children: number
  /** Of the whole command, children included. */
  readonly whole: number
}

/** The CPU seconds of the ten dearest files, and what the whole command consists of. */
export const rowsOf = (
  { children, files, whole }: Seconds
): ReadonlyArray<readonly [name: string, seconds: number]> => {
  const threads = files.reduce((total, [, seconds]) => total + seconds, 0)
  return [
    ...[...files].sort(([, a], [, b]) => b - a).slice(0, 10),
    ["the tests' threads", threads],
    ["children", children],
    ["the rest: compiler, collector, main thread", whole - threads - children],
    ["the whole command", whole]
  ]
}

/** Prints the rows. Above the limit the command fails. */
const report = (files: Seconds["files"], limit: number, pace: number): void => {
  const { system, user } = process.cpuUsage()
  const children = childrenSeconds()
  const whole = (user + system) / 1e6 + children
  const rows = rowsOf({ files, children, whole })
  process.stdout.write("\nCPU seconds\n")
  for (const [name, seconds] of rows) process.stdout.write(`${seconds.toFixed(1).padStart(7)}  ${name}\n`)
  process.stdout.write(`${pace.toFixed(2).padStart(7)}  times as slow as the machine that CPU_LIMIT is meant for\n`)
  const allowance = allowanceOf(limit, pace)
  if (whole <= allowance) return
  process.stdout.write(`More than CPU_LIMIT, ${limit}, at this pace ${allowance.toFixed(0)}\n`)
  process.exitCode = 1
}

/** Vitest calls it once before the tests, and what it returns after them. */
export const setup = ({ vitest }: TestProject) => {
  const limit = limitOf(process.env["CPU_LIMIT"])
  const paceOf = measurePace()
  return () => {
    const pace = paceOf()
    const modules = vitest.state.getTestModules()
    if (modules.length > 1) {
      report(modules.map((module) => [module.relativeModuleId, module.meta().cpuSeconds ?? 0]), limit, pace)
    }
  }
}
