/**
 * A color on white paper and on dark. The colors of lines are those of Okabe and Ito, "Color Universal Design", 2008,
 * in an order for each ground. No two lines differ by color alone: each has its name at its end, or a picture of its own.
 */
export interface Color {
  readonly light: string
  readonly dark: string
}

export const ink: Color = { light: "#1c2128", dark: "#e9ebee" }
export const soft: Color = { light: "#57606b", dark: "#a7b0bb" }
export const grid: Color = { light: "#e1e4e8", dark: "#343a43" }
export const paper: Color = { light: "#ffffff", dark: "#14171c" }
export const shade: Color = { light: "#f6e6e2", dark: "#3b2623" }
export const shadeInk: Color = { light: "#9c3a22", dark: "#f0a48f" }

/** Of lines. */
export const colors: ReadonlyArray<Color> = [
  { light: "#0072b2", dark: "#56b4e9" },
  { light: "#d55e00", dark: "#e69f00" },
  { light: "#a8548a", dark: "#cc79a7" },
  { light: "#000000", dark: "#ffffff" },
  { light: "#009e73", dark: "#1fbf8f" },
  { light: "#7a6a00", dark: "#f0e442" },
  { light: "#3b8fc2", dark: "#8fd0f5" }
]

/** Of verdicts: good, doubtful, bad. */
export const good: Color = { light: "#00785a", dark: "#3fd6a6" }
export const doubtful: Color = { light: "#7a6a00", dark: "#f0e442" }
export const bad: Color = { light: "#b34700", dark: "#ff9f4a" }

/** Of the cells of a map: the worse, the darker. */
export const cells: { readonly [Of in "recovers" | "limps" | "collapses"]: Color } = {
  recovers: { light: "#cdebe0", dark: "#1c4a3e" },
  limps: { light: "#f0cf3c", dark: "#b09322" },
  collapses: { light: "#cc5500", dark: "#e8762c" }
}

/** How a line looks. */
export interface Look {
  readonly color: Color
  readonly dash: ReadonlyArray<number>
  readonly width: number
}

const nth = <A>(list: ReadonlyArray<A>, index: number): A => list[index % list.length]!

/** The look of a line by its place. */
export const lookOf = (place: number): Look => ({ color: nth(colors, place), dash: [], width: 1.8 })

/** The look of what lines are measured against, such as a capacity. */
export const reference = (place: number): Look => ({
  color: soft,
  dash: nth([[], [5, 3], [2, 3]], place),
  width: place === 0 ? 1 : 1.3
})

const everything: ReadonlyArray<Color> = [ink, soft, grid, paper, shade, shadeInk, ...colors, ...Object.values(cells)]

/** Rules that turn the colors of the charts inside `scope` into those on dark ground. */
export const darkRules = (scope: string): string =>
  everything
    .map(({ dark, light }) => `${scope} [fill="${light}"]{fill:${dark}}${scope} [stroke="${light}"]{stroke:${dark}}`)
    .join("")
