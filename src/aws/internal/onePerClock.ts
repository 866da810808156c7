import type * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/**
 * A layer of something made once, on first use. There is one per clock: times of two clocks do not compare, and a
 * program has only one.
 */
export const once = <I, S extends object>(key: Context.Key<I, S>, make: Effect.Effect<S>): Layer.Layer<I> => {
  const made = new WeakMap<Clock.Clock, S>()
  return Layer.effect(
    key,
    Effect.clockWith((clock) => {
      const existing = made.get(clock)
      if (existing !== undefined) return Effect.succeed(existing)
      return Effect.map(make, (fresh) => {
        // Another fiber may have been faster.
        const service = made.get(clock) ?? fresh
        made.set(clock, service)
        return service
      })
    })
  )
}
