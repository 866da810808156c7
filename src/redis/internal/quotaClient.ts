import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { StoreOptions } from "../../quota/internal/memoryStore.ts"
import { ResizableStore } from "../../quota/internal/resizableStore.ts"
import type { Exchange, Exchanges, Look, Topic } from "./exchanges.ts"
import { Outbox } from "./outbox.ts"
import { leaseOf, type Reply, replyOf, script, type Settings, type Wanted } from "./quotaScript.ts"

/**
 * The answer to a request: `"late"` if the tokens come too late for it, `"local"` if Redis cannot say, and the fallback
 * has to decide.
 */
export type Answer = "granted" | "refused" | "late" | "local"

/** A request to Redis for tokens. */
interface Ask extends Wanted {
  /** Whether the caller has stopped waiting. */
  isAbandoned: boolean
  /** How long waiting is useful, in milliseconds of the monotonic clock. */
  readonly untilMillis: number
  readonly granted: (lease: string) => void
  readonly resume: (answer: Effect.Effect<Answer>) => void
}

/** The settings of a shared quota. */
export interface QuotaTerms {
  readonly settings: Settings
  readonly flushMillis: number
  readonly maxWaiters: number
  /** The quota in memory for the time that Redis does not respond, given the tokens it last reported. */
  readonly local: (tokens: number) => StoreOptions
}

/** The most reservations in one exchange, which blocks Redis for all its users. */
const mostAsks = 500

/** Others may add tokens that a retry waits for here: Redis is asked again at least this often. */
const mostWaitMillis = 1000

/**
 * How rarely deposits are sent to a quota that was full when Redis last responded: this, or up to half as long again.
 */
const fullFlushMillis = 2000

/** The contents of one exchange. */
interface Questions {
  readonly asks: ReadonlyArray<Ask>
  readonly looks: ReadonlyArray<() => void>
}

/** What the retries of a process ask of the quota in Redis, and report to it. Only a request is urgent. */
export class Client implements Topic<Reply> {
  /** The quota that decides while Redis does not respond. */
  local: ResizableStore | undefined = undefined
  /** The tokens that Redis last reported. */
  tokens: number
  readonly outbox: Outbox
  private ids = 0
  /** The waiting requests, first come, first served. The exchange in progress asks for those at the front. */
  private readonly asks = new Set<Ask>()
  private readonly looks = new Set<() => void>()
  /** The first request that waits for tokens, and the moment before which there are none for it. */
  private first: { readonly ask: Ask; readonly atMillis: number } | undefined = undefined
  /** When the outbox is sent; `undefined` while that is not planned. */
  private flush: Look | undefined = undefined
  /** Whether the quota was full when Redis last responded. */
  private isFull = false
  /** The local quota that decided before. It is reused if needed again before this moment. */
  private former: { readonly local: ResizableStore; readonly untilMillis: number } | undefined = undefined
  /** Until Redis has responded, a quota that it does not have yet begins with the tokens known here. */
  private isNew = true
  /** Until when Redis remembers this process for sure. */
  private rememberedUntilMillis = -Infinity

  /** Calls `lost` when Redis has lost the quota. */
  constructor(
    private terms: QuotaTerms,
    private readonly exchanges: Exchanges,
    private readonly lost: () => void,
    tokens = terms.settings.initial
  ) {
    this.tokens = tokens
    // Expired leases need no report any more.
    this.outbox = new Outbox(terms.settings.capacity, terms.settings.leaseMillis, (isLease) => {
      const soonEnough = isLease ? this.nowMillis + this.terms.flushMillis : Infinity
      if (this.flush === undefined || this.flush.atMillis > soonEnough) exchanges.signal()
    })
  }

  /** Follows other terms of the same quota, which keeps its share of tokens. Requests that wait ask again. */
  change(terms: QuotaTerms, clock: Clock.Clock): void {
    const { capacity, leaseMillis } = terms.settings
    this.tokens *= capacity / this.terms.settings.capacity
    this.terms = terms
    this.outbox.change(capacity, leaseMillis)
    for (const local of [this.local, this.former?.local]) local?.change(terms.local(this.tokens), clock)
    this.first = undefined
    this.exchanges.signal()
  }

  get nowMillis(): number {
    return this.exchanges.nowMillis
  }

  /** Whether the maximum number of requests is waiting. */
  get isLineFull(): boolean {
    return this.first !== undefined && this.asks.size >= this.terms.maxWaiters
  }

  /**
   * Asks, with the next exchange. Granted tokens are a lease, which `granted` gets in the step in which the response is
   * read.
   */
  ask(cost: number, untilMillis: number, granted: (lease: string) => void): Effect.Effect<Answer> {
    return Effect.callback<Answer>((resume) => {
      if (this.local !== undefined) return resume(Effect.succeed("local"))
      if (this.isLineFull) return resume(Effect.succeed("refused"))
      const ask: Ask = { isAbandoned: false, id: ++this.ids, cost, untilMillis, granted, resume }
      this.asks.add(ask)
      // Behind a request that waits for tokens, there are none.
      if (this.first === undefined) this.exchanges.signal()
      return Effect.sync(() => this.leave(ask))
    })
  }

  /** The caller has stopped waiting. Tokens granted anyway go back when the response is read. */
  private leave(ask: Ask): void {
    ask.isAbandoned = true
    this.asks.delete(ask)
    if (ask !== this.first?.ask) return
    this.first = undefined
    this.exchanges.signal()
  }

  /** Refreshes `tokens` with the next exchange, unless there is a local quota. */
  readonly refresh: Effect.Effect<void> = Effect.callback<void>((resume) => {
    if (this.local !== undefined) return resume(Effect.void)
    const look = () => resume(Effect.void)
    this.looks.add(look)
    this.exchanges.signal()
    return Effect.sync(() => this.looks.delete(look))
  })

  /** Decides locally from now on: no request waits for Redis any more. */
  decideAlone(): void {
    const { former } = this
    const goesOn = former !== undefined && this.nowMillis < former.untilMillis
    this.local ??= goesOn ? former.local : new ResizableStore(this.terms.local(this.tokens), this.nowMillis)
    this.first = undefined
    this.answer([...this.asks].map((ask) => [ask, "local"]), [...this.looks])
  }

  /**
   * Answers all of them. An answered caller runs immediately and may interrupt another, so each holds its grant before
   * the first one runs.
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

  /** Has the rest sent, and waits for that. */
  readonly finish: Effect.Effect<void> = Effect.suspend(() => {
    return this.exchanges.finish(() => this.outbox.isEmpty)
  })

  pauseMillis(now: number): number {
    if (this.local !== undefined) return 0
    this.flush = this.outbox.isEmpty ? undefined : this.sooner(this.nextFlush(now))
    if (this.looks.size > 0) return 0
    return Math.min(this.askAtMillis(now) - now, (this.flush?.atMillis ?? Infinity) - now)
  }

  private askAtMillis(now: number): number {
    return this.asks.size > 0 ? this.first?.atMillis ?? now : Infinity
  }

  mayGoAlong(now: number): boolean {
    return this.flush !== undefined && now >= this.flush.fromMillis
  }

  private sooner(next: Look): Look {
    return this.flush !== undefined && this.flush.atMillis <= next.atMillis ? this.flush : next
  }

  /** When updates of now are sent. While all is well, which is most of the time, deposits change nothing. */
  private nextFlush(now: number): Look {
    const { flushMillis } = this.terms
    if (!this.isFull || this.outbox.hasLeases) return { fromMillis: now + flushMillis / 2, atMillis: now + flushMillis }
    const millis = fullFlushMillis * (1 + this.exchanges.random.nextDoubleUnsafe() / 2)
    return {
      fromMillis: now + Math.max(flushMillis / 2, fullFlushMillis),
      atMillis: now + Math.max(flushMillis, millis)
    }
  }

  next(now: number): Exchange<Reply> {
    const questions = { asks: this.nextAsks(), looks: [...this.looks] }
    const { sequence, sections } = this.outbox.close(now)
    this.flush = undefined
    const settings = this.isNew ? { ...this.terms.settings, initial: this.tokens } : this.terms.settings
    const report = { client: this.exchanges.name, sequence, sections, wanted: questions.asks }
    return {
      ask: (redis) => redis.eval(script)(settings, report),
      replyOf: (answer) => replyOf(answer, report.wanted.length),
      answered: (reply) => {
        const { idleMillis, leaseMillis } = this.terms.settings
        if (reply.last === 0 && this.nowMillis < this.rememberedUntilMillis) this.lost()
        this.rememberedUntilMillis = this.nowMillis + Math.min(leaseMillis, idleMillis / 2)
        this.isNew = false
        this.outbox.arrived(sequence)
        this.settle(questions, reply)
      },
      // Redis may have granted any of them, so all go back with the next exchange.
      failed: () => questions.asks.forEach((ask) => this.outbox.giveBack(leaseOf(ask)))
    }
  }

  private nextAsks(): ReadonlyArray<Ask> {
    const asks: Array<Ask> = []
    for (const ask of this.asks) {
      if (asks.length === mostAsks) break
      asks.push(ask)
    }
    return asks
  }

  private settle({ asks, looks }: Questions, reply: Reply): void {
    const { local } = this
    this.tokens = reply.tokens
    this.isFull = reply.tokens >= this.terms.settings.capacity
    this.local = undefined
    if (local !== undefined) this.former = { local, untilMillis: this.nowMillis + this.terms.settings.leaseMillis }
    this.answer(this.answersTo(asks, reply.millis), looks)
  }

  /** The answers to the requests that get one. The others keep waiting. */
  private answersTo(asks: ReadonlyArray<Ask>, millis: ReadonlyArray<number>): ReadonlyArray<readonly [Ask, Answer]> {
    const answers: Array<readonly [Ask, Answer]> = []
    this.first = undefined
    for (const [index, ask] of asks.entries()) {
      const wait = millis[index]!
      if (ask.isAbandoned) {
        if (wait === 0) this.outbox.giveBack(leaseOf(ask))
      } else if (wait === 0) {
        answers.push([ask, "granted"])
      } else if (wait < 0 || !this.terms.settings.inOrder) {
        answers.push([ask, "refused"])
      } else if (this.nowMillis + wait >= ask.untilMillis) {
        answers.push([ask, "late"])
      } else {
        this.first ??= { ask, atMillis: this.nowMillis + Math.min(wait, mostWaitMillis) }
      }
    }
    return this.first === undefined ? answers : [...answers, ...this.refusals(answers)]
  }

  /** Refuses requests that arrived when the line was full. */
  private refusals(answers: ReadonlyArray<readonly [Ask, Answer]>): ReadonlyArray<readonly [Ask, Answer]> {
    const { maxWaiters } = this.terms
    if (this.asks.size - answers.length <= maxWaiters) return []
    const answered = new Set(answers.map(([ask]) => ask))
    const waiting = [...this.asks].filter((ask) => !answered.has(ask))
    return waiting.slice(maxWaiters).map((ask) => [ask, "refused"])
  }
}
