import * as Expect from "@effect-retry/lab/Expect"
import * as Explain from "@effect-retry/lab/Explain"
import { assert, describe, it } from "@effect/vitest"
import * as AwsModes from "effect-retry/aws/AwsModes"
import * as Backoff from "effect-retry/Backoff"
import * as RetryInfo from "effect-retry/RetryInfo"
import * as RetryPolicy from "effect-retry/RetryPolicy"
import * as Schedule from "effect/Schedule"
import { readFileSync } from "node:fs"
import { budget } from "../../test/utils/budget.ts"

const fixed = (attempts: number) => Backoff.fixed(1).pipe(RetryPolicy.maxAttempts(attempts))

/** With fewer samples: none of the figures is theirs. */
const expectLoad: typeof Expect.expectLoad = (policy, options) =>
  Expect.expectLoad(policy, { samples: budget(1000, 20), ...options })

const thrown = (f: () => void): Expect.LoadTooHigh => {
  try {
    f()
  } catch (error) {
    assert.instanceOf(error, Expect.LoadTooHigh)
    return error as Expect.LoadTooHigh
  }
  return assert.fail("nothing was thrown")
}

/** `1 + f + f^2 = 1 + (1 - f) / (cost * f)`: where what a quota pays for crosses what is wanted. */
const crossing = (cost: number) => {
  let [low, high] = [0.0001, 1]
  for (let n = 0; n < 100; n++) {
    const f = (low + high) / 2
    if (f + f * f > (1 - f) / (cost * f)) high = f
    else low = f
  }
  return low
}

describe("expectLoad", () => {
  for (
    const [what, policy, load, failureRate] of [
      ["all attempts without a quota", fixed(4), 4, 1],
      ["one attempt of a policy that never retries", fixed(1), 1, 0],
      ["no bound without a limit", Backoff.exponential(100), Infinity, 1],
      ["those of a schedule", Schedule.recurs(2), 3, 1]
    ] as const
  ) {
    it(`is ${what}`, () => {
      const found = expectLoad(policy)
      assert.strictEqual(found.load, load)
      assert.strictEqual(found.failureRate, failureRate)
    })
  }

  for (
    const [mode, policy, cost] of [
      ["2.0", AwsModes.awsStandard, 5],
      ["2.1", AwsModes.awsStandard2026, 14]
    ] as const
  ) {
    it(`is highest where the quota begins to drain: AWS ${mode}`, () => {
      const f = crossing(cost)
      const found = expectLoad(policy)
      assert.closeTo(found.failureRate, f, 1e-6)
      assert.closeTo(found.load, 1 + f + f * f, 1e-6)
    })
  }

  it("no failure rate has a higher load", () => {
    const { load } = expectLoad(AwsModes.awsStandard)
    const failureRates = Array.from({ length: 1001 }, (_, n) => n / 1000)
    const loads = Explain.explain(AwsModes.awsStandard, { failureRates, samples: budget(1000, 20) }).load.map((
      { attempts }
    ) => attempts!)
    assert.isAtMost(Math.max(...loads), load)
    assert.closeTo(Math.max(...loads), load, 0.005)
  })

  it("takes the failure, the quota and the failure rates of explain", () => {
    const timedOut = expectLoad(AwsModes.awsStandard, { failure: RetryInfo.timedOut })
    assert.isBelow(timedOut.load, expectLoad(AwsModes.awsStandard).load)
    assert.strictEqual(expectLoad(AwsModes.awsStandard, { quota: { capacity: 3 } }).load, 1)
    assert.closeTo(expectLoad(AwsModes.awsStandard, { failureRates: [0.1] }).load, 1.11, 1e-9)
  })

  it("passes below the bound alone", () => {
    expectLoad(fixed(3)).below(3.0001)
    for (const bound of [3, 2.9]) thrown(() => expectLoad(fixed(3)).below(bound))
  })

  it("names the policy, the load and the bound, as the page shows", () => {
    const error = thrown(() => expectLoad(AwsModes.awsStandard2026, { name: "orders" }).below(1.2))
    const page = readFileSync(new URL("../../docs/testing.md", import.meta.url), "utf8")
    assert.include(page, `\`\`\`text\n${error.message}\n\`\`\``)
    assert.strictEqual(error.expected, "fewer than 1.2 sends per call")
    assert.strictEqual(error.actual, "1.261 sends per call, while 21.5 % of the attempts fail")
    assert.deepInclude(error, { policy: "orders", bound: 1.2 })
  })

  it("names a policy without a name by its steps, and a schedule as one", () => {
    assert.include(thrown(() => expectLoad(fixed(3)).below(2)).message, String(fixed(3)))
    assert.include(thrown(() => expectLoad(Schedule.recurs(2)).below(2)).message, "the schedule sends too much")
    const endless = thrown(() => expectLoad(Backoff.exponential(100)).below(2))
    assert.strictEqual(endless.actual, "any number of sends per call, while 100 % of the attempts fail")
  })

  for (const bound of [1, 0, NaN, "1.2" as unknown as number]) {
    it(`refuses a bound that says nothing: ${JSON.stringify(bound)}`, () => {
      assert.throws(() => expectLoad(fixed(1)).below(bound), /bound must be a number above 1/)
    })
  }
})
