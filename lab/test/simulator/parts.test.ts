import { assert, describe, it } from "@effect/vitest"
import { RetryInfo, type RetryQuotaStore, type SendGate } from "effect-retry"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { type Actor, Agenda } from "../../src/simulator/agenda.ts"
import { Arrivals } from "../../src/simulator/arrivals.ts"
import { type BudgetOptions, storeOf } from "../../src/simulator/budget.ts"
import { Chance } from "../../src/simulator/chance.ts"
import { Histogram } from "../../src/simulator/histogram.ts"
import { Lane } from "../../src/simulator/lane.ts"
import { Queue } from "../../src/simulator/queue.ts"
import { VirtualTime } from "../../src/simulator/time.ts"
import { ended, failed, sent, Trace } from "../../src/simulator/trace.ts"
import { sampler } from "../../src/simulator/units.ts"

const draws = <A>(count: number, draw: () => A) => Array.from({ length: count }, draw)
const mean = (values: ReadonlyArray<number>) => values.reduce((sum, value) => sum + value, 0) / values.length

describe("Agenda", () => {
  class Note implements Actor {
    readonly told: Array<number>
    constructor(told: Array<number>) {
      this.told = told
    }
    act(what: number): void {
      this.told.push(what)
    }
  }

  for (const spread of [20, 3000, 1e6]) {
    it(`gives out by time, then by order, what is not canceled, over ${spread} ms`, () => {
      const chance = new Chance(1, "agenda")
      for (let round = 0; round < 60; round++) {
        const agenda = new Agenda()
        const lane = new Lane(agenda, 254)
        const told: Array<number> = []
        let expected: Array<{ readonly at: number; readonly order: number; readonly what: number }> = []
        let now = 0
        const plan = () => {
          const at = now + (chance.below(3) === 0 ? chance.below(spread) : chance.nextDoubleUnsafe() * spread)
          const what = chance.below(250)
          const order = agenda.nextOrder()
          const place = agenda.add(at, order, new Note(told), what)
          if (chance.nextDoubleUnsafe() < 0.3) agenda.cancel(place)
          else expected.push({ at, order, what })
        }
        const wait = () => {
          const ticket = lane.add(now + 500, new Note(told))
          const order = agenda.nextOrder() - 0.5
          if (chance.nextDoubleUnsafe() < 0.8) lane.cancel(ticket)
          else expected.push({ at: now + 500, order, what: 254 })
        }
        // From an agenda that plans little to one that does not, and some that become one on the way.
        for (let n = 0; n < 4 * round; n++) (chance.below(2) === 0 ? plan : wait)()
        while (true) {
          const place = agenda.peek()
          if (place < 0) break
          now = agenda.atMillis(place)
          agenda.act(place)
          if (told.length < 6 * round && chance.below(2) === 0) plan()
          if (told.length < 6 * round && chance.below(3) === 0) wait()
          expected = expected.sort((a, b) => a.at - b.at || a.order - b.order)
          assert.strictEqual(told.at(-1), expected[told.length - 1]!.what)
        }
        assert.strictEqual(told.length, expected.length)
        assert.strictEqual(agenda.size, 0)
      }
    })
  }

  it("keeps no room for what is canceled", () => {
    const agenda = new Agenda()
    const told: Array<number> = []
    agenda.add(5, agenda.nextOrder(), new Note(told), 1)
    for (let n = 0; n < 1e6; n++) agenda.cancel(agenda.add(1e6 + n, agenda.nextOrder(), new Note(told), 2))
    assert.isBelow(Reflect.get(agenda, "used"), 10_000)
    agenda.act(agenda.peek())
    assert.deepStrictEqual([told, agenda.peek(), agenda.size], [[1], -1, 0])
  })
})

describe("Queue", () => {
  it("is first in, first out, however many have passed through it", () => {
    const queue = new Queue<number>()
    let next = 0
    for (let item = 0; item < 10_000; item++) {
      queue.push(item)
      if (item % 3 > 0) assert.strictEqual(queue.shift(), next++)
    }
    while (queue.size > 0) assert.strictEqual(queue.shift(), next++)
    assert.deepStrictEqual([next, queue.shift()], [10_000, undefined])
  })
})

describe("Chance", () => {
  it("is uniform, and different for every name and seed", () => {
    const values = draws(20_000, ((chance) => () => chance.nextDoubleUnsafe())(new Chance(1, "a")))
    assert.isTrue(values.every((value) => value >= 0 && value < 1))
    assert.closeTo(mean(values), 0.5, 0.01)
    const first = (seed: number, name: string) => new Chance(seed, name).nextDoubleUnsafe()
    const firsts = draws(100, ((n) => () => first(n++, "a"))(0)).concat([first(1, "b"), first(1, "c")])
    assert.strictEqual(new Set(firsts).size, firsts.length)
    assert.closeTo(mean(firsts), 0.5, 0.1)
  })

  for (
    const [distribution, expected, deviation] of [
      ["20 millis", 20, 0],
      [{ exponential: 20 }, 20, 20],
      [{ normal: { mean: 20, deviation: 4 } }, 20, 4],
      [{ uniform: { from: 10, to: 30 } }, 20, 20 / Math.sqrt(12)],
      [{ lognormal: { median: 20, sigma: 0.5 } }, 20 * Math.exp(0.125), 20 * Math.exp(0.125) * 0.533],
      [{ quantiles: [[0, 10], [1, 30]] }, 20, 20 / Math.sqrt(12)],
      [{ quantiles: [[0.25, 10], [0.75, 30]] }, 20, Math.sqrt(200 / 3)]
    ] as const
  ) {
    it(`draws ${JSON.stringify(distribution)} with its mean and deviation`, () => {
      const chance = new Chance(1, "draws")
      const draw = sampler(distribution)!
      const values = draws(20_000, () => draw(chance))
      const found = mean(values)
      assert.closeTo(found, expected, expected * 0.02)
      assert.closeTo(Math.sqrt(mean(values.map((value) => (value - found) ** 2))), deviation, expected * 0.04)
    })
  }

  it("draws with the given quantiles", () => {
    const chance = new Chance(1, "quantiles")
    const draw = sampler({ p50: "12ms", p99: "80ms" })!
    const sorted = draws(50_000, () => draw(chance)).sort((a, b) => a - b)
    assert.closeTo(sorted[25_000]!, 12, 0.24)
    assert.closeTo(sorted[49_500]!, 80, 4)
  })

  it("draws nothing where a duration is always 0", () => assert.isUndefined(sampler(0)))
})

describe("Arrivals", () => {
  const times = (points: ConstructorParameters<typeof Arrivals>[0]) => {
    const arrivals = new Arrivals(points, () => 1, 0)
    const found: Array<number> = []
    for (let at = arrivals.next(); at !== Infinity && found.length < 1000; at = arrivals.next()) found.push(at)
    return found
  }

  it("come evenly at a rate that stays", () => {
    const found = times([{ atMillis: 0, perSecond: 4, ramp: false }]).slice(0, 4)
    assert.deepStrictEqual(found, [250, 500, 750, 1000])
  })

  it("follow steps, and none comes while the rate is 0", () => {
    const found = times([
      { atMillis: 1000, perSecond: 2, ramp: false },
      { atMillis: 3000, perSecond: 0, ramp: false },
      { atMillis: 9000, perSecond: 4, ramp: false },
      { atMillis: 10_000, perSecond: 0, ramp: false }
    ])
    assert.deepStrictEqual(found, [1500, 2000, 2500, 3000, 9250, 9500, 9750, 10_000])
  })

  it("follow ramps: as many as the area under them", () => {
    const found = times([
      { atMillis: 0, perSecond: 0, ramp: false },
      { atMillis: 10_000, perSecond: 20, ramp: true },
      { atMillis: 20_000, perSecond: 0, ramp: true }
    ])
    assert.isTrue(Math.abs(found.length - 200) <= 1, `${found.length}`)
    assert.closeTo(found[24]!, 5000, 1)
    assert.closeTo(found[99]!, 10_000, 1)
    assert.closeTo(found[174]!, 15_000, 1)
  })
})

describe("Histogram", () => {
  it("is off by at most 1.6 %, from a hundredth of a millisecond to a year", () => {
    const chance = new Chance(1, "histogram")
    for (const scale of [0.02, 1, 300, 1e6, 3e9]) {
      const histogram = new Histogram()
      const values = draws(999, () => scale * (1 + 9 * chance.nextDoubleUnsafe())).sort((a, b) => a - b)
      for (const value of values) histogram.add(value)
      for (const share of [0.01, 0.5, 0.9, 0.99, 1]) {
        const exact = values[Math.ceil(share * values.length) - 1]!
        assert.closeTo(histogram.percentile(share)! / exact, 1, 0.016, `${share} of ${scale}`)
      }
      assert.strictEqual(histogram.maxMillis, values.at(-1))
      assert.closeTo(histogram.meanMillis!, mean(values), scale * 1e-9)
    }
  })

  it("is null when empty, and 0 for zeros", () => {
    const histogram = new Histogram()
    assert.deepStrictEqual([histogram.percentile(0.5), histogram.meanMillis], [null, null])
    histogram.add(0)
    assert.deepStrictEqual([histogram.percentile(0.5), histogram.meanMillis], [0, 0])
  })

  it("adds another as if all had been in one", () => {
    const [one, other, both] = [new Histogram(), new Histogram(), new Histogram()]
    for (let value = 1; value <= 100; value++) {
      ;(value % 2 ? one : other).add(value)
      both.add(value)
    }
    one.merge(other)
    assert.deepStrictEqual(one, both)
  })
})

describe("Trace", () => {
  it("depends on every event, its time, its detail and its place", () => {
    const hash = (...events: ReadonlyArray<Parameters<Trace["add"]>>) => {
      const trace = new Trace()
      for (const event of events) trace.add(...event)
      return trace.hash
    }
    const hashes = [
      hash([1, sent, 1, 1], [2, ended, 1, 1]),
      hash([1, sent, 1, 1]),
      hash([2, ended, 1, 1], [1, sent, 1, 1]),
      hash([1, sent, 1, 1], [2.000001, ended, 1, 1]),
      hash([1, sent, 1, 1], [2, failed, 1, 1]),
      hash([1, sent, 1, 1], [2, ended, 2, 1]),
      hash([1, sent, 1, 1], [2, ended, 1, -1])
    ]
    assert.strictEqual(new Set(hashes).size, hashes.length)
    assert.isTrue(hashes.every((text) => /^[0-9a-f]{16}$/.test(text)))
  })
})

describe("the budget of a process", () => {
  /** A store, and what happens around it. */
  const budgetOf = (options: BudgetOptions) => {
    const clock = new VirtualTime()
    const store = Effect.runSync(Effect.provideService(storeOf(options), Clock.Clock, clock))
    return {
      clock,
      /** Sends once; answers how to end it. */
      send: (attempt: number, reservation?: RetryQuotaStore.Reservation) => {
        const passes: Array<SendGate.Pass> = []
        for (const gate of store.gates ?? []) {
          const nowMillis = clock.currentTimeMillisUnsafe()
          gate.enter({ attempt, context: Context.empty(), nowMillis, hold: (pass) => passes.push(pass) })
        }
        reservation?.sent?.()
        return (succeeded: boolean) => {
          if (succeeded) reservation?.giveBack()
          else reservation?.spend()
          for (const pass of passes) pass.settle(outcomeOf(succeeded))
        }
      },
      retry: () => {
        const answer = store.reserve(1, clock)
        return typeof answer === "object" ? answer : undefined
      },
      balance: () => store.balance(clock)
    }
  }

  const outcomeOf = (succeeded: boolean): SendGate.Outcome => ({
    _tag: succeeded ? "Success" : "Failure",
    value: undefined,
    error: undefined,
    info: succeeded ? undefined : RetryInfo.transient,
    nowMillis: 0
  })

  /** How many retries pass in a row, each of which fails, while the calls are in progress. */
  const passes = (options: BudgetOptions, calls: number) => {
    const { retry, send } = budgetOf(options)
    for (let call = 0; call < calls; call++) send(1)
    let passed = 0
    while (passed < 1000) {
      const reservation = retry()
      if (reservation === undefined) break
      passed++
      send(2, reservation)(false)
    }
    return passed
  }

  for (
    const [what, options, calls, expected] of [
      ["a bucket of 5", { kind: "bucket", capacity: 5, perCall: 0, perSuccess: 0.1, above: 0 }, 10, 5],
      ["Brooker's bucket of 5", { kind: "bucket", capacity: 5, perCall: 0.1, perSuccess: 0, above: 1 }, 10, 4],
      ["Finagle's 20 % and 10 a second", { kind: "finagle", ttlMillis: 1e4, minPerSecond: 10, share: 0.2 }, 50, 110],
      ["Finagle's 60 %", { kind: "finagle", ttlMillis: 1e4, minPerSecond: 0, share: 0.6 }, 10, 6],
      ["10 % of calls", { kind: "ratio", share: 0.1, of: "calls", windowMillis: 1e5 }, 90, 9],
      ["10 % of attempts", { kind: "ratio", share: 0.1, of: "attempts", windowMillis: 1e5 }, 90, 10],
      ["gRPC's 11 / 0.1, after one failure", { kind: "grpc", maxTokens: 11, tokenRatio: 0.1 }, 1, 6],
      ["Envoy's fifth of 20, each ended before the next", { kind: "envoy", share: 0.2, minConcurrency: 0 }, 20, 1000],
      ["a breaker at 10 %", { kind: "breaker", threshold: 0.1 }, 50, 6]
    ] as const
  ) {
    it(`${what} lets ${expected} retries pass`, () => assert.strictEqual(passes(options, calls), expected))
  }

  it("gRPC retries below a failure rate of one in eleven, and not above", () => {
    for (const [every, expected] of [[13, true], [9, false]] as const) {
      const { retry, send } = budgetOf({ kind: "grpc", maxTokens: 10, tokenRatio: 0.1 })
      for (let call = 1; call <= 3000; call++) send(1)(call % every > 0)
      assert.strictEqual(retry() !== undefined, expected, `one in ${every}`)
    }
  })

  it("Envoy lets a fifth as many retries wait as attempts are in progress, at least three", () => {
    for (const [active, expected] of [[0, 3], [2, 3], [20, 4], [25, 5], [49, 9], [50, 10]] as const) {
      const { retry, send } = budgetOf({ kind: "envoy", share: 0.2, minConcurrency: 3 })
      for (let attempt = 0; attempt < active; attempt++) send(1)
      const waiting: Array<RetryQuotaStore.Reservation> = []
      for (let one = retry(); one !== undefined; one = retry()) waiting.push(one)
      assert.strictEqual(waiting.length, expected)
      send(2, waiting[0])(true)
      assert.isDefined(retry())
      assert.isUndefined(retry())
    }
  })

  it("a bucket adds the value of a call and a success, and gets back a retry that is never sent", () => {
    const bucket = budgetOf({ kind: "bucket", capacity: 5, perCall: 0.25, perSuccess: 0.5, above: 0 })
    const seen = [bucket.balance()]
    const see = () => seen.push(bucket.balance())
    const first = bucket.retry()!
    see()
    const end = bucket.send(2, first)
    end(true)
    see()
    bucket.send(1)
    see()
    const dropped = bucket.retry()!
    see()
    dropped.giveBack()
    dropped.giveBack()
    see()
    assert.deepStrictEqual(seen, [5, 4, 4.5, 4.75, 3.75, 4.75])
  })

  it("a first send that is never made does not count as a call", () => {
    for (const kind of ["bucket", "breaker"] as const) {
      const store = Effect.runSync(storeOf(
        kind === "bucket"
          ? { kind, capacity: 5, perCall: 1, perSuccess: 0, above: 0 }
          : { kind, threshold: 0.5 }
      ))
      const clock = new VirtualTime()
      if (kind === "bucket") store.reserve(1, clock)
      const before = store.balance(clock)
      store.gates![0]!.enter({ attempt: 1, context: Context.empty(), nowMillis: 0, hold: (pass) => pass.cancel() })
      assert.strictEqual(store.balance(clock), before)
    }
  })

  it("forgets calls and retries with time", () => {
    const { clock, retry } = budgetOf({ kind: "finagle", ttlMillis: 10_000, minPerSecond: 1, share: 0 })
    const passed = [0, 5000, 11_000, 25_000].map((now) => {
      clock.nowMillis = now
      return draws(100, retry).filter((reservation) => reservation !== undefined).length
    })
    assert.deepStrictEqual(passed, [10, 0, 10, 10])
  })
})
