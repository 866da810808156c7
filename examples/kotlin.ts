/**
 * A retry configuration of the AWS SDK for Kotlin, carried over line by
 * line:
 *
 * ```kotlin
 * DynamoDbClient {
 *   attemptTimeout = 1.seconds
 *   retryStrategy(AdaptiveRetryStrategy) {
 *     maxAttempts = 4
 *     tokenBucket {
 *       maxCapacity = 100
 *       refillUnitsPerSecond = 10
 *       useCircuitBreakerMode = false
 *     }
 *     delayProvider {
 *       initialDelay = 25.milliseconds
 *       scaleFactor = 2.0
 *     }
 *     rateLimiter { minFillRate = 1.0 }
 *   }
 * }
 * ```
 *
 * A Kotlin strategy is a policy and a layer here. Retries that the
 * bucket cannot pay for wait for the refill.
 */
import { Effect, Layer } from "effect"
import { RetryClassifier, withRetry } from "effect-retry"
import * as Kotlin from "effect-retry/aws/legacy/Kotlin"
import { main, show, Unavailable } from "./support/program.ts"

export const strategy = Kotlin.adaptiveRetryStrategy({
  maxAttempts: 4,
  tokenBucket: {
    maxCapacity: 100,
    refillUnitsPerSecond: 10,
    useCircuitBreakerMode: false
  },
  delayProvider: {
    initialDelay: "25 millis",
    scaleFactor: 2
  },
  rateLimiter: { minFillRate: 1 }
})

export const getItem = <E>(send: Effect.Effect<string, E>) =>
  send.pipe(
    Effect.timeout("1 second"),
    withRetry(strategy.policy)
  )

/**
 * Provided once, where the program runs. The classifier is the retry
 * policy of Kotlin's AWS clients.
 */
export const layer = Layer.merge(
  strategy.layer,
  RetryClassifier.layer(Kotlin.awsRetryPolicy)
)

main(
  import.meta.url,
  show(
    "unavailable twice",
    [new Unavailable(), new Unavailable()],
    getItem
  ).pipe(Effect.provide(layer)),
  show("throttled", [{ name: "ThrottlingException" }], getItem).pipe(
    Effect.provide(layer)
  )
)
