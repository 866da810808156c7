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
 * one does, then one more for each that succeeds, with gaps between them, until as many pass as wanted to.
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
  private gapMillis = 0
  private nextMillis = -Infinity
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
    if (outcome._tag === "Success") this.succeeded()
    else if (outcome.info?.throttling === true) this.allowed = 1
    if (this.line.size === 0) return
    this.line.admit(outcome)
    this.line.signal()
  }

  canceled(passage: Passage<E>): void {
    if (passage !== this.passage || this.phase !== "opening") return
    this.inFlight--
    this.nextMillis = -Infinity
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

  private succeeded(): void {
    this.peers?.opened()
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
      this.gapMillis = Math.max(1, this.spreadMillis / Math.max(1, this.demand))
      this.nextMillis = now
    }
    return this.inFlight < this.allowed && now >= this.nextMillis
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
    this.nextMillis = now + this.gapMillis
    send.hold(this.passage)
  }

  private refusal(reason: "closed" | "queue-full", now: number): E {
    const rest = Math.max(0, this.untilMillis - now)
    return this.options.refused(reason, rest + this.random.nextDoubleUnsafe() * this.spreadMillis)
  }
}
