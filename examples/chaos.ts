/**
 * Chaos: faults on purpose, in a test on a staging system.
 *
 * What goes wrong is said as in a scenario of the simulator, so that both can share it. Nothing goes wrong unless two
 * layers are there: one says what, the other that it is meant. The seed repeats a run.
 */
import { Effect, Layer } from "effect"
import { awsStandard, RetryQuota, withRetry } from "effect-retry"
import * as Chaos from "effect-retry/Chaos"

/** The call as it is in production too: `around` does nothing there. It stands inside the time-out and the retry. */
export const order = <E>(send: Effect.Effect<string, E>) =>
  Chaos.around(send, "orders").pipe(Effect.timeout("1 second"), withRetry(awsStandard))

/** A tenth of the sends fail at once, one in a hundred is never answered, and for ten seconds all are slow. */
export const outages: ReadonlyArray<Chaos.Outage> = [
  { kind: "fail", share: 0.1 },
  { kind: "drop", share: 0.01 },
  { kind: "slow", from: "10 seconds", to: "20 seconds", by: "300 millis" }
]

/** Provided where a test says so, and nowhere else. */
export const chaosLayer = Chaos.layer({ outages, seed: 7 }).pipe(Layer.provide(Chaos.armed))

/** A thousand orders, and what chaos has done to their sends. */
export const rehearsal = <E>(send: Effect.Effect<string, E>) =>
  Effect.gen(function*() {
    const exits = yield* Effect.replicateEffect(Effect.exit(order(send)), 1000)
    const done = exits.filter((exit) => exit._tag === "Success").length
    return { done, sends: (yield* Chaos.counts).get("orders")! }
  }).pipe(Effect.provide([RetryQuota.layer(), chaosLayer]))
