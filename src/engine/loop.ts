import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Schedule from "effect/Schedule"
import { type AnyContext, shared } from "../internal/shared.ts"
import type { Stop } from "../RetryDecision.ts"
import { Decider, isTimed } from "./decider.ts"
import type { Answer, Parts } from "./parts.ts"
import { Run } from "./run.ts"
import { earn, framed, guarded, handling, send, settling } from "./send.ts"
import { after, type AnyEffect } from "./wait.ts"
import { type AnyFiber, current, fresh, InsideCall, type World, worldOf } from "./world.ts"

/** What to do with a run that is not retried. Without it, the run fails as its last send did. */
export type OrElse = (error: any, stop: Stop) => AnyEffect

/** The next turn of the loop: decides on a failure, obeys what was decided, sleeps, sends, or ends. */
type Turn = "decide" | "decided" | "sleep" | "send" | "end"

/** A run under our own loop, from its first failure on, as the options of Effect's own loop. */
export class Loop {
  private readonly decider: Decider
  protected readonly run: Run
  private readonly self: AnyEffect
  private readonly orElse: OrElse | undefined
  private turn: Turn = "send"
  /**
   * What the next turn runs; at the end, the result of the run. Not kept while it runs, so a sleeping run holds little.
   */
  private next: AnyEffect | undefined = undefined
  /** The failure to decide about. */
  private cause: Cause.Cause<unknown> | undefined = undefined
  /** When the last send failed, how long after the first failure, and after the failure before it. */
  protected nowMillis = 0
  protected elapsedMillis = 0
  protected sinceMillis = 0

  constructor(self: AnyEffect, decider: Decider, orElse: OrElse | undefined) {
    this.self = self
    this.decider = decider
    this.run = decider.run
    this.orElse = orElse
  }

  /** Continues from the answer to the failure of a first send that ran bare. If a clock throws, no token is lost. */
  proceed(answer: Answer, cause: Cause.Cause<unknown>): AnyEffect {
    try {
      this.follow(answer, cause)
    } catch (defect) {
      this.run.ended()
      throw defect
    }
    return this.turn === "end" ? this.take() : this.starts()
  }

  /**
   * Takes the turns inside a frame that settles what the run holds, however they end. Call it in a step of the fiber: the
   * frame is there before the fiber can be interrupted.
   */
  starts(): AnyEffect {
    const turns = Effect.flatMap(Effect.whileLoop(this), () => this.take())
    return framed(Effect.onExitPrimitive(turns, (exit) => this.ended(exit)), current())
  }

  /** After a result, this has nothing left to do. */
  private ended(exit: Exit.Exit<unknown, unknown>): undefined {
    if (exit._tag === "Success") return
    this.arrive()
    this.run.ended()
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
    if (this.turn === "decided") this.obey(value as boolean)
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

  private follow(answer: Answer, cause: Cause.Cause<unknown>): void {
    this.cause = cause
    if (answer === false) return this.obey(answer)
    const now = this.run.world.clock.currentTimeMillisUnsafe()
    if (this.run.attempt > 1) {
      this.sinceMillis = now - this.nowMillis
      this.elapsedMillis += this.sinceMillis
    }
    this.nowMillis = now
    if (answer === true) this.obey(answer)
    else this.then("decide", answer)
  }

  private obey(goes: boolean): void {
    const { decider, orElse, run } = this
    const cause = this.cause!
    this.cause = undefined
    if (goes) {
      const wait = decider.retries()
      return this.then("sleep", after(wait, run.world.clock.sleep(Duration.millis(decider.delayMillis))))
    }
    const stop = decider.stops()
    const end = orElse === undefined ? Effect.failCause(cause) : orElse(run.error, stop)
    // A polling run is held back first.
    const held = stop.delayMillis === 0 ? end : Effect.andThen(Effect.sleep(stop.delayMillis), end)
    this.then("end", after(run.stopped(stop), held))
  }

  /** The next send. It ends by changing the loop's state, never with a failure. */
  private send(fiber: AnyFiber): AnyEffect {
    const { run } = this
    const admitted = run.admits()
    if (admitted === undefined) return this.leaving(fiber)
    return send({
      admitted,
      permit: run.permit,
      sent: Effect.withFiber((fiber) => this.leaving(fiber)),
      refused: (error, cause) => {
        run.record(error)
        return this.decide(cause)
      },
      expired: () => {
        this.decider.refuses("deadline")
        this.follow(false, Cause.fail(run.error))
        return Effect.void
      }
    })
  }

  /** Makes the send in this step of its fiber, in its own context, which it has until it ends. */
  private leaving(fiber: AnyFiber): AnyEffect {
    fiber.setContext(this.inside(fiber))
    this.run.sent()
    return framed(settling(this.self, (value) => this.succeed(value), (error, cause) => this.fail(error, cause)), fiber)
  }

  private decide(cause: Cause.Cause<unknown>): AnyEffect {
    this.follow(this.decider.decides(), cause)
    return Effect.void
  }

  private succeed(value: unknown): AnyEffect {
    this.arrive()
    this.then("end", Effect.succeed(value))
    return this.run.succeeded(value) ?? Effect.void
  }

  private fail(error: unknown, cause: Cause.Cause<unknown>): AnyEffect {
    this.arrive()
    const wait = this.run.failed(error)
    return wait === undefined ? this.decide(cause) : Effect.flatMap(wait, () => this.decide(cause))
  }

  private arrive(): void {
    current().setContext(this.run.world.context)
  }

  /** The context of a send: which run accounts for it, and which retry it is. */
  private inside(fiber: AnyFiber): AnyContext {
    const { run } = this
    const { retry, world } = run
    const inside = run.inside(fiber)
    if (retry === undefined) {
      return world.metadata === undefined ? inside : Context.add(inside, Schedule.CurrentMetadata, fresh)
    }
    return Context.add(inside, Schedule.CurrentMetadata, {
      input: run.error,
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

/** A successful first send that only the quota sees. */
const quietly = (value: any): AnyEffect => {
  const { clock, store } = back(current())
  earn(store, clock)
  return Effect.succeed(value)
}

/** Restores the caller's context after a first send that ran bare. */
const back = (fiber: AnyFiber): World => {
  const { world } = Context.get(fiber.context, InsideCall)!
  fiber.setContext(world.context)
  return world
}

/** Retries an effect: its first send runs bare or in a guard, and nothing else is set up until it fails. */
export const retrying = (self: AnyEffect, parts: Parts, orElse?: OrElse): AnyEffect => {
  const { live } = parts
  if (live !== undefined) return Effect.withFiber(({ context }) => retrying(self, live(context), orElse))
  const failed = (startMillis?: number) => (world: World, error: unknown, cause: Cause.Cause<unknown>): AnyEffect => {
    const run = new Run(world)
    const decider = new Decider(parts, run, startMillis)
    run.record(error)
    return new Loop(self, decider, orElse).proceed(decider.decides(), cause)
  }
  type Fails = ReturnType<typeof failed>
  const bare = (fails: Fails): AnyEffect =>
    settling(self, quietly, (error, cause) => fails(back(current()), error, cause), () => back(current()))
  const caught = (fails: Fails): AnyEffect =>
    Effect.catchCause(self, handling((error, cause) => fails(worldOf(current().context), error, cause)))
  const isUntimed = !isTimed(parts)
  /** What the first send runs in. One is kept, if it does not matter when the run begins. */
  const first = (frame: (fails: Fails) => AnyEffect): (world: World) => AnyEffect => {
    let kept: AnyEffect | undefined
    return (world) => isUntimed ? kept ??= frame(failed()) : frame(failed(world.nowMillis))
  }
  const bareIn = first(bare)
  const caughtIn = first(caught)
  const begin = (world: World): AnyEffect =>
    new Loop(self, new Decider(parts, new Run(world)).begins(), orElse).starts()
  return Effect.withFiber((fiber) => {
    const world = worldOf(fiber.context)
    if (world.isUnseen && world.metadata === undefined && !shared.marking) {
      if (world.isQuiet) {
        const body = bareIn(world)
        // An interruption skips restoring the context: then finalizers see the mark of the run, up to the next scope. A
        // frame for this send too would add a third to the time of a success.
        fiber.setContext(world.inside)
        return body
      }
      void framed(caughtIn(world), fiber)
      return guarded(self, world, fiber)
    }
    const { onCall } = world.observer
    if (onCall === undefined) return begin(world)
    // What the observer puts around a run is around its sends too.
    return onCall(Effect.withFiber(({ context }) => begin(worldOf(context))), world.context)
  })
}
