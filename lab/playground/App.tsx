import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks"
import type { Figure, Line } from "../src/cli/charts/figure.ts"
import { lookOf, reference } from "../src/cli/charts/palette.ts"
import { backOf, headline, outcomeOf, type Success } from "../src/cli/charts/successChart.ts"
import { Chart, SuccessChart } from "./Chart.tsx"
import { Comparison } from "./Comparison.tsx"
import { Controls } from "./Controls.tsx"
import { Exports } from "./Exports.tsx"
import { Laboratory, type Slot, type Start } from "./laboratory.ts"
import { linkOf, readLink } from "./link.ts"
import { OneCall } from "./OneCall.tsx"
import { Policies } from "./Policies.tsx"
import { begin as usualSetup, type Setup } from "./setup.ts"
import { announcement } from "./text.ts"

/** The set-up in the address, and what is wrong with the address. */
const fromAddress = (): { readonly setup: Setup; readonly problems: ReadonlyArray<string> } => {
  const read = readLink(location.hash)
  return "setup" in read ? { setup: read.setup, problems: [] } : { setup: usualSetup, problems: read.problems }
}

const linesOf = (slots: ReadonlyArray<Slot>, of: "load" | "left"): ReadonlyArray<Line> =>
  slots.flatMap(({ figures, label }, place) =>
    figures === undefined || !figures[of].values.some((value) => value !== null)
      ? []
      : [{ label, look: lookOf(place), ...figures[of] }]
  )

const useLaboratory = (start: Start, setup: Setup): ReadonlyArray<Slot> => {
  const [slots, setSlots] = useState<ReadonlyArray<Slot>>([])
  const laboratory = useMemo(
    () => new Laboratory(start, Math.min(4, Math.max(1, navigator.hardwareConcurrency || 1)), setSlots),
    []
  )
  // Before anything is drawn: no figures of another set-up stand next to this one.
  useLayoutEffect(() => laboratory.show(setup), [setup])
  return slots
}

/** How long it took from a change until its first figures were drawn: for those who measure. */
const useStopwatch = (slots: ReadonlyArray<Slot>): () => void => {
  const begun = useRef<{ readonly atMillis: number; readonly lastId: number } | undefined>(undefined)
  const lastId = Math.max(0, ...slots.map(({ id }) => id))
  useEffect(() => {
    if (begun.current === undefined || lastId === begun.current.lastId) return
    if (!slots.every(({ isCurrent }) => isCurrent)) return
    document.documentElement.dataset["shownMillis"] = (performance.now() - begun.current.atMillis).toFixed(1)
    begun.current = undefined
  }, [slots])
  return () => begun.current ??= { atMillis: performance.now(), lastId }
}

/** How the calls of all policies fare, in one picture, and in a sentence. */
const Outcome = ({ setup, slots }: { readonly setup: Setup; readonly slots: ReadonlyArray<Slot> }) => {
  const { duration, kind, length, start } = setup
  const endMillis = kind === "none" ? 0 : 1000 * (start + length)
  const success: Success = {
    times: Array.from({ length: duration }, (_, n) => 1000 * (n + 0.5)),
    untilMillis: 1000 * duration,
    shades: kind === "none" ? [] : [{ what: "outage", fromMillis: 1000 * start, toMillis: endMillis }],
    courses: slots.flatMap(({ figures, label }, place) => {
      if (figures === undefined) return []
      const { recovery } = figures.summary
      const outcome = figures.isPartial ? "running" : outcomeOf(recovery)
      return [{ label, look: lookOf(place), ...figures.success, outcome, backMillis: backOf(recovery, endMillis) }]
    })
  }
  return (
    <section class="outcome" aria-labelledby="outcome">
      <h2 id="outcome">{success.courses.length === 0 ? "Running" : headline(success)}</h2>
      <SuccessChart success={success} />
    </section>
  )
}

const Charts = ({ setup, slots }: { readonly setup: Setup; readonly slots: ReadonlyArray<Slot> }) => {
  const { capacity, duration, kind, length, start } = setup
  const seconds = duration + 5
  const left = linesOf(slots, "left")
  const figure = (
    words: Pick<Figure, "title" | "what" | "axis" | "unit">,
    lines: ReadonlyArray<Line>,
    references: ReadonlyArray<Line> = []
  ): Figure => ({
    ...words,
    times: Array.from({ length: seconds }, (_, n) => 1000 * (n + 0.5)),
    untilMillis: 1000 * seconds,
    shades: kind === "none" ? [] : [{ what: "outage", fromMillis: 1000 * start, toMillis: 1000 * (start + length) }],
    panels: [{ name: words.title, look: lookOf(0), lines, references }]
  })
  const bound = { label: "capacity", look: reference(1), values: Array.from({ length: seconds }, () => capacity) }
  return (
    <section class="charts" aria-label="Over time">
      <Chart
        figure={figure(
          {
            title: "Load",
            what: "Requests a second at the service, retries included; the outage is shaded.",
            axis: "requests per second",
            unit: "per second"
          },
          linesOf(slots, "load"),
          [bound]
        )}
      />
      {left.length > 0 && (
        <Chart
          figure={figure({
            title: "Retry quota left",
            what: "What is left of a process's retry quota or budget, as a share of the most it held.",
            axis: "share of the most",
            unit: "share"
          }, left)}
        />
      )}
    </section>
  )
}

const Head = ({ onReset }: { readonly onReset: () => void }) => {
  const [status, setStatus] = useState("")
  const share = () =>
    navigator.clipboard.writeText(location.href).then(
      () => setStatus("The link is copied."),
      () => setStatus("The link is in the address bar.")
    )
  return (
    <header>
      <div>
        <h1>See it before it happens</h1>
        <p>Draw an outage, choose retry policies, and watch what they do to a service. Nothing leaves this page.</p>
      </div>
      <p class="buttons">
        <button type="button" onClick={share}>Copy a link</button>
        <button type="button" class="quiet" onClick={onReset}>Start over</button>
        <span role="status">{status}</span>
      </p>
    </header>
  )
}

const Problems = ({ problems }: { readonly problems: ReadonlyArray<string> }) => (
  <div role="alert" class="alert">
    <p>This link is not valid, so this is the default set-up:</p>
    <ul>{problems.map((problem) => <li key={problem}>{problem}</li>)}</ul>
  </div>
)

/** The set-up, kept in the address. */
const useSetup = () => {
  const [state, setState] = useState(fromAddress)
  useEffect(() => {
    if (state.problems.length === 0) history.replaceState(null, "", `#${linkOf(state.setup)}`)
  }, [state])
  useEffect(() => {
    const changed = () => setState(fromAddress())
    addEventListener("hashchange", changed)
    return () => removeEventListener("hashchange", changed)
  }, [])
  const change = (changes: Partial<Setup>) =>
    setState(({ setup }) => ({ setup: { ...setup, ...changes }, problems: [] }))
  return { ...state, change }
}

/** The playground. */
export const App = ({ start }: { readonly start: Start }) => {
  const { change, problems, setup } = useSetup()
  const slots = useLaboratory(start, setup)
  const begin = useStopwatch(slots)
  const changed = (changes: Partial<Setup>) => {
    begin()
    change(changes)
  }
  return (
    <>
      <Head onReset={() => changed(usualSetup)} />
      {problems.length > 0 && <Problems problems={problems} />}
      <main>
        <div class="side">
          <Controls setup={setup} onChange={changed} />
        </div>
        <div class="results">
          <Outcome setup={setup} slots={slots} />
          <Policies policies={setup.policies} onChange={(policies) => changed({ policies })} />
          <section aria-labelledby="comparison">
            <h2 id="comparison">What becomes of the calls</h2>
            <Comparison slots={slots} />
            <p class="hint">
              The mean of all runs, and the range from 5 to 95 % of them. A run recovers when the share of calls that
              succeed is back at nine tenths of what it was before the outage.
            </p>
          </section>
          <Charts setup={setup} slots={slots} />
          <OneCall slots={slots} />
          <Exports setup={setup} slots={slots} />
        </div>
      </main>
      <p role="status" aria-live="polite" class="hidden">{announcement(slots)}</p>
    </>
  )
}
