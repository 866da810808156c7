/**
 * A run: one retried effect, whatever drives it, and its one account. Policies decide; the run pays, notifies and
 * settles, once each.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { propagationIn } from "../internal/propagation.ts"
import { type AnyContext, shared } from "../internal/shared.ts"
import { classify } from "../RetryClassifier.ts"
import { Retry, Stop, type StopReason } from "../RetryDecision.ts"
import type { RetryInfo } from "../RetryInfo.ts"
import { failureClass } from "../RetryObserver.ts"
import type { Ask } from "../RetryQuotaStore.ts"
import { type AnyFiber, type CallEnvironment, CurrentScope, isInside, SendScope } from "./environment.ts"
import { Permit } from "./permit.ts"
import { admissionUntil, type AnyEffect, earn, notified, waited } from "./send.ts"

/** What a policy would do after a failure. */
export interface Offer {
  readonly delayMillis: number
  readonly cost: number
  /** Until when the send may begin, in milliseconds of the monotonic clock. */
  readonly untilMillis: number
  readonly maxAttempts: number
}

/** Where a schedule is stepped, and when the policy around it began and ends, in milliseconds of the monotonic clock. */
interface Within {
  readonly fiber: AnyFiber
  readonly depth: number
  readonly startMillis: number | undefined
  readonly deadlineAtMillis: number
}

/** What the policies inside a schedule offer after a failure. The schedule decides which of them counts. */
export class Offers {
  /** The dearest. */
  cost = 0
  maxAttempts = Infinity
  last: Retry | undefined = undefined
  /** Why the first of those that stop does so, and how long the caller is held. */
  reason: StopReason | undefined = undefined
  holdMillis = 0
  /** Until when the retries may begin, of those for which that is bounded. */
  private untils: Array<number> | undefined = undefined
  private isUnbounded = false

  constructor(
    readonly run: Run,
    /** The policy that steps the schedule, and where. */
    readonly within: Within | undefined = undefined
  ) {}

  /** How deep the stack of a fiber was: loops above belong to the schedule. */
  depthIn(fiber: AnyFiber): number {
    return this.within?.fiber === fiber ? this.within.depth : 0
  }

  add({ cost, delayMillis, maxAttempts, untilMillis }: Offer): Retry {
    this.cost = Math.max(this.cost, cost)
    this.maxAttempts = Math.min(this.maxAttempts, maxAttempts)
    if (untilMillis === Infinity) this.isUnbounded = true
    else (this.untils ??= []).push(untilMillis)
    return this.last = new Retry(this.run, delayMillis, cost, maxAttempts)
  }

  refuse(reason: StopReason, holdMillis: number): Stop {
    this.reason ??= reason
    this.holdMillis = Math.max(this.holdMillis, holdMillis)
    return new Stop(this.run, reason, holdMillis)
  }

  /** The nearest that a retry at this moment meets: the policy of another did not decide. If it meets none, the last. */
  untilAfter(millis: number): number {
    const { isUnbounded, untils } = this
    if (untils === undefined) return Infinity
    const met = untils.filter((until) => until > millis)
    if (met.length > 0) return Math.min(...met)
    return isUnbounded ? Infinity : Math.max(...untils)
  }
}

/** What the classifier in force knows of an error. */
export const infoOf = ({ classifier }: CallEnvironment, error: unknown): RetryInfo | undefined =>
  Option.getOrUndefined(classify(classifier, error))

export class Run {
  /** What the send holds that is made next, or in flight. */
  permit: Permit | undefined = undefined
  /** The sends that have failed. */
  attempt = 0
  error: unknown = undefined
  info: RetryInfo | undefined = undefined
  /** A send is in flight. */
  isSent = false
  /** The gate that has refused its retry. */
  declare gate: string | undefined
  /** The last retry. */
  retry: Retry | undefined = undefined
  /** Until when the next send may begin, and how many there may be. */
  limits: Pick<Offer, "untilMillis" | "maxAttempts"> | undefined = undefined
  /** Whether a caller that the quota refuses is held back, whatever the policy says. */
  declare longPolling: boolean | undefined
  declare private scope: SendScope | undefined

  constructor(public environment: CallEnvironment) {}

  get deadlineAtMillis(): number {
    return this.limits?.untilMillis ?? Infinity
  }

  get maxAttempts(): number {
    return this.limits?.maxAttempts ?? Infinity
  }

  /** The wall clock, in milliseconds. */
  get wallMillis(): number {
    return this.environment.clock.currentTimeMillisUnsafe()
  }

  /** The send has failed. */
  failed(error: unknown): Effect.Effect<void> | undefined {
    const { permit } = this
    this.arrived()
    this.permit = undefined
    permit?.failed(error)
    this.record(error)
    return notified(this.environment, false, error)
  }

  /** A failure to decide about. */
  record(error: unknown, info = infoOf(this.environment, error)): void {
    this.error = error
    this.attempt++
    this.info = info
  }

  /** At most one reservation per failure: it grows to the dearest that is asked for. */
  pays(cost: number): boolean | Ask {
    const { store } = this.environment
    const permit = this.permit ??= new Permit(this.environment, this.attempt)
    if (this.holds(cost)) return true
    const { reservation } = permit
    if (reservation?.resize !== undefined) return reservation.resize(cost)
    const answer = store!.reserve(cost - (reservation?.cost ?? 0), this.environment.clock)
    if (typeof answer === "function") return cost <= store!.capacity && answer
    if (answer !== undefined) permit.pay(answer)
    return answer !== undefined
  }

  /** Whether it holds this many tokens. */
  holds(cost: number): boolean {
    return (this.permit?.reservation?.cost ?? -1) >= cost
  }

  /** It will be retried: what was reserved beyond the cost goes back. Notifies, once. */
  retries(offer: Offer, offered?: Retry): AnyEffect | undefined {
    const { permit, environment } = this
    permit?.shrink(offer.cost)
    this.limits = offer
    const retry = this.retry = offered ?? new Retry(this, offer.delayMillis, offer.cost, offer.maxAttempts)
    try {
      const wait = waited(environment.observer.onRetry?.(retry, this.error, environment.context))
      return wait && Effect.onError(wait, () => Effect.sync(() => this.complete()))
    } catch (defect) {
      this.complete()
      throw defect
    }
  }

  /** It will not be retried: everything goes back. */
  stops(reason: StopReason, holdMillis = 0): Stop {
    this.complete()
    return new Stop(this, reason, holdMillis)
  }

  /** Notifies of the end. */
  stopped(stop: Stop): Effect.Effect<void> | undefined {
    return waited(this.environment.observer.onStop?.(stop, this.error, this.environment.context))
  }

  /**
   * Asks quota and gates for the next send: `undefined` if it may be made now; else an effect that says whether it may
   * before the deadline. A first send that is refused fails as what refuses it; a retry may not be made.
   */
  admits(): Effect.Effect<boolean, unknown> | undefined {
    const { attempt, deadlineAtMillis, environment } = this
    const isFree = environment.gates.length === 0 && environment.observer.onSend === undefined &&
      (attempt === 0 ? environment.isQuiet : deadlineAtMillis === Infinity)
    if (isFree) return undefined
    const permit = this.permit ??= new Permit(environment, attempt)
    if (attempt === 0) return admissionUntil(permit, Infinity)
    permit.failureClass = failureClass(this.info)
    const admitted = admissionUntil(permit, deadlineAtMillis)
    return admitted && Effect.catch(admitted, () => {
      this.gate = permit.gate
      return Effect.succeed(false)
    })
  }

  /** Why a retry that was decided on may not be made. */
  get heldBack(): StopReason {
    return this.gate ? "vetoed" : "deadline"
  }

  /** The send is made. */
  sent(): void {
    this.permit?.sent()
    this.isSent = true
  }

  succeeded(value: unknown): Effect.Effect<void> | undefined {
    this.arrived()
    this.permit?.succeeded(value)
    if (this.retry === undefined && !isInside(this.environment)) earn(this.environment)
    return notified(this.environment, true, undefined)
  }

  /** It ends without an outcome, or before its send is made. */
  complete(): void {
    this.arrived()
    this.permit?.abandon()
    this.permit = undefined
  }

  private arrived(): void {
    this.isSent = false
    this.scope?.close()
  }

  /** The context of a send: it names the run that accounts for it. */
  inside(fiber: AnyFiber): AnyContext {
    const { context, inside, propagated } = this.environment
    const scoped = shared.marking
      ? Context.add(context, CurrentScope, this.scope = new SendScope(this.environment, fiber, this))
      : inside
    return propagated === undefined ? scoped : propagationIn(context)!.sentBy(this, scoped)
  }
}

/** A run that takes nothing from the quota. */
export class FreeRun extends Run {
  override pays(): boolean {
    return true
  }
}

/** What is repeated because it succeeds: no retry, so nothing pays and no observer is notified. */
export class Repetition extends FreeRun {
  override failed(value: unknown): undefined {
    this.record(value)
  }
}

/** What is offered in the step of a schedule around this. */
export const CurrentOffers = /* @__PURE__ */ Context.Reference<Offers | undefined>("effect-retry/CurrentOffers", {
  defaultValue: () => undefined
})
