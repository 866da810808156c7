import { type Failure, throttled } from "./failure.ts"
import type { ServiceSettings } from "./scenario.ts"
import { millis } from "./units.ts"

/** Whether a request at a time passes. */
type Gate = (nowMillis: number) => boolean

/** So many requests in each stretch of time; stretches follow each other from time 0. */
const counted = (requests: number, perMillis: number): Gate => {
  let stretch = -1
  let passed = 0
  return (nowMillis) => {
    const now = Math.floor(nowMillis / perMillis)
    if (now !== stretch) {
      stretch = now
      passed = 0
    }
    return ++passed <= requests
  }
}

/** A leaky bucket: requests that pass fill it, it flows off evenly. Source: nginx `limit_req` with `nodelay`. */
const leaky = (perMilli: number, burst: number): Gate => {
  let excess = -1
  let atMillis = 0
  return (nowMillis) => {
    const next = Math.max(-1, excess - perMilli * (nowMillis - atMillis)) + 1
    if (next > burst) return false
    excess = next
    atMillis = nowMillis
    return true
  }
}

/** What a service throttles, and how it says so. */
export class Limit {
  readonly failure: Failure
  readonly passes: Gate

  constructor({ burst, per, requests, retryAfter }: NonNullable<ServiceSettings["limit"]>) {
    const perMillis = millis(per)
    this.failure = throttled(retryAfter === undefined ? undefined : millis(retryAfter))
    this.passes = burst === undefined ? counted(requests, perMillis) : leaky(requests / perMillis, burst)
  }
}
