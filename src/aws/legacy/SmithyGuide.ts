/**
 * Smithy's retry guide: its example strategy, and the traits with which a model says what its errors are.
 *
 * The example is a retry strategy like any other ({@link layer}), but it is not the standard mode of AWS, and no
 * policy: {@link make} lists where it goes its own way. The loop that runs on it is `RetryStrategy.request`.
 *
 * **Source**: Smithy documentation, "Retrying Requests" (client guidance) of March 2026, and the specification of the
 * `retryable`, `error` and `httpError` traits.
 *
 * @since 0.1.0
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import { Issuer, type Token } from "../../internal/engine/issue.ts"
import * as Traits from "../../internal/facts/traits.ts"
import { exponential, fullJitter, maxDelayMillis, wholeMillis } from "../../internal/math/delay.ts"
import { type CallFiber, clockOf } from "../../internal/state/clock.ts"
import type { Held, Store } from "../../internal/state/store.ts"
import { checks } from "../../InvalidOption.ts"
import { classify, CurrentClassifier } from "../../RetryClassifier.ts"
import * as RetryInfo from "../../RetryInfo.ts"
import { CurrentObserver } from "../../RetryObserver.ts"
import { RetryQuota } from "../../RetryQuota.ts"
import { RetryRefused, RetryStrategy, type Service } from "../../RetryStrategy.ts"
import { RetryStopped, RetryToken, type StopReason } from "../../RetryToken.ts"

/**
 * The trait `@retryable`: annotations for a `Schema.TaggedError` class whose errors are safe to retry.
 *
 * **Details**
 *
 * Traits combine by being spread. An error with them carries facts that every policy reads: with `retryable` it is safe
 * to retry; without it the status of {@link httpError} decides, as it does for any HTTP error; without either the fault
 * of {@link error} decides: a server's is `"Maybe"` safe, a client's is not. A `retryAfter` field of the error is the
 * hint. `RetryInfo.annotation` on the same class takes precedence.
 *
 * **Example** (A modelled error)
 *
 * ```ts
 * class Throttled extends Schema.TaggedError<Throttled>()("Throttled", { table: Schema.String }, {
 *   ...SmithyGuide.retryable({ throttling: true }),
 *   ...SmithyGuide.error("client"),
 *   ...SmithyGuide.httpError(429)
 * }) {}
 * ```
 *
 * @category annotations
 * @since 0.1.0
 */
export const retryable = (options?: {
  /** The service asked for less traffic. Default `false`. */
  readonly throttling?: boolean | undefined
}): { readonly [Traits.retryableKey]: { readonly throttling: boolean } } => ({
  [Traits.retryableKey]: { throttling: options?.throttling === true }
})

/**
 * The trait `@error`: annotations that say whose fault the errors of a `Schema.TaggedError` class are. Throws
 * `InvalidOption` for anything but `"client"` and `"server"`. See {@link retryable}.
 *
 * @category annotations
 * @since 0.1.0
 */
export const error = (fault: "client" | "server"): { readonly [Traits.errorKey]: "client" | "server" } => ({
  [Traits.errorKey]: checks("SmithyGuide.error").oneOf("fault", fault, ["client", "server"])
})

/**
 * The trait `@httpError`: annotations with the HTTP status of the errors of a `Schema.TaggedError` class, a whole number
 * from 400 to 599. Throws `InvalidOption` for any other. See {@link retryable}.
 *
 * @category annotations
 * @since 0.1.0
 */
export const httpError = (status: number): { readonly [Traits.httpErrorKey]: number } => {
  const check = checks("SmithyGuide.httpError")
  if (!Number.isInteger(status)) check.reject("status", status, "a whole number from 400 to 599")
  return { [Traits.httpErrorKey]: check.between("status", status, 400, 599) }
}

/** Compared with a counter that begins at 0, so there are six attempts. */
const maxCount = 5
const retryCost = 14
const throttlingRetryCost = 5
const successRefund = 1
const baseMillis = 50
const throttlingBaseMillis = 1000

interface Call {
  /** The retries so far. */
  readonly count: number
  readonly longPolling: boolean
  /** What the retry took that is under way. It stays taken, whatever becomes of the retry. */
  readonly held: Held | undefined
}

/** What the strategy makes of a failure; `undefined` when it does not retry it. */
interface Retryable {
  readonly throttling: boolean
  readonly hintMillis: number
}

const retryableOf = (info: RetryInfo.RetryInfo | undefined, error: unknown): Retryable | undefined => {
  if (info !== undefined) {
    const hintMillis = info.retryAfter === undefined ? 0 : Math.min(Duration.toMillis(info.retryAfter), maxDelayMillis)
    return info.safety === "No" ? undefined : { throttling: info.throttling, hintMillis }
  }
  const fault = Option.getOrUndefined(RetryInfo.faultOf(error))
  return fault === "server" ? { throttling: false, hintMillis: 0 } : undefined
}

const delayOf = ({ hintMillis, throttling }: Retryable, count: number, random: Random.Random): number => {
  const ceiling = exponential(throttling ? throttlingBaseMillis : baseMillis, 2, count + 1)
  return wholeMillis(Math.max(fullJitter(ceiling, random.nextDoubleUnsafe()), hintMillis))
}

class GuideStrategy implements Service {
  private readonly issuer = new Issuer<Call>()
  private readonly store: Store
  private readonly capacity: number

  constructor(quota: RetryQuota["Service"]) {
    this.store = quota.store
    this.capacity = quota.capacity
  }

  readonly acquireInitialToken: Service["acquireInitialToken"] = (operation) =>
    Effect.withFiber((fiber) => {
      const call = { count: 0, longPolling: operation?.longPolling === true, held: undefined }
      const terms = { attempt: 1, delayMillis: 0, waitedMillis: 0, cost: 0, undo: [] }
      return Effect.succeed(this.issuer.issue(call, terms, fiber))
    })

  readonly refreshRetryToken: Service["refreshRetryToken"] = (token, error) =>
    Effect.withFiber((fiber) => {
      const call = this.issuer.redeem(token)
      call.held?.spendUnsafe()
      fiber.getRef(CurrentObserver).onAttempt?.(false, fiber)
      const info = Option.getOrUndefined(classify(fiber.getRef(CurrentClassifier), error))
      const refuse = (reason: StopReason, delayMillis?: number) =>
        refused(new RetryStopped(reason, call.count + 1, info, delayMillis), fiber)
      if (call.count >= maxCount) return refuse("max-attempts")
      const failure = retryableOf(info, error)
      if (failure === undefined) return refuse("not-retryable")
      const delayMillis = delayOf(failure, call.count, fiber.getRef(Random.Random))
      const clock = clockOf(fiber)
      const cost = failure.throttling ? throttlingRetryCost : retryCost
      const given = (held: Held | undefined) =>
        held === undefined
          ? refuse("quota-exhausted", call.longPolling ? delayMillis : 0)
          : Effect.succeed(this.issue(
            new RetryToken({ attempt: call.count + 1, error, info }, delayMillis, held, Infinity),
            call.longPolling,
            fiber
          ))
      return this.store.isRemote
        ? Effect.flatten(this.store.reserve({ cost, clock, patienceMillis: Infinity }, given))
        : given(this.store.take(cost, clock))
    })

  readonly recordSuccess: Service["recordSuccess"] = (token) =>
    Effect.withFiber((fiber) => {
      this.issuer.redeem(token).held?.spendUnsafe()
      const clock = clockOf(fiber)
      if (this.store.balance(clock) <= this.capacity - successRefund) this.store.put(successRefund, clock)
      fiber.getRef(CurrentObserver).onAttempt?.(true, fiber)
      return Effect.void
    })

  private issue(decision: RetryToken, longPolling: boolean, fiber: CallFiber): Token {
    fiber.getRef(CurrentObserver).onRetry?.(decision, fiber)
    decision.claimUnsafe()
    const { attempt, cost, delayMillis, held } = decision
    const undo = [() => held?.giveBackUnsafe()]
    const sent = (sender: CallFiber) => held?.sentUnsafe(sender)
    const terms = { attempt: attempt + 1, delayMillis, waitedMillis: 0, cost, undo, sent }
    return this.issuer.issue({ count: attempt, longPolling, held }, terms, fiber)
  }
}

const refused = (stopped: RetryStopped, fiber: CallFiber): Effect.Effect<never, RetryRefused> => {
  fiber.getRef(CurrentObserver).onStop?.(stopped, fiber)
  const failure = Effect.fail(new RetryRefused({ stopped }))
  return stopped.delayMillis === 0 ? failure : Effect.andThen(Effect.sleep(stopped.delayMillis), failure)
}

/**
 * Makes the example strategy of the guide, on the `RetryQuota` of the context.
 *
 * **Details**
 *
 * Where it goes its own way, set beside retry behaviour 2.1 of AWS (`awsStandard2026`):
 *
 * | | the guide's example | AWS |
 * | --- | --- | --- |
 * | attempts | 6: a counter from 0 is compared with 5 | 3 |
 * | checked first | the attempts | whether the error is retryable |
 * | retried | all that is not known to be unsafe (`"Maybe"` too), and unknown failures of a server | what is safe |
 * | server's hint | `max(delay, hint)`, however long | followed within `[delay, delay + 5 seconds]` |
 * | a success | puts 1 in, after retries too, if that fits whole | gives back what its retry took, or puts 1 in |
 *
 * The rest is the same: a retry takes 14, after a throttle 5; the delay is `b * x * 2^(n - 1)`, `b` uniform in
 * `[0, 1)`, `x` 1 second after a throttle, else 50 milliseconds (the cap of 20 seconds is above the fifth ceiling, the
 * last); a long-polling call that the quota refuses is held back for its delay. Delays are rounded up to whole milliseconds (the guide cuts them); a retry that never
 * leaves gives its tokens back (the guide has no interruption); `"No"` is a veto also for a server's fault, as the
 * guide's comment has it (its code falls through).
 *
 * The `successIncrement`, `firstAttemptCost` and `whenExhausted` of the quota do not apply, nor does a limiter; only a
 * quota in Redis that waits has a retry wait.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make: Effect.Effect<Service, never, RetryQuota> = RetryQuota.use((quota) =>
  Effect.sync(() => new GuideStrategy(quota))
)

/**
 * A layer with the example strategy of the guide: see {@link make}.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<RetryStrategy, never, RetryQuota> = Layer.effect(RetryStrategy, make)
