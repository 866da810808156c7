import type { Spread } from "../../Simulator.ts"
import { swatch } from "./figureHtml.ts"
import { cell, counted, rounded, share } from "./format.ts"
import { type Html, html, name, raw } from "./html.ts"
import { lookOf } from "./palette.ts"
import { type Fate, isLost, type Ranked, since } from "./ranking.ts"
import { at, box } from "./svg.ts"
import { seconds } from "./verdict.ts"

const badges: { readonly [Of in Fate]: readonly [look: string, sign: string, words: (one: Ranked) => string] } = {
  undisturbed: ["good", "\u2713", () => "stays healthy"],
  always: ["good", "\u2713", () => "recovers"],
  sometimes: ["doubtful", "~", ({ found: { recovery: { of, runs } } }) => `in ${counted(runs)} of ${counted(of)} runs`],
  unrecovered: ["bad", "\u2717", () => "not within the run"],
  ill: ["bad", "\u2717", () => "healthy at no time"],
  "not yet": ["doubtful", "~", () => "not yet"],
  unbounded: ["doubtful", "~", () => "nothing to recover from"],
  unknown: ["doubtful", "~", () => "no call ended"]
}

const badge = (one: Ranked): Html => {
  const [look, sign, words] = badges[one.fate]
  return html`<span class="badge ${look}"><span aria-hidden="true">${sign} </span>${words(one)}</span>`
}

const range = (found: Spread | undefined, write: (value: number) => string): Html => {
  if (found === undefined) return html``
  const [low, high] = [write(found.low), write(found.high)]
  return low === high ? html`` : html` <small>${low} to ${high}</small>`
}

/** A figure, and below it the range of most runs. */
export const figure = (found: Spread | undefined, write: (value: number) => string): Html =>
  html`${found === undefined ? "\u2013" : write(found.mean)}${range(found, write)}`

/** A share as a bar: full to the mean, and a line over what most runs have. */
const bar = (found: Spread | undefined): Html =>
  found === undefined ? html`` : raw(
    `<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><path class="ground" d="${
      box(0, 0, 100, 8)
    }"/><path class="full" d="${box(0, 0, 100 * found.mean, 8)}"/><path class="range" d="M${at(100 * found.low)} 4H${
      at(100 * found.high)
    }"/></svg>`
  )

interface Column {
  readonly head: string
  /** Explains the column, where its head does not. */
  readonly what?: string
  readonly of: (one: Ranked) => Html
}

const afterwards = ({ afterwards }: Ranked): Html => {
  if (afterwards === undefined) return html`\u2013`
  const { capacity, perSecond } = afterwards
  const over = capacity !== undefined && perSecond.mean > capacity
  return html`${over ? html`<strong>${rounded(perSecond.mean)}</strong>` : rounded(perSecond.mean)}${
    range(perSecond, rounded)
  }`
}

const recoveryColumns = (ranks: ReadonlyArray<Ranked>): ReadonlyArray<Column> => [
  {
    head: "recovers",
    what: "Recovers: gets back to 90 % of the success rate before the outage.",
    of: badge
  },
  ...ranks.some(({ found }) => (found.recovery.afterMillis?.high ?? 0) > 0)
    ? [{ head: `time ${since(ranks[0]!)}`, of: ({ found }: Ranked) => figure(found.recovery.afterMillis, seconds) }]
    : []
]

const columnsFor = (ranks: ReadonlyArray<Ranked>): ReadonlyArray<Column> => [
  ...ranks.some(({ fate }) => fate !== "unbounded") ? recoveryColumns(ranks) : [],
  { head: "calls that succeed", of: ({ found }) => html`${bar(found.succeeded)}${figure(found.succeeded, share)}` },
  { head: "requests per call", of: ({ found }) => figure(found.sendsPerCall, (value) => value.toFixed(2)) },
  {
    head: "p99",
    what: "p99: of calls that succeed, retries included.",
    of: ({ found }) => figure(found.p99Millis, (value) => cell("duration", value))
  },
  { head: "peak load, per second", of: ({ found }) => figure(found.peakPerSecond, rounded) },
  ...ranks.some((one) => one.afterwards !== undefined) ?
    [{
      head: "load afterwards, per second",
      what: `Load afterwards: in the last half of the time ${since(ranks[0]!)}.`,
      of: afterwards
    }] :
    [],
  ...ranks.some(({ below }) => below !== undefined)
    ? [{
      head: "recovers below, per second",
      what: "Recovers below: in theory, it recovers from any outage below this many calls per second.",
      of: ({ below }: Ranked) => html`${below === undefined ? "\u2013" : counted(Math.floor(below))}`
    }]
    : []
]

/** The policies by rank, with every figure they are ranked by. On narrow screens each row is a card. */
export const rankTable = (ranks: ReadonlyArray<Ranked>): Html => {
  const columns = columnsFor(ranks)
  const row = (one: Ranked, place: number): Html =>
    html`<tr role="row"${
      place === 0 && ranks.length > 1 && !isLost(one) ? html` class="best"` : []
    }><th role="rowheader" scope="row">${swatch(lookOf(place))}${name(one.run.label)}${
      one.isPartial ? " (partial)" : ""
    }</th>${columns.map(({ head, of }) => html`<td role="cell" data-head="${head}">${of(one)}</td>`)}</tr>
`
  return html`<div class="scroll" role="region" tabindex="0" aria-label="Policies by rank"><table class="rank" role="table"><caption>${
    ranks.length === 1
      ? "What happens to the calls."
      : `Best first: by ${
        ranks[0]!.fate === "unbounded" ? "" : "runs that recover, then "
      }calls that succeed, then requests per call.`
  }</caption>
<thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">policy</th>${
    columns.map(({ head }) => html`<th role="columnheader" scope="col">${head}</th>`)
  }</tr></thead>
<tbody role="rowgroup">${ranks.map(row)}</tbody></table></div>
<p class="soft">${columns.flatMap(({ what }) => what ?? []).join(" ")}</p>
`
}
