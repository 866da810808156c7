import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { clockOf, monotonicMillis } from "./clock.ts"

interface Named {
  /** Whether it is as a new one would be, so that nothing is lost with it. */
  readonly isBlank: boolean
}

interface Kept<A extends Named> {
  /** The one used last comes last. */
  readonly current: Map<string, A>
  /** Those that are forgotten unless something still uses them. */
  readonly forgotten: Map<string, WeakRef<A>>
}

/** What belongs to names. That of another clock is another: each test has its own. */
export type Names<A extends Named> = WeakMap<Clock.Clock, Kept<A>>

const most = 10_000

/** Forgets a blank one, or the one used longest ago. Some Workers lack weak references. */
const forget = <A extends Named>({ forgotten, current }: Kept<A>): void => {
  let [oldest] = current
  for (const entry of current) {
    if (!entry[1].isBlank) continue
    oldest = entry
    break
  }
  const [name, one] = oldest!
  current.delete(name)
  if (typeof WeakRef === "undefined") return
  forgotten.set(name, new WeakRef(one))
  // For each that comes, two are looked at: so those that are gone do not pile up.
  let looked = 0
  for (const [name, ref] of forgotten) {
    forgotten.delete(name)
    if (ref.deref() !== undefined) forgotten.set(name, ref)
    if (++looked === 2) break
  }
}

/** What belongs to a name, made on its first use. */
export const named = <A extends Named>(
  names: Names<A>,
  name: string,
  make: (nowMillis: number) => A
): Effect.Effect<A> =>
  Effect.withFiber((fiber) => {
    const clock = clockOf(fiber)
    const kept = names.get(clock) ?? { current: new Map<string, A>(), forgotten: new Map<string, WeakRef<A>>() }
    const { forgotten, current } = kept
    const one = current.get(name) ?? forgotten.get(name)?.deref() ?? make(monotonicMillis(clock))
    names.set(clock, kept)
    forgotten.delete(name)
    current.delete(name)
    if (current.size >= most) forget(kept)
    current.set(name, one)
    return Effect.succeed(one)
  })
