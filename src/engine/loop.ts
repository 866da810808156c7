import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Schedule from "effect/Schedule"
import { type AnyContext, shared } from "../internal/shared.ts"
import type { Stop } from "../RetryDecision.ts"
import { type Answer, type Compiled, isTimed } from "./compiled.ts"
import { Decider } from "./decider.ts"
import { type AnyFiber, type CallEnvironment, current, CurrentScope, environmentOf, fresh } from "./environment.ts"
import { infoOf, Run } from "./run.ts"
import { earn, failing, framed, guarded, send } from "./send.ts"
import { isFinal } from "./verdict.ts"
import { after, type AnyEffect } from "./wait.ts"

/** What to do with a run that is not retried. Without it, the run fails as its last send did. */
export type OrElse = (error: any, stop: Stop) => AnyEffect

/** A run under our own loop, from its first failure on. */
export class Loop {
  protected readonly run: Run
  /** A send, and what comes after a delay: kept, since they are the same for each retry. */
  private sent: AnyEffect | undefined = undefined
  private next: (() => AnyEffect) | undefined = undefined
  /** The last delay. */
  private delay = Duration.zero
  /** When the last send failed, how long after the first failure, and after the failure before it. */
  protected nowMillis = 0
  protected elapsedMillis = 0
  protected sinceMillis = 0

  constructor(
    private readonly self: AnyEffect,
    private readonly decider: Decider,
    private readonly orElse: OrElse | undefined
  ) {
    this.run = decider.run
  }

  /** Continues from the answer to the failure of a first send that ran bare. If a clock throws, no token is lost. */
  proceeds(answer: Answer, cause: Cause.Cause<unknown>): AnyEffect {
    try {
      return this.framed(this.follow(answer, cause))
    } catch (defect) {
      this.run.complete()
      throw defect
    }
  }

  /** Begins with a send. */
  starts(): AnyEffect {
    return this.framed(Effect.withFiber((fiber) => this.send(fiber)))
  }

  /**
   * Puts a frame around the run that settles what it holds, however it ends. Call it in a step of the fiber: the frame is
   * there before the fiber can be interrupted.
   */
  private framed(self: AnyEffect): AnyEffect {
    return framed(Effect.onExitPrimitive(self, (exit) => this.onExit(exit)), current())
  }

  /** After a result, this has nothing left to do. */
  private onExit(exit: Exit.Exit<unknown, unknown>): undefined {
    if (exit._tag === "Success") return
    this.arrive()
    this.run.complete()
  }

  private follow(answer: Answer, cause: Cause.Cause<unknown>): AnyEffect {
    if (answer === false) return this.obey(answer, cause)
    const { run } = this
    const now = run.environment.clock.currentTimeMillisUnsafe()
    if (run.attempt > 1) {
      this.sinceMillis = now - this.nowMillis
      this.elapsedMillis += this.sinceMillis
    }
    this.nowMillis = now
    if (answer === true) return this.obey(answer, cause)
    // If a schedule fails, that ends the run.
    const answered = Effect.tapError(answer, () => run.stopped(run.stops("schedule")) ?? Effect.void)
    return Effect.flatMap(answered, (goes) => this.obey(goes, cause))
  }

  private obey(goes: boolean, cause: Cause.Cause<unknown>): AnyEffect {
    const { decider, run } = this
    if (!goes) return ending(decider, cause, this.orElse)
    const wait = decider.retries()
    this.delay = Duration.millis(decider.delayMillis)
    this.next ??= () => this.send(current())
    return Effect.flatMap(after(wait, run.environment.clock.sleep(this.delay)), this.next)
  }

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
        this.decider.refuses("vetoed")
        return this.obey(false, cause)
      },
      expired: () => {
        this.decider.refuses(run.heldBack)
        return this.obey(false, Cause.fail(run.error))
      }
    })
  }

  /** Makes the send in this step of its fiber, in its own context, which it has until it ends. */
  private leaving(fiber: AnyFiber): AnyEffect {
    fiber.setContext(this.inside(fiber))
    this.run.sent()
    this.sent ??= Effect.matchCauseEffect(this.self, {
      onSuccess: (value) => this.succeed(value),
      onFailure: (cause) => failing(cause, failed, this)
    })
    return framed(this.sent, fiber)
  }

  private decide(cause: Cause.Cause<unknown>): AnyEffect {
    return this.follow(this.decider.answers(), cause)
  }

  private succeed(value: unknown): AnyEffect {
    this.arrive()
    return after(this.run.succeeded(value), Effect.succeed(value))
  }

  fail(error: unknown, cause: Cause.Cause<unknown>): AnyEffect {
    this.arrive()
    const wait = this.run.failed(error)
    return wait === undefined ? this.decide(cause) : Effect.flatMap(wait, () => this.decide(cause))
  }

  private arrive(): void {
    current().setContext(this.run.environment.context)
  }

  /** The context of a send: which run accounts for it, and which retry it is. */
  private inside(fiber: AnyFiber): AnyContext {
    const { run } = this
    const { retry, environment } = run
    const inside = run.inside(fiber)
    if (retry === undefined) {
      return environment.metadata === undefined ? inside : Context.add(inside, Schedule.CurrentMetadata, fresh)
    }
    return Context.add(inside, Schedule.CurrentMetadata, {
      input: run.error,
      output: retry,
      duration: this.delay,
      attempt: retry.retry,
      start: this.nowMillis - this.elapsedMillis,
      now: this.nowMillis,
      elapsed: this.elapsedMillis,
      elapsedSincePrevious: this.sinceMillis
    })
  }
}

const failed = (error: unknown, cause: Cause.Cause<unknown>, loop: Loop): AnyEffect => loop.fail(error, cause)

/** The end of a run that is not retried. A polling run is held back first. */
const ending = (decider: Decider, cause: Cause.Cause<unknown>, orElse: OrElse | undefined): AnyEffect => {
  const { run } = decider
  const { onStop } = run.environment.observer
  if (onStop === undefined && orElse === undefined && decider.holdMillis === 0) {
    run.complete()
    return Effect.failCause(cause)
  }
  const stop = decider.stops()
  const end = orElse === undefined ? Effect.failCause(cause) : orElse(run.error, stop)
  const held = stop.delayMillis === 0 ? end : Effect.andThen(Effect.sleep(stop.delayMillis), end)
  return after(run.stopped(stop), held)
}

/** A successful first send that only the quota sees. */
const quietly = (value: any): AnyEffect => {
  earn(back(current()))
  return Effect.succeed(value)
}

/** Restores the caller's context after a first send that ran bare. */
const back = (fiber: AnyFiber): CallEnvironment => {
  const { environment } = Context.get(fiber.context, CurrentScope)!
  fiber.setContext(environment.context)
  return environment
}

/** Continues after the failure of a first send that ran bare or in a guard, in a run that begins only now. */
const handling = (self: AnyEffect, compiled: Compiled, orElse: OrElse | undefined) =>
(
  error: unknown,
  cause: Cause.Cause<unknown>,
  environment: CallEnvironment,
  startMillis: number | undefined
): AnyEffect => {
  const info = infoOf(environment, error)
  // The reason would be lost.
  if (orElse === undefined && environment.observer.onStop === undefined && isFinal(compiled.whileRetryable, info)) {
    return Effect.failCause(cause)
  }
  const run = new Run(environment)
  const decider = new Decider(compiled, run, startMillis)
  run.record(error, info)
  const answer = decider.answers()
  return answer === false ? ending(decider, cause, orElse) : new Loop(self, decider, orElse).proceeds(answer, cause)
}

/** Retries an effect: its first send runs bare or in a guard, and nothing else is set up until it fails. */
export const retrying = (self: AnyEffect, compiled: Compiled, orElse?: OrElse): AnyEffect => {
  const { live, services } = compiled
  if (services !== undefined) {
    return services.retried(orElse, (orElse) => retrying(self, { ...compiled, services: undefined }, orElse))
  }
  if (live !== undefined) {
    return Effect.withFiber(({ context }) => retrying(self, live(environmentOf(context).services), orElse))
  }
  const timed = isTimed(compiled)
  const failed = handling(self, compiled, orElse)
  const bare = (startMillis?: number) =>
    Effect.matchCauseEffect(self, {
      onSuccess: quietly,
      onFailure: (cause) => failing(cause, failed, back(current()), startMillis)
    })
  const caught = (startMillis?: number) =>
    Effect.catchCause(self, (cause) => failing(cause, failed, environmentOf(current().context), startMillis))
  // Those are kept of calls for which it does not matter when they begin.
  let bareKept: AnyEffect | undefined
  let caughtKept: AnyEffect | undefined
  const begin = (environment: CallEnvironment): AnyEffect =>
    new Loop(self, new Decider(compiled, new Run(environment)).begins(), orElse).starts()
  return Effect.withFiber((fiber) => {
    const environment = environmentOf(fiber.context)
    if (environment.isUnseen && environment.metadata === undefined && !shared.marking) {
      if (environment.isQuiet) {
        const body = timed ? bare(environment.nowMillis) : bareKept ??= bare()
        // An interruption skips restoring the context: then finalizers see the mark of the run, up to the next scope. A
        // frame for this send too would add a third to the time of a success.
        fiber.setContext(environment.inside)
        return body
      }
      void framed(timed ? caught(environment.nowMillis) : caughtKept ??= caught(), fiber)
      return guarded(self, environment, fiber)
    }
    const { onCall } = environment.observer
    if (onCall === undefined) return begin(environment)
    // What the observer puts around a run is around its sends too.
    return onCall(Effect.withFiber(({ context }) => begin(environmentOf(context))), environment.context)
  })
}
