/**
 * Notifications of what a policy does.
 *
 * By default each retry and each stop becomes an event of the current span, and nothing else happens. {@link layer}
 * adds your own observer, such as that of `RetryMetrics`, which counts; {@link layerOnly} replaces the current one. An
 * observer without `onAttempt`, `onSend` and `onCall` costs successful calls nothing.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Tracer from "effect/Tracer"
import { isWord, nameOf, wordOf } from "./internal/classification/errorName.ts"
import { statusOf } from "./internal/classification/wire.ts"
import { shared } from "./internal/shared.ts"
import type { Retry, Stop } from "./RetryDecision.ts"
import type { RetryInfo } from "./RetryInfo.ts"
import type { Send } from "./SendGate.ts"

/**
 * Notified while a call runs. A callback gets the error and the caller's services, including its span. The call
 * continues when the callback returns, or, if it returns an effect, which needs no services and cannot fail, when that
 * is done, or after a minute. So it must be quick. If it throws or dies after a failure, the call dies with that defect,
 * and its tokens go back. A success stays one, and hedges and sends are made all the same: then the library only warns,
 * once.
 *
 * @category models
 * @since 0.1.0
 */
export interface RetryObserver {
  /** An attempt ended with a success, or with a typed failure and its error. */
  readonly onAttempt?: Callback<boolean> | undefined
  /**
   * A retry will be made, after its delay, unless a gate then refuses it: see `onSend`. Under `Effect.retry`, other
   * conditions may still stop it, so it is notified when the delay is over.
   */
  readonly onRetry?: Callback<Retry> | undefined
  /** What happens to a hedge: see `Hedge`. The error is that of a hedge that was sent and failed. */
  readonly onHedge?: Callback<HedgeEvent> | undefined
  /** A failed call is not retried. */
  readonly onStop?: Callback<Stop> | undefined
  /**
   * A call that may be retried: what it returns runs in its place. `withRetry`, and everything built on it, notifies
   * it. `Effect.retry` cannot: see {@link call}.
   */
  readonly onCall?: Around<[context: Caller]> | undefined
  /** A send is made. To see how it ends, even if interrupted, hold a pass as a gate does. */
  readonly onSend?: ((send: Send) => void) | undefined
  /**
   * A send waits for a gate, or is refused by it, or a retry waits for tokens (`"RetryQuota"`): what it returns runs in
   * place of the wait. A gate is identified by its `name`. Sends that pass immediately are not notified.
   */
  readonly onWait?: Around<[gate: string | undefined, context: Caller]> | undefined
}

/**
 * A callback: it returns nothing, or an effect that the call waits for. The arguments are what happened, the error (if
 * it was a failure), and the services of the caller, with which the effect runs.
 *
 * @category models
 * @since 0.1.0
 */
export type Callback<in A> = (value: A, error: unknown, context: Caller) => void | Effect.Effect<void>

/**
 * A hedge: an extra send of a call whose first send has not been answered yet.
 *
 * **Details**
 *
 * A hedge that is sent is notified twice: when it is `"sent"`, and when its call ends: `"won"` if the call took its
 * response, else `"lost"`. One that is `"refused"` is never sent.
 *
 * @category models
 * @since 0.1.0
 */
export interface HedgeEvent {
  readonly event: "sent" | "won" | "lost" | "refused"
  /** The number of the hedge in its call: 1 for the first. */
  readonly hedge: number
  /**
   * Why it is refused: the budget is used up; a gate refuses it, or reports that its resource is strained; the deadline
   * of the call has come.
   */
  readonly reason: "budget" | "gate" | "strained" | "deadline" | undefined
}

/**
 * Runs something in place of an effect, with the same result: with a span, or a timer.
 *
 * @category models
 * @since 0.1.0
 */
export type Around<Args extends ReadonlyArray<unknown>> = <A, E, R>(
  self: Effect.Effect<A, E, R>,
  ...args: Args
) => Effect.Effect<A, E, R>

/**
 * The services of the caller.
 *
 * @category models
 * @since 0.1.0
 */
export type Caller = Context.Context<never>

/**
 * The name of the resource being called: `undefined` unless set. `ResourceLimiters` sets it to its key. Span events,
 * metrics and the logger show it; an observer finds it in the caller's services.
 *
 * **Example** (A name for calls that do not use `ResourceLimiters`)
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
 * It also names the quota around the call: if a part of the call has another quota, name that part too.
 *
 * @category services
 * @since 0.1.0
 */
export const CurrentResource: Context.Reference<string | undefined> = /* @__PURE__ */ Context.Reference<
  string | undefined
>("effect-retry/RetryObserver/CurrentResource", { defaultValue: () => undefined })

/**
 * The class of a failure: `"throttling"`, `"timeout"`, `"transient"`, or `"unknown"` if the classifier did not know it.
 *
 * @category getters
 * @since 0.1.0
 */
export const failureClass = (info: RetryInfo | undefined): "throttling" | "timeout" | "transient" | "unknown" => {
  if (info === undefined) return "unknown"
  if (info.throttling) return "throttling"
  return info.timeout ? "timeout" : "transient"
}

/** OpenTelemetry's limit of events per span. */
const mostEvents = 128

/** How many events each span has. */
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
 * `retry.cost`) and `retry.stopped` (`retry.reason`, `retry.attempts`, `retry.class`, and `retry.gate` if a gate refused a
 * retry); both have `retry.resource` where {@link CurrentResource} names one. They contain nothing of the error itself. A span gets at most 128 of them. The
 * next is called `retry.dropped` and is the last, so a span that never ends does not grow forever.
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
  onStop: ({ attempts, gate, info, reason }, _error, context) =>
    addEvent(context, "retry.stopped", info, {
      "retry.reason": reason,
      ...gate && { "retry.gate": gate },
      "retry.attempts": attempts
    })
}

/**
 * The `error.type` of an error, in the sense of OpenTelemetry: the status of a response, else the code, tag or name of
 * the error; `"_OTHER"` if it has none. Never its message.
 *
 * **Source**: OpenTelemetry semantic conventions, attribute `error.type`.
 *
 * @category getters
 * @since 0.1.0
 */
export const errorType = (error: unknown): string => {
  const status = statusOf(error)
  return status === undefined ? wordOf(error) ?? "_OTHER" : `${status}`
}

/** The resource, at the end of a line: names come from anywhere. */
const suffixOf = (context: Caller): string => {
  const resource = Context.get(context, CurrentResource)
  if (resource === undefined) return ""
  return ` (${[resource].find(isWord) ?? JSON.stringify(resource.slice(0, 64))})`
}

/**
 * The observer that logs: each retry at level Debug, and why a call is not retried at level Warning, once. A call that
 * leaves retrying to an outer one is logged at Debug. Of the error it logs only its code, name and status. The resource
 * comes last, where {@link CurrentResource} names one.
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
  onStop: ({ attempts, gate, reason }, error, context) => {
    const after = `${attempts} attempt${attempts === 1 ? "" : "s"}`
    const by = gate === undefined ? "" : ` by ${gate}`
    const line = `not retried after ${after}: ${reason}${by}, ${nameOf(error)}${suffixOf(context)}`
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

const asEffect = (answer: void | Effect.Effect<void>): Effect.Effect<void> =>
  Effect.isEffect(answer) ? answer : Effect.void

const both = <A>(first: Callback<A> | undefined, second: Callback<A> | undefined): Callback<A> | undefined => {
  if (first === undefined || second === undefined) return first ?? second
  return (value, error, context) => {
    const wait = first(value, error, context)
    const next = () => second(value, error, context)
    return Effect.isEffect(wait) ? Effect.flatMap(wait, () => asEffect(next())) : next()
  }
}

/** The first around the second. */
const around = <Args extends ReadonlyArray<unknown>>(
  first: Around<Args> | undefined,
  second: Around<Args> | undefined
): Around<Args> | undefined =>
  first === undefined || second === undefined
    ? first ?? second
    : (self, ...args) => first(second(self, ...args), ...args)

/**
 * Notifies both observers, `self` first, with `self` around the other.
 *
 * @category combinators
 * @since 0.1.0
 */
export const combine = (self: RetryObserver, that: RetryObserver): RetryObserver => ({
  onAttempt: both(self.onAttempt, that.onAttempt),
  onRetry: both(self.onRetry, that.onRetry),
  onHedge: both(self.onHedge, that.onHedge),
  onStop: both(self.onStop, that.onStop),
  onSend: self.onSend === undefined || that.onSend === undefined ? self.onSend ?? that.onSend : (send) => {
    self.onSend!(send)
    that.onSend!(send)
  },
  onCall: around(self.onCall, that.onCall),
  onWait: around(self.onWait, that.onWait)
})

/**
 * The observer in force. Default {@link spanEvents}. Of merged layers it is the last; calls notify them all.
 *
 * @category services
 * @since 0.1.0
 */
export const CurrentObserver: Context.Reference<RetryObserver> = Context.Reference<RetryObserver>(
  "effect-retry/RetryObserver/CurrentObserver",
  { defaultValue: () => spanEvents }
)

/** Observers in force, in order, and all of them as one. */
const inForce = (observers: ReadonlyArray<RetryObserver>) => ({ observers, observer: observers.reduce(combine, none) })

type InForce = ReturnType<typeof inForce>

/** In a context, each layer has a key of its own, so that none is lost where layers are merged. */
const prefix = "effect-retry/RetryObserver/Layered/"

/** What a layer brings. */
class Layered {
  readonly inForce: InForce
  /** The observers that it replaces. */
  private readonly replaced: ReadonlyArray<RetryObserver>
  /** The layers around it, which `inForce` allows for. Any other in the same context was merged with it. */
  private readonly around: ReadonlyArray<Layered>
  private merged: { readonly others: ReadonlyArray<Layered>; readonly inForce: InForce } | undefined

  constructor(context: Caller, own: RetryObserver, replaces: boolean) {
    const present = observersIn(context)
    this.around = Layered.all(context)
    this.replaced = replaces ? present : []
    // A copy of its own: two layers with one observer notify it twice.
    this.inForce = inForce([...replaces ? [] : present, combine(none, own)])
  }

  private static all(context: Caller): ReadonlyArray<Layered> {
    return [...context.mapUnsafe].flatMap(([key, layer]) => key.startsWith(prefix) ? layer : [])
  }

  /** What is in force where this layer is the last. */
  in(context: Caller): InForce {
    // Mostly, no other was ever built, and a new context costs no search.
    if (shared.layers === this.around.length + 1) return this.inForce
    const others = Layered.all(context).filter((layer) => layer !== this && !this.around.includes(layer))
    if (others.length === 0) return this.inForce
    const { merged } = this
    if (merged?.others.length === others.length && others.every((other, i) => other === merged.others[i])) {
      return merged.inForce
    }
    const layers = [...others, this]
    const replaced = layers.flatMap((layer) => layer.replaced)
    const all = new Set(layers.flatMap((layer) => layer.inForce.observers))
    const own = inForce([...all].filter((observer) => !replaced.includes(observer)))
    this.merged = { others, inForce: own }
    return own
  }
}

/** The observer of a layer. */
interface Merging extends RetryObserver {
  readonly layer?: Layered
}

/**
 * The observer that a call in this context notifies: all those of merged layers as one; {@link none} in place of
 * {@link spanEvents} where there is no span.
 *
 * @category getters
 * @since 0.1.0
 */
export const observerOf = (context: Caller): RetryObserver => {
  const observer: Merging = Context.get(context, CurrentObserver)
  // Without a span there is nothing that events could be added to.
  if (observer === spanEvents && Context.getOrUndefined(context, Tracer.ParentSpan) === undefined) return none
  return observer.layer?.in(context).observer ?? observer
}

const observersIn = (context: Caller): ReadonlyArray<RetryObserver> => {
  const observer: Merging = Context.get(context, CurrentObserver)
  return observer.layer?.in(context).observers ?? [observer]
}

const layered = (own: RetryObserver, replaces: boolean): Layer.Layer<never> =>
  Layer.effectContext(Effect.contextWith((context: Caller) => {
    const layer = new Layered(context, own, replaces)
    shared.layers = (shared.layers ?? 0) + 1
    const key = Context.Reference<Layered>(`${prefix}${shared.layers}`, { defaultValue: () => layer })
    // On the prototype, so that a copy of it is an observer of its own.
    const observer: RetryObserver = Object.assign(Object.create({ layer }), layer.inForce.observer)
    return Effect.succeed(Context.add(Context.make(CurrentObserver, observer), key, layer))
  }))

/**
 * A layer that adds an observer to the one in force where it is provided: {@link spanEvents}, unless that was changed.
 * Of merged layers, all are notified, in order.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (observer: RetryObserver): Layer.Layer<never> => layered(observer, false)

/**
 * A layer that sets the observer, in place of the one in force: {@link none} switches everything off. It replaces none
 * of those that it is merged with.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerOnly = (observer: RetryObserver): Layer.Layer<never> => layered(observer, true)

/**
 * Notifies the observer in force of a call: for loops outside the library, such as that of `Effect.retry`. `withRetry`
 * and `RetryStrategy.run` do so themselves.
 *
 * **Example** (A call under `Effect.retry`)
 *
 * ```ts
 * const observed = Effect.retry(callDynamo, awsStandard).pipe(RetryObserver.call)
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const call = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.withFiber(({ context }) => observerOf(context).onCall?.(self, context) ?? self)
