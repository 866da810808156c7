import { useEffect, useRef, useState } from "preact/hooks"
import uPlot from "uplot"
import { type Color, grid as gridColor, ink, lookOf, shade, soft } from "../src/cli/charts/palette.ts"
import type { Line } from "./messages.ts"

/** A line of a chart, and its name. */
export interface Named {
  readonly label: string
  readonly place: number
  readonly line: Line
}

export interface ChartProps {
  readonly title: string
  readonly what: string
  readonly lines: ReadonlyArray<Named>
  readonly seconds: number
  /** The highest value of the axis; otherwise that of the lines. */
  readonly top?: number
  readonly reference?: { readonly label: string; readonly value: number } | undefined
  readonly outage: { readonly from: number; readonly to: number } | undefined
  readonly write: (value: number) => string
  readonly isDark: boolean
  readonly className?: string
}

const shownRows = 24

/** The values behind the picture, at this many times. */
const Values = ({ lines, seconds, title, write }: ChartProps) => {
  const every = Math.max(1, Math.ceil(seconds / shownRows))
  const times = Array.from({ length: Math.ceil(seconds / every) }, (_, n) => n * every)
  return (
    <details>
      <summary>Values</summary>
      <div class="scroll" tabIndex={0} role="region" aria-label={`Values: ${title}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">from</th>
              {lines.map(({ label }) => <th key={label} scope="col">{label}</th>)}
            </tr>
          </thead>
          <tbody>
            {times.map((time) => (
              <tr key={time}>
                <th scope="row">{time} s</th>
                {lines.map(({ label, line }) => {
                  const value = line.values[time]
                  return <td key={label}>{value === null || value === undefined ? "–" : write(value)}</td>
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  )
}

const textSize = 12

const shaded = (outage: NonNullable<ChartProps["outage"]>, color: string) => (plot: uPlot) => {
  const [from, to] = [outage.from, outage.to].map((at) => plot.valToPos(at, "x", true)) as [number, number]
  plot.ctx.save()
  plot.ctx.fillStyle = color
  plot.ctx.fillRect(from, plot.bbox.top, to - from, plot.bbox.height)
  plot.ctx.restore()
}

const referred = ({ label, value }: NonNullable<ChartProps["reference"]>, color: string) => (plot: uPlot) => {
  const { ctx } = plot
  const y = plot.valToPos(value, "y", true)
  if (y < plot.bbox.top) return
  ctx.save()
  ctx.strokeStyle = ctx.fillStyle = color
  ctx.lineWidth = 1.5 * devicePixelRatio
  ctx.setLineDash([5 * devicePixelRatio, 3 * devicePixelRatio])
  ctx.beginPath()
  ctx.moveTo(plot.bbox.left, y)
  ctx.lineTo(plot.bbox.left + plot.bbox.width, y)
  ctx.stroke()
  ctx.font = `${textSize * devicePixelRatio}px system-ui, sans-serif`
  ctx.textAlign = "left"
  ctx.fillText(label, plot.bbox.left + 4 * devicePixelRatio, y - 5 * devicePixelRatio)
  ctx.restore()
}

/** Lines with their bands, as uPlot takes them: of each the values, then the low and the high end. */
const dataOf = ({ lines, seconds }: ChartProps): uPlot.AlignedData => {
  const length = Math.max(seconds, ...lines.map(({ line }) => line.values.length))
  const padded = (values: ReadonlyArray<number | null> | undefined) =>
    Array.from({ length }, (_, n) => values?.[n] ?? null)
  const times = Array.from({ length }, (_, n) => n + 0.5)
  return [times, ...lines.flatMap(({ line: { band, values } }) => [values, band?.low, band?.high].map(padded))]
}

const seriesOf = (lines: ReadonlyArray<Named>, tint: (color: Color) => string): Array<uPlot.Series> =>
  lines.flatMap(({ label, place }) => {
    const { color, dash } = lookOf(place)
    const bound: uPlot.Series = { width: 0, points: { show: false } }
    return [
      { label, stroke: tint(color), width: 2, dash: [...dash], points: { show: false }, spanGaps: true },
      bound,
      bound
    ]
  })

const optionsOf = (props: ChartProps, width: number, onPoint: (at: number | null) => void): uPlot.Options => {
  const { isDark, lines, outage, reference, seconds, top, write } = props
  const tint = (color: Color) => isDark ? color.dark : color.light
  const axis = {
    stroke: tint(ink),
    font: `${textSize}px system-ui, sans-serif`,
    grid: { stroke: tint(gridColor), width: 1 },
    ticks: { stroke: tint(soft), width: 1, size: 4 }
  }
  return {
    width,
    height: width < 500 ? 170 : 210,
    legend: { show: false },
    cursor: { sync: { key: "time" }, drag: { x: false, y: false }, points: { size: 7 } },
    scales: {
      x: { time: false, range: [0, seconds] },
      y: {
        range: (_, __, most) => [0, top ?? Math.max(1, most ?? 0, (reference?.value ?? 0) * 1.05) * 1.08]
      }
    },
    axes: [
      { ...axis, values: (_, ticks) => ticks.map((tick) => `${tick} s`), size: 30 },
      { ...axis, values: (_, ticks) => ticks.map(write), size: 58, space: 32 }
    ],
    series: [{}, ...seriesOf(lines, tint)],
    bands: lines.map(({ place }, index) => ({
      series: [index * 3 + 3, index * 3 + 2],
      fill: `${tint(lookOf(place).color)}2e`
    })),
    hooks: {
      drawClear: outage === undefined ? [] : [shaded(outage, tint(shade))],
      draw: reference === undefined ? [] : [referred(reference, tint(soft))],
      setCursor: [({ cursor: { idx } }) => onPoint(idx ?? null)]
    }
  }
}

/** What decides the look of a plot; if only the data differ, the same plot is redrawn. */
const lookKey = ({ isDark, lines, outage, reference, seconds }: ChartProps, width: number): string =>
  JSON.stringify([isDark, lines.map(({ label, place }) => [label, place]), outage, reference, seconds, width])

/** Lines over time: a picture, the values under the pointer, and a table of values. */
export const Chart = (props: ChartProps) => {
  const { className = "", lines, title, what, write } = props
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<{ readonly key: string; readonly made: uPlot } | undefined>(undefined)
  const [width, setWidth] = useState(0)
  const [point, setPoint] = useState<number | null>(null)

  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)))
    observer.observe(box.current!)
    return () => observer.disconnect()
  }, [])

  useEffect(() => {
    if (width === 0) return
    const key = lookKey(props, width)
    if (plot.current?.key === key) return plot.current.made.setData(dataOf(props))
    plot.current?.made.destroy()
    plot.current = { key, made: new uPlot(optionsOf(props, width, setPoint), dataOf(props), box.current!) }
  })

  useEffect(() => () => plot.current?.made.destroy(), [])

  const at = (values: ReadonlyArray<number | null>) => {
    const value = point === null ? undefined : values[point]
    return value === null || value === undefined ? "–" : write(value)
  }
  return (
    <figure class={className}>
      <figcaption>
        <h3>{title}</h3>
        <p>{what}</p>
      </figcaption>
      <div ref={box} class="plot" role="img" aria-label={`${title}. ${what} The values follow as a table.`} />
      <p class="readout" aria-hidden="true">
        {point === null
          ? " "
          : `${point} s: ${lines.map(({ label, line }) => `${label} ${at(line.values)}`).join(" · ")}`}
      </p>
      <Values {...props} />
    </figure>
  )
}
