import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { linkOf, readLink } from "../../playground/link.ts"
import {
  begin,
  type Choice,
  type FieldName,
  fieldNames,
  fields,
  type Kind,
  kinds,
  type Setup
} from "../../playground/setup.ts"
import { everyChoice } from "./choices.ts"

const numbers = Object.fromEntries(
  fieldNames.map((name) => [
    name,
    Schema.Finite.check(Schema.isBetween({ minimum: fields[name].min, maximum: fields[name].max }))
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
        `policy: attempts must be a number from 1 to 10, got "x"`,
        `policy must be a name, then attempts:NUMBER, quota:NUMBER, concurrency:NUMBER, throttle:NUMBER or coolDown, got "tokens:3"`,
        `unknown key "x"`
      ]
    )
    assert.deepStrictEqual(problems("#policy=naive&policy=naive&policy=naive&policy=naive&policy=naive"), [
      "more than 4 policies"
    ])
  })

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
})
