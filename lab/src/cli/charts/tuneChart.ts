import { scaleLinear } from "d3-scale"
import type { Sensitivity, TunedPolicy, Tuning } from "../../Simulator.ts"
import { counted, percent } from "./format.ts"
import { type Html, html } from "./html.ts"
import { colors, ink, soft } from "./palette.ts"
import { shortened, widthOf } from "./shortened.ts"
import { at, below, box, diamond, document, dot, fill, heading, key, levels, stroke, text } from "./svg.ts"

const edge = 16
const top = 86
const height = 300
const bottom = 44
const keyHeight = 70

const front = { left: 66, width: 360, inset: 12 }
const frontRight = front.left + front.width

const bars = { width: 300, rowHeight: 26, thickness: 9 }
const longestPath = 36
const longestLabel = 30

const blue = colors[0]!.light
const orange = colors[1]!.light

/** Points of success: calls out of 100. */
const points = (share: number): number => share * 100

/** Both axes of what is drawn: below and at the left. */
const frame = (bottom: number, left: number, right: number, xName: string): ReadonlyArray<Html> => [
  stroke(`M${at(left)} ${bottom}H${at(right)}`, soft.light),
  text((left + right) / 2, bottom + 34, xName, { anchor: "middle", fill: ink.light })
]

/** The policies, by how far they are behind and their load: the best are at the top left. */
const policies = ({ chosen, policies }: Tuning): ReadonlyArray<Html> => {
  const loads = policies.map(({ worst }) => worst.sendsPerCall)
  const floor = top + height
  const x = scaleLinear([Math.min(...loads), Math.max(...loads)], [front.left + front.inset, frontRight - front.inset])
  const y = scaleLinear([0, Math.max(...policies.map(({ behind }) => points(behind))) || 1], [
    top + front.inset,
    floor - front.inset
  ])
  const spot = (draw: (x: number, y: number) => Html) => ({ behind, worst }: TunedPolicy) =>
    draw(x(worst.sendsPerCall), y(points(behind)))
  const other = (x: number, y: number) => dot(x, y, 3, soft.light)
  const best = (x: number, y: number) => dot(x, y, 4.5, blue)
  const taken = (x: number, y: number) => diamond(x, y, 8, orange)
  const place = x(chosen.worst.sendsPerCall)
  const isOnRight = place > front.left + front.width / 2
  return [
    key(front.left + 12, keyHeight, best(front.left + 4, keyHeight), "no other beats it"),
    key(front.left + 152, keyHeight, other(front.left + 144, keyHeight), "others"),
    key(front.left + 226, keyHeight, taken(front.left + 214, keyHeight), "chosen"),
    ...levels(front.left, frontRight, y.ticks(5).map((value) => ({ label: counted(value), place: y(value) }))),
    text(edge, top + height / 2, "points of success behind the best", {
      anchor: "middle",
      fill: ink.light,
      upright: true
    }),
    ...frame(floor, front.left, frontRight, "sends per call"),
    ...below(floor, x.ticks(6).map((value) => ({ label: counted(value), place: x(value) }))),
    ...policies.filter(({ isOnFront }) => !isOnFront).map(spot(other)),
    ...policies.filter(({ isOnFront }) => isOnFront).map(spot(best)),
    spot(taken)(chosen),
    text(place + (isOnRight ? -12 : 12), y(points(chosen.behind)) + 4, shortened(chosen.label, longestLabel), {
      anchor: isOnRight ? "end" : "start",
      bold: true,
      fill: ink.light,
      halo: true
    })
  ]
}

const signed = (value: number): string => value > 0 ? `+${counted(value)}` : counted(value)

/** What each parameter changes: how much fewer or more calls succeed. */
const parameters = ({ chosen, sensitivity }: Tuning, left: number): ReadonlyArray<Html> => {
  const change = (share: number) => points(share - chosen.worst.succeeded)
  const floor = top + sensitivity.length * bars.rowHeight
  const changes = sensitivity.flatMap(({ higher, lower }) => [change(lower.succeeded), change(higher.succeeded)])
  const x = scaleLinear([Math.min(0, ...changes), Math.max(0, ...changes)], [left, left + bars.width])
  if (changes.every((value) => value === 0)) x.domain([-1, 1])
  x.nice(4)
  const bar = (share: number, y: number, color: string) => {
    const [from, to] = [x(0), x(change(share))]
    return fill(box(Math.min(from, to), y, Math.abs(to - from), bars.thickness), color)
  }
  const row = ({ higher, lower, path }: Sensitivity, n: number): Html => {
    const y = top + n * bars.rowHeight
    const space = (bars.rowHeight - 2 * bars.thickness) / 2
    return html`${
      text(left - 8, y + bars.rowHeight / 2 + 4, shortened(path, longestPath), { anchor: "end", fill: ink.light })
    }${bar(lower.succeeded, y + space, blue)}${bar(higher.succeeded, y + space + bars.thickness, orange)}`
  }
  const sign = (x: number, color: string) => fill(box(x, keyHeight - 5, 10, 10), color)
  return [
    key(left + 16, keyHeight, sign(left, blue), "a tenth less"),
    key(left + 116, keyHeight, sign(left + 100, orange), "a tenth more"),
    ...sensitivity.map(row),
    stroke(`M${at(x(0))} ${top}V${floor}`, soft.light),
    ...frame(floor, left, left + bars.width, "change in points of success"),
    ...below(floor, x.ticks(4).map((value) => ({ label: signed(value), place: x(value) })))
  ]
}

const described = ({ chosen, policies, sensitivity }: Tuning): string =>
  [
    `Chosen of ${policies.length}: ${chosen.label}, at most ${
      percent(chosen.behind)
    } behind the best policy of any outage.`,
    ...sensitivity.map(({ higher, lower, path }) =>
      `${path}: ${percent(lower.succeeded)} succeed with a tenth less, ${percent(higher.succeeded)} with a tenth more.`
    )
  ].join(" ")

/** The policies by how far they are behind and their load, and what the chosen one depends on, as a picture. */
export const tuneSvg = (name: string, tuning: Tuning): string => {
  const { chosen, sensitivity } = tuning
  const pathWidth = 0.9 * Math.max(0, ...sensitivity.map(({ path }) => widthOf(shortened(path, longestPath))))
  const left = frontRight + 40 + pathWidth
  return document(
    {
      width: Math.ceil(left + bars.width + 24),
      height: top + Math.max(height, sensitivity.length * bars.rowHeight) + bottom
    },
    { title: `Policies for ${name}`, description: described(tuning) },
    [
      heading(edge, 26, `Policies for ${shortened(name, 40)}: ${shortened(chosen.label, 40)} is chosen`, 15),
      heading(front.left, 52, "Behind the best policy of any outage, by load", 12),
      heading(left, 52, `In its worst outage (${shortened(chosen.worstOutage, 40)})`, 12),
      ...policies(tuning),
      ...parameters(tuning, left)
    ]
  )
}
