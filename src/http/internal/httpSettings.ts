import type * as Effect from "effect/Effect"
import type { HttpClientRequest } from "effect/http/HttpClientRequest"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import { checksOf } from "../../internal/checks.ts"
import * as Options from "../../internal/options.ts"
import { guarded, look } from "../../internal/tryGet.ts"
import { orElse, type RetryClassifier } from "../../RetryClassifier.ts"
import { classifierOf, classifierOptions } from "./classifyResponse.ts"

/**
 * The sending of a request, until its response has begun.
 *
 * @category models
 * @since 0.1.0
 */
export type Send<E, R> = Effect.Effect<HttpClientResponse, E, R>

/**
 * The host and port of a request, `""` if its URL has none: the usual `resource`.
 *
 * **Example** (A quota and gates for each host)
 *
 * ```ts
 * const perHost = RetryHttp.layer(awsStandard2026, { resource: RetryHttp.hostOf }).pipe(
 *   Layer.provide([FetchHttpClient.layer, ResourceLimiters.layer({ coolDown: {}, limiter: "unlimited" })])
 * )
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const hostOf = ({ url }: HttpClientRequest): string => look(() => new URL(url).host) ?? ""

/** Options of a client that retries. */
const clientOptions = {
  ...classifierOptions,
  attemptTimeout: Options.optional(Options.positiveDuration()),
  classifier: Options.optional(Options.functionOf<RetryClassifier>("a function of a failure")),
  newConnection: Options.optional(Options.functionOf<<E, R>(send: Send<E, R>) => Send<E, R>>("a function of a send")),
  resource: Options.optional(Options.functionOf<(request: HttpClientRequest) => string>("a function of a request")),
  disableProxyRetries: Options.flag(),
  reuseConnection: Options.word("throttling", "always", "never"),
  hintSpread: Options.share(0.1)
}

export type Settings = ReturnType<typeof settingsOf>

/** `lastMillis`: how long an attempt may take that none can follow, if that is longer. */
export const settingsOf = (
  options: Options.Inputs<typeof clientOptions>,
  constructorName: string,
  lastMillis?: number
) => {
  const valid = Options.validOptions(checksOf(constructorName, options), clientOptions, options)
  const { attemptTimeoutMillis, classifier, resource } = valid
  const own = classifierOf(valid)
  return {
    ...valid,
    classifier: classifier === undefined ? own : orElse(classifier, own),
    lastTimeoutMillis: lastMillis ?? attemptTimeoutMillis,
    resource: resource && guarded(resource, hostOf)
  }
}
