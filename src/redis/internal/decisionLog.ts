import * as Effect from "effect/Effect"

/** The two sides that decide, as the log names them. */
interface Sides {
  /** Follows "Redis answers again". */
  readonly shared: string
  /** Follows "Redis does not answer, ". */
  readonly alone: string
}

const fleetOrProcess: Sides = { shared: ", the fleet shares it", alone: "this process decides alone" }

/** Logs which side decides from now on: Redis, or the process for a reason. */
export const decisionLog =
  (kind: string, { alone, shared }: Sides = fleetOrProcess) =>
  (name: string, reason: string | undefined): Effect.Effect<void> => {
    const subject = `${kind} ${JSON.stringify(name)}`
    return Effect.ignoreCause(
      reason === undefined
        ? Effect.logInfo(`${subject}: Redis answers again${shared}`)
        : Effect.logWarning(`${subject}: Redis does not answer, ${alone}: ${reason}`)
    )
  }
