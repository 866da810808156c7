import * as RetryPolicyJson from "effect-retry/RetryPolicyJson"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import { lasting } from "./lasting.ts"
import { settingsOf } from "./policy.ts"
import type { Policy, PolicySettings } from "./policySchema.ts"
import type { Scenario } from "./scenario.ts"
import { millis, scaled } from "./units.ts"
import { withPolicy } from "./withPolicy.ts"

/** A parameter of a scenario that can be made smaller or larger. */
export interface Parameter {
  readonly path: string
  /** The scenario with this many times the value, to be decoded again. */
  readonly times: (factor: number) => unknown
}

/** Delays and tokens of the steps of a policy, each with its path. */
const knobs = new Set(["base", "increment", "cap", "delay", "cost"])

const settings = (policy: Policy): PolicySettings | undefined =>
  typeof policy === "string" ? settingsOf(policy) as PolicySettings | undefined : policy

/** A number, or a duration in milliseconds, multiplied; `undefined` for anything else. */
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
  return Object.entries(step).flatMap(([name, setting]) =>
    isWritten(setting)
      ? Object.entries(setting).flatMap(([key, value]) =>
        knobs.has(key) && multiplied(value, 1) !== undefined && multiplied(value, 1) !== 0
          ? [
            [
              `${name}.${key}`,
              (factor: number) => ({ [name]: { ...setting, [key]: multiplied(value, factor) } })
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
  const set = (changed: object) => withPolicy(scenario, changed as PolicySettings)
  const steps = written.steps as ReadonlyArray<unknown>
  return [
    ...steps.flatMap((step, place) =>
      knobsOf(step).map(([path, times]): Parameter => ({
        path: `policy.${path}`,
        times: (factor) => set({ ...written, steps: steps.map((one, n) => n === place ? times(factor) : one) })
      }))
    ),
    ...written.quota?.capacity === undefined ? [] : [{
      path: "policy.quota.capacity",
      times: (factor: number) =>
        set({ ...written, quota: { ...written.quota, capacity: written.quota!.capacity * factor } })
    }]
  ]
}

/** Makes the parameters of a fleet or a service, from the keys that change. */
const partOf = (scenario: Scenario, list: "fleets" | "services", place: number) => {
  const parts: ReadonlyArray<object> = scenario[list]
  return (key: string, times: (factor: number) => object): Parameter => ({
    path: `${list}.${place}.${key}`,
    times: (factor) => ({
      ...scenario,
      [list]: parts.map((part, n) => n === place ? { ...part, ...times(factor) } : part)
    })
  })
}

const ofFleets = (scenario: Scenario): ReadonlyArray<Parameter> =>
  scenario.fleets.flatMap(({ rate, timeout }, n): ReadonlyArray<Parameter> => {
    const parameter = partOf(scenario, "fleets", n)
    return [
      ...typeof rate === "number" ? [parameter("rate", (factor) => ({ rate: rate * factor }))] : [],
      ...timeout === undefined ? [] : [parameter("timeout", (factor) => ({ timeout: millis(timeout) * factor }))]
    ]
  })

/** With fewer workers, a tenth rounds to none. */
const fewestWorkers = 5

const ofServices = (scenario: Scenario): ReadonlyArray<Parameter> =>
  scenario.services.flatMap(({ capacity, latency, outages, workers = 0 }, n): ReadonlyArray<Parameter> => {
    const parameter = partOf(scenario, "services", n)
    return [
      ...typeof capacity === "number" ? [parameter("capacity", (factor) => ({ capacity: capacity * factor }))] : [],
      ...workers < fewestWorkers
        ? []
        : [parameter("workers", (factor) => ({ workers: Math.round(workers * factor) }))],
      ...latency === 0 ? [] : [parameter("latency", (factor) => ({ latency: scaled(latency, factor) }))],
      ...outages.map((_, place) =>
        parameter(`outages.${place}.length`, (factor) => ({
          outages: outages.map((outage, m) => m === place ? lasting(outage, factor) : outage)
        }))
      )
    ]
  })

/** The settings of a scenario's services and load, and those of its policy, that of all fleets. */
export const parametersOf = (scenario: Scenario, policy: Policy): ReadonlyArray<Parameter> => [
  ...ofFleets(scenario),
  ...ofServices(scenario),
  ...ofPolicy(scenario, policy)
]
