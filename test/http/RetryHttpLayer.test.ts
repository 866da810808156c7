import { assert, describe, it } from "@effect/vitest"
import { awsStandard2026, ResourceLimiters, RetryObserver, RetryPolicy, RetryQuota, type SendGate } from "effect-retry"
import * as ClientThrottle from "effect-retry/ClientThrottle"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as Kit from "effect-retry/testing"
import * as TokenLimiter from "effect-retry/TokenLimiter"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import type * as HttpClientError from "effect/http/HttpClientError"
import type * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Rpc from "effect/rpc/Rpc"
import * as RpcClient from "effect/rpc/RpcClient"
import * as RpcGroup from "effect/rpc/RpcGroup"
import * as RpcSerialization from "effect/rpc/RpcSerialization"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Http from "../../examples/http.ts"

/** A client whose server answers with each status in turn, the last one forever. */
const clientOf = (statuses: ReadonlyArray<number>, body = `"tea"`) => {
  const requests: Array<HttpClientRequest.HttpClientRequest> = []
  const client = HttpClient.make((request) =>
    Effect.sync(() => {
      const status = statuses[Math.min(requests.push(request), statuses.length) - 1]!
      const headers = { "content-type": "application/json" }
      return HttpClientResponse.fromWeb(request, new Response(body, { status, headers }))
    })
  )
  return { requests, client, layer: Layer.succeed(HttpClient.HttpClient, client) }
}

const get = Effect.flatMap(HttpClient.HttpClient, (client) => client.get("http://a/"))

describe("RetryHttp.layer without arguments", () => {
  /** A client whose server answers as the function says. */
  const live = (answer: (request: HttpClientRequest.HttpClientRequest) => Effect.Effect<Response>) =>
    RetryHttp.layer().pipe(Layer.provide(Layer.succeed(
      HttpClient.HttpClient,
      HttpClient.make((request) =>
        Effect.map(answer(request), (response) => HttpClientResponse.fromWeb(request, response))
      )
    )))

  it.effect("makes ten attempts, with a quota of 100 retries for each host", () =>
    Effect.gen(function*() {
      const sends: Record<string, number> = {}
      const layer = live(({ url }) =>
        Effect.sync(() => {
          sends[url] = (sends[url] ?? 0) + 1
          return new Response("", { status: 503 })
        })
      )
      const calls = Effect.gen(function*() {
        const client = yield* HttpClient.HttpClient
        for (let call = 0; call < 30; call++) yield* client.get("http://dead/")
        return yield* client.get("http://alive/")
      })
      const half = Kit.fixedRandom(0.5)
      assert.strictEqual((yield* Kit.runToEnd(Effect.provide(calls, [layer, half]))).status, 503)
      assert.deepStrictEqual(sends, { "http://dead/": 130, "http://alive/": 10 })
    }))

  it.effect("has all calls of a host wait as long as it asks, within ten seconds", () =>
    Effect.gen(function*() {
      const times: Array<number> = []
      const layer = live(() =>
        Effect.map(Clock.currentTimeMillis, (nowMillis) =>
          times.push(nowMillis) === 1
            ? new Response("", { status: 503, headers: { "retry-after": "5" } })
            : new Response("ok"))
      )
      const calls = Effect.all([get, Effect.delay(get, 1000)], { concurrency: 2 })
      const responses = yield* Kit.runToEnd(Effect.provide(calls, layer))
      assert.deepStrictEqual(responses.map(({ status }) => status), [200, 200])
      const [first, ...later] = times
      assert.isAtLeast(Math.min(...later) - first!, 5000)
    }))

  it.effect("ends an attempt after 10 seconds if another can follow, and after 30 in all", () =>
    Effect.gen(function*() {
      for (const [method, times] of [["GET", [0, 10_000, 20_000]], ["POST", [0]]] as const) {
        const begun: Array<number> = []
        const layer = live(() =>
          Effect.andThen(Effect.map(Clock.currentTimeMillis, (now) => begun.push(now)), Effect.never)
        )
        const call = Effect.flatMap(
          HttpClient.HttpClient,
          (client) => method === "GET" ? client.get("http://a/") : client.post("http://a/")
        )
        const since = yield* Clock.currentTimeMillis
        yield* Effect.flip(Kit.runToEnd(Effect.provide(call, [layer, Kit.fixedRandom(0)])))
        assert.deepStrictEqual(begun.map((millis) => millis - since), [...times], method)
        assert.closeTo((yield* Clock.currentTimeMillis) - since, 30_000, 5)
      }
    }))
})

describe("RetryHttp.layer", () => {
  it.effect("retries for code that uses a plain client, from the quota of the layer, whatever the call has", () =>
    Effect.gen(function*() {
      const { layer, requests } = clientOf([503])
      const own = yield* RetryQuota.make({ capacity: 500 })
      const other = yield* RetryQuota.make({ capacity: 500 })
      const live = RetryHttp.layer(awsStandard2026).pipe(
        Layer.provide([layer, Layer.succeed(RetryQuota.RetryQuota, own)])
      )
      const response = yield* Kit.runToEnd(
        Effect.provide(get, live).pipe(Effect.provideService(RetryQuota.RetryQuota, other))
      )
      assert.strictEqual(response.status, 503)
      assert.strictEqual(requests.length, 3)
      assert.strictEqual(yield* own.balance, 500 - 2 * 14)
      assert.strictEqual(yield* other.balance, 500)
    }))

  it.effect("honors the gates that it is given, and those around the call", () =>
    Effect.gen(function*() {
      for (const isGiven of [true, false]) {
        let [now, most] = [0, 0]
        const client = HttpClient.make((request) =>
          Effect.gen(function*() {
            most = Math.max(most, ++now)
            yield* Effect.sleep("10 millis")
            now--
            return HttpClientResponse.fromWeb(request, new Response("ok"))
          })
        )
        const limit = ConcurrencyLimiter.layer({ rule: ConcurrencyLimiter.fixed(1), maxWait: "1 minute" })
        const given = Layer.merge(Layer.succeed(HttpClient.HttpClient, client), RetryQuota.layer())
        const live = RetryHttp.layer(awsStandard2026).pipe(
          Layer.provide(isGiven ? Layer.merge(given, limit) : given)
        )
        const calls = Effect.all([get, get, get], { concurrency: "unbounded" }).pipe(Effect.provide(live))
        yield* Kit.runToEnd(isGiven ? calls : Effect.provide(calls, limit))
        assert.strictEqual(most, 1, isGiven ? "given to the layer" : "around the call")
      }
    }))

  it.effect("uses the quota and the gates of a resource that the call names", () =>
    Effect.gen(function*() {
      const { layer, requests } = clientOf([503])
      const own = yield* RetryQuota.make()
      const live = RetryHttp.layer(awsStandard2026).pipe(
        Layer.provide([layer, Layer.succeed(RetryQuota.RetryQuota, own)])
      )
      const balance = Effect.provide(RetryQuota.balance, ResourceLimiters.quota("a"))
      yield* Effect.gen(function*() {
        for (let call = 0; call < 20; call++) {
          yield* Kit.runToEnd(Effect.provide(get, [live, ResourceLimiters.quota("a")]))
        }
        assert.strictEqual(yield* balance, 0)
      }).pipe(Effect.provide(ResourceLimiters.layer({ quota: { capacity: 28 } })))
      assert.deepStrictEqual([requests.length, yield* own.balance], [22, 500])
    }))

  const perHost = { resource: RetryHttp.hostOf }
  const resources = ResourceLimiters.layer({ quota: { capacity: 28 } })
  type Get = (url: string) => Effect.Effect<unknown, unknown, ResourceLimiters.ResourceLimiters>
  const forms: Readonly<Record<string, (base: Layer.Layer<HttpClient.HttpClient>) => Effect.Effect<Get, never, any>>> =
    {
      layer: (base) =>
        Effect.map(
          Effect.provide(HttpClient.HttpClient, RetryHttp.layer(awsStandard2026, perHost).pipe(Layer.provide(base))),
          (client): Get => (url) => client.get(url)
        ),
      retry: (base) =>
        Effect.map(
          Effect.provide(HttpClient.HttpClient, base),
          (client): Get => (url) => RetryHttp.retry(client, awsStandard2026, perHost).get(url)
        )
    }
  for (const [form, getFrom] of Object.entries(forms)) {
    it.effect(`gives each host a quota of its own with one option: ${form}`, () =>
      Effect.gen(function*() {
        const { layer, requests } = clientOf([503])
        const stops: Array<unknown> = []
        const observer: RetryObserver.RetryObserver = {
          onStop: ({ reason }, _, context) =>
            void stops.push([Context.get(context, RetryObserver.CurrentResource), reason])
        }
        const get = yield* getFrom(layer)
        for (const url of ["http://a:8080/1", "http://a:8080/2", "http://a:8080/3", "http://b/1"]) {
          yield* Kit.runToEnd(Effect.provideService(get(url), RetryObserver.CurrentObserver, observer))
        }
        assert.deepStrictEqual(stops, [
          ["a:8080", "max-attempts"],
          ["a:8080", "quota-exhausted"],
          ["a:8080", "quota-exhausted"],
          ["b", "max-attempts"]
        ])
        assert.strictEqual(requests.length, 3 + 1 + 1 + 3)
      }).pipe(Effect.provide(resources)))
  }

  const gateOf = (entered: () => void): any => ({
    gate: { order: 1, enter: (send: SendGate.Send) => (entered(), send.hold({ settle: () => {}, cancel: () => {} })) }
  })
  const gates: ReadonlyArray<
    readonly [tag: Context.Key<any, any>, options: ResourceLimiters.Options, isReplaced: boolean]
  > = [
    [ConcurrencyLimiter.ConcurrencyLimiter, { concurrency: {} }, true],
    [ClientThrottle.ClientThrottle, { throttle: {} }, true],
    [CoolDown.CoolDown, { coolDown: {} }, true],
    [TokenLimiter.TokenLimiter, {}, false]
  ]
  for (const [tag, options, isReplaced] of gates) {
    it.effect(`with a resource, ${tag.key} around the call is ${isReplaced ? "not asked" : "asked too"}`, () =>
      Effect.gen(function*() {
        let entered = 0
        for (const given of [{}, options]) {
          const live = RetryHttp.layer(awsStandard2026, perHost).pipe(
            Layer.provide([clientOf([200]).layer, ResourceLimiters.layer(given)])
          )
          yield* Effect.provide(Effect.provideService(get, tag, gateOf(() => void entered++)), live)
        }
        assert.strictEqual(entered, isReplaced ? 0 : 2)
      }))
  }

  it.effect("uses the observer and the marks of the call", () =>
    Effect.gen(function*() {
      const { layer, requests } = clientOf([503, 200])
      const live = RetryHttp.layer(awsStandard2026).pipe(Layer.provide([layer, RetryQuota.layer()]))
      let retries = 0
      const post = Effect.flatMap(HttpClient.HttpClient, (client) => client.post("http://a/"))
      yield* Kit.runToEnd(
        Effect.andThen(post, post.pipe(RetryHttp.repeatable)).pipe(
          Effect.provideService(RetryObserver.CurrentObserver, { onRetry: () => Effect.sync(() => void retries++) }),
          Effect.provide(live)
        )
      )
      assert.strictEqual(requests.length, 2)
      assert.strictEqual(retries, 0)
      requests.length = 0
      yield* Kit.runToEnd(
        post.pipe(
          RetryHttp.repeatable,
          Effect.provideService(RetryObserver.CurrentObserver, { onRetry: () => Effect.sync(() => void retries++) }),
          Effect.provide(live)
        )
      )
      assert.strictEqual(requests.length, 2)
      assert.strictEqual(retries, 1)
    }))

  it.effect("provides what a user's schedule needs", () =>
    Effect.gen(function*() {
      class Pause extends Context.Service<Pause, { readonly times: number }>()("test/Pause") {}
      const { layer, requests } = clientOf([503])
      const schedule = Schedule.forever.pipe(
        Schedule.modifyDelay(() => Effect.map(Pause, ({ times }) => times * 1000)),
        RetryPolicy.fromSchedule,
        RetryPolicy.maxAttempts(3)
      )
      const live = RetryHttp.layer(schedule).pipe(Layer.provide([layer, Layer.succeed(Pause, { times: 2 })]))
      yield* Kit.runToEnd(Effect.provide(get, live))
      assert.strictEqual(requests.length, 3)
    }))
})

describe("RetryHttp.transform", () => {
  it.effect("fits the client of an HTTP API", () =>
    Effect.gen(function*() {
      const { layer, requests } = clientOf([503, 503, 200])
      const client = yield* Http.ordersClient.pipe(Effect.provide([layer, RetryQuota.layer()]))
      assert.strictEqual(yield* Kit.runToEnd(client.orders.get({ params: { id: "7" } })), "tea")
      assert.strictEqual(requests.length, 3)
    }))

  it.effect("fits the protocol of an RPC client, whose calls are POSTs", () =>
    Effect.gen(function*() {
      const { layer, requests } = clientOf([503])
      class Shop extends RpcGroup.make(Rpc.make("Stock", { success: Schema.Number })) {}
      const protocol = Http.rpcProtocol.pipe(
        Layer.provide([layer, RetryQuota.layer(), RpcSerialization.layerJson])
      )
      const sends = (mark: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>) =>
        Effect.gen(function*() {
          requests.length = 0
          const client = yield* RpcClient.make(Shop)
          yield* Effect.exit(Kit.runToEnd(mark(client.Stock())))
          return requests.length
        }).pipe(Effect.provide(protocol), Effect.scoped)
      assert.strictEqual(yield* sends((self) => self), 1)
      assert.strictEqual(yield* sends(RetryHttp.repeatable), 3)
    }))

  it("refuses options as retry does", () => {
    assert.throws(() => RetryHttp.transform(awsStandard2026, { hintSpread: 2 }), /hintSpread/)
    assert.throws(() => RetryHttp.layer(awsStandard2026, { attemptTimeout: 0 }), /attemptTimeout/)
  })

  it("takes and returns a plain client", () => {
    const plain: Effect.Effect<
      (client: HttpClient.HttpClient) => HttpClient.HttpClient.With<HttpClientError.HttpClientError>,
      never,
      RetryQuota.RetryQuota
    > = RetryHttp.transform(awsStandard2026)
    assert.isTrue(Effect.isEffect(plain))
  })
})
