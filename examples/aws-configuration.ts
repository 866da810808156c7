/**
 * A client that retries as its operators say: `AWS_RETRY_MODE`, `AWS_MAX_ATTEMPTS`, `~/.aws/config` and `credentials`.
 *
 * `AwsRetryConfig.make` reads them as the AWS SDKs do, and gives the policy and the layer of the configured mode. Code
 * wins over the environment, the environment over the profile, the profile over the default. A bad value is a typed
 * error that says where it stands.
 */
import { Context, Effect, Layer } from "effect"
import { ResourceLimiters, withRetry } from "effect-retry"
import * as AwsRetryConfig from "effect-retry/aws/AwsRetryConfig"

/** The calls of a client of someone else's making. */
export class Table extends Context.Service<Table, {
  readonly get: (key: string) => Effect.Effect<string, { readonly name: string }>
}>()("examples/aws-configuration/Table") {}

export class Orders extends Context.Service<Orders>()("examples/aws-configuration/Orders", {
  make: Effect.gen(function*() {
    const table = yield* Table
    const { layer, maxAttempts, mode, policy } = yield* AwsRetryConfig.make({ service: "dynamodb", sendToken: "fail" })
    yield* Effect.logInfo(`retries: ${mode.value} (${mode.at}), ${maxAttempts.value} attempts (${maxAttempts.at})`)
    const shared = yield* Layer.build(layer)
    return { get: (key: string) => table.get(key).pipe(withRetry(policy), Effect.provideContext(shared)) }
  })
}) {
  /** Needs a `FileSystem` for the two files: on Node, `NodeFileSystem.layer` of `@effect/platform-node`. */
  static readonly layer = Layer.effect(this, this.make)
}

/**
 * The configured mode, and a quota for each table. What is provided nearest to a call counts: the quota of the table, then
 * the rest of the mode. `Tables` keeps the quotas itself, so its callers need to provide nothing.
 */
export class Tables extends Context.Service<Tables>()("examples/aws-configuration/Tables", {
  make: Effect.gen(function*() {
    const table = yield* Table
    const quotas = yield* ResourceLimiters.ResourceLimiters
    const { layer, policy } = yield* AwsRetryConfig.make({ service: "dynamodb" })
    const mode = yield* Layer.build(layer)
    const shared = Context.add(mode, ResourceLimiters.ResourceLimiters, quotas)
    return {
      get: (name: string, key: string) =>
        table.get(`${name}/${key}`).pipe(
          withRetry(policy),
          Effect.provide(ResourceLimiters.quota(name)),
          Effect.provideContext(shared)
        )
    }
  })
}) {
  static readonly layer = Layer.effect(this, this.make).pipe(Layer.provide(ResourceLimiters.layer()))
}
