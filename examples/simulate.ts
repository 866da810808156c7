/** A scenario from a file, with one policy after the other: what each makes of the same outage. */
import * as Simulator from "@effect-retry/lab/Simulator"
import * as Effect from "effect/Effect"

/** What a run comes to, in three numbers. */
export interface Outcome {
  readonly policy: string
  /** The share of the calls that ended well. */
  readonly succeeded: number
  /** Attempts per call. */
  readonly load: number
  /** Seconds from a time on until every second has more successes than failures; `undefined` if that never comes. */
  readonly recoveredAfter: number | undefined
}

/** When the calls are well again for good, in seconds after `fromMillis`. */
export const recoveredAfter = (
  { series }: Pick<Simulator.ClientResult, "series">,
  fromMillis: number,
  untilMillis: number
): number | undefined => {
  const after = series.filter((bucket) => bucket.fromMillis >= fromMillis && bucket.fromMillis < untilMillis)
  const lastBad = after.map((bucket) => bucket.succeeded < bucket.calls / 2).lastIndexOf(true)
  return lastBad === after.length - 1 ? undefined : lastBad + 1
}

/** Runs a scenario, given as JSON, with each of the policies. `progress` hears how far each run is, from 0 to 1. */
export const compare = Effect.fn("compare")(function*(
  json: string,
  policies: ReadonlyArray<unknown>,
  progress: (fraction: number) => Effect.Effect<void> = () => Effect.void
) {
  const scenario = yield* Simulator.decodeJson(json)
  const outcomes: Array<Outcome> = []
  for (const input of policies) {
    const policy = yield* Simulator.decodePolicy(input)
    const { clients } = yield* Simulator.run(Simulator.withPolicy(scenario, policy), {
      onProgress: ({ fraction }) => progress(fraction)
    })
    for (const { policy, totals, ...client } of clients) {
      outcomes.push({
        policy,
        succeeded: totals.succeeded / totals.calls,
        load: totals.attempts / totals.calls,
        recoveredAfter: recoveredAfter(client, 30_000, 200_000)
      })
    }
  }
  return outcomes
})
