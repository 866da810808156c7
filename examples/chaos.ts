/**
 * Chaos: deliberate faults, in a test on a staging system.
 *
 * Faults are described as in a scenario of the simulator, so that both
 * can share them. Nothing goes wrong unless two layers are provided:
 * one says what, the other that it is intended. The seed repeats a run.
 */
import { Effect, Layer } from "effect"
import { awsStandard, RetryQuota, withRetry } from "effect-retry"
import * as Chaos from "effect-retry/Chaos"
import * as Kit from "effect-retry/testing"
import { main, print } from "./support/program.ts"

/**
 * The call as in production: `around` does nothing there. It goes
 * inside the timeout and the retry.
 */
export const order = <E>(send: Effect.Effect<string, E>) =>
  Chaos.around(send, "orders").pipe(
    Effect.timeout("1 second"),
    withRetry(awsStandard)
  )

/**
 * A tenth of the sends fail immediately, one in a hundred is never
 * answered, and for ten seconds all are slow.
 */
export const outages: ReadonlyArray<Chaos.Outage> = [
  { kind: "fail", share: 0.1 },
  { kind: "drop", share: 0.01 },
  {
    kind: "slow",
    from: "10 seconds",
    to: "20 seconds",
    by: "300 millis"
  }
]

/** Provided only by a test. */
export const chaosLayer = Chaos.layer({ outages, seed: 7 }).pipe(
  Layer.provide(Chaos.armed)
)

/** A thousand orders, and what chaos did to their sends. */
export const rehearsal = <E>(send: Effect.Effect<string, E>) =>
  Effect.gen(function*() {
    const exits = yield* Effect.replicateEffect(
      Effect.exit(order(send)),
      1000
    )
    const done = exits.filter((exit) => exit._tag === "Success").length
    return { done, sends: (yield* Chaos.counts).get("orders")! }
  }).pipe(Effect.provide([RetryQuota.layer(), chaosLayer]))

main(
  import.meta.url,
  Effect.flatMap(
    Kit.runToEnd(
      rehearsal(Effect.delay(Effect.succeed("ordered"), "20 millis"))
    ),
    ({ done, sends }) =>
      print(
        `${done} of 1000 orders succeed; chaos: ${
          JSON.stringify(sends)
        }`
      )
  ).pipe(Effect.provide(Kit.seededRandom(1)))
)
