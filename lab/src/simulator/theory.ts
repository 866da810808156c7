import * as RetryPolicy from "effect-retry/RetryPolicy"
import type { BudgetOptions } from "./budget.ts"
import { resolve } from "./policy.ts"
import type { Policy } from "./policySchema.ts"
import type { Fleet, Scenario, ServiceSettings } from "./scenario.ts"
import { millis } from "./units.ts"

/** The rate that recovers with a budget, given the capacity and the rate that recovers by the policy's attempts alone. */
const boundedBy = (budget: BudgetOptions, capacity: number, alone: number): number | undefined => {
  switch (budget.kind) {
    case "finagle":
      return Math.max(alone, (capacity - budget.minPerSecond) / (1 + budget.share))
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

const thresholdOf = (policy: Policy, capacity: number): number | undefined => {
  const { budget, concurrency, coolDown, limiter, policy: retrying, throttle } = resolve(policy)
  if ((limiter ?? concurrency ?? coolDown ?? throttle) !== undefined) return undefined
  if (retrying === undefined) return capacity
  const { maxAttempts, quota } = RetryPolicy.limits(retrying)
  // It runs dry, and retries cease.
  if (quota !== undefined) return budget === undefined ? capacity : undefined
  const alone = capacity / maxAttempts
  return budget === undefined ? alone : boundedBy(budget, capacity, alone)
}

/** A queue served at a rate, with nothing else that refuses requests. */
const isPlainQueue = (
  { admitWithin, costs, dropsAbandoned, instances, limit, queue, queueTimeout }: ServiceSettings
): boolean =>
  !dropsAbandoned && instances === 1 && isFree(costs) &&
  [admitWithin, limit, queue, queueTimeout].every((bound) => bound === undefined)

const isFree = (costs: ServiceSettings["costs"]): boolean => Object.values(costs).every((cost) => millis(cost) === 0)

/** Calls at a rate, with a timeout. */
const isPlainLoad = ({ patience, rate, timeout }: Fleet): boolean =>
  rate !== undefined && timeout !== undefined && patience === undefined

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
  return thresholdOf(fleet.policy, service.capacity)
}
