import { TerminalCapabilities } from "effect/cli/TerminalCapabilities"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Stdio from "effect/Stdio"
import * as Terminal from "effect/Terminal"

const hideCursor = "\u001b[?25l"
const showCursor = "\u001b[?25h"
const eraseLines = (lines: number): string =>
  lines === 0 ? "" : `\u001b[${lines}A\r\u001b[J`

const green = 32
const yellow = 33
const red = 31

/** Bars in the color of how well it goes. */
const painted = (line: string): string =>
  line.replaceAll(/[▇█]+|[▄▅▆]+|[▁▂▃]+/g, (bars) => {
    const color = "▇█".includes(bars[0]!)
      ? green
      : "▄▅▆".includes(bars[0]!)
      ? yellow
      : red
    return `\u001b[${color}m${bars}\u001b[0m`
  })

/** What is shown while a program runs. */
export interface View {
  /** A block redrawn repeatedly in a terminal. */
  readonly block: Effect.Effect<ReadonlyArray<string>>
  /** A line added from time to time if there is no terminal. */
  readonly line: Effect.Effect<string>
}

/** Prints lines. */
export const print = (
  lines: ReadonlyArray<string>
): Effect.Effect<void> => Console.log(lines.join("\n"))

const redrawn = Effect.fnUntraced(function*(block: View["block"]) {
  const terminal = yield* Terminal.Terminal
  const { canColor } = yield* TerminalCapabilities
  let drawn = 0
  const draw = Effect.gen(function*() {
    // A line that wraps would be two lines to erase. A terminal that
    // does not know its width reports 0.
    const columns = (yield* terminal.columns) || Infinity
    const lines = (yield* block).map((line) => line.slice(0, columns))
      .map((line) => canColor ? painted(line) : line)
    const erase = eraseLines(drawn)
    drawn = lines.length
    yield* terminal.display(
      erase + lines.map((line) => `${line}\n`).join("")
    )
  })
  const restore = Effect.suspend(() =>
    Effect.ignore(terminal.display(eraseLines(drawn) + showCursor))
  )
  return yield* terminal.display(hideCursor).pipe(
    Effect.andThen(Effect.forever(Effect.delay(draw, "200 millis"))),
    Effect.ensuring(restore)
  )
})

/**
 * Shows the view until it is interrupted, and leaves the terminal as it
 * was.
 */
export const show = (view: View) =>
  Effect.gen(function*() {
    const stdio = yield* Stdio.Stdio
    if (yield* stdio.stdoutIsTerminal) return yield* redrawn(view.block)
    const line = Effect.flatMap(view.line, (line) => print([line]))
    return yield* Effect.forever(Effect.delay(line, "2 seconds"))
  })
