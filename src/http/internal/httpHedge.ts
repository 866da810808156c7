import * as Effect from "effect/Effect"
import type { HttpClientRequest } from "effect/http/HttpClientRequest"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import { Hedge } from "../../hedge/Hedge.ts"
import { type HedgeOptions, hedging as race } from "../../hedge/internal/race.ts"
import { classify, CurrentClassifier, type RetryClassifier } from "../../RetryClassifier.ts"
import { discard } from "./bufferedBody.ts"
import { inside, isResponse, mayFail } from "./classifyResponse.ts"
import type { Send } from "./httpSettings.ts"
import { isOneShot, isRepeatable } from "./requestSafety.ts"

/** Closes the unread response of a send. */
const release: HedgeOptions["release"] = (exit) => {
  const held = exit._tag === "Success" ? exit.value : exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error
  return isResponse(held) ? discard(held, false) : Effect.void
}

/**
 * Hedges a request that can be sent twice. A response that the classifier considers a failure loses to one that is not.
 */
export const hedging =
  (options: HedgeOptions, classifier: RetryClassifier) =>
  <E, R>(send: Send<E, R>, request: HttpClientRequest): Send<E, R | Hedge> =>
    Effect.withFiber((fiber) => {
      if (!isRepeatable(request) || isOneShot(request.body)) return send
      const outer = fiber.getRef(CurrentClassifier)
      const failures = new Set<unknown>()
      const sent: Effect.Effect<HttpClientResponse, E | HttpClientResponse, R> = Effect.flatMap(
        Effect.provideService(send, CurrentClassifier, outer),
        (response) =>
          mayFail(response) && Option.isSome(classify(classifier, response))
            ? Effect.fail(failures.add(response) && response)
            : Effect.succeed(response)
      )
      return Hedge.use(({ home }) => race(sent, { ...options, release }, home)).pipe(
        Effect.provideService(CurrentClassifier, inside(classifier, outer)),
        Effect.catch((failure) =>
          failures.has(failure) ? Effect.succeed(failure as HttpClientResponse) : Effect.fail(failure as E)
        )
      )
    })
