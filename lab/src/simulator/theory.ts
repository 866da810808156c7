import * as RetryPolicy from "effect-retry/RetryPolicy"
import type * as RetryQuota from "effect-retry/RetryQuota"
import * as Duration from "effect/Duration"
import type { BudgetOptions } from "./budget.ts"
import { resolve, type Retrying } from "./policy.ts"
import type { Fleet, Scenario, ServiceSettings } from "./scenario.ts"
import { millis } from "./units.ts"

/** The rate that recovers with a budget in each process, given the capacity and the rate that recovers by the policy's attempts alone. */
const boundedBy = (budget: BudgetOptions, processes: number, capacity: number, alone: number): number | undefined => {
  switch (budget.kind) {
    case "finagle":
      return Math.max(alone, (capacity - processes * budget.minPerSecond) / (1 + budget.share))
    case "ratio":
      return Math.max(alone, budget.of === "calls" ? capacity / (1 + budget.share) : capacity * (1 - budget.share))
    case "grpc":
      return capacity
    case "bucket":
      return Math.max(alone, capacity / (1 + budget.perCall))
    default:
      return undefined
  }
}

/** Whether retries cease while nothing succeeds: every one of them costs tokens, and only successes bring any. */
const runsDry = (
  { cost = 5, throttlingCost, timeoutCost }: RetryPolicy.QuotaOptions,
  { refillPerSecond = 0, onExceeded }: RetryQuota.Options
): boolean =>
  Math.min(cost, throttlingCost ?? cost, timeoutCost ?? cost) > 0 && refillPerSecond === 0 && onExceeded !== "wait"

const isGated = ({ concurrency, coolDown, hedge, limiter, throttle }: Retrying): boolean =>
  (limiter ?? concurrency ?? coolDown ?? throttle ?? hedge) !== undefined

const thresholdOf = ({ policy, processes }: Fleet, capacity: number): number | undefined => {
  const resolved = resolve(policy)
  const { budget, policy: retrying, quota: shared = {} } = resolved
  if (isGated(resolved)) return undefined
  if (retrying === undefined) return capacity
  const { deadline, maxAttempts, quota } = RetryPolicy.limits(retrying)
  // How many attempts fit into a deadline depends on how long they wait.
  if (Duration.isFinite(deadline)) return undefined
  if (quota !== undefined) return budget === undefined && runsDry(quota, shared) ? capacity : undefined
  const alone = capacity / maxAttempts
  return budget === undefined ? alone : boundedBy(budget, processes, capacity, alone)
}

/** A queue served at a rate, with nothing else that refuses requests. */
const isPlainQueue = (
  { admitWithin, connections, costs, dropsAbandoned, earlyFailureRate, instances, limit, queueTimeout }: ServiceSettings
): boolean =>
  !dropsAbandoned && earlyFailureRate === 0 && instances === 1 && isFree(costs) &&
  [admitWithin, connections, limit, queueTimeout].every((bound) => bound === undefined)

/** Whether the wait in a full queue is twice the timeout or more: then what it lets in fails like what it refuses. */
const isLong = ({ capacity, queue = Infinity }: ServiceSettings, { timeout = Infinity }: Fleet): boolean =>
  queue * 1000 >= 2 * Number(capacity) * millis(timeout)

const isFree = (costs: ServiceSettings["costs"]): boolean => Object.values(costs).every((cost) => millis(cost) === 0)

/** Calls at a rate as long as the run, with a timeout. */
const isPlainLoad = ({ calls, patience, rate, timeout }: Fleet): boolean =>
  calls === undefined && rate !== undefined && timeout !== undefined && patience === undefined

/**
 * The rate below which a scenario of one fleet and one service with a capacity recovers, once the service is behind by more
 * than the timeout: then every attempt fails, so each call is sent as often as its policy allows when all fail, and the
 * service catches up only if that is below its capacity. `undefined` where theory has no simple answer.
 *
 * Source: the state that Bronson et al. describe ("Metastable Failures in Distributed Systems", HotOS 2021), as a balance
 * of rates.
 */
export const recoversBelow = ({ fleets, services }: Scenario): number | undefined => {
  const [fleet] = fleets
  const [service] = services
  const isOne = fleets.length === 1 && services.length === 1
  if (!isOne || typeof service.capacity !== "number" || !isPlainQueue(service) || !isPlainLoad(fleet)) return undefined
  if (!isLong(service, fleet)) return undefined
  return thresholdOf(fleet, service.capacity)
}
