/** Options are declared once: what pages and editors show of them, and what the core checks by hand, is the same. */
import { assert, describe, it } from "@effect/vitest"
import * as RetryConfigSchema from "effect-retry/RetryConfigSchema"
import * as fs from "node:fs"
import { quotaOptions } from "../../src/config/internal/fleetStores.ts"
import { limiterOptions } from "../../src/gates/internal/adaptiveGate.ts"
import { concurrencyOptions } from "../../src/gates/internal/concurrencyGate.ts"
import { ruleOptions } from "../../src/gates/internal/concurrencyRule.ts"
import { coolDownOptions } from "../../src/gates/internal/coolDownGate.ts"
import { throttleOptions } from "../../src/gates/internal/throttleGate.ts"
import { tokenOptions } from "../../src/gates/internal/tokenGate.ts"
import { hedgeOptions, homeOptions, quantileOptions } from "../../src/hedge/internal/race.ts"
import type { OptionRecord } from "../../src/internal/options.ts"
import { grpcOptions } from "../../src/quota/internal/grpcBudget.ts"
import { inFlightOptions } from "../../src/quota/internal/inFlightBudget.ts"
import { validStore } from "../../src/quota/internal/memoryStore.ts"
import { shareOptions } from "../../src/quota/internal/shareBudget.ts"

/** The records, by the module and the interface that documents them. */
const records: ReadonlyArray<readonly [module: string, type: string, options: OptionRecord]> = [
  ["RetryQuota", "Options", quotaOptions],
  ["gates/AdaptiveRateLimiter", "Options", limiterOptions],
  ["gates/ConcurrencyLimiter", "AdaptiveOptions", ruleOptions],
  ["gates/ConcurrencyLimiter", "Options", concurrencyOptions],
  ["gates/CoolDown", "Options", coolDownOptions],
  ["gates/ClientThrottle", "Options", throttleOptions],
  ["gates/TokenLimiter", "Options", tokenOptions],
  ["hedge/Hedge", "Options", homeOptions],
  ["hedge/Hedge", "CallOptions", hedgeOptions],
  ["hedge/Hedge", "QuantileOptions", quantileOptions],
  ["quota/RetryBudget", "ShareOptions", shareOptions],
  ["quota/RetryBudget", "InFlightOptions", inFlightOptions],
  ["quota/RetryBudget", "GrpcOptions", grpcOptions]
]

/** What an interface says of each of its options. */
const documented = (module: string, type: string): ReadonlyMap<string, string> => {
  const source = fs.readFileSync(new URL(`../../src/${module}.ts`, import.meta.url), "utf8")
  const [, body] = source.split(`export interface ${type} {\n`)
  const members = body!.slice(0, body!.indexOf("\n}")).matchAll(/\/\*\*(.*?)\*\/\s*readonly (\w+)\?:/gs)
  return new Map(Array.from(members, ([, text, name]) => [name!, text!.replace(/\s*\n\s*\*\s*/g, " ")]))
}

const units: Readonly<Record<string, number>> = { millisecond: 1, second: 1000, minute: 60_000 }

/** The default that a text states: a number, a duration in milliseconds, or a word. */
const statedIn = (text: string): number | string | undefined => {
  const [, word, number, unit] = /Default (?:`?"(\w+)"|([\d,.]*\d)(?: (\w+?)s?\b)?)/.exec(text) ?? []
  return word ?? (number === undefined ? undefined : Number(number.replace(/,/g, "")) * (units[unit ?? ""] ?? 1))
}

describe("a default", () => {
  for (const [module, type, options] of records) {
    it(`of ${module} is documented in ${type} as it is`, () => {
      const texts = documented(module, type)
      for (const [name, { otherwise }] of Object.entries(options)) {
        const text = texts.get(name) ?? assert.fail(`${name} is not in ${type}`)
        if (typeof otherwise !== "string" && !Number.isFinite(otherwise)) continue
        assert.strictEqual(statedIn(text), otherwise as number, `${name}: ${text}`)
      }
    })
  }

  it("is found in what a text states", () => {
    const stated = [
      "Default 0.7.",
      "Default 10,000.",
      "Default 2 minutes. More.",
      `Default \`"wait"\`.`,
      "Default none."
    ]
    assert.deepStrictEqual(stated.map(statedIn), [0.7, 10_000, 120_000, "wait", undefined])
  })
})

describe("the record of a quota", () => {
  it("has the defaults of RetryQuota", () => {
    for (const [name, { otherwise }] of Object.entries<OptionRecord[string]>(quotaOptions)) {
      const input = otherwise === undefined ? {} : { [name]: otherwise }
      assert.deepStrictEqual(validStore(input), validStore({}), name)
    }
  })

  it("has its options, but for those that only code can set", () => {
    const names = Object.keys(RetryConfigSchema.Resource.fields.quota.schema.fields)
    assert.deepStrictEqual(names, [...Object.keys(quotaOptions), "redis"])
  })
})
