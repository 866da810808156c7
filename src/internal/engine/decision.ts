import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Pull from "effect/Pull"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import { classify, CurrentClassifier } from "../../RetryClassifier.ts"
import type { RetryInfo } from "../../RetryInfo.ts"
import { RetryQuota } from "../../RetryQuota.ts"
import { type RetryDecision, RetryStopped, RetryToken, type StopReason } from "../../RetryToken.ts"
import { maxDelayMillis, wholeMillis } from "../math/delay.ts"
import { type CallFiber, clockOf, monotonicMillis } from "../state/clock.ts"
import { isRefused } from "../state/refused.ts"
import type { Held, Use } from "../state/store.ts"
import { isNested } from "./nesting.ts"
import { lapse, watch } from "./pending.ts"

/** A failed attempt, as the functions of a policy see it. */
export interface Failure {
  readonly error: unknown
  /** The facts of the error; `undefined` when the classifier does not know it. */
  readonly info: RetryInfo | undefined
  /** The attempts made so far, which is also the number of the retry to decide on. */
  readonly attempt: number
  /** The back-off of the retry before this one, in milliseconds; 0 before the first. */
  readonly previousMillis: number
  /** The chance of the fiber. */
  readonly random: Random.Random
}

/** In place of a delay: the delays have ended. */
export const noDelay = -1

/** In place of a delay: the server asks for a longer one than the policy allows. */
export const hintTooLong = -2

/** The delay before the retry of a failure, in milliseconds, or one of the two above. */
export type Delay = (failure: Failure) => number

/** Changes a delay, or answers with one of the two above. */
export type Adjust = (delayMillis: number, failure: Failure) => number

/** What a retry takes of the quota, by the class of the failure. */
export interface Cost {
  readonly cost: number
  readonly timeoutCost: number
  readonly throttlingCost: number
  /** A refused retry is still held back for its delay. */
  readonly longPolling: boolean
}

/** A schedule that was lifted into a policy. */
export type Lifted = Schedule.Schedule<unknown, any, unknown, any>

type Step = (now: number, error: unknown) => Pull.Pull<[unknown, Duration.Duration], unknown, unknown, unknown>

type Payment = Held | "refused" | "wait" | "ask" | undefined

/** What a policy decides, at once or when it has asked and waited. */
export type Decision = RetryDecision | Effect.Effect<RetryDecision, unknown, unknown>

/** A policy, as data and pure functions. */
export interface Parts {
  /** Where the delay comes from: a function, or a schedule that was lifted into the policy. */
  readonly source: Delay | Lifted
  /** What is done to the delay, in the order in which the combinators were applied. */
  readonly adjust: Adjust
  readonly maxAttempts: number
  readonly whileRetryable: "off" | "yes" | "maybe"
  readonly deadlineMillis: number
  readonly outermostOnly: boolean
  readonly quota: Cost | undefined
  readonly adaptive: boolean
}

/** The failures of one call: what a policy has to remember between them. */
export class Run implements Failure {
  readonly parts: Parts
  readonly deadlineAtMillis: number
  error: unknown = undefined
  info: RetryInfo | undefined = undefined
  private step: Step | undefined = undefined
  attempt = 0
  previousMillis = 0
  random!: Random.Random

  constructor(parts: Parts, deadlineAtMillis: number) {
    this.parts = parts
    this.deadlineAtMillis = deadlineAtMillis
  }

  /** Asks the lifted schedule for the delay, then goes on as with any other. */
  lifted(source: Lifted, fiber: CallFiber): Effect.Effect<RetryDecision, unknown, unknown> {
    if (this.step === undefined) {
      return Effect.flatMap(Schedule.toStep(source), (step) => {
        this.step = step
        return this.stepped(step, fiber)
      })
    }
    return this.stepped(this.step, fiber)
  }

  private stepped(step: Step, fiber: CallFiber): Effect.Effect<RetryDecision, unknown, unknown> {
    const delayed = Effect.suspend(() => step(clockOf(fiber).currentTimeMillisUnsafe(), this.error))
    const decided = Effect.flatMap(delayed, ([, delay]) => {
      const decision = settled(this, () => Duration.toMillis(delay), fiber)
      return Effect.isEffect(decision) ? decision : Effect.succeed(decision)
    })
    return Pull.catchDone(decided, () => Effect.sync(() => this.stop("schedule")))
  }

  /** Takes note of a failure, and says why it is not retried if that is clear before any delay is known. */
  refuses(error: unknown, fiber: CallFiber): RetryStopped | undefined {
    this.error = error
    this.attempt++
    this.info = Option.getOrUndefined(classify(fiber.getRef(CurrentClassifier), error))
    const reason = this.firstRefusal(fiber.context)
    return reason === undefined ? undefined : this.stop(reason)
  }

  private firstRefusal(context: Context.Context<never>): StopReason | undefined {
    const parts = this.parts
    if (parts.outermostOnly && isNested(context)) return "nested"
    if (isRefused(this.error)) return "not-retryable"
    if (parts.whileRetryable !== "off" && !this.isRetryable(parts.whileRetryable)) return "not-retryable"
    return this.attempt >= parts.maxAttempts ? "max-attempts" : undefined
  }

  private isRetryable(upTo: "yes" | "maybe"): boolean {
    const safety = this.info?.safety
    return safety === "Yes" || (safety === "Maybe" && upTo === "maybe")
  }

  /** The tokens that a retry of the failure takes. */
  private cost(quota: Cost): number {
    const info = this.info
    if (info?.throttling) return quota.throttlingCost
    return info?.timeout ? quota.timeoutCost : quota.cost
  }

  /** Takes what the retry costs, if the policy asks for it and the quota has it. */
  pay(fiber: CallFiber): Payment {
    if (this.parts.quota === undefined) return undefined
    const { capacity, store, whenExhausted } = Context.getUnsafe(fiber.context, RetryQuota)
    const cost = this.cost(this.parts.quota)
    const clock = clockOf(fiber)
    const held = store.take(cost, clock)
    if (held !== undefined) return held
    if (cost > capacity) return "refused"
    if (whenExhausted === "wait") return "wait"
    return store.isRemote ? "ask" : "refused"
  }

  /** Waits for what the retry costs, if that can be had before the deadline, and decides then. */
  payLater(base: Delay, fiber: CallFiber): Decision {
    const delay = this.delay(base, undefined, fiber)
    if (typeof delay !== "number") return this.stop(delay)
    return this.reserve(delay, fiber, (held) => {
      if (held === undefined) return this.stop(this.deadlineAtMillis === Infinity ? "quota-exhausted" : "deadline")
      if (!this.passesDeadline(delay, fiber)) return this.issue(delay, held, fiber)
      held.giveBackUnsafe()
      return this.stop("deadline")
    })
  }

  /** Asks a quota that is not in this process for what the retry costs, at most until the deadline, and decides then. */
  ask(base: Delay, fiber: CallFiber): Decision {
    return this.reserve(0, fiber, (held) =>
      held === undefined && this.passesDeadline(0, fiber)
        ? this.stop("deadline")
        : this.settle(held ?? "refused", base, fiber))
  }

  private reserve(delayMillis: number, fiber: CallFiber, use: Use<RetryDecision>): Effect.Effect<RetryDecision> {
    const { store } = Context.getUnsafe(fiber.context, RetryQuota)
    const clock = clockOf(fiber)
    const patienceMillis = this.deadlineAtMillis - monotonicMillis(clock) - delayMillis
    return store.reserve({ cost: this.cost(this.parts.quota!), clock, patienceMillis }, use)
  }

  /** Decides on a failure that is paid for, or that long polling only holds back. A stop gives back what was paid. */
  settle(payment: Held | "refused" | undefined, base: Delay, fiber: CallFiber): RetryDecision {
    if (payment === "refused" && !this.parts.quota!.longPolling) return this.stop("quota-exhausted")
    const held = payment === "refused" ? undefined : payment
    const delay = this.delay(base, held, fiber)
    if (payment === "refused") return this.stop("quota-exhausted", typeof delay === "number" ? delay : 0)
    if (typeof delay === "number") return this.issue(delay, held, fiber)
    held?.giveBackUnsafe()
    return this.stop(delay)
  }

  private issue(delayMillis: number, held: Held | undefined, fiber: CallFiber): RetryToken {
    const token = new RetryToken(this, delayMillis, held, this.deadlineAtMillis)
    if (held !== undefined) watch(token, fiber)
    return token
  }

  /** The delay in whole milliseconds, or why there is none. Functions of the user that throw cost no token. */
  private delay(base: Delay, held: Held | undefined, fiber: CallFiber): number | StopReason {
    this.random = fiber.getRef(Random.Random)
    try {
      const backOff = Math.min(base(this), maxDelayMillis)
      const adjusted = backOff < 0 ? backOff : this.parts.adjust(backOff, this)
      if (adjusted < 0) return adjusted === hintTooLong ? "retry-after-too-long" : "schedule"
      this.previousMillis = backOff
      const delay = wholeMillis(adjusted)
      return this.passesDeadline(delay, fiber) ? "deadline" : delay
    } catch (error) {
      held?.giveBackUnsafe()
      throw error
    }
  }

  private passesDeadline(delayMillis: number, fiber: CallFiber): boolean {
    const { deadlineAtMillis } = this
    return deadlineAtMillis !== Infinity && monotonicMillis(clockOf(fiber)) + delayMillis >= deadlineAtMillis
  }

  stop(reason: StopReason, delayMillis?: number): RetryStopped {
    return new RetryStopped(reason, this.attempt, this.info, delayMillis)
  }
}

/** When a call that begins now ends, in milliseconds of the monotonic clock; `Infinity` without a deadline. */
export const deadlineAt = ({ deadlineMillis }: Parts, fiber: CallFiber): number =>
  deadlineMillis === Infinity ? Infinity : monotonicMillis(clockOf(fiber)) + deadlineMillis

const settled = (run: Run, base: Delay, fiber: CallFiber): Decision => {
  lapse(fiber)
  const payment = run.pay(fiber)
  if (payment === "wait") return run.payLater(base, fiber)
  return payment === "ask" ? run.ask(base, fiber) : run.settle(payment, base, fiber)
}

/**
 * Decides on a failure: retryable, attempts, quota, delay, deadline, in this order. The answer is there at once, unless
 * it has to be asked of a lifted schedule or waited for at the quota.
 */
export const decide = (
  run: Run,
  error: unknown,
  fiber: CallFiber
): Decision => {
  const refusal = run.refuses(error, fiber)
  if (refusal !== undefined) return refusal
  const source = run.parts.source
  return typeof source === "function" ? settled(run, source, fiber) : run.lifted(source, fiber)
}
