import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Redis from "effect/persistence/Redis"
import type * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import { monotonicMillis } from "../../internal/clock.ts"
import type { CoolDownGate, Peers } from "../../state/coolDown.ts"
import type { Connection } from "./connection.ts"
import {
  type CoolDownExchange,
  type CoolDownReply,
  coolDownReplyOf,
  coolDownScript,
  type CoolDownSettings
} from "./coolDownScript.ts"
import { Exchanges } from "./exchanges.ts"

/** How a cool-down and Redis get on. */
export interface CoolDownTerms {
  readonly settings: CoolDownSettings
  readonly timeoutMillis: number
  /** How often Redis is asked while sends are made, or one waits for another process. */
  readonly lookMillis: number
  /** How long the process decides alone before Redis is tried again. */
  readonly retryMillis: number
  /** Spreads what the processes of a fleet do. */
  readonly random: Random.Random
  readonly connection: Connection
  /** The process decides alone, for this reason, or the fleet does again. */
  readonly onChange: (reason: string | undefined) => Effect.Effect<void>
}

/**
 * The one fiber that talks to Redis, one exchange at a time, about one resource. A process that sends nothing asks nothing.
 * Where Redis does not answer, the process decides alone.
 */
export class CoolDownClient implements Peers {
  private readonly gate: CoolDownGate<any>
  private readonly terms: CoolDownTerms
  private readonly clock: Clock.Clock
  private readonly exchanges: Exchanges
  private readonly name = crypto.randomUUID()
  /** Sends have been made since Redis was asked last. */
  private isActive = false
  /** The resource would be opened here. */
  private wantsToOpen = false
  /** It may be, once. */
  private mayOpenNow = false
  /** This process opens it, and has to tell. */
  private isProbing = false
  private hasOpened = false
  /** Until when a server wants no sends, where that is yet to be told. */
  private closedUntilMillis = -Infinity
  /** The closing that the gate knows of. */
  private closing = ""
  private nextMillis = -Infinity
  private isDown = false
  private signalled = false
  private wake: (() => void) | undefined = undefined

  constructor(gate: CoolDownGate<any>, terms: CoolDownTerms, clock: Clock.Clock, scope: Scope.Scope) {
    this.gate = gate
    this.terms = terms
    this.clock = clock
    this.exchanges = new Exchanges(clock, scope, terms.timeoutMillis)
    gate.peers = this
  }

  sent(): void {
    if (this.isActive) return
    this.isActive = true
    this.signal()
  }

  closed(untilMillis: number): void {
    this.closedUntilMillis = untilMillis
    this.mayOpenNow = this.isProbing = this.hasOpened = false
    this.signal()
  }

  mayOpen(): boolean {
    if (this.isDown || this.mayOpenNow) {
      this.mayOpenNow = false
      return true
    }
    if (!this.wantsToOpen) {
      this.wantsToOpen = true
      this.nextMillis = -Infinity
      this.signal()
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
    this.signal()
  }

  /** Talks to Redis until it is interrupted; then the process decides alone. */
  get run(): Effect.Effect<void> {
    return Effect.onExit(this.loop, () => Effect.sync(() => this.alone()))
  }

  private readonly loop: Effect.Effect<void> = Effect.suspend(() => {
    this.signalled = false
    const millis = this.pauseMillis(this.nowMillis)
    return Effect.flatMap(millis > 0 ? this.pause(millis) : this.exchange, () => this.loop)
  })

  private signal(): void {
    this.signalled = true
    this.wake?.()
  }

  private get nowMillis(): number {
    return monotonicMillis(this.clock)
  }

  /** Milliseconds until there is something to tell or to ask. */
  private pauseMillis(now: number): number {
    const isUrgent = this.closedUntilMillis > now || this.hasOpened
    if (!isUrgent && !this.wantsToOpen && !this.isActive) return Infinity
    return isUrgent && !this.isDown ? 0 : Math.ceil(this.nextMillis - now)
  }

  private pause(millis: number): Effect.Effect<void> {
    const signal = Effect.callback<void>((resume) => {
      this.wake = () => {
        this.wake = undefined
        resume(Effect.void)
      }
      if (this.signalled) this.wake()
    })
    return millis === Infinity ? signal : Effect.raceFirst(Effect.sleep(millis), signal)
  }

  private get exchange(): Effect.Effect<void> {
    // Whatever is ready to run may have something to send along.
    return Effect.andThen(
      Effect.yieldNow,
      Effect.suspend(() => {
        const now = this.nowMillis
        if (this.exchanges.isLost(now)) return this.failed("an earlier answer is still missing")
        const { closedUntilMillis, hasOpened, wantsToOpen } = this
        const asked: CoolDownExchange = {
          client: this.name,
          closedMillis: Math.max(0, closedUntilMillis - now),
          hasOpened,
          wantsToOpen
        }
        this.isActive = false
        return Effect.flatMap(this.exchanges.send(this.evaluated(asked), coolDownReplyOf), (reply) => {
          if (typeof reply === "string") return this.failed(reply)
          if (this.closedUntilMillis === closedUntilMillis) this.closedUntilMillis = -Infinity
          if (hasOpened) this.hasOpened = false
          return this.answered(reply, asked.closedMillis > 0)
        })
      })
    )
  }

  private evaluated(asked: CoolDownExchange): Effect.Effect<unknown, unknown> {
    const { connection, settings } = this.terms
    return Effect.flatMap(connection, (redis: Redis.Redis["Service"]) => redis.eval(coolDownScript)(settings, asked))
  }

  private answered(reply: CoolDownReply, told: boolean): Effect.Effect<void> {
    const { lookMillis, random } = this.terms
    const follow = Effect.sync(() => {
      const now = this.nowMillis
      this.nextMillis = now + lookMillis * (0.5 + random.nextDoubleUnsafe() / 2)
      this.follow(reply, told, now)
    })
    if (!this.isDown) return follow
    this.isDown = false
    return Effect.andThen(this.terms.onChange(undefined), follow)
  }

  private follow({ closing, millis, state }: CoolDownReply, told: boolean, now: number): void {
    const { gate } = this
    const isNews = closing !== "" && closing !== this.closing
    this.closing = closing
    if (state === "closed") {
      this.wantsToOpen = this.mayOpenNow = this.isProbing = false
      // What it has said itself it knows better than from the answer, unless another was told to wait for longer.
      const isLonger = now + millis > gate.untilMillis + (told ? this.terms.timeoutMillis : 0)
      if (isNews && isLonger) gate.closeUntil(now, now + millis)
    } else if (state === "others") {
      if (isNews && gate.phase === "free") gate.closeUntil(now, now)
    } else if (this.wantsToOpen) {
      this.granted(state === "yours", now)
    }
  }

  private granted(isProbing: boolean, now: number): void {
    this.wantsToOpen = false
    this.mayOpenNow = true
    this.isProbing = isProbing
    this.gate.look(now)
  }

  /** The process decides alone for some time. */
  private failed(reason: string): Effect.Effect<void> {
    const isNews = !this.isDown
    this.nextMillis = this.nowMillis + this.terms.retryMillis
    const alone = Effect.sync(() => this.alone())
    return isNews ? Effect.andThen(this.terms.onChange(reason), alone) : alone
  }

  private alone(): void {
    this.isDown = true
    this.wantsToOpen = this.isProbing = this.hasOpened = false
    this.gate.look(this.nowMillis)
  }
}
