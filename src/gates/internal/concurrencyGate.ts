import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Random from "effect/Random"
import { passing } from "../../engine/scopedPass.ts"
import { checksOf } from "../../internal/checks.ts"
import { findCause, isFinalCause } from "../../internal/classification/errorCodes.ts"
import { isTooSlow } from "../../internal/classification/resource.ts"
import { statusOf } from "../../internal/classification/wire.ts"
import { monotonicMillis } from "../../internal/clock.ts"
import * as Options from "../../internal/options.ts"
import { isRefusal } from "../../internal/refused.ts"
import { Stateful } from "../../internal/savedState.ts"
import { Line, type Moment } from "../../internal/waitingLine.ts"
import type { Gauge, Outcome, Send, SendGate } from "../../SendGate.ts"
import { adaptiveRule, type ConcurrencyRule, ruleOf, type Sample } from "./concurrencyRule.ts"
import { Lease, RefusalError } from "./gate.ts"

/**
 * A send rejected because there was no free slot, or a retry because sends time out. It was not sent (attempts before it
 * were), and no policy retries it.
 *
 * @category errors
 * @since 0.1.0
 */
export class ConcurrencyLimitExceeded extends RefusalError("ConcurrencyLimitExceeded")<{
  /**
   * `"full"` when no slot was freed in time, `"queue-full"` when `maxWaiters` were already waiting, `"timing-out"` for a
   * retry while sends time out.
   */
  readonly reason: "full" | "queue-full" | "timing-out"
  /** The limit. Below 1, one send is made at a time, with pauses between. */
  readonly limit: number
}> {
  override get message(): string {
    return {
      "full": `no free slot: at most ${Math.max(1, Math.floor(this.limit))} in flight`,
      "queue-full": "too many sends are waiting for a slot",
      "timing-out": "no retry while sends time out"
    }[this.reason]
  }
}

const isTimeout = ({ error, info }: Outcome): boolean => info?.timeout === true || isTooSlow(error)

const isOverload = (outcome: Outcome): boolean => {
  const { info } = outcome
  return info !== undefined && (info.throttling || info.retryAfter !== undefined || isTimeout(outcome))
}

/** The options of a limiter. */
export const concurrencyOptions = {
  rule: Options.inCode,
  isDrop: Options.callback(isOverload),
  onExceeded: Options.word("wait", "fail"),
  maxWait: Options.optional(Options.positiveDuration()),
  maxWaiters: Options.count(0, 10_000),
  order: Options.word("fifo", "lifo")
}

/** What an outcome is for a rule; `undefined` if it is nothing. */
const outcomesBy = (isDrop: (outcome: Outcome) => boolean) => (outcome: Outcome): Sample["outcome"] | undefined => {
  if (outcome._tag === "Success") return "success"
  if (outcome._tag === "Unknown" || !isDrop(outcome)) return undefined
  return isTimeout(outcome) ? "timeout" : "refusal"
}

/** Options with their defaults, checked. Rules with the same key are the same. */
export const validated = (options: Options.Inputs<typeof concurrencyOptions>, ruleKey = "") => {
  const check = checksOf("ConcurrencyLimiter.make", options)
  const { isDrop, maxWaitMillis, ...valid } = Options.validOptions(check, concurrencyOptions, options)
  const { rule: input = adaptiveRule() } = options
  const rule = ruleOf(check, input)
  return {
    ...valid,
    rule,
    ruleKey,
    outcomeOf: outcomesBy(isDrop),
    maxWaitMillis: maxWaitMillis === undefined ? rule.maxWaitMillis : () => maxWaitMillis
  }
}

/** Valid options of a limiter. */
export type ConcurrencyOptions = ReturnType<typeof validated>

/** For a limit of at least 1, which does not need the time. */
const any: Moment = { nowMillis: -Infinity }

/** A send that has passed. Untimed sends share one until the limit is cut. */
class Slot extends Lease {
  constructor(gate: ConcurrencyGate, readonly cuts: number, readonly sentMillis: number | undefined) {
    super(gate)
  }
}

/** An answer of a service that works: not a 5xx, a lost connection, a refusal of a gate, or who aborted. */
const isFinal = ({ error, info }: Outcome): boolean =>
  (info === undefined || (info.safety === "No" && !info.vetoed)) && !isRefusal(error) &&
  !(statusOf(error)! >= 500) && findCause(error, isFinalCause) === undefined

/** How long the resource counts as strained after a drop. Source: the simulated outages of `docs/evidence/compared.md`. */
const strainedMillis = 10_000

/** A limit, and what the rule keeps to find the next one. */
const initial = ({ initial, initialLimit }: ConcurrencyRule) => ({
  rule: initial,
  /** How many may be in flight. */
  limit: initialLimit,
  cuts: 0,
  /** When a send was last dropped, or the limit cut, in milliseconds of the monotonic clock. */
  droppedAtMillis: -Infinity,
  /** Nothing is sent until then, in milliseconds of the monotonic clock: sends are paced while the limit is below 1. */
  pausedUntilMillis: -Infinity
})

type Level = Readonly<ReturnType<typeof initial>>

/** A number of a gate that metrics show. */
export const gauge = (name: string, description: string, read: (gate: ConcurrencyGate) => number): Gauge => ({
  name,
  description,
  read
})

const gauges = [
  gauge("retry_concurrency_limit", "How many sends may be in flight", ({ limit }) => limit),
  gauge("retry_concurrency_in_flight", "Sends in flight", ({ inFlight }) => inFlight),
  gauge("retry_concurrency_waiting", "Sends that wait for a slot", ({ waiting }) => waiting)
]

/** The gate of a concurrency limiter: it bounds the sends in flight. */
export class ConcurrencyGate extends Stateful<Level> implements SendGate<ConcurrencyLimitExceeded> {
  readonly name = "ConcurrencyLimiter"
  readonly order = 300
  readonly gauges = gauges
  /** Sends that have passed and not ended. Not in the record: two records per send would cost 8 % of a success. */
  inFlight = 0
  private untimed: Slot
  private readonly line: Line<ConcurrencyLimitExceeded>

  constructor(private options: ConcurrencyOptions, private readonly random: Random.Random) {
    super(initial(options.rule))
    this.untimed = new Slot(this, 0, undefined)
    this.line = new Line<ConcurrencyLimitExceeded>({
      order: options.order,
      maxWaiters: options.maxWaiters,
      maxWaitMillis: () => this.options.maxWaitMillis(this.state.rule),
      opensInMillis: (now) => {
        const { pausedUntilMillis } = this.state
        return pausedUntilMillis > now ? pausedUntilMillis - now : Infinity
      },
      isOpen: (at) => this.isOpen(at),
      refused: (reason) => this.refusal(reason)
    })
  }

  /** Switches to other options. Sends in flight still count; a different rule starts from its initial state. */
  change(options: ConcurrencyOptions): void {
    const isOtherRule = options.ruleKey !== this.options.ruleKey
    this.options = isOtherRule ? options : { ...options, rule: this.options.rule }
    this.line.change({ order: options.order, maxWaiters: options.maxWaiters })
    if (!isOtherRule) return
    const { droppedAtMillis } = this.state
    this.moveTo({ ...initial(options.rule), droppedAtMillis })
    this.line.admit(any)
  }

  get limit(): number {
    return this.state.limit
  }

  /** Sends waiting for a slot. */
  get waiting(): number {
    return this.line.size
  }

  enter(send: Send): void | Effect.Effect<void, ConcurrencyLimitExceeded> {
    const { droppedAtMillis, rule } = this.state
    if (send.failureClass !== undefined && !this.options.rule.admitsRetries(rule, send.nowMillis - droppedAtMillis)) {
      return Effect.fail(this.refusal("timing-out"))
    }
    if (this.line.size === 0 && this.isOpen(send)) return this.hold(send)
    if (this.options.onExceeded === "fail") return Effect.fail(this.refusal("full"))
    return this.line.wait(send.context, () => this.hold(send, Context.get(send.context, Clock.Clock)))
  }

  /** Whether it has learned nothing that would be lost with it. */
  get isBlank(): boolean {
    return this.state.cuts === 0
  }

  /** A send was just dropped, or the limit is reached. */
  isStrained(nowMillis: number): boolean {
    return nowMillis < this.state.droppedAtMillis + strainedMillis || this.line.size > 0 || !this.isOpen({ nowMillis })
  }

  /** A send has ended. */
  complete(slot: Slot, outcome: Outcome): void {
    this.count(slot, outcome, this.inFlight--)
    if (this.limit < 1) {
      const pause = this.options.rule.pauseMillis(this.state.rule, this.random.nextDoubleUnsafe())
      this.state = { ...this.state, pausedUntilMillis: outcome.nowMillis + pause }
      this.line.signal()
    }
    this.line.admit(outcome)
  }

  /** A send was never made. While sends are paced, the one with the timer checks again. */
  canceled(): void {
    this.inFlight--
    if (this.limit < 1) this.line.signal()
    else this.line.admit(any)
  }

  private count({ cuts, sentMillis }: Slot, outcome: Outcome, inFlight: number): void {
    const { outcomeOf, rule } = this.options
    const counted = outcomeOf(outcome)
    const level = this.state
    if (counted === undefined) {
      if (outcome._tag === "Failure" && isFinal(outcome)) this.state = { ...level, rule: rule.answered(level.rule) }
      return
    }
    const next = rule.next(level.rule, {
      outcome: counted,
      inFlight,
      overtaken: cuts < level.cuts,
      rttMillis: sentMillis === undefined ? undefined : outcome.nowMillis - sentMillis
    })
    const limit = rule.limit(next)
    if (limit === undefined || (next === level.rule && limit === level.limit)) return
    const droppedAtMillis = counted !== "success" || limit < level.limit ? outcome.nowMillis : level.droppedAtMillis
    this.moveTo({ rule: next, limit, droppedAtMillis, pausedUntilMillis: level.pausedUntilMillis })
  }

  private moveTo({ droppedAtMillis, limit, pausedUntilMillis, rule }: Omit<Level, "cuts">): void {
    const isCut = limit < this.limit
    const cuts = isCut ? this.state.cuts + 1 : this.state.cuts
    if (isCut) this.untimed = new Slot(this, cuts, undefined)
    this.state = { rule, limit, cuts, droppedAtMillis, pausedUntilMillis }
  }

  private refusal(reason: ConcurrencyLimitExceeded["reason"]): ConcurrencyLimitExceeded {
    return new ConcurrencyLimitExceeded({ reason, limit: this.limit })
  }

  private isOpen(at: Moment): boolean {
    const { limit, pausedUntilMillis } = this.state
    return limit >= 1 ? this.inFlight < Math.floor(limit) : this.inFlight === 0 && at.nowMillis >= pausedUntilMillis
  }

  /** The clock is that of a send that has waited: `nowMillis` may be the time at which it began to. */
  private hold(send: Send, clock?: Clock.Clock): void {
    this.inFlight++
    const { cuts, rule } = this.state
    const isTimed = this.options.rule.isTimed(rule)
    if (!isTimed) return send.hold(this.untimed)
    const sentMillis = clock === undefined ? send.nowMillis : monotonicMillis(clock)
    send.hold(new Slot(this, cuts, sentMillis))
  }
}

/** The service of a gate. */
export const serviceOf = (gate: ConcurrencyGate) => ({
  gate,
  slot: Effect.withFiber(({ context }) => passing(gate, context)),
  state: Effect.sync(() => ({ limit: gate.limit, inFlight: gate.inFlight, waiting: gate.waiting }))
})

/** How a limiter is made. */
export const concurrencyKind = {
  validated,
  make: (valid: ConcurrencyOptions, random: Random.Random) => new ConcurrencyGate(valid, random),
  serviceOf
}
