import type { AwsModes } from "effect-retry"
import type { StandardVector } from "../utils/vectors.ts"

// Retry behaviour 2.0, standard mode, every random value 1; delays in seconds.
// Source: smithy-kotlin StandardRetryIntegrationTestResources.kt @6373a5f747 (1 to 6), aws-sdk-java-v2
// StandardRetryStrategyTest.java retriesV20Tests (7 to 11). Long polling (9 to 11) means nothing to this behaviour.
export const standardClassic: ReadonlyArray<StandardVector<AwsModes.Options>> = [
  {
    name: "1 retry eventually succeeds",
    given: { maxAttempts: 3, maxBackoff: "20 seconds", tokens: 500 },
    responses: [
      { status: 500, expected: { outcome: "retry", quota: 495, delay: 1 } },
      { status: 500, expected: { outcome: "retry", quota: 490, delay: 2 } },
      { status: 200, expected: { outcome: "success", quota: 495 } }
    ]
  },
  {
    name: "2 fail due to max attempts reached",
    given: { maxAttempts: 3, maxBackoff: "20 seconds", tokens: 500 },
    responses: [
      { status: 502, expected: { outcome: "retry", quota: 495, delay: 1 } },
      { status: 502, expected: { outcome: "retry", quota: 490, delay: 2 } },
      { status: 502, expected: { outcome: "max-attempts", quota: 490 } }
    ]
  },
  {
    name: "3 retry quota reached after a single retry",
    given: { maxAttempts: 3, maxBackoff: "20 seconds", tokens: 5 },
    responses: [
      { status: 500, expected: { outcome: "retry", quota: 0, delay: 1 } },
      { status: 502, expected: { outcome: "quota-exhausted", quota: 0 } }
    ]
  },
  {
    name: "4 no retries at all if retry quota is 0",
    given: { maxAttempts: 3, maxBackoff: "20 seconds", tokens: 0 },
    responses: [{ status: 500, expected: { outcome: "quota-exhausted", quota: 0 } }]
  },
  {
    name: "5 verifying exponential backoff timing",
    given: { maxAttempts: 5, maxBackoff: "20 seconds", tokens: 500 },
    responses: [
      { status: 500, expected: { outcome: "retry", quota: 495, delay: 1 } },
      { status: 500, expected: { outcome: "retry", quota: 490, delay: 2 } },
      { status: 500, expected: { outcome: "retry", quota: 485, delay: 4 } },
      { status: 500, expected: { outcome: "retry", quota: 480, delay: 8 } },
      { status: 500, expected: { outcome: "max-attempts", quota: 480 } }
    ]
  },
  {
    name: "6 verify max backoff time",
    given: { maxAttempts: 5, maxBackoff: "3 seconds", tokens: 500 },
    responses: [
      { status: 500, expected: { outcome: "retry", quota: 495, delay: 1 } },
      { status: 500, expected: { outcome: "retry", quota: 490, delay: 2 } },
      { status: 500, expected: { outcome: "retry", quota: 485, delay: 3 } },
      { status: 500, expected: { outcome: "retry", quota: 480, delay: 3 } },
      { status: 500, expected: { outcome: "max-attempts", quota: 480 } }
    ]
  },
  {
    name: "7 retry stops after retry quota exhaustion",
    given: { maxAttempts: 5, maxBackoff: "20 seconds", tokens: 10 },
    responses: [
      { status: 500, expected: { outcome: "retry", quota: 5, delay: 1 } },
      { status: 502, expected: { outcome: "retry", quota: 0, delay: 2 } },
      { status: 503, expected: { outcome: "quota-exhausted", quota: 0 } }
    ]
  },
  {
    name: "8 retry quota recovery after successful responses",
    given: { maxAttempts: 5, maxBackoff: "20 seconds", tokens: 15 },
    responses: [
      { status: 500, expected: { outcome: "retry", quota: 10, delay: 1 } },
      { status: 502, expected: { outcome: "retry", quota: 5, delay: 2 } },
      { status: 200, expected: { outcome: "success", quota: 10 } },
      { status: 500, expected: { outcome: "retry", quota: 5, delay: 1 } },
      { status: 200, expected: { outcome: "success", quota: 10 } }
    ]
  },
  {
    name: "9 long polling, transient error, empty bucket: no delay",
    given: { maxAttempts: 3, maxBackoff: "20 seconds", tokens: 0 },
    responses: [{ status: 500, expected: { outcome: "quota-exhausted", quota: 0, delay: 0 } }]
  },
  {
    name: "10 long polling, throttling error, empty bucket: no delay",
    given: { maxAttempts: 3, maxBackoff: "20 seconds", tokens: 0 },
    responses: [{ status: 400, code: "Throttling", expected: { outcome: "quota-exhausted", quota: 0, delay: 0 } }]
  },
  {
    name: "11 long polling, max attempts exceeded: no delay",
    given: { maxAttempts: 2, maxBackoff: "20 seconds", tokens: 500 },
    responses: [
      { status: 500, expected: { outcome: "retry", quota: 495, delay: 1 } },
      { status: 500, expected: { outcome: "max-attempts", quota: 495, delay: 0 } }
    ]
  }
]
