/**
 * A limit on requests and tokens per period, like the rate limits of language model services: requests and tokens per
 * minute.
 *
 * The usage of a call is known only when it ends. So a send reserves its expected usage, and is settled by its actual
 * usage: the surplus goes back, an excess is a debt that later sends wait for. Limits and remaining amounts reported in
 * response headers are adopted. A send without enough tokens waits, first come, first served, instead of being sent and
 * rejected.
 *
 * It assumes that all its sends count against one limit: give each model, or key, its own limiter.
 *
 * @since 0.1.0
 */

import type * as Config from "effect/Config"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Layer from "effect/Layer"
import { checks } from "../internal/checks.ts"
import * as Facts from "../internal/classification/tokenUsage.ts"
import { monotonicMillis } from "../internal/clock.ts"
import { configured } from "../internal/layerConfig.ts"
import { watched } from "../internal/sharing.ts"
import type { InvalidOption } from "../InvalidOption.ts"
import type * as SendGate from "../SendGate.ts"
import { GateService, serviceFrom } from "./internal/gate.ts"
import * as Gate from "./internal/tokenGate.ts"

export { CurrentEstimate, type Estimate, TokenLimitExceeded } from "./internal/tokenGate.ts"

/**
 * What a call used, in tokens. Without input or output it is not whole, and a send counts as estimated.
 *
 * @category models
 * @since 0.1.0
 */
export interface Usage {
  /** Input tokens not read from a cache: those read fresh, and those written to the cache. */
  readonly input?: number | undefined
  /** Input tokens read from a cache. */
  readonly cached?: number | undefined
  /** Output tokens, reasoning included. */
  readonly output?: number | undefined
}

/**
 * Options of a limiter.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * Requests per window: a whole number of at least 1, or `Infinity`. Default: what the service reports, and no limit
   * until then.
   */
  readonly requests?: number | undefined
  /** Input and output tokens per window, as OpenAI counts. Values and default as for `requests`. */
  readonly tokens?: number | undefined
  /** Input tokens per window, as Anthropic counts. Values and default as for `requests`. */
  readonly inputTokens?: number | undefined
  /** Output tokens per window, as Anthropic counts. Values and default as for `requests`. */
  readonly outputTokens?: number | undefined
  /** The window: a finite duration above 0. Default 1 minute. */
  readonly per?: Duration.Input | undefined
  /**
   * The largest burst, as the part of a window in which it refills: a duration above 0, at most `per`. Default: a whole
   * window. Services may enforce a limit in shorter parts of its window.
   */
  readonly burst?: Duration.Input | undefined
  /**
   * A margin held back from `burst`, in the same measure: a duration of at least 0, below `burst`. It covers sends that
   * overtake each other on the way. It costs no throughput. Default a fiftieth of `burst`.
   */
  readonly slack?: Duration.Input | undefined
  /** This limiter's share of the limits, if several processes divide them: above 0, at most 1. Default 1. */
  readonly share?: number | undefined
  /** Whether input read from a cache counts: with OpenAI it does, with Anthropic it does not. Default `"free"`. */
  readonly cachedInput?: "free" | "counted" | undefined
  /**
   * The usage of a call without an estimate, until some have ended. Default 1,000 input tokens and 1,000 output tokens.
   */
  readonly estimate?: Gate.Estimate | undefined
  /** Reads the usage from the value of a success, or a part of a stream. If it throws, none. Default {@link usageOf}. */
  readonly usage?: ((value: unknown) => Usage | undefined) | undefined
  /** What a send does without enough tokens. Default `"wait"`. */
  readonly onExceeded?: "wait" | "fail" | undefined
  /** How long a send waits before it is rejected: a finite duration above 0. Default twice `per`. */
  readonly maxWait?: Duration.Input | undefined
  /** How many sends may wait: a whole number of at least 0, or `Infinity`. Default 10,000. */
  readonly maxWaiters?: number | undefined
}

/**
 * The current state of one limit.
 *
 * @category models
 * @since 0.1.0
 */
export interface Level {
  /** What may be used per window; `Infinity` until known. */
  readonly limit: number
  /** What may be used now; below 0 if more was used than available. */
  readonly remaining: number
}

/**
 * The current state of the limiter.
 *
 * @category models
 * @since 0.1.0
 */
export interface State {
  readonly requests: Level
  readonly tokens: Level
  readonly inputTokens: Level
  readonly outputTokens: Level
  /** Sends that have passed and are not settled yet. */
  readonly inFlight: number
  /** Sends waiting. */
  readonly waiting: number
}

/**
 * The operations of a limiter.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  /** Holds sends back. */
  readonly gate: SendGate.SendGate<Gate.TokenLimitExceeded>
  /** The limiter's current state. */
  readonly state: Effect.Effect<State>
}

/**
 * The token limiter of a model.
 *
 * @category services
 * @since 0.1.0
 */
export class TokenLimiter extends GateService<TokenLimiter, Service>()("effect-retry/TokenLimiter") {}

/**
 * Sets the expected usage of the calls of an effect, in tokens: a finite number of at least 0, or one each for input
 * and output. Throws `InvalidOption` for anything else.
 *
 * **Details**
 *
 * A send reserves that amount, and waits until it is available. The unused part goes back when the send ends. Some
 * services count a call's maximum output against the limit: for those, use `max_tokens` as the output estimate.
 *
 * **Example** (A prompt of 1,200 tokens)
 *
 * ```ts
 * const answer = call.pipe(withRetry(awsStandard), TokenLimiter.estimate({ input: 1200, output: 500 }))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const estimate: {
  (estimate: Gate.Estimate): <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  <A, E, R>(self: Effect.Effect<A, E, R>, estimate: Gate.Estimate): Effect.Effect<A, E, R>
} = /* @__PURE__ */ dual(
  2,
  <A, E, R>(self: Effect.Effect<A, E, R>, estimate: Gate.Estimate): Effect.Effect<A, E, R> =>
    Effect.provideService(self, Gate.CurrentEstimate, Gate.validEstimate(checks("TokenLimiter.estimate"), estimate))
)

/**
 * The usage reported by a model's response, or by a part of a stream; `undefined` if it reports none.
 *
 * **Details**
 *
 * It knows the responses and stream parts of the OpenAI (chat completions, responses, embeddings) and Anthropic SDKs,
 * plain or from `withResponse()`, of the AI SDK and of Effect's models. A part may have one half: of a message of
 * Anthropic's, the start has the input and the end the output.
 *
 * **Example** (An Anthropic message)
 *
 * ```ts
 * const usage = TokenLimiter.usageOf({ usage: { input_tokens: 20, cache_read_input_tokens: 100, output_tokens: 5 } })
 * usage?.input // 20
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const usageOf: (value: unknown) => Usage | undefined = Facts.usageOf

/**
 * Makes a limiter. Throws `InvalidOption` when an option is invalid.
 *
 * **Details**
 *
 * Each limit is a bucket that fills evenly. A send takes its estimate and one request, and passes when every bucket has
 * that much or is full: a send larger than a bucket passes too, and those after it wait longer. Its end settles it: a
 * success by its usage, or by the estimate if it does not report all of it; a rejection (a throttle, a status 4xx) returns the
 * tokens, but not the request; after any other failure or an interruption, the estimate counts as used.
 *
 * Headers of responses and errors (`x-ratelimit-*` of OpenAI, `anthropic-ratelimit-*`) lower a limit, or make one
 * known, and correct the remaining amount. A limit that no header repeats for ten windows is that of the options again,
 * and usage makes a limiter owe at most what a window gives. A throttle closes the limiter for as long as the service
 * asks, at most one window; without a hint and headers, all limits count as used up.
 *
 * **Source**: rate limits of Anthropic's API ("token bucket algorithm") and OpenAI's (headers, failed requests count).
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options?: Options): Effect.Effect<Service> => making(options)

const making = (options: Options = {}) => serviceFrom(Gate.tokenKind, options)

const makeShared = (options?: Options) =>
  watched("TokenLimiter", making(options), ({ gate }, clock) => gate.remainingShare(monotonicMillis(clock)))

/**
 * A layer with its own limiter. Throws `InvalidOption` when an option is invalid.
 *
 * **Gotchas**
 *
 * Provided to a single call, it builds a limiter for that call, even if the layer is a constant. Build it once, in a
 * `ManagedRuntime` or around the program. A call that no policy retries is limited only inside `attempt`.
 *
 * **Example** (500 requests and 200,000 tokens per minute)
 *
 * ```ts
 * const limiterLayer = TokenLimiter.layer({ requests: 500, tokens: 200_000 })
 * const program = call.pipe(withRetry(awsStandard), Effect.provide([RetryQuota.layer(), limiterLayer]))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<TokenLimiter> => Layer.effect(TokenLimiter, makeShared(options))

/**
 * A layer with its own limiter, with options from configuration: see {@link layer}. Fails with `InvalidOption` when an
 * option is invalid.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<TokenLimiter, Config.ConfigError | InvalidOption> =>
  Layer.effect(TokenLimiter, configured(options, makeShared))

/**
 * The limiter's current state.
 *
 * @category getters
 * @since 0.1.0
 */
export const state: Effect.Effect<State, never, TokenLimiter> = /* @__PURE__ */ TokenLimiter.use(
  (limiter) => limiter.state
)
