import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { percent } from "./charts/format.ts"
import { screen } from "./screen.ts"
import { duration } from "./text.ts"

/** How far a command is, in a line at the bottom of the terminal that is redrawn, and erased at the end. */
export interface Progress {
  /** Shows the share of all that is planned, from 0 to 1, and what is done now: after a moment, not too often, and never less. */
  readonly show: (share: number, what: string) => Effect.Effect<void>
  readonly clear: Effect.Effect<void>
}

const cleared = "\r\u001b[2K"

const quietMillis = 300
const betweenMillis = 100
const barWidth = 20

/** The share from which the rest can be estimated. */
const leastShare = 0.02

const seconds = (millis: number): string => duration(Math.max(1, Math.round(millis / 1000)) * 1000)

/** `█████░░░░░░░░░░░░░░░  25 %, 12 s, 36 s left: jitter`. */
const lineOf = (share: number, elapsedMillis: number, what: string): string => {
  const full = Math.floor(share * barWidth)
  const left = share < leastShare || share > 0.99 ? "" : `, ${seconds(elapsedMillis * (1 - share) / share)} left`
  return `${"█".repeat(full)}${"░".repeat(barWidth - full)} ${percent(Math.floor(share * 100) / 100)}, ${
    seconds(elapsedMillis)
  }${left}: ${what}`
}

/** The progress of a command, from now on. It shows nothing unless a terminal shows the standard error. */
export const progress = Effect.gen(function*() {
  const stdio = yield* Stdio.Stdio
  const { columns } = yield* screen
  const clock = yield* Clock.Clock
  const kind = yield* Effect.orElseSucceed(Config.String("TERM"), () => "")
  const isShown = kind !== "dumb" && (yield* stdio.stderrIsTerminal)
  const write = (text: string) =>
    isShown ? Effect.ignore(Stream.run(Stream.succeed(text), stdio.stderr())) : Effect.void
  const since = clock.monotonicTimeNanosUnsafe()
  let nextMillis = quietMillis
  let most = 0
  const shown: Progress = {
    show: (share, what) =>
      Effect.suspend(() => {
        const elapsedMillis = Number(clock.monotonicTimeNanosUnsafe() - since) / 1e6
        most = Math.min(1, Math.max(most, share))
        if (elapsedMillis < nextMillis) return Effect.void
        nextMillis = elapsedMillis + betweenMillis
        return write(cleared + lineOf(most, elapsedMillis, what).slice(0, columns - 1))
      }),
    clear: write(cleared)
  }
  return shown
})

/** A part of the work: what is its whole is the progress from one share to another. */
export const part = ({ clear, show }: Progress, from: number, to: number): Progress => ({
  show: (share, what) => show(from + share * (to - from), what),
  clear
})
