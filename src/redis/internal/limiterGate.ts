import type * as Effect from "effect/Effect"
import { AdaptiveGate, type AdaptiveOptions, initial } from "../../gates/internal/adaptiveGate.ts"
import * as Cubic from "../../internal/math/cubic.ts"
import type { Outcome, Send } from "../../SendGate.ts"
import type { FleetCurve, LimiterReply } from "./limiterScript.ts"

/** The other processes of a fleet. */
export interface Peers {
  /** Redis does not decide: this process does, by its own throttles. */
  readonly isAlone: boolean
  /** A send waits for a token. */
  waits(): void
  /** A send has ended; throttled, if it left after the last cut. */
  countEnd(isThrottled: boolean): void
}

/** The gate of a limiter whose rate is a share of a fleet's. Without Redis it continues by its own throttles. */
export class SharedAdaptiveGate<E> extends AdaptiveGate<E> {
  peers: Peers | undefined = undefined
  /** The curve of the fleet, as this process knows it, and when it was cut. */
  private cuts = 0
  private lastMaxRate = 0
  private cutAtMillis = -Infinity
  /** That of the fleet, of which this process has a share. */
  private cubic: Cubic.CubicConfig
  private share = 1

  constructor(options: AdaptiveOptions<E>, nowMillis: number) {
    super(options, initial(options, nowMillis))
    this.cubic = options.cubic
  }

  /** What this process sends, per second. */
  get measuredTxRate(): number {
    return this.state.measuredTxRate
  }

  /** What this process knows of the fleet's curve. */
  curveAt(nowMillis: number): FleetCurve {
    const { cuts, lastMaxRate } = this
    return { cuts, lastMaxRate, millis: cuts === 0 ? 0 : nowMillis - this.cutAtMillis }
  }

  /** Follows the curve of the fleet, at a share of its rate. */
  follow({ cuts, lastMaxRate, millis, share }: LimiterReply, nowMillis: number): void {
    this.cuts = cuts
    this.lastMaxRate = lastMaxRate
    this.cutAtMillis = nowMillis - millis
    this.share = share
    const cubic = this.ownCubic
    this.use({ ...this.options, cubic })
    if (cuts === 0) return
    const curve = { enabled: true, lastMaxRate: lastMaxRate * share, lastThrottleTime: this.cutAtMillis / 1000 }
    this.state = Cubic.follow(this.state, cubic, curve, nowMillis / 1000)
    this.waiters?.wakeHead()
  }

  override change(options: AdaptiveOptions<E>): void {
    this.cubic = options.cubic
    super.change({ ...options, cubic: this.ownCubic })
  }

  /** The process is no longer one of a fleet: it keeps the rate it had as its part. */
  leave(): void {
    this.peers = undefined
    this.share = 1
    this.use({ ...this.options, cubic: this.cubic })
    this.cuts = 0
  }

  /** The cubic of a share takes as long as that of the whole. */
  private get ownCubic(): Cubic.CubicConfig {
    const { cubic, share } = this
    return { ...cubic, scaleConstant: cubic.scaleConstant * share, minFillRate: cubic.minFillRate * share }
  }

  override enter(send: Send): void | Effect.Effect<void, E> {
    const wait = super.enter({
      attempt: send.attempt,
      failureClass: send.failureClass,
      context: send.context,
      nowMillis: send.nowMillis,
      hold: (pass) => {
        const { cuts } = this
        send.hold({ settle: (outcome) => this.settleSend(outcome, cuts), cancel: () => pass.cancel() })
      }
    })
    if (wait !== undefined) this.peers?.waits()
    return wait
  }

  override update(throttled: boolean, nowMillis: number): void {
    this.book(throttled, this.cuts, nowMillis)
  }

  /** A throttle that was recorded as one for the fleet is one for this process alone. */
  cutAlone(nowMillis: number): void {
    // Recorded once: the response has been counted.
    const uncounted = { ...this.state, requestCount: this.state.requestCount - 1 }
    this.state = Cubic.update(uncounted, this.cubicOf(true), nowMillis / 1000, true)
  }

  private settleSend(outcome: Outcome, cuts: number): void {
    if (outcome._tag !== "Unknown") this.book(outcome.info?.throttling === true, cuts, outcome.nowMillis)
  }

  private book(throttled: boolean, cuts: number, nowMillis: number): void {
    const isAlone = this.peers?.isAlone !== false
    this.peers?.countEnd(throttled && cuts === this.cuts)
    this.moveTo(Cubic.update(this.state, this.cubicOf(isAlone), nowMillis / 1000, isAlone && throttled))
  }

  private cubicOf(isAlone: boolean): Cubic.CubicConfig {
    const { measuredTxRate, options: { cubic }, peers, state } = this
    // A process of a fleet that has measured nothing yet still has its part.
    const isMeasuredElsewhere = !isAlone || (peers !== undefined && state.curve.enabled && measuredTxRate === 0)
    return isMeasuredElsewhere ? { ...cubic, isMeasuredElsewhere } : cubic
  }
}
