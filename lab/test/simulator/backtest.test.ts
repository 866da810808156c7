import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { budget } from "../../../test/utils/budget.ts"
import { bearingTimes } from "../../src/simulator/edge.ts"
import { inputOf } from "../utils/simulate.ts"

/** A service that has an outage, with headroom. */
const input = (fleet: object = {}, service: object = {}) => ({
  name: "shop",
  duration: "40s",
  fleets: [{ name: "clients", to: "server", rate: 60, timeout: "1s", network: 1, policy: "awsStandard", ...fleet }],
  services: [{
    name: "server",
    capacity: 100,
    latency: { exponential: 20 },
    outages: [{ kind: "fail", from: "10s", to: "15s" }],
    ...service
  }]
})

/** What a measurement of a run would show. */
const measuredOf = ({ clients: [client] }: Simulator.SimulationResult): Simulator.MeasuredInput => {
  const { latency } = client!.totals
  const series = client!.series.map(({ attempts, calls, failed, succeeded }) => ({
    calls,
    attempts,
    succeeded,
    failed
  }))
  return { series: [series[0]!, ...series.slice(1)], p50: latency.p50Millis!, p99: latency.p99Millis! }
}

/** A run with a seed that no backtest has, as a measurement. */
const measurement = Effect.fnUntraced(function*(of: unknown) {
  const scenario = yield* Simulator.decode(of)
  return yield* Simulator.decodeMeasured(measuredOf(yield* Simulator.run({ ...scenario, seed: 4711 })))
})

describe("Simulator.backtest", () => {
  it.effect("confirms a correct scenario: every figure, and every second", () =>
    Effect.gen(function*() {
      const measured = yield* measurement(input())
      const found = yield* Simulator.backtest(yield* Simulator.decode(input()), measured)
      assert.closeTo(found.succeeded.error!, 0, 0.02)
      assert.closeTo(found.sendsPerCall.error!, 0, 0.02)
      assert.closeTo(found.p50Millis.error!, 0, 0.1)
      assert.closeTo(found.recoveredMillis.error ?? 0, 0, 0.5)
      assert.isTrue(found.recovery!.measured)
      assert.strictEqual(found.series.length, measured.series.length)
      const inside = found.series.filter(({ succeeded: { predicted, measured } }) =>
        measured >= predicted!.low - 5 && measured <= predicted!.high + 5
      )
      assert.isAtLeast(inside.length, found.series.length * 0.85)
    }))

  it.effect("reports no recovery if nothing goes wrong", () =>
    Effect.gen(function*() {
      const healthy = input({}, { outages: [] })
      const found = yield* Simulator.backtest(yield* Simulator.decode(healthy), yield* measurement(healthy), {
        runs: 2
      })
      assert.deepStrictEqual([found.recovery, found.recoveredMillis.predicted], [undefined, undefined])
    }))

  it.effect("judges what became of the calls, not how many came: with the calls of the day, in its steps", () =>
    Effect.gen(function*() {
      const measured = yield* measurement(input({ rate: [{ at: 0, rate: 30 }, { at: "20s", rate: 90 }] }))
      const { sendsPerCall, series, succeeded } = yield* Simulator.backtest(yield* Simulator.decode(input()), measured)
      assert.closeTo(succeeded.error!, 0, 0.02)
      assert.closeTo(sendsPerCall.error!, 0, 0.02)
      assert.closeTo(series[25]!.attempts.predicted!.mean / 90, 1, 0.2)
    }))

  it.effect("replays the calls one by one if they were recorded that way: bursts stay bursts", () =>
    Effect.gen(function*() {
      // Ten calls at the beginning of each second, for a limit of five at a time.
      const arrivals = Array.from({ length: 200 }, (_, n) => Math.floor(n / 10) * 1000 + n % 10)
      const bucket = { calls: 10, attempts: 10, succeeded: 5, failed: 5 }
      const series = [bucket, ...Array.from({ length: 19 }, () => bucket)] as const
      const scenario = yield* Simulator.decode(
        input({ policy: "none", network: 0 }, { outages: [], limit: { requests: 10, burst: 4 } })
      )
      const blurred = yield* Simulator.backtest(scenario, yield* Simulator.decodeMeasured({ series }), { runs: 2 })
      const exact = yield* Simulator.backtest(scenario, yield* Simulator.decodeMeasured({ series, arrivals }), {
        runs: 2
      })
      assert.closeTo(exact.succeeded.error!, 0, 0.01)
      assert.strictEqual(exact.series[7]!.attempts.predicted!.mean, 10)
      assert.isAbove(blurred.succeeded.error!, 0.1)
    }))

  it.effect("finds a scenario wrong whose capacity is too high, and says by how much", () =>
    Effect.gen(function*() {
      const outages = [{ kind: "hold", from: "10s", to: "15s" }]
      const measured = yield* measurement(input({}, { capacity: 75, outages }))
      const found = yield* Simulator.backtest(yield* Simulator.decode(input({}, { capacity: 150, outages })), measured)
      assert.isAbove(found.succeeded.error!, 0.1)
      assert.isFalse(found.succeeded.isInside)
      assert.isBelow(found.recoveredMillis.error!, -0.5)
    }))

  it.effect("leaves out what was not measured, and what never came", () =>
    Effect.gen(function*() {
      const measured = yield* Simulator.decodeMeasured({
        series: [{ calls: 10, attempts: 10, succeeded: 0, failed: 10 }]
      })
      const dead = input({ policy: "none" }, { outages: [{ kind: "fail", from: 0, to: "1h" }] })
      const found = yield* Simulator.backtest(yield* Simulator.decode(dead), measured, { runs: 2 })
      assert.deepStrictEqual([found.p50Millis.measured, found.p50Millis.error], [undefined, undefined])
      assert.deepStrictEqual([found.recovery!.measured, found.recovery!.predicted.runs], [false, 0])
      assert.strictEqual(found.recoveredMillis.error, undefined)
      assert.deepStrictEqual([found.succeeded.measured, found.succeeded.error], [0, 0])
    }))

  for (
    const [what, measured, expected] of [
      [
        "no calls",
        { series: [{ calls: 0, attempts: 0, succeeded: 0, failed: 0 }] },
        "series: expected at least one call"
      ],
      ["no buckets", { series: [] }, "series"],
      ["half a call", { series: [{ calls: 0.5, attempts: 1, succeeded: 1, failed: 0 }] }, "series[0].calls: expected"],
      [
        "a bucket of nothing",
        { bucket: 0, series: [{ calls: 1, attempts: 1, succeeded: 1, failed: 0 }] },
        "bucket: must be above 0"
      ]
    ] as const
  ) {
    it.effect(`refuses ${what}`, () =>
      Effect.gen(function*() {
        const { message } = yield* Effect.flip(Simulator.decodeMeasured(measured))
        assert.include(message, expected)
      }))
  }
})

describe("Simulator.edge", () => {
  it.effect("is near if a tenth of the capacity decides, and only then", () =>
    Effect.gen(function*() {
      const shop = (rate: number) => inputOf("outage", { fleet: { rate, policy: "none" }, service: { capacity: 60 } })
      const at = (rate: number) =>
        Effect.flatMap(Simulator.decode(shop(rate)), (s) => Simulator.edge(s, { runs: budget(3, 1) }))
      // It can handle 60: with 54 it cannot keep up with 56 any more.
      assert.deepStrictEqual(yield* at(56), { less: "collapses", written: "recovers", more: "recovers", isNear: true })
      assert.deepStrictEqual(yield* at(40), { less: "recovers", written: "recovers", more: "recovers", isNear: false })
      assert.deepStrictEqual(yield* at(62), {
        less: "collapses",
        written: "collapses",
        more: "recovers",
        isNear: true
      })
    }))

  it.effect("is undefined without an outage, or without a capacity", () =>
    Effect.gen(function*() {
      for (const service of [{ outages: [] }, { capacity: undefined, latency: 5 }]) {
        const { capacity, ...rest } = { ...input().services[0]!, ...service }
        const scenario = { ...input(), services: [capacity === undefined ? rest : { ...rest, capacity }] }
        assert.isUndefined(yield* Simulator.edge(yield* Simulator.decode(scenario)))
      }
    }))

  it.effect("scales every form that a capacity has", () =>
    Effect.gen(function*() {
      const scaled = (service: object) =>
        Effect.map(Simulator.decode(input({}, { capacity: undefined, ...service, outages: [] })), (scenario) => {
          const { capacity, latency, slowdown } = bearingTimes(scenario, 0.5)!.services[0]!
          return { capacity, latency, slowdown }
        })
      const without = (service: object) => {
        const { capacity: _, ...rest } = input({}, service).services[0]!
        return Effect.map(Simulator.decode({ ...input(), services: [{ ...rest, outages: [] }] }), (scenario) =>
          bearingTimes(scenario, 0.5)!.services[0]!.latency)
      }
      assert.deepInclude(yield* scaled({ capacity: 10 }), { capacity: 5 })
      const points = yield* scaled({ capacity: [{ at: 0, capacity: 10 }, { at: 5, capacity: 20, ramp: true }] })
      assert.deepStrictEqual(points.capacity, [{ at: 0, capacity: 5, ramp: false }, {
        at: 5,
        capacity: 10,
        ramp: true
      }])
      for (
        const [latency, expected] of [
          ["1s", 2000],
          [{ exponential: 5 }, { exponential: 10 }],
          [{ normal: { mean: 1, deviation: 2 } }, { normal: { mean: 2, deviation: 4 } }],
          [{ uniform: { from: 1, to: 2 } }, { uniform: { from: 2, to: 4 } }],
          [{ lognormal: { median: 1, sigma: 2 } }, { lognormal: { median: 2, sigma: 2 } }],
          [{ p50: 1, p99: 2 }, { p50: 2, p99: 4 }],
          [{ quantiles: [[0.5, 1], [1, 2]] }, { quantiles: [[0.5, 2], [1, 4]] }]
        ] as const
      ) {
        assert.deepStrictEqual(yield* without({ workers: 1, latency }), expected as any)
      }
    }))
})
