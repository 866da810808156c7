/**
 * Metrics of retrying, as an observer. Without {@link layer} they cost nothing.
 *
 * Each has an attribute `resource` where `RetryObserver.CurrentResource` names one, as `ResourceLimiters` does: at most
 * `capacity` of them, and `"(others)"` for the rest. From the call itself, metrics carry only OpenTelemetry's
 * `error.type`. Names and units follow Prometheus, so its exporter and the OTLP exporter give the same names.
 *
 * A gate brings its own gauges, of each resource: `SendGate.Gauge`.
 *
 * The package has a dashboard for them, `examples/grafana/effect-retry.json`, and alerts, `examples/grafana/alerts.yml`.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import { BoundedLabels, others } from "../internal/boundedLabels.ts"
import { checksOf } from "../internal/checks.ts"
import { awsThrottlingCodes, brokenCodes, neverSentCodes, timeoutCodes } from "../internal/classification/errorCodes.ts"
import { monotonicMillis } from "../internal/clock.ts"
import { count, validOptions } from "../internal/options.ts"
import { remembering } from "../internal/remembering.ts"
import { shared } from "../internal/shared.ts"
import { look } from "../internal/tryGet.ts"
import {
  type Caller,
  CurrentResource,
  errorType,
  failureClass,
  layer as observing,
  type RetryObserver
} from "../RetryObserver.ts"
import { RetryQuota, type Service as Quota } from "../RetryQuota.ts"
import type { Outcome, SendGate } from "../SendGate.ts"

const counter = (name: string, description: string) => Metric.counter(name, { description, incremental: true })

const gauge = (name: string, description: string) => Metric.gauge(name, { description })

/** Boundaries in seconds: those that OpenTelemetry recommends for HTTP request durations, and two more. */
const seconds = (name: string, description: string) =>
  Metric.histogram(name, {
    description,
    attributes: { unit: "s" },
    boundaries: [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60]
  })

/**
 * Attempts that ended; attributes `outcome`: `"success"`, `"failure"`, or `"unknown"` (a defect, an interruption), and
 * for a failure `error.type`: the status of a response, else a code, tag or name; at most 50 of them, and `"_OTHER"`.
 * Statuses and codes of failures that are often retried do not count.
 *
 * @category metrics
 * @since 0.1.0
 */
export const attempts: Metric.Counter<number> = counter("retry_attempts_total", "Attempts that have ended")

/**
 * How long attempts took, without the waits before them, in seconds; attribute `outcome` as in {@link attempts}.
 *
 * @category metrics
 * @since 0.1.0
 */
export const attemptDuration: Metric.Histogram<number> = seconds(
  "retry_attempt_duration_seconds",
  "How long attempts took"
)

/**
 * How long calls took, from the first attempt to the last with all waits, in seconds; attribute `outcome` as in
 * {@link attempts}. Includes calls under `Effect.retry` only if `RetryObserver.call` is around them.
 *
 * @category metrics
 * @since 0.1.0
 */
export const callDuration: Metric.Histogram<number> = seconds(
  "retry_call_duration_seconds",
  "How long calls took, with their retries"
)

/**
 * Retries that were sent; attribute `class`: `"throttling"`, `"timeout"`, `"transient"` or `"unknown"`.
 *
 * @category metrics
 * @since 0.1.0
 */
export const retries: Metric.Counter<number> = counter("retry_retries_total", "Retries that were sent")

/**
 * Delays before retries, also of those that were not sent in the end, in seconds; attribute `class` as in {@link retries}.
 *
 * @category metrics
 * @since 0.1.0
 */
export const delays: Metric.Histogram<number> = seconds("retry_delay_seconds", "Delays before retries")

/**
 * How long sends waited for a gate, or retries for tokens of the quota, in seconds; attributes `gate`: its name, such
 * as `"ConcurrencyLimiter"`, `"RetryQuota"`, or `"(others)"` beyond 20 names; `outcome`: `"passed"`, `"refused"`, or
 * `"unknown"` (an interruption, a deadline). Sends that pass immediately are not counted; sends refused immediately
 * are.
 *
 * @category metrics
 * @since 0.1.0
 */
export const waits: Metric.Histogram<number> = seconds(
  "retry_wait_seconds",
  "How long sends waited for gates and quota"
)

/**
 * Failed calls that were not retried; attribute `reason`, a `StopReason`, and `gate` as in {@link waits} if one refused a
 * retry.
 *
 * @category metrics
 * @since 0.1.0
 */
export const stops: Metric.Counter<number> = counter("retry_stops_total", "Failed calls that were not retried")

/**
 * Hedges; attribute `event`: `"sent"`, and then `"won"` or `"lost"`; or `"refused"`.
 *
 * @category metrics
 * @since 0.1.0
 */
export const hedges: Metric.Counter<number> = counter(
  "retry_hedges_total",
  "Hedges: sent, then won or lost, or refused"
)

/**
 * Tokens in the retry quota, of each resource.
 *
 * @category metrics
 * @since 0.1.0
 */
export const quotaBalance: Metric.Gauge<number> = gauge("retry_quota_balance", "Tokens in the retry quota")

/**
 * The most tokens there can be in the retry quota, of each resource.
 *
 * @category metrics
 * @since 0.1.0
 */
export const quotaCapacity: Metric.Gauge<number> = gauge(
  "retry_quota_capacity",
  "The most tokens there can be in the retry quota"
)

/**
 * When the retry quota of a resource began refusing retries for lack of tokens, in seconds of Unix time; 0 while it has
 * enough for one.
 *
 * @category metrics
 * @since 0.1.0
 */
export const quotaEmptySince: Metric.Gauge<number> = Metric.gauge("retry_quota_empty_since_seconds", {
  description: "Since when the retry quota has been empty, in Unix time; 0 while it is not",
  attributes: { unit: "s" }
})

/**
 * Options of the metrics.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * How many resources have their own metrics: a whole number of at least 0, or `Infinity`. The first ones seen keep
   * theirs. The rest are counted together, as `"(others)"`, and have no gauges. Default 100.
   */
  readonly capacity?: number | undefined
}

/** The metric with values of these attributes, made once for all. An attribute without a value is left out. */
const by = <Input, State>(metric: Metric.Metric<Input, State>, ...names: ReadonlyArray<string>) => {
  const metrics = new Map<string, Metric.Metric<Input, State>>()
  return (...values: ReadonlyArray<string>): Metric.Metric<Input, State> => {
    const key = values.length === 1 ? values[0]! : values.join("\n")
    const existing = metrics.get(key)
    if (existing !== undefined) return existing
    const made = Metric.withAttributes(metric, Object.fromEntries(values.map((value, at) => [names[at]!, value])))
    metrics.set(key, made)
    return made
  }
}

const outcomes = { Success: "success", Failure: "failure", Unknown: "unknown" } as const

/** The metric of a resource, or of calls that name none. */
const ownOf = (resource: string | undefined) => <Input, State>(metric: Metric.Metric<Input, State>) =>
  resource === undefined ? metric : Metric.withAttributes(metric, { resource })

/** The metrics counted per resource, by their attributes. */
const countedOf = (own: ReturnType<typeof ownOf>) => ({
  attempts: by(own(attempts), "outcome", "error.type"),
  attemptDuration: by(own(attemptDuration), "outcome"),
  callDuration: by(own(callDuration), "outcome"),
  retries: by(own(retries), "class"),
  delays: by(own(delays), "class"),
  waits: by(own(waits), "gate", "outcome"),
  stops: by(own(stops), "reason", "gate"),
  hedges: by(own(hedges), "event")
})

/** The metrics of one resource, or of calls that name none. */
class Series {
  readonly counted: ReturnType<typeof countedOf>
  /** What its gauges show, by what it is to the call. */
  private readonly shown = new Map<string, WeakRef<object>>()
  private emptySinceSeconds = 0
  /** The lowest cost of a retry so far. */
  private cheapest = Infinity

  constructor(private readonly resource: string | undefined) {
    this.counted = countedOf(ownOf(resource))
  }

  /** Points the gauges at what the call goes through. They are read on demand. */
  show(context: Caller): void {
    if (this.resource === others) return
    const quota = Context.getOrUndefined(context, RetryQuota)
    if (quota !== undefined) this.showQuota(quota, context)
    for (const { gateOf, tag } of shared.gates) {
      const service = Context.getOrUndefined(context, tag)
      const gate: SendGate | undefined = service === undefined ? undefined : gateOf(service)
      if (gate === undefined || this.isShown(tag.key, gate)) continue
      const clock = Context.get(context, Clock.Clock)
      for (const { description, name, read } of gate.gauges ?? []) {
        this.live(gauge(name, description), context, gate, (gate) => read(gate, monotonicMillis(clock)))
      }
    }
  }

  /** A retry was paid for: the quota is not empty. */
  paid(cost: number): void {
    if (cost === 0) return
    this.cheapest = Math.min(this.cheapest, cost)
    this.emptySinceSeconds = 0
  }

  /** The quota has refused a retry. */
  refused(context: Caller): void {
    const quota = Context.getOrUndefined(context, RetryQuota)
    if (quota === undefined) return
    const clock = Context.get(context, Clock.Clock)
    const balance = quota.store.balance(clock)
    if (this.cheapest === Infinity) this.cheapest = Math.floor(balance) + 1
    if (this.emptySince(balance) === 0 && balance < this.cheapest) {
      this.emptySinceSeconds = clock.currentTimeMillisUnsafe() / 1000
    }
  }

  private emptySince(balance: number): number {
    if (balance >= this.cheapest) this.emptySinceSeconds = 0
    return this.emptySinceSeconds
  }

  private showQuota({ store }: Quota, context: Caller): void {
    if (this.isShown("quota", store)) return
    const clock = Context.get(context, Clock.Clock)
    const balanceOf = (of: Quota["store"]): number => of.balance(clock)
    this.live(quotaBalance, context, store, balanceOf)
    this.live(quotaCapacity, context, store, ({ capacity }) => capacity)
    this.live(quotaEmptySince, context, store, (of) => this.emptySince(balanceOf(of)))
  }

  private isShown(key: string, source: object): boolean {
    if (this.shown.get(key)?.deref() === source) return true
    this.shown.set(key, new WeakRef(source))
    return false
  }

  /** A value that has been garbage collected is no longer shown. */
  private live<A extends object>(
    gauge: Metric.Gauge<number>,
    context: Caller,
    source: A,
    read: (source: A) => number
  ): void {
    const ref = new WeakRef(source)
    let value = NaN
    const registration = Metric.registerUnsafe(ownOf(this.resource)(gauge), context, {
      get: () => {
        const present = ref.deref()
        if (present === undefined) registration.remove()
        else value = look(() => read(present)) ?? NaN
        return { value }
      },
      update: () => undefined,
      modify: () => undefined
    })
  }
}

const retriedStatuses = ["429", "500", "502", "503", "504"]

/** The series in a registry. They live as long as it does: any number of observers share one limit. */
class Registered {
  readonly types = new BoundedLabels(50, "_OTHER", [
    ...[awsThrottlingCodes, neverSentCodes, brokenCodes, timeoutCodes].flatMap((codes) => [...codes]),
    ...retriedStatuses
  ])
  readonly gates = new BoundedLabels(20, others)
  private readonly unnamed = new Series(undefined)
  private readonly others = new Series(others)
  private readonly named = new Map<string, Series>()

  of(resource: string | undefined, capacity: number): Series {
    if (resource === undefined) return this.unnamed
    const existing = this.named.get(resource)
    if (existing !== undefined) return existing
    if (resource === others || this.named.size >= capacity) return this.others
    const made = new Series(resource)
    this.named.set(resource, made)
    return made
  }
}

const registeredAt = /* @__PURE__ */ remembering(() => new Registered())

const registeredIn = (context: Caller): Registered => registeredAt(Context.get(context, Metric.MetricRegistry))

/** The caller's clock, in milliseconds. */
const now = (context: Caller): number => monotonicMillis(Context.get(context, Clock.Clock))

const tagOf = (exit: Exit.Exit<unknown, unknown>): Outcome["_tag"] =>
  Exit.isSuccess(exit) || Exit.hasFails(exit) ? exit._tag : "Unknown"

/** Runs an effect, and reports how long it took and how it ended. */
const timed = <A, E, R>(
  self: Effect.Effect<A, E, R>,
  context: Caller,
  settled: (seconds: number, tag: Outcome["_tag"]) => void
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const since = now(context)
    return Effect.onExit(self, (exit) => Effect.sync(() => settled((now(context) - since) / 1000, tagOf(exit))))
  })

const passing = { Success: "passed", Failure: "refused", Unknown: "unknown" } as const

type SeriesOf = (context: Caller) => Series

const timing = (seriesOf: SeriesOf) => ({
  onCall: (call, context) =>
    timed(call, context, (took, tag) => {
      seriesOf(context).counted.callDuration(outcomes[tag]).updateUnsafe(took, context)
    }),
  onSend: (send) => {
    const { context } = send
    const series = seriesOf(context)
    const since = now(context)
    series.show(context)
    if (send.failureClass) series.counted.retries(send.failureClass).updateUnsafe(1, context)
    const settle = (outcome: Outcome): void => {
      const settled = outcomes[outcome._tag]
      const counter = settled === "failure"
        ? series.counted.attempts(settled, registeredIn(context).types.of(errorType(outcome.error)))
        : series.counted.attempts(settled)
      counter.updateUnsafe(1, context)
      series.counted.attemptDuration(settled).updateUnsafe((outcome.nowMillis - since) / 1000, context)
    }
    send.hold({ settle, cancel: () => undefined })
  },
  onWait: (wait, gate, context) =>
    timed(wait, context, (took, tag) => {
      const series = seriesOf(context)
      series.counted.waits(registeredIn(context).gates.of(gate ?? "gate"), passing[tag]).updateUnsafe(took, context)
      series.show(context)
    })
} satisfies RetryObserver)

const counting = (seriesOf: SeriesOf) => ({
  onRetry: ({ cost, delayMillis, info }, _error, context) => {
    const series = seriesOf(context)
    series.counted.delays(failureClass(info)).updateUnsafe(delayMillis / 1000, context)
    series.paid(cost)
    series.show(context)
  },
  onHedge: ({ event }, _error, context) => seriesOf(context).counted.hedges(event).updateUnsafe(1, context),
  onStop: ({ gate, reason }, _error, context) => {
    const series = seriesOf(context)
    const { stops } = series.counted
    const counter = gate === undefined ? stops(reason) : stops(reason, registeredIn(context).gates.of(gate))
    counter.updateUnsafe(1, context)
    if (reason === "quota-exhausted") series.refused(context)
    series.show(context)
  }
} satisfies RetryObserver)

const made = (options: Options = {}, constructorName: string) => {
  const { capacity } = validOptions(checksOf(constructorName, options), { capacity: count(0, 100) }, options)
  const seriesOf: SeriesOf = (context) => registeredIn(context).of(Context.get(context, CurrentResource), capacity)
  return { ...timing(seriesOf), ...counting(seriesOf) }
}

/**
 * Makes the observer that counts. Throws `InvalidOption` when an option is invalid.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options?: Options): Required<Omit<RetryObserver, "onAttempt">> =>
  made(options, "RetryMetrics.make")

/**
 * A layer that switches the metrics on, next to the observer in force where it is provided, and next to observers that
 * it is merged with. Throws `InvalidOption` when an option is invalid.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<never> => observing(made(options, "RetryMetrics.layer"))
