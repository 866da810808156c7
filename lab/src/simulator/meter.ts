import type { StopReason } from "effect-retry/RetryDecision"
import type { FailureKind } from "./failure.ts"
import { Histogram } from "./histogram.ts"
import type { ClientBucket, ClientCounts, Gauges, Latency, ServiceBucket, ServiceCounts } from "./result.ts"
import { Tallies } from "./tally.ts"

/** Counts of what clients have done. */
class ClientCounter {
  calls = 0
  attempts = 0
  succeeded = 0
  readonly failures = new Tallies<FailureKind>()
  readonly attemptFailures = new Tallies<FailureKind>()
  readonly stops = new Tallies<StopReason>()
  readonly latency = new Histogram()

  merge(that: ClientCounter): this {
    this.calls += that.calls
    this.attempts += that.attempts
    this.succeeded += that.succeeded
    this.failures.merge(that.failures)
    this.attemptFailures.merge(that.attemptFailures)
    this.stops.merge(that.stops)
    this.latency.merge(that.latency)
    return this
  }

  get counts(): ClientCounts {
    return {
      calls: this.calls,
      attempts: this.attempts,
      succeeded: this.succeeded,
      failed: this.failures.sum,
      failures: this.failures.toTally(),
      attemptFailures: this.attemptFailures.toTally(),
      stops: this.stops.toTally()
    }
  }
}

const latencyOf = (histogram: Histogram): Latency => ({
  meanMillis: histogram.meanMillis,
  p50Millis: histogram.percentile(0.5),
  p90Millis: histogram.percentile(0.9),
  p99Millis: histogram.percentile(0.99),
  maxMillis: histogram.count === 0 ? null : histogram.maxMillis
})

/** Counts what clients do, in total and by bucket. */
export class ClientMeter {
  now = new ClientCounter()
  private readonly past = new ClientCounter()
  private readonly buckets: Array<ClientBucket> = []

  /** A bucket ends; the next begins. */
  roll(fromMillis: number, gauges: Gauges): void {
    this.buckets.push(this.bucket(fromMillis, gauges))
    this.past.merge(this.now)
    this.now = new ClientCounter()
  }

  private bucket(fromMillis: number, gauges: Gauges): ClientBucket {
    return { fromMillis, ...this.now.counts, latency: latencyOf(this.now.latency), gauges }
  }

  totals(gauges: Gauges): ClientCounts & { readonly latency: Latency; readonly gauges: Gauges } {
    const all = new ClientCounter().merge(this.past).merge(this.now)
    return { ...all.counts, latency: latencyOf(all.latency), gauges }
  }

  /** The buckets so far, with the current one if time has passed in it. */
  series(fromMillis: number | undefined, gauges: Gauges): ReadonlyArray<ClientBucket> {
    return fromMillis === undefined ? [...this.buckets] : [...this.buckets, this.bucket(fromMillis, gauges)]
  }
}

class ServiceCounter {
  received = 0
  succeeded = 0
  wasted = 0
  readonly failures = new Tallies<FailureKind>()

  merge(that: ServiceCounter): this {
    this.received += that.received
    this.succeeded += that.succeeded
    this.wasted += that.wasted
    this.failures.merge(that.failures)
    return this
  }

  get counts(): ServiceCounts {
    const { failures, received, succeeded, wasted } = this
    return { received, succeeded, failures: failures.toTally(), wasted }
  }
}

/** Counts what a service does, in total and by bucket. */
export class ServiceMeter {
  now = new ServiceCounter()
  private readonly past = new ServiceCounter()
  private readonly buckets: Array<ServiceBucket> = []

  /** A bucket ends; the next begins. */
  roll(fromMillis: number, queued: number, busy: number): void {
    this.buckets.push({ fromMillis, ...this.now.counts, queued, busy })
    this.past.merge(this.now)
    this.now = new ServiceCounter()
  }

  get totals(): ServiceCounts {
    return new ServiceCounter().merge(this.past).merge(this.now).counts
  }

  /** The buckets so far, with the current one if time has passed in it. */
  series(fromMillis: number | undefined, queued: number, busy: number): ReadonlyArray<ServiceBucket> {
    return fromMillis === undefined
      ? [...this.buckets]
      : [...this.buckets, { fromMillis, ...this.now.counts, queued, busy }]
  }
}
