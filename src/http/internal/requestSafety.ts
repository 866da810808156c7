import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { constFalse, constTrue } from "effect/Function"
import type { HttpClientRequest } from "effect/http/HttpClientRequest"
import type * as Predicate from "effect/Predicate"
import { isRepeatable as isShown } from "../../internal/classification/wire.ts"

/**
 * Which requests can be sent twice although their method does not say so. Default: none. A predicate that throws marks
 * nothing.
 *
 * **Example** (A search that is a POST)
 *
 * ```ts
 * program.pipe(Effect.provideService(
 *   RetryHttp.CurrentRepeatable,
 *   (request) => request.url.endsWith("/_search")
 * ))
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export const CurrentRepeatable: Context.Reference<Predicate.Predicate<HttpClientRequest>> = Context.Reference<
  Predicate.Predicate<HttpClientRequest>
>("effect-retry/RetryHttp/CurrentRepeatable", { defaultValue: () => constFalse })

/**
 * Declares that every request of the effect can be sent twice, whatever its method.
 *
 * @category combinators
 * @since 0.1.0
 */
export const repeatable: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R> = Effect.provideService(
  CurrentRepeatable,
  constTrue
)

const isDeclaredSafe = (request: HttpClientRequest): boolean => {
  try {
    return Fiber.getCurrent()?.getRef(CurrentRepeatable)(request) === true
  } catch {
    return false
  }
}

/** Whether the request can safely be sent twice. */
export const isRepeatable = (request: HttpClientRequest): boolean => isShown(request) || isDeclaredSafe(request)
