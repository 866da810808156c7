import type * as RetryDriver from "effect-retry/RetryDriver"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"

/** A call as a loop over the verbs of a driver. */
export const driven = <A, E, R, S>(
  send: Effect.Effect<A, E, S>,
  driver: Effect.Effect<RetryDriver.Driver, never, R>
): Effect.Effect<A, E, R | S> =>
  Effect.gen(function*() {
    const call = (yield* driver).call()
    return yield* Effect.onInterrupt(sending(send, call), () => Effect.sync(() => call.abandon()))
  })

const sending = <A, E, S>(send: Effect.Effect<A, E, S>, call: RetryDriver.Call): Effect.Effect<A, E, S> =>
  Effect.gen(function*() {
    while (true) {
      const entered = yield* Effect.result(call.enter() ?? Effect.void)
      let error: E
      let decision
      if (Result.isFailure(entered)) {
        error = entered.failure.error as E
        decision = entered.failure.decision
      } else {
        call.markSent()
        const sent = yield* Effect.result(send)
        if (Result.isSuccess(sent)) {
          yield* call.succeeded() ?? Effect.void
          return sent.success
        }
        error = sent.failure
        const decided = call.failed(error)
        decision = Effect.isEffect(decided) ? yield* Effect.orDie(decided) : decided
      }
      yield* Effect.sleep(decision.delay)
      if (decision._tag === "Stop") return yield* Effect.fail(error)
    }
  })
