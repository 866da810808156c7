/**
 * A colour on white paper and on dark. The colours of lines are those of Okabe and Ito, "Color Universal Design", 2008,
 * in an order for each ground; no two lines differ by colour alone, see {@link dashes} and {@link markers}.
 */
export interface Colour {
  readonly light: string
  readonly dark: string
}

export const ink: Colour = { light: "#1c2128", dark: "#e9ebee" }
export const soft: Colour = { light: "#57606b", dark: "#a7b0bb" }
export const grid: Colour = { light: "#e1e4e8", dark: "#343a43" }
export const paper: Colour = { light: "#ffffff", dark: "#14171c" }
export const shade: Colour = { light: "#f6e6e2", dark: "#3b2623" }
export const shadeInk: Colour = { light: "#9c3a22", dark: "#f0a48f" }

/** Of axes. */
export const axisLook = {
  axisLine: { show: true, lineStyle: { color: soft.light } },
  axisTick: { show: true, lineStyle: { color: soft.light } },
  axisLabel: { color: soft.light, hideOverlap: true },
  nameTextStyle: { color: ink.light },
  splitLine: { show: true, lineStyle: { color: grid.light } }
}

/** Of lines. */
export const colours: ReadonlyArray<Colour> = [
  { light: "#0072b2", dark: "#56b4e9" },
  { light: "#d55e00", dark: "#e69f00" },
  { light: "#009e73", dark: "#1fbf8f" },
  { light: "#a8548a", dark: "#cc79a7" },
  { light: "#000000", dark: "#ffffff" },
  { light: "#7a6a00", dark: "#f0e442" },
  { light: "#3b8fc2", dark: "#8fd0f5" }
]

/** Of lines: lengths of dash and gap. */
const dashes: ReadonlyArray<ReadonlyArray<number>> = [
  [],
  [9, 4],
  [2, 3],
  [11, 3, 2, 3],
  [5, 3],
  [14, 3, 2, 3, 2, 3]
]

/** Of lines: paths about the origin, 2 wide and 2 high. */
export const markers: ReadonlyArray<string> = [
  "M1 0A1 1 0 1 1 -1 0A1 1 0 1 1 1 0Z",
  "M-0.9 -0.9H0.9V0.9H-0.9Z",
  "M0 -1L1 0.9L-1 0.9Z",
  "M0 -1.1L1.1 0L0 1.1L-1.1 0Z",
  "M-1 -0.9L1 -0.9L0 1Z",
  "M-0.35 -1H0.35V-0.35H1V0.35H0.35V1H-0.35V0.35H-1V-0.35H-0.35Z",
  "M0 -1.1L1 -0.3L0.65 0.9H-0.65L-1 -0.3Z"
]

/** How a line looks. */
export interface Look {
  readonly colour: Colour
  readonly dash: ReadonlyArray<number>
  /** None for lines that others are measured against. */
  readonly marker: string | undefined
  readonly width: number
}

const nth = <A>(list: ReadonlyArray<A>, index: number): A => list[index % list.length]!

/** The looks of lines, by their place: all different for the first 42. */
export const lookOf = (place: number): Look => ({
  colour: nth(colours, place),
  dash: nth(dashes, place),
  marker: nth(markers, place),
  width: 2
})

/** The look of what lines are measured against, such as a capacity. */
export const reference = (place: number): Look => ({
  colour: soft,
  dash: nth([[5, 3], [1, 3], [10, 4]], place),
  marker: undefined,
  width: 1.5
})

const everything: ReadonlyArray<Colour> = [ink, soft, grid, paper, shade, shadeInk, ...colours]

/** Rules that turn the colours of the charts inside `scope` into those on dark ground. */
export const darkRules = (scope: string): string =>
  everything
    .map(({ dark, light }) => `${scope} [fill="${light}"]{fill:${dark}}${scope} [stroke="${light}"]{stroke:${dark}}`)
    .join("")
