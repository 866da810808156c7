import { type FieldName, fields, type Kind, kinds, type Setup } from "./setup.ts"
import { Slider } from "./Slider.tsx"

export interface ControlsProps {
  readonly setup: Setup
  readonly onChange: (changes: Partial<Setup>) => void
}

const groups: ReadonlyArray<readonly [title: string, names: ReadonlyArray<FieldName>]> = [
  ["Clients", ["rate", "processes", "timeout"]],
  ["Service", ["capacity", "work", "limit"]]
]

/** The sliders of each kind of outage. */
const outageFields: { readonly [K in Kind]: ReadonlyArray<FieldName> } = {
  fail: ["start", "length", "share"],
  drop: ["start", "length", "share"],
  hold: ["start", "length"],
  slow: ["start", "length", "factor"],
  none: []
}

/** The service, its clients and its outage. */
export const Controls = ({ onChange, setup }: ControlsProps) => {
  const sliders = (names: ReadonlyArray<FieldName>) =>
    names.map((name) => (
      <Slider
        key={name}
        field={fields[name]}
        value={setup[name]}
        onChange={(value) => onChange({ [name]: value })}
      />
    ))
  return (
    <form class="controls" aria-label="Set-up" onSubmit={(event) => event.preventDefault()}>
      <fieldset>
        <legend>Outage</legend>
        <div class="field">
          <label for="kind">What happens</label>
          <select
            id="kind"
            value={setup.kind}
            onChange={(event) => onChange({ kind: event.currentTarget.value as Kind })}
          >
            {Object.entries(kinds).map(([kind, text]) => <option key={kind} value={kind}>{text}</option>)}
          </select>
        </div>
        {sliders(outageFields[setup.kind])}
      </fieldset>
      {groups.map(([title, names]) => (
        <fieldset key={title}>
          <legend>{title}</legend>
          {sliders(names)}
        </fieldset>
      ))}
      <details>
        <summary>Run</summary>
        {sliders(["duration", "seed"])}
      </details>
    </form>
  )
}
