/** For each driver and each service: whether it comes from where the driver is made, or from the call. docs/sharing.md has the table. */
import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  awsStandard2026,
  RetryClassifier,
  RetryObserver,
  RetryPromise,
  RetryQuota,
  RetryStrategy,
  SendGate,
  withRetry
} from "effect-retry"
import * as AwsSdk from "effect-retry/AwsSdk"
import * as CircuitBreakerGate from "effect-retry/CircuitBreakerGate"
import * as ClientThrottle from "effect-retry/ClientThrottle"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import * as RetryDriver from "effect-retry/RetryDriver"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as TokenLimiter from "effect-retry/TokenLimiter"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as fs from "node:fs"
import { busy, dynamo, getItem, ok } from "../utils/awsSdk.ts"
import { Transient } from "../utils/call.ts"
import { driven } from "../utils/driven.ts"

type Any = Context.Context<any>

/** A call that fails once, in a driver that is made in one context and called in another. */
type Drive = (made: Any, call: Any) => Effect.Effect<unknown, unknown, any>

const sending = () => {
  let sends = 0
  return Effect.suspend(() => ++sends > 1 ? Effect.void : Effect.fail(new Transient()))
}

const client = () => {
  let sends = 0
  return HttpClient.make((request) =>
    Effect.sync(() => HttpClientResponse.fromWeb(request, new Response(null, { status: ++sends > 1 ? 200 : 503 })))
  )
}

const request = HttpClientRequest.get("http://a/")

const drivers: Readonly<Record<string, Drive>> = {
  "`withRetry`, `Effect.retry`": (_, call) =>
    Effect.provideContext(
      Effect.andThen(withRetry(sending(), awsStandard2026), Effect.retry(sending(), awsStandard2026)),
      call
    ),
  "`RetryHttp.retry`": (_, call) =>
    Effect.provideContext(RetryHttp.retry(client(), awsStandard2026).execute(request), call),
  "`RetryHttp.layer`, `transform`": (made, call) =>
    Effect.flatMap(
      Effect.provideContext(RetryHttp.transform(awsStandard2026), made),
      (transform) => Effect.provideContext(transform(client()).execute(request), call)
    ),
  "`RetryStrategy.run`": (made, call) =>
    Effect.flatMap(
      Effect.provideContext(RetryStrategy.make(awsStandard2026), made),
      (strategy) =>
        Effect.provideService(RetryStrategy.run(sending()), RetryStrategy.RetryStrategy, strategy).pipe(
          Effect.provideContext(call)
        )
    ),
  "`RetryDriver.make`": (made, call) =>
    Effect.provideContext(driven(sending(), Effect.provideContext(RetryDriver.make(awsStandard2026), made)), call),
  "`AwsSdk.makeRetryStrategy`": (made) =>
    Effect.flatMap(
      Effect.provideContext(AwsSdk.makeRetryStrategy(awsStandard2026), made),
      (retryStrategy) => Effect.promise(() => dynamo([busy, ok], { retryStrategy }).client.send(getItem()))
    ),
  "`RetryPromise.make`, `retryPromise`": (made) => {
    const send = sending()
    return Effect.promise(() => RetryPromise.make(awsStandard2026, { context: made })(() => Effect.runPromise(send)))
  }
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

const quota = (used: Used) => {
  const store = Effect.runSync(RetryQuota.make()).store
  const reserve: typeof store.reserve = (cost, clock) => {
    used()
    return store.reserve(cost, clock)
  }
  const noting = Object.create(store, { reserve: { value: reserve } })
  const context: Any = Context.make(RetryQuota.RetryQuota, RetryQuota.fromStore(noting)) as Context.Context<any>
  return context
}

const services: Readonly<Record<string, (used: Used) => Any>> = {
  quota,
  "adaptive limiter": gate(AdaptiveRateLimiter.AdaptiveRateLimiter),
  "concurrency limiter": gate(ConcurrencyLimiter.ConcurrencyLimiter),
  "cool-down": gate(CoolDown.CoolDown),
  "client throttle": gate(ClientThrottle.ClientThrottle),
  "token limiter": gate(TokenLimiter.TokenLimiter),
  "circuit breaker": (used) => Context.make(CircuitBreakerGate.CircuitBreakerGate, gateOf(used) as never),
  "gate of your own": (used) => Context.make(Own, gateOf(used)),
  "quota of a resource that the call names": (used) => Context.add(quota(used), RetryObserver.CurrentResource, "a"),
  "classifier": (used) =>
    Context.make(RetryClassifier.CurrentClassifier, (error) => {
      used()
      return RetryClassifier.defaultClassifier(error)
    }) as Any,
  "observer": (used) => Context.make(RetryObserver.CurrentObserver, { onSend: used }) as Any
}

/** A clock whose sleeps end immediately. */
const immediate = Effect.clockWith((clock) =>
  Effect.succeed<Clock.Clock>(Object.create(clock, { sleep: { value: () => Effect.void } }))
)

type Place = "made" | "call"

/** Which of the two are used. */
const usedBy = (drive: Drive, service: (used: Used) => Any, places: ReadonlyArray<Place>) =>
  Effect.gen(function*() {
    const used = new Set<Place>()
    const base: Any = Context.make(RetryQuota.RetryQuota, yield* RetryQuota.make()).pipe(
      Context.add(Clock.Clock, yield* immediate)
    )
    const contextOf = (place: Place): Any =>
      places.includes(place) ? Context.merge(base, service(() => used.add(place))) : base
    yield* drive(contextOf("made"), contextOf("call"))
    return [...used].join()
  })

const cell = (drive: Drive, service: (used: Used) => Any) =>
  Effect.gen(function*() {
    const made = yield* usedBy(drive, service, ["made"])
    const call = yield* usedBy(drive, service, ["call"])
    const both = yield* usedBy(drive, service, ["made", "call"])
    if (made !== "" && call !== "") {
      return both === "made"
        ? "made, else call"
        : both === "call"
        ? "call, else made"
        : both
    }
    return made + call === "" ? "-" : made + call
  })

describe("what comes from where", () => {
  it.effect("is as docs/sharing.md says, for each driver and each service", () =>
    Effect.gen(function*() {
      const names = Object.keys(drivers)
      const lines = [
        `| | ${names.join(" | ")} |`,
        `| --- |${" --- |".repeat(names.length)}`
      ]
      for (const [name, service] of Object.entries(services)) {
        const cells: Array<string> = []
        for (const drive of Object.values(drivers)) cells.push(yield* cell(drive, service))
        lines.push(`| ${name} | ${cells.join(" | ")} |`)
      }
      const table = lines.join("\n")
      const page = fs.readFileSync(new URL("../../docs/sharing.md", import.meta.url), "utf8")
      assert.isTrue(page.includes(table), table)
    }))
})
