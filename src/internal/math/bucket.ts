/** A shortfall below this many tokens counts as none: waiting for it would take less than a clock tick. */
export const tokenEpsilon = 1e-9

/** What a token bucket is made of. Times in milliseconds of a monotonic clock. */
export interface BucketConfig {
  readonly capacity: number
  readonly refillPerMilli: number
}

/** A token bucket at a moment. */
export interface Bucket {
  readonly tokens: number
  readonly updatedAtMillis: number
}

/** Adds what has flowed in since the last look. A clock that went backwards adds nothing. */
export const refill = (bucket: Bucket, config: BucketConfig, nowMillis: number): Bucket => {
  const elapsed = nowMillis - bucket.updatedAtMillis
  if (elapsed <= 0) return bucket
  const tokens = Math.min(config.capacity, bucket.tokens + elapsed * config.refillPerMilli)
  return { tokens, updatedAtMillis: nowMillis }
}

/** Takes `cost` tokens, or `undefined` when they are not there. */
export const take = (bucket: Bucket, cost: number): Bucket | undefined =>
  bucket.tokens + tokenEpsilon < cost
    ? undefined
    : { tokens: Math.max(0, bucket.tokens - cost), updatedAtMillis: bucket.updatedAtMillis }

/**
 * Takes `cost` tokens at the moment at which they were there, now or before, or `undefined` when they are not there yet.
 * What flows in after that moment counts, though the bucket was full at it and a timer came late.
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

/** Puts tokens in, up to the capacity. */
export const put = (bucket: Bucket, config: BucketConfig, tokens: number): Bucket =>
  bucket.tokens >= config.capacity
    ? bucket
    : { tokens: Math.min(config.capacity, bucket.tokens + tokens), updatedAtMillis: bucket.updatedAtMillis }

/** Milliseconds until `cost` tokens are there: 0 when they are, otherwise at least 1 and whole. */
export const millisUntil = (bucket: Bucket, config: BucketConfig, cost: number): number => {
  const shortfall = cost - bucket.tokens
  if (shortfall <= tokenEpsilon) return 0
  return Math.max(1, Math.ceil(shortfall / config.refillPerMilli - tokenEpsilon))
}
