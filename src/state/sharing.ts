import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { monotonicMillis } from "../internal/clock.ts"
import type { AnyContext } from "../internal/shared.ts"
import type { MemoryStore } from "./memoryStore.ts"

/**
 * Quotas of one clock, dropped in a row after about one call each. Each test has its own `TestClock`, so tests never
 * add up.
 */
interface Dropped {
  quotas: number
  /** Tokens that failed retries took from them. */
  tokens: number
  latestMillis: number
}

const known = new WeakMap<Clock.Clock, Dropped>()

const said = new WeakMap<Clock.Clock, Set<string>>()

/** Warns once per clock, with the loggers of the context. */
const warn = (context: AnyContext, clock: Clock.Clock, message: string): void => {
  const before = said.get(clock) ?? new Set()
  said.set(clock, before)
  if (before.has(message)) return
  before.add(message)
  Effect.runSyncWith(context)(Effect.logWarning(message))
}

/** A retry that costs more than the quota holds is never made: the capacity must be a mistake. */
export const warnTooSmall = (context: AnyContext, clock: Clock.Clock, cost: number, capacity: number): void =>
  warn(context, clock, `effect-retry: a retry costs ${cost}, its RetryQuota holds ${capacity}: none is made`)

/** This many quotas, each so short-lived, with so few retries, in such quick succession, are no coincidence. */
const few = 10
const brieflyMillis = 60_000

/**
 * A quota is dropped, and its record of failed retries is lost. If many in a row were dropped like this, and a single
 * one in their place would have run dry, they should have been one.
 */
export const warnUnshared = (context: AnyContext, clock: Clock.Clock, store: MemoryStore): void => {
  const lost = store.lost(clock)
  if (lost <= 0) return
  const now = monotonicMillis(clock)
  if (store.taken > few || now - store.madeAtMillis > brieflyMillis) {
    known.delete(clock)
    return
  }
  let dropped = known.get(clock)
  if (dropped === undefined || now - dropped.latestMillis > brieflyMillis) {
    known.set(clock, dropped = { quotas: 0, tokens: 0, latestMillis: 0 })
  }
  dropped.latestMillis = now
  dropped.tokens += lost
  if (++dropped.quotas < few || dropped.tokens < store.capacity) return
  warn(context, clock, "effect-retry: each call has its own RetryQuota. Build its layer once: docs/sharing.md")
}
