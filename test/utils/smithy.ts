import { assert } from "@effect/vitest"
import { StandardRetryStrategy } from "@smithy/core/retry"
import { AwsModes, RetryInfo, RetryQuota } from "effect-retry"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import type { Policy } from "./vectors.ts"

/** Numbers uniform in `[0, 1)` that the seed determines (mulberry32). */
export const seeded = (seed: number): () => number => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6D2B79F5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

type RetryErrorInfo = Parameters<StandardRetryStrategy["refreshRetryTokenForRetry"]>[1]
type JsToken = Awaited<ReturnType<StandardRetryStrategy["acquireInitialRetryToken"]>>

/** A call of both strategies. */
interface Call {
  readonly js: JsToken
  readonly ours: RetryStrategy.Token
}

/** What the scripts led to. */
interface Seen {
  steps: number
  retry: number
  refused: number
  heldBack: number
  success: number
  rounded: number
  lowest: number
}

/** The time at which all of a script happens, for hints, which are dates. */
const now = 1_000_000

/** Runs the other library with its own randomness, clock and timer replaced; every sleep ends immediately. */
const replaced = <A>(chance: number, run: () => Promise<A>) =>
  Effect.promise(async () => {
    const { random } = Math
    const { now: clock } = Date
    const { setTimeout: timer } = globalThis
    let slept = 0
    Math.random = () => chance
    Date.now = () => now
    globalThis.setTimeout = ((done: () => void, millis: number) => {
      slept += millis
      queueMicrotask(done)
    }) as any
    try {
      return { value: await run(), slept }
    } finally {
      Math.random = random
      Date.now = clock
      globalThis.setTimeout = timer
    }
  })

interface Failure {
  readonly errorType: RetryErrorInfo["errorType"]
  readonly hintMillis: number | undefined
}

const failureOf = (next: () => number): Failure => {
  const kind = next()
  const errorType = kind < 0.55 ? "TRANSIENT" : kind < 0.8 ? "THROTTLING" : kind < 0.9 ? "CLIENT_ERROR" : "SERVER_ERROR"
  return { errorType, hintMillis: next() < 0.3 ? Math.floor(next() * 30_000) - 2000 : undefined }
}

/** What the middleware of the SDK tells a strategy. */
const jsInfo = ({ errorType, hintMillis }: Failure): RetryErrorInfo => ({
  errorType,
  ...(hintMillis === undefined ? {} : { retryAfterHint: new Date(now + hintMillis) })
})

/** The same as an error with facts. */
const ourError = ({ errorType, hintMillis }: Failure): unknown => ({
  [RetryInfo.TypeId]: RetryInfo.make({
    safety: errorType === "TRANSIENT" || errorType === "THROTTLING" ? "Yes" : "No",
    throttling: errorType === "THROTTLING",
    retryAfter: hintMillis
  })
})

const jsRefresh = (strategy: Theirs, token: JsToken, failure: Failure, chance: number) =>
  Effect.map(
    replaced(chance, () => strategy.refreshRetryTokenForRetry(token, jsInfo(failure)).catch(() => undefined)),
    ({ slept, value }) => ({ token: value, delay: slept, logged: value?.$retryLog?.acquisitionDelay })
  )

const ourRefresh = (strategy: RetryStrategy.Service, token: RetryStrategy.Token, failure: Failure, chance: number) =>
  Effect.gen(function*() {
    const refresh = Effect.matchEffect(strategy.refreshRetryToken(token, ourError(failure)), {
      onSuccess: (token) => Effect.succeed({ token, delay: Duration.toMillis(token.delay) }),
      onFailure: (refused) =>
        refused._tag === "RetryRefused"
          ? Effect.succeed({ token: undefined, delay: refused.stop.delayMillis })
          : Effect.die(refused)
    }).pipe(Effect.provideService(Random.Random, { nextDoubleUnsafe: () => chance, nextIntUnsafe: () => 0 }))
    const fiber = yield* Effect.forkChild(refresh, { startImmediately: true })
    const before = fiber.pollUnsafe()
    if (before === undefined) yield* TestClock.adjust("1 minute")
    const result = yield* Fiber.join(fiber)
    const sleeps = result.token === undefined && result.delay > 0
    assert.strictEqual(before === undefined, sleeps, "sleeps when it holds back, and only then")
    return result
  })

/** A strategy of theirs, of any edition. */
type Theirs = Pick<
  StandardRetryStrategy,
  "acquireInitialRetryToken" | "refreshRetryTokenForRetry" | "recordSuccess" | "getCapacity"
>

/** A strategy of theirs, and the policy of ours that must agree. */
interface Sides {
  readonly js: Theirs
  readonly ours: Policy
}

interface Comparison {
  readonly sides: (maxAttempts: number, base: number) => Sides
  /** The share of the calls that poll. */
  readonly polls: number
  readonly chance: (next: () => number) => number
  readonly bases: readonly [number, number]
  /** By how much delays may differ. */
  readonly round: number
  readonly seen: Seen
}

const count = (seen: Seen, balance: number, delay: number, retried: boolean) => {
  seen.steps++
  seen.lowest = Math.min(seen.lowest, balance)
  if (retried) seen.retry++
  else if (delay > 0) seen.heldBack++
  else seen.refused++
}

/** One strategy of each library, on a quota of the same size. */
class Pair {
  readonly js: Theirs
  readonly ours: RetryStrategy.Service
  private readonly comparison: Comparison

  constructor(js: Theirs, ours: RetryStrategy.Service, comparison: Comparison) {
    this.js = js
    this.ours = ours
    this.comparison = comparison
  }

  begin(longPolling: boolean): Effect.Effect<Call> {
    return Effect.all({
      js: Effect.promise(() => this.js.acquireInitialRetryToken(longPolling ? "aws:longpoll" : "aws")),
      ours: Effect.orDie(this.ours.acquireInitialToken({ longPolling }))
    })
  }

  succeed(call: Call): Effect.Effect<void> {
    this.js.recordSuccess(call.js)
    this.comparison.seen.success++
    return this.ours.recordSuccess(call.ours)
  }

  /** The call after the failure, if both retry it. */
  fail(call: Call, failure: Failure, chance: number): Effect.Effect<Call | undefined> {
    const { round, seen } = this.comparison
    return Effect.map(
      Effect.all([jsRefresh(this.js, call.js, failure, chance), ourRefresh(this.ours, call.ours, failure, chance)]),
      ([theirs, mine]) => {
        assert.strictEqual(mine.token === undefined, theirs.token === undefined, "decision")
        const rounded = mine.delay - theirs.delay
        assert.isTrue(rounded === 0 || rounded === round, `delays ${theirs.delay} and ${mine.delay}`)
        if (rounded > 0) seen.rounded++
        count(seen, this.js.getCapacity(), mine.delay, mine.token !== undefined)
        if (mine.token === undefined || theirs.token === undefined) return undefined
        assert.strictEqual(theirs.logged, theirs.delay)
        assert.strictEqual(mine.token.attempt, theirs.token.getRetryCount() + 1)
        assert.strictEqual(mine.token.cost, theirs.token.getRetryCost())
        return { js: theirs.token, ours: mine.token }
      }
    )
  }
}

/** Retry behavior 2.1 of both. */
export const sides2026 = (maxAttempts: number, base: number): Sides => ({
  js: new StandardRetryStrategy({ maxAttempts, baseDelay: base }),
  ours: AwsModes.standard2026({ maxAttempts, base })
})

/** Plays one script of 100 steps, up to six calls at a time on one quota, to both strategies. */
export const compared = (next: () => number, comparison: Comparison) =>
  Effect.gen(function*() {
    const maxAttempts = [1, 2, 3, 4, 12][Math.floor(next() * 5)]!
    const base = comparison.bases[next() < 0.7 ? 0 : 1]
    const { js, ours } = comparison.sides(maxAttempts, base)
    const pair = new Pair(js, yield* RetryStrategy.make(ours), comparison)
    const successes = next() * 0.4
    const calls: Array<Call> = []
    for (let step = 0; step < 100; step++) {
      if (calls.length === 0 || (calls.length < 6 && next() < 0.3)) {
        calls.push(yield* pair.begin(next() < comparison.polls))
      }
      const [call] = calls.splice(Math.floor(next() * calls.length), 1) as [Call]
      if (next() < successes) {
        yield* pair.succeed(call)
      } else {
        const retried = yield* pair.fail(call, failureOf(next), comparison.chance(next))
        if (retried !== undefined) calls.push(retried)
      }
      assert.strictEqual(yield* RetryQuota.balance, js.getCapacity(), `balance after step ${step}`)
    }
  })
