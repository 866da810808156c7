import { TerminalCapabilities } from "effect/cli/TerminalCapabilities"
import * as Config from "effect/Config"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Terminal from "effect/Terminal"
import { within } from "../explain/layout.ts"

/** How well something went. */
export type State = "good" | "doubtful" | "bad"

/** Where text is shown. */
export interface Screen {
  readonly columns: number
  /** The text in the color of a state, where colors are shown. */
  readonly paint: (state: State, text: string) => string
}

/** Where nothing is too wide, and nothing has a color. */
export const unbounded: Screen = { columns: Infinity, paint: (_, text) => text }

const usualColumns = 80
/** No table fits into less. */
const leastColumns = 40

const codes: { readonly [Of in State]: number } = { good: 32, doubtful: 33, bad: 31 }

const paint: Screen["paint"] = (state, text) => `\u001b[${codes[state]}m${text}\u001b[0m`

/** As wide as `COLUMNS` says, or else the terminal; in color as `NO_COLOR` and `FORCE_COLOR` say, or else in a terminal. */
export const screen = Effect.gen(function*() {
  const asked = yield* Effect.orElseSucceed(Config.Int("COLUMNS"), () => 0)
  const own = yield* (yield* Terminal.Terminal).columns
  const { canColor } = yield* TerminalCapabilities
  const columns = [asked, own, usualColumns].find((count) => count > 0)!
  return { columns: Math.max(leastColumns, columns), paint: canColor ? paint : unbounded.paint } satisfies Screen
})

/** Prints a text in the width of the screen, then code as it is. */
export const print = (text: string, code = "") =>
  Effect.flatMap(
    screen,
    ({ columns }) => Console.log(code === "" ? within(text, columns) : `${within(text, columns)}\n${code.trimEnd()}`)
  )
