import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { constVoid } from "effect/Function"
import * as Option from "effect/Option"
import type * as Redis from "effect/persistence/Redis"
import type * as Scope from "effect/Scope"
import { monotonicMillis } from "../state/clock.ts"
import type { MemoryStore } from "../state/store.ts"
import { Outbox } from "./outbox.ts"
import { reasonOf } from "./reason.ts"
import { type Reply, replyOf, script, type Settings, type Wanted } from "./script.ts"

/** What a question is answered with: `"local"` when Redis cannot say, and the fallback has to decide. */
export type Answer = "granted" | "refused" | "local"

/** A question to Redis: are there tokens? */
export class Ask implements Wanted {
  /** It is `"left"` when nobody waits for its answer any more. */
  state: "queued" | "sent" | Answer | "left" = "queued"
  readonly id: number
  readonly cost: number
  /** Until when it is worth waiting, in milliseconds of the monotonic clock. */
  readonly untilMillis: number
  resume: (answer: Answer) => void = constVoid

  constructor(id: number, cost: number, untilMillis: number) {
    this.id = id
    this.cost = cost
    this.untilMillis = untilMillis
  }

  answer(answer: Answer): void {
    if (this.state === "left") return
    this.state = answer
    this.resume(answer)
  }
}

/** How the client and Redis get on. */
export interface Terms {
  readonly settings: Settings
  readonly timeoutMillis: number
  readonly flushMillis: number
  readonly retryMillis: number
  /** The client of Redis, once there is one. */
  readonly connection: Effect.Effect<Redis.Redis["Service"], unknown>
  /** A quota in memory for as long as Redis does not answer, given the tokens that there were when it last did. */
  readonly fallback: (tokens: number) => MemoryStore
  /** Redis has stopped or begun to answer. */
  readonly onChange: (reason: string | undefined) => Effect.Effect<void>
}

/** The most reservations in one exchange, which holds Redis up for all its users. */
const mostAsks = 500

/** An exchange that got no answer in time may still be on its way: for so long nothing more is sent. */
const lostMillis = 30_000

/**
 * The one fiber that talks to Redis, one exchange at a time: whatever came up while an exchange was under way goes along
 * with the next. Nothing but an {@link Ask} makes it hurry.
 */
export class Client {
  /** The quota that decides while Redis does not answer. */
  local: MemoryStore | undefined = undefined
  /** The tokens there were when Redis last answered. */
  tokens: number
  readonly outbox: Outbox
  private readonly terms: Terms
  private readonly clock: Clock.Clock
  private readonly scope: Scope.Scope
  private readonly name = crypto.randomUUID()
  private asks: Array<Ask> = []
  private looks: Array<() => void> = []
  /** Not before this moment there are tokens for the first who waits. */
  private refilledAtMillis = 0
  private flushAtMillis = Infinity
  private probeAtMillis = 0
  private lost: { readonly fiber: Fiber.Fiber<unknown, unknown>; readonly untilMillis: number } | undefined = undefined
  /** It has been told that Redis does not answer. */
  private down = false
  private closing = false
  private signalled = false
  private wake: (() => void) | undefined = undefined

  constructor(terms: Terms, clock: Clock.Clock, scope: Scope.Scope) {
    this.terms = terms
    this.clock = clock
    this.scope = scope
    this.tokens = terms.settings.initial
    this.outbox = new Outbox(terms.settings.capacity, terms.settings.idleMillis / 2, () => {
      if (this.flushAtMillis === Infinity) this.signal()
    })
  }

  private get nowMillis(): number {
    return monotonicMillis(this.clock)
  }

  /** Asks, with the next exchange. Not while there is a local quota. */
  ask(ask: Ask): void {
    this.asks.push(ask)
    this.signal()
  }

  /** Nobody waits for the answer any more: what was granted, or may be, goes back. */
  leave(ask: Ask): void {
    if (ask.state === "granted") this.outbox.giveBack(ask.id)
    if (ask.state === "queued") {
      const place = this.asks.indexOf(ask)
      this.asks.splice(place, 1)
      if (place === 0) this.refilledAtMillis = 0
      this.signal()
    }
    ask.state = "left"
  }

  /** Calls back after the next exchange, or at once when there is a local quota. */
  look(done: () => void): void {
    if (this.local !== undefined) return done()
    this.looks.push(done)
    this.signal()
  }

  /** Decides locally from now on: whoever waits for Redis waits no longer. */
  decideLocally(): void {
    this.local ??= this.terms.fallback(this.tokens)
    const { asks, looks } = this
    this.asks = []
    this.looks = []
    for (const ask of asks) ask.answer("local")
    for (const done of looks) done()
  }

  /** Talks to Redis until it is closed. */
  get run(): Effect.Effect<void> {
    return Effect.onExit(this.loop, () => Effect.sync(() => this.decideLocally()))
  }

  private readonly loop: Effect.Effect<void> = Effect.suspend(() => {
    if (this.closing && (this.local !== undefined || this.outbox.isEmpty)) return Effect.void
    const millis = this.pauseMillis(this.nowMillis)
    return Effect.flatMap(millis > 0 ? this.pause(millis) : this.exchange, () => this.loop)
  })

  /** Has the last word sent, and waits for that. */
  close(fiber: Fiber.Fiber<void>): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.closing = true
      this.signal()
      return Effect.asVoid(Fiber.await(fiber))
    })
  }

  private signal(): void {
    this.signalled = true
    this.wake?.()
  }

  private pause(millis: number): Effect.Effect<void> {
    const signal = Effect.callback<void>((resume) => {
      this.wake = () => {
        this.wake = undefined
        resume(Effect.void)
      }
      if (this.signalled) this.wake()
    })
    const paused = millis === Infinity ? signal : Effect.raceFirst(Effect.sleep(millis), signal)
    return Effect.onExit(paused, () =>
      Effect.sync(() => {
        this.wake = undefined
        this.signalled = false
      }))
  }

  /** Milliseconds until there is something to send. */
  private pauseMillis(now: number): number {
    if (this.closing) return 0
    if (this.local !== undefined) return Math.ceil(this.probeMillis(now))
    if (this.outbox.isEmpty) this.flushAtMillis = Infinity
    else if (this.flushAtMillis === Infinity) this.flushAtMillis = now + this.terms.flushMillis
    if (this.looks.length > 0) return 0
    const refill = this.asks.length > 0 ? this.refilledAtMillis - now : Infinity
    return Math.ceil(Math.min(refill, this.flushAtMillis - now))
  }

  /** Milliseconds until Redis is tried again: later while an exchange is lost. */
  private probeMillis(now: number): number {
    const { lost } = this
    if (now < this.probeAtMillis || lost === undefined) return this.probeAtMillis - now
    if (lost.fiber.pollUnsafe() === undefined) {
      if (now < lost.untilMillis) return this.terms.retryMillis
      lost.fiber.interruptUnsafe()
    }
    this.lost = undefined
    return 0
  }

  private get exchange(): Effect.Effect<void> {
    // Whatever is ready to run may have something to send along.
    return Effect.andThen(
      Effect.yieldNow,
      Effect.suspend(() => {
        const asked = this.asks.splice(0, mostAsks)
        for (const ask of asked) ask.state = "sent"
        const { sequence, sections } = this.outbox.close(this.nowMillis)
        this.flushAtMillis = Infinity
        return Effect.flatMap(this.send({ client: this.name, sequence, sections, wanted: asked }), (reply) => {
          if (typeof reply === "string") return this.failed(asked, reply)
          this.outbox.heard(sequence)
          return this.answered(asked, reply)
        })
      })
    )
  }

  /** The reply in time, or why there is none. What comes later is not waited for, but it is known to be on its way. */
  private send(exchange: Parameters<typeof script.params>[1]): Effect.Effect<Reply | string> {
    const { connection, settings, timeoutMillis } = this.terms
    const answer = Effect.flatMap(connection, (redis) => redis.eval(script)(settings, exchange))
    return Effect.flatMap(
      Effect.forkIn(answer, this.scope, { startImmediately: true }),
      (fiber) =>
        Effect.map(Effect.timeoutOption(Fiber.await(fiber), timeoutMillis), (exit) => {
          if (Option.isNone(exit)) {
            this.lost = { fiber, untilMillis: this.nowMillis + lostMillis }
            return `no answer within ${timeoutMillis} ms`
          }
          if (Exit.isFailure(exit.value)) return reasonOf(exit.value.cause)
          return replyOf(exit.value.value, exchange.wanted.length) ?? "an answer that is none"
        })
    )
  }

  private answered(asked: ReadonlyArray<Ask>, reply: Reply): Effect.Effect<void> {
    this.tokens = reply.tokens
    const recovered = this.down
    this.down = false
    this.local = undefined
    const answers = asked.map((ask, index) => [ask, this.answerTo(ask, reply.millis[index]!)] as const)
    const waiting = answers.filter(([, answer]) => answer === undefined).map(([ask]) => ask)
    for (const ask of waiting) ask.state = "queued"
    this.asks = [...waiting, ...this.asks]
    const first = reply.millis[asked.indexOf(waiting[0]!)]
    this.refilledAtMillis = first === undefined ? 0 : this.nowMillis + first
    const { looks } = this
    this.looks = []
    for (const [ask, answer] of answers) if (answer !== undefined) ask.answer(answer)
    for (const done of looks) done()
    return recovered ? this.terms.onChange(undefined) : Effect.void
  }

  /** The answer, or `undefined` for one who waits on. */
  private answerTo(ask: Ask, millis: number): Answer | undefined {
    if (ask.state === "left") {
      if (millis === 0) this.outbox.giveBack(ask.id)
      return "refused"
    }
    if (millis === 0) return "granted"
    const waits = this.terms.settings.inOrder && millis > 0 && this.nowMillis + millis < ask.untilMillis
    return waits ? undefined : "refused"
  }

  /** Whether Redis has granted anything of it is not known, so all of it goes back with the next exchange. */
  private failed(asked: ReadonlyArray<Ask>, reason: string): Effect.Effect<void> {
    const changed = !this.down
    this.down = true
    for (const ask of asked) this.outbox.giveBack(ask.id)
    this.probeAtMillis = this.nowMillis + this.terms.retryMillis
    this.asks = [...asked, ...this.asks]
    this.decideLocally()
    return changed ? this.terms.onChange(reason) : Effect.void
  }
}
