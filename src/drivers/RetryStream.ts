/**
 * Retrying streams.
 *
 * `Stream.retry` resets its count with every element: a stream that emits an element and fails is retried forever,
 * under any policy, and its elements are repeated each time. Its first send is unseen by gates and quota, since Effect
 * begins the schedule at the first failure. This module has two ways that end and see every send. {@link untilFirst}
 * retries until the stream has begun, and then no more: no element is received twice. {@link resume} reopens the stream
 * where it broke off.
 *
 * @since 0.1.0
 */

import * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { constTrue, dual } from "effect/Function"
import * as Option from "effect/Option"
import type * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { asDecision } from "../engine/decider.ts"
import { settling } from "../engine/send.ts"
import { callable, checksOf, rejectUnknown } from "../internal/checks.ts"
import type { Refused } from "../internal/refused.ts"
import { isStop } from "../RetryDecision.ts"
import type { RetryPolicy } from "../RetryPolicy.ts"
import { closed, type Elements, type Pulled, untilBegun } from "./internal/streamBeginning.ts"
import * as RetryDriver from "./RetryDriver.ts"

/**
 * Options for retrying the beginning of a stream.
 *
 * @category models
 * @since 0.1.0
 */
export interface FirstOptions<in A> {
  /**
   * Whether a stream has begun with an element. Default: any. Those before it are held back, at most 100: then the
   * stream has begun too. An element for which it throws begins the stream.
   */
  readonly begins?: ((element: A) => boolean) | undefined
}

/**
 * Retries a stream as the policy says until its first elements arrive. A failure after them fails the stream.
 *
 * **Details**
 *
 * An attempt lasts from opening the stream to its first elements, or to its end if it has none. It decides, waits, pays
 * and is observed as with `withRetry`: gates hold it back, elements return the tokens of the retry. A failed attempt
 * has released everything it acquired before the next one begins. gRPC does the same: it retries calls until the first
 * message. With `begins`, an attempt lasts to the first element for which it is true: what a failed attempt emitted
 * before is dropped, and what a successful one did comes out first.
 *
 * **Example** (The lines of an order)
 *
 * ```ts
 * const lines = Stream.fromEffect(call).pipe(RetryStream.untilFirst(awsStandard))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const untilFirst: {
  <Err, R2, A = any>(
    policy: Schedule.Schedule<unknown, unknown, Err, R2>,
    options?: FirstOptions<A>
  ): <B extends A, E, R>(self: Stream.Stream<B, E, R>) => Stream.Stream<B, E | Err, R | R2>
  <A, E, R, Err, R2>(
    self: Stream.Stream<A, E, R>,
    policy: Schedule.Schedule<unknown, unknown, Err, R2>,
    options?: FirstOptions<A>
  ): Stream.Stream<A, E | Err, R | R2>
} = dual(
  (args) => Stream.isStream(args[0]),
  <A, E, R, Err, R2>(
    self: Stream.Stream<A, E, R>,
    policy: Schedule.Schedule<unknown, unknown, Err, R2>,
    options: FirstOptions<A> = {}
  ): Stream.Stream<A, E | Err, R | R2> => {
    const check = checksOf("RetryStream.untilFirst", options)
    const begins = callable(check, "begins", options.begins ?? constTrue, "a function of an element")
    return untilBegun(self, policy, rejectUnknown(check, options, { begins }))
  }
)

/**
 * Options for resuming a stream.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * How long a stream must run after its first element to count as recovered: then the tokens of its retry go back, and
   * attempts, backoff and deadline start over. A finite duration of at least 0. Default 10 seconds.
   */
  readonly resetAfter?: Duration.Input | undefined
}

/** One run of a resumed stream. */
interface Run {
  readonly scope: Scope.Closeable
  readonly pull: AnyPull
  hasElements: boolean
}

type AnyPull = Pulled<any, any, any>

/** A stream that is reopened where it broke off. */
class Resumed {
  private last: Option.Option<any> = Option.none()
  private run: Run | undefined = undefined
  /** The call of a run, until it counts as recovered. */
  private call: RetryDriver.Call | undefined = undefined

  constructor(
    private readonly driver: RetryDriver.Driver,
    private readonly from: (last: Option.Option<any>) => Stream.Stream<any, any, any>,
    private readonly around: Scope.Scope,
    private readonly resetAfterMillis: number
  ) {}

  readonly pull: AnyPull = Effect.suspend((): AnyPull => {
    const { run } = this
    if (run === undefined) {
      return this.entered(this.call = this.driver.call(), this.opened, ({ error }) => Effect.fail(error))
    }
    return settling(
      run.pull,
      (elements) => this.gave(elements, run),
      (error, cause) =>
        Cause.isDone(error) ? Effect.andThen(this.succeed, Cause.done()) : this.failed(error, cause, run),
      () => this.discard()
    )
  })

  /** The consumer no longer pulls. */
  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    if (this.run?.hasElements === true) return this.succeed
    this.discard()
    return Effect.void
  })

  private discard(): void {
    this.call?.abandon()
    this.call = undefined
  }

  private readonly succeed: Effect.Effect<void> = Effect.uninterruptible(
    Effect.suspend(() => {
      const { call } = this
      this.call = undefined
      return call?.succeeded() ?? Effect.void
    })
  )

  /** Goes on when quota and gates let the next run begin. What the call holds is settled when the stream closes. */
  private entered(
    call: RetryDriver.Call,
    next: AnyPull,
    refused: (refusal: RetryDriver.Refusal) => AnyPull
  ): AnyPull {
    const sent = Effect.suspend(() => {
      call.markSent()
      return next
    })
    return Effect.matchEffect(call.enter() ?? Effect.void, { onSuccess: () => sent, onFailure: refused })
  }

  private readonly opened: AnyPull = Effect.gen({ self: this }, function*() {
    const scope = yield* Scope.fork(this.around)
    const pull = yield* Channel.toPullScoped(this.from(this.last).channel, scope)
    this.run = { scope, pull, hasElements: false }
    return yield* this.pull
  })

  private gave(elements: Elements<any>, run: Run): AnyPull {
    this.last = Option.some(elements[elements.length - 1])
    if (run.hasElements) return Effect.succeed(elements)
    run.hasElements = true
    const well = this.resetAfterMillis === 0
      ? this.succeed
      : Effect.forkIn(Effect.andThen(Effect.sleep(this.resetAfterMillis), this.succeed), run.scope)
    return Effect.as(well, elements)
  }

  private failed(error: unknown, cause: Cause.Cause<unknown>, run: Run): AnyPull {
    const { call } = this
    this.run = undefined
    const ended = () => Effect.failCause(cause)
    const judged = (call: RetryDriver.Call) =>
      Effect.gen({ self: this }, function*() {
        const decided = yield* Effect.catch(asDecision(call.failed(error)), ended)
        yield* Effect.sleep(decided.delay)
        return yield* isStop(decided) ? ended() : this.entered(call, this.opened, ended)
      })
    // A recovered run that fails is the first attempt of a new call.
    const again = Effect.suspend(() => {
      const call = this.call = this.driver.call()
      return this.entered(call, judged(call), ended)
    })
    const next = call === undefined ? again : judged(call)
    return Effect.andThen(Effect.uninterruptible(closed(run.scope, cause)), next)
  }
}

/**
 * A stream that is reopened where it broke off, as the policy says.
 *
 * **Details**
 *
 * `from` gets the last element received, none at first, and opens the stream after it: from an offset, a cursor, an
 * event's id. An attempt is one run of the stream. Elements alone do not make a run a success, since a run could always
 * fail right after its first: a run that fails within `resetAfter` of its first element, or without any, is a failed
 * attempt, and the policy's attempts, backoff and quota limit how many there are in a row. When the policy stops, the
 * stream fails with the error of its last run.
 *
 * Decisions are those of `RetryDriver`: it takes the services of the policy when the stream starts, and the limiter
 * holds back every run.
 *
 * **Gotchas**
 *
 * The last element was received, but not necessarily processed: a consumer that must not lose one keeps its own offset.
 * If `from` ignores the element, the stream starts over each time. A policy inside `from` does not see that it is
 * nested.
 *
 * **Example** (Numbers after the last one)
 *
 * ```ts
 * const numbers = RetryStream.resume(
 *   awsStandard,
 *   (last: Option.Option<number>) => Stream.range(Option.isSome(last) ? last.value + 1 : 0, 9)
 * )
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const resume = <A, E, R, Err extends { readonly [Refused]: true } = never, R2 = never>(
  policy: RetryPolicy<unknown, Err, R2>,
  from: (last: Option.Option<A>) => Stream.Stream<A, E, R>,
  options: Options = {}
): Stream.Stream<A, E | Err, R | R2> => {
  const check = checksOf("RetryStream.resume", options)
  const resetAfterMillis = check.duration("resetAfter", options.resetAfter, 10_000)
  rejectUnknown(check, options)
  return Stream.unwrap(
    Effect.gen(function*() {
      const scope = yield* Effect.scope
      const resumed = new Resumed(yield* RetryDriver.make(policy), from, scope, resetAfterMillis)
      yield* Scope.addFinalizer(scope, resumed.close)
      return Stream.fromPull<A, E, R | R2, never, never>(Effect.succeed(resumed.pull))
    })
  )
}
