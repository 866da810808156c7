import type { Spread } from "../../Simulator.ts"
import { cell, counted, moment, rounded, runLength, share } from "./format.ts"
import { type Html, html, name } from "./html.ts"
import { isLost, isTie, lead, type Ranked, retries, since } from "./ranking.ts"

const listed = (parts: ReadonlyArray<Html>): Html =>
  html`${parts.map((part, n) => html`${n === 0 ? "" : n === parts.length - 1 ? " and " : ", "}${part}`)}`

/** A policy by its name. `none` would read as "no policy does best", and the scenario's own policy was not asked for. */
const policy = ({ isWritten, run: { label } }: Ranked): Html =>
  html`<b>${name(label)}</b>${label === "none" ? " (no retries)" : isWritten ? " (the scenario's own policy)" : ""}`

const names = (ranks: ReadonlyArray<Ranked>): Html => listed(ranks.map(policy))

/** A figure, and the range of most runs. */
const ranged = (found: Spread | undefined, write: (value: number) => string): string => {
  if (found === undefined) return "\u2013"
  const [low, high] = [write(found.low), write(found.high)]
  return low === high ? write(found.mean) : `${write(found.mean)} (${low} to ${high})`
}

/** How long after the outage. */
export const seconds = (millis: number): string =>
  millis === 0 ? "0 s" : millis < 10_000 ? cell("duration", millis) : moment(Math.round(millis / 1000) * 1000, millis)

const runsOf = ({ found: { recovery: { of, runs } } }: Ranked): string =>
  of === 1
    ? "in its one run"
    : runs === of
    ? `in all ${counted(of)} runs`
    : `in ${counted(runs)} of ${counted(of)} runs`

const afterOf = (one: Ranked): string => {
  const { afterMillis } = one.found.recovery
  return afterMillis === undefined || afterMillis.high === 0 ? "" : `, ${ranged(afterMillis, seconds)} ${since(one)}`
}

const withinRun = ({ run: { result: { scenario } } }: Ranked): string => `within the ${runLength(scenario)} of the run`

const recovery = (one: Ranked): string => {
  switch (one.fate) {
    case "always":
    case "sometimes":
      return `recovers ${runsOf(one)}${afterOf(one)}`
    case "undisturbed":
      return `does not fall below 90 % of its success rate ${withinRun(one)}`
    case "unrecovered":
      return `does not recover ${withinRun(one)}`
    case "ill":
      return `has fewer than 90 % of calls succeed all the time ${withinRun(one)}`
    case "not yet":
      return "has not recovered yet"
    case "unbounded":
      return "cannot overload its service, which has no capacity"
    case "unknown":
      return "has no finished calls"
  }
}

const figures = ({ found: { sendsPerCall, succeeded } }: Ranked): Html =>
  html`<strong>${ranged(succeeded, share)}</strong> of its calls succeed, with <strong>${
    ranged(sendsPerCall, (value) => value.toFixed(2))
  }</strong> requests per call`

/** Why nothing recovers: the load that still reaches the service. */
const because = (ranks: ReadonlyArray<Ranked>): Html => {
  const [first] = ranks
  const capacity = first?.afterwards?.capacity
  const overloaded = ranks.filter(({ afterwards }) =>
    afterwards !== undefined && capacity !== undefined && afterwards.perSecond.mean > capacity
  )
  if (first?.afterwards === undefined || capacity === undefined || overloaded.length < ranks.length) return html``
  return html`: long after the outage ${
    listed(ranks.map(({ afterwards }) => html`<strong>${rounded(afterwards!.perSecond.mean)}</strong>`))
  } requests per second still reach ${name(first.afterwards.service)}, which can handle <strong>${
    rounded(capacity)
  }</strong>`
}

const ofOne = (one: Ranked): Html =>
  html`<p class="verdict">${policy(one)} ${recovery(one)}${one.fate === "unrecovered" ? because([one]) : ""}. ${
    figures(one)
  }.</p>`

const points = (value: number): string => (value * 100).toFixed(1)

const next = (first: Ranked, second: Ranked): Html => {
  const ahead = lead(first, second)
  if (isLost(second) || ahead === undefined) return html``
  return isTie(first, second)
    ? html` ${policy(second)} is equally good: with the same seeds, its success rate differs by ${
      points(Math.abs(ahead.mean))
    } points, which is within random variation.`
    : html` Next is ${policy(second)}, which ${recovery(second)}, with ${
      ranged(second.found.succeeded, share)
    } of calls.`
}

const ofSeveral = (ranks: readonly [Ranked, ...Array<Ranked>]): Html => {
  const [best, second] = ranks
  const unrecovered = ranks.filter((one) => one !== best && one.fate === "unrecovered")
  const sometimes = ranks.filter((one) => one !== best && one.fate === "sometimes")
  const retrying = retries(best) ? undefined : ranks.find((one) => one !== second && retries(one) && !isLost(one))
  return html`<p class="verdict">${policy(best)} does best: it ${recovery(best)}${
    best.fate === "unrecovered" ? because([best]) : ""
  }. ${figures(best)}.</p>
<p>${second === undefined ? "" : next(best, second)}${
    retrying === undefined ? "" : html` Of those that retry, ${policy(retrying)} does best.`
  }${
    sometimes.length === 0
      ? ""
      : html` ${names(sometimes)} ${
        sometimes.length === 1 ? "is" : "are"
      } on the edge: it is random which runs recover.`
  }${
    unrecovered.length === 0
      ? ""
      : html` ${names(unrecovered)} ${unrecovered.length === 1 ? "does" : "do"} not recover ${withinRun(best)}${
        because(unrecovered)
      }.`
  }</p>`
}

/** Which policy, and why, in the numbers that decide. */
export const verdict = (ranks: readonly [Ranked, ...Array<Ranked>]): Html => {
  if (ranks.every(({ found }) => found.sendsPerCall === undefined)) {
    return html`<p class="verdict">No calls were made.</p>`
  }
  return ranks.length === 1 ? ofOne(ranks[0]) : ofSeveral(ranks)
}
