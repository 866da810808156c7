import type * as ResourceLimiters from "../../resources/ResourceLimiters.ts"

/** Long enough for what is slow but works. What hangs for so long is not retried: the deadline of the policy has passed. */
export const attemptTimeout = "30 seconds"

/** Of `fetch`: a third of its deadline, so what hangs is retried. What cannot be retried has all of it. */
export const fetchTimeouts = { attemptMillis: 10_000, deadlineMillis: 30_000 } as const

/** Of a host: how long a call waits for a break that another was asked for. */
export const coolDown = { maxWait: "10 seconds" } as const

/** Of all hosts. */
export const limiters = { limiter: "unlimited", coolDown, capacity: 10_000 } as const satisfies ResourceLimiters.Options
