import { isBounded } from "./bounds.ts"
import { Chance } from "./chance.ts"
import { type Problem, renderPath } from "./problem.ts"
import type { SimulationResult } from "./result.ts"
import { summaryOf } from "./runs.ts"
import type { Edge, Scenario, ServiceSettings } from "./scenario.ts"
import { spreadOf } from "./spread.ts"
import { millis, sampler } from "./units.ts"

const draws = 1001

const seconds = (millis: number): string => `${Number((millis / 1000).toPrecision(3))} s`

/** Half of the attempts take longer than this when nothing is wrong and no queue exists: both ways, and the work. */
const usualMillis = ({ network }: Edge, { latency, slowdown }: ServiceSettings): number => {
  const [travel, work] = [sampler(network), sampler(latency)]
  const chance = new Chance(1, "warnings")
  const drawn = (draw: typeof work): number => draw?.(chance) ?? 0
  return spreadOf(
    Array.from({ length: draws }, () => drawn(travel) + drawn(work) + millis(slowdown) + drawn(travel))
  )!.median
}

type Path = ReadonlyArray<PropertyKey>

const ofEdge = (services: Scenario["services"], edge: Edge, path: Path): ReadonlyArray<Problem> => {
  const service = services.find(({ name }) => name === edge.to)
  if (service === undefined || edge.timeout === undefined) return []
  const usual = usualMillis(edge, service)
  if (usual < millis(edge.timeout)) return []
  const problem = `at least half of the attempts time out even when nothing is wrong: they take ${
    seconds(usual)
  }, but wait only ${seconds(millis(edge.timeout))}`
  return [{ path: renderPath([...path, "timeout"]), problem }]
}

const ofOutages = ({ duration, services }: Scenario): ReadonlyArray<Problem> => {
  const end = millis(duration)
  return services.flatMap(({ outages }, service) =>
    outages.flatMap(({ from, to }, outage): ReadonlyArray<Problem> => {
      const path = (key: string) => renderPath(["services", service, "outages", outage, key])
      if (millis(from) >= end) {
        return [{
          path: path("from"),
          problem: `is outside the run, in which calls start for ${seconds(end)}: no effect`
        }]
      }
      return millis(to) < end
        ? []
        : [{ path: path("to"), problem: `is not before the end of the run, ${seconds(end)}: no recovery can be seen` }]
    })
  )
}

const ofRuns = (results: ReadonlyArray<SimulationResult>): ReadonlyArray<Problem> => {
  const { of, runs } = summaryOf(results).recovery
  return runs === 0 || runs === of
    ? []
    : [{ path: "", problem: `recovers in ${runs} of ${of} runs: it is on the edge, where a small change decides` }]
}

/** The scenario's own notes, settings that are allowed but probably a mistake, and results that are not reliable. */
export const warningsOf = (scenario: Scenario, results: ReadonlyArray<SimulationResult>): ReadonlyArray<Problem> => {
  const { fleets, notes = [], services } = scenario
  return [
    ...notes.map((problem, index) => ({ path: renderPath(["notes", index]), problem })),
    ...fleets.flatMap((fleet, index) => ofEdge(services, fleet, ["fleets", index])),
    ...services.flatMap(({ calls }, service) =>
      calls.flatMap((edge, index) => ofEdge(services, edge, ["services", service, "calls", index]))
    ),
    ...ofOutages(scenario),
    ...isBounded(scenario) ? ofRuns(results) : []
  ]
}
