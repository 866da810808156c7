/** The arithmetic of the adaptive concurrency limit, to the last field. */
import { assert, describe, it } from "@effect/vitest"
import * as Concurrency from "../../src/internal/math/concurrencyLimit.ts"

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

const state = { limit: 10, drops: 0, meanMillis: 0, dropMillis: 0, timeouts: 0, isStray: false, timeoutMillis: 0 }
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
  ["drops are counted", { drops: 2 }, { outcome: "refusal", inFlight: 4 }, { limit: 2.8, drops: 3 }],
  ["a drop that a cut has overtaken changes nothing", { drops: 2 }, { outcome: "refusal", overtaken: true }, {}],
  ["a timed drop is kept", { meanMillis: 5 }, { outcome: "refusal", inFlight: 4, rttMillis: 90 }, {
    limit: 2.8,
    drops: 1,
    dropMillis: 90
  }],
  ["an untimed drop keeps the time before", { dropMillis: 9 }, { outcome: "refusal", inFlight: 4 }, {
    limit: 2.8,
    drops: 1
  }],
  ["an untimed timeout is known, and not how long it was", {}, { outcome: "timeout", inFlight: 4 }, {
    limit: 2.8,
    drops: 1,
    timeouts: 1,
    timeoutMillis: Infinity
  }],
  ["one that took no longer than successes do is not their timeout", { meanMillis: 90, timeoutMillis: 400 }, {
    outcome: "timeout",
    inFlight: 4,
    rttMillis: 90
  }, { limit: 2.8, drops: 1, dropMillis: 90, timeouts: 1 }],
  ["nor if none was known", { meanMillis: 90 }, { outcome: "timeout", inFlight: 4, rttMillis: 90 }, {
    limit: 2.8,
    drops: 1,
    dropMillis: 90,
    timeouts: 1,
    timeoutMillis: Infinity
  }],
  ["one that took longer is", { meanMillis: 90, timeoutMillis: 400 }, {
    outcome: "timeout",
    inFlight: 4,
    rttMillis: 91
  }, { limit: 2.8, drops: 1, dropMillis: 91, timeouts: 1, timeoutMillis: 91 }],
  ["and is forgotten when successes take longer", { meanMillis: 90, timeoutMillis: 99 }, { rttMillis: 180 }, {
    meanMillis: 99,
    timeoutMillis: Infinity
  }],
  ["a timed one is the timeout", { timeoutMillis: Infinity }, { outcome: "timeout", inFlight: 4, rttMillis: 90 }, {
    limit: 2.8,
    drops: 1,
    dropMillis: 90,
    timeouts: 1,
    timeoutMillis: 90
  }],
  ["a later one that is not timed keeps it", { timeoutMillis: 90 }, { outcome: "timeout", inFlight: 4 }, {
    limit: 2.8,
    drops: 1,
    timeouts: 1
  }],
  ["a refusal ends a row of timeouts, and is none", { timeouts: 2, timeoutMillis: 90 }, {
    outcome: "refusal",
    inFlight: 4,
    rttMillis: 5
  }, { limit: 2.8, drops: 1, dropMillis: 5, timeouts: 0 }],
  ["a success after one timeout: it was by chance", { drops: 1, timeouts: 1 }, {}, {
    drops: 0,
    timeouts: 0,
    isStray: true
  }],
  ["a success after two: they were not", { drops: 2, timeouts: 2, isStray: true }, {}, {
    drops: 0,
    timeouts: 0,
    isStray: false
  }],
  ["another success says nothing new", { drops: 1, isStray: true }, {}, { drops: 0 }],
  ["fast successes grow it, up to half of the timeout", { meanMillis: 50, timeoutMillis: 100 }, { inFlight: 5 }, {
    limit: 10.25
  }],
  ["slower ones grow it less", { meanMillis: 57.5, timeoutMillis: 100 }, { inFlight: 5 }, { limit: 10.125 }],
  [
    "as their mean is, not as the last one was",
    { meanMillis: 50, timeoutMillis: 100 },
    { inFlight: 5, rttMillis: 95 },
    {
      limit: 10.175,
      meanMillis: 54.5
    }
  ],
  ["from 0.65 of it on they grow it by a tenth in each round trip", { meanMillis: 65, timeoutMillis: 100 }, {
    inFlight: 5
  }, { limit: 10.01 }],
  ["and never cut it", { meanMillis: 99, timeoutMillis: 100 }, { inFlight: 10 }, { limit: 10.01 }],
  ["a low limit grows more", { limit: 1, meanMillis: 99, timeoutMillis: 100 }, {}, { limit: 1.1 }],
  ["the mean grows it fully while the timeout is unknown", { meanMillis: 5000, timeoutMillis: Infinity }, {
    inFlight: 5
  }, { limit: 10.25 }],
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

  it("admits retries until a timeout, or a second one where single ones are by chance", () => {
    const admits = (of: Partial<Concurrency.Concurrency>, sinceDropMillis = 29_999) =>
      Concurrency.admitsRetries({ ...state, ...of }, sinceDropMillis)
    assert.deepStrictEqual([0, 1, 2].map((timeouts) => admits({ timeouts })), [true, false, false])
    assert.deepStrictEqual([0, 1, 2].map((timeouts) => admits({ timeouts, isStray: true })), [true, true, false])
    assert.isTrue(admits({ timeouts: 2 }, 30_000))
  })

  it("an answer that is neither ends a row of timeouts, and changes nothing else", () => {
    assert.strictEqual(Concurrency.answered(state), state)
    const row = (timeouts: number, isStray: boolean) => ({ ...state, drops: 3, timeoutMillis: 9, timeouts, isStray })
    assert.deepStrictEqual(Concurrency.answered(row(1, false)), row(0, true))
    assert.deepStrictEqual(Concurrency.answered(row(2, true)), row(0, false))
  })

  it("waits for a quarter of the timeout, and at most 250 ms", () => {
    const wait = (timeoutMillis: number) => Concurrency.maxWaitMillis({ ...state, timeoutMillis })
    assert.deepStrictEqual([0, 100, 999, 1001, Infinity].map(wait), [250, 25, 249.75, 250, 250])
  })

  it("pauses only below one: for a round trip, more the lower the limit", () => {
    const pause = (limit: number, of: Partial<Concurrency.Concurrency> = {}, random = 0.5) =>
      Concurrency.pauseMillis({ ...state, limit, ...of }, config, random)
    assert.deepStrictEqual([pause(2), pause(1), pause(0.5), pause(0.25)], [0, 0, 20, 60])
    assert.deepStrictEqual([pause(0.5, { meanMillis: 70 }), pause(0.5, { dropMillis: 90 })], [70, 90])
    assert.deepStrictEqual([pause(0.5, { meanMillis: 7000 }), pause(0.5, {}, 0), pause(0.5, {}, 1)], [1000, 10, 30])
  })
})
