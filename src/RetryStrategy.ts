/**
 * The retry strategy of Smithy's retry guide, as a service over any policy.
 *
 * A schedule is driven from outside: `Effect.retry` owns the loop. The clients that Smithy generates own their loop
 * themselves, and ask a strategy three things: a token before the first attempt, another one after each failure, and to
 * take note of a success. Here is that interface for our policies, so that a policy decides alike wherever the loop is;
 * and here is that loop, {@link request}, for any strategy with this interface.
 *
 * **Source**: Smithy documentation, "Retrying Requests" (client guidance).
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Limiter from "./AdaptiveRateLimiter.ts"
import { Booking } from "./internal/engine/booking.ts"
import { deadlineAt, decide, type Parts, Run } from "./internal/engine/decision.ts"
import { died, Issuer, type Token } from "./internal/engine/issue.ts"
import { inside, Mark, nesting } from "./internal/engine/nesting.ts"
import { settling } from "./internal/engine/settling.ts"
import { type CallFiber, clockOf, monotonicMillis } from "./internal/state/clock.ts"
import type { Store } from "./internal/state/store.ts"
import type { Patience } from "./internal/state/waiters.ts"
import * as RetryInfo from "./RetryInfo.ts"
import { CurrentObserver } from "./RetryObserver.ts"
import { type Attempted, type RetryPolicy, TypeId } from "./RetryPolicy.ts"
import { QuotaExhausted, RetryQuota } from "./RetryQuota.ts"
import { isRetryToken, type RetryDecision, type RetryStopped, type RetryToken, type StopReason } from "./RetryToken.ts"

/**
 * Leave to make one attempt. A strategy takes each of its tokens once.
 *
 * **Details**
 *
 * What a token holds of the quota (and of the send rate) is settled once: it goes back when the attempt succeeds, when
 * the token is abandoned before the attempt has left, and when the fiber that was given the token fails or is
 * interrupted before that; otherwise it is spent. A fiber that succeeds may have handed the token on, so a token that it
 * leaves behind is held until someone uses or abandons it.
 *
 * @category models
 * @since 0.1.0
 */
export type { Token } from "./internal/engine/issue.ts"

/**
 * The defect of a token that a strategy does not take: another one issued it (`"foreign"`), or a refresh, a success or
 * `abandon` has used it up (`"used"`).
 *
 * @category errors
 * @since 0.1.0
 */
export { InvalidToken } from "./internal/engine/issue.ts"

/**
 * What is known of the operation that is called.
 *
 * @category models
 * @since 0.1.0
 */
export interface Operation {
  /** It polls: a call that the quota refuses to retry is held back for its delay before it fails. Default `false`. */
  readonly longPolling?: boolean | undefined
}

/**
 * The call is not retried: why, and after how many attempts.
 *
 * @category errors
 * @since 0.1.0
 */
export class RetryRefused extends Data.TaggedError("RetryRefused")<{
  /** What the strategy decided. */
  readonly stopped: RetryStopped
}> {
  /** Why the call is not retried. */
  get reason(): StopReason {
    return this.stopped.reason
  }
  get [RetryInfo.TypeId](): RetryInfo.RetryInfo {
    return RetryInfo.notRetryable
  }
  override get message(): string {
    return `not retried after ${this.stopped.attempts} attempts: ${this.reason}`
  }
}

/**
 * What a strategy does. It has no state of single calls: that is in their tokens.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  /**
   * Leave for the first attempt. Fails where the first attempt costs tokens that are not there, and where the limiter
   * lets no more sends through; may wait for either, as they are configured.
   */
  readonly acquireInitialToken: (
    operation?: Operation
  ) => Effect.Effect<Token, QuotaExhausted | Limiter.RateLimitExceeded>
  /**
   * Leave to retry after a failure of the token's attempt. Fails with `RetryRefused` when it is not retried, after the
   * delay for which a long-polling call is held back, or at the deadline when the limiter has no send token until then;
   * with `RateLimitExceeded` when the limiter refuses the send. Dies with `InvalidToken`.
   */
  readonly refreshRetryToken: (
    token: Token,
    error: unknown
  ) => Effect.Effect<Token, RetryRefused | Limiter.RateLimitExceeded>
  /** Books the success of the token's attempt. Never waits. Dies with `InvalidToken`. */
  readonly recordSuccess: (token: Token) => Effect.Effect<void>
}

/**
 * The retry strategy of a client.
 *
 * @category services
 * @since 0.1.0
 */
export class RetryStrategy extends Context.Service<RetryStrategy, Service>()("effect-retry/RetryStrategy") {}

/** One call: its decisions and what is booked of it. */
interface Call {
  readonly run: Run
  readonly booking: Booking
}

type Policy<R> = RetryPolicy<Attempted, R, Limiter.RateLimitExceeded>

type Undo = ReadonlyArray<() => void>

const forLongPolling = (parts: Parts): Parts =>
  parts.quota === undefined ? parts : { ...parts, quota: { ...parts.quota, longPolling: true } }

class Strategy implements Service {
  private readonly issuer = new Issuer<Call>()
  private readonly parts: Parts
  private readonly quota: RetryQuota["Service"] | undefined
  private readonly store: Store | undefined
  private readonly limiter: Limiter.Engine | undefined
  /** What a lifted schedule finds in its context beside that of the caller. */
  private readonly lifted: Context.Context<never> | undefined

  constructor(parts: Parts, context: Context.Context<never>) {
    this.parts = parts
    this.quota = Context.getOrUndefined(context, RetryQuota)
    this.store = this.quota?.store
    this.limiter = Context.getOrUndefined(context, Limiter.AdaptiveRateLimiter)?.engine
    this.lifted = typeof parts.source === "function" ? undefined : context
  }

  readonly acquireInitialToken: Service["acquireInitialToken"] = (operation) =>
    Effect.withFiber((fiber) => {
      const { limiter, store } = this
      const parts = operation?.longPolling === true ? forLongPolling(this.parts) : this.parts
      const observer = fiber.getRef(CurrentObserver)
      const environment = { limiter, store, observer, metadata: undefined, isQuiet: false }
      const run = new Run(parts, deadlineAt(parts, fiber))
      const call = { run, booking: new Booking(environment, undefined) }
      const issue = (undo: Undo, cost = 0) =>
        this.issuer.issue(call, { attempt: 1, delayMillis: 0, waitedMillis: 0, cost, undo }, fiber)
      const cost = store?.firstAttemptCost
      if (store === undefined || cost === undefined || cost === 0) return this.afterSendToken(fiber, issue)
      const clock = clockOf(fiber)
      return store.afterFirstCost(
        clock,
        (paid) =>
          this.afterSendToken(fiber, (undo) => {
            paid.sends()
            return issue([paid.undo, ...undo], cost)
          }),
        () => new QuotaExhausted({ cost, balance: store.balance(clock) })
      )
    })

  readonly refreshRetryToken: Service["refreshRetryToken"] = (token, error) =>
    Effect.updateContext(
      Effect.withFiber((fiber) => {
        const call = this.issuer.redeem(token)
        call.booking.failed(error)
        const decision = decide(call.run, error, fiber) as RetryDecision | Effect.Effect<RetryDecision>
        return Effect.isEffect(decision)
          ? Effect.flatMap(decision, (decided) => this.follow(decided, call, fiber))
          : this.follow(decision, call, fiber)
      }),
      this.ownServices
    )

  readonly recordSuccess: Service["recordSuccess"] = (token) =>
    Effect.sync(() => this.issuer.redeem(token).booking.succeeded(undefined))

  /** The context of the caller, but with the quota that the strategy was made with. */
  private readonly ownServices = (caller: Context.Context<never>): Context.Context<never> => {
    const context = this.lifted === undefined ? caller : Context.merge(this.lifted, caller)
    return this.quota === undefined ? context : Context.add(context, RetryQuota, this.quota) as Context.Context<never>
  }

  /** Issues a token once a send token, if sends take any, has been taken for its attempt. */
  private afterSendToken<E = never>(
    fiber: CallFiber,
    issue: (undo: Undo) => Token,
    atMost?: Patience<E>["atMost"]
  ): Effect.Effect<Token, E | Limiter.RateLimitExceeded> {
    const { limiter } = this
    if (limiter === undefined || !limiter.enabled) return Effect.succeed(issue([]))
    return limiter.afterToken(
      (sends) =>
        Effect.sync(() => {
          sends()
          return issue([() => limiter.putBack()])
        }),
      clockOf(fiber),
      atMost
    )
  }

  private follow(
    decision: RetryDecision,
    call: Call,
    fiber: CallFiber
  ): Effect.Effect<Token, RetryRefused | Limiter.RateLimitExceeded> {
    const { observer } = call.booking.environment
    if (!isRetryToken(decision)) {
      observer.onStop?.(decision, fiber)
      const refused = Effect.fail(new RetryRefused({ stopped: decision }))
      return decision.delayMillis === 0 ? refused : Effect.andThen(Effect.sleep(decision.delayMillis), refused)
    }
    observer.onRetry?.(decision, fiber)
    call.booking.token = decision
    return this.limiter === undefined
      ? Effect.succeed(this.handOver(decision, call, fiber, []))
      : this.backedOff(decision, call, fiber)
  }

  /** A retry waits for its send token until the deadline of its call. */
  private atMost({ deadlineAtMillis }: RetryToken, { run }: Call, fiber: CallFiber): Patience<RetryRefused>["atMost"] {
    return deadlineAtMillis === Infinity ? undefined : {
      millis: Math.max(0, deadlineAtMillis - monotonicMillis(clockOf(fiber))),
      expired: () => new RetryRefused({ stopped: run.stop("deadline") })
    }
  }

  /** Waits for the back-off before a send token is taken, as the SDKs do: a token that waits is one less for the others. */
  private backedOff(
    decision: RetryToken,
    call: Call,
    fiber: CallFiber
  ): Effect.Effect<Token, RetryRefused | Limiter.RateLimitExceeded> {
    const limited = Effect.flatMap(Effect.sleep(decision.delay), () => {
      const handOver = (undo: Undo) => this.handOver(decision, call, fiber, undo)
      return this.afterSendToken(fiber, handOver, this.atMost(decision, call, fiber))
    })
    return Effect.catch(limited, (refusal) => {
      decision.claimUnsafe()
      decision.held?.giveBackUnsafe()
      if (refusal._tag === "RetryRefused") call.booking.environment.observer.onStop?.(refusal.stopped, fiber)
      return Effect.fail(refusal)
    })
  }

  /** From here on the token, not the fiber that waits, answers for what is held. */
  private handOver(decision: RetryToken, call: Call, fiber: CallFiber, undo: Undo): Token {
    decision.claimUnsafe()
    const { attempt, cost, delayMillis, held } = decision
    const waitedMillis = this.limiter === undefined ? 0 : delayMillis
    return this.issuer.issue(call, {
      attempt: attempt + 1,
      delayMillis: delayMillis - waitedMillis,
      waitedMillis,
      cost,
      undo: held === undefined ? undo : [() => held.giveBackUnsafe(), ...undo],
      died: () => held?.spendUnsafe(),
      sent: held === undefined ? undefined : (sender) => held.sentUnsafe(sender)
    }, fiber)
  }
}

/**
 * Makes the strategy of a policy, with the services that are in the context: the quota, and the limiter if there is one.
 *
 * **Details**
 *
 * It decides as the policy does under `Effect.retry`: the same reasons, delays, costs and balances. Chance, clock,
 * classifier and observer are those of the caller of each method. Without a limiter a refreshed token says how long to
 * wait. With one, a refresh waits out the back-off itself and then for a send token, as the AWS SDKs do: the token's
 * delay is 0, and `waited` says how long the back-off was. The deadline of the policy ends the wait for a send token.
 *
 * **Gotchas**
 *
 * A lifted schedule must handle its own errors. A deadline counts from the initial token.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <R>(policy: Policy<R>): Effect.Effect<Service, never, R> =>
  Effect.contextWith((context: Context.Context<R>) =>
    Effect.sync(() => new Strategy(policy[TypeId], context as Context.Context<never>))
  )

/**
 * A layer with the strategy of a policy: see {@link make}.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <R>(policy: Policy<R>): Layer.Layer<RetryStrategy, never, R> =>
  Layer.effect(RetryStrategy, make(policy))

/** Waits for the attempt of a token, which then leaves; a token whose wait is interrupted is abandoned. */
const departure = ({ abandon, delay, leave }: Token): Effect.Effect<boolean> =>
  Duration.isZero(delay) ? leave : Effect.onInterrupt(Effect.andThen(Effect.sleep(delay), leave), () => abandon)

/** The metadata of a retry that a strategy gave leave for at `now`, after that of the attempt that failed. */
const following = (previous: Schedule.Metadata, input: unknown, output: Token, now: number): Schedule.Metadata => {
  const isFirst = previous.attempt === 0
  const start = isFirst ? now : previous.start
  return {
    input,
    output,
    duration: Duration.sum(output.waited, output.delay),
    attempt: previous.attempt + 1,
    start,
    now,
    elapsed: now - start,
    elapsedSincePrevious: isFirst ? 0 : now - previous.now
  }
}

/** One send, with the metadata of its attempt, marked if a policy asks for marks. */
const sending = <A, E, R>(send: Effect.Effect<A, E, R>, metadata: Schedule.Metadata): Effect.Effect<A, E, R> =>
  Effect.withFiber((fiber) => {
    const around = Context.getOrUndefined(fiber.context, Schedule.CurrentMetadata)
    const isBare = metadata.attempt === 0 && around === undefined
    const counted = isBare ? send : Effect.provideService(send, Schedule.CurrentMetadata, metadata)
    if (!nesting.inUse) return counted
    const mark = new Mark()
    const sent = Effect.updateContext(counted, (context: Context.Context<R>) => inside(context, mark))
    return Effect.ensuring(sent, Effect.sync(() => mark.active = false))
  })

/**
 * The request loop of the guide: a token, the attempt, another token after a failure, until one succeeds.
 *
 * **Details**
 *
 * The first attempt is made even if no token can be had for it: retrying is what a strategy decides about, not whether a
 * service may be called at all. Such a call is sent once. When a refresh is refused, the caller gets the error of its
 * last attempt, unchanged; an observer hears the reason. Each attempt has the `Schedule.CurrentMetadata` that it would
 * have under `Effect.retry`, but the output is the {@link Token} of the attempt.
 *
 * **Gotchas**
 *
 * So a limiter that fails fast holds back retries here, but no first attempt.
 *
 * **Example** (A call with a strategy)
 *
 * ```ts
 * const program = getItem.pipe(RetryStrategy.request)
 * const clientLayer = RetryStrategy.layer(awsStandard2026).pipe(Layer.provideMerge(RetryQuota.layer()))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const request = <A, E, R>(
  send: Effect.Effect<A, E, R>,
  operation?: Operation
): Effect.Effect<A, E, R | RetryStrategy> => {
  const first = Schedule.CurrentMetadata.defaultValue()
  return RetryStrategy.use((strategy) => {
    const attempt = (token: Token, metadata: Schedule.Metadata): Effect.Effect<A, E, R> =>
      Effect.flatMap(departure(token), () =>
        settling(
          sending(send, metadata),
          (value) => Effect.as(strategy.recordSuccess(token), value),
          (error: any) => failed(token, metadata, error),
          () => died(token)
        ))
    const failed = (token: Token, metadata: Schedule.Metadata, error: E) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        Effect.matchEffect(strategy.refreshRetryToken(token, error), {
          onSuccess: (next) => attempt(next, following(metadata, error, next, now)),
          onFailure: () => Effect.fail(error)
        }))
    return Effect.matchEffect(strategy.acquireInitialToken(operation), {
      onSuccess: (token) => attempt(token, first),
      onFailure: () => sending(send, first)
    })
  })
}
