import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Schedule from "effect/Schedule"
import { type AnyContext, shared } from "../internal/shared.ts"
import { type Answer, type Compiled, isTimed, type OrElse } from "./compiled.ts"
import { Decider } from "./decider.ts"
import { type AnyFiber, type CallEnvironment, current, CurrentScope, environmentOf, fresh } from "./environment.ts"
import { infoOf, Run } from "./run.ts"
import { after, type AnyEffect, earn, failing, framed, guarded, send } from "./send.ts"
import { isFinal } from "./verdict.ts"

/** A run under our own loop, from its first failure on. */
export class Loop {
  readonly run: Run
  /** A send, and what comes after a delay: kept, since they are the same for each retry. */
  sent: AnyEffect | undefined = undefined
  next: (() => AnyEffect) | undefined = undefined
  /** The last delay. */
  delay = Duration.zero
  /** When the last send failed, how long after the first failure, and after the failure before it. */
  nowMillis = 0
  elapsedMillis = 0
  sinceMillis = 0

  constructor(readonly self: AnyEffect, readonly decider: Decider, readonly orElse: OrElse) {
    this.run = decider.run
  }
}

/** Begins with a send. */
export const starting = (loop: Loop): AnyEffect => guardedLoop(loop, Effect.withFiber((fiber) => sending(loop, fiber)))

/**
 * Puts a frame around the run that settles what it holds, however it ends. Call it in a step of the fiber: the frame is
 * there before the fiber can be interrupted.
 */
const guardedLoop = (loop: Loop, self: AnyEffect): AnyEffect => {
  const onExit = (exit: Exit.Exit<unknown, unknown>): undefined => {
    // After a result, there is nothing left to do.
    if (exit._tag === "Success") return
    arrive(loop)
    loop.run.complete()
  }
  return framed(Effect.onExitPrimitive(self, onExit), current())
}

const follow = (loop: Loop, answer: Answer, cause: Cause.Cause<unknown>): AnyEffect => {
  if (answer === false) return obey(loop, answer, cause)
  const { run } = loop
  const now = run.environment.clock.currentTimeMillisUnsafe()
  if (run.attempt > 1) {
    loop.sinceMillis = now - loop.nowMillis
    loop.elapsedMillis += loop.sinceMillis
  }
  loop.nowMillis = now
  if (answer === true) return obey(loop, answer, cause)
  // If a schedule fails, that ends the run.
  const answered = Effect.tapError(answer, () => run.stopped(run.stops("schedule")) ?? Effect.void)
  return Effect.flatMap(answered, (goes) => obey(loop, goes, cause))
}

const obey = (loop: Loop, goes: boolean, cause: Cause.Cause<unknown>): AnyEffect => {
  const { decider, run } = loop
  if (!goes) return ending(decider, cause, loop.orElse)
  const wait = run.retries(decider)
  loop.delay = Duration.millis(decider.delayMillis)
  loop.next ??= () => sending(loop, current())
  return Effect.flatMap(after(wait, run.environment.clock.sleep(loop.delay)), loop.next)
}

const sending = (loop: Loop, fiber: AnyFiber): AnyEffect => {
  const { decider, run } = loop
  const admitted = run.admits()
  if (admitted === undefined) return leaving(loop, fiber)
  return send({
    admitted,
    permit: run.permit,
    sent: Effect.withFiber((fiber) => leaving(loop, fiber)),
    refused: (error, cause) => {
      run.record(error)
      decider.refuses("vetoed")
      return obey(loop, false, cause)
    },
    expired: () => {
      decider.refuses(run.heldBack)
      return obey(loop, false, Cause.fail(run.error))
    }
  })
}

/** Makes the send in this step of its fiber, in its own context, which it has until it ends. */
const leaving = (loop: Loop, fiber: AnyFiber): AnyEffect => {
  fiber.setContext(inside(loop, fiber))
  loop.run.sent()
  loop.sent ??= Effect.matchCauseEffect(loop.self, {
    onSuccess: (value) => {
      arrive(loop)
      return after(loop.run.succeeded(value), Effect.succeed(value))
    },
    onFailure: (cause) => failing(cause, failed, loop)
  })
  return framed(loop.sent, fiber)
}

const failed = (error: unknown, cause: Cause.Cause<unknown>, loop: Loop): AnyEffect => {
  arrive(loop)
  const wait = loop.run.failed(error)
  return wait === undefined ? decide(loop, cause) : Effect.flatMap(wait, () => decide(loop, cause))
}

const decide = (loop: Loop, cause: Cause.Cause<unknown>): AnyEffect => follow(loop, loop.decider.answers(), cause)

const arrive = ({ run }: Loop): void => current().setContext(run.environment.context)

/** The context of a send: which run accounts for it, and which retry it is. */
const inside = ({ delay, elapsedMillis, nowMillis, run, sinceMillis }: Loop, fiber: AnyFiber): AnyContext => {
  const { retry, environment } = run
  const inside = run.inside(fiber)
  if (retry === undefined) {
    return environment.metadata === undefined ? inside : Context.add(inside, Schedule.CurrentMetadata, fresh)
  }
  return Context.add(inside, Schedule.CurrentMetadata, {
    input: run.error,
    output: retry,
    duration: delay,
    attempt: retry.retry,
    start: nowMillis - elapsedMillis,
    now: nowMillis,
    elapsed: elapsedMillis,
    elapsedSincePrevious: sinceMillis
  })
}

/** The end of a run that is not retried. A polling run is held back first. */
const ending = (decider: Decider, cause: Cause.Cause<unknown>, orElse: OrElse): AnyEffect => {
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
const handling = (self: AnyEffect, compiled: Compiled, orElse: OrElse) =>
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
  if (answer === false) return ending(decider, cause, orElse)
  try {
    const loop = new Loop(self, decider, orElse)
    return guardedLoop(loop, follow(loop, answer, cause))
  } catch (defect) {
    // A clock throws: no token is lost.
    run.complete()
    throw defect
  }
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
    starting(new Loop(self, new Decider(compiled, new Run(environment)).begins(), orElse))
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
