/**
 * Calls to language model services: policies for OpenAI and Anthropic, and the expected usage of a call.
 *
 * A `TokenLimiter` keeps calls within the limits of the service; a policy from this module retries what still fails.
 * The SDKs of both services retry on their own: switch that off (`maxRetries: 0`), or both retry.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import type * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as Backoff from "../Backoff.ts"
import { untilBegun } from "../drivers/internal/streamBeginning.ts"
import { CurrentMeter, Meter } from "../gates/internal/tokenGate.ts"
import { checksOf } from "../internal/checks.ts"
import { inCode, validOptions } from "../internal/options.ts"
import { get } from "../internal/tryGet.ts"
import * as RetryPolicy from "../RetryPolicy.ts"
import type { RetryQuota } from "../RetryQuota.ts"
import { failureOf, isAnswer } from "./internal/answerParts.ts"
import { tokensIn } from "./internal/tokenEstimate.ts"

/**
 * Settings of the policies for language models.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Attempts, the first included: a whole number of at least 1, or `Infinity`. Default 3, as in the SDKs. */
  readonly maxAttempts?: number | undefined
  /** The longest hint to follow: a finite duration of at least 0. Default 1 minute, the window of most limits. */
  readonly atMost?: Duration.Input | undefined
  /**
   * The time after which nothing is retried: a finite duration above 0. Default 10 minutes, the timeout of the SDKs.
   */
  readonly deadline?: Duration.Input | undefined
}

/**
 * Makes a policy with the constants of the OpenAI and Anthropic SDKs, plus a quota and bounds, which they lack.
 *
 * **Details**
 *
 * | setting | value |
 * | --- | --- |
 * | delay before retry `n` | `min(0.5 * 2^(n - 1), 8)` seconds, times `1 - random * 0.25` |
 * | attempts | 3 |
 * | quota | a retry takes 5, after a timeout 10; a success returns those of its retry, or adds 1 |
 * | server's hint | a floor; a hint longer than `atMost` ends the call, where OpenAI's SDK sleeps as long as the hint
 * says |
 * | deadline | 10 minutes |
 *
 * **Source**: npm `openai` 6.49.0 and `@anthropic-ai/sdk` 1.12.0, `client.js`; the quota is that of AWS's standard mode.
 *
 * **Gotchas**
 *
 * The SDKs also retry a 409, which is retried here only if the service says so (`x-should-retry: true`).
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options = {}): RetryPolicy.RetryPolicy<unknown, never, RetryQuota> => {
  validOptions(checksOf("RetryLlm.make", options), { maxAttempts: inCode, atMost: inCode, deadline: inCode }, options)
  const { atMost = "1 minute", deadline = "10 minutes", maxAttempts = 3 } = options
  // A seventh up or down from seven eighths spans three quarters to the whole.
  return Backoff.exponential(437.5, 2, { cap: "7 seconds" }).pipe(
    RetryPolicy.jittered({ proportional: 1 / 7 }),
    RetryPolicy.honorRetryAfter({ atMost, beyond: "stop" }),
    RetryPolicy.maxAttempts(maxAttempts),
    RetryPolicy.whileRetryable,
    RetryPolicy.deadline(deadline),
    RetryPolicy.quotaGated({ cost: 5, timeoutCost: 10 })
  )
}

/**
 * For OpenAI: see {@link make}.
 *
 * @category policies
 * @since 0.1.0
 */
export const openai: RetryPolicy.RetryPolicy<unknown, never, RetryQuota> = /* @__PURE__ */ make()

/**
 * For Anthropic: see {@link make}.
 *
 * @category policies
 * @since 0.1.0
 */
export const anthropic: RetryPolicy.RetryPolicy<unknown, never, RetryQuota> = /* @__PURE__ */ make()

/** The parts of a request that a model reads. */
const read = ["messages", "input", "prompt", "system", "instructions", "tools"] as const

/** The fields in which a request limits its output. */
const most = ["max_completion_tokens", "max_output_tokens", "max_tokens"] as const

/**
 * The expected usage of a request to OpenAI or Anthropic: one input token per four characters of text, and as output
 * the most that the request allows, if it says so.
 *
 * **Gotchas**
 *
 * Images, audio and files count as nothing. Anthropic does not count the allowed output: use only `input` there.
 *
 * **Example** (A prompt of 12 characters)
 *
 * ```ts
 * const { input } = RetryLlm.estimateOf({ messages: [{ content: "How are you?" }], max_tokens: 100 })
 * input // 3
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const estimateOf = (request: object): { readonly input: number; readonly output?: number | undefined } => {
  const input = tokensIn(read.map((name) => get(request, name)))
  const isCount = (value: unknown) => Number.isSafeInteger(value) && value as number >= 0
  const output = most.map((name) => get(request, name)).find(isCount)
  return output === undefined ? { input } : { input, output: output as number }
}

/**
 * Retries a stream as the policy says until its answer begins. A failure after that is not retried.
 *
 * **Details**
 *
 * Like `RetryStream.untilFirst`, with parts of OpenAI (chat completions, responses), Anthropic, the AI SDK
 * (`fullStream`) and Effect's models: what comes before the first word, the first call of a tool or the end of the
 * answer, such as `message_start`, `response.created`, a role or a ping, is held back until then, at most 100 parts.
 *
 * An attempt also fails with a part that reports an error (`error`, `response.failed`), which is classified by the error
 * in it, and with the end of a stream without an answer. If that is not retried, its parts come out as they are.
 *
 * **Example** (A model's response, part by part)
 *
 * ```ts
 * const parts = Stream.fromEffect(call).pipe(RetryLlm.untilAnswer(RetryLlm.anthropic))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const untilAnswer: {
  <Err, R2>(
    policy: Schedule.Schedule<unknown, unknown, Err, R2>
  ): <A, E, R>(self: Stream.Stream<A, E, R>) => Stream.Stream<A, E | Err, R | R2>
  <A, E, R, Err, R2>(
    self: Stream.Stream<A, E, R>,
    policy: Schedule.Schedule<unknown, unknown, Err, R2>
  ): Stream.Stream<A, E | Err, R | R2>
} = /* @__PURE__ */ dual(
  2,
  (self: Stream.Stream<any, any, any>, policy: Schedule.Schedule<unknown>) =>
    untilBegun(self, policy, { begins: isAnswer, failure: failureOf })
)

/**
 * Settles the send of a stream by the usage in its last parts, when it has ended. Without it, the estimate counts as
 * used, since a stream's usage is unknown when it begins.
 *
 * **Details**
 *
 * Put it around the retry: {@link untilAnswer}. OpenAI's chat completions report their usage only on request
 * (`stream_options: { include_usage: true }`).
 *
 * **Example** (A model's response, part by part)
 *
 * ```ts
 * const parts = Stream.fromEffect(call).pipe(RetryLlm.untilAnswer(RetryLlm.openai), RetryLlm.metered)
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const metered = <A, E, R>(self: Stream.Stream<A, E, R>): Stream.Stream<A, E, R> =>
  Stream.unwrap(
    Effect.map(Clock.Clock, (clock) => {
      const meter = new Meter(clock)
      return self.pipe(
        Stream.tap((part) => Effect.sync(() => meter.see(part))),
        Stream.ensuring(Effect.sync(() => meter.end())),
        Stream.provideService(CurrentMeter, meter)
      )
    })
  )
