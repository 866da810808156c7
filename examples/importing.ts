/**
 * Numbers from elsewhere: the retry settings of Temporal, Step
 * Functions, gRPC and Envoy as policies of this library.
 */
import { Console, Effect } from "effect"
import { RetryClassifier, withRetry } from "effect-retry"
import * as RetryPolicyImport from "effect-retry/RetryPolicyImport"
import { main } from "./support/program.ts"

const serviceConfig = {
  methodConfig: [{
    name: [{ service: "orders.Orders" }],
    timeout: "10s",
    retryPolicy: {
      maxAttempts: 4,
      initialBackoff: "0.1s",
      maxBackoff: "1s",
      backoffMultiplier: 2,
      retryableStatusCodes: ["UNAVAILABLE"]
    }
  }],
  retryThrottling: { maxTokens: 10, tokenRatio: 0.1 }
}

/** A policy says when to retry, its classifier which errors. */
export const placeOrder = <A, E, R>(send: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const { methods } = yield* RetryPolicyImport.fromGrpcServiceConfig(
      serviceConfig
    )
    const { classifier, policy } = methods[0]!
    return yield* send.pipe(
      withRetry(policy),
      Effect.provide(RetryClassifier.layer(classifier))
    )
  })

/**
 * An imported policy prints as the code that makes it: use that to
 * migrate for good.
 */
export const program = Effect.gen(function*() {
  const temporal = yield* RetryPolicyImport.fromTemporal({
    initialInterval: "5s",
    maximumAttempts: 6
  })
  yield* Console.log(String(temporal.policy))

  const retriers = yield* RetryPolicyImport.fromStepFunctions([
    {
      ErrorEquals: ["States.ALL"],
      IntervalSeconds: 3,
      MaxAttempts: 2,
      BackoffRate: 1.5,
      JitterStrategy: "FULL"
    }
  ])
  for (const { policy } of retriers) yield* Console.log(String(policy))

  const route = yield* RetryPolicyImport.fromEnvoyRoute({
    route: { retry_policy: { retry_on: "5xx", num_retries: 3 } }
  })
  yield* Console.log(JSON.stringify(route.policy))

  const refused = yield* Effect.flip(
    RetryPolicyImport.fromTemporal({ backoffCoefficient: 0.5 })
  )
  yield* Console.log(refused.message)
})

main(import.meta.url, program)
