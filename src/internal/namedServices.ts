import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { clockOf, monotonicMillis } from "./clock.ts"

interface Named {
  /** Whether it is as a new one would be, so that nothing is lost with it. */
  readonly isBlank: boolean
}

interface Kept<A extends Named> {
  /** The one used last comes last. */
  readonly known: Map<string, A>
  /** Those that are forgotten unless something still uses them. */
  readonly forgotten: Map<string, WeakRef<A>>
}

/** What belongs to names. That of another clock is another: each test has its own. */
export type Names<A extends Named> = WeakMap<Clock.Clock, Kept<A>>

const most = 10_000

/** Forgets a blank one, or the one used longest ago. Some Workers lack weak references. */
const forget = <A extends Named>({ forgotten, known }: Kept<A>): void => {
  let [oldest] = known
  for (const entry of known) {
    if (!entry[1].isBlank) continue
    oldest = entry
    break
  }
  const [name, one] = oldest!
  known.delete(name)
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
    const kept = names.get(clock) ?? { known: new Map<string, A>(), forgotten: new Map<string, WeakRef<A>>() }
    const { forgotten, known } = kept
    const one = known.get(name) ?? forgotten.get(name)?.deref() ?? make(monotonicMillis(clock))
    names.set(clock, kept)
    forgotten.delete(name)
    known.delete(name)
    if (known.size >= most) forget(kept)
    known.set(name, one)
    return Effect.succeed(one)
  })
