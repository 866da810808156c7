/** For each driver and each service: whether it comes from the policy, from where the driver is made, or from the call. */
import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  awsStandard2026,
  Backoff,
  Hedge,
  RetryClassifier,
  RetryObserver,
  RetryPolicy,
  RetryPromise,
  RetryQuota,
  SendGate,
  withRetry,
  withRetryOrElse
} from "effect-retry"
import * as AwsSdk from "effect-retry/AwsSdk"
import * as CircuitBreakerGate from "effect-retry/CircuitBreakerGate"
import * as ClientThrottle from "effect-retry/ClientThrottle"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import * as RetryConfig from "effect-retry/RetryConfig"
import * as RetryDriver from "effect-retry/RetryDriver"
import * as RetryGrpc from "effect-retry/RetryGrpc"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as RetryLanguageModel from "effect-retry/RetryLanguageModel"
import type { RetryQuotaStore } from "effect-retry/RetryQuotaStore"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as RetryStream from "effect-retry/RetryStream"
import * as RetryWorkflow from "effect-retry/RetryWorkflow"
import * as TokenLimiter from "effect-retry/TokenLimiter"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Activity from "effect/workflow/Activity"
import * as Workflow from "effect/workflow/Workflow"
import * as fs from "node:fs"
import { busy, dynamo, getItem, ok, played } from "../utils/awsSdk.ts"
import { Transient } from "../utils/call.ts"
import { driven } from "../utils/driven.ts"
import { database, engine, newProcess } from "../workflow/cluster.ts"

type Any = Context.Context<any>
type Call = Effect.Effect<unknown, unknown, any>
type Policy = typeof awsStandard2026

/** A call that fails once, in a driver that is made in another context than that of the call. */
type Drive = (policy: Policy, made: Any) => Call

/** An effect that fails once. */
const failing = <E>(error: E) => {
  let sends = 0
  return Effect.suspend(() => ++sends > 1 ? Effect.succeed("ok") : Effect.fail(error))
}

const sending = () => failing(new Transient())

const promising = () => {
  const send = sending()
  return () => Effect.runPromise(send)
}

const client = () => {
  const send = failing(503)
  return HttpClient.make((request) =>
    Effect.match(send, {
      onFailure: (status) => HttpClientResponse.fromWeb(request, new Response(null, { status })),
      onSuccess: () => HttpClientResponse.fromWeb(request, new Response())
    })
  )
}

const request = HttpClientRequest.get("http://a/")

const unary = () => {
  let sends = 0
  const unavailable = Object.assign(new Error(), { code: 14, details: "", metadata: undefined })
  return RetryGrpc.unary<string>((_, callback) => {
    queueMicrotask(() => ++sends > 1 ? callback(null, "ok") : callback(unavailable))
    return { cancel: () => undefined }
  })
}

const model = () => {
  const send = failing(AiError.make({ module: "", method: "", reason: new AiError.RateLimitError({}) }))
  return Layer.effect(
    LanguageModel.LanguageModel,
    LanguageModel.make({
      generateText: () => Effect.as(send, []),
      streamText: () => Stream.fromEffect(Effect.as(send, { type: "text-start", id: "1" } as const))
    })
  )
}

class Down extends Schema.TaggedError<Down>()("Down", {}) {
  readonly status = 503
}

const Order = Workflow.make("Order", {
  payload: Schema.Struct({ id: Schema.String }),
  idempotencyKey: ({ id }: { readonly id: string }) => id,
  success: Schema.String
})

const workflow = (policy: Policy, messages: Effect.Success<typeof database>) => {
  const execute = failing(new Down())
  const charge = Activity.make({ name: "charge", success: Schema.String, error: Down, execute })
  return Order.toLayer(() => Effect.orDie(RetryWorkflow.retry(charge, policy))).pipe(
    Layer.provideMerge(engine(newProcess(), messages))
  )
}

/** Makes something in the one context, and uses it in the other. */
const using = <A>(made: Any, make: Effect.Effect<A, unknown, any>, use: (made: A) => Call): Call =>
  Effect.flatMap(Effect.updateContext(make, (_: Context.Context<never>) => made), use)

const within = (made: Any, layer: Layer.Layer<any, unknown, any>, call: Call): Call =>
  Effect.scopedWith((scope) =>
    using(made, Layer.buildWithScope(layer, scope), (built) => Effect.provideContext(call, built))
  )

const hedge = { after: Infinity }

const drivers: Readonly<Record<string, Drive>> = {
  "`withRetry`": (policy) => withRetry(sending(), policy),
  "`withRetryOrElse`": (policy) => withRetryOrElse(sending(), policy, Effect.fail),
  "`Effect.retry`": (policy) => Effect.retry(sending(), policy),
  "`RetryHttp.retry`": (policy) => RetryHttp.retry(client(), policy).execute(request),
  "`RetryGrpc.unary`": (policy) => withRetry(unary(), policy),
  "`RetryStream.untilFirst`": (policy) => Stream.runDrain(RetryStream.untilFirst(Stream.fromEffect(sending()), policy)),
  "`RetryStream.resume`": (policy) => {
    const send = sending()
    return Stream.runDrain(RetryStream.resume(policy, () => Stream.fromEffect(send)))
  },
  "`AwsSdk.sendWithRetry`": (policy) => AwsSdk.sendWithRetry(dynamo([busy, ok]).client, getItem(), policy),
  "`RetryHttp.layer`": (policy, made) =>
    within(
      Context.add(made, HttpClient.HttpClient, client()),
      RetryHttp.layer(policy),
      HttpClient.execute(request)
    ),
  "`RetryHttp.transform`": (policy, made) =>
    using(made, RetryHttp.transform(policy), (transform) => transform(client()).execute(request)),
  "`RetryStrategy.run`": (policy, made) => within(made, RetryStrategy.layer(policy), RetryStrategy.run(sending())),
  "`AwsSdk.makeRetryStrategy`": (policy, made) =>
    using(
      made,
      AwsSdk.makeRetryStrategy(policy),
      (retryStrategy) => Effect.promise(() => dynamo([busy, ok], { retryStrategy }).client.send(getItem()))
    ),
  "`RetryDriver.make`": (policy, made) =>
    using(made, RetryDriver.make(policy), (driver) => driven(sending(), Effect.succeed(driver))),
  "`RetryPromise.make`": (policy, made) =>
    Effect.promise(() => RetryPromise.make(policy, { context: made })(promising())),
  "`retryPromise`": (policy, made) =>
    Effect.promise(() => RetryPromise.retryPromise(promising(), policy, { context: made })),
  "`RetryWorkflow.retry`": (policy, made) =>
    Effect.flatMap(
      database,
      (messages) => within(made, workflow(policy, messages), Order.execute({ id: "a" }))
    ),
  "`RetryLanguageModel.withRetry`": (policy, made) =>
    within(made, RetryLanguageModel.withRetry(policy)(model()), LanguageModel.generateText({ prompt: "" })),
  "streams of its model": (policy, made) =>
    within(
      made,
      RetryLanguageModel.withRetry(policy)(model()),
      Stream.runDrain(LanguageModel.streamText({ prompt: "" }))
    ),
  "`RetryConfig.retry`": () => RetryConfig.retry("a")(sending()),
  "`RetryConfig.hedged`": () => RetryConfig.hedged("a")(sending()),
  "`Hedge.hedged`": () => Hedge.hedged(sending(), hedge),
  "`RetryHttp.hedge`": () => RetryHttp.hedge(client(), hedge).execute(request),
  "`AwsSdk.sendHedged`": () => AwsSdk.sendHedged(dynamo([busy, ok]).client, getItem(), hedge),
  "`RetryGrpc.hedged`": () => RetryGrpc.hedged({ maxAttempts: 2, nonFatalStatusCodes: [14] })(unary())
}

class Own extends SendGate.Service<Own, unknown>()("test/core/ServiceOrigins/Own") {}

type Used = () => void

const gateOf = (used: Used): SendGate.SendGate => ({
  order: 1,
  enter: (send) => {
    used()
    send.hold({ settle: () => undefined, cancel: () => undefined })
  }
})

const gate = (tag: Context.Key<any, any>) => (used: Used): Any => Context.make(tag, { gate: gateOf(used) })

const storeOf = (used: Used): RetryQuotaStore => {
  const { store } = Effect.runSync(RetryQuota.make())
  const reserve: typeof store.reserve = (cost, clock) => {
    used()
    return store.reserve(cost, clock)
  }
  return Object.create(store, { reserve: { value: reserve } })
}

const quota = (used: Used): Any => Context.make(RetryQuota.RetryQuota, RetryQuota.fromStore(storeOf(used)))

const hedging = (used: Used): Any =>
  Context.make(
    Hedge.Hedge,
    Effect.runSync(Effect.provideService(Hedge.make({ budget: storeOf(used) }), Scope.Scope, Scope.makeUnsafe()))
  )

const config = (used: Used): Any => {
  const document = { default: { hedge: { after: 0, share: 1 } } }
  const built = Effect.runSync(Layer.buildWithScope(RetryConfig.layer(document), Scope.makeUnsafe()))
  const service = Context.get(built, RetryConfig.RetryConfig)
  const lives = () => {
    used()
    return service.lives
  }
  return Context.make(RetryConfig.RetryConfig, Object.create(service, { lives: { get: lives } }))
}

const services: Readonly<Record<string, Service>> = {
  "policy of `RetryConfig`": config,
  quota,
  "quota of a resource that the call names": (used, place) =>
    Context.add(quota(used), RetryObserver.CurrentResource, place),
  "token limiter": gate(TokenLimiter.TokenLimiter),
  "adaptive limiter": gate(AdaptiveRateLimiter.AdaptiveRateLimiter),
  "concurrency limiter": gate(ConcurrencyLimiter.ConcurrencyLimiter),
  "cool-down": gate(CoolDown.CoolDown),
  "client throttle": gate(ClientThrottle.ClientThrottle),
  "circuit breaker": (used) => Context.make(CircuitBreakerGate.CircuitBreakerGate, gateOf(used) as never),
  "gate of your own": (used) => Context.make(Own, gateOf(used)),
  "classifier": (used) =>
    Context.make(RetryClassifier.CurrentClassifier, (error) => {
      used()
      return RetryClassifier.defaultClassifier(error)
    }) as Any,
  "observer": (used) => Context.make(RetryObserver.CurrentObserver, { onAttempt: used }) as Any,
  hedging
}

const onCall = (used: Used): Any => {
  const around: RetryObserver.RetryObserver["onCall"] = (self) => Effect.andThen(Effect.sync(used), self)
  return Context.make(RetryObserver.CurrentObserver, { onCall: around }) as Any
}

type Service = (used: Used, place: string) => Any

type Place = "policy" | "made" | "call"

/** What the types of all drivers need. */
const needed: ReadonlyArray<Any> = [quota, hedging, config].map((make) => make(() => undefined))

/** Which of the places are used. */
const usedBy = (drive: Drive, service: Service, places: ReadonlyArray<Place>) =>
  Effect.gen(function*() {
    const used = new Set<Place>()
    const base: Any = [Context.make(Clock.Clock, yield* Clock.Clock) as Any, ...needed]
      .reduce((one, other) => Context.merge(one, other))
    const at = (place: Place): Any =>
      places.includes(place) ? service(() => used.add(place), place) : Context.empty() as Any
    const given: any = service === config ? RetryConfig.live("a") : awsStandard2026
    const policy = places.includes("policy")
      ? RetryPolicy.provided(given, Layer.succeedContext(at("policy")))
      : given
    yield* played(
      Effect.provideContext(
        Effect.suspend(() => drive(policy, Context.merge(base, at("made")))),
        Context.merge(base, at("call"))
      ),
      500,
      5
    )
    return [...used]
  })

/** The places in the order in which they are looked at. */
const cell = (drive: Drive, service: Service) =>
  Effect.gen(function*() {
    const cells: Array<string> = []
    let places: ReadonlyArray<Place> = drive === drivers["`RetryWorkflow.retry`"]
      ? ["made", "call"]
      : ["policy", "made", "call"]
    while (true) {
      const used = yield* usedBy(drive, service, places)
      if (used.length === 0) return cells.join(", ") || "-"
      cells.push(used.join(" and "))
      places = places.filter((place) => !used.includes(place))
    }
  })

/** Joins the names of neighbors that are the same. */
const joined = (named: ReadonlyArray<readonly [name: string, cells: ReadonlyArray<string>]>) =>
  named.reduce<ReadonlyArray<readonly [string, ReadonlyArray<string>]>>((before, [name, cells]) => {
    const last = before.at(-1)
    return last !== undefined && last[1].join() === cells.join()
      ? [...before.slice(0, -1), [`${last[0]}, ${name}`, cells]]
      : [...before, [name, cells]]
  }, [])

const transposed = (named: ReadonlyArray<readonly [string, ReadonlyArray<string>]>, names: ReadonlyArray<string>) =>
  names.map((name, index) => [name, named.map(([, cells]) => cells[index]!)] as const)

describe("what comes from where", () => {
  it.effect("is as docs/what-comes-from-where.md says, for each driver and each service", () =>
    Effect.gen(function*() {
      const tried: Array<readonly [string, ReadonlyArray<string>]> = []
      for (const [name, drive] of Object.entries(drivers)) {
        tried.push([name, yield* Effect.forEach(Object.values(services), (service) => cell(drive, service))])
      }
      const rows = joined(tried)
      const columns = joined(transposed(rows, Object.keys(services)))
      const lines = [
        ["", ...columns.map(([name]) => name)],
        ["---", ...columns.map(() => "---")],
        ...transposed(columns, rows.map(([name]) => name)).map(([name, cells]) => [name, ...cells])
      ]
      const table = lines.map((cells) => `| ${cells.join(" | ")} |`.replace("|  |", "| |")).join("\n")
      const page = fs.readFileSync(new URL("../../docs/what-comes-from-where.md", import.meta.url), "utf8")
      assert.isTrue(page.includes(table), table)
    }))

  it.effect("an observer that runs something around calls is the one that is notified of them", () =>
    Effect.gen(function*() {
      for (const [name, drive] of Object.entries(drivers)) {
        const around = yield* cell(drive, onCall)
        if (around !== "-") assert.strictEqual(around, yield* cell(drive, services["observer"]!), name)
      }
    }))

  const quotasOfTheirOwn = {
    "RetryQuota.layerFor": RetryQuota.layerFor("a", { capacity: 5 }),
    "RetryConfig.resource": RetryConfig.resource("a").pipe(
      Layer.provide(RetryConfig.layer({ resources: { a: { quota: { capacity: 5 } } } }))
    )
  }
  for (const [name, made] of Object.entries(quotasOfTheirOwn)) {
    it.effect(`a client made with ${name} pays from that, whatever quota is around the call`, () =>
      Effect.gen(function*() {
        let sends = 0
        const down = HttpClient.make((request) =>
          Effect.sync(() => {
            sends++
            return HttpClientResponse.fromWeb(request, new Response(null, { status: 503 }))
          })
        )
        const policy = Backoff.fixed(0).pipe(RetryPolicy.maxAttempts(3), RetryPolicy.quotaGated({ cost: 5 }))
        const retrying = RetryHttp.layer(policy).pipe(
          Layer.provide([made, Layer.succeed(HttpClient.HttpClient, down)])
        )
        const calls = Effect.repeat(HttpClient.HttpClient.use((client) => client.get("http://a")), { times: 9 })
        yield* Effect.provide(calls, Layer.merge(retrying, RetryQuota.layer()))
        assert.strictEqual(sends, 11)
      }))
  }
})
