/**
 * Deadlines and attempts across processes: what remains of a call goes with each of its sends, and the server that gets it
 * knows when nobody waits any more, and that it must not retry what its caller retries.
 *
 * With {@link layer}, requests of `RetryHttp` and calls of `RetryGrpc` say which send they are, of how many, how much is left
 * of the deadline, and how much the call matters; and they are aborted at the deadline. With {@link server}, a server of
 * Effect reads that, refuses what is too late, and everything it calls in turn has what is left.
 *
 * | header | by default | what it says |
 * | --- | --- | --- |
 * | `deadline` | `x-deadline-ms` | milliseconds that are left; as `grpc-timeout` in its own form |
 * | `attempt` | `x-retry-attempt` | which send of the call, from 1 |
 * | `maxAttempts` | `x-retry-max-attempts` | of how many; missing where there is no limit |
 * | `criticality` | `x-criticality` | `sheddable`, `normal` or `critical` |
 *
 * Times go as what is left, never as a time of day: no clocks have to agree. What the way takes is not subtracted.
 *
 * The package's index does not export this module: import `effect-retry/RetryPropagation`.
 *
 * @since 0.1.0
 */

import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import type * as ConcurrencyLimiter from "../ConcurrencyLimiter.ts"
import { CurrentCriticality } from "../Criticality.ts"
import { checks } from "../internal/checks.ts"
import { clockOf, monotonicMillis } from "../internal/clock.ts"
import { CurrentOnward, headersIn, type Names, type Onward, remainingIn } from "../internal/onward.ts"
import { get } from "../internal/safe.ts"
import * as RetryInfo from "../RetryInfo.ts"
import { namesOf, until, working } from "./internal/journey.ts"

/**
 * How the headers are called: the same in all processes.
 *
 * @category models
 * @since 0.1.0
 */
export interface HeaderNames {
  /** What is left of the deadline. `"grpc-timeout"` is written as gRPC does. Default `"x-deadline-ms"`. */
  readonly deadline?: string | undefined
  /** Which send it is. Default `"x-retry-attempt"`. */
  readonly attempt?: string | undefined
  /** How many there may be. Default `"x-retry-max-attempts"`. */
  readonly maxAttempts?: string | undefined
  /** How much the call matters. Default `"x-criticality"`. */
  readonly criticality?: string | undefined
}

/**
 * The deadline of a call is over: whoever asked does not wait any more. It is never retried.
 *
 * @category errors
 * @since 0.1.0
 */
export class DeadlineExceeded extends Data.TaggedError("DeadlineExceeded")<{
  /** How long the work took until then; zero when it was over before it began. */
  readonly after: Duration.Duration
}> {
  get [RetryInfo.TypeId](): RetryInfo.RetryInfo {
    return RetryInfo.notRetryable
  }
  override get message(): string {
    return `the deadline of the call is over, ${Duration.format(this.after)} after the work on it began`
  }
}

const begin = (names: Names): Onward => ({
  names,
  attempt: 1,
  maxAttempts: 1,
  deadlineAtMillis: Infinity,
  isRetried: false
})

/**
 * A layer with which sends tell servers of their call, for all calls under it.
 *
 * **Details**
 *
 * The deadline is that of the policy (`RetryPolicy.deadline`), of {@link withDeadline} and of the request that a
 * {@link server} works on: the earliest. With it in place, it also ends what it otherwise does not: a send of `RetryHttp`
 * that runs is aborted, and `RetryGrpc` gives it to the client. Throws `InvalidOption` for a name that no header can have.
 *
 * **Gotchas**
 *
 * A policy with a deadline counts from the beginning of its own call. Calls pay for it: the first attempt does not run bare.
 * The headers go to every server that is called, also to those of others.
 *
 * **Example** (A program whose calls are propagated)
 *
 * ```ts
 * const PropagationLive = RetryPropagation.layer({ deadline: "x-envoy-expected-rq-timeout-ms" })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (headers: HeaderNames = {}): Layer.Layer<never> =>
  Layer.succeed(CurrentOnward, begin(namesOf(headers, "RetryPropagation.layer")))

const defaultNames = /* @__PURE__ */ namesOf({}, "RetryPropagation")

const late = (millis: number) => Effect.fail(new DeadlineExceeded({ after: Duration.millis(millis) }))

/**
 * Gives an effect a deadline, which all sends inside it are told: at it, the effect is interrupted and fails with
 * {@link DeadlineExceeded}. Of two deadlines the earlier holds. Throws `InvalidOption` unless it is above 0.
 *
 * **Example** (Everything that a request does)
 *
 * ```ts
 * const order = call.pipe(withRetry(awsStandard), RetryPropagation.withDeadline("2 seconds"))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const withDeadline = (limit: Duration.Input) => {
  const millis = checks("RetryPropagation.withDeadline").positiveDuration("deadline", limit)
  return <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E | DeadlineExceeded, R> =>
    Effect.withFiber((fiber) => {
      const onward = fiber.getRef(CurrentOnward) ?? begin(defaultNames)
      const deadlineAtMillis = Math.min(onward.deadlineAtMillis, monotonicMillis(clockOf(fiber)) + millis)
      const inside = Effect.provideService(self, CurrentOnward, { ...onward, deadlineAtMillis })
      return until(inside, Math.min(millis, remainingIn(fiber.context)), late)
    })
}

/**
 * What is left of the deadline: none without one, zero when it is over.
 *
 * @category getters
 * @since 0.1.0
 */
export const remaining: Effect.Effect<Option.Option<Duration.Duration>> = /* @__PURE__ */ Effect.withFiber(
  ({ context }) => {
    const millis = remainingIn(context)
    return Effect.succeed(millis === Infinity ? Option.none() : Option.some(Duration.millis(millis)))
  }
)

/**
 * What a send tells the server, as headers, for clients of your own: run inside the attempt. Without {@link layer} there are
 * none.
 *
 * **Example** (Where a client of your own would set them)
 *
 * ```ts
 * const order = RetryPropagation.headers.pipe(Effect.andThen(call), withRetry(awsStandard))
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const headers: Effect.Effect<{ readonly [name: string]: string }> = /* @__PURE__ */ Effect.withFiber(
  ({ context }) => Effect.succeed(headersIn(context) ?? {})
)

/**
 * How a server takes what its callers tell.
 *
 * @category models
 * @since 0.1.0
 */
export interface ServerOptions {
  /** How the headers are called, of requests that come and of those that the work on them makes. */
  readonly headers?: HeaderNames | undefined
  /**
   * Bounds the requests that are worked on: those that matter most go first, and what matters least is refused first when too
   * many wait. Default: no bound.
   */
  readonly limiter?: ConcurrencyLimiter.Service | undefined
}

/** A slot of the limiter while it works. A refusal is answered before there is any work. */
const limited = <A, E, R, B>(
  limiter: ConcurrencyLimiter.Service | undefined,
  work: Effect.Effect<A, E, R>,
  refused: Effect.Effect<B>
): Effect.Effect<A | B, E, R> => {
  if (limiter === undefined) return work
  return Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(
      Scope.make(),
      (scope) =>
        Effect.matchEffect(restore(Effect.provideService(limiter.slot, Scope.Scope, scope)), {
          onFailure: () => refused,
          onSuccess: () => restore(work)
        }).pipe(Effect.onExit((exit) => Scope.close(scope, exit)))
    )
  )
}

/** Nobody waits for the answer, or the server is too busy for it: a retry would make it worse. */
const refusal = (status: number) => HttpServerResponse.empty({ status, headers: { "x-should-retry": "false" } })

/**
 * A middleware for servers of Effect: `HttpRouter.middleware(RetryPropagation.server(), { global: true })`, or
 * `HttpServer.serve(app, RetryPropagation.server())`.
 *
 * **Details**
 *
 * - A request whose time is over is answered with 504 before any work; one that runs out of time is interrupted and answered
 *   so. The answer says `x-should-retry: false`, which `RetryHttp` and the clients of OpenAI and Anthropic heed.
 * - Everything that the work sends has what is left of the deadline, where it goes through `RetryHttp`, `RetryGrpc` or
 *   {@link headers}; and policies here retry no longer than that.
 * - A policy with `RetryPolicy.outermostOnly` does not retry when the caller retries: the sends of three processes in a row
 *   with three attempts each are 3, not 27.
 * - `Criticality.CurrentCriticality` is that of the caller. With a `limiter`, what finds no slot is answered with
 *   503: what is sheddable first, and that with `x-should-retry: false`.
 *
 * Where the headers of this module are missing, `grpc-timeout`, `x-envoy-attempt-count` and `grpc-previous-rpc-attempts` are
 * read. What is not a number is ignored; a deadline is a week away at most.
 *
 * **Gotchas**
 *
 * It believes what it is told: a stranger can claim to be critical. At the edge, let a proxy remove the headers.
 *
 * **Example** (A server that knows when nobody waits any more)
 *
 * ```ts
 * const deadlines = RetryPropagation.server({ headers: { deadline: "grpc-timeout" } })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const server = (options: ServerOptions = {}) => {
  const { limiter } = options
  if (limiter !== undefined && get(limiter, "slot") === undefined) {
    checks("RetryPropagation.server").reject("limiter", limiter, "a ConcurrencyLimiter")
  }
  const names = namesOf(options.headers ?? {}, "RetryPropagation.server")
  const shed = Effect.withFiber((fiber) =>
    Effect.succeed(
      fiber.getRef(CurrentCriticality) === "sheddable" ? refusal(503) : HttpServerResponse.empty({ status: 503 })
    )
  )
  return <E, R>(
    app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
  ): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | HttpServerRequest.HttpServerRequest> =>
    HttpServerRequest.HttpServerRequest.use((request) =>
      working(limited(limiter, app, shed), request.headers, names, () => Effect.succeed(refusal(504)))
    )
}
