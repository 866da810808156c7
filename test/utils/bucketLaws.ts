import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as RetryQuota from "../../src/RetryQuota.ts"
import type { RetryQuotaStore } from "../../src/RetryQuotaStore.ts"
import { type Body, close, type Law, lawsOf, same, within } from "../../src/testing/internal/law.ts"
import { storeLawsOf, trialOf } from "../../src/testing/internal/storeLaws.ts"
import { Subject, type Trial } from "../../src/testing/internal/storeSubject.ts"
import { type Time, virtual } from "../../src/testing/internal/time.ts"

/** Several kinds of buckets. */
const kinds: Readonly<Record<string, RetryQuota.Options>> = {
  "a bucket": {},
  "a small bucket": { capacity: 3, initial: 0, successIncrement: 0.3 },
  "a bucket that refills": { capacity: 30, refillPerSecond: 20 },
  "a bucket that pays for first attempts": { capacity: 100, firstAttemptCost: 3 },
  "a bucket whose callers wait": { capacity: 10, initial: 0, refillPerSecond: 5, onExceeded: "wait" }
}

const begins: Body<Trial> = function*(subject) {
  close("the balance at the start", yield* subject.balance, 7, subject.slack)
}

const refills: Body<Trial> = function*(subject) {
  const { slack, store, time } = subject
  const before = yield* subject.balance
  yield* time.elapse(100)
  const after = yield* subject.balance
  within("the refill of 100 milliseconds at 100 tokens per second", after - before, 10, 10 + slack)
  yield* time.elapse(400)
  close("the balance when the refill exceeds the capacity", yield* subject.balance, store.capacity, slack)
}

const waitsForRefill: Body<Trial> = function*(subject) {
  const { slack, time } = subject
  yield* subject.balance
  const order: Array<string> = []
  for (const [who, cost] of [["big", 8], ["small", 1], ["middle", 3]] as const) {
    yield* subject.waits(cost, () => order.push(who))
  }
  yield* time.elapse(120)
  same("the callers with tokens when 6 of 8 are refilled", order.join(), "")
  yield* time.elapse(230)
  same("the callers with tokens when 17 of 12 are refilled", order.join(), "big,small,middle")
  within("the balance when 17.5 are refilled and 12 were taken", yield* subject.balance, 5, 5.5 + slack)
}

const forgetsAtRefill: Body<Trial> = function*(subject) {
  const { slack, time } = subject
  yield* subject.balance
  const first = yield* subject.waits(10)
  const second = yield* subject.waits(2)
  yield* time.elapse(60)
  first.fiber.interruptUnsafe()
  yield* time.elapse(40)
  same("how often hold was called for one behind an interrupted waiter", second.asker.holds, 1)
  within("the balance when 5 are refilled and 2 were taken", yield* subject.balance, 3, 3.2 + slack)
}

const waiter = { capacity: 10, initial: 0, refillPerSecond: 50, onExceeded: "wait" } as const

const arithmetic: ReadonlyArray<
  readonly [
    name: string,
    options: RetryQuota.Options,
    body: Body<Trial>
  ]
> = [
  ["begins with its initial tokens", { capacity: 10, initial: 7 }, begins],
  ["begins with its share of a saved state", { capacity: 10, restore: { tokens: 14, capacity: 20 } }, begins],
  ["refills over time, up to the capacity", { capacity: 30, initial: 0, refillPerSecond: 100 }, refills],
  ["makes callers wait for the refill, first come, first served, whatever their cost", waiter, waitsForRefill],
  ["serves the caller behind an interrupted waiter at the refill", waiter, forgetsAtRefill]
]

/**
 * The laws of our token buckets, in memory and in Redis: those of every store, for several kinds of buckets, and those
 * of the refill.
 */
export const bucketLaws = <E, R>(
  make: (options: RetryQuota.Options) => Effect.Effect<RetryQuotaStore, E, R>,
  { slack = 0, time = virtual }: { readonly slack?: number; readonly time?: Time } = {}
): ReadonlyArray<Law<Exclude<R, Scope.Scope>>> => {
  const subject = (options: RetryQuota.Options) =>
    Effect.map(
      Effect.orDie(Effect.suspend(() => make(options))),
      (store) => new Subject(store, time, options.refillPerSecond === undefined ? 0 : slack)
    )
  return [
    ...Object.entries(kinds).flatMap(([kind, options]) =>
      storeLawsOf(subject(options), time, options.onExceeded ?? "stop").map(({ name, run }) => ({
        name: `${kind} ${name}`,
        run
      }))
    ),
    ...arithmetic.flatMap(([name, options, body]) =>
      lawsOf(trialOf(subject(options)), { [`a bucket ${name}`]: body }, time)
    )
  ]
}
