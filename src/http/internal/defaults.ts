import type * as ResourceLimiters from "../../resources/ResourceLimiters.ts"

/** Long enough for what is slow but works. What hangs for so long is not retried: the deadline of the policy has passed. */
export const attemptTimeout = "30 seconds"

/** Of a host: a call waits as long as it may go on retrying. */
export const coolDown = { maxWait: "10 seconds" } as const

/** Of all hosts. */
export const limiters = { limiter: "unlimited", coolDown, capacity: 10_000 } as const satisfies ResourceLimiters.Options
