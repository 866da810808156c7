import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Random from "effect/Random"
import { callable, type Checks, checks, checksOf } from "../../internal/checks.ts"
import { hintOfError, hintOfValue } from "../../internal/classification/resource.ts"
import { monotonicMillis, wallMillis } from "../../internal/clock.ts"
import { type Linked, List } from "../../internal/linkedList.ts"
import {
  count,
  duration,
  inCode,
  type Inputs,
  positiveDuration,
  share,
  type Valid,
  validOptions
} from "../../internal/options.ts"
import { Refused } from "../../internal/refused.ts"
import { Stateful } from "../../internal/savedState.ts"
import { Line } from "../../internal/waitingLine.ts"
import * as RetryInfo from "../../RetryInfo.ts"
import type { Gauge, Outcome, Pass, Send, SendGate } from "../../SendGate.ts"

/**
 * A send to a resource that is cooling down. It was not sent, and no policy retries it.
 *
 * @category errors
 * @since 0.1.0
 */
export class CoolingDown extends Data.TaggedError("CoolingDown")<{
  /** `"closed"` if the resource does not open in time, `"queue-full"` if `maxWaiters` were already waiting. */
  readonly reason: "closed" | "queue-full"
  /** When to try again: after the rest of the server's hint, plus a random share of it. */
  readonly retryAfter: Duration.Duration
}> {
  readonly [Refused] = true
  get [RetryInfo.TypeId](): RetryInfo.RetryInfo {
    return RetryInfo.notRetryable
  }
  override get message(): string {
    return this.reason === "closed"
      ? `the resource is cooling down: try again in ${Duration.format(this.retryAfter)}`
      : "too many sends are waiting for the resource to open"
  }
}

/** The options of a cool-down. */
export const coolDownOptions = {
  atMost: positiveDuration(60_000),
  spread: share(0.2),
  maxWait: duration(2000),
  maxWaiters: count(0, 10_000),
  probeTime: positiveDuration(10_000),
  hint: inCode
}

/** Valid options of a cool-down. */
export interface CoolDownOptions extends Valid<typeof coolDownOptions> {
  readonly hint: (outcome: Outcome) => Duration.Duration | undefined
}

const hintOf = ({ _tag, error, info, value }: Outcome): Duration.Duration | undefined => {
  if (info !== undefined) return info.retryAfter
  const millis = _tag === "Success" ? hintOfValue(value, wallMillis) : hintOfError(error, wallMillis)
  return millis === undefined ? undefined : Duration.millis(millis)
}

/** Options with their defaults, checked. */
export const validated = (
  options: Inputs<typeof coolDownOptions>,
  check: Checks = checksOf("CoolDown.make", options)
): CoolDownOptions => {
  const { hint = hintOf } = options
  return {
    ...validOptions(check, coolDownOptions, options),
    hint: callable(check, "hint", hint, "a function of an outcome")
  }
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
class Passage implements Pass, Linked<Passage> {
  list: List<any> | undefined = undefined
  previous: Passage | undefined = undefined
  next: Passage | undefined = undefined

  constructor(
    private readonly gate: CoolDownGate,
    /** Sends in progress since the closing that it follows. It is among them as long as it holds a place. */
    readonly sends: List<Passage>,
    readonly sentMillis: number
  ) {}

  settle(outcome: Outcome): void {
    this.gate.complete(this, outcome)
  }

  cancel(): void {
    this.gate.canceled(this)
  }
}

/** Times in milliseconds of the monotonic clock. */
interface Cooling {
  readonly phase: "free" | "closed" | "opening"
  /** The server wants no sends until then. */
  readonly untilMillis: number
  /** No send is made until then: spread out so the processes of a fleet do not return together. */
  readonly opensMillis: number
  readonly spreadMillis: number
  /** How many sends may be in progress. */
  readonly allowed: number
  /** How many sends were in line, but no longer are, or were refused a place in it. */
  readonly served: number
  /** How often it began to open, and when it last did. */
  readonly openings: number
  readonly openedMillis: number
  /** How many sends were wanted while it was closed: gaps keep them from returning together. */
  readonly heldBack: number
  /** The gaps end by then, or with as many successes as sends were held back: what comes later is only ramped up. */
  readonly gapsEndMillis: number
  /** The last send since it began to open. */
  readonly lastMillis: number
}

const free: Cooling = {
  phase: "free",
  untilMillis: -Infinity,
  opensMillis: -Infinity,
  spreadMillis: 0,
  allowed: 0,
  served: 0,
  openings: 0,
  openedMillis: -Infinity,
  heldBack: 0,
  gapsEndMillis: Infinity,
  lastMillis: -Infinity
}

/** One send may pass. */
const opened = (state: Cooling, demand: number, now: number): Cooling => ({
  ...state,
  phase: "opening",
  openings: state.openings + 1,
  openedMillis: now,
  allowed: 1,
  heldBack: demand,
  gapsEndMillis: Infinity,
  lastMillis: -Infinity
})

/** One more may pass for each that succeeds. */
const succeeded = (state: Cooling, now: number): Cooling => ({
  ...state,
  gapsEndMillis: state.gapsEndMillis === Infinity ? now + state.spreadMillis : state.gapsEndMillis,
  allowed: state.allowed + 1
})

const phases = { free: 0, opening: 1, closed: 2 }

const gauges: ReadonlyArray<Gauge> = [{
  name: "retry_cool_down_phase",
  description: "The cool-down: 0 free, 1 opening, 2 closed",
  read: (gate: CoolDownGate) => phases[gate.phase]
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

  get gauges(): ReadonlyArray<Gauge> {
    return gauges
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
    const { allowed, heldBack, openings, phase } = this.state
    if (phase === "opening" && allowed <= heldBack) this.line.signal()
    const clock = Context.get(send.context, Clock.Clock)
    const granted = () => {
      this.serve()
      this.pass(send, monotonicMillis(clock))
    }
    return this.line.wait(send.context, granted, undefined, () => {
      if (openings === this.state.openings) return
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
    this.line.admit(outcome)
    this.line.signal()
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

  private succeeded(outcome: Outcome): void {
    this.peers?.opened()
    // It has succeeded late, while the peers were asked again.
    if (this.phase === "closed") this.open(outcome.nowMillis)
    const state = succeeded(this.state, outcome.nowMillis)
    this.state = state.allowed >= this.demand && this.line.size === 0 ? { ...state, phase: "free" } : state
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

  private open(now: number): void {
    this.state = opened(this.state, this.demand, now)
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
    Effect.clockWith((clock) =>
      Effect.sync(() => gate.close(monotonicMillis(clock), checks("CoolDown.close").duration("hint", hint)))
    ),
  state: Effect.clockWith((clock: Clock.Clock) =>
    Effect.sync(() => ({
      phase: gate.phase,
      remaining: Duration.millis(Math.max(0, gate.untilMillis - monotonicMillis(clock))),
      waiting: gate.waiting
    }))
  )
})
