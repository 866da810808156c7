import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as Terminal from "effect/Terminal"
import type { Progress } from "../Simulator.ts"
import { counted, percent } from "./charts/format.ts"
import { duration } from "./text.ts"

/** A line at the bottom of the terminal that is redrawn, and erased at the end. */
export interface ProgressLine {
  readonly show: (text: string) => Effect.Effect<void>
  readonly clear: Effect.Effect<void>
}

const cleared = "\r\u001b[2K"

/** Does nothing unless a terminal shows the standard error. */
export const progressLine = Effect.gen(function*() {
  const stdio = yield* Stdio.Stdio
  const terminal = yield* Terminal.Terminal
  const kind = yield* Effect.orElseSucceed(Config.String("TERM"), () => "")
  const isShown = kind !== "dumb" && (yield* stdio.stderrIsTerminal)
  const write = (text: string) =>
    isShown ? Effect.ignore(Stream.run(Stream.succeed(text), stdio.stderr())) : Effect.void
  const line: ProgressLine = {
    show: (text) =>
      Effect.flatMap(terminal.columns, (columns) => write(cleared + text.slice(0, (columns > 0 ? columns : 80) - 1))),
    clear: write(cleared)
  }
  return line
})

const quietMillis = 300
const betweenMillis = 100

/** The share of a run from which the rest can be estimated. */
const tellingShare = 0.02

const left = (millis: number): string => `, ${duration(Math.max(1, Math.ceil(millis / 1000)) * 1000)} left`

/** The position of a run among all, and how many run at the same time. Default 1. */
export interface Place {
  readonly index: number
  readonly of: number
  readonly atOnce?: number
}

/** Shows the progress of one of several runs, and the time left for all: after a moment, and not too often. */
export const toldOn = (line: ProgressLine, label: string, run: Place) => {
  let nextMillis = quietMillis
  return ({ attempts, elapsedMillis, fraction, leftMillis }: Progress): Effect.Effect<void> => {
    if (elapsedMillis < nextMillis) return Effect.void
    nextMillis = elapsedMillis + betweenMillis
    const more = (elapsedMillis + (leftMillis ?? 0)) * ((run.of - 1 - run.index) / (run.atOnce ?? 1))
    const rest = leftMillis === null || fraction < tellingShare ? "" : left(leftMillis + more)
    const which = run.of === 1 ? "" : ` (${run.index + 1} of ${run.of})`
    return line.show(
      `${percent(Math.floor(fraction * 100) / 100)}${rest}: ${label}${which}, ${counted(attempts)} attempts`
    )
  }
}
