import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { recovered } from "../../src/cli/outcome.ts"

/**
 * What is said of buckets of a second, each with this many of 100 calls that succeed; `undefined`: none end. After them,
 * when no more calls begin, this many of a hundred `late` calls succeed, and others are still `open`.
 */
const said = (
  shares: ReadonlyArray<number | undefined>,
  outageEnd?: string,
  { late, open = 0, partial = false }: { readonly late?: number; readonly open?: number; readonly partial?: boolean } =
    {}
): string =>
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
      const series = [...shares, late].map(bucket)
      const fleet = { name: "f", kind: "fleet", to: "s", policy: "none", series } as const
      const totals = { ...bucket(undefined, 0), calls: open }
      return recovered({
        scenario,
        partial,
        untilMillis: shares.length * 1000,
        bucketMillis: 1000,
        traceHash: "",
        attempts: 0,
        clients: [{ ...fleet, totals }],
        services: []
      })
    }
  ))

describe("when calls have recovered", () => {
  it("is always, if nine of ten succeed in every bucket", () => {
    assert.strictEqual(said([100, 90, 100]), "always healthy")
    assert.strictEqual(said([100, 89, 100]), "2 s")
  })

  it("counts from the end of the last outage to the end of the last bad bucket", () => {
    assert.strictEqual(said([0, 0, 0, 100, 50, 100], "2 seconds"), "3 s")
  })

  it("is immediately, if nothing is bad after the outage", () => {
    assert.strictEqual(said([0, 0, 100], "2 seconds"), "immediately")
  })

  it("is in whole seconds if it takes longer than ten", () => {
    assert.strictEqual(said([...Array<number>(130).fill(0), 100], "1 second"), "129 s")
  })

  it("is not within the run, if the last calls that end fail, and not yet if the run has not ended", () => {
    assert.strictEqual(said([100, 0]), "not within 2 s")
    assert.strictEqual(said([0, 0]), "not within 2 s")
    assert.strictEqual(said([100, 0, undefined]), "not within 3 s")
    assert.strictEqual(said([100, 0], undefined, { partial: true }), "not yet")
    assert.strictEqual(said([100, 100], undefined, { partial: true }), "healthy so far")
  })

  it("is not asked of buckets in which no call ends", () => {
    assert.strictEqual(said([undefined, 100, undefined]), "always healthy")
    assert.strictEqual(said([undefined]), "-")
  })

  it("is decided at the end, including calls that end after the last one began", () => {
    assert.strictEqual(said([100, 100], undefined, { late: 100 }), "always healthy")
    assert.strictEqual(said([100, undefined], undefined, { late: 0 }), "not within 2 s")
    assert.strictEqual(said([100, 100], undefined, { late: 70 }), "not within 2 s")
    assert.strictEqual(said([0, 100], "1 second", { late: 90 }), "immediately")
  })

  it("is not within the run, if many calls have not ended when it is over", () => {
    assert.strictEqual(said([100, 100], undefined, { open: 10 }), "always healthy")
    assert.strictEqual(said([100, 100], undefined, { open: 12 }), "not within 2 s")
    assert.strictEqual(said([100, undefined], undefined, { open: 1 }), "not within 2 s")
    assert.strictEqual(said([100, undefined], undefined, { open: 1, partial: true }), "healthy so far")
  })
})
