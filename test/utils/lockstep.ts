/**
 * The same calls in two libraries, in lockstep: each answer leads both to their next send, or to the end. Then time,
 * quota and limiter are compared.
 */
import { assert } from "@effect/vitest"
import { AdaptiveRetryStrategy, DefaultRateLimiter } from "@smithy/core/retry"
import type { RetryErrorInfo, RetryStrategyV2, RetryToken } from "@smithy/types"
import {
  AdaptiveRateLimiter,
  AwsModes,
  RetryClassifier,
  RetryInfo,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as AwsSdk from "effect-retry/AwsSdk"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import { type Answer, answered, failure, getItem, ok, throttle } from "./awsSdk.ts"
import { seeded } from "./smithy.ts"

/** The state of the SDK's limiter, which its types keep private. */
interface Theirs {
  readonly enabled: boolean
  readonly fillRate: number
  readonly measuredTxRate: number
  readonly lastMaxRate: number
  readonly maxCapacity: number
  readonly availableTokens: number
  readonly lastTimestamp: number
}

/** Compares the limiters at this time, in milliseconds. One may have its token so many milliseconds before the other. */
export const agree = (
  ours: AdaptiveRateLimiter.State,
  limiter: DefaultRateLimiter,
  { earlier = 0, nowMillis }: { readonly nowMillis: number; readonly earlier?: number },
  step: string
) => {
  const theirs = limiter as unknown as Theirs
  const refilled = theirs.availableTokens + (nowMillis / 1000 - theirs.lastTimestamp) * theirs.fillRate
  const tokens = theirs.enabled ? Math.min(theirs.maxCapacity, refilled) : 0
  const pairs = [
    ["fillRate", ours.fillRate, theirs.fillRate, 0],
    ["measuredTxRate", ours.measuredTxRate, theirs.measuredTxRate, 0],
    ["lastMaxRate", ours.lastMaxRate, theirs.lastMaxRate, 0],
    ["maxCapacity", ours.maxCapacity, theirs.maxCapacity, 0],
    ["capacity", theirs.enabled ? ours.capacity : 0, tokens, theirs.fillRate * earlier / 1000]
  ] as const
  assert.strictEqual(ours.enabled, theirs.enabled, step)
  for (const [name, our, their, off] of pairs) {
    // The SDK rounds rates and windows to 8 decimals; a cubic curve amplifies that.
    assert.closeTo(our, their, 1e-5 * Math.max(1, Math.abs(their)) + off, `${step}: ${name}`)
  }
}

/** How a send ends. */
interface Ending {
  readonly errorType: RetryErrorInfo["errorType"] | undefined
  /** The server's hint, in milliseconds. */
  readonly hint: number | undefined
  /** The same over HTTP. */
  readonly answer: Answer
}

type EndingOf = (hint: number | undefined, headers: Record<string, string>) => Ending

/** Successes, throttles, other failures that are retried, and final ones. */
const endings: ReadonlyArray<ReadonlyArray<EndingOf>> = [
  [() => ({ errorType: undefined, hint: undefined, answer: ok })],
  [
    (hint, headers) => ({ errorType: "THROTTLING", hint, answer: { ...throttle, headers } }),
    (hint, headers) => ({ errorType: "THROTTLING", hint, answer: failure("Unknown", 429, headers) })
  ],
  [
    (hint, headers) => ({ errorType: "TRANSIENT", hint, answer: failure("InternalServerError", 500, headers) }),
    (hint, headers) => ({ errorType: "TRANSIENT", hint, answer: { status: 502, body: "<html>", headers } }),
    () => ({ errorType: "TRANSIENT", hint: undefined, answer: { throws: new Reset("reset") } })
  ],
  [
    (hint, headers) => ({ errorType: "SERVER_ERROR", hint, answer: failure("NotImplemented", 501, headers) }),
    (hint, headers) => ({ errorType: "CLIENT_ERROR", hint, answer: failure("ValidationException", 400, headers) })
  ]
]

class Reset extends Error {
  readonly code = "ECONNRESET"
}

const maxAttempts = 4

/** The time of whoever runs, in milliseconds, and its chance. Every sleep ends immediately. */
const world = { now: 0, chance: 0 }

const slept = (millis: number): void => {
  // A timer has whole milliseconds.
  world.now += Math.ceil(millis)
}

const nanos = () => BigInt(world.now) * 1_000_000n

const clock: Clock.Clock = {
  currentTimeMillisUnsafe: () => world.now,
  currentTimeMillis: Effect.sync(() => world.now),
  currentTimeNanosUnsafe: nanos,
  currentTimeNanos: Effect.sync(nanos),
  monotonicTimeNanosUnsafe: nanos,
  monotonicTimeNanos: Effect.sync(nanos),
  sleep: (duration) => Effect.sync(() => slept(Duration.toMillis(duration)))
}

const random: Random.Random = { nextDoubleUnsafe: () => world.chance, nextIntUnsafe: () => 0 }

/** Runs with the clock, the timers and the randomness of the process replaced. */
const replaced = async <A>(run: () => Promise<A>): Promise<A> => {
  const { random: chance } = Math
  const { now } = Date
  const { setTimeout: timer } = globalThis
  Math.random = () => world.chance
  Date.now = () => world.now
  globalThis.setTimeout = ((done: () => void, millis: number) => {
    slept(millis)
    queueMicrotask(done)
  }) as never
  try {
    return await run()
  } finally {
    Math.random = chance
    Date.now = now
    globalThis.setTimeout = timer
  }
}

/** Where a call is, once it can go no further by itself. */
type Arrival = "in flight" | "retried" | "done" | "failed"

/** The calls of one library. */
interface Side {
  readonly begin: (call: number) => Promise<Arrival>
  readonly end: (call: number, ending: Ending) => Promise<Arrival>
}

/** Calls through a strategy, as a client makes them. */
const strategic = (strategy: RetryStrategyV2, errorOf: (ending: Ending) => unknown = () => new Error("?")): Side => {
  const tokens = new Map<number, RetryToken>()
  return {
    begin: async (call) => {
      tokens.set(call, await strategy.acquireInitialRetryToken("aws"))
      return "in flight"
    },
    end: async (call, ending) => {
      const token = tokens.get(call)!
      if (ending.errorType === undefined) {
        strategy.recordSuccess(token as never)
        return "done"
      }
      const { errorType, hint } = ending
      const retryAfterHint = hint === undefined ? undefined : new Date(world.now + hint)
      const info: any = { errorType, error: errorOf(ending), ...(retryAfterHint && { retryAfterHint }) }
      try {
        tokens.set(call, await strategy.refreshRetryTokenForRetry(token, info))
        return "retried"
      } catch {
        return "failed"
      }
    }
  }
}

/** Calls that are in flight until they are answered. */
class Held<A> implements Side {
  private readonly run: (call: number) => Promise<unknown>
  private call = 0
  private arrive: (arrival: Arrival) => void = () => undefined
  private readonly answers = new Map<number, (answer: A) => void>()
  private readonly answerOf: (ending: Ending) => A

  constructor(answerOf: (ending: Ending) => A, run: (call: number) => Promise<unknown>) {
    this.answerOf = answerOf
    this.run = run
  }

  /** A send of the call whose turn it is. */
  sent(answer: (answer: A) => void): void {
    this.answers.set(this.call, answer)
    this.arrive("in flight")
  }

  begin(call: number): Promise<Arrival> {
    return this.turn(call, () => {
      const ended = this.run(call)
      void ended.then(() => this.arrive("done"), () => this.arrive("failed"))
    })
  }

  async end(call: number, ending: Ending): Promise<Arrival> {
    const arrival = await this.turn(call, () => this.answers.get(call)!(this.answerOf(ending)))
    return arrival === "in flight" ? "retried" : arrival
  }

  private turn(call: number, go: () => void): Promise<Arrival> {
    return new Promise((resolve) => {
      this.call = call
      this.arrive = resolve
      go()
    })
  }
}

type Limited = RetryPolicy.RetryPolicy<
  unknown,
  AdaptiveRateLimiter.RateLimitExceeded,
  RetryQuota.RetryQuota | AdaptiveRateLimiter.AdaptiveRateLimiter
>

/** The same as facts. */
const factsOf = ({ errorType, hint }: Ending): RetryInfo.RetryInfo =>
  RetryInfo.make({
    safety: errorType === "TRANSIENT" || errorType === "THROTTLING" ? "Yes" : "No",
    throttling: errorType === "THROTTLING",
    retryAfter: hint
  })

type Services = RetryQuota.RetryQuota | AdaptiveRateLimiter.AdaptiveRateLimiter

/** Calls by an effect that retries. */
const effectful = (
  services: Context.Context<Services>,
  retried: <E>(send: Effect.Effect<void, E>) => Effect.Effect<void, unknown, Services>
): Side => {
  const send: Effect.Effect<void, unknown> = Effect.callback((resume) => {
    held.sent((ending) =>
      resume(ending.errorType === undefined ? Effect.void : Effect.fail({ [RetryInfo.TypeId]: factsOf(ending) }))
    )
  })
  const held: Held<Ending> = new Held((ending) => ending, () => Effect.runPromiseWith(services)(retried(send)))
  return held
}

/** Calls of a client of DynamoDB. */
const client = (retryStrategy: RetryStrategyV2): Side => {
  const dynamo = answered(() => new Promise<Answer>((resolve) => held.sent(resolve)), {
    retryStrategy,
    maxAttempts
  })
  const held: Held<Answer> = new Held(({ answer }) => answer, () => dynamo.send(getItem()))
  return held
}

/** How calls are made by ours, and by theirs. */
export interface Way {
  readonly ours: (policy: Limited, services: Context.Context<Services>) => Effect.Effect<Side>
  readonly theirs: (strategy: RetryStrategyV2) => Side
}

const throughEffect = (
  retried: (policy: Limited) => <E>(send: Effect.Effect<void, E>) => Effect.Effect<void, unknown, Services>
): Way => ({
  ours: (policy, services) => Effect.succeed(effectful(services, retried(policy))),
  theirs: strategic
})

/** Our strategy, as one of theirs. Only the classifier of a refresh knows the class of its failure. */
const asTheirs = (
  strategy: RetryStrategy.Service<unknown>,
  services: Context.Context<never>
): RetryStrategyV2 => {
  const run = Effect.runPromiseWith(services)
  const issued = (token: RetryStrategy.Token): any => token
  return {
    acquireInitialRetryToken: () => run(Effect.map(strategy.acquireInitialToken(), issued)),
    refreshRetryTokenForRetry: (token: any, info) =>
      run(
        Effect.map(strategy.refreshRetryToken(token, info.error), issued).pipe(
          Effect.provideService(RetryClassifier.CurrentClassifier, () => Option.some(info.error as never))
        )
      ),
    recordSuccess: (token: any) => Effect.runSyncWith(services)(strategy.recordSuccess(token))
  }
}

export const ways = {
  "RetryStrategy": {
    ours: (policy, services) =>
      Effect.map(
        Effect.provideContext(RetryStrategy.make(policy), services),
        (strategy) => strategic(asTheirs(strategy, services), factsOf)
      ),
    theirs: strategic
  },
  "makeRetryStrategy": {
    ours: (policy, services) =>
      Effect.map(Effect.provideContext(AwsSdk.makeRetryStrategy(policy), services), strategic),
    theirs: strategic
  },
  "withRetry": throughEffect((policy) => (send) => withRetry(send, policy)),
  "Effect.retry": throughEffect((policy) => (send) => Effect.retry(send, policy)),
  "a client of DynamoDB": {
    ours: (policy, services) => Effect.map(Effect.provideContext(AwsSdk.makeRetryStrategy(policy), services), client),
    theirs: client
  }
} satisfies Record<string, Way>

/** How often what happened, over all seeds. */
export interface Seen {
  steps: number
  arrivals: Record<Arrival, number>
  /** Retries after a failure of another class than that before. */
  mixed: number
  /** Sends that waited for a token. */
  waits: number
  lowest: number
}

export const nothing = (): Seen => ({
  steps: 0,
  arrivals: { "in flight": 0, retried: 0, done: 0, failed: 0 },
  mixed: 0,
  waits: 0,
  lowest: Infinity
})

/**
 * Whose tokens are 1 but for a rounding error waits for a millisecond more. Such a difference does not add up: the
 * buckets are as full as each other after each step.
 */
const earlier = 2

/** Random endings: how often sends succeed and are throttled depends on the seed. */
const scriptOf = (next: () => number): () => Ending => {
  const shares = [0.1 + next() * 0.6, next() * 0.4, 0.3, 0.02]
  const whole = shares.reduce((sum, share) => sum + share)
  return () => {
    let point = next() * whole
    const kind = endings[shares.findIndex((share) => (point -= share) < 0)]!
    const hint = next() < 0.2 ? Math.floor(next() * 8000) - 1000 : undefined
    const headers: Record<string, string> = hint === undefined ? {} : { "x-amz-retry-after": String(hint) }
    return kind[Math.floor(next() * kind.length)]!(hint, headers)
  }
}

/** A call of both sides, and how its last send ended. */
interface Call {
  readonly call: number
  errorType: Ending["errorType"]
}

/** The same quota and the same limiter in both libraries, and the calls in flight. */
class Lockstep {
  private readonly limiter = new DefaultRateLimiter()
  private readonly js = new AdaptiveRetryStrategy(maxAttempts, { baseDelay: 64, rateLimiter: this.limiter } as never)
  private readonly services: Context.Context<Services>
  private readonly mine: Side
  private readonly theirs: Side
  private readonly calls: Array<Call> = []
  private readonly next: () => number
  private readonly pick: () => Ending
  private readonly seen: Seen

  constructor(way: Way, next: () => number, seen: Seen) {
    const shared = Context.make(Clock.Clock, clock).pipe(Context.add(Random.Random, random))
    const run = Effect.runSyncWith(shared)
    const { AdaptiveRateLimiter: Limiter, make } = AdaptiveRateLimiter
    this.services = shared.pipe(
      Context.add(RetryQuota.RetryQuota, run(RetryQuota.make())),
      Context.add(Limiter, run(make()))
    )
    const policy = RetryPolicy.requires(AwsModes.standard2026({ maxAttempts, base: 64 }), Limiter)
    this.mine = run(way.ours(policy, this.services))
    this.theirs = way.theirs(this.js)
    this.next = next
    this.pick = scriptOf(next)
    this.seen = seen
  }

  /** A call begins, or a send ends. Each side goes on until it is in flight again, or has ended. */
  async step(step: number, name: string): Promise<void> {
    const { calls, next, seen } = this
    // Eighths of 64 and of 1000 milliseconds are whole.
    world.chance = Math.floor(next() * 8) / 8
    const begins = calls.length === 0 || (calls.length < 4 && next() < 0.3)
    const call: Call = begins ? { call: step, errorType: undefined } : calls[Math.floor(next() * calls.length)]!
    const ending = begins ? undefined : this.pick()
    const what = `${name}, step ${step}: ${JSON.stringify(ending ?? "begins")}`
    const { arrival, millis } = await this.both(
      what,
      (side) => ending === undefined ? side.begin(call.call) : side.end(call.call, ending)
    )
    this.compare(what)
    seen.steps++
    seen.arrivals[arrival]++
    if (begins && millis > 0) seen.waits++
    if (ending === undefined) calls.push(call)
    else this.follow(call, arrival, ending)
    world.now += Math.floor(next() * next() * 900)
  }

  /** The same on both sides, which begins at the same time. */
  private async both(what: string, turn: (side: Side) => Promise<Arrival>) {
    const from = world.now
    const arrival = await turn(this.mine)
    const millis = world.now - from
    world.now = from
    assert.strictEqual(arrival, await turn(this.theirs), what)
    assert.closeTo(millis, world.now - from, earlier, `${what}: the wait`)
    world.now = Math.max(world.now, from + millis)
    return { arrival, millis }
  }

  private compare(what: string): void {
    const run = Effect.runSyncWith(this.services)
    const balance = run(RetryQuota.balance)
    this.seen.lowest = Math.min(this.seen.lowest, balance)
    assert.strictEqual(balance, (this.js as any).standardRetryStrategy.getCapacity(), `${what}: the quota`)
    const state = run(AdaptiveRateLimiter.state)
    agree(state, this.limiter, { nowMillis: world.now, earlier }, what)
    if (!state.enabled) return
    Object.assign(this.limiter, { availableTokens: state.capacity, lastTimestamp: world.now / 1000 })
  }

  private follow(call: Call, arrival: Arrival, { errorType }: Ending): void {
    const { calls, seen } = this
    if (arrival !== "retried") {
      calls.splice(calls.indexOf(call), 1)
      return
    }
    if (call.errorType !== undefined && call.errorType !== errorType) seen.mixed++
    call.errorType = errorType
  }
}

/** So many random steps in both, up to four calls at a time. */
export const lockstep = (way: Way, seed: number, steps: number, seen: Seen): Promise<void> =>
  replaced(async () => {
    // The SDK treats a time of 0 as none.
    world.now = 1_000_000
    const both = new Lockstep(way, seeded(seed), seen)
    for (let step = 0; step < steps; step++) await both.step(step, `seed ${seed}`)
  })
