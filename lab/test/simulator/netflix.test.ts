import { assert, describe, it } from "@effect/vitest"
import type { Rule, Sample } from "effect-retry/ConcurrencyLimiter"
import { aimd, averaged, gradient2, nothingMeasured, vegas } from "../../src/simulator/netflix.ts"

type Row = readonly [inFlight: number, rttMillis: number, dropped: boolean]

const sampleOf = ([inFlight, rttMillis, dropped]: Row): Sample => ({
  outcome: dropped ? "timeout" : "success",
  inFlight,
  rttMillis,
  overtaken: false
})

/** The limit after each sample. */
const limitsOf = <State>(rule: Rule<State>, rows: ReadonlyArray<Row>): ReadonlyArray<number> => {
  let state = rule.initial
  return rows.map((row) => {
    state = rule.next(state, sampleOf(row))
    return rule.limit(state)
  })
}

// Source of the figures: Netflix/concurrency-limits 78a74b98, the tests of AIMDLimit, VegasLimit and
// ExpAvgMeasurement, unless said.
describe("the AIMD limit of Netflix", () => {
  for (
    const [what, options, row, limit] of [
      ["grows by one", {}, [10, 1, false], 21],
      ["falls by a tenth", { initial: 30 }, [0, 0, true], 27],
      ["does not pass its maximum", { initial: 21, min: 0, max: 21 }, [10, 1, false], 21]
    ] as const
  ) {
    it(what, () => assert.deepStrictEqual(limitsOf(aimd(options), [row]), [limit]))
  }

  // Computed from the rule by another implementation that passes the tests above.
  it("counts a slow send as a drop, grows while half is used, and is cut for each drop", () =>
    assert.deepStrictEqual(
      limitsOf(aimd({ min: 10 }), [
        [20, 100, false],
        [20, 100, false],
        [20, 100, false],
        [20, 6000, false],
        [9, 100, false],
        [11, 100, false],
        [30, 100, true],
        [30, 100, true]
      ]),
      [21, 22, 23, 20, 20, 21, 18, 16]
    ))

  it("is never below 20 by default", () =>
    assert.deepStrictEqual(limitsOf(aimd(), [[20, 100, true], [20, 100, true]]), [20, 20]))
})

describe("the Vegas limit of Netflix", () => {
  const half = (limit: number) => limit / 2
  const cases: ReadonlyArray<
    readonly [
      what: string,
      options: Parameters<typeof vegas>[0],
      rows: ReadonlyArray<Row>,
      limits: ReadonlyArray<number>
    ]
  > = [
    ["grows by six logarithms at a large limit", { initial: 10_000, max: 20_000 }, [
      [5000, 10_000, false],
      [6000, 10_000, false]
    ], [10_000, 10_024]],
    ["grows by beta while nothing waits", { initial: 10, max: 20, alpha: 3, beta: 6 }, [
      [10, 10, false],
      [11, 10, false]
    ], [10, 16]],
    ["shrinks when more than beta wait", { initial: 10, max: 20, alpha: 3, beta: 6 }, [
      [10, 10, false],
      [11, 50, false]
    ], [10, 9]],
    ["stays between alpha and beta", { initial: 10, max: 20, alpha: 3, beta: 6 }, [
      [10, 10, false],
      [14, 14, false]
    ], [10, 10]],
    ["is smoothed", { initial: 100, max: 200, decrease: half, smoothing: 0.5 }, [
      [100, 10, false],
      [100, 20, false],
      [100, 20, false]
    ], [100, 75, 56]],
    ["is not smoothed by default", { initial: 100, max: 200, decrease: half }, [
      [100, 10, false],
      [100, 20, false],
      [100, 20, false]
    ], [100, 50, 25]]
  ]
  for (const [what, options, rows, limits] of cases) {
    it(what, () => assert.deepStrictEqual(limitsOf(vegas(options), rows), limits))
  }

  it("shrinks with each drop, to 1 at least", () => {
    const rows = Array.from({ length: 40 }, (): Row => [20, 100, true])
    const limits = limitsOf(vegas(), rows)
    assert.deepStrictEqual([limits[0], limits[1], limits.at(-1)], [20, 19, 1])
  })

  it("measures the least time again after 15 to 30 samples per unit of its limit", () => {
    const rule = vegas({ initial: 4, max: 4 })
    let state = rule.next(rule.initial, sampleOf([1, 10, false]))
    let samples = 1
    while (state.leastMillis === 10 && samples < 1000) {
      state = rule.next(state, sampleOf([1, 50, false]))
      samples++
    }
    assert.strictEqual(state.leastMillis, 50)
    assert.isTrue(samples >= 60 && samples <= 120, `${samples}`)
  })
})

describe("the Gradient2 limit of Netflix", () => {
  it("averages as ExpAvgMeasurement does", () => {
    let mean = nothingMeasured
    const values = Array.from({ length: 10 }, (_, index) => {
      mean = averaged(mean, 10 + index, 100, 10)
      return mean.value
    })
    assert.deepStrictEqual(values, [10, 10.5, 11, 11.5, 12, 12.5, 13, 13.5, 14, 14.5])
    assert.approximately(averaged(mean, 100, 100, 10).value, 16.2, 0.1)
  })

  // Computed from the rule by another implementation that passes the test above.
  it("follows the gradient of the time that sends take", () => {
    const rule = gradient2()
    let state = rule.initial
    const rows = [
      [100, 20, 1, 20, 20.8, 100],
      [100, 40, 9, 28, 28, 100],
      [100, 100, 40, 60, 60, 100],
      [150, 100, 10, 68, 68, 101.639196],
      [200, 100, 10, 49, 49.557847, 104.86385],
      [400, 150, 10, 22, 22.490325, 114.539573],
      [100, 150, 20, 38, 38.490325, 113.601871],
      [50, 10, 5, 38, 38.490325, 96.568218],
      [50, 150, 20, 54, 54.490325, 93.56489]
    ] as const
    for (const [rttMillis, inFlight, times, limit, estimated, long] of rows) {
      for (let time = 0; time < times; time++) state = rule.next(state, sampleOf([inFlight, rttMillis, false]))
      assert.strictEqual(rule.limit(state), limit)
      assert.approximately(state.estimated, estimated, 1e-5)
      assert.approximately(state.long.value, long, 1e-5)
    }
  })

  it("does not see drops", () =>
    assert.deepStrictEqual(limitsOf(gradient2(), [[20, 100, true]]), limitsOf(gradient2(), [[20, 100, false]])))
})
