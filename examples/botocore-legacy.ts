/**
 * The legacy mode of botocore: for a service that is called from Python and from TypeScript, and should be retried alike.
 *
 * `BotocoreLegacy.document` is what botocore does; a `_retry.json` of one's own, which programs of both languages can
 * read, says what a service of one's own does. The module has a path of its own.
 */
import { Effect } from "effect"
import { withRetry } from "effect-retry"
import * as BotocoreLegacy from "effect-retry/aws/legacy/BotocoreLegacy"

const dynamodb = BotocoreLegacy.forService(BotocoreLegacy.document, "dynamodb")

/**
 * Ten attempts, with 50, 100, 200, ... milliseconds between them. A body that does not match the checksum in its
 * `x-amz-crc32` header is asked for again.
 */
export const getItem = <E>(send: Effect.Effect<BotocoreLegacy.CheckedResponse, E>) =>
  send.pipe(
    Effect.tap(dynamodb.checkBody),
    withRetry(dynamodb.policy),
    Effect.provide(dynamodb.layer)
  )

/** Calls to the service `orders`, retried as the text of a file says. A file that says nonsense is a typed error. */
export const order = <A, E, R>(retryJson: string, send: Effect.Effect<A, E, R>) =>
  Effect.flatMap(BotocoreLegacy.decodeJson(retryJson), (document) => {
    const orders = BotocoreLegacy.forService(document, "orders")
    return send.pipe(withRetry(orders.policy), Effect.provide(orders.layer))
  })

/** The built-in document and one service more. */
export const withOrders = JSON.stringify({
  ...BotocoreLegacy.documentJson,
  retry: {
    ...BotocoreLegacy.documentJson.retry,
    orders: {
      __default__: {
        max_attempts: 3,
        delay: { base: 0.2 },
        policies: {
          out_of_stock: { applies_when: { response: { service_error_code: "OutOfStock", http_status_code: 409 } } }
        }
      }
    }
  }
})
