/** Code of the user's that throws, gives nonsense or never ends, wherever the library calls it: it costs one call at most. */
import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  attempt,
  Backoff,
  Hedge,
  ResourceLimiters,
  RetryClassifier,
  RetryObserver,
  RetryPolicy,
  RetryPromise,
  RetryQuota,
  type RetryQuotaStore,
  SendGate,
  Waiter,
  withRetry
} from "effect-retry"
import * as JavaScriptV2 from "effect-retry/aws/legacy/JavaScriptV2"
import * as CircuitBreakerGate from "effect-retry/CircuitBreakerGate"
import * as ClientThrottle from "effect-retry/ClientThrottle"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import * as RetryBudget from "effect-retry/RetryBudget"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as RetryStream from "effect-retry/RetryStream"
import { TestQuota } from "effect-retry/testing"
import * as TokenLimiter from "effect-retry/TokenLimiter"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import type * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { Transient } from "../utils/call.ts"
import { callbacks, checkedCallbacks } from "../utils/modules.ts"
import { inTime } from "./utils/inTime.ts"

/** What a callback does in place of its job. */
const slips = {
  "throws": () => {
    throw new Error("a slip")
  },
  "returns NaN": () => Number.NaN,
  "returns nothing": () => undefined,
  "dies": () => Effect.die("a slip"),
  "never ends": () => Effect.never
} satisfies Record<string, () => unknown>

type Slip = () => any
type Send = Effect.Effect<string, unknown>
type Call = Effect.Effect<unknown, unknown, any>

type AnyLayer = Layer.Layer<any, any> | Layer.Layer<never>

/** Where a callback is called: in services of the calls, or in what retries them. */
interface Place {
  readonly services?: (slip: Slip) => AnyLayer
  readonly retried?: (slip: Slip) => (send: Send) => Call
  /** A call that would succeed may die, since the callback runs in place of it, or before it is sent. */
  readonly kills?: boolean
  /** It is what is sent, and holds its slot until it ends. */
  readonly isSend?: boolean
}

const policy = Backoff.fixed(10).pipe(
  RetryPolicy.maxAttempts(3),
  RetryPolicy.whileRetryable,
  RetryPolicy.quotaGated({ cost: 5 })
)

const gate = (services: (slip: Slip) => AnyLayer): Place => ({ services })

const rule = (slipping: (slip: Slip) => Partial<ConcurrencyLimiter.Rule>): Place =>
  gate((slip) =>
    ConcurrencyLimiter.layer({
      rule: { initial: 2, limit: (state) => state, next: (state) => state, ...slipping(slip) },
      onExceeded: "fail"
    })
  )

const observer = (name: keyof RetryObserver.RetryObserver): Place =>
  gate((slip) => RetryObserver.layerOnly({ [name]: slip }))

const policies = (make: (slip: Slip) => Schedule.Schedule<unknown, any, unknown, any>): Place => ({
  retried: (slip) => {
    const slipping = make(slip)
    return (send) => Effect.retry(send, slipping as Schedule.Schedule<unknown>)
  }
})

const quoted = (make: (slip: Slip) => Effect.Effect<RetryQuotaStore.RetryQuotaStore>): Place =>
  gate((slip) => RetryQuota.layerStore(make(slip)))

/** A store with a slip. */
const store = (
  slipping: (slip: Slip) => Partial<RetryQuotaStore.RetryQuotaStore>,
  reservation: (slip: Slip) => Partial<RetryQuotaStore.Reservation> = () => ({})
): Place =>
  quoted((slip) =>
    Effect.succeed({
      capacity: 500,
      successIncrement: 1,
      firstAttemptCost: 0,
      onExceeded: "stop",
      reserve: (cost) => ({ cost, giveBack: () => true, spend: () => true, ...reservation(slip) }),
      deposit: () => undefined,
      balance: () => 500,
      ...slipping(slip)
    })
  )

class Own extends SendGate.Service<Own, unknown>()("test/reliability/callbacks/Own") {}

/** A gate that comes before all others, so that they are told after it. */
const ownGate = (enter: (slip: Slip) => SendGate.SendGate["enter"], isStrained?: boolean): Place =>
  gate((slip) => Layer.succeed(Own, { order: -1, enter: enter(slip), ...(isStrained && { isStrained: slip }) }))

/** Fails as the client does that answers with 503. */
const requests = (options: (slip: Slip) => RetryHttp.Options): Place => ({
  retried: (slip) => {
    const retried = RetryHttp.retry(policy, options(slip))
    return (send) => {
      const client = HttpClient.make((request) =>
        Effect.map(
          Effect.result(send),
          ({ _tag }) =>
            HttpClientResponse.fromWeb(request, new Response(null, { status: _tag === "Success" ? 200 : 503 }))
        )
      )
      const call = retried(client).execute(HttpClientRequest.get("http://service"))
      return Effect.flatMap(call, ({ status }) => status === 200 ? Effect.succeed("ok") : Effect.fail(status))
    }
  }
})

const promise = (name: "classify" | "onRetry" | "onStop"): Place => ({
  retried: (slip) => (send) =>
    Effect.contextWith((context: Context.Context<never>) =>
      Effect.callback<string, unknown>((resume) => {
        const controller = new AbortController()
        const { signal } = controller
        const callback = slip === slips["never ends"] ? () => new Promise(() => {}) : slip
        const retry = RetryPromise.make(policy, { context, [name]: callback })
        void retry(() => Effect.runPromise(send), { signal }).then(
          (value) => resume(Effect.succeed(value)),
          (error) => resume(Effect.fail(error))
        )
        return Effect.sync(() => controller.abort())
      })
    )
})

const waiting = (options: (slip: Slip) => Partial<Waiter.Options<unknown, unknown>>): Place => ({
  retried: (slip) => {
    const waiter = Waiter.make({ acceptors: [Waiter.output("success")], maxWait: "10 seconds", ...options(slip) })
    return (send) => Waiter.waitUntil(attempt(send), waiter)
  },
  kills: true
})

/** Each callback, as `Module.Interface.member`, or `Module.function.parameter` where it is given alone. */
const places: Readonly<Record<string, Place>> = {
  "CircuitBreakerGate.Options.isFailure": gate((isFailure) =>
    CircuitBreakerGate.layer({ key: "a", isFailure }).pipe(
      Layer.provide(CircuitBreaker.layer({ tripPolicy: CircuitBreaker.consecutive(2), openDuration: "1 second" })),
      Layer.provide(CircuitBreaker.layerStoreMemory())
    )
  ),
  "ClientThrottle.Options.isRejection": gate((isRejection) => ClientThrottle.layer({ isRejection })),
  "ConcurrencyLimiter.Options.isDrop": gate((isDrop) =>
    ConcurrencyLimiter.layer({ isDrop, rule: ConcurrencyLimiter.fixed(2), onExceeded: "fail" })
  ),
  "ConcurrencyLimiter.Rule.limit": rule((slip) => {
    let isMade = false
    return {
      limit: () => {
        if (isMade) return slip()
        isMade = true
        return 2
      }
    }
  }),
  "ConcurrencyLimiter.Rule.next": rule((next) => ({ next })),
  "ConcurrencyLimiter.Rule.isTimed": rule((isTimed) => ({ isTimed })),
  "ConcurrencyLimiter.Rule.maxWaitMillis": rule((maxWaitMillis) => ({ maxWaitMillis })),
  "ConcurrencyLimiter.Rule.admitsRetries": rule((admitsRetries) => ({ admitsRetries })),
  "ConcurrencyLimiter.Rule.answered": rule((answered) => ({ answered })),
  "ConcurrencyLimiter.Rule.pauseMillis": rule((pauseMillis) => ({ initial: 0.5, pauseMillis })),
  "CoolDown.Options.hint": gate((hint) => CoolDown.layer({ hint })),
  "Hedge.CallOptions.isRetryable": {
    retried: (isRetryable) => (send) => withRetry(Hedge.hedged(send, { after: 1, isRetryable }), policy)
  },
  "RetryBudget.InFlightOptions.most": quoted((most) => RetryBudget.inFlight({ most })),
  "RetryBudget.GrpcOptions.isFailure": quoted((isFailure) => RetryBudget.grpc({ isFailure })),
  "RetryObserver.RetryObserver.onAttempt": observer("onAttempt"),
  "RetryObserver.RetryObserver.onRetry": observer("onRetry"),
  "RetryObserver.RetryObserver.onHedge": {
    ...observer("onHedge"),
    retried: () => (send) => withRetry(Hedge.hedged(send, { after: 1 }), policy)
  },
  "RetryObserver.RetryObserver.onStop": observer("onStop"),
  "RetryObserver.RetryObserver.onCall": { ...observer("onCall"), kills: true },
  "RetryObserver.RetryObserver.onSend": observer("onSend"),
  "RetryObserver.RetryObserver.onWait": { ...observer("onWait"), kills: true },
  "RetryPromise.RetryOptions.classify": promise("classify"),
  "RetryPromise.RetryOptions.onRetry": promise("onRetry"),
  "RetryPromise.RetryOptions.onStop": promise("onStop"),
  "RetryQuotaStore.Reservation.sent": store(() => ({}), (sent) => ({ sent })),
  "RetryQuotaStore.Reservation.giveBack": store(() => ({}), (giveBack) => ({ giveBack })),
  "RetryQuotaStore.Reservation.spend": store(() => ({}), (spend) => ({ spend })),
  "RetryQuotaStore.Reservation.resize": store(() => ({}), (resize) => ({ resize })),
  "RetryQuotaStore.RetryQuotaStore.reserve": store((reserve) => ({ reserve })),
  "RetryQuotaStore.RetryQuotaStore.deposit": store((deposit) => ({ deposit })),
  "RetryQuotaStore.RetryQuotaStore.balance": store((balance) => ({ balance })),
  "SendGate.Pass.settle": ownGate((settle) => (send) => send.hold({ settle, cancel: () => undefined })),
  "SendGate.Pass.cancel": ownGate((cancel) => (send) => send.hold({ settle: () => undefined, cancel })),
  "SendGate.SendGate.enter": { ...ownGate((enter) => enter), kills: true },
  "SendGate.SendGate.isStrained": {
    ...ownGate(() => (send) => send.hold({ settle: () => undefined, cancel: () => undefined }), true),
    retried: () => (send) => withRetry(Hedge.hedged(Effect.delay(send, 5), { after: 1 }), policy)
  },
  "RetryStream.FirstOptions.begins": {
    retried: (begins) => (send) => Stream.mkString(RetryStream.untilFirst(Stream.fromEffect(send), policy, { begins }))
  },
  "TokenLimiter.Options.usage": gate((usage) => TokenLimiter.layer({ requests: 100, usage })),
  "Waiter.Acceptor.matches": waiting((matches) => ({
    acceptors: [{ state: "retry", matches, message: undefined } as never, Waiter.output("success")]
  })),
  "Waiter.Options.onAttempt": waiting((onAttempt) => ({ onAttempt })),
  "JavaScriptV2.BackoffOptions.customBackoff": policies((customBackoff) => JavaScriptV2.policy({ customBackoff })),
  "RetryHttp.ClassifierOptions.hints": requests((hint) => ({ hints: [hint] })),
  "RetryHttp.ClassifierOptions.retryStatus": requests((retryStatus) => ({ retryStatus })),
  "RetryHttp.Options.classifier": requests((classifier) => ({ classifier })),
  "RetryHttp.Options.resource": {
    ...requests((resource) => ({ resource })),
    services: () => ResourceLimiters.layer()
  },
  "RetryHttp.Options.newConnection": { ...requests((newConnection) => ({ newConnection })), isSend: true },
  "RetryPolicy.fromDelay.delay": policies((delay) => RetryPolicy.fromDelay(delay).pipe(RetryPolicy.maxAttempts(3))),
  "RetryPolicy.mapDelay.f": policies((f) => RetryPolicy.mapDelay(policy, f)),
  "RetryPolicy.while.holds": policies((holds) => RetryPolicy.while(policy, holds)),
  "RetryPolicy.choose.policy": policies((choose) => RetryPolicy.choose(choose)),
  "RetryClassifier.CurrentClassifier": gate((classifier) => RetryClassifier.layer(classifier)),
  "RetryClassifier.vetoing.predicate": gate((predicate) =>
    RetryClassifier.layer(RetryClassifier.vetoing(RetryClassifier.defaultClassifier, predicate))
  ),
  ...Object.fromEntries(
    (["quota", "limiter", "concurrency", "throttle", "coolDown", "hedge"] as const).map((name) => [
      `ResourceLimiters.Options.${name}`,
      {
        services: (slip: Slip) => ResourceLimiters.layer({ [name]: slip }),
        retried: () => (send: Send) =>
          Effect.provide(withRetry(Hedge.hedged(send), policy), [
            ResourceLimiters.get("a"),
            ResourceLimiters.hedge("a")
          ]),
        kills: true
      } satisfies Place
    ])
  )
}

/** Those that no send depends on. */
const elsewhere: Readonly<Record<string, string>> = {
  "RetryPolicy.ExplainOptions.classifier": "asked about an error by `RetryPolicy.explain` alone",
  "RetryQuotaStore.RetryQuotaStore.set": "called by `RetryQuota.set` alone",
  "RetryHttp.HedgeOptions.classifier": "a classifier, called as that of `RetryHttp.retry`",
  "fetch.Options.fetch": "makes the requests: what it throws is the failure of a send",
  "RetryHttp.ResourceOptions.resource": "that of `RetryHttp.Options`",
  "RetryHttp.IdempotencyKeyOptions.make": "makes the key of a call before it is sent",
  "Waiter.Acceptor.message": "words for the error of a wait that has failed",
  "GeneralReference.PollingOptions.status": "reads what a poll returned, after it has ended",
  "RetryPolicyJson.Options.functions": "the functions that a document names, swept under their own names",
  "RetryQuotaStoreSuite.Options.elapse": "lets time pass in a test"
}

const drivers: Readonly<Record<string, (send: Send) => Call>> = {
  "withRetry": (send) => withRetry(send, policy),
  "Effect.retry": (send) => Effect.retry(send, policy),
  "RetryStrategy.run": (send) =>
    Effect.flatMap(
      RetryStrategy.make(policy),
      (strategy) => Effect.provideService(RetryStrategy.run(send), RetryStrategy.RetryStrategy, strategy)
    )
}

const swept = ({ isSend = false, kills = false, services }: Place, slip: Slip, call: (send: Send) => Call) =>
  Effect.gen(function*() {
    const own = services === undefined ? Layer.empty : services(slip)
    const context = yield* Layer.build(own as Layer.Layer<any>)
    const limiter = Context.getOrElse(
      context as Context.Context<ConcurrencyLimiter.ConcurrencyLimiter>,
      ConcurrencyLimiter.ConcurrencyLimiter,
      () => undefined
    )
    const around = yield* ConcurrencyLimiter.ConcurrencyLimiter
    const slots = Effect.forEach(
      limiter === undefined ? [around] : [around, limiter],
      ({ state }) =>
        Effect.map(state, ({ inFlight, limit, waiting }) => {
          assert.deepStrictEqual([inFlight, waiting, limit > 0], [0, 0, true], "slots that are kept")
        }),
      { discard: true }
    )
    const run = (send: Send) =>
      inTime(Effect.provideContext(call(send), context as Context.Context<any>), isSend ? Effect.void : slots)
    for (const error of [new Transient(), undefined, { status: 503 }, new Transient(), null]) {
      yield* run(Effect.fail(error))
    }
    yield* TestClock.adjust("1 hour")
    for (let healthy = 0; healthy < 4; healthy++) {
      yield* TestClock.adjust("10 seconds")
      const exit = yield* run(Effect.succeed("ok"))
      if (!kills) assert.deepStrictEqual(exit, Exit.succeed("ok") as never, `healthy call ${healthy + 1}`)
    }
    yield* slots
    assert.deepInclude(yield* TokenLimiter.state, { waiting: 0 })
    assert.deepInclude(yield* TestQuota.state, { held: 0, waiting: 0 }, "tokens that are kept")
  }).pipe(
    Effect.provide([
      TestQuota.layer(),
      Hedge.layer(),
      AdaptiveRateLimiter.layer(),
      TokenLimiter.layer({ requests: 1000 }),
      ConcurrencyLimiter.layer({ rule: ConcurrencyLimiter.fixed(2), onExceeded: "fail" })
    ])
  )

describe("code of the user's costs one call at most", () => {
  it("in each place where the library calls it", () => {
    const known = [...Object.keys(places), ...Object.keys(elsewhere)]
    assert.deepStrictEqual(callbacks.filter((name) => !known.includes(name)), [])
    const names = new Set(known.map((name) => name.split(".").at(-1)))
    assert.deepStrictEqual(checkedCallbacks.filter((name) => !names.has(name)), [])
    assert.isAbove(Math.min(callbacks.length - 40, checkedCallbacks.length - 10), 0)
  })

  for (const [name, place] of Object.entries(places)) {
    for (const [what, slip] of Object.entries(slips)) {
      const driven = place.retried === undefined ? drivers : { "": place.retried(slip) }
      for (const [driver, call] of Object.entries(driven)) {
        it.effect(`${name} ${what}${driver && `, under ${driver}`}`, () => swept(place, slip, call))
      }
    }
  }
})
