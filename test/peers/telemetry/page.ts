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

const style = `
  body { font: 13px system-ui, sans-serif; margin: 8px; width: 1264px; position: relative; }
  div.panel { position: absolute; overflow: hidden; }
  h2 { font-size: 16px; margin: 6px 0; }
  h3 { font-size: 13px; font-weight: 600; margin: 4px 0; text-align: center; }
  svg { display: block; }
  .label { font-size: 11px; margin-right: 8px; }
`

const colors = ["#3274d9", "#e0752d", "#3f9142", "#c4162a", "#8f3bb8", "#806000", "#0f7c8a", "#555"]
const colorOf = (index: number): string => colors[index % colors.length]!

const formats: Readonly<Record<string, (value: number) => string>> = {
  percentunit: (value) => `${Math.round(value * 100)} %`,
  s: (value) => `${value.toPrecision(2)} s`,
  percent: (value) => `${Math.round(value)} %`
}

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")

/** The runs of values without a gap, as the points of a line. */
const pointsOf = (values: ReadonlyArray<number | null>, x: (index: number) => number, y: (value: number) => number) =>
  values.reduce<Array<string>>((runs, value, index) => {
    if (value === null) return [...runs, ""]
    return [...runs.slice(0, -1), `${runs.at(-1)} ${x(index).toFixed(1)},${y(value).toFixed(1)}`]
  }, [""]).filter((points) => points !== "")

const chartOf = ({ gridPos: { h, w }, lines, unit }: Drawn, seconds: ReadonlyArray<number>): string => {
  const [width, height] = [w * 52 - 8, h * 30 - 30 - 22 * (1 + Math.floor(lines.length / 5))]
  const most = Math.max(0.1, ...lines.flatMap(({ values }) => values.map((value) => value ?? 0)))
  const [first = 0, last = 1] = [seconds[0], seconds.at(-1)]
  const x = (index: number) => 60 + (width - 68) * (seconds[index]! - first) / Math.max(1, last - first)
  const y = (value: number) => height - 18 - (height - 26) * value / most
  const format = formats[unit] ?? String
  const drawn = lines.flatMap(({ values }, line) =>
    pointsOf(values, x, y).map((points) => `<polyline fill="none" stroke="${colorOf(line)}" points="${points}"/>`)
  )
  const labels = lines.map(({ label }, line) =>
    `<span class="label" style="color:${colorOf(line)}">${escaped(label)}</span>`
  )
  return `<svg width="${width}" height="${height}" font-size="11"><text x="0" y="14">${format(most)}</text>
    <text x="0" y="${height - 14}">${format(0)}</text>${drawn.join("")}</svg><div>${labels.join("")}</div>`
}

const panelOf = (panel: Drawn, seconds: ReadonlyArray<number>): string => {
  const { gridPos: { h, w, x, y }, title, type } = panel
  const place = `left:${x * 52}px;top:${y * 30}px;width:${w * 52 - 8}px;height:${h * 30}px`
  const heading = type === "row" ? `<h2>${escaped(title)}</h2>` : `<h3>${escaped(title)}</h3>`
  return `<div class="panel" style="${place}">${heading}${type === "row" ? "" : chartOf(panel, seconds)}</div>`
}

/** The dashboard as a page, without Grafana. */
export const pageOf = (seconds: ReadonlyArray<number>, panels: ReadonlyArray<Drawn>): string =>
  `<!doctype html>
<meta charset="utf-8"><title>The dashboard</title><style>${style}</style><body>
${panels.map((panel) => panelOf(panel, seconds)).join("\n")}`
