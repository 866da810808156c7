/**
 * Metrics of retrying, as an observer. Without {@link layer} none of this costs anything.
 *
 * Tag them with `Metric.CurrentMetricAttributes` to tell resources apart. No metric carries anything of the call.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import { AdaptiveRateLimiter } from "./AdaptiveRateLimiter.ts"
import type { StopReason } from "./RetryDecision.ts"
import { type Caller, failureClass, layer as observing, type RetryObserver } from "./RetryObserver.ts"
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
 * Tokens in the retry quota.
 *
 * @category metrics
 * @since 0.1.0
 */
export const quotaBalance: Metric.Gauge<number> = Metric.gauge("retry_quota_balance", {
  description: "Tokens in the retry quota"
})

/**
 * Send tokens that flow into the adaptive limiter per second.
 *
 * @category metrics
 * @since 0.1.0
 */
export const fillRate: Metric.Gauge<number> = Metric.gauge("retry_fill_rate", {
  description: "Send tokens that flow into the adaptive limiter per second"
})

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

const attemptsBy = by<number, Metric.CounterState<number>, "success" | "failure">(attempts, "outcome")
const retriesBy = by<number, Metric.CounterState<number>, string>(retries, "class")
const delaysBy = by<number, Metric.HistogramState, string>(delays, "class")
const stopsBy = by<number, Metric.CounterState<number>, StopReason>(stops, "reason")

const gauges = (context: Caller): void => {
  const quota = Context.getOrUndefined(context, RetryQuota)
  if (quota !== undefined) {
    const clock = Context.get(context, Clock.Clock)
    quota.lapses?.lapse(clock)
    quotaBalance.updateUnsafe(quota.store.balance(clock), context)
  }
  const gate = Context.getOrUndefined(context, AdaptiveRateLimiter)?.gate
  if (gate !== undefined) fillRate.updateUnsafe(gate.fillRate, context)
}

/**
 * The observer that counts.
 *
 * @category constructors
 * @since 0.1.0
 */
export const observer: RetryObserver = {
  onAttempt: (succeeded, _error, context) => {
    attemptsBy(succeeded ? "success" : "failure").updateUnsafe(1, context)
    gauges(context)
  },
  onRetry: ({ delayMillis, info }, _error, context) => {
    const kind = failureClass(info)
    retriesBy(kind).updateUnsafe(1, context)
    delaysBy(kind).updateUnsafe(delayMillis, context)
    gauges(context)
  },
  onStop: ({ reason }, _error, context) => {
    stopsBy(reason).updateUnsafe(1, context)
    gauges(context)
  }
}

/**
 * A layer that switches the metrics on, next to the observer in force where it is provided: an observer of your own goes
 * under it, `RetryMetrics.layer.pipe(Layer.provide(RetryObserver.layer(mine)))`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<never> = /* @__PURE__ */ observing(observer)
