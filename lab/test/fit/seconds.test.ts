import { assert, describe, it } from "@effect/vitest"
import { Seconds } from "../../src/fit/seconds.ts"

/** The seconds that are closed, in their order, after a log of these has ended. */
const closedOf = (...seen: ReadonlyArray<number>): ReadonlyArray<number> => {
  const closed: Array<number> = []
  const seconds = new Seconds(({ at }) => closed.push(at))
  for (const at of seen) seconds.at(at * 1000)!.arrived++
  seconds.end()
  return closed
}

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n)

describe("the seconds of a log", () => {
  it.each([1, 63, 64, 65, 128, 129, 900])("are closed in their order, also around a gap of %i", (gap) => {
    const seen = [...range(37, 100), 100 + gap, 101 + gap]
    assert.deepStrictEqual(closedOf(...seen), seen)
  })

  it("are open for as long as the ring is", () => {
    const seconds = new Seconds(() => undefined)
    seconds.at(1_000_000)
    assert.isDefined(seconds.at(937_000))
    assert.isUndefined(seconds.at(936_000))
    seconds.at(2_000_000)
    assert.isDefined(seconds.at(1_937_000))
    assert.isUndefined(seconds.at(1_936_000))
  })
})
