import * as RetryPolicyJson from "effect-retry/RetryPolicyJson"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import { expectedDuration } from "../simulator/fields.ts"

export const scenario = Argument.String("scenario").pipe(
  Argument.withDescription("The name of one that ships, or a file")
)

export const json = Flag.Boolean("json").pipe(
  Flag.withDescription("Print the data instead of the table"),
  Flag.withDefault(false)
)

export const report = Flag.String("report").pipe(
  Flag.withMetavar("FILE"),
  Flag.withDescription("Write a page with charts: one HTML file, which needs nothing else"),
  Flag.optional
)

export const seed = Flag.Int("seed").pipe(
  Flag.filter((value) => value >= 0, () => "a whole number from 0"),
  Flag.withMetavar("NUMBER"),
  Flag.withDescription("What decides chance, instead of what the scenario says"),
  Flag.optional
)

export const runs = Flag.Int("runs").pipe(
  Flag.filter((value) => value >= 1 && value <= 1000, () => "a whole number from 1 to 1000"),
  Flag.withMetavar("NUMBER"),
  Flag.withDescription("Runs, each with its seed. Default 20, down to 5 where one is long"),
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
