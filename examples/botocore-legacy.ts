/**
 * The legacy mode of botocore: for a service called from both Python
 * and TypeScript, with the same retries.
 *
 * `BotocoreLegacy.document` is what botocore does; your own
 * `_retry.json`, which programs in both languages can read, describes
 * your own service. The module has its own import path.
 */
import { Effect } from "effect"
import { withRetry } from "effect-retry"
import * as BotocoreLegacy from "effect-retry/aws/legacy/BotocoreLegacy"
import { main, show } from "./support/program.ts"

const dynamodb = BotocoreLegacy.forService(
  BotocoreLegacy.document,
  "dynamodb"
)

/**
 * Ten attempts, with 50, 100, 200, ... milliseconds between them. A
 * body that does not match the checksum in its `x-amz-crc32` header is
 * requested again.
 */
export const getItem = <E>(
  send: Effect.Effect<BotocoreLegacy.CheckedResponse, E>
) =>
  send.pipe(
    Effect.tap(dynamodb.checkBody),
    withRetry(dynamodb.policy),
    Effect.provide(dynamodb.layer)
  )

/**
 * Calls to the service `orders`, retried as the text of a file says. An
 * invalid file is a typed error.
 */
export const order = <A, E, R>(
  retryJson: string,
  send: Effect.Effect<A, E, R>
) =>
  Effect.flatMap(BotocoreLegacy.decodeJson(retryJson), (document) => {
    const orders = BotocoreLegacy.forService(document, "orders")
    return send.pipe(
      withRetry(orders.policy),
      Effect.provide(orders.layer)
    )
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

const unavailable = { $metadata: { httpStatusCode: 503 } }
const answer = { headers: {}, body: new Uint8Array() }
const outOfStock = {
  name: "OutOfStock",
  $metadata: { httpStatusCode: 409 }
}

main(
  import.meta.url,
  show(
    "dynamodb",
    [unavailable, unavailable],
    (send) => Effect.as(getItem(Effect.as(send, answer)), "ok")
  ),
  show(
    "orders, out of stock",
    [outOfStock],
    (send) => order(withOrders, send)
  )
)
