import type { StopReason } from "effect-retry/RetryDecision"
import type { FailureKind } from "./failure.ts"
import type { Scenario } from "./scenario.ts"

/** Counts by kind. Kinds that never happened are left out. */
export type Tally<Key extends string> = { readonly [K in Key]?: number }

/** What clients did, in a period of time or in total. */
export interface ClientCounts {
  /** Calls that began. */
  readonly calls: number
  /** Attempts that were sent: the load that the clients offer to the service. */
  readonly attempts: number
  /** Calls that succeeded. */
  readonly succeeded: number
  /** Calls that failed. */
  readonly failed: number
  /** Calls that failed, by the failure of their last attempt. */
  readonly failures: Tally<FailureKind>
  /** Failed attempts, by their failure. */
  readonly attemptFailures: Tally<FailureKind>
  /** Calls that were no longer retried, by the policy's reason; `quota-exhausted` if quota or budget refused. */
  readonly stops: Tally<StopReason>
}

/** How long successful calls took, in milliseconds, retries and backoff included; `null` if there was none. */
export interface Latency {
  readonly meanMillis: number | null
  readonly p50Millis: number | null
  readonly p90Millis: number | null
  readonly p99Millis: number | null
  readonly maxMillis: number | null
}

/** State of the client processes, averaged over at most 100 of them; `null` for what they do not have. */
export interface Gauges {
  /** Calls in progress. */
  readonly inFlight: number
  /** The balance of the retry quota. */
  readonly balance: number | null
  /** What is left of the retry budget. */
  readonly budget: number | null
  /** The fill rate of the rate limiter, per second, all processes together; `null` before the first throttle. */
  readonly fillRate: number | null
}

/** A bucket of the time series of clients. */
export interface ClientBucket extends ClientCounts {
  readonly fromMillis: number
  readonly latency: Latency
  /** At the end of the bucket. */
  readonly gauges: Gauges
}

/** The clients of a fleet, or a service as the client of another. */
export interface ClientResult {
  /** The name of the fleet, or `service > service`. */
  readonly name: string
  readonly kind: "fleet" | "service"
  /** The service that is called. */
  readonly to: string
  /** The policy's name in results. */
  readonly policy: string
  readonly totals: ClientCounts & { readonly latency: Latency; readonly gauges: Gauges }
  readonly series: ReadonlyArray<ClientBucket>
}

/** What a service did, in a period of time or in total. */
export interface ServiceCounts {
  /** Requests that arrived: the load on the service. */
  readonly received: number
  /** Requests that succeeded. */
  readonly succeeded: number
  /** Requests that failed, by the failure. */
  readonly failures: Tally<FailureKind>
  /** Work that was finished after its client had given up. */
  readonly wasted: number
}

/** A bucket of the time series of a service. */
export interface ServiceBucket extends ServiceCounts {
  readonly fromMillis: number
  /** Waiting requests, at the end of the bucket. */
  readonly queued: number
  /** Requests in progress, at the end of the bucket. */
  readonly busy: number
}

/** A service. */
export interface ServiceResult {
  readonly name: string
  readonly totals: ServiceCounts
  readonly series: ReadonlyArray<ServiceBucket>
}

/** The result of a simulation, so far or in full. */
export interface SimulationResult {
  /** The scenario, with its defaults. */
  readonly scenario: Scenario
  /** Whether the run was stopped before its end. */
  readonly partial: boolean
  /** The virtual time it has reached. */
  readonly untilMillis: number
  /** The width of the buckets of the series; the last one may be cut short. */
  readonly bucketMillis: number
  /** The hash of everything that happened: the same scenario and seed give the same. */
  readonly traceHash: string
  /** Attempts of all clients. */
  readonly attempts: number
  readonly clients: ReadonlyArray<ClientResult>
  readonly services: ReadonlyArray<ServiceResult>
}
