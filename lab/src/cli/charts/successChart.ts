import { scaleLinear } from "d3-scale"
import type { Recoveries } from "../../Simulator.ts"
import type { Line, Shade } from "./figure.ts"
import { counted, share, timeUnit } from "./format.ts"
import { type Html, html } from "./html.ts"
import { ink, shade, shadeInk, soft } from "./palette.ts"
import { shortened, widthOf } from "./shortened.ts"
import {
  apart,
  at,
  bandThrough,
  below,
  box,
  type Caption,
  dot,
  fill,
  inPage,
  levels,
  lineThrough,
  type Size,
  stroke,
  text
} from "./svg.ts"

/** The calls of a policy: the share that succeeds over time, and how they come out of the outage. */
interface Course extends Line {
  /** Such as `back after 1 s`. */
  readonly outcome: string
  /** When they are back; `undefined` where not all runs are. */
  readonly backMillis: number | undefined
}

/** Courses of one scenario, the best first. */
export interface Success {
  readonly times: ReadonlyArray<number>
  readonly untilMillis: number
  readonly shades: ReadonlyArray<Shade>
  readonly courses: ReadonlyArray<Course>
}

/** A length of time as people say it: `40 s`, `2 minutes`. */
const inWords = (millis: number): string => {
  const seconds = Math.max(1, Math.round(millis / 1000))
  if (seconds < 100) return `${seconds} s`
  return seconds < 6000 ? `${Math.round(seconds / 30) / 2} minutes` : `${Math.round(seconds / 1800) / 2} hours`
}

const never = "not within the run"
const staysUp = "stays up"

/** How the calls come out of the outage, in words. */
export const outcomeOf = ({ afterMillis, of, runs }: Recoveries): string => {
  if (runs === 0) return never
  if (runs < of) return `back in ${counted(runs)} of ${counted(of)} runs`
  return afterMillis === undefined || afterMillis.high === 0 ? staysUp : `back after ${inWords(afterMillis.mean)}`
}

/** When the calls of all runs are back. */
export const backOf = ({ afterMillis, of, runs }: Recoveries, endMillis: number): number | undefined =>
  runs < of || afterMillis === undefined || afterMillis.high === 0 ? undefined : endMillis + afterMillis.mean

/** How large a picture and its letters are. */
export interface Shape extends Size {
  readonly type: number
}

/** For pages and for phones. */
export const wide: Shape = { width: 720, height: 320, type: 15 }
export const narrow: Shape = { width: 390, height: 320, type: 15 }

interface Drawing {
  readonly success: Success
  readonly type: number
  readonly left: number
  readonly right: number
  readonly top: number
  readonly bottom: number
  readonly x: (millis: number) => number
  readonly y: (share: number) => number
}

const drawingOf = (success: Success, { height, type, width }: Shape): Drawing => {
  const [left, right, top, bottom] = [3.6 * type, width - type, 2.9 * type, height - 2 * type]
  return {
    success,
    type,
    left,
    right,
    top,
    bottom,
    x: scaleLinear([0, success.untilMillis], [left, right]),
    y: scaleLinear([0, 1], [bottom, top])
  }
}

const axesOf = ({ bottom, left, right, success: { untilMillis }, top, type, x, y }: Drawing): ReadonlyArray<Html> => {
  const unit = timeUnit(untilMillis)
  const all = scaleLinear([0, untilMillis / unit.millis], [0, 1]).ticks((right - left) / (5 * type))
  const ticks = all.filter((value) => x(value * unit.millis) + 2 * type < right + type)
  return [
    ...levels(left, right, [0, 0.5, 1].map((value) => ({ place: y(value), label: `${100 * value} %` })), type),
    stroke(`M${at(left)} ${at(bottom)}H${at(right)}`, soft.light),
    ...below(
      bottom,
      ticks.map((value) => ({ place: x(value * unit.millis), label: value === 0 ? "0" : `${value} ${unit.name}` })),
      type
    ),
    text(0.2 * type, top - 1.7 * type, "calls that succeed", { size: type })
  ]
}

/** When the service is in trouble, and for how long. */
const troublesOf = ({ bottom, left, success: { shades }, top, type, x }: Drawing): ReadonlyArray<Html> =>
  shades.map(({ fromMillis, toMillis, what }) => {
    const [from, to] = [x(fromMillis), x(toMillis)]
    const area = fill(box(from, top, to - from, bottom - top), shade.light)
    if (shades.length > 1) return area
    return html`${area}${
      text(Math.max(left, from), top - 0.5 * type, `${what}, ${inWords(toMillis - fromMillis)}`, {
        fill: shadeInk.light,
        size: type
      })
    }`
  })

const curveOf = ({ success: { times }, type, x, y }: Drawing, { band, look, values }: Course): Html => {
  const heightOf = (value: number | null | undefined) => value === null || value === undefined ? null : y(value)
  const area = band &&
    bandThrough(times.map((time, n) => [x(time), heightOf(band.low[n]), heightOf(band.high[n])]))
  return html`${area === undefined || area === "" ? [] : fill(area, look.color.light, 0.2)}${
    stroke(lineThrough(times.map((time, n) => [x(time), heightOf(values[n])])), look.color.light, {
      width: at(type / 5)
    })
  }`
}

/** The label of a course: where it begins or ends, and how high it wants to be. */
interface Label {
  readonly course: Course
  readonly place: number
  readonly isEnd: boolean
  readonly height: number
}

const longestName = 24

const widthOfLabel = ({ label, outcome }: Course, type: number, isSplit: boolean): number => {
  const [name, words] = [widthOf(shortened(label, longestName)), widthOf(outcome)]
  return (isSplit ? Math.max(name, words) : name + words + 10) * type / 14 + 1.4 * type
}

/** Next to the rise of a line that comes back, or above the end of one that does not. */
const labelsOf = (drawing: Drawing, isSplit: boolean): ReadonlyArray<Label> => {
  const { bottom, left, right, success: { courses, times }, top, type, x, y } = drawing
  const back = courses.filter(({ backMillis }) => backMillis !== undefined)
  return courses.map((course): Label => {
    if (course.backMillis === undefined) {
      const value = course.values.slice(0, times.length).filter((value) => value !== null).at(-1) ?? 0
      const height = y(value) + (value > 0.8 ? 2 : isSplit ? -2.1 : -0.9) * type
      return { course, place: right, isEnd: true, height }
    }
    const place = x(course.backMillis)
    const after = place + 0.7 * type
    const isEnd = after + widthOfLabel(course, type, isSplit) > right && place - left > right - after
    const height = top + (bottom - top) * (0.25 + 0.45 * (back.indexOf(course) + 0.5) / back.length)
    return { course, place: isEnd ? place - 0.7 * type : after, isEnd, height }
  })
}

const labels = (drawing: Drawing, width: number): ReadonlyArray<Html> => {
  const { bottom, type } = drawing
  const isSplit = width < 560
  const all = labelsOf(drawing, isSplit)
  const heights = apart(
    all.map(({ height }) => height),
    (isSplit ? 2.9 : 1.6) * type,
    bottom - (isSplit ? 2 : 0.7) * type
  )
  return all.map(({ course, isEnd, place }, n) => {
    const { label, look, outcome } = course
    const side = isEnd ? -1 : 1
    const letters = { size: type, fill: ink.light, halo: true, anchor: isEnd ? "end" : "start" } as const
    const name = shortened(label, longestName)
    const from = place + side * 1.2 * type
    return html`${dot(place + side * 0.4 * type, heights[n]! - 0.35 * type, at(0.38 * type), look.color.light)}${
      isSplit
        ? [
          text(from, heights[n]!, name, { ...letters, bold: true }),
          text(from, heights[n]! + 1.25 * type, outcome, letters)
        ]
        : text(from, heights[n]!, html`<tspan font-weight="600">${name}:</tspan> ${outcome}`, letters)
    }`
  })
}

/** The picture in words. */
export const captionOf = (title: string, { courses, times }: Success): Caption => ({
  title,
  description: [
    "The share of calls that succeed over time.",
    ...courses.map(({ label, outcome, values }) => {
      const shares = values.slice(0, times.length).filter((value) => value !== null)
      return `${label}: ${outcome}, lowest ${share(Math.min(1, ...shares))}, in the end ${share(shares.at(-1) ?? 0)}.`
    })
  ].join(" ")
})

/** What is drawn. */
export const marks = (success: Success, shape: Shape): ReadonlyArray<Html> => {
  const drawing = drawingOf(success, shape)
  return [
    ...troublesOf(drawing),
    ...axesOf(drawing),
    ...[...success.courses].reverse().map((course) => curveOf(drawing, course)),
    ...labels(drawing, shape.width)
  ]
}

/** More lines than this cannot be kept apart in one picture. */
const mostCourses = 4

/** Whether there is something to see in one picture: from five policies on, each has one of its own. */
export const isOverlaid = ({ courses, times }: Success): boolean =>
  times.length > 1 && courses.length <= mostCourses &&
  courses.some(({ values }) => values.some((value) => value !== null))

/** From the best: it stays up, it is back in all runs, in some, in none. */
const placeOf = ({ backMillis, outcome }: Success["courses"][number]): number => {
  if (outcome === staysUp) return 0
  return backMillis ?? (outcome === never ? Infinity : Number.MAX_VALUE)
}

/** How the calls fare with each policy, the best first: `limited: back after 1 s; none: not within the run`. */
export const headline = ({ courses }: Success): string =>
  [...courses].sort((a, b) => placeOf(a) - placeOf(b) || 0)
    .map(({ label, outcome }) => `${shortened(label, longestName)}: ${outcome}`).join("; ")

/** All courses in one picture of a page. */
export const successHtml = (title: string, success: Success, shape: Shape): Html =>
  inPage(shape, captionOf(title, success), marks(success, shape))
