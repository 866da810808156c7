/**
 * Limits of a language model: requests and tokens per period, shared by
 * all callers.
 *
 * `npx tsx examples/llm-limits.ts` runs it with a stand-in for a model,
 * in seconds instead of minutes. For a provider's model only the layer
 * changes.
 */
import { Array, Context, Duration, Effect, Layer, Stream } from "effect"
import { RetryPolicy, RetryQuota, withRetry } from "effect-retry"
import * as RetryLanguageModel from "effect-retry/RetryLanguageModel"
import * as RetryLlm from "effect-retry/RetryLlm"
import { retryPromise } from "effect-retry/RetryPromise"
import * as TokenLimiter from "effect-retry/TokenLimiter"
import { LanguageModel } from "effect/ai"
import type OpenAI from "openai"
import type { APIError } from "openai"
import { main, print } from "./support/program.ts"

const usage = {
  inputTokens: { uncached: 300, total: 300 },
  outputTokens: { total: 200 }
}

/** A stand-in for a model: it reads 300 tokens and writes 200. */
export const standIn = Layer.effect(
  LanguageModel.LanguageModel,
  LanguageModel.make({
    generateText: () =>
      Effect.delay(
        Effect.succeed([{ type: "text", text: "Aye." }, {
          type: "finish",
          reason: "stop",
          usage,
          response: undefined
        }]),
        "50 millis"
      ),
    streamText: () => Stream.empty
  })
)

/**
 * The same model, with retries, within 20 requests and 4,000 tokens per
 * second.
 */
export const limited = standIn.pipe(
  RetryLanguageModel.withRetry(RetryLlm.openai, {
    requests: 20,
    tokens: 4000,
    per: "1 second"
  })
)

/**
 * Sixteen questions at the same time: seven within the limit, then
 * eight per second.
 */
export const program = Effect.gen(function*() {
  const ask = Effect.timed(
    LanguageModel.generateText({ prompt: "Is it so?" })
  ).pipe(
    TokenLimiter.estimate({ input: 300, output: 200 })
  )
  const answers = yield* Effect.forEach(Array.range(1, 16), () => ask, {
    concurrency: "unbounded"
  })
  return answers.map(([duration, { text }]) =>
    `${text} ${
      Duration.format(
        Duration.millis(Math.round(Duration.toMillis(duration)))
      )
    }`
  )
}).pipe(Effect.provide(limited))

/** What all calls of an SDK share. */
export const shared = TokenLimiter.layer({
  requests: 500,
  tokens: 200_000,
  cachedInput: "counted"
}).pipe(
  Layer.merge(RetryQuota.layer())
)

/**
 * An SDK without its own retries. With `withResponse()` the limiter
 * sees the headers too.
 */
export const complete = (
  openai: OpenAI,
  request: OpenAI.ChatCompletionCreateParamsNonStreaming
) =>
  Effect.tryPromise({
    try: (signal) =>
      openai.chat.completions.create(request, { maxRetries: 0, signal })
        .withResponse(),
    catch: (error) => error as APIError
  }).pipe(
    withRetry(
      RetryLlm.openai.pipe(
        RetryPolicy.requires(TokenLimiter.TokenLimiter)
      )
    ),
    TokenLimiter.estimate(RetryLlm.estimateOf(request))
  )

/**
 * Outside Effect: the services, made once, and the expected usage of
 * one call.
 */
export const promised = async (
  openai: OpenAI,
  request: OpenAI.ChatCompletionCreateParamsNonStreaming
) => {
  const context = await services
  return retryPromise(
    ({ signal }) =>
      openai.chat.completions.create(request, { maxRetries: 0, signal })
        .withResponse(),
    RetryLlm.openai,
    {
      context: Context.add(
        context,
        TokenLimiter.CurrentEstimate,
        RetryLlm.estimateOf(request)
      )
    }
  )
}

const services = Effect.runPromise(Effect.scoped(Layer.build(shared)))

main(
  import.meta.url,
  Effect.flatMap(program, (lines) => print(lines.join("\n")))
)
