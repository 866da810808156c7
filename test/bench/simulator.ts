/**
 * The simulator: what a wake costs on its clock and on `TestClock`, the scenario of ten thousand clients, and what a second
 * thread brings to many runs of it.
 *
 * `npx tsx --expose-gc test/bench/simulator.ts`, with `--quick` in a minute. It measures the sources.
 */
import * as Simulator from "@effect-retry/lab/Simulator"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import { build } from "esbuild"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { getHeapStatistics } from "node:v8"
import { Worker } from "node:worker_threads"
import { inThreads } from "../../lab/src/cli/pool.ts"
import { Threads, worthAThread } from "../../lab/src/cli/Threads.ts"
import { quotient, type Spread } from "./harness.ts"
import { exactly, printTable, table, timed } from "./report.ts"

const quick = process.argv.includes("--quick")

/** Fibers that sleep, wake and sleep again, each at its own times. */
const sleepers = (fibers: number, wakes: number) =>
  Effect.forEach(
    Array.from({ length: fibers }, (_, index) => index),
    (index) => {
      let left = Math.round(wakes / fibers)
      return Effect.whileLoop({
        while: () => left-- > 0,
        body: () => Effect.sleep(1 + (index * 7919 + left * 104_729) % 1000),
        step: () => {}
      })
    },
    { concurrency: "unbounded", discard: true }
  )

const clocks = {
  TestClock: (program: Effect.Effect<void>) =>
    Effect.gen(function*() {
      const fiber = yield* Effect.forkChild(program)
      yield* TestClock.adjust("1 day")
      yield* Fiber.join(fiber)
    }).pipe(Effect.provide(TestClock.layer())),
  simulator: (program: Effect.Effect<void>) => Simulator.inVirtualTime(program)
}

/** Nanoseconds of CPU time. */
const cpuNanos = async (run: Effect.Effect<unknown, unknown>): Promise<number> => {
  const before = process.cpuUsage()
  await Effect.runPromise(run)
  const { system, user } = process.cpuUsage(before)
  return (system + user) * 1000
}

const timeWakes = async (fibers: number): Promise<Spread> => {
  const wakes = Math.max(fibers * 3, 30_000)
  const samples = new Map<string, Array<number>>()
  for (let round = -1; round < (quick ? 3 : 9); round++) {
    for (const [name, run] of Object.entries(clocks)) {
      const nanos = await cpuNanos(run(sleepers(fibers, wakes))) / wakes
      if (round >= 0) samples.set(name, [...samples.get(name) ?? [], nanos])
    }
  }
  printTable(timed(`a wake, ${fibers} sleepers`, samples))
  return quotient(samples.get("TestClock")!, samples.get("simulator")!)
}

const ratios = new Map<string, Spread>()
for (const fibers of [10, 100, 1000, 10_000]) ratios.set(`${fibers} sleepers`, await timeWakes(fibers))
printTable(table("TestClock / simulator", "times", ratios))

const file = new URL("../../lab/scenarios/ten-thousand-clients.json", import.meta.url)
const scenario = await Effect.runPromise(Simulator.decodeJson(readFileSync(file, "utf8")))

/** Runs the scenario for this long. A second run finds its code compiled. */
const run = async (seconds: number, again = "") => {
  let held = 0
  const began = performance.now()
  let result: Simulator.SimulationResult | undefined
  const watched = Simulator.run({ ...scenario, duration: `${seconds} seconds` }, {
    onProgress: ({ fraction }) =>
      Effect.sync(() => {
        if (fraction < 0.9 || held > 0) return
        globalThis.gc?.()
        held = getHeapStatistics().used_heap_size
      })
  })
  const nanos = await cpuNanos(Effect.tap(watched, (found) => Effect.sync(() => (result = found))))
  const { attempts, traceHash } = result!
  const rows = [
    ["attempts", attempts],
    ["seconds of CPU time", nanos / 1e9],
    ["seconds", (performance.now() - began) / 1000],
    ["attempts a second of CPU time", attempts / nanos * 1e9],
    ["MiB in use near its end, collected", held / 2 ** 20],
    ["MiB of the process", process.memoryUsage().rss / 2 ** 20]
  ] as const
  const title = `ten thousand clients for ${seconds} seconds${again}, trace ${traceHash}`
  printTable(table(title, "", new Map(rows.map(([name, value]) => [name, exactly(value)]))))
}

await run(quick ? 25 : 101)
for (const seconds of quick ? [25] : [25, 101]) await run(seconds, ", again")

const worker = fileURLToPath(new URL("output/worker.mjs", import.meta.url))
await build({
  entryPoints: [fileURLToPath(new URL("../../lab/src/cli/worker.ts", import.meta.url))],
  outfile: worker,
  bundle: true,
  external: ["effect"],
  format: "esm",
  platform: "node",
  tsconfig: fileURLToPath(new URL("../../tsconfig.json", import.meta.url))
})
const threads = { available: 2, afterAttempts: worthAThread, start: () => new Worker(worker) }

/** Elapsed nanoseconds of several runs, spread over threads. */
const timeRuns = async (workers: number): Promise<number> => {
  const began = performance.now()
  await Effect.runPromise(
    inThreads(Simulator.runs(scenario, { runs: quick ? 6 : 20 }), { workers: Option.some(workers) }).pipe(
      Effect.provideService(Threads, threads)
    )
  )
  return (performance.now() - began) * 1e6
}

const spread = new Map<string, Array<number>>([["1 thread", []], ["2 threads", []]])
for (let round = 0; round < (quick ? 1 : 3); round++) {
  for (const [index, nanos] of [...spread.values()].entries()) nanos.push(await timeRuns(index + 1))
}
printTable(timed("runs of ten thousand clients, elapsed", spread))
const ratio = quotient(spread.get("1 thread")!, spread.get("2 threads")!)
printTable(table("1 thread / 2 threads", "times", new Map([["ten thousand clients", ratio]])))
