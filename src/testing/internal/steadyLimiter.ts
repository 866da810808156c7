import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as AdaptiveRateLimiter from "../../gates/AdaptiveRateLimiter.ts"
import { AdaptiveGate, serviceOf, validated } from "../../gates/internal/adaptiveGate.ts"
import { also, checks, checksOf } from "../../internal/checks.ts"
import { monotonicMillis } from "../../internal/clock.ts"
import * as Cubic from "../../internal/math/cubic.ts"
import { Witness } from "./witnessGate.ts"

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

/** The limiter after a throttle that brings it to the fill rate. */
const throttledTo = (
  fillRate: number,
  config: Cubic.CubicConfig,
  tokens: number
): (now: number) => Cubic.Cubic => {
  const check = checks(constructorName)
  check.between("fillRate", fillRate, config.minFillRate, Number.MAX_SAFE_INTEGER)
  const maxTokens = Math.max(fillRate, config.minCapacity)
  check.between("tokens", tokens, 0, maxTokens)
  const lastMaxRate = fillRate / config.beta
  const saved = { enabled: true, tokens, fillRate, measuredTxRate: lastMaxRate, lastMaxRate, sinceThrottle: 0 }
  return (now) => Cubic.restored(config, saved, now)
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
  const stateAt = fillRate === undefined
    ? (now: number) => Cubic.initial(valid.cubic, now)
    : throttledTo(fillRate, valid.cubic, tokens ?? 0)
  return Effect.clockWith((clock) => Effect.sync(() => new AdaptiveGate(valid, stateAt(monotonicMillis(clock) / 1000))))
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

/** A gate around a limiter's gate that counts the sends it lets pass, and ignores responses. */
class Steady extends Witness<AdaptiveRateLimiter.RateLimitExceeded> {
  protected override settle(): void {}

  /** Sends that have passed and were not canceled. */
  get sent(): number {
    return this.held - this.canceled
  }

  /** Sends without the engine. */
  get acquire(): Effect.Effect<void, AdaptiveRateLimiter.RateLimitExceeded> {
    return Effect.withFiber(({ context }) => {
      const hold = () => {
        this.held++
        this.settled++
      }
      const nowMillis = monotonicMillis(Context.get(context, Clock.Clock))
      return this.gate.enter({ attempt: 1, context, nowMillis, hold }) ?? Effect.void
    })
  }
}

/**
 * A limiter that accounts for its tokens.
 *
 * @internal
 */
export interface SteadyLimiter {
  readonly limiter: AdaptiveRateLimiter.Service
  /** Initial tokens plus those refilled since, minus those of sends. */
  readonly expected: Effect.Effect<number>
  /** The number of passes neither settled nor canceled. */
  readonly open: () => number
}

const millisNow: Effect.Effect<number> = Effect.clockWith((clock) => Effect.sync(() => monotonicMillis(clock)))

/**
 * Makes a limiter that accounts for its tokens.
 *
 * @internal
 */
export const makeSteady = (options: SteadyLimiterOptions): Effect.Effect<SteadyLimiter> => {
  const { fillRate = 1, tokens = 0 } = options
  const made = makeGate({ ...options, fillRate, tokens, minFillRate: fillRate, minCapacity: Number.MAX_SAFE_INTEGER })
  return Effect.map(Effect.all([made, millisNow]), ([gate, startMillis]) => {
    const steady = new Steady(gate)
    return {
      limiter: {
        ...serviceOf(gate),
        acquire: steady.acquire,
        update: () => Effect.void,
        gate: steady
      },
      expected: Effect.map(millisNow, (now) => tokens + fillRate * (now - startMillis) / 1000 - steady.sent),
      open: () => steady.open
    }
  })
}
