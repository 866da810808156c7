import { assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { isIdle, isOurs, misses, sum } from "./aws-sdk/bounds.ts"
import { compare } from "./aws-sdk/compare.ts"
import type { Comparison } from "./aws-sdk/comparison.ts"
import { headers } from "./aws-sdk/hints.ts"
import { failures } from "./aws-sdk/hostile.ts"
import type { Course, Steady } from "./aws-sdk/steady.ts"
import { table } from "./aws-sdk/table.ts"

const byName = <A extends { readonly name: string }>(rows: ReadonlyArray<A>, name: string): A => {
  const row = rows.find((row) => row.name === name)
  assert.isDefined(row, name)
  return row
}

const ourTwo = <A extends { readonly name: string }>(rows: ReadonlyArray<A>): ReadonlyArray<A> => {
  const ours = rows.filter(isOurs)
  assert.lengthOf(ours, 2)
  return ours
}

const toldOf = ({ name }: Course, { heldUpMillis }: Steady): string =>
  `${name}; the machine held the process up for ${heldUpMillis.toFixed(0)} ms`

/** Objects that the SDK's logger can read: on its way to the caller, a failure passes it. */
const readable = new Set(["a getter that throws", "a frozen error", "its own cause", "10,000 causes"])

describe("our strategy in the clients of the AWS SDK, next to the SDK's own", () => {
  let seen: Comparison

  beforeAll(async () => {
    seen = await Effect.runPromise(Effect.scoped(compare))
    console.log(table(seen))
  })

  it("from second 8 on: within 10 % of the server's rate, an answer in each second, 1.06 requests per answer", () => {
    const { courses } = seen.steady
    for (const course of ourTwo(courses)) assert.deepEqual(misses(course), [], toldOf(course, seen.steady))
    assert.isFalse(isIdle(byName(courses, "SDK, standard")), "the server throttles those who do not slow down")
  })

  it("continues at that rate when the wall clock steps back", () => {
    assert.closeTo(seen.stepped.stepSeconds, -25, 1, "the step")
    for (const course of ourTwo(seen.stepped.courses)) {
      assert.deepEqual(misses(course), [], toldOf(course, seen.stepped))
    }
  })

  it("serves the live calls as if the aborted ones had never waited", () => {
    for (const { after, control, isClean, name } of ourTwo(seen.rest.ghosts)) {
      assert.isTrue(isClean, `${name}: the machine was too busy: the 20 waited in none of the tries`)
      assert.lengthOf(after, 3, name)
      assert.isAbove(control[0]!, 300, `${name}: the limiter holds back`)
      // A token takes two seconds to flow in: none was taken by the 20.
      assert.closeTo(sum(after), sum(control), 1000, name)
    }
  })

  it("has a full quota after 60 calls that were aborted in the backoff, and retries the next call", () => {
    for (const { capacity, capacityAfter, full, name, nextAttempts, sent } of ourTwo(seen.rest.leaks)) {
      assert.strictEqual(sent, 60, `${name}: each was aborted before its retry left`)
      assert.deepStrictEqual([full, capacity], [500, 500], name)
      assert.strictEqual(nextAttempts, 3, name)
      assert.strictEqual(capacityAfter, capacity - 2 * 14, name)
    }
  })

  it("waits for no longer than 5 seconds, and never for NaN, whatever a header says", () => {
    for (const { gaps, name, oddTimers } of ourTwo(seen.rest.hints)) {
      assert.strictEqual(oddTimers, 0, name)
      gaps.forEach((gap, index) => {
        const [header, value, isLong] = headers[index]!
        const said = `${name}: ${header}: ${value}`
        assert.isNumber(gap, said)
        assert.isAtMost(Number(gap), 6000, said)
        if (isLong) assert.isAtLeast(Number(gap), 4990, said)
        else assert.isBelow(Number(gap), 2000, said)
      })
    }
  })

  it("serves a crowd in order of arrival, with one timer for each", () => {
    const sdk = byName(seen.herds, "SDK, adaptive")
    const ours = byName(seen.herds, "ours, as strategy")
    assert.isAtMost(ours.timers, 1.2 * ours.waiters)
    assert.isBelow(ours.overtakenMillis, 50)
    assert.isAbove(ours.seconds, 0.9 * ours.waiters / 200)
    assert.isBelow(ours.seconds, 1.2 * sdk.seconds)
  })

  it("names meaningless settings instead of guessing", () => {
    for (const { ours, value, variable } of seen.rest.meanings) {
      if (value === "4" || value === "adaptive") assert.strictEqual(ours, value)
      else assert.include(ours, `fails: ${variable}: must be`)
    }
    for (const { option, ours } of seen.rest.limits) {
      assert.include(ours, "InvalidOption: AdaptiveRateLimiter.make", option)
    }
  })

  it("retries no failure of an odd shape, and passes it on unchanged", () => {
    for (const { failure, ours } of seen.rest.classified) assert.strictEqual(ours, "false", failure)
    const { got } = byName(seen.rest.survived, "ours, as effect")
    failures.forEach(([failure], index) => {
      if (readable.has(failure)) assert.strictEqual(got[index], "same", failure)
    })
  })
})
