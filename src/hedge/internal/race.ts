import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { CallEnvironment, CurrentScope, environmentOf, gatesWith, SendScope } from "../../engine/environment.ts"
import { Permit } from "../../engine/permit.ts"
import {
  admissionUntil,
  type AnyEffect,
  asking,
  failAgain,
  notified,
  notify,
  send,
  settling
} from "../../engine/send.ts"
import * as Options from "../../internal/options.ts"
import type { AnyFiber } from "../../internal/shared.ts"
import { look } from "../../internal/tryGet.ts"
import { classify } from "../../RetryClassifier.ts"
import type { RetryInfo } from "../../RetryInfo.ts"
import type { HedgeEvent } from "../../RetryObserver.ts"
import type { Reservation, RetryQuotaStore } from "../../RetryQuotaStore.ts"
import type { Latencies } from "./latencyWindow.ts"

/** What the calls of a resource share. */
export interface Home {
  readonly budget: RetryQuotaStore
  readonly latencies: Latencies
  /** The quantile of the latencies at which a hedge is sent unless its call sets another. */
  readonly quantile: number
  /** Where losing sends end, which no caller waits for. */
  readonly scope: Scope.Scope
}

/** The options of what the calls of a resource share. */
export const homeOptions = {
  share: Options.weight(0.02),
  shareWindow: Options.positiveDuration(10_000),
  budget: Options.inCode,
  latencyWindow: Options.positiveDuration(30_000)
}

/** The options of a delay taken from the latencies. */
export const quantileOptions = {
  warmUp: Options.optional(Options.count(1)),
  atLeast: Options.duration(1),
  first: Options.duration(Infinity)
}

/** The options of a hedged call. */
export const hedgeOptions = {
  after: Options.inCode,
  atMost: Options.whole(0, 10, 1),
  cost: Options.positive(1),
  isRetryable: Options.callback(
    (_error: any, info: RetryInfo | undefined) => info !== undefined && info.safety !== "No",
    "a function of an error"
  )
}

/** The delay before a hedge, taken from the latencies; `firstMillis` is that before there are enough of them. */
export interface AtQuantile extends Options.Valid<typeof quantileOptions> {
  readonly quantile: number | undefined
}

/**
 * The reaction to the failure of a send: the next one immediately, or after this many milliseconds; `"stop"`: none, but
 * those in flight may still succeed; `"final"`: the end of the call.
 */
type Reaction = "next" | number | "stop" | "final"

/** Valid options of a hedged call. */
export interface HedgeOptions extends Omit<Options.Valid<typeof hedgeOptions>, "isRetryable"> {
  readonly after: number | AtQuantile
  readonly react: (error: unknown, info: RetryInfo | undefined) => Reaction
  /** How long after the last send a hedge may leave at the earliest. Default 0: no such limit. */
  readonly spacingMillis?: number
  /** Whether a server that asks for time gets it even when nothing is in flight. Default: it does not. */
  readonly waitsOut?: boolean
  /** Disposes of the result of a send that the caller will not see. */
  readonly release?: ((exit: Exit.Exit<unknown, unknown>) => AnyEffect) | undefined
}

/** What pays for a send that was made: it is spent when that ends, in whatever way. */
const spent = (reservation: Reservation): Reservation => {
  const spend = () => reservation.spend()
  return { cost: reservation.cost, spend, giveBack: spend }
}

/** Which send of a hedged call this context is in: 0 for the first. */
export const CurrentHedge = /* @__PURE__ */ Context.Reference<number | undefined>("effect-retry/CurrentHedge", {
  defaultValue: () => undefined
})

/** With fewer latencies than this a quantile means nothing: it would be that of the longest. */
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
  fiber: AnyFiber | undefined = undefined
  /** When it was sent, in milliseconds of the monotonic clock; NaN before. */
  sentMillis = Number.NaN
  /** The reaction to its failure. A send that dies, or whose fiber is interrupted from outside, ends the call. */
  reaction: Reaction = "final"
  error: unknown = undefined
  /** Why a hedge is not sent: the quota or a gate refuses it. */
  refused: HedgeEvent["reason"] = undefined

  constructor(readonly index: number, public permit: Permit) {}

  get wasSent(): boolean {
    return !Number.isNaN(this.sentMillis)
  }
}

/** The sends of one call. Those in flight race: the first success wins. */
class Race {
  /** The send of a call around all this; `undefined` if no call accounts for it. */
  private readonly outer: SendScope | undefined
  /** The surroundings of a send: all the gates, the budget's too, but no quota, which is for retries. */
  private readonly environment: CallEnvironment
  private readonly live = new Set<Sending>()
  private readonly hedges: Array<Sending> = []
  private delayMillis = Infinity
  private timer: AnyFiber | undefined = undefined
  /** No more hedges are made, but those in flight continue. */
  private isStopped = false
  private isOver = false
  /** Whether observers know of the first send from the one it is inside of. */
  private isInherited = false
  /** The failure of the first send, while others may still succeed: if all fail, it is that of the call. */
  private first: Exit.Exit<unknown, unknown> | undefined = undefined
  /** How the call ends. */
  private result: Exit.Exit<unknown, unknown> | undefined = undefined

  /** Continues the caller with how the call ends. */
  private resume!: (effect: AnyEffect) => void

  constructor(
    private readonly self: AnyEffect,
    private readonly options: HedgeOptions,
    private readonly home: Home,
    fiber: AnyFiber
  ) {
    this.outer = Context.get(fiber.context, CurrentScope)
    const { gates } = environmentOf(fiber.context)
    this.environment = new CallEnvironment(fiber.context, undefined, gatesWith(gates, home.budget))
  }

  /** Makes the first send, and schedules the hedges. Returns what is left to do if the caller is interrupted. */
  begin(resume: Race["resume"]): Effect.Effect<void> {
    this.resume = resume
    const { environment: { clock, nowMillis }, home, options } = this
    home.budget.deposit(home.budget.successIncrement, clock)
    this.delayMillis = Math.max(options.spacingMillis ?? 0, delayOf(options, home, nowMillis))
    const first = new Sending(0, this.firstPermit())
    this.start(first, this.admitted(first))
    return this.abandoned as Effect.Effect<void>
  }

  /**
   * The caller was interrupted: all sends are too, and are awaited, like those of any call. If it was over, only its
   * result is left, which no caller gets.
   */
  private readonly abandoned: AnyEffect = Effect.suspend(() => {
    if (this.result !== undefined) {
      this.dispose(this.result)
      return Effect.void
    }
    this.end()
    if (this.first !== undefined) this.dispose(this.first)
    const fibers = [...this.live].flatMap(({ fiber }) => fiber ?? [])
    return Effect.andThen(Fiber.interruptAll(fibers), this.notify(undefined, undefined))
  })

  /** Takes over the gate passes of the send around the first send; if there is none, the first send asks the gates itself. */
  private firstPermit(): Permit {
    const { environment } = this
    const outerGates = this.outer?.environment.gates
    const gates = environment.gates.filter((gate) => !outerGates?.includes(gate))
    const isSame = gates.length === environment.gates.length
    const own = new Permit(isSame ? environment : new CallEnvironment(environment.context, undefined, gates), 0)
    const outer = this.outer?.isActive === true ? this.outer.sent?.permit : undefined
    // A send that began before the first hedge of the process has no mark of its own.
    this.isInherited = this.outer !== undefined && this.outer.sent === undefined
    if (!(outer instanceof Permit) || outer.state !== "sent") return own
    this.isInherited = true
    own.passes = outer.passes
    outer.passes = undefined
    return own
  }

  private start(sending: Sending, effect: AnyEffect): void {
    this.live.add(sending)
    const fiber = this.fork(effect)
    sending.fiber = fiber
    fiber.addObserver((exit) => this.complete(sending, exit))
    // Its first step may end the call.
    if (this.isOver) return this.drop(fiber)
    if (sending.wasSent || this.delayMillis === 0) this.planAfter(sending)
  }

  private fork(effect: AnyEffect): AnyFiber {
    return Effect.runForkWith(this.environment.context)(effect as Effect.Effect<unknown, unknown>)
  }

  /** Ends a losing send in the background. */
  private drop(fiber: AnyFiber): void {
    fiber.interruptUnsafe()
    Fiber.runIn(fiber, this.home.scope)
  }

  /** Plans the one after a send in flight, unless a server has asked for time. */
  private planAfter(sending: Sending): void {
    if (this.live.has(sending) && this.timer === undefined) this.plan(this.delayMillis)
  }

  /** Plans the next hedge. With a spacing, that is one that has not left yet. */
  private plan(delayMillis: number): void {
    const { atMost, spacingMillis = 0 } = this.options
    if (this.isOver || this.isStopped || this.hedges.length >= atMost || delayMillis === Infinity) return
    if (spacingMillis > 0 && [...this.live].some(({ wasSent }) => !wasSent)) return
    const millis = Math.max(spacingMillis, delayMillis)
    if (millis <= 0) return this.next()
    const timer = this.fork(this.environment.clock.sleep(Duration.millis(Math.ceil(millis))))
    this.timer = timer
    timer.addObserver((exit) => {
      if (this.timer !== timer) return
      this.timer = undefined
      if (Exit.isSuccess(exit)) this.next()
      else this.stop()
    })
  }

  /** Makes a hedge. */
  private next(): void {
    const hedge = new Sending(this.hedges.length + 1, new Permit(this.environment, this.hedges.length + 1))
    this.hedges.push(hedge)
    this.start(hedge, Effect.suspend(() => this.paid(hedge)))
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

  /** Sends a hedge if its resource has room for it, its budget pays and the gates let it pass. */
  private paid(hedge: Sending): AnyEffect {
    const now = this.environment.nowMillis
    if (now >= this.deadlineAtMillis) return this.refuse(hedge, "deadline")
    if (this.environment.gates.some((gate) => look(() => gate.isStrained?.(now)) === true)) {
      return this.refuse(hedge, "strained")
    }
    const { budget } = this.home
    const answer = budget.reserve(this.options.cost, this.environment.clock)
    if (answer === undefined) return this.refuse(hedge, "budget")
    if (typeof answer === "function") {
      return Effect.flatMap(
        asking(answer, hedge.permit, budget.onExceeded === "wait" ? 0 : Infinity),
        () => hedge.permit.reservation === undefined ? this.refuse(hedge, "budget") : this.admitted(hedge)
      )
    }
    hedge.permit.pay(answer)
    return this.admitted(hedge)
  }

  private get deadlineAtMillis(): number {
    return this.outer?.sent?.deadlineAtMillis ?? Infinity
  }

  /** A hedge is not sent. */
  private refuse(hedge: Sending, reason: HedgeEvent["reason"]): AnyEffect {
    hedge.refused = reason
    return Effect.void
  }

  /** Sends once the gates let it pass. */
  private admitted(sending: Sending): AnyEffect {
    const { index, permit } = sending
    return send({
      admitted: admissionUntil(permit, index === 0 ? Infinity : this.deadlineAtMillis),
      permit,
      sent: Effect.suspend(() => this.sent(sending)),
      refused: (error, cause) => index === 0 ? failAgain(error, cause) : this.refuse(sending, "gate"),
      expired: () => this.refuse(sending, "deadline")
    })
  }

  private sent(sending: Sending): AnyEffect {
    return sending.index === 0
      ? this.markSent(sending)
      : Effect.flatMap(this.notifyHedge(sending, "sent"), () => this.markSent(sending))
  }

  private markSent(sending: Sending): AnyEffect {
    const { index, permit } = sending
    permit.sent(index > 0 || !this.isInherited)
    if (permit.reservation !== undefined) permit.reservation = spent(permit.reservation)
    sending.sentMillis = this.environment.nowMillis
    // It has waited for its gates or its budget.
    if (sending.fiber !== undefined) this.planAfter(sending)
    const inside = Effect.updateContext(this.self, (context: Context.Context<any>) => {
      const indexed = Context.add(context, CurrentHedge, index)
      return this.outer === undefined ? Context.add(indexed, CurrentScope, new SendScope(this.environment)) : indexed
    })
    return settling(
      inside,
      (value) => {
        permit.succeeded(value)
        this.record(sending)
        return Effect.succeed(value)
      },
      (error, cause) => this.failed(sending, error, Effect.failCause(cause))
    )
  }

  /**
   * A send has failed. The call around it notifies the observer of the overall outcome, so of the failure that ends it.
   */
  private failed(sending: Sending, error: unknown, failure: AnyEffect): AnyEffect {
    sending.permit.failed(error)
    sending.error = error
    const info = Option.getOrUndefined(classify(this.environment.classifier, error))
    if (info?.timeout === true) this.record(sending)
    const reaction = this.options.react(error, info)
    const decided = Effect.suspend(() => {
      sending.reaction = reaction
      return failure
    })
    if (sending.index === 0 || reaction === "final") return decided
    return Effect.andThen(notified(this.environment, false, error) ?? Effect.void, decided)
  }

  /**
   * Records how long a send took; for an abandoned one, only that it took longer than most. Otherwise, as if it was never
   * sent, it says nothing.
   */
  private record(sending: Sending, isUnfinished = false): void {
    const { nowMillis } = this.environment
    const millis = nowMillis - sending.sentMillis
    if (isUnfinished && !(millis >= this.delayMillis)) return
    this.home.latencies.record(millis, nowMillis)
  }

  /** The fiber of a send has ended. */
  private complete(sending: Sending, exit: Exit.Exit<unknown, unknown>): void {
    this.live.delete(sending)
    sending.permit.abandon()
    if (this.isOver) return this.dispose(exit)
    if (sending.refused !== undefined) return this.stop()
    if (Exit.isSuccess(exit) || sending.reaction === "final") return this.conclude(exit, sending)
    if (sending.index === 0) this.first = exit
    else this.dispose(exit)
    this.follow(sending.reaction)
  }

  /** Reacts to a failure that is not the end. */
  private follow(reaction: Exclude<Reaction, "final">): void {
    if (reaction === "stop") return this.stop()
    this.cancelTimer()
    const delayMillis = reaction === "next" ? 0 : reaction
    const isIdle = this.live.size === 0
    if (delayMillis === 0 || !isIdle || this.options.waitsOut === true) this.plan(delayMillis)
    this.concludeIfIdle()
  }

  /** Ends the call if all have failed, and no more come. */
  private concludeIfIdle(): void {
    if (!this.isOver && this.live.size === 0 && this.timer === undefined) this.conclude(this.first!, undefined)
  }

  private conclude(exit: Exit.Exit<unknown, unknown>, by: Sending | undefined): void {
    this.end()
    this.result = exit
    const { first } = this
    if (first !== undefined && first !== exit) this.dispose(first)
    for (const { fiber } of this.live) if (fiber !== undefined) this.drop(fiber)
    this.resume(Effect.andThen(this.notify(exit, by), exit as AnyEffect))
  }

  /** Nothing is sent from now on. */
  private end(): void {
    this.isOver = true
    this.cancelTimer()
    for (const sending of this.live) this.record(sending, true)
  }

  private dispose(exit: Exit.Exit<unknown, unknown>): void {
    const { release } = this.options
    if (release === undefined) return
    Fiber.runIn(this.fork(Effect.suspend(() => release(exit))), this.home.scope)
  }

  /** Notifies the observer of how the hedges ended, and of outcomes that no call around it reports. */
  private notify(exit: Exit.Exit<unknown, unknown> | undefined, by: Sending | undefined): AnyEffect {
    const missed = this.first === undefined || this.first === exit ? [] : [this.first]
    const unseen = this.outer === undefined && exit !== undefined ? [...missed, exit] : missed
    if (unseen.length + this.hedges.length === 0) return Effect.void
    const winner = exit !== undefined && Exit.isSuccess(exit) ? by : undefined
    return Effect.andThen(
      Effect.forEach(unseen, (exit) => this.notifyFailure(exit), { discard: true }),
      Effect.forEach(this.hedges, (hedge) => {
        if (hedge.refused !== undefined) return this.notifyHedge(hedge, "refused")
        return hedge.wasSent ? this.notifyHedge(hedge, hedge === winner ? "won" : "lost") : Effect.void
      }, { discard: true })
    )
  }

  private notifyFailure(exit: Exit.Exit<unknown, unknown>): AnyEffect {
    const error = Exit.findErrorOption(exit)
    if (Exit.isFailure(exit) && Option.isNone(error)) return Effect.void
    return notified(this.environment, Exit.isSuccess(exit), Option.getOrUndefined(error)) ?? Effect.void
  }

  private notifyHedge(hedge: Sending, event: HedgeEvent["event"]): AnyEffect {
    const { context, observer } = this.environment
    return notify(
      this.environment,
      () => observer.onHedge?.({ event, hedge: hedge.index, reason: hedge.refused }, hedge.error, context)
    ) ?? Effect.void
  }
}

/** Hedges an effect. Inside a send of a hedged call it does nothing. */
export const hedging = (self: AnyEffect, options: HedgeOptions, home: Home): AnyEffect =>
  Effect.withFiber((fiber) => {
    if (Context.get(fiber.context, CurrentHedge) !== undefined) return self
    return Effect.callback((resume) => new Race(self, options, home, fiber).begin(resume))
  })
