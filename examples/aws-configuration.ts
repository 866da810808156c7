/**
 * A client that retries as its operators configure: `AWS_RETRY_MODE`,
 * `AWS_MAX_ATTEMPTS`, `~/.aws/config` and `credentials`.
 *
 * `AwsRetryConfig.make` reads them as the AWS SDKs do, and returns the
 * policy and the layer of the configured mode. Code overrides the
 * environment, which overrides the profile, which overrides the
 * default. A bad value is a typed error that says where it is.
 */
import {
  ConfigProvider,
  Context,
  Effect,
  FileSystem,
  Layer
} from "effect"
import { ResourceLimiters, withRetry } from "effect-retry"
import * as AwsRetryConfig from "effect-retry/aws/AwsRetryConfig"
import { main, show } from "./support/program.ts"

/** The calls of a third-party client. */
export class Table extends Context.Service<Table, {
  readonly get: (
    key: string
  ) => Effect.Effect<string, { readonly name: string }>
}>()("examples/aws-configuration/Table") {}

export class Orders extends Context.Service<Orders>()(
  "examples/aws-configuration/Orders",
  {
    make: Effect.gen(function*() {
      const table = yield* Table
      const { layer, maxAttempts, mode, policy } = yield* AwsRetryConfig
        .make({
          service: "dynamodb",
          sendToken: "fail"
        })
      yield* Effect.logInfo(
        `retries: ${mode.value} (${mode.at}), `
          + `${maxAttempts.value} attempts (${maxAttempts.at})`
      )
      const shared = yield* Layer.build(layer)
      return {
        get: (key: string) =>
          table.get(key).pipe(
            withRetry(policy),
            Effect.provideContext(shared)
          )
      }
    })
  }
) {
  /**
   * Needs a `FileSystem` for the two files: on Node,
   * `NodeFileSystem.layer` of `@effect/platform-node`.
   */
  static readonly layer = Layer.effect(this, this.make)
}

/**
 * The configured mode, with a quota per table. The service provided
 * closest to a call wins: the quota of the table, then the rest of the
 * mode. `Tables` keeps the quotas itself, so its callers need to
 * provide nothing.
 */
export class Tables extends Context.Service<Tables>()(
  "examples/aws-configuration/Tables",
  {
    make: Effect.gen(function*() {
      const table = yield* Table
      const quotas = yield* ResourceLimiters.ResourceLimiters
      const { layer, policy } = yield* AwsRetryConfig.make({
        service: "dynamodb"
      })
      const mode = yield* Layer.build(layer)
      const shared = Context.add(
        mode,
        ResourceLimiters.ResourceLimiters,
        quotas
      )
      return {
        get: (name: string, key: string) =>
          table.get(`${name}/${key}`).pipe(
            withRetry(policy),
            Effect.provide(ResourceLimiters.quota(name)),
            Effect.provideContext(shared)
          )
      }
    })
  }
) {
  static readonly layer = Layer.effect(this, this.make).pipe(
    Layer.provide(ResourceLimiters.layer())
  )
}

const busy = {
  name: "ProvisionedThroughputExceededException",
  $metadata: { httpStatusCode: 400 }
}

/** The environment, and no files. */
const run = (environment: Record<string, string>) =>
  show(
    JSON.stringify(environment),
    [busy, busy, busy, busy],
    (send) =>
      Effect.flatMap(Orders, (orders) => orders.get("1")).pipe(
        Effect.provide(
          Orders.layer.pipe(
            Layer.provide([
              Layer.succeed(Table, { get: () => send }),
              FileSystem.layerNoop({})
            ])
          )
        ),
        Effect.provideService(
          ConfigProvider.ConfigProvider,
          ConfigProvider.fromUnknown(environment)
        )
      )
  )

main(
  import.meta.url,
  run({}),
  run({ AWS_RETRY_MODE: "legacy", AWS_MAX_ATTEMPTS: "4" }),
  run({ AWS_RETRY_MODE: "adaptive" })
)
