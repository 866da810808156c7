import type * as Duration from "effect/Duration"
import { also, callable, type Checks, flag as checkFlag, inside, rejectUnknown } from "./checks.ts"
import { guarded } from "./tryGet.ts"

/** An option, declared once: what it may be, and its default. Checks, Schemas and texts of defaults come from it. */
export interface Option<out Kind extends string, in In, out Out> {
  readonly kind: Kind
  /** The bounds of a number. */
  readonly least?: number
  readonly most?: number
  /** The words that it may be. */
  readonly of?: ReadonlyArray<string>
  readonly otherwise?: unknown
  /** The value in the library's internal unit, or the default. */
  readonly read: (check: Checks, field: string, value: In | undefined) => Out
}

/** The options of a constructor. */
export type OptionRecord = Readonly<Record<string, Option<string, any, unknown>>>

/** The options as they are passed. */
export type Inputs<Options> = {
  readonly [K in keyof Options]?: (Options[K] extends Option<any, infer In, any> ? In : never) | undefined
}

type Time = "duration" | "positiveDuration"

/** The options as they are used: checked, with their defaults, durations in milliseconds. */
export type Valid<Options> = {
  readonly [
    K in keyof Options as Options[K] extends Option<"inCode", any, any> ? never
      : Options[K] extends Option<Time, any, any> ? `${K & string}Millis`
      : K
  ]: Options[K] extends Option<any, any, infer Out> ? Out : never
}

/** An option by what it may be, what else is known of it, and how it is read. */
export const option = <Kind extends string, In, Out>(
  kind: Kind,
  about: Pick<Option<Kind, In, Out>, "least" | "most" | "of" | "otherwise">,
  read: Option<Kind, In, Out>["read"]
): Option<Kind, In, Out> => ({ kind, ...about, read })

const numeric = <Kind extends "amount" | "positive">(kind: Kind) => (otherwise?: number) =>
  option(kind, { otherwise }, (check, field, value?: number) => check[kind](field, value, otherwise))

const timed = <Kind extends Time>(kind: Kind) => (otherwise?: number) =>
  option(kind, { otherwise }, (check, field, value?: Duration.Input) => check[kind](field, value, otherwise))

/** A finite number of at least 0. */
export const amount = /* @__PURE__ */ numeric("amount")

/** A finite number above 0. */
export const positive = /* @__PURE__ */ numeric("positive")

/** A finite duration of at least 0. */
export const duration = /* @__PURE__ */ timed("duration")

/** A finite duration above 0. */
export const positiveDuration = /* @__PURE__ */ timed("positiveDuration")

/** A whole number of at least `least`, or `Infinity`. */
export const count = (least: number, otherwise?: number) =>
  option("count", { least, otherwise }, (check, field, value?: number) => check.count(field, value, least, otherwise))

/** A number of a range. */
export const between = (least: number, most: number, otherwise: number) => {
  const about = { least, most, otherwise }
  return option("between", about, (check, field, value: number = otherwise) => check.between(field, value, least, most))
}

/** A finite number of at least 1. */
export const factor = (otherwise: number) => between(1, Number.MAX_VALUE, otherwise)

/** A number from 0 to 1. */
export const share = (otherwise: number) => between(0, 1, otherwise)

/** A number above 0 and below 1. */
export const fraction = (otherwise?: number) =>
  option("fraction", { otherwise }, (check, field, value: number = otherwise!) => inside(check, field, value))

/** A number above 0, at most 1. */
export const weight = (otherwise: number) =>
  option("weight", { otherwise }, (check, field, value?: number) => {
    const read = check.number("a number above 0, at most 1", (n) => n > 0 && n <= 1)
    return read(field, value, otherwise)
  })

/** A whole number of a range. */
export const whole = (least: number, most: number, otherwise: number) =>
  option("whole", { least, most, otherwise }, (check, field, value?: number) => {
    const isValid = (n: number) => Number.isInteger(n) && n >= least && n <= most
    return check.number(`a whole number from ${least} to ${most}`, isValid)(field, value, otherwise)
  })

/** One of a few words: by default the first. */
export const word = <const A extends string>(...of: readonly [A, ...ReadonlyArray<A>]) =>
  option("word", { of, otherwise: of[0] }, (check, field, value?: A) => check.oneOf(field, value, of, of[0]))

/** True or false. */
export const flag = (otherwise = false) =>
  option("flag", { otherwise }, (check, field, value: boolean = otherwise) => checkFlag(check, field, value))

/** A function of the user's. Its module answers where it throws. */
export const functionOf = <F extends (a: any, b: any) => unknown>(expected: string, otherwise?: F) =>
  option("callback", { otherwise }, (check, field, value = otherwise) => callable(check, field, value as F, expected))

/** A function of the user's, by default of an outcome. Where it throws, the default answers. */
export const callback = <F extends (a: any, b: any) => unknown>(
  otherwise: F,
  expected = "a function of an outcome"
) => {
  const { read } = functionOf(expected, otherwise)
  return option("callback", { otherwise }, (check, field, value?: F) => guarded(read(check, field, value), otherwise))
}

/** What only code can set. Its module checks it. */
export const inCode: Option<"inCode", any, unknown> = { kind: "inCode", read: () => undefined }

/** An option without a default: its module knows what that means. */
export const optional = <Kind extends string, In, Out>(
  option: Option<Kind, In, Out>
): Option<Kind, In, Out | undefined> => ({
  ...option,
  read: (check, field, value) => value === undefined ? undefined : option.read(check, field, value)
})

export const isTime = ({ kind }: Option<string, any, any>): boolean =>
  kind === "duration" || kind === "positiveDuration"

/** Checks options, and fills in their defaults. */
export const readOptions = <const Options extends OptionRecord>(
  check: Checks,
  options: Options,
  inputs: Inputs<Options>
): Valid<Options> => {
  also(check, ...Object.keys(options))
  return Object.fromEntries(
    Object.entries(options).map(([name, option]) => [
      isTime(option) ? `${name}Millis` : name,
      option.read(check, name, inputs[name])
    ])
  ) as any
}

/** Checks all options, and fills in their defaults. Rejects those that are not in the record, and were not checked before. */
export const validOptions: typeof readOptions = (check, options, inputs) =>
  rejectUnknown(check, inputs, readOptions(check, options, inputs))

/** The names of the options that JSON can express. */
export const jsonNames = (options: OptionRecord): ReadonlyArray<string> =>
  Object.keys(options).filter((name) => !["inCode", "callback"].includes(options[name]!.kind))
