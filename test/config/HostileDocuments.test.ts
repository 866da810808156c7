import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as AwsRetryConfig from "effect-retry/aws/AwsRetryConfig"
import * as BotocoreLegacy from "effect-retry/aws/legacy/BotocoreLegacy"
import * as SharedConfig from "effect-retry/aws/SharedConfig"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import { type Entry, filesOf } from "../utils/files.ts"

type Environment = Readonly<Record<string, string>>

const load = (env: Environment, entry: Entry = { fails: "NotFound" }) =>
  AwsRetryConfig.make().pipe(
    Effect.map(({ maxAttempts, mode }) => [mode.value, maxAttempts.value] as const),
    Effect.provide([
      filesOf({ "/config": entry }).layer,
      ConfigProvider.layer(ConfigProvider.fromEnv({ env: { AWS_CONFIG_FILE: "/config", ...env } }))
    ])
  )

describe("documents of any content", () => {
  for (const word of ["__proto__", "constructor", "prototype"]) {
    it.effect(`${word} in a config file or a document pollutes nothing`, () =>
      Effect.gen(function*() {
        const before = Reflect.ownKeys(Object.prototype)
        const profiles = yield* SharedConfig.parse(
          `[${word}]\npolluted = 1\n[profile ${word}]\npolluted = 1\n${word} = 1\n[default]\n${word} =\n  polluted = 1`,
          "/config"
        )
        assert.strictEqual(profiles.get(word)?.get("polluted")?.value, "1")
        assert.strictEqual(profiles.get(word)?.get(word)?.value, "1")
        const hostile = `{"${word}":{"polluted":1}}`
        for (const json of [hostile, `{"retry":${hostile}}`, `{"definitions":${hostile}}`, `{"fleets":[${hostile}]}`]) {
          yield* Effect.flip(BotocoreLegacy.decodeJson(json))
          yield* Effect.flip(Simulator.decodeJson(json))
        }
        const mode = yield* load({ AWS_PROFILE: word }, `[profile ${word}]\nretry_mode = adaptive`)
        assert.deepStrictEqual(mode, ["adaptive", 3])
        assert.deepStrictEqual(Reflect.ownKeys(Object.prototype), before)
        assert.isUndefined(({} as { polluted?: unknown }).polluted)
      }))
  }

  const scenario = { name: "s", fleets: [{ name: "f", to: "t", rate: 1 }], services: [{ name: "t" }] }
  const scenarios: ReadonlyArray<readonly [string, string]> = [
    ["an unknown key", JSON.stringify({ ...scenario, seeds: 1 })],
    ["a number beyond all numbers", JSON.stringify(scenario).replace(`"rate":1`, `"rate":1e999`)],
    ["a negative rate", JSON.stringify(scenario).replace(`"rate":1`, `"rate":-1`)],
    ["a depth of 100,000", "[".repeat(100_000) + "]".repeat(100_000)],
    ["a list of a million", `{"fleets":[${"1,".repeat(1_000_000)}1]}`],
    ["no JSON", "{"],
    ["nothing", ""]
  ]
  for (const [name, json] of scenarios) {
    it.effect(`a scenario and a document with ${name} are refused with typed errors`, () =>
      Effect.gen(function*() {
        assert.strictEqual((yield* Effect.flip(Simulator.decodeJson(json)))._tag, "InvalidScenario")
        assert.strictEqual((yield* Effect.flip(BotocoreLegacy.decodeJson(json)))._tag, "BotocoreLegacyError")
      }))
  }
  it.effect("of a key twice the last counts, -0 is 0, and a lone surrogate is text like any other", () =>
    Effect.gen(function*() {
      const text = JSON.stringify(scenario)
      const twice = yield* Simulator.decodeJson(text.replace(`"name":"s"`, `"name":"x","name":"\\ud800"`))
      assert.strictEqual(twice.name, "\ud800")
      const zero = yield* Simulator.decodeJson(text.replace(`"rate":1`, `"rate":-0,"network":-0`))
      assert.strictEqual(zero.fleets[0].name, "f")
    }))
})
