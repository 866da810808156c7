import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { jsonSchema } from "../Simulator.ts"
import * as flags from "./flags.ts"
import { asJson } from "./output.ts"
import { keysOf, kindsOf, type Place, places, type Row, sections } from "./reference.ts"
import { shipped, shippedNames } from "./scenarios.ts"
import { screen } from "./screen.ts"
import { described } from "./text.ts"

/** The keys of all kinds of outages, each once. */
const outageKeys = ({ anyOf = [] }: Place): ReadonlyArray<Row> => [
  ...new Map(anyOf.flatMap(keysOf).filter(([key]) => key !== "kind"))
]

/** Every key that a scenario can have. */
const reference = (columns: number): string => {
  const placeOf = places()
  const service = placeOf("Service")
  const points = (key: string) =>
    (service.properties?.[key]?.anyOf ?? []).flatMap(({ items }) => items === undefined ? [] : keysOf(items))
  return sections([
    ["Keys of a scenario:", keysOf(placeOf("Scenario"))],
    ["Keys of fleets:", keysOf(placeOf("Fleet"))],
    ["Keys of arrivals:", keysOf(placeOf("Arrivals"))],
    ["Keys of services:", keysOf(service)],
    ["Points of capacity:", points("capacity")],
    ["Points of limit:", points("limit")],
    ["Keys of costs:", keysOf(placeOf("Costs"))],
    ["Keys of balancer:", keysOf(placeOf("Balancer"))],
    ["Kinds of outages:", kindsOf(placeOf("Outage"))],
    ["Keys of outages:", outageKeys(placeOf("Outage"))]
  ], columns)
}

const keys = Flag.Boolean("keys").pipe(
  Flag.withDescription("List every scenario key, with its default"),
  Flag.withDefault(false)
)

export const list = Command.make(
  "scenarios",
  { json: flags.json, keys },
  Effect.fnUntraced(function*({ json, keys }) {
    const { columns } = yield* screen
    if (keys) return yield* Console.log(json ? asJson(jsonSchema()) : reference(columns))
    const names = yield* shippedNames
    const found = yield* Effect.forEach(
      names,
      (name) => Effect.map(shipped(name), ({ description }) => ({ name, description }))
    )
    if (json) return yield* Console.log(asJson(found))
    yield* Console.log(described(found.map(({ description, name }) => [name, description]), columns).join("\n"))
  })
).pipe(
  Command.withShortDescription("List the built-in scenarios"),
  Command.withDescription(
    "Lists the built-in scenarios and what each shows. With --keys it lists every scenario key."
  )
)
