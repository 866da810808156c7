import { type Bucket, type BucketConfig, millisUntil, refill } from "./bucket.ts"

/** How limits are kept: so much in each window. Times in milliseconds. */
export interface AllowanceConfig {
  readonly perMillis: number
  /** How much may be used at once, as the part of a window in which it flows in. */
  readonly burstMillis: number
  /** How much less is used at once than that, since sends do not all take the same time to the server. */
  readonly slackMillis: number
  /** The part of what the server allows that is ours, at most 1. */
  readonly share: number
}

/** One limit of a server, as its client knows it: a bucket that may hold less than nothing. */
export interface Allowance {
  /** The most that the client allows itself in a window, whatever the server says. */
  readonly ceiling: number
  /** `undefined` as long as nobody knows the limit: then everything passes. */
  readonly filling: BucketConfig | undefined
  readonly bucket: Bucket
  /** What sends have reserved that have not ended. */
  readonly held: number
  /** What was ever reserved, and what was used beyond it. */
  readonly drawn: number
}

/** What an answer says of a limit. */
export interface Told {
  /** So much is allowed in a window. */
  readonly limit: number | undefined
  /** So much of it is left. */
  readonly remaining: number | undefined
}

/** How things stood when a send left. */
export interface Mark {
  readonly sentMillis: number
  /** What was held by others. */
  readonly held: number
  /** What was drawn, by the send too. */
  readonly drawn: number
}

const fillingOf = (limit: number, config: AllowanceConfig): BucketConfig | undefined => {
  if (limit === Infinity) return undefined
  const refillPerMilli = limit * config.share / config.perMillis
  return { capacity: refillPerMilli * (config.burstMillis - config.slackMillis), refillPerMilli }
}

/** An allowance of which nothing is used. */
export const full = (ceiling: number, config: AllowanceConfig): Allowance => {
  const filling = fillingOf(ceiling, config)
  return { ceiling, filling, bucket: { tokens: filling?.capacity ?? 0, updatedAtMillis: -Infinity }, held: 0, drawn: 0 }
}

/** The allowance, with all that has flowed in. */
export const at = (self: Allowance, nowMillis: number): Allowance =>
  self.filling === undefined ? self : { ...self, bucket: refill(self.bucket, self.filling, nowMillis) }

/**
 * Milliseconds until so much may be reserved: 0 when it may now. What is more than a full bucket waits for a full one, or
 * it would wait forever.
 */
export const opensInMillis = ({ bucket, filling }: Allowance, amount: number): number =>
  filling === undefined || amount === 0 ? 0 : millisUntil(bucket, filling, Math.min(amount, filling.capacity))

const holding = (self: Allowance, tokens: number): Allowance => ({
  ...self,
  bucket: { ...self.bucket, tokens: Math.min(self.filling?.capacity ?? 0, tokens) }
})

/** Reserves what a send is expected to use. */
export const reserve = (self: Allowance, amount: number): Allowance => ({
  ...holding(self, self.bucket.tokens - amount),
  held: self.held + amount,
  drawn: self.drawn + amount
})

/** A send that had reserved so much has used so much: less is given back, more is a debt. */
export const settle = (self: Allowance, reserved: number, used: number): Allowance => ({
  ...holding(self, self.bucket.tokens + reserved - used),
  held: self.held - reserved,
  drawn: self.drawn + Math.max(0, used - reserved)
})

/** The server has refused a send, and does not say what is left: nothing is. */
export const drain = (self: Allowance): Allowance => holding(self, Math.min(0, self.bucket.tokens))

/** The allowance with another limit. What is used of the old one is used of the new one. */
const limited = (self: Allowance, config: AllowanceConfig, limit: number, nowMillis: number): Allowance => {
  const filling = fillingOf(Math.min(self.ceiling, limit), config)
  if (filling === undefined || filling.capacity === self.filling?.capacity) return self
  return self.filling === undefined
    ? { ...self, filling, bucket: { tokens: filling.capacity - self.held, updatedAtMillis: nowMillis } }
    : holding({ ...self, filling }, self.bucket.tokens)
}

/**
 * What is left, within what the server says was left when it answered. The answer may be as old as the send: so at most
 * what was left then and has flowed in since, and at least what was left then, without all that was under way or has been
 * drawn since.
 */
export const learn = (
  self: Allowance,
  config: AllowanceConfig,
  { limit, remaining }: Told,
  mark: Mark & { readonly nowMillis: number }
): Allowance => {
  const known = limit === undefined ? self : limited(self, config, limit, mark.nowMillis)
  const { filling } = known
  if (remaining === undefined || filling === undefined) return known
  const left = remaining - filling.refillPerMilli * config.slackMillis
  const since = Math.max(0, mark.nowMillis - mark.sentMillis) * filling.refillPerMilli / config.share
  const least = config.share < 1 ? -Infinity : left - mark.held - (known.drawn - mark.drawn)
  return holding(known, Math.min(Math.max(known.bucket.tokens, least), left + since))
}
