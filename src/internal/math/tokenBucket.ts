/** A shortfall below this many tokens counts as none: waiting for it would take less than a clock tick. */
export const tokenEpsilon = 1e-9

/** The settings of a token bucket. Times in milliseconds of a monotonic clock. */
export interface BucketConfig {
  readonly capacity: number
  readonly refillPerMilli: number
}

/** The state of a token bucket. */
export interface Bucket {
  readonly tokens: number
  readonly updatedAtMillis: number
}

/** Adds the tokens refilled since the last update. A clock that goes backwards adds nothing. */
export const refill = (bucket: Bucket, config: BucketConfig, nowMillis: number): Bucket => {
  const elapsed = nowMillis - bucket.updatedAtMillis
  if (elapsed <= 0) return bucket
  const tokens = Math.min(config.capacity, bucket.tokens + elapsed * config.refillPerMilli)
  return { tokens, updatedAtMillis: nowMillis }
}

/** Takes `cost` tokens, or returns `undefined` if there are too few. */
export const take = (bucket: Bucket, cost: number): Bucket | undefined =>
  bucket.tokens + tokenEpsilon < cost
    ? undefined
    : { tokens: Math.max(0, bucket.tokens - cost), updatedAtMillis: bucket.updatedAtMillis }

/**
 * Takes `cost` tokens as of the moment they became available, or returns `undefined` if they are not available yet.
 * Refill after that moment counts, even if the bucket was full then and the timer fired late.
 */
export const takeWhenDue = (
  bucket: Bucket,
  config: BucketConfig,
  cost: number,
  nowMillis: number
): Bucket | undefined => {
  const shortfall = cost - bucket.tokens
  if (shortfall <= tokenEpsilon || config.refillPerMilli === 0) return take(refill(bucket, config, nowMillis), cost)
  const dueMillis = bucket.updatedAtMillis + shortfall / config.refillPerMilli
  return (dueMillis - nowMillis) * config.refillPerMilli > tokenEpsilon
    ? undefined
    : refill({ tokens: 0, updatedAtMillis: Math.min(dueMillis, nowMillis) }, config, nowMillis)
}

/** Adds tokens, up to the capacity. */
export const put = (bucket: Bucket, config: BucketConfig, tokens: number): Bucket =>
  bucket.tokens >= config.capacity
    ? bucket
    : { tokens: Math.min(config.capacity, bucket.tokens + tokens), updatedAtMillis: bucket.updatedAtMillis }

/** Milliseconds until `cost` tokens are available: 0 if they are, otherwise whole and at least 1. */
export const millisUntil = (bucket: Bucket, config: BucketConfig, cost: number): number => {
  const shortfall = cost - bucket.tokens
  if (shortfall <= tokenEpsilon) return 0
  return Math.max(1, Math.ceil(shortfall / config.refillPerMilli - tokenEpsilon))
}
