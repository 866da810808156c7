import * as Effect from "effect/Effect"
import { constVoid } from "effect/Function"
import * as Layer from "effect/Layer"
import * as AdaptiveRateLimiter from "../../AdaptiveRateLimiter.ts"
import * as Cubic from "../../internal/math/cubic.ts"
import { monotonicMillis } from "../../internal/state/clock.ts"
import { checks } from "../../InvalidOption.ts"

const millisNow: Effect.Effect<number> = Effect.clockWith((clock) => Effect.sync(() => monotonicMillis(clock)))

/**
 * How a limiter for tests is made.
 *
 * @category models
 * @since 0.1.0
 */
export interface TestLimiterOptions extends AdaptiveRateLimiter.Options {
  /**
   * Begins as if the service had throttled just now and left this fill rate, in sends per second: a number of at least
   * `minFillRate`. Default: no throttle has been seen, and nothing is limited.
   */
  readonly fillRate?: number | undefined
  /** With a `fillRate`, the send tokens at the start: from 0 to the capacity that belongs to the rate. Default 0. */
  readonly tokens?: number | undefined
}

/** The limiter as a throttle leaves it that brings it to the fill rate. */
const throttledTo = (
  fillRate: number,
  now: number,
  { beta = 0.7, minCapacity = 1, minFillRate = 0.5, scaleConstant = 0.4, tokens = 0 }: TestLimiterOptions
): Cubic.Cubic => {
  const check = checks("testLimiter")
  check.between("fillRate", fillRate, minFillRate, Number.MAX_SAFE_INTEGER)
  const config = { beta, minCapacity, minFillRate, scaleConstant, smoothing: 0.8, measurementBucketSeconds: 0.5 }
  const maxTokens = Math.max(fillRate, minCapacity)
  const lastMaxRate = fillRate / beta
  return {
    ...Cubic.initial(config, now),
    enabled: true,
    tokens: check.between("tokens", tokens, 0, maxTokens),
    maxTokens,
    fillRate,
    measuredTxRate: lastMaxRate,
    lastMaxRate,
    timeWindow: Cubic.timeWindow(config, lastMaxRate),
    lastTimestamp: now
  }
}

/** Makes a limiter; throws when an option is impossible. */
const makeLimiter = (options: TestLimiterOptions): Effect.Effect<AdaptiveRateLimiter.Service> => {
  const made = AdaptiveRateLimiter.make(options)
  const { fillRate } = options
  if (fillRate === undefined) {
    if (options.tokens !== undefined) checks("testLimiter").reject("tokens", options.tokens, "given with a fillRate")
    return made
  }
  const stateAt = (now: number) => throttledTo(fillRate, now, options)
  stateAt(0)
  return Effect.flatMap(made, (limiter) =>
    Effect.clockWith((clock) =>
      Effect.sync(() => {
        // An engine begins unthrottled: only its own updates change its state, and only a test begins elsewhere.
        Reflect.set(limiter.engine ?? {}, "state", stateAt(monotonicMillis(clock) / 1000))
        return limiter
      })
    ))
}

/**
 * A limiter of its own whose state can be read with {@link limiterState}. It behaves as that of
 * `AdaptiveRateLimiter.layer`, and can begin throttled. Throws `InvalidOption` when an option is impossible.
 *
 * **Example** (Two sends a second)
 *
 * ```ts
 * const call = outcomes([ok(), ok()], { latency: "1 second" })
 * const sends = Effect.forEach([1, 2], () => attempt(call.send), { concurrency: 2 })
 * yield* sends.pipe(runToEnd, Effect.provide(testLimiter({ fillRate: 2 })))
 * call.timeline.expect("attempts at 500 ms, 1 s")
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const testLimiter = (options?: TestLimiterOptions): Layer.Layer<AdaptiveRateLimiter.AdaptiveRateLimiter> =>
  Layer.effect(AdaptiveRateLimiter.AdaptiveRateLimiter, makeLimiter(options ?? {}))

/**
 * How a limiter is made whose send tokens are all accounted for: its fill rate stands still, and its bucket has no top.
 *
 * @category models
 * @since 0.1.0
 */
export interface SteadyLimiterOptions extends Pick<AdaptiveRateLimiter.Options, "maxWaiters" | "whenExceeded"> {
  /** Sends per second, whatever the service answers: a finite number above 0. Default 1. */
  readonly fillRate?: number | undefined
  /** The send tokens at the start: a finite number of at least 0. Default 0. */
  readonly tokens?: number | undefined
}

/**
 * A limiter with the account of its tokens.
 *
 * @internal
 */
export interface SteadyLimiter {
  readonly limiter: AdaptiveRateLimiter.Service
  /** Tokens at the start and those that have flowed in since, but for those of sends that have left. */
  readonly expected: Effect.Effect<number>
}

/** Counts the sends that leave, and lets responses change nothing. */
const counting = (engine: AdaptiveRateLimiter.Engine): { left: number } => {
  const sent = { left: 0 }
  const own = { afterToken: engine.afterToken.bind(engine), putBack: engine.putBack.bind(engine) }
  engine.update = constVoid
  engine.putBack = () => {
    sent.left--
    own.putBack()
  }
  const afterToken: AdaptiveRateLimiter.Engine["afterToken"] = (use, clock, atMost) => {
    const counted: typeof use = (sends) =>
      use(() => {
        sent.left++
        sends()
      })
    return own.afterToken(counted, clock, atMost)
  }
  engine.afterToken = afterToken
  return sent
}

/**
 * Makes a limiter that keeps an account of its tokens.
 *
 * @internal
 */
export const makeSteady = (options: SteadyLimiterOptions): Effect.Effect<SteadyLimiter> => {
  const { fillRate = 1, tokens = 0 } = options
  const steady = { ...options, fillRate, tokens, minFillRate: fillRate, minCapacity: Number.MAX_SAFE_INTEGER }
  const made = Effect.all([makeLimiter(steady), millisNow])
  return Effect.map(made, ([limiter, startMillis]) => {
    const sent = limiter.engine === undefined ? { left: 0 } : counting(limiter.engine)
    const expected = Effect.map(millisNow, (now) => tokens + fillRate * (now - startMillis) / 1000 - sent.left)
    return { limiter, expected }
  })
}

/**
 * The limiter now: among others its `fillRate`, and how many sends are `waiting`.
 *
 * @category getters
 * @since 0.1.0
 */
export const limiterState: Effect.Effect<
  AdaptiveRateLimiter.Snapshot,
  never,
  AdaptiveRateLimiter.AdaptiveRateLimiter
> = AdaptiveRateLimiter.snapshot
