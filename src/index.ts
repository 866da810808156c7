/**
 * A retry toolkit for Effect.
 *
 * @since 0.1.0
 */

import "./internal/requiresEffect4.ts"

export { attempt, withRetry, withRetryOrElse } from "./Attempt.ts"
export { awsAdaptive, awsDynamoDB2026, awsStandard, awsStandard2026 } from "./aws/AwsModes.ts"
export * as AwsModes from "./aws/AwsModes.ts"
export * as Backoff from "./Backoff.ts"
export { httpStandard } from "./Backoff.ts"
export { retryPromise } from "./drivers/RetryPromise.ts"
export * as RetryPromise from "./drivers/RetryPromise.ts"
export * as Waiter from "./drivers/Waiter.ts"
export * as AdaptiveRateLimiter from "./gates/AdaptiveRateLimiter.ts"
export * as ConcurrencyLimiter from "./gates/ConcurrencyLimiter.ts"
export * as CoolDown from "./gates/CoolDown.ts"
export * as Hedge from "./hedge/Hedge.ts"
export { InvalidOption } from "./InvalidOption.ts"
export * as RetryMetrics from "./metrics/RetryMetrics.ts"
export * as ResourceLimiters from "./resources/ResourceLimiters.ts"
export * as RetryClassifier from "./RetryClassifier.ts"
export * as RetryDecision from "./RetryDecision.ts"
export * as RetryInfo from "./RetryInfo.ts"
export * as RetryObserver from "./RetryObserver.ts"
export * as RetryPolicy from "./RetryPolicy.ts"
export * as RetryQuota from "./RetryQuota.ts"
export * as RetryQuotaStore from "./RetryQuotaStore.ts"
export * as SendGate from "./SendGate.ts"
