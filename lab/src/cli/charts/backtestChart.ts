import type { Backtest, ComparedBucket, Scenario, Spread } from "../../Simulator.ts"
import type { Figure, Panel } from "./figure.ts"
import { html } from "./html.ts"
import { lookOf } from "./palette.ts"
import { shadesOf } from "./shades.ts"
import { shortened } from "./shortened.ts"
import { document, heading, text } from "./svg.ts"
import { timeMarks } from "./timePanel.ts"

const width = 800
const panelHeight = 250
const headHeight = 64
const gap = 16
const longestName = 60

/** What the lines of the charts are. */
export const what = "Measured, and predicted: the median and the range from 5 to 95 % of the runs."

interface Both {
  readonly measured: number
  readonly predicted: Spread | undefined
}

/** What was measured and what was predicted, in one panel. */
export const panelOf = (name: string, both: ReadonlyArray<Both>): Panel => ({
  name,
  look: lookOf(0),
  lines: [
    { label: "measured", look: lookOf(0), values: both.map(({ measured }) => measured) },
    {
      label: "predicted",
      look: lookOf(1),
      values: both.map(({ predicted }) => predicted?.median ?? null),
      band: {
        low: both.map(({ predicted }) => predicted?.low ?? null),
        high: both.map(({ predicted }) => predicted?.high ?? null)
      }
    }
  ],
  references: []
})

const figureOf = (
  scenario: Scenario,
  { bucketMillis, series }: Backtest,
  title: string,
  of: (bucket: ComparedBucket) => Both
): Figure => {
  const untilMillis = series.length * bucketMillis
  return {
    title,
    what,
    axis: title,
    unit: "per second",
    times: series.map(({ fromMillis }) => fromMillis + bucketMillis / 2),
    untilMillis,
    shades: shadesOf(scenario, untilMillis),
    panels: [panelOf(title, series.map(of))]
  }
}

/** Both lines over time, as one picture: what succeeded above, what was sent below. */
export const backtestSvg = (scenario: Scenario, found: Backtest): string => {
  const title = `${shortened(scenario.name, longestName)}: measured and predicted`
  const charts = [
    figureOf(scenario, found, "succeeded per second", ({ succeeded }) => succeeded),
    figureOf(scenario, found, "sent per second", ({ attempts }) => attempts)
  ].flatMap((figure) =>
    figure.panels.map((panel) => timeMarks(figure, panel, { width: width - 2 * gap, height: panelHeight }))
  )
  return document(
    { width, height: headHeight + charts.length * (panelHeight + gap) },
    {
      title,
      description: [what, ...charts.map(({ caption }) => `${caption.title}: ${caption.description}`)].join(" ")
    },
    [
      heading(gap, 26, title, 15),
      text(gap, 45, what, { size: 12 }),
      ...charts.map(({ content }, n) =>
        html`<g transform="translate(${gap} ${headHeight + n * (panelHeight + gap)})">${content}</g>`
      )
    ]
  )
}
