import type { RetryStrategyV2 } from "@smithy/types"
import { AdaptiveRateLimiter, RetryQuota, withRetry } from "effect-retry"
import type { RateLimitExceeded } from "effect-retry/AdaptiveRateLimiter"
import * as AwsSdk from "effect-retry/AwsSdk"
import type { RetryPolicy } from "effect-retry/RetryPolicy"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { clients, command, sdkCalls, type Side } from "./sides.ts"

type Services = RetryQuota.RetryQuota | AdaptiveRateLimiter.AdaptiveRateLimiter

type Policy = RetryPolicy<unknown, RateLimitExceeded, Services>

/** A quota and a limiter, with what it takes to run effects on them from promises. */
const runtimeOf = (limiter: Layer.Layer<AdaptiveRateLimiter.AdaptiveRateLimiter>) =>
  ManagedRuntime.make(Layer.merge(RetryQuota.layer(), limiter))

/** Our policy as the strategy of the SDK's loop. */
export const strategyOf = (
  policy: Policy,
  limiter = AdaptiveRateLimiter.layer()
): Promise<RetryStrategyV2> => runtimeOf(limiter).runPromise(AwsSdk.makeRetryStrategy(policy))

/** An unmodified client that retries by our policy, in its own loop. */
export const strategyCalls = async (
  name: string,
  policy: Policy,
  limiter = AdaptiveRateLimiter.layer()
): Promise<Side> => {
  const runtime = runtimeOf(limiter)
  const retryStrategy = await runtime.runPromise(AwsSdk.makeRetryStrategy(policy))
  return sdkCalls(name, { retryStrategy }, () => runtime.runPromise(RetryQuota.balance))
}

/** The SDK's calls as effects that our policy retries. */
export const effectCalls = (
  name: string,
  policy: Policy,
  limiter = AdaptiveRateLimiter.layer()
): Side => {
  const runtime = runtimeOf(limiter)
  const { at, watch } = clients({})
  return {
    name,
    watch,
    capacity: () => runtime.runPromise(RetryQuota.balance),
    call: (port, options = {}) =>
      runtime.runPromise(
        AwsSdk.send(at(port), command(options)).pipe(withRetry(policy)),
        options.signal === undefined ? {} : { signal: options.signal }
      )
  }
}
