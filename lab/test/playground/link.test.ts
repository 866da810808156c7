import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { linkOf, readLink } from "../../playground/link.ts"
import { policyOf } from "../../playground/policy.ts"
import { scenarioOf } from "../../playground/scenario.ts"
import {
  begin,
  type Choice,
  choices,
  type Field,
  type FieldName,
  fieldNames,
  fields,
  type Kind,
  kinds,
  type SettingName,
  settingNames,
  settings,
  type Setup
} from "../../playground/setup.ts"
import * as Simulator from "../../src/Simulator.ts"
import { everyChoice } from "./choices.ts"

const isWhole = (field: Field): boolean => field.whole === true

const numbers = Object.fromEntries(
  fieldNames.map((name) => [
    name,
    (isWhole(fields[name]) ? Schema.Int : Schema.Finite).check(
      Schema.isBetween({ minimum: fields[name].min, maximum: fields[name].max })
    )
  ])
) as Record<FieldName, typeof Schema.Finite>

const setups = Schema.Struct({
  numbers: Schema.Struct(numbers),
  kind: Schema.Literals(Object.keys(kinds) as Array<Kind>),
  policies: Schema.Array(Schema.Literals(everyChoice.map((_, n) => n))).check(
    Schema.isMinLength(1),
    Schema.isMaxLength(4)
  )
})

const problems = (link: string): ReadonlyArray<string> => {
  const read = readLink(link)
  return "problems" in read ? read.problems : []
}

describe("a link of the playground", () => {
  it.prop("is read as the set-up it was made from", [setups], ([{ kind, numbers, policies }]) => {
    // A slider knows no -0.
    const positive = Object.fromEntries(fieldNames.map((name) => [name, numbers[name] + 0]))
    const setup: Setup = { ...begin, ...positive, kind, policies: policies.map((n) => everyChoice[n]!) }
    assert.deepStrictEqual(readLink(`#${linkOf(setup)}`), { setup })
  })

  it("is the default set-up if it is empty", () => {
    for (const hash of ["", "#"]) assert.deepStrictEqual(readLink(hash), { setup: begin })
  })

  it("is short, and readable", () => {
    const policies: ReadonlyArray<Choice> = [{ name: "naive" }, { name: "jitter", attempts: 4, coolDown: true }]
    assert.strictEqual(
      linkOf({ ...begin, rate: 300, kind: "drop", policies }),
      "rate=300&kind=drop&policy=naive&policy=jitter,attempts:4,coolDown"
    )
  })

  it("is refused with all its errors", () => {
    assert.deepStrictEqual(
      problems("#rate=5000&capacity=&kind=quake&policy=awsStandart&policy=naive,attempts:x,tokens:3&x=1"),
      [
        `rate must be a number from 10 to 600, got "5000"`,
        `capacity must be a number from 10 to 1000, got ""`,
        `kind must be one of slow, fail, drop, hold, none, got "quake"`,
        `policy must be one of none, naive, backoff, jitter, awsStandard, awsStandard2026, awsDynamoDB2026, awsAdaptive, limited, awsJavaV1, awsJavaScriptV2, awsGeneralReference, grpc, finagle, envoy, sre, got "awsStandart"`,
        `policy: attempts must be a whole number from 1 to 10, got "x"`,
        `policy must be a name, then attempts:NUMBER, quota:NUMBER, concurrency:NUMBER, throttle:NUMBER or coolDown, got "tokens:3"`,
        `unknown key "x"`
      ]
    )
    assert.deepStrictEqual(problems("#policy=naive&policy=naive&policy=naive&policy=naive&policy=naive"), [
      "more than 4 policies"
    ])
  })

  it("guesses nothing: numbers are decimal, each key and each option comes once, an option has one value", () => {
    const number = "policy: quota must be a number from 0 to 5000"
    const options =
      "policy must be a name, then attempts:NUMBER, quota:NUMBER, concurrency:NUMBER, throttle:NUMBER or coolDown"
    for (
      const [link, problem] of [
        ["rate=0x20", `rate must be a number from 10 to 600, got "0x20"`],
        ["rate= 50", `rate must be a number from 10 to 600, got " 50"`],
        ["rate=50&rate=60", "rate is given more than once"],
        ["kind=drop&kind=drop", "kind is given more than once"],
        ["policy=none,quota:50:60", `${number}, got "50:60"`],
        ["policy=none,quota:5,quota:5", "policy: quota is given more than once"],
        ["policy=none,coolDown,coolDown", "policy: coolDown is given more than once"],
        ["policy=none,coolDown:false", `${options}, got "coolDown:false"`]
      ] as const
    ) assert.deepStrictEqual(problems(`#${link}`), [problem], link)
  })

  // What the page takes, the simulator takes: a link is refused where the simulator would refuse the scenario.
  it.effect("has whole numbers where the simulator needs them, and only there", () =>
    Effect.gen(function*() {
      const decoded = (setup: Setup) =>
        Effect.isSuccess(Simulator.decode(scenarioOf(setup, policyOf(setup.policies[0]!))))
      for (const name of fieldNames) {
        const value = fields[name].min + 0.5
        const found = yield* decoded({ ...begin, [name]: value })
        assert.strictEqual(found, !isWhole(fields[name]), name)
        assert.strictEqual(problems(`#${name}=${value}`).length === 0, found, name)
      }
      for (const name of settingNames) {
        for (const choice of choices) {
          const value = settings[name].min + 0.5
          const policies: ReadonlyArray<Choice> = [{ name: choice, [name]: value } as Choice]
          const found = yield* decoded({ ...begin, policies })
          if (!isWhole(settings[name as SettingName])) assert.isTrue(found, `${choice} ${name}`)
          assert.strictEqual(
            problems(`#${linkOf({ ...begin, policies })}`).length === 0,
            !isWhole(settings[name]),
            name
          )
        }
      }
    }))

  it.prop("is never trusted: any text is read or refused", [Schema.String], ([text]) => {
    const read = readLink(text)
    assert.isTrue("setup" in read || read.problems.length > 0)
  })

  it("knows no keys but its own", () => {
    assert.deepStrictEqual(problems("#__proto__=1&constructor=2"), [
      `unknown key "__proto__"`,
      `unknown key "constructor"`
    ])
  })

  it("of more than 2,000 characters is not read, and no more than ten problems are shown", () => {
    const long = `#rate=${"0".repeat(80_000)}-`
    assert.deepStrictEqual(readLink(long), { problems: ["a link has at most 2000 characters, got 80007"] })
    const { problems } = readLink(`#${"x=1&".repeat(400)}`) as { readonly problems: ReadonlyArray<string> }
    assert.strictEqual(problems.length, 10)
  })
})
