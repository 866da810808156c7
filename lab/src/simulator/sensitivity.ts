import * as RetryPolicyJson from "effect-retry/RetryPolicyJson"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import type { Distribution } from "./fields.ts"
import { settingsOf } from "./policy.ts"
import type { Policy, PolicySettings } from "./policySchema.ts"
import type { Outage, Scenario } from "./scenario.ts"
import { millis } from "./units.ts"

/** A parameter of a scenario that can be made smaller or larger. */
export interface Parameter {
  readonly path: string
  /** The scenario, to be read again, with so many times the value. */
  readonly times: (factor: number) => unknown
}

const scaled = (distribution: Distribution, factor: number): Distribution => {
  const time = (value: Parameters<typeof millis>[0]) => millis(value) * factor
  if (typeof distribution !== "object") return time(distribution)
  const { exponential, lognormal, normal, p50, p99, quantiles, uniform } = distribution
  if (exponential !== undefined) return { exponential: time(exponential) }
  if (normal !== undefined) return { normal: { mean: time(normal.mean), deviation: time(normal.deviation) } }
  if (uniform !== undefined) return { uniform: { from: time(uniform.from), to: time(uniform.to) } }
  if (lognormal !== undefined) return { lognormal: { ...lognormal, median: time(lognormal.median) } }
  if (quantiles !== undefined) {
    const [first, ...others] = quantiles.map(([share, value]) => [share, time(value)] as const)
    return { quantiles: [first!, ...others] }
  }
  return { p50: time(p50!), p99: time(p99!) }
}

/** Delays and tokens of the steps of a policy, each with its path. */
const knobs = new Set(["base", "increment", "cap", "delay", "cost"])

const settings = (policy: Policy): PolicySettings | undefined =>
  typeof policy === "string" ? settingsOf(policy) as PolicySettings | undefined : policy

/** A number, or a duration in milliseconds, so many times; `undefined` of anything else. */
const multiplied = (value: unknown, factor: number): number | undefined => {
  if (typeof value === "number") return value * factor
  return Option.getOrUndefined(
    Option.map(RetryPolicyJson.duration(value), (duration) => Duration.toMillis(duration) * factor)
  )
}

type Written = { readonly [key: string]: unknown }

const isWritten = (value: unknown): value is Written => typeof value === "object" && value !== null

/** Every knob inside of a step, with what replaces the step. */
const knobsOf = (step: unknown): ReadonlyArray<readonly [path: string, times: (factor: number) => unknown]> => {
  if (!isWritten(step) || Array.isArray(step)) return []
  return Object.entries(step).flatMap(([name, given]) =>
    isWritten(given)
      ? Object.entries(given).flatMap(([key, value]) =>
        knobs.has(key) && multiplied(value, 1) !== undefined && multiplied(value, 1) !== 0
          ? [
            [
              `${name}.${key}`,
              (factor: number) => ({ [name]: { ...given, [key]: multiplied(value, factor) } })
            ] as const
          ]
          : []
      )
      : []
  )
}

const ofPolicy = (scenario: Scenario, policy: Policy): ReadonlyArray<Parameter> => {
  const written = settings(policy)
  if (written === undefined) return []
  const withPolicy = (changed: unknown) => ({
    ...scenario,
    fleets: scenario.fleets.map((fleet) => ({ ...fleet, policy: changed }))
  })
  const steps = written.steps as ReadonlyArray<unknown>
  return [
    ...steps.flatMap((step, place) =>
      knobsOf(step).map(([path, times]): Parameter => ({
        path: `policy.${path}`,
        times: (factor) => withPolicy({ ...written, steps: steps.map((one, n) => n === place ? times(factor) : one) })
      }))
    ),
    ...written.quota?.capacity === undefined ? [] : [{
      path: "policy.quota.capacity",
      times: (factor: number) => withPolicy({ ...written, quota: { capacity: written.quota!.capacity * factor } })
    }]
  ]
}

const ofFleets = (scenario: Scenario): ReadonlyArray<Parameter> => {
  const { fleets } = scenario
  return fleets.flatMap(({ rate, timeout }, n): ReadonlyArray<Parameter> => {
    const parameter = (key: string, times: (factor: number) => object): Parameter => ({
      path: `fleets.${n}.${key}`,
      times: (factor) => ({
        ...scenario,
        fleets: fleets.map((fleet, m) => m === n ? { ...fleet, ...times(factor) } : fleet)
      })
    })
    return [
      ...typeof rate === "number" ? [parameter("rate", (factor) => ({ rate: rate * factor }))] : [],
      ...timeout === undefined ? [] : [parameter("timeout", (factor) => ({ timeout: millis(timeout) * factor }))]
    ]
  })
}

/** A tenth of fewer workers is none. */
const fewestWorkers = 5

const longer = (outage: Outage, factor: number): Outage => {
  const [from, to] = [millis(outage.from), millis(outage.to)]
  return { ...outage, to: from + (to - from) * factor }
}

const ofServices = (scenario: Scenario): ReadonlyArray<Parameter> => {
  const { services } = scenario
  return services.flatMap(({ capacity, latency, outages, workers = 0 }, n): ReadonlyArray<Parameter> => {
    const parameter = (key: string, times: (factor: number) => object): Parameter => ({
      path: `services.${n}.${key}`,
      times: (factor) => ({
        ...scenario,
        services: services.map((service, m) => m === n ? { ...service, ...times(factor) } : service)
      })
    })
    return [
      ...typeof capacity === "number" ? [parameter("capacity", (factor) => ({ capacity: capacity * factor }))] : [],
      ...workers < fewestWorkers
        ? []
        : [parameter("workers", (factor) => ({ workers: Math.round(workers * factor) }))],
      ...latency === 0 ? [] : [parameter("latency", (factor) => ({ latency: scaled(latency, factor) }))],
      ...outages.map((_, place) =>
        parameter(`outages.${place}.length`, (factor) => ({
          outages: outages.map((outage, m) => m === place ? longer(outage, factor) : outage)
        }))
      )
    ]
  })
}

/** What a scenario knows of its surroundings, and what its policy, that of all fleets, is set to. */
export const parametersOf = (scenario: Scenario, policy: Policy): ReadonlyArray<Parameter> => [
  ...ofFleets(scenario),
  ...ofServices(scenario),
  ...ofPolicy(scenario, policy)
]
