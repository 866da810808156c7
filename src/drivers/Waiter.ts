/**
 * Polls until a resource reaches a state: runs an effect repeatedly until its result ends the wait.
 *
 * Retrying reacts to a failure; waiting reacts to a successful response that is not the one you need yet. The resource
 * is still being created, or a deleted one is still found: nothing went wrong, it is only too early. A waiter matches
 * the outcome of each poll, success or typed failure, against an ordered list of acceptors. The first match decides
 * whether the wait is over, has failed, or continues. If none matches, an error ends the wait and an output does not.
 * These are Smithy's waiters, with its delays.
 *
 * The maximum wait is required. Transient failures of a poll are not the waiter's job: make the polled effect one that
 * retries, `describe.pipe(withRetry(policy), Waiter.waitUntil(waiter))`.
 *
 * @since 0.1.0
 */

import type * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Option from "effect/Option"
import type * as Schedule from "effect/Schedule"
import { asDecision, Decider } from "../engine/decider.ts"
import * as Delays from "../engine/delay.ts"
import { type CallEnvironment, environmentOf } from "../engine/environment.ts"
import { compiledIn } from "../engine/policy/policy.ts"
import { Repetition } from "../engine/run.ts"
import { type Checks, checks, checksOf } from "../internal/checks.ts"
import * as Records from "../internal/options.ts"
import { Result } from "../internal/requiresEffect4.ts"
import type { AnyContext } from "../internal/shared.ts"
import { get } from "../internal/tryGet.ts"
import { classify, type RetryClassifier } from "../RetryClassifier.ts"
import { fromDelay, type RetryPolicy } from "../RetryPolicy.ts"

/**
 * The result of a poll: its output or its typed failure.
 *
 * @category models
 * @since 0.1.0
 */
export type Outcome<A = unknown, E = unknown> = Result.Result<A, E>

/**
 * What an outcome means: the wait is over, has failed, or continues.
 *
 * @category models
 * @since 0.1.0
 */
export type State = "success" | "failure" | "retry"

/**
 * A state, and the outcomes that lead to it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Acceptor<in A = unknown, in E = unknown> {
  readonly state: State
  /** Whether the outcome leads to the state. The classifier is the fiber's. */
  readonly matches: (outcome: Outcome<A, E>, classifier: RetryClassifier) => boolean
  /** Why the wait failed, in words: for the state `"failure"` only. */
  readonly message: ((outcome: Outcome<A, E>) => string) | undefined
}

const acceptor = <A, E>(constructorName: string, self: Acceptor<A, E>): Acceptor<A, E> => {
  const check = checks(constructorName)
  const state = check.oneOf("state", self.state, ["success", "failure", "retry"])
  return self.message === undefined || state === "failure"
    ? self
    : check.reject("state", state, "\"failure\" if a message is given")
}

/**
 * Accepts outputs that satisfy the predicate; without one, all outputs.
 *
 * **Details**
 *
 * Smithy's `output`, `inputOutput` and `success: true`. `message` says why the wait failed.
 *
 * **Example** (Until a table is active)
 *
 * ```ts
 * Waiter.output("success", (table: Table) => table.status === "ACTIVE")
 * ```
 *
 * @category acceptors
 * @since 0.1.0
 */
export const output = <A>(
  state: State,
  predicate: (value: A) => boolean = () => true,
  message?: ((value: A) => string) | undefined
): Acceptor<A> =>
  acceptor("Waiter.output", {
    state,
    matches: (outcome) => Result.isSuccess(outcome) && predicate(outcome.success),
    message: message && Result.match({ onFailure: () => "", onSuccess: message })
  })

/**
 * Accepts typed failures that satisfy the predicate; without one, all typed failures. Smithy's `success: false`.
 *
 * @category acceptors
 * @since 0.1.0
 */
export const error = <E>(
  state: State,
  predicate: (error: E) => boolean = () => true,
  message?: ((error: E) => string) | undefined
): Acceptor<unknown, E> =>
  acceptor("Waiter.error", {
    state,
    matches: (outcome) => Result.isFailure(outcome) && predicate(outcome.failure),
    message: message && Result.match({ onFailure: message, onSuccess: () => "" })
  })

/**
 * Accepts typed failures by their `_tag` or `name`. Of a shape id, such as `"com.example#NotFound"`, only the name
 * counts. Smithy's `errorType`.
 *
 * @category acceptors
 * @since 0.1.0
 */
export const errorType = (state: State, type: string): Acceptor => {
  const name = type.slice(type.indexOf("#") + 1)
  return error(state, (failure) => get(failure, "_tag") === name || get(failure, "name") === name)
}

/**
 * Accepts typed failures in which the service asked for less traffic, according to the fiber's classifier.
 *
 * @category acceptors
 * @since 0.1.0
 */
export const throttled = (state: State): Acceptor =>
  acceptor("Waiter.throttled", {
    state,
    matches: (outcome, classifier) =>
      Result.isFailure(outcome) &&
      Option.exists(classify(classifier, outcome.failure), (info) => info.throttling),
    message: undefined
  })

/**
 * Accepts the outcomes, outputs or typed failures, that satisfy the predicate.
 *
 * @category acceptors
 * @since 0.1.0
 */
export const outcome = <A, E>(
  state: State,
  predicate: (outcome: Outcome<A, E>) => boolean,
  message?: ((outcome: Outcome<A, E>) => string) | undefined
): Acceptor<A, E> => acceptor("Waiter.outcome", { state, matches: predicate, message })

/**
 * The result of a wait: the last outcome, which may be an error that an acceptor accepted as success.
 *
 * @category models
 * @since 0.1.0
 */
export interface Accepted<out A = unknown, out E = unknown> {
  readonly outcome: Outcome<A, E>
  /** The polls made. */
  readonly attempts: number
  /** The time since the wait began. */
  readonly elapsed: Duration.Duration
}

/**
 * A finished poll, as reported during the wait: its outcome, the polls made so far, the time.
 *
 * @category models
 * @since 0.1.0
 */
export interface Progress<out A = unknown, out E = unknown> extends Accepted<A, E> {
  readonly state: State
  /** The rest of the maximum wait. */
  readonly remaining: Duration.Duration
  /** The delay until the next poll; `undefined` if there is none. */
  readonly delay: Duration.Duration | undefined
}

/**
 * Options of a waiter.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<in A, in E, out RDelay = never, out RAttempt = never> {
  /** Asked in this order, the first match decides: at least one with the state `"success"`. */
  readonly acceptors: ReadonlyArray<Acceptor<A, E>>
  /** The maximum wait: a finite duration above `minDelay`. */
  readonly maxWait: Duration.Input
  /**
   * The delay before the first poll: a finite duration of at least 0, below `maxWait`, which includes it. Default 0.
   */
  readonly initialDelay?: Duration.Input | undefined
  /** The shortest delay: a finite duration of at least 1 ms. Default 2 seconds. */
  readonly minDelay?: Duration.Input | undefined
  /** The longest delay: a finite duration, not below `minDelay`. Default 120 seconds. */
  readonly maxDelay?: Duration.Input | undefined
  /**
   * The source of the delays, in place of Smithy's rule: a backoff, a policy, any schedule. It gets the output or the
   * error of each poll. Its delays are kept within `minDelay` and `maxDelay`; when it ends, the wait ends too, with the
   * reason `"delays"`. Only the delays and the limits of a policy count. Its checks of the error are ignored, and so is
   * nesting: the acceptors have decided that the wait continues.
   */
  readonly delay?: Schedule.Schedule<unknown, unknown, never, RDelay> | undefined
  /** Runs after every finished poll. Its time counts as part of the delay. */
  readonly onAttempt?: ((progress: Progress<A, E>) => Effect.Effect<unknown, never, RAttempt>) | undefined
}

/**
 * How to wait for a state: data, made by {@link make}, for {@link waitUntil}.
 *
 * @category models
 * @since 0.1.0
 */
export interface Waiter<in A = unknown, in E = unknown, out R = never> {
  readonly acceptors: ReadonlyArray<Acceptor<A, E>>
  readonly initialDelay: Duration.Duration
  readonly minDelay: Duration.Duration
  readonly maxDelay: Duration.Duration
  readonly maxWait: Duration.Duration
  readonly delay: Schedule.Schedule<unknown, unknown, never, R>
  readonly onAttempt: (progress: Progress<A, E>) => Effect.Effect<unknown, never, R>
}

type AnyWaiter = Waiter<any, any, any>

/**
 * Smithy's exponential delay. Its attempt ceiling, `log2(max / min) + 1`, is where the doubled delay reaches the
 * maximum.
 */
const smithyDelay = (minMillis: number, maxMillis: number): RetryPolicy =>
  fromDelay(({ attempt, random }) => {
    const ceiling = Math.min(maxMillis, Delays.exponential(minMillis, 2)(attempt))
    return minMillis + random.nextDoubleUnsafe() * (ceiling - minMillis)
  })

const waiterOptions = {
  acceptors: Records.inCode,
  minDelay: Records.duration(2000),
  maxDelay: Records.duration(120_000),
  maxWait: Records.duration(),
  initialDelay: Records.duration(0),
  delay: Records.inCode,
  onAttempt: Records.inCode
}

const checkAcceptors = ({ reject }: Checks, acceptors: ReadonlyArray<Acceptor<never, never>>): void => {
  const areAll = Array.isArray(acceptors) && acceptors.every((one) => typeof get(one, "matches") === "function")
  if (!areAll) reject("acceptors", acceptors, "an array of acceptors")
  const states = acceptors.map(({ state }) => state)
  if (!states.includes("success")) reject("acceptors", states.join(", "), "an array with one for \"success\"")
}

/**
 * Makes a waiter.
 *
 * **Details**
 *
 * The delay before poll `n + 1` is random between `minDelay` and `min(maxDelay, minDelay * 2^(n - 1))`, in whole
 * milliseconds, rounded up. If `minDelay` equals `maxDelay`, there is no randomness. If no more than `minDelay` would
 * be left after the delay, the delay becomes all the time left, and the poll at the end is the last.
 * Source: Smithy 2.0, "Waiters", additional specifications.
 *
 * Throws `InvalidOption` when an option is invalid.
 *
 * **Example** (Until a table is active)
 *
 * ```ts
 * const tableActive = Waiter.make({
 *   acceptors: [
 *     Waiter.output("success", (table: Table) => table.status === "ACTIVE"),
 *     Waiter.errorType("retry", "ResourceNotFoundException")
 *   ],
 *   maxWait: "5 minutes"
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <A, E, RDelay = never, RAttempt = never>(
  options: Options<A, E, RDelay, RAttempt>
): Waiter<A, E, RDelay | RAttempt> => {
  const check = checksOf("Waiter.make", options)
  const { acceptors, delay, initialDelay, maxDelay, maxWait, minDelay } = options
  checkAcceptors(check, acceptors)
  const valid = Records.validOptions(check, waiterOptions, options)
  const { initialDelayMillis, maxDelayMillis, maxWaitMillis, minDelayMillis } = valid
  if (minDelayMillis < 1) check.reject("minDelay", minDelay, "a finite duration of at least 1 ms")
  if (maxDelayMillis < minDelayMillis) check.reject("maxDelay", maxDelay, "a duration not below minDelay")
  if (maxWaitMillis <= minDelayMillis) check.reject("maxWait", maxWait, "a duration above minDelay")
  if (initialDelayMillis >= maxWaitMillis) check.reject("initialDelay", initialDelay, "a duration below maxWait")
  return {
    acceptors,
    initialDelay: Duration.millis(initialDelayMillis),
    minDelay: Duration.millis(minDelayMillis),
    maxDelay: Duration.millis(maxDelayMillis),
    maxWait: Duration.millis(maxWaitMillis),
    delay: delay ?? smithyDelay(minDelayMillis, maxDelayMillis),
    onAttempt: options.onAttempt ?? (() => Effect.void)
  }
}

/**
 * The wait failed: an acceptor said so, or a poll failed with an error that none matched.
 *
 * @category errors
 * @since 0.1.0
 */
export class WaiterFailed<out A = unknown, out E = unknown> extends Data.TaggedError("WaiterFailed")<{
  /** Whether an acceptor matched it. */
  readonly matched: boolean
  /** The acceptor's message; `undefined` if it has none. */
  readonly reason: string | undefined
  /** The polls made. */
  readonly attempts: number
  /** The time since the wait began. */
  readonly elapsed: Duration.Duration
}> {
  readonly #outcome: Result.Result<A, E>
  constructor(
    { outcome, ...shown }: Pick<WaiterFailed<A, E>, "outcome" | "matched" | "reason" | "attempts" | "elapsed">
  ) {
    super(shown)
    this.#outcome = outcome
  }
  /** The outcome that ended the wait. It may be a whole response, so printing the error does not show it. */
  get outcome(): Result.Result<A, E> {
    return this.#outcome
  }
  override get message(): string {
    const why = this.reason ??
      (this.matched ? "an acceptor matched the outcome as a failure" : "no acceptor matched the error")
    return `wait failed after ${count(this.attempts)}: ${why}`
  }
}

/**
 * The wait ended before the state was reached: the time is over, or the schedule of delays has ended.
 *
 * @category errors
 * @since 0.1.0
 */
export class WaiterTimedOut<out A = unknown, out E = unknown> extends Data.TaggedError("WaiterTimedOut")<{
  /** What ended: the time, or the delays. */
  readonly reason: "time" | "delays"
  /** The maximum wait. */
  readonly maxWait: Duration.Duration
  /** The polls made, including an interrupted one. */
  readonly attempts: number
  /** The time since the wait began. */
  readonly elapsed: Duration.Duration
}> {
  readonly #last: Result.Result<A, E> | undefined
  constructor({ last, ...shown }: Pick<WaiterTimedOut<A, E>, "last" | "reason" | "maxWait" | "attempts" | "elapsed">) {
    super(shown)
    this.#last = last
  }
  /** The last outcome; `undefined` if no poll finished. Printing the error does not show it. */
  get last(): Result.Result<A, E> | undefined {
    return this.#last
  }
  override get message(): string {
    const { attempts, elapsed, maxWait, reason } = this
    const what = reason === "time" ? "still waiting" : "the delays have ended"
    return `${what} after ${Duration.format(elapsed)} of ${Duration.format(maxWait)}, ${count(attempts)}`
  }
}

const count = (attempts: number): string => attempts === 1 ? "1 poll" : `${attempts} polls`

/** What the outcome means, and the message of the acceptor that decided. */
const judge = ({ acceptors }: AnyWaiter, outcome: Outcome, classifier: RetryClassifier) => {
  const matched = acceptors.find(({ matches }) => matches(outcome, classifier))
  const state: State = matched?.state ?? (Result.isFailure(outcome) ? "failure" : "retry")
  return { state, why: { matched: matched !== undefined, reason: matched?.message?.(outcome) } }
}

/** The delays of one wait. */
const delaysOf = ({ delay, maxDelay, minDelay }: AnyWaiter, environment: CallEnvironment) => {
  // A poll that is not ready is not a retry: nothing pays, and no observer is notified.
  const decider = new Decider(compiledIn(delay), new Repetition(environment))
  const [minMillis, maxMillis] = [Duration.toMillis(minDelay), Duration.toMillis(maxDelay)]
  /** The next poll is the one at the end of the time, or is in progress. */
  let atEnd = false
  const fit = (delayMillis: number, remainingMillis: number): number => {
    const wantedMillis = Math.min(maxMillis, Math.max(minMillis, delayMillis))
    atEnd = remainingMillis - wantedMillis <= minMillis
    return Delays.wholeMillis(atEnd ? remainingMillis : wantedMillis)
  }
  /** The delay before the next poll in milliseconds; what has ended if there is no next poll. */
  return (outcome: Outcome, remainingMillis: number): Effect.Effect<number | WaiterTimedOut["reason"]> => {
    if (atEnd || remainingMillis <= 0) return Effect.succeed("time")
    decider.run.record(Result.merge(outcome))
    const answer = Effect.provideContext(
      asDecision(decider.decides()),
      environment.services as Context.Context<unknown>
    )
    return Effect.map(Effect.orDie(answer), (goes) => goes ? fit(decider.delayMillis, remainingMillis) : "delays")
  }
}

const run = Effect.fnUntraced(function*<A, E, R, R2>(poll: Effect.Effect<A, E, R>, waiter: Waiter<A, E, R2>) {
  const environment = environmentOf((yield* Effect.context<R2>()) as AnyContext)
  const delayBefore = delaysOf(waiter, environment)
  const [minDelayMillis, maxWaitMillis] = [Duration.toMillis(waiter.minDelay), Duration.toMillis(waiter.maxWait)]
  const startMillis = environment.nowMillis
  const elapsedMillis = () => Math.max(0, environment.nowMillis - startMillis)
  const sleepUntil = (millis: number) => Effect.sleep(Delays.wholeMillis(millis - elapsedMillis()))
  let attempts = 0
  let last: Outcome<A, E> | undefined
  let next: number | WaiterTimedOut["reason"] = Duration.toMillis(waiter.initialDelay)
  if (next > 0) yield* sleepUntil(next)
  while (typeof next === "number") {
    attempts++
    // Each has `minDelay` at least, also the one at the end of the time.
    const pollMillis = Math.max(minDelayMillis, maxWaitMillis - elapsedMillis())
    const polled = yield* Effect.timeoutOption(Effect.result(poll), pollMillis)
    if (Option.isNone(polled)) break
    const outcome = last = polled.value
    const { state, why } = judge(waiter, outcome, environment.classifier)
    const polledMillis = elapsedMillis()
    const remainingMillis = Math.max(0, maxWaitMillis - polledMillis)
    next = state === "retry" ? yield* delayBefore(outcome, remainingMillis) : "time"
    const result = { outcome, attempts, elapsed: Duration.millis(polledMillis) }
    const delay = typeof next === "number" ? Duration.millis(next) : undefined
    yield* waiter.onAttempt({ ...result, state, remaining: Duration.millis(remainingMillis), delay })
    if (state === "success") return result
    if (state === "failure") return yield* new WaiterFailed<A, E>({ ...result, ...why })
    if (typeof next === "number") yield* sleepUntil(polledMillis + next)
  }
  const reason = typeof next === "number" ? "time" : next
  const elapsed = Duration.millis(elapsedMillis())
  return yield* new WaiterTimedOut<A, E>({ reason, maxWait: waiter.maxWait, elapsed, last, attempts })
})

/**
 * Polls until the waiter ends the wait.
 *
 * **Details**
 *
 * The first poll is made immediately, or after `initialDelay`. Fails with {@link WaiterFailed} if the wait fails, with
 * {@link WaiterTimedOut} if its time is over or its delays have ended. Time counts on the monotonic clock from the
 * start of the wait. A poll still running when the time is over is interrupted; but every poll, including the one at
 * the end, has `minDelay` to respond. So the wait ends within `maxWait + minDelay`, and within `maxWait` if polls take
 * no time. Two waits share nothing.
 *
 * **Gotchas**
 *
 * Defects and interruption end the wait unchanged: acceptors see typed failures only. An exception in an acceptor is a
 * defect. A poll that cannot be interrupted, or an `onAttempt` longer than the time, delays the end.
 *
 * @category combinators
 * @since 0.1.0
 */
export const waitUntil: {
  <A, E, R2>(
    waiter: Waiter<A, E, R2>
  ): <A2 extends A, E2 extends E, R>(
    poll: Effect.Effect<A2, E2, R>
  ) => Effect.Effect<Accepted<A2, E2>, WaiterFailed<A2, E2> | WaiterTimedOut<A2, E2>, R | R2>
  <A2 extends A, E2 extends E, R, A, E, R2>(
    poll: Effect.Effect<A2, E2, R>,
    waiter: Waiter<A, E, R2>
  ): Effect.Effect<Accepted<A2, E2>, WaiterFailed<A2, E2> | WaiterTimedOut<A2, E2>, R | R2>
} = dual(2, run)
