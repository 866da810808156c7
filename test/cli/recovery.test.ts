import { assert, describe, it } from "@effect/vitest"
import * as Simulator from "effect-retry/Simulator"
import * as Effect from "effect/Effect"
import { recoveryOf } from "../../src/cli/recovery.ts"

/** What is said of buckets of a second, each with so many of 100 calls that end well; `undefined`: none end. */
const said = (shares: ReadonlyArray<number | undefined>, outageEnd?: string) =>
  Effect.runSync(Effect.map(
    Simulator.decode({
      name: "s",
      duration: `${shares.length} seconds`,
      fleets: [{ name: "f", to: "s", rate: 1 }],
      services: [{
        name: "s",
        ...outageEnd === undefined ? {} : { outages: [{ kind: "fail", from: 0, to: outageEnd }] }
      }]
    }),
    (scenario) => {
      const latency = { meanMillis: 1, p50Millis: 1, p90Millis: 1, p99Millis: 1, maxMillis: 1 }
      const bucket = (well: number | undefined, index: number): Simulator.ClientBucket => ({
        fromMillis: index * 1000,
        calls: 100,
        attempts: 100,
        succeeded: well ?? 0,
        failed: well === undefined ? 0 : 100 - well,
        failures: {},
        attemptFailures: {},
        stops: {},
        latency,
        gauges: { inFlight: 0, balance: null, budget: null, fillRate: null }
      })
      // After the last call has begun nothing counts.
      const series = [...shares, 0].map(bucket)
      return recoveryOf(
        {
          scenario,
          partial: false,
          untilMillis: 0,
          bucketMillis: 1000,
          traceHash: "",
          attempts: 0,
          clients: [],
          services: []
        },
        series
      )
    }
  ))

describe("when calls are well again", () => {
  it("is always, where 95 of 100 end well in every bucket", () => {
    assert.deepStrictEqual(said([100, 95, 100]), { well: "always", afterMillis: null })
    assert.strictEqual(said([100, 94, 100]).well, "again")
  })

  it("counts from the end of the last outage to the end of the last bad bucket", () => {
    assert.deepStrictEqual(said([0, 0, 0, 100, 50, 100], "2 seconds"), { well: "again", afterMillis: 3000 })
  })

  it("is at once, where nothing is bad after the outage", () => {
    assert.deepStrictEqual(said([0, 0, 100], "2 seconds"), { well: "again", afterMillis: 0 })
    assert.deepStrictEqual(said([0, 100, 100], "2 seconds"), { well: "again", afterMillis: 0 })
  })

  it("counts from the first bad bucket where there is no outage", () => {
    assert.deepStrictEqual(said([100, 0, 0, 100]), { well: "again", afterMillis: 2000 })
  })

  it("is never, where the last calls that end do so badly", () => {
    assert.deepStrictEqual(said([100, 0]), { well: "never", afterMillis: null })
    assert.deepStrictEqual(said([100, 0, undefined]), { well: "never", afterMillis: null })
  })

  it("is not asked of buckets in which no call ends", () => {
    assert.strictEqual(said([undefined, 100, undefined]).well, "always")
  })
})
