/**
 * Policies that change while the program runs: one document for all
 * resources, in a watched file.
 *
 * A saved change takes effect within 100 milliseconds, without a
 * deployment. A call keeps the policy it began with. An invalid
 * document changes nothing, and is reported once with the path of the
 * problem.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { Config, Effect, Layer } from "effect"
import { awsStandard, withRetry } from "effect-retry"
import * as RetryConfig from "effect-retry/RetryConfig"
import * as RetryHttp from "effect-retry/RetryHttp"
import { FetchHttpClient } from "effect/http"
import { fileURLToPath } from "node:url"
import { down, main, show } from "./support/program.ts"

/**
 * The document next to this file. It must exist and be valid when the
 * program starts.
 */
export const ConfigLive = RetryConfig.layerFile(
  fileURLToPath(new URL("retry.json", import.meta.url))
).pipe(
  Layer.provide([NodeFileSystem.layer, NodePath.layer])
)

/**
 * A call under the entry "orders": its policy, its quota, its gates.
 */
export const placeOrder = <A, E, R>(send: Effect.Effect<A, E, R>) =>
  send.pipe(RetryConfig.retry("orders"))

/**
 * Whatever the document says: four sends of a call, five a second, and
 * no retry of what may have been processed.
 */
export const BelowCeiling = ConfigLive.pipe(
  Layer.provide(
    RetryConfig.atMost({
      attempts: 4,
      sendsPerSecond: 5,
      unsafe: false
    })
  )
)

/**
 * A read, which can be sent twice: the document says after how long,
 * for what share of the calls, or not at all.
 */
export const readOrder = <A, E, R>(send: Effect.Effect<A, E, R>) =>
  send.pipe(RetryConfig.hedged("orders"), RetryConfig.retry("orders"))

/**
 * The long form, for anything that takes a policy. The layer has the
 * quota and the gates.
 */
export const longForm = <A, E, R>(send: Effect.Effect<A, E, R>) =>
  Effect.retry(send, RetryConfig.live("orders")).pipe(
    Effect.provide(RetryConfig.resource("orders"))
  )

/**
 * A client made once, which follows the current document at each
 * request.
 */
export const HttpLive = RetryHttp.layer(RetryConfig.live("orders"))
  .pipe(
    Layer.provide([
      RetryConfig.resource("orders"),
      FetchHttpClient.layer
    ])
  )

/** The kill switch, for control by something other than a file. */
export const switchRetriesOff = RetryConfig.set({ retries: "off" })

/**
 * For a health check: what is wrong with the last document, if
 * anything.
 */
export const problem = Effect.map(
  RetryConfig.status,
  ({ problem }) => problem?.message
)

/**
 * Without a document: `RETRY_ORDERS_MAX_ATTEMPTS=5` in the environment.
 */
export const fromEnvironment = <A, E, R>(
  send: Effect.Effect<A, E, R>
) =>
  Effect.gen(function*() {
    const policy = yield* RetryConfig.policy("orders").pipe(
      Config.withDefault(awsStandard)
    )
    return yield* send.pipe(withRetry(policy))
  })

main(
  import.meta.url,
  Effect.gen(function*() {
    yield* show("by the file", down, placeOrder)
    yield* switchRetriesOff
    yield* show("retries switched off", down, placeOrder)
  }).pipe(Effect.provide(ConfigLive))
)
