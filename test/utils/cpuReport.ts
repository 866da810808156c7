import type { TestProject } from "vitest/node"
import { childrenSeconds } from "./cpu.ts"

/** Where `cpuOfFile.ts` leaves the CPU seconds of a file. */
declare module "vitest" {
  interface TaskMeta {
    cpuSeconds?: number
  }
}

/** The CPU seconds that the command may take. */
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
const report = (files: Seconds["files"], limit: number): void => {
  const { system, user } = process.cpuUsage()
  const children = childrenSeconds()
  const whole = (user + system) / 1e6 + children
  const rows = rowsOf({ files, children, whole })
  process.stdout.write("\nCPU seconds\n")
  for (const [name, seconds] of rows) process.stdout.write(`${seconds.toFixed(1).padStart(7)}  ${name}\n`)
  if (whole <= limit) return
  process.stdout.write(`More than CPU_LIMIT, ${limit}\n`)
  process.exitCode = 1
}

/** Vitest calls it once before the tests, and what it returns after them. */
export const setup = ({ vitest }: TestProject) => {
  const limit = limitOf(process.env["CPU_LIMIT"])
  return () => {
    const modules = vitest.state.getTestModules()
    if (modules.length > 1) {
      report(modules.map((module) => [module.relativeModuleId, module.meta().cpuSeconds ?? 0]), limit)
    }
  }
}
