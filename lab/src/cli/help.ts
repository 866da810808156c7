import type { Presenter } from "effect/cli/CliOutput"
import { defaultFormatter } from "effect/cli/CliOutput"
import { TerminalCapabilities } from "effect/cli/TerminalCapabilities"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { namedWithin, widthOf, wrapped } from "../explain/layout.ts"
import { screen } from "./screen.ts"

const joint = "\u00a0"

/** A command and its words, continued in the next line as a shell reads it. */
const commandWithin = (line: string, columns: number): ReadonlyArray<string> => {
  // A flag stays with its value.
  const lines = wrapped(line.trim().replaceAll(/(?<= --\w[\w-]{0,30}) /g, joint), columns - 6)
    .map((text) => text.replaceAll(joint, " "))
  return lines.map((text, n) => `${n === 0 ? "  " : "    "}${text}${n === lines.length - 1 ? "" : " \\"}`)
}

const lineWithin = (line: string, columns: number): ReadonlyArray<string> => {
  if (widthOf(line) <= columns) return [line]
  if (/^ +(?:\p{Cc}\[\d+m)?effect-retry /u.test(line)) return commandWithin(line, columns)
  const [, name, description] = /^( {2}\S.*? {2,})(\S.*)$/.exec(line) ?? []
  if (name === undefined) return wrapped(line.trim(), columns - 2).map((text) => `  ${text}`)
  return namedWithin(name, description!, columns)
}

/** Longer lines are hard to read. */
const widestProse = 100

/** Prints the help of a command in the width of the screen. */
export const printHelp = Effect.fnUntraced(function*({ helpDoc }: Presenter.Help) {
  const columns = Math.min(widestProse, (yield* screen).columns)
  const { canColor } = yield* TerminalCapabilities
  const help = defaultFormatter({ colors: canColor }).formatHelpDoc(helpDoc)
  yield* Console.log(help.split("\n").flatMap((line) => lineWithin(line, columns)).join("\n"))
})
