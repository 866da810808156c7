/**
 * Polling until a state: run an effect again and again, until what it gives says that the waiting is over.
 *
 * Retrying answers a failure; waiting answers an answer. The resource is still being created, or a resource that should
 * go is still found: nothing went wrong, it is only too early. A waiter looks at the outcome of each poll, success or
 * typed failure, with an ordered list of acceptors. The first that matches says whether the wait is over, is in vain, or
 * goes on. Where none matches, an error ends it and an output does not. Those are the waiters of Smithy, with its delays.
 *
 * The time to wait has to be given, and a call that fails in passing is not the waiter's concern: make the polled effect
 * one that retries, `describe.pipe(withRetry(policy), Waiter.waitUntil(waiter))`.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Option from "effect/Option"
import * as Pull from "effect/Pull"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Delays from "./engine/delay.ts"
import { changed } from "./engine/parts.ts"
import { fromParts, partsOf } from "./engine/policy/policy.ts"
import { checks } from "./internal/checks.ts"
import { monotonicMillis } from "./internal/clock.ts"
import { get } from "./internal/safe.ts"
import { classify, CurrentClassifier, type RetryClassifier } from "./RetryClassifier.ts"
import * as RetryObserver from "./RetryObserver.ts"
import { fromDelay, isRetryPolicy, type RetryPolicy } from "./RetryPolicy.ts"

/**
 * What a poll gave: its output or its typed failure.
 *
 * @category models
 * @since 0.1.0
 */
export type Outcome<A = unknown, E = unknown> = Result.Result<A, E>

/**
 * What an outcome means: the wait is over, is in vain, or goes on.
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
  /** Whether the outcome leads to the state. The classifier is that of the fiber. */
  readonly matches: (outcome: Outcome<A, E>, classifier: RetryClassifier) => boolean
  /** Why the wait is in vain, in words: for the state `"failure"` only. */
  readonly message: ((outcome: Outcome<A, E>) => string) | undefined
}

const acceptor = <A, E>(constructorName: string, self: Acceptor<A, E>): Acceptor<A, E> => {
  const check = checks(constructorName)
  const state = check.oneOf("state", self.state, ["success", "failure", "retry"])
  return self.message === undefined || state === "failure"
    ? self
    : check.reject("state", state, "\"failure\" where there is a message")
}

/**
 * Accepts outputs: those that satisfy the predicate, all without one.
 *
 * **Details**
 *
 * Smithy's `output`, `inputOutput` and `success: true`. `message` says in words why a wait is in vain.
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
 * Accepts typed failures: those that satisfy the predicate, all without one. Smithy's `success: false`.
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
 * Accepts typed failures in which the service asked for less traffic, as the classifier of the fiber has it.
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
 * What a wait came to: the last outcome, which may be an error that an acceptor took for success.
 *
 * @category models
 * @since 0.1.0
 */
export interface Accepted<out A = unknown, out E = unknown> {
  readonly outcome: Outcome<A, E>
  /** The polls made. */
  readonly attempts: number
  /** Since the wait began. */
  readonly elapsed: Duration.Duration
}

/**
 * A poll that came to an end, as the caller sees it while the wait goes on: its outcome, the polls made so far, the time.
 *
 * @category models
 * @since 0.1.0
 */
export interface Progress<out A = unknown, out E = unknown> extends Accepted<A, E> {
  readonly state: State
  /** What is left of the time to wait. */
  readonly remaining: Duration.Duration
  /** Until the next poll; `undefined` where none follows. */
  readonly delay: Duration.Duration | undefined
}

/**
 * What a waiter is made of.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<in A, in E, out RDelay = never, out RAttempt = never> {
  /** Asked in this order, the first match decides: at least one of them with the state `"success"`. */
  readonly acceptors: ReadonlyArray<Acceptor<A, E>>
  /** The time to wait: a finite duration above `minDelay`. */
  readonly maxWait: Duration.Input
  /** The delay before the first poll: a finite duration of at least 0, below `maxWait`, of which it is part. Default 0. */
  readonly initialDelay?: Duration.Input | undefined
  /** The shortest delay: a finite duration of at least 1 ms. Default 2 seconds. */
  readonly minDelay?: Duration.Input | undefined
  /** The longest delay: a finite duration, not below `minDelay`. Default 120 seconds. */
  readonly maxDelay?: Duration.Input | undefined
  /**
   * Where the delays come from, instead of Smithy's rule: a back-off, a policy, any schedule. It is given the output or
   * the error of each poll. Its delays are kept within `minDelay` and `maxDelay`; when it ends, so does the wait, with the
   * reason `"delays"`. Of a policy it is the delays and the limits that count. What it asks of an error before it retries
   * does not, nor whether its call is the outermost: the acceptors have said that the wait goes on.
   */
  readonly delay?: Schedule.Schedule<unknown, unknown, never, RDelay> | undefined
  /** Run after every poll that came to an end. The time that it takes is part of the delay. */
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

/** Smithy's exponential delay. Its attempt ceiling, `log2(max / min) + 1`, is where the doubled delay reaches the maximum. */
const smithyDelay = (minMillis: number, maxMillis: number): RetryPolicy =>
  fromDelay(({ attempt, random }) => {
    const ceiling = Math.min(maxMillis, Delays.exponential(minMillis, 2)(attempt))
    return minMillis + random.nextDoubleUnsafe() * (ceiling - minMillis)
  })

/** A policy without what it asks of an error: most outcomes of a wait that goes on are none. */
const asDelay = <R>(delay: Waiter<never, never, R>["delay"]): Waiter<never, never, R>["delay"] =>
  isRetryPolicy(delay)
    ? fromParts(changed(partsOf(delay), () => ({ whileRetryable: "off", outermostOnly: false })))
    : delay

const areAcceptors = (u: ReadonlyArray<unknown>): boolean =>
  Array.isArray(u) && u.every((one) => typeof get(one, "matches") === "function")

const checkAcceptors = (check: ReturnType<typeof checks>, acceptors: ReadonlyArray<Acceptor<never, never>>): void => {
  if (!areAcceptors(acceptors)) check.reject("acceptors", acceptors, "a list of acceptors")
  const states = acceptors.map(({ state }) => state)
  if (!states.includes("success")) check.reject("acceptors", states.join(", "), "a list with one for \"success\"")
}

/**
 * Makes a waiter.
 *
 * **Details**
 *
 * The delay before poll `n + 1` is random between `minDelay` and `min(maxDelay, minDelay * 2^(n - 1))`, in whole
 * milliseconds, rounded up. Equal delays wait the same each time, without chance. When no more than `minDelay` would be
 * left after the delay, it becomes all that is left, and the poll at the end of the time is the last.
 * Source: Smithy 2.0, "Waiters", additional specifications.
 *
 * Throws `InvalidOption` for options that no waiter can work with.
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
  const check = checks("Waiter.make")
  const { acceptors, initialDelay = 0, maxDelay = "120 seconds", maxWait, minDelay = "2 seconds" } = options
  checkAcceptors(check, acceptors)
  const minDelayMillis = check.duration("minDelay", minDelay)
  if (minDelayMillis < 1) check.reject("minDelay", minDelay, "a finite duration of at least 1 ms")
  const maxDelayMillis = check.duration("maxDelay", maxDelay)
  if (maxDelayMillis < minDelayMillis) check.reject("maxDelay", maxDelay, "a duration not below minDelay")
  const maxWaitMillis = check.duration("maxWait", maxWait)
  if (maxWaitMillis <= minDelayMillis) check.reject("maxWait", maxWait, "a duration above minDelay")
  const initialDelayMillis = check.duration("initialDelay", initialDelay)
  if (initialDelayMillis >= maxWaitMillis) check.reject("initialDelay", initialDelay, "a duration below maxWait")
  return {
    acceptors,
    initialDelay: Duration.millis(initialDelayMillis),
    minDelay: Duration.millis(minDelayMillis),
    maxDelay: Duration.millis(maxDelayMillis),
    maxWait: Duration.millis(maxWaitMillis),
    delay: options.delay === undefined ? smithyDelay(minDelayMillis, maxDelayMillis) : asDelay(options.delay),
    onAttempt: options.onAttempt ?? (() => Effect.void)
  }
}

/**
 * The wait is in vain: an acceptor says so, or a poll failed with an error that none knows.
 *
 * @category errors
 * @since 0.1.0
 */
export class WaiterFailed<out A = unknown, out E = unknown> extends Data.TaggedError("WaiterFailed")<{
  /** Whether an acceptor matched it. */
  readonly matched: boolean
  /** What the acceptor says of it; `undefined` when it says nothing. */
  readonly reason: string | undefined
  /** The polls made. */
  readonly attempts: number
  /** Since the wait began. */
  readonly elapsed: Duration.Duration
}> {
  readonly #outcome: Result.Result<A, E>
  constructor(
    { outcome, ...shown }: Pick<WaiterFailed<A, E>, "outcome" | "matched" | "reason" | "attempts" | "elapsed">
  ) {
    super(shown)
    this.#outcome = outcome
  }
  /** The outcome that ended the wait. It may be a whole response: nothing that prints the error shows it. */
  get outcome(): Result.Result<A, E> {
    return this.#outcome
  }
  override get message(): string {
    const why = this.reason ??
      (this.matched ? "an acceptor took the outcome for failure" : "no acceptor knows the error")
    return `waited in vain, ${count(this.attempts)}: ${why}`
  }
}

/**
 * The wait has ended before its state came about: the time to wait is over, or the schedule of the delays has ended.
 *
 * @category errors
 * @since 0.1.0
 */
export class WaiterTimedOut<out A = unknown, out E = unknown> extends Data.TaggedError("WaiterTimedOut")<{
  /** What has ended: the time to wait, or the delays. */
  readonly reason: "time" | "delays"
  /** The time there was. */
  readonly maxWait: Duration.Duration
  /** The polls made, one that was interrupted included. */
  readonly attempts: number
  /** Since the wait began. */
  readonly elapsed: Duration.Duration
}> {
  readonly #last: Result.Result<A, E> | undefined
  constructor({ last, ...shown }: Pick<WaiterTimedOut<A, E>, "last" | "reason" | "maxWait" | "attempts" | "elapsed">) {
    super(shown)
    this.#last = last
  }
  /** The last outcome; `undefined` when no poll came to an end. Nothing that prints the error shows it. */
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

/** What the outcome means, and what the acceptor that says so says of it. */
const judge = ({ acceptors }: AnyWaiter, outcome: Outcome, classifier: RetryClassifier) => {
  const matched = acceptors.find(({ matches }) => matches(outcome, classifier))
  const state: State = matched?.state ?? (Result.isFailure(outcome) ? "failure" : "retry")
  return { state, why: { matched: matched !== undefined, reason: matched?.message?.(outcome) } }
}

/** A poll that is not ready is no retry, so the observer of retries is not notified of a policy's delays. */
const unobserved = Effect.provideService(RetryObserver.CurrentObserver, RetryObserver.none)

type Step<R> = (now: number, input: unknown) => Pull.Pull<[unknown, Duration.Duration], never, unknown, R>

/** The time of one wait. */
class Timer<R> {
  private readonly waiter: AnyWaiter
  private readonly step: Step<R>
  private readonly clock: Clock.Clock
  private readonly startMillis: number
  private readonly minDelayMillis: number
  readonly maxWaitMillis: number
  /** The next poll is the one at the end of the time, or is under way. */
  private atEnd = false
  private ended: WaiterTimedOut["reason"] = "time"

  constructor(waiter: AnyWaiter, step: Step<R>, clock: Clock.Clock) {
    this.waiter = waiter
    this.step = step
    this.clock = clock
    this.startMillis = monotonicMillis(clock)
    this.minDelayMillis = Duration.toMillis(waiter.minDelay)
    this.maxWaitMillis = Duration.toMillis(waiter.maxWait)
  }

  get elapsedMillis(): number {
    return Math.max(0, monotonicMillis(this.clock) - this.startMillis)
  }

  /** What has ended when no poll follows, and when. */
  get end() {
    return { reason: this.ended, maxWait: this.waiter.maxWait, elapsed: Duration.millis(this.elapsedMillis) }
  }

  /** Runs a poll for as long as there is time, and for `minDelay` at least. */
  limit<A, E2, R2>(poll: Effect.Effect<A, E2, R2>): Effect.Effect<Option.Option<A>, E2, R2> {
    return Effect.suspend(() =>
      Effect.timeoutOption(poll, Math.max(this.minDelayMillis, this.maxWaitMillis - this.elapsedMillis))
    )
  }

  /** The delay before the next poll in milliseconds; none where none follows. */
  next(outcome: Outcome, remainingMillis: number): Effect.Effect<number | undefined, never, R> {
    if (this.atEnd || remainingMillis <= 0) return Effect.undefined
    return this.step(this.clock.currentTimeMillisUnsafe(), Result.merge(outcome)).pipe(
      Effect.map(([, delay]) => this.fit(Duration.toMillis(delay), remainingMillis)),
      Pull.catchDone(() => Effect.sync((): undefined => void (this.ended = "delays"))),
      unobserved
    )
  }

  private fit(delayMillis: number, remainingMillis: number): number {
    const wantedMillis = Math.min(Duration.toMillis(this.waiter.maxDelay), Math.max(this.minDelayMillis, delayMillis))
    this.atEnd = remainingMillis - wantedMillis <= this.minDelayMillis
    return Delays.wholeMillis(this.atEnd ? remainingMillis : wantedMillis)
  }

  sleepUntil(elapsedMillis: number): Effect.Effect<void> {
    return Effect.suspend(() => Effect.sleep(Delays.wholeMillis(elapsedMillis - this.elapsedMillis)))
  }
}

const run = Effect.fnUntraced(function*<A, E, R, R2>(poll: Effect.Effect<A, E, R>, waiter: Waiter<A, E, R2>) {
  const classifier = yield* CurrentClassifier
  const timer = new Timer(waiter, yield* Schedule.toStep(waiter.delay), yield* Clock.Clock)
  let attempts = 0
  let last: Outcome<A, E> | undefined
  let delayMillis: number | undefined = Duration.toMillis(waiter.initialDelay)
  if (delayMillis > 0) yield* timer.sleepUntil(delayMillis)
  while (delayMillis !== undefined) {
    attempts++
    const polled = yield* timer.limit(Effect.result(poll))
    if (Option.isNone(polled)) break
    const outcome = last = polled.value
    const { state, why } = judge(waiter, outcome, classifier)
    const elapsedMillis = timer.elapsedMillis
    const remainingMillis = Math.max(0, timer.maxWaitMillis - elapsedMillis)
    delayMillis = state === "retry" ? yield* timer.next(outcome, remainingMillis) : undefined
    const ended = { outcome, attempts, elapsed: Duration.millis(elapsedMillis) }
    const delay = delayMillis === undefined ? undefined : Duration.millis(delayMillis)
    yield* waiter.onAttempt({ ...ended, state, remaining: Duration.millis(remainingMillis), delay })
    if (state === "success") return ended
    if (state === "failure") return yield* new WaiterFailed<A, E>({ ...ended, ...why })
    if (delayMillis !== undefined) yield* timer.sleepUntil(elapsedMillis + delayMillis)
  }
  return yield* new WaiterTimedOut<A, E>({ ...timer.end, last, attempts })
})

/**
 * Polls until the waiter says that the wait is over.
 *
 * **Details**
 *
 * The first poll is made at once, or after `initialDelay`. Fails with {@link WaiterFailed} when the wait is in vain, with
 * {@link WaiterTimedOut} when its time is over or its delays have ended. Time counts on the monotonic clock from the
 * beginning of the wait. A poll that still runs when the time is over is interrupted; but every poll, the one at the end
 * too, has `minDelay` to answer. So the wait ends within `maxWait + minDelay`, and within `maxWait` where polls take no
 * time. Nothing is shared between two waits.
 *
 * **Gotchas**
 *
 * Defects and interruption end the wait as they are: acceptors see typed failures only. What an acceptor throws is a
 * defect. A poll that cannot be interrupted, or an `onAttempt` that takes longer than the time, puts off the end.
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
