import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Pull from "effect/Pull"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import { catchDone } from "../internal/effect-retry needs effect 4.1 (npm install effect@4).ts"
import { type Onward, telling } from "../internal/onward.ts"
import type { AnyContext } from "../internal/shared.ts"
import { classify, CurrentClassifier } from "../RetryClassifier.ts"
import { Retry, type RetryDecision, Stop, type StopReason } from "../RetryDecision.ts"
import type { RetryInfo } from "../RetryInfo.ts"
import type { Ask, RetryQuotaStore, Shortage } from "../RetryQuotaStore.ts"
import { warnTooSmall } from "../state/sharing.ts"
import { type Delay, delayOf, type Failing, hintTooLong } from "./delay.ts"
import type { Lifted, Parts } from "./parts.ts"
import { type Permit, permitOf } from "./permit.ts"
import { verdictOf } from "./verdict.ts"
import { type AnyFiber, isNested, type World } from "./world.ts"

/** What a policy decides: immediately, or after asking and waiting. */
export type Decision = RetryDecision | Effect.Effect<RetryDecision, unknown, unknown>

export type AnyEffect = Effect.Effect<any, any, any>

type Step = (now: number, error: unknown) => Pull.Pull<[unknown, Duration.Duration], unknown, unknown, unknown>

/** The deadline of a call that begins now, in milliseconds of the monotonic clock; `Infinity` without a deadline. */
export const deadlineAt = ({ deadlineMillis }: Parts, world: World): number =>
  Math.min(
    world.onward?.deadlineAtMillis ?? Infinity,
    deadlineMillis === Infinity ? Infinity : world.nowMillis + deadlineMillis
  )

/** One call, and the result of its failures so far. */
export class Call implements Failing {
  readonly parts: Parts
  readonly deadlineAtMillis: number
  error: unknown = undefined
  info: RetryInfo | undefined = undefined
  attempt = 0
  step = 0
  previousMillis = 0
  random!: Random.Random
  /** What is held for the retry that was decided; `undefined` if nothing. */
  permit: Permit | undefined = undefined
  /** The reason to stop at, whatever fails next: a retry could not be sent. */
  ends: StopReason | undefined = undefined
  /** Whether a schedule decides: its paying retries may never be sent, so the sender notifies the observer. */
  private readonly defers: boolean
  protected cost = 0
  private lifted: Step | undefined = undefined

  constructor(parts: Parts, deadlineAtMillis: number, defers = false) {
    this.parts = parts
    this.deadlineAtMillis = deadlineAtMillis
    this.defers = defers
  }

  restart(): void {
    this.step = 0
    this.previousMillis = 0
  }

  /**
   * Decides on a failure: retryable, attempts, quota, delay, deadline, in this order. The cost of the retry is settled
   * with the fiber, if one is given, from the step in which it is taken.
   */
  failed(world: World, error: unknown, fiber?: AnyFiber): Decision {
    this.permit = undefined
    if (this.ends) return this.stop(world, this.ends)
    this.error = error
    this.attempt++
    this.step++
    this.info = Option.getOrUndefined(classify(Context.get(world.context, CurrentClassifier), error))
    const { parts } = this
    const verdict = verdictOf(parts, this, parts.outermostOnly && isNested(world.context))
    if (typeof verdict !== "number") return this.stop(world, verdict)
    this.cost = verdict
    return typeof parts.source === "function"
      ? this.priced(world, parts.source, fiber)
      : this.stepped(world, parts.source, fiber)
  }

  /** Asks the lifted schedule for the delay, then continues like any other policy. */
  private stepped(
    world: World,
    source: Lifted,
    fiber: AnyFiber | undefined
  ): Effect.Effect<RetryDecision, unknown, unknown> {
    if (this.lifted === undefined) {
      return Effect.flatMap(Schedule.toStep(source), (step) => {
        this.lifted = step
        return this.stepped(world, source, fiber)
      })
    }
    const { lifted } = this
    const decided = Effect.flatMap(
      Effect.suspend(() => lifted(world.clock.currentTimeMillisUnsafe(), this.error)),
      ([, delay]) => asEffect(this.priced(world, () => Duration.toMillis(delay), fiber))
    )
    return catchDone(decided, () => Effect.suspend(() => asEffect(this.stop(world, "schedule"))))
  }

  /** Asks the quota for the cost of the retry. */
  protected priced(world: World, source: Delay, fiber: AnyFiber | undefined): Decision {
    const { cost } = this
    if (this.parts.quota === undefined) return this.delayed(world, source, undefined, 0)
    const permit = this.permit = permitOf(world, this.attempt, fiber)
    const { clock } = world
    const store = world.store!
    if (world.lapses?.nextMillis) world.lapses.lapse(clock)
    const answer = store.reserve(cost, clock)
    if (typeof answer === "function" && cost <= store.capacity) {
      return store.whenExhausted === "wait"
        ? this.waited(world, source, permit, answer)
        : this.asked(world, source, permit, answer)
    }
    if (typeof answer !== "object") return this.unpaid(world, source, permit)
    permit.reservation = answer
    return this.delayed(world, source, permit, cost)
  }

  /** The quota refuses the retry. A polling call is held back before it fails, by `drawn` if the delay is known. */
  private unpaid(world: World, source: Delay, permit: Permit, drawn?: number): Decision {
    permit.cancel()
    const { capacity } = world.store!
    if (this.cost > capacity) warnTooSmall(world.context, world.clock, this.cost, capacity)
    const delay = this.parts.quota!.longPolling ? drawn ?? this.delay(world, source, undefined) : 0
    return this.stop(world, "quota-exhausted", typeof delay === "number" ? delay : 0)
  }

  /** Waits for tokens as long as the retry can still begin before the deadline. */
  private waited(world: World, source: Delay, permit: Permit, ask: Ask): Decision {
    const delay = this.delay(world, source, permit)
    if (typeof delay !== "number") return this.given(world, delay, permit, 0)
    return this.paid(permit, ask, this.patienceFor(world, delay), (cost, shortage) => {
      if (cost === undefined && (shortage === "refused" || this.deadlineAtMillis === Infinity)) {
        return this.unpaid(world, source, permit, this.passesDeadline(world, delay) ? 0 : delay)
      }
      const isLate = cost === undefined || this.passesDeadline(world, delay)
      return this.given(world, isLate ? "deadline" : delay, permit, cost ?? 0)
    })
  }

  /** Asks a remote quota, until the deadline at most. */
  private asked(world: World, source: Delay, permit: Permit, ask: Ask): Decision {
    return this.paid(permit, ask, this.patienceFor(world, 0), (cost) => {
      if (cost !== undefined) return this.delayed(world, source, permit, cost)
      if (!this.passesDeadline(world, 0)) return this.unpaid(world, source, permit)
      permit.cancel()
      return this.stop(world, "deadline")
    })
  }

  /** How long waiting for tokens is useful to a retry with this delay. */
  patienceFor(world: World, delayMillis: number): number {
    return this.deadlineAtMillis === Infinity
      ? Infinity
      : Math.max(0, this.deadlineAtMillis - world.nowMillis - delayMillis)
  }

  private paid(
    permit: Permit,
    ask: Ask,
    patienceMillis: number,
    next: (cost: number | undefined, shortage: Shortage) => Decision
  ): Effect.Effect<RetryDecision, unknown, unknown> {
    return Effect.flatMap(
      asking(ask, permit, patienceMillis),
      (shortage) => asEffect(next(permit.reservation?.cost, shortage))
    )
  }

  protected delayed(world: World, source: Delay, permit: Permit | undefined, cost: number): Decision {
    return this.given(world, this.delay(world, source, permit), permit, cost)
  }

  /** Retries after a delay, or stops for a reason. */
  private given(world: World, delay: number | StopReason, permit: Permit | undefined, cost: number): Decision {
    if (typeof delay === "number") {
      this.permit = permit
      const retry = new Retry(this, delay, cost)
      return this.defers && permit !== undefined ? retry : this.announced(world, retry, permit)
    }
    permit?.cancel()
    return this.stop(world, delay)
  }

  /** The delay in whole milliseconds, or why there is none. If a user's function throws, no token is lost. */
  private delay(world: World, source: Delay, permit: Permit | undefined): number | StopReason {
    this.random = Context.get(world.context, Random.Random)
    try {
      const delay = delayOf(source, this.parts.adjusts, this)
      if (delay < 0) return delay === hintTooLong ? "retry-after-too-long" : "schedule"
      return this.passesDeadline(world, delay) ? "deadline" : delay
    } catch (error) {
      permit?.cancel()
      throw error
    }
  }

  private passesDeadline(world: World, delayMillis: number): boolean {
    return this.deadlineAtMillis !== Infinity && world.nowMillis + delayMillis >= this.deadlineAtMillis
  }

  /** Notifies the observer of a retry. If it throws or dies, the call ends and the retry is never sent. */
  announced(world: World, retry: Retry, permit: Permit | undefined): Decision {
    const { onRetry } = world.observer
    if (onRetry === undefined) return retry
    try {
      const told = onRetry(retry, this.error, world.context)
      if (!isWait(told)) return retry
      return Effect.as(Effect.onError(told, () => Effect.sync(() => permit?.cancel())), retry)
    } catch (defect) {
      permit?.cancel()
      throw defect
    }
  }

  /** Notifies the observer that the call ends. */
  stop(world: World, reason: StopReason, delayMillis = 0): Decision {
    const stop = new Stop(this, reason, delayMillis)
    const told = world.observer.onStop?.(stop, this.error, world.context)
    return isWait(told) ? Effect.as(told, stop) : stop
  }
}

/** The context inside a send of a call made in the one around it, with what it tells the process it goes to. */
export const sentOn = (
  { attempt, deadlineAtMillis, parts }: Call,
  onward: Onward,
  around: AnyContext,
  inside: AnyContext
): AnyContext => {
  const { maxAttempts, outermostOnly } = parts
  const retries = maxAttempts > 1 && !(outermostOnly && isNested(around))
  const next = retries ? { ...onward, attempt: attempt + 1, maxAttempts } : onward
  return telling(inside, { ...next, deadlineAtMillis: Math.min(onward.deadlineAtMillis, deadlineAtMillis) })
}

export const asEffect = (decision: Decision): Effect.Effect<RetryDecision, unknown, unknown> =>
  Effect.isEffect(decision) ? decision : Effect.succeed(decision)

/** Asks for tokens, at most this long. The permit holds them from the step in which they are taken. */
export const asking = (ask: Ask, permit: Permit, patienceMillis: number): Effect.Effect<Shortage> => {
  const asked = ask(Duration.millis(patienceMillis), (reservation) => permit.pay(reservation))
  return waiting(permit.world, "RetryQuota", within(asked, patienceMillis))
}

/** Waits at most this long. */
export const within = <A, E, R>(self: Effect.Effect<A, E, R>, millis: number): Effect.Effect<A | void, E, R> =>
  millis === Infinity ? self : Effect.timeoutOrElse(self, { duration: millis, orElse: () => Effect.void })

/** A wait, as reported to the observer. */
export const waiting = <A, E>(
  { context, observer }: World,
  gate: string | undefined,
  wait: Effect.Effect<A, E>
): Effect.Effect<A, E> => observer.onWait?.(wait, gate, context) ?? wait

/** Whether an observer makes the call wait. */
export const isWait = (told: unknown): told is Effect.Effect<void> => Effect.isEffect(told)

/** Notifies the observer of an attempt; returns what the call has to wait for. */
export const notified = (
  { context, observer }: World,
  succeeded: boolean,
  error: unknown
): Effect.Effect<void> | undefined => {
  const wait = observer.onAttempt?.(succeeded, error, context)
  return isWait(wait) ? wait : undefined
}

/** A send has succeeded: what its retry holds goes back; without a retry, the quota gains tokens. */
export const succeeded = (
  world: World,
  permit: Permit | undefined,
  isRetry: boolean,
  value: unknown
): Effect.Effect<void> | undefined => {
  permit?.succeeded(value)
  if (!isRetry) earn(world.store, world.clock)
  return notified(world, true, undefined)
}

/** A call has succeeded without a retry. */
export const earn = (store: RetryQuotaStore | undefined, clock: Clock.Clock): void => {
  if (store !== undefined && store.successIncrement > 0 && store.isFull !== true) {
    store.deposit(store.successIncrement, clock)
  }
}

/** A send has failed: what its retry holds is spent. */
export const failed = (world: World, permit: Permit | undefined, error: unknown): Effect.Effect<void> | undefined => {
  permit?.failed(error)
  return notified(world, false, error)
}
