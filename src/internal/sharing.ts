import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { RetryQuotaStore } from "../RetryQuotaStore.ts"
import type { SendGate } from "../SendGate.ts"
import { clockOf, monotonicMillis } from "./clock.ts"
import type { AnyContext } from "./shared.ts"
import { look } from "./tryGet.ts"

interface Around {
  readonly clock: Clock.Clock
  readonly context: AnyContext
}

/** Things of one kind, dropped in a row after about one call each. */
interface Dropped {
  count: number
  /** What they had lost by then, such as tokens that failed retries took from them. */
  lost: number
  latestMillis: number
}

/**
 * What was dropped, by what it was, and `undefined` for what was said. Each test has its own `TestClock`, so tests never
 * add up.
 */
const droppedByClock = new WeakMap<Clock.Clock, Map<string, Dropped | undefined>>()

const of = (clock: Clock.Clock): Map<string, Dropped | undefined> => {
  const found = droppedByClock.get(clock) ?? new Map()
  droppedByClock.set(clock, found)
  return found
}

/** Warns once per clock, with the loggers of the context. */
export const warn = ({ clock, context }: Around, message: string): void => {
  const before = of(clock)
  if (before.has(message)) return
  before.set(message, undefined)
  look(() => Effect.runSyncWith(context)(Effect.logWarning("effect-retry: " + message)))
}

/** Calls code of the user's on which no call depends: a gate, a store, an observer. That it throws is only logged. */
export const safely = <A, B, C>(around: Around, f: (a: A, b: B) => C, a?: A, b?: B): C | undefined => {
  try {
    return f(a!, b!)
  } catch {
    warn(around, "a gate, quota or observer throws: its counts may be off")
    return undefined
  }
}

/** This many, each so short-lived, in such quick succession, are no coincidence. */
const few = 10
const brieflyMillis = 60_000

/** What becomes of something that calls should share: what it held at first, and what of that was missing in the end. */
type Life = Readonly<Record<"whole" | "lost" | "livedMillis", number>>

/**
 * Something that calls should share was dropped, and what it had learned is lost. If many in a row were dropped like
 * this, and a single one in their place would have run dry, they should have been one.
 */
export const warnUnshared = (around: Around, what: string, { livedMillis, lost, whole }: Life): void => {
  if (!(lost > 0)) return
  const { clock } = around
  const all = of(clock)
  if (livedMillis > brieflyMillis) return void all.delete(what)
  const now = monotonicMillis(clock)
  let dropped = all.get(what)
  if (dropped === undefined || now - dropped.latestMillis > brieflyMillis) {
    all.set(what, dropped = { count: 0, lost: 0, latestMillis: 0 })
  }
  dropped.latestMillis = now
  dropped.lost += lost
  if (++dropped.count < few || dropped.lost < whole) return
  warn(around, `each call has its own ${what}: docs/sharing.md`)
}

const cure = (name: string): string => `${name}. Build its layer once, or give its LayerMap an idleTimeToLive`

/** Quotas that are dropped together count as one: the one that lost most. */
export const warnUnsharedQuotas = (
  context: AnyContext,
  stores: ReadonlyArray<{ readonly initial: number; readonly balance: RetryQuotaStore["balance"] }>,
  madeAtMillis: number
): void => {
  const clock = Context.get(context, Clock.Clock)
  let [lost, whole] = [0, 0]
  for (const store of stores) {
    const missing = store.initial - store.balance(clock)
    if (missing > lost) [lost, whole] = [missing, store.initial]
  }
  const livedMillis = monotonicMillis(clock) - madeAtMillis
  warnUnshared({ context, clock }, cure("RetryQuota"), { lost, whole, livedMillis })
}

/** Makes something that warns if it is dropped as one of many that should have been one. `left` is what it holds. */
export const watched = <A, E, R>(
  name: string,
  make: Effect.Effect<A, E, R>,
  left: (service: A, clock: Clock.Clock) => number
): Effect.Effect<A, E, R | Scope.Scope> =>
  Effect.tap(make, (service) =>
    Effect.withFiber((born) => {
      const clock = clockOf(born)
      const [whole, bornMillis] = [left(service, clock), monotonicMillis(clock)]
      return Effect.addFinalizer(() =>
        Effect.withFiber(({ context }) => {
          const livedMillis = monotonicMillis(clock) - bornMillis
          warnUnshared({ context, clock }, cure(name), { lost: whole - left(service, clock), whole, livedMillis })
          return Effect.void
        })
      )
    }))

/** What a quota holds. */
export const tokensIn = ({ store }: { readonly store: RetryQuotaStore }, clock: Clock.Clock): number =>
  look(() => store.balance(clock)) ?? 0

/** What a gate holds: nothing if its resource is short of capacity, of which the next call does not know. */
export const capacityIn = ({ gate }: { readonly gate: SendGate | undefined }, clock: Clock.Clock): number =>
  look(() => gate?.isStrained?.(monotonicMillis(clock))) === true ? 0 : 1
