import { percent as percentOf } from "../src/cli/charts/format.ts"
import type { Slot } from "./laboratory.ts"

export const percent = percentOf

/** A number in three digits, its thousands apart. */
export const counted = (value: number): string => Number(value.toPrecision(3)).toLocaleString("en-US")

/** A duration in three digits. */
export const seconds = (millis: number): string =>
  millis >= 1000 ? `${Number((millis / 1000).toPrecision(3))} s` : `${Number(millis.toPrecision(3))} ms`

/** What a screen reader says of a policy. */
const sentence = ({ figures, label, problem }: Slot): string => {
  if (problem !== undefined) return `${label}: ${problem}.`
  if (figures === undefined) return ""
  const { recovery, succeeded } = figures.summary
  const share = succeeded === undefined ? "" : `${percent(succeeded.mean)} succeed, `
  return `${label}: ${share}recovers in ${recovery.runs} of ${recovery.of} runs.`
}

/** The announcement once all runs have ended. */
export const announcement = (slots: ReadonlyArray<Slot>): string =>
  slots.length > 0 && slots.every(({ isDone }) => isDone) ? slots.map(sentence).join(" ") : ""
