/**
 * Who is notified of what a policy does.
 *
 * By default each retry and each stop becomes an event of the current span, and nothing else happens. {@link layer} adds
 * an observer of your own, such as that of `RetryMetrics`, which counts; {@link layerOnly} replaces what there is. An
 * observer that does not ask for attempts costs calls that succeed nothing.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Tracer from "effect/Tracer"
import { causeOf, maxCauseDepth } from "./internal/facts/codes.ts"
import { statusOf } from "./internal/facts/wire.ts"
import { get } from "./internal/safe.ts"
import type { Retry, Stop } from "./RetryDecision.ts"
import type { RetryInfo } from "./RetryInfo.ts"

/**
 * Notified while a call runs. A callback is given the error and the services of the caller, its span among them. The call
 * goes on when it returns; if it returns an effect (that needs nothing and cannot fail), when that is done. So it must be
 * quick. What it throws, or dies of, is a defect of the call.
 *
 * @category models
 * @since 0.1.0
 */
export interface RetryObserver {
  /** An attempt ended with a success, or with a typed failure and its error. */
  readonly onAttempt?: ((succeeded: boolean, error: unknown, context: Caller) => unknown) | undefined
  /**
   * A retry will be made, after its delay. Under `Effect.retry`, whose other conditions may still stop a retry that pays
   * from a quota, it is notified when that is sent.
   */
  readonly onRetry?: ((retry: Retry, error: unknown, context: Caller) => unknown) | undefined
  /** What becomes of a hedge: see `Hedge`. The error is that of one that was sent and has failed. */
  readonly onHedge?: ((hedge: Hedge, error: unknown, context: Caller) => unknown) | undefined
  /** A failed call is not retried. */
  readonly onStop?: ((stop: Stop, error: unknown, context: Caller) => unknown) | undefined
}

/**
 * A hedge: an extra send of a call whose first send has not answered yet.
 *
 * **Details**
 *
 * One that is sent is notified of twice: when it is `"sent"`, and when its call has ended: it has `"won"` if its answer is
 * that of the call, else it has `"lost"`. One that is `"refused"` is never sent.
 *
 * @category models
 * @since 0.1.0
 */
export interface Hedge {
  readonly event: "sent" | "won" | "lost" | "refused"
  /** The number of the hedge in its call: 1 for the first. */
  readonly hedge: number
  /**
   * Why it is refused: the budget is used up; a gate refuses it, or says that its resource is strained; the deadline of
   * the call has come.
   */
  readonly reason: "budget" | "gate" | "strained" | "deadline" | undefined
}

/**
 * The services of the caller.
 *
 * @category models
 * @since 0.1.0
 */
export type Caller = Context.Context<never>

/**
 * The name of the resource that is called: `undefined`, unless somebody names it. `ResourceLimiters` does, by its key.
 * Span events, metrics and the logger show it; an observer finds it in the services of the caller.
 *
 * **Example** (A name for calls that have no limiters of their own)
 *
 * ```ts
 * callDynamo.pipe(withRetry(awsStandard), Effect.provideService(RetryObserver.CurrentResource, "dynamodb:orders"))
 * ```
 *
 * **Example** (An observer that reads it)
 *
 * ```ts
 * const stopped: RetryObserver.RetryObserver = {
 *   onStop: ({ reason }, _error, context) =>
 *     Effect.logWarning(reason, Context.get(context, RetryObserver.CurrentResource))
 * }
 * ```
 *
 * **Gotchas**
 *
 * It names the quota around the call, too: where a part of it has another quota, name that part as well.
 *
 * @category services
 * @since 0.1.0
 */
export const CurrentResource: Context.Reference<string | undefined> = /* @__PURE__ */ Context.Reference<
  string | undefined
>("effect-retry/RetryObserver/CurrentResource", { defaultValue: () => undefined })

/**
 * The class of a failure: `"throttling"`, `"timeout"`, `"transient"`, or `"unknown"` when the classifier did not know it.
 *
 * @category getters
 * @since 0.1.0
 */
export const failureClass = (info: RetryInfo | undefined): "throttling" | "timeout" | "transient" | "unknown" => {
  if (info === undefined) return "unknown"
  if (info.throttling) return "throttling"
  return info.timeout ? "timeout" : "transient"
}

/** As many as OpenTelemetry keeps of a span. */
const mostEvents = 128

/** How many events each span has had. */
const events = new WeakMap<Tracer.Span, number>()

const addEvent = (
  context: Caller,
  name: string,
  info: RetryInfo | undefined,
  attributes: Record<string, unknown>
): void => {
  const span = Context.getOrUndefined(context, Tracer.ParentSpan)
  if (span?._tag !== "Span") return
  const before = events.get(span) ?? 0
  if (before > mostEvents) return
  events.set(span, before + 1)
  const now = Context.get(context, Clock.Clock).currentTimeNanosUnsafe()
  attributes["retry.class"] = failureClass(info)
  const resource = Context.get(context, CurrentResource)
  if (resource !== undefined) attributes["retry.resource"] = resource
  span.event(before < mostEvents ? name : "retry.dropped", now, attributes)
}

/**
 * The observer that adds events to the current span: `retry` (`retry.attempt`, `retry.delay_ms`, `retry.class`,
 * `retry.cost`) and `retry.stopped` (`retry.reason`, `retry.attempts`, `retry.class`); both have `retry.resource` where
 * {@link CurrentResource} names one. Nothing of the error itself is in them. A span gets at most 128 of them. The next one is called `retry.dropped`, and it is the last: a span that never ends
 * does not grow forever.
 *
 * @category constructors
 * @since 0.1.0
 */
export const spanEvents: RetryObserver = {
  onRetry: ({ cost, delayMillis, info, retry }, _error, context) =>
    addEvent(context, "retry", info, {
      "retry.attempt": retry,
      "retry.delay_ms": delayMillis,
      "retry.cost": cost
    }),
  onStop: ({ attempts, info, reason }, _error, context) =>
    addEvent(context, "retry.stopped", info, {
      "retry.reason": reason,
      "retry.attempts": attempts
    })
}

/** What can stand in a line of a log: no message, nothing secret. */
const isWord = (u: unknown): u is string => typeof u === "string" && /^[\w.$:#/-]{1,64}$/.test(u) && u !== "Error"

/** What the error, or what caused it, is called, and the status of an answer; nothing of its message. */
const nameOf = (error: unknown): string => {
  const status = statusOf(error)
  let code: unknown
  let cause = error
  for (let depth = 0; depth <= maxCauseDepth && !isWord(code) && cause !== undefined; depth++) {
    code = get(cause, "code")
    cause = causeOf(cause)
  }
  const name = [code, get(error, "_tag"), get(error, "name")].find(isWord)
  return [status === undefined ? [] : `HTTP ${status}`, name ?? []].flat().join(" ") || "an error without a name"
}

/** The resource, at the end of a line: names come from anywhere. */
const suffixOf = (context: Caller): string => {
  const resource = Context.get(context, CurrentResource)
  if (resource === undefined) return ""
  return ` (${[resource].find(isWord) ?? JSON.stringify(resource.slice(0, 64))})`
}

/**
 * The observer that logs: each retry at level Debug, and why a call is not retried at level Warning, once. A call that
 * leaves it to an outer one says so at Debug. Nothing of the error is in it but its code, its name and its status. The
 * resource comes last, where {@link CurrentResource} names one.
 *
 * ```text
 * retry 2 of 3 in 480 ms after ECONNRESET (orders)
 * not retried after 4 attempts: max-attempts, ECONNRESET (orders)
 * ```
 *
 * **Example** (Logs next to the span events)
 *
 * ```ts
 * program.pipe(Effect.provide(RetryObserver.layer(RetryObserver.logger)))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const logger: RetryObserver = {
  onRetry: ({ delayMillis, maxAttempts, retry }, error, context) => {
    const most = maxAttempts === Infinity ? "" : ` of ${maxAttempts - 1}`
    return Effect.logDebug(`retry ${retry}${most} in ${delayMillis} ms after ${nameOf(error)}${suffixOf(context)}`)
  },
  onStop: ({ attempts, reason }, error, context) => {
    const after = `${attempts} attempt${attempts === 1 ? "" : "s"}`
    const line = `not retried after ${after}: ${reason}, ${nameOf(error)}${suffixOf(context)}`
    return reason === "nested" ? Effect.logDebug(line) : Effect.logWarning(line)
  }
}

/**
 * The observer that does nothing.
 *
 * @category constructors
 * @since 0.1.0
 */
export const none: RetryObserver = {}

type Callback<A> = ((value: A, error: unknown, context: Caller) => unknown) | undefined

const both = <A>(first: Callback<A>, second: Callback<A>): Callback<A> => {
  if (first === undefined || second === undefined) return first ?? second
  return (value, error, context) => {
    const told = first(value, error, context)
    if (!Effect.isEffect(told)) return second(value, error, context)
    return Effect.andThen(
      told,
      Effect.suspend(() => {
        const next = second(value, error, context)
        return Effect.isEffect(next) ? next : Effect.void
      })
    )
  }
}

/**
 * Notifies both observers, `self` first.
 *
 * @category combinators
 * @since 0.1.0
 */
export const combine = (self: RetryObserver, that: RetryObserver): RetryObserver => ({
  onAttempt: both(self.onAttempt, that.onAttempt),
  onRetry: both(self.onRetry, that.onRetry),
  onHedge: both(self.onHedge, that.onHedge),
  onStop: both(self.onStop, that.onStop)
})

/**
 * The observer in force. Defaults to {@link spanEvents}.
 *
 * @category services
 * @since 0.1.0
 */
export const CurrentObserver: Context.Reference<RetryObserver> = Context.Reference<RetryObserver>(
  "effect-retry/RetryObserver/CurrentObserver",
  { defaultValue: () => spanEvents }
)

/**
 * A layer that adds an observer to the one in force where it is provided: to {@link spanEvents}, unless there is another.
 *
 * **Gotchas**
 *
 * Of two layers that are merged only one holds. Provide one with the other:
 * `RetryObserver.layer(second).pipe(Layer.provide(RetryObserver.layer(first)))`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (observer: RetryObserver): Layer.Layer<never> =>
  Layer.effect(
    CurrentObserver,
    Effect.map(CurrentObserver, (present) => combine(present, observer))
  )

/**
 * A layer that sets the observer, in place of the one in force: {@link none} switches everything off.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerOnly = (observer: RetryObserver): Layer.Layer<never> => Layer.succeed(CurrentObserver, observer)
