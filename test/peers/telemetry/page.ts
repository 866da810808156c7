import * as fs from "node:fs"
import { createRequire } from "node:module"
import * as path from "node:path"

/** A line of a panel: a value for each moment, `null` where there is none. */
interface Line {
  readonly label: string
  readonly values: ReadonlyArray<number | null>
}

/** A panel or row of the dashboard, and what its queries found. */
export interface Drawn {
  readonly title: string
  readonly type: string
  readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number }
  readonly unit: string
  readonly lines: ReadonlyArray<Line>
}

const plot = path.dirname(createRequire(import.meta.url).resolve("uplot/package.json"))
const read = (file: string) => fs.readFileSync(path.join(plot, "dist", file), "utf8")

const style = `
  body { font: 13px system-ui, sans-serif; margin: 8px; width: 1264px; position: relative; }
  div.panel { position: absolute; overflow: hidden; }
  h2 { font-size: 16px; margin: 6px 0; }
  h3 { font-size: 13px; font-weight: 600; margin: 4px 0; text-align: center; }
  .u-legend { font-size: 11px; }
`

/** Draws the panels where the dashboard has them. It runs in the page. */
const script = `
const colors = ["#3274d9", "#e0752d", "#3f9142", "#c4162a", "#8f3bb8", "#806000", "#0f7c8a", "#555"]
const formats = {
  percentunit: (v) => Math.round(v * 100) + " %",
  s: (v) => v + " s",
  percent: (v) => v + " %"
}
for (const { gridPos: { h, w, x, y }, lines, title, type, unit } of dashboard.panels) {
  const panel = document.body.appendChild(document.createElement("div"))
  panel.className = "panel"
  Object.assign(panel.style, { left: x * 52 + "px", top: y * 30 + "px", width: w * 52 - 8 + "px", height: h * 30 + "px" })
  const heading = panel.appendChild(document.createElement(type === "row" ? "h2" : "h3"))
  heading.textContent = title
  if (type === "row") continue
  const format = formats[unit] ?? String
  new uPlot({
    width: w * 52 - 8,
    height: h * 30 - 30 - 22 * (1 + Math.floor(lines.length / 5)),
    scales: { y: { range: { min: { pad: 0.1, soft: 0, mode: 1 }, max: { pad: 0.1, soft: 0.1, mode: 1 } } } },
    axes: [{}, { size: 60, values: (_, ticks) => ticks.map(format) }],
    series: [{}, ...lines.map(({ label }, index) => ({ label, stroke: colors[index % 8], width: 1, points: { show: false } }))]
  }, [dashboard.seconds, ...lines.map(({ values }) => values)], panel)
}
`

/** The dashboard as a page, without Grafana. */
export const pageOf = (seconds: ReadonlyArray<number>, panels: ReadonlyArray<Drawn>): string =>
  `<!doctype html>
<meta charset="utf-8"><title>The dashboard</title><style>${read("uPlot.min.css")}${style}</style><body>
<script>${read("uPlot.iife.min.js")}</script>
<script>const dashboard = ${JSON.stringify({ seconds, panels })}
${script}</script>`
