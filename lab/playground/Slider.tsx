import { useId } from "preact/hooks"
import type { Field } from "./setup.ts"

interface SliderProps {
  readonly field: Field
  readonly value: number
  readonly onChange: (value: number) => void
}

/** Within the range of the field; anything but a number changes nothing. */
const within = ({ max, min }: Field, text: string): number | undefined => {
  const value = Number(text)
  return text === "" || Number.isNaN(value) ? undefined : Math.min(max, Math.max(min, value))
}

/** A number: dragged, stepped with the arrow keys, or typed. */
export const Slider = ({ field, onChange, value }: SliderProps) => {
  const id = useId()
  const { hint, label, max, min, step, unit } = field
  const change = (text: string) => {
    const next = within(field, text)
    if (next !== undefined) onChange(next)
  }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <span class="number">
        <input
          type="number"
          aria-label={unit === "" ? label : `${label}, ${unit}`}
          min={min}
          max={max}
          step={step}
          value={value}
          onChange={(event) => change(event.currentTarget.value)}
        />
        <span aria-hidden="true">{unit}</span>
      </span>
      <input
        id={id}
        type="range"
        min={min}
        max={max}
        step={step}
        value={value}
        aria-valuetext={`${value} ${unit}`}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        onInput={(event) => change(event.currentTarget.value)}
      />
      {hint !== undefined && <p id={`${id}-hint`} class="hint">{hint}</p>}
    </div>
  )
}
