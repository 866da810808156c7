import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as AdaptiveRateLimiter from "../../gates/AdaptiveRateLimiter.ts"
import { AdaptiveGate, initial, serviceOf, validated } from "../../gates/internal/adaptiveGate.ts"
import { also, checks, checksOf } from "../../internal/checks.ts"
import { monotonicMillis, withMillis } from "../../internal/clock.ts"
import type * as Cubic from "../../internal/math/cubic.ts"
import type { Pass, Send, SendGate } from "../../SendGate.ts"
import { ended } from "./gateSubject.ts"

const constructorName = "TestLimiter.layer"

/**
 * Options of a limiter for tests.
 *
 * @category models
 * @since 0.1.0
 */
export interface TestLimiterOptions extends AdaptiveRateLimiter.Options {
  /**
   * Starts as if the service had just throttled and left this fill rate, in sends per second: a number of at least
   * `minFillRate`. Default: no throttle has been seen, and nothing is limited.
   */
  readonly fillRate?: number | undefined
  /** With a `fillRate`, the initial send tokens: from 0 to the capacity that belongs to the rate. Default 0. */
  readonly tokens?: number | undefined
}

/** The state after a throttle that brings a limiter to the fill rate. */
const throttledTo = (fillRate: number, tokens: number, { beta, minCapacity, minFillRate }: Cubic.CubicConfig) => {
  const check = checks(constructorName)
  check.between("fillRate", fillRate, minFillRate, Number.MAX_SAFE_INTEGER)
  check.between("tokens", tokens, 0, Math.max(fillRate, minCapacity))
  const lastMaxRate = fillRate / beta
  return { enabled: true, tokens, fillRate, measuredTxRate: lastMaxRate, lastMaxRate, sinceThrottle: 0 }
}

/** Makes the gate of a limiter. Throws `InvalidOption` when an option is invalid. */
const makeGate = (options: TestLimiterOptions): Effect.Effect<AdaptiveGate> => {
  const check = checksOf("AdaptiveRateLimiter.make", options)
  const { fillRate, tokens } = options
  also(check, "fillRate", "tokens")
  const valid = validated(options, check)
  if (fillRate === undefined && tokens !== undefined) {
    checks(constructorName).reject("tokens", tokens, "given with a fillRate")
  }
  const restore = fillRate === undefined ? valid.restore : throttledTo(fillRate, tokens ?? 0, valid.cubic)
  return withMillis((nowMillis) => new AdaptiveGate(valid, initial({ ...valid, restore }, nowMillis)))
}

/**
 * Makes a limiter. Throws `InvalidOption` when an option is invalid.
 *
 * @internal
 */
export const makeLimiter = (options: TestLimiterOptions): Effect.Effect<AdaptiveRateLimiter.Service> =>
  Effect.map(makeGate(options), serviceOf)

/**
 * Options of a limiter that accounts for all its send tokens: its fill rate is constant, and its bucket unbounded.
 *
 * @category models
 * @since 0.1.0
 */
export interface SteadyLimiterOptions extends Pick<AdaptiveRateLimiter.Options, "maxWaiters" | "onExceeded"> {
  /** Sends per second, whatever the service responds: a finite number above 0. Default 1. */
  readonly fillRate?: number | undefined
  /** The initial send tokens: a finite number of at least 0. Default 0. */
  readonly tokens?: number | undefined
}

/**
 * A gate around a limiter's gate that counts the sends it lets pass, and ignores responses.
 *
 * @internal
 */
export class SteadyLimiter implements SendGate<AdaptiveRateLimiter.RateLimitExceeded> {
  readonly order: number
  readonly limiter: AdaptiveRateLimiter.Service
  /** Passes neither settled nor canceled. */
  open = 0
  private used = 0

  constructor(
    private readonly gate: AdaptiveGate,
    /** Initial tokens plus those refilled since. */
    private readonly tokensAt: (nowMillis: number) => number
  ) {
    this.order = gate.order
    this.limiter = { ...serviceOf(gate), acquire: this.acquire, update: () => Effect.void, gate: this }
  }

  enter(send: Send): void | Effect.Effect<void, AdaptiveRateLimiter.RateLimitExceeded> {
    const { attempt, context, failureClass, nowMillis } = send
    const hold = (pass: Pass) => send.hold(this.counted(pass))
    return this.gate.enter({ attempt, context, failureClass, nowMillis, hold })
  }

  /** The tokens that it had and got, minus those of sends. */
  get expected(): Effect.Effect<number> {
    return withMillis((nowMillis) => this.tokensAt(nowMillis) - this.used)
  }

  private counted(pass: Pass): Pass {
    this.open++
    this.used++
    return {
      settle: () => {
        this.open--
      },
      cancel: () => {
        this.open--
        this.used--
        pass.cancel()
      }
    }
  }

  /** Sends without the engine. */
  private get acquire(): Effect.Effect<void, AdaptiveRateLimiter.RateLimitExceeded> {
    return Effect.withFiber(({ context }) => {
      const nowMillis = monotonicMillis(Context.get(context, Clock.Clock))
      const hold = (pass: Pass) => pass.settle({ ...ended("Success"), nowMillis })
      return this.enter({ attempt: 1, context, nowMillis, hold }) ?? Effect.void
    })
  }
}

/**
 * Makes a limiter that accounts for its tokens.
 *
 * @internal
 */
export const makeSteady = (options: SteadyLimiterOptions): Effect.Effect<SteadyLimiter> => {
  const { fillRate = 1, tokens = 0 } = options
  const made = makeGate({ ...options, fillRate, tokens, minFillRate: fillRate, minCapacity: Number.MAX_SAFE_INTEGER })
  return Effect.flatMap(
    made,
    (gate) =>
      withMillis((startMillis) =>
        new SteadyLimiter(gate, (nowMillis) => tokens + fillRate * (nowMillis - startMillis) / 1000)
      )
  )
}
