import { unescaped } from "./escape.ts"
import { counted, moment } from "./format.ts"
import { type Html, html, name } from "./html.ts"
import type { Run, Runs } from "./run.ts"

/** A scenario that is longer is printed without spaces, and one that is longer still not to its end. */
const longText = 40_000
const tooLongText = 200_000

const jsonOf = (value: unknown): string => {
  const text = JSON.stringify(value, null, 2)
  return text.length <= longText ? text : JSON.stringify(value)
}

const scenarioOf = (runs: Runs): Html => {
  const text = jsonOf(runs[0].result.scenario)
  const cut = text.length > tooLongText
  const which = runs.length === 1 ? "The scenario" : `The scenario, with the policy of the first run`
  return html`<details><summary>${which}, with all its defaults${
    cut ? ` (the first ${counted(tooLongText)} of ${counted(text.length)} characters)` : ""
  }</summary>${cut ? html`<pre>${text.slice(0, tooLongText)}</pre>` : html`<pre id="scenario">${text}</pre>`}</details>`
}

/** The scenario in the text of a report, as JSON; `undefined` if it is not there to its end. */
export const scenarioIn = (page: string): string | undefined => {
  const found = /<pre id="scenario">([^<]*)<\/pre>/.exec(page)
  return found === null ? undefined : unescaped(found[1]!)
}

const policyOf = ({ label, result }: Run): Html =>
  html`<dt>${name(label)}</dt><dd><code>${jsonOf(result.scenario.fleets[0].policy).slice(0, longText)}</code></dd>`

const hashes = (runs: Runs): Html =>
  html`<details><summary>Trace hashes of the first seed</summary><dl class="again">${
    runs.map(({ label, result }) =>
      html`<dt>${name(label)}</dt><dd><code>${result.traceHash}</code>, ${counted(result.attempts)} attempts in ${
        moment(result.untilMillis, result.untilMillis)
      } of virtual time${result.partial ? " (partial)" : ""}</dd>`
    )
  }</dl></details>`

/** All that is needed to make the page again. */
export const again = (runs: Runs, command: string): Html =>
  html`<pre><code>${command}</code></pre>
<p>The same scenario with the same seed, ${`${
    runs[0].result.scenario.seed
  }`}, gives the same run, to the last event: compare the trace hash.</p>
${hashes(runs)}
${
    runs.length === 1
      ? []
      : [html`<details><summary>The policies</summary><dl class="again">${runs.map(policyOf)}</dl></details>`]
  }
${scenarioOf(runs)}`
