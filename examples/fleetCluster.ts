/**
 * A fleet whose Redis is a cluster.
 *
 * Each quota has one key, so it lives on one node, and moves with its
 * slot. Quotas that should share a node use the same hash tag:
 * `{orders}:read` and `{orders}:write`.
 */
import { Effect, Layer } from "effect"
import { awsStandard, RetryQuota, withRetry } from "effect-retry"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as Redis from "effect/persistence/Redis"
import { createCluster } from "redis"
import { down, main, print, show } from "./support/program.ts"

/**
 * A service over the cluster client of `redis`, as far as a quota needs
 * it.
 */
const cluster = Effect.fnUntraced(
  function*(urls: ReadonlyArray<string>) {
    const asked = <A>(answer: () => Promise<A>) =>
      Effect.tryPromise({
        try: answer,
        catch: (cause) => new Redis.RedisError({ cause })
      })
    const client = yield* Effect.acquireRelease(
      Effect.sync(() =>
        createCluster({ rootNodes: urls.map((url) => ({ url })) })
      ),
      (client) =>
        Effect.ignoreCause(Effect.promise(() => client.close()))
    )
    client.on("error", () => {})
    yield* asked(() => client.connect())
    const everywhere = (args: Array<string>) =>
      Promise.all(
        client.masters.map(async (node) =>
          (await client.nodeClient(node)).sendCommand(args)
        )
      )
    const unused = Effect.fail(
      new Redis.RedisError({
        cause: new Error("a quota needs no other connections")
      })
    )
    return yield* Redis.make({
      // A script is loaded on each node. The key of EVALSHA comes after
      // the script and the number of keys.
      send: <A>(command: string, ...args: ReadonlyArray<string>) =>
        asked(async () =>
          command === "SCRIPT"
            ? (await everywhere([command, ...args]))[0] as A
            : client.sendCommand<A>(args[2], false, [command, ...args])
        ),
      connect: unused,
      subscribe: () => unused
    })
  }
)

/** For anything that a fleet shares. */
export const redisLayer = (urls: ReadonlyArray<string>) =>
  Layer.effect(Redis.Redis, cluster(urls))

/** A quota on the node that has its key. */
export const layer = (
  options: RetryQuotaRedis.Options,
  urls: ReadonlyArray<string>
) => RetryQuotaRedis.layerConnecting(options, redisLayer(urls))

const { REDIS_URLS } = process.env

main(
  import.meta.url,
  REDIS_URLS === undefined
    ? print(
      "Needs a Redis cluster: "
        + "REDIS_URLS=redis://127.0.0.1:7000,redis://127.0.0.1:7001 "
        + "npx tsx examples/fleetCluster.ts"
    )
    : Effect.gen(function*() {
      yield* show(
        "a call",
        down,
        (send) => send.pipe(withRetry(awsStandard))
      )
      yield* print(
        `${yield* RetryQuota.balance} tokens are left to all`
      )
    }).pipe(
      Effect.provide(
        layer({ name: "{orders}:read" }, REDIS_URLS.split(","))
      )
    )
)
