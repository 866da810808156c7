import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Redis from "effect/persistence/Redis"
import type * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import { monotonicMillis } from "../../internal/clock.ts"
import type { RetryQuotaStore } from "../../RetryQuotaStore.ts"
import { Exchanges } from "./exchanges.ts"
import { Outbox } from "./outbox.ts"
import { leaseOf, type Reply, replyOf, script, type Settings, type Wanted } from "./script.ts"

/** How a question is answered: `"local"` when Redis cannot say, and the fallback has to decide. */
export type Answer = "granted" | "refused" | "local"

/** A question to Redis: are there tokens? */
interface Ask extends Wanted {
  /** Nobody waits for its answer any more. */
  isAbandoned: boolean
  /** Until when waiting is of any use, in milliseconds of the monotonic clock. */
  readonly untilMillis: number
  readonly granted: (lease: string) => void
  readonly resume: (answer: Effect.Effect<Answer>) => void
}

/** How the client and Redis get on. */
export interface Terms {
  readonly settings: Settings
  readonly timeoutMillis: number
  readonly flushMillis: number
  readonly retryMillis: number
  readonly maxWaiters: number
  /** Spreads what the processes of a fleet do. */
  readonly random: Random.Random
  /** The client of Redis, once there is one. */
  readonly connection: Effect.Effect<Redis.Redis["Service"], unknown>
  /** A quota in memory for as long as Redis does not answer, given the tokens that there were when it last did. */
  readonly fallback: (tokens: number) => RetryQuotaStore
  /** Another decides: the fallback, for this reason, or Redis; `isNews` unless nobody was notified of the fallback. */
  readonly onChange: (reason: string | undefined, isNews: boolean) => Effect.Effect<void>
}

/** The most reservations in one exchange, which holds Redis up for all its users. */
const mostAsks = 500

/** Others may put tokens in that one waits for here: Redis is asked again at least so often. */
const mostWaitMillis = 1000

/** Deposits to a quota that was full when Redis last answered are sent so rarely, or half as often again. */
const fullFlushMillis = 2000

/** What goes with one exchange. */
interface Questions {
  readonly asks: ReadonlyArray<Ask>
  readonly looks: ReadonlyArray<() => void>
}

/**
 * The one fiber that talks to Redis, one exchange at a time: whatever came up while an exchange was under way goes along
 * with the next. Nothing but a question makes it hurry.
 */
export class Client {
  /** The quota that decides while Redis does not answer. */
  local: RetryQuotaStore | undefined = undefined
  /** The tokens there were when Redis last answered. */
  tokens: number
  readonly outbox: Outbox
  private readonly terms: Terms
  private readonly clock: Clock.Clock
  private readonly exchanges: Exchanges
  private readonly name = crypto.randomUUID()
  private ids = 0
  /** Who waits for an answer, first come, first served. The exchange under way asks for those at the front. */
  private readonly asks = new Set<Ask>()
  private readonly looks = new Set<() => void>()
  /** Who is the first to wait for tokens, and the moment before which there are none for it. */
  private first: { readonly ask: Ask; readonly atMillis: number } | undefined = undefined
  private flushAtMillis = Infinity
  /** The quota was full when Redis last answered. */
  private isFull = false
  private probeAtMillis = 0
  /** The local quota that decided before. It goes on if it has to until this moment. */
  private former: { readonly local: RetryQuotaStore; readonly untilMillis: number } | undefined = undefined
  /** Redis is known not to answer. */
  private down = false
  private closing = false
  private signalled = false
  private wake: (() => void) | undefined = undefined

  constructor(terms: Terms, clock: Clock.Clock, scope: Scope.Scope) {
    this.terms = terms
    this.clock = clock
    this.exchanges = new Exchanges(clock, scope, terms.timeoutMillis)
    this.tokens = terms.settings.initial
    // Leases that have ended by themselves need not be told any more.
    this.outbox = new Outbox(terms.settings.capacity, terms.settings.leaseMillis, (isLease) => {
      const soonEnough = isLease ? this.nowMillis + terms.flushMillis : Infinity
      if (this.flushAtMillis === Infinity || this.flushAtMillis > soonEnough) this.signal()
    })
  }

  get nowMillis(): number {
    return monotonicMillis(this.clock)
  }

  /** As many wait for tokens as may. */
  get isLineFull(): boolean {
    return this.first !== undefined && this.asks.size >= this.terms.maxWaiters
  }

  /**
   * Asks, with the next exchange. Tokens that are granted are the lease that `granted` is called with, in the
   * step in which the answer is read.
   */
  ask(cost: number, untilMillis: number, granted: (lease: string) => void): Effect.Effect<Answer> {
    return Effect.callback<Answer>((resume) => {
      if (this.local !== undefined) return resume(Effect.succeed("local"))
      if (this.isLineFull) return resume(Effect.succeed("refused"))
      const ask: Ask = { isAbandoned: false, id: ++this.ids, cost, untilMillis, granted, resume }
      this.asks.add(ask)
      // Behind one who waits for tokens there are none.
      if (this.first === undefined) this.signal()
      return Effect.sync(() => this.leave(ask))
    })
  }

  /** Nobody waits for the answer any more. What is granted all the same goes back when the answer is read. */
  private leave(ask: Ask): void {
    ask.isAbandoned = true
    this.asks.delete(ask)
    if (ask !== this.first?.ask) return
    this.first = undefined
    this.signal()
  }

  /** Brings `tokens` up to date with the next exchange, unless there is a local quota. */
  readonly refresh: Effect.Effect<void> = Effect.callback<void>((resume) => {
    if (this.local !== undefined) return resume(Effect.void)
    const look = () => resume(Effect.void)
    this.looks.add(look)
    this.signal()
    return Effect.sync(() => this.looks.delete(look))
  })

  /** Decides locally from now on: nobody waits for Redis any more. */
  decideLocally(): void {
    const { former } = this
    const goesOn = former !== undefined && this.nowMillis < former.untilMillis
    this.local ??= goesOn ? former.local : this.terms.fallback(this.tokens)
    this.first = undefined
    this.answer([...this.asks].map((ask) => [ask, "local"]), [...this.looks])
  }

  /**
   * Answers all of them. Whoever is answered goes on immediately and may interrupt another one, so each holds what it is
   * granted before the first goes on.
   */
  private answer(answers: ReadonlyArray<readonly [Ask, Answer]>, looks: ReadonlyArray<() => void>): void {
    for (const [ask, answer] of answers) {
      this.asks.delete(ask)
      if (answer === "granted") ask.granted(leaseOf(ask))
    }
    for (const [ask, answer] of answers) ask.resume(Effect.succeed(answer))
    for (const look of looks) {
      if (this.looks.delete(look)) look()
    }
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

  /** Has what is left sent, and waits for that. */
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
    else this.flushAtMillis = Math.min(this.flushAtMillis, now + this.flushMillis)
    if (this.looks.size > 0) return 0
    const refill = this.asks.size > 0 ? (this.first?.atMillis ?? now) - now : Infinity
    return Math.ceil(Math.min(refill, this.flushAtMillis - now))
  }

  /** How long what there is to tell is collected. Deposits change nothing where all is well, which is most of the time. */
  private get flushMillis(): number {
    const { flushMillis, random } = this.terms
    if (!this.isFull || this.outbox.hasLeases) return flushMillis
    return Math.max(flushMillis, fullFlushMillis * (1 + random.nextDoubleUnsafe() / 2))
  }

  /** Milliseconds until Redis is tried again: later while an exchange is lost. */
  private probeMillis(now: number): number {
    if (now < this.probeAtMillis) return this.probeAtMillis - now
    return this.exchanges.isLost(now) ? this.terms.retryMillis : 0
  }

  private get exchange(): Effect.Effect<void> {
    // Whatever is ready to run may have something to send along.
    return Effect.andThen(
      Effect.yieldNow,
      Effect.suspend(() => {
        const questions = { asks: this.nextAsks(), looks: [...this.looks] }
        const { sequence, sections } = this.outbox.close(this.nowMillis)
        this.flushAtMillis = Infinity
        return Effect.flatMap(this.send({ client: this.name, sequence, sections, wanted: questions.asks }), (reply) => {
          if (typeof reply === "string") return this.failed(questions.asks, reply)
          this.outbox.arrived(sequence)
          return this.answered(questions, reply)
        })
      })
    )
  }

  private nextAsks(): ReadonlyArray<Ask> {
    const asks: Array<Ask> = []
    for (const ask of this.asks) {
      if (asks.length === mostAsks) break
      asks.push(ask)
    }
    return asks
  }

  /** The reply in time, or why there is none. */
  private send(exchange: Parameters<typeof script.params>[1]): Effect.Effect<Reply | string> {
    const { connection, settings } = this.terms
    return this.exchanges.send(
      Effect.flatMap(connection, (redis) => redis.eval(script)(settings, exchange)),
      (answer) => replyOf(answer, exchange.wanted.length)
    )
  }

  /** Whoever is answered finds it logged already who decides. */
  private answered(questions: Questions, reply: Reply): Effect.Effect<void> {
    const settle = Effect.sync(() => this.settle(questions, reply))
    return this.local === undefined ? settle : Effect.andThen(this.terms.onChange(undefined, this.down), settle)
  }

  private settle({ asks, looks }: Questions, reply: Reply): void {
    const { local } = this
    this.tokens = reply.tokens
    this.isFull = reply.tokens >= this.terms.settings.capacity
    this.down = false
    this.local = undefined
    if (local !== undefined) this.former = { local, untilMillis: this.nowMillis + this.terms.settings.leaseMillis }
    this.answer(this.answersTo(asks, reply.millis), looks)
  }

  /** The answers to those who get one. The others wait on. */
  private answersTo(asks: ReadonlyArray<Ask>, millis: ReadonlyArray<number>): ReadonlyArray<readonly [Ask, Answer]> {
    const answers: Array<readonly [Ask, Answer]> = []
    this.first = undefined
    for (const [index, ask] of asks.entries()) {
      const wait = millis[index]!
      if (ask.isAbandoned) {
        if (wait === 0) this.outbox.giveBack(leaseOf(ask))
      } else if (this.waits(ask, wait)) {
        this.first ??= { ask, atMillis: this.nowMillis + Math.min(wait, mostWaitMillis) }
      } else {
        answers.push([ask, wait === 0 ? "granted" : "refused"])
      }
    }
    return this.first === undefined ? answers : [...answers, ...this.refusals(answers)]
  }

  /** Refuses those who came when as many were waiting as may. */
  private refusals(answers: ReadonlyArray<readonly [Ask, Answer]>): ReadonlyArray<readonly [Ask, Answer]> {
    const { maxWaiters } = this.terms
    if (this.asks.size - answers.length <= maxWaiters) return []
    const answered = new Set(answers.map(([ask]) => ask))
    const waiting = [...this.asks].filter((ask) => !answered.has(ask))
    return waiting.slice(maxWaiters).map((ask) => [ask, "refused"])
  }

  private waits(ask: Ask, millis: number): boolean {
    return this.terms.settings.inOrder && millis > 0 && this.nowMillis + millis < ask.untilMillis
  }

  /** Whether Redis has granted anything of it is not known, so all of it goes back with the next exchange. */
  private failed(asks: ReadonlyArray<Ask>, reason: string): Effect.Effect<void> {
    const isNews = !this.down
    this.down = true
    for (const ask of asks) this.outbox.giveBack(leaseOf(ask))
    this.probeAtMillis = this.nowMillis + this.terms.retryMillis
    const decide = Effect.sync(() => this.decideLocally())
    return isNews ? Effect.andThen(this.terms.onChange(reason, true), decide) : decide
  }
}
