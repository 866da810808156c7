import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { clockOf, monotonicMillis } from "./clock.ts"

/** Services of one kind by name. Those of another clock are others: each test has its own. */
export type Names<A> = WeakMap<Clock.Clock, Map<string, A>>

const most = 10_000

/** That of a name, made on its first use. The ones used last are kept. */
export const named = <A>(names: Names<A>, name: string, make: (nowMillis: number) => A): Effect.Effect<A> =>
  Effect.withFiber((fiber) => {
    const clock = clockOf(fiber)
    const kept = names.get(clock) ?? new Map<string, A>()
    const service = kept.get(name) ?? make(monotonicMillis(clock))
    names.set(clock, kept)
    kept.delete(name)
    kept.set(name, service)
    if (kept.size > most) kept.delete(kept.keys().next().value!)
    return Effect.succeed(service)
  })
