import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { constVoid } from "effect/Function"
import * as Option from "effect/Option"
import type * as Redis from "effect/persistence/Redis"
import type * as Scope from "effect/Scope"
import { monotonicMillis } from "../../internal/state/clock.ts"
import type { MemoryStore } from "../../internal/state/store.ts"
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
}

/**
 * Answers all of them. Who is answered goes on at once and may interrupt another one, so each has its answer before
 * anybody hears of it: one who leaves with a grant gives it back.
 */
const answerAll = (answers: ReadonlyArray<readonly [Ask, Answer]>): void => {
  const present = answers.filter(([ask]) => ask.state !== "left")
  for (const [ask, answer] of present) ask.state = answer
  for (const [ask, answer] of present) {
    if (ask.state === answer) ask.resume(answer)
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
  /** Another decides: the fallback, for this reason, or Redis. `isNews` unless nobody has heard of the fallback. */
  readonly onChange: (reason: string | undefined, isNews: boolean) => Effect.Effect<void>
}

/** The most reservations in one exchange, which holds Redis up for all its users. */
const mostAsks = 500

/** An exchange that got no answer in time may still be on its way: for so long nothing more is sent. */
const lostMillis = 30_000

/** Others may put tokens in that one waits for here: Redis is asked again at least so often. */
const mostWaitMillis = 1000

/**
 * The exit of a fiber that ends in time. The timer of a process that was busy may ring before it has read an answer which
 * was there in time: it reads once more.
 */
const exitWithin = <A, E>(fiber: Fiber.Fiber<A, E>, millis: number): Effect.Effect<Exit.Exit<A, E> | undefined> =>
  Effect.flatMap(Effect.timeoutOption(Fiber.await(fiber), millis), (exit) =>
    Option.isSome(exit)
      ? Effect.succeed(exit.value)
      : Effect.map(Effect.yieldNow, () => fiber.pollUnsafe()))

/** What goes with one exchange. */
interface Questions {
  readonly asks: ReadonlyArray<Ask>
  readonly looks: ReadonlyArray<() => void>
}

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
  /** The local quota that decided before. It goes on if it has to until this moment. */
  private former: { readonly local: MemoryStore; readonly untilMillis: number } | undefined = undefined
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
    const { former } = this
    const goesOn = former !== undefined && this.nowMillis < former.untilMillis
    this.local ??= goesOn ? former.local : this.terms.fallback(this.tokens)
    const { asks, looks } = this
    this.asks = []
    this.looks = []
    answerAll(asks.map((ask) => [ask, "local"]))
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
        const asks = this.asks.splice(0, mostAsks)
        for (const ask of asks) ask.state = "sent"
        const questions = { asks, looks: this.looks.splice(0) }
        const { sequence, sections } = this.outbox.close(this.nowMillis)
        this.flushAtMillis = Infinity
        return Effect.flatMap(this.send({ client: this.name, sequence, sections, wanted: asks }), (reply) => {
          if (typeof reply === "string") return this.failed(questions, reply)
          this.outbox.heard(sequence)
          return this.answered(questions, reply)
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
        Effect.map(exitWithin(fiber, timeoutMillis), (exit) => {
          if (exit === undefined) {
            this.lost = { fiber, untilMillis: this.nowMillis + lostMillis }
            return `no answer within ${timeoutMillis} ms`
          }
          if (Exit.isFailure(exit)) return reasonOf(exit.cause)
          return replyOf(exit.value, exchange.wanted.length) ?? "an answer that is none"
        })
    )
  }

  /** Who is answered finds it told already who decides. */
  private answered(questions: Questions, reply: Reply): Effect.Effect<void> {
    const settle = Effect.sync(() => this.settle(questions, reply))
    return this.local === undefined ? settle : Effect.andThen(this.terms.onChange(undefined, this.down), settle)
  }

  private settle({ asks, looks }: Questions, reply: Reply): void {
    const { local } = this
    this.tokens = reply.tokens
    this.down = false
    this.local = undefined
    if (local !== undefined) this.former = { local, untilMillis: this.nowMillis + this.terms.settings.leaseMillis }
    answerAll(this.answersTo(asks, reply.millis))
    for (const done of looks) done()
  }

  /** The answers to those who get one. The others wait on. */
  private answersTo(asks: ReadonlyArray<Ask>, millis: ReadonlyArray<number>): ReadonlyArray<readonly [Ask, Answer]> {
    const answers: Array<readonly [Ask, Answer]> = []
    const waiting: Array<Ask> = []
    this.refilledAtMillis = 0
    for (const [index, ask] of asks.entries()) {
      const wait = millis[index]!
      if (this.waits(ask, wait)) {
        ask.state = "queued"
        if (waiting.push(ask) === 1) this.refilledAtMillis = this.nowMillis + Math.min(wait, mostWaitMillis)
      } else {
        if (wait === 0 && ask.state === "left") this.outbox.giveBack(ask.id)
        answers.push([ask, wait === 0 ? "granted" : "refused"])
      }
    }
    this.asks = [...waiting, ...this.asks]
    return answers
  }

  private waits(ask: Ask, millis: number): boolean {
    const canWait = this.terms.settings.inOrder && millis > 0 && ask.state !== "left"
    return canWait && this.nowMillis + millis < ask.untilMillis
  }

  /** Whether Redis has granted anything of it is not known, so all of it goes back with the next exchange. */
  private failed({ asks, looks }: Questions, reason: string): Effect.Effect<void> {
    const isNews = !this.down
    this.down = true
    for (const ask of asks) this.outbox.giveBack(ask.id)
    this.probeAtMillis = this.nowMillis + this.terms.retryMillis
    const decide = Effect.sync(() => {
      this.asks = [...asks, ...this.asks]
      this.looks.push(...looks)
      this.decideLocally()
    })
    return isNews ? Effect.andThen(this.terms.onChange(reason, true), decide) : decide
  }
}
