import * as Simulator from "@effect-retry/lab/Simulator"
import {
  AdaptiveRateLimiter,
  attempt,
  awsAdaptive,
  AwsModes,
  awsStandard,
  awsStandard2026,
  Hedge,
  ResourceLimiters,
  RetryClassifier,
  RetryMetrics,
  RetryObserver,
  RetryPolicy,
  RetryQuota,
  withRetry,
  withRetryOrElse
} from "effect-retry"
import * as GeneralReference from "effect-retry/aws/legacy/GeneralReference"
import * as JavaScriptV2 from "effect-retry/aws/legacy/JavaScriptV2"
import * as JavaV1 from "effect-retry/aws/legacy/JavaV1"
import * as SmithyGuide from "effect-retry/aws/legacy/SmithyGuide"
import * as RequestHeaders from "effect-retry/aws/RequestHeaders"
import * as RetryDriver from "effect-retry/RetryDriver"
import * as RetryLlm from "effect-retry/RetryLlm"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as RetryStream from "effect-retry/RetryStream"
import * as Kit from "effect-retry/testing"
import * as Config from "effect/Config"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { driven } from "../../utils/driven.ts"
import { failing, on, type Program, type Send, type Sweep, type Sweeps } from "./sweep.ts"

const quotas: Readonly<Record<string, RetryQuota.Options>> = {
  "that waits": { capacity: 10, initial: 0, refillPerSecond: 10, onExceeded: "wait" },
  "that is paid for first attempts": { capacity: 100, firstAttemptCost: 3 },
  "that has first attempts wait": {
    capacity: 9,
    initial: 0,
    firstAttemptCost: 3,
    refillPerSecond: 5,
    onExceeded: "wait"
  },
  "that runs dry": { capacity: 500, initial: 6 },
  "that gains": { capacity: 500, initial: 100, successIncrement: 1 }
}

const one = on((call) => withRetry(call, awsStandard))

/** Calls under every kind of quota. */
export const quotaSweeps: Sweeps = Object.fromEntries(
  Object.entries(quotas).flatMap(([name, quota]): ReadonlyArray<readonly [string, Sweep]> => [
    [`a call, at a quota ${name}`, { quota, program: on((call) => withRetry(call, awsAdaptive)) }],
    [`two calls at once, at a quota ${name}`, { quota, program: Effect.all([one, one], { concurrency: 2 }) }],
    [`RetryStrategy.run, RetryStrategy.layer: at a quota ${name}`, {
      quota,
      program: on((call) => Effect.provide(RetryStrategy.run(call), RetryStrategy.layer(awsStandard)))
    }],
    [`RetryDriver.make: at a quota ${name}`, {
      quota,
      program: on((call) => driven(call, RetryDriver.make(awsStandard)))
    }]
  ])
)

/** Calls behind limiters other than the one that makes each send wait. */
export const limiterSweeps: Sweeps = Object.fromEntries(
  Object.entries(
    {
      "that follows the answers": "adaptive",
      "that fails fast": { fillRate: 1e-6, tokens: 2, onExceeded: "fail" },
      "with a short queue": { fillRate: 1, maxWaiters: 1 },
      "of plenty": { fillRate: 1e-6, tokens: 10 }
    } as const
  ).flatMap(([name, limiter]): ReadonlyArray<readonly [string, Sweep]> => [
    [`a call, at a limiter ${name}`, { limiter, program: on((call) => withRetry(call, awsAdaptive)) }],
    [`a scheduled call, at a limiter ${name}`, {
      limiter,
      program: on((call) => Effect.retry(call, awsAdaptive))
    }],
    [`Attempt.attempt: three lone sends at once, at a limiter ${name}`, {
      limiter,
      program: Effect.replicateEffect(Effect.exit(attempt(failing)), 3, { concurrency: 3 })
    }],
    [`a strategy, at a limiter ${name}`, {
      limiter,
      program: on((call) => Effect.provide(RetryStrategy.run(call), RetryStrategy.layer(awsAdaptive)))
    }]
  ])
)

/** A skewed clock, as the SDK reports it. */
class Skewed extends Data.TaggedError("Skewed") {
  readonly code = "RequestTimeTooSkewed"
}

const skewed = Effect.suspend(() => {
  let sends = 0
  const call = Effect.suspend(() => sends++ < 2 ? Effect.fail(new Skewed()) : Effect.void)
  const policy = JavaScriptV2.defaultPolicy.pipe(RetryPolicy.whileRetryable, RetryPolicy.quotaGated({ cost: 5 }))
  return Effect.orDie(withRetry(call, policy))
})

/** A timeout around an attempt is no failure of the attempt. */
const ofAnyError: Schedule.Schedule<unknown, any, never, RetryQuota.RetryQuota> = awsStandard

const classified = (layer: Layer.Layer<never>) => Effect.provide(one, layer)

const calls: Readonly<Record<string, (call: Send) => Program>> = {
  "a call that fails": () => withRetry(failing, awsStandard),
  "Attempt.withRetryOrElse": (call) =>
    withRetryOrElse(call, AwsModes.standard({ maxAttempts: 2 }), () => Effect.sleep(5)),
  "a timeout of the call": (call) => Effect.timeout(withRetry(call, awsAdaptive), "700 millis"),
  "a timeout of each attempt": (call) => withRetry(Effect.timeout(call, 5), awsStandard),
  "a timeout of each attempt, under Effect.retry": (call) => Effect.retry(Effect.timeout(call, 300), ofAnyError),
  "a race": (call) => Effect.raceFirst(withRetry(call, awsStandard), withRetry(failing, awsAdaptive)),
  "a call in a call": () => withRetry(withRetry(failing, awsStandard), AwsModes.standard({ maxAttempts: 2 })),
  "RetryPolicy.outermostOnly: a call in a call": () => {
    const policy = AwsModes.standard({ maxAttempts: 2 }).pipe(RetryPolicy.outermostOnly)
    return withRetry(withRetry(failing, policy), policy)
  },
  "a repeat": (call) => Effect.repeat(withRetry(call, awsStandard), Schedule.recurs(1)),
  "a tapped schedule": (call) => Effect.retry(call, Schedule.tap(awsStandard, () => Effect.sleep(5))),
  "schedules side by side": (call) => Effect.retry(call, Schedule.min([awsStandard, Schedule.spaced(70)])),
  "a strategy": (call) => Effect.provide(RetryStrategy.run(call), RetryStrategy.layer(awsAdaptive)),
  "a strategy that polls": () =>
    Effect.provide(RetryStrategy.run(failing, { longPolling: true }), RetryStrategy.layer(awsStandard2026)),
  "RetryMetrics.layer": (call) => Effect.provide(withRetry(call, awsAdaptive), RetryMetrics.layer()),
  "RetryMetrics.make": (call) => Effect.provide(withRetry(call, awsAdaptive), RetryObserver.layer(RetryMetrics.make())),
  "RetryObserver.call": (call) =>
    Effect.provide(RetryObserver.call(Effect.retry(call, awsStandard)), RetryMetrics.layer()),
  "RetryObserver.logger": (call) =>
    Effect.provide(withRetry(call, awsStandard), [RetryObserver.layer(RetryObserver.logger), Logger.layer([])]),
  "RetryObserver.layer": (call) =>
    Effect.provide(withRetry(call, awsStandard), RetryObserver.layer({ onAttempt: () => undefined })),
  "RetryObserver.layerOnly, RetryObserver.combine, RetryObserver.spanEvents": (call) =>
    Effect.provide(
      withRetry(call, awsStandard),
      RetryObserver.layerOnly(RetryObserver.combine(RetryObserver.spanEvents, { onAttempt: () => undefined }))
    ),
  "RetryObserver.CurrentObserver, RetryObserver.none": (call) =>
    Effect.provideService(withRetry(call, awsStandard), RetryObserver.CurrentObserver, RetryObserver.none),
  "RetryClassifier.layer": () => classified(RetryClassifier.layer(RetryClassifier.carried)),
  "RetryClassifier.CurrentClassifier": (call) =>
    Effect.provideService(withRetry(call, awsStandard), RetryClassifier.CurrentClassifier, RetryClassifier.carried),
  "GeneralReference.layer": () => classified(GeneralReference.layer),
  "JavaScriptV2.layer": () => classified(JavaScriptV2.layer),
  "JavaV1.layer": () => classified(JavaV1.layer),
  "JavaScriptV2.correctingClockSkew": () =>
    Effect.provide(skewed, RetryClassifier.layer(JavaScriptV2.correctingClockSkew)),
  "RequestHeaders.Invocation, RequestHeaders.withInvocation, RequestHeaders.headers, RequestHeaders.observeDate": (
    call
  ) => {
    const observed = RequestHeaders.observeDate("Tue, 10 Nov 2026 08:00:00 GMT")
    const headers = RequestHeaders.headers({ maxAttempts: 3 })
    const sent = Effect.all([RequestHeaders.Invocation, observed, headers, call])
    return RequestHeaders.withInvocation(withRetry(sent, awsStandard))
  },
  "AdaptiveRateLimiter.layer": (call) => Effect.provide(withRetry(call, awsAdaptive), AdaptiveRateLimiter.layer()),
  "AdaptiveRateLimiter.layerConfig": (call) =>
    Effect.provide(
      withRetry(call, awsAdaptive),
      Layer.orDie(AdaptiveRateLimiter.layerConfig({ onExceeded: Config.succeed("wait") }))
    ),
  "AdaptiveRateLimiter.layerFor": (call) =>
    Effect.provide(withRetry(call, awsAdaptive), AdaptiveRateLimiter.layerFor("a")),
  "AdaptiveRateLimiter.layerUnlimited": (call) =>
    Effect.provide(withRetry(call, awsAdaptive), AdaptiveRateLimiter.layerUnlimited),
  "RetryQuota.layerUnlimited": (call) => Effect.provide(withRetry(call, awsAdaptive), RetryQuota.layerUnlimited)
}

const simulated = Effect.flatMap(
  Simulator.decode({
    name: "small",
    seed: 1,
    duration: "30 millis",
    fleets: [{ name: "callers", to: "service", clients: 1, policy: "awsStandard" }],
    services: [{ name: "service", latency: 10 }]
  }),
  (scenario) => Simulator.run(scenario)
).pipe(Effect.orDie)

/** What is around a call, or inside. */
export const callSweeps: Sweeps = {
  ...Object.fromEntries(Object.entries(calls).map(([name, program]) => [name, { program: on(program) }])),
  "RetryStream.untilFirst": {
    program: on((call) => Stream.runDrain(RetryStream.untilFirst(Stream.fromEffect(call), awsStandard)))
  },
  "RetryStream.untilFirst, and a stream that goes on": {
    program: on((call) =>
      Stream.fromEffect(call).pipe(
        Stream.concat(Stream.fromEffect(Effect.sleep(100))),
        RetryStream.untilFirst(awsAdaptive),
        Stream.runDrain
      )
    )
  },
  "RetryStream.untilFirst, and elements before the stream has begun": {
    program: on((call) =>
      Stream.make(1).pipe(
        Stream.concat(Stream.drain(Stream.fromEffect(call))),
        Stream.concat(Stream.make(2)),
        RetryStream.untilFirst(awsAdaptive, { begins: (element: number) => element > 1 }),
        Stream.runDrain
      )
    )
  },
  "RetryLlm.untilAnswer": {
    program: on((call) =>
      Stream.make<Array<object | string>>({ type: "start" }).pipe(
        Stream.concat(Stream.fromEffect(Effect.as(call, "Aye."))),
        RetryLlm.untilAnswer(awsAdaptive),
        Stream.runDrain
      )
    )
  },
  "RetryStream.resume: runs without elements": {
    program: on((call) => Stream.runDrain(RetryStream.resume(awsStandard, () => Stream.fromEffect(call))))
  },
  "RetryStream.resume: runs that break off, and one that goes on": {
    program: on((call) => {
      const run = Stream.concat(Stream.make(1), Stream.drain(Stream.fromEffect(call)))
      return Stream.runDrain(
        RetryStream.resume(awsStandard, () => Stream.concat(run, Stream.fromEffect(Effect.sleep(15_000))))
      )
    })
  },
  "RetryStream.resume: at a limiter, and left early": {
    program: on((call) => {
      const run = () => Stream.concat(Stream.fromEffect(call), Stream.make(undefined))
      return Stream.runDrain(Stream.take(RetryStream.resume(awsAdaptive, run, { resetAfter: 0 }), 1))
    })
  },
  "SmithyGuide.make, SmithyGuide.layer": {
    // In the guide, a success never deposits what its retry took.
    quota: { initial: 100, successIncrement: 1 },
    program: on((call) => Effect.provide(RetryStrategy.run(call), SmithyGuide.layer()))
  },
  "Simulator.decode, Simulator.run, Simulator.make": { program: simulated },
  "Simulator.inVirtualTime": {
    limiter: { fillRate: 1e-6, tokens: 3 },
    program: on((call) => Simulator.inVirtualTime(withRetry(call, awsStandard)))
  },
  "ResourceLimiters.ResourceLimiters, ResourceLimiters.layer, ResourceLimiters.get, ResourceLimiters.quota, ResourceLimiters.hedge":
    {
      program: Effect.provide(
        Effect.all([
          Effect.provide(
            Hedge.hedged(Effect.sleep(3), { after: 1 }),
            Layer.merge(ResourceLimiters.get("c"), ResourceLimiters.hedge("c"))
          ),
          Effect.provide(on((call) => withRetry(call, awsAdaptive), 0), ResourceLimiters.get("a")),
          Effect.provide(
            withRetry(Effect.fail(new Kit.Transient()), AwsModes.standard({ maxAttempts: 2 })),
            ResourceLimiters.quota("b")
          )
        ], { concurrency: 3 }),
        ResourceLimiters.layer({
          idleTimeToLive: "1 second",
          concurrency: {},
          throttle: {},
          coolDown: {},
          hedge: { share: 1 }
        })
      )
    }
}
