import { BarChart, CustomChart, LineChart, ScatterChart } from "echarts/charts"
import {
  GridComponent,
  LegendComponent,
  MarkAreaComponent,
  MarkLineComponent,
  TitleComponent
} from "echarts/components"
import { type EChartsCoreOption, init, use } from "echarts/core"
import { SVGRenderer } from "echarts/renderers"
import { escaped } from "./escape.ts"

/** How large a picture is, in CSS pixels. */
export interface Size {
  readonly width: number
  readonly height: number
}

/** What a picture says to those who do not see it. */
export interface Caption {
  readonly title: string
  readonly description: string
}

const components = [
  BarChart,
  CustomChart,
  LineChart,
  ScatterChart,
  GridComponent,
  LegendComponent,
  MarkAreaComponent,
  MarkLineComponent,
  TitleComponent,
  SVGRenderer
]

const fontFamily = "system-ui, sans-serif"

/** `style="font-size:12px;"` as `font-size="12px"`: a page that allows no inline styles shows it too. */
const asAttributes = (css: string): string =>
  css
    .split(";")
    .map((declaration) => declaration.split(":"))
    .flatMap(([name, value]) => name && value ? [` ${name.trim()}="${value.trim()}"`] : [])
    .join("")

/** Without what only a pointer needs, and with ids that depend on nothing but the name. */
const tidied = (svg: string, name: string): string =>
  svg
    .replace(/<style[\s\S]*?<\/style>\s*/g, "")
    .replace(/ style="([^"]*)"/g, (_, css: string) => asAttributes(css))
    .replace(/ (class|pointer-events|ecmeta_[a-z_]+|xmlns:xlink|baseProfile|version)="[^"]*"/g, "")
    .replace(/(id="|url\(#|href="#)zr\d+-/g, `$1${name}-`)
    .replace(/\n+/g, "\n")

/** Draws a chart as SVG. Ids in it begin with `name`. */
export const draw = (
  option: EChartsCoreOption,
  { height, width }: Size,
  { description, title }: Caption,
  name: string
): string => {
  use(components)
  const chart = init(null, null, { renderer: "svg", ssr: true, width, height })
  try {
    chart.setOption({ animation: false, textStyle: { fontFamily, fontSize: 12 }, ...option })
    const svg = tidied(chart.renderToSVGString(), name)
    const texts = `<title>${escaped(title)}</title><desc>${escaped(description)}</desc>`
    return svg.replace(/^<svg([^>]*)>/, (_, attributes: string) => `<svg${attributes} role="img">${texts}`)
  } finally {
    chart.dispose()
  }
}
