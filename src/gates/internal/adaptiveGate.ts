import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import { monotonicMillis } from "../../internal/clock.ts"
import * as Cubic from "../../internal/math/cubic.ts"
import * as Options from "../../internal/options.ts"
import { Stateful } from "../../internal/savedState.ts"
import { Waiters } from "../../internal/tokenLine.ts"
import type { Gauge, Outcome, Pass, Send, SendGate } from "../../SendGate.ts"

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

/** Valid options of a limiter. */
export interface AdaptiveOptions<E> extends Pick<Options.Valid<typeof limiterOptions>, "maxWaiters" | "onExceeded"> {
  readonly cubic: Cubic.CubicConfig
  readonly restore?: Cubic.Saved | undefined
  /** The error of a send when there is no token for this many milliseconds. */
  readonly refused: (reason: "no-token" | "queue-full", millis: number) => E
}

const gauges: ReadonlyArray<Gauge> = [{
  name: "retry_fill_rate",
  description: "Send tokens that flow into the adaptive limiter per second",
  read: (gate: AdaptiveGate<unknown>) => gate.fillRate
}]

/** How long the resource counts as strained after a throttle: as long as after a cut of a concurrency limit. */
const strainedMillis = 10_000

/** The state that a limiter begins with. */
export const initial = (
  { cubic, restore }: Pick<AdaptiveOptions<unknown>, "cubic" | "restore">,
  nowMillis: number
): Cubic.Cubic => {
  const now = nowMillis / 1000
  return restore === undefined ? Cubic.initial(cubic, now) : Cubic.restored(cubic, restore, now)
}

/** The gate of the adaptive limiter: from the first throttle on, a send takes a token, refilled at the CUBIC rate. */
export class AdaptiveGate<E> extends Stateful<Cubic.Cubic> implements SendGate<E>, Pass {
  /** The sends waiting for a token, created for the first. */
  protected waiters: Waiters | undefined = undefined
  /** The pass of a send that took a token, created for the first. */
  private paid: Pass | undefined = undefined

  constructor(protected options: AdaptiveOptions<E>, state: Cubic.Cubic) {
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
  change(options: AdaptiveOptions<E>): void {
    this.use(options)
    this.waiters?.wakeHead()
  }

  /** From now on along the curve of these options. */
  protected use(options: AdaptiveOptions<E>): void {
    this.options = options
    this.state = Cubic.aim(this.state, options.cubic)
  }

  enter(send: Send): void | Effect.Effect<void, E> {
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
      !Cubic.isToken(this.tokensAt(nowMillis))
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

  private tokensAt(nowMillis: number): number {
    return Cubic.tokensAt(this.state, nowMillis / 1000)
  }

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

  private refusal(millis: number): E | undefined {
    const { maxWaiters, refused, onExceeded } = this.options
    const reason = onExceeded === "fail" ? "no-token" : this.waiting >= maxWaiters ? "queue-full" : undefined
    if (reason === undefined) return undefined
    return refused(reason, millis + Math.ceil(this.waiting / this.state.fillRate * 1000))
  }
}
