/** What the adaptive limiter costs a call that succeeds, before the service has throttled and after. */
import { DefaultRateLimiter } from "@smithy/core/retry"
import { AdaptiveRateLimiter, awsAdaptive, awsStandard, RetryQuota, type SendGate, withRetry } from "effect-retry"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { smithy } from "./calls.ts"
import * as effects from "./effects.ts"
import * as gates from "./gates.ts"
import type { Subject } from "./harness.ts"
import { effectOf, functionOf } from "./operations.ts"
import * as peers from "./peers.ts"

export const bookkeeping = "AdaptiveRateLimiter: a send token, a response"
export const smithyBookkeeping = "@smithy/core DefaultRateLimiter: a send token, a response"
const oursAdaptive = "withRetry(op, awsAdaptive)"
export const smithyAdaptive = "@smithy/core AdaptiveRetryStrategy"
const oursThrottled = "withRetry(op, awsAdaptive), tokens taken"

/** Every look at it is 20 milliseconds after the last, so that no send waits for a token. */
const steady = (): Clock.Clock => {
  let nanos = 0n
  const tick = () => nanos += 20_000_000n
  const millis = () => Number(tick()) / 1e6
  return {
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: tick,
    currentTimeNanos: Effect.sync(tick),
    monotonicTimeNanosUnsafe: tick,
    monotonicTimeNanos: Effect.sync(tick),
    sleep: () => Effect.void
  }
}

const contextOf = async (clock: Clock.Clock, throttles: number) => {
  const make = Effect.gen(function*() {
    const limiter = yield* AdaptiveRateLimiter.make()
    for (let n = 0; n < 200; n++) yield* limiter.update(false)
    for (let n = 0; n < throttles; n++) yield* limiter.update(true)
    for (let n = 0; n < 200; n++) yield* limiter.update(false)
    return Context.make(RetryQuota.RetryQuota, yield* RetryQuota.make()).pipe(
      Context.add(AdaptiveRateLimiter.AdaptiveRateLimiter, limiter)
    )
  })
  return Context.add(await Effect.runPromise(Effect.provideService(make, Clock.Clock, clock)), Clock.Clock, clock)
}

/** The two limiters alone, as the two libraries drive them on the way of a call that succeeds. */
const alone = (context: Awaited<ReturnType<typeof contextOf>>): ReadonlyArray<Subject> => {
  const { gate } = Context.get(context, AdaptiveRateLimiter.AdaptiveRateLimiter)
  const clock = Context.get(context, Clock.Clock)
  const limiter = new DefaultRateLimiter()
  let pass!: SendGate.Pass
  const send: SendGate.Send = {
    attempt: 1,
    context,
    get nowMillis() {
      return Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    },
    hold: (held) => {
      pass = held
    }
  }
  return [
    {
      name: bookkeeping,
      run: async (operations) => {
        for (let n = 0; n < operations; n++) {
          void gate!.enter(send)
          pass.settle({
            _tag: "Success",
            value: undefined,
            error: undefined,
            info: undefined,
            nowMillis: send.nowMillis
          })
        }
      }
    },
    {
      name: smithyBookkeeping,
      run: async (operations) => {
        for (let n = 0; n < operations; n++) {
          void limiter.getSendToken()
          limiter.updateClientSendingRate({})
        }
      }
    }
  ]
}

const serial = (name: string, caller: peers.Caller): Subject => {
  const made = caller(functionOf("success"))
  return {
    name,
    run: async (operations) => {
      for (let n = 0; n < operations; n++) await made()
    }
  }
}

export const adaptive = async (): Promise<ReadonlyArray<Subject>> => {
  const real = await Effect.runPromise(Effect.clockWith(Effect.succeed))
  const measuring = await contextOf(real, 0)
  const taking = await contextOf(steady(), 1)
  const call = withRetry(effectOf("success"), awsAdaptive)
  const ofEffect = (
    name: string,
    retried: Effect.Effect<unknown, unknown, RetryQuota.RetryQuota | AdaptiveRateLimiter.AdaptiveRateLimiter>,
    context: typeof measuring
  ): Subject => ({
    name,
    run: (operations) => Effect.runPromise(Effect.provideContext(effects.repeated(retried, operations), context))
  })
  const standard = await effects.contextOf({})
  return [
    ...alone(measuring),
    {
      name: effects.ours,
      run: (operations) =>
        Effect.runPromise(
          Effect.provideContext(effects.repeated(withRetry(effectOf("success"), awsStandard), operations), standard)
        )
    },
    ofEffect(oursAdaptive, call, measuring),
    ofEffect(oursThrottled, call, taking),
    serial(smithy, peers.smithy()),
    serial(smithyAdaptive, peers.smithyAdaptive)
  ]
}

/** All gates of the library, and the strategy of the SDK that has a quota and a limiter. */
export const allGates = async (): Promise<ReadonlyArray<Subject>> => {
  const { [gates.allGates]: context } = await gates.surroundings()
  return [
    serial(smithyAdaptive, peers.smithyAdaptive),
    {
      name: gates.allGates,
      run: (operations) =>
        Effect.runPromise(Effect.provideContext(effects.repeated(gates.call(), operations), context!))
    }
  ]
}
