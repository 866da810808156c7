import * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { causesOf } from "../../internal/classification/errorCodes.ts"
import { clockOf, monotonicMillis } from "../../internal/clock.ts"
import { remembering } from "../../internal/remembering.ts"
import { get, short } from "../../internal/tryGet.ts"

/**
 * The turns of a connection: when one exchange is due, all others that may be made by then go along, each as a command
 * of its own. Clients write the commands of one step as one message, so a process has one round trip for all that it
 * shares; what becomes of each exchange is known for each. Its members have something to send later.
 */
class Batches extends Set<Exchanges> {
  /** Where in its spread the exchanges of this turn are repeated: the same place for all, so that they meet again. */
  spread = 0

  /** One exchange is made now. */
  begin(random: Random.Random): void {
    this.spread = random.nextDoubleUnsafe()
    // Each leaves while it goes along, and may be back.
    const members = [...this]
    for (const member of members) member.goAlong()
  }
}

/** The Redis client, once there is one. */
export type Connection = Effect.Effect<Redis.Redis["Service"], unknown>

/** A way to Redis. */
export interface Connect {
  /** A connection for as long as the scope is open. */
  readonly within: (scope: Scope.Scope) => Connection
  /** Whether there is a connection. */
  readonly isConnected: () => boolean
  /** Those of the connection. */
  readonly turns: Batches
}

/** The turns of existing connections. */
const turnsOf = /* @__PURE__ */ remembering((_: Redis.Redis["Service"]) => new Batches())

/** The existing connection. */
export const connected: Effect.Effect<Connect, never, Redis.Redis> = Redis.Redis.useSync((redis) => ({
  within: () => Effect.succeed(redis),
  isConnected: () => true,
  turns: turnsOf(redis)
}))

/** Builds the layer on first use, and again after each failure. */
export const connecting = <E, R>(redis: Layer.Layer<Redis.Redis, E, R>): Effect.Effect<Connect, never, R> =>
  Effect.contextWith((context: Context.Context<R>) => {
    let service: Redis.Redis["Service"] | undefined = undefined
    const within = (scope: Scope.Scope): Connection =>
      Effect.suspend((): Connection => {
        if (service !== undefined) return Effect.succeed(service)
        return Effect.flatMap(Scope.fork(scope), (own) => {
          const built = Effect.map(Layer.buildWithScope(redis, own), (services) => {
            service = Context.get(services, Redis.Redis)
            return service
          })
          return Effect.onExit(Effect.provideContext(built, context), (exit) =>
            Exit.isFailure(exit) ? Scope.close(own, exit) : Effect.void)
        })
      })
    return Effect.succeed({ within, isConnected: () => service !== undefined, turns: new Batches() })
  })

/** How long a connection of many has to close. */
const closeMillis = 50

/** One connection for many, for as long as the scope of this effect is open. */
export const kept = (connect: Connect): Effect.Effect<Connect, never, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Scope.make()
    const oneByOne = yield* Semaphore.make(1)
    yield* Effect.addFinalizer((exit) => closeWithin(scope, exit, closeMillis))
    return { ...connect, within: () => oneByOne.withPermits(1)(connect.within(scope)) }
  })

/**
 * Closes what belongs to a connection. One that cannot be closed, for example to a stopped server, blocks nothing.
 */
const closeWithin = (
  scope: Scope.Closeable,
  exit: Exit.Exit<unknown, unknown>,
  millis: number
): Effect.Effect<void> =>
  Effect.flatMap(
    Effect.forkDetach(Scope.close(scope, exit), { startImmediately: true, uninterruptible: true }),
    (fiber) => Effect.asVoid(Effect.timeoutOption(Fiber.await(fiber), millis))
  )

/** Beginnings of error replies that repeat nothing of what was sent. The most specific come first. */
const replies: ReadonlyArray<string> = [
  "ERR unknown command 'AUTH'",
  "ERR unknown command 'CLIENT'",
  "ERR unknown command 'EVALSHA'",
  "ERR unknown command 'HELLO'",
  "ERR unknown command 'SCRIPT'",
  "ERR unknown command 'SELECT'",
  "ERR AUTH <password> called without any password configured",
  "ERR Client sent AUTH, but no password is set",
  "ERR DB index is out of range",
  "ERR Error compiling script",
  "ERR Error running script",
  "ERR invalid password",
  "ERR max number of clients reached",
  ..."ASK BUSY CLUSTERDOWN CROSSSLOT DENIED ERR LOADING MASTERDOWN MISCONF MOVED NOAUTH NOPERM NOPROTO".split(" "),
  ..."NOREPLICAS NOSCRIPT OOM READONLY STALE TRYAGAIN WRONGPASS WRONGTYPE".split(" ")
]

/** Codes of the system, of Node and of OpenSSL, such as `ECONNREFUSED`, `ERR_INVALID_URL`, `CERT_HAS_EXPIRED`. */
const systemCode =
  /^(?:E[A-Z]{2,15}\d?|(?:CERT|CRL|DEPTH|EAI|ERR|ERROR|HOSTNAME|INVALID|SELF|UNABLE|UND)_[A-Z\d_]{2,50})$/

const className = /^(?!Error$)[A-Z][A-Za-z]{0,50}(?:Error|Reply)$/

const errorReplyOf = (error: unknown): string | undefined => {
  const message = get(error, "message")
  if (typeof message !== "string") return undefined
  // Redis 5 quotes with backticks.
  const text = message.slice(0, 100).replaceAll("`", "'")
  return replies.find((reply) => text === reply || [" ", ",", ":"].some((end) => text.startsWith(reply + end)))
}

/** How many errors of a chain of causes are looked at. */
const mostErrors = 5

const matching = (pattern: RegExp, values: ReadonlyArray<unknown>): string | undefined =>
  values.filter((value) => typeof value === "string").find((value) => pattern.test(short(value)))

const codeOf = (error: unknown): string | undefined => matching(systemCode, [get(error, "code")])

const nameOf = (error: unknown): string | undefined =>
  matching(className, [get(error, "name"), get(get(error, "constructor"), "name")])

/**
 * Why Redis did not respond: the beginning of its error reply, the code of a network error, or the name of the driver's
 * error. Nothing else of the error is shown: a reply repeats what it was sent, including passwords and keys, and an
 * error of the driver may contain the address with them.
 */
export const reasonOf = (cause: Cause.Cause<unknown>): string => {
  // The driver puts the error it gave up on in `originalError`.
  const chain = causesOf(Cause.squash(cause)).slice(0, mostErrors)
  const errors = chain.flatMap((error) => [error, get(error, "originalError")]).reverse()
  const sayings = [...errors.map((error) => errorReplyOf(error) ?? codeOf(error)), ...errors.map(nameOf)]
  return sayings.find((saying) => saying !== undefined) ?? "an unknown error"
}

/** How scripts begin: `amount` of a field is `nil` for anything else that others may have written there. */
const luaPrelude = `
local key, sent = KEYS[1], cjson.decode(ARGV[1])
local function amount(text)
  local read = tonumber(text)
  return read and read >= 0 and read < math.huge and read or nil
end
local function exact(amount) return string.format("%.17g", amount) end
local time = redis.call("TIME")
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000`

/**
 * The one script of something that is shared: on one key, on the clock of Redis. In Lua, `sent` has settings and report
 * by name, `now` is the time, and `exact` writes a number without a loss.
 */
export const scriptOf = <Settings extends { readonly key: string }, Report extends object>(lua: string) =>
  Redis.script(
    ({ key, ...settings }: Settings, report: Report) => [key, JSON.stringify({ ...settings, ...report })],
    { numberOfKeys: 1, lua: luaPrelude + lua }
  ).withReturnType<unknown>()

/** A number in an answer of Redis; NaN for anything else. */
export const numberOf = (value: unknown): number =>
  typeof value === "number" || (typeof value === "string" && value !== "") ? Number(value) : NaN

/** The numbers of an answer, if there are `size`, each finite and at least `least`. */
export const amountsOf = (answer: unknown, size: number, least: number): ReadonlyArray<number> | undefined => {
  if (!Array.isArray(answer) || answer.length !== size) return undefined
  const amounts = answer.map(numberOf)
  return amounts.every((amount) => amount >= least && amount < Infinity) ? amounts : undefined
}

/** An exchange without a response in time may still be on its way: for this long, nothing more is sent. */
export const lostMillis = 30_000

/** How long Redis has. */
export interface Times {
  /** How long Redis has to respond. */
  readonly timeoutMillis: number
  /** How long the process decides alone before Redis is tried again. */
  readonly retryMillis: number
}

/** The settings of the exchanges with Redis. */
interface Terms {
  readonly connect: Connect
  /**
   * The process decides alone, for this reason, or with Redis; `isNews` is false if no observer was notified that it was
   * alone.
   */
  readonly onChange: (reason: string | undefined, isNews: boolean) => Effect.Effect<void>
}

/** When a topic that asks regularly asks again. */
export interface Look {
  /** From then on it goes along with other exchanges. */
  readonly fromMillis: number
  /** It asks by then. */
  readonly atMillis: number
}

/** It asks as soon as there is a reason to. */
export const anytime: Look = { fromMillis: -Infinity, atMillis: -Infinity }

/** One exchange. */
export interface Exchange<Reply extends object> {
  /** Asks for the reply: `undefined` if the response is invalid. */
  readonly ask: (redis: Redis.Redis["Service"]) => Effect.Effect<Reply | undefined, unknown>
  readonly answered: (reply: Reply) => void
  /** It is unknown whether Redis has read it. {@link Topic.decideAlone} follows. */
  readonly failed?: () => void
}

/** A subject of exchanges between a process and Redis. */
export interface Topic<Reply extends object> {
  /** How long Redis has, at the moment. */
  readonly terms: Times
  /** Milliseconds until there is something to send, unless a signal comes first. */
  readonly pauseMillis: (nowMillis: number) => number
  /** Whether there is something to send that may go along with another exchange of the process. */
  readonly mayGoAlong: (nowMillis: number) => boolean
  readonly next: (nowMillis: number) => Exchange<Reply>
  /** Redis does not respond, or is no longer asked. */
  readonly decideAlone: () => void
}

/**
 * The exit of a fiber that ends in time. In a busy process, the timer may fire before a response that arrived in time
 * is read: it checks once more.
 */
const exitWithin = <A, E>(fiber: Fiber.Fiber<A, E>, millis: number): Effect.Effect<Exit.Exit<A, E> | undefined> =>
  Effect.flatMap(Effect.timeoutOption(Fiber.await(fiber), millis), (exit) =>
    Option.isSome(exit)
      ? Effect.succeed(exit.value)
      : Effect.map(Effect.yieldNow, () => fiber.pollUnsafe()))

/**
 * The one fiber that talks to Redis, one exchange at a time: what comes up during an exchange goes with the next. While
 * Redis does not respond, the process decides alone.
 */
export class Exchanges {
  readonly random: Random.Random
  /** What is exchanged: it sets itself. */
  topic!: Topic<any>
  /** The name of this process. */
  readonly name = crypto.randomUUID()
  /** Whether the process decides without Redis. */
  isAlone = false
  /** Of its own, because a closing scope lets nothing start any more, and there may be a last exchange to make. */
  private readonly scope = Scope.makeUnsafe()
  private readonly clock: Clock.Clock
  private readonly connection: Connection
  private readonly batches: Batches
  /** Whether another exchange of the process is made now, and this one goes along. */
  private isAlong = false
  private sentAtMillis = -Infinity
  private spread = 0
  /** Whether Redis is known not to respond. */
  private isDown = false
  private retryAtMillis = -Infinity
  private lost: { readonly fiber: Fiber.Fiber<unknown, unknown>; readonly untilMillis: number } | undefined = undefined
  /** Open if there is something to send, perhaps earlier than expected. */
  private readonly signaled = Latch.makeUnsafe()
  private loop: Fiber.Fiber<void> | undefined = undefined
  /** Whether nothing is left to send. Set when the exchanges are to end. */
  private isDone: (() => boolean) | undefined = undefined

  private constructor(private readonly terms: Terms, fiber: Fiber.Fiber<unknown, unknown>) {
    this.random = fiber.getRef(Random.Random)
    this.clock = clockOf(fiber)
    this.connection = terms.connect.within(this.scope)
    this.batches = terms.connect.turns
  }

  static make(terms: Terms): Effect.Effect<Exchanges> {
    return Effect.withFiber((fiber) => Effect.succeed(new Exchanges(terms, fiber)))
  }

  get nowMillis(): number {
    return monotonicMillis(this.clock)
  }

  /** The maximum age of a response. */
  get timeoutMillis(): number {
    return this.topic.terms.timeoutMillis
  }

  /** The look after this one: half of the interval to all of it passes. */
  nextLook(intervalMillis: number): Look {
    return {
      fromMillis: this.sentAtMillis + intervalMillis / 2,
      atMillis: this.nowMillis + intervalMillis * (0.5 + this.spread / 2)
    }
  }

  /** Runs exchanges until the scope is closed; then the process decides alone. */
  start(): Effect.Effect<void, never, Scope.Scope> {
    const run = Effect.onExit(this.run(), () => Effect.sync(() => this.decideAlone()))
    return Effect.flatMap(Effect.forkIn(run, this.scope), (loop) => {
      this.loop = loop
      return Effect.addFinalizer((exit) => closeWithin(this.scope, exit, this.timeoutMillis))
    })
  }

  /** Has the rest sent, and waits for that. */
  finish(isDone: () => boolean): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.isDone = isDone
      this.signal()
      return this.loop === undefined ? Effect.void : Effect.asVoid(Fiber.await(this.loop))
    })
  }

  /** The process decides alone until Redis responds. */
  decideAlone(): void {
    this.isAlone = true
    this.topic.decideAlone()
  }

  /** There is something to send, perhaps earlier than expected. */
  signal(): void {
    this.signaled.openUnsafe()
  }

  private run(): Effect.Effect<void> {
    const loop: Effect.Effect<void> = Effect.suspend(() => {
      this.batches.delete(this)
      if (this.isDone !== undefined && (this.isAlone || this.isDone())) return Effect.void
      this.signaled.closeUnsafe()
      if (this.isAlong) return Effect.andThen(this.exchange, loop)
      const millis = Math.ceil(this.pauseMillis())
      if (millis > 0) {
        if (millis < Infinity) this.batches.add(this)
        return Effect.andThen(this.pause(millis), loop)
      }
      // Other fibers that are ready may have something to send along.
      return Effect.andThen(Effect.andThen(Effect.yieldNow, this.turn), loop)
    })
    return Effect.ensuring(loop, Effect.sync(() => this.batches.delete(this)))
  }

  /** Sends now what may be sent already. */
  goAlong(): void {
    if (this.isAlone || !this.topic.mayGoAlong(this.nowMillis)) return
    this.isAlong = true
    this.signal()
  }

  private pauseMillis(): number {
    if (this.isDone !== undefined) return 0
    const now = this.nowMillis
    const millis = this.topic.pauseMillis(now)
    return this.isAlone ? Math.max(millis, this.retryInMillis(now)) : millis
  }

  /** Milliseconds until Redis is tried again: later while an exchange is lost. */
  private retryInMillis(now: number): number {
    if (now < this.retryAtMillis) return this.retryAtMillis - now
    return this.isLost(now) ? this.topic.terms.retryMillis : 0
  }

  private pause(millis: number): Effect.Effect<void> {
    const signal = this.signaled.await
    return millis === Infinity ? signal : Effect.raceFirst(Effect.sleep(millis), signal)
  }

  /** Others of the process that have something to send go along. */
  private readonly turn = Effect.suspend(() => {
    this.batches.begin(this.random)
    return this.exchange
  })

  private readonly exchange = Effect.suspend(() => {
    this.isAlong = false
    this.spread = this.batches.spread
    const exchange = this.topic.next(this.sentAtMillis = this.nowMillis)
    return Effect.flatMap(
      this.replyTo(exchange),
      (reply) => typeof reply === "string" ? this.failed(exchange, reply) : this.answered(exchange, reply)
    )
  })

  /** The reply in time, or why there is none. A late response is not awaited, but known to be on its way. */
  private replyTo({ ask }: Exchange<object>): Effect.Effect<object | string> {
    const { timeoutMillis } = this
    return Effect.flatMap(
      Effect.forkIn(Effect.flatMap(this.connection, ask), this.scope, { startImmediately: true }),
      (fiber) =>
        Effect.map(exitWithin(fiber, timeoutMillis), (exit) => {
          if (exit === undefined) {
            this.lost = { fiber, untilMillis: this.nowMillis + lostMillis }
            return `no answer within ${timeoutMillis} ms`
          }
          return Exit.isFailure(exit) ? reasonOf(exit.cause) : exit.value ?? "an invalid answer"
        })
    )
  }

  /** When waiting code gets the response, the log already says which side decides. */
  private answered(exchange: Exchange<any>, reply: object): Effect.Effect<void> {
    const { isAlone, isDown } = this
    this.isAlone = this.isDown = false
    const answer = Effect.sync(() => exchange.answered(reply))
    return isAlone ? Effect.andThen(this.terms.onChange(undefined, isDown), answer) : answer
  }

  private failed(exchange: Exchange<any>, reason: string): Effect.Effect<void> {
    const isNews = !this.isDown
    this.isAlone = this.isDown = true
    this.retryAtMillis = this.nowMillis + this.topic.terms.retryMillis
    exchange.failed?.()
    const alone = Effect.sync(() => this.topic.decideAlone())
    return isNews ? Effect.andThen(this.terms.onChange(reason, true), alone) : alone
  }

  /** Whether an exchange without a response may still arrive. One that is too old is given up. */
  private isLost(nowMillis: number): boolean {
    if (this.lost === undefined) return false
    const { fiber, untilMillis } = this.lost
    if (fiber.pollUnsafe() === undefined) {
      if (nowMillis < untilMillis) return true
      fiber.interruptUnsafe()
    }
    this.lost = undefined
    return false
  }
}

/** The settings of what asks regularly while sends are made. */
export interface LookTerms<Settings> extends Times {
  readonly settings: Settings
  /** How often Redis is asked. */
  readonly lookMillis: number
}

/** A topic of a gate that asks regularly while it has a reason to. A process that sends nothing asks nothing. */
export abstract class RegularTopic<Gate extends { leave(): void }, Settings, Reply extends object>
  implements Topic<Reply>
{
  /** Whether sends were made since Redis was last asked. */
  protected isActive = false
  protected look: Look = anytime

  constructor(
    protected readonly gate: Gate,
    public terms: LookTerms<Settings>,
    protected readonly exchanges: Exchanges
  ) {
    exchanges.topic = this
  }

  /** A send was made, or waits; that may be something to report. */
  sent(isNews = false): void {
    if (this.isActive && !isNews) return
    this.isActive = true
    this.exchanges.signal()
  }

  /** Whether there is something to ask. */
  protected abstract get hasReason(): boolean

  /** Whether there is something to report immediately. */
  protected abstract isUrgent(nowMillis: number): boolean

  abstract next(nowMillis: number): Exchange<Reply>

  abstract decideAlone(): void

  change(terms: LookTerms<Settings>): void {
    this.terms = terms
  }

  /** The gate is no longer one of a fleet. */
  end(close: () => void): void {
    this.gate.leave()
    close()
  }

  pauseMillis(now: number): number {
    if (this.isUrgent(now)) return 0
    return this.hasReason ? this.look.atMillis - now : Infinity
  }

  mayGoAlong(now: number): boolean {
    return this.hasReason && now >= this.look.fromMillis
  }
}
