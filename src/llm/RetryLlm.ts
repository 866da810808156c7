/**
 * Calls to services of language models: policies for OpenAI and Anthropic, and what a call is expected to use.
 *
 * A `TokenLimiter` keeps calls within the limits of the service; a policy here retries what fails nevertheless. The SDKs of
 * both services retry by themselves: switch that off (`maxRetries: 0`), or both retry.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Backoff from "../Backoff.ts"
import { get } from "../internal/safe.ts"
import * as RetryPolicy from "../RetryPolicy.ts"
import type { RetryQuota } from "../RetryQuota.ts"
import { Meter } from "../state/tokens.ts"
import * as TokenLimiter from "../TokenLimiter.ts"
import { tokensIn } from "./internal/text.ts"

/**
 * What can be set in the policies for language models.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Attempts, the first included: a whole number of at least 1. Default 3, as in the SDKs. */
  readonly maxAttempts?: number | undefined
  /** The longest hint that is followed: a finite duration of at least 0. Default 1 minute, the window of most limits. */
  readonly atMost?: Duration.Input | undefined
  /** From when on nothing is retried: a finite duration above 0. Default 10 minutes, the time-out of the SDKs. */
  readonly deadline?: Duration.Input | undefined
}

/**
 * Makes a policy with the figures of the SDKs of OpenAI and Anthropic, a quota, and bounds that they lack.
 *
 * **Details**
 *
 * | setting | value |
 * | --- | --- |
 * | delay before retry `n` | `min(0.5 * 2^(n - 1), 8)` seconds, times `1 - random * 0.25` |
 * | attempts | 3 |
 * | quota | a retry takes 5, after a time-out 10; a success gives the last back, or puts 1 in |
 * | server's hint | a floor; a longer one than `atMost` ends the call, where the SDK of OpenAI sleeps for as long as it says |
 * | deadline | 10 minutes |
 *
 * **Source**: npm `openai` 6.49.0 and `@anthropic-ai/sdk` 1.12.0, `client.js`; the quota is that of AWS's standard mode.
 *
 * **Gotchas**
 *
 * The SDKs retry a 409 too, which here is retried where the service says so (`x-should-retry: true`).
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  { atMost = "1 minute", deadline = "10 minutes", maxAttempts = 3 }: Options = {}
): RetryPolicy.RetryPolicy<RetryPolicy.Attempted, RetryQuota> =>
  // A seventh around seven eighths is from three quarters to the whole.
  Backoff.exponential({ base: 437.5, factor: 2, cap: "7 seconds" }).pipe(
    RetryPolicy.jittered({ proportional: 1 / 7 }),
    RetryPolicy.honorRetryAfter({ atMost, beyond: "stop" }),
    RetryPolicy.maxAttempts(maxAttempts),
    RetryPolicy.whileRetryable,
    RetryPolicy.deadline(deadline),
    RetryPolicy.quotaGated({ cost: 5, timeoutCost: 10 })
  )

/**
 * For OpenAI: see {@link make}.
 *
 * @category policies
 * @since 0.1.0
 */
export const openai: RetryPolicy.RetryPolicy<RetryPolicy.Attempted, RetryQuota> = /* @__PURE__ */ make()

/**
 * For Anthropic: see {@link make}.
 *
 * @category policies
 * @since 0.1.0
 */
export const anthropic: RetryPolicy.RetryPolicy<RetryPolicy.Attempted, RetryQuota> = /* @__PURE__ */ make()

/** What of a request a model reads. */
const read = ["messages", "input", "prompt", "system", "instructions", "tools"] as const

/** How a request says what may be written at most. */
const most = ["max_completion_tokens", "max_output_tokens", "max_tokens"] as const

/**
 * What a request to OpenAI or Anthropic is expected to use: of input a token for each four characters of text, of output all
 * that it allows, if it says so.
 *
 * **Gotchas**
 *
 * Pictures, sounds and files count nothing. Anthropic does not count what a request allows: take the `input` alone there.
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
export const estimateOf = (
  request: object
): { readonly input: number; readonly output?: number | undefined } => {
  const input = tokensIn(read.map((name) => get(request, name)))
  const output = most.map((name) => get(request, name)).find((value) =>
    Number.isSafeInteger(value) && value as number >= 0
  )
  return output === undefined ? { input } : { input, output: output as number }
}

/**
 * Settles the send of a stream by what its last parts say it has used, when it has ended. Without it, the estimate counts
 * as used: what a stream uses is not known when it begins.
 *
 * **Details**
 *
 * It goes around what retries: `RetryStream.untilFirst`. OpenAI's chat completions say what they used only when asked to
 * (`stream_options: { include_usage: true }`).
 *
 * **Example** (The answer of a model, part by part)
 *
 * ```ts
 * const parts = Stream.fromEffect(call).pipe(RetryStream.untilFirst(RetryLlm.openai), RetryLlm.metered)
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
        Stream.provideService(TokenLimiter.CurrentMeter, meter)
      )
    })
  )
