/**
 * The laws of the algebra, on random policies of a call that always fails: when it is sent, what it pays, how many
 * retries and stops are notified. With the joins of `RetryPolicy` and with those of `Schedule`, by both loops.
 */
import { assert, describe, it } from "@effect/vitest"
import { Backoff, RetryPolicy, withRetry } from "effect-retry"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { Chance } from "../reliability/utils/random.ts"
import { type Account, accountOf, type AnyPolicy } from "../utils/account.ts"
import { budget } from "../utils/budget.ts"

interface Joins {
  readonly max: (of: ReadonlyArray<AnyPolicy>) => AnyPolicy
  readonly min: (of: ReadonlyArray<AnyPolicy>) => AnyPolicy
  readonly concat: (first: AnyPolicy, then: AnyPolicy) => AnyPolicy
}

const ours: Joins = {
  max: RetryPolicy.max,
  min: RetryPolicy.min,
  concat: (first, then) => RetryPolicy.concat(first, then)
}
const ofEffect: Joins = {
  max: ([first, ...others]) => Schedule.max([first!, ...others]),
  min: ([first, ...others]) => Schedule.min([first!, ...others]),
  concat: (first, then) => Schedule.concat(first, then)
}

const loops = {
  withRetry: (policy: AnyPolicy) => accountOf((call) => withRetry(call, policy), Infinity),
  "Effect.retry": (policy: AnyPolicy) => accountOf((call) => Effect.retry(call, policy), Infinity)
}

/** A source, three combinators at most, and an end. */
const policyOf = (chance: Chance): AnyPolicy => {
  let policy: AnyPolicy = chance.pick([
    () => Backoff.exponential(chance.pick([10, 50, 100])),
    () => Backoff.fixed(chance.pick([0, 30, 200])),
    () => Backoff.linear(chance.pick([20, 70])),
    () => Backoff.fibonacci(25)
  ])()
  for (let n = 0; n < 3; n++) {
    policy = chance.pick<(self: AnyPolicy) => AnyPolicy>([
      (self) => self,
      RetryPolicy.capped(chance.pick([40, 150, 400])),
      RetryPolicy.maxAttempts(chance.pick([1, 2, 3, 5])),
      RetryPolicy.deadline(chance.pick([200, 900])),
      RetryPolicy.whileRetryable,
      RetryPolicy.mapDelay((delay) => Duration.times(delay, 2)),
      RetryPolicy.quotaGated({ cost: chance.pick([0, 3, 5]) })
    ])(policy)
  }
  return RetryPolicy.maxAttempts(policy, 6)
}

type Sides = readonly [left: AnyPolicy, right: AnyPolicy]
type Law = (of: Operands) => Sides
interface Operands extends Joins {
  readonly p: AnyPolicy
  readonly q: AnyPolicy
  readonly r: AnyPolicy
  /** 40 or 150. */
  readonly cap: number
}

const { never } = RetryPolicy
const triple = (delay: Duration.Duration) => Duration.times(delay, 3)
const longer = (delay: Duration.Duration) => Duration.sum(delay, Duration.millis(7))

const laws: { readonly [name: string]: Law } = {
  "capped is idempotent": ({ cap, p }) => [
    p.pipe(RetryPolicy.capped(cap), RetryPolicy.capped(cap)),
    RetryPolicy.capped(p, cap)
  ],
  "capped(a) and capped(b) are capped(min(a, b))": ({ p }) => [
    p.pipe(RetryPolicy.capped(150), RetryPolicy.capped(40)),
    RetryPolicy.capped(p, 40)
  ],
  "maxAttempts commutes with capped": ({ p }) => [
    p.pipe(RetryPolicy.maxAttempts(2), RetryPolicy.capped(40)),
    p.pipe(RetryPolicy.capped(40), RetryPolicy.maxAttempts(2))
  ],
  "mapDelay has an identity": ({ p }) => [RetryPolicy.mapDelay(p, (delay) => delay), p],
  "mapDelay composes": ({ p }) => [
    p.pipe(RetryPolicy.mapDelay(triple), RetryPolicy.mapDelay(longer)),
    RetryPolicy.mapDelay(p, (delay) => longer(triple(delay)))
  ],
  "quotaGated commutes": ({ p }) => [
    p.pipe(RetryPolicy.quotaGated({ cost: 3 }), RetryPolicy.quotaGated({ cost: 5 })),
    p.pipe(RetryPolicy.quotaGated({ cost: 5 }), RetryPolicy.quotaGated({ cost: 3 }))
  ],
  "max is commutative": ({ max, p, q }) => [max([p, q]), max([q, p])],
  "max is associative": ({ max, p, q, r }) => [max([p, max([q, r])]), max([max([p, q]), r])],
  "max is idempotent": ({ max, p }) => [max([p, p]), p],
  "forever is the identity of max": ({ max, p }) => [max([p, Schedule.forever]), p],
  "never is the zero of max": ({ max, p }) => [max([p, never]), never],
  "min is commutative": ({ min, p, q }) => [min([p, q]), min([q, p])],
  "min is associative": ({ min, p, q, r }) => [min([p, min([q, r])]), min([min([p, q]), r])],
  "min is idempotent": ({ min, p }) => [min([p, p]), p],
  "never is the identity of min": ({ min, p }) => [min([p, never]), p],
  "max absorbs min": ({ max, min, p, q }) => [max([p, min([p, q])]), p],
  "min absorbs max": ({ max, min, p, q }) => [min([p, max([p, q])]), p],
  "max distributes over min": ({ max, min, p, q, r }) => [max([p, min([q, r])]), min([max([p, q]), max([p, r])])],
  "concat is associative": ({ concat, p, q, r }) => [concat(p, concat(q, r)), concat(concat(p, q), r)],
  "never is the left identity of concat": ({ concat, p }) => [concat(never, p), p],
  "never is the right identity of concat": ({ concat, p }) => [concat(p, never), p],
  "capped(c) is min with spaced(c)": ({ min }) => {
    const endless = Backoff.exponential(10).pipe(RetryPolicy.quotaGated({ cost: 3 }))
    const limited = Schedule.upTo({ times: 4 })
    return [limited(min([endless, Schedule.spaced(40)])), limited(RetryPolicy.capped(endless, 40))]
  },
  "maxAttempts(n) is max with recurs(n - 1)": ({ max, p }) => [
    max([p, Schedule.recurs(1)]),
    RetryPolicy.maxAttempts(p, 2)
  ]
}

/** In tokens a side may pay more or less than the other. All else is equal in every law. */
type Tokens = "equal" | "left pays nothing" | "left pays more"

/** Where tokens differ, and why. */
const tokens: ReadonlyArray<readonly [law: keyof typeof laws, joins: Joins, Tokens, reason: string]> = [
  [
    "capped(c) is min with spaced(c)",
    ours,
    "left pays nothing",
    "a schedule without a quota is free, and min takes the cheapest of those that go on: so it lifts the quota"
  ],
  [
    "max absorbs min",
    ofEffect,
    "left pays more",
    "under Schedule.min no policy knows which of them goes on: the dearest is paid"
  ],
  ["min absorbs max", ofEffect, "left pays more", "the same: max offers its dearest, min cannot take the cheapest"]
]

const visible = ({ notes, sentAt }: Account) => ({
  sentAt,
  retries: notes.filter((note) => /^r\d/.test(note)).length,
  stops: notes.filter((note) => /^[a-z]{2}/.test(note)).length
})

describe.each([["RetryPolicy", ours], ["Schedule", ofEffect]] as const)("joins of %s", (_, joins) => {
  describe.each(Object.entries(loops))("by %s", (_, run) => {
    it.effect.each(Object.entries(laws))("%s", ([name, law]) =>
      Effect.gen(function*() {
        const expected = tokens.find(([of, under]) => of === name && under === joins)?.[2] ?? "equal"
        let differences = 0
        for (let seed = 0; seed < budget(40, 8); seed++) {
          const chance = new Chance(seed)
          const [left, right] = law({
            ...joins,
            p: policyOf(chance),
            q: policyOf(chance),
            r: policyOf(chance),
            cap: chance.pick([40, 150])
          })
          const [one, other] = [yield* run(left), yield* run(right)]
          assert.deepStrictEqual(visible(one), visible(other), `seed ${seed}`)
          if (one.balance === other.balance) continue
          differences++
          assert.notStrictEqual(expected, "equal", `seed ${seed}: ${one.balance} and ${other.balance} tokens`)
          if (expected === "left pays nothing") assert.strictEqual(one.balance, 100)
          else assert.isBelow(one.balance, other.balance)
        }
        assert.strictEqual(differences > 0, expected !== "equal", "the table of differences is out of date")
      }))
  })
})

it("there are 23 laws", () => {
  assert.strictEqual(Object.keys(laws).length, 23)
})
