/** How long sends took, over a window of time. */
import { assert, describe, it } from "@effect/vitest"
import { Latencies } from "../../src/hedge/internal/latencyWindow.ts"
import * as Bins from "../../src/internal/math/latencyBins.ts"
import { Window } from "../../src/internal/math/slidingWindow.ts"

describe("Latencies", () => {
  it("computes a quantile ten times per third of the window, and again when a third begins", () => {
    const latencies = new Latencies(30_000)
    const slowest = (nowMillis: number) => Math.round(latencies.quantile(1, 1, nowMillis)!)
    latencies.record(64, 0)
    assert.strictEqual(slowest(0), 64)
    latencies.record(128, 0)
    assert.deepStrictEqual([slowest(0), slowest(999), slowest(1000)], [64, 64, 128])
    latencies.record(256, 1500)
    assert.deepStrictEqual([slowest(1999), slowest(2000)], [128, 256])
    assert.strictEqual(slowest(9500), 256)
    latencies.record(512, 10_000)
    assert.strictEqual(slowest(10_000), 512)
  })

  it("forgets what is older than the window, a third at a time", () => {
    const latencies = new Latencies(30_000)
    for (const [millis, at] of [[64, 0], [32, 15_000], [16, 25_000]] as const) latencies.record(millis, at)
    const slowest = (nowMillis: number) => Math.round(latencies.quantile(1, 0, nowMillis) ?? 0)
    assert.deepStrictEqual([29_999, 30_000, 40_000, 50_000].map(slowest), [64, 32, 16, 0])
    assert.strictEqual(latencies.count(50_000), 0)
  })

  it("knows nothing from too few sends, or from none", () => {
    const latencies = new Latencies(30_000)
    assert.isUndefined(latencies.quantile(0.5, 0, 0))
    latencies.record(64, 0)
    assert.isUndefined(latencies.quantile(0.5, 2, 5000))
    assert.closeTo(latencies.quantile(0.5, 1, 5000)!, 64, 1e-9)
  })
})

describe("the bins", () => {
  it("law: a quantile is exact to half a bin, and never below a sixteenth of a millisecond", () => {
    const half = 2 ** (0.5 / 64)
    for (const quantile of [0.001, 0.25, 0.5, 0.95, 0.999, 1]) {
      for (const count of [1, 2, 3, 20, 1000]) {
        const values = Array.from({ length: count }, (_, place) => 0.01 * 1.013 ** (place * 7919 % count))
        const counts = new Map<number, number>()
        for (const value of values) counts.set(Bins.binOf(value), (counts.get(Bins.binOf(value)) ?? 0) + 1)
        const exact = values.sort((a, b) => a - b)[Math.max(1, Math.ceil(quantile * count - 1e-9)) - 1]!
        const found = Bins.quantileOf(Bins.cumulated([counts]), quantile)!
        const expected = Math.max(1 / 16, exact)
        assert.isTrue(found <= expected * half * 1.000001 && found >= expected / half / 1.000001)
      }
    }
    assert.isUndefined(Bins.quantileOf([], 0.5))
  })
})

describe("a window", () => {
  const begun = (drifts: boolean, times: ReadonlyArray<number>) => {
    let made = 0
    const window = new Window({ millis: 1000, slice: () => ({ id: made++ }), drifts }, 0)
    return times.map((time) => window.at(time).id)
  }

  it("has slices that begin where the last one ended, or when they are first used", () => {
    const times = [0, 99, 100, 190, 200, 350, 420, 449, 450, 90]
    assert.deepStrictEqual(begun(false, times), [0, 0, 1, 1, 2, 3, 4, 4, 4, 4])
    assert.deepStrictEqual(begun(true, times), [0, 0, 1, 1, 2, 3, 3, 3, 4, 4])
  })

  it("drops each slice once, the oldest first, and all of them after the whole window", () => {
    const dropped: Array<number> = []
    let made = 0
    const options = { millis: 300, count: 3, slice: () => made++, dropped: (slice: number) => dropped.push(slice) }
    const window = new Window(options, 0)
    for (const time of [100, 200, 299]) window.at(time)
    assert.deepStrictEqual([dropped, window.slices], [[], [0, 1, 2]])
    window.at(300)
    assert.deepStrictEqual([dropped, window.slices], [[0], [1, 2, 3]])
    window.at(100_000)
    assert.deepStrictEqual([dropped, window.slices.length, made], [[0, 1, 2, 3], 3, 7])
  })
})
