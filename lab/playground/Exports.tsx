import { useState } from "preact/hooks"
import type { Slot } from "./laboratory.ts"
import { commandOf, scenarioOf } from "./scenario.ts"
import type { Setup } from "./setup.ts"

const Text = ({ file, language, text }: {
  readonly file: string
  readonly language: string
  readonly text: string
}) => {
  const [status, setStatus] = useState("")
  const copy = () =>
    navigator.clipboard.writeText(text).then(() => setStatus("copied"), () => setStatus("select the text to copy it"))
  const save = () => {
    const link = document.createElement("a")
    link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }))
    link.download = file
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
  }
  return (
    <>
      <pre tabIndex={0} aria-label={file} data-language={language}>{text}</pre>
      <p class="buttons">
        <button type="button" onClick={copy}>Copy</button>
        <button type="button" onClick={save}>Save {file}</button>
        <span role="status">{status}</span>
      </p>
    </>
  )
}

interface ExportsProps {
  readonly setup: Setup
  readonly slots: ReadonlyArray<Slot>
}

const Scenario = ({ setup, slots }: ExportsProps) => {
  const policies = slots.flatMap(({ about }) => about === undefined ? [] : [about.policy])
  if (policies.length === 0 || policies.length < slots.length) return <p>…</p>
  return (
    <>
      <p>The command line runs it to the same numbers, to the last digit:</p>
      <pre tabIndex={0} aria-label="Command" data-language="sh">
        {commandOf(policies, slots[0]?.figures?.runs ?? 1)}
      </pre>
      <Text
        file="scenario.json"
        language="json"
        text={`${JSON.stringify(scenarioOf(setup, policies[0]!), null, 2)}\n`}
      />
      <p class="hint">
        Traces with seed {setup.seed}: {slots.map(({ figures, label }, n) => (
          <span key={n} data-trace={n}>
            {label} <code>{figures?.traceHash ?? "–"}</code>
            {" "}
          </span>
        ))}
      </p>
    </>
  )
}

/** The set-up as a scenario for the command line, and each policy as code. */
export const Exports = ({ setup, slots }: ExportsProps) => {
  const [place, setPlace] = useState(0)
  const shown = Math.min(place, slots.length - 1)
  return (
    <section aria-labelledby="exports">
      <h2 id="exports">Take it with you</h2>
      <details>
        <summary>Scenario</summary>
        <Scenario setup={setup} slots={slots} />
      </details>
      <details>
        <summary>TypeScript</summary>
        <p class="field">
          <label for="code-of">Policy</label>
          <select id="code-of" value={shown} onChange={({ currentTarget }) => setPlace(Number(currentTarget.value))}>
            {slots.map(({ label }, n) => <option key={n} value={n}>{label}</option>)}
          </select>
        </p>
        <Text file="policy.ts" language="ts" text={slots[shown]?.about?.code ?? "…"} />
      </details>
    </section>
  )
}
