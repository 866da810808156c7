/**
 * Retrying functions that return promises, for code outside Effect.
 *
 * A call runs on the same engine as `withRetry`: the same decisions, delays, tokens and observers, the error unchanged.
 * A `Response` of `fetch` is read like an error: one with a status such as 503 is retried, and the last one is the
 * result. The services that an Effect program provides, above all the quota, must come from somewhere: {@link make}
 * makes a quota for one resource, {@link retryPromise} has one per policy object, and both accept the context of an
 * Effect program instead.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { compiledOf } from "../engine/policy/policy.ts"
import * as AdaptiveRateLimiter from "../gates/AdaptiveRateLimiter.ts"
import { checksOf, rejectUnknown } from "../internal/checks.ts"
import { monotonicMillis } from "../internal/clock.ts"
import { remembering } from "../internal/remembering.ts"
import { warnUnshared } from "../internal/sharing.ts"
import type { Limiters } from "../resources/ResourceLimiters.ts"
import * as RetryQuota from "../RetryQuota.ts"
import { call, promised, settingOf, signalOf, valid } from "./internal/promiseCall.ts"
import type { AttemptFunction, CallOptions, ContextOptions, Policy, RetryOptions } from "./internal/promiseOptions.ts"

export type {
  AttemptContext,
  AttemptFunction,
  CallOptions,
  ContextOptions,
  Policy,
  RetryOptions,
  Verdict
} from "./internal/promiseOptions.ts"

/**
 * A function that retries.
 *
 * @category models
 * @since 0.1.0
 */
export type RetryFunction = <A>(f: AttemptFunction<A>, options?: CallOptions) => Promise<A>

/**
 * What the calls of a resource share.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends ContextOptions, RetryOptions {
  /** Makes a quota, even if the context has one. Default: that of the context, or one of 500 tokens. */
  readonly quota?: RetryQuota.Options | undefined
  /**
   * Makes a limiter, even if the context has one. Default: that of the context, or a new one if the policy requires it.
   */
  readonly limiter?: AdaptiveRateLimiter.Options | undefined
}

/**
 * The options, which can be omitted unless the policy needs services that only a context can provide: a missing quota
 * or limiter is made.
 *
 * @category models
 * @since 0.1.0
 */
export type Needing<R, O> = [Exclude<R, Limiters>] extends [never] ? readonly [options?: O | undefined]
  : readonly [options: O & { readonly context: Context.Context<Exclude<R, Limiters>> }]

const none: Context.Context<never> = /* @__PURE__ */ Context.empty()

/** The quota of an object that is meant to last: of a policy, or of a function that retries. */
const ownedOf = (quota: RetryQuota.Service, clock: Clock.Clock) => {
  const madeAtMillis = monotonicMillis(clock)
  let retriedAtMillis = -Infinity
  return {
    quota,
    /** Notes that a retry is made. */
    retried: () => {
      retriedAtMillis = monotonicMillis(clock)
    },
    /** The object is garbage. */
    dropped: (what: string, context: Context.Context<never>): void => {
      const { capacity: whole, store } = quota
      const livedMillis = retriedAtMillis - madeAtMillis
      warnUnshared({ context, clock }, what, { lost: whole - store.balance(clock), whole, livedMillis })
    }
  }
}

type Owned = ReturnType<typeof ownedOf>

/** Must not lead back to the object: it would never be garbage. Some Workers lack it. */
const owners = typeof FinalizationRegistry === "undefined"
  ? undefined
  : /* @__PURE__ */ new FinalizationRegistry<() => void>((dropped) => dropped())

/** Warns if the object is dropped as one of many that should have been one. */
const watch = (object: WeakKey, owned: Owned | undefined, context: Context.Context<never>, what: string): void => {
  if (owned === undefined) return
  const kept = context === none ? undefined : new WeakRef(context)
  owners?.register(object, () => owned.dropped(what, kept?.deref() ?? none))
}

/** What calls run with: the context, and the quota and the limiter that it was missing. */
const completed = (policy: Policy<unknown>, options: Options) => {
  const { context = none, limiter, quota } = options
  const run = Effect.runSyncWith(context)
  let env: Context.Context<never> = context
  let owned: Owned | undefined
  if (quota !== undefined || Context.getOrUndefined(context, RetryQuota.RetryQuota) === undefined) {
    owned = ownedOf(run(RetryQuota.make(quota)), Context.get(context, Clock.Clock))
    env = Context.add(env, RetryQuota.RetryQuota, owned.quota)
  }
  const { AdaptiveRateLimiter: tag, make } = AdaptiveRateLimiter
  const isMissing = compiledOf(policy).adaptive && Context.getOrUndefined(context, tag) === undefined
  if (limiter !== undefined || isMissing) env = Context.add(env, tag, run(make(limiter)))
  return { env, owned, setting: settingOf(policy, env, options, { retried: owned?.retried }) }
}

/**
 * Makes a function that retries calls of one resource, with its own quota. Throws `InvalidOption` when an option is
 * impossible.
 *
 * **Details**
 *
 * A resource is whatever can fail on its own: a service, a table, a tenant. Make one function for each, where you make
 * its client.
 *
 * **Example** (A client of a table)
 *
 * ```ts
 * const retryOrders = RetryPromise.make(awsStandard, { quota: { capacity: 100 } })
 * const order = await retryOrders(({ signal }) => client.getItem(key, { signal }), { signal })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <R>(policy: Policy<R>, ...[passed]: Needing<R, Options>): RetryFunction => {
  const options: Options = passed === undefined ? {} : passed
  valid(checksOf("RetryPromise.make", options), policy, options, "quota", "limiter")
  const { owned, setting } = completed(policy, options)
  const retry: RetryFunction = (f, options) =>
    promised(() => {
      // All other options belong where the function was made.
      const check = checksOf("retryPromise", options ?? {})
      check.names.add("signal")
      rejectUnknown(check, options ?? {})
      return call(f, { ...setting, signal: signalOf("retryPromise", options) })
    })
  watch(retry, owned, options.context ?? none, "function of RetryPromise.make. Make it once")
  return retry
}

/** What the calls with a policy share if their context provides nothing. */
const sharedOf = /* @__PURE__ */ remembering((policy: Policy<unknown>) => {
  const made = completed(policy, {})
  watch(policy, made.owned, none, "policy object for retryPromise. Keep the policy in a constant")
  return made
})

/**
 * Calls a function, and repeats the call as the policy says, until it returns a value.
 *
 * **Details**
 *
 * Rejects with the error of the last attempt, unchanged. A `Response` with a status from 400 up that the classifier
 * knows, such as 429 or 503, counts as a failed attempt; the last one is the result, as without retries. A response
 * that is retried is canceled, so its body is gone. An aborted call rejects immediately with the reason of the signal,
 * even during the backoff; if the signal is already aborted, the function is never called. Tokens of a retry that was
 * not sent go back. The classifier is that of the context, by default `RetryClassifier.defaultClassifier`: errors it
 * does not know are not retried. An invalid policy or option, or an unknown option, rejects with `InvalidOption`;
 * nothing is called.
 *
 * **Gotchas**
 *
 * Without a quota in the context, all calls with the same policy object share one of 500 tokens. Calls of different
 * resources should not: give each its own policy object, such as another `AwsModes.standard()`, or its own function,
 * made by {@link make}. Keep both: one made for each call has a full quota each time. A warning says so, once.
 *
 * A POST or PATCH that may have run is not sent again if its error shows it, as those of axios, got and ky do. A
 * `Response` does not show its method: `docs/promises.md` says how to add the request.
 *
 * **Example** (A request)
 *
 * ```ts
 * const body = await retryPromise(({ signal }) => get("/orders", { signal }), awsStandard, { signal })
 * ```
 *
 * **Example** (Options in place of services)
 *
 * ```ts
 * const page = await retryPromise((attempt) => get("/", attempt), awsStandard, {
 *   retries: 5,
 *   classify: (error) => error instanceof RangeError ? false : undefined,
 *   onRetry: (error, { delay }) => console.log(`retry in ${delay} after ${RetryObserver.errorType(error)}`)
 * })
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const retryPromise = <A, R>(
  f: AttemptFunction<A>,
  policy: Policy<R>,
  ...[passed]: Needing<R, CallOptions & RetryOptions & ContextOptions>
): Promise<A> =>
  promised(() => {
    const options: CallOptions & RetryOptions & ContextOptions = passed === undefined ? {} : passed
    valid(checksOf("retryPromise", options), policy, options, "signal")
    const { env, owned, setting } = sharedOf(policy)
    const signal = signalOf("retryPromise", options)
    if (Object.keys(options).every((name) => name === "signal")) return call(f, { ...setting, signal })
    const own = Context.merge(env, options.context ?? none)
    return call(f, { ...settingOf(policy, own, options, { retried: owned?.retried }), signal })
  })
