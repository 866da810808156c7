import { httpStandard } from "../../Backoff.ts"
import type * as ResourceLimiters from "../../resources/ResourceLimiters.ts"
import * as RetryPolicy from "../../RetryPolicy.ts"

const deadlineMillis = 30_000

/** Of a service that is down it asks no more than `httpStandard` would, though it goes on for longer. */
export const policy = () => httpStandard.pipe(RetryPolicy.withDeadline(deadlineMillis), RetryPolicy.maxAttempts(10))

/** A third of the deadline, so what hangs is retried. An attempt that none can follow has all of it. */
export const timeouts = { attemptMillis: 10_000, lastMillis: deadlineMillis } as const

/** Of a host: how long a call waits for a break that another was asked for. */
export const coolDown = { maxWait: "10 seconds" } as const

/** Of all hosts. */
export const limiters = { limiter: "unlimited", coolDown, capacity: 10_000 } as const satisfies ResourceLimiters.Options
