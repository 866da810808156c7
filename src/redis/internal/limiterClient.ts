import { anytime, type Exchange, type Exchanges, type Look, type Topic } from "./exchanges.ts"
import type { Peers, SharedAdaptiveGate } from "./limiterGate.ts"
import { type LimiterReply, limiterReplyOf, limiterScript, type LimiterSettings } from "./limiterScript.ts"

/** How a shared limiter works. */
export interface LimiterTerms {
  readonly settings: LimiterSettings
  /** How often Redis is asked while sends are made. */
  readonly lookMillis: number
}

/** Reports the sends of a process, and asks for its part of the rate. A process that sends nothing asks nothing. */
export class LimiterClient implements Peers, Topic<LimiterReply> {
  /** Sends have ended since Redis was asked last. */
  private isActive = false
  private isThrottled = false
  private look: Look = anytime

  constructor(
    private readonly gate: SharedAdaptiveGate<any>,
    private terms: LimiterTerms,
    private readonly exchanges: Exchanges
  ) {
    gate.peers = this
  }

  change(terms: LimiterTerms): void {
    this.terms = terms
  }

  get isAlone(): boolean {
    return this.exchanges.isAlone
  }

  waits(): void {
    if (!this.isActive) this.wake()
  }

  countEnd(isThrottled: boolean): void {
    if (isThrottled && !this.isThrottled) {
      this.isThrottled = true
      this.wake()
    } else if (!this.isActive) {
      this.wake()
    }
  }

  private wake(): void {
    this.isActive = true
    this.exchanges.signal()
  }

  pauseMillis(now: number): number {
    if (this.isThrottled) return 0
    return this.hasReason ? this.look.atMillis - now : Infinity
  }

  mayGoAlong(now: number): boolean {
    return this.hasReason && now >= this.look.fromMillis
  }

  private get hasReason(): boolean {
    return this.isActive || this.gate.waiting > 0
  }

  next(now: number): Exchange<LimiterReply> {
    const { gate, isThrottled } = this
    this.isActive = this.isThrottled = false
    const report = {
      client: this.exchanges.name,
      rate: gate.measuredTxRate,
      isHungry: gate.waiting > 0,
      isThrottled,
      ...gate.curveAt(now)
    }
    return {
      ask: (redis) => redis.eval(limiterScript)(this.terms.settings, report),
      replyOf: limiterReplyOf,
      answered: (reply) => {
        this.look = this.exchanges.nextLook(this.terms.lookMillis)
        gate.follow(reply, this.exchanges.nowMillis)
      },
      failed: () => {
        this.isThrottled ||= isThrottled
      }
    }
  }

  /** A throttle that Redis may not know of cuts the rate of this process. */
  decideAlone(): void {
    if (this.isThrottled) this.gate.cutAlone(this.exchanges.nowMillis)
    this.isThrottled = false
    this.look = anytime
  }
}
