/**
 * Policies that change while the program runs: one document for all resources, in a file that is followed.
 *
 * What is saved takes effect within 100 milliseconds, without a deployment. A call keeps the policy that it began with. A
 * document that is bad changes nothing, and is reported once with the path of what is wrong.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { Config, Effect, Layer } from "effect"
import { attempt, awsStandard, withRetry } from "effect-retry"
import * as RetryConfig from "effect-retry/RetryConfig"
import * as RetryHttp from "effect-retry/RetryHttp"
import { FetchHttpClient } from "effect/http"

/** The file must be there and good when the program begins. */
export const ConfigLive = RetryConfig.layerFile("examples/retry.json").pipe(
  Layer.provide([NodeFileSystem.layer, NodePath.layer])
)

/** A call by the entry "orders": its policy, its quota, its gates. */
export const placeOrder = <A, E, R>(send: Effect.Effect<A, E, R>) => send.pipe(RetryConfig.retry("orders"))

/** The long form, for all that takes a policy. The layer has the quota and the gates. */
export const longForm = <A, E, R>(send: Effect.Effect<A, E, R>) =>
  Effect.retry(attempt(send), RetryConfig.live("orders")).pipe(
    Effect.provide(RetryConfig.resource("orders"))
  )

/** A client that is made once, and goes by whatever the document says at each request. */
export const HttpLive = RetryHttp.layer(RetryConfig.live("orders")).pipe(
  Layer.provide([RetryConfig.resource("orders"), FetchHttpClient.layer])
)

/** The kill switch, for what tells a process in another way than by a file. */
export const switchRetriesOff = RetryConfig.set({ retries: "off" })

/** For a health check: what is wrong with the last document, if anything. */
export const problem = Effect.map(RetryConfig.status, ({ problem }) => problem?.message)

/** Without a document: `RETRY_ORDERS_MAX_ATTEMPTS=5` in the environment. */
export const fromEnvironment = <A, E, R>(send: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const policy = yield* RetryConfig.policy("orders").pipe(Config.withDefault(awsStandard))
    return yield* send.pipe(withRetry(policy))
  })
