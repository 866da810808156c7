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
