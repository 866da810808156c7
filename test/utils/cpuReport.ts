import type { TestProject } from "vitest/node"
import { childrenSeconds } from "./cpu.ts"

/** Where `cpuOfFile.ts` leaves the CPU seconds of a file. */
declare module "vitest" {
  interface TaskMeta {
    cpuSeconds?: number
  }
}

/**
 * Prints the CPU seconds of the ten dearest files and of the whole command, children included. Above `CPU_LIMIT` the
 * command fails.
 */
const report = (files: ReadonlyArray<readonly [name: string, seconds: number]>): void => {
  const { system, user } = process.cpuUsage()
  const whole = (user + system) / 1e6 + childrenSeconds()
  const sum = files.reduce((total, [, seconds]) => total + seconds, 0)
  const dearest = [...files].sort(([, a], [, b]) => b - a).slice(0, 10)
  const limit = Number(process.env["CPU_LIMIT"] ?? Infinity)
  if (whole > limit) process.exitCode = 1
  const row = (name: string, seconds: number) => `${seconds.toFixed(1).padStart(7)}  ${name}\n`
  process.stdout.write([
    "\nCPU seconds\n",
    ...dearest.map(([name, seconds]) => row(name, seconds)),
    row("the tests of all files", sum),
    row(whole > limit ? `the whole command, which has a limit of ${limit}` : "the whole command", whole)
  ].join(""))
}

/** Vitest calls it once before the tests, and what it returns after them. */
export const setup = ({ vitest }: TestProject) => () => {
  const modules = vitest.state.getTestModules()
  if (modules.length > 1) report(modules.map((module) => [module.relativeModuleId, module.meta().cpuSeconds ?? 0]))
}
