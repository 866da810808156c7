import { scaleLinear } from "d3-scale"
import type { Html } from "./html.ts"
import { colors, ink } from "./palette.ts"
import { shortened, widthOf } from "./shortened.ts"
import { box, fill, inPage, text } from "./svg.ts"

/** Something with a length. */
interface Bar {
  readonly label: string
  readonly value: number
  /** What stands at its end, such as `243 for each call`. */
  readonly note: string
}

/** Bars below each other, each with its name. */
export interface Bars {
  readonly title: string
  readonly what: string
  readonly bars: ReadonlyArray<Bar>
}

const width = 400
const rowHeight = 22
const longestName = 18

/** Draws bars from left to right, the first on top. */
export const barChart = ({ bars, title }: Bars): Html => {
  const labels = bars.map(({ label }) => shortened(label, longestName))
  const left = 10 + 0.9 * Math.max(...labels.map(widthOf))
  const right = 10 + 0.9 * Math.max(...bars.map(({ note }) => widthOf(note)))
  const x = scaleLinear([0, Math.max(...bars.map(({ value }) => value))], [0, width - left - right])
  const description = bars.map(({ label, note }) => `${label}: ${note}.`).join(" ")
  return inPage(
    { width, height: bars.length * rowHeight + 6 },
    { title, description },
    bars.flatMap(({ note, value }, n) => {
      const top = 3 + n * rowHeight
      return [
        text(left - 6, top + 14, labels[n]!, { anchor: "end", fill: ink.light }),
        fill(box(left, top + 2, x(value), rowHeight - 6), colors[0]!.light),
        text(left + x(value) + 6, top + 14, note, { fill: ink.light })
      ]
    })
  )
}
