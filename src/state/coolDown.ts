import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Random from "effect/Random"
import { monotonicMillis } from "../internal/clock.ts"
import type { Outcome, Pass, Send, SendGate } from "../SendGate.ts"
import { Line } from "./line.ts"
import { type Linked, List } from "./list.ts"

/** Valid options of a cool-down. */
export interface CoolDownOptions<E> {
  readonly atMostMillis: number
  readonly spread: number
  readonly maxWaitMillis: number
  readonly maxWaiters: number
  readonly probeMillis: number
  readonly hint: (outcome: Outcome) => Duration.Duration | undefined
  readonly refused: (reason: "closed" | "queue-full", millis: number) => E
}

/** One send per millisecond would hold back a process that has made so many in turn. */
const unpacedAbove = 1000

/** The other processes of a fleet that send to the same resource. */
export interface Peers {
  /** A send has passed freely. */
  readonly sent: () => void
  /** The server wants no sends until then, in milliseconds of the monotonic clock. */
  readonly closed: (untilMillis: number) => void
  /** Whether this process may open the resource now. If that is not known yet, {@link CoolDownGate.look} follows. */
  readonly mayOpen: () => boolean
  /** Whether the question is still pending. */
  readonly isAsked: boolean
  /** The first send since then has succeeded. */
  readonly opened: () => void
}

/** A send that has passed. Those that pass freely share one. */
class Passage<E> implements Pass, Linked<Passage<E>> {
  list: List<any> | undefined = undefined
  previous: Passage<E> | undefined = undefined
  next: Passage<E> | undefined = undefined
  private readonly gate: CoolDownGate<E>
  /** Sends in progress since the closing that it follows. It is among them as long as it holds a place. */
  readonly sends: List<Passage<E>>
  readonly sentMillis: number

  constructor(gate: CoolDownGate<E>, sends: List<Passage<E>>, sentMillis: number) {
    this.gate = gate
    this.sends = sends
    this.sentMillis = sentMillis
  }

  settle(outcome: Outcome): void {
    this.gate.ended(this, outcome)
  }

  cancel(): void {
    this.gate.canceled(this)
  }
}

/**
 * The gate of a cool-down. `"free"`: sends pass. `"closed"`: none does until the server's hint is over. `"opening"`:
 * one does, then one more for each that succeeds, with gaps between those held back, until as many pass as wanted to.
 * A send that was refused may come back, so it counts as wanted; one that was interrupted while it waited is gone. A
 * send that does not end holds its place for the probe time.
 */
export class CoolDownGate<E> implements SendGate<E> {
  readonly name = "CoolDown"
  readonly order = 100
  phase: "free" | "closed" | "opening" = "free"
  /** The server wants no sends until then, in milliseconds of the monotonic clock. */
  untilMillis = -Infinity
  /** No send is made until then: spread out so the processes of a fleet do not return together. */
  private opensMillis = -Infinity
  private spreadMillis = 0
  /** Sends in progress since it was last closed, and how many may be. */
  private sends = new List<Passage<E>>()
  private allowed = 0
  /** How many sends were in line, but no longer are, or were refused a place in it. */
  private served = 0
  /** How often it began to open, and when it last did. */
  private openings = 0
  private openedMillis = -Infinity
  /** How many sends were wanted while it was closed: gaps keep them from returning together. */
  private heldBack = 0
  /** The gaps end by then, or with as many successes as sends were held back: what comes later is only ramped up. */
  private gapsEndMillis = Infinity
  /** The last send since it began to open. */
  private lastMillis = -Infinity
  private readonly free = new Passage<E>(this, new List(), -Infinity)
  peers: Peers | undefined = undefined
  private readonly line: Line<E>
  private options: CoolDownOptions<E>
  private readonly random: Random.Random

  constructor(options: CoolDownOptions<E>, random: Random.Random) {
    this.options = options
    this.random = random
    this.line = new Line<E>({
      order: "fifo",
      maxWaiters: options.maxWaiters,
      // A send waits out the rest of the hint, and then for its turn.
      maxWaitMillis: 2 * options.maxWaitMillis,
      opensInMillis: (now) => this.opensIn(now),
      isOpen: ({ nowMillis }) => this.opens(nowMillis),
      refused: (reason, now) => this.refusal(reason === "full" ? "closed" : reason, now)
    })
  }

  get waiting(): number {
    return this.line.size
  }

  /** Switches to other options: what is closed stays closed. */
  change(options: CoolDownOptions<E>): void {
    this.options = options
    this.line.change({ maxWaiters: options.maxWaiters, maxWaitMillis: 2 * options.maxWaitMillis })
  }

  /** The process is no longer one of a fleet: it opens by itself. */
  leave(): void {
    this.peers = undefined
    this.line.signal()
  }

  enter(send: Send): void | Effect.Effect<void, E> {
    if (this.phase === "free") {
      this.peers?.sent()
      return send.hold(this.free)
    }
    const now = send.nowMillis
    if (this.line.size === 0 && this.opens(now)) return this.pass(send, now)
    if (this.untilMillis - now > this.options.maxWaitMillis) return Effect.fail(this.refusal("closed", now))
    // The more sends there are, the shorter the gaps: the one with the timer checks again.
    if (this.phase === "opening" && this.allowed <= this.heldBack) this.line.signal()
    const clock = Context.get(send.context, Clock.Clock)
    const { openings } = this
    const granted = () => {
      this.served++
      this.pass(send, monotonicMillis(clock))
    }
    return this.line.wait(send.context, granted, undefined, () => {
      if (openings === this.openings) return
      this.heldBack--
      this.line.signal()
    })
  }

  /** The server has asked for a break, and sends do not pass freely yet. */
  isStrained(): boolean {
    return this.phase !== "free"
  }

  ended(passage: Passage<E>, outcome: Outcome): void {
    const hintMillis = this.hintMillis(outcome)
    this.sends.remove(passage)
    if (hintMillis > 0) return this.close(outcome.nowMillis, hintMillis)
    if (passage.sends !== this.sends) return
    if (outcome._tag === "Success") this.succeeded(outcome)
    else if (outcome.info?.throttling === true) this.allowed = 1
    this.line.admit(outcome)
    this.line.signal()
  }

  canceled(passage: Passage<E>): void {
    if (!this.sends.remove(passage)) return
    this.lastMillis = -Infinity
    this.line.signal()
  }

  /** The server's hint closes the resource for all. A later, shorter hint does not open it earlier. */
  close(now: number, hintMillis: number): void {
    const until = now + Math.min(hintMillis, this.options.atMostMillis)
    if (until <= now || until <= this.untilMillis) return
    this.closeUntil(now, until)
    this.peers?.closed(until)
  }

  /** A hint given to another process. */
  closeUntil(now: number, until: number): void {
    this.untilMillis = Math.min(until, now + this.options.atMostMillis)
    this.spreadMillis = (this.untilMillis - now) * this.options.spread
    this.opensMillis = this.untilMillis + this.random.nextDoubleUnsafe() * this.spreadMillis
    if (this.phase !== "closed") this.served = 0
    this.phase = "closed"
    this.sends = new List()
    this.line.signal()
  }

  /** Checks again whether the resource opens, after the peers have answered. */
  look(now: number): void {
    this.line.admit({ nowMillis: now })
    this.line.signal()
  }

  /** 0 if there is none, or if the user's hint is invalid. */
  private hintMillis(outcome: Outcome): number {
    try {
      const hint = this.options.hint(outcome)
      return hint === undefined ? 0 : Duration.toMillis(hint)
    } catch {
      return 0
    }
  }

  private succeeded(outcome: Outcome): void {
    this.peers?.opened()
    // It has succeeded late, while the peers were asked again.
    if (this.phase === "closed") this.open(outcome.nowMillis)
    if (this.gapsEndMillis === Infinity) this.gapsEndMillis = outcome.nowMillis + this.spreadMillis
    this.allowed++
    if (this.allowed >= this.demand && this.line.size === 0) this.phase = "free"
  }

  /** How many sends were wanted since it was last free. */
  private get demand(): number {
    return this.line.size + this.served
  }

  private opens(now: number): boolean {
    if (this.phase === "free") return true
    this.forget(now)
    if (this.phase === "closed") {
      if (now < this.opensMillis || this.peers?.mayOpen() === false) return false
      this.open(now)
    }
    return this.sends.size < this.allowed && now >= this.nextMillis
  }

  private open(now: number): void {
    this.phase = "opening"
    this.openings++
    this.openedMillis = now
    this.allowed = 1
    this.heldBack = this.demand
    this.gapsEndMillis = Infinity
    this.lastMillis = -Infinity
  }

  /**
   * Forgets sends that have not ended within the probe time. If none has succeeded by then, it opens again from the
   * start, or another process does.
   */
  private forget(now: number): void {
    const since = now - this.options.probeMillis
    for (let { first } = this.sends; first !== undefined && first.sentMillis <= since; { first } = this.sends) {
      this.sends.remove(first)
    }
    if (this.gapsEndMillis === Infinity && this.openedMillis <= since) this.phase = "closed"
  }

  /** When the next send may follow the last, if there is room for it. */
  private get nextMillis(): number {
    const soonest = this.lastMillis + (this.allowed > unpacedAbove ? 0 : 1)
    if (this.allowed > this.heldBack) return soonest
    return Math.max(soonest, Math.min(this.gapsEndMillis, this.lastMillis + this.spreadMillis / this.demand))
  }

  private opensIn(now: number): number {
    if (this.phase === "closed") {
      // The peers answer by `look`.
      return now >= this.opensMillis && this.peers?.isAsked === true ? Infinity : Math.max(0, this.opensMillis - now)
    }
    const opensMillis = this.sends.size < this.allowed
      ? this.nextMillis
      : this.sends.first!.sentMillis + this.options.probeMillis
    return Math.max(0, opensMillis - now)
  }

  private pass(send: Send, now: number): void {
    const passage = new Passage(this, this.sends, now)
    this.sends.append(passage)
    this.lastMillis = now
    send.hold(passage)
  }

  private refusal(reason: "closed" | "queue-full", now: number): E {
    this.served++
    const rest = Math.max(0, this.untilMillis - now)
    return this.options.refused(reason, rest + this.random.nextDoubleUnsafe() * this.spreadMillis)
  }
}
