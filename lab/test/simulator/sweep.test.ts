import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { inputOf, retrying } from "../utils/simulate.ts"

const outage = (expect: object | undefined, fleet: object = {}) =>
  Simulator.decode(
    inputOf("outage", {
      scenario: expect === undefined ? {} : { expect },
      fleet: { rate: 30, policy: retrying({ attempts: 2 }), ...fleet },
      service: { capacity: 60 }
    })
  )

const rates = { path: "fleets.0.rate", from: 10, to: 60, runs: 1 }

/** A service that succeeds at known rates: a limit of this many requests in each second. */
const limited = (expect: object, limit: object) =>
  Simulator.decode({
    name: "limited",
    duration: "10 seconds",
    fleets: [{ name: "app", to: "api", rate: 20, arrivals: "even" }],
    services: [{ name: "api", limit }],
    expect
  })

describe("Simulator.sweep", () => {
  it.live("finds the largest load that recovers where theory predicts it", () =>
    Effect.gen(function*() {
      const scenario = yield* outage({ recoversInRuns: "1 of 1" })
      const { beside, kind, monotone, points, value } = yield* Simulator.sweep(scenario, rates)
      assert.deepStrictEqual([kind, monotone], ["largest", true])
      assert.closeTo(value!, Simulator.recoversBelow(scenario)!, 3)
      assert.strictEqual(beside, value! + 1)
      assert.isAtMost(points.length, 12)
      assert.deepStrictEqual(points.map(({ value }) => value), points.map(({ value }) => value).sort((a, b) => a - b))
    }))

  it.live("finds the smallest value exactly: a limit of 16 lets 80 % of 20 pass", () =>
    Effect.gen(function*() {
      const scenario = yield* limited({ succeed: ">= 80 %" }, { requests: 1 })
      const options = { path: "services.0.limit.requests", from: 1, to: 40, runs: 1 }
      const found = yield* Simulator.sweep(scenario, options)
      assert.deepInclude(found, { kind: "smallest", value: 16, beside: 15, monotone: true, step: 1 })
      // With another step the answer is the first of its values that will do.
      const coarse = yield* Simulator.sweep(scenario, { ...options, step: 3 })
      assert.deepInclude(coarse, { kind: "smallest", value: 16, beside: 13 })
      const fine = yield* Simulator.sweep(scenario, { ...options, from: 0.5, to: 1.5 })
      assert.deepInclude(fine, { kind: "nowhere", value: undefined, step: 0.001 })
    }))

  it.live("says if the expectations hold in the whole range, or nowhere", () =>
    Effect.gen(function*() {
      const options = { path: "services.0.limit.requests", runs: 1 }
      const scenario = yield* limited({ succeed: ">= 80 %" }, { requests: 1 })
      assert.deepInclude(yield* Simulator.sweep(scenario, { ...options, from: 20, to: 40 }), {
        kind: "everywhere",
        value: undefined,
        monotone: true
      })
      assert.deepInclude(yield* Simulator.sweep(scenario, { ...options, from: 1, to: 9 }), { kind: "nowhere" })
    }))

  it.live("says where the expectations start and stop holding: at neither end", () =>
    Effect.gen(function*() {
      const bounded = yield* Simulator.decode({
        ...yield* limited({ succeed: "<= 70 %", sendsPerCall: "<= 1.8" }, { requests: 1 }),
        fleets: [{ name: "app", to: "api", rate: 20, arrivals: "even", policy: retrying({ attempts: 2 }) }]
      })
      const found = yield* Simulator.sweep(bounded, {
        path: "services.0.limit.requests",
        from: 1,
        to: 41,
        runs: 1
      })
      assert.isFalse(found.points[0]!.holds)
      assert.isFalse(found.points.at(-1)!.holds)
      assert.isFalse(found.monotone)
      assert.strictEqual(found.kind, "smallest")
    }))

  it.live("changes the settings that a policy's name stands for", () =>
    Effect.gen(function*() {
      const scenario = yield* outage({ sendsPerCall: "<= 1.02" }, { policy: "awsStandard" })
      const found = yield* Simulator.sweep(scenario, {
        path: "fleets.0.policy.quota.capacity",
        from: 5,
        to: 5000,
        step: 100,
        runs: 1
      })
      assert.strictEqual(found.kind, "largest")
    }))

  it.live("runs as often as recoversInRuns says, and reports each value", () =>
    Effect.gen(function*() {
      const told: Array<number> = []
      const scenario = yield* limited({ succeed: 0.1, recoversInRuns: "0 of 2" }, { requests: 30 })
      const { points, runs } = yield* Simulator.sweep(scenario, {
        path: "services.0.limit.requests",
        from: 20,
        to: 30,
        onProgress: ({ value }) => Effect.sync(() => void told.push(value))
      })
      assert.strictEqual(runs, 2)
      assert.deepStrictEqual(told, points.map(({ value }) => value))
    }))

  for (
    const [what, expect, options, problem] of [
      ["a scenario that expects nothing", undefined, rates, "expect: is missing"],
      ["an empty range", { succeed: 1 }, { ...rates, to: 10 }, "fleets.0.rate: cannot go from 10 to 10"],
      [
        "a step of nothing",
        { succeed: 1 },
        { ...rates, step: 0 },
        "fleets.0.rate: cannot go from 10 to 60 in steps of 0"
      ],
      ["a step beyond the range", { succeed: 1 }, { ...rates, step: 51 }, "in steps of 51"],
      [
        "an unknown path",
        { succeed: 1 },
        { ...rates, path: "fleets.0.rat" },
        "fleets[0].rat: is not a key here: did you mean rate?"
      ],
      [
        "settings of no policy",
        { succeed: 1 },
        { ...rates, path: "fleets.0.policy.quota.capacity" },
        "the policy \"none\" has no settings"
      ]
    ] as const
  ) {
    it.live(`refuses ${what}`, () =>
      Effect.gen(function*() {
        const scenario = yield* outage(expect, { policy: "none" })
        const error = yield* Effect.flip(Simulator.sweep(scenario, options))
        assert.include(error.message, problem)
      }))
  }
})
