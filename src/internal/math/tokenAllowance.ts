import { type Bucket, millisUntil, refill } from "./tokenBucket.ts"

/** The settings of limits per window. Times in milliseconds. */
export interface AllowanceConfig {
  readonly perMillis: number
  /** The largest burst, as the part of a window in which it refills. */
  readonly burstMillis: number
  /** The margin held back from it, since sends do not all take the same time to reach the server. */
  readonly slackMillis: number
  /** Our part of what the server allows, at most 1. */
  readonly share: number
}

/** For how many windows a limit counts that the server has stated. */
const learnedWindows = 10

/** What a response says about a limit. */
export interface StatedLimits {
  /** How much is allowed per window. */
  readonly limit: number | undefined
  /** How much of it is left. */
  readonly remaining: number | undefined
}

/** The state when a send was made. */
export interface Snapshot {
  readonly sentMillis: number
  /** What was held by others. */
  readonly held: number
  /** The total drawn, including this send. */
  readonly drawn: number
}

const fillingOf = (limit: number, config: AllowanceConfig) => {
  if (limit === Infinity) return undefined
  const refillPerMilli = limit * config.share / config.perMillis
  const capacity = refillPerMilli * (config.burstMillis - config.slackMillis)
  /** What a window gives: the most that may be owed because of what a server said. */
  const perWindow = refillPerMilli * config.perMillis
  return { capacity, refillPerMilli, perWindow }
}

/** An unused allowance. */
export const full = (ceiling: number, config: AllowanceConfig) => {
  const filling = fillingOf(ceiling, config)
  return {
    /** The client's own maximum per window, whatever the server says. */
    ceiling,
    /** `undefined` until the limit is known: then everything passes. */
    filling,
    /** The filling by the client's own maximum. */
    own: filling,
    /** When the server's limit ends: it may have been a mistake, and a server that states limits states them often. */
    learnedUntilMillis: Infinity,
    bucket: { tokens: filling?.capacity ?? 0, updatedAtMillis: -Infinity } as Bucket,
    /** What unfinished sends have reserved. */
    held: 0,
    /** The total ever reserved, plus what was used beyond reservations. */
    drawn: 0
  }
}

/** One limit of a server, as known to its client: a bucket whose content may be negative. */
export type Allowance = Readonly<ReturnType<typeof full>>

/** The allowance, refilled up to now, by the client's own maximum where the server's has lapsed. */
export const at = (self: Allowance, nowMillis: number): Allowance => {
  const { bucket, filling, learnedUntilMillis, own } = self
  if (filling === undefined) return self
  if (nowMillis < learnedUntilMillis) return { ...self, bucket: refill(bucket, filling, nowMillis) }
  const lapsed = { filling: own, learnedUntilMillis: Infinity }
  return at({ ...self, ...lapsed, bucket: refill(bucket, filling, learnedUntilMillis) }, nowMillis)
}

/** What may be believed of an amount: at most what a window gives. */
export const most = ({ filling }: Allowance, amount: number): number => Math.min(amount, filling?.perWindow ?? Infinity)

/**
 * Milliseconds until this much may be reserved: 0 if now. An amount larger than the bucket waits for a full one, since
 * otherwise it would wait forever.
 */
export const opensInMillis = ({ bucket, filling }: Allowance, amount: number): number =>
  filling === undefined || amount === 0 ? 0 : millisUntil(bucket, filling, Math.min(amount, filling.capacity))

const holding = (self: Allowance, tokens: number): Allowance => ({
  ...self,
  bucket: { ...self.bucket, tokens: Math.min(self.filling?.capacity ?? 0, tokens) }
})

/** The same, but because of what a server has said no more is owed than a window gives. */
const owing = (self: Allowance, tokens: number, before = 0): Allowance =>
  holding(self, Math.max(tokens, Math.min(before, -(self.filling?.perWindow ?? Infinity))))

/** Reserves the expected usage of a send. */
export const reserve = (self: Allowance, amount: number): Allowance => ({
  ...holding(self, self.bucket.tokens - amount),
  held: self.held + amount,
  drawn: self.drawn + amount
})

/** Settles a send by its actual usage: a surplus goes back, an excess becomes a debt, of at most a window. */
export const settle = (self: Allowance, reserved: number, used: number): Allowance => ({
  ...owing(self, self.bucket.tokens + reserved - used, self.bucket.tokens),
  held: self.held - reserved,
  drawn: self.drawn + Math.max(0, used - reserved)
})

/** The server rejected a send without saying what is left, so nothing is. */
export const drain = (self: Allowance): Allowance => holding(self, Math.min(0, self.bucket.tokens))

/** The allowance with another limit. What is used of the old one counts as used of the new one. */
const limited = (self: Allowance, config: AllowanceConfig, limit: number, nowMillis: number): Allowance => {
  const filling = fillingOf(Math.min(self.ceiling, limit), config)
  if (filling === undefined) return self
  const updated = { ...self, filling, learnedUntilMillis: nowMillis + learnedWindows * config.perMillis }
  if (filling.capacity === self.filling?.capacity) return updated
  return self.filling === undefined
    ? owing({ ...updated, bucket: { tokens: 0, updatedAtMillis: nowMillis } }, filling.capacity - self.held)
    : owing(updated, self.bucket.tokens)
}

/**
 * Corrects what is left by what the server said was left when it answered. The answer may be as old as the send, so the
 * upper bound is what was left then plus what has been refilled since, and the lower bound is what was left then, minus
 * everything in progress or drawn since.
 */
export const learn = (
  self: Allowance,
  config: AllowanceConfig,
  { limit, remaining }: StatedLimits,
  snapshot: Snapshot & { readonly nowMillis: number }
): Allowance => {
  const updated = limit === undefined ? self : limited(self, config, limit, snapshot.nowMillis)
  const { filling } = updated
  if (remaining === undefined || filling === undefined) return updated
  const left = remaining - filling.refillPerMilli * config.slackMillis
  const since = Math.max(0, snapshot.nowMillis - snapshot.sentMillis) * filling.refillPerMilli / config.share
  const least = config.share < 1 ? -Infinity : left - snapshot.held - (updated.drawn - snapshot.drawn)
  return holding(updated, Math.min(Math.max(updated.bucket.tokens, least), left + since))
}
