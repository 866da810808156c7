import type { Spread } from "../src/Simulator.ts"
import type { Slot } from "./laboratory.ts"
import { Swatch } from "./Swatch.tsx"
import { counted, percent, seconds } from "./text.ts"

const spread = (found: Spread | undefined, write: (value: number) => string) => {
  if (found === undefined) return "–"
  const [low, high] = [write(found.low), write(found.high)]
  return low === high ? write(found.mean) : (
    <>
      {write(found.mean)} <small>{low} to {high}</small>
    </>
  )
}

const afterOf = (millis: number): string => millis === 0 ? "right away" : `after ${seconds(millis)}`

const Row = ({ place, slot }: { readonly place: number; readonly slot: Slot }) => {
  const { figures, isDone, label, problem } = slot
  const name = (
    <th scope="row">
      <Swatch place={place} /> {label}
    </th>
  )
  if (problem !== undefined) {
    return (
      <tr aria-busy={!isDone}>
        {name}
        <td colSpan={6} class="problem">{problem}</td>
      </tr>
    )
  }
  if (figures === undefined || figures.isPartial) {
    return (
      <tr aria-busy="true">
        {name}
        <td colSpan={6}>running …</td>
      </tr>
    )
  }
  const { runs, summary } = figures
  const { afterMillis, of, runs: recovered } = summary.recovery
  return (
    <tr aria-busy={!isDone}>
      {name}
      <td data-figure="recovers">
        {recovered} of {of}
        {recovered > 0 && afterMillis !== undefined && <small>{" "}{afterOf(afterMillis.mean)}</small>}
      </td>
      <td data-figure="succeed">{spread(summary.succeeded, percent)}</td>
      <td data-figure="sends">{spread(summary.sendsPerCall, (value) => value.toFixed(2))}</td>
      <td data-figure="peak">{spread(summary.peakPerSecond, (value) => `${counted(value)}/s`)}</td>
      <td data-figure="p99">{spread(summary.p99Millis, seconds)}</td>
      <td data-figure="runs">{runs}</td>
    </tr>
  )
}

/** What becomes of the calls with each policy: figures of all runs, the range from 5 to 95 % of them next to it. */
export const Comparison = ({ slots }: { readonly slots: ReadonlyArray<Slot> }) => (
  <div class="scroll" tabIndex={0} role="region" aria-label="Comparison">
    <table class="comparison">
      <thead>
        <tr>
          <th scope="col">policy</th>
          <th scope="col">recovers</th>
          <th scope="col">succeed</th>
          <th scope="col">sends/call</th>
          <th scope="col">peak load</th>
          <th scope="col">p99</th>
          <th scope="col">runs</th>
        </tr>
      </thead>
      <tbody>{slots.map((slot, place) => <Row key={place} place={place} slot={slot} />)}</tbody>
    </table>
  </div>
)
