import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { axesOf, axisOf, spaced } from "../../src/cli/maps.ts"
import { type Made, made } from "./made.ts"

describe("an axis of a map", () => {
  const ends = (text: string) =>
    Option.match(axisOf(text), {
      onNone: () => undefined,
      onSome: ({ path, values }) => [path, values[0], values.at(-1), values.length]
    })

  it("is a path, a range of numbers or durations with or without a fraction, and how many values it has", () => {
    assert.deepStrictEqual(ends("fleets.0.rate=60..300"), ["fleets.0.rate", 60, 300, 20])
    assert.deepStrictEqual(ends("a=1.5..2.25/2"), ["a", 1.5, 2.25, 2])
    assert.deepStrictEqual(ends("a=250.5ms..1.5s/100"), ["a", 250.5, 1500, 100])
    assert.deepStrictEqual(ends("a=1m..2h/3"), ["a", 60_000, 7_200_000, 3])
  })

  it("is nothing else", () => {
    for (
      const text of [
        "",
        "a",
        "a=1",
        "=1..2",
        "a=1..2/1",
        "a=1..2/0",
        "a=1..2/1000",
        "a=1...2",
        "a=1.x..2",
        "a=x..2",
        "a=1..2d",
        "a=1..2/3x",
        "a=b=1..2",
        "a=-1..2"
      ]
    ) {
      assert.isUndefined(ends(text), text)
    }
  })

  it("has values at equal distances, in six digits", () => {
    assert.deepStrictEqual(spaced(0, 1, 4), [0, 0.333333, 0.666667, 1])
    assert.deepStrictEqual(spaced(5, 9, 1), [5])
  })

  const axisIn = (text: string | undefined) => text === undefined ? Option.none() : axisOf(text)
  const axesFor = (made_: Partial<Made>, x?: string, y?: string) => {
    const asked = { x: axisIn(x), y: axisIn(y) }
    const { scenario } = made({ shares: [100], ...made_ })
    return Effect.runSync(Effect.result(axesOf(scenario, asked, { across: 2, up: 2 })))
  }
  const outages = [{ kind: "fail", from: 1000, to: 5000 }]

  it("is by default the load, up to the capacity, and the length of the outage, up to one and a half times", () => {
    const found = (service: object) => {
      const axes = axesFor({ service })
      return axes._tag === "Success" ? [axes.success.x, axes.success.y] : []
    }
    const y = { path: "services.0.outages.0.length", values: [500, 6000] }
    assert.deepStrictEqual(found({ capacity: 60, outages }), [{ path: "fleets.0.rate", values: [12, 60] }, y])
    // Without a capacity, up to one and a half times the calls.
    assert.deepStrictEqual(found({ outages }), [{ path: "fleets.0.rate", values: [30, 150] }, y])
    const short = [{ kind: "fail", from: 1000, to: 1600 }]
    assert.deepStrictEqual(found({ outages: short })[1]!.values, [300, 900])
  })

  it("has to be named if the scenario has no steady rate, or no outage", () => {
    const why = (made: Partial<Made>, x?: string, y?: string) => {
      const axes = axesFor(made, x, y)
      return axes._tag === "Failure" ? axes.failure.lines.join() : ""
    }
    const closed = { fleet: { rate: undefined, clients: 2 }, service: { outages, latency: 5 } }
    assert.include(
      why(closed),
      "no fleet with a steady rate to map: give another parameter, such as `effect-retry map --x fleets.0.timeout=250ms..4s`"
    )
    assert.strictEqual(why(closed, "a=1..2"), "")
    assert.include(
      why({}),
      "no outage to map: give another parameter, such as `effect-retry map --y services.0.capacity=60..300`"
    )
    assert.strictEqual(why({}, undefined, "b=1..2"), "")
  })
})
