import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Schedule from "effect/Schedule"
import { type AnyContext, shared } from "../internal/shared.ts"
import type { Retry, RetryDecision, Stop } from "../RetryDecision.ts"
import { type AnyEffect, Call, deadlineAt, type Decision, earn, failed, sentOn, succeeded } from "./call.ts"
import type { Parts } from "./parts.ts"
import { Permit } from "./permit.ts"
import { framed, guarded, handling, onlyIn, send, settling } from "./send.ts"
import { type AnyFiber, current, fresh, InsideCall, Mark, type World, worldOf } from "./world.ts"

/** What to do with a call that is not retried. Without it, the call fails as its last attempt did. */
export type OrElse = (error: any, stop: Stop) => AnyEffect

/** The next turn of the loop: decides on a failure, obeys what was decided, sleeps, sends, or ends. */
type Turn = "decide" | "decided" | "sleep" | "send" | "end"

/** A call from its first failure on, as the options of Effect's own loop. */
export class Loop {
  private readonly call: Call
  private readonly self: AnyEffect
  private readonly orElse: OrElse | undefined
  private readonly world: World
  private turn: Turn = "send"
  /**
   * What the next turn runs; at the end, the result of the call. Not kept while it runs, so a sleeping call holds
   * little.
   */
  private next: AnyEffect | undefined = undefined
  private sent: AnyEffect | undefined = undefined
  private cause: Cause.Cause<unknown> | undefined = undefined
  protected retry: Retry | undefined = undefined
  private mark: Mark | undefined = undefined
  /** When the last attempt failed, how long after the first failure, and after the failure before it. */
  protected nowMillis = 0
  protected elapsedMillis = 0
  protected sinceMillis = 0

  constructor(self: AnyEffect, call: Call, world: World, orElse: OrElse | undefined) {
    this.self = self
    this.call = call
    this.world = world
    this.orElse = orElse
  }

  /** Continues from the decision about the failure of a first attempt that ran bare. If a clock throws, no token is lost. */
  proceed(decision: Decision, cause: Cause.Cause<unknown>): AnyEffect {
    try {
      this.follow(decision, cause)
    } catch (defect) {
      this.call.permit?.cancel()
      throw defect
    }
    return this.turn === "end" ? this.take() : this.run()
  }

  /**
   * Takes the turns inside a frame that settles what the call holds, however they end. Call it in a step of the fiber: the
   * frame is there before the fiber can be interrupted. A watch of the fiber would cost more: the collector visits its
   * entry for each call in flight.
   */
  run(): AnyEffect {
    const turns = Effect.flatMap(Effect.whileLoop(this), () => this.take())
    return framed(Effect.onExitPrimitive(turns, (exit) => this.ended(exit)), current(), 3)
  }

  /** After a result, this has nothing left to do. */
  private ended(exit: Exit.Exit<unknown, unknown>): undefined {
    if (exit._tag === "Success") return
    this.arrive()
    this.call.permit?.abandon()
  }

  // The options of `Effect.whileLoop`.

  while(): boolean {
    return this.turn !== "end"
  }

  body(): AnyEffect {
    if (this.turn === "send") return this.send(current())
    this.turn = this.turn === "decide" ? "decided" : "send"
    return this.take()
  }

  step(value: unknown): void {
    if (this.turn === "decided") this.obey(value as RetryDecision)
  }

  private take(): AnyEffect {
    const next = this.next!
    this.next = undefined
    return next
  }

  private then(turn: Turn, next: AnyEffect): void {
    this.turn = turn
    this.next = next
  }

  private decide(error: unknown, cause: Cause.Cause<unknown>): void {
    this.follow(this.call.failed(this.world, error), cause)
  }

  private follow(decision: Decision, cause: Cause.Cause<unknown>): void {
    this.cause = cause
    if (!Effect.isEffect(decision) && decision._tag === "Stop") return this.obey(decision)
    const now = this.world.clock.currentTimeMillisUnsafe()
    if (this.call.attempt > 1) {
      this.sinceMillis = now - this.nowMillis
      this.elapsedMillis += this.sinceMillis
    }
    this.nowMillis = now
    if (Effect.isEffect(decision)) this.then("decide", decision)
    else this.obey(decision)
  }

  private obey(decision: RetryDecision): void {
    const cause = this.cause!
    this.cause = undefined
    if (decision._tag === "Retry") {
      this.retry = decision
      return this.then("sleep", this.world.clock.sleep(Duration.millis(decision.delayMillis)))
    }
    const end = this.orElse === undefined ? Effect.failCause(cause) : this.orElse(this.call.error, decision)
    // A polling call is held back first.
    this.then("end", decision.delayMillis === 0 ? end : Effect.andThen(Effect.sleep(decision.delayMillis), end))
  }

  /** The next send. It ends by changing the loop's state, never with a failure. */
  private send(fiber: AnyFiber): AnyEffect {
    const { world } = this
    const isFree = world.gates.length === 0 && world.observer.onSend === undefined &&
      (this.retry === undefined ? world.isQuiet : this.call.deadlineAtMillis === Infinity)
    if (isFree) return this.leaving(fiber)
    return this.admitted(Effect.withFiber((fiber) => this.leaving(fiber)))
  }

  /** Makes the send in this step of its fiber, in its own context, which it has until it ends. */
  private leaving(fiber: AnyFiber): AnyEffect {
    fiber.setContext(this.leave())
    return framed(this.sent ??= this.settled(), fiber)
  }

  private settled(): AnyEffect {
    return Effect.matchCauseEffect(this.self, {
      onSuccess: (value) => this.succeed(value),
      onFailure: (cause) => {
        const only = onlyIn(cause)
        if (only !== undefined) return this.fail(only.error, cause)
        return handling((error, cause) => this.fail(error, cause))(cause)
      }
    })
  }

  /** Sends once the quota and the gates permit it. */
  private admitted(sent: AnyEffect): AnyEffect {
    const { call, world } = this
    return send({
      world,
      permit: call.permit ??= new Permit(world, call.attempt),
      sent,
      deadlineAtMillis: call.attempt === 0 ? Infinity : call.deadlineAtMillis,
      refused: (error, cause) => this.refused(error, cause),
      expired: () => {
        call.ends = "deadline"
        return this.refused(call.error, Cause.fail(call.error))
      }
    })
  }

  private succeed(value: unknown): AnyEffect {
    this.arrive()
    const told = succeeded(this.world, this.call.permit, this.retry !== undefined, value)
    this.then("end", Effect.succeed(value))
    return told ?? Effect.void
  }

  private fail(error: unknown, cause: Cause.Cause<unknown>): AnyEffect {
    this.arrive()
    const told = failed(this.world, this.call.permit, error)
    return told === undefined ? this.refused(error, cause) : Effect.map(told, () => this.decide(error, cause))
  }

  /** The send was never made. */
  private refused(error: unknown, cause: Cause.Cause<unknown>): AnyEffect {
    this.decide(error, cause)
    return Effect.void
  }

  private arrive(): void {
    this.mark?.ended()
    current().setContext(this.world.context)
  }

  /** Marks the send as made, in a context that says who accounts for it, and which retry it is. */
  private leave(): AnyContext {
    this.call.permit?.leave()
    const { retry, world } = this
    const marked = shared.marking
      ? Context.add(world.context, InsideCall, this.mark = new Mark(world, current(), this.call))
      : world.inside
    const inside = world.onward === undefined ? marked : sentOn(this.call, world.onward, world.context, marked)
    if (retry === undefined) {
      return world.metadata === undefined ? inside : Context.add(inside, Schedule.CurrentMetadata, fresh)
    }
    return Context.add(inside, Schedule.CurrentMetadata, {
      input: this.call.error,
      output: retry,
      duration: Duration.millis(retry.delayMillis),
      attempt: retry.retry,
      start: this.nowMillis - this.elapsedMillis,
      now: this.nowMillis,
      elapsed: this.elapsedMillis,
      elapsedSincePrevious: this.sinceMillis
    })
  }
}

/** A successful first attempt that only the quota needs to know about. */
const quietly = (value: any): AnyEffect => {
  const { clock, store } = back(current())
  earn(store, clock)
  return Effect.succeed(value)
}

/** Restores the caller's context after a first attempt that ran bare. */
const back = (fiber: AnyFiber): World => {
  const { world } = Context.get(fiber.context, InsideCall)!
  fiber.setContext(world.context)
  return world
}

/** Retries an effect: its first attempt runs bare or in a guard, and nothing else is set up until it fails. */
export const retrying = (self: AnyEffect, parts: Parts, orElse?: OrElse): AnyEffect => {
  const { live } = parts
  if (live !== undefined) return Effect.withFiber(({ context }) => retrying(self, live(context), orElse))
  const failed = (world: World, error: unknown, cause: Cause.Cause<unknown>): AnyEffect => {
    const call = new Call(parts, Infinity)
    const decision = call.failed(world, error)
    const isOver = !Effect.isEffect(decision) && decision._tag === "Stop" && decision.delayMillis === 0
    return isOver && orElse === undefined
      ? Effect.failCause(cause)
      : new Loop(self, call, world, orElse).proceed(decision, cause)
  }
  const body = settling(
    self,
    quietly,
    (error, cause) => failed(back(current()), error, cause),
    () => back(current())
  )
  const begin = (world: World): AnyEffect =>
    new Loop(self, new Call(parts, deadlineAt(parts, world)), world, orElse).run()
  let frame: AnyEffect | undefined
  const timed = parts.deadlineMillis !== Infinity
  return Effect.withFiber((fiber) => {
    const world = worldOf(fiber.context)
    const isUnseen = !timed && world.isUnseen && world.metadata === undefined
    if (isUnseen && world.isQuiet && !shared.nesting) {
      // An interruption skips restoring the context: then finalizers see the mark of the call, up to the next scope. A
      // frame for this attempt too would add a third to the time of a success.
      fiber.setContext(world.inside)
      return body
    }
    if (isUnseen && !shared.marking) {
      frame ??= Effect.catchCause(self, handling((error, cause) => failed(worldOf(current().context), error, cause)))
      void framed(frame, fiber)
      return guarded(self, world, world.inside, fiber)
    }
    const { onCall } = world.observer
    if (onCall === undefined) return begin(world)
    // What the observer puts around a call is around its sends too.
    return onCall(Effect.withFiber(({ context }) => begin(worldOf(context))), world.context)
  })
}
