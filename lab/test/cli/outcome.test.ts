import { assert, describe, it } from "@effect/vitest"
import { recovered } from "../../src/cli/outcome.ts"
import { type Made, made } from "./made.ts"

/** What is said of seconds in each of which this many of 100 calls succeed. */
const said = (
  shares: Made["shares"],
  outageEnd?: string,
  others: Pick<Made, "late" | "open" | "partial"> = {}
): string => recovered(made({ shares, ...outageEnd === undefined ? {} : { outageEnd }, ...others }))

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
