import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Recorded } from "./arrivalsSchema.ts"
import { fromSchema, type InvalidScenario } from "./problem.ts"

const decodeRecorded = Schema.decodeUnknownEffect(Recorded)

/** Reads recorded calls, as a file holds them. */
export const decodeArrivals = (input: unknown): Effect.Effect<typeof Recorded.Type, InvalidScenario> =>
  Effect.mapError(
    decodeRecorded(input, { onExcessProperty: "error", errors: "all" }),
    (error) => fromSchema(error, input)
  )
