/**
 * Deadlines and attempts across processes: each send of a call carries what is left of its deadline, so the server
 * knows when its caller has stopped waiting, and that it must not retry what its caller retries.
 *
 * With {@link layer}, requests of `RetryHttp` and calls of `RetryGrpc` say which send they are, of how many, how much
 * of the deadline is left, and how much the call matters; and they are aborted at the deadline. With {@link server}, an
 * Effect server reads that, rejects requests that are too late, and passes what is left to everything it calls.
 *
 * | header | default | what it says |
 * | --- | --- | --- |
 * | `deadline` | `x-deadline-ms` | milliseconds left; as `grpc-timeout` in gRPC's format |
 * | `attempt` | `x-retry-attempt` | which send of the call, from 1 |
 * | `maxAttempts` | `x-retry-max-attempts` | of how many; absent if there is no limit |
 * | `criticality` | `x-criticality` | `sheddable`, `normal` or `critical` |
 *
 * Deadlines travel as the time left, never as a time of day: clocks need not agree. The network latency is not
 * subtracted.
 *
 * The package's index does not export this module: import `effect-retry/RetryPropagation`.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { Criticality } from "../Criticality.ts"
import { checks } from "../internal/checks.ts"
import { clockOf, monotonicMillis } from "../internal/clock.ts"
import { headersIn, propagatedIn, propagating, remainingIn } from "../internal/propagation.ts"
import * as RetryInfo from "../RetryInfo.ts"
import { type HeaderNames, namesOf, type ServerOptions, serving, until } from "./internal/serverPropagation.ts"

export type { HeaderNames, ServerOptions } from "./internal/serverPropagation.ts"

/**
 * The deadline of a call has passed: its caller no longer waits. It is never retried.
 *
 * @category errors
 * @since 0.1.0
 */
export class DeadlineExceeded extends Data.TaggedError("DeadlineExceeded")<{
  /** How long the work took until then; zero if the deadline had passed before it began. */
  readonly after: Duration.Duration
}> {
  get [RetryInfo.TypeId](): RetryInfo.RetryInfo {
    return RetryInfo.notRetryable
  }
  override get message(): string {
    return `the deadline of the call passed ${Duration.format(this.after)} after work on it began`
  }
}

/** What is said of a call outside any retry. */
const first = { attempt: 1, maxAttempts: 1, deadlineAtMillis: Infinity, isRetried: false }

/**
 * A layer with which sends tell servers about their call, for all calls under it.
 *
 * **Details**
 *
 * The deadline is the earliest of those of the policy (`RetryPolicy.deadline`), of {@link withDeadline} and of the
 * request that a {@link server} works on. With this layer it also ends sends in flight: one of `RetryHttp` is aborted,
 * and `RetryGrpc` passes the deadline to the client. Throws `InvalidOption` for an invalid header name.
 *
 * **Gotchas**
 *
 * A policy's deadline counts from the start of its own call. Calls pay for it: the first attempt does not run bare. The
 * headers go to every server that is called, including third parties.
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
  Layer.succeedContext(propagating(Context.empty(), { ...first, names: namesOf(headers, "RetryPropagation.layer") }))

const defaultNames = /* @__PURE__ */ namesOf({}, "RetryPropagation")

const late = (millis: number) => Effect.fail(new DeadlineExceeded({ after: Duration.millis(millis) }))

/**
 * Gives an effect a deadline, which all sends inside it carry: when it passes, the effect is interrupted and fails with
 * {@link DeadlineExceeded}. Of two deadlines, the earlier applies. Throws `InvalidOption` unless it is above 0.
 *
 * **Example** (Everything a request does)
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
      const propagated = propagatedIn(fiber.context) ?? { ...first, names: defaultNames }
      const deadlineAtMillis = Math.min(propagated.deadlineAtMillis, monotonicMillis(clockOf(fiber)) + millis)
      const inside = propagating(Context.empty(), { ...propagated, deadlineAtMillis })
      return until(Effect.provideContext(self, inside), Math.min(millis, remainingIn(fiber.context)), late)
    })
}

/**
 * The time left until the deadline: none without one, zero once it has passed.
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
 * What a send tells the server, as headers, for your own clients: run it inside the attempt. Empty outside
 * {@link layer}, {@link withDeadline} and {@link server}.
 *
 * **Example** (Where your own client would set them)
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

/** No caller waits for the response, or the server is too busy for it: a retry would make it worse. */
const refusal = (status: number) => HttpServerResponse.empty({ status, headers: { "x-should-retry": "false" } })

const busy = (criticality: Criticality) =>
  Effect.succeed(criticality === "sheddable" ? refusal(503) : HttpServerResponse.empty({ status: 503 }))

/**
 * A middleware for Effect servers: `HttpRouter.middleware(RetryPropagation.server(), { global: true })`, or
 * `HttpServer.serve(app, RetryPropagation.server())`.
 *
 * **Details**
 *
 * - A request whose deadline has passed is answered with 504 before any work; one that runs out of time is interrupted
 *   and answered the same way. The response carries `x-should-retry: false`, which `RetryHttp` and the OpenAI and
 *   Anthropic clients respect.
 * - Everything that the work sends through `RetryHttp`, `RetryGrpc` or {@link headers} carries what is left of the
 *   deadline; and policies here retry no longer than that.
 * - A policy with `RetryPolicy.outermostOnly` does not retry if the caller retries: three processes in a row with three
 *   attempts each make 3 sends, not 27.
 * - `Criticality.CurrentCriticality` is that of the caller, or one provided around the middleware if that is lower. With a `limiter`, requests without a slot are answered with
 *   503: sheddable ones first, with `x-should-retry: false`.
 *
 * If the headers of this module are missing, `grpc-timeout`, `x-envoy-attempt-count` and `grpc-previous-rpc-attempts`
 * are read. Values that are not numbers are ignored; a deadline is at most a week.
 *
 * **Gotchas**
 *
 * It trusts its callers: a stranger can claim to be critical, and to have a week. At the edge, have a proxy remove the
 * headers, or give the work around this middleware a deadline ({@link withDeadline}) and a criticality of its own: then
 * a caller can only be stricter.
 *
 * **Example** (A server that knows when its caller stops waiting)
 *
 * ```ts
 * const deadlines = RetryPropagation.server({ headers: { deadline: "grpc-timeout" } })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const server = (options: ServerOptions = {}) => {
  const serve = serving("RetryPropagation.server", options)
  const answers = { shed: busy, late: () => Effect.succeed(refusal(504)) }
  return <E, R>(
    app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
  ): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | HttpServerRequest.HttpServerRequest> =>
    HttpServerRequest.HttpServerRequest.use((request) => serve(app, request.headers, answers))
}
