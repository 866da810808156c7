import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Inspectable from "effect/Inspectable"
import { bringing } from "../../engine/callContext.ts"
import type { Compiled } from "../../engine/compiled.ts"
import { asDecision, Decider, decisionOf } from "../../engine/decider.ts"
import { type AnyFiber, CallEnvironment, environmentOf } from "../../engine/environment.ts"
import { fiberScope, Permit } from "../../engine/permit.ts"
import { Run } from "../../engine/run.ts"
import { admission, after, type AnyEffect, notified } from "../../engine/send.ts"
import type { RateLimitExceeded } from "../../gates/AdaptiveRateLimiter.ts"
import { remembering } from "../../internal/remembering.ts"
import type { AnyContext } from "../../internal/shared.ts"
import { isStop, type Retry, type RetryDecision, type Stop, type StopReason } from "../../RetryDecision.ts"
import * as RetryInfo from "../../RetryInfo.ts"
import { failureClass } from "../../RetryObserver.ts"
import { type QuotaExhausted, RetryQuota } from "../../RetryQuota.ts"

/**
 * Permission to make one attempt. A strategy accepts each of its tokens once.
 *
 * **Details**
 *
 * What a token holds of the quota (and of gates) is settled once: it goes back when the attempt succeeds, when the
 * token is abandoned before the attempt is sent, and when the fiber that got the token fails or is interrupted before
 * that; otherwise it is spent. A fiber that succeeds may have passed the token on, so a token it leaves behind is held
 * until it is used, abandoned or garbage.
 *
 * @category models
 * @since 0.1.0
 */
export interface Token {
  /** The number of the attempt it is for: 1 for the first. */
  readonly attempt: number
  /** How long to wait before the attempt is sent. */
  readonly delay: Duration.Duration
  /** The backoff that the strategy itself waited out before it issued the token. */
  readonly waited: Duration.Duration
  /** Quota tokens that the attempt holds. */
  readonly cost: number
  /** Marks the attempt as sent: what it holds is spent unless it succeeds. Returns `false` if the token is used up. */
  readonly markSent: Effect.Effect<boolean>
  /**
   * Marks the attempt as never sent: what it holds goes back. Returns `false` if it was sent or the token is used up.
   */
  readonly abandon: Effect.Effect<boolean>
}

/**
 * The defect of a token that a strategy does not accept: another strategy issued it (`"foreign"`), or a refresh, a
 * success or `abandon` has used it up (`"used"`).
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidToken extends Data.TaggedError("InvalidToken")<{
  /** What is wrong with the token. */
  readonly reason: "foreign" | "used"
}> {
  override get message(): string {
    return `the retry token ${this.reason === "foreign" ? "belongs to another strategy" : "has already been used"}`
  }
}

/**
 * What is known about the operation being called.
 *
 * @category models
 * @since 0.1.0
 */
export interface Operation {
  /**
   * Whether it polls: a call that the quota refuses to retry is then held for its delay before it fails. Default
   * `false`.
   */
  readonly longPolling?: boolean | undefined
}

/**
 * The call is not retried: why, and after how many attempts.
 *
 * @category errors
 * @since 0.1.0
 */
export class RetryRefused extends RetryInfo.TaggedError("RetryRefused", { safety: "No" })<{
  /** What the strategy decided. */
  readonly stop: Stop
}> {
  /** Why the call is not retried. */
  get reason(): StopReason {
    return this.stop.reason
  }
  override get message(): string {
    return `not retried after ${this.stop.attempts} attempts: ${this.reason}`
  }
}

/**
 * The operations of a strategy. The state of each call is in its tokens, not here.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service<out Refusal = RateLimitExceeded> {
  /**
   * Permission for the first attempt. Fails if the first attempt costs tokens that are not available, or a gate lets no
   * more sends through; may wait for either, as configured.
   */
  readonly acquireInitialToken: (operation?: Operation) => Effect.Effect<Token, QuotaExhausted | Refusal>
  /**
   * Permission to retry after a failure of the token's attempt. Fails with `RetryRefused` if it is not retried, after
   * the delay for which a long-polling call is held, if a gate refuses the send, or at the deadline if the gates do not let
   * it pass until then. Dies with `InvalidToken`.
   */
  readonly refreshRetryToken: (token: Token, error: unknown) => Effect.Effect<Token, RetryRefused>
  /**
   * Records the success of the token's attempt; gates see the value if given. Never waits. Dies with `InvalidToken`.
   */
  readonly recordSuccess: (token: Token, value?: unknown) => Effect.Effect<void>
}

/** Settles what a dropped token holds. Some Workers lack it. */
const dropped = typeof FinalizationRegistry === "undefined"
  ? undefined
  : /* @__PURE__ */ new FinalizationRegistry<Permit>((permit) => permit.abandon())

/** A token of a strategy: a run, and what is held for its next send. */
export class Issued extends Inspectable.Class implements Token {
  readonly permit: Permit
  readonly attempt: number
  readonly cost: number
  private isUsed = false

  constructor(
    readonly strategy: Strategy<unknown>,
    readonly decider: Decider,
    readonly delay: Duration.Duration,
    readonly waited: Duration.Duration
  ) {
    super()
    const permit = this.permit = decider.run.permit!
    this.attempt = permit.attempt
    this.cost = permit.reservation?.cost ?? 0
    if (permit.passes !== undefined || permit.reservation !== undefined) dropped?.register(this, permit)
  }

  get markSent(): Effect.Effect<boolean> {
    return Effect.withFiber((fiber) => {
      if (this.permit.state !== "taken") return Effect.succeed(false)
      // From now on the sending fiber is responsible for what is held.
      fiberScope(this.permit, fiber)
      this.permit.sent()
      return Effect.succeed(true)
    })
  }

  get abandon(): Effect.Effect<boolean> {
    return Effect.sync(() => this.permit.cancel() && this.use())
  }

  /** Returns `false` if the token is already used up. */
  use(): boolean {
    if (this.isUsed) return false
    return this.isUsed = true
  }

  toJSON(): unknown {
    const { attempt, cost, delay, waited } = this
    const [delayMillis, waitedMillis] = [delay, waited].map(Duration.toMillis)
    return { _tag: "RetryStrategyToken", attempt, delayMillis, waitedMillis, cost }
  }
}

/**
 * The attempt of a token was sent and ended without an outcome, for example aborted in flight. Does nothing if the
 * token is used up.
 */
export const discard = (token: Token | undefined): void => {
  if (!(token instanceof Issued && token.use())) return
  token.permit.sent()
  token.permit.abandon()
}

/** What a run holds goes back if this fails, or is interrupted. */
const settling = <A, E, R>(self: Effect.Effect<A, E, R>, run: Run): Effect.Effect<A, E, R> =>
  Effect.onError(self, () => Effect.sync(() => run.complete()))

/** The strategy of a compiled policy. */
export class Strategy<Refusal> implements Service<Refusal> {
  /** The services around a call: the caller's, and what the strategy brings. A context never changes, and calls share it. */
  readonly contextOf: (caller: AnyContext) => AnyContext

  constructor(private readonly compiled: Compiled, context: AnyContext) {
    this.contextOf = remembering(bringing(compiled, context))
  }

  readonly acquireInitialToken: Service<Refusal>["acquireInitialToken"] = (operation) =>
    Effect.withFiber((fiber) => {
      const environment = this.environmentIn(fiber.context)
      const run = new Run(environment)
      run.longPolling = operation?.longPolling
      const decider = new Decider(this.compiled, run).begins()
      const permit = run.permit = new Permit(environment, 0)
      // First sends cost nothing in the guide.
      const isFree = decider.compiled.refund !== undefined ||
        (environment.gates.length === 0 && !environment.store?.firstAttemptCost)
      if (!isFree) fiberScope(permit, fiber)
      const admitted = isFree ? undefined : admission(permit)
      const issue = () => new Issued(this, decider, Duration.zero, Duration.zero)
      return admitted === undefined
        ? Effect.succeed(issue())
        : Effect.map(settling(admitted, run), issue) as Effect.Effect<Token, any>
    })

  readonly refreshRetryToken: Service<Refusal>["refreshRetryToken"] = (token, error) =>
    Effect.updateContext(
      Effect.withFiber((fiber) => {
        const { decider } = this.redeemed(token, fiber)
        const { run } = decider
        const decided = Effect.suspend(() => asDecision(decisionOf(decider)))
        const next = Effect.flatMap(decided, (decision) => this.follow(decision, decider, fiber))
        return after(run.failed(error), settling(next, run))
      }),
      (caller: AnyContext) => this.contextOf(caller) as Context.Context<any>
    )

  readonly recordSuccess: Service["recordSuccess"] = (token, value) =>
    Effect.withFiber((fiber): Effect.Effect<void> => {
      const { decider: { compiled: { refund }, run }, permit } = this.redeemed(token, fiber)
      const { clock, store } = run.environment
      if (refund === undefined) return run.succeeded(value) ?? Effect.void
      permit.reservation?.spend()
      permit.succeeded(value)
      if (store !== undefined && store.balance(clock) <= store.capacity - refund) store.deposit(refund, clock)
      return notified(run.environment, true, undefined) ?? Effect.void
    })

  /** Its attempt was sent and has ended: the caller's services judge how, for the policy and for the gates. */
  private redeemed(token: Token, { context }: AnyFiber): Issued {
    if (!(token instanceof Issued) || token.strategy !== this) throw new InvalidToken({ reason: "foreign" })
    if (!token.use()) throw new InvalidToken({ reason: "used" })
    token.permit.environment = token.decider.run.environment = this.environmentIn(context)
    token.permit.sent()
    return token
  }

  /** The caller's clock and randomness, and what the strategy brings. */
  private environmentIn(caller: AnyContext): CallEnvironment {
    const context = this.contextOf(caller)
    return this.compiled.refund === undefined
      ? environmentOf(context)
      : new CallEnvironment(context, Context.getOrUndefined(context, RetryQuota), [])
  }

  private follow(decision: RetryDecision, decider: Decider, fiber: AnyFiber): AnyEffect {
    if (isStop(decision)) return refused(decision)
    const { run } = decider
    const permit = run.permit ??= new Permit(run.environment, run.attempt)
    permit.failureClass = failureClass(run.info)
    const isGated = run.environment.gates.length > 0
    if (isGated || permit.reservation !== undefined) fiberScope(permit, fiber)
    return isGated
      ? Effect.andThen(Effect.sleep(decision.delay), this.admitted(decision, decider))
      : Effect.succeed(new Issued(this, decider, decision.delay, Duration.zero))
  }

  /**
   * Asks gates after the backoff, as the SDKs do: a send token held during a wait is one less for the others.
   */
  private admitted({ delay }: Retry, decider: Decider): AnyEffect {
    const { run } = decider
    return Effect.flatMap(Effect.suspend(() => run.admits() ?? Effect.succeed(true)), (isIn): AnyEffect => {
      if (isIn) return Effect.succeed(new Issued(this, decider, Duration.zero, delay))
      const stop = run.stops(run.heldBack)
      return after(run.stopped(stop), refused(stop))
    })
  }
}

const refused = (stop: Stop): Effect.Effect<never, RetryRefused> => {
  const failure = Effect.fail(new RetryRefused({ stop }))
  return stop.delayMillis === 0 ? failure : Effect.andThen(Effect.sleep(stop.delay), failure)
}
