/**
 * A limit on requests and tokens in a time, as services of language models have: so many requests a minute, so many tokens.
 *
 * What a call will use is known when it has ended. So a send reserves what it is expected to use, and is settled by what it
 * has used: less goes back, more is a debt that later sends wait for. What the service says in its headers of its limits and
 * of what is left is taken over. A send for which there is not enough waits, first come, first served: it is not sent to be
 * refused.
 *
 * It assumes that all its sends count against one limit: give each model, or key, a limiter of its own.
 *
 * @since 0.1.0
 */

import type * as Clock from "effect/Clock"
import type * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Layer from "effect/Layer"
import { type Checks, checks } from "./internal/checks.ts"
import { monotonicMillis } from "./internal/clock.ts"
import { configured } from "./internal/config.ts"
import { type LimitName, limitNames } from "./internal/facts/tokenLimits.ts"
import * as Facts from "./internal/facts/usage.ts"
import { Refused } from "./internal/refused.ts"
import type { InvalidOption } from "./InvalidOption.ts"
import * as RetryInfo from "./RetryInfo.ts"
import * as SendGate from "./SendGate.ts"
import { type Meter, TokenGate, type TokenOptions } from "./state/tokens.ts"

/**
 * A send for which there are not enough tokens. It was not sent, and no policy retries it.
 *
 * @category errors
 * @since 0.1.0
 */
export class TokenLimitExceeded extends Data.TaggedError("TokenLimitExceeded")<{
  /** `"exceeded"` when there will not be enough in time, `"queue-full"` when `maxWaiters` were waiting already. */
  readonly reason: "exceeded" | "queue-full"
  /** When there could be enough for it: as things are, if nobody else sends. */
  readonly retryAfter: Duration.Duration
}> {
  /** @internal */
  readonly [Refused] = true
  get [RetryInfo.TypeId](): RetryInfo.RetryInfo {
    return RetryInfo.notRetryable
  }
  override get message(): string {
    return this.reason === "exceeded"
      ? `the limit of tokens or requests is reached: come back in ${Duration.format(this.retryAfter)}`
      : "too many sends are waiting for tokens"
  }
}

/**
 * What a call has used, in tokens.
 *
 * @category models
 * @since 0.1.0
 */
export interface Usage {
  /** Tokens of input that were not read from a cache: those read anew, and those written to one. */
  readonly input?: number | undefined
  /** Tokens of input that were read from a cache. */
  readonly cached?: number | undefined
  /** Tokens of output, reasoning included. */
  readonly output?: number | undefined
}

/**
 * What a call is expected to use, in tokens: of input and of output, or of both together.
 *
 * @category models
 * @since 0.1.0
 */
export type Estimate = number | {
  /** Default: what nineteen of twenty calls have used lately. */
  readonly input?: number | undefined
  /** Default: what nineteen of twenty calls have used lately. */
  readonly output?: number | undefined
}

/**
 * How a limiter is made.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Requests in a window: a whole number of at least 1. Default: what the service says, and no limit before. */
  readonly requests?: number | undefined
  /** Tokens of input and output in a window, as OpenAI counts. Values and default as for `requests`. */
  readonly tokens?: number | undefined
  /** Tokens of input in a window, as Anthropic counts. Values and default as for `requests`. */
  readonly inputTokens?: number | undefined
  /** Tokens of output in a window, as Anthropic counts. Values and default as for `requests`. */
  readonly outputTokens?: number | undefined
  /** The window: a finite duration above 0. Default 1 minute. */
  readonly per?: Duration.Input | undefined
  /**
   * How much may be used at once, as the part of a window in which it flows in: a duration above 0, at most `per`. Default:
   * all of a window. Services may hold a limit in shorter parts of its window.
   */
  readonly burst?: Duration.Input | undefined
  /**
   * How much less than `burst` is used at once, in the same measure: a duration of at least 0, below `burst`. Sends that
   * overtake one another on their way then find enough. It costs no throughput. Default a fiftieth of `burst`.
   */
  readonly slack?: Duration.Input | undefined
  /** The part of the limits that is for this limiter, where several processes share them: above 0, at most 1. Default 1. */
  readonly share?: number | undefined
  /** Whether input that was read from a cache counts: it does with OpenAI, not with Anthropic. Default `"free"`. */
  readonly cachedInput?: "free" | "counted" | undefined
  /** What a call uses that brings no estimate, until some have ended. Default 1,000 tokens of input and 1,000 of output. */
  readonly estimate?: Estimate | undefined
  /** What the value of a success, or a part of a stream, says it has used. Default {@link usageOf}. */
  readonly usage?: ((value: unknown) => Usage | undefined) | undefined
  /** What a send does for which there is not enough. Default `"wait"`. */
  readonly whenFull?: "wait" | "fail" | undefined
  /** How long a send waits before it is refused: a finite duration above 0. Default twice `per`. */
  readonly maxWait?: Duration.Input | undefined
  /** How many sends may wait: a whole number of at least 0, or `Infinity`. Default 10,000. */
  readonly maxWaiters?: number | undefined
}

/**
 * A limit at a moment.
 *
 * @category models
 * @since 0.1.0
 */
export interface Level {
  /** What may be used in a window; `Infinity` as long as it is not known. */
  readonly limit: number
  /** What may be used now; less than 0 when more was used than there was. */
  readonly remaining: number
}

/**
 * The limiter at a moment.
 *
 * @category models
 * @since 0.1.0
 */
export interface Snapshot {
  readonly requests: Level
  readonly tokens: Level
  readonly inputTokens: Level
  readonly outputTokens: Level
  /** Sends that have passed and are not settled. */
  readonly inFlight: number
  /** Sends that wait. */
  readonly waiting: number
}

/**
 * What a limiter does.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  /** What holds sends back. */
  readonly gate: SendGate.SendGate<TokenLimitExceeded>
  /** The limiter now. */
  readonly snapshot: Effect.Effect<Snapshot>
}

/**
 * The token limiter of a model.
 *
 * @category services
 * @since 0.1.0
 */
export class TokenLimiter extends Context.Service<TokenLimiter, Service>()(
  SendGate.register("effect-retry/TokenLimiter", ({ gate }: Service) => gate) as "effect-retry/TokenLimiter"
) {}

/**
 * What the calls of an effect are expected to use; see {@link estimate}. Default: nothing is said.
 *
 * @category services
 * @since 0.1.0
 */
export const CurrentEstimate: Context.Reference<Estimate | undefined> = Context.Reference<Estimate | undefined>(
  "effect-retry/TokenLimiter/CurrentEstimate",
  { defaultValue: () => undefined }
)

/**
 * Counts what a stream uses: see `RetryLlm.metered`.
 *
 * @internal
 */
export const CurrentMeter: Context.Reference<Meter | undefined> = Context.Reference<Meter | undefined>(
  "effect-retry/TokenLimiter/CurrentMeter",
  { defaultValue: () => undefined }
)

/** A number is input and output together: for the limits of either it is the most that there can be of input. */
const expectedOf = (estimate: Estimate | undefined) =>
  typeof estimate === "number" ? { input: estimate, output: 0 } : estimate

const validEstimate = (check: Checks, estimate: Estimate): Estimate => {
  if (typeof estimate === "number") return check.amount("estimate", estimate)
  if (typeof estimate !== "object" || estimate === null) {
    return check.reject("estimate", estimate, "a number of tokens, or of input and output")
  }
  const fields = (["input", "output"] as const).filter((field) => estimate[field] !== undefined)
  return Object.fromEntries(fields.map((field) => [field, check.amount(`estimate.${field}`, estimate[field])]))
}

/**
 * Says what the calls of an effect are expected to use, in tokens: a finite number of at least 0, or one each for input and
 * output. Throws `InvalidOption` for anything else.
 *
 * **Details**
 *
 * A send reserves so much, and waits until it is there. What is less goes back when it ends. Services that count the longest
 * output that a call allows refuse what reserves less: take their `max_tokens` for the output.
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
  (estimate: Estimate): <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  <A, E, R>(self: Effect.Effect<A, E, R>, estimate: Estimate): Effect.Effect<A, E, R>
} = /* @__PURE__ */ dual(
  2,
  <A, E, R>(self: Effect.Effect<A, E, R>, estimate: Estimate): Effect.Effect<A, E, R> =>
    Effect.provideService(self, CurrentEstimate, validEstimate(checks("TokenLimiter.estimate"), estimate))
)

/**
 * What an answer of a model says it has used, or a part of one that comes as a stream; `undefined` where it says nothing.
 *
 * **Details**
 *
 * It knows the answers and stream parts of the SDKs of OpenAI (chat completions, responses, embeddings) and Anthropic, alone
 * and in what their `withResponse()` gives, and those of Effect's `LanguageModel`.
 *
 * **Example** (A message of Anthropic)
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

const refused: TokenOptions<TokenLimitExceeded>["refused"] = (reason, millis) =>
  new TokenLimitExceeded({ reason, retryAfter: Duration.millis(Math.ceil(millis)) })

const timesOf = (check: Checks, { burst, maxWait, per = 60_000, share = 1, slack }: Options) => {
  const perMillis = check.positiveDuration("per", per)
  const burstMillis = check.positiveDuration("burst", burst, perMillis)
  if (burstMillis > perMillis) check.reject("burst", burst, "a duration of at most per")
  const slackMillis = check.duration("slack", slack, burstMillis / 50)
  if (slackMillis >= burstMillis) check.reject("slack", slack, "a duration below burst")
  return {
    perMillis,
    burstMillis,
    slackMillis,
    share: check.inside("share", share, 0, 1 + Number.EPSILON),
    maxWaitMillis: check.positiveDuration("maxWait", maxWait, 2 * perMillis)
  }
}

const validated = (options: Options): TokenOptions<TokenLimitExceeded> => {
  const check = checks("TokenLimiter.make")
  const { estimate = {}, maxWaiters = 10_000, usage = usageOf } = options
  if (typeof usage !== "function") check.reject("usage", usage, "a function of a value")
  const ceilingOf = (name: LimitName) => check.count(name, options[name] ?? Infinity, 1)
  const { input = 1000, output = 1000 } = expectedOf(validEstimate(check, estimate))!
  return {
    ...timesOf(check, options),
    ceilings: limitNames.map(ceilingOf),
    countsCached: check.oneOf("cachedInput", options.cachedInput, ["free", "counted"], "free") === "counted",
    estimate: { input, output },
    usage: usage as TokenOptions<TokenLimitExceeded>["usage"],
    estimateOf: (context) => expectedOf(Context.get(context, CurrentEstimate)),
    meterOf: (context) => Context.get(context, CurrentMeter),
    whenFull: check.oneOf("whenFull", options.whenFull, ["wait", "fail"], "wait"),
    maxWaiters: check.count("maxWaiters", maxWaiters, 0),
    refused
  }
}

/**
 * Makes a limiter. Throws `InvalidOption` when an option is impossible.
 *
 * **Details**
 *
 * Each limit is a bucket that is filled evenly. A send takes its estimate and one request, and passes when all buckets have
 * that, or are full: one that needs more than a bucket holds passes too, and those after it wait the longer. How it ends
 * settles it: a success by its usage, or the estimate where it says none; a refusal (a throttle, a status 4xx) gives the
 * tokens back, but not the request; after any other failure, and an interruption, the estimate counts as used.
 *
 * Headers of answers and errors (`x-ratelimit-*` of OpenAI, `anthropic-ratelimit-*`) lower a limit, or make one known, and
 * correct what is left. A throttle closes the limiter for as long as the service asks, a window at most; without a hint and
 * headers, all limits count as used up.
 *
 * **Source**: rate limits of Anthropic's API ("token bucket algorithm") and OpenAI's (headers, requests that fail count).
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options?: Options): Effect.Effect<Service> => {
  const valid = validated(options ?? {})
  return Effect.sync(() => serviceOf(new TokenGate(valid)))
}

const serviceOf = (gate: TokenGate<TokenLimitExceeded>): Service => ({
  gate,
  snapshot: Effect.clockWith((clock: Clock.Clock) =>
    Effect.sync(() => {
      const [requests, tokens, inputTokens, outputTokens] = gate.levels(monotonicMillis(clock))
      return {
        requests: requests!,
        tokens: tokens!,
        inputTokens: inputTokens!,
        outputTokens: outputTokens!,
        inFlight: gate.inFlight,
        waiting: gate.waiting
      }
    })
  )
})

/**
 * A layer with a limiter of its own. Throws `InvalidOption` when an option is impossible.
 *
 * **Gotchas**
 *
 * Each call makes another layer, and each layer another limiter. Keep the layer in a constant to share the limiter. A call
 * without `withRetry` or `attempt` is not limited.
 *
 * **Example** (500 requests and 200,000 tokens a minute)
 *
 * ```ts
 * const limiterLayer = TokenLimiter.layer({ requests: 500, tokens: 200_000 })
 * const program = call.pipe(withRetry(awsStandard), Effect.provide([RetryQuota.layer(), limiterLayer]))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<TokenLimiter> => Layer.effect(TokenLimiter, make(options))

/**
 * A layer with a limiter of its own whose options come from configuration: see {@link layer}. Fails with `InvalidOption`
 * when an option is impossible.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<TokenLimiter, Config.ConfigError | InvalidOption> =>
  Layer.effect(TokenLimiter, configured(options, make))

/**
 * The limiter now.
 *
 * @category getters
 * @since 0.1.0
 */
export const snapshot: Effect.Effect<Snapshot, never, TokenLimiter> = /* @__PURE__ */ TokenLimiter.use(
  (limiter) => limiter.snapshot
)
