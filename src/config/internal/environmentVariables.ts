import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Record from "effect/Record"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { Refusal, refuse } from "../../internal/invalidField.ts"
import { short } from "../../internal/tryGet.ts"
import type { Policy } from "../RetryPolicyJson.ts"
import { reading } from "./policyReader.ts"
import { policyAt, presets, shortKeys } from "./shortPolicy.ts"

/** `payment-api` and `maxAttempts` as `PAYMENT_API` and `MAX_ATTEMPTS`. */
const constant = (word: string): string => word.replace(/([a-z\d])([A-Z])/g, "$1_$2").replace(/\W+/g, "_").toUpperCase()

/** A value under its name in JSON, `retry.orders.base`, or in an environment, `RETRY_ORDERS_BASE`. */
const valueAt = (name: string, key: string): Config.Config<string> =>
  Config.String(key).pipe(
    Config.nested(name),
    Config.nested("retry"),
    Config.option,
    Config.flatMap(Option.match({
      onSome: (value) => Config.succeed(value),
      onNone: () => Config.String(`RETRY_${constant(name)}_${constant(key)}`)
    }))
  )

const numeric = /^[+-]?(\d+(?:\.\d*)?|\.\d+)(e[+-]?\d+)?$/i

/** The value that a string stands for. An invalid string is rejected where it is used. */
const read = (text: string, kind: (typeof shortKeys)[keyof typeof shortKeys]): unknown => {
  if (kind === "word") return text
  if (kind === "flag") return text === "true" ? true : text === "false" ? false : text
  return numeric.test(short(text)) ? Number(text) : text
}

const parsed = (text: string): unknown => {
  if (Object.hasOwn(presets, text)) return text
  try {
    return JSON.parse(text)
  } catch {
    return refuse(["policy"], text, `JSON, or ${Object.keys(presets).join(", ")}`)
  }
}

const errorOf = (name: string, { expected, path, value }: Refusal): Config.ConfigError =>
  new Config.ConfigError(
    new Schema.SchemaError(
      new SchemaIssue.Pointer(["retry", name, ...path], new SchemaIssue.InvalidValue({ expected }, value))
    )
  )

const policyOf = (name: string, json: () => unknown): Effect.Effect<Policy, Config.ConfigError> =>
  Effect.suspend(() => {
    const policy = reading(undefined, () => policyAt(json(), []))
    return policy instanceof Refusal ? Effect.fail(errorOf(name, policy)) : Effect.succeed(policy)
  })

/** The policy of a name: its short keys, or everything in one value. */
export const policyConfig = (name: string): Config.Config<Policy> => {
  const keys = Object.entries(shortKeys).map(([key, kind]) =>
    [key, Config.option(Config.map(valueAt(name, key), (text) => read(text, kind)))] as const
  )
  return Config.all(Object.fromEntries(keys)).pipe(
    Config.flatMap((found) => {
      const short = Record.getSomes(found)
      return Record.isEmptyRecord(short)
        ? Config.map(valueAt(name, "policy"), (text) => () => parsed(text))
        : Config.succeed(() => short)
    }),
    Config.mapEffect((json) => policyOf(name, json))
  )
}
