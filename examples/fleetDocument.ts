/**
 * A fleet whose shared limits are in a document: it says that a quota,
 * a rate and a cool-down are shared through Redis, and may say
 * otherwise while the program runs. The program says which Redis.
 */
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { Effect, Layer } from "effect"
import { RetryQuota } from "effect-retry"
import * as RetryConfig from "effect-retry/RetryConfig"
import * as RetryConfigRedis from "effect-retry/RetryConfigRedis"
import { down, main, print, show } from "./support/program.ts"

/**
 * What has the key "redis" is one for all processes. A quota of 20
 * decides while Redis does not answer.
 */
export const document = {
  resources: {
    orders: {
      policy: { base: "50 millis", jitter: "none", maxAttempts: 3 },
      quota: { capacity: 500, redis: { fallback: { capacity: 20 } } },
      limiter: { redis: {} },
      coolDown: { redis: {} }
    }
  }
}

/**
 * The document of a process, here from code: `RetryConfig.layerFile`
 * follows a file.
 */
export const configLayer = (url: string) =>
  RetryConfig.layer(document).pipe(
    Layer.provide(RetryConfigRedis.layer),
    Layer.provide(NodeRedis.layer({ url }))
  )

/** A call under the entry "orders": it does not know what is shared. */
export const placeOrder = <A, E, R>(send: Effect.Effect<A, E, R>) =>
  send.pipe(RetryConfig.retry("orders"))

/**
 * For a test of the document before it is deployed: it checks the
 * options, and connects to nothing.
 */
export const checked = (json: unknown, url: string) =>
  RetryConfig.check(json).pipe(
    Effect.provide(
      RetryConfigRedis.layerConnecting(NodeRedis.layer({ url }))
    )
  )

const tokens = RetryQuota.balance.pipe(
  Effect.provide(RetryConfig.resource("orders"))
)

/**
 * Two processes, in one program to be seen: each has a connection of
 * its own.
 */
const twoProcesses = (url: string) =>
  Effect.gen(function*() {
    const one = yield* Layer.build(Layer.fresh(configLayer(url)))
    const two = yield* Layer.build(Layer.fresh(configLayer(url)))
    yield* print(
      `${yield* Effect.provideContext(tokens, one)} tokens for all`
    )
    yield* Effect.provideContext(
      show("one process", down, placeOrder),
      one
    )
    yield* print(
      `${yield* Effect.provideContext(
        tokens,
        two
      )} tokens, as the other process sees them`
    )
    const own = {
      resources: {
        orders: {
          ...document.resources.orders,
          quota: { capacity: 50 }
        }
      }
    }
    yield* Effect.provideContext(RetryConfig.set(own), two)
    yield* print(
      `${yield* Effect.provideContext(
        tokens,
        two
      )} of 50, once it has a quota of its own`
    )
  }).pipe(Effect.scoped)

const { REDIS_URL } = process.env

main(
  import.meta.url,
  REDIS_URL === undefined
    ? print(
      "Needs Redis: REDIS_URL=redis://127.0.0.1:6379 "
        + "npx tsx examples/fleetDocument.ts"
    )
    : twoProcesses(REDIS_URL)
)
