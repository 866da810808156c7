import { assert, describe, it } from "@effect/vitest"
import * as Bucket from "../../src/internal/math/tokenBucket.ts"

const perSecond = (rate: number): Bucket.BucketConfig => ({ capacity: 10, refillPerMilli: rate / 1000 })
const holding = (tokens: number): Bucket.Bucket => ({ tokens, updatedAtMillis: 0 })

describe("bucket arithmetic", () => {
  for (const [tokens, cost] of [[5, 5], [0, Bucket.tokenEpsilon], [5 - 1e-10, 5]] as const) {
    it(`${tokens} tokens pay for ${cost} immediately, in each way of asking`, () => {
      assert.strictEqual(Bucket.millisUntil(holding(tokens), perSecond(1), cost), 0)
      assert.deepStrictEqual(Bucket.take(holding(tokens), cost), holding(0))
      assert.deepStrictEqual(Bucket.takeWhenDue(holding(tokens), perSecond(1), cost, 0), holding(0))
    })
  }

  for (const [tokens, cost] of [[0, 2 * Bucket.tokenEpsilon], [4.999, 5], [0, 5]] as const) {
    it(`${tokens} tokens do not pay for ${cost}, in each way of asking`, () => {
      assert.isAtLeast(Bucket.millisUntil(holding(tokens), perSecond(1), cost), 1)
      assert.isUndefined(Bucket.take(holding(tokens), cost))
      assert.isUndefined(Bucket.takeWhenDue(holding(tokens), perSecond(1), cost, 0))
    })
  }

  for (const rate of [0.001, 1, 1000, 1e6]) {
    it(`at ${rate} per second, what is missing when it is due is noise below the least shortfall`, () => {
      const due = 1000 / rate
      const noise = Bucket.tokenEpsilon / 2 / (rate / 1000)
      assert.isDefined(Bucket.takeWhenDue(holding(0), perSecond(rate), 1, due - noise))
      assert.isUndefined(Bucket.takeWhenDue(holding(0), perSecond(rate), 1, due - 8 * noise))
    })
  }

  it("a shortfall of exactly the least one counts as none when it is due", () =>
    assert.isDefined(
      Bucket.takeWhenDue(
        holding(0),
        { capacity: 10, refillPerMilli: 1 },
        2 * Bucket.tokenEpsilon,
        Bucket.tokenEpsilon
      )
    ))

  it("tokens that were there are taken after the refill, missing ones as soon as they have flowed in", () => {
    assert.strictEqual(Bucket.takeWhenDue(holding(8), perSecond(1), 5, 3_600_000)?.tokens, 5)
    assert.strictEqual(Bucket.takeWhenDue(holding(2), perSecond(1), 5, 4000)?.tokens, 1)
    assert.strictEqual(Bucket.takeWhenDue(holding(2), perSecond(1), 5, 3_600_000)?.tokens, 10)
  })

  it("a clock that stops or goes back adds nothing, takes nothing, and does not count again when it returns", () => {
    const bucket = { tokens: 3, updatedAtMillis: 5000 }
    for (const now of [5000, 4000, -1]) assert.deepStrictEqual(Bucket.refill(bucket, perSecond(1), now), bucket)
    const back = Bucket.refill(bucket, perSecond(1), 4000)
    assert.deepStrictEqual(Bucket.refill(back, perSecond(1), 6000), { tokens: 4, updatedAtMillis: 6000 })
  })

  it("waits are whole milliseconds, rounded up", () => {
    assert.strictEqual(Bucket.millisUntil(holding(0), perSecond(3), 1), 334)
    assert.strictEqual(Bucket.millisUntil(holding(0), perSecond(1e6), 1), 1)
  })
})
