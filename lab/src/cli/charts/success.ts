import { type Scenario, summarize } from "../../Simulator.ts"
import { millis } from "../../simulator/units.ts"
import { successOf } from "./buckets.ts"
import { html } from "./html.ts"
import { lookOf } from "./palette.ts"
import { type Plan, planOf } from "./plan.ts"
import type { Runs } from "./run.ts"
import { widthOf } from "./shortened.ts"
import { backOf, captionOf, marks, outcomeOf, type Shape, type Success } from "./successChart.ts"
import { at, document, heading } from "./svg.ts"

const lastEnd = ({ services }: Scenario): number =>
  Math.max(0, ...services.flatMap(({ outages }) => outages.map(({ to }) => millis(to))))

/** What the runs of a page show of the calls of all fleets. */
export const successIn = ({ raster, runs, shades }: Plan): Success => {
  const { scenario } = runs[0].result
  const untilMillis = Math.min(raster.untilMillis, millis(scenario.duration))
  const width = raster.bucketMillis * raster.perPoint
  const points = Math.max(1, Math.floor(untilMillis / width))
  return {
    times: Array.from({ length: points }, (_, n) => (n + 0.5) * width),
    untilMillis,
    shades,
    courses: runs.map((run, place) => {
      const { recovery } = summarize(run.results)
      return {
        label: run.label,
        look: lookOf(place),
        ...successOf(raster, run),
        outcome: outcomeOf(recovery),
        backMillis: backOf(recovery, lastEnd(scenario))
      }
    })
  }
}

/** Lines of a title. */
const titleLines = (title: string, width: number, size: number): ReadonlyArray<string> => {
  const lines: Array<string> = []
  for (const word of title.split(" ")) {
    const longer = `${lines.at(-1) ?? ""} ${word}`
    if (lines.length > 0 && widthOf(longer) * 0.82 * size / 12 <= width) lines[lines.length - 1] = longer
    else lines.push(word)
  }
  return lines
}

/** All courses in one picture that is a file of its own, below a title. */
export const successSvg = (title: string, runs: Runs, shape: Shape): string => {
  const success = successIn(planOf(runs))
  const size = at(1.25 * shape.type)
  const lines = titleLines(title, shape.width - 2 * shape.type, size)
  const top = lines.length * 1.3 * size + 0.8 * shape.type
  return document(
    { width: shape.width, height: at(shape.height + top) },
    captionOf(title, success),
    [
      ...lines.map((line, n) => heading(0.2 * shape.type + 4, 1.3 * size * (n + 1), line, size)),
      html`<g transform="translate(0 ${at(top)})">${marks(success, shape)}</g>`
    ]
  )
}
