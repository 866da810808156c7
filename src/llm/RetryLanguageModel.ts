/**
 * Models of `effect/ai` that retry, and stay within the limits of their service.
 *
 * @since 0.1.0
 */

import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Attempt from "../Attempt.ts"
import * as RetryStream from "../drivers/RetryStream.ts"
import * as TokenLimiter from "../gates/TokenLimiter.ts"
import { Refused } from "../internal/refused.ts"
import * as RetryClassifier from "../RetryClassifier.ts"
import type * as RetryPolicy from "../RetryPolicy.ts"
import * as RetryQuota from "../RetryQuota.ts"
import { tokensIn } from "./internal/tokenEstimate.ts"
import { metered } from "./RetryLlm.ts"

type AnyContext = Context.Context<never>

/** The limiter's refusal, as an error that a model may fail with. No policy retries it. */
const refusedBy = (method: string) => (error: unknown): unknown =>
  error instanceof TokenLimiter.TokenLimitExceeded
    ? Object.assign(
      AiError.make({
        module: "RetryLanguageModel",
        method,
        reason: new AiError.RateLimitError({ retryAfter: error.retryAfter })
      }),
      { [Refused]: true }
    )
    : error

/** What the calls of a model share. */
interface Shared {
  readonly limiter: TokenLimiter.Service
  readonly quota: RetryQuota.Service
}

/** A model also passes on errors of tools: no reason to ask the model again, and to run its tools again. */
const ofModels = (classifier: RetryClassifier.RetryClassifier): RetryClassifier.RetryClassifier => (error) =>
  AiError.isAiError(error) ? classifier(error) : Option.none()

const services: ReadonlyArray<Context.Key<any, any>> = [RetryQuota.RetryQuota, TokenLimiter.TokenLimiter]
const references: ReadonlyArray<Context.Reference<any>> = [
  TokenLimiter.CurrentEstimate,
  TokenLimiter.CurrentMeter,
  RetryClassifier.CurrentClassifier
]

/** The context of a call of the model. */
const around = ({ limiter, quota }: Shared, prompt: unknown) => (caller: AnyContext): Context.Context<any> =>
  Context.merge(
    caller,
    Context.make(RetryQuota.RetryQuota, quota).pipe(
      Context.add(TokenLimiter.TokenLimiter, limiter),
      Context.add(
        TokenLimiter.CurrentEstimate,
        Context.get(caller, TokenLimiter.CurrentEstimate) ?? { input: tokensIn(prompt) }
      ),
      Context.add(
        RetryClassifier.CurrentClassifier,
        ofModels(Context.get(caller, RetryClassifier.CurrentClassifier))
      )
    )
  )

/** The context of a send: the caller's own, for the tools that it calls. */
const inside = (caller: AnyContext) => (context: Context.Context<any>): Context.Context<any> => {
  let restored: Context.Context<any> = context
  for (const key of references) restored = Context.add(restored, key, Context.get(caller, key))
  for (const key of services) {
    const own = Context.getOrUndefined(caller, key)
    restored = own === undefined ? Context.omit(key)(restored) as Context.Context<any> : Context.add(restored, key, own)
  }
  return restored
}

type Policy = RetryPolicy.RetryPolicy<unknown, never, RetryQuota.RetryQuota>

class Retrying {
  private readonly model: LanguageModel.LanguageModel
  private readonly policy: Policy
  private readonly shared: Shared

  constructor(model: LanguageModel.LanguageModel, policy: Policy, shared: Shared) {
    this.model = model
    this.policy = policy
    this.shared = shared
  }

  /** The model with retries. It calls through to the model, with its types. */
  get service(): LanguageModel.LanguageModel {
    const { model } = this
    return {
      ...model,
      generateText: (options: any) => this.effect("generateText", options, model.generateText(options)),
      generateObject: (options: any) => this.effect("generateObject", options, model.generateObject(options)),
      streamText: (options: any) => this.stream(options, model.streamText(options))
    } as LanguageModel.LanguageModel
  }

  private effect(method: string, { prompt }: any, self: Effect.Effect<any, any, any>): Effect.Effect<any, any, any> {
    return Effect.contextWith((caller: AnyContext) =>
      Effect.updateContext(self, inside(caller)).pipe(
        Attempt.withRetry(this.policy),
        Effect.mapError(refusedBy(method)),
        Effect.updateContext(around(this.shared, prompt))
      )
    )
  }

  private stream({ prompt }: any, self: Stream.Stream<any, any>): Stream.Stream<any, any> {
    return Stream.unwrap(Effect.contextWith((caller: AnyContext) =>
      Effect.succeed(
        self.pipe(
          Stream.updateContext(inside(caller)),
          RetryStream.untilFirst(this.policy),
          metered,
          Stream.mapError(refusedBy("streamText")),
          Stream.updateContext(around(this.shared, prompt))
        )
      )
    ))
  }
}

/**
 * A layer with a model whose calls are retried as the policy says and held back by a token limiter.
 *
 * **Details**
 *
 * All calls of the layer share their own `RetryQuota` and `TokenLimiter`. The limiter is made from `limits`; without
 * any, it learns them from response headers. A call is expected to use one token per four characters of its prompt, and
 * as much output as recent calls: set it more precisely with `TokenLimiter.estimate`. A call is settled by the usage of
 * the response; a stream, which is retried until its first part, by its last part. A refusal of the limiter is an
 * `AiError` with the reason `RateLimitError`. Tools run with the services of the caller; their errors are not retried.
 *
 * Throws `InvalidOption` when a limit is invalid.
 *
 * **Example** (A model within 500 requests and 200,000 tokens per minute)
 *
 * ```ts
 * const modelLayer = model.pipe(
 *   RetryLanguageModel.withRetry(RetryLlm.openai, { requests: 500, tokens: 200_000, cachedInput: "counted" })
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const withRetry = (policy: Policy, limits?: TokenLimiter.Options) => {
  const makeLimiter = TokenLimiter.make(limits)
  const retrying = Layer.effect(
    LanguageModel.LanguageModel,
    Effect.gen(function*() {
      const model = yield* LanguageModel.LanguageModel
      return new Retrying(model, policy, { limiter: yield* makeLimiter, quota: yield* RetryQuota.make() }).service
    })
  )
  return <A, E, R>(
    self: Layer.Layer<LanguageModel.LanguageModel | A, E, R>
  ): Layer.Layer<LanguageModel.LanguageModel | A, E, R> => Layer.provideMerge(retrying, self)
}
