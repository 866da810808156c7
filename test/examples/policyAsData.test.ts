import { assert, describe, it } from "@effect/vitest"
import { AwsModes, awsStandard, InvalidOption } from "effect-retry"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as fs from "node:fs"
import * as Data from "../../examples/policy-as-data.ts"

const page = fs.readFileSync(new URL("../../docs/policies.md", import.meta.url), "utf8")

describe("policy-as-data", () => {
  it("prints what the page shows", () => {
    assert.include(page.replaceAll("\n", " "), `\`${Data.text}\``)
    const [, json] = /^```json\n([^]*?)^```$/m.exec(page)!
    assert.deepStrictEqual(JSON.parse(Data.json), JSON.parse(json!))
  })

  it("equals a policy made of the same steps", () => {
    assert.isTrue(Data.isStandard(awsStandard))
    assert.isTrue(Data.isStandard(AwsModes.standard({ maxBackoff: 20_000 })))
    assert.isFalse(Data.isStandard(AwsModes.standard({ maxAttempts: 4 })))
  })

  it.effect("comes back from a file, with the path of what is wrong there", () =>
    Effect.gen(function*() {
      assert.isTrue(Equal.equals(yield* Data.fromFile(Data.json), Data.policy))
      const error = yield* Effect.flip(Data.fromFile(Data.json.replace("5 seconds", "soon")))
      assert.instanceOf(error, InvalidOption)
      assert.include(page, error.message)
    }))

  it.effect("finds its function again", () =>
    Effect.gen(function*() {
      assert.isTrue(Equal.equals(yield* Data.again, Data.ownDelays))
    }))

  it.effect("fits among other settings", () =>
    Effect.gen(function*() {
      const ORDERS = JSON.stringify({ url: "https://orders", retry: Data.policy })
      const { retry, url } = yield* Data.settings.pipe(
        Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown({ ORDERS }))
      )
      assert.strictEqual(url, "https://orders")
      assert.isTrue(Equal.equals(retry, Data.policy))
    }))
})
