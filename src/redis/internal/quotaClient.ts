import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Iterable from "effect/Iterable"
import { ResizableStore, type StoreOptions } from "../../quota/internal/memoryStore.ts"
import * as Exchange from "./exchange.ts"

/** A set of updates for Redis: applied once, or not at all. */
export class Section {
  sequence = 0
  /** Tokens added by successes and deposits. */
  deposit = 0
  /** Leases whose tokens go back, including those that Redis may or may not have granted. */
  readonly returned: Array<string> = []
  /** Leases whose tokens stay taken. */
  readonly spent: Array<string> = []

  get hasLeases(): boolean {
    return this.returned.length + this.spent.length > 0
  }

  get isEmpty(): boolean {
    return this.deposit === 0 && !this.hasLeases
  }
}

/**
 * Updates that Redis is not known to have received. However many calls succeed, a deposit is one number; in addition,
 * there is one entry for each lease that has ended.
 */
export class Outbox {
  private open = new Section()
  private closed: Array<{ readonly section: Section; readonly atMillis: number }> = []
  private sequence = 0

  /**
   * Calls `changed` when there is an update: of a lease, or a deposit. Drops updates not delivered within `keptMillis`.
   */
  constructor(
    private capacity: number,
    private keptMillis: number,
    private readonly changed: (isLease: boolean) => void
  ) {}

  change(capacity: number, keptMillis: number): void {
    this.capacity = capacity
    this.keptMillis = keptMillis
  }

  get isEmpty(): boolean {
    return this.open.isEmpty && this.closed.length === 0
  }

  /** Whether there are updates other than deposits. */
  get hasLeases(): boolean {
    return this.open.hasLeases || this.closed.some(({ section }) => section.hasLeases)
  }

  deposit(tokens: number): void {
    if (tokens === 0) return
    this.open.deposit = Math.min(this.capacity, this.open.deposit + tokens)
    this.changed(false)
  }

  giveBack(lease: string): void {
    this.open.returned.push(lease)
    this.changed(true)
  }

  spend(lease: string): void {
    this.open.spent.push(lease)
    this.changed(true)
  }

  /** Closes the open section: returns the number of the next exchange, and everything to send. */
  close(nowMillis: number): { readonly sequence: number; readonly sections: ReadonlyArray<Section> } {
    const section = this.open
    section.sequence = ++this.sequence
    this.open = new Section()
    this.closed = this.closed.filter(({ atMillis }) => nowMillis - atMillis < this.keptMillis)
    if (!section.isEmpty) this.closed.push({ section, atMillis: nowMillis })
    return { sequence: this.sequence, sections: this.closed.map(({ section }) => section) }
  }

  /** Redis has applied everything up to this exchange. */
  arrived(sequence: number): void {
    this.closed = this.closed.filter(({ section }) => section.sequence > sequence)
  }
}

/** The settings of a quota, sent with every exchange: Redis holds only tokens. */
export interface QuotaSettings {
  /** The key in Redis. */
  readonly key: string
  readonly capacity: number
  readonly initial: number
  readonly refillPerSecond: number
  /** How long tokens may be held before Redis takes them back. */
  readonly leaseMillis: number
  /** How long Redis keeps its data when unused. */
  readonly idleMillis: number
  /** Whether reservations are granted only in order: none after one that has to wait. */
  readonly inOrder: boolean
}

/** One exchange: updates first, then requests. */
export interface QuotaExchange {
  readonly client: string
  readonly sequence: number
  readonly sections: ReadonlyArray<Section>
  /** The names of the tokens that are asked for. */
  readonly wanted: ReadonlyArray<string>
}

/** The response of Redis. */
interface QuotaReply {
  readonly tokens: number
  /** The last exchange of this process that Redis knew of; 0 for none. */
  readonly last: number
  /** For each reservation: 0 if granted, else milliseconds until it could be, -1 for never. */
  readonly millis: ReadonlyArray<number>
}

/** The most expired entries that one exchange removes: all users of Redis wait for it. */
const mostExpired = 100

/**
 * The only script: a whole exchange in one atomic step, on one key, on the clock of Redis.
 *
 * The key is a sorted set, so that expired members are found without looking at the rest. A score above 0 is the moment
 * at which its member expires: `lease:<client>:<id>:<cost>`, and `client:<client>`; any other expires too. Other scores are negated values:
 * `tokens`, `capacity` (of which they are a share), `at` (when they were counted) and `seq:<client>`, the last sequence number of each client. An exchange with
 * a number not above that one is a late copy: its sender has given it up, so it must change nothing. A section with
 * such a number has already been applied and is resent because its response was lost. A client is remembered as long as
 * it may resend updates, or its messages may be on their way.
 *
 * Everything is computed first. The first write is one that Redis refuses when it is out of memory or read-only, so
 * either everything is written or nothing.
 */
export const quotaScript = Exchange.scriptOf<QuotaSettings, QuotaExchange>(`
local capacity, refill, client = sent.capacity, sent.refillPerSecond / 1000, sent.client
-- An answer is an integer of 64 bits.
local function millisFor(amount) return math.max(1, math.min(2 ^ 53, math.ceil(amount / refill))) end
local function valueOf(member)
  local score = redis.call("ZSCORE", key, member)
  return score and -tonumber(score)
end

local last = valueOf("seq:" .. client) or 0
if sent.sequence <= last then return redis.error_reply("STALE exchange") end

local tokens = valueOf("tokens") or sent.initial
local before = valueOf("capacity") or capacity
if before ~= capacity then tokens = tokens / before * capacity end
local function add(amount) tokens = math.max(0, math.min(capacity, tokens + amount)) end
add(math.max(0, now - (valueOf("at") or now)) * refill)

local gone = {}
local function release(member)
  if gone[member] or not redis.call("ZSCORE", key, member) then return 0 end
  gone[member] = true
  return amount(string.match(member, "^lease:.*:(.*)$")) or 0
end
local function leaseOf(name) return "lease:" .. client .. ":" .. name end

-- What is written in any case.
local kept = { tokens = true, capacity = true, at = true, ["seq:" .. client] = true, ["client:" .. client] = true }
for _, member in ipairs(redis.call("ZRANGEBYSCORE", key, "(0", exact(now), "LIMIT", 0, ${mostExpired})) do
  local expired = string.match(member, "^client:(.*)$")
  if not kept[member] then
    add(release(member))
    if expired then gone["seq:" .. expired] = true end
  end
end

for _, section in ipairs(sent.sections) do
  if section.sequence > last then
    add(section.deposit)
    for _, name in ipairs(section.returned) do add(release(leaseOf(name))) end
    for _, name in ipairs(section.spent) do release(leaseOf(name)) end
  end
end

local waits = false
local reply = { "", last }
local changed = {}
local function set(member, score)
  changed[#changed + 1] = exact(score)
  changed[#changed + 1] = member
end
for _, name in ipairs(sent.wanted) do
  local cost = tonumber(string.match(name, "[^:]+$"))
  local shortfall = cost - tokens
  if shortfall <= 1e-9 and not waits then
    tokens = math.max(0, tokens - cost)
    set(leaseOf(name), now + sent.leaseMillis)
    reply[#reply + 1] = 0
  else
    waits = sent.inOrder
    reply[#reply + 1] = refill == 0 and -1 or millisFor(shortfall)
  end
end
reply[1] = exact(tokens)

set("tokens", -tokens)
set("capacity", -capacity)
set("at", -now)
set("seq:" .. client, -sent.sequence)
set("client:" .. client, now + sent.leaseMillis + ${2 * Exchange.lostMillis})
redis.call("ZADD", key, unpack(changed))
for member in pairs(gone) do redis.call("ZREM", key, member) end
-- A time to live is a whole number, and 0 would mean none at all.
redis.call("PEXPIRE", key, string.format("%.0f", math.min(2 ^ 53 - 1, math.ceil(sent.idleMillis))))
return reply
`)

/** The reply, or `undefined` if it is invalid. */
export const quotaReplyOf = (answer: unknown, wanted: number): QuotaReply | undefined => {
  const [tokens = -1, last = -1, ...millis] = Exchange.amountsOf(answer, wanted + 2, -1) ?? []
  return tokens >= 0 && last >= 0 ? { tokens, last, millis } : undefined
}

/**
 * The answer to a request: `"late"` if the tokens come too late for it, `"local"` if Redis cannot say, and the fallback
 * has to decide.
 */
export type Answer = "granted" | "refused" | "late" | "local"

/** A request to Redis for tokens. */
interface Ask {
  /** Used once. */
  readonly id: number
  readonly cost: number
  /** How long waiting is useful, in milliseconds of the monotonic clock. */
  readonly untilMillis: number
  readonly granted: (lease: string) => void
  readonly resume: (answer: Effect.Effect<Answer>) => void
}

/** The name of a client's held tokens. */
const leaseOf = ({ cost, id }: Ask): string => `${id}:${cost}`

/** The settings of a shared quota. */
export interface QuotaTerms extends Exchange.Times {
  readonly store: StoreOptions
  readonly settings: QuotaSettings
  readonly flushMillis: number
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

/** What the retries of a process ask of the quota in Redis, and report to it. Only a request is urgent. */
export class QuotaClient implements Exchange.Topic<QuotaReply> {
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
  private flush: Exchange.Look | undefined = undefined
  /** Whether the quota was full when Redis last responded. */
  private isFull = false
  /** The local quota that decided before. It is reused if needed again before this moment. */
  private former: { readonly local: ResizableStore; readonly untilMillis: number } | undefined = undefined
  /**
   * Until when Redis remembers this process for sure. Until it has responded, a quota that it does not have yet begins
   * with the tokens known here.
   */
  private rememberedUntilMillis = -Infinity

  /** Calls `lost` when Redis has lost the quota. */
  constructor(
    public terms: QuotaTerms,
    private readonly exchanges: Exchange.Exchanges,
    private readonly lost: () => void,
    tokens = terms.settings.initial
  ) {
    this.tokens = tokens
    exchanges.topic = this
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
    return this.first !== undefined && this.asks.size >= this.terms.store.maxWaiters
  }

  /**
   * Asks, with the next exchange. Granted tokens are a lease, which `granted` gets in the step in which the response is
   * read.
   */
  ask(cost: number, untilMillis: number, granted: (lease: string) => void): Effect.Effect<Answer> {
    return Effect.callback<Answer>((resume) => {
      if (this.local !== undefined) return resume(Effect.succeed("local"))
      if (this.isLineFull) return resume(Effect.succeed("refused"))
      const ask: Ask = { id: ++this.ids, cost, untilMillis, granted, resume }
      this.asks.add(ask)
      // Behind a request that waits for tokens, there are none.
      if (this.first === undefined) this.exchanges.signal()
      return Effect.sync(() => this.leave(ask))
    })
  }

  /** The caller has stopped waiting. Tokens granted anyway go back when the response is read. */
  private leave(ask: Ask): void {
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
    this.answer(new Map([...this.asks].map((ask) => [ask, "local"])), [...this.looks])
  }

  /**
   * Answers all of them. An answered caller runs immediately and may interrupt another, so each holds its grant before
   * the first one runs.
   */
  private answer(answers: ReadonlyMap<Ask, Answer>, looks: ReadonlyArray<() => void>): void {
    for (const [ask, answer] of answers) {
      this.asks.delete(ask)
      if (answer === "granted") ask.granted(leaseOf(ask))
    }
    for (const [ask, answer] of answers) ask.resume(Effect.succeed(answer))
    for (const look of looks) {
      if (this.looks.delete(look)) look()
    }
  }

  pauseMillis(now: number): number {
    if (this.local !== undefined) return 0
    this.flush = this.outbox.isEmpty ? undefined : this.sooner(this.nextFlush(now))
    if (this.looks.size > 0) return 0
    const askAtMillis = this.asks.size > 0 ? this.first?.atMillis ?? now : Infinity
    return Math.min(askAtMillis, this.flush?.atMillis ?? Infinity) - now
  }

  mayGoAlong(now: number): boolean {
    return this.flush !== undefined && now >= this.flush.fromMillis
  }

  private sooner(next: Exchange.Look): Exchange.Look {
    return this.flush !== undefined && this.flush.atMillis <= next.atMillis ? this.flush : next
  }

  /** When updates of now are sent. While all is well, which is most of the time, deposits change nothing. */
  private nextFlush(now: number): Exchange.Look {
    const { flushMillis } = this.terms
    if (!this.isFull || this.outbox.hasLeases) return { fromMillis: now + flushMillis / 2, atMillis: now + flushMillis }
    const millis = fullFlushMillis * (1 + this.exchanges.random.nextDoubleUnsafe() / 2)
    return {
      fromMillis: now + Math.max(flushMillis / 2, fullFlushMillis),
      atMillis: now + Math.max(flushMillis, millis)
    }
  }

  next(now: number): Exchange.Exchange<QuotaReply> {
    const [asks, looks] = [[...Iterable.take(this.asks, mostAsks)], [...this.looks]]
    const { sequence, sections } = this.outbox.close(now)
    this.flush = undefined
    const settings = this.rememberedUntilMillis === -Infinity
      ? { ...this.terms.settings, initial: this.tokens }
      : this.terms.settings
    const report = { client: this.exchanges.name, sequence, sections, wanted: asks.map(leaseOf) }
    return {
      ask: (redis) =>
        Effect.map(redis.eval(quotaScript)(settings, report), (answer) => quotaReplyOf(answer, asks.length)),
      answered: (reply) => {
        this.outbox.arrived(sequence)
        this.follow(reply)
        this.answer(this.answersTo(asks, reply.millis), looks)
      },
      // Redis may have granted any of them, so all go back with the next exchange.
      failed: () => asks.forEach((ask) => this.outbox.giveBack(leaseOf(ask)))
    }
  }

  /** Redis decides from now on. */
  private follow({ last, tokens }: QuotaReply): void {
    const { local, nowMillis, terms: { settings } } = this
    if (last === 0 && nowMillis < this.rememberedUntilMillis) this.lost()
    this.rememberedUntilMillis = nowMillis + Math.min(settings.leaseMillis, settings.idleMillis / 2)
    this.tokens = tokens
    this.isFull = tokens >= settings.capacity
    this.local = undefined
    if (local !== undefined) this.former = { local, untilMillis: nowMillis + settings.leaseMillis }
  }

  /** The answers to the requests that get one. The others keep waiting. */
  private answersTo(asks: ReadonlyArray<Ask>, millis: ReadonlyArray<number>): ReadonlyMap<Ask, Answer> {
    const answers = new Map<Ask, Answer>()
    this.first = undefined
    for (const [index, ask] of asks.entries()) {
      const wait = millis[index]!
      if (!this.asks.has(ask)) {
        // Its caller has stopped waiting.
        if (wait === 0) this.outbox.giveBack(leaseOf(ask))
      } else if (wait === 0) {
        answers.set(ask, "granted")
      } else if (wait < 0 || !this.terms.settings.inOrder) {
        answers.set(ask, "refused")
      } else if (this.nowMillis + wait >= ask.untilMillis) {
        answers.set(ask, "late")
      } else {
        this.first ??= { ask, atMillis: this.nowMillis + Math.min(wait, mostWaitMillis) }
      }
    }
    if (this.first !== undefined) this.refuseOthers(answers)
    return answers
  }

  /** Refuses requests that arrived when the line was full. */
  private refuseOthers(answers: Map<Ask, Answer>): void {
    const { maxWaiters } = this.terms.store
    if (this.asks.size - answers.size <= maxWaiters) return
    const waiting = [...this.asks].filter((ask) => !answers.has(ask))
    for (const ask of waiting.slice(maxWaiters)) answers.set(ask, "refused")
  }
}
