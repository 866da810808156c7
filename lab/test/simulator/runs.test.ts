import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { recoveryFrom, runSummaryOf } from "../../src/simulator/runSummary.ts"
import { spreadOf } from "../../src/simulator/spread.ts"
import { inputOf } from "../utils/simulate.ts"

describe("spreadOf", () => {
  it("is mean, median and the range from 5 to 95 %, between the two nearest", () => {
    assert.deepStrictEqual(spreadOf(Array.from({ length: 21 }, (_, n) => n * n)), {
      mean: 136 + 2 / 3,
      low: 1,
      median: 100,
      high: 361,
      of: 21
    })
    assert.deepStrictEqual(spreadOf([3, null, undefined, 1]), { mean: 2, low: 1.1, median: 2, high: 2.9, of: 2 })
    assert.isUndefined(spreadOf([null]))
  })
})

describe("recoveryFrom", () => {
  const none: ReadonlyArray<readonly [from: string, to: string]> = []
  const one = [["20s", "40s"]] as const
  const two = [["20s", "40s"], ["60s", "80s"]] as const
  for (
    const [what, outages, illSeconds, after] of [
      ["the end of an outage", one, [21, 44], 5000],
      ["an outage that was endured before it ended: at its end", one, [21, 36], 0],
      ["an outage whose last second went well", one, [38], 0],
      ["the second of two", two, [25, 84], 5000],
      ["the second of two, endured before it ended", two, [25, 64], 0],
      ["the first of two, if the second did no harm", two, [25, 44], 5000],
      ["what went wrong before any outage", one, [3], 0],
      ["what went wrong without an outage", none, [3], undefined]
    ] as const
  ) {
    it.effect(`counts from ${what}`, () =>
      Effect.gen(function*() {
        const scenario = yield* Simulator.decode(inputOf("outage", {
          service: { outages: outages.map(([from, to]) => ({ kind: "fail", from, to })) }
        }))
        const ended = Array.from({ length: 100 }, (_, second) => {
          const isIll = illSeconds.some((ill) => ill === second)
          return { fromMillis: second * 1000, succeeded: isIll ? 50 : 100, failed: isIll ? 50 : 0 }
        })
        assert.deepStrictEqual(recoveryFrom(scenario, ended), {
          kind: "recovered",
          atMillis: (illSeconds.at(-1)! + 1) * 1000,
          afterMillis: after
        })
      }))
  }
})

describe("a run that ends within a bucket", () => {
  it.live("is not judged by the few calls of its last moment", () =>
    Effect.gen(function*() {
      const calls = [...Array.from({ length: 20 }, () => 40), 4]
      const arrivals = { bucket: "1s", calls }
      const scenario = yield* Simulator.decode({
        name: "log",
        duration: "21s",
        fleets: [{ name: "app", to: "db", arrivals, timeout: "500ms", policy: "none" }],
        services: [{ name: "db", failureRate: 0.03 }]
      })
      const results = yield* Simulator.runs(scenario, { runs: 30 })
      const failedLast = results.filter(({ clients }) => clients[0]!.series[20]!.failed > 0)
      assert.isAbove(failedLast.length, 0)
      for (const result of failedLast) assert.notStrictEqual(runSummaryOf(result).recovery.kind, "ill at the end")
    }))

  it.live("is judged by them too if they hang", () =>
    Effect.gen(function*() {
      const result = yield* Simulator.run(
        yield* Simulator.decode({
          name: "hanging",
          duration: "10s",
          fleets: [{
            name: "app",
            to: "db",
            arrivals: { bucket: "1s", calls: [...Array.from({ length: 9 }, () => 40), 4] },
            policy: "none"
          }],
          services: [{ name: "db", outages: [{ kind: "hold", from: "8s", to: "1 hour" }] }]
        })
      )
      assert.strictEqual(runSummaryOf(result).recovery.kind, "ill at the end")
    }))
})

const outage = (seed: number, rate: number, policy: Simulator.Policy) =>
  Effect.map(
    Simulator.decode(inputOf("outage", { scenario: { seed, duration: "60 seconds" }, fleet: { rate } })),
    (scenario) => Simulator.withPolicy(scenario, policy)
  )

describe("Simulator.runs", () => {
  it.live("uses the seed of the scenario and those after it, wherever each is run", () =>
    Effect.gen(function*() {
      const scenario = yield* outage(5, 100, "none")
      const here = yield* Simulator.runs(scenario, { runs: 3 })
      assert.deepStrictEqual(here.map(({ scenario }) => scenario.seed), [5, 6, 7])
      const there = yield* Simulator.runs(scenario, {
        runs: 3,
        concurrency: 3,
        run: (seeded) => Effect.delay(Simulator.run(seeded), (8 - seeded.seed) * 10)
      })
      assert.deepStrictEqual(there.map(({ traceHash }) => traceHash), here.map(({ traceHash }) => traceHash))
      assert.strictEqual(here[0]!.traceHash, (yield* Simulator.run(scenario)).traceHash)
    }))

  it.live("counts in how many of them the calls recovered, and when", () =>
    Effect.gen(function*() {
      const few = Simulator.summarize(yield* Simulator.runs(yield* outage(1, 100, "none"), { runs: 2 }))
      assert.deepStrictEqual([few.recovery.runs, few.recovery.of], [2, 2])
      // 1,000 held requests at 300 a second, while 100 come: five seconds.
      assert.closeTo(few.recovery.afterMillis!.mean, 5000, 1500)
      const many = Simulator.summarize(yield* Simulator.runs(yield* outage(1, 250, "naive"), { runs: 2 }))
      assert.deepStrictEqual([many.recovery.runs, many.recovery.of, many.recovery.afterMillis], [0, 2, undefined])
    }))

  it.live("distinguishes policies seed by seed, more sharply than their ranges do", () =>
    Effect.gen(function*() {
      const none = yield* Simulator.runs(yield* outage(1, 150, "none"), { runs: 6 })
      const naive = yield* Simulator.runs(yield* outage(1, 150, "awsStandard"), { runs: 6 })
      const { succeeded } = Simulator.difference(none, naive)
      const [a, b] = [Simulator.summarize(none).succeeded!, Simulator.summarize(naive).succeeded!]
      assert.closeTo(succeeded!.mean, b.mean - a.mean, 1e-12)
      assert.isBelow(succeeded!.high - succeeded!.low, a.high - a.low + b.high - b.low)
    }))

  it.live("compares with what was usual before the outage: a service that always fails a fifth recovers too", () =>
    Effect.gen(function*() {
      const scenario = yield* Simulator.decode(
        inputOf("outage", {
          scenario: { duration: "60 seconds" },
          fleet: { rate: 100, policy: "none" },
          service: { failureRate: 0.2 }
        })
      )
      assert.strictEqual(Simulator.summarize(yield* Simulator.runs(scenario, { runs: 2 })).recovery.runs, 2)
    }))
})
