/**
 * A scenario from a file, with one policy after the other: how each
 * handles the same outage.
 */
import * as Simulator from "@effect-retry/lab/Simulator"
import * as Effect from "effect/Effect"
import { main, print } from "./support/program.ts"

/** The result of a run, in three numbers. */
export interface Outcome {
  readonly policy: string
  /** The share of calls that succeeded. */
  readonly succeeded: number
  /** Attempts per call. */
  readonly load: number
  /**
   * Seconds until every later second has more successes than failures;
   * `undefined` if that never happens.
   */
  readonly recoveredAfter: number | undefined
}

/**
 * When the calls have recovered to the end of the run, in seconds after
 * `fromMillis`.
 */
export const recoveredAfter = (
  { series }: Pick<Simulator.ClientResult, "series">,
  fromMillis: number,
  untilMillis: number
): number | undefined => {
  const after = series.filter((bucket) =>
    bucket.fromMillis >= fromMillis && bucket.fromMillis < untilMillis
  )
  const lastBad = after.map((bucket) =>
    bucket.succeeded < bucket.calls / 2
  ).lastIndexOf(true)
  return lastBad === after.length - 1 ? undefined : lastBad + 1
}

/**
 * Runs a scenario, given as JSON, with each of the policies. `progress`
 * gets the progress of each run, from 0 to 1.
 */
export const compare = Effect.fn("compare")(function*(
  json: string,
  policies: ReadonlyArray<unknown>,
  progress: (fraction: number) => Effect.Effect<void> = () =>
    Effect.void
) {
  const scenario = yield* Simulator.decodeJson(json)
  const outcomes: Array<Outcome> = []
  for (const input of policies) {
    const policy = yield* Simulator.decodePolicy(input)
    const { clients } = yield* Simulator.run(
      Simulator.withPolicy(scenario, policy),
      {
        onProgress: ({ fraction }) => progress(fraction)
      }
    )
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

/**
 * A service for 100 requests per second is down for ten seconds; then
 * all delayed requests arrive at the same time.
 */
const outage = JSON.stringify({
  name: "outage",
  duration: "1 minute",
  fleets: [{
    name: "clients",
    to: "service",
    rate: 60,
    timeout: "1 second"
  }],
  services: [{
    name: "service",
    capacity: 100,
    outages: [{ kind: "hold", from: "20 seconds", to: "30 seconds" }]
  }]
})

const naive = {
  label: "retry once",
  steps: [{ fixed: { delay: 0 } }, { maxAttempts: 2 }, "whileRetryable"]
}

const percent = (share: number) =>
  `${(100 * share).toFixed(1)} %`.padStart(7)

main(
  import.meta.url,
  Effect.flatMap(
    compare(outage, [naive, "awsStandard"]),
    (outcomes) =>
      Effect.forEach(outcomes, ({ load, policy, succeeded }) =>
        print(
          `${policy.padEnd(12)} ${
            percent(succeeded)
          } of the calls succeed, with ${
            load.toFixed(2)
          } sends for each`
        ))
  )
)
