import { assert, describe, it } from "@effect/vitest"
import * as Kit from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as Explain from "../../examples/explain.ts"
import * as TestingKit from "../../examples/testing-kit.ts"
import { thinned } from "../utils/sweep.ts"

const read = (path: string) => fs.readFileSync(new URL(`../../${path}`, import.meta.url), "utf8")

describe("examples/testing-kit", () => {
  it.effect("retriesTwice passes", () => TestingKit.retriesTwice)
  it.effect("givesUp passes", () => TestingKit.givesUp)
  it.effect("sparesAServiceThatIsDown passes", () => TestingKit.sparesAServiceThatIsDown)
  it.live("passes outside of TestClock too", () => TestingKit.retriesTwice)

  it.effect("survivesAnOutage: no more retries reach the service than the quota pays for", () =>
    Effect.gen(function*() {
      const { balance, requests } = yield* TestingKit.survivesAnOutage
      assert.strictEqual(requests.get(0), 10)
      assert.isAbove([...requests.values()].reduce((a, b) => a + b), 60)
      assert.isAtLeast(balance, 0)
    }))

  it.effect("paysForEverySend: two a second", () =>
    Effect.gen(function*() {
      const { enabled, waiting } = yield* TestingKit.paysForEverySend
      assert.deepStrictEqual([enabled, waiting], [true, 0])
    }))

  describe("contracts", () => {
    for (const [index, law] of TestingKit.contracts.entries()) {
      it.effect(`${index + 1}. ${law.name}`, () => thinned(5)(law.run))
    }
  })

  it.effect("losesNoToken: at none of more than 50 steps", () =>
    Effect.gen(function*() {
      assert.isAbove(yield* TestingKit.losesNoToken, 50)
    }))
})

describe("examples/explain", () => {
  it("reports the worst case, the failure rates at which quotas bite, and a promise kept", () => {
    assert.strictEqual(Explain.worst, 9000)
    assert.deepStrictEqual(Explain.bites.map((rate) => rate?.toFixed(3)), ["0.321", "0.215"])
    assert.isTrue(Explain.isPrompt)
    assert.match(Explain.table, /^awsStandard: at most 3 attempts/)
  })
})

describe("docs/testing.md", () => {
  const page = read("docs/testing.md")
  it("names every helper of the kit but its errors", () => {
    const errors = [
      "ContractBroken",
      "NotEnded",
      "NotRetryable",
      "SweepFailure",
      "Throttled",
      "TimedOut",
      "TimelineMismatch",
      "Transient"
    ]
    const { RetryQuotaStoreSuite, SendGateSuite, TestLimiter, TestQuota } = Kit
    const members = { RetryQuotaStoreSuite, SendGateSuite, TestLimiter, TestQuota }
    const helpers = [
      ...Object.keys(Kit).filter((name) => !errors.includes(name) && !(name in members)),
      ...Object.entries(members).flatMap(([name, module]) => Object.keys(module).map((member) => `${name}.${member}`))
    ]
    assert.deepStrictEqual(helpers.filter((name) => !new RegExp(`\`${name}\\b`).test(page)), [])
  })
})

describe("effect-retry/testing", () => {
  it("exports these names, and no others", () => {
    assert.deepStrictEqual(Object.keys(Kit).sort(), [
      "ContractBroken",
      "NotEnded",
      "NotRetryable",
      "RetryQuotaStoreSuite",
      "SendGateSuite",
      "SweepFailure",
      "TestLimiter",
      "TestQuota",
      "Throttled",
      "TimedOut",
      "TimelineMismatch",
      "Transient",
      "after",
      "defect",
      "failure",
      "fixedRandom",
      "never",
      "notRetryable",
      "ok",
      "outcomes",
      "runToEnd",
      "seededRandom",
      "service",
      "sweep",
      "sweepQuota",
      "throttled",
      "throttledFor",
      "timeline",
      "timeout",
      "transient"
    ])
  })

  it("imports no test framework", () => {
    const files = fs.readdirSync(new URL("../../src/testing", import.meta.url), { encoding: "utf8", recursive: true })
      .filter((name) => name.endsWith(".ts")).map((name) => `src/testing/${name}`)
    assert.isAbove(files.length, 5)
    for (const file of files) assert.notMatch(read(file), /from "(@effect\/vitest|vitest|node:)/)
  })
})
