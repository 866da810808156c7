import * as Cause from "effect/Cause"
import * as CliConfig from "effect/cli/CliConfig"
import { isCliError } from "effect/cli/CliError"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Console from "effect/Console"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Stdio from "effect/Stdio"
import type * as Terminal from "effect/Terminal"
import { backtest } from "./backtest.ts"
import { check, ExpectationsFailed } from "./check.ts"
import { compare } from "./compare.ts"
import { explain } from "./explain.ts"
import { fit } from "./fit.ts"
import { printHelp } from "./help.ts"
import { init } from "./init.ts"
import { Installed } from "./Installed.ts"
import { list } from "./list.ts"
import { listPolicies } from "./listPolicies.ts"
import { map } from "./map.ts"
import { open } from "./open.ts"
import { Refusal } from "./refusal.ts"
import { simulate } from "./simulate.ts"
import { sweep } from "./sweep.ts"
import { plain } from "./text.ts"
import { ThreadFailed } from "./thread.ts"
import { tune } from "./tune.ts"

const groups = [
  { group: "LOOK", commands: [explain, open] },
  { group: "SIMULATE", commands: [simulate, compare, map] },
  { group: "DECIDE", commands: [check, sweep, tune] },
  { group: "YOUR OWN", commands: [init, fit, backtest] },
  { group: "LISTS", commands: [list, listPolicies] }
] as const

const effectRetry = Command.make("effect-retry").pipe(
  Command.withDescription("Shows what a retry policy does: on its own, and to a service in an outage."),
  Command.withSubcommands(groups),
  Command.withExamples([
    { description: "What does a policy do?", command: "effect-retry explain awsStandard" },
    {
      description: "Which of two is better in an outage?",
      command: "effect-retry compare outage --policy awsStandard --policy limited"
    },
    { description: "And in mine?", command: "effect-retry init my-service.json --rate 400 --p99 80ms" },
    { description: "And in the one of an access log?", command: "effect-retry fit access.log --out my-service.json" }
  ])
)

const names: ReadonlyArray<string> = groups.flatMap(({ commands }) => commands.map(({ name }) => name))

/** Help for a command that does not exist is a mistake like the command itself. */
const withoutVainHelp = ([first = "", ...others]: ReadonlyArray<string>): ReadonlyArray<string> =>
  first === "" ? [] : first.startsWith("-") || names.includes(first)
    ? [first, ...others]
    : [first, ...others.filter((word) => word !== "--help" && word !== "-h")]

const complain = (lines: ReadonlyArray<string>): Effect.Effect<void> =>
  Console.error(lines.map((line) => `effect-retry: ${plain(line)}`).join("\n"))

/** Errors in the command are one line each; help is printed on request. */
const presenterIn = (services: Context.Context<Terminal.Terminal>): CliOutput.Presenter => ({
  present: (event) => {
    if (event._tag === "Help") return Effect.provide(printHelp(event), services)
    return event._tag === "InvalidInvocation"
      ? complain([
        ...event.errors.map(({ message }) => message.replaceAll(/\s*\n\s*/g, " ")),
        `see ${event.commandPath.join(" ")} --help`
      ])
      : CliOutput.defaultPresenter.present(event)
  }
})

const completions: typeof GlobalFlag.Completions = {
  ...GlobalFlag.Completions,
  flag: Flag.withMetavar(GlobalFlag.Completions.flag, "SHELL")
}

/** The command line. When it fails, the error has been printed. */
export const main = Effect.gen(function*() {
  const { version } = yield* Installed
  const { args } = yield* Stdio.Stdio
  const presenter = presenterIn(yield* Effect.context<Terminal.Terminal>())
  yield* Command.runWith(effectRetry, { version })(withoutVainHelp(yield* args)).pipe(
    Effect.provideService(CliOutput.Presenter, presenter)
  )
}).pipe(
  Effect.tapCause((cause) => {
    if (Cause.hasInterruptsOnly(cause)) return Effect.void
    const error: unknown = Cause.squash(cause)
    if (error instanceof Refusal) return complain(error.lines)
    if (error instanceof ThreadFailed) return complain([error.message])
    if (error instanceof ExpectationsFailed) return complain([error.message])
    return Cause.hasDies(cause)
      ? Console.error(`effect-retry has a bug, please report it:\n${Cause.pretty(cause)}`)
      : Effect.void
  }),
  Effect.provideService(
    CliConfig.CliConfig,
    CliConfig.make({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, completions] })
  )
)

/**
 * 0 for success, 1 for a bug in the program, 2 for a mistake in the input, 3 for expectations that do not hold,
 * 130 after Ctrl-C.
 */
export const exitCode = <E, A>(exit: Exit.Exit<A, E>): number => {
  if (Exit.isSuccess(exit)) return 0
  if (Cause.hasDies(exit.cause)) return 1
  const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
  if (error === undefined) return 130
  if (error instanceof ExpectationsFailed) return 3
  const isHelp = isCliError(error) && error._tag === "ShowHelp" && error.errors.length === 0
  return isHelp ? 0 : 2
}
