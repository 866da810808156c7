import type { AwsModes } from "effect-retry"
import type { StandardVector } from "../utils/vectors.ts"

// Retry behaviour 2.1, standard mode, every random value 1; delays in seconds. What `given` leaves out is the default.
// Source: smithy-kotlin NewStandardRetryIntegrationTestResources.kt @6373a5f747, numbered as in aws-sdk-cpp
// RetryBehaviorTest; 11 and the balances of 14: aws-sdk-go-v2 retry2026_test.go @058d9848ce.
export const standard2026: ReadonlyArray<StandardVector<AwsModes.Options2026 & { readonly dynamoDB?: true }>> = [
  {
    name: "1 retry eventually succeeds",
    given: {},
    responses: [
      { status: 500, expected: { outcome: "retry", quota: 486, delay: 0.05 } },
      { status: 500, expected: { outcome: "retry", quota: 472, delay: 0.1 } },
      { status: 200, expected: { outcome: "success", quota: 486 } }
    ]
  },
  {
    name: "2 fail due to max attempts reached",
    given: {},
    responses: [
      { status: 502, expected: { outcome: "retry", quota: 486, delay: 0.05 } },
      { status: 502, expected: { outcome: "retry", quota: 472, delay: 0.1 } },
      { status: 502, expected: { outcome: "max-attempts", quota: 472 } }
    ]
  },
  {
    name: "3 retry quota reached after a single retry",
    given: { tokens: 14 },
    responses: [
      { status: 500, expected: { outcome: "retry", quota: 0, delay: 0.05 } },
      { status: 500, expected: { outcome: "quota-exhausted", quota: 0 } }
    ]
  },
  {
    name: "4 no retries at all if retry quota is 0",
    given: { tokens: 0 },
    responses: [{ status: 500, expected: { outcome: "quota-exhausted", quota: 0 } }]
  },
  {
    name: "5 verifying exponential backoff timing",
    given: { maxAttempts: 5 },
    responses: [
      { status: 500, expected: { outcome: "retry", quota: 486, delay: 0.05 } },
      { status: 500, expected: { outcome: "retry", quota: 472, delay: 0.1 } },
      { status: 500, expected: { outcome: "retry", quota: 458, delay: 0.2 } },
      { status: 500, expected: { outcome: "retry", quota: 444, delay: 0.4 } },
      { status: 500, expected: { outcome: "max-attempts", quota: 444 } }
    ]
  },
  {
    name: "6 verify max backoff time",
    given: { maxAttempts: 5, maxBackoff: "200 millis" },
    responses: [
      { status: 500, expected: { outcome: "retry", quota: 486, delay: 0.05 } },
      { status: 500, expected: { outcome: "retry", quota: 472, delay: 0.1 } },
      { status: 500, expected: { outcome: "retry", quota: 458, delay: 0.2 } },
      { status: 500, expected: { outcome: "retry", quota: 444, delay: 0.2 } },
      { status: 500, expected: { outcome: "max-attempts", quota: 444 } }
    ]
  },
  {
    name: "7 retry stops after retry quota exhaustion",
    given: { maxAttempts: 5, tokens: 20 },
    responses: [
      { status: 500, expected: { outcome: "retry", quota: 6, delay: 0.05 } },
      { status: 502, expected: { outcome: "quota-exhausted", quota: 6 } }
    ]
  },
  {
    name: "8 retry quota recovery after successful responses",
    given: { maxAttempts: 5, tokens: 30 },
    responses: [
      { status: 500, expected: { outcome: "retry", quota: 16, delay: 0.05 } },
      { status: 502, expected: { outcome: "retry", quota: 2, delay: 0.1 } },
      { status: 200, expected: { outcome: "success", quota: 16 } },
      { status: 500, expected: { outcome: "retry", quota: 2, delay: 0.05 } },
      { status: 200, expected: { outcome: "success", quota: 16 } }
    ]
  },
  {
    name: "10 throttling error token bucket drain and backoff duration",
    given: {},
    responses: [
      { status: 400, code: "Throttling", expected: { outcome: "retry", quota: 495, delay: 1 } },
      { status: 200, expected: { outcome: "success", quota: 500 } }
    ]
  },
  {
    name: "11 DynamoDB base backoff and increased retries",
    given: { dynamoDB: true },
    responses: [
      { status: 500, expected: { outcome: "retry", quota: 486, delay: 0.025 } },
      { status: 500, expected: { outcome: "retry", quota: 472, delay: 0.05 } },
      { status: 500, expected: { outcome: "retry", quota: 458, delay: 0.1 } },
      { status: 500, expected: { outcome: "max-attempts", quota: 458 } }
    ]
  },
  {
    name: "12 long-polling backoff after transient error when token bucket empty",
    given: { longPolling: true, tokens: 0 },
    responses: [{ status: 500, expected: { outcome: "quota-exhausted", quota: 0, delay: 0.05 } }]
  },
  {
    // Go gives 0.05 here, computing the delay without the error; all other SDKs give 1.
    name: "13 long-polling backoff after throttling error when token bucket empty",
    given: { longPolling: true, tokens: 0 },
    responses: [{ status: 400, code: "Throttling", expected: { outcome: "quota-exhausted", quota: 0, delay: 1 } }]
  },
  {
    name: "14 long-polling max attempts exceeded must not delay",
    given: { longPolling: true, maxAttempts: 2 },
    responses: [
      { status: 500, expected: { outcome: "retry", quota: 486, delay: 0.05 } },
      { status: 500, expected: { outcome: "max-attempts", quota: 486, delay: 0 } }
    ]
  }
]

/**
 * Case 9, calls that share the quota. Published are the responses of each and the balances, whose order needs the second
 * call to begin between the retries of the first; `beginsAt` and `at` (milliseconds) are ours.
 */
export const shared2026 = {
  given: { maxAttempts: 5 },
  calls: [
    { beginsAt: 0, statuses: [500, 500, 200] },
    { beginsAt: 60, statuses: [500, 200] }
  ],
  balances: [
    { at: 0, call: 0, status: 500, quota: 486 },
    { at: 50, call: 0, status: 500, quota: 472 },
    { at: 60, call: 1, status: 500, quota: 458 },
    { at: 110, call: 1, status: 200, quota: 472 },
    { at: 150, call: 0, status: 200, quota: 486 }
  ],
  finalQuota: 486
} as const
