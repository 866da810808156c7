import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks"
import { Chart, type Named } from "./Chart.tsx"
import { Comparison } from "./Comparison.tsx"
import { Controls } from "./Controls.tsx"
import { Exports } from "./Exports.tsx"
import { Laboratory, type Slot, type Start } from "./laboratory.ts"
import { linkOf, readLink } from "./link.ts"
import { OneCall } from "./OneCall.tsx"
import { Policies } from "./Policies.tsx"
import { begin as usualSetup, type Setup } from "./setup.ts"
import { announcement, counted, percent } from "./text.ts"

const dark = matchMedia("(prefers-color-scheme: dark)")

const useDark = (): boolean => {
  const [isDark, setDark] = useState(dark.matches)
  useEffect(() => {
    const change = () => setDark(dark.matches)
    dark.addEventListener("change", change)
    return () => dark.removeEventListener("change", change)
  }, [])
  return isDark
}

/** The set-up in the address, and what is wrong with the address. */
const fromAddress = (): { readonly setup: Setup; readonly problems: ReadonlyArray<string> } => {
  const read = readLink(location.hash)
  return "setup" in read ? { setup: read.setup, problems: [] } : { setup: usualSetup, problems: read.problems }
}

const linesOf = (slots: ReadonlyArray<Slot>, of: "load" | "success" | "left"): ReadonlyArray<Named> =>
  slots.flatMap(({ figures, label }, place) =>
    figures === undefined || !figures[of].values.some((value) => value !== null)
      ? []
      : [{ label, place, line: figures[of] }]
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

const Charts = ({ setup, slots }: { readonly setup: Setup; readonly slots: ReadonlyArray<Slot> }) => {
  const shared = {
    seconds: setup.duration + 5,
    outage: setup.kind === "none" ? undefined : { from: setup.start, to: setup.start + setup.length },
    isDark: useDark()
  }
  const left = linesOf(slots, "left")
  return (
    <section class="charts" aria-label="Over time">
      <Chart
        {...shared}
        className="first"
        title="Load"
        what="Requests a second at the service, retries included; the outage is shaded."
        lines={linesOf(slots, "load")}
        reference={{ label: "capacity", value: setup.capacity }}
        write={counted}
      />
      <Chart
        {...shared}
        title="Success"
        what="Of the calls that ended at that time, the share that succeeded."
        lines={linesOf(slots, "success")}
        top={1.02}
        write={percent}
      />
      {left.length > 0 && (
        <Chart
          {...shared}
          title="Retry quota left"
          what="What is left of a process's retry quota or budget, as a share of the most it held."
          lines={left}
          top={1.02}
          write={percent}
        />
      )}
    </section>
  )
}

const Head = ({ onReset }: { readonly onReset: () => void }) => {
  const [said, setSaid] = useState("")
  const share = () =>
    navigator.clipboard.writeText(location.href).then(
      () => setSaid("The link is copied."),
      () => setSaid("The link is in the address bar.")
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
        <span role="status">{said}</span>
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
