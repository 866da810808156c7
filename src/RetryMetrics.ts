/**
 * Metrics of retrying, as an observer. Without {@link layer} none of this costs anything.
 *
 * Each has an attribute `resource` where `RetryObserver.CurrentResource` names one, as `ResourceLimiters` does: at most
 * `maxResources` of them, and `"(others)"` for the rest. Of the call itself no metric carries anything.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import { AdaptiveRateLimiter } from "./AdaptiveRateLimiter.ts"
import { checks } from "./internal/checks.ts"
import type { StopReason } from "./RetryDecision.ts"
import {
  type Caller,
  CurrentResource,
  failureClass,
  type Hedge,
  layer as observing,
  type RetryObserver
} from "./RetryObserver.ts"
import { RetryQuota } from "./RetryQuota.ts"

/**
 * Attempts that ended with a success or a typed failure; attribute `outcome`: `"success"` or `"failure"`.
 *
 * @category metrics
 * @since 0.1.0
 */
export const attempts: Metric.Counter<number> = Metric.counter("retry_attempts", {
  description: "Attempts that ended with a success or a typed failure",
  incremental: true
})

/**
 * Retries; attribute `class`: `"throttling"`, `"timeout"`, `"transient"` or `"unknown"`.
 *
 * @category metrics
 * @since 0.1.0
 */
export const retries: Metric.Counter<number> = Metric.counter("retry_retries", {
  description: "Retries",
  incremental: true
})

/**
 * Delays before retries, in milliseconds; attribute `class` as in {@link retries}.
 *
 * @category metrics
 * @since 0.1.0
 */
export const delays: Metric.Histogram<number> = Metric.histogram("retry_delay_ms", {
  description: "Delays before retries, in milliseconds",
  boundaries: Metric.exponentialBoundaries({ start: 1, factor: 2, count: 16 })
})

/**
 * Failed calls that were not retried; attribute `reason`, a `StopReason`.
 *
 * @category metrics
 * @since 0.1.0
 */
export const stops: Metric.Counter<number> = Metric.counter("retry_stops", {
  description: "Failed calls that were not retried",
  incremental: true
})

/**
 * Hedges; attribute `event`: `"sent"`, and then `"won"` or `"lost"`; or `"refused"`.
 *
 * @category metrics
 * @since 0.1.0
 */
export const hedges: Metric.Counter<number> = Metric.counter("retry_hedges", {
  description: "Hedges: sent, then won or lost, or refused",
  incremental: true
})

/**
 * Tokens in the retry quota, of each resource.
 *
 * @category metrics
 * @since 0.1.0
 */
export const quotaBalance: Metric.Gauge<number> = Metric.gauge("retry_quota_balance", {
  description: "Tokens in the retry quota"
})

/**
 * Send tokens that flow into the adaptive limiter per second, of each resource.
 *
 * @category metrics
 * @since 0.1.0
 */
export const fillRate: Metric.Gauge<number> = Metric.gauge("retry_fill_rate", {
  description: "Send tokens that flow into the adaptive limiter per second"
})

/**
 * How resources are told apart.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * How many resources have metrics of their own: a whole number of at least 0, or `Infinity`. The first that are seen keep
   * theirs. The rest are counted together, as `"(others)"`, and have no gauges. Default 100.
   */
  readonly maxResources?: number | undefined
}

/** The metric with one more attribute, made once for each value that it takes. */
const by = <Input, State, Value extends string>(metric: Metric.Metric<Input, State>, attribute: string) => {
  const metrics = new Map<Value, Metric.Metric<Input, State>>()
  return (value: Value): Metric.Metric<Input, State> => {
    const known = metrics.get(value)
    if (known !== undefined) return known
    const made = Metric.withAttributes(metric, { [attribute]: value })
    metrics.set(value, made)
    return made
  }
}

const others = "(others)"

/** The metrics of one resource, or of what names none. */
const seriesOf = (resource: string | undefined) => {
  const own = <Input, State>(metric: Metric.Metric<Input, State>): Metric.Metric<Input, State> =>
    resource === undefined ? metric : Metric.withAttributes(metric, { resource })
  return {
    attempts: by<number, Metric.CounterState<number>, "success" | "failure">(own(attempts), "outcome"),
    retries: by<number, Metric.CounterState<number>, string>(own(retries), "class"),
    delays: by<number, Metric.HistogramState, string>(own(delays), "class"),
    stops: by<number, Metric.CounterState<number>, StopReason>(own(stops), "reason"),
    hedges: by<number, Metric.CounterState<number>, Hedge["event"]>(own(hedges), "event"),
    gauges: resource === others ? undefined : { balance: own(quotaBalance), fillRate: own(fillRate) }
  }
}

type Series = ReturnType<typeof seriesOf>

/** The series in a registry. As long as it is there, so are they: whoever observes, their number has one limit. */
class Registered {
  private readonly unnamed = seriesOf(undefined)
  private readonly others = seriesOf(others)
  private readonly named = new Map<string, Series>()

  of(resource: string | undefined, maxResources: number): Series {
    if (resource === undefined) return this.unnamed
    const known = this.named.get(resource)
    if (known !== undefined) return known
    if (resource === others || this.named.size >= maxResources) return this.others
    const made = seriesOf(resource)
    this.named.set(resource, made)
    return made
  }
}

const registered = new WeakMap<object, Registered>()

const seriesIn = (context: Caller, maxResources: number): Series => {
  const registry = Context.get(context, Metric.MetricRegistry)
  let series = registered.get(registry)
  if (series === undefined) registered.set(registry, series = new Registered())
  return series.of(Context.get(context, CurrentResource), maxResources)
}

const show = ({ gauges }: Series, context: Caller): void => {
  if (gauges === undefined) return
  const quota = Context.getOrUndefined(context, RetryQuota)
  if (quota !== undefined) {
    const clock = Context.get(context, Clock.Clock)
    quota.lapses?.lapse(clock)
    gauges.balance.updateUnsafe(quota.store.balance(clock), context)
  }
  const gate = Context.getOrUndefined(context, AdaptiveRateLimiter)?.gate
  if (gate !== undefined) gauges.fillRate.updateUnsafe(gate.fillRate, context)
}

const counting = (maxResources: number) => ({
  onAttempt: (succeeded, _error, context) => {
    const series = seriesIn(context, maxResources)
    series.attempts(succeeded ? "success" : "failure").updateUnsafe(1, context)
    show(series, context)
  },
  onRetry: ({ delayMillis, info }, _error, context) => {
    const series = seriesIn(context, maxResources)
    const kind = failureClass(info)
    series.retries(kind).updateUnsafe(1, context)
    series.delays(kind).updateUnsafe(delayMillis, context)
    show(series, context)
  },
  onHedge: ({ event }, _error, context) => seriesIn(context, maxResources).hedges(event).updateUnsafe(1, context),
  onStop: ({ reason }, _error, context) => {
    const series = seriesIn(context, maxResources)
    series.stops(reason).updateUnsafe(1, context)
    show(series, context)
  }
} satisfies RetryObserver)

const made = (options: Options | undefined, constructorName: string) =>
  counting(checks(constructorName).count("maxResources", options?.maxResources ?? 100, 0))

/**
 * Makes the observer that counts. Throws `InvalidOption` when an option is impossible.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options?: Options): Required<RetryObserver> => made(options, "RetryMetrics.make")

/**
 * A layer that switches the metrics on, next to the observer in force where it is provided: an observer of your own goes
 * under it, `RetryMetrics.layer().pipe(Layer.provide(RetryObserver.layer(mine)))`. Throws `InvalidOption` when an option is
 * impossible.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<never> => observing(made(options, "RetryMetrics.layer"))
