import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { also, type Checks, checks, checksOf, rejectUnknown } from "../../internal/checks.ts"
import { monotonicMillis, withMillis } from "../../internal/clock.ts"
import { isObject } from "../../internal/invalidField.ts"
import * as Cubic from "../../internal/math/cubic.ts"
import * as Options from "../../internal/options.ts"
import { Stateful } from "../../internal/savedState.ts"
import { Waiters } from "../../internal/tokenLine.ts"
import type { Gauge, Outcome, Pass, Send, SendGate } from "../../SendGate.ts"
import { RefusalError } from "./gate.ts"

/**
 * A send rejected because there was no token, or no place in the queue. It was not sent, and no policy retries it.
 *
 * @category errors
 * @since 0.1.0
 */
export class RateLimitExceeded extends RefusalError("RateLimitExceeded")<{
  /** `"no-token"` when the limiter fails fast, `"queue-full"` when `maxWaiters` are already waiting. */
  readonly reason: "no-token" | "queue-full"
  /** When the bucket will hold a token, if no other send takes it first. */
  readonly retryAfter: Duration.Duration
}> {
  override get message(): string {
    return this.reason === "no-token"
      ? `no send token for another ${Duration.format(this.retryAfter)}`
      : "too many sends are waiting for a token"
  }
}

/** The options of a limiter. */
export const limiterOptions = {
  beta: Options.fraction(0.7),
  minFillRate: Options.positive(0.5),
  minCapacity: Options.between(1, Number.MAX_SAFE_INTEGER, 1),
  scaleConstant: Options.positive(0.4),
  smoothing: Options.weight(0.8),
  measurementBucketDuration: Options.positiveDuration(500),
  onExceeded: Options.word("wait", "fail"),
  maxWaiters: Options.count(0, 100_000),
  restore: Options.inCode
}

/** What a saved state begins with. The rest of it follows from that. */
const restored = (check: Checks, restore: unknown): Cubic.Saved | undefined => {
  if (restore === undefined) return undefined
  if (!isObject(restore)) return check.reject("restore", restore, "an object")
  const own = checks(check.tag, "restore.")
  const { enabled } = restore
  if (typeof enabled !== "boolean") return own.reject("enabled", enabled, "true or false")
  also(own, "enabled", "maxCapacity", "timeWindow", "waiting")
  const amount = (field: string) => own.amount(field, restore[field] as number)
  const saved = {
    enabled,
    tokens: amount("capacity"),
    fillRate: amount("fillRate"),
    measuredTxRate: amount("measuredTxRate"),
    lastMaxRate: amount("lastMaxRate"),
    sinceThrottle: amount("sinceThrottle")
  }
  return rejectUnknown(own, restore, saved)
}

/** Options with their defaults, checked. */
export const validated = (
  options: Options.Inputs<typeof limiterOptions>,
  check: Checks = checksOf("AdaptiveRateLimiter.make", options)
) => {
  const valid = Options.validOptions(check, limiterOptions, options)
  const { maxWaiters, measurementBucketDurationMillis: millis, onExceeded, ...curve } = valid
  const cubic: Cubic.CubicConfig = { ...curve, measurementBucketSeconds: Math.max(1e-6, millis) / 1000 }
  return { restore: restored(check, options.restore), cubic, onExceeded, maxWaiters }
}

/** Valid options of a limiter. */
export type AdaptiveOptions = ReturnType<typeof validated>

const gauges: ReadonlyArray<Gauge> = [{
  name: "retry_fill_rate",
  description: "Send tokens that flow into the adaptive limiter per second",
  read: ({ fillRate }: AdaptiveGate) => fillRate
}]

/** How long the resource counts as strained after a throttle: as long as after a cut of a concurrency limit. */
const strainedMillis = 10_000

/** The state that a limiter begins with. */
export const initial = ({ cubic, restore }: AdaptiveOptions, nowMillis: number): Cubic.Cubic => {
  const now = nowMillis / 1000
  return restore === undefined ? Cubic.initial(cubic, now) : Cubic.restored(cubic, restore, now)
}

/** The gate of the adaptive limiter: from the first throttle on, a send takes a token, refilled at the CUBIC rate. */
export class AdaptiveGate extends Stateful<Cubic.Cubic> implements SendGate<RateLimitExceeded>, Pass {
  /** The sends waiting for a token, created for the first. */
  protected waiters: Waiters | undefined = undefined
  /** The pass of a send that took a token, created for the first. */
  private paid: Pass | undefined = undefined

  constructor(protected options: AdaptiveOptions, state: Cubic.Cubic) {
    super(state)
  }

  get name(): string {
    return "AdaptiveRateLimiter"
  }

  get order(): number {
    return 400
  }

  get gauges(): ReadonlyArray<Gauge> {
    return gauges
  }

  get fillRate(): number {
    return this.state.fillRate
  }

  get waiting(): number {
    return this.waiters?.size ?? 0
  }

  /** Switches to other options, keeping the rate it has found. */
  change(options: AdaptiveOptions): void {
    this.use(options)
    this.waiters?.wakeHead()
  }

  /** From now on along the curve of these options. */
  protected use(options: AdaptiveOptions): void {
    this.options = options
    this.state = Cubic.aim(this.state, options.cubic)
  }

  enter(send: Send): void | Effect.Effect<void, RateLimitExceeded> {
    if (!this.state.curve.enabled) return send.hold(this)
    const clock = Context.get(send.context, Clock.Clock)
    const paid = this.paid ??= { settle: (outcome) => this.settle(outcome), cancel: () => this.putBack() }
    if (this.waiting === 0 && this.take(clock) === 0) return send.hold(paid)
    return (this.waiters ??= new Waiters()).wait(
      { take: () => this.take(clock), granted: () => send.hold(paid) },
      (millis) => this.refusal(millis)
    )
  }

  /** Whether it has learned nothing that would be lost with it. */
  get isBlank(): boolean {
    return !this.state.curve.enabled
  }

  /** It was throttled a short time ago, or has no token for one more send. */
  isStrained(nowMillis: number): boolean {
    const { enabled, lastThrottleTime } = this.state.curve
    if (!enabled) return false
    return nowMillis < lastThrottleTime * 1000 + strainedMillis || this.waiting > 0 ||
      !Cubic.isToken(Cubic.tokensAt(this.state, nowMillis / 1000))
  }

  update(throttled: boolean, nowMillis: number): void {
    this.moveTo(Cubic.update(this.state, this.options.cubic, nowMillis / 1000, throttled))
  }

  /** Wakes the first waiter if tokens come sooner now. */
  protected moveTo(state: Cubic.Cubic): void {
    const before = this.state.fillRate
    this.state = state
    if (state.fillRate > before) this.waiters?.wakeHead()
  }

  /** Its state, refilled. */
  stateAt(nowMillis: number): Cubic.Cubic {
    return Cubic.refill(this.state, nowMillis / 1000)
  }

  /** A send has ended. The gate itself is the pass of sends that took no token. */
  settle(outcome: Outcome): void {
    if (outcome._tag !== "Unknown") this.update(outcome.info?.throttling === true, outcome.nowMillis)
  }

  /** No token, nothing to return. */
  cancel(): void {}

  private putBack(): void {
    this.state = Cubic.putBack(this.state)
    this.waiters?.wakeHead()
  }

  private take(clock: Clock.Clock): number {
    const now = monotonicMillis(clock) / 1000
    const isThere = Cubic.isToken(Cubic.tokensAt(this.state, now))
    this.state = isThere ? Cubic.take(this.state, now) : Cubic.refill(this.state, now)
    return isThere ? 0 : Cubic.millisUntilToken(this.state)
  }

  private refusal(millis: number): RateLimitExceeded | undefined {
    const { maxWaiters, onExceeded } = this.options
    const reason = onExceeded === "fail" ? "no-token" : this.waiting >= maxWaiters ? "queue-full" : undefined
    if (reason === undefined) return undefined
    const retryAfter = Duration.millis(millis + Math.ceil(this.waiting / this.state.fillRate * 1000))
    return new RateLimitExceeded({ reason, retryAfter })
  }
}

/** The service of a gate. */
export const serviceOf = (gate: AdaptiveGate) => ({
  acquire: Effect.withFiber(({ context }) => {
    const clock = Context.get(context, Clock.Clock)
    return gate.enter({ attempt: 1, context, nowMillis: monotonicMillis(clock), hold: () => undefined }) ?? Effect.void
  }),
  update: (throttled: boolean) => withMillis((nowMillis) => gate.update(throttled, nowMillis)),
  state: withMillis((nowMillis) => {
    const { curve, fillRate, maxTokens, measuredTxRate, tokens } = gate.stateAt(nowMillis)
    const { enabled, lastMaxRate, lastThrottleTime, timeWindow } = curve
    return {
      enabled,
      capacity: tokens,
      maxCapacity: maxTokens,
      fillRate,
      measuredTxRate,
      lastMaxRate,
      sinceThrottle: enabled ? Math.max(0, nowMillis / 1000 - lastThrottleTime) : 0,
      timeWindow,
      waiting: gate.waiting
    }
  }),
  gate
})

/** How a limiter is made. */
export const limiterKind = {
  validated,
  make: (valid: AdaptiveOptions, _random: unknown, nowMillis: number) =>
    new AdaptiveGate(valid, initial(valid, nowMillis)),
  serviceOf
}

/** The service of a limiter that never limits. */
export const unlimited = {
  acquire: Effect.void,
  update: () => Effect.void,
  state: /* @__PURE__ */ Effect.succeed({
    enabled: false,
    capacity: Infinity,
    maxCapacity: Infinity,
    fillRate: Infinity,
    measuredTxRate: 0,
    lastMaxRate: 0,
    sinceThrottle: 0,
    timeWindow: 0,
    waiting: 0
  }),
  gate: undefined
}
