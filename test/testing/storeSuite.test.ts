import { assert, describe, it } from "@effect/vitest"
import { RetryQuota, type RetryQuotaStore } from "effect-retry"
import * as RetryBudget from "effect-retry/RetryBudget"
import { RetryQuotaStoreSuite } from "effect-retry/testing"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { MemoryStore } from "../../src/quota/internal/memoryStore.ts"
import { isBroken, lawOf } from "../utils/brokenLaws.ts"
import { bucketLaws } from "../utils/bucketLaws.ts"
import { countingLaws } from "../utils/countingLaws.ts"
import { thinned } from "../utils/sweep.ts"

type Store = RetryQuotaStore.RetryQuotaStore
type Reservation = RetryQuotaStore.Reservation

/** A bucket, and what is wrong with it. */
const broken = (options: RetryQuota.Options, changes: (store: Store) => Partial<Store>) =>
  Effect.map(RetryQuota.make({ capacity: 10, ...options }), ({ store }): Store => ({
    capacity: store.capacity,
    successIncrement: store.successIncrement,
    firstAttemptCost: store.firstAttemptCost,
    onExceeded: store.onExceeded,
    reserve: (cost, clock) => store.reserve(cost, clock),
    deposit: (tokens, clock) => store.deposit(tokens, clock),
    set: (tokens, clock) => store.set!(tokens, clock),
    balance: (clock) => store.balance(clock),
    ...changes(store)
  }))

const stopping = (changes: (store: Store) => Partial<Store>) => broken({}, changes)

type Changed = (held: Reservation, store: Store, clock: Clock.Clock) => Partial<Reservation>

/** What is granted immediately is a different reservation. */
const changing = (changed: Changed) => (store: Store): Partial<Store> => ({
  reserve: (cost, clock) => {
    const held = store.reserve(cost, clock)
    if (typeof held !== "object") return held
    const own: Reservation = { cost, giveBack: () => held.giveBack(), spend: () => held.spend() }
    return Object.defineProperties(own, Object.getOwnPropertyDescriptors(changed(held, store, clock)))
  }
})

/** What it grants immediately is a different reservation than it should be. */
const reserving = (changed: Changed) => stopping(changing(changed))

/** Its reservations are resized in a different way than they should be. */
const resizing = (
  resize: (held: Reservation, store: Store, clock: Clock.Clock) => NonNullable<Reservation["resize"]>
) =>
  reserving((held, store, clock) => ({
    get cost() {
      return held.cost
    },
    resize: resize(held, store, clock)
  }))

/** It asks somewhere for what it could grant. */
const asking = (
  ask: (store: Store, cost: number, clock: Clock.Clock, hold: (held: Reservation) => void) => Effect.Effect<unknown>
) =>
  stopping((store) => ({
    reserve: (cost, clock) => (_, hold) => Effect.asVoid(ask(store, cost, clock, hold))
  }))

const held = (answer: ReturnType<Store["reserve"]>) => typeof answer === "object" ? answer : undefined

/** Takes the tokens, and gives them out later. */
const tardy = asking((store, cost, clock, hold) =>
  Effect.suspend(() => {
    const taken = held(store.reserve(cost, clock))
    return Effect.andThen(Effect.sleep(1), Effect.sync(() => taken === undefined ? undefined : hold(taken)))
  })
)

const greedy = stopping((store) => ({
  reserve: (cost, clock) => store.reserve(cost > store.balance(clock) ? cost : Math.min(10, 1.5 * cost), clock)
}))

/** A bucket whose callers wait, and how they do. */
const waiting = (
  wait: (store: Store, cost: number, clock: Clock.Clock, hold: (held: Reservation) => void) => Effect.Effect<unknown>
) =>
  broken({ initial: 0, refillPerSecond: 0.001, onExceeded: "wait" }, (store) => ({
    reserve: (cost, clock) =>
      held(store.reserve(cost, clock)) ?? ((_, hold) => Effect.asVoid(wait(store, cost, clock, hold)))
  }))

/** A bucket whose callers wait, except those that it refuses for good. */
const answering = (
  refuses: (store: Store, cost: number, clock: Clock.Clock, patience: Duration.Duration) => boolean
) =>
  broken({ initial: 0, refillPerSecond: 0.001, onExceeded: "wait" }, (store) => ({
    reserve: (cost, clock) => {
      const answer = store.reserve(cost, clock)
      if (typeof answer !== "function") return answer
      return (patience, hold) =>
        refuses(store, cost, clock, patience) ? Effect.succeed("refused" as const) : answer(patience, hold)
    }
  }))

/** A bucket whose callers wait, and what it grants immediately is a different reservation than it should be. */
const waitingResized = (changed: Changed) =>
  broken({ initial: 0, refillPerSecond: 0.001, onExceeded: "wait" }, changing(changed))

/** Looks every millisecond whether the tokens are there. */
const polling = (store: Store, cost: number, clock: Clock.Clock, hold: (held: Reservation) => void) =>
  Effect.repeat(
    Effect.andThen(
      Effect.sleep(1),
      Effect.sync(() => {
        const taken = held(store.reserve(cost, clock))
        if (taken !== undefined) hold(taken)
        return taken !== undefined
      })
    ),
    { until: (isTaken) => isTaken }
  )

/** Its callers keep waiting when they have left. */
const stubborn = broken({ refillPerSecond: 0.001, onExceeded: "wait" }, (store) => staying(store))

const staying = (store: Store): Partial<Store> => ({
  reserve: (cost, clock) => {
    const answer = store.reserve(cost, clock)
    if (typeof answer !== "function") return answer
    return (_, hold) => Effect.andThen(Effect.forkDetach(answer(Duration.infinity, hold)), Effect.sleep("1 day"))
  }
})

const waits = { onExceeded: "wait" } as const

/** Stores that break each law. */
const stores: Readonly<Record<string, ReadonlyArray<Effect.Effect<Store>>>> = {
  "describes itself": [
    stopping(() => ({ capacity: 0 })),
    stopping(() => ({ successIncrement: 11 })),
    stopping(() => ({ firstAttemptCost: -1 })),
    stopping(() => ({ onExceeded: "wait" }))
  ],
  "takes available tokens": [
    greedy,
    reserving(() => ({ cost: 0 })),
    stopping(() => ({ reserve: () => undefined })),
    stopping(() => ({ isFull: true }))
  ],
  "puts back, once, what is given back": [
    reserving((held) => ({ giveBack: () => held.spend() })),
    reserving((_, store, clock) => ({ giveBack: () => (store.deposit(1, clock), true) })),
    reserving((held) => ({ spend: () => (held.spend(), true) }))
  ],
  "keeps what is spent, once": [
    reserving((held) => ({ spend: () => held.giveBack() })),
    reserving((held) => ({ spend: () => (held.spend(), true) }))
  ],
  "resizes what a reservation holds, until it is settled": [
    resizing((held) => (cost) => cost <= held.cost || held.resize!(cost)),
    resizing((held) => (cost) => cost > 0 && held.resize!(cost)),
    resizing((held) => (cost) => (held.resize!(cost), true)),
    reserving((held, store, clock) => ({
      get cost() {
        return held.cost
      },
      resize: (cost) => held.resize!(cost),
      giveBack: () => held.spend() && (store.deposit(1, clock), true)
    })),
    reserving((held, store, clock) => {
      let now = held.cost
      return {
        get cost() {
          return now
        },
        resize: (cost) => {
          store.deposit(now - cost, clock)
          if (cost > now) store.reserve(cost - now, clock)
          now = cost
          return true
        }
      }
    })
  ],
  "does not resize beyond the tokens that there are": [
    resizing((held, store, clock) => (cost) => held.resize!(Math.min(cost, held.cost + store.balance(clock)))),
    reserving((held, store, clock) => {
      let more = 0
      return {
        get cost() {
          return held.cost + more
        },
        resize: (cost) => {
          if (typeof store.reserve(cost - held.cost, clock) !== "object") return false
          more = cost - held.cost
          return true
        }
      }
    }),
    resizing((held, store, clock) => (cost) =>
      held.resize!(cost) || (store.reserve(store.balance(clock), clock), false)
    )
  ],
  "grants a cost of 0 at any balance": [
    stopping((store) => ({
      reserve: (cost, clock) => store.balance(clock) === 0 ? undefined : store.reserve(cost, clock)
    }))
  ],
  "grants no more than its capacity, however patient the caller": [
    stopping((store) => ({ reserve: (cost, clock) => store.reserve(Math.min(cost, 10), clock) }))
  ],
  "adds deposits, up to the capacity": [
    stopping(() => ({ deposit: () => undefined })),
    stopping((store) => ({ balance: (clock) => 2 * store.balance(clock) })),
    stopping((store) => ({ deposit: (tokens, clock) => store.deposit(tokens + 1, clock) })),
    stopping((store) => ({ deposit: (tokens, clock) => store.deposit(tokens === 1 ? 2 : tokens, clock) }))
  ],
  "sets its tokens, if it can": [
    stopping(() => ({ set: () => undefined })),
    stopping((store) => ({ set: (tokens, clock) => store.set!(tokens + 1, clock) })),
    stopping((store) => ({ set: (tokens, clock) => store.set!(Math.max(1, tokens), clock) }))
  ],
  "conserves tokens, whatever is taken, settled and deposited": [
    greedy,
    reserving((held) => ({ giveBack: () => held.cost > 9 ? held.spend() : held.giveBack() })),
    stopping((store) => ({ deposit: (tokens, clock) => store.deposit(tokens > 9 ? 0 : tokens, clock) })),
    stopping((store) => ({ deposit: (tokens, clock) => store.deposit(Math.floor(tokens), clock) })),
    stopping((store) => ({
      reserve: (cost, clock) => store.reserve(Math.min(cost, store.balance(clock)), clock)
    })),
    stopping((store) => ({
      reserve: (cost, clock) => {
        const answer = store.reserve(cost, clock)
        if (answer === undefined) store.reserve(store.balance(clock), clock)
        return answer
      }
    }))
  ],
  "grants no token twice to concurrent fibers": [
    asking((store, cost, clock, hold) =>
      Effect.suspend(() => {
        const isThere = store.balance(clock) >= cost
        return Effect.andThen(
          Effect.yieldNow,
          Effect.sync(() => {
            const taken = held(store.reserve(cost, clock))
            const lent = { cost, giveBack: () => true, spend: () => true }
            if (isThere) hold(taken ?? lent)
          })
        )
      })
    )
  ],
  "loses nothing to a clock that goes back": [
    Effect.flatMap(Clock.currentTimeMillis, (start) =>
      stopping((store) => ({
        balance: (clock) => Math.max(0, store.balance(clock) + Math.min(0, clock.currentTimeMillisUnsafe() - start))
      })))
  ],
  "has taken nothing when a caller that asks is interrupted, at any step": [
    tardy,
    asking((store, cost, clock, hold) =>
      Effect.sync(() => {
        for (let count = 0; count < 2; count++) hold(held(store.reserve(cost, clock))!)
      })
    )
  ],
  "has taken nothing when a caller that asks for too much is interrupted, at any step": [
    asking((store, cost, clock) =>
      Effect.andThen(
        Effect.sync(() => store.deposit(cost, clock)),
        Effect.andThen(Effect.sleep(1), Effect.sync(() => store.reserve(cost, clock)))
      )
    )
  ]
}

const storesThatWait: Readonly<Record<string, ReadonlyArray<Effect.Effect<Store>>>> = {
  "grants a waiter its tokens when there are enough": [
    waiting(() => Effect.never),
    waiting((store, cost, clock, hold) => Effect.andThen(polling(store, cost, clock, hold), Effect.never))
  ],
  "serves waiters when its tokens are set, if it can": [
    // A plain write, as of a Ref: the balance is right, and nobody is woken.
    broken({ initial: 0, refillPerSecond: 0.001, onExceeded: "wait" }, (store) => ({
      set: (tokens) => {
        const { ref } = (store as MemoryStore).ref
        ref.current = { ...ref.current, tokens }
      }
    }))
  ],
  "serves waiters in order of arrival": [waiting(polling)],
  "resizes past no waiter, and lets it have what comes back": [
    waitingResized((held, store, clock) => {
      let more = 0
      return {
        get cost() {
          return held.cost + more
        },
        resize: (cost) => {
          more = cost - held.cost
          store.deposit(-more, clock)
          return true
        }
      }
    }),
    waitingResized((held) => {
      let cost = held.cost
      return {
        get cost() {
          return cost
        },
        resize: (to) => to <= cost && (cost = to, true)
      }
    })
  ],
  "forgets a waiter that is interrupted": [stubborn],
  "grants nothing when the patience has ended": [stubborn],
  "reports that it refuses what it can never grant": [
    waiting((store, cost, clock, hold) => cost > store.capacity ? Effect.void : polling(store, cost, clock, hold))
  ],
  "does not report a refusal of what it could grant to a more patient caller": [
    answering((store, cost, clock, patience) => store.balance(clock) < cost && Duration.toMillis(patience) < 60_000)
  ]
}

const bucketBroken: Readonly<Record<string, (options: RetryQuota.Options) => Effect.Effect<Store>>> = {
  "a bucket begins with its initial tokens": ({ initial: _, ...options }) => broken(options, () => ({})),
  "a bucket begins with its share of a saved state": ({ restore: _, ...options }) => broken(options, () => ({})),
  "a bucket refills over time, up to the capacity": (options) => broken({ ...options, refillPerSecond: 0 }, () => ({})),
  "a bucket makes callers wait for the refill, first come, first served, whatever their cost": (options) =>
    broken({ ...options, refillPerSecond: 40 }, () => ({})),
  "a bucket serves the caller behind an interrupted waiter at the refill": (options) => broken(options, staying)
}

/** A budget of a hundred retries, and what is wrong with it. */
const miscounting = (changes: (store: Store) => Partial<Store>) =>
  Effect.map(RetryBudget.share({ share: 0 }), (store): Store => ({
    capacity: store.capacity,
    successIncrement: store.successIncrement,
    firstAttemptCost: store.firstAttemptCost,
    onExceeded: store.onExceeded,
    reserve: (cost, clock) => store.reserve(cost, clock),
    deposit: (tokens, clock) => store.deposit(tokens, clock),
    balance: (clock) => store.balance(clock),
    ...changes(store)
  }))

const granting = (changed: Changed) => miscounting(changing(changed))

/** What it grants has any cost that it is resized to. */
const recosting = (resize: (held: Reservation, cost: number) => boolean) =>
  granting((given) => {
    let now = given.cost
    return {
      get cost() {
        return now
      },
      resize: (cost) => resize(given, cost) && (now = cost, true)
    }
  })

const countingStores: Readonly<Record<string, ReadonlyArray<Effect.Effect<Store>>>> = {
  "describes itself": [miscounting(() => ({ capacity: 10 })), miscounting(() => ({ successIncrement: 1 }))],
  "counts one retry, whatever it costs": [
    miscounting((store) => ({
      reserve: (cost, clock) => {
        if (cost > 1) store.reserve(1, clock)
        return store.reserve(cost, clock)
      }
    }))
  ],
  "grants a cost of 0 at any balance, and takes nothing": [
    miscounting((store) => ({ reserve: (cost, clock) => store.reserve(Math.max(cost, 1), clock) })),
    miscounting((store) => ({
      reserve: (cost, clock) => store.balance(clock) < 1 ? undefined : store.reserve(cost, clock)
    }))
  ],
  "takes nothing for a retry that is never sent": [
    granting((given) => ({ giveBack: () => given.spend() })),
    granting((given) => ({ giveBack: () => (given.giveBack(), true) }))
  ],
  "counts one retry, whatever its cost is resized to": [
    recosting(() => true),
    recosting((given, cost) => cost !== 7 && given.resize!(cost)),
    recosting((given, cost) => given.resize!(cost) || given.cost === 0),
    granting((given) => ({ resize: (cost) => given.resize!(cost) }))
  ],
  "settles a retry once": [granting((given) => ({ spend: () => (given.spend(), true) }))],
  "ignores deposits": [
    Effect.suspend(() => {
      let deposited = 0
      return miscounting((store) => ({
        deposit: (tokens) => {
          deposited += tokens
        },
        balance: (clock) => store.balance(clock) + deposited
      }))
    })
  ],
  "loses nothing to a clock that goes back": [
    Effect.flatMap(Clock.currentTimeMillis, (start) => {
      let lost = 0
      return miscounting((store) => ({
        balance: (clock) => {
          if (clock.currentTimeMillisUnsafe() < start) lost = 1
          return store.balance(clock) - lost
        }
      }))
    })
  ],
  "has taken nothing when a caller that asks is interrupted, at any step": [
    miscounting((store) => ({
      reserve: (cost, clock) => (_, hold) =>
        Effect.suspend(() => {
          const taken = held(store.reserve(cost, clock))
          return Effect.andThen(Effect.sleep(1), Effect.sync(() => taken === undefined ? undefined : hold(taken)))
        })
    }))
  ]
}

describe("the laws of a store that counts retries", () => {
  for (const [name, makes] of Object.entries(countingStores)) {
    for (const [place, make] of makes.entries()) {
      it.effect(`finds a store, ${place + 1}, that breaks the law: ${name}`, () =>
        isBroken(lawOf(countingLaws(make), name)))
    }
  }

  for (const law of countingLaws(granting(() => ({})))) {
    it.effect(`finds nothing wrong with a store whose reservations do not count sends: ${law.name}`, () =>
      thinned(5)(law.run))
  }

  it("sees each of its laws broken", () => {
    const all = countingLaws(Effect.die("never made")).map(({ name }) => name)
    assert.deepStrictEqual(Object.keys(countingStores).sort(), [...all].sort())
  })
})

describe("RetryQuotaStoreSuite.laws", () => {
  for (const [name, makes] of Object.entries({ ...stores, ...storesThatWait })) {
    for (const [place, make] of makes.entries()) {
      it.effect(`finds a store, ${place + 1}, that breaks the law: ${name}`, () =>
        isBroken(lawOf(RetryQuotaStoreSuite.laws(make, name in storesThatWait ? waits : {}), name)))
    }
  }

  it.effect("finds nothing wrong with a waiter whose tokens come by refill within its patience", () =>
    lawOf(
      RetryQuotaStoreSuite.laws(broken({ initial: 0, refillPerSecond: 1000, ...waits }, () => ({})), waits),
      "grants nothing when the patience has ended"
    ).run)

  it.effect("finds nothing wrong with waiters who get their tokens in order, a moment after these have come", () => {
    const late = broken({ initial: 0, refillPerSecond: 0.001, ...waits }, (store) => ({
      reserve: (cost, clock) => {
        const answer = store.reserve(cost, clock)
        if (typeof answer !== "function") return answer
        return (patience, hold) => {
          let held: Reservation | undefined
          const asked = answer(patience, (reservation) => {
            held = reservation
          })
          return Effect.tap(asked, () => Effect.andThen(Effect.sleep(1), Effect.sync(() => held && hold(held))))
        }
      }
    }))
    return lawOf(RetryQuotaStoreSuite.laws(late, waits), "serves waiters in order of arrival").run
  })

  it.effect("takes a refusal at once for what it is: right of what can never be granted, wrong of what could be", () => {
    const refusing = (refuses: (cost: number, capacity: number) => boolean) =>
      broken({ initial: 0, refillPerSecond: 0.001, ...waits }, (store) => ({
        reserve: (cost, clock) => refuses(cost, store.capacity) ? undefined : store.reserve(cost, clock)
      }))
    const law = (name: string, make: Effect.Effect<Store>) => lawOf(RetryQuotaStoreSuite.laws(make, waits), name)
    const never = "reports that it refuses what it can never grant"
    const patient = "does not report a refusal of what it could grant to a more patient caller"
    return Effect.gen(function*() {
      yield* law(never, refusing((cost, capacity) => cost > capacity)).run
      yield* isBroken(law(patient, refusing((cost, capacity) => cost >= capacity / 2)))
    })
  })

  it.effect("finds a balance that is off by more than the slack, and nothing wrong with one that is off by less", () =>
    Effect.gen(function*() {
      const start = yield* Clock.currentTimeMillis
      const off = (tokens: number) =>
        stopping((store) => ({
          balance: (clock) => store.balance(clock) - (clock.currentTimeMillisUnsafe() < start ? tokens : 0)
        }))
      const law = (tokens: number) =>
        lawOf(RetryQuotaStoreSuite.laws(off(tokens), { slack: 1 }), "loses nothing to a clock that goes back")
      yield* law(0.9).run
      yield* isBroken(law(1.1))
    }))

  it("sees each of its laws broken", () => {
    const all = RetryQuotaStoreSuite.laws(Effect.die("never made"), waits).map(({ name }) => name)
    assert.deepStrictEqual(Object.keys({ ...stores, ...storesThatWait }).sort(), [...all].sort())
  })

  it.effect("says what is wrong, where, and what would be right", () =>
    Effect.gen(function*() {
      const error = yield* isBroken(lawOf(RetryQuotaStoreSuite.laws(greedy), "takes available tokens"))
      assert.deepStrictEqual([error.what, error.actual, error.expected], ["the cost of a reservation", 1.5, 1])
      assert.strictEqual(error.message, "takes available tokens: the cost of a reservation: 1.5, expected 1")
    }))

  it.effect("treats what a store throws as a breach", () =>
    Effect.gen(function*() {
      const thrown = new Error("out of order")
      const throws = stopping(() => ({
        reserve: () => {
          throw thrown
        }
      }))
      for (const law of RetryQuotaStoreSuite.laws(throws)) {
        if (law.name === "describes itself") continue
        assert.include([thrown, "refused"], (yield* isBroken(law)).actual, law.name)
      }
    }))

  it.live("needs no TestClock around it", () =>
    Effect.gen(function*() {
      const store = Effect.map(RetryQuota.make(), ({ store }) => store)
      yield* lawOf(RetryQuotaStoreSuite.laws(store), "conserves tokens, whatever is taken, settled and deposited").run
    }))

  it.live("runs in real time for a store that lives elsewhere, without the laws that need a TestClock", () =>
    Effect.gen(function*() {
      const laws = bucketLaws(
        (options) => Effect.map(RetryQuota.make(options), ({ store }) => store),
        { slack: 3, time: { elapse: (millis) => Effect.sleep(millis), isVirtual: false } }
      ).filter(({ name }) => name.startsWith("a small bucket "))
      assert.isAbove(laws.length, 10)
      assert.notInclude(laws.map(({ name }) => name).join(), "interrupted, at any step")
      yield* Effect.forEach(laws, ({ run }) => run, { concurrency: "unbounded" })
    }))
})

describe("the laws of a token bucket", () => {
  const make = (options: RetryQuota.Options) => broken(options, () => ({}))
  const all = bucketLaws(make).map(({ name }) => name)

  for (const [name, make] of Object.entries(bucketBroken)) {
    it.effect(`finds a bucket that breaks the law: ${name}`, () => isBroken(lawOf(bucketLaws(make), name)))
  }

  it("sees each of its laws broken, besides those of every store", () => {
    const own = all.filter((name) =>
      !Object.keys({ ...stores, ...storesThatWait }).some((known) => name.endsWith(` ${known}`))
    )
    assert.deepStrictEqual(own, Object.keys(bucketBroken))
  })

  it("has no two laws with the same name", () => {
    assert.strictEqual(new Set(all).size, all.length)
  })

  it.effect("tries small buckets, those that refill, those that first attempts pay, and those whose callers wait", () => {
    const made: Array<RetryQuota.Options> = []
    const laws = bucketLaws((options) => Effect.andThen(Effect.sync(() => made.push(options)), make(options)))
    return Effect.gen(function*() {
      for (const { name, run } of laws) if (name.endsWith(" describes itself")) yield* run
      const kinds = [...new Set(made)]
      assert.lengthOf(kinds, 5)
      const [, small, refilling, paid, waiting] = kinds
      assert.isBelow(small!.capacity!, 10)
      assert.isAbove(refilling!.refillPerSecond!, 0)
      assert.isAbove(paid!.firstAttemptCost!, 0)
      assert.strictEqual(waiting!.onExceeded, "wait")
    })
  })
})
