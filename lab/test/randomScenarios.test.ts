import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { budget } from "../../test/utils/budget.ts"
import { mechanisms } from "../scripts/overload.ts"
import { Chance } from "../src/simulator/chance.ts"

/** Seconds before and after what goes wrong. */
const before = 20
const after = 60

/** A service that is held, slowed down or called too often: the law of the figures on docs/evidence/compared.md. */
const scenarioOf = (seed: number) => {
  const chance = new Chance(seed, "random scenarios")
  const between = (low: number, high: number) => low * (high / low) ** chance.nextDoubleUnsafe()
  const rate = between(60, 600)
  const capacity = rate / (0.5 + 0.45 * chance.nextDoubleUnsafe())
  const work = between(10, 200)
  const seconds = Math.round(between(5, 30))
  const kind = (["hold", "slow", "called"] as const)[seed % 3]!
  const window = { from: `${before} seconds`, to: `${before + seconds} seconds` }
  const factor = between(2, 10)
  const least = { hold: 0, slow: capacity / factor, called: capacity }[kind]
  const most = kind === "called" ? rate * between(1.5, 4) : rate
  const possible = rate * (before + after) + Math.min(most, least) * seconds
  return {
    /** Of the calls, those that the service could have answered. */
    share: possible / (rate * (before + after) + most * seconds),
    end: before + seconds + after,
    scenario: {
      name: `random-${seed}`,
      seed,
      duration: `${before + seconds + after} seconds`,
      fleets: [{
        name: "clients",
        to: "service",
        processes: Math.round(between(1, 200)),
        rate: [{ at: 0, rate }, { at: window.from, rate: most }, { at: window.to, rate }],
        timeout: work * between(5, 20),
        policy: mechanisms["limit"]
      }],
      services: [{
        name: "service",
        capacity,
        latency: { lognormal: { median: work, sigma: 0.5 } },
        outages: kind === "hold" ? [{ kind, ...window }] : kind === "slow" ? [{ kind, ...window, factor }] : []
      }]
    }
  }
}

describe("the limit in scenarios that nothing was chosen on", () => {
  it.live("serves at least 95 % of the possible on average and 75 % in the worst, and recovers in all", () =>
    Effect.gen(function*() {
      const served: Array<number> = []
      for (let seed = 1; seed <= budget(120, 6); seed++) {
        const { end, scenario, share } = scenarioOf(seed)
        const result = yield* Effect.flatMap(Simulator.decode(scenario), (decoded) => Simulator.run(decoded))
        const { series, totals } = result.clients[0]!
        const sum = (of: "calls" | "succeeded") =>
          series.slice(end - 10, end).reduce((sum, bucket) => sum + bucket[of], 0)
        assert.isAbove(sum("succeeded"), 0.9 * sum("calls"), `seed ${seed}, the last ten seconds`)
        served.push(totals.succeeded / (totals.calls * share))
      }
      assert.isAtLeast(Math.min(...served), 0.75)
      assert.isAtLeast(served.reduce((sum, share) => sum + share) / served.length, 0.95)
    }))
})
