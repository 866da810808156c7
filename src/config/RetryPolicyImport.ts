/**
 * Policies of other systems: Temporal, Step Functions, gRPC service configs, Envoy routes.
 *
 * Each import gives a policy like any other: it prints as the code that makes it, and has JSON (`RetryPolicyJson`).
 * Here a classifier, not the policy, decides which errors are retried, so each import gives that too: provide it with
 * `RetryClassifier.layer`. Settings that cannot be expressed are rejected, with their path in the document: nothing is
 * dropped silently.
 *
 * The package's index does not export this module: import `effect-retry/RetryPolicyImport`. So only apps that use it
 * bundle it.
 *
 * @since 0.1.0
 */

import { envoyRoute, type Route } from "./internal/envoyPolicy.ts"
import { type Method, type ServiceConfig, serviceConfig, type Throttling } from "./internal/grpcServiceConfig.ts"
import { importing } from "./internal/importedDocument.ts"
import { type Retrier, stepFunctions } from "./internal/stepFunctionsPolicy.ts"
import { type Imported, temporal } from "./internal/temporalPolicy.ts"

export type { Imported, Method, Retrier, Route, ServiceConfig, Throttling }

/**
 * Imports a `RetryPolicy` of Temporal.
 *
 * **Details**
 *
 * Waits `initialInterval * backoffCoefficient^(n - 1)` before retry `n`, at most `maximumInterval`. Defaults are 1
 * second, 2, and 100 times the initial interval. `maximumAttempts` counts sends; 0, the default, is no limit. Durations
 * are milliseconds or strings such as `"1.5s"`, `"100ms"`, `"2 minutes"`. `nonRetryableErrorTypes` are compared with
 * `_tag`, `name`, `type` and `code` of an error. Final too are a failure that is `nonRetryable`, a cancellation, a
 * termination and a schedule timeout. Fails with `InvalidOption`, whose `field` is the path of the problem.
 *
 * **Gotchas**
 *
 * A schedule-to-close timeout is not in the document: add `RetryPolicy.deadline`. A `nextRetryDelay` of a failure is
 * not followed.
 *
 * **Source**: temporalio/temporal, `service/history/workflow/retry.go`.
 *
 * **Example** (The policy of an activity)
 *
 * ```ts
 * const imported = RetryPolicyImport.fromTemporal({ initialInterval: "5s", maximumInterval: "1m", maximumAttempts: 5 })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromTemporal = /* @__PURE__ */ importing("RetryPolicyImport.fromTemporal", temporal)

/**
 * Imports the retriers of a Step Functions state: its `Retry` field, or a state that has one.
 *
 * **Details**
 *
 * Waits `IntervalSeconds * BackoffRate^(n - 1)` before retry `n`, at most `MaxDelaySeconds`, with full jitter if
 * `JitterStrategy` is `"FULL"`. `MaxAttempts` counts retries. Defaults are 1 second, 2, no bound, `"NONE"` and 3. Names
 * in `ErrorEquals` are compared with `_tag`, `name`, `type` and `code` of an error; `States.ALL`, `States.Timeout` and
 * `States.TaskFailed` have the meaning defined by the language. Fails with `InvalidOption`, whose `field` is the path
 * of the problem.
 *
 * **Gotchas**
 *
 * Retriers count separately, so each is its own policy; a retrier retries only what those before it leave.
 *
 * **Source**: Amazon States Language, and the Step Functions developer guide.
 *
 * **Example** (A state that is retried)
 *
 * ```ts
 * const retriers = RetryPolicyImport.fromStepFunctions([
 *   { ErrorEquals: ["States.ALL"], IntervalSeconds: 3, MaxAttempts: 2, BackoffRate: 1.5 }
 * ])
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromStepFunctions = /* @__PURE__ */ importing("RetryPolicyImport.fromStepFunctions", stepFunctions)

/**
 * Imports the retry policies of a gRPC service config, one for each `methodConfig` that has one.
 *
 * **Details**
 *
 * Waits `min(initialBackoff * backoffMultiplier^(n - 1), maxBackoff) * random(0.8, 1.2)` before retry `n`, or as long
 * as a pushback says. `maxAttempts` counts sends, at least 2; more than 5 count as 5. `timeout` is the deadline of the
 * call. Fails with `InvalidOption`, whose `field` is the path of the problem, also for a `hedgingPolicy` and a
 * multiplier below 1.
 *
 * **Source**: gRPC proposal A6, "gRPC Retry Design".
 *
 * **Example** (The policy of a service)
 *
 * ```ts
 * const config = RetryPolicyImport.fromGrpcServiceConfig({
 *   methodConfig: [{
 *     name: [{ service: "orders.Orders" }],
 *     retryPolicy: {
 *       maxAttempts: 4,
 *       initialBackoff: "0.1s",
 *       maxBackoff: "1s",
 *       backoffMultiplier: 2,
 *       retryableStatusCodes: ["UNAVAILABLE"]
 *     }
 *   }]
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromGrpcServiceConfig = /* @__PURE__ */ importing("RetryPolicyImport.fromGrpcServiceConfig", serviceConfig)

/**
 * Imports an Envoy route: an object with a `route` that has a `retry_policy`, in its own spelling or in camel case.
 *
 * **Details**
 *
 * Waits `min(base_interval * 2^(n - 1), max_interval) * random` before retry `n`: 25 ms and ten times that by default.
 * `num_retries` counts retries, 1 by default. The `timeout` of the route, 15 seconds by default, is the deadline. Fails
 * with `InvalidOption`, whose `field` is the path of the problem, also for settings that need hosts or headers, which a
 * client does not have.
 *
 * **Source**: envoyproxy/envoy, `RetryPolicy` of `config.route.v3` and `retry_state_impl.cc`.
 *
 * **Example** (A route that is retried)
 *
 * ```ts
 * const route = RetryPolicyImport.fromEnvoyRoute({ route: { retry_policy: { retry_on: "5xx", num_retries: 3 } } })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromEnvoyRoute = /* @__PURE__ */ importing("RetryPolicyImport.fromEnvoyRoute", envoyRoute)
