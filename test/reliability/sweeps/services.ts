import {
  AdaptiveRateLimiter,
  awsAdaptive,
  awsStandard,
  ResourceLimiters,
  RetryQuota,
  SendGate,
  Waiter,
  withRetry
} from "effect-retry"
import * as AwsRetryConfig from "effect-retry/aws/AwsRetryConfig"
import * as GeneralReference from "effect-retry/aws/legacy/GeneralReference"
import * as Kotlin from "effect-retry/aws/legacy/Kotlin"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as Kit from "effect-retry/testing"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { discard } from "../../../src/aws/internal/tokenStrategy.ts"
import { on, type Send, type Sweeps } from "./sweep.ts"

/** Holds tokens for a while, and gives them back. */
export const bracketed = Effect.acquireUseRelease(
  Effect.map(RetryQuota.reserve(4), Option.getOrThrow),
  () => Effect.sleep(10),
  ({ giveBack }) => giveBack
)

const ready = Waiter.make({
  acceptors: [Waiter.output("success", (polls: number) => polls > 2)],
  minDelay: 100,
  maxWait: "1 minute"
})

const polling = Effect.suspend(() => {
  let polls = 0
  return Effect.succeed(Effect.delay(Effect.sync(() => ++polls), 5))
})

class Gate extends SendGate.Service<Gate>()("test/sweeps/Gate") {}

/** A call behind a gate that makes each send wait. It dies if a pass is neither settled nor canceled when it ends. */
const gated = (call: Send) =>
  Effect.suspend(() => {
    let open = 0
    const close = () => {
      open--
    }
    const gate = SendGate.layer(Gate, {
      order: 1,
      enter: (send) =>
        Effect.delay(
          Effect.sync(() => {
            open++
            send.hold({ settle: close, cancel: close })
          }),
          5
        )
    })
    const check = Effect.suspend(() => open === 0 ? Effect.void : Effect.die(`${open} passes are open`))
    return Effect.acquireUseRelease(
      Effect.forkChild(Effect.provide(withRetry(call, awsAdaptive), gate)),
      Fiber.join,
      // What a fiber leaves behind is settled by its last observer, which runs after the one that waits here.
      (fiber) => Fiber.interrupt(fiber).pipe(Effect.andThen(Effect.yieldNow), Effect.andThen(check))
    )
  })

/** The services themselves, and what waits for an outcome. */
export const serviceSweeps: Sweeps = {
  "RetryQuota.RetryQuota, RetryQuota.reserve": { program: bracketed, least: 8 },
  "RetryQuota.reserve that waits": {
    program: Effect.all([bracketed, bracketed, bracketed], { concurrency: 3 }),
    quota: { capacity: 4, initial: 1, refillPerSecond: 10, onExceeded: "wait" }
  },
  "RetryQuota.deposit, RetryQuota.balance": {
    program: Effect.andThen(RetryQuota.deposit(0), RetryQuota.balance),
    least: 3
  },
  "RetryQuota.set, RetryQuota.state": {
    program: Effect.andThen(RetryQuota.set(Infinity), RetryQuota.state),
    least: 3
  },
  "AdaptiveRateLimiter.AdaptiveRateLimiter, AdaptiveRateLimiter.acquire": {
    program: Effect.replicateEffect(AdaptiveRateLimiter.acquire, 4, { concurrency: 4 })
  },
  "AdaptiveRateLimiter.update, AdaptiveRateLimiter.state": {
    limiter: "adaptive",
    program: Effect.all([
      AdaptiveRateLimiter.acquire,
      AdaptiveRateLimiter.update(true),
      AdaptiveRateLimiter.state,
      AdaptiveRateLimiter.acquire
    ])
  },
  "SendGate.Service, SendGate.layer": { program: on(gated) },
  "SendGate.catchRefusal": {
    program: on((call) => gated(call).pipe(SendGate.catchRefusal(() => Effect.sleep(5))))
  },
  "RetryStrategy.RetryStrategy: tokens by hand": {
    program: Effect.gen(function*() {
      const strategy = yield* RetryStrategy.RetryStrategy
      const first = yield* strategy.acquireInitialToken()
      yield* first.markSent
      const second = yield* strategy.refreshRetryToken(first, new Kit.Transient())
      yield* Effect.sleep(second.delay)
      yield* second.markSent
      yield* strategy.recordSuccess(second)
    }).pipe(Effect.provide(RetryStrategy.layer(awsAdaptive)))
  },
  "RetryStrategy.make: tokens that are abandoned": {
    quota: { capacity: 100, firstAttemptCost: 3 },
    program: Effect.gen(function*() {
      const strategy = yield* RetryStrategy.make(awsAdaptive)
      const first = yield* strategy.acquireInitialToken()
      yield* first.abandon
      const another = yield* strategy.acquireInitialToken()
      yield* another.markSent
      const second = yield* strategy.refreshRetryToken(another, new Kit.Transient())
      yield* second.abandon
    })
  },
  "a token that is discarded: an attempt whose outcome nobody sees": {
    quota: { capacity: 100, firstAttemptCost: 3 },
    program: Effect.gen(function*() {
      const strategy = yield* RetryStrategy.make(awsAdaptive)
      const first = yield* strategy.acquireInitialToken()
      yield* first.markSent
      const second = yield* strategy.refreshRetryToken(first, new Kit.Transient())
      yield* second.markSent
      discard(second)
    })
  },
  "Waiter.waitUntil, Waiter.make, Waiter.output": {
    program: Effect.flatMap(polling, (poll) => Waiter.waitUntil(poll, ready))
  },
  "Waiter.waitUntil around retries": {
    program: Waiter.waitUntil(Effect.as(on((call) => withRetry(call, awsStandard)), 3), ready)
  },
  "GeneralReference.polling": {
    program: Effect.flatMap(polling, (poll) =>
      Waiter.waitUntil(
        withRetry(poll, GeneralReference.policy()),
        GeneralReference.polling({ status: (polls: number) => polls > 2 ? "SUCCESS" : "NOT_READY" })
      ))
  }
}

/** Quotas that a program provides itself: what was held and given back is there again. */
export const quotaLayers: Readonly<Record<string, Layer.Layer<RetryQuota.RetryQuota>>> = {
  "RetryQuota.layer": RetryQuota.layer(),
  "RetryQuota.layerFor": RetryQuota.layerFor("sweep"),
  "RetryQuota.make": Layer.effect(RetryQuota.RetryQuota, RetryQuota.make({ capacity: 10 })),
  "RetryQuota.layerStore, RetryQuota.fromStore": RetryQuota.layerStore(
    Effect.map(RetryQuota.make({ capacity: 10 }), ({ store }) => RetryQuota.fromStore(store).store)
  ),
  "RetryQuota.layerUnlimited": RetryQuota.layerUnlimited,
  "RetryQuota.layerConfig": Layer.orDie(RetryQuota.layerConfig(Config.succeed({ capacity: 10 }))),
  "AwsRetryConfig.layer": AwsRetryConfig.layer({ mode: "adaptive", maxAttempts: 3, newRetries2026: true }).pipe(
    Layer.orDie,
    Layer.provide(FileSystem.layerNoop({}))
  ),
  "Kotlin.standardRetryStrategy": Kotlin.standardRetryStrategy().layer,
  "ResourceLimiters.quota": Layer.provide(
    ResourceLimiters.quota("a"),
    ResourceLimiters.layer({ quota: { capacity: 9 } })
  )
}
