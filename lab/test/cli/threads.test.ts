import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { build } from "esbuild"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Worker } from "node:worker_threads"
import { budget, firstOf } from "../../../test/utils/budget.ts"
import { inThreads } from "../../src/cli/pool.ts"
import { startSource } from "../../src/cli/sources.ts"
import { Threads, worthAThread } from "../../src/cli/Threads.ts"
import { folder, root, run } from "./commandLine.ts"

const here = folder()
const at = (name: string, text: string): string => {
  const path = join(here, name)
  writeFileSync(path, text)
  return path
}

const small = {
  name: "small",
  duration: "10s",
  drain: "5s",
  fleets: [{ name: "app", to: "db", rate: 20, timeout: "500ms", policy: "none" }],
  services: [{ name: "db", capacity: 40, outages: [{ kind: "fail", from: "3s", to: "4s", share: 0.5 }] }],
  expect: { succeed: ">= 90 %" }
}
const file = at("small.json", JSON.stringify(small))
const measured = at(
  "measured.json",
  JSON.stringify({ series: [{ calls: 10, attempts: 10, succeeded: 10, failed: 0 }] })
)

const source = new URL("../../src/cli/worker.ts", import.meta.url)
const built = join(here, "worker.mjs")

beforeAll(() =>
  build({
    entryPoints: [fileURLToPath(source)],
    outfile: built,
    bundle: true,
    format: "esm",
    platform: "node",
    tsconfig: join(root, "tsconfig.json"),
    logLevel: "warning"
  })
)

/** Threads that are counted, started after this many attempts. */
const counted = (afterAttempts: number, start: () => Worker = () => new Worker(built)) => {
  const ends: Array<Promise<unknown>> = []
  return {
    available: 2,
    afterAttempts,
    start: () => {
      const worker = start()
      ends.push(new Promise((resolve) => worker.once("exit", resolve)))
      return worker
    },
    ends
  }
}

const policies = ["--policy", "none", "--policy", "jitter"]

describe("a command in two threads", () => {
  const commands: ReadonlyArray<readonly [name: string, ...args: Array<string>]> = [
    ["simulate", file, "--runs", "4"],
    ["compare", file, ...policies, "--runs", "3"],
    ["map", file, "--x", "fleets.0.rate=10..40/3", "--y", "services.0.outages.0.length=500..2000/2", "--runs", "3"],
    ["check", file, file, "--runs", "3"],
    ["sweep", file, "services.0.capacity", "--from", "10", "--to", "40", "--step", "10", "--runs", "3"],
    ["tune", file, ...policies, "--runs", "2"],
    ["backtest", file, "--measured", measured, "--runs", "3"]
  ]
  // All of them spread their runs the same way.
  for (const [name, ...args] of firstOf(commands, 2)) {
    it(`prints the same to the digit, and ends its threads: ${name}`, async () => {
      const alone = counted(0)
      const expected = await run([name, ...args, "--json", "--workers", "1"], { threads: alone })
      assert.strictEqual(alone.ends.length, 0)
      for (const afterAttempts of firstOf([5, 0], 1)) {
        const threads = counted(afterAttempts)
        assert.deepStrictEqual(await run([name, ...args, "--json"], { threads }), expected)
        assert.strictEqual(threads.ends.length, 2)
        await Promise.all(threads.ends)
      }
    })
  }

  it("gives the same objects from its sources, and starts no more threads than there are runs", async () => {
    const scenario = await Effect.runPromise(Simulator.decode(small))
    const runs = Simulator.runs(scenario, { runs: 2 })
    let started = 0
    const threads = counted(0, () => started++ < budget(2, 1) ? startSource(source) : new Worker(built))
    const spread = inThreads(runs, { workers: Option.some(8) }).pipe(Effect.provideService(Threads, threads))
    assert.deepStrictEqual(await Effect.runPromise(spread), await Effect.runPromise(runs))
    assert.strictEqual(threads.ends.length, 2)
  })

  it("starts none for small work", async () => {
    const threads = counted(worthAThread)
    const { code, out } = await run(["compare", file, ...policies, "--json", "--runs", "20"], { threads })
    assert.strictEqual(code, 0)
    const attempts = JSON.parse(out).runs.flatMap(({ results }: any) => results.map((result: any) => result.attempts))
    assert.isBelow(attempts.reduce((sum: number, one: number) => sum + one, 0), worthAThread)
    assert.strictEqual(threads.ends.length, 0)
  })

  it("refuses what is not a number of threads", async () => {
    for (const workers of ["0", "1.5", "257", "many"]) {
      const { code, err } = await run(["simulate", file, "--workers", workers])
      assert.strictEqual(code, 2)
      assert.include(err, "workers")
    }
  })

  it("fails with the error of a run as without them, and ends the others", async () => {
    const endless = { name: "c", to: "s", clients: 1 }
    const still = {
      name: "still",
      fleets: [endless],
      services: [{ name: "s", failureRate: 1 }],
      expect: { succeed: 1 }
    }
    const path = at("still.json", JSON.stringify(still))
    const args = ["sweep", path, "fleets.0.clients", "--from", "1", "--to", "11", "--runs", "3"]
    const expected = await run([...args, "--workers", "1"])
    assert.strictEqual(expected.code, 2)
    assert.include(expected.err, "virtual time is stuck")
    const threads = counted(0)
    assert.deepStrictEqual(await run(args, { threads }), expected)
    await Promise.all(threads.ends)
  })

  it("says what has become of a thread that ends by itself", async () => {
    for (
      const [program, says] of [["process.exit(3)", "code: 3"], ["throw new Error('no memory')", "no memory"]] as const
    ) {
      const threads = counted(0, () => new Worker(program, { eval: true, stderr: true }))
      const { code, err, out } = await run(["simulate", file, "--runs", "3"], { threads })
      assert.deepStrictEqual([code, out], [1, ""])
      assert.match(err, /^effect-retry: a worker thread ended: [^\n]*: --workers 1 runs without threads\n$/)
      assert.include(err, says)
    }
  })

  it("shows how far they are, and ends them with Ctrl-C: seeds that all have run with are kept", async () => {
    const long = at("long.json", JSON.stringify({ ...small, duration: "20000s", bucket: "60s" }))
    const threads = counted(0)
    const { code, err, out, progress } = await run(["compare", long, "--policy", "jitter", "--json", "--runs", "4"], {
      threads,
      onProgress: (interrupt, text) => {
        if (/[2-7] of 8 runs done/.test(text)) interrupt()
      }
    })
    assert.strictEqual(code, 130, err)
    const told = progress.map((text) => text.replace("\r\u001b[2K", "")).filter((text) => text !== "")
    assert.match(told.at(-1)!, /^█*░* \d+ %.*: (none|jitter), [2-7] of 8 runs done, [\d,]+ attempts$/)
    assert.strictEqual(progress.at(-1), "\r\u001b[2K")
    for (const { results } of JSON.parse(out).runs) assert.strictEqual(results.length, 1)
    await Promise.all(threads.ends)
  })
})
