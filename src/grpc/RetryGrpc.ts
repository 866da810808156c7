/**
 * Retrying gRPC calls: of grpc-js, nice-grpc, Connect and grpc-web.
 *
 * No client is imported here: calls, metadata and errors are known by their shape, so any version works, and none has to
 * be installed.
 *
 * **Source**: gRPC proposal A6, "gRPC Retry Design"; Google's AIP-194, "Automatic retry configuration".
 *
 * @since 0.1.0
 */

import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import { adjusted, hintTooLong } from "../engine/delay.ts"
import { type HedgeOptions, hedging } from "../engine/hedge.ts"
import { combinator } from "../engine/policy/policy.ts"
import { CurrentSend, Hedge, validatedCall } from "../Hedge.ts"
import { checks } from "../internal/checks.ts"
import { clockOf } from "../internal/clock.ts"
import * as codes from "../internal/facts/codes.ts"
import * as Hint from "../internal/facts/grpcHint.ts"
import { grpcTimeout, headersIn, remainingIn } from "../internal/onward.ts"
import { get } from "../internal/safe.ts"
import * as RetryClassifier from "../RetryClassifier.ts"
import { isRetry } from "../RetryDecision.ts"
import * as RetryInfo from "../RetryInfo.ts"
import type { RetryPolicy } from "../RetryPolicy.ts"

/**
 * The error of a failed call, as far as it is read here.
 *
 * @category models
 * @since 0.1.0
 */
export interface GrpcError extends Error {
  /** The status: 1 (`CANCELLED`) to 16 (`UNAUTHENTICATED`). */
  readonly code: number
  /** What the server, or the client itself, says about it. */
  readonly details: string
  /** The trailing metadata. */
  readonly metadata: unknown
}

/**
 * What is known of the methods that are called.
 *
 * @category models
 * @since 0.1.0
 */
export interface Method {
  /** Whether a method that is carried out twice has the effect of once, as in its `idempotency_level`. */
  readonly idempotent: boolean
}

/**
 * Facts about gRPC errors, for any method: {@link RetryClassifier.grpc}, which the default chain asks too.
 *
 * @category constructors
 * @since 0.1.0
 */
export const classifier: RetryClassifier.RetryClassifier = RetryClassifier.grpc

/**
 * Facts about gRPC errors, for methods of which more is known.
 *
 * **Details**
 *
 * An idempotent method may run again whatever became of it: `DEADLINE_EXCEEDED` is safe to retry. Of any other
 * `UNAVAILABLE` is only `"Maybe"` safe, since the connection may have broken after the server had done its work. Safe
 * it is when no server has looked at the call: there was no connection, or the server refused the stream.
 * An error that wraps one of gRPC, as its `cause`, is as safe as that, unless it carries facts of its own or is one of
 * Effect's: put the classifier before the default one.
 *
 * **Gotchas**
 *
 * grpc-js says that in words only. A server that passes on such an error of a client of its own, word for word, is taken
 * for one that has not looked at the call.
 *
 * **Example** (A client whose methods only read)
 *
 * ```ts
 * program.pipe(Effect.provide(RetryClassifier.layer(
 *   RetryClassifier.orElse(RetryGrpc.makeClassifier({ idempotent: true }), RetryClassifier.defaultClassifier)
 * )))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeClassifier = ({ idempotent }: Method): RetryClassifier.RetryClassifier => {
  const ofCall: RetryClassifier.RetryClassifier = (error) =>
    Option.map(classifier(error), (info) => {
      if (idempotent) return info.safety === "Maybe" ? RetryInfo.make({ ...info, safety: "Yes" }) : info
      const unsure = info.safety === "Yes" && !info.throttling && !isNeverProcessed(error)
      return unsure ? RetryInfo.make({ ...info, safety: "Maybe" }) : info
    })
  const { carried, chain, effectErrors, followingCause } = RetryClassifier
  return followingCause(chain([carried, effectErrors, ofCall]))
}

const isNeverProcessed = (error: unknown): boolean => {
  const details = get(error, "details")
  return (typeof details === "string" && codes.grpcNeverProcessed.test(details)) || codes.isNeverSent(error)
}

/**
 * How far a server's pushback is followed.
 *
 * @category models
 * @since 0.1.0
 */
export interface PushbackOptions {
  /** The longest pushback that is followed. Default 1 minute. */
  readonly atMost?: Duration.Input | undefined
  /** What becomes of a longer one: retrying stops with `"retry-after-too-long"`, or it is cut. Default `"stop"`. */
  readonly beyond?: "stop" | "clamp" | undefined
}

/**
 * Follows `grpc-retry-pushback-ms` as gRPC does: a retry waits exactly as long as the server says, without jitter, and
 * the back-off begins anew after it.
 *
 * **Details**
 *
 * `RetryPolicy.honorRetryAfter` takes the same value for the least delay, as it takes any hint: clients that were told
 * the same then still spread, and none comes earlier. Here the server sets the time, earlier than the back-off too.
 * A pushback that forbids the retry stops this policy even without `RetryPolicy.whileRetryable`. What was done to the
 * delay before does not apply to a pushback; what is done after it does, so put it last among the delays.
 *
 * **Gotchas**
 *
 * The delays of a lifted schedule go on where they were.
 *
 * @category delays
 * @since 0.1.0
 */
export const honorPushback: {
  (options?: PushbackOptions): <E, R, Err>(self: RetryPolicy<E, R, Err>) => RetryPolicy<E, R, Err>
  <E, R, Err>(self: RetryPolicy<E, R, Err>, options?: PushbackOptions): RetryPolicy<E, R, Err>
} = /* @__PURE__ */ combinator("RetryGrpc.honorPushback", (check, options: PushbackOptions = {}) => {
  const atMost = check.duration("atMost", options.atMost, 60_000)
  const beyond = check.oneOf("beyond", options.beyond, ["stop", "clamp"], "stop")
  const tooLong = beyond === "stop" ? hintTooLong : atMost
  return ({ adjusts }) => ({
    adjusts: [(delayMillis, failing) => {
      const pushback = pushbackOf(failing.error)
      if (pushback === undefined) return adjusted(adjusts, delayMillis, failing)
      failing.restart()
      if (pushback === "stop") return hintTooLong
      return pushback > atMost ? tooLong : pushback
    }]
  })
})

const pushbackOf = (error: unknown): Hint.Pushback => {
  let current = error
  for (let depth = 0; depth <= codes.maxCauseDepth && current !== undefined; depth++) {
    const pushback = Hint.pushback(current)
    if (pushback !== undefined) return pushback
    current = codes.causeOf(current)
  }
  return undefined
}

/**
 * A `hedgingPolicy` of a gRPC service config: that it is there says that the method may run twice.
 *
 * @category models
 * @since 0.1.0
 */
export interface HedgingPolicy {
  /** The most sends of a call, the first included: a whole number of at least 2. More than 5 count as 5. */
  readonly maxAttempts: number
  /** How long after a send the next is made; as in JSON, such as `"0.5s"`, or any duration. Default 0: all immediately. */
  readonly hedgingDelay?: Duration.Input | string | undefined
  /** The statuses after which the next is made, by name or number. Any other ends all. Default: none. */
  readonly nonFatalStatusCodes?: ReadonlyArray<string | number> | undefined
}

/** The statuses of gRPC, by number. */
const statuses: ReadonlyArray<string> = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED"
]

const inSeconds = /^\d+(\.\d+)?s$/

const hedgingOf = ({ hedgingDelay = 0, maxAttempts, nonFatalStatusCodes = [] }: HedgingPolicy): HedgeOptions => {
  const check = checks("RetryGrpc.hedged")
  const attempts = check.count("maxAttempts", maxAttempts, 2)
  if (!Array.isArray(nonFatalStatusCodes)) {
    check.reject("nonFatalStatusCodes", nonFatalStatusCodes, "a list of statuses")
  }
  const nonFatal = new Set(nonFatalStatusCodes.map((given) => {
    const status = typeof given === "string" ? statuses.indexOf(given.toUpperCase()) : given
    return statuses[status] === undefined ? check.reject("nonFatalStatusCodes", given, "a status of gRPC") : status
  }))
  const after = typeof hedgingDelay === "string" && inSeconds.test(hedgingDelay)
    ? Number.parseFloat(hedgingDelay) * 1000
    : hedgingDelay as Duration.Input
  const options = validatedCall("RetryGrpc.hedged", {
    after,
    atMost: Math.min(5, attempts) - 1,
    isRetryable: (error) => nonFatal.has(get(error, "code") as number)
  })
  return {
    ...options,
    waitsOut: true,
    react: (error, info) => {
      const reaction = options.react(error, undefined)
      const pushback = reaction === "next" ? pushbackOf(error) : undefined
      if (pushback === undefined) return reaction
      return options.react(
        error,
        pushback === "stop" ? RetryInfo.vetoed : RetryInfo.make({ ...info, retryAfter: pushback })
      )
    }
  }
}

/**
 * Hedges a call as gRPC does by the `hedgingPolicy` of a service config, paid by the budget of `Hedge.layer`.
 *
 * **Details**
 *
 * A status that is not fatal has the next send made immediately, or as long after as `grpc-retry-pushback-ms` says, up to a
 * minute; a pushback that forbids it ends hedging, and those in flight go on. Any other status ends all. When all have
 * failed, the call fails as its first send did. {@link unary} says in `grpc-previous-rpc-attempts` how many sends came
 * before. Throws `InvalidOption` when the policy is impossible. Source: gRPC proposal A6.
 *
 * **Gotchas**
 *
 * A hedge is paid for when it is sent, and the budget starts empty: see `Hedge.layer`.
 *
 * **Example** (A read with the policy of its service config)
 *
 * ```ts
 * const hedged = RetryGrpc.hedged({
 *   maxAttempts: 3,
 *   hedgingDelay: "0.5s",
 *   nonFatalStatusCodes: ["UNAVAILABLE", "INTERNAL", "ABORTED"]
 * })
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const hedged = (
  policy: HedgingPolicy
): <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R | Hedge> => {
  const options = hedgingOf(policy)
  return (self) => Hedge.use(({ home }) => hedging(self, options, home))
}

/**
 * Metadata of a client, such as the `Metadata` of grpc-js.
 *
 * @category models
 * @since 0.1.0
 */
export interface Metadata<Self> {
  readonly clone: () => Self
  readonly set: (key: string, value: string) => unknown
}

/**
 * One send of a unary call.
 *
 * @category models
 * @since 0.1.0
 */
export interface UnaryAttempt {
  /** How many sends of the call came before: 0 for the first. */
  readonly previousAttempts: number
  /**
   * When the server has to have answered, in milliseconds since 1970; `Infinity` without a time-out. With
   * `RetryPropagation`, not after the deadline of the call.
   */
  readonly deadline: number
  /**
   * The metadata, in a retry a copy of it that says `grpc-previous-rpc-attempts`, and with what `RetryPropagation` tells
   * the server.
   */
  readonly metadata: <Self extends Metadata<Self>>(metadata: Self) => Self
}

/**
 * What is told the outcome of a unary call.
 *
 * @category models
 * @since 0.1.0
 */
export type UnaryCallback<A> = (error: GrpcError | null, value?: A) => void

/**
 * How a unary call is made.
 *
 * @category models
 * @since 0.1.0
 */
export interface UnaryOptions {
  /** How long the server may take to answer each send. Default: as long as it likes. */
  readonly timeout?: Duration.Input | undefined
}

type Told = { readonly [name: string]: string } | undefined

const withPreviousAttempts = (previousAttempts: number, told: Told): UnaryAttempt["metadata"] => (metadata) => {
  if (previousAttempts === 0 && told === undefined) return metadata
  const copy = metadata.clone()
  if (previousAttempts > 0) copy.set("grpc-previous-rpc-attempts", `${previousAttempts}`)
  // The client says the deadline itself, by the one that it is given.
  for (const [name, value] of Object.entries(told ?? {})) if (name !== grpcTimeout) copy.set(name, value)
  return copy
}

/**
 * Makes an effect of a unary call with a callback, as grpc-js makes them. To be retried: each run is one send.
 *
 * **Details**
 *
 * Interruption cancels the call. It fails with the error of the client itself, unchanged. The deadline is that of one
 * send, counted from when it leaves; `RetryPolicy.deadline` bounds the whole call. Throws `InvalidOption` when the
 * time-out is impossible.
 *
 * **Gotchas**
 *
 * What the client throws when it is called, such as on a closed channel, is a defect.
 *
 * Switch the client's own retries off where a service config may ask for them, or both retry: with the channel option
 * `"grpc.enable_retries": 0` grpc-js also leaves out the one retry of a refused stream, which the policy then makes.
 *
 * **Example** (A call with a time-out of each send)
 *
 * ```ts
 * const getItem = (request: GetItemRequest) =>
 *   RetryGrpc.unary<Item>((attempt, callback) =>
 *     client.getItem(request, attempt.metadata(new Metadata()), { deadline: attempt.deadline }, callback),
 *     { timeout: "500 millis" }
 *   ).pipe(withRetry(awsStandard))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const unary = <A>(
  call: (attempt: UnaryAttempt, callback: UnaryCallback<A>) => { readonly cancel: () => void },
  options?: UnaryOptions
): Effect.Effect<A, GrpcError> => {
  const timeoutMillis = options?.timeout === undefined
    ? Infinity
    : checks("RetryGrpc.unary").positiveDuration("timeout", options.timeout)
  return Effect.withFiber((fiber) => {
    const { attempt: runs, input, output } = fiber.getRef(Schedule.CurrentMetadata)
    // A repeated effect has metadata too, with its last result for input.
    const retries = isRetry(output) || input instanceof Error ? runs : 0
    const previousAttempts = retries + (fiber.getRef(CurrentSend) ?? 0)
    const attempt: UnaryAttempt = {
      previousAttempts,
      deadline: clockOf(fiber).currentTimeMillisUnsafe() + Math.min(timeoutMillis, remainingIn(fiber.context)),
      metadata: withPreviousAttempts(previousAttempts, headersIn(fiber.context))
    }
    return Effect.callback<A, GrpcError>((resume) => {
      const sent = call(attempt, (error, value) => resume(error === null ? Effect.succeed(value!) : Effect.fail(error)))
      return Effect.sync(() => sent.cancel())
    })
  })
}
