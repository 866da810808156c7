import { assert, describe, it } from "@effect/vitest"
import { RetryInfo, type RetryQuotaStore, type SendGate } from "effect-retry"
import * as ClientThrottle from "effect-retry/ClientThrottle"
import * as RetryBudget from "effect-retry/RetryBudget"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import {
  type Budget,
  type BudgetOptions,
  ClientThrottle as ThrottleModel,
  makeBudget
} from "../../src/simulator/budget.ts"

/** A send that is under way, and what its retry holds. */
interface Sent {
  readonly passes: ReadonlyArray<SendGate.Pass>
  readonly reservation: RetryQuotaStore.Reservation | undefined
}

const generator = (seed: number) => {
  let state = seed
  const draw = () => (state = state * 48271 % 2147483647) / 2147483647
  for (let skip = 0; skip < 5; skip++) draw()
  return draw
}

const passesOf = (gates: ReadonlyArray<SendGate.SendGate>, attempt: number, nowMillis: number) => {
  const passes: Array<SendGate.Pass> = []
  for (const gate of gates) {
    gate.enter({ attempt, context: Context.empty(), nowMillis, hold: (pass) => passes.push(pass) })
  }
  return passes
}

const outcomeOf = (succeeded: boolean, nowMillis: number): SendGate.Outcome => ({
  _tag: succeeded ? "Success" : "Failure",
  value: undefined,
  error: undefined,
  info: succeeded ? undefined : RetryInfo.transient,
  nowMillis
})

/** A model and a store that see the same. */
class Pair {
  readonly waiting: Array<RetryQuotaStore.Reservation> = []
  readonly sent: Array<Sent> = []
  private readonly model: Budget
  private readonly store: RetryQuotaStore.RetryQuotaStore
  private readonly clock: Clock.Clock

  constructor(model: Budget, store: RetryQuotaStore.RetryQuotaStore, clock: Clock.Clock) {
    this.model = model
    this.store = store
    this.clock = clock
  }

  get now(): number {
    return this.clock.currentTimeMillisUnsafe()
  }

  /** A first send, or the retry that was decided on first. */
  send(isRetry: boolean): void {
    const reservation = isRetry ? this.waiting.shift() : undefined
    if (isRetry && reservation === undefined) return
    if (!isRetry) this.model.called(this.now)
    this.model.sent()
    const passes = passesOf(this.store.gates ?? [], isRetry ? 2 : 1, this.now)
    reservation?.sent?.()
    this.sent.push({ passes, reservation })
  }

  end(succeeded: boolean): void {
    const sent = this.sent.shift()
    if (sent === undefined) return
    this.model.ended(succeeded, sent.reservation !== undefined, this.now)
    if (succeeded) sent.reservation?.giveBack()
    else sent.reservation?.spend()
    for (const pass of sent.passes) pass.settle(outcomeOf(succeeded, this.now))
  }

  /** A retry that is decided on and never sent. */
  drop(): void {
    const reservation = this.waiting.shift()
    if (reservation === undefined) return
    this.model.dropped()
    reservation.giveBack()
  }

  /** Answers what both say. */
  retry(): readonly [model: boolean, store: boolean] {
    const answer = this.store.reserve(5, this.clock)
    if (typeof answer === "object") this.waiting.push(answer)
    return [this.model.withdraw(this.now), answer !== undefined]
  }

  /** What is left, in whole retries or in tokens. */
  balances(): readonly [model: number, store: number] {
    return [this.model.balance(this.now), this.store.balance(this.clock)]
  }
}

interface Case {
  readonly model: BudgetOptions
  readonly store: Effect.Effect<RetryQuotaStore.RetryQuotaStore>
  /** Retries are dropped: the model of Finagle and that of Google keep what they have taken. */
  readonly drops: boolean
  /** The store answers with whole retries. */
  readonly wholeOnly: boolean
  /** All within one slot of the window. */
  readonly atOnce: boolean
}

const cases: Readonly<Record<string, Case>> = {
  "Envoy's defaults": {
    model: { kind: "envoy", share: 0.2, minConcurrency: 3 },
    store: RetryBudget.inFlight(),
    drops: true,
    wholeOnly: true,
    atOnce: false
  },
  "half of what is in flight": {
    model: { kind: "envoy", share: 0.5, minConcurrency: 0 },
    store: RetryBudget.inFlight({ share: 0.5, atLeast: 0 }),
    drops: true,
    wholeOnly: true,
    atOnce: false
  },
  "gRPC's example": {
    model: { kind: "grpc", maxTokens: 10, tokenRatio: 0.1 },
    store: RetryBudget.grpc(),
    drops: true,
    wholeOnly: false,
    atOnce: false
  },
  "gRPC's test": {
    model: { kind: "grpc", maxTokens: 7, tokenRatio: 0.5 },
    store: RetryBudget.grpc({ maxTokens: 7, tokenRatio: 0.5 }),
    drops: true,
    wholeOnly: false,
    atOnce: false
  },
  "Finagle's, with one a second, within a slot of the window": {
    model: { kind: "finagle", ttlMillis: 10_000, minPerSecond: 1, share: 0.2 },
    store: RetryBudget.share({ minPerSecond: 1 }),
    drops: false,
    wholeOnly: false,
    atOnce: true
  },
  "tenths of calls, within a slot of the window": {
    model: { kind: "ratio", of: "calls", share: 0.1, windowMillis: 10_000 },
    store: RetryBudget.share({ share: 0.1, minPerSecond: 0 }),
    drops: false,
    wholeOnly: false,
    atOnce: true
  },
  "a third of all attempts, within a slot of the window: half of the calls": {
    model: { kind: "ratio", of: "attempts", share: 1 / 3, windowMillis: 10_000 },
    store: RetryBudget.share({ share: 0.5, minPerSecond: 0 }),
    drops: false,
    wholeOnly: false,
    atOnce: true
  }
}

describe("a model of the simulator and the store of the library, step by step", () => {
  for (const [name, { atOnce, drops, model, store, wholeOnly }] of Object.entries(cases)) {
    it.effect(`${name}: 100 sequences of 300 steps`, () =>
      Effect.gen(function*() {
        const said = { granted: 0, refused: 0 }
        for (let seed = 1; seed <= 100; seed++) {
          const pair = new Pair(makeBudget(model), yield* store, yield* Clock.Clock)
          const draw = generator(seed)
          const failing = draw()
          /** By how likely each is, summed up. */
          const acts: ReadonlyArray<readonly [below: number, act: () => void]> = [
            [0.25, () => pair.send(false)],
            [0.4, () => pair.send(true)],
            [0.65, () => pair.end(draw() >= failing)],
            [0.7, () => drops ? pair.drop() : undefined],
            [1, () => {
              const [theirs, ours] = pair.retry()
              assert.strictEqual(ours, theirs, `seed ${seed}`)
              said[ours ? "granted" : "refused"]++
            }]
          ]
          for (let step = 0; step < 300; step++) {
            const kind = draw()
            if (kind > 0.95 && !atOnce) yield* TestClock.adjust(Math.floor(draw() * 1000))
            acts.find(([below]) => kind < below)?.[1]()
            const [theirs, ours] = pair.balances()
            const right = wholeOnly ? Math.max(0, Math.floor(theirs + 1e-9)) : theirs
            assert.approximately(ours, right, 1e-6, `seed ${seed}, step ${step}`)
          }
        }
        assert.isAbove(said.granted, 100)
        assert.isAbove(said.refused, 50)
      }))
  }

  it.effect("Google's throttle, within a slot of the window: 100 sequences of 300 requests", () =>
    Effect.gen(function*() {
      let refused = 0
      for (let seed = 1; seed <= 100; seed++) {
        const draw = generator(seed)
        const [k, failing] = [1 + draw(), draw()]
        let random = 0
        const drawn = { nextDoubleUnsafe: () => random, nextIntUnsafe: () => 0 }
        const model = new ThrottleModel(k, 120_000)
        const { gate } = yield* ClientThrottle.make({ ...ClientThrottle.published, k }).pipe(
          Effect.provideService(Random.Random, drawn)
        )
        for (let request = 0; request < 300; request++) {
          random = draw()
          const theirs = !model.drops(0, random)
          const [pass] = passesOf([gate], 1, 0)
          assert.strictEqual(pass !== undefined, theirs, `seed ${seed}, request ${request}`)
          if (pass === undefined) {
            refused++
            continue
          }
          const succeeded = draw() >= failing
          if (succeeded) model.accepted(0)
          pass.settle(outcomeOf(succeeded, 0))
        }
      }
      assert.isAbove(refused, 50)
    }))
})
