import { assert, describe, it } from "@effect/vitest"
import {
  InvalidOption,
  RetryInfo,
  RetryPolicy,
  RetryQuota,
  type RetryQuotaStore,
  type SendGate,
  withRetry
} from "effect-retry"
import * as Hedge from "effect-retry/Hedge"
import * as RetryBudget from "effect-retry/RetryBudget"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import { RetryQuotaStoreSuite, SendGateSuite, sweepQuota } from "effect-retry/testing"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Redis from "effect/persistence/Redis"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { budget as tried } from "../utils/budget.ts"
import { scripted, Terminal, Transient } from "../utils/call.ts"
import { countingLaws } from "../utils/countingLaws.ts"
import { FakeRedis } from "../utils/fakeRedis.ts"
import { sweep, thinned } from "../utils/sweep.ts"
import * as Vectors from "../vectors/budgets.ts"

type Store = RetryQuotaStore.RetryQuotaStore

/** A store that is driven by hand. */
const driven = <E, R>(budget: Effect.Effect<Store, E, R>) =>
  Effect.gen(function*() {
    const store = yield* budget
    const clock = yield* Clock.Clock
    const nowMillis = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    /** A send, which has passed the gates of the store. */
    const send = (attempt = 1): SendGate.Pass => {
      const passes: Array<SendGate.Pass> = []
      for (const gate of store.gates ?? []) {
        gate.enter({
          attempt,
          context: Context.empty(),
          get nowMillis() {
            return nowMillis()
          },
          hold: (pass) => passes.push(pass)
        })
      }
      return {
        settle: (outcome) => {
          for (const pass of passes) pass.settle(outcome)
        },
        cancel: () => {
          for (const pass of passes) pass.cancel()
        }
      }
    }
    const end = (pass: SendGate.Pass, tag: SendGate.Outcome["_tag"] = "Success", error?: unknown) =>
      pass.settle({
        _tag: tag,
        value: undefined,
        error,
        info: tag === "Failure" ? RetryInfo.transient : undefined,
        nowMillis: nowMillis()
      })
    return {
      send,
      end,
      retry: (cost = 1) => {
        const answer = store.reserve(cost, clock)
        assert.notStrictEqual(typeof answer, "function")
        return answer as RetryQuotaStore.Reservation | undefined
      },
      balance: () => store.balance(clock),
      store
    }
  })

const policyOf = (attempts: number, cost = 5) =>
  RetryPolicy.fromDelay(() => 10).pipe(
    RetryPolicy.maxAttempts(attempts),
    RetryPolicy.whileRetryable,
    RetryPolicy.quotaGated({ cost })
  )

const policy = policyOf(3)

const drivers = {
  withRetry: <A, E>(send: Effect.Effect<A, E>) => withRetry(send, policy),
  "Effect.retry": <A, E>(send: Effect.Effect<A, E>) => Effect.retry(send, policy),
  "RetryStrategy.run": <A, E>(send: Effect.Effect<A, E>) =>
    Effect.provide(RetryStrategy.run(send), RetryStrategy.layer(policy))
}

/** Runs a call to its end. */
const ended = <A, E, R>(call: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(Effect.exit(call), { startImmediately: true })
    yield* TestClock.adjust(1000)
    return yield* Fiber.join(fiber)
  })

/** Gives a call a quota over this store. */
const over = (store: Store) => Effect.provideService(RetryQuota.RetryQuota, RetryQuota.fromStore(store))

describe("share, as Finagle", () => {
  for (
    const [windowMillis, minPerSecond, share, initial, retries] of Vectors.callThenRetry.filter((_, place) =>
      place % tried(1, 3) === 0
    )
  ) {
    it.effect(`${share} of 10,000 calls and ${minPerSecond} a second for ${windowMillis} ms: ${retries} retries`, () =>
      Effect.gen(function*() {
        const budget = yield* driven(RetryBudget.share({ share, minPerSecond, window: windowMillis }))
        assert.strictEqual(budget.balance(), initial)
        let granted = 0
        for (let call = 0; call < 10_000; call++) {
          budget.send()
          if (budget.retry() !== undefined) granted++
        }
        assert.strictEqual(granted, retries)
      }))
  }

  for (const { reserve, steps, windowMillis } of Vectors.leakyBucket) {
    it.effect(`a leaky bucket of ${windowMillis} ms with a reserve of ${reserve}, ${steps.length} steps`, () =>
      Effect.gen(function*() {
        const minPerSecond = reserve * 1000 / windowMillis
        const budget = yield* driven(RetryBudget.share({ share: 1, minPerSecond, window: windowMillis }))
        for (const [kind, amount, granted] of steps) {
          if (kind === "advance") yield* TestClock.adjust(amount)
          for (let call = 0; kind === "put" && call < amount; call++) budget.send()
          if (kind !== "get") continue
          assert.strictEqual(budget.balance() + 1e-9 >= amount, granted)
          for (let retry = 0; granted === true && retry < amount; retry++) assert.isDefined(budget.retry())
        }
      }))
  }

  it.effect("its defaults, over thirty seconds", () =>
    Effect.gen(function*() {
      const budget = yield* driven(RetryBudget.share())
      for (const [atMillis, kind, times, granted, left] of Vectors.inTime) {
        yield* TestClock.setTime(atMillis)
        let passed = 0
        for (let time = 0; time < times; time++) {
          if (kind === "call") budget.send()
          else if (budget.retry() !== undefined) passed++
        }
        if (granted !== null) assert.strictEqual(passed, granted, `at ${atMillis}`)
        assert.approximately(budget.balance(), left, 1e-9, `at ${atMillis}`)
      }
    }))
})

describe("share, as tower", () => {
  for (const [place, { minPerSecond, share, steps }] of Vectors.tower.entries()) {
    it.effect(`test ${place + 1}`, () =>
      Effect.gen(function*() {
        const budget = yield* driven(RetryBudget.share({ share, minPerSecond, window: 1000 }))
        for (const [kind, given] of steps) {
          if (kind === "call") budget.send()
          else if (kind === "advance") yield* TestClock.adjust(given)
          else assert.strictEqual(budget.retry() !== undefined, given)
        }
      }))
  }

  for (const [share, atTower] of Vectors.towerShares) {
    it.effect(`a share of ${share} acts as ${share}, not as ${atTower}`, () =>
      Effect.gen(function*() {
        const budget = yield* driven(RetryBudget.share({ share, minPerSecond: 0 }))
        for (let call = 0; call < 10_000; call++) budget.send()
        let granted = 0
        while (budget.retry() !== undefined) granted++
        assert.strictEqual(granted, Math.round(10_000 * share))
      }))
  }
})

describe("share", () => {
  it.effect("a retry takes one, whatever its cost, and nothing if its cost is 0", () =>
    Effect.gen(function*() {
      const budget = yield* driven(RetryBudget.share({ minPerSecond: 0.3 }))
      assert.isDefined(budget.retry(14))
      assert.isDefined(budget.retry(0.5))
      assert.isDefined(budget.retry(0))
      assert.strictEqual(budget.balance(), 1)
      assert.isDefined(budget.retry(5))
      assert.isUndefined(budget.retry(5))
      assert.isDefined(budget.retry(0))
    }))

  it.effect("what is taken of a call expires with it: there is no debt, and nothing is gained", () =>
    Effect.gen(function*() {
      const budget = yield* driven(RetryBudget.share({ share: 0.6, minPerSecond: 0, window: 1000 }))
      budget.send()
      yield* TestClock.adjust(500)
      budget.send()
      assert.isDefined(budget.retry())
      assert.approximately(budget.balance(), 0.2, 1e-9)
      yield* TestClock.adjust(500)
      assert.approximately(budget.balance(), 0.2, 1e-9)
      yield* TestClock.adjust(500)
      assert.strictEqual(budget.balance(), 0)
    }))

  it.effect("a retry that was never sent takes nothing, one that succeeds gives nothing back", () =>
    Effect.gen(function*() {
      const budget = yield* driven(RetryBudget.share({ share: 0.5, minPerSecond: 0.1 }))
      for (let call = 0; call < 3; call++) budget.send()
      assert.strictEqual(budget.balance(), 2.5)
      const unsent = [budget.retry(), budget.retry()]
      assert.strictEqual(budget.balance(), 0.5)
      for (const reservation of unsent) assert.isTrue(reservation!.giveBack())
      assert.strictEqual(budget.balance(), 2.5)
      const sent = budget.retry()!
      sent.sent!()
      assert.isTrue(sent.giveBack())
      assert.isFalse(sent.giveBack())
      assert.isFalse(sent.spend())
      assert.strictEqual(budget.balance(), 1.5)
      assert.isTrue(budget.retry()!.spend())
      assert.strictEqual(budget.balance(), 0.5)
    }))

  it.effect("what goes back after it has expired is gone", () =>
    Effect.gen(function*() {
      const budget = yield* driven(RetryBudget.share({ share: 1, minPerSecond: 1, window: 1000 }))
      budget.send()
      const [ofTheCall, ofTheReserve] = [budget.retry()!, budget.retry()!]
      yield* TestClock.adjust(1000)
      assert.strictEqual(budget.balance(), 1)
      ofTheCall.giveBack()
      ofTheReserve.giveBack()
      assert.strictEqual(budget.balance(), 1)
    }))

  it.effect("a call that was never made pays nothing, also if its share is taken already", () =>
    Effect.gen(function*() {
      const budget = yield* driven(RetryBudget.share({ share: 1, minPerSecond: 0 }))
      const pass = budget.send()
      assert.isDefined(budget.retry())
      pass.cancel()
      assert.strictEqual(budget.balance(), 0)
      budget.send()
      assert.isUndefined(budget.retry())
      budget.send()
      assert.isDefined(budget.retry())
    }))

  it.effect.prop(
    "law: 0 <= balance, retries never pass share x calls + reserve, and what goes back restores what was there",
    [
      Schema.Number.check(Schema.isBetween({ minimum: 0, maximum: 1 })),
      Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 })),
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2 ** 31 - 2 }))
    ],
    ([share, minPerSecond, seed]) =>
      Effect.gen(function*() {
        const budget = yield* driven(RetryBudget.share({ share, minPerSecond }))
        const began = yield* Clock.currentTimeMillis
        const open: Array<RetryQuotaStore.Reservation> = []
        const sinceLastWait = new Set<RetryQuotaStore.Reservation>()
        let [calls, retries] = [0, 0]
        const acts = {
          wait: () => sinceLastWait.clear(),
          call: (before: number) => {
            budget.send()
            calls++
            assert.approximately(budget.balance(), before + share, 1e-9)
          },
          retry: (before: number) => {
            const reservation = budget.retry()
            assert.strictEqual(reservation !== undefined, before + 1e-9 >= 1)
            if (reservation === undefined) return
            retries++
            open.push(reservation)
            sinceLastWait.add(reservation)
            assert.approximately(budget.balance(), before - 1, 1e-9)
          },
          cancel: (before: number) => {
            budget.send().cancel()
            assert.approximately(budget.balance(), before, 1e-9)
          },
          giveBack: (before: number) => {
            const reservation = open.pop()
            if (reservation === undefined) return
            assert.isTrue(reservation.giveBack())
            retries--
            // What expired in the meantime does not come back.
            const least = before + (sinceLastWait.has(reservation) ? 1 : 0)
            assert.isAtLeast(budget.balance(), least - 1e-9)
            assert.isAtMost(budget.balance(), before + 1 + 1e-9)
          },
          spend: (before: number) => {
            open.pop()?.spend()
            assert.strictEqual(budget.balance(), before)
          }
        }
        let state = seed
        const draw = (below: number) => Math.floor((state = state * 48271 % 2147483647) / 2147483647 * below)
        for (let step = 0; step < 200; step++) {
          const act = (["call", "call", "retry", "cancel", "giveBack", "spend", "wait"] as const)[draw(7)]!
          if (act === "wait") yield* TestClock.adjust(draw(3000))
          acts[act](budget.balance())
          const seconds = ((yield* Clock.currentTimeMillis) - began) / 1000
          const windows = 1 + Math.floor(seconds / 9)
          assert.isAtMost(retries, share * calls + windows * minPerSecond * 10 + 1e-6)
          assert.isAtLeast(budget.balance(), 0)
        }
      }),
    { arbitrary: { runs: tried(100, 30) } }
  )

  for (const [name, driver] of Object.entries(drivers)) {
    it.effect(`calls pay for retries, under ${name}`, () =>
      Effect.gen(function*() {
        const store = yield* RetryBudget.share({ share: 0.5, minPerSecond: 0 })
        const quota = RetryQuota.fromStore(store)
        const call = (errors: ReadonlyArray<unknown>) =>
          Effect.gen(function*() {
            const script = scripted(errors)
            yield* ended(driver(script.effect)).pipe(over(store))
            return script.sends
          })
        assert.strictEqual(yield* call([]), 1)
        assert.strictEqual(yield* quota.balance, 0.5)
        // Its own call pays the other half.
        assert.strictEqual(yield* call([new Transient(), new Transient()]), 2)
        assert.strictEqual(yield* quota.balance, 0)
        assert.strictEqual(yield* call([new Transient()]), 1)
        assert.strictEqual(yield* call([new Terminal()]), 1)
        assert.strictEqual(yield* quota.balance, 1)
      }))
  }
})

describe("inFlight, as Envoy", () => {
  /** Puts this many sends and retries in progress. */
  const underWay = (options: RetryBudget.InFlightOptions, retries: number, sends: number) =>
    Effect.gen(function*() {
      const budget = yield* driven(RetryBudget.inFlight(options))
      const many = Array.from({ length: 2000 }, () => budget.send())
      for (let retry = 0; retry < retries; retry++) assert.isDefined(budget.retry(14))
      for (const pass of many.slice(sends)) budget.end(pass, "Unknown")
      return budget
    })

  for (const [percent, atLeast, retries, requests, granted] of Vectors.envoy) {
    it.effect(`${percent} %, at least ${atLeast}; ${retries} retries and ${requests} requests: ${granted}`, () =>
      Effect.gen(function*() {
        const budget = yield* underWay({ share: percent / 100, atLeast }, retries, requests)
        assert.strictEqual(budget.retry() !== undefined, granted)
      }))
  }

  for (const [percent, atLeast, requests, most] of Vectors.envoyMost) {
    it.effect(`${percent} %, at least ${atLeast}, ${requests} requests: at most ${most} retries`, () =>
      Effect.gen(function*() {
        const budget = yield* underWay({ share: percent / 100, atLeast }, 0, requests)
        assert.strictEqual(budget.balance(), most)
        for (let retry = 0; retry < most; retry++) assert.isDefined(budget.retry())
        assert.isUndefined(budget.retry())
        assert.isDefined(budget.retry(0))
      }))
  }

  it.effect("counts a whole retry where the share is one, as far as numbers are exact", () =>
    Effect.gen(function*() {
      for (let percent = 1; percent <= 100; percent += tried(1, 9)) {
        const budget = yield* underWay({ share: percent / 100, atLeast: 0 }, 0, 100)
        assert.strictEqual(budget.balance(), percent)
      }
    }))
})

describe("inFlight, with the rule of failsafe-go", () => {
  for (const [place, { atLeast, firstSends, retries, share, steps }] of Vectors.failsafe.entries()) {
    it.effect(`case ${place + 1}`, () =>
      Effect.gen(function*() {
        let open = false
        const most = (underWay: RetryBudget.UnderWay) =>
          open
            ? Math.max(atLeast, Math.floor(share * (underWay.firstSends + underWay.retries)) + 1)
            : Infinity
        const budget = yield* driven(RetryBudget.inFlight({ most }))
        for (let send = 0; send < firstSends; send++) budget.send()
        const held = Array.from({ length: retries }, () => budget.retry())
        open = true
        for (const step of steps) {
          if (step === "end") {
            held.pop()!.spend()
          } else {
            const granted = budget.retry()
            assert.strictEqual(granted !== undefined, step)
            if (granted !== undefined) held.push(granted)
          }
        }
      }))
  }
})

describe("inFlight", () => {
  for (const [name, driver] of Object.entries(drivers)) {
    it.effect(`a retry counts from when it is decided on until it ends, under ${name}`, () =>
      Effect.gen(function*() {
        const store = yield* RetryBudget.inFlight({ share: 0, atLeast: 1 })
        const quota = RetryQuota.fromStore(store)
        const failing = scripted([new Transient(), new Transient(), new Transient()])
        const slow = Effect.andThen(Effect.sleep(100), failing.effect)
        const calls = yield* Effect.forkChild(
          Effect.all([Effect.exit(driver(slow)), Effect.exit(driver(slow))], { concurrency: 2 }).pipe(over(store)),
          { startImmediately: true }
        )
        assert.strictEqual(yield* quota.balance, 1)
        yield* TestClock.adjust(105)
        // One of the two has decided on its retry, the other was refused.
        assert.strictEqual(failing.sends, 2)
        assert.strictEqual(yield* quota.balance, 0)
        yield* TestClock.adjust(100)
        assert.strictEqual(yield* quota.balance, 0)
        yield* TestClock.adjust(1000)
        assert.isDefined(calls.pollUnsafe())
        assert.strictEqual(failing.sends, 4)
        assert.strictEqual(yield* quota.balance, 1)
      }))

    it.effect(`nothing is left in flight, whatever interrupts the call, under ${name}`, () =>
      Effect.gen(function*() {
        const made: Array<Store> = []
        const store = Effect.tap(RetryBudget.inFlight({ share: 0.5, atLeast: 1 }), (store) =>
          Effect.sync(() => made.push(store)))
        const call = Effect.suspend(() =>
          driver(Effect.andThen(Effect.sleep(5), scripted([new Transient(), new Transient()]).effect))
        )
        const interruptions = yield* thinned(5)(sweepQuota(call, { store }))
        assert.isAtLeast(interruptions, 20)
        for (const one of made) {
          const { firstSends, retries, sends } = one as Store & RetryBudget.UnderWay
          assert.deepStrictEqual([sends, firstSends, retries], [0, 0, 0])
        }
      }))
  }
})

describe("grpc, as proposal A6", () => {
  for (
    const [name, driver] of [
      ["withRetry", <A, E>(send: Effect.Effect<A, E>) => withRetry(send, policyOf(4))],
      ["Effect.retry", <A, E>(send: Effect.Effect<A, E>) => Effect.retry(send, policyOf(4))]
    ] as const
  ) {
    it.effect(`twelve calls, with their tokens, under ${name}`, () =>
      Effect.gen(function*() {
        const store = yield* RetryBudget.grpc({ maxTokens: 10, tokenRatio: 0.5 })
        let sends = 0
        const send = Effect.suspend(() =>
          Vectors.grpcAnswered.includes(sends++) ? Effect.void : Effect.fail(new Transient())
        )
        for (const [place, [ok, lastSend, attempts, tokens]] of Vectors.grpcCalls.entries()) {
          const before = sends
          const exit = yield* ended(driver(send)).pipe(over(store))
          assert.deepStrictEqual(
            [Exit.isSuccess(exit), sends - 1, sends - before, store.balance(yield* Clock.Clock)],
            [ok, lastSend, attempts, tokens],
            `call ${place + 1}`
          )
        }
      }))
  }

  it.effect("cuts the ratio to three decimals, and adds up without loss", () =>
    Effect.gen(function*() {
      const budget = yield* driven(RetryBudget.grpc({ maxTokens: 2, tokenRatio: 0.5466 }))
      budget.end(budget.send(), "Failure")
      assert.isUndefined(budget.retry())
      assert.isDefined(budget.retry(0))
      budget.end(budget.send())
      assert.strictEqual(budget.balance(), 1.546)
      assert.isDefined(budget.retry(1000))
      const tenths = yield* driven(RetryBudget.grpc({ maxTokens: 1, tokenRatio: 0.1 }))
      tenths.end(tenths.send(), "Failure")
      for (let success = 0; success < 5; success++) tenths.end(tenths.send())
      assert.strictEqual(tenths.balance(), 0.5)
      assert.isUndefined(tenths.retry())
      for (let success = 0; success < 10; success++) tenths.end(tenths.send())
      assert.strictEqual(tenths.balance(), 1)
    }))

  it.effect("other failures take nothing, nor do interruptions; isFailure says otherwise", () =>
    Effect.gen(function*() {
      const store = yield* RetryBudget.grpc()
      yield* ended(withRetry(Effect.fail(new Terminal()), policy)).pipe(over(store))
      yield* ended(withRetry(Effect.interrupt, policy)).pipe(over(store))
      assert.strictEqual(store.balance(yield* Clock.Clock), 10)
      const forbidden = { [RetryInfo.TypeId]: RetryInfo.vetoed }
      yield* ended(withRetry(Effect.fail(forbidden), policy)).pipe(over(store))
      assert.strictEqual(store.balance(yield* Clock.Clock), 9)
      const all = yield* RetryBudget.grpc({ isFailure: () => true })
      yield* ended(withRetry(Effect.fail(new Terminal()), policy)).pipe(over(all))
      assert.strictEqual(all.balance(yield* Clock.Clock), 9)
    }))
})

describe("all", () => {
  const both = (bucket: RetryQuota.Options, share: RetryBudget.ShareOptions) =>
    Effect.gen(function*() {
      const parts = yield* Effect.all([RetryBudget.bucket(bucket), RetryBudget.share(share)])
      const joined = yield* driven(RetryBudget.all(parts.map((part) => Effect.succeed(part))))
      const clock = yield* Clock.Clock
      return { ...joined, balances: () => parts.map((part) => part.balance(clock)) }
    })

  it.effect("grants what all grant, and takes of each what it counts", () =>
    Effect.gen(function*() {
      const { balances, retry, store } = yield* both({ capacity: 20 }, { minPerSecond: 0.2 })
      assert.strictEqual(store.capacity, 20)
      const reservation = retry(5)!
      assert.strictEqual(reservation.cost, 5)
      assert.deepStrictEqual(balances(), [15, 1])
      assert.isTrue(reservation.giveBack())
      assert.isFalse(reservation.spend())
      assert.deepStrictEqual(balances(), [20, 2])
      const sent = retry(5)!
      sent.sent!()
      assert.isTrue(sent.giveBack())
      assert.deepStrictEqual(balances(), [20, 1])
      assert.isTrue(retry(5)!.spend())
      assert.deepStrictEqual(balances(), [15, 0])
    }))

  it.effect("what one has granted goes back when another refuses, whichever is first", () =>
    Effect.gen(function*() {
      const empty = yield* both({ capacity: 20 }, { minPerSecond: 0, share: 0 })
      assert.isUndefined(empty.retry(5))
      assert.deepStrictEqual(empty.balances(), [20, 0])
      const dry = yield* both({ capacity: 20, initial: 4 }, {})
      assert.isUndefined(dry.retry(5))
      assert.deepStrictEqual(dry.balances(), [4, 100])
      const reversed = yield* driven(
        RetryBudget.all([RetryBudget.share(), RetryBudget.bucket({ capacity: 20, initial: 4 })])
      )
      assert.isUndefined(reversed.retry(5))
      assert.strictEqual(reversed.balance(), 4)
    }))

  it.effect("a success pays each as much as it asks for, a deposit in the same proportion", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const parts = yield* Effect.all([
        RetryBudget.bucket({ capacity: 100, initial: 0, successIncrement: 0.3 }),
        RetryBudget.bucket({ capacity: 100, initial: 0, successIncrement: 3 }),
        RetryBudget.bucket({ capacity: 100, initial: 0, successIncrement: 0 }),
        RetryBudget.share({ minPerSecond: 0, share: 0.5 })
      ])
      const store = yield* RetryBudget.all(parts.map((part) => Effect.succeed(part)))
      yield* withRetry(Effect.void, policy).pipe(over(store))
      assert.deepStrictEqual(parts.map((part) => part.balance(clock)), [0.3, 3, 0, 0.5])
      yield* RetryQuota.fromStore(store).deposit(30)
      for (const [place, left] of [3.3, 33, 0, 0.5].entries()) {
        assert.approximately(parts[place]!.balance(clock), left, 1e-9)
      }
      const free = yield* driven(
        RetryBudget.all([RetryBudget.bucket({ capacity: 9, initial: 0, successIncrement: 0 }), RetryBudget.inFlight()])
      )
      free.store.deposit(2, clock)
      assert.strictEqual(free.balance(), 2)
    }))

  it.effect("a first send pays each its fee, once, and fails where one is too poor", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const parts = yield* Effect.all([
        RetryBudget.bucket({ capacity: 20, firstAttemptCost: 2, successIncrement: 0 }),
        RetryBudget.bucket({ capacity: 20, initial: 5, firstAttemptCost: 3, successIncrement: 0 }),
        RetryBudget.share({ minPerSecond: 0.1 })
      ])
      const store = yield* RetryBudget.all(parts.map((part) => Effect.succeed(part)))
      const call = scripted([])
      yield* withRetry(call.effect, policy).pipe(over(store))
      const left = () => parts.map((part) => part.balance(clock))
      assert.deepStrictEqual(left(), [18, 2, 1.2])
      const refusal: unknown = yield* Effect.flip(withRetry(call.effect, policy).pipe(over(store)))
      assert.instanceOf(refusal, RetryQuota.QuotaExhausted)
      assert.deepInclude(refusal, { cost: 3, balance: 2 })
      assert.strictEqual(call.sends, 1)
      assert.deepStrictEqual(left(), [18, 2, 1.2])
    }))

  const waiting = { capacity: 10, initial: 0, refillPerSecond: 5, onExceeded: "wait" } as const

  it.effect("waits for those that wait, if the others grant; nothing is held if one refuses", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const share = yield* RetryBudget.share({ minPerSecond: 0.1 })
      const store = yield* RetryBudget.all([
        RetryBudget.bucket(waiting),
        Effect.succeed(share),
        RetryBudget.bucket(waiting)
      ])
      assert.strictEqual(store.onExceeded, "wait")
      const call = () => withRetry(scripted([new Transient()]).effect, policyOf(2)).pipe(over(store), Effect.exit)
      const first = yield* Effect.forkChild(call(), { startImmediately: true })
      assert.approximately(share.balance(clock), 0.2, 1e-9)
      yield* TestClock.adjust(999)
      assert.isUndefined(first.pollUnsafe())
      yield* TestClock.adjust(12)
      assert.isTrue(Exit.isSuccess(first.pollUnsafe()!))
      const second = yield* call()
      assert.isTrue(Exit.isFailure(second))
    }))

  it.effect("waits no longer than the deadline, and gives back what it had by then", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const parts = yield* Effect.all([
        RetryBudget.bucket({ ...waiting, initial: 5 }),
        RetryBudget.bucket(waiting),
        RetryBudget.share({ share: 0, minPerSecond: 0.1 })
      ])
      const store = yield* RetryBudget.all(parts.map((part) => Effect.succeed(part)))
      const patient = policy.pipe(RetryPolicy.deadline(500))
      const fiber = yield* Effect.forkChild(
        withRetry(scripted([new Transient()]).effect, patient).pipe(over(store), Effect.exit),
        { startImmediately: true }
      )
      yield* TestClock.adjust(500)
      assert.isTrue(Exit.isFailure(yield* Fiber.join(fiber)))
      assert.deepStrictEqual(parts.map((part) => part.balance(clock)), [7.5, 2.5, 1])
    }))

  it.effect("asks a store in another process, and holds nothing before it does", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const share = yield* RetryBudget.share({ share: 0, minPerSecond: 0.2 })
      const inRedis = Effect.map(RetryQuotaRedis.make({ name: "joined", capacity: 20 }), ({ store }) => store)
      const store = yield* RetryBudget.all([Effect.succeed(share), inRedis])
      assert.strictEqual(store.onExceeded, "stop")
      const quota = RetryQuota.fromStore(store)
      assert.strictEqual(typeof store.reserve(5, clock), "function")
      assert.strictEqual(share.balance(clock), 2)
      const script = scripted([new Transient(), new Transient(), new Transient()])
      assert.isTrue(Exit.isFailure(yield* ended(withRetry(script.effect, policy)).pipe(over(store))))
      assert.strictEqual(script.sends, 3)
      assert.strictEqual(share.balance(clock), 0)
      assert.strictEqual(yield* quota.balance, 0)
      yield* TestClock.adjust(30_000)
      assert.strictEqual(yield* quota.balance, 2)
    }).pipe(Effect.scoped, Effect.provideService(Redis.Redis, new FakeRedis().service)))

  const budgets: Readonly<Record<string, Effect.Effect<Store>>> = {
    "a bucket and a share": RetryBudget.all([RetryBudget.bucket({ capacity: 20 }), RetryBudget.share({ share: 0 })]),
    "two buckets that wait": RetryBudget.all([
      RetryBudget.bucket({ ...waiting, initial: 2 }),
      RetryBudget.bucket({ ...waiting, firstAttemptCost: 1, initial: 3 })
    ]),
    "everything": RetryBudget.all([
      RetryBudget.bucket(waiting),
      RetryBudget.share({ share: 0.5 }),
      RetryBudget.inFlight(),
      RetryBudget.grpc()
    ])
  }
  for (const [name, budget] of Object.entries(budgets)) {
    for (const [driverName, driver] of Object.entries(drivers)) {
      it.effect(`loses nothing of a call over ${name}, whatever interrupts it, under ${driverName}`, () =>
        Effect.gen(function*() {
          // What the sweep sees of each part: nothing stays taken without a send.
          const call = Effect.suspend(() =>
            driver(Effect.andThen(Effect.sleep(5), scripted([new Transient(), new Transient()]).effect))
          )
          assert.isAtLeast(yield* thinned(5)(sweepQuota(call, { store: budget })), 20)
        }))
    }
  }

  it.effect("an ask that is interrupted has taken nothing of any of them, at any step", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const make = Effect.gen(function*() {
        const parts = yield* Effect.all([
          RetryBudget.share({ share: 0, minPerSecond: 0.3 }),
          RetryBudget.bucket({ ...waiting, initial: 5 }),
          RetryBudget.bucket({ ...waiting, initial: 4 })
        ])
        const store = yield* RetryBudget.all(parts.map((part) => Effect.succeed(part)))
        return { parts, store, held: [] as Array<RetryQuotaStore.Reservation>, began: yield* Clock.currentTimeMillis }
      })
      let given = yield* make
      const ask = Effect.suspend(() => {
        const answer = given.store.reserve(5, clock)
        assert.strictEqual(typeof answer, "function")
        return (answer as RetryQuotaStore.Ask)(Duration.infinity, (reservation) => given.held.push(reservation))
      })
      const steps = yield* sweep(ask, () =>
        Effect.gen(function*() {
          const millis = (yield* Clock.currentTimeMillis) - given.began
          const taken = given.held.length === 0 ? 0 : 1
          const refilled = (initial: number) => Math.min(10, initial + millis * 0.005)
          const [share, first, second] = given.parts.map((part) => part.balance(clock))
          assert.strictEqual(share, 3 - taken)
          assert.isAtLeast(first! + 1e-6, Math.min(refilled(5), 10) - 5 * taken)
          assert.isAtLeast(second! + 1e-6, Math.min(refilled(4), 10) - 5 * taken)
          given = yield* make
        }))
      assert.isAtLeast(steps, 5)
    }))
})

/** The budget of a hedge, after ten calls that pay for one each. */
const paidIn = Effect.gen(function*() {
  const { budget } = yield* Hedge.make({ share: 1 })
  budget.deposit(10, yield* Clock.Clock)
  return budget
})

const laws: Readonly<
  Record<string, readonly [Effect.Effect<Store, never, Scope.Scope>, RetryQuotaStoreSuite.Options]>
> = {
  "a bucket alone": [RetryBudget.all([RetryBudget.bucket({ capacity: 30 })]), {}],
  "two buckets": [RetryBudget.all([RetryBudget.bucket({ capacity: 30 }), RetryBudget.bucket({ capacity: 40 })]), {}],
  "two buckets that wait": [
    RetryBudget.all([
      RetryBudget.bucket({ capacity: 10, initial: 0, refillPerSecond: 5, onExceeded: "wait" }),
      RetryBudget.bucket({ capacity: 10, initial: 0, refillPerSecond: 5, onExceeded: "wait" })
    ]),
    { onExceeded: "wait" }
  ],
  "a bucket that waits and one that does not": [
    RetryBudget.all([
      RetryBudget.bucket({ capacity: 10, initial: 0, refillPerSecond: 5, onExceeded: "wait" }),
      RetryBudget.bucket({ capacity: 1e9 })
    ]),
    { onExceeded: "wait" }
  ],
  "a share of the traffic, for hedges": [paidIn, {}]
}

describe.each(Object.entries(laws))("the contract of a store: %s", (_, [make, options]) => {
  for (const law of RetryQuotaStoreSuite.laws(make, options)) it.effect(law.name, () => thinned(5)(law.run))
})

const counting: Readonly<Record<string, Effect.Effect<Store>>> = {
  "a share": RetryBudget.share(),
  "what is in flight": RetryBudget.inFlight({ atLeast: 10 }),
  "gRPC's throttle": RetryBudget.grpc(),
  "a share and what is in flight": RetryBudget.all([RetryBudget.share(), RetryBudget.inFlight({ atLeast: 12 })]),
  "a share and a store that asks": RetryBudget.all([
    RetryBudget.share(),
    Effect.map(RetryBudget.share(), (store): Store => ({
      capacity: Infinity,
      successIncrement: 0,
      firstAttemptCost: 0,
      onExceeded: "stop",
      deposit: () => undefined,
      balance: (clock) => store.balance(clock),
      reserve: (cost, clock) => (_, hold) =>
        Effect.andThen(
          Effect.sleep(1),
          Effect.sync(() => {
            const answer = store.reserve(cost, clock)
            if (typeof answer === "object") hold(answer)
          })
        )
    }))
  ])
}

describe.each(Object.entries(counting))(
  "the contract of a store that counts retries: %s",
  (_, make) => {
    for (const law of countingLaws(make)) {
      it.effect(law.name, () => thinned(5)(law.run))
    }
  }
)

const gates = [RetryBudget.share(), RetryBudget.inFlight(), RetryBudget.grpc()].flatMap((budget, place) =>
  SendGateSuite.laws(Effect.map(budget, ({ gates }) => gates![0]!), { onExceeded: "never" })
    .map(({ name, run }) => [`${["share", "inFlight", "grpc"][place]} ${name}`, run] as const)
)

describe("the contract of a gate", () => {
  for (const [name, run] of gates) it.effect(name, () => thinned(5)(run))
})

describe("bad options", () => {
  const refused: ReadonlyArray<readonly [field: string, make: () => unknown]> = [
    ["share", () => RetryBudget.share({ share: 1.001 })],
    ["share", () => RetryBudget.share({ share: 2 })],
    ["share", () => RetryBudget.share({ share: -0.1 })],
    ["share", () => RetryBudget.share({ share: Number.NaN })],
    ["minPerSecond", () => RetryBudget.share({ minPerSecond: -1 })],
    ["minPerSecond", () => RetryBudget.share({ minPerSecond: Infinity })],
    ["window", () => RetryBudget.share({ window: 0 })],
    ["window", () => RetryBudget.share({ window: Infinity })],
    ["share", () => RetryBudget.inFlight({ share: 1.1 })],
    ["atLeast", () => RetryBudget.inFlight({ atLeast: 0.5 })],
    ["most", () => RetryBudget.inFlight({ most: 3 as never })],
    ["most", () => RetryBudget.inFlight({ most: () => 3, share: 0.2 })],
    ["maxTokens", () => RetryBudget.grpc({ maxTokens: 0 })],
    ["maxTokens", () => RetryBudget.grpc({ maxTokens: 1001 })],
    ["maxTokens", () => RetryBudget.grpc({ maxTokens: 1.5 })],
    ["tokenRatio", () => RetryBudget.grpc({ tokenRatio: 0 })],
    ["tokenRatio", () => RetryBudget.grpc({ maxTokens: 5, tokenRatio: 5.1 })],
    ["isFailure", () => RetryBudget.grpc({ isFailure: true as never })],
    ["capacity", () => RetryBudget.bucket({ capacity: 0 })],
    ["budgets", () => RetryBudget.all([])],
    ["budgets", () => RetryBudget.all(undefined as never)],
    ["budgets", () => RetryBudget.all([RetryBudget.bucket(), RetryBudget.share as never])]
  ]
  for (const [place, [field, make]] of refused.entries()) {
    it(`${place + 1}: refuses ${field} by name`, () => {
      try {
        make()
      } catch (error) {
        assert.instanceOf(error, InvalidOption)
        assert.strictEqual(error.field, field)
        return assert.match(error.constructorName, /^RetryBudget\./)
      }
      assert.fail("was not refused")
    })
  }
})
