/**
 * Retries for gRPC calls of grpc-js, nice-grpc, Connect and grpc-web.
 *
 * No client is imported here: calls, metadata and errors are recognized by their shape, so any version works, and none
 * has to be installed.
 *
 * **Source**: gRPC proposal A6, "gRPC Retry Design"; Google's AIP-194, "Automatic retry configuration".
 *
 * @since 0.1.0
 */

import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import { adjusted, hintTooLong } from "../engine/delay.ts"
import { options as combinator } from "../engine/policy/policy.ts"
import { CurrentSend, Hedge } from "../hedge/Hedge.ts"
import { delayOf, validCall } from "../hedge/internal/hedgeOptions.ts"
import { type HedgeOptions, hedging } from "../hedge/internal/race.ts"
import { also, checks, checksOf, flag, rejectUnknown } from "../internal/checks.ts"
import * as codes from "../internal/classification/errorCodes.ts"
import * as Hint from "../internal/classification/grpcHint.ts"
import { grpcStatusOf } from "../internal/classification/grpcStatuses.ts"
import { clockOf } from "../internal/clock.ts"
import { grpcTimeout, headersIn, remainingIn } from "../internal/propagation.ts"
import { firstFound, get, short } from "../internal/tryGet.ts"
import * as RetryClassifier from "../RetryClassifier.ts"
import { isRetry } from "../RetryDecision.ts"
import * as RetryInfo from "../RetryInfo.ts"
import type { PointFree } from "../RetryPolicy.ts"

/**
 * The error of a failed call, as far as this module reads it.
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
 * What is known about the methods that are called.
 *
 * @category models
 * @since 0.1.0
 */
export interface Method {
  /** Whether running a method twice has the same effect as once, as in its `idempotency_level`. */
  readonly idempotent: boolean
}

/**
 * Facts about gRPC errors, for any method: {@link RetryClassifier.grpc}, which the default chain also asks.
 *
 * @category constructors
 * @since 0.1.0
 */
export const classifier: RetryClassifier.RetryClassifier = RetryClassifier.grpc

/**
 * Facts about gRPC errors, for methods about which more is known.
 *
 * **Details**
 *
 * An idempotent method can always run again: `DEADLINE_EXCEEDED` is safe to retry. For any other method, `UNAVAILABLE`
 * is only `"Maybe"` safe, since the connection may have broken after the server had done its work. It is safe if no
 * server has looked at the call: there was no connection, or the server refused the stream. An error with a gRPC error
 * as its `cause` is as safe as that one, unless it carries its own facts or is one of Effect's: put the classifier
 * before the default one.
 *
 * **Gotchas**
 *
 * grpc-js reports that only in its message. If a server passes on such an error of its own client word for word, it is
 * taken to mean that the server has not looked at the call.
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
export const makeClassifier = (method: Method): RetryClassifier.RetryClassifier => {
  const idempotent = flag(checksOf("RetryGrpc.makeClassifier", method), "idempotent", method.idempotent)
  const ofCall: RetryClassifier.RetryClassifier = (error) =>
    Option.map(classifier(error), (info) => {
      if (idempotent) return info.safety === "Maybe" ? RetryInfo.make({ ...info, safety: "Yes" }) : info
      const unsure = info.safety === "Yes" && !info.throttling && !isNeverProcessed(error)
      return unsure ? RetryInfo.make({ ...info, safety: "Maybe" }) : info
    })
  const { carried, chain, effectErrors, followingCause } = RetryClassifier
  return followingCause(chain([carried, effectErrors, ofCall]))
}

const isNeverProcessed = (error: unknown): boolean =>
  codes.grpcNeverProcessed.test(short(get(error, "details"))) || codes.isNeverSent(error)

/**
 * How far to follow a server's pushback.
 *
 * @category models
 * @since 0.1.0
 */
export interface PushbackOptions {
  /** The longest pushback to follow. Default 1 minute. */
  readonly atMost?: Duration.Input | undefined
  /** What to do with a longer one: stop retrying with `"retry-after-too-long"`, or cut it. Default `"stop"`. */
  readonly beyond?: "stop" | "clamp" | undefined
}

/**
 * Follows `grpc-retry-pushback-ms` as gRPC does: a retry waits exactly as long as the server says, without jitter, and
 * the backoff starts over after it.
 *
 * **Details**
 *
 * `RetryPolicy.honorRetryAfter` takes the same value as the minimum delay, like any hint: clients that got the same
 * value still spread out, and none comes earlier. Here the server sets the time, even earlier than the backoff. A
 * pushback that forbids the retry stops this policy even without `RetryPolicy.whileRetryable`. Earlier changes to the
 * delay do not apply to a pushback; later ones do, so put it last among the delays.
 *
 * **Gotchas**
 *
 * The delays of a lifted schedule do not start over.
 *
 * @category delays
 * @since 0.1.0
 */
export const honorPushback: PointFree<PushbackOptions> = /* @__PURE__ */ combinator(
  "RetryGrpc.honorPushback",
  (check, options: PushbackOptions) => {
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
  }
)

const pushbackOf = (error: unknown): Hint.Pushback => firstFound(codes.causesOf(error), Hint.pushback)

/**
 * A `hedgingPolicy` of a gRPC service config: its presence means that the method can run twice.
 *
 * @category models
 * @since 0.1.0
 */
export interface HedgingPolicy {
  /** The most sends of a call, the first included: a whole number of at least 2. More than 5 count as 5. */
  readonly maxAttempts: number
  /**
   * How long after a send the next is made; as in JSON, such as `"0.5s"`, or any duration. Default 0: all immediately.
   */
  readonly hedgingDelay?: Duration.Input | string | undefined
  /** The statuses after which the next is made, by name or number. Any other ends the call. Default: none. */
  readonly nonFatalStatusCodes?: ReadonlyArray<string | number> | undefined
}

const inSeconds = /^\d+(\.\d+)?s$/

const hedgingOf = (policy: HedgingPolicy): HedgeOptions => {
  const check = checksOf("RetryGrpc.hedged", policy)
  const { hedgingDelay = 0, maxAttempts, nonFatalStatusCodes = [] } = policy
  const attempts = check.count("maxAttempts", maxAttempts, 2)
  also(check, "hedgingDelay", "nonFatalStatusCodes")
  rejectUnknown(check, policy)
  if (!Array.isArray(nonFatalStatusCodes)) {
    check.reject("nonFatalStatusCodes", nonFatalStatusCodes, "an array of statuses")
  }
  const statusOf = (input: unknown) =>
    grpcStatusOf(input) ?? check.reject("nonFatalStatusCodes", input, "a gRPC status")
  const nonFatal = new Set(nonFatalStatusCodes.map(statusOf))
  const after = typeof hedgingDelay === "string" && inSeconds.test(hedgingDelay)
    ? Number.parseFloat(hedgingDelay) * 1000
    : delayOf(check, "hedgingDelay", hedgingDelay as Duration.Input)
  const options = validCall(checks(check.tag), {
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
      const asked = pushback === "stop" ? RetryInfo.vetoed : RetryInfo.make({ ...info, retryAfter: pushback })
      return options.react(error, asked)
    }
  }
}

/**
 * Hedges a call as gRPC does with the `hedgingPolicy` of a service config, paid for by the budget of `Hedge.layer`.
 *
 * **Details**
 *
 * After a non-fatal status, the next send is made immediately, or as long after as `grpc-retry-pushback-ms` says. A
 * pushback of more than a minute ends hedging, as does one that forbids it, and sends in flight continue. Any other status ends the call. If
 * all fail, the call fails as its first send did. {@link unary} says in `grpc-previous-rpc-attempts` how many sends
 * came before. Throws `InvalidOption` when the policy is invalid. Source: gRPC proposal A6.
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
  return (self) =>
    Hedge.use(({ home }) =>
      Effect.withFiber((fiber) => {
        let sent = sentBefore(fiber)
        const counted = Effect.andThen(Effect.sync(() => sent++), self)
        return Effect.tapError(hedging(counted, options, home), (error) => Effect.sync(() => remember(error, sent)))
      })
    )
}

/** The sends of hedged calls, by the errors they failed with: a retry finds its last error in the metadata of its schedule. */
const hedgedSends = new WeakMap<object, number>()

const remember = (error: unknown, sent: number): void => {
  if (typeof error === "object" && error !== null) hedgedSends.set(error, sent)
}

/** How many sends came before this attempt. */
const sentBefore = (fiber: Fiber.Fiber<unknown, unknown>): number => {
  const { attempt: runs, input, output } = fiber.getRef(Schedule.CurrentMetadata)
  // A repeated effect has metadata too, with its last result as input.
  if (!isRetry(output) && !(input instanceof Error)) return 0
  return hedgedSends.get(input as object) ?? runs
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
   * The deadline for the server's response, in milliseconds since 1970; `Infinity` without a timeout. With
   * `RetryPropagation`, no later than the deadline of the call.
   */
  readonly deadline: number
  /**
   * The metadata; in a retry, a copy with `grpc-previous-rpc-attempts` and with what `RetryPropagation` tells the
   * server.
   */
  readonly metadata: <Self extends Metadata<Self>>(metadata: Self) => Self
}

/**
 * Called with the outcome of a unary call.
 *
 * @category models
 * @since 0.1.0
 */
export type UnaryCallback<A> = (error: GrpcError | null, value?: A) => void

/**
 * Options of a unary call.
 *
 * @category models
 * @since 0.1.0
 */
export interface UnaryOptions {
  /** How long the server may take to respond to each send. Default: no limit. */
  readonly timeout?: Duration.Input | undefined
}

const withPreviousAttempts =
  (previousAttempts: number, propagated: ReturnType<typeof headersIn>): UnaryAttempt["metadata"] => (metadata) => {
    if (previousAttempts === 0 && propagated === undefined) return metadata
    const copy = metadata.clone()
    if (previousAttempts > 0) copy.set("grpc-previous-rpc-attempts", `${previousAttempts}`)
    // The client itself sends the deadline, from the one it is given.
    for (const [name, value] of Object.entries(propagated ?? {})) if (name !== grpcTimeout) copy.set(name, value)
    return copy
  }

/**
 * Makes an effect from a unary call with a callback, as in grpc-js. Retry it: each run is one send.
 *
 * **Details**
 *
 * Interruption cancels the call. It fails with the client's own error, unchanged. The deadline is that of one send,
 * counted from when it is made; `RetryPolicy.deadline` bounds the whole call. Throws `InvalidOption` when the timeout
 * is invalid.
 *
 * **Gotchas**
 *
 * An exception of the client when it is called, for example on a closed channel, is a defect.
 *
 * Switch the client's own retries off if a service config may configure them, or both retry: with the channel option
 * `"grpc.enable_retries": 0` grpc-js also omits its one retry of a refused stream, which the policy then makes.
 *
 * **Example** (A call with a timeout of each send)
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
  options: UnaryOptions = {}
): Effect.Effect<A, GrpcError> => {
  const check = checksOf("RetryGrpc.unary", options)
  const timeoutMillis = check.positiveDuration("timeout", options.timeout, Infinity)
  rejectUnknown(check, options)
  return Effect.withFiber((fiber) => {
    const previousAttempts = sentBefore(fiber) + (fiber.getRef(CurrentSend) ?? 0)
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
