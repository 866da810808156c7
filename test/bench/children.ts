/** Measurements that need a process of their own: to control the garbage collector, or to include the start. */
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import type { Counts } from "./counted.ts"
import { shuffled, type Spread, spread } from "./harness.ts"

const execute = promisify(execFile)

/** No scavenge while bytes are counted, and the same compiled code however busy the machine is. */
const countingFlags = [
  "--expose-gc",
  "--no-concurrent-recompilation",
  "--min-semi-space-size=256",
  "--max-semi-space-size=256"
]

const node = async (flags: ReadonlyArray<string>, script: string, ...parameters: ReadonlyArray<string>) => {
  const { stdout } = await execute(process.execPath, [...flags, script, ...parameters])
  return stdout.trim()
}

const sibling = (name: string) => fileURLToPath(new URL(name, import.meta.url))

/** Operations of the run loop and bytes per call, in batches of so many; `script` is `counted.ts`, bundled. */
export const counts = async (script: string = sibling("counted.js"), calls = 10_000): Promise<Counts> =>
  JSON.parse(await node(countingFlags, script, String(calls)))

/** Bytes per waiting call, by subject. */
export const memory = async (calls: number, rounds: number): Promise<ReadonlyMap<string, Spread>> => {
  const script = sibling("memory.js")
  const names: ReadonlyArray<string> = JSON.parse(await node(["--expose-gc"], script))
  const kept = new Map<string, Array<number>>(names.map((name) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (const name of shuffled(names)) {
      kept.get(name)!.push(Number(await node(["--expose-gc"], script, name, String(calls))))
    }
  }
  return new Map([...kept].map(([name, bytes]) => [name, spread(bytes)]))
}

/** Bytes and timers of this many resources. */
export const resources = async (count: number): Promise<{ readonly bytes: number; readonly timers: number }> =>
  JSON.parse(await node(["--expose-gc"], sibling("memory.js"), "resources", String(count)))

const timesItself = `
const { system, user } = process.cpuUsage()
console.log(system + user)
`

/** Milliseconds of CPU time that a process takes which imports these modules and ends, by name. */
export const startUp = async (
  imports: Readonly<Record<string, ReadonlyArray<string>>>,
  rounds: number
): Promise<ReadonlyMap<string, ReadonlyArray<number>>> => {
  const names = Object.keys(imports)
  const taken = new Map<string, Array<number>>(names.map((name) => [name, []]))
  for (let round = -1; round < rounds; round++) {
    for (const name of shuffled(names)) {
      const program = imports[name]!.map((path) => `import ${JSON.stringify(path)}`).join("\n") + timesItself
      const micros = await node(["--input-type=module"], "-e", program)
      if (round >= 0) taken.get(name)!.push(Number(micros) / 1000)
    }
  }
  return taken
}
