/**
 * The retry strategy of Smithy's retry guide, as a service over any policy.
 *
 * A schedule is driven from outside: `Effect.retry` owns the loop. The clients that Smithy generates own their loop
 * themselves, and ask a strategy three things: a token before the first attempt, another one after each failure, and to
 * take note of a success. Here is that interface for our policies, so that a policy decides alike wherever the loop is;
 * and here is that loop, {@link run}, for any strategy with this interface.
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
import type { RateLimitExceeded } from "./AdaptiveRateLimiter.ts"
import { type AnyEffect, asEffect, Call, deadlineAt, failed, succeeded } from "./engine/call.ts"
import { type Parts, partsIn } from "./engine/parts.ts"
import { Permit, watchOf } from "./engine/permit.ts"
import { partsOf } from "./engine/policy/policy.ts"
import { admission, admissionUntil, settling } from "./engine/send.ts"
import { type AnyFiber, InsideCall, Mark, World, worldOf } from "./engine/world.ts"
import { type AnyContext, shared } from "./internal/shared.ts"
import { isStop, type Retry, type RetryDecision, type Stop, type StopReason } from "./RetryDecision.ts"
import * as RetryInfo from "./RetryInfo.ts"
import { call as observed, CurrentResource } from "./RetryObserver.ts"
import type { Attempted, RetryPolicy } from "./RetryPolicy.ts"
import { type QuotaExhausted, RetryQuota } from "./RetryQuota.ts"

/**
 * Permission to make one attempt. A strategy takes each of its tokens once.
 *
 * **Details**
 *
 * What a token holds of the quota (and of gates) is settled once: it goes back when the attempt succeeds, when
 * the token is abandoned before the attempt is sent, and when the fiber that was given the token fails or is
 * interrupted before that; otherwise it is spent. A fiber that succeeds may have handed the token on, so a token that it
 * leaves behind is held until someone uses or abandons it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Token {
  /** The number of the attempt that it is for: 1 for the first. */
  readonly attempt: number
  /** How long to wait before the attempt is sent. */
  readonly delay: Duration.Duration
  /** The back-off that the strategy has waited out itself before it gave the token. */
  readonly waited: Duration.Duration
  /** Tokens of the quota that the attempt holds. */
  readonly cost: number
  /** The attempt is sent: what it holds is spent unless it succeeds. Answers `false` when the token is used up. */
  readonly leave: Effect.Effect<boolean>
  /** The attempt is never sent: what it holds goes back. Answers `false` when it was sent or the token is used up. */
  readonly abandon: Effect.Effect<boolean>
}

/**
 * The defect of a token that a strategy does not take: another one issued it (`"foreign"`), or a refresh, a success or
 * `abandon` has used it up (`"used"`).
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidToken extends Data.TaggedError("InvalidToken")<{
  /** What is wrong with the token. */
  readonly reason: "foreign" | "used"
}> {
  override get message(): string {
    return this.reason === "foreign"
      ? "the retry token is not one of this strategy"
      : "the retry token has been used up already"
  }
}

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
  readonly stop: Stop
}> {
  /** Why the call is not retried. */
  get reason(): StopReason {
    return this.stop.reason
  }
  get [RetryInfo.TypeId](): RetryInfo.RetryInfo {
    return RetryInfo.notRetryable
  }
  override get message(): string {
    return `not retried after ${this.stop.attempts} attempts: ${this.reason}`
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
   * Permission for the first attempt. Fails where the first attempt costs tokens that are not there, and where the limiter
   * lets no more sends through; may wait for either, as they are configured.
   */
  readonly acquireInitialToken: (
    operation?: Operation
  ) => Effect.Effect<Token, QuotaExhausted | RateLimitExceeded>
  /**
   * Permission to retry after a failure of the token's attempt. Fails with `RetryRefused` when it is not retried, after the
   * delay for which a long-polling call is held back, or at the deadline when the limiter has no send token until then;
   * with `RateLimitExceeded` when the limiter refuses the send. Dies with `InvalidToken`.
   */
  readonly refreshRetryToken: (
    token: Token,
    error: unknown
  ) => Effect.Effect<Token, RetryRefused | RateLimitExceeded>
  /**
   * Books the success of the token's attempt; gates see the value if it is given. Never waits. Dies with `InvalidToken`.
   */
  readonly recordSuccess: (token: Token, value?: unknown) => Effect.Effect<void>
}

/**
 * The retry strategy of a client.
 *
 * @category services
 * @since 0.1.0
 */
export class RetryStrategy extends Context.Service<RetryStrategy, Service>()("effect-retry/RetryStrategy") {}

type Policy<R> = RetryPolicy<Attempted, R, RateLimitExceeded>

const forLongPolling = (parts: Parts): Parts =>
  parts.quota === undefined ? parts : { ...parts, quota: { ...parts.quota, longPolling: true } }

/** A token of a strategy: a call, and what is held for its next attempt. */
class Issued implements Token {
  readonly strategy: Strategy
  readonly call: Call
  readonly permit: Permit
  readonly attempt: number
  readonly cost: number
  readonly delay: Duration.Duration
  waited: Duration.Duration = Duration.zero
  private isUsed = false

  constructor(strategy: Strategy, call: Call, permit: Permit, delayMillis: number) {
    this.strategy = strategy
    this.call = call
    this.permit = permit
    this.attempt = permit.attempt
    this.cost = permit.reservation?.cost ?? 0
    this.delay = Duration.millis(delayMillis)
  }

  get leave(): Effect.Effect<boolean> {
    return Effect.withFiber((fiber) => {
      if (this.permit.state !== "taken") return Effect.succeed(false)
      // From now on the fiber that sends answers for what is held.
      this.permit.watch?.release(this.permit)
      watchOf(fiber).hold(this.permit)
      this.permit.leave()
      return Effect.succeed(true)
    })
  }

  get abandon(): Effect.Effect<boolean> {
    return Effect.sync(() => this.permit.cancel() && this.use())
  }

  /** Answers `false` when the token has been used up before. */
  use(): boolean {
    if (this.isUsed) return false
    return this.isUsed = true
  }

  toJSON(): unknown {
    const { attempt, cost, delay, waited } = this
    const [delayMillis, waitedMillis] = [Duration.toMillis(delay), Duration.toMillis(waited)]
    return { _tag: "RetryStrategyToken", attempt, delayMillis, waitedMillis, cost }
  }
}

/**
 * The attempt of a token was sent and has ended without an outcome, as one does that is aborted in flight. Nothing happens
 * when the token is used up.
 *
 * @internal
 */
export const discard = (token: Token): void => {
  if (!(token instanceof Issued && token.use())) return
  token.permit.leave()
  token.permit.abandon()
}

class Strategy implements Service {
  private readonly parts: Parts
  private readonly context: AnyContext
  private readonly around: World

  constructor(parts: Parts, context: AnyContext) {
    this.parts = parts
    this.context = context
    this.around = worldOf(context)
  }

  readonly acquireInitialToken: Service["acquireInitialToken"] = (operation) =>
    Effect.withFiber((fiber) => {
      const world = this.worldOf(fiber.context)
      const own = partsIn(this.parts, world.context)
      const parts = operation?.longPolling === true ? forLongPolling(own) : own
      const call = new Call(parts, deadlineAt(parts, world))
      const permit = new Permit(world, 0)
      // First sends cost nothing in the guide.
      const isFree = parts.refund !== undefined || (world.gates.length === 0 && !world.store?.firstAttemptCost)
      const admitted = isFree ? undefined : admission(world, this.held(permit, fiber))
      const issue = () => new Issued(this, call, permit, 0)
      return admitted === undefined
        ? Effect.succeed(issue())
        : Effect.map(this.canceling(admitted, permit), issue) as Effect.Effect<Token, any>
    })

  readonly refreshRetryToken: Service["refreshRetryToken"] = (token, error) =>
    Effect.updateContext(
      Effect.withFiber((fiber) => {
        const { call, permit } = this.redeemed(token)
        const world = this.worldOf(fiber.context)
        permit.leave()
        const told = failed(world, permit, error)
        const next = (): AnyEffect => {
          const decision = call.failed(world, error, fiber)
          return Effect.isEffect(decision)
            ? Effect.flatMap(decision, (decided) => this.follow(decided, call, fiber))
            : this.follow(decision, call, fiber)
        }
        return told === undefined ? next() : Effect.flatMap(told, next)
      }),
      (caller: AnyContext) => this.own(caller) as Context.Context<any>
    )

  readonly recordSuccess: Service["recordSuccess"] = (token, value) =>
    Effect.withFiber((fiber): Effect.Effect<void> => {
      const { call, permit } = this.redeemed(token)
      const world = this.worldOf(fiber.context)
      permit.leave()
      const { refund } = call.parts
      if (refund === undefined) return succeeded(world, permit, permit.retry > 0, value) ?? Effect.void
      permit.reservation?.spend()
      permit.succeeded(value)
      const { store } = world
      const clock = world.clock
      if (store !== undefined && store.balance(clock) <= store.capacity - refund) store.deposit(refund, clock)
      return succeeded(world, undefined, true, value) ?? Effect.void
    })

  private redeemed(token: Token): Issued {
    if (!(token instanceof Issued) || token.strategy !== this) throw new InvalidToken({ reason: "foreign" })
    if (!token.use()) throw new InvalidToken({ reason: "used" })
    return token
  }

  /** The caller's clock, randomness, classifier and observer, and the quota, its resource and the gates of the strategy. */
  private worldOf(caller: AnyContext): World {
    const resource = Context.get(this.context, CurrentResource)
    return new World(
      resource === undefined ? caller : Context.add(caller, CurrentResource, resource) as AnyContext,
      Context.getOrUndefined(this.context, RetryQuota),
      this.parts.refund === undefined ? this.around.gates : []
    )
  }

  /** What a lifted schedule finds in its context. */
  private own(caller: AnyContext): AnyContext {
    const context = typeof this.parts.source === "function" ? caller : Context.merge(this.context, caller)
    const quota = Context.getOrUndefined(this.context, RetryQuota)
    return quota === undefined ? context : Context.add(context, RetryQuota, quota) as AnyContext
  }

  private held(permit: Permit, fiber: AnyFiber): Permit {
    permit.kind = "outlives"
    if (permit.watch === undefined) watchOf(fiber).hold(permit)
    return permit
  }

  private canceling<A, E, R>(self: Effect.Effect<A, E, R>, permit: Permit): Effect.Effect<A, E, R> {
    return Effect.onError(self, () => Effect.sync(() => permit.cancel()))
  }

  private follow(decision: RetryDecision, call: Call, fiber: AnyFiber): AnyEffect {
    if (isStop(decision)) return refused(decision)
    const world = this.worldOf(fiber.context)
    const permit = call.permit ?? new Permit(world, call.attempt)
    permit.kind = "outlives"
    if (world.gates.length > 0) this.held(permit, fiber)
    return world.gates.length === 0
      ? Effect.succeed(new Issued(this, call, permit, decision.delayMillis))
      : this.backedOff(decision, call, permit, fiber)
  }

  /** Waits for the back-off before gates are asked, as the SDKs do: a send token that waits is one less for the others. */
  private backedOff(decision: Retry, call: Call, permit: Permit, fiber: AnyFiber): AnyEffect {
    const { world } = permit
    const issue = () => {
      const issued = new Issued(this, call, permit, 0)
      issued.waited = decision.delay
      return Effect.succeed(issued)
    }
    const ended = (error: unknown): AnyEffect =>
      Effect.flatMap(asEffect(call.failed(world, error, fiber)), (stop) => refused(stop as Stop))
    const admitted = Effect.suspend((): AnyEffect => {
      const waiting = admissionUntil(world, permit, call.deadlineAtMillis)
      if (waiting === undefined) return issue()
      return Effect.flatMap(waiting, (isIn): AnyEffect => {
        if (isIn) return issue()
        permit.cancel()
        call.ends = "deadline"
        return ended(call.error)
      })
    })
    const told = Effect.catch(admitted, (refusal) =>
      refusal instanceof RetryRefused
        ? Effect.fail(refusal)
        // A gate refuses: the caller gets its error, and the observer is notified that the call ends.
        : Effect.andThen(Effect.ignore(Effect.suspend(() => (permit.cancel(), ended(refusal)))), Effect.fail(refusal)))
    return this.canceling(Effect.andThen(Effect.sleep(decision.delay), told), permit)
  }
}

const refused = (stop: Stop): Effect.Effect<never, RetryRefused> => {
  const failure = Effect.fail(new RetryRefused({ stop }))
  return stop.delayMillis === 0 ? failure : Effect.andThen(Effect.sleep(stop.delay), failure)
}

/**
 * Makes the strategy of a compiled policy.
 *
 * @internal
 */
export const fromParts = (parts: Parts, context: AnyContext): Service => new Strategy(parts, context)

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
    Effect.sync(() => fromParts(partsOf(policy), context as AnyContext))
  )

/**
 * A layer with the strategy of a policy: see {@link make}.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <R>(policy: Policy<R>): Layer.Layer<RetryStrategy, never, R> =>
  Layer.effect(RetryStrategy, make(policy))

/**
 * Waits for the attempt of a token, which then leaves; a token whose wait is interrupted is abandoned.
 *
 * @internal
 */
export const departure = ({ abandon, delay, leave }: Token): Effect.Effect<boolean> =>
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
    if (!shared.nesting) return counted
    const mark = new Mark(new World(fiber.context, undefined, []), fiber)
    const sent = Effect.provideService(counted, InsideCall, mark)
    return Effect.ensuring(sent, Effect.sync(() => mark.ended()))
  })

/**
 * The request loop of the guide: a token, the attempt, another token after a failure, until one succeeds.
 *
 * **Details**
 *
 * The first attempt is made even if no token can be had for it: retrying is what a strategy decides about, not whether a
 * service may be called at all. Such a call is sent once. When a refresh is refused, the caller gets the error of its
 * last attempt, unchanged; an observer is notified of the reason. Each attempt has the `Schedule.CurrentMetadata` that it would
 * have under `Effect.retry`, but the output is the {@link Token} of the attempt.
 *
 * **Gotchas**
 *
 * So a limiter that fails fast holds back retries here, but no first attempt.
 *
 * **Example** (A call with a strategy)
 *
 * ```ts
 * const program = getItem.pipe(RetryStrategy.run)
 * const clientLayer = RetryStrategy.layer(awsStandard2026).pipe(Layer.provideMerge(RetryQuota.layer()))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const run = <A, E, R>(
  send: Effect.Effect<A, E, R>,
  operation?: Operation
): Effect.Effect<A, E, R | RetryStrategy> => {
  const first = Schedule.CurrentMetadata.defaultValue()
  return RetryStrategy.use((strategy) => {
    const attempt = (token: Token, metadata: Schedule.Metadata): Effect.Effect<A, E, R> =>
      Effect.flatMap(departure(token), () =>
        settling(
          sending(send, metadata),
          (value) => Effect.as(strategy.recordSuccess(token, value), value),
          (error: any) => failed(token, metadata, error),
          () => discard(token)
        ))
    const failed = (token: Token, metadata: Schedule.Metadata, error: E) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        Effect.matchEffect(strategy.refreshRetryToken(token, error), {
          onSuccess: (next) => attempt(next, following(metadata, error, next, now)),
          onFailure: () => Effect.fail(error)
        }))
    return observed(Effect.matchEffect(strategy.acquireInitialToken(operation), {
      onSuccess: (token) => attempt(token, first),
      onFailure: () => sending(send, first)
    }))
  })
}
