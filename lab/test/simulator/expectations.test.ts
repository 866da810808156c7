import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { inputOf } from "../utils/simulate.ts"

const short = (expect: unknown) =>
  inputOf("outage", {
    scenario: { duration: "40 seconds", expect },
    fleet: { rate: 20, policy: "awsStandard" },
    service: { capacity: 60, outages: [{ kind: "fail", from: "5 seconds", to: "7 seconds" }] }
  })

const judged = (expect: unknown, runs = 3) =>
  Effect.gen(function*() {
    const scenario = yield* Simulator.decode(short(expect))
    return Simulator.judge(yield* Simulator.runs(scenario, { runs }))
  })

describe("expect", () => {
  for (
    const [what, expect, problem] of [
      ["nothing", {}, "expect: expected at least one expectation"],
      [
        "an unknown key, with one that is like it",
        { succed: 1 },
        "expect.succed: is not a key here: did you mean succeed?"
      ],
      [
        "a share above 1",
        { succeed: 99 },
        "expect.succeed: expected a share such as 0.99, \"99 %\" or \">= 99 %\", got 99"
      ],
      ["more than all", { succeed: "101 %" }, "expect.succeed: expected a share"],
      ["what is not a comparison", { succeed: "=> 99 %" }, "expect.succeed: expected a share"],
      ["a percentage of sends", { sendsPerCall: "120 %" }, "expect.sendsPerCall: expected a number such as 1.2 or"],
      ["a duration without a unit", { p99: "<= 800" }, "expect.p99: expected a duration such as \"800ms\""],
      ["an unknown unit", { p99: "12 parsecs" }, "expect.p99: expected a duration such as \"800ms\""],
      ["a negative duration", { recoveredWithin: -1 }, "expect.recoveredWithin: expected a duration such as"],
      ["more runs than there are", { recoversInRuns: "21 of 20" }, "expect.recoversInRuns: expected runs such as"],
      ["no runs", { recoversInRuns: "0 of 0" }, "expect.recoversInRuns: expected runs such as"],
      ["too many runs", { recoversInRuns: "1 of 1001" }, "expect.recoversInRuns: expected runs such as"]
    ] as const
  ) {
    it.effect(`refuses ${what}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Simulator.decode(short(expect)))
        assert.include(error.message, problem)
      }))
  }

  it.effect("reads the same again", () =>
    Effect.gen(function*() {
      const scenario = yield* Simulator.decode(short({ succeed: "> 99%", p99: "< 1s", recoversInRuns: "3 of 4" }))
      assert.deepStrictEqual(yield* Simulator.decode(scenario), scenario)
    }))
})

describe("Simulator.judge", () => {
  it.live("compares the mean of the runs: at least with a share, at most with the others", () =>
    Effect.gen(function*() {
      const judgments = yield* judged({ succeed: "90 %", sendsPerCall: 1.2, p99: "250ms", recoveredWithin: 20_000 })
      assert.deepStrictEqual(
        judgments.map(({ bound, comparison, name }) => [name, comparison, bound]),
        [["succeed", ">=", 0.9], ["sendsPerCall", "<=", 1.2], ["p99", "<=", 250], ["recoveredWithin", "<=", 20_000]]
      )
      const results = yield* Simulator.runs(yield* Simulator.decode(short({ succeed: 1 })), { runs: 3 })
      const { p99Millis, recovery, sendsPerCall, succeeded } = Simulator.summarize(results)
      assert.deepStrictEqual(
        judgments.map(({ found }) => found),
        [succeeded!.mean, sendsPerCall!.mean, p99Millis!.mean, recovery.afterMillis!.high]
      )
      assert.deepStrictEqual(judgments.map(({ spread }) => spread), [succeeded, sendsPerCall, p99Millis, undefined])
    }))

  it.live("holds at the bound, and not just beyond it", () =>
    Effect.gen(function*() {
      const [found] = yield* judged({ sendsPerCall: 9 })
      const exact = found!.found!
      for (
        const [bound, holds] of [
          [exact, true],
          [exact - 1e-9, false],
          ["<= 9", true],
          ["> 1", true],
          ["< 1.0", false],
          [">= 9", false]
        ] as const
      ) {
        const [judgment] = yield* judged({ sendsPerCall: bound })
        assert.strictEqual(judgment!.holds, holds, String(bound))
      }
    }))

  it.live("counts the runs that recover, or the same share of another number", () =>
    Effect.gen(function*() {
      for (
        const [expect, runs, bound, found, holds] of [
          ["3 of 3", 3, 3, 3, true],
          ["18 of 20", 2, 2, 2, true],
          ["7 of 10", 10, 7, 10, true],
          ["0 of 5", 2, 0, 2, true]
        ] as const
      ) {
        const [judgment] = yield* judged({ recoversInRuns: expect }, runs)
        assert.deepInclude(judgment, { name: "recoversInRuns", bound, found, holds, runs })
      }
    }))

  it.live("requires the recovery of all runs, or of as many as recoversInRuns says", () =>
    Effect.gen(function*() {
      // Two of eight runs recover.
      const scenario = yield* Simulator.decode(
        inputOf("spike", { scenario: { expect: { recoveredWithin: "1 hour" } } })
      )
      const results = yield* Simulator.runs(scenario, { runs: 8 })
      const { recovery } = Simulator.summarize(results)
      assert.isAbove(recovery.runs, 0)
      assert.isBelow(recovery.runs, 8)
      const judgedWith = (expect: object) =>
        Simulator.judge(results.map((result) => ({ ...result, scenario: { ...result.scenario, expect } })))
      assert.deepInclude(judgedWith({ recoveredWithin: "1 hour" })[0], { found: null, holds: false })
      const some = { recoveredWithin: "1 hour", recoversInRuns: `${recovery.runs} of 8` }
      assert.deepStrictEqual(judgedWith(some).map(({ holds }) => holds), [true, true])
      assert.strictEqual(judgedWith(some)[0]!.found, recovery.afterMillis!.high)
    }))

  it.live("fails an expectation without data: the latency if no call succeeds", () =>
    Effect.gen(function*() {
      const input = inputOf("outage", {
        scenario: { duration: "2 seconds", expect: { p99: "< 1h", succeed: "<= 0" } },
        service: { failureRate: 1 }
      })
      const judgments = Simulator.judge([yield* Simulator.run(yield* Simulator.decode(input))])
      assert.deepStrictEqual(judgments.map(({ found, holds, name }) => [name, found, holds]), [
        ["succeed", 0, true],
        ["p99", null, false]
      ])
    }))

  it.live("has no judgments without expectations", () =>
    Effect.gen(function*() {
      const scenario = yield* Simulator.decode(inputOf("outage", { scenario: { duration: "2 seconds" } }))
      assert.deepStrictEqual(Simulator.judge([yield* Simulator.run(scenario)]), [])
      assert.deepStrictEqual(Simulator.judge([]), [])
    }))
})

describe("Simulator.warnings", () => {
  const warned = (changes: Parameters<typeof inputOf>[1]) =>
    Effect.map(
      Simulator.decode(inputOf("outage", changes)),
      (scenario) => Simulator.warnings(scenario).map(({ path, problem }) => `${path}: ${problem}`)
    )

  for (
    const [what, changes, expected] of [
      ["an outage after the run", { service: { outages: [{ kind: "fail", from: "200s", to: "210s" }] } }, [
        "services[0].outages[0].from: is outside the run, in which calls start for 200 s: no effect"
      ]],
      ["no outage just before its end", {
        service: { outages: [{ kind: "fail", from: "199s", to: "199999ms" }] }
      }, []],
      ["an outage until the end of the run", { service: { outages: [{ kind: "fail", from: "190s", to: "200s" }] } }, [
        "services[0].outages[0].to: is not before the end of the run, 200 s: no recovery can be seen"
      ]],
      ["a latency above the timeout", { service: { latency: "990ms" } }, [
        "fleets[0].timeout: at least half of the attempts time out even when nothing is wrong: they take 1 s, but wait only 1 s"
      ]],
      ["no latency below the timeout", { service: { latency: "989ms" } }, []],
      ["a distribution of which half is above", { service: { latency: { uniform: { from: 0, to: "3s" } } } }, 1],
      ["no distribution of which a tenth is above", { service: { latency: { uniform: { from: 0, to: "1.1s" } } } }, []],
      ["no work that is as long, where the timeout is longer", {
        fleet: { timeout: "3h" },
        service: { latency: "1h" }
      }, []]
    ] as const
  ) {
    it.effect(`warns of ${what}`, () =>
      Effect.gen(function*() {
        const told = yield* warned(changes)
        if (typeof expected === "number") return assert.strictEqual(told.length, expected)
        assert.deepStrictEqual(told, [...expected])
      }))
  }

  it.effect("warns of a service that calls another with too short a timeout", () =>
    Effect.gen(function*() {
      const input = inputOf("outage")
      const told = Simulator.warnings(
        yield* Simulator.decode({
          ...input,
          services: [
            { ...input.services[0], calls: [{ to: "disk", timeout: "10ms" }] },
            { name: "disk", latency: "20ms" }
          ]
        })
      )
      assert.deepStrictEqual(told.map(({ path }) => path), ["services[0].calls[0].timeout"])
    }))

  it.live("warns of a case on the edge: runs that recover, and others that do not", () =>
    Effect.gen(function*() {
      const scenario = yield* Simulator.decode(inputOf("spike"))
      const results = yield* Simulator.runs(scenario, { runs: 8 })
      const { recovery } = Simulator.summarize(results)
      assert.deepStrictEqual(Simulator.warnings(scenario, results), [
        { path: "", problem: `recovers in ${recovery.runs} of 8 runs: it is on the edge, where a small change decides` }
      ])
      assert.deepStrictEqual(Simulator.warnings(scenario, results.slice(0, 1)), [])
    }))
})
