import * as Simulator from "@effect-retry/lab/Simulator"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"

const folder = new URL("../../scenarios/", import.meta.url)

/** The scenarios that ship, by name. */
export const shipped: ReadonlyArray<string> = fs.readdirSync(folder)
  .filter((file) => file.endsWith(".json"))
  .map((file) => file.slice(0, -".json".length))

/** The text of a scenario that ships. */
export const textOf = (name: string): string => fs.readFileSync(new URL(`${name}.json`, folder), "utf8")

/** What is changed in a scenario: of itself, its first fleet, its first service. */
export interface Changes {
  readonly scenario?: object | undefined
  readonly fleet?: object | undefined
  readonly service?: object | undefined
}

/** A scenario that ships, with changes. */
export const inputOf = (name: string, { fleet, scenario, service }: Changes = {}): any => {
  const input = JSON.parse(textOf(name))
  return {
    ...input,
    ...scenario,
    fleets: [{ ...input.fleets[0], ...fleet }, ...input.fleets.slice(1)],
    services: [{ ...input.services[0], ...service }, ...input.services.slice(1)]
  }
}

/** Runs a scenario that ships, with changes. */
export const simulate = (name: string, changes?: Changes) =>
  Effect.flatMap(Simulator.decode(inputOf(name, changes)), (scenario) => Simulator.run(scenario))

/** Runs a scenario. */
export const simulateInput = (input: unknown) =>
  Effect.flatMap(Simulator.decode(input), (scenario) => Simulator.run(scenario))

/** What a policy of the tests has: three immediate attempts, unless it says otherwise. */
export interface Retrying {
  readonly label?: string
  /** Attempts, the first included; `Infinity` for no limit. Default 3. */
  readonly attempts?: number
  /** The source of its delays. Default: none, retries are sent immediately. */
  readonly source?: object
  /** What a retry takes from the quota. Default: there is none. */
  readonly cost?: number
  readonly quota?: object
  readonly budget?: object
  readonly throttle?: object
  readonly coolDown?: object
}

/** A policy by its steps, as a scenario has it. */
export const retrying = (
  { attempts = 3, cost, source = { fixed: { delay: 0 } }, ...rest }: Retrying = {}
): { readonly steps: ReadonlyArray<unknown> } => ({
  ...rest,
  steps: [
    source,
    ...attempts === Infinity ? [] : [{ maxAttempts: attempts }],
    "whileRetryable",
    "honorRetryAfter",
    ...cost === undefined ? [] : [{ quotaGated: { cost } }]
  ]
})
