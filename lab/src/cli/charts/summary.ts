import { type SimulationResult, type Spread, summarize, type Summary } from "../../Simulator.ts"
import { type Facts, factsOf, type Recovery } from "../../simulator/facts.ts"
import { cell, counted, moment, percent } from "./format.ts"
import { type Html, html, name, table } from "./html.ts"
import type { Run, Runs } from "./run.ts"

const factor = (value: number | undefined): string => value === undefined ? "\u2013" : value.toFixed(2)

const rounded = (value: number): string => counted(value < 10 ? value : Math.round(value))

const wellAgain = (recovery: Recovery, { partial, untilMillis }: SimulationResult): string => {
  switch (recovery.kind) {
    case "always well":
      return "At all times at least nine of ten calls succeeded."
    case "never well":
      return "At no time did nine of ten calls succeed."
    case "ill at the end":
      return partial
        ? "It had not recovered yet: in the end, fewer than nine of ten calls succeeded."
        : "It did not recover: when the last calls were made, fewer than nine of ten succeeded."
    case "unknown":
      return "No call ended while calls were made."
    case "recovered": {
      const after = recovery.afterMillis === undefined
        ? ""
        : `, ${moment(recovery.afterMillis, untilMillis)} after the outage`
      return `It recovered: from ${
        moment(recovery.atMillis, untilMillis)
      } on${after}, at least nine of ten calls succeeded.`
    }
  }
}

const inBrief = (recovery: Recovery, { partial, untilMillis }: SimulationResult): string => {
  switch (recovery.kind) {
    case "always well":
      return partial ? "well so far" : "always well"
    case "never well":
      return "never well"
    case "ill at the end":
      return partial ? "not yet" : "not by the end"
    case "unknown":
      return "\u2013"
    case "recovered":
      return `from ${moment(recovery.atMillis, untilMillis)} on`
  }
}

const callsOf = ({ attemptsPerCall, calls, open, share }: Facts, { partial }: SimulationResult): Html => {
  if (calls === 0) return html`<p>No calls were made.</p>`
  const well = share === undefined
    ? "none had ended"
    : `${percent(share)} of ${partial ? "those that had ended" : "them"} succeeded`
  const rest = open > 0 && share !== undefined ? `; ${counted(open)} had not ended` : ""
  return html`<p><strong>${
    counted(calls)
  } calls</strong> were made, and <strong>${well}</strong>${rest}. Each took <strong>${
    factor(attemptsPerCall)
  } attempts</strong> on average.</p>`
}

/** From here on it is told how many times the calls the load was. */
const notable = 1.05

const peakOf = ({ peak }: Facts, untilMillis: number): Html => {
  if (peak === undefined) return html``
  const times = peak.timesCalls === undefined || peak.timesCalls < notable
    ? ""
    : `, ${rounded(peak.timesCalls)} times the calls made to it then`
  return html`<p>At its peak, ${moment(peak.atMillis, untilMillis)} after the start, <strong>${
    rounded(peak.perSecond)
  } requests per second</strong> reached ${name(peak.service)}${times}.</p>`
}

/** What came of the calls at the service that got most. */
const layersOf = ({ calls }: Facts, { services }: SimulationResult): Html => {
  if (services.length < 2 || calls === 0) return html``
  const most = services.reduce((a, b) => b.totals.received > a.totals.received ? b : a)
  return html`<p>Of the ${counted(services.length)} services, ${name(most.name)} was sent most: <strong>${
    counted(most.totals.received)
  } requests</strong>, ${factor(most.totals.received / calls)} for each call.</p>`
}

const ofOne = ({ result }: Run): Html => {
  const facts = factsOf(result)
  return html`${callsOf(facts, result)}${layersOf(facts, result)}${peakOf(facts, result.untilMillis)}<p>${
    wellAgain(facts.recovery, result)
  }</p>`
}

const comparison = (runs: ReadonlyArray<Run>): Html => {
  const all = runs.map((run) => ({ run, facts: factsOf(run.result) }))
  return table({
    caption: "The policies beside each other. Well again: from then on, at least nine of ten calls succeeded.",
    head: [
      "policy",
      "calls",
      "succeeded",
      "attempts per call",
      "peak load, per second",
      "times the calls then",
      "well again"
    ],
    rows: all.map(({ facts, run }) => [
      html`${name(run.label)}${run.result.partial ? " (partial)" : ""}`,
      counted(facts.calls),
      facts.share === undefined ? "\u2013" : percent(facts.share),
      factor(facts.attemptsPerCall),
      facts.peak === undefined ? "\u2013" : rounded(facts.peak.perSecond),
      facts.peak?.timesCalls === undefined ? "\u2013" : rounded(facts.peak.timesCalls),
      inBrief(facts.recovery, run.result)
    ])
  })
}

/** The run that does best or worst by a number of its facts. */
const extreme = (runs: ReadonlyArray<Run>, better: (a: number, b: number) => boolean) =>
  runs
    .map((run) => ({ run, share: factsOf(run.result).share ?? 0 }))
    .reduce((best, one) => better(one.share, best.share) ? one : best)

const ofSeveral = (runs: ReadonlyArray<Run>): Html => {
  const best = extreme(runs, (a, b) => a > b)
  const worst = extreme(runs, (a, b) => a < b)
  const same = percent(best.share) === percent(worst.share)
  const shares = same
    ? html`As many calls succeeded with each: <strong>${percent(best.share)}</strong>.`
    : html`Most calls succeeded with ${name(best.run.label)}: <strong>${percent(best.share)}</strong>; fewest with ${
      name(worst.run.label)
    }: <strong>${percent(worst.share)}</strong>.`
  return html`<p>${
    counted(runs.length)
  } runs of the same scenario with the same seed; only the policy of the fleets differs.</p>
<p>${shares}</p>
${comparison(runs)}`
}

const ranged = (found: Spread | undefined, write: (value: number) => string): string => {
  if (found === undefined) return "\u2013"
  const [low, high] = [write(found.low), write(found.high)]
  return low === high ? write(found.mean) : `${write(found.mean)} (${low} to ${high})`
}

const recoveriesOf = ({ recovery: { afterMillis, of, runs } }: Summary): string =>
  runs === 0 || afterMillis === undefined || afterMillis.high === 0
    ? `${counted(runs)} of ${counted(of)}`
    : `${counted(runs)} of ${counted(of)}, ${ranged(afterMillis, (millis) => moment(millis, afterMillis.high))} after`

const meanOf = (spread: Spread | undefined): number => spread?.mean ?? 0

/** The policies by rank: who recovers in most runs, then who has most calls succeed, then who sends least. */
const ranked = (runs: Runs) =>
  runs.map((run) => ({ label: run.label, found: summarize(run.results) })).sort((a, b) =>
    b.found.recovery.runs - a.found.recovery.runs ||
    meanOf(b.found.succeeded) - meanOf(a.found.succeeded) ||
    meanOf(a.found.sendsPerCall) - meanOf(b.found.sendsPerCall)
  )

const listed = (labels: ReadonlyArray<string>): Html =>
  html`${labels.map((label, n) => html`${n === 0 ? "" : n === labels.length - 1 ? " and " : ", "}${name(label)}`)}`

const verdict = (ranks: ReturnType<typeof ranked>): Html => {
  const always = ranks.filter(({ found: { recovery } }) => recovery.runs === recovery.of).map(({ label }) => label)
  const never = ranks.filter(({ found: { recovery } }) => recovery.runs === 0).map(({ label }) => label)
  const some = ranks.length - always.length - never.length
  return html`<p>${always.length === 0 ? [] : html`${listed(always)} <strong>recovered in every run</strong>. `}${
    some === 0 ? [] : html`${counted(some)} did in some runs and not in others: chance decides. `
  }${never.length === 0 ? [] : html`${listed(never)} <strong>never recovered</strong>.`}</p>`
}

/** What many runs say. */
const ofMany = (runs: Runs): Html => {
  const ranks = ranked(runs)
  const seeds = counted(runs[0].results.length)
  return html`${verdict(ranks)}
<p>Of each policy ${seeds} runs, which differ in their seeds and have the same ones as the others: the mean, and the range from 5 to 95 % of the runs.</p>
${
    table({
      caption: "Recovers: comes back to nine tenths of the successes before the outage, and how long after it.",
      head: ["policy", "recovers", "succeeded", "attempts per call", "p99", "peak load, per second"],
      rows: ranks.map(({ found, label }) => [
        name(label),
        recoveriesOf(found),
        ranged(found.succeeded, percent),
        ranged(found.sendsPerCall, (value) => value.toFixed(2)),
        ranged(found.p99Millis, (value) => cell("duration", value)),
        ranged(found.peakPerSecond, rounded)
      ])
    })
  }`
}

/** What came out, in plain words. */
export const summary = (runs: Runs): Html =>
  runs[0].results.length > 1 ? ofMany(runs) : runs.length === 1 ? ofOne(runs[0]) : ofSeveral(runs)
