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

import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { changed, type Compiled } from "../engine/compiled.ts"
import { retrying } from "../engine/loop.ts"
import { lifting } from "../engine/policy/joinedPolicies.ts"
import { compiledOf } from "../engine/policy/policy.ts"
import { patiently } from "../engine/wait.ts"
import * as AdaptiveRateLimiter from "../gates/AdaptiveRateLimiter.ts"
import { also, callable, checks, checksOf, rejectUnknown } from "../internal/checks.ts"
import { monotonicMillis } from "../internal/clock.ts"
import { warnUnshared } from "../internal/sharing.ts"
import { get } from "../internal/tryGet.ts"
import type { Limiters } from "../resources/ResourceLimiters.ts"
import * as RetryClassifier from "../RetryClassifier.ts"
import type { Retry, Stop } from "../RetryDecision.ts"
import * as RetryInfo from "../RetryInfo.ts"
import * as RetryObserver from "../RetryObserver.ts"
import { isRetryPolicy, limits, type RetryPolicy } from "../RetryPolicy.ts"
import * as RetryQuota from "../RetryQuota.ts"
import { callersOf, isSignal } from "./internal/abortSignals.ts"

/**
 * One attempt of a call.
 *
 * @category models
 * @since 0.1.0
 */
export interface AttemptContext {
  /** The number of the attempt: 1 for the first. */
  readonly attempt: number
  /** Aborted, with the caller's reason, when the caller gives up. Each attempt has its own. */
  readonly signal: AbortSignal
}

/**
 * The function to retry. It returns a value or a promise, and fails by throwing or rejecting.
 *
 * @category models
 * @since 0.1.0
 */
export type AttemptFunction<A> = (attempt: AttemptContext) => PromiseLike<A> | A

/**
 * Options of one call.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallOptions {
  /**
   * Ends the call when it is aborted: the promise rejects immediately with its reason. `null` means none, as for
   * `fetch`.
   */
  readonly signal?: AbortSignal | null | undefined
}

/**
 * A function that retries.
 *
 * @category models
 * @since 0.1.0
 */
export type RetryFunction = <A>(f: AttemptFunction<A>, options?: CallOptions) => Promise<A>

/**
 * The policies that can be used: for errors of any type, since promises do not type their errors.
 *
 * @category models
 * @since 0.1.0
 */
export type Policy<R> = RetryPolicy<unknown, unknown, R>

/**
 * Where services come from.
 *
 * @category models
 * @since 0.1.0
 */
export interface ContextOptions {
  /**
   * Services of an Effect program: its quota, limiter, classifier, observer, clock, tracer, for example
   * `await runtime.context()` of a `ManagedRuntime`. What it has is used; a missing quota or limiter is made.
   */
  readonly context?: Context.Context<never> | undefined
}

/**
 * What a caller can change about a policy, or be notified of, without services.
 *
 * @category models
 * @since 0.1.0
 */
export interface RetryOptions {
  /** The most retries, in place of the policy's own limit: a whole number of at least 0, or `Infinity`. */
  readonly retries?: number | undefined
  /**
   * Asked first about every failure: a thrown or rejected value, or a `Response` with a status from 400 up. `true`
   * retries it, `false` never does, facts such as `{ throttling: true, retryAfter: "2 seconds" }` say more; `undefined`
   * leaves it to the classifier of the context. May return a promise of any of these. If it throws, or a promise takes
   * longer than a minute, that counts as `undefined`.
   */
  readonly classify?: ((error: unknown) => Verdict | PromiseLike<Verdict>) | undefined
  /** A retry will be made, after its delay. The call waits for a returned promise, up to a minute; an exception ends it. */
  readonly onRetry?: ((error: unknown, info: Retry) => unknown) | undefined
  /** A failed call is not retried. The call waits for a returned promise, up to a minute. */
  readonly onStop?: ((error: unknown, info: Stop) => unknown) | undefined
}

/**
 * What is known about a failure: whether to retry it, or its facts. `undefined` leaves it to the classifier of the
 * context.
 *
 * @category models
 * @since 0.1.0
 */
export type Verdict = boolean | RetryInfo.Facts | undefined

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
class Owned {
  private readonly madeAtMillis: number
  private retriedAtMillis = -Infinity

  constructor(readonly quota: RetryQuota.Service, private readonly clock: Clock.Clock) {
    this.madeAtMillis = monotonicMillis(clock)
  }

  /** Notes that a retry is made. */
  retried(): void {
    this.retriedAtMillis = monotonicMillis(this.clock)
  }

  /** The object is garbage. */
  dropped(what: string, context: Context.Context<never>): void {
    const { capacity: whole, store } = this.quota
    const livedMillis = this.retriedAtMillis - this.madeAtMillis
    warnUnshared(context, this.clock, what, { lost: whole - store.balance(this.clock), whole, livedMillis })
  }
}

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

/** The context, with the quota and the limiter it was missing. */
const completed = (policy: Policy<unknown>, options: Options) => {
  const { context = none, limiter, quota } = options
  const run = Effect.runSyncWith(context)
  let env: Context.Context<never> = context
  let owned: Owned | undefined
  if (quota !== undefined || Context.getOrUndefined(context, RetryQuota.RetryQuota) === undefined) {
    owned = new Owned(run(RetryQuota.make(quota)), Context.get(context, Clock.Clock))
    env = Context.add(env, RetryQuota.RetryQuota, owned.quota)
  }
  const { AdaptiveRateLimiter: tag, make } = AdaptiveRateLimiter
  const isMissing = compiledOf(policy).adaptive && Context.getOrUndefined(context, tag) === undefined
  if (limiter !== undefined || isMissing) env = Context.add(env, tag, run(make(limiter)))
  return { env, owned }
}

/** A `fetch` response from any library and realm. */
const isResponse = (u: unknown): u is Response =>
  get(u, Symbol.toStringTag) === "Response" && typeof get(u, "status") === "number"

/** No caller will read it: this frees its connection. A body already read is left alone. */
const discard = (response: Response): void => {
  response.body?.cancel().catch(() => {})
}

type Facts = Option.Option<RetryInfo.RetryInfo>

/** One call of a function. */
class Sends<A> {
  /** The last response that counted as a failure. */
  private response: Response | undefined = undefined
  private attempt = 0
  /** The last failure judged, and what is known about it. */
  private error: unknown = undefined
  private info: Facts = Option.none()

  constructor(
    private readonly f: AttemptFunction<A>,
    private readonly signal: AbortSignal | undefined,
    private readonly env: Context.Context<never>,
    private readonly classify: RetryOptions["classify"]
  ) {}

  /** The context the call runs in. The caller's function is asked before the engine asks about a failure. */
  get context(): Context.Context<never> {
    return this.classify === undefined ? this.env : Context.add(
      this.env,
      RetryClassifier.CurrentClassifier,
      (error) => error === this.error ? this.info : this.classified(error)
    )
  }

  /** One send, as an effect. A promise that the call no longer waits for is ignored. */
  readonly send: Effect.Effect<A, unknown> = Effect.callback<A, unknown>((resume) => {
    const controller = new AbortController()
    const failed = (error: unknown) => this.failed(error, resume)
    try {
      const sent = this.f({ attempt: ++this.attempt, signal: controller.signal })
      Promise.resolve(sent).then((value) => {
        if (!isResponse(value)) return resume(Effect.succeed(value))
        if (this.signal !== undefined) callersOf(this.signal).follow(value, controller)
        if (value.status < 400) return resume(Effect.succeed(value))
        this.response = value
        failed(value)
      }, failed)
    } catch (error) {
      failed(error)
    }
    return Effect.sync(() => controller.abort(this.signal?.reason))
  })

  /** Whether it is a response that was not thrown: if it is the last, it is the result of the call. */
  isAnswered(error: unknown): boolean {
    return this.response !== undefined && error === this.response
  }

  private failed(error: unknown, resume: (effect: Effect.Effect<A, unknown>) => void): void {
    const { classify } = this
    if (classify === undefined && !this.isAnswered(error)) return resume(Effect.fail(error))
    const verdict = classify === undefined ? Effect.void : patiently(
      Effect.promise(() => Promise.resolve().then(() => classify(error)).catch(() => undefined))
    )
    // In the fiber: a hint may be a date, which needs the clock of the call.
    const judged = Effect.flatMap(verdict, (verdict) => {
      this.error = error
      this.info = this.infoOf(error, verdict)
      // A response that is not known to be a failure is the result.
      const isAnswer = this.isAnswered(error) && Option.isNone(this.info)
      return isAnswer ? Effect.succeed(error as A) : Effect.fail(error)
    })
    resume(judged)
  }

  private infoOf(error: unknown, verdict: Verdict | void): Facts {
    if (verdict === false) return Option.some(RetryInfo.notRetryable)
    if (typeof verdict === "object" && verdict !== null) return Option.some(RetryInfo.make(verdict))
    const classified = this.classified(error)
    if (verdict === undefined || verdict === null) return classified
    if (verdict !== true) return checks("retryPromise").reject("classify", verdict, "true, false, facts or undefined")
    const { safety, ...facts } = Option.getOrElse(classified, () => RetryInfo.notRetryable)
    return Option.some(safety === "No" ? RetryInfo.transient : RetryInfo.make(facts))
  }

  private classified(error: unknown): Facts {
    return RetryClassifier.classify(Context.get(this.env, RetryClassifier.CurrentClassifier), error)
  }
}

const interruptedBy = (signal: AbortSignal) => (fiber: Fiber.Fiber<unknown, unknown>): void =>
  signal.aborted ? fiber.interruptUnsafe() : callersOf(signal).add(fiber)

const signalOf = (options: CallOptions | undefined): AbortSignal | undefined => {
  const signal = options?.signal ?? undefined
  return signal === undefined || isSignal(signal)
    ? signal
    : checks("retryPromise").reject("signal", signal, "an AbortSignal")
}

const isThenable = (u: unknown): u is PromiseLike<unknown> => typeof get(u, "then") === "function"

/** Waits for what a callback returns. */
const awaited = (returned: unknown): Effect.Effect<void> | undefined =>
  isThenable(returned) ? Effect.asVoid(Effect.promise(() => Promise.resolve(returned))) : undefined

/** The context, with the callbacks of the options added to its observer, and unread responses discarded. */
const observed = (
  env: Context.Context<never>,
  { onRetry, onStop }: RetryOptions,
  owned: Owned | undefined
): Context.Context<never> => {
  const callObserver: RetryObserver.RetryObserver = {
    onRetry: onRetry && ((retry, error) => awaited(onRetry(error, retry))),
    onStop: onStop && ((stop, error) => awaited(onStop(error, stop)))
  }
  const discarding = {
    onRetry: (_: Retry, error: unknown) => {
      owned?.retried()
      if (isResponse(error)) discard(error)
    }
  }
  const { combine, CurrentObserver, observerOf } = RetryObserver
  return Context.add(env, CurrentObserver, combine(combine(observerOf(env), callObserver), discarding))
}

/** The policy with the limit of the options. Failures judged final are final, under any policy. */
const compiledWith = (policy: Policy<unknown>, { classify, retries }: RetryOptions): Compiled => {
  const orFinal: Compiled["whileRetryable"] = ({ error, info }) =>
    info?.safety !== "No" || (classify === undefined && !isResponse(error))
  return changed(compiledOf(policy), (compiled) => ({
    ...(typeof retries === "number"
      ? { ...lifting({ maxAttempts: Infinity })(compiled), maxAttempts: retries + 1 }
      : {}),
    whileRetryable: compiled.whileRetryable === "off" ? orFinal : compiled.whileRetryable
  }))
}

/** What the calls of a function run with. */
interface Setting {
  readonly compiled: Compiled
  readonly env: Context.Context<never>
  readonly classify: RetryOptions["classify"]
}

const settingOf = (
  policy: Policy<unknown>,
  env: Context.Context<never>,
  options: RetryOptions,
  owned: Owned | undefined
): Setting => ({
  compiled: compiledWith(policy, options),
  env: observed(env, options, owned),
  classify: options.classify
})

const call = <A>(
  f: AttemptFunction<A>,
  { classify, env, compiled }: Setting,
  signal: AbortSignal | undefined
): Promise<A> => {
  if (typeof f !== "function") {
    if (isThenable(f)) Promise.resolve(f).catch(() => {})
    return checks("retryPromise").reject("f", f, "a function that is called for each attempt, such as () => fetch(url)")
  }
  if (signal?.aborted === true) return Promise.reject(signal.reason)
  const sends = new Sends(f, signal, env, classify)
  // Everything the policy needs exists: otherwise the options would not have compiled without a context.
  return Effect.runPromiseExitWith(sends.context as Context.Context<any>)(retrying(sends.send, compiled), {
    onFiberStart: signal === undefined ? undefined : interruptedBy(signal)
  }).then((exit) => {
    if (Exit.isSuccess(exit)) return exit.value
    if (signal?.aborted === true && Cause.hasInterrupts(exit.cause)) throw signal.reason
    const error = Cause.squash(exit.cause)
    if (sends.isAnswered(error)) return error as A
    throw error
  })
}

const valid = (
  policy: Policy<unknown>,
  options: (ContextOptions & RetryOptions) | undefined = {},
  constructorName: string,
  ...names: ReadonlyArray<string>
): void => {
  const check = checksOf(constructorName, options)
  if (!isRetryPolicy(policy)) check.reject("policy", policy, "a RetryPolicy")
  also(check, ...names, "context", "retries", "classify", "onRetry", "onStop")
  rejectUnknown(check, options)
  const { context, retries, ...callbacks } = options
  if (context !== undefined && !Context.isContext(context)) check.reject("context", context, "a Context")
  check.count("retries", retries ?? 0, 0)
  for (const name of ["classify", "onRetry", "onStop"] as const) callable(check, name, callbacks[name] ?? (() => {}))
}

/** Rejects a quota that cannot pay for a single retry: it would switch retries off. */
const affordable = (policy: Policy<unknown>, quota: RetryQuota.Options | undefined): void => {
  const cost = limits(policy).quota?.cost ?? 0
  if (quota?.capacity !== undefined && quota.capacity < cost) {
    checks("RetryPromise.make").reject("quota.capacity", quota.capacity, `at least ${cost}, the cost of a retry`)
  }
}

/** Invalid options reject too: callers of a promise do not expect exceptions. */
const promised = <A>(f: () => Promise<A>): Promise<A> => {
  try {
    return f()
  } catch (error) {
    return Promise.reject(error)
  }
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
export const make = <R>(policy: Policy<R>, ...[options]: Needing<R, Options>): RetryFunction => {
  valid(policy, options, "RetryPromise.make", "quota", "limiter")
  affordable(policy, options?.quota)
  const { env, owned } = completed(policy, options ?? {})
  const setting = settingOf(policy, env, options ?? {}, owned)
  const retry: RetryFunction = (f, options) =>
    promised(() => {
      // All other options were given where the function was made.
      const check = checksOf("retryPromise", options ?? {})
      check.names.add("signal")
      rejectUnknown(check, options ?? {})
      return call(f, setting, signalOf(options))
    })
  watch(retry, owned, options?.context ?? none, "function of RetryPromise.make. Make it once")
  return retry
}

/** What the calls with a policy share if their context provides nothing. */
const shared = new WeakMap<
  Policy<unknown>,
  { readonly own: Context.Context<never>; readonly plain: Setting; readonly owned: Owned | undefined }
>()

const sharedOf = (policy: Policy<unknown>) => {
  let found = shared.get(policy)
  if (found === undefined) {
    const { env: own, owned } = completed(policy, {})
    shared.set(policy, found = { own, owned, plain: settingOf(policy, own, {}, owned) })
    watch(policy, owned, none, "policy object for retryPromise. Keep the policy in a constant")
  }
  return found
}

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
 *   onRetry: (error, { delay, retry }) => console.log(`retry ${retry} in ${delay} after ${error}`)
 * })
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const retryPromise = <A, R>(
  f: AttemptFunction<A>,
  policy: Policy<R>,
  ...[options]: Needing<R, CallOptions & RetryOptions & ContextOptions>
): Promise<A> =>
  promised(() => {
    valid(policy, options, "retryPromise", "signal")
    const { own, owned, plain } = sharedOf(policy)
    const isPlain = Object.keys(options ?? {}).every((name) => name === "signal")
    if (isPlain) return call(f, plain, signalOf(options))
    const env = Context.merge(own, options?.context ?? Context.empty())
    return call(f, settingOf(policy, env, options!, owned), signalOf(options))
  })
