/**
 * Other and older retry systems of AWS, around any effect: the SDKs for
 * Kotlin, for Java 1.x and for JavaScript 2.x, botocore's legacy mode,
 * and Smithy's guide.
 *
 * The policy says when to retry. The layer says what, and has the
 * quota: without it the default classifier decides, which knows more
 * errors.
 */
import { Effect, Layer, Schema } from "effect"
import { RetryClassifier, RetryQuota, withRetry } from "effect-retry"
import * as BotocoreLegacy from "effect-retry/aws/legacy/BotocoreLegacy"
import * as JavaScriptV2 from "effect-retry/aws/legacy/JavaScriptV2"
import * as JavaV1 from "effect-retry/aws/legacy/JavaV1"
import * as Kotlin from "effect-retry/aws/legacy/Kotlin"
import * as SmithyGuide from "effect-retry/aws/legacy/SmithyGuide"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import { down, main, show } from "./support/program.ts"

/**
 * The configuration of a Kotlin client, carried over line by line:
 * `retryStrategy(AdaptiveRetryStrategy) { maxAttempts = 4 ... }`.
 * Retries that the bucket cannot pay for wait for the refill.
 */
export const strategy = Kotlin.adaptiveRetryStrategy({
  maxAttempts: 4,
  tokenBucket: {
    maxCapacity: 100,
    refillUnitsPerSecond: 10,
    useCircuitBreakerMode: false
  },
  delayProvider: { initialDelay: "25 millis", scaleFactor: 2 },
  rateLimiter: { minFillRate: 1 }
})

/** Its errors are judged as by the clients of AWS. */
export const kotlin = Layer.merge(
  strategy.layer,
  RetryClassifier.layer(Kotlin.awsRetryPolicy)
)

export const asKotlin = <E>(send: Effect.Effect<string, E>) =>
  send.pipe(withRetry(strategy.policy))

/** Java 1.x: `PredefinedRetryPolicies.DEFAULT`. */
export const asJava = <E>(send: Effect.Effect<string, E>) =>
  send.pipe(
    withRetry(JavaV1.defaultPolicy),
    Effect.provide(JavaV1.layer)
  )

/** `new SDKDefaultBackoffStrategy(50, 1000, 5000)`, 5 retries. */
export const patient = JavaV1.policy({
  baseDelay: "50 millis",
  throttledBaseDelay: "1 second",
  maxBackoff: "5 seconds",
  maxRetries: 5
})

/**
 * JavaScript 2.x, as `new DynamoDB()` on its own: give the client
 * `maxRetries: 0`. Its errors say in `retryable` whether it would have
 * retried.
 */
export const asJavaScript = <A>(send: () => Promise<A>) =>
  Effect.tryPromise(send).pipe(
    withRetry(JavaScriptV2.dynamoDBPolicy),
    Effect.provide(JavaScriptV2.layer)
  )

/** `customBackoff`: a negative delay stops retrying. */
export const brisk = JavaScriptV2.policy({
  maxRetries: 5,
  customBackoff: (count) => count < 2 ? 20 * (count + 1) : -1
})

const dynamodb = BotocoreLegacy.forService(
  BotocoreLegacy.document,
  "dynamodb"
)

/**
 * botocore: a body that does not match the checksum in its
 * `x-amz-crc32` header is requested again.
 */
export const asBotocore = <E>(
  send: Effect.Effect<BotocoreLegacy.CheckedResponse, E>
) =>
  send.pipe(
    Effect.tap(dynamodb.checkBody),
    withRetry(dynamodb.policy),
    Effect.provide(dynamodb.layer)
  )

/**
 * A service of your own, retried as the text of a `_retry.json` says,
 * which programs in Python can read too. An invalid file is a typed
 * error.
 */
export const order = <A, E>(
  retryJson: string,
  send: Effect.Effect<A, E>
) =>
  Effect.flatMap(BotocoreLegacy.decodeJson(retryJson), (document) => {
    const { layer, policy } = BotocoreLegacy.forService(
      document,
      "orders"
    )
    return send.pipe(withRetry(policy), Effect.provide(layer))
  })

/** The built-in document with one more service. */
export const withOrders = JSON.stringify({
  ...BotocoreLegacy.documentJson,
  retry: {
    ...BotocoreLegacy.documentJson.retry,
    orders: {
      __default__: {
        max_attempts: 3,
        delay: { base: 0.2 },
        policies: {
          out_of_stock: {
            applies_when: {
              response: {
                service_error_code: "OutOfStock",
                http_status_code: 409
              }
            }
          }
        }
      }
    }
  }
})

/**
 * Smithy: the traits of a model are annotations of its error classes,
 * `@retryable(throttling: true) @error("client") @httpError(429)`.
 */
export class TooManyRequests
  extends Schema.TaggedError<TooManyRequests>()("TooManyRequests", {
    retryAfter: Schema.optional(Schema.Duration)
  }, {
    ...SmithyGuide.retryable({ throttling: true }),
    ...SmithyGuide.error("client"),
    ...SmithyGuide.httpError(429)
  })
{}

/** The loop of Smithy's guide, with the guide's own strategy. */
export const asSmithy = <E>(send: Effect.Effect<string, E>) =>
  send.pipe(RetryStrategy.run, Effect.provide(guide))

const guide = SmithyGuide.layer().pipe(
  Layer.provideMerge(RetryQuota.layer())
)

const outOfStock = {
  name: "OutOfStock",
  $metadata: { httpStatusCode: 409 }
}
const busy = new TooManyRequests({})

main(
  import.meta.url,
  Effect.provide(show("Kotlin", down, asKotlin), kotlin),
  show("Java 1.x", down, asJava),
  show(
    "JavaScript 2.x, customBackoff",
    down,
    (send) => send.pipe(withRetry(brisk))
  ),
  show(
    "botocore, out of stock",
    [outOfStock],
    (send) => order(withOrders, send)
  ),
  show("Smithy's guide", [busy, busy], asSmithy)
)
