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
 * One Kotlin strategy becomes two things here: the policy decides, the layer holds what calls share. Like
 * `RetryQuota.layer`, provide it once per resource.
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
import { also, type Checks, checks, checksOf } from "../../internal/checks.ts"
import * as codes from "../../internal/classification/errorCodes.ts"
import { statusOf } from "../../internal/classification/wire.ts"
import { isObject } from "../../internal/invalidField.ts"
import * as Options from "../../internal/options.ts"
import { get, look } from "../../internal/tryGet.ts"
import * as RetryClassifier from "../../RetryClassifier.ts"
import * as RetryInfo from "../../RetryInfo.ts"
import * as RetryPolicy from "../../RetryPolicy.ts"
import * as RetryQuota from "../../RetryQuota.ts"
import { asTimeout } from "../internal/classifiers.ts"

/** Which of Kotlin's two sets of defaults applies. */
interface Preset {
  /**
   * The defaults of retry behavior 2.1, as with `SMITHY_NEW_RETRIES_2026=true` in Kotlin. Default `false`. A strategy's
   * setting applies to its parts, unless they set their own.
   */
  readonly useNewRetries?: boolean | undefined
}

/**
 * Options of the token bucket. Kotlin's numbers are whole; fractions work too.
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
 * Options of {@link standardRetryStrategy}.
 *
 * @category models
 * @since 0.1.0
 */
export interface StandardRetryStrategyConfig extends Preset {
  /** Attempts, the first included: a whole number of at least 1, or `Infinity`. Default 3. */
  readonly maxAttempts?: number | undefined
  /** The quota. */
  readonly tokenBucket?: StandardRetryTokenBucketConfig | undefined
  /** The delays: those of {@link exponentialBackoffWithJitter}. */
  readonly delayProvider?: ExponentialBackoffWithJitterConfig | undefined
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
  /**
   * The limiter, whose settings and defaults are Kotlin's. `beta` is the share of the rate that remains after a
   * throttle; Kotlin's documentation calls it the share removed.
   */
  readonly rateLimiter?: Limiter.Options | undefined
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

/** The defaults that differ. */
const classic = { initialDelay: 10, scaleFactor: 1.5, retryCost: 5, timeoutRetryCost: 10 }
const new2026 = { initialDelay: 50, scaleFactor: 2, retryCost: 14, timeoutRetryCost: 5 }

/** The checks of a part of a strategy. */
const partOf = (check: Checks, name: string, config: object): Checks =>
  isObject(config) ? checks(check.tag, `${name}.`) : check.reject(name, config, "an object")

/** The layer of the quota, and what retries take from it. */
const bucketOf = (check: Checks, config: StandardRetryTokenBucketConfig, ofStrategy: boolean) => {
  const { maxCapacity, refillUnitsPerSecond, useCircuitBreakerMode, useNewRetries } = Options.readOptions(check, {
    useNewRetries: Options.flag(ofStrategy),
    useCircuitBreakerMode: Options.flag(true),
    maxCapacity: Options.between(1, Number.MAX_SAFE_INTEGER, 500),
    refillUnitsPerSecond: Options.amount(0)
  }, config)
  const waits = !useCircuitBreakerMode && refillUnitsPerSecond > 0
  // An amount above the capacity would wait forever.
  const most = waits ? maxCapacity : Number.MAX_VALUE
  const preset = useNewRetries ? new2026 : classic
  const { retryCost: cost, timeoutRetryCost: throttlingCost, ...first } = Options.validOptions(check, {
    retryCost: Options.between(0, most, preset.retryCost),
    timeoutRetryCost: Options.between(0, most, preset.timeoutRetryCost),
    initialTryCost: Options.between(0, maxCapacity, 0),
    initialTrySuccessIncrement: Options.between(0, maxCapacity, 1)
  }, config)
  const layer = RetryQuota.layer({
    capacity: maxCapacity,
    refillPerSecond: refillUnitsPerSecond,
    firstAttemptCost: first.initialTryCost,
    successIncrement: first.initialTrySuccessIncrement,
    onExceeded: waits ? "wait" : "stop"
  })
  return { layer, costs: { cost, throttlingCost, timeoutCost: useNewRetries ? cost : throttlingCost } }
}

const isInfinite = (duration: Duration.Input | undefined): boolean =>
  look(() => Duration.toMillis(Duration.fromInputUnsafe(duration!))) === Infinity

/** A finite duration of at least 0, or infinite for no cap. */
const capOption: Options.Option<"duration", Duration.Input, number> = {
  kind: "duration",
  read: (check, field, value) =>
    isInfinite(value) ? check.count(field, Infinity, 0) : check.duration(field, value, 20_000)
}

const delaysOf = (
  check: Checks,
  config: ExponentialBackoffWithJitterConfig,
  ofStrategy?: boolean
): RetryPolicy.RetryPolicy => {
  const { useNewRetries = ofStrategy } = config
  const preset = useNewRetries ? new2026 : classic
  const { jitter = 1, scaleFactor = preset.scaleFactor, ...millis } = Options.validOptions(check, {
    initialDelay: Options.duration(preset.initialDelay),
    scaleFactor: Options.optional(Options.factor(preset.scaleFactor)),
    jitter: Options.optional(Options.share(1)),
    maxBackoff: capOption,
    throttlingBaseDelay: Options.duration(1000),
    retryAfterMaxOvershoot: Options.duration(5000),
    useNewRetries: Options.flag(useNewRetries)
  }, config)
  const ceiling = Delays.exponential(millis.initialDelayMillis, scaleFactor)
  const throttledCeiling = Delays.exponential(millis.throttlingBaseDelayMillis, scaleFactor)
  const withHint = Delays.honoring(Infinity, millis.retryAfterMaxOvershootMillis, false)
  return fromSource("Kotlin.exponentialBackoffWithJitter", check.input, (failing) => {
    const { info, random, step } = failing
    const most = Math.min(millis.maxBackoffMillis, info?.throttling ? throttledCeiling(step) : ceiling(step))
    return withHint(Math.trunc(most * (1 - jitter * random.nextDoubleUnsafe())), failing)
  })
}

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
): RetryPolicy.RetryPolicy => delaysOf(checksOf("Kotlin.exponentialBackoffWithJitter", config), config)

const strategyOptions = {
  useNewRetries: Options.flag(),
  maxAttempts: Options.count(1, 3),
  tokenBucket: Options.inCode,
  delayProvider: Options.inCode,
  enableLongPollingBackoff: Options.flag()
}

const strategyOf = (
  constructorName: string,
  config: StandardRetryStrategyConfig,
  ...others: ReadonlyArray<string>
): RetryStrategy<RetryQuota.RetryQuota> => {
  const check = checksOf(constructorName, config)
  also(check, ...others)
  const valid = Options.validOptions(check, strategyOptions, config)
  const { enableLongPollingBackoff: longPolling, maxAttempts, useNewRetries } = valid
  const { delayProvider = {}, tokenBucket = {} } = config
  const { costs, layer } = bucketOf(partOf(check, "tokenBucket", tokenBucket), tokenBucket, useNewRetries)
  const delays = delaysOf(partOf(check, "delayProvider", delayProvider), delayProvider, useNewRetries)
  const policy = delays.pipe(
    RetryPolicy.maxAttempts(maxAttempts),
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
 * **Details**
 *
 * The limiter measures on the grid of half seconds that the AWS reference prescribes; Kotlin measures from its last
 * measurement. At most 100,000 sends wait, further ones fail with `RateLimitExceeded`; Kotlin has no such bound.
 *
 * @category constructors
 * @since 0.1.0
 */
export const adaptiveRetryStrategy = (
  config: AdaptiveRetryStrategyConfig = {}
): RetryStrategy<RetryQuota.RetryQuota | Limiter.AdaptiveRateLimiter, Limiter.RateLimitExceeded> => {
  const { layer, policy } = strategyOf("Kotlin.adaptiveRetryStrategy", config, "rateLimiter")
  return {
    policy: RetryPolicy.requires(policy, Limiter.AdaptiveRateLimiter),
    layer: Layer.merge(layer, Limiter.layer(config.rateLimiter))
  }
}

/** Represents Kotlin's error type `Transient`. */
const asTransient = (info: RetryInfo.RetryInfo): RetryInfo.RetryInfo => asTimeout(info, true)

/** Errors that carry facts: service errors (`ServerSide`, `ClientSide`) by their fault, otherwise `Transient`. */
const carried: RetryClassifier.RetryClassifier = (error) =>
  Option.map(RetryInfo.fromError(error), (info) => info.fault === "other" ? asTransient(info) : info)

const transientCodes = /* @__PURE__ */ new Set<unknown>([...codes.awsTransientCodes, "IDPCommunicationError"])

const hasTransientCode = (error: unknown): boolean => codes.codesOf(error).some((code) => transientCodes.has(code))

/** Errors that the service's model calls retryable, and whose code and status say nothing more. */
const modelled: RetryClassifier.RetryClassifier = (error) => {
  const isTransient = hasTransientCode(error) || codes.awsTransientStatuses.has(statusOf(error)!)
  return isTransient || get(error, "$retryable") === undefined ? Option.none() : RetryClassifier.aws(error)
}

/** The default classifier without causes, and the one code it does not know. */
const others = /* @__PURE__ */ RetryClassifier.chain([
  RetryClassifier.effectErrors,
  RetryClassifier.aws,
  (error) => hasTransientCode(error) ? Option.some(RetryInfo.transient) : Option.none(),
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
