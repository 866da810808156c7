import { useId } from "preact/hooks"
import type { Field } from "./setup.ts"

interface SliderProps {
  readonly field: Field
  readonly value: number
  readonly onChange: (value: number) => void
}

/** The nearest valid number; anything but a number changes nothing. */
const nearest = ({ max, min, whole }: Field, text: string): number | undefined => {
  const value = whole ? Math.round(Number(text)) : Number(text)
  return text === "" || Number.isNaN(value) ? undefined : Math.min(max, Math.max(min, value))
}

/** A number: dragged, stepped with the arrow keys, or typed. */
export const Slider = ({ field, onChange, value }: SliderProps) => {
  const id = useId()
  const { hint, label, max, min, step, unit } = field
  const change = (input: HTMLInputElement) => {
    const next = nearest(field, input.value)
    input.value = String(next ?? value)
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
          onChange={(event) => change(event.currentTarget)}
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
        onInput={(event) => change(event.currentTarget)}
      />
      {hint !== undefined && <p id={`${id}-hint`} class="hint">{hint}</p>}
    </div>
  )
}
