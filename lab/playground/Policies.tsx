import { useId, useLayoutEffect, useRef, useState } from "preact/hooks"
import type { PolicyName } from "../src/simulator/policyNames.ts"
import { labelOf } from "./scenario.ts"
import { accepts, type Choice, choices, mostPolicies, type SettingName, settings } from "./setup.ts"
import { Swatch } from "./Swatch.tsx"

interface CardProps {
  readonly choice: Choice
  readonly place: number
  readonly onChange: (choice: Choice) => void
  readonly onRemove: (() => void) | undefined
}

const without = (choice: Choice, name: keyof Choice): Choice => {
  const { [name]: _, ...rest } = choice
  return rest as Choice
}

/** An option's labels, and which of its numbers means none. */
const options: ReadonlyArray<readonly [name: SettingName, zero: string]> = [
  ["attempts", ""],
  ["quota", "0: none"],
  ["concurrency", "0: adaptive"],
  ["throttle", ""]
]

const Option = ({ choice, name, onChange, zero }: {
  readonly choice: Choice
  readonly name: SettingName
  readonly zero: string
  readonly onChange: (choice: Choice) => void
}) => {
  const id = useId()
  const { label, max, min, step, usual } = settings[name]
  const value = choice[name]
  return (
    <div class="option">
      <input
        id={id}
        type="checkbox"
        checked={value !== undefined}
        onChange={({ currentTarget }) =>
          onChange(currentTarget.checked ? { ...choice, [name]: usual } : without(choice, name))}
      />
      <label for={id}>{label}</label>
      {value !== undefined && (
        <span class="number">
          <input
            type="number"
            aria-label={zero === "" ? label : `${label}, ${zero}`}
            min={min}
            max={max}
            step={step}
            value={value}
            onChange={({ currentTarget }) => {
              const next = Number(currentTarget.value)
              if (currentTarget.value !== "" && accepts(settings[name], next)) onChange({ ...choice, [name]: next })
              else currentTarget.value = String(value)
            }}
          />
          <span aria-hidden="true">{zero}</span>
        </span>
      )}
    </div>
  )
}

/** The settings of a policy that are its own by choice. */
const Settings = ({ choice, id, onChange }: Pick<CardProps, "choice" | "onChange"> & { readonly id: string }) => (
  <div class="settings" id={id}>
    {options.map(([name, zero]) => <Option key={name} {...{ choice, name, onChange, zero }} />)}
    <div class="option">
      <input
        id={`${id}-coolDown`}
        type="checkbox"
        checked={choice.coolDown === true}
        onChange={({ currentTarget }) =>
          onChange(currentTarget.checked ? { ...choice, coolDown: true } : without(choice, "coolDown"))}
      />
      <label for={`${id}-coolDown`}>Cool-down</label>
    </div>
  </div>
)

/** A policy in one line: its settings open below it. */
const Card = ({ choice, onChange, onRemove, place }: CardProps) => {
  const id = useId()
  const [isOpen, setOpen] = useState(false)
  const changed = Object.keys(choice).length - 1
  return (
    <div class="card" role="group" aria-labelledby={`${id}-label`}>
      <h3 id={`${id}-label`}>
        <Swatch place={place} />
        <span class="hidden">{labelOf(choice)}</span>
      </h3>
      <label class="hidden" for={id}>Policy {place + 1}</label>
      <select
        id={id}
        value={choice.name}
        onChange={({ currentTarget }) => onChange({ ...choice, name: currentTarget.value as PolicyName })}
      >
        {choices.map((name) => <option key={name} value={name}>{name}</option>)}
      </select>
      <button
        type="button"
        class="fold"
        aria-expanded={isOpen}
        aria-controls={isOpen ? `${id}-settings` : undefined}
        onClick={() => setOpen(!isOpen)}
      >
        Settings{changed > 0 && (
          <>
            : {changed}
            <span class="hidden">changed</span>
          </>
        )}
      </button>
      {onRemove !== undefined && (
        <button
          type="button"
          class="quiet"
          title="Remove"
          onClick={onRemove}
          aria-label={`Remove ${labelOf(choice)}`}
        >
          ×
        </button>
      )}
      {isOpen && <Settings id={`${id}-settings`} {...{ choice, onChange }} />}
    </div>
  )
}

export interface PoliciesProps {
  readonly policies: ReadonlyArray<Choice>
  readonly onChange: (policies: ReadonlyArray<Choice>) => void
}

/** Up to four policies, each with its own settings. */
export const Policies = ({ onChange, policies }: PoliciesProps) => {
  const next = choices.find((name) => !policies.some((choice) => choice.name === name)) ?? "none"
  const cards = useRef<HTMLDivElement>(null)
  const focused = useRef<number>(undefined)
  // The button that was pressed may be gone.
  useLayoutEffect(() => {
    if (focused.current !== undefined) cards.current!.querySelectorAll("select")[focused.current]?.focus()
    focused.current = undefined
  }, [policies])
  const changeAt = (place: number, changed: ReadonlyArray<Choice>) => {
    focused.current = Math.min(place, changed.length - 1)
    onChange(changed)
  }
  return (
    <section aria-labelledby="policies">
      <h2 id="policies">Policies</h2>
      <div class="cards" ref={cards}>
        {policies.map((choice, place) => (
          <Card
            key={place}
            choice={choice}
            place={place}
            onChange={(changed) => onChange(policies.with(place, changed))}
            onRemove={policies.length === 1
              ? undefined
              : () => changeAt(place, policies.filter((_, n) => n !== place))}
          />
        ))}
        {policies.length < mostPolicies && (
          <button
            type="button"
            class="add"
            onClick={() => changeAt(policies.length, [...policies, { name: next }])}
          >
            Add a policy
          </button>
        )}
      </div>
    </section>
  )
}
