import { assert, describe, it } from "@effect/vitest"
import * as EffectRetry from "effect-retry"

const names = (module: object) => Object.keys(module).sort()

describe("the public surface", () => {
  it("is what it was", () => {
    assert.deepStrictEqual(names(EffectRetry), [
      "AdaptiveRateLimiter",
      "AwsModes",
      "Backoff",
      "InvalidOption",
      "ResourceLimiters",
      "RetryClassifier",
      "RetryInfo",
      "RetryMetrics",
      "RetryObserver",
      "RetryPolicy",
      "RetryPromise",
      "RetryQuota",
      "RetryStrategy",
      "RetryToken",
      "Waiter",
      "attempt",
      "awsAdaptive",
      "awsDynamoDB2026",
      "awsStandard",
      "awsStandard2026",
      "retryPromise",
      "withRetry"
    ])
  })
})
