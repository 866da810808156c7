/** The arithmetic of the adaptive concurrency limit, to the last field. */
import { assert, describe, it } from "@effect/vitest"
import * as Concurrency from "../../src/internal/math/concurrency.ts"

const config: Concurrency.ConcurrencyConfig = {
  minimum: 0.1,
  maximum: 100,
  initial: 10,
  increase: 0.25,
  decrease: 0.7,
  usedShare: 0.5,
  minPauseMillis: 20,
  maxPauseMillis: 1000
}

const state = { limit: 10, drops: 0, meanMillis: 0, dropMillis: 0 }
const sample = { outcome: "success", inFlight: 1, overtaken: false, rttMillis: undefined } as const

type Row = readonly [
  what: string,
  before: Partial<Concurrency.Concurrency>,
  sample: Partial<Concurrency.ConcurrencySample>,
  after: Partial<Concurrency.Concurrency>
]

const rows: ReadonlyArray<Row> = [
  ["the first timed success is the mean", {}, { rttMillis: 80 }, { meanMillis: 80 }],
  ["a later one moves it by a tenth", { meanMillis: 80 }, { rttMillis: 180 }, { meanMillis: 90 }],
  ["a faster one too", { meanMillis: 80 }, { rttMillis: 30 }, { meanMillis: 75 }],
  ["an untimed one leaves it", { meanMillis: 80 }, {}, { meanMillis: 80 }],
  ["a success ends a row of drops, also if nothing else changes", { drops: 2 }, {}, { drops: 0 }],
  ["a success keeps the time of a drop", { dropMillis: 7, drops: 1 }, { inFlight: 5 }, { limit: 10.25, drops: 0 }],
  ["drops are counted", { drops: 2 }, { outcome: "drop", inFlight: 4 }, { limit: 2.8, drops: 3 }],
  ["a drop that a cut has overtaken changes nothing", { drops: 2 }, { outcome: "drop", overtaken: true }, {}],
  ["a timed drop is kept", { meanMillis: 5 }, { outcome: "drop", inFlight: 4, rttMillis: 90 }, {
    limit: 2.8,
    drops: 1,
    dropMillis: 90
  }],
  ["an untimed drop keeps the time before", { dropMillis: 9 }, { outcome: "drop", inFlight: 4 }, {
    limit: 2.8,
    drops: 1
  }],
  ["a limit at its maximum stays there", { limit: 100, meanMillis: 5 }, { inFlight: 99, rttMillis: 5 }, {}]
]

describe("the adaptive concurrency limit", () => {
  it("begins with its initial limit, and knows nothing", () => {
    assert.deepStrictEqual(Concurrency.initial(config), state)
  })

  for (const [what, before, given, after] of rows) {
    it(what, () => {
      const from = { ...state, ...before }
      const to = Concurrency.next(from, config, { ...sample, ...given })
      assert.closeTo(to.limit, after.limit ?? from.limit, 1e-9)
      assert.closeTo(to.meanMillis, after.meanMillis ?? from.meanMillis, 1e-9)
      assert.deepStrictEqual({ ...to, limit: 0, meanMillis: 0 }, { ...from, ...after, limit: 0, meanMillis: 0 })
    })
  }

  it("what changes nothing makes no new state", () => {
    for (const meanMillis of [0, 40]) {
      const idle = { ...state, meanMillis }
      assert.strictEqual(Concurrency.next(idle, config, sample), idle)
      assert.strictEqual(Concurrency.next(idle, config, { ...sample, rttMillis: meanMillis }), idle)
    }
  })

  it("pauses only below one: for a round trip, more the lower the limit", () => {
    const pause = (limit: number, of: Partial<Concurrency.Concurrency> = {}, random = 0.5) =>
      Concurrency.pauseMillis({ ...state, limit, ...of }, config, random)
    assert.deepStrictEqual([pause(2), pause(1), pause(0.5), pause(0.25)], [0, 0, 20, 60])
    assert.deepStrictEqual([pause(0.5, { meanMillis: 70 }), pause(0.5, { dropMillis: 90 })], [70, 90])
    assert.deepStrictEqual([pause(0.5, { meanMillis: 7000 }), pause(0.5, {}, 0), pause(0.5, {}, 1)], [1000, 10, 30])
  })
})
