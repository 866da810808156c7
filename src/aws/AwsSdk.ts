/**
 * The AWS SDK for JavaScript v3, both ways: its calls as effects that our policies retry, and our policies as the retry
 * strategy of its clients.
 *
 * {@link send} is one send of a command, without the SDK's own retries. Retry it with any policy, and the whole library
 * works on it: quotas, the adaptive limiter, deadlines, observers, virtual time. {@link sendWithRetry} combines both.
 * {@link retryStrategy} is for programs that keep their calls as they are: the client retries in its own loop, and asks
 * one of our policies. {@link makeRetryStrategy} makes it with the services of an Effect program.
 *
 * Made for `@smithy/core` 3.39 and later, the runtime of the `@aws-sdk` clients since November 2026. Only its types are
 * imported.
 *
 * **Source**: smithy-typescript `packages/core/src/submodules/retry`.
 *
 * @since 0.1.0
 */

import type { Client, Command, HttpHandlerOptions, MetadataBearer, Pluggable, RetryStrategyV2 } from "@smithy/types"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { LazyArg } from "effect/Function"
import { withRetry } from "../Attempt.ts"
import { changed } from "../engine/compiled.ts"
import { compiledFrom } from "../engine/policy/policy.ts"
import { withServices } from "../engine/policy/providedPolicy.ts"
import * as AdaptiveRateLimiter from "../gates/AdaptiveRateLimiter.ts"
import { type CallOptions, Hedge } from "../hedge/Hedge.ts"
import { validCall } from "../hedge/internal/hedgeOptions.ts"
import { hedging } from "../hedge/internal/race.ts"
import { checksOf, flag } from "../internal/checks.ts"
import { remainingIn } from "../internal/propagation.ts"
import type { Refused } from "../internal/refused.ts"
import type { RetryClassifier } from "../RetryClassifier.ts"
import { limits, type RetryPolicy } from "../RetryPolicy.ts"
import * as RetryQuota from "../RetryQuota.ts"
import { awsStandard2026 } from "./AwsModes.ts"
import * as Strategies from "./internal/sdk/clientStrategy.ts"
import * as Facts from "./internal/sdk/errorInfo.ts"
import type { SdkError } from "./internal/sdk/errorInfo.ts"
import * as Sends from "./internal/sdk/sendOnce.ts"
import { Strategy } from "./internal/tokenStrategy.ts"
import * as RequestHeaders from "./RequestHeaders.ts"

/**
 * The errors of a send: those of the SDK. Identify its classes, such as `ConditionalCheckFailedException`, by
 * `instanceof`, and any of them by `name`.
 *
 * @category errors
 * @since 0.1.0
 */
export type { SdkError } from "./internal/sdk/errorInfo.ts"

/**
 * Options of one send, in addition to those of the client's request handler, such as `requestTimeout`.
 *
 * @category models
 * @since 0.1.0
 */
export interface SendOptions extends Omit<HttpHandlerOptions, "abortSignal"> {
  /**
   * Aborts the send, like interruption: it then fails with an `AbortError`, which no policy retries. It also aborts the
   * stream of an output (`Body` of `GetObject`), which is read after the send, when interruption no longer reaches it.
   */
  readonly abortSignal?: AbortSignal | undefined
  /**
   * The policy that retries the send, or its attempts: the `max` of the header `amz-sdk-request`. Default: the header
   * has no `max`.
   */
  readonly maxAttempts?: RequestHeaders.Options["maxAttempts"] | undefined
}

/**
 * The input of a command has a stream that was already sent, by a send that was interrupted or succeeded: the rest of
 * it would be a different input. Nothing was sent, and no policy retries it. It is an `SdkError`: identify it by
 * `instanceof`.
 *
 * @category errors
 * @since 0.1.0
 */
export { StreamUsed } from "./internal/sdk/sendOnce.ts"

/** After a failed send: attaches the facts, and what the call's next send has to know, to the error. */
const failed = (error: SdkError, sent: Sends.Sent, stream: object | undefined, isLast: boolean): Effect.Effect<void> =>
  Effect.flatMap(Sends.remember(error, sent), () => {
    const { safety } = Facts.carry(error)
    Sends.count(error, sent)
    if (!Sends.streamFailed(stream, error) || !isLast) return Effect.void
    Facts.forbid(error)
    return safety === "No"
      ? Effect.void
      : Effect.logWarning(`${sent.operation.name} is not retried: its input has a stream, which can be sent only once`)
  })

/** The error of a send whose call has reached its deadline, under the SDK's own name for timeouts. */
const overdue = (millis: number): SdkError => {
  const message = millis === 0
    ? "the deadline of the call has passed: it was not sent"
    : `no answer within ${Duration.format(Duration.millis(millis))}, the deadline of the call`
  return Object.assign(new Error(message), { name: "TimeoutError" })
}

/** Sends until the deadline of the call at most, if `RetryPropagation` knows one. */
const untilDeadline = <A>(request: Effect.Effect<A, SdkError>): Effect.Effect<A, SdkError> =>
  Effect.withFiber(({ context }) => {
    const millis = remainingIn(context as Context.Context<never>)
    if (millis === Infinity) return request
    const late = Effect.suspend(() => Effect.fail(overdue(millis)))
    return millis === 0 ? late : Effect.timeoutOrElse(request, { duration: millis, orElse: () => late })
  })

/**
 * Sends a command once: one attempt, to be retried with any policy.
 *
 * **Details**
 *
 * - The SDK's own retries are off for this send, however the client is configured. The client is not changed: its other
 *   calls retry as before.
 * - Interruption aborts the request; the SDK's `AbortError` does not surface.
 * - It fails with the exact object that the SDK threw or rejected with, which carries its facts (`RetryInfo.fromError`)
 *   in a hidden property: see {@link classifier}. Unknown errors are classified as not retryable. A frozen error is
 *   left as it is, without its own facts.
 * - Retries are marked by `amz-sdk-request` (`attempt=N; max=M`) and share the `amz-sdk-invocation-id` of their call.
 *   So does everything inside `RequestHeaders.withInvocation`. `$metadata.attempts` and `$metadata.totalRetryDelay` of
 *   the output and of the error include the retries.
 * - Under `RetryPropagation.layer` or `withDeadline`, a send is aborted at the deadline of its call, with an error named
 *   `TimeoutError`; and `amz-sdk-request` has the deadline as its `ttl` once a response has shown the server's time:
 *   from the second send on.
 * - A command whose input has a stream (`PutObject` with a `Readable`) is sent once. If that fails, its error is marked
 *   as not retryable, a warning is logged, and sending the stream again fails immediately with that error, or, after a
 *   send that was interrupted (by a timeout of the attempt) or succeeded, with {@link StreamUsed}. A function that
 *   makes the command with its own stream is called for every attempt, so it can be retried.
 *
 * Throws `InvalidOption` when `maxAttempts` is neither a whole number of at least 1 nor a policy.
 *
 * **Gotchas**
 *
 * A send recognizes that it is a retry by its last error, in the metadata of the schedule around it. If that error is
 * mapped to another between the send and the retry, wrap the call in `RequestHeaders.withInvocation`.
 *
 * **Example** (A call with the standard policy of AWS)
 *
 * ```ts
 * const getItem = AwsSdk.send(client, new GetItemCommand({ TableName, Key }), { maxAttempts: awsStandard }).pipe(
 *   withRetry(awsStandard)
 * )
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const send = <I extends object, In extends I, O extends MetadataBearer, Out extends O, C>(
  client: Client<I, O, C>,
  command: Command<I, In, O, Out, C> | LazyArg<Command<I, In, O, Out, C>>,
  options: SendOptions = {}
): Effect.Effect<Out, SdkError> => {
  checksOf("AwsSdk.send", options)
  const { abortSignal, maxAttempts = Infinity, ...handler } = options
  void RequestHeaders.headers({ maxAttempts })
  return Effect.gen(function*() {
    const made = typeof command === "function" ? command() : command
    const stream = Sends.streamOf(made.input)
    const refusal = Sends.refusalOf(stream, made.constructor)
    if (refusal !== undefined) return yield* Effect.fail(refusal)
    const sent = yield* Sends.current(made.constructor)
    const headers = yield* RequestHeaders.headers({ maxAttempts, attempt: sent.attempt }).pipe(
      Effect.provideService(RequestHeaders.Invocation, sent.call)
    )
    const request = Effect.tryPromise({
      try: (signal) => {
        const both = abortSignal === undefined ? signal : AbortSignal.any([signal, abortSignal])
        return Sends.sendOnce(client, made, { ...handler, abortSignal: both }, { headers, sent, stream })
      },
      catch: Facts.thrown
    })
    const isLast = typeof command !== "function"
    const until = untilDeadline(Effect.mapError(request, ({ error }) => error))
    return yield* Effect.tapError(until, (error) => failed(error, sent, stream, isLast))
  })
}

/**
 * Sends a command and retries it with a policy: {@link send} and `withRetry`, with the policy given once. The header
 * `amz-sdk-request` has the policy's attempts as its `max`.
 *
 * **Example** (The example of `send`, shorter)
 *
 * ```ts
 * const getItem = AwsSdk.sendWithRetry(client, new GetItemCommand({ TableName, Key }), awsStandard)
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const sendWithRetry = <I extends object, In extends I, O extends MetadataBearer, Out extends O, C, R, Err>(
  client: Client<I, O, C>,
  command: Command<I, In, O, Out, C> | LazyArg<Command<I, In, O, Out, C>>,
  policy: RetryPolicy<SdkError, Err, R>,
  options?: Omit<SendOptions, "maxAttempts">
): Effect.Effect<Out, SdkError | Err, R> =>
  withRetry(send(client, command, { ...options, maxAttempts: policy }), policy)

/**
 * Options for hedging a command.
 *
 * @category models
 * @since 0.1.0
 */
export interface HedgeOptions extends CallOptions {
  /**
   * Whether the command can run twice. Default: commands that read, by name: `Get`, `List`, `Query` and the like, but
   * not `GetActivityTask`.
   */
  readonly repeatable?: boolean | undefined
}

/** Commands that read. `GetActivityTask` of Step Functions hands out a task, which a losing send would lose. */
const reads = /^(Batch|Transact)?(Describe|Get(?!ActivityTask)|Head|List|Query|Scan)/

/**
 * {@link send}, and a second send if the first takes too long: see `Hedge.hedged`. Retry it like `send`.
 *
 * **Details**
 *
 * Only reads are hedged, unless `repeatable` says otherwise, and never a command whose input has a stream, which can be
 * sent only once. Everything else is sent as by {@link send}. The sends of a call share its `amz-sdk-invocation-id`,
 * and each counts in `amz-sdk-request`. Throws `InvalidOption` when an option is invalid.
 *
 * **Example** (A read that is sent again if it is late)
 *
 * ```ts
 * const getItem = AwsSdk.sendHedged(client, new GetItemCommand({ TableName, Key }), { after: "50 millis" }).pipe(
 *   withRetry(awsStandard)
 * )
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const sendHedged = <I extends object, In extends I, O extends MetadataBearer, Out extends O, C>(
  client: Client<I, O, C>,
  command: Command<I, In, O, Out, C> | LazyArg<Command<I, In, O, Out, C>>,
  hedgeOptions: HedgeOptions = {},
  options?: SendOptions
): Effect.Effect<Out, SdkError, Hedge> => {
  const check = checksOf("AwsSdk.sendHedged", hedgeOptions)
  const { repeatable, ...hedge } = hedgeOptions
  flag(check, "repeatable", repeatable)
  const valid = validCall(check, hedge)
  const once = send(client, command, options)
  return Hedge.use(({ home }) => {
    const made = typeof command === "function" ? command() : command
    const unsent = [made]
    const each = typeof command === "function" ? send(client, () => unsent.pop() ?? command(), options) : once
    const isOneShot = typeof command !== "function" && Sends.streamOf(made.input) !== undefined
    if (isOneShot || !(repeatable ?? reads.test(made.constructor.name))) return each
    return Effect.flatMap(Sends.current(made.constructor), ({ attempt, call }) => {
      let last = attempt - 1
      const counted = Effect.andThen(Effect.sync(() => last++), each)
      return hedging(counted, valid, home).pipe(
        Effect.tapError((error) => Effect.sync(() => Sends.countedTo(error, last))),
        Effect.provideService(RequestHeaders.Invocation, call)
      )
    })
  })
}

/**
 * What the errors of the SDK say about retrying.
 *
 * **Details**
 *
 * `RetryClassifier.defaultClassifier` knows their codes, traits (`$retryable`), statuses, headers and network codes,
 * and a corrected clock (`$metadata.clockSkewCorrected`). In addition, `AbortError` is never retried;
 * `IDPCommunicationError` of STS is transient, under either of its names; so is an `InvalidSignatureException` that
 * says `Signature expired`. The `fault` is the error's `$fault`. The errors of {@link send} already carry its result;
 * use it for sends made any other way. Source: smithy-typescript `service-error-classification.ts`, botocore
 * `retries/special.py`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const classifier: RetryClassifier = Facts.classifier

/**
 * One of our retry strategies, in the form that the SDK's clients take.
 *
 * @category models
 * @since 0.1.0
 */
export interface ClientStrategy extends RetryStrategyV2 {
  /** The mode in the client's user agent: whether the policy requires an `AdaptiveRateLimiter`. */
  readonly mode: "standard" | "adaptive"
  /** The policy's attempts. A client writes its own `maxAttempts` in `amz-sdk-request`: pass these to it. */
  readonly maxAttempts: number
}

/**
 * Makes the retry strategy of a policy for the clients of the SDK, with the services, clock, randomness, classifier and
 * observer of the context.
 *
 * **Details**
 *
 * - Decisions, delays, costs and balances are those of the policy under `Effect.retry`.
 * - The classifier of the context is asked about the error first. If it does not know the error, the SDK's own
 *   `errorType` counts, and its `retryAfterHint` if the error has no other hint. A `CLIENT_ERROR` that the classifier
 *   does not call transient is never retried, under any policy.
 * - The strategy itself waits for backoff and send tokens, as the SDK's strategies do: the tokens' delay is 0,
 *   `$metadata.totalRetryDelay` is the sum of the backoffs.
 * - A call aborted in flight counts neither as success nor as failure; a retry in flight is spent. A call aborted while
 *   waiting returns what it held, and gives up its place in the queue.
 * - A long poll (`ReceiveMessage` of SQS) that the quota refuses is held back before it fails, under every policy; the
 *   SDKs before retry behavior 2.1 do not hold it back.
 * - A strategy never throws: a token that is foreign or used up records nothing and is not retried.
 *
 * **Gotchas**
 *
 * The SDK does not tell a strategy that a call was aborted. The strategy finds out when the wait is over and no caller
 * takes the token. So what an aborted call holds goes back at the end of its backoff, and it keeps its place in a queue
 * until its turn; with the {@link abortPlugin} on the client, it gives up both immediately. If the limiter fails fast,
 * a first attempt fails with `RateLimitExceeded`.
 *
 * A limiter or any other gate in the context holds back the sends of every policy, also of `awsStandard`, whose `mode`
 * stays `"standard"`.
 *
 * **Example** (A client that retries by one of our policies)
 *
 * ```ts
 * const makeClient = Effect.map(AwsSdk.makeRetryStrategy(awsAdaptive), (retryStrategy) =>
 *   new DynamoDBClient({ retryStrategy, maxAttempts: retryStrategy.maxAttempts }))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeRetryStrategy = <R>(
  policy: RetryPolicy<unknown, { readonly [Refused]: true }, R>
): Effect.Effect<ClientStrategy, never, R> => {
  const compiled = changed(compiledFrom("AwsSdk.makeRetryStrategy", policy), Strategies.unlessClientError)
  const { maxAttempts } = limits(policy)
  return withServices(compiled, (compiled, context) => {
    const mode = compiled.adaptive ? "adaptive" : "standard"
    return new Strategies.SdkStrategy(new Strategy(compiled, context), context, mode, maxAttempts)
  })
}

/**
 * Makes the retry strategy of a policy with all that it needs: a quota of 500 tokens and, if the policy is adaptive, a
 * limiter. For clients of programs without Effect; in a program with Effect, {@link makeRetryStrategy} uses its own
 * services. Otherwise the two are the same.
 *
 * **Details**
 *
 * Clients with the same strategy share its quota and limiter: make one for each service that you call. Default policy
 * `awsStandard2026`, as the SDK's own; that of its clients of DynamoDB is `awsDynamoDB2026`.
 *
 * For metrics, logs or another quota without a program, run {@link makeRetryStrategy} in a `ManagedRuntime` of their
 * layers.
 *
 * **Example** (A client that retries by our policy)
 *
 * ```ts
 * const client = new DynamoDBClient({ retryStrategy: AwsSdk.retryStrategy(awsDynamoDB2026) })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const retryStrategy = (
  policy: RetryPolicy<
    unknown,
    { readonly [Refused]: true },
    RetryQuota.RetryQuota | AdaptiveRateLimiter.AdaptiveRateLimiter
  > = awsStandard2026
): ClientStrategy => {
  const { adaptive } = compiledFrom("AwsSdk.retryStrategy", policy)
  const { AdaptiveRateLimiter: limiter, make } = AdaptiveRateLimiter
  const quota = Context.make(RetryQuota.RetryQuota, Effect.runSync(RetryQuota.make()))
  const services = adaptive ? Context.add(quota, limiter, Effect.runSync(make())) : quota
  const context = services as Context.Context<RetryQuota.RetryQuota | AdaptiveRateLimiter.AdaptiveRateLimiter>
  return Effect.runSyncWith(context)(makeRetryStrategy(policy))
}

/**
 * A plug-in for clients with a {@link makeRetryStrategy}: it passes the abort signals of calls to the strategy, so that
 * a call aborted while waiting ends immediately: what it holds goes back, and it leaves the queue.
 *
 * **Example** (A client whose calls are often aborted)
 *
 * ```ts
 * client.middlewareStack.use(AwsSdk.abortPlugin)
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const abortPlugin: Pluggable<any, any> = Strategies.abortPlugin
