import * as Effect from "effect/Effect"

/** A turn of the event loop, in which sockets are read. */
export const turn = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))

/** Looks in each turn until it is so: for what happens at sockets, which no clock moves. */
export const until = (isSo: () => boolean): Effect.Effect<void> =>
  Effect.gen(function*() {
    while (!isSo()) yield* turn
  })
