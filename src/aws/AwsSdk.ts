/**
 * The AWS SDK for JavaScript v3, both ways: its calls as effects that our policies retry, and our policies as the retry
 * strategy of its clients.
 *
 * {@link send} is one send of a command, without the SDK's own retries. Retry it with any policy, and the whole of this
 * library works on it: quotas, the adaptive limiter, deadlines, observers, virtual time. {@link sendWithRetry} is both in
 * one word. {@link makeRetryStrategy} is for
 * programs that keep their calls as they are: the client retries in its own loop, and asks a policy of ours.
 *
 * Made for `@smithy/core` 3.39 and later, the runtime of the `@aws-sdk` clients since November 2026. Only types are
 * imported of it.
 *
 * **Source**: smithy-typescript `packages/core/src/submodules/retry`.
 *
 * @since 0.1.0
 */

import type { Client, Command, HttpHandlerOptions, MetadataBearer, Pluggable, RetryStrategyV2 } from "@smithy/types"
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { LazyArg } from "effect/Function"
import type { RateLimitExceeded } from "../AdaptiveRateLimiter.ts"
import { withRetry } from "../Attempt.ts"
import { hedging } from "../engine/hedge.ts"
import { partsOf } from "../engine/policy/policy.ts"
import { type CallOptions, Hedge, validatedCall } from "../Hedge.ts"
import type { RetryClassifier } from "../RetryClassifier.ts"
import type { Attempted, RetryPolicy } from "../RetryPolicy.ts"
import * as RetryStrategy from "../RetryStrategy.ts"
import * as Abort from "./internal/sdk/abort.ts"
import * as Calls from "./internal/sdk/calls.ts"
import { type SdkError, thrown } from "./internal/sdk/errors.ts"
import * as Facts from "./internal/sdk/facts.ts"
import { sender } from "./internal/sdk/once.ts"
import { SdkStrategy } from "./internal/sdk/strategy.ts"
import * as Streams from "./internal/sdk/streams.ts"
import * as RequestHeaders from "./RequestHeaders.ts"

/**
 * What a send fails with: the error of the SDK. Its classes, such as `ConditionalCheckFailedException`, can be told by
 * `instanceof`, and all of them by `name`.
 *
 * @category errors
 * @since 0.1.0
 */
export type { SdkError } from "./internal/sdk/errors.ts"

/**
 * What can be set for one send, beside what the client's request handler takes, such as `requestTimeout`.
 *
 * @category models
 * @since 0.1.0
 */
export interface SendOptions extends Omit<HttpHandlerOptions, "abortSignal"> {
  /**
   * Aborts the send beside interruption: it then fails with an `AbortError`, which no policy retries. Aborts also the
   * stream of an output (`Body` of `GetObject`), which is read after the send, when interruption no longer reaches it.
   */
  readonly abortSignal?: AbortSignal | undefined
  /**
   * The policy that retries the send, or its attempts: what the header `amz-sdk-request` says of the `max`. Default: the
   * header has no `max`.
   */
  readonly maxAttempts?: RequestHeaders.Options["maxAttempts"] | undefined
}

/**
 * The input of a command has a stream that was sent before, by a send that was interrupted or succeeded: what is left of
 * it would be another input. Nothing was sent, and no policy retries it. It is an `SdkError`: tell it by `instanceof`.
 *
 * @category errors
 * @since 0.1.0
 */
export { StreamUsed } from "./internal/sdk/streams.ts"

/** The stream in the input of a send, and whether there will be no other. */
interface Input {
  readonly stream: object | undefined
  readonly isLast: boolean
}

/** What a failed send leaves: its error carries the facts, and what the next send of its call has to know. */
const failed = (error: SdkError, sent: Calls.Sent, { isLast, stream }: Input): Effect.Effect<void> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => {
    Calls.remember(error, sent)
    const { safety } = Facts.carry(error, now)
    if (!Streams.hasLeft(stream)) return Effect.void
    Streams.failed(stream, error)
    if (!isLast) return Effect.void
    Facts.forbid(error)
    return safety === "No"
      ? Effect.void
      : Effect.logWarning(`${sent.operation.name} is not retried: its input has a stream, which can be sent once`)
  })

/**
 * Sends a command once: one attempt, to be retried with any policy.
 *
 * **Details**
 *
 * - The SDK's own retries are off for this send, whatever the client is configured to do. The client is not changed: its
 *   other calls retry as before.
 * - Interruption aborts the request, and nothing is seen of the SDK's `AbortError`.
 * - It fails with the very object that the SDK threw or rejected with, which carries its facts (`RetryInfo.fromError`) in a
 *   hidden property: see {@link classifier}. Of an error of which nothing is known, the facts say that nothing speaks for
 *   a retry. A frozen error comes out as it is, without facts of its own.
 * - Retries are told by `amz-sdk-request` (`attempt=N; max=M`) and share the `amz-sdk-invocation-id` of their call. So
 *   does everything inside `RequestHeaders.withInvocation`. `$metadata.attempts` and `$metadata.totalRetryDelay` of the
 *   output count over the retries too.
 * - A command whose input has a stream (`PutObject` with a `Readable`) is sent once. If that fails, its error is marked
 *   as not retryable, a warning says so, and to send the stream again fails with that error at once; after a send that
 *   was interrupted (a time-out of the attempt) or succeeded, with {@link StreamUsed}. A function that makes the command
 *   with a stream of its own is called for every attempt, so it can be retried.
 *
 * Throws `InvalidOption` when `maxAttempts` is no whole number of at least 1 and no policy.
 *
 * **Gotchas**
 *
 * A send knows that it is a retry from its last error, in the metadata of the schedule around it. Where that error is
 * mapped to another one between the send and the retry, wrap the call in `RequestHeaders.withInvocation`.
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
  { abortSignal, maxAttempts = Infinity, ...handler }: SendOptions = {}
): Effect.Effect<Out, SdkError> => {
  void RequestHeaders.headers({ maxAttempts })
  return Effect.gen(function*() {
    const made = typeof command === "function" ? command() : command
    const stream = Streams.streamOf(made.input)
    const refusal = Streams.refusal(stream, made.constructor)
    if (refusal !== undefined) return yield* Effect.fail(refusal)
    const sent = yield* Calls.current(made.constructor)
    const place = yield* Calls.placeOf(sent, maxAttempts)
    const send = sender(client, made)
    const request = Effect.tryPromise({
      try: (signal) => {
        const both = abortSignal === undefined ? signal : AbortSignal.any([signal, abortSignal])
        return send({ ...handler, abortSignal: both }, place, () => Streams.leaves(stream))
      },
      catch: thrown
    })
    return yield* Effect.tapError(
      Effect.mapError(request, ({ error }) => error),
      (error) => failed(error, sent, { stream, isLast: typeof command !== "function" })
    )
  })
}

/**
 * Sends a command and retries it with a policy: {@link send} and `withRetry`, with the policy said once. The header
 * `amz-sdk-request` has the attempts of the policy as its `max`.
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
  policy: RetryPolicy<SdkError & Attempted, R, Err>,
  options?: Omit<SendOptions, "maxAttempts">
): Effect.Effect<Out, SdkError | Err, R> =>
  withRetry(send(client, command, { ...options, maxAttempts: policy }), policy)

/**
 * How a command is hedged.
 *
 * @category models
 * @since 0.1.0
 */
export interface HedgeOptions extends CallOptions {
  /** Whether the command may run twice. Default: those that read, by their names: `Get`, `List`, `Query` and kin. */
  readonly repeatable?: boolean | undefined
}

/** Commands that read. */
const reads = /^(Batch|Transact)?(Describe|Get|Head|List|Query|Scan)/

/**
 * {@link send}, and once more when the first takes too long: see `Hedge.hedged`. To be retried like `send`.
 *
 * **Details**
 *
 * Only what reads is hedged, unless `repeatable` says otherwise, and never a command whose input has a stream, which can be
 * sent once. All else is sent as {@link send} does. The sends of a call share its `amz-sdk-invocation-id`, and each counts
 * in `amz-sdk-request`. Throws `InvalidOption` when an option is impossible.
 *
 * **Example** (A read that is sent again when it is late)
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
  { repeatable, ...hedge }: HedgeOptions = {},
  options?: SendOptions
): Effect.Effect<Out, SdkError, Hedge> => {
  const valid = validatedCall("AwsSdk.sendHedged", hedge)
  const once = send(client, command, options)
  return Hedge.use(({ home }) => {
    const { constructor: operation, input } = typeof command === "function" ? command() : command
    const isOneShot = typeof command !== "function" && Streams.streamOf(input) !== undefined
    if (isOneShot || !(repeatable ?? reads.test(operation.name))) return once
    return Effect.flatMap(
      Calls.current(operation),
      ({ call }) => Effect.provideService(hedging(once, valid, home), RequestHeaders.Invocation, call)
    )
  })
}

/**
 * What the errors of the SDK say about retrying.
 *
 * **Details**
 *
 * `RetryClassifier.defaultClassifier` knows their codes, traits (`$retryable`), statuses, headers and network codes, and a
 * corrected clock (`$metadata.clockSkewCorrected`). Beyond that: `AbortError` is never retried; `IDPCommunicationError` of
 * STS passes, by either of its names; so does an `InvalidSignatureException` that says `Signature expired`. The `fault` is
 * the error's `$fault`. The errors of {@link send} carry what it answers; it is for sends made otherwise.
 * Source: smithy-typescript `service-error-classification.ts`, botocore `retries/special.py`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const classifier: RetryClassifier = Facts.classifier

/**
 * A retry strategy of ours, as the clients of the SDK take it.
 *
 * @category models
 * @since 0.1.0
 */
export interface ClientStrategy extends RetryStrategyV2 {
  /** What the client tells in its user agent: whether the policy asks for an `AdaptiveRateLimiter`. */
  readonly mode: "standard" | "adaptive"
  /** The attempts of the policy. A client writes its own `maxAttempts` in `amz-sdk-request`: give it these. */
  readonly maxAttempts: number
}

/**
 * Makes the retry strategy of a policy for the clients of the SDK, with the services, clock, chance, classifier and
 * observer that are in the context.
 *
 * **Details**
 *
 * - Decisions, delays, costs and balances are those of the policy under `Effect.retry`.
 * - The classifier of the context is asked about the error first. Where it knows nothing, the SDK's own `errorType`
 *   counts, and its `retryAfterHint` where the error has no other hint. A `CLIENT_ERROR` of which the classifier does not
 *   say that it passes is never retried, whatever the policy.
 * - Back-off and send tokens are waited for in the strategy, as in those of the SDK: the tokens' delay is 0,
 *   `$metadata.totalRetryDelay` is the sum of the back-offs.
 * - A call that is aborted in flight is booked neither as success nor as failure; a retry that was in flight is spent. A
 *   call that is aborted while it waits gives back what it held, and its place in the queue goes to the next.
 * - A long poll (`ReceiveMessage` of SQS) that the quota refuses is held back before it fails.
 * - A strategy never throws: a token that is not its own, or used up, books nothing and is not retried.
 *
 * **Gotchas**
 *
 * The SDK does not tell a strategy that a call was aborted. The strategy finds out when the wait is over: then nobody
 * takes the token. So what an aborted call holds goes back at the end of its back-off, and it keeps its place in a queue
 * until its turn, unless the client has the {@link abortPlugin}: then both are given up at once. Where the limiter fails
 * fast, a first attempt fails with `RateLimitExceeded`.
 *
 * **Example** (A client that retries by a policy of ours)
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
  policy: RetryPolicy<Attempted, R, RateLimitExceeded>
): Effect.Effect<ClientStrategy, never, R> =>
  Effect.contextWith((context: Context.Context<R>) =>
    Effect.map(
      RetryStrategy.make(policy),
      (service) => new SdkStrategy(service, context as Context.Context<never>, partsOf(policy))
    )
  )

/**
 * A plug-in for clients with a {@link makeRetryStrategy}: it tells the strategy of the abort signals of calls, so that a call
 * that is aborted while it waits is gone at once: what it holds goes back, and it leaves the queue.
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
export const abortPlugin: Pluggable<any, any> = Abort.plugin
