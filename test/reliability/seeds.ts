/* Runs the simulation over many seeds: `npm run seeds [-- count [first]]`, by default 10,000 from 1. */
import { SeedFailure, simulate } from "./utils/simulation.ts"

const [count = 10_000, first = 1] = process.argv.slice(2).map(Number)
const begin = performance.now()
let sends = 0
let calls = 0
let failures = 0

for (let seed = first; seed < first + count; seed++) {
  try {
    const run = simulate(seed)
    sends += run.sends
    calls += run.calls
  } catch (error) {
    failures++
    console.error(error instanceof SeedFailure ? error.message : error)
    console.error(`  again: SEED=${seed} npx vitest run test/reliability/seeded.test.ts`)
  }
}

const seconds = ((performance.now() - begin) / 1000).toFixed(0)
console.log(`${count} seeds, ${calls} calls, ${sends} sends, ${failures} failures, ${seconds} s`)
process.exitCode = failures === 0 ? 0 : 1
