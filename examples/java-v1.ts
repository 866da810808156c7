/**
 * Migrating from the AWS SDK for Java 1.x: its retries, around any
 * effect.
 *
 * The policy says when to retry, the layer says what: without it the
 * default classifier does, which knows more errors.
 */
import { Effect } from "effect"
import { RetryPolicy, withRetry } from "effect-retry"
import * as JavaV1 from "effect-retry/aws/legacy/JavaV1"
import { down, main, show } from "./support/program.ts"

/**
 * `PredefinedRetryPolicies.DEFAULT`: 3 retries, from 100 ms with full
 * jitter, after a throttle from 500 ms with equal jitter.
 */
export const describe = <E>(send: Effect.Effect<string, E>) =>
  send.pipe(
    withRetry(JavaV1.defaultPolicy),
    Effect.provide(JavaV1.layer)
  )

/**
 * Like `new SDKDefaultBackoffStrategy(50, 1000, 5000)` with 5 retries.
 */
export const patient = JavaV1.policy({
  baseDelay: "50 millis",
  throttledBaseDelay: "1 second",
  maxBackoff: "5 seconds",
  maxRetries: 5
})

/**
 * With a quota like that of the SDK's client: a retry takes 5 of 500
 * tokens, none after a throttle.
 */
export const withQuota = JavaV1.defaultPolicy.pipe(
  RetryPolicy.quotaGated({ cost: 5, throttlingCost: 0 })
)

main(
  import.meta.url,
  show("unavailable", down, describe),
  show(
    "throttled",
    Array.from({ length: 20 }, () => ({ name: "ThrottlingException" })),
    describe
  ),
  show("5 retries", down, (send) => send.pipe(withRetry(patient)))
)
