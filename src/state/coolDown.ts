import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Random from "effect/Random"
import { monotonicMillis } from "../internal/clock.ts"
import type { Outcome, Pass, Send, SendGate } from "../SendGate.ts"
import { Line } from "./line.ts"

/** Valid options of a cool-down. */
export interface CoolDownOptions<E> {
  readonly atMostMillis: number
  readonly spread: number
  readonly maxWaitMillis: number
  readonly maxWaiters: number
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

/** A send that has passed. All sends since the resource was last closed share one. */
class Passage<E> implements Pass {
  private readonly gate: CoolDownGate<E>

  constructor(gate: CoolDownGate<E>) {
    this.gate = gate
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
  /** Sends in progress, and how many may be, since the resource began to open. */
  private inFlight = 0
  private allowed = 0
  /** How many sends were wanted meanwhile. */
  private demand = 0
  /** How many of these were wanted while it was closed: gaps keep them from returning together. */
  private heldBack = 0
  /** The gaps end by then, or with as many successes as sends were held back: what comes later is only ramped up. */
  private gapsEndMillis = Infinity
  /** The last send since it began to open. */
  private lastMillis = -Infinity
  private passage: Passage<E> = new Passage(this)
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
      return send.hold(this.passage)
    }
    const now = send.nowMillis
    if (this.line.size === 0 && this.opens(now)) return this.pass(send, now)
    this.demand++
    if (this.untilMillis - now > this.options.maxWaitMillis) return Effect.fail(this.refusal("closed", now))
    // The more sends there are, the shorter the gaps: the one with the timer checks again.
    if (this.phase === "opening" && this.allowed <= this.heldBack) this.line.signal()
    const clock = Context.get(send.context, Clock.Clock)
    return this.line.wait(send.context, () => this.pass(send, monotonicMillis(clock)))
  }

  /** The server has asked for a break, and sends do not pass freely yet. */
  isStrained(): boolean {
    return this.phase !== "free"
  }

  ended(passage: Passage<E>, outcome: Outcome): void {
    const hintMillis = this.hintMillis(outcome)
    const isCurrent = passage === this.passage && this.phase === "opening"
    if (isCurrent) this.inFlight--
    if (hintMillis > 0) return this.close(outcome.nowMillis, hintMillis)
    if (!isCurrent) return
    if (outcome._tag === "Success") this.succeeded(outcome)
    else if (outcome.info?.throttling === true) this.allowed = 1
    if (this.line.size === 0) return
    this.line.admit(outcome)
    this.line.signal()
  }

  canceled(passage: Passage<E>): void {
    if (passage !== this.passage || this.phase !== "opening") return
    this.inFlight--
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
    if (this.phase !== "closed") this.demand = this.line.size
    this.phase = "closed"
    this.passage = new Passage(this)
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
    if (this.gapsEndMillis === Infinity) this.gapsEndMillis = outcome.nowMillis + this.spreadMillis
    this.allowed++
    if (this.allowed >= this.demand && this.line.size === 0) this.phase = "free"
  }

  private opens(now: number): boolean {
    if (this.phase === "free") return true
    if (this.phase === "closed") {
      if (now < this.opensMillis || this.peers?.mayOpen() === false) return false
      this.phase = "opening"
      this.inFlight = 0
      this.allowed = 1
      this.heldBack = this.demand
      this.gapsEndMillis = Infinity
      this.lastMillis = -Infinity
    }
    return this.inFlight < this.allowed && now >= this.nextMillis
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
    return this.inFlight < this.allowed ? Math.max(0, this.nextMillis - now) : Infinity
  }

  private pass(send: Send, now: number): void {
    this.inFlight++
    this.lastMillis = now
    send.hold(this.passage)
  }

  private refusal(reason: "closed" | "queue-full", now: number): E {
    const rest = Math.max(0, this.untilMillis - now)
    return this.options.refused(reason, rest + this.random.nextDoubleUnsafe() * this.spreadMillis)
  }
}
