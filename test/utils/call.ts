import { InvalidOption, RetryInfo } from "effect-retry"
import * as Effect from "effect/Effect"
import type * as Random from "effect/Random"

/** Randomness that always gives the same number. */
export const constantRandom = (value: number): Random.Random => ({
  nextIntUnsafe: () => Math.floor(value * Number.MAX_SAFE_INTEGER),
  nextDoubleUnsafe: () => value
})

export class Transient extends RetryInfo.TaggedError("Transient", { fault: "server" }) {}
export class Throttled extends RetryInfo.TaggedError("Throttled", { throttling: true })<{
  readonly retryAfter?: number
}> {}
export class TimedOut extends RetryInfo.TaggedError("TimedOut", { timeout: true }) {}
export class Terminal extends RetryInfo.TaggedError("Terminal", { safety: "No" }) {}
export class Unsure extends RetryInfo.TaggedError("Unsure", { safety: "Maybe" }) {}

/** A call that fails with each of the errors in turn, then succeeds; `sends` counts how often it ran. */
export const scripted = <E>(errors: ReadonlyArray<E>) => {
  const call = { sends: 0, effect: undefined as unknown as Effect.Effect<"ok", E> }
  call.effect = Effect.suspend(() => {
    const send = call.sends++
    return send < errors.length ? Effect.fail(errors[send] as E) : Effect.succeed("ok")
  })
  return call
}

/** The wrong option that an effect dies of. */
export const invalidOptionOf = <A, R>(self: Effect.Effect<A, never, R>): Effect.Effect<InvalidOption, A, R> =>
  Effect.flip(
    Effect.catchDefect(self, (defect) => defect instanceof InvalidOption ? Effect.fail(defect) : Effect.die(defect))
  )
