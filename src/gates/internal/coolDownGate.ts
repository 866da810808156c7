import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Random from "effect/Random"
import { type Checks, checks, checksOf } from "../../internal/checks.ts"
import { hintOfError, hintOfValue } from "../../internal/classification/resource.ts"
import { wallMillis, withMillis } from "../../internal/clock.ts"
import { type Linked, List } from "../../internal/linkedList.ts"
import * as Options from "../../internal/options.ts"
import { Stateful } from "../../internal/savedState.ts"
import { Line, type Moment } from "../../internal/waitingLine.ts"
import type { Gauge, Outcome, Send, SendGate } from "../../SendGate.ts"
import { Lease, RefusalError } from "./gate.ts"

/**
 * A send to a resource that is cooling down. It was not sent, and no policy retries it.
 *
 * @category errors
 * @since 0.1.0
 */
export class CoolingDown extends RefusalError("CoolingDown")<{
  /** `"closed"` if the resource does not open in time, `"queue-full"` if `maxWaiters` were already waiting. */
  readonly reason: "closed" | "queue-full"
  /** When to try again: after the rest of the server's hint, plus a random share of it. */
  readonly retryAfter: Duration.Duration
}> {
  override get message(): string {
    return this.reason === "closed"
      ? `the resource is cooling down: try again in ${Duration.format(this.retryAfter)}`
      : "too many sends are waiting for the resource to open"
  }
}

const hintOf = ({ _tag, error, info, value }: Outcome): Duration.Duration | undefined => {
  if (info !== undefined) return info.retryAfter
  const millis = _tag === "Success" ? hintOfValue(value, wallMillis) : hintOfError(error, wallMillis)
  return millis === undefined ? undefined : Duration.millis(millis)
}

/** The options of a cool-down. */
export const coolDownOptions = {
  atMost: Options.positiveDuration(60_000),
  spread: Options.share(0.2),
  maxWait: Options.duration(2000),
  maxWaiters: Options.count(0, 10_000),
  probeTime: Options.positiveDuration(10_000),
  hint: Options.functionOf("a function of an outcome", hintOf)
}

/** Valid options of a cool-down. */
export type CoolDownOptions = Options.Valid<typeof coolDownOptions>

/** Options with their defaults, checked. */
export const validated = (
  options: Options.Inputs<typeof coolDownOptions>,
  check: Checks = checksOf("CoolDown.make", options)
): CoolDownOptions => Options.validOptions(check, coolDownOptions, options)

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
class Passage extends Lease implements Linked<Passage> {
  list: List<any> | undefined = undefined
  previous: Passage | undefined = undefined
  next: Passage | undefined = undefined

  constructor(
    gate: CoolDownGate,
    /** Sends in progress since the closing that it follows. It is among them as long as it holds a place. */
    readonly sends: List<Passage>,
    readonly sentMillis: number
  ) {
    super(gate)
  }
}

/** The state before a first hint. Times in milliseconds of the monotonic clock. */
const free = {
  phase: "free" as "free" | "closed" | "opening",
  /** The server wants no sends until then. */
  untilMillis: -Infinity,
  /** No send is made until then: spread out so the processes of a fleet do not return together. */
  opensMillis: -Infinity,
  spreadMillis: 0,
  /** How many sends may be in progress. */
  allowed: 0,
  /** How many sends were in line, but no longer are, or were refused a place in it. */
  served: 0,
  /** When it last began to open: each time later than before. */
  openedMillis: -Infinity,
  /** How many sends were wanted while it was closed: gaps keep them from returning together. */
  heldBack: 0,
  /** The gaps end by then, or with as many successes as sends were held back: what comes later is only ramped up. */
  gapsEndMillis: Infinity,
  /** The last send since it began to open. */
  lastMillis: -Infinity
}

type Cooling = Readonly<typeof free>

const phases = { free: 0, opening: 1, closed: 2 }

const gauges: ReadonlyArray<Gauge> = [{
  name: "retry_cool_down_phase",
  description: "The cool-down: 0 free, 1 opening, 2 closed",
  read: ({ phase }: CoolDownGate) => phases[phase]
}]

/**
 * The gate of a cool-down. `"free"`: sends pass. `"closed"`: none does until the server's hint is over. `"opening"`:
 * one does, then one more for each that succeeds, with gaps between those held back, until as many pass as wanted to.
 * A send that was refused may come back, so it counts as wanted; one that was interrupted while it waited is gone. A
 * send that does not end holds its place for the probe time.
 */
export class CoolDownGate extends Stateful<Cooling> implements SendGate<CoolingDown> {
  readonly name = "CoolDown"
  readonly order = 100
  readonly gauges = gauges
  /** Sends in progress since it was last closed: a list, from which one is removed in one step. */
  private sends = new List<Passage>()
  private readonly free = new Passage(this, new List(), -Infinity)
  peers: Peers | undefined = undefined
  private readonly line: Line<CoolingDown>

  constructor(private options: CoolDownOptions, private readonly random: Random.Random) {
    super(free)
    this.line = new Line<CoolingDown>({
      order: "fifo",
      maxWaiters: options.maxWaiters,
      // A send waits out the rest of the hint, and then for its turn.
      maxWaitMillis: () => 2 * this.options.maxWaitMillis,
      opensInMillis: (now) => this.opensIn(now),
      isOpen: ({ nowMillis }) => this.opens(nowMillis),
      refused: (reason, now) => this.refusal(reason === "full" ? "closed" : reason, now)
    })
  }

  get phase(): Cooling["phase"] {
    return this.state.phase
  }

  /** Whether it has learned nothing that would be lost with it. */
  get isBlank(): boolean {
    return this.state.phase === "free"
  }

  get untilMillis(): number {
    return this.state.untilMillis
  }

  get waiting(): number {
    return this.line.size
  }

  /** Switches to other options: what is closed stays closed. */
  change(options: CoolDownOptions): void {
    this.options = options
    this.line.change({ maxWaiters: options.maxWaiters })
  }

  /** The process is no longer one of a fleet: it opens by itself. */
  leave(): void {
    this.peers = undefined
    this.line.signal()
  }

  enter(send: Send): void | Effect.Effect<void, CoolingDown> {
    if (this.phase === "free") {
      this.peers?.sent()
      return send.hold(this.free)
    }
    const now = send.nowMillis
    if (this.line.size === 0 && this.opens(now)) return this.pass(send, now)
    if (this.untilMillis - now > this.options.maxWaitMillis) return Effect.fail(this.refusal("closed", now))
    // The more sends there are, the shorter the gaps: the one with the timer checks again.
    const { allowed, heldBack, openedMillis, phase } = this.state
    if (phase === "opening" && allowed <= heldBack) this.line.signal()
    const granted = ({ nowMillis }: Moment) => {
      this.serve()
      this.pass(send, nowMillis)
    }
    return this.line.wait(send.context, granted, undefined, () => {
      if (openedMillis === this.state.openedMillis) return
      this.state = { ...this.state, heldBack: this.state.heldBack - 1 }
      this.line.signal()
    })
  }

  /** The server has asked for a break, and sends do not pass freely yet. */
  isStrained(): boolean {
    return this.phase !== "free"
  }

  complete(passage: Passage, outcome: Outcome): void {
    this.sends.remove(passage)
    const hintMillis = this.hintMillis(outcome)
    if (hintMillis > 0) return this.close(outcome.nowMillis, hintMillis)
    if (passage.sends !== this.sends) return
    if (outcome._tag === "Success") this.succeeded(outcome)
    else if (outcome.info?.throttling === true) this.state = { ...this.state, allowed: 1 }
    this.look(outcome.nowMillis)
  }

  canceled(passage: Passage): void {
    if (!this.sends.remove(passage)) return
    this.state = { ...this.state, lastMillis: -Infinity }
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
    const untilMillis = Math.min(until, now + this.options.atMostMillis)
    const spreadMillis = (untilMillis - now) * this.options.spread
    const opensMillis = untilMillis + this.random.nextDoubleUnsafe() * spreadMillis
    const served = this.phase === "closed" ? this.state.served : 0
    this.state = { ...this.state, phase: "closed", untilMillis, spreadMillis, opensMillis, served }
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

  /** One more may pass. */
  private succeeded({ nowMillis }: Outcome): void {
    this.peers?.opened()
    // It has succeeded late, while the peers were asked again.
    if (this.phase === "closed") this.open(nowMillis)
    const { spreadMillis } = this.state
    const allowed = this.state.allowed + 1
    const gapsEndMillis = Math.min(this.state.gapsEndMillis, nowMillis + spreadMillis)
    const phase = allowed >= this.demand && this.line.size === 0 ? "free" : this.phase
    this.state = { ...this.state, allowed, gapsEndMillis, phase }
  }

  /** How many sends were wanted since it was last free. */
  private get demand(): number {
    return this.line.size + this.state.served
  }

  private opens(now: number): boolean {
    if (this.phase === "free") return true
    this.forget(now)
    if (this.phase === "closed") {
      if (now < this.state.opensMillis || this.peers?.mayOpen() === false) return false
      this.open(now)
    }
    return this.sends.size < this.state.allowed && now >= this.nextMillis
  }

  /** One may pass. */
  private open(now: number): void {
    this.state = {
      ...this.state,
      phase: "opening",
      openedMillis: now,
      allowed: 1,
      heldBack: this.demand,
      gapsEndMillis: Infinity,
      lastMillis: -Infinity
    }
  }

  /**
   * Forgets sends that have not ended within the probe time. If none has succeeded by then, it opens again from the
   * start, or another process does.
   */
  private forget(now: number): void {
    const since = now - this.options.probeTimeMillis
    for (let { first } = this.sends; first !== undefined && first.sentMillis <= since; { first } = this.sends) {
      this.sends.remove(first)
    }
    const { gapsEndMillis, openedMillis } = this.state
    if (gapsEndMillis === Infinity && openedMillis <= since) this.state = { ...this.state, phase: "closed" }
  }

  /** When the next send may follow the last, if there is room for it. */
  private get nextMillis(): number {
    const { allowed, gapsEndMillis, heldBack, lastMillis, spreadMillis } = this.state
    const soonest = lastMillis + (allowed > unpacedAbove ? 0 : 1)
    if (allowed > heldBack) return soonest
    return Math.max(soonest, Math.min(gapsEndMillis, lastMillis + spreadMillis / this.demand))
  }

  private opensIn(now: number): number {
    const { allowed, opensMillis: closedMillis, phase } = this.state
    if (phase === "closed") {
      // The peers answer by `look`.
      return now >= closedMillis && this.peers?.isAsked === true ? Infinity : Math.max(0, closedMillis - now)
    }
    const opensMillis = this.sends.size < allowed
      ? this.nextMillis
      : this.sends.first!.sentMillis + this.options.probeTimeMillis
    return Math.max(0, opensMillis - now)
  }

  private pass(send: Send, now: number): void {
    const passage = new Passage(this, this.sends, now)
    this.sends.append(passage)
    this.state = { ...this.state, lastMillis: now }
    send.hold(passage)
  }

  private refusal(reason: "closed" | "queue-full", now: number): CoolingDown {
    this.serve()
    const { spreadMillis, untilMillis } = this.state
    const rest = Math.max(0, untilMillis - now)
    const millis = Math.ceil(rest + this.random.nextDoubleUnsafe() * spreadMillis)
    return new CoolingDown({ reason, retryAfter: Duration.millis(millis) })
  }

  private serve(): void {
    this.state = { ...this.state, served: this.state.served + 1 }
  }
}

/** The service of a gate. */
export const serviceOf = (gate: CoolDownGate) => ({
  gate,
  close: (hint: Duration.Input) =>
    withMillis((nowMillis) => gate.close(nowMillis, checks("CoolDown.close").duration("hint", hint))),
  state: withMillis((nowMillis) => ({
    phase: gate.phase,
    remaining: Duration.millis(Math.max(0, gate.untilMillis - nowMillis)),
    waiting: gate.waiting
  }))
})

/** How a cool-down is made. */
export const coolDownKind = {
  validated,
  make: (valid: CoolDownOptions, random: Random.Random) => new CoolDownGate(valid, random),
  serviceOf
}
