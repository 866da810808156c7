import * as Effect from "effect/Effect"
import type * as Random from "effect/Random"
import { warn } from "../internal/sharing.ts"
import type { RetryDecision, Stop, StopReason } from "../RetryDecision.ts"
import type { RetryInfo } from "../RetryInfo.ts"
import type { Ask, Shortage } from "../RetryQuotaStore.ts"
import { type Answer, type Compiled, isTimed, type Soon } from "./compiled.ts"
import { type Delay, delayOf, type Failing, hintTooLong } from "./delay.ts"
import { type Offer, Repetition, type Run } from "./run.ts"
import { asking } from "./send.ts"
import { verdictOf } from "./verdict.ts"

/** Continues with an answer, immediately if it is there. */
export const chain = <A extends boolean | RetryDecision>(answer: Answer, next: (goes: boolean) => Soon<A>): Soon<A> =>
  typeof answer === "boolean" ? next(answer) : Effect.flatMap(answer, (goes) => asDecision(next(goes)))

/** A decision as an effect. */
export const asDecision = <A extends boolean | RetryDecision>(decided: Soon<A>): Effect.Effect<A, unknown, unknown> =>
  Effect.isEffect(decided) ? decided : Effect.succeed(decided)

/** The delay that the policies inside have decided on. */
const inner: Delay = (failing) => (failing as Decider).delayMillis

/** One policy in one run: its own count, backoff and deadline. It decides; what a retry costs, the run pays. */
export class Decider implements Failing, Offer {
  readonly compiled: Compiled
  /** When it began, if that matters, and its own deadline, in milliseconds of the monotonic clock. */
  readonly startMillis: number | undefined
  readonly deadlineAtMillis: number
  attempt = 0
  step = 0
  previousMillis = 0
  // The last decision: to retry,
  delayMillis = 0
  cost = 0
  // or why not, and how long the caller is held.
  reason: StopReason = "schedule"
  holdMillis = 0
  /** How the policies inside decide, and what they have decided. */
  declare private inside: (() => Answer) | undefined
  declare private accepted: Offer | undefined
  /** Whether what is around it is certain without its retry: then it waits for no tokens. */
  declare isIdle: boolean | undefined

  constructor(policy: Compiled, readonly run: Run, startMillis?: number, untilMillis = Infinity) {
    const found = policy.live?.(run.environment.services) ?? policy
    // That a value is repeated is for no classifier to decide.
    const compiled = this.compiled = run instanceof Repetition
      ? { ...found, whileRetryable: "off", outermostOnly: false }
      : found
    this.startMillis = startMillis ?? (isTimed(compiled) ? run.environment.nowMillis : undefined)
    this.deadlineAtMillis = Math.min(
      untilMillis,
      run.environment.propagated?.deadlineAtMillis ?? Infinity,
      this.endsAfter(compiled.deadlineMillis)
    )
  }

  get random(): Random.Random {
    return this.run.environment.random
  }

  get untilMillis(): number {
    const { accepted, deadlineAtMillis, compiled } = this
    const { deadlineMillis } = compiled.source.limited ?? compiled
    return Math.min(deadlineAtMillis, accepted?.untilMillis ?? this.endsAfter(deadlineMillis))
  }

  private endsAfter(millis: number): number {
    return (this.startMillis ?? 0) + millis
  }

  /** It may have begun after some attempts. */
  get maxAttempts(): number {
    const { accepted, attempt, compiled, run } = this
    if (isNestedIn(compiled, run)) return 1
    const inside = accepted ?? compiled.source.limited
    return Math.min(compiled.maxAttempts + run.attempt - attempt, inside?.maxAttempts ?? Infinity)
  }

  get error(): unknown {
    return this.run.error
  }

  get info(): RetryInfo | undefined {
    return this.run.info
  }

  restart(): void {
    this.step = 0
    this.previousMillis = 0
  }

  /** It bounds the first send, if of several in one schedule it makes the most. */
  begins(): this {
    const { run } = this
    if (run.limits === undefined || run.maxAttempts < this.maxAttempts) run.limits = this
    return this
  }

  /** Whether it would retry: retryable, attempts, quota, delay, deadline, in this order. */
  decides(): Answer {
    return this.counts() && this.affords()
  }

  /** Counts the failure. Whether it would retry, before anything is asked. */
  counts(): boolean {
    const { compiled, run } = this
    this.attempt++
    this.step++
    const verdict = verdictOf(compiled, this, isNestedIn(compiled, run))
    if (typeof verdict !== "number") return this.refuses(verdict)
    this.cost = verdict
    return true
  }

  /** The rest of the decision. */
  affords(): Answer {
    const inside = this.steps()
    return inside === true ? this.priced() : chain(inside, (goes) => goes && this.priced())
  }

  /** Asks what decides inside, if anything does. */
  protected steps(): Answer {
    const { source } = this.compiled
    return typeof source === "function" || (this.inside ??= source.begin(this))()
  }

  /** Whether it would retry, and nothing inside has an earlier deadline. */
  answers(): Answer {
    const answer = this.decides()
    return typeof answer === "boolean" ? answer && this.isMet() : Effect.map(answer, (goes) => goes && this.isMet())
  }

  private isMet(): boolean {
    return this.accepted === undefined || this.isInTime(this.delayMillis, this.untilMillis)
  }

  /** It ends the run. */
  stops(): Stop {
    return this.run.stops(this.reason, this.holdMillis)
  }

  refuses(reason: StopReason, holdMillis = 0): false {
    this.reason = reason
    this.holdMillis = holdMillis
    return false
  }

  /** What is inside would retry like this. */
  accepts(offer: Offer): true {
    this.accepted = offer
    this.delayMillis = offer.delayMillis
    this.cost = Math.max(this.cost, offer.cost)
    return true
  }

  /** Pays for the retry, then decides after what delay. */
  protected priced(): Answer {
    const { cost, compiled, run } = this
    if (compiled.quota === undefined) return this.delayed()
    const paid = run.pays(cost)
    if (paid === true) return this.delayed()
    return paid === false ? this.unpaid() : this.asked(paid)
  }

  /** Asks a remote quota, or waits for tokens, as long as the retry can still begin before the deadline. */
  private asked(ask: Ask): Answer {
    const { deadlineAtMillis, run } = this
    const waits = run.environment.store!.onExceeded === "wait"
    if (waits && this.isIdle === true) return this.refuses("quota-exhausted")
    if (waits && !this.delayed()) return false
    const patience = deadlineAtMillis === Infinity
      ? Infinity
      : Math.max(0, deadlineAtMillis - run.environment.nowMillis - (waits ? this.delayMillis : 0))
    return Effect.map(asking(ask, run.permit!, patience), (shortage) => this.answered(waits, shortage))
  }

  private answered(waits: boolean, shortage: Shortage): boolean {
    const { cost, deadlineAtMillis, delayMillis, run } = this
    if (run.holds(cost)) return waits ? this.isInTime(delayMillis) : this.delayed()
    const isLate = waits ? shortage !== "refused" && deadlineAtMillis < Infinity : !this.isInTime(0)
    if (isLate) return this.refuses("deadline")
    return this.unpaid(waits ? this.isInTime(delayMillis) ? delayMillis : 0 : undefined)
  }

  /** The quota refuses the retry. A polling call is held before it fails, by `drawnMillis` if the delay is there. */
  private unpaid(drawnMillis?: number): false {
    const { cost, compiled, run: { longPolling, environment } } = this
    const { capacity } = environment.store!
    // The capacity must be a mistake.
    if (cost > capacity) warn(environment, `a retry costs ${cost}, its RetryQuota holds ${capacity}: none is made`)
    const holdMillis = longPolling || compiled.quota!.longPolling
      ? drawnMillis ?? (this.delayed() ? this.delayMillis : 0)
      : 0
    return this.refuses("quota-exhausted", holdMillis)
  }

  /** If a user's function throws, no token is lost. */
  protected delayed(): boolean {
    const { compiled: { adjusts, source }, run } = this
    let delay: number
    try {
      delay = delayOf(typeof source === "function" ? source : inner, adjusts, this)
    } catch (defect) {
      run.complete()
      throw defect
    }
    if (delay < 0) return this.refuses(delay === hintTooLong ? "retry-after-too-long" : "schedule")
    this.delayMillis = delay
    return this.isInTime(delay)
  }

  private isInTime(delayMillis: number, untilMillis = this.deadlineAtMillis): boolean {
    return untilMillis === Infinity || this.run.environment.nowMillis + delayMillis < untilMillis ||
      this.refuses("deadline")
  }
}

/** Whether it does not retry because another run around it does. */
const isNestedIn = ({ outermostOnly }: Compiled, { environment }: Run): boolean =>
  outermostOnly && outermostOnly(environment.context)

/** Has a policy decide alone, and does it. */
export const decisionOf = (decider: Decider) =>
  chain<RetryDecision>(decider.answers(), (goes) => {
    const { run } = decider
    const stop = goes ? undefined : decider.stops()
    const wait = stop === undefined ? run.retries(decider) : run.stopped(stop)
    const decision = stop ?? run.retry!
    return wait === undefined ? decision : Effect.as(wait, decision)
  })
