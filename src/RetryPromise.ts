/**
 * Retrying functions that return promises, for code outside Effect.
 *
 * A call is run by the same engine as `withRetry`: the same decisions, delays, tokens and observers, the error unchanged.
 * What an Effect program provides has to come from somewhere here too, the quota above all. {@link make} makes it for one
 * resource; {@link retryPromise} has one for each policy object; both take the context of an Effect program instead.
 *
 * @since 0.1.0
 */

import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as AdaptiveRateLimiter from "./AdaptiveRateLimiter.ts"
import { withRetry } from "./Attempt.ts"
import { checks } from "./internal/checks.ts"
import { partsOf } from "./internal/policy/policy.ts"
import { get } from "./internal/safe.ts"
import type { Limiters } from "./ResourceLimiters.ts"
import { type Attempted, isRetryPolicy, type RetryPolicy } from "./RetryPolicy.ts"
import * as RetryQuota from "./RetryQuota.ts"

/**
 * One attempt of a call.
 *
 * @category models
 * @since 0.1.0
 */
export interface AttemptContext {
  /** The number of the attempt: 1 for the first. */
  readonly attempt: number
  /** Aborted, with the caller's reason, when the caller gives up. It is made for this attempt alone. */
  readonly signal: AbortSignal
}

/**
 * What is retried. A value, a promise, or a failure of either kind: thrown or rejected.
 *
 * @category models
 * @since 0.1.0
 */
export type AttemptFunction<A> = (attempt: AttemptContext) => PromiseLike<A> | A

/**
 * What a caller may ask.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallOptions {
  /** Ends the call when it is aborted: the promise rejects with its reason, at once. `null` is none, as for `fetch`. */
  readonly signal?: AbortSignal | null | undefined
}

/**
 * A function that retries.
 *
 * @category models
 * @since 0.1.0
 */
export type Retry = <A>(f: AttemptFunction<A>, options?: CallOptions) => Promise<A>

/**
 * The policies that can be used: of errors of any type, since a promise does not tell.
 *
 * @category models
 * @since 0.1.0
 */
export type Policy<R> = RetryPolicy<Attempted, R, unknown>

/**
 * Where services come from.
 *
 * @category models
 * @since 0.1.0
 */
export interface ContextOptions {
  /**
   * Services of an Effect program: its quota, limiter, classifier, observer, clock, tracer. `ManagedRuntime` gives them
   * as `await runtime.context()`. What is in it is used; a quota or a limiter that is missing is made.
   */
  readonly context?: Context.Context<never> | undefined
}

/**
 * What the calls of a resource share.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends ContextOptions {
  /** Makes a quota, whatever the context has. Default: that of the context, or one of 500 tokens. */
  readonly quota?: RetryQuota.Options | undefined
  /** Makes a limiter, whatever the context has. Default: that of the context, or one if the policy asks for it. */
  readonly limiter?: AdaptiveRateLimiter.Options | undefined
}

/**
 * The options, which may be left out unless the policy needs services that only a context can bring: a quota and a limiter
 * are made where it brings none.
 *
 * @category models
 * @since 0.1.0
 */
export type Needing<R, O> = [Exclude<R, Limiters>] extends [never] ? readonly [options?: O | undefined]
  : readonly [options: O & { readonly context: Context.Context<Exclude<R, Limiters>> }]

/** The context, with the quota and the limiter that it lacks. */
const completed = (policy: Policy<unknown>, options: Options): Context.Context<never> => {
  const { context = Context.empty(), limiter, quota } = options
  const run = Effect.runSyncWith(context)
  let env: Context.Context<never> = context
  if (quota !== undefined || Context.getOrUndefined(context, RetryQuota.RetryQuota) === undefined) {
    env = Context.add(env, RetryQuota.RetryQuota, run(RetryQuota.make(quota)))
  }
  const { AdaptiveRateLimiter: tag, make } = AdaptiveRateLimiter
  const isMissing = partsOf(policy).adaptive && Context.getOrUndefined(context, tag) === undefined
  if (limiter !== undefined || isMissing) env = Context.add(env, tag, run(make(limiter)))
  return env
}

/** One send of the function, as an effect. A promise that nobody waits for any more is left alone, whatever becomes of it. */
const sending = <A>(f: AttemptFunction<A>, signal: AbortSignal | undefined): Effect.Effect<A, unknown> => {
  let attempt = 0
  return Effect.callback<A, unknown>((resume) => {
    const controller = new AbortController()
    const failed = (error: unknown) => resume(Effect.fail(error))
    try {
      const sent = f({ attempt: ++attempt, signal: controller.signal })
      Promise.resolve(sent).then((value) => resume(Effect.succeed(value)), failed)
    } catch (error) {
      failed(error)
    }
    return Effect.sync(() => controller.abort(signal?.reason))
  })
}

/** The calls that wait for one signal. It has one listener for all of them, and none when there are none. */
class Callers {
  private readonly interrupts = new Set<() => void>()
  private readonly signal: AbortSignal
  private readonly aborted = () => {
    for (const interrupt of this.interrupts) interrupt()
  }

  constructor(signal: AbortSignal) {
    this.signal = signal
  }

  /** Interrupts the fiber when the signal is aborted, unless the fiber has ended before. */
  add(fiber: Fiber.Fiber<unknown, unknown>): void {
    const interrupt = () => fiber.interruptUnsafe()
    if (this.interrupts.size === 0) this.signal.addEventListener("abort", this.aborted)
    this.interrupts.add(interrupt)
    fiber.addObserver(() => {
      this.interrupts.delete(interrupt)
      if (this.interrupts.size === 0) this.signal.removeEventListener("abort", this.aborted)
    })
  }
}

const callers = new WeakMap<AbortSignal, Callers>()

const interruptedBy = (signal: AbortSignal) => (fiber: Fiber.Fiber<unknown, unknown>): void => {
  if (signal.aborted) return fiber.interruptUnsafe()
  let known = callers.get(signal)
  if (known === undefined) callers.set(signal, known = new Callers(signal))
  known.add(fiber)
}

const isSignal = (u: unknown): u is AbortSignal =>
  typeof get(u, "aborted") === "boolean" && typeof get(u, "addEventListener") === "function"

const signalOf = (options: CallOptions | undefined): AbortSignal | undefined => {
  const signal = options?.signal ?? undefined
  return signal === undefined || isSignal(signal)
    ? signal
    : checks("retryPromise").reject("signal", signal, "an AbortSignal")
}

const call = <A, R>(
  f: AttemptFunction<A>,
  policy: Policy<R>,
  env: Context.Context<never>,
  signal: AbortSignal | undefined
): Promise<A> => {
  if (signal?.aborted === true) return Promise.reject(signal.reason)
  const retried = withRetry(sending(f, signal), policy)
  // What the policy needs has been made, or the options would not have compiled without a context that brings it.
  return Effect.runPromiseExitWith(env as Context.Context<R>)(retried, {
    onFiberStart: signal === undefined ? undefined : interruptedBy(signal)
  }).then((exit) => {
    if (Exit.isSuccess(exit)) return exit.value
    throw signal?.aborted === true && Cause.hasInterrupts(exit.cause) ? signal.reason : Cause.squash(exit.cause)
  })
}

const valid = (constructorName: string, policy: Policy<unknown>, context: unknown): void => {
  const { reject } = checks(constructorName)
  if (!isRetryPolicy(policy)) reject("policy", policy, "a RetryPolicy")
  if (context !== undefined && !Context.isContext(context)) reject("context", context, "a Context")
}

/** A quota that cannot pay for one retry would switch retries off. */
const affordable = (policy: Policy<unknown>, quota: RetryQuota.Options | undefined): void => {
  const cost = partsOf(policy).quota?.cost ?? 0
  if (quota?.capacity !== undefined && quota.capacity < cost) {
    checks("RetryPromise.make").reject("quota.capacity", quota.capacity, `at least ${cost}, the cost of a retry`)
  }
}

/** What is wrong with the options rejects too: who gets a promise does not look for exceptions. */
const promised = <A>(f: () => Promise<A>): Promise<A> => {
  try {
    return f()
  } catch (error) {
    return Promise.reject(error)
  }
}

/**
 * Makes a function that retries calls of one resource, with a quota of its own. Throws `InvalidOption` when an option is
 * impossible.
 *
 * **Details**
 *
 * A resource is what can fail on its own: a service, a table, a tenant. Make one function for each, where the client of
 * the resource is made.
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
export const make = <R>(policy: Policy<R>, ...[options]: Needing<R, Options>): Retry => {
  valid("RetryPromise.make", policy, options?.context)
  affordable(policy, options?.quota)
  const env = completed(policy, options ?? {})
  return (f, options) => promised(() => call(f, policy, env, signalOf(options)))
}

/** What the calls with a policy share if they bring nothing of their own. */
const shared = new WeakMap<Policy<unknown>, Context.Context<never>>()

const sharedOf = (policy: Policy<unknown>): Context.Context<never> => {
  let env = shared.get(policy)
  if (env === undefined) shared.set(policy, env = completed(policy, {}))
  return env
}

/**
 * Calls a function, and again as the policy says, until it gives a value.
 *
 * **Details**
 *
 * Rejects with the very error of the last attempt. An aborted call rejects with the reason of the signal, at once, also
 * from within the back-off; a call whose signal is aborted already never calls the function. Tokens of a retry that was
 * not sent go back. The classifier is that of the context, by default `RetryClassifier.defaultClassifier`: what it does
 * not know is not retried. An impossible policy, context or signal rejects with `InvalidOption`; nothing is called.
 *
 * **Gotchas**
 *
 * Without a quota in the context, all calls with the same policy object share one of 500 tokens. Calls of different
 * resources should not: give each a policy object of its own, such as another `AwsModes.standard()`, or a function of
 * its own, by {@link make}.
 *
 * **Example** (A request)
 *
 * ```ts
 * const body = await retryPromise(({ signal }) => get("/orders", { signal }), awsStandard, { signal })
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const retryPromise = <A, R>(
  f: AttemptFunction<A>,
  policy: Policy<R>,
  ...[options]: Needing<R, CallOptions & ContextOptions>
): Promise<A> =>
  promised(() => {
    const context = options?.context
    valid("retryPromise", policy, context)
    const env = sharedOf(policy)
    return call(f, policy, context === undefined ? env : Context.merge(env, context), signalOf(options))
  })
