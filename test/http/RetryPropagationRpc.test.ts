import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import * as NodeSocketServer from "@effect/platform-node/NodeSocketServer"
import { assert, describe, it } from "@effect/vitest"
import { Backoff, RetryPolicy, withRetry } from "effect-retry"
import * as RetryPropagation from "effect-retry/RetryPropagation"
import * as RetryPropagationRpc from "effect-retry/RetryPropagationRpc"
import * as Kit from "effect-retry/testing"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Rpc from "effect/rpc/Rpc"
import * as RpcClient from "effect/rpc/RpcClient"
import * as RpcGroup from "effect/rpc/RpcGroup"
import * as RpcSerialization from "effect/rpc/RpcSerialization"
import * as RpcServer from "effect/rpc/RpcServer"
import * as Schema from "effect/Schema"
import * as SocketServer from "effect/socket/SocketServer"
import { createServer } from "node:http"

const Get = Rpc.make("Get", { payload: { id: Schema.String }, success: Schema.String, error: Schema.String })
const group = RpcGroup.make(Get).middleware(RetryPropagationRpc.Propagation)

const policy = Backoff.fixed("1 millis").pipe(RetryPolicy.maxAttempts(3), RetryPolicy.whileRetryable)

/** What the server saw of the calls. */
class Seen extends Context.Service<Seen, { sends: number; cut: number; readonly told: Array<string> }>()("Seen") {}

const seen = Layer.sync(Seen, () => ({ sends: 0, cut: 0, told: [] }))

/** The work on a call: it sends on, under a policy that leaves retrying to the caller; or it never ends. */
const handlers = group.toLayer(Seen.use((seen) =>
  Effect.succeed({
    Get: ({ id }: { readonly id: string }) => {
      if (id === "slow") return Effect.onInterrupt(Effect.never, () => Effect.sync(() => seen.cut++))
      const send = Effect.flatMap(RetryPropagation.headers, (headers) => {
        seen.sends++
        seen.told.push(`${headers["x-retry-attempt"]} of ${headers["x-retry-max-attempts"]}`)
        return Effect.fail(new Kit.Transient())
      })
      return Effect.mapError(withRetry(send, RetryPolicy.outermostOnly(policy)), () => "down")
    }
  })
))

const portOf = (address: unknown): number => (address as { readonly port: number }).port

const served = RpcServer.layer(group).pipe(Layer.provide([handlers, RetryPropagationRpc.layer()]))

const overSockets = Layer.unwrap(Effect.map(
  SocketServer.SocketServer,
  ({ address }) =>
    RpcClient.layerProtocolSocket().pipe(
      Layer.provide(NodeSocket.layerNet({ host: "127.0.0.1", port: portOf(address) }))
    )
)).pipe(
  Layer.provideMerge(served),
  Layer.provide(RpcServer.layerProtocolSocketServer),
  Layer.provide(NodeSocketServer.layer({ host: "127.0.0.1", port: 0 })),
  Layer.provide(RpcSerialization.layerNdjson)
)

const overHttp = Layer.unwrap(Effect.map(
  HttpServer.HttpServer,
  ({ address }) => RpcClient.layerProtocolHttp({ url: `http://127.0.0.1:${portOf(address)}/rpc` })
)).pipe(
  Layer.provideMerge(HttpRouter.serve(
    RpcServer.layerHttp({ group, path: "/rpc", protocol: "http" }).pipe(
      Layer.provide([handlers, RetryPropagationRpc.layer()])
    ),
    { disableLogger: true, disableListenLog: true }
  )),
  Layer.provide([NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: 0 }), FetchHttpClient.layer]),
  Layer.provide(RpcSerialization.layerNdjson)
)

const protocols: ReadonlyArray<[name: string, Layer.Layer<RpcClient.Protocol, unknown, Seen>]> = [
  ["a real socket", overSockets],
  ["real HTTP", overHttp]
]

for (const [name, protocol] of protocols) {
  describe(`RPC over ${name}`, () => {
    const environment = () => Layer.provideMerge(protocol, seen)

    it.live("only the caller retries what both it and the server would retry: 3 sends go on, not 9", () =>
      Effect.gen(function*() {
        const { told } = yield* Seen
        const client = yield* RpcClient.make(group)
        const call = client.Get({ id: "a" }).pipe(Effect.catch(() => Effect.fail(new Kit.Transient())))
        yield* Effect.exit(withRetry(RetryPropagationRpc.withPropagation(call), policy)).pipe(
          Effect.provide(RetryPropagation.layer())
        )
        assert.deepStrictEqual(told, ["1 of 3", "2 of 3", "3 of 3"])
        told.length = 0
        yield* Effect.exit(withRetry(call, policy))
        assert.lengthOf(told, 9)
      }).pipe(Effect.scoped, Effect.provide(environment())))

    it.live("work whose time runs out is cut off in the server, which says so", () =>
      Effect.gen(function*() {
        const seen = yield* Seen
        const client = yield* RpcClient.make(group)
        const slow = client.Get({ id: "slow" })
        const answered = yield* Effect.flip(RpcClient.withHeaders(slow, { "x-deadline-ms": "30" }))
        assert.deepInclude(answered, { _tag: "RpcDeadlineExceeded", afterMillis: 30 })
        assert.strictEqual(seen.cut, 1)
        const late = yield* Effect.flip(RpcClient.withHeaders(client.Get({ id: "a" }), { "x-deadline-ms": "0" }))
        assert.deepInclude(late, { _tag: "RpcDeadlineExceeded", afterMillis: 0 })
        assert.strictEqual(seen.sends, 0)
        const given = yield* Effect.flip(
          RetryPropagationRpc.withPropagation(slow).pipe(RetryPropagation.withDeadline("30 millis"))
        )
        assert.match(String(given), /DeadlineExceeded/)
      }).pipe(Effect.scoped, Effect.provide(environment())))
  })
}
