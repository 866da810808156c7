import type { CoolDownGate, Peers } from "../../gates/internal/coolDownGate.ts"
import { type CoolDownReply, coolDownReplyOf, coolDownScript, type CoolDownSettings } from "./coolDownScript.ts"
import { anytime, type Exchange, type Exchanges, type Look, type Topic } from "./exchanges.ts"

/** The settings of a shared cool-down. */
export interface CoolDownTerms {
  readonly settings: CoolDownSettings
  /** How often Redis is asked while sends are made, or one waits for another process. */
  readonly lookMillis: number
}

/**
 * What a process reports to the others about one resource, and asks about it. A process that sends nothing asks
 * nothing.
 */
export class CoolDownClient implements Peers, Topic<CoolDownReply> {
  /** Whether sends were made since Redis was last asked. */
  private isActive = false
  /** Whether this process would open the resource. */
  private wantsToOpen = false
  /** Whether it may, once. */
  private mayOpenNow = false
  /** Whether this process is probing, and has to report the result. */
  private isProbing = false
  private hasOpened = false
  /** Until when a server wants no sends, if that is still to be reported. */
  private closedUntilMillis = -Infinity
  /** The closing known to the gate. */
  private closing = ""
  private look: Look = anytime

  constructor(
    private readonly gate: CoolDownGate<any>,
    private terms: CoolDownTerms,
    private readonly exchanges: Exchanges
  ) {
    gate.peers = this
  }

  change(terms: CoolDownTerms): void {
    this.terms = terms
  }

  sent(): void {
    if (this.isActive) return
    this.isActive = true
    this.exchanges.signal()
  }

  closed(untilMillis: number): void {
    this.closedUntilMillis = untilMillis
    this.mayOpenNow = this.isProbing = this.hasOpened = false
    this.exchanges.signal()
  }

  mayOpen(): boolean {
    if (this.exchanges.isAlone || this.mayOpenNow) {
      this.mayOpenNow = false
      return true
    }
    if (!this.wantsToOpen) {
      this.wantsToOpen = true
      this.look = anytime
      this.exchanges.signal()
    }
    return false
  }

  get isAsked(): boolean {
    return this.wantsToOpen
  }

  opened(): void {
    if (!this.isProbing) return
    this.isProbing = false
    this.hasOpened = true
    this.exchanges.signal()
  }

  pauseMillis(now: number): number {
    if (this.closedUntilMillis > now || this.hasOpened) return 0
    return this.hasReason ? this.look.atMillis - now : Infinity
  }

  mayGoAlong(now: number): boolean {
    return this.hasReason && now >= this.look.fromMillis
  }

  private get hasReason(): boolean {
    return this.wantsToOpen || this.isActive
  }

  next(now: number): Exchange<CoolDownReply> {
    const { closedUntilMillis, hasOpened, wantsToOpen } = this
    const closedMillis = Math.max(0, closedUntilMillis - now)
    const report = { client: this.exchanges.name, closedMillis, hasOpened, wantsToOpen }
    this.isActive = false
    return {
      ask: (redis) => redis.eval(coolDownScript)(this.terms.settings, report),
      replyOf: coolDownReplyOf,
      answered: (reply) => {
        if (this.closedUntilMillis === closedUntilMillis) this.closedUntilMillis = -Infinity
        if (hasOpened) this.hasOpened = false
        this.look = this.exchanges.nextLook(this.terms.lookMillis)
        this.follow(reply, closedMillis > 0, this.exchanges.nowMillis)
      }
    }
  }

  decideAlone(): void {
    this.look = anytime
    this.wantsToOpen = this.isProbing = this.hasOpened = false
    this.gate.look(this.exchanges.nowMillis)
  }

  private follow({ closing, millis: remainingMillis, state }: CoolDownReply, report: boolean, now: number): void {
    const { gate } = this
    const millis = Math.min(remainingMillis, this.terms.settings.atMostMillis)
    const isNews = closing !== "" && closing !== this.closing
    this.closing = closing
    if (state === "closed") {
      this.mayOpenNow = this.isProbing = false
      // The process trusts its own report more than the response, unless another process was asked to wait longer.
      const isLonger = now + millis > gate.untilMillis + (report ? this.exchanges.timeoutMillis : 0)
      if (isNews && isLonger) gate.closeUntil(now, now + millis)
      this.askAgain(now, millis)
    } else if (state === "others") {
      if (isNews && gate.phase === "free") gate.closeUntil(now, now)
    } else if (this.wantsToOpen) {
      this.granted(state === "yours", now)
    }
  }

  /** The gate asks when its own time is over. If it was, a hint has reached Redis late: it opens there a little later. */
  private askAgain(now: number, millis: number): void {
    if (this.gate.untilMillis > now) this.wantsToOpen = false
    else this.look = { ...this.look, atMillis: Math.min(this.look.atMillis, now + millis) }
  }

  private granted(isProbing: boolean, now: number): void {
    this.wantsToOpen = false
    this.mayOpenNow = true
    this.isProbing = isProbing
    this.gate.look(now)
  }
}
