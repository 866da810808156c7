import type * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { budget, firstOf } from "../../../test/utils/budget.ts"
import { resolve } from "../../src/simulator/policy.ts"
import { InvalidScenario } from "../../src/simulator/problem.ts"
import { simulate, simulateInput } from "../utils/simulate.ts"

/** Retry mode standard: at most three attempts, full jitter from one second, 500 tokens. */
const steps = [
  { exponential: { base: 1000, cap: "20 seconds", jitter: "full" } },
  { maxAttempts: 3 },
  "whileRetryable",
  { quotaGated: { cost: 5, timeoutCost: 10 } }
]

const outage = (processes: number, seed: number, concurrency?: object) =>
  simulate("outage", { scenario: { seed }, fleet: { processes, policy: { steps, ...concurrency && { concurrency } } } })

/** Run once for the two tests that look at it. */
const withQuotas = Effect.runSync(Effect.cached(outage(100, 1)))

const fleetOf = ({ clients }: Simulator.SimulationResult) => clients[0]!

/** The share of the calls that could have been answered: all but those of the ten seconds without service. */
const served = (result: Simulator.SimulationResult) => {
  const { calls, succeeded } = fleetOf(result).totals
  return 100 * succeeded / (calls * 190 / 200)
}

type Bucket = Simulator.SimulationResult["clients"][number]["series"][number]

const shareOf = (buckets: ReadonlyArray<Bucket>): number =>
  buckets.reduce((sum, { succeeded }) => sum + succeeded, 0) / buckets.reduce((sum, { calls }) => sum + calls, 0)

/** Seconds after the outage from which on every two seconds have 90 % of the share of successes before it. */
const recovered = (result: Simulator.SimulationResult): number => {
  const seconds = fleetOf(result).series.filter(({ fromMillis }) => fromMillis < 200_000)
  const before = shareOf(seconds.slice(0, 20))
  const after = seconds.slice(30)
  return after.map((_, second) => shareOf(after.slice(second, second + 2)) < 0.9 * before).lastIndexOf(true) + 1
}

const mean = (values: ReadonlyArray<number>): number => values.reduce((sum, value) => sum + value, 0) / values.length

const seeds = (many: number): ReadonlyArray<number> => Array.from({ length: many }, (_, index) => index + 1)

// The figures are those that the rule was chosen by, on another simulator: means of 20 seeds.
describe("the outage that retries keep alive", () => {
  for (const [processes, share, seconds] of firstOf([[10, 98, 6], [1, 100, 2], [100, 97, 10]] as const, 1)) {
    it.live(`ends with a concurrency limit in each of ${processes} processes`, () =>
      Effect.gen(function*() {
        const results = yield* Effect.forEach(seeds(budget(10, 1)), (seed) => outage(processes, seed, {}))
        assert.closeTo(mean(results.map(served)), share, 3)
        for (const result of results) assert.isAtMost(recovered(result), seconds)
      }))
  }

  it.live("is not over within the run without one", () =>
    Effect.gen(function*() {
      const result = yield* withQuotas
      assert.isBelow(served(result), 15)
      assert.isAbove(recovered(result), 160)
    }))

  // With the quota alone and 10 processes, single runs differ by 6 points (standard deviation), so 30 seeds are too few, and 3
  // are off by up to 7.
  for (
    const [processes, share, many, few, off] of firstOf(
      [[1, 33, 10, 2, 3], [100, 11, 5, 1, 3], [10, 22, 60, 3, 7]] as const,
      2
    )
  ) {
    it.live(
      `with the quota alone in each of ${processes} processes ${share} % are served`,
      () =>
        Effect.gen(function*() {
          const results = yield* Effect.forEach(seeds(budget(many, few)), (seed) =>
            processes === 100 && seed === 1 ? withQuotas : outage(processes, seed))
          assert.closeTo(mean(results.map(served)), share, budget(3, off))
        })
    )
  }

  // Source of the figures: as above. The published limits are as good as ours with one process, and worth nothing with many.
  for (
    const [published, processes, share, many] of firstOf(
      [
        ["aimd", 10, 92, 10],
        ["gradient2", 1, 99, 3],
        ["vegas", 10, 99, 3],
        ["aimd", 1, 99, 3],
        ["aimd", 100, 11, 3],
        ["gradient2", 100, 11, 3]
      ] as const,
      3
    )
  ) {
    it.live(
      `with Netflix's ${published} in each of ${processes} processes ${share} % are served`,
      () =>
        Effect.gen(function*() {
          const results = yield* Effect.forEach(
            seeds(budget(many, 1)),
            (seed) => outage(processes, seed, { published })
          )
          assert.closeTo(mean(results.map(served)), share, 3)
        })
    )
  }

  it.live("is not over within the run with a fixed limit that is too high for this many processes", () =>
    Effect.gen(function*() {
      assert.isBelow(served(yield* outage(100, 1, { limit: 20 })), 15)
    }))
})

it.effect("refuses a limit whose options do not go together, by its path", () =>
  Effect.gen(function*() {
    for (
      const [concurrency, path] of [
        [{ minimum: 5, maximum: 4 }, /concurrency\.maximum: must be/],
        [{ limit: 5, initial: 4 }, /concurrency\.initial: cannot be combined with limit/],
        [{ published: "vegas", decrease: 0.5 }, /concurrency\.decrease: cannot be combined with published/],
        [{ published: "vegas", limit: 5 }, /concurrency\.published: cannot be combined with limit/]
      ] as const
    ) {
      const error = yield* Effect.flip(simulateInput({
        name: "refused",
        duration: "1 second",
        fleets: [{ name: "fleet", to: "service", rate: 1, policy: { steps, concurrency } }],
        services: [{ name: "service", capacity: 1 }]
      }))
      assert.instanceOf(error, InvalidScenario)
      assert.match(error.message, path)
    }
  }))

it("says which limit a policy has", () => {
  const labelOf = (concurrency: object) => resolve({ steps: [{ fixed: { delay: 5 } }], concurrency }).label
  assert.deepStrictEqual([{}, { limit: 50 }, { published: "aimd" }, { decrease: 0.5 }].map(labelOf), [
    "fixed 5, concurrency limit",
    "fixed 5, concurrency limit 50",
    "fixed 5, concurrency limit aimd",
    "fixed 5, concurrency limit"
  ])
})
