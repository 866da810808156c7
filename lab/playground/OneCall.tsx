import type { Explanation, Retry } from "../src/Explain.ts"
import type { Slot } from "./laboratory.ts"
import { Swatch } from "./Swatch.tsx"
import { percent, seconds } from "./text.ts"

const delay = ({ delay: { maxMillis, minMillis, p50Millis } }: Retry) => {
  const [least, usual, most] = [minMillis ?? 0, p50Millis ?? 0, maxMillis ?? 0].map(seconds)
  return least === most ? least : (
    <>
      {usual} <small>{least} to {most}</small>
    </>
  )
}

const inOutage = ({ quota }: Explanation): string => {
  const retries = quota?.retriesInOutage ?? undefined
  return retries === undefined ? "" : ` While nothing succeeds, the quota pays for ${retries} retries of a process.`
}

const shownRetries = 6

const Details = ({ place, slot: { about, label } }: { readonly place: number; readonly slot: Slot }) => {
  const explanation = about?.explanation
  return (
    <section class="call">
      <h3>
        <Swatch place={place} /> {label}
      </h3>
      {explanation === undefined
        ? <p>{about === undefined ? "…" : "One attempt, no retries."}</p>
        : (
          <>
            <div class="scroll">
              <table>
                <thead>
                  <tr>
                    <th scope="col">retry</th>
                    <th scope="col">waits</th>
                    <th scope="col">made by</th>
                    {explanation.quota !== null && <th scope="col">tokens</th>}
                  </tr>
                </thead>
                <tbody>
                  {explanation.retries.slice(0, shownRetries).map((retry) => (
                    <tr key={retry.retry}>
                      <th scope="row">{retry.retry}</th>
                      <td>{delay(retry)}</td>
                      <td>{percent(retry.share)}</td>
                      {explanation.quota !== null && <td>{retry.cost}</td>}
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
            <p>
              It fails after {seconds(explanation.latency.p50Millis ?? 0)}, at most{" "}
              {explanation.latency.maxMillis === null ? "ever" : seconds(explanation.latency.maxMillis)}.
              {inOutage(explanation)}
            </p>
          </>
        )}
    </section>
  )
}

/** What each policy does with a call whose attempts all time out. */
export const OneCall = ({ slots }: { readonly slots: ReadonlyArray<Slot> }) => (
  <section aria-labelledby="one-call">
    <h2 id="one-call">One call that keeps failing</h2>
    <p>Each attempt fails after the timeout.</p>
    <div class="cards calls">{slots.map((slot, place) => <Details key={place} place={place} slot={slot} />)}</div>
  </section>
)
