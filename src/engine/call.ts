import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Pull from "effect/Pull"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import { CurrentOnward } from "../internal/onward.ts"
import type { AnyContext } from "../internal/shared.ts"
import { classify, CurrentClassifier } from "../RetryClassifier.ts"
import { Retry, type RetryDecision, Stop, type StopReason } from "../RetryDecision.ts"
import type { RetryInfo } from "../RetryInfo.ts"
import type { Ask, RetryQuotaStore } from "../RetryQuotaStore.ts"
import { warnTooSmall } from "../state/sharing.ts"
import { type Delay, delayOf, type Failing, hintTooLong } from "./delay.ts"
import type { Lifted, Parts } from "./parts.ts"
import { type Permit, permitOf } from "./permit.ts"
import { verdictOf } from "./verdict.ts"
import { type AnyFiber, isNested, type World } from "./world.ts"

/** What a policy decides: immediately, or when it has asked and waited. */
export type Decision = RetryDecision | Effect.Effect<RetryDecision, unknown, unknown>

export type AnyEffect = Effect.Effect<any, any, any>

type Step = (now: number, error: unknown) => Pull.Pull<[unknown, Duration.Duration], unknown, unknown, unknown>

/** When a call that begins now has to end, in milliseconds of the monotonic clock; `Infinity` without a deadline. */
export const deadlineAt = ({ deadlineMillis }: Parts, world: World): number =>
  Math.min(
    world.onward?.deadlineAtMillis ?? Infinity,
    deadlineMillis === Infinity ? Infinity : world.nowMillis + deadlineMillis
  )

/** One call: what its failures so far come to. */
export class Call implements Failing {
  readonly parts: Parts
  readonly deadlineAtMillis: number
  error: unknown = undefined
  info: RetryInfo | undefined = undefined
  attempt = 0
  step = 0
  previousMillis = 0
  random!: Random.Random
  /** What is held for the retry that was decided on; `undefined` when nothing is. */
  permit: Permit | undefined = undefined
  /** The reason to stop at, whatever fails next: a retry could not be sent. */
  ends: StopReason | undefined = undefined
  /** A schedule decides: its retries that pay may never come, so the one who sends them notifies the observer. */
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
   * Decides on a failure: retryable, attempts, quota, delay, deadline, in this order. What the retry costs is settled
   * with the fiber, from the step in which it is taken.
   */
  failed(world: World, error: unknown, fiber: AnyFiber | undefined): Decision {
    this.permit = undefined
    if (this.ends !== undefined) return this.stop(world, this.ends)
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

  /** Asks the lifted schedule for the delay, then goes on as with any other. */
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
    return Pull.catchDone(decided, () => Effect.suspend(() => asEffect(this.stop(world, "schedule"))))
  }

  /** Asks the quota for what the retry costs. */
  protected priced(world: World, source: Delay, fiber: AnyFiber | undefined): Decision {
    const { cost } = this
    if (this.parts.quota === undefined) return this.delayed(world, source, undefined, 0)
    const permit = this.permit = permitOf(world, this.attempt, fiber)
    if (this.defers) permit.kind = "lapses"
    const { clock, lapses } = world
    const store = world.store!
    if (lapses !== undefined && lapses.nextMillis !== undefined) lapses.lapse(clock)
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

  /** The quota refuses the retry. A call that polls is held back before it fails. */
  private unpaid(world: World, source: Delay, permit: Permit): Decision {
    permit.cancel()
    const { capacity } = world.store!
    if (this.cost > capacity) warnTooSmall(world.context, world.clock, this.cost, capacity)
    const delay = this.parts.quota!.longPolling ? this.delay(world, source, undefined) : 0
    return this.stop(world, "quota-exhausted", typeof delay === "number" ? delay : 0)
  }

  /** Waits for tokens as long as the retry can still begin before the deadline. */
  private waited(world: World, source: Delay, permit: Permit, ask: Ask): Decision {
    const delay = this.delay(world, source, permit)
    if (typeof delay !== "number") return this.given(world, delay, permit, 0)
    return this.paid(permit, ask, this.patienceFor(world, delay), (cost) => {
      if (cost === undefined) {
        return this.given(world, this.deadlineAtMillis === Infinity ? "quota-exhausted" : "deadline", permit, 0)
      }
      return this.given(world, this.passesDeadline(world, delay) ? "deadline" : delay, permit, cost)
    })
  }

  /** Asks a quota that is not in this process, at most until the deadline. */
  private asked(world: World, source: Delay, permit: Permit, ask: Ask): Decision {
    return this.paid(permit, ask, this.patienceFor(world, 0), (cost) => {
      if (cost !== undefined) return this.delayed(world, source, permit, cost)
      if (!this.passesDeadline(world, 0)) return this.unpaid(world, source, permit)
      permit.cancel()
      return this.stop(world, "deadline")
    })
  }

  /** How long waiting for tokens is of use to a retry with this delay. */
  patienceFor(world: World, delayMillis: number): number {
    return this.deadlineAtMillis === Infinity
      ? Infinity
      : Math.max(0, this.deadlineAtMillis - world.nowMillis - delayMillis)
  }

  private paid(
    permit: Permit,
    ask: Ask,
    patienceMillis: number,
    next: (cost: number | undefined) => Decision
  ): Effect.Effect<RetryDecision, unknown, unknown> {
    return Effect.flatMap(
      asking(ask, permit, patienceMillis),
      () => asEffect(next(permit.reservation?.cost))
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

  /** The delay in whole milliseconds, or why there is none. A function of the user that throws costs no token. */
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

  /** Notifies the observer of a retry. One that throws or dies ends the call, and the retry is never sent. */
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

/** The context of a send, with what it tells the process that it goes to. */
export const sentOn = ({ attempt, deadlineAtMillis, parts }: Call, world: World, context: AnyContext): AnyContext => {
  const { onward } = world
  if (onward === undefined) return context
  const { maxAttempts, outermostOnly } = parts
  const retries = maxAttempts > 1 && !(outermostOnly && isNested(world.context))
  const next = retries ? { ...onward, attempt: attempt + 1, maxAttempts } : onward
  return Context.add(context, CurrentOnward, { ...next, deadlineAtMillis })
}

export const asEffect = (decision: Decision): Effect.Effect<RetryDecision, unknown, unknown> =>
  Effect.isEffect(decision) ? decision : Effect.succeed(decision)

/** Asks for tokens, no longer than this. The permit holds them from the step in which they are taken. */
export const asking = (ask: Ask, permit: Permit, patienceMillis: number): Effect.Effect<unknown> => {
  const asked = ask(Duration.millis(patienceMillis), (reservation) => permit.pay(reservation))
  return waiting(permit.world, "RetryQuota", within(asked, patienceMillis))
}

/** Waits no longer than this. */
export const within = <E, R>(self: Effect.Effect<void, E, R>, millis: number): Effect.Effect<unknown, E, R> =>
  millis === Infinity ? self : Effect.timeoutOption(self, millis)

/** A wait, as the observer has it. */
export const waiting = <A, E>(
  { context, observer }: World,
  gate: string | undefined,
  wait: Effect.Effect<A, E>
): Effect.Effect<A, E> => observer.onWait?.(wait, gate, context) ?? wait

/** What an observer answers, if it has the call wait. */
const isWait = (told: unknown): told is Effect.Effect<void> => Effect.isEffect(told)

/** Notifies the observer of an attempt; what it has the call wait for. */
const told = ({ context, observer }: World, succeeded: boolean, error: unknown): Effect.Effect<void> | undefined => {
  const wait = observer.onAttempt?.(succeeded, error, context)
  return isWait(wait) ? wait : undefined
}

/** A send has succeeded: what its retry holds goes back; without a retry, the quota earns. */
export const succeeded = (
  world: World,
  permit: Permit | undefined,
  isRetry: boolean,
  value: unknown
): Effect.Effect<void> | undefined => {
  if (permit !== undefined) permit.succeeded(value)
  if (!isRetry) earn(world.store, world.context)
  return told(world, true, undefined)
}

/** A call has succeeded without a retry. */
export const earn = (store: RetryQuotaStore | undefined, context: AnyContext): void => {
  if (store === undefined || store.successIncrement === 0 || store.isFull === true) return
  store.deposit(store.successIncrement, Context.get(context, Clock.Clock))
}

/** A send has failed: what its retry holds is spent. */
export const failed = (world: World, permit: Permit | undefined, error: unknown): Effect.Effect<void> | undefined => {
  if (permit !== undefined) permit.failed(error)
  return told(world, false, error)
}
