/**
 * A retry toolkit for Effect.
 *
 * @since 0.1.0
 */

import "./internal/effect-retry needs effect 4.1 (npm install effect@4).ts"

export * as AdaptiveRateLimiter from "./AdaptiveRateLimiter.ts"
export { attempt, withRetry, withRetryOrElse } from "./Attempt.ts"
export { awsAdaptive, awsDynamoDB2026, awsStandard, awsStandard2026 } from "./aws/AwsModes.ts"
export * as AwsModes from "./aws/AwsModes.ts"
export * as Backoff from "./Backoff.ts"
export * as Hedge from "./Hedge.ts"
export { InvalidOption } from "./InvalidOption.ts"
export * as ResourceLimiters from "./ResourceLimiters.ts"
export * as RetryClassifier from "./RetryClassifier.ts"
export * as RetryDecision from "./RetryDecision.ts"
export * as RetryInfo from "./RetryInfo.ts"
export * as RetryMetrics from "./RetryMetrics.ts"
export * as RetryObserver from "./RetryObserver.ts"
export * as RetryPolicy from "./RetryPolicy.ts"
export { retryPromise } from "./RetryPromise.ts"
export * as RetryPromise from "./RetryPromise.ts"
export * as RetryQuota from "./RetryQuota.ts"
export * as RetryQuotaStore from "./RetryQuotaStore.ts"
export * as RetryStrategy from "./RetryStrategy.ts"
export * as SendGate from "./SendGate.ts"
export * as Waiter from "./Waiter.ts"
