import type { StopReason } from "effect-retry/RetryDecision"
import type { FailureKind } from "./failure.ts"
import type { Scenario } from "./scenario.ts"

/** How often something happened, by what it was. What never happened is left out. */
export type Tally<Key extends string> = { readonly [K in Key]?: number }

/** What clients did, in a stretch of time or in all. */
export interface ClientCounts {
  /** Calls that began. */
  readonly calls: number
  /** Attempts that were sent: the load that the clients offer to the service. */
  readonly attempts: number
  /** Calls that ended well. */
  readonly succeeded: number
  /** Calls that ended badly. */
  readonly failed: number
  /** Calls that ended badly, by the failure of their last attempt. */
  readonly failures: Tally<FailureKind>
  /** Failed attempts, by their failure. */
  readonly attemptFailures: Tally<FailureKind>
  /** Calls that were not retried any more, by the reason of the policy; `quota-exhausted` where quota or budget refused. */
  readonly stops: Tally<StopReason>
}

/** How long calls took that ended well, in milliseconds, retries and backoff included; `null` of none. */
export interface Latency {
  readonly meanMillis: number | null
  readonly p50Millis: number | null
  readonly p90Millis: number | null
  readonly p99Millis: number | null
  readonly maxMillis: number | null
}

/** What the processes of clients hold, on the average of at most 100 of them; `null` where they have no such thing. */
export interface Gauges {
  /** Calls under way. */
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
  /** The policy, as results call it. */
  readonly policy: string
  readonly totals: ClientCounts & { readonly latency: Latency; readonly gauges: Gauges }
  readonly series: ReadonlyArray<ClientBucket>
}

/** What a service did, in a stretch of time or in all. */
export interface ServiceCounts {
  /** Requests that arrived: the load on the service. */
  readonly received: number
  /** Requests that were succeeded. */
  readonly succeeded: number
  /** Requests that were answered badly, by the failure. */
  readonly failures: Tally<FailureKind>
  /** Work that was finished after its client had given up. */
  readonly wasted: number
}

/** A bucket of the time series of a service. */
export interface ServiceBucket extends ServiceCounts {
  readonly fromMillis: number
  /** Requests that wait, at the end of the bucket. */
  readonly queued: number
  /** Requests that are worked on, at the end of the bucket. */
  readonly busy: number
}

/** A service. */
export interface ServiceResult {
  readonly name: string
  readonly totals: ServiceCounts
  readonly series: ReadonlyArray<ServiceBucket>
}

/** What a simulation has shown, so far or in all. */
export interface SimulationResult {
  /** The scenario, with its defaults. */
  readonly scenario: Scenario
  /** Whether it was not run to its end. */
  readonly partial: boolean
  /** How far virtual time has come. */
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
