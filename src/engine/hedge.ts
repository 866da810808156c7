import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { AnyContext } from "../internal/shared.ts"
import { classify, CurrentClassifier } from "../RetryClassifier.ts"
import type { RetryInfo } from "../RetryInfo.ts"
import type { Hedge, RetryObserver } from "../RetryObserver.ts"
import type { RetryQuotaStore } from "../RetryQuotaStore.ts"
import type { Latencies } from "../state/latencies.ts"
import { type AnyEffect, asking } from "./call.ts"
import { Permit } from "./permit.ts"
import { failAgain, send, settling } from "./send.ts"
import { type AnyFiber, InsideCall, Mark, World, worldOf } from "./world.ts"

/** What the calls of a resource share. */
export interface Home {
  readonly budget: RetryQuotaStore
  readonly latencies: Latencies
  /** The quantile of the latencies at which a hedge is sent unless its call says otherwise. */
  readonly quantile: number
  /** Where sends end that nobody waits for any more. */
  readonly scope: Scope.Scope
}

/** The delay before a hedge, as the latencies have it. */
export interface AtQuantile {
  readonly quantile: number | undefined
  readonly warmUp: number | undefined
  readonly atLeastMillis: number
  /** The delay before there are enough latencies. */
  readonly firstMillis: number
}

/**
 * What follows on the failure of a send: the next one immediately, or after so many milliseconds; `"stop"`: none, but
 * those in flight may still succeed; `"final"`: the end of all.
 */
type Reaction = "next" | number | "stop" | "final"

/** How a call is hedged, valid. */
export interface HedgeOptions {
  readonly after: number | AtQuantile
  readonly atMost: number
  readonly cost: number
  readonly react: (error: unknown, info: RetryInfo | undefined) => Reaction
  /** A server that asks for time is given it also when nothing is in flight. */
  readonly waitsOut: boolean
  /** Disposes of what a send came to that nobody will see. */
  readonly release: ((exit: Exit.Exit<unknown, unknown>) => AnyEffect) | undefined
}

/** Which send of a hedged call is around this context: 0 for the first. */
export const InsideHedge = /* @__PURE__ */ Context.Reference<number | undefined>("effect-retry/InsideHedge", {
  defaultValue: () => undefined
})

/** Below this many latencies a quantile says nothing: with fewer, it is that of the longest. */
const leastFor = (quantile: number): number => Math.ceil(1 / (1 - quantile) - 1e-9)

/** How long a call waits before each hedge, in milliseconds. */
const delayOf = ({ after }: HedgeOptions, { latencies, quantile: usual }: Home, nowMillis: number): number => {
  if (typeof after === "number") return after
  const { quantile = usual, warmUp = leastFor(quantile) } = after
  const measured = latencies.quantile(quantile, warmUp, nowMillis)
  return measured === undefined ? after.firstMillis : Math.max(after.atLeastMillis, measured)
}

/** One of the sends of a call, the first or a hedge. */
class Sending {
  readonly index: number
  permit: Permit
  fiber: AnyFiber | undefined = undefined
  /** When it left, in milliseconds of the monotonic clock; NaN before. */
  leftMillis = Number.NaN
  /** What follows on its failure. A send that dies, or whose fiber somebody ends, ends all. */
  reaction: Reaction = "final"
  error: unknown = undefined
  /** A hedge that is not sent: quota or gate refuse it. */
  refused: Hedge["reason"] = undefined

  constructor(index: number, permit: Permit) {
    this.index = index
    this.permit = permit
  }

  get hasLeft(): boolean {
    return !Number.isNaN(this.leftMillis)
  }
}

/** A call, and how it is hedged. */
interface Hedged {
  readonly self: AnyEffect
  readonly options: HedgeOptions
}

/** The sends of one call. Those in flight race: the first success wins. */
class Race {
  private readonly self: AnyEffect
  private readonly options: HedgeOptions
  private readonly home: Home
  private readonly context: AnyContext
  private readonly resume: (effect: AnyEffect) => void
  private readonly clock: Clock.Clock
  private readonly observer: RetryObserver
  /** The send of a call that all this is inside of; `undefined` where nobody accounts for it. */
  private readonly outer: Mark | undefined
  /** What is around a send: all the gates, but no quota: that is for retries. */
  private readonly world: World
  private readonly live = new Set<Sending>()
  private readonly hedges: Array<Sending> = []
  private delayMillis = Infinity
  private timer: AnyFiber | undefined = undefined
  /** No hedge is made any more, but those in flight go on. */
  private isStopped = false
  private isOver = false
  /** The failure of the first send, while others may still succeed: when all fail, it is that of the call. */
  private first: Exit.Exit<unknown, unknown> | undefined = undefined

  constructor({ options, self }: Hedged, home: Home, fiber: AnyFiber, resume: (effect: AnyEffect) => void) {
    this.self = self
    this.options = options
    this.home = home
    this.context = fiber.context
    this.resume = resume
    const { clock, gates, observer } = worldOf(fiber.context)
    this.clock = clock
    this.observer = observer
    this.outer = Context.get(fiber.context, InsideCall)
    this.world = new World(fiber.context, undefined, gates)
  }

  /** Sends for the first time, and sees to it that hedges follow. */
  begin(): void {
    const { budget } = this.home
    budget.deposit(budget.successIncrement, this.clock)
    this.delayMillis = delayOf(this.options, this.home, this.world.nowMillis)
    const first = new Sending(0, this.firstPermit())
    this.start(first, this.admitted(first))
    this.plan(this.delayMillis)
  }

  /** The caller has been interrupted: all sends are, and are waited for, as those of any call. */
  readonly abandoned: AnyEffect = Effect.suspend(() => {
    this.end()
    if (this.first !== undefined) this.dispose(this.first)
    const fibers = [...this.live].flatMap(({ fiber }) => fiber ?? [])
    return Effect.andThen(Fiber.interruptAll(fibers), this.told(undefined, undefined))
  })

  /** Observers know of the first send from the one that it is inside of. */
  private isInherited = false

  /** The first send takes over what gates gave to the one that it is inside of; where there is none, it asks them itself. */
  private firstPermit(): Permit {
    const known = this.outer?.world.gates ?? []
    const gates = this.world.gates.filter((gate) => !known.includes(gate))
    const world = gates.length === this.world.gates.length ? this.world : new World(this.context, undefined, gates)
    const outer = this.outer?.isActive === true ? this.outer.sent?.permit : undefined
    const own = new Permit(world, 0)
    if (!(outer instanceof Permit) || outer.state !== "left") return own
    this.isInherited = true
    own.passes = outer.passes
    outer.passes = undefined
    return own
  }

  private start(sending: Sending, effect: AnyEffect): void {
    this.live.add(sending)
    const fiber = this.fork(effect)
    sending.fiber = fiber
    fiber.addObserver((exit) => this.ended(sending, exit))
    // What it does first may end all.
    if (this.isOver) this.drop(fiber)
  }

  private fork(effect: AnyEffect): AnyFiber {
    return Effect.runForkWith(this.context)(effect as Effect.Effect<unknown, unknown>)
  }

  /** Ends a send that nobody waits for, beside the call. */
  private drop(fiber: AnyFiber): void {
    if (fiber.pollUnsafe() !== undefined) return
    fiber.interruptUnsafe()
    Fiber.runIn(fiber, this.home.scope)
  }

  /** Plans the next hedge. */
  private plan(delayMillis: number): void {
    if (this.isOver || this.isStopped || this.hedges.length >= this.options.atMost || delayMillis === Infinity) return
    if (delayMillis <= 0) return this.next()
    const timer = this.fork(this.clock.sleep(Duration.millis(Math.ceil(delayMillis))))
    this.timer = timer
    timer.addObserver((exit) => {
      if (this.timer !== timer) return
      this.timer = undefined
      if (Exit.isSuccess(exit)) this.next()
      else this.stop()
    })
  }

  /** Makes a hedge, and plans the next. */
  private next(): void {
    const hedge = new Sending(this.hedges.length + 1, new Permit(this.world, this.hedges.length + 1))
    this.hedges.push(hedge)
    this.start(hedge, Effect.suspend(() => this.paid(hedge)))
    this.plan(this.delayMillis)
  }

  private stop(): void {
    this.isStopped = true
    this.cancelTimer()
    this.concludeIfIdle()
  }

  private cancelTimer(): void {
    const { timer } = this
    this.timer = undefined
    timer?.interruptUnsafe()
  }

  /** Sends a hedge if its resource has room for it, its budget pays and the gates let it. */
  private paid(hedge: Sending): AnyEffect {
    const now = this.world.nowMillis
    if (now >= this.deadlineAtMillis) return this.refuse(hedge, "deadline")
    if (this.world.gates.some((gate) => gate.isStrained?.(now) === true)) return this.refuse(hedge, "strained")
    const { budget } = this.home
    const answer = budget.reserve(this.options.cost, this.clock)
    if (typeof answer !== "function") {
      if (answer === undefined) return this.refuse(hedge, "budget")
      hedge.permit.pay(answer)
      return this.admitted(hedge)
    }
    const patience = budget.whenExhausted === "wait" ? 0 : Infinity
    return Effect.flatMap(
      asking(answer, hedge.permit, patience),
      () => hedge.permit.reservation === undefined ? this.refuse(hedge, "budget") : this.admitted(hedge)
    )
  }

  private get deadlineAtMillis(): number {
    return this.outer?.sent?.deadlineAtMillis ?? Infinity
  }

  /** A hedge is not sent. */
  private refuse(hedge: Sending, reason: Hedge["reason"]): AnyEffect {
    hedge.permit.cancel()
    hedge.refused = reason
    hedge.reaction = "stop"
    return Effect.void
  }

  /** Sends once the gates let it. */
  private admitted(sending: Sending): AnyEffect {
    const { index, permit } = sending
    return send({
      world: permit.world,
      permit,
      sent: Effect.suspend(() => this.sent(sending)),
      deadlineAtMillis: index === 0 ? Infinity : this.deadlineAtMillis,
      refused: (error, cause) => index === 0 ? failAgain(error, cause) : this.refuse(sending, "gate"),
      expired: () => this.refuse(sending, "deadline")
    })
  }

  private sent(sending: Sending): AnyEffect {
    const { index } = sending
    return index === 0
      ? this.leaves(sending)
      : Effect.flatMap(this.tell(sending, "sent"), () => this.leaves(sending))
  }

  private leaves(sending: Sending): AnyEffect {
    const { index, permit } = sending
    permit.leave(index > 0 || !this.isInherited)
    // A share of the traffic pays for what is sent, whatever becomes of it.
    permit.reservation?.spend()
    permit.reservation = undefined
    sending.leftMillis = this.world.nowMillis
    const inside = Effect.updateContext(this.self, (context: Context.Context<any>) => {
      const indexed = Context.add(context, InsideHedge, index)
      return this.outer === undefined ? Context.add(indexed, InsideCall, new Mark(this.world)) : indexed
    })
    return settling(
      inside,
      (value) => {
        permit.succeeded(value)
        this.record(sending, this.world.nowMillis)
        return Effect.succeed(value)
      },
      (error, cause) => this.failed(sending, error, Effect.failCause(cause)),
      () => permit.abandon()
    )
  }

  /** A send has failed. The call around notifies the observer of the outcome of the whole, so of what ends it. */
  private failed(sending: Sending, error: unknown, failure: AnyEffect): AnyEffect {
    sending.permit.failed(error)
    sending.error = error
    const info = Option.getOrUndefined(classify(Context.get(this.context, CurrentClassifier), error))
    if (info?.timeout === true) this.record(sending, this.world.nowMillis)
    const reaction = this.options.react(error, info)
    const decided = Effect.suspend(() => {
      sending.reaction = reaction
      return failure
    })
    if (sending.index === 0 || reaction === "final") return decided
    return Effect.andThen(awaited(this.observer.onAttempt?.(false, error, this.context)), decided)
  }

  /** How long a send took, or, if nobody waits for it any more, that it took longer than most: else that says nothing. */
  private record(sending: Sending, nowMillis: number, isUnfinished = false): void {
    const millis = nowMillis - sending.leftMillis
    if (isUnfinished && !(millis >= this.delayMillis)) return
    this.home.latencies.record(millis, nowMillis)
  }

  /** The fiber of a send has ended. */
  private ended(sending: Sending, exit: Exit.Exit<unknown, unknown>): void {
    this.live.delete(sending)
    sending.permit.abandon()
    if (this.isOver) return this.dispose(exit)
    if (sending.refused !== undefined) return this.stop()
    if (Exit.isSuccess(exit) || sending.reaction === "final") return this.conclude(exit, sending)
    if (sending.index === 0) this.first = exit
    else this.dispose(exit)
    this.follow(sending.reaction)
  }

  /** What follows on a failure that is not the end. */
  private follow(reaction: Exclude<Reaction, "final">): void {
    if (reaction === "stop") return this.stop()
    this.cancelTimer()
    const delayMillis = reaction === "next" ? 0 : reaction
    const isIdle = this.live.size === 0
    if (delayMillis === 0 || !isIdle || this.options.waitsOut) this.plan(delayMillis)
    this.concludeIfIdle()
  }

  /** All have failed, and no other comes. */
  private concludeIfIdle(): void {
    if (!this.isOver && this.live.size === 0 && this.timer === undefined) this.conclude(this.first!, undefined)
  }

  private conclude(exit: Exit.Exit<unknown, unknown>, by: Sending | undefined): void {
    this.end()
    const { first } = this
    if (first !== undefined && first !== exit) this.dispose(first)
    for (const { fiber } of this.live) if (fiber !== undefined) this.drop(fiber)
    this.resume(Effect.andThen(this.told(exit, by), exit as AnyEffect))
  }

  /** From now on nothing is sent. */
  private end(): void {
    this.isOver = true
    this.cancelTimer()
    if (this.live.size === 0) return
    const now = this.world.nowMillis
    for (const sending of this.live) if (sending.hasLeft) this.record(sending, now, true)
  }

  private dispose(exit: Exit.Exit<unknown, unknown>): void {
    const { release } = this.options
    if (release === undefined) return
    const released = this.fork(Effect.suspend(() => release(exit)))
    if (released.pollUnsafe() === undefined) Fiber.runIn(released, this.home.scope)
  }

  /** Notifies the observer of how the hedges ended, and of outcomes that no call around notifies it of. */
  private told(exit: Exit.Exit<unknown, unknown> | undefined, by: Sending | undefined): AnyEffect {
    if (this.hedges.length === 0 && this.outer !== undefined) return Effect.void
    const missed = this.first === undefined || this.first === exit ? [] : [this.first]
    const unseen = this.outer === undefined && exit !== undefined ? [...missed, exit] : missed
    const winner = exit !== undefined && Exit.isSuccess(exit) ? by : undefined
    return Effect.andThen(
      Effect.forEach(unseen, (exit) => this.tellOf(exit), { discard: true }),
      Effect.forEach(this.hedges, (hedge) => this.tellEnd(hedge, hedge === winner), { discard: true })
    )
  }

  private tellOf(exit: Exit.Exit<unknown, unknown>): AnyEffect {
    const { onAttempt } = this.observer
    const error = Exit.findErrorOption(exit)
    if (onAttempt === undefined || (Exit.isFailure(exit) && Option.isNone(error))) return Effect.void
    return awaited(onAttempt(Exit.isSuccess(exit), Option.getOrUndefined(error), this.context))
  }

  private tellEnd(hedge: Sending, won: boolean): AnyEffect {
    if (hedge.refused !== undefined) return this.tell(hedge, "refused")
    return hedge.hasLeft ? this.tell(hedge, won ? "won" : "lost") : Effect.void
  }

  private tell(hedge: Sending, event: Hedge["event"]): AnyEffect {
    const { onHedge } = this.observer
    if (onHedge === undefined) return Effect.void
    return awaited(onHedge({ event, hedge: hedge.index, reason: hedge.refused }, hedge.error, this.context))
  }
}

/** What an observer has the call wait for. */
const awaited = (told: unknown): AnyEffect => Effect.isEffect(told) ? told as AnyEffect : Effect.void

/** Hedges an effect. Inside a send of a hedged call it does nothing. */
export const hedging = (self: AnyEffect, options: HedgeOptions, home: Home): AnyEffect =>
  Effect.withFiber((fiber) => {
    if (Context.get(fiber.context, InsideHedge) !== undefined) return self
    return Effect.callback((resume) => {
      const race = new Race({ self, options }, home, fiber, resume)
      race.begin()
      return race.abandoned as Effect.Effect<void>
    })
  })
