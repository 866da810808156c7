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
import { Unbegun } from "../drivers/internal/streamBeginning.ts"
import { bringing } from "../engine/callContext.ts"
import { compiledOf, fromCompiled } from "../engine/policy/policy.ts"
import { withServices } from "../engine/policy/providedPolicy.ts"
import { CurrentMeter } from "../gates/internal/tokenGate.ts"
import * as TokenLimiter from "../gates/TokenLimiter.ts"
import { Refused } from "../internal/refused.ts"
import { type AnyContext, shared } from "../internal/shared.ts"
import * as RetryClassifier from "../RetryClassifier.ts"
import * as RetryObserver from "../RetryObserver.ts"
import type * as RetryPolicy from "../RetryPolicy.ts"
import * as RetryQuota from "../RetryQuota.ts"
import { tokensIn } from "./internal/tokenEstimate.ts"
import { metered, untilAnswer } from "./RetryLlm.ts"

/** The limiter's refusal, as an error that a model may fail with. No policy retries it. */
const refusedBy = (method: string) => (error: unknown): unknown => {
  if (!(error instanceof TokenLimiter.TokenLimitExceeded)) return error
  const reason = new AiError.RateLimitError({ retryAfter: error.retryAfter })
  return Object.assign(AiError.make({ module: "RetryLanguageModel", method, reason }), { [Refused]: true })
}

/** A model also passes on errors of tools: no reason to ask the model again, and to run its tools again. */
const ofModels = (classifier: RetryClassifier.RetryClassifier): RetryClassifier.RetryClassifier => (error) =>
  AiError.isAiError(error) || error instanceof Unbegun ? classifier(error) : Option.none()

/** The context of a send: the caller's own, for the tools that it calls. */
const inside = (caller: AnyContext) => (context: Context.Context<any>): Context.Context<any> => {
  const tags = [
    RetryQuota.RetryQuota,
    TokenLimiter.CurrentEstimate,
    CurrentMeter,
    RetryClassifier.CurrentClassifier,
    RetryObserver.CurrentObserver,
    RetryObserver.CurrentResource,
    ...shared.gates.map(({ tag }) => tag)
  ]
  return Context.merge(Context.omit(...tags)(context), Context.pick(...tags)(caller))
}

type Policy = RetryPolicy.RetryPolicy<unknown, never, RetryQuota.RetryQuota>

/** The context of a call of the model, with what its calls share. */
const aroundOf =
  (bring: (caller: AnyContext) => AnyContext, own: Context.Context<any>) =>
  (prompt: unknown) =>
  (caller: AnyContext): Context.Context<any> => {
    const context = bring(caller)
    const classifier = Context.get(context, RetryClassifier.CurrentClassifier)
    const estimate = Context.get(context, TokenLimiter.CurrentEstimate) ?? { input: tokensIn(prompt) }
    return Context.merge(context, own).pipe(
      Context.add(TokenLimiter.CurrentEstimate, estimate),
      Context.add(RetryClassifier.CurrentClassifier, ofModels(classifier))
    )
  }

/** The model with retries. It calls through to the model, with its types. */
const retriedModel = (model: LanguageModel.LanguageModel, policy: Policy, around: ReturnType<typeof aroundOf>) => {
  const retried = (method: "generateText" | "generateObject") => (options: any) => {
    const self: Effect.Effect<any, any, any> = (model as any)[method](options)
    return Effect.contextWith((caller: AnyContext) =>
      Effect.updateContext(self, inside(caller)).pipe(
        Attempt.withRetry(policy),
        Effect.mapError(refusedBy(method)),
        Effect.updateContext(around(options.prompt))
      )
    )
  }
  return {
    ...model,
    generateText: retried("generateText"),
    generateObject: retried("generateObject"),
    streamText: (options: any) => {
      const self: Stream.Stream<any, any> = model.streamText(options)
      return Stream.unwrap(Effect.map(Effect.context<never>(), (caller) =>
        self.pipe(
          Stream.updateContext(inside(caller)),
          untilAnswer(policy),
          metered,
          Stream.mapError(refusedBy("streamText")),
          Stream.updateContext(around(options.prompt))
        )))
    }
  } as LanguageModel.LanguageModel
}

/**
 * A layer with a model whose calls are retried as the policy says and held back by a token limiter.
 *
 * **Details**
 *
 * All calls of the layer share their own `RetryQuota` and `TokenLimiter`. The limiter is made from `limits`; without
 * any, it learns them from response headers. A call is expected to use one token per four characters of its prompt, and
 * as much output as recent calls: set it more precisely with `TokenLimiter.estimate`. A call is settled by the usage of
 * the response; a stream, which is retried until its answer begins, by its last part. A refusal of the limiter is an
 * `AiError` with the reason `RateLimitError`. Other gates are those that the layer is given, or else those of the call;
 * classifier and observer those of the call, or else those that the layer is given. Tools run with the services of the
 * caller; their errors are not retried.
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
export const withRetry = (
  policy: RetryPolicy.RetryPolicy<unknown, never, RetryQuota.RetryQuota>,
  limits?: TokenLimiter.Options
) => {
  const makeLimiter = TokenLimiter.make(limits)
  const retrying = Layer.effect(
    LanguageModel.LanguageModel,
    Effect.gen(function*() {
      const model = yield* LanguageModel.LanguageModel
      const own = Context.make(TokenLimiter.TokenLimiter, yield* makeLimiter).pipe(
        Context.add(RetryQuota.RetryQuota, yield* RetryQuota.make())
      )
      return yield* withServices<LanguageModel.LanguageModel, never>(
        compiledOf(policy),
        (compiled, made) => retriedModel(model, fromCompiled(compiled), aroundOf(bringing(compiled, made), own))
      )
    })
  )
  return <A, E, R>(
    self: Layer.Layer<LanguageModel.LanguageModel | A, E, R>
  ): Layer.Layer<LanguageModel.LanguageModel | A, E, R> => Layer.provideMerge(retrying, self)
}
