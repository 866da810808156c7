import { assert, describe, it } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import { AwsModes, RetryQuota } from "effect-retry"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { conformance } from "../utils/conformance.ts"
import { sdkError, sentDelays, withRandom } from "../utils/vectors.ts"
import { hints2026 } from "../vectors/standard2026.ts"

const folder = new URL("../../conformance/", import.meta.url)

const tables = fs.readdirSync(folder)
  .filter((name) => name.endsWith(".json") && name !== "schema.json")
  .map((name) => name.slice(0, -".json".length))

const read = (path: string) => fs.readFileSync(new URL(`../../${path}`, import.meta.url), "utf8")

describe("conformance", () => {
  const valid = new Ajv2020({ allErrors: true, strict: true, strictRequired: false }).compile(conformance("schema"))

  it.each(tables)("%s.json follows the schema", (name) => {
    assert.isTrue(valid(conformance(name)), JSON.stringify(valid.errors, null, 1))
  })

  it("the schema refuses a field that there is not, and a time that is negative", () => {
    const [first] = conformance("standard-2.0").cases
    for (const change of [{ delay: 1 }, { delayMs: -1 }, { outcome: "retried" }]) {
      const responses = [{ expected: { ...first.responses[0].expected, ...change } }]
      assert.isFalse(valid({ ...conformance("standard-2.0"), cases: [{ ...first, responses }] }))
    }
  })

  it.each(tables)("%s.json is run by a test, and on the page", (name) => {
    const loaders = ["test/vectors", "test/aws"].flatMap((path) =>
      fs.readdirSync(new URL(`../../${path}/`, import.meta.url)).filter((file) => file.endsWith(".ts"))
        .map((file) => read(`${path}/${file}`))
    )
    assert.isTrue(loaders.some((source) => source.includes(`conformance("${name}")`)))
    assert.include(read("docs/conformance.md"), `(../conformance/${name}.json)`)
  })

  it.effect.each(hints2026)("hint: x-amz-retry-after $header waits $delayMs ms", ({ delayMs, header }) => {
    const error = { ...sdkError({ status: 500 }), $response: { headers: { "x-amz-retry-after": header } } }
    return Effect.gen(function*() {
      assert.deepStrictEqual(yield* sentDelays(AwsModes.standard2026(), 1, error), [delayMs])
    }).pipe(withRandom(1), Effect.provide(RetryQuota.layer()))
  })
})
