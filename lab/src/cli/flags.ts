import * as RetryPolicyJson from "effect-retry/RetryPolicyJson"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { decode, type Scenario } from "../Simulator.ts"
import { expectedDuration } from "../simulator/fields.ts"
import { refusalOf } from "./refusal.ts"

export const scenario = Argument.String("scenario").pipe(
  Argument.withDescription("A built-in scenario, or a file")
)

export const json = Flag.Boolean("json").pipe(
  Flag.withDescription("Print JSON instead of the table"),
  Flag.withDefault(false)
)

export const force = Flag.Boolean("force").pipe(
  Flag.withDescription("Overwrite an existing file"),
  Flag.withDefault(false)
)

/** Requests per second that the service can handle. */
export const capacity = (description: string) =>
  Flag.Finite("capacity").pipe(
    Flag.filter((value) => value > 0, () => "requests per second, above 0"),
    Flag.withMetavar("NUMBER"),
    Flag.withDescription(description),
    Flag.optional
  )

/** A file that is written if it is asked for. */
export const file = (name: string, description: string) =>
  Flag.String(name).pipe(Flag.withMetavar("FILE"), Flag.withDescription(description), Flag.optional)

export const report = file("report", "Write a page with charts: one self-contained HTML file")

export const svg = file("svg", "Write an SVG chart")

export const seed = Flag.Int("seed").pipe(
  Flag.filter((value) => value >= 0, () => "a whole number from 0"),
  Flag.withMetavar("NUMBER"),
  Flag.withDescription("The random seed, instead of the scenario's"),
  Flag.optional
)

/** How many runs, each with a seed of its own. */
export const runsOf = (description: string) =>
  Flag.Int("runs").pipe(
    Flag.filter((value) => value >= 1 && value <= 1000, () => "a whole number from 1 to 1000"),
    Flag.withMetavar("NUMBER"),
    Flag.withDescription(description)
  )

export const runs = runsOf("Runs, each with its own seed. Default 20, down to 5 if they are long").pipe(Flag.optional)

/** Threads that runs are spread over. */
export const workers = Flag.Int("workers").pipe(
  Flag.filter((value) => value >= 1 && value <= 256, () => "a whole number from 1 to 256"),
  Flag.withMetavar("NUMBER"),
  Flag.withDescription("Threads for long or many runs; 1: none. Default: one for each core"),
  Flag.optional
)

/** A duration: `2s`, `"2 seconds"`, or a number of milliseconds. */
export const duration = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.filterMap(
      (text) =>
        RetryPolicyJson.duration(/^\d+(\.\d+)?$/.test(text) ? Number(text) : text).pipe(
          Option.filter(Duration.isFinite)
        ),
      () => expectedDuration
    ),
    Flag.withMetavar("DURATION"),
    Flag.withDescription(description),
    Flag.optional
  )

/** A share: from 0 to 1, or in percent. */
export const share = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.filterMap(
      (text) => {
        const [, number, percent] = /^(\d+(?:\.\d+)?|\.\d+) ?(%?)$/.exec(text) ?? []
        return Option.some(Number(number) / (percent === "" ? 1 : 100)).pipe(Option.filter((rate) => rate <= 1))
      },
      () => "a number from 0 to 1, or a percentage"
    ),
    Flag.withMetavar("SHARE"),
    Flag.withDescription(description)
  )

/** A number; of a duration, its milliseconds. */
export const amount = (text = ""): number =>
  Option.match(RetryPolicyJson.duration(text), { onNone: () => Number(text), onSome: Duration.toMillis })

export const policies = Flag.String("policy").pipe(
  Flag.withMetavar("POLICY"),
  Flag.withDescription("A policy for all clients: a name, or its steps as JSON; repeatable"),
  Flag.atLeast(0)
)

export const expect = Flag.String("expect").pipe(
  Flag.filter((text) => expectation.test(text), () => `an expectation such as 'succeed >= 99 %'`),
  Flag.withMetavar("EXPECTATION"),
  Flag.withDescription("Such as 'sendsPerCall <= 1.2', in place of the scenario's; repeatable"),
  Flag.atLeast(0)
)

const expectation = /^(\w+) *([^\w ].*|(?<= )\d.*)$/

/** The scenario with the expectations that were asked for, if any were. */
export const withExpectations = (scenario: Scenario, asked: ReadonlyArray<string>) =>
  asked.length === 0
    ? Effect.succeed(scenario)
    : Effect.mapError(
      decode({
        ...scenario,
        expect: Object.fromEntries(
          asked.map((text) => {
            const [, name, bound] = expectation.exec(text) ?? []
            return [name, bound]
          })
        )
      }),
      refusalOf
    )
