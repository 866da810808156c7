/**
 * A Schema of each error of the library, so that RPC, workflows and the cluster can carry it.
 *
 * Each is named after its error. It decodes to an instance of the error's class, and encodes to JSON. Not here are errors
 * that are Schemas already (those of `RetryPropagationRpc`, and `NotSent` of `RetryWorkflow`), and those of the test kit.
 *
 * **Example** (The error of a procedure)
 *
 * ```ts
 * import * as Schemas from "effect-retry/schemas"
 * import * as Rpc from "effect/rpc/Rpc"
 * const Latest = Rpc.make("Latest", { success: Schema.String, error: Schemas.RateLimitExceeded })
 * ```
 *
 * @since 0.1.0
 */

import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as AwsSdk from "../aws/AwsSdk.ts"
import * as BotocoreLegacy from "../aws/legacy/BotocoreLegacy.ts"
import * as RetryStrategy from "../aws/RetryStrategy.ts"
import * as SharedConfig from "../aws/SharedConfig.ts"
import * as Waiter from "../drivers/Waiter.ts"
import * as AdaptiveRateLimiter from "../gates/AdaptiveRateLimiter.ts"
import * as CircuitBreakerGate from "../gates/CircuitBreakerGate.ts"
import * as ClientThrottle from "../gates/ClientThrottle.ts"
import * as ConcurrencyLimiter from "../gates/ConcurrencyLimiter.ts"
import * as CoolDown from "../gates/CoolDown.ts"
import * as TokenLimiter from "../gates/TokenLimiter.ts"
import * as RetryPropagation from "../http/RetryPropagation.ts"
import { render } from "../internal/format.ts"
import * as Options from "../InvalidOption.ts"
import { Stop, stopReasons } from "../RetryDecision.ts"
import * as RetryInfo from "../RetryInfo.ts"
import * as RetryQuota from "../RetryQuota.ts"
import * as Chaos from "../testing/Chaos.ts"

/**
 * The Schema of an error.
 *
 * @category models
 * @since 0.1.0
 */
export type ErrorSchema<Self, RD = never, RE = never> = Schema.Codec<Self, Schema.Json, RD, RE>

/** The Schema of a class by its fields. */
const classOf = <Self, const Fields extends Schema.Struct.Fields>(
  Class: abstract new(...args: any) => Self,
  fields: Fields,
  make: (fields: Schema.Struct.Type<Fields>) => Self,
  read: (self: Self) => Schema.Struct.Type<Fields>
): ErrorSchema<Self, Schema.Struct.DecodingServices<Fields>, Schema.Struct.EncodingServices<Fields>> =>
  Schema.toCodecJson(Schema.Struct(fields)).pipe(
    Schema.decodeTo(
      Schema.instanceOf(Class, { expected: Class.name }),
      SchemaTransformation.transform({ decode: make, encode: read })
    )
  )

/** The Schema of an error by its fields, which are those of its constructor. */
const errorOf = <Self extends Schema.Struct.Type<Fields>, const Fields extends Schema.Struct.Fields>(
  Class: new(fields: Schema.Struct.Type<Fields>) => Self,
  fields: Fields
): ErrorSchema<Self, Schema.Struct.DecodingServices<Fields>, Schema.Struct.EncodingServices<Fields>> => {
  const tag: string = Class.prototype.name
  const names = Object.keys(fields) as Array<keyof Self & string>
  return classOf<Self, Schema.Struct.Fields>(
    Class,
    { _tag: Schema.tag(tag), ...fields },
    ({ _tag, ...fields }) => new Class(fields as Schema.Struct.Type<Fields>),
    (error) => ({ _tag: tag, ...Object.fromEntries(names.map((name) => [name, error[name]])) })
  ) as ErrorSchema<Self, never, never>
}

/** What a message shows of a value that has no JSON, or might show too much in it. */
class Shown {
  constructor(readonly text: string) {}
  toString(): string {
    return this.text
  }
}

const numbers = ["NaN", "Infinity", "-Infinity"]

const Text = Schema.Struct({ shown: Schema.String })

/** Any value: text, a number, a boolean and `null` as they are, of others what a message shows. */
const Value = Schema.Union([Schema.String, Schema.Finite, Schema.Boolean, Schema.Null, Text]).pipe(
  Schema.decodeTo(
    Schema.Unknown,
    SchemaTransformation.transform<unknown, string | number | boolean | null | typeof Text.Type>({
      decode: (json) => {
        if (typeof json !== "object" || json === null) return json
        if (json.shown === "undefined") return undefined
        return numbers.includes(json.shown) ? Number(json.shown) : new Shown(json.shown)
      },
      encode: (value) => {
        const isPlain = value === null || typeof value === "string" || typeof value === "boolean" ||
          typeof value === "number" && Number.isFinite(value)
        return isPlain ? value as string : { shown: render(value) }
      }
    })
  )
)

/** Why a gate refuses a send, and when to try again. */
const refusal = <const Reasons extends ReadonlyArray<string>>(...reasons: Reasons) => ({
  reason: Schema.Literals(reasons),
  retryAfter: Schema.Duration
})

const OptionalDuration = Schema.UndefinedOr(Schema.Duration)

/**
 * `InvalidOption` of `effect-retry/InvalidOption`. Of a value that is an object, an array or a function, the JSON has what
 * the message shows, such as `"an object"`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const InvalidOption = errorOf(Options.InvalidOption, {
  constructorName: Schema.String,
  field: Schema.String,
  value: Value,
  expected: Schema.String
})

/**
 * `QuotaExhausted` of `effect-retry/RetryQuota`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const QuotaExhausted = errorOf(RetryQuota.QuotaExhausted, {
  cost: Schema.Number,
  balance: Schema.Number
})

/**
 * `RateLimitExceeded` of `effect-retry/AdaptiveRateLimiter`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const RateLimitExceeded = errorOf(AdaptiveRateLimiter.RateLimitExceeded, refusal("no-token", "queue-full"))

/**
 * `ConcurrencyLimitExceeded` of `effect-retry/ConcurrencyLimiter`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ConcurrencyLimitExceeded = errorOf(ConcurrencyLimiter.ConcurrencyLimitExceeded, {
  reason: Schema.Literals(["full", "queue-full", "timing-out"]),
  limit: Schema.Number
})

/**
 * `TokenLimitExceeded` of `effect-retry/TokenLimiter`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const TokenLimitExceeded = errorOf(TokenLimiter.TokenLimitExceeded, refusal("exceeded", "queue-full"))

/**
 * `ClientThrottled` of `effect-retry/ClientThrottle`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ClientThrottled = errorOf(ClientThrottle.ClientThrottled, { rejection: Schema.Number })

/**
 * `CoolingDown` of `effect-retry/CoolDown`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const CoolingDown = errorOf(CoolDown.CoolingDown, refusal("closed", "queue-full"))

/** What the store of a circuit says goes on, what it had from its driver does not. */
const Refusing = classOf(
  CircuitBreaker.CircuitBreakerError,
  {
    reason: Schema.Union([
      CircuitBreaker.CircuitOpen,
      CircuitBreaker.CircuitHalfOpen,
      CircuitBreaker.CircuitBreakerStoreError
    ])
  },
  ({ reason }) => new CircuitBreaker.CircuitBreakerError({ reason }),
  ({ reason }) => ({
    reason: reason._tag === "CircuitBreakerStoreError"
      ? new CircuitBreaker.CircuitBreakerStoreError({ message: reason.message })
      : reason
  })
)

/**
 * `CircuitRefused` of `effect-retry/CircuitBreakerGate`. Of a store that fails, the JSON has the message, not the cause.
 *
 * @category schemas
 * @since 0.1.0
 */
export const CircuitRefused = errorOf(CircuitBreakerGate.CircuitRefused, {
  key: Schema.String,
  reason: Schema.Literals(["CircuitOpen", "CircuitHalfOpen", "CircuitBreakerStoreError"]),
  retryAfter: OptionalDuration,
  cause: Refusing
})

/**
 * `DeadlineExceeded` of `effect-retry/RetryPropagation`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const DeadlineExceeded = errorOf(RetryPropagation.DeadlineExceeded, {
  after: Schema.Duration
})

/**
 * `ChaosFailure` of `effect-retry/Chaos`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ChaosFailure = errorOf(Chaos.ChaosFailure, { name: Schema.String, send: Schema.Number })

/**
 * `InvalidToken` of `effect-retry/RetryStrategy`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const InvalidToken = errorOf(RetryStrategy.InvalidToken, {
  reason: Schema.Literals(["foreign", "used"])
})

const Facts = Schema.Struct({
  safety: Schema.Literals(["Yes", "No", "Maybe"]),
  throttling: Schema.Boolean,
  timeout: Schema.Boolean,
  fault: Schema.Literals(["client", "server", "other"]),
  retryAfter: OptionalDuration,
  vetoed: Schema.Boolean
})

const Stopped = classOf(
  Stop,
  {
    reason: Schema.Literals(stopReasons),
    attempts: Schema.Number,
    delay: Schema.Number,
    gate: Schema.UndefinedOr(Schema.String),
    info: Schema.UndefinedOr(Facts)
  },
  ({ attempts, delay, gate, info, reason }) => {
    const facts = info && RetryInfo.make(info)
    return new Stop(
      { attempt: attempts, gate, info: info?.vetoed ? { ...facts!, vetoed: true } : facts },
      reason,
      delay
    )
  },
  ({ attempts, delayMillis: delay, gate, info, reason }) => {
    const facts = info && { ...info, vetoed: info.vetoed === true }
    return { reason, attempts, delay, gate, info: facts }
  }
)

/**
 * `RetryRefused` of `effect-retry/RetryStrategy`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const RetryRefused = errorOf(RetryStrategy.RetryRefused, { stop: Stopped })

/**
 * `WaiterFailed` of `effect-retry/Waiter`, by the Schemas of what a poll succeeds and fails with: its outcome is in the
 * JSON as they encode it.
 *
 * @category schemas
 * @since 0.1.0
 */
export const WaiterFailed = <A extends Schema.Constraint, E extends Schema.Constraint>(success: A, failure: E) =>
  errorOf(Waiter.WaiterFailed<A["Type"], E["Type"]>, {
    matched: Schema.Boolean,
    reason: Schema.UndefinedOr(Schema.String),
    attempts: Schema.Number,
    elapsed: Schema.Duration,
    outcome: Schema.Result(success, failure)
  })

/**
 * `WaiterTimedOut` of `effect-retry/Waiter`, by the Schemas of what a poll succeeds and fails with: its last outcome is
 * in the JSON as they encode it.
 *
 * @category schemas
 * @since 0.1.0
 */
export const WaiterTimedOut = <A extends Schema.Constraint, E extends Schema.Constraint>(success: A, failure: E) =>
  errorOf(Waiter.WaiterTimedOut<A["Type"], E["Type"]>, {
    reason: Schema.Literals(["time", "delays"]),
    maxWait: Schema.Duration,
    attempts: Schema.Number,
    elapsed: Schema.Duration,
    last: Schema.UndefinedOr(Schema.Result(success, failure))
  })

/**
 * `StreamUsed` of `effect-retry/AwsSdk`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const StreamUsed = errorOf(AwsSdk.StreamUsed, { command: Schema.String })

/**
 * `AwsConfigError` of `effect-retry/aws/SharedConfig`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const AwsConfigError = errorOf(SharedConfig.AwsConfigError, {
  at: Schema.String,
  value: Schema.UndefinedOr(Schema.Union([Schema.String, Schema.Finite])),
  problem: Schema.String
})

/**
 * `BotocoreLegacyError` of `effect-retry/aws/legacy/BotocoreLegacy`. A symbol in its path is in the JSON as text.
 *
 * @category schemas
 * @since 0.1.0
 */
export const BotocoreLegacyError = errorOf(BotocoreLegacy.BotocoreLegacyError, {
  path: Schema.Array(Schema.PropertyKey),
  value: Value,
  problem: Schema.String
})

/**
 * `ChecksumError` of `effect-retry/aws/legacy/BotocoreLegacy`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ChecksumError = errorOf(BotocoreLegacy.ChecksumError, {
  header: Schema.String,
  expected: Schema.Number,
  actual: Schema.Number
})
