import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Simulator from "../Simulator.ts"
import { capacityOf } from "../simulator/bounds.ts"
import { millis } from "../simulator/units.ts"
import { counted } from "./charts/format.ts"
import type { Maps } from "./charts/mapChart.ts"
import { amount } from "./flags.ts"
import type { PolicyMap } from "./mapTable.ts"
import { part, type Progress } from "./progress.ts"
import { refusal, refusalOf } from "./refusal.ts"
import type { Plan } from "./runs.ts"
import { plain } from "./text.ts"

/** Values of a parameter by default. */
export const usualSteps = 20
/** Of a map in a page: enough to see where the edges are, in a fraction of the time. */
const pageSteps = { across: 16, up: 10, runs: 3 }

/** Numbers at equal distances. */
export const spaced = (from: number, to: number, steps: number): ReadonlyArray<number> =>
  Array.from({ length: steps }, (_, n) => Number((from + (to - from) * n / Math.max(1, steps - 1)).toPrecision(6)))

/** `fleets.0.rate=60..300`, with the number of steps `fleets.0.rate=60..300/12`, of a duration `fleets.0.timeout=250ms..4s`. */
export const axisOf = (text: string): Option.Option<Simulator.Axis> => {
  const [, path, from, to, steps = usualSteps] =
    /^([^=]+)=(\d+(?:\.\d+)?(?:ms|s|m|h)?)\.\.(\d+(?:\.\d+)?(?:ms|s|m|h)?)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  return path === undefined || Number(steps) < 2
    ? Option.none()
    : Option.some({ path, values: spaced(amount(from), amount(to), Number(steps)) })
}

/** Load: from a fifth of the service's capacity up to all of it. */
const loadOf = (scenario: Simulator.Scenario, steps: number) => {
  const fleet = scenario.fleets.findIndex(({ rate }) => typeof rate === "number")
  if (fleet < 0) return undefined
  const { rate, to } = scenario.fleets[fleet]!
  const service = scenario.services.find(({ name }) => name === to)
  const most = (service && capacityOf(service))?.(0) ?? 1.5 * Number(rate)
  return { path: `fleets.${fleet}.rate`, values: spaced(most / 5, most, steps) }
}

/** Length of the first outage: from half a second up to one and a half times as long as it is. */
const lengthOf = ({ services }: Simulator.Scenario, steps: number) => {
  const service = services.findIndex(({ outages }) => outages.length > 0)
  const outage = services[service]?.outages[0]
  if (outage === undefined) return undefined
  const length = millis(outage.to) - millis(outage.from)
  return {
    path: `services.${service}.outages.0.length`,
    values: spaced(Math.min(500, length / 2), 1.5 * length, steps)
  }
}

interface Asked {
  readonly x: Option.Option<Simulator.Axis>
  readonly y: Option.Option<Simulator.Axis>
}

/** The parameters to map: those given, or load and length of the outage. */
export const axesOf = Effect.fnUntraced(function*(
  scenario: Simulator.Scenario,
  asked: Asked,
  steps: { readonly across: number; readonly up: number }
) {
  const x = Option.getOrElse(asked.x, () => loadOf(scenario, steps.across))
  const y = Option.getOrElse(asked.y, () => lengthOf(scenario, steps.up))
  if (x === undefined) {
    return yield* refusal(
      "the scenario has no fleet with a steady rate to map: give another parameter, such as " +
        "`effect-retry map --x fleets.0.timeout=250ms..4s`"
    )
  }
  if (y === undefined) {
    return yield* refusal(
      "the scenario has no outage to map: give another parameter, such as " +
        "`effect-retry map --y services.0.capacity=60..300`"
    )
  }
  return { x, y }
})

/** Makes the map of each plan, and shows the progress. */
export const mapsOf = Effect.fnUntraced(function*(
  plans: ReadonlyArray<Plan>,
  { runs, x, y }: { readonly x: Simulator.Axis; readonly y: Simulator.Axis; readonly runs: number },
  progress: Progress
) {
  const [first, ...others] = yield* Effect.forEach(plans, (plan, index) =>
    Effect.map(
      Simulator.map(plan.scenario, {
        x,
        y,
        runs,
        onProgress: (done, of) =>
          part(progress, index / plans.length, (index + 1) / plans.length)
            .show(done / of, `${plain(plan.label)}, ${counted(done)} of ${counted(of)} cells`)
      }),
      (found): PolicyMap => ({ label: plan.label, ...found })
    )).pipe(
      Effect.mapError(refusalOf),
      Effect.ensuring(progress.clear)
    )
  return [first!, ...others] as const
})

/** The maps of a page. */
export const pageMaps = Effect.fnUntraced(function*(plans: readonly [Plan, ...Array<Plan>], progress: Progress) {
  const [{ scenario }] = plans
  const axes = yield* axesOf(scenario, { x: Option.none(), y: Option.none() }, pageSteps)
  return yield* Effect.map(
    mapsOf(plans, { ...axes, runs: pageSteps.runs }, progress),
    (maps): Maps => ({ scenario, maps })
  )
})
