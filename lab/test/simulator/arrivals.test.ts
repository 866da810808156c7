import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { RecordedCounts, recordedTimes } from "../../src/simulator/arrivals.ts"

const input = (arrivals: object, fleet: object = {}) => ({
  name: "recorded",
  duration: "20s",
  fleets: [{ name: "clients", to: "server", timeout: "1s", processes: 3, policy: "naive", arrivals, ...fleet }],
  services: [{ name: "server", capacity: 40, outages: [{ kind: "fail", from: "4s", to: "6s" }] }]
})

const run = (arrivals: object, seed = 1, fleet: object = {}) =>
  Effect.flatMap(
    Simulator.decode({ ...input(arrivals, fleet), seed }),
    (scenario) => Simulator.run(scenario)
  )

const whole = (maximum: number) => Schema.Finite.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum }))

const filled = (calls: ReadonlyArray<number>): ReadonlyArray<number> =>
  Array.from({ length: 20 }, (_, second) => calls[second] ?? 0)

/** The calls that began in each of the first twenty seconds. */
const callsOf = ({ clients: [client] }: Simulator.SimulationResult): ReadonlyArray<number> =>
  filled(client!.series.map(({ calls }) => calls))

describe("recorded arrivals", () => {
  it.effect.prop(
    "counts per second are kept exactly, with any seed",
    [Schema.Array(whole(90)).check(Schema.isMaxLength(20)), whole(1_000_000)],
    ([calls, seed]) =>
      Effect.gen(function*() {
        assert.deepStrictEqual(callsOf(yield* run({ calls }, seed)), filled(calls))
      }),
    { arbitrary: { runs: 30 } }
  )

  it.effect.prop(
    "calls begin at their times, in whatever order those are listed",
    [
      Schema.Array(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 19_999 }))).check(
        Schema.isMaxLength(300)
      )
    ],
    ([quarters]) =>
      Effect.gen(function*() {
        // Many begin where a second does.
        const at = quarters.map((n) => n % 4 === 0 ? 1000 * Math.floor(n / 4000) : n / 4)
        const calls = filled([])
        assert.deepStrictEqual(
          callsOf(yield* run({ at })),
          calls.map((_, second) => at.filter((time) => Math.floor(time / 1000) === second).length)
        )
      }),
    { arbitrary: { runs: 30 } }
  )

  it.effect("the same seed gives the same run, another seed other moments within the seconds", () =>
    Effect.gen(function*() {
      const calls = Array.from({ length: 20 }, (_, second) => 10 + second)
      const first = yield* run({ calls }, 5)
      assert.strictEqual((yield* run({ calls }, 5)).traceHash, first.traceHash)
      assert.notStrictEqual((yield* run({ calls }, 6)).traceHash, first.traceHash)
    }))

  it.effect("buckets are as long as they say, and what is after the duration does not begin", () =>
    Effect.gen(function*() {
      const wide = callsOf(yield* run({ calls: [40, 0, 60, 50], bucket: "5s" }))
      const inFive = [0, 1, 2, 3].map((n) => wide.slice(5 * n, 5 * n + 5).reduce((sum, count) => sum + count))
      assert.deepStrictEqual(inFive, [40, 0, 60, 50])
      const late = yield* run({ calls: Array.from({ length: 50 }, () => 3) })
      assert.strictEqual(late.clients[0]!.totals.calls, 60)
    }))

  it.effect("calls of a fleet are still limited", () =>
    Effect.gen(function*() {
      const { clients } = yield* run({ calls: [10, 10, 10] }, 1, { calls: 25 })
      assert.strictEqual(clients[0]!.totals.calls, 25)
    }))

  it("counts are spread over their bucket, times are in order", () => {
    let n = 0
    const counts = new RecordedCounts([2, 0, 1], 100, () => [0.75, 0.25, 0.5][n++]!)
    assert.deepStrictEqual([counts.next(), counts.next(), counts.next(), counts.next()], [25, 75, 250, Infinity])
    const times = recordedTimes([30, 4, 4])
    const found = [times.next(), times.next(), times.next(), times.next()]
    assert.deepStrictEqual(found, [4.000001, 4.000001, 30.000001, Infinity])
  })

  for (
    const [what, arrivals, fleet, expected] of [
      ["nothing", {}, {}, "fleets[0].arrivals: expected one of file, at and calls"],
      ["both", { at: [1], calls: [1] }, {}, "fleets[0].arrivals: expected one of file, at and calls"],
      ["half a call", { calls: [1, 0.5] }, {}, "fleets[0].arrivals.calls[1]: expected an integer, got 0.5"],
      ["a time before the run", { at: [5, -1] }, {}, "fleets[0].arrivals.at[1]: expected a number from 0"],
      ["too many calls", { calls: [1_000_000, 1] }, {}, "fleets[0].arrivals.calls: expected at most 1000000 calls"],
      [
        "a bucket of times",
        { at: [1], bucket: "1s" },
        {},
        "fleets[0].arrivals: expected a bucket only together with calls"
      ],
      ["a bucket of nothing", { calls: [1], bucket: 0 }, {}, "fleets[0].arrivals.bucket: expected a duration above 0"],
      ["a rate besides", { calls: [1] }, { rate: 5 }, "fleets[0]: needs either a rate or recorded arrivals"],
      ["clients besides", { calls: [1] }, { clients: 5 }, "fleets[0]: needs either a rate or recorded arrivals"],
      ["a file, in code", { file: "calls.csv" }, {}, "fleets[0].arrivals.file: is read by the command line alone"]
    ] as const
  ) {
    it.effect(`refuses ${what}`, () =>
      Effect.gen(function*() {
        const { message } = yield* Effect.flip(Simulator.decode(input(arrivals, fleet)))
        assert.include(message, expected)
      }))
  }
})
