import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { changed, type Compiled } from "../../engine/compiled.ts"
import { retrying } from "../../engine/loop.ts"
import { replacing } from "../../engine/policy/joinedPolicies.ts"
import { compiledOf } from "../../engine/policy/policy.ts"
import { type AnyEffect, patiently } from "../../engine/send.ts"
import { also, callable, type Checks, checks, rejectUnknown } from "../../internal/checks.ts"
import { type Request, showRequest } from "../../internal/classification/wire.ts"
import { get } from "../../internal/tryGet.ts"
import * as RetryClassifier from "../../RetryClassifier.ts"
import * as RetryInfo from "../../RetryInfo.ts"
import * as RetryObserver from "../../RetryObserver.ts"
import { isRetryPolicy, limits } from "../../RetryPolicy.ts"
import type * as RetryQuota from "../../RetryQuota.ts"
import { follow, interruptedBy, isSignal } from "./abortSignals.ts"
import type { AttemptFunction, CallOptions, ContextOptions, Policy, RetryOptions, Verdict } from "./promiseOptions.ts"

/** What one call runs with. */
export interface CallSetting extends ReturnType<typeof settingOf> {
  /** `undefined`: an attempt takes as long as it likes. */
  readonly attemptMillis?: number | undefined
  readonly signal: AbortSignal | undefined
  /** What each attempt sends, for failures that do not show it. */
  readonly request?: Request | undefined
  /** Runs the call with more services. */
  readonly around?: ((call: AnyEffect) => AnyEffect) | undefined
}

/** A `fetch` response from any library and realm. */
const isResponse = (u: unknown): u is Response =>
  get(u, Symbol.toStringTag) === "Response" && typeof get(u, "status") === "number"

/** No caller will read it: this frees its connection. A body already read is left alone. */
const discard = (response: Response): void => {
  response.body?.cancel().catch(() => {})
}

type Facts = Option.Option<RetryInfo.RetryInfo>

/** The error of an attempt without a result, as that of `AbortSignal.timeout`. */
const timedOut = (millis: number): Error =>
  new DOMException(`no response within ${Duration.format(Duration.millis(millis))}`, "TimeoutError")

/** One call of a function. */
class Sends<A> {
  /** The last response that counted as a failure. */
  private response: Response | undefined = undefined
  /** The response of the last failure, returned or thrown. */
  private held: Response | undefined = undefined
  private attempt = 0
  /** The last failure judged, and what is known about it. */
  private error: unknown = undefined
  private info: Facts = Option.none()
  readonly send: Effect.Effect<A, unknown>

  constructor(private readonly f: AttemptFunction<A>, private readonly setting: CallSetting) {
    const { attemptMillis } = setting
    this.send = attemptMillis === undefined ? this.untimed : Effect.timeoutOrElse(this.untimed, {
      duration: attemptMillis,
      orElse: () => this.failed(timedOut(attemptMillis))
    })
  }

  /** The context the call runs in. The caller's function is asked before the engine asks about a failure. */
  get context(): Context.Context<never> {
    const { classify, env } = this.setting
    return classify === undefined ? env : Context.add(
      env,
      RetryClassifier.CurrentClassifier,
      (error) => error === this.error ? this.info : this.classified(error)
    )
  }

  /** One send, as an effect. A promise that the call no longer waits for is ignored. */
  private get untimed(): Effect.Effect<A, unknown> {
    return Effect.callback<A, unknown>((resume) => {
      const { attemptMillis, signal } = this.setting
      const controller = new AbortController()
      const failed = (error: unknown) => resume(this.failed(error))
      this.endsWith(undefined)
      try {
        const sent = this.f({ attempt: ++this.attempt, signal: controller.signal })
        Promise.resolve(sent).then((value) => {
          if (!isResponse(value)) return resume(Effect.succeed(value))
          if (controller.signal.aborted) return discard(value)
          if (signal !== undefined) follow(signal, value, controller)
          if (value.status < 400) return resume(Effect.succeed(value))
          this.response = value
          failed(value)
        }, failed)
      } catch (error) {
        failed(error)
      }
      return Effect.sync(() => {
        const isLate = attemptMillis !== undefined && signal?.aborted !== true
        controller.abort(isLate ? timedOut(attemptMillis) : signal?.reason)
      })
    })
  }

  /** The response of the last failure is not read unless it is the result of the call. */
  endsWith(result: unknown): void {
    const { held } = this
    this.held = undefined
    if (held !== undefined && held !== result) discard(held)
  }

  /** Whether it is a response that was not thrown: if it is the last, it is the result of the call. */
  isAnswered(error: unknown): boolean {
    return this.response !== undefined && error === this.response
  }

  private failed(error: unknown): Effect.Effect<A, unknown> {
    const { setting: { classify, request } } = this
    if (request !== undefined) showRequest(error, request)
    if (isResponse(error)) this.held = error
    if (classify === undefined && !this.isAnswered(error)) return Effect.fail(error)
    const verdict = classify === undefined ? Effect.void : patiently(
      Effect.promise(() => Promise.resolve().then(() => classify(error)).catch(() => undefined))
    )
    // In the fiber: a hint may be a date, which needs the clock of the call.
    return Effect.flatMap(verdict, (verdict) => {
      this.error = error
      this.info = this.infoOf(error, verdict)
      // A response that is not known to be a failure is the result.
      const isAnswer = this.isAnswered(error) && Option.isNone(this.info)
      return isAnswer ? Effect.succeed(error as A) : Effect.fail(error)
    })
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
    return RetryClassifier.classify(Context.get(this.setting.env, RetryClassifier.CurrentClassifier), error)
  }
}

/** The signal of the caller, checked. */
export const signalOf = (constructorName: string, options: CallOptions | undefined): AbortSignal | undefined => {
  const signal = options?.signal ?? undefined
  return signal === undefined || isSignal(signal)
    ? signal
    : checks(constructorName).reject("signal", signal, "an AbortSignal")
}

const isThenable = (u: unknown): u is PromiseLike<unknown> => typeof get(u, "then") === "function"

/** Waits for what a callback returns. */
const awaited = (returned: unknown): Effect.Effect<void> | undefined =>
  isThenable(returned) ? Effect.asVoid(Effect.promise(() => Promise.resolve(returned))) : undefined

/** The context, with the callbacks of the options added to its observer. */
const observed = (
  env: Context.Context<never>,
  { onRetry, onStop }: RetryOptions,
  retried: (() => void) | undefined
): Context.Context<never> => {
  const callObserver: RetryObserver.RetryObserver = {
    onRetry: onRetry && ((retry, error) => awaited(onRetry(error, retry))),
    onStop: onStop && ((stop, error) => awaited(onStop(error, stop)))
  }
  const { combine, CurrentObserver, observerOf } = RetryObserver
  const all = combine(observerOf(env), callObserver)
  return Context.add(env, CurrentObserver, retried === undefined ? all : combine(all, { onRetry: retried }))
}

/** Failures judged final are final, under any policy. */
const unlessFinal = ({ classify }: RetryOptions): Compiled["whileRetryable"] => ({ error, info }) =>
  info?.safety !== "No" || (classify === undefined && !isResponse(error))

/** How the calls of a function differ from those of others. */
interface Manner {
  /** Called for each retry that is decided. */
  readonly retried?: (() => void) | undefined
  /** What is retried by a policy that does not ask whether a failure is retryable. Default: all but final failures. */
  readonly unasked?: Compiled["whileRetryable"]
}

/** What calls run with: the policy with the limit of the options, and the context with their callbacks. */
export const settingOf = (
  policy: Policy<any>,
  env: Context.Context<never>,
  options: RetryOptions,
  { retried, unasked = unlessFinal(options) }: Manner = {}
) => ({
  compiled: changed(compiledOf(policy), (compiled) => ({
    ...typeof options.retries === "number" && replacing("maxAttempts", options.retries + 1)(compiled),
    whileRetryable: compiled.whileRetryable === "off" ? unasked : compiled.whileRetryable
  })),
  env: observed(env, options, retried),
  classify: options.classify
})

/** Calls the function, until its result is that of the call. */
export const call = <A>(f: AttemptFunction<A>, setting: CallSetting): Promise<A> => {
  if (typeof f !== "function") {
    if (isThenable(f)) Promise.resolve(f).catch(() => {})
    return checks("retryPromise").reject("f", f, "a function that is called for each attempt, such as () => fetch(url)")
  }
  const { around, compiled, signal } = setting
  if (signal?.aborted === true) return Promise.reject(signal.reason)
  const sends = new Sends(f, setting)
  const retried = retrying(sends.send, compiled)
  // Everything the policy needs exists: otherwise the options would not have compiled without a context.
  return Effect.runPromiseExitWith(sends.context as Context.Context<any>)(around?.(retried) ?? retried, {
    onFiberStart: signal === undefined ? undefined : interruptedBy(signal)
  }).then((exit) => {
    const isAborted = signal?.aborted === true && Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)
    const result = Exit.isSuccess(exit) ? exit.value : isAborted ? signal.reason : Cause.squash(exit.cause)
    sends.endsWith(result)
    if (Exit.isSuccess(exit) || sends.isAnswered(result)) return result as A
    throw result
  })
}

/** Checks the options of something that retries promises: what all have in common, and no other names than `own`. */
export const valid = (
  check: Checks,
  policy: Policy<any>,
  options: ContextOptions & RetryOptions & { readonly quota?: RetryQuota.Options | undefined },
  ...own: ReadonlyArray<string>
): void => {
  if (!isRetryPolicy(policy)) check.reject("policy", policy, "a RetryPolicy, such as awsStandard")
  also(check, ...own, "context", "retries", "classify", "onRetry", "onStop")
  const { context, quota, retries, ...callbacks } = options
  if (context !== undefined && !Context.isContext(context)) check.reject("context", context, "a Context")
  check.count("retries", retries, 0, 0)
  for (const name of ["classify", "onRetry", "onStop"] as const) callable(check, name, callbacks[name] ?? (() => {}))
  rejectUnknown(check, options)
  affordable(check, policy, quota)
}

/** Rejects a quota that cannot pay for a single retry: it would switch retries off. */
const affordable = (check: Checks, policy: Policy<any>, quota: RetryQuota.Options | undefined): void => {
  const cost = limits(policy).quota?.cost ?? 0
  const capacity = quota?.capacity ?? cost
  if (capacity < cost) check.reject("quota.capacity", capacity, `at least ${cost}, the cost of a retry`)
}

/** Invalid options reject too: callers of a promise do not expect exceptions. */
export const promised = <A>(f: () => Promise<A>): Promise<A> => {
  try {
    return f()
  } catch (error) {
    return Promise.reject(error)
  }
}
