/**
 * The diagram of a call, its sends, and who may stop it: for the README and the pages. `npx tsx lab/scripts/call.ts` draws it.
 */
import * as fs from "node:fs"
import { fileURLToPath } from "node:url"
import { type Html, html } from "../src/cli/charts/html.ts"
import { colors, ink, paper, shadeInk, soft } from "../src/cli/charts/palette.ts"
import { box, document, fill, stroke, text } from "../src/cli/charts/svg.ts"

/** A step of a call, and how the call ends there if it does not go on. */
interface Step {
  readonly name: string
  readonly who: string
  readonly end: readonly [head: string, reason: string]
  readonly isGood?: true
}

const steps: ReadonlyArray<Step> = [
  { name: "May it be sent now?", who: "gates: limits, cool-down", end: ["no pass", "the gate's error"] },
  { name: "Send 1, 2, 3 ...", who: "your effect", end: ["it succeeds", "tokens come back"], isGood: true },
  { name: "May it be repeated?", who: "classifier", end: ["no", "not-safe, final"] },
  { name: "May it go on?", who: "policy", end: ["no", "max-attempts"] },
  { name: "Who pays?", who: "retry quota", end: ["no tokens", "quota-exhausted"] },
  { name: "Wait", who: "backoff, or Retry-After", end: ["too long", "deadline"] }
]

const width = 400
const size = 15
const small = 13.5
const left = 34
const boxWidth = 186
const boxHeight = 52
const gap = 24
const top = 62
const right = left + boxWidth
const center = left + boxWidth / 2
const heightOf = (n: number): number => top + n * (boxHeight + gap)
const end = heightOf(steps.length - 1) + boxHeight
const ending = right + 34

const arrowDown = (x: number, y: number): Html => fill(`M${x} ${y}l-5 -8h10z`, soft.light)
const arrowRight = (x: number, y: number, color: string): Html => fill(`M${x} ${y}l-8 -5v10z`, color)

const stepOf = ({ end: [head, reason], isGood, name, who }: Step, n: number): Html => {
  const y = heightOf(n)
  const color = isGood === true ? colors.find(({ light }) => light === "#009e73")!.light : shadeInk.light
  return html`${stroke(`M${center} ${y - gap}V${y - 6}`, soft.light, { width: 1.5 })}${arrowDown(center, y)}${
    fill(box(left, y, boxWidth, boxHeight), paper.light)
  }${stroke(box(left, y, boxWidth, boxHeight), soft.light, { width: 1.5 })}${
    text(center, y + 22, name, { anchor: "middle", bold: true, fill: ink.light, size })
  }${text(center, y + 41, who, { anchor: "middle", size: small })}${
    stroke(`M${right} ${y + 26}H${ending - 8}`, color, { width: 1.5 })
  }${arrowRight(ending - 4, y + 26, color)}${text(ending, y + 22, head, { fill: color, bold: true, size: small })}${
    text(ending, y + 40, reason, { fill: ink.light, size: small })
  }`
}

/** From the wait back to the gates. */
const again: Html = html`${stroke(`M${left} ${end - 26}H14V${top + 26}H${left - 8}`, soft.light, { width: 1.5 })}${
  arrowRight(left, top + 26, soft.light)
}${text(28, (top + end) / 2, "the next send", { upright: true, anchor: "middle", size: small, halo: true })}`

/** The picture. */
export const file = "docs/call.svg"

export const drawn = (): string =>
  document({ width, height: end + 16 }, {
    title: "A call, its sends, and who may stop it",
    description: [
      "Gates let a send pass, or the call ends with their error. The send succeeds, and the call ends.",
      "If it fails, the classifier says whether it may be repeated, the policy whether it goes on, the retry quota pays,",
      "and after a wait that is not past the deadline the gates are asked again. Otherwise the call ends with the send's error."
    ].join(" ")
  }, [
    text(center, 24, "A call", { anchor: "middle", bold: true, fill: ink.light, size: 17 }),
    text(ending, 24, "it ends here", { bold: true, fill: ink.light, size }),
    again,
    ...steps.map(stepOf)
  ])

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  fs.writeFileSync(new URL(`../../${file}`, import.meta.url), drawn())
}
