/**
 * The retry configuration of the AWS SDK for Kotlin, with its own names and defaults, so that a Kotlin configuration
 * can be carried over line by line.
 *
 * **Example** (A Kotlin configuration)
 *
 * ```ts
 * // retryStrategy(StandardRetryStrategy) { maxAttempts = 5; tokenBucket { refillUnitsPerSecond = 10 } }
 * const strategy = Kotlin.standardRetryStrategy({
 *   maxAttempts: 5,
 *   tokenBucket: { refillUnitsPerSecond: 10 }
 * })
 * const program = callDynamo.pipe(withRetry(strategy.policy), Effect.provide(strategy.layer))
 * ```
 *
 * One Kotlin strategy becomes two things here: the policy decides, the layer holds what calls share. Each strategy has
 * its own quota, as in Kotlin, however often its layer is provided; give two the same {@link TokenBucket} to share one.
 * Clocks cannot share state: with its own `TestClock`, each test has its own quota.
 *
 * The package's index does not export this module: import `effect-retry/aws/legacy/Kotlin`.
 *
 * **Source**: smithy-kotlin 6373a5f747, `runtime-core`, package `retries`; aws-sdk-kotlin `AwsRetryPolicy.kt`.
 *
 * @since 0.1.0
 */

import * as Duration from "effect/Duration"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Delays from "../../engine/delay.ts"
import { fromSource } from "../../engine/policy/policy.ts"
import * as Limiter from "../../gates/AdaptiveRateLimiter.ts"
import { also, checks, checksOf, flag, rejectUnknown } from "../../internal/checks.ts"
import * as codes from "../../internal/classification/errorCodes.ts"
import { isObject } from "../../internal/invalidField.ts"
import { get } from "../../internal/tryGet.ts"
import { InvalidOption } from "../../InvalidOption.ts"
import * as RetryClassifier from "../../RetryClassifier.ts"
import * as RetryInfo from "../../RetryInfo.ts"
import * as RetryPolicy from "../../RetryPolicy.ts"
import * as RetryQuota from "../../RetryQuota.ts"
import { once } from "../internal/onePerClock.ts"

/** Which of Kotlin's two sets of defaults applies. */
interface Preset {
  /**
   * The defaults of retry behavior 2.1, as with `SMITHY_NEW_RETRIES_2026=true` in Kotlin. Default `false`. A strategy's
   * setting applies to its parts, unless they set their own.
   */
  readonly useNewRetries?: boolean | undefined
}

/**
 * Options of {@link standardRetryTokenBucket}. Kotlin's numbers are whole; fractions work too.
 *
 * @category models
 * @since 0.1.0
 */
export interface StandardRetryTokenBucketConfig extends Preset {
  /**
   * Whether a retry without enough tokens is refused; with `false` it waits for the refill. Without a refill it is
   * always `true`. Default `true`.
   */
  readonly useCircuitBreakerMode?: boolean | undefined
  /** Tokens that a first attempt takes: from 0 to `maxCapacity`. Default 0. */
  readonly initialTryCost?: number | undefined
  /** Tokens added by a success of the first attempt: from 0 to `maxCapacity`. Default 1. */
  readonly initialTrySuccessIncrement?: number | undefined
  /** The maximum and initial number of tokens: a finite number of at least 1. Default 500. */
  readonly maxCapacity?: number | undefined
  /** Tokens added per second: a finite number of at least 0. Default 0. */
  readonly refillUnitsPerSecond?: number | undefined
  /**
   * Tokens that a retry takes: a finite number of at least 0, and if retries wait, at most `maxCapacity`. Default 5, in
   * 2.1 14.
   */
  readonly retryCost?: number | undefined
  /** Tokens that a retry takes after a throttle, and except in 2.1 after a transient error. Default 10, in 2.1 5. */
  readonly timeoutRetryCost?: number | undefined
}

/**
 * Options of {@link exponentialBackoffWithJitter}.
 *
 * @category models
 * @since 0.1.0
 */
export interface ExponentialBackoffWithJitterConfig extends Preset {
  /**
   * The first ceiling after a failure that is not a throttle: a finite duration of at least 0. Default 10 ms, in 2.1
   * 50.
   */
  readonly initialDelay?: Duration.Input | undefined
  /** The growth factor of the ceiling: a finite number of at least 1. Default 1.5, in 2.1 2. */
  readonly scaleFactor?: number | undefined
  /** The share of the ceiling that jitter may remove: from 0, no jitter, to 1, full jitter. Default 1. */
  readonly jitter?: number | undefined
  /** The highest ceiling: a duration of at least 0, or infinite for none. Default 20 seconds. */
  readonly maxBackoff?: Duration.Input | undefined
  /** The first ceiling after a throttle: a finite duration of at least 0. Default 1 second. */
  readonly throttlingBaseDelay?: Duration.Input | undefined
  /** How far a server's hint may lengthen the delay: a finite duration of at least 0. Default 5 seconds. */
  readonly retryAfterMaxOvershoot?: Duration.Input | undefined
}

/**
 * Options of {@link adaptiveRateLimiter}: ranges and meaning are those of `AdaptiveRateLimiter.Options`.
 *
 * @category models
 * @since 0.1.0
 */
export interface AdaptiveRateLimiterConfig {
  /**
   * The share of the rate that remains after a throttle; Kotlin's documentation calls it the share removed. Default
   * 0.7.
   */
  readonly beta?: number | undefined
  /** How long one measurement of the send rate lasts. Default half a second. */
  readonly measurementBucketDuration?: Duration.Input | undefined
  /** The least capacity of the bucket. Default 1. */
  readonly minCapacity?: number | undefined
  /** The least fill rate, per second. Default 0.5. */
  readonly minFillRate?: number | undefined
  /** How steep the CUBIC curve is. Default 0.4. */
  readonly scaleConstant?: number | undefined
  /** The weight of the latest measurement. Default 0.8. */
  readonly smoothing?: number | undefined
}

/**
 * Options of {@link standardRetryStrategy}. A part is given as its configuration or as the part itself.
 *
 * @category models
 * @since 0.1.0
 */
export interface StandardRetryStrategyConfig extends Preset {
  /** Attempts, the first included: a whole number of at least 1, or `Infinity`. Default 3. */
  readonly maxAttempts?: number | undefined
  /** The quota: a configuration, or a bucket to share. Default: its own {@link standardRetryTokenBucket}. */
  readonly tokenBucket?: StandardRetryTokenBucketConfig | TokenBucket | undefined
  /** The delays: a configuration, or any policy. Default {@link exponentialBackoffWithJitter}. */
  readonly delayProvider?: ExponentialBackoffWithJitterConfig | RetryPolicy.RetryPolicy | undefined
  /**
   * Whether a call that the quota refuses to retry is held back for its delay before it fails. Kotlin does so only for
   * operations that poll; a policy knows no operations, so set it for those that poll. Default `false`.
   */
  readonly enableLongPollingBackoff?: boolean | undefined
}

/**
 * Options of {@link adaptiveRetryStrategy}.
 *
 * @category models
 * @since 0.1.0
 */
export interface AdaptiveRetryStrategyConfig extends StandardRetryStrategyConfig {
  /** The limiter: a configuration, or a layer to share. Default: its own {@link adaptiveRateLimiter}. */
  readonly rateLimiter?: AdaptiveRateLimiterConfig | Layer.Layer<Limiter.AdaptiveRateLimiter> | undefined
}

/**
 * A quota, and what retries take from it.
 *
 * @category models
 * @since 0.1.0
 */
export interface TokenBucket {
  /** The quota: the same layer is the same quota, however often it is provided. */
  readonly layer: Layer.Layer<RetryQuota.RetryQuota>
  /** Tokens that a retry takes. */
  readonly costs: Pick<RetryPolicy.QuotaOptions, "cost" | "timeoutCost" | "throttlingCost">
}

/**
 * A policy, and the layer of the services it needs.
 *
 * @category models
 * @since 0.1.0
 */
export interface RetryStrategy<R, Err = never> {
  readonly policy: RetryPolicy.RetryPolicy<unknown, Err, R>
  readonly layer: Layer.Layer<R>
}

/**
 * Kotlin's defaults: retry behavior 2.0.
 *
 * @category constants
 * @since 0.1.0
 */
export const defaults = {
  useNewRetries: false,
  maxAttempts: 3,
  enableLongPollingBackoff: false,
  tokenBucket: {
    useNewRetries: false,
    useCircuitBreakerMode: true,
    initialTryCost: 0,
    initialTrySuccessIncrement: 1,
    maxCapacity: 500,
    refillUnitsPerSecond: 0,
    retryCost: 5,
    timeoutRetryCost: 10
  },
  delayProvider: {
    useNewRetries: false,
    initialDelay: "10 millis",
    scaleFactor: 1.5,
    jitter: 1,
    maxBackoff: "20 seconds",
    throttlingBaseDelay: "1 second",
    retryAfterMaxOvershoot: "5 seconds"
  },
  rateLimiter: {
    beta: 0.7,
    measurementBucketDuration: "500 millis",
    minCapacity: 1,
    minFillRate: 0.5,
    scaleConstant: 0.4,
    smoothing: 0.8
  }
} as const satisfies AdaptiveRetryStrategyConfig

/**
 * Kotlin's defaults with `SMITHY_NEW_RETRIES_2026`: retry behavior 2.1.
 *
 * @category constants
 * @since 0.1.0
 */
export const defaults2026 = {
  ...defaults,
  useNewRetries: true,
  tokenBucket: { ...defaults.tokenBucket, useNewRetries: true, retryCost: 14, timeoutRetryCost: 5 },
  delayProvider: { ...defaults.delayProvider, useNewRetries: true, initialDelay: "50 millis", scaleFactor: 2 }
} as const satisfies AdaptiveRetryStrategyConfig

type Check = ReturnType<typeof checks>

const presetOf = (check: Check, { useNewRetries }: Preset) =>
  flag(check, "useNewRetries", useNewRetries) ? defaults2026 : defaults

type Settled<A> = { readonly [K in keyof A]-?: Exclude<A[K], undefined> }

/** The configuration, with defaults for what it omits. */
const settled = <A extends object>(standard: Settled<A>, config: A): Settled<A> => ({
  ...standard,
  ...Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined))
})

/** Makes a part of a strategy; errors name it as a field of the strategy. */
const part = <A>(constructorName: string, name: string, config: unknown, make: () => A): A => {
  if (!isObject(config)) {
    return checks(constructorName).reject(name || "options", config, "a configuration or the part itself")
  }
  try {
    return make()
  } catch (error) {
    if (!(error instanceof InvalidOption)) throw error
    const { expected, field, value } = error
    throw new InvalidOption({ constructorName, field: name === "" ? field : `${name}.${field}`, expected, value })
  }
}

/**
 * Makes the token bucket of a strategy.
 *
 * **Details**
 *
 * | field | here |
 * | --- | --- |
 * | `maxCapacity` | `capacity` of the quota, and its initial balance |
 * | `refillUnitsPerSecond` | `refillPerSecond`: to the millisecond, fractions kept; Kotlin adds whole tokens and drops
 * the rest |
 * | `useCircuitBreakerMode` | `onExceeded`: `true` is `"stop"`, `false` is `"wait"`; without a refill always `"stop"` |
 * | `initialTryCost` | `firstAttemptCost`: a refused attempt fails with `QuotaExhausted`, Kotlin's
 * `RetryCapacityExceededException` |
 * | `initialTrySuccessIncrement` | `successIncrement` |
 * | `retryCost` | `cost`, and in 2.1 `timeoutCost` |
 * | `timeoutRetryCost` | `throttlingCost`, and in 2.0 `timeoutCost` |
 *
 * Waiting retries are served first come, first served, as soon as the tokens are available. Kotlin waits whole seconds,
 * holds a lock meanwhile, and then drops what else was refilled.
 *
 * A transient error is one whose facts say `timeout`: client timeouts with the default classifier; with
 * {@link awsRetryPolicy}, everything Kotlin considers transient.
 *
 * Throws `InvalidOption` when an option is invalid.
 *
 * @category constructors
 * @since 0.1.0
 */
export const standardRetryTokenBucket = (config: StandardRetryTokenBucketConfig = {}): TokenBucket => {
  const check = checksOf("Kotlin.standardRetryTokenBucket", config)
  const { tokenBucket, useNewRetries } = presetOf(check, config)
  const valid = settled<StandardRetryTokenBucketConfig>(tokenBucket, config)
  const breaks = flag(check, "useCircuitBreakerMode", valid.useCircuitBreakerMode)
  const capacity = check.between("maxCapacity", valid.maxCapacity, 1, Number.MAX_SAFE_INTEGER)
  const options: RetryQuota.Options = {
    capacity,
    refillPerSecond: check.amount("refillUnitsPerSecond", valid.refillUnitsPerSecond),
    firstAttemptCost: check.between("initialTryCost", valid.initialTryCost, 0, capacity),
    successIncrement: check.between("initialTrySuccessIncrement", valid.initialTrySuccessIncrement, 0, capacity),
    onExceeded: breaks || valid.refillUnitsPerSecond === 0 ? "stop" : "wait"
  }
  // An amount above the capacity would wait forever.
  const costOf = (field: "retryCost" | "timeoutRetryCost"): number =>
    options.onExceeded === "wait"
      ? check.between(field, valid[field], 0, capacity)
      : check.amount(field, valid[field])
  const cost = costOf("retryCost")
  const throttlingCost = costOf("timeoutRetryCost")
  rejectUnknown(check, config)
  return {
    layer: once(RetryQuota.RetryQuota, RetryQuota.make(options)),
    costs: { cost, throttlingCost, timeoutCost: useNewRetries ? cost : throttlingCost }
  }
}

/**
 * The bucket that never runs out.
 *
 * @category constants
 * @since 0.1.0
 */
export const infiniteTokenBucket: TokenBucket = { layer: RetryQuota.layerUnlimited, costs: { cost: 0 } }

/**
 * Waits `ceiling * (1 - removed)` before retry `n`, from 1, in whole milliseconds, rounded down:
 * `ceiling = min(base * scaleFactor^(n - 1), maxBackoff)`, `removed` uniform in `[0, jitter)`, with one `base` for
 * throttles and another for other failures. Never stops.
 *
 * **Details**
 *
 * A server's hint is followed within `[delay, delay + retryAfterMaxOvershoot]`, in 2.0 and in 2.1: Kotlin's changelog
 * says it is part of 2.1, but its code checks no flag. The hint is any in the facts; Kotlin reads only
 * `x-amz-retry-after`. Throws `InvalidOption` when an option is invalid.
 *
 * @category constructors
 * @since 0.1.0
 */
export const exponentialBackoffWithJitter = (
  config: ExponentialBackoffWithJitterConfig = {}
): RetryPolicy.RetryPolicy => {
  const tag = "Kotlin.exponentialBackoffWithJitter"
  const check = checksOf(tag, config)
  const { delayProvider, useNewRetries } = presetOf(checks(tag), config)
  check.names.add("useNewRetries")
  const valid = settled<ExponentialBackoffWithJitterConfig>(delayProvider, config)
  const base = check.duration("initialDelay", valid.initialDelay)
  const factor = check.between("scaleFactor", valid.scaleFactor, 1, Number.MAX_VALUE)
  const share = check.between("jitter", valid.jitter, 0, 1)
  const cap = capOf(check, valid.maxBackoff)
  const throttlingBase = check.duration("throttlingBaseDelay", valid.throttlingBaseDelay)
  const overshoot = check.duration("retryAfterMaxOvershoot", valid.retryAfterMaxOvershoot)
  rejectUnknown(check, config)
  check.input.useNewRetries = useNewRetries
  // The given options, without the defaults.
  const input = Object.fromEntries(
    Object.entries(check.input).filter(([field]) => config[field as keyof typeof config] !== undefined)
  )
  return fromSource(tag, input, ({ info, random, step }) => {
    const ceiling = Math.min(cap, Delays.exponential(info?.throttling ? throttlingBase : base, factor)(step))
    const delay = share === 0 ? ceiling : ceiling * (1 - share * random.nextDoubleUnsafe())
    const whole = Math.trunc(delay)
    if (info?.retryAfter === undefined) return whole
    return Math.max(whole, Math.min(Duration.toMillis(info.retryAfter), Math.trunc(delay + overshoot)))
  })
}

const capOf = (check: Check, maxBackoff: Duration.Input): number => {
  check.names.add("maxBackoff")
  const duration = Option.getOrUndefined(Duration.fromInput(maxBackoff))
  if (duration === undefined || Duration.toMillis(duration) !== Infinity) {
    return check.duration("maxBackoff", maxBackoff)
  }
  check.input.maxBackoff = "Infinity"
  return Infinity
}

/**
 * A layer with the limiter of adaptive mode, whose sends wait for their turn: the same layer is the same limiter,
 * however often it is provided. Throws `InvalidOption` when an option is invalid.
 *
 * **Details**
 *
 * It measures on the grid of half seconds that the AWS reference prescribes; Kotlin measures from its last measurement.
 * At most 100,000 sends wait, further ones fail with `RateLimitExceeded`; Kotlin has no such bound.
 *
 * @category layers
 * @since 0.1.0
 */
export const adaptiveRateLimiter = (
  config: AdaptiveRateLimiterConfig = {}
): Layer.Layer<Limiter.AdaptiveRateLimiter> => {
  return part("Kotlin.adaptiveRateLimiter", "", config, () => {
    const { beta, measurementBucketDuration, minCapacity, minFillRate, scaleConstant, smoothing } = config
    const options = { beta, measurementBucketDuration, minCapacity, minFillRate, scaleConstant, smoothing }
    const check = checks("Kotlin.adaptiveRateLimiter")
    also(check, ...Object.keys(options))
    return rejectUnknown(check, config, once(Limiter.AdaptiveRateLimiter, Limiter.make(options)))
  })
}

const bucketOf = (
  constructorName: string,
  { tokenBucket = {}, useNewRetries }: StandardRetryStrategyConfig
): TokenBucket =>
  part(constructorName, "tokenBucket", tokenBucket, () =>
    "layer" in tokenBucket
      ? tokenBucket
      : standardRetryTokenBucket({ ...tokenBucket, useNewRetries: tokenBucket.useNewRetries ?? useNewRetries }))

const delaysOf = (
  constructorName: string,
  { delayProvider = {}, useNewRetries }: StandardRetryStrategyConfig
): RetryPolicy.RetryPolicy =>
  RetryPolicy.isRetryPolicy(delayProvider)
    ? delayProvider
    : part(constructorName, "delayProvider", delayProvider, () =>
      exponentialBackoffWithJitter({ ...delayProvider, useNewRetries: delayProvider.useNewRetries ?? useNewRetries }))

const limiterOf = (
  constructorName: string,
  { rateLimiter = {} }: AdaptiveRetryStrategyConfig
): Layer.Layer<Limiter.AdaptiveRateLimiter> =>
  part(constructorName, "rateLimiter", rateLimiter, () =>
    Layer.isLayer(rateLimiter)
      ? rateLimiter as Layer.Layer<Limiter.AdaptiveRateLimiter>
      : adaptiveRateLimiter(rateLimiter as AdaptiveRateLimiterConfig))

const strategyOf = (
  constructorName: string,
  config: StandardRetryStrategyConfig
): RetryStrategy<RetryQuota.RetryQuota> => {
  const check = checksOf(constructorName, config)
  const preset = presetOf(check, config)
  const { enableLongPollingBackoff = preset.enableLongPollingBackoff, maxAttempts = preset.maxAttempts } = config
  const longPolling = flag(check, "enableLongPollingBackoff", enableLongPollingBackoff)
  also(check, "maxAttempts", "tokenBucket", "delayProvider", "rateLimiter")
  rejectUnknown(check, config)
  const { costs, layer } = bucketOf(constructorName, config)
  const policy = delaysOf(constructorName, config).pipe(
    RetryPolicy.maxAttempts(check.count("maxAttempts", maxAttempts, 1)),
    RetryPolicy.whileRetryable,
    RetryPolicy.quotaGated({ ...costs, longPolling })
  )
  return { policy, layer }
}

/**
 * Makes Kotlin's standard mode: a policy, and the layer of its quota. Throws `InvalidOption`, naming the field, such as
 * `tokenBucket.maxCapacity`, when an option is invalid.
 *
 * **Details**
 *
 * The classifier decides what is retried, as the retry policy does in Kotlin: {@link awsRetryPolicy} is that of AWS.
 * When retrying stops, the call fails with the error of the last attempt, as in Kotlin; the stop reason says why.
 *
 * **Gotchas**
 *
 * Each call makes a new quota: keep the strategy in a constant.
 *
 * @category constructors
 * @since 0.1.0
 */
export const standardRetryStrategy = (
  config: StandardRetryStrategyConfig = {}
): RetryStrategy<RetryQuota.RetryQuota> => strategyOf("Kotlin.standardRetryStrategy", config)

/**
 * Makes Kotlin's adaptive mode: {@link standardRetryStrategy}, with a limiter that holds back every send once the
 * service has throttled. The layer provides both services.
 *
 * @category constructors
 * @since 0.1.0
 */
export const adaptiveRetryStrategy = (
  config: AdaptiveRetryStrategyConfig = {}
): RetryStrategy<RetryQuota.RetryQuota | Limiter.AdaptiveRateLimiter, Limiter.RateLimitExceeded> => {
  const { layer, policy } = strategyOf("Kotlin.adaptiveRetryStrategy", config)
  const limiter = limiterOf("Kotlin.adaptiveRetryStrategy", config)
  return { policy: RetryPolicy.requires(policy, Limiter.AdaptiveRateLimiter), layer: Layer.merge(layer, limiter) }
}

/** Represents Kotlin's error type `Transient`. */
const asTransient = (info: RetryInfo.RetryInfo): RetryInfo.RetryInfo =>
  info.throttling || info.safety === "No" ? info : { ...info, timeout: true }

/** Errors that carry facts: service errors (`ServerSide`, `ClientSide`) by their fault, otherwise `Transient`. */
const carried: RetryClassifier.RetryClassifier = (error) =>
  Option.map(RetryInfo.fromError(error), (info) => info.fault === "other" ? asTransient(info) : info)

const transientCodes = /* @__PURE__ */ new Set<unknown>([...codes.awsTransientCodes, "IDPCommunicationError"])

const transientCode = (error: unknown): boolean =>
  transientCodes.has(get(error, "name")) || transientCodes.has(get(error, "Code"))

const transientStatus = (error: unknown): boolean =>
  codes.awsTransientStatuses.has(get(get(error, "$metadata"), "httpStatusCode") as number)

/** Errors that the service's model calls retryable, and whose code and status say nothing more. */
const modelled: RetryClassifier.RetryClassifier = (error) =>
  get(error, "$retryable") === undefined || transientCode(error) || transientStatus(error)
    ? Option.none()
    : RetryClassifier.aws(error)

/** The default classifier without causes, and the one code it does not know. */
const others = /* @__PURE__ */ RetryClassifier.chain([
  RetryClassifier.effectErrors,
  RetryClassifier.aws,
  (error) => transientCode(error) ? Option.some(RetryInfo.transient) : Option.none(),
  RetryClassifier.httpStatus,
  RetryClassifier.network,
  RetryClassifier.grpc
])

/**
 * Kotlin's `AwsRetryPolicy` as a classifier: distinguishes what Kotlin's token bucket charges differently.
 *
 * **Details**
 *
 * | Kotlin | here | errors |
 * | --- | --- | --- |
 * | `Throttling` | `throttling` | the throttling codes, and a bare 429, which Kotlin does not retry |
 * | `Transient` | `timeout` | `RequestTimeout`, `RequestTimeoutException`, `IDPCommunicationError`, the statuses 500, 502, 503 and 504, network failures, and all others |
 * | `ServerSide`, `ClientSide` | neither | errors whose own facts say that server or client is at fault; the
 * `$retryable` trait with no such code or status |
 *
 * Otherwise it is the default chain.
 *
 * **Gotchas**
 *
 * With it, every transient error counts as `timeout`, for other kinds of policies too.
 *
 * **Example** (As in AWS service clients)
 *
 * ```ts
 * const layer = Layer.merge(strategy.layer, RetryClassifier.layer(Kotlin.awsRetryPolicy))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const awsRetryPolicy: RetryClassifier.RetryClassifier = /* @__PURE__ */ RetryClassifier.followingCause(
  /* @__PURE__ */ RetryClassifier.chain([carried, modelled, (error) => Option.map(others(error), asTransient)])
)
