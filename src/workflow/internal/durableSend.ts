import * as Effect from "effect/Effect"
import type * as Activity from "effect/workflow/Activity"
import { type Answer, type Compiled, free } from "../../engine/compiled.ts"
import { chain, Decider } from "../../engine/decider.ts"
import { environmentOf } from "../../engine/environment.ts"
import { Loop, starting } from "../../engine/loop.ts"
import { Run } from "../../engine/run.ts"
import type { AnyEffect } from "../../engine/send.ts"
import { isRefusal } from "../../internal/refused.ts"
import { Retry, type Stop } from "../../RetryDecision.ts"
import { type AnySent, infoOf, notSent, type Retried, storedInfo, storedStopOf } from "./storedAttempt.ts"

/** A durable call: its policy, and the outcomes of its sends so far. */
export interface Past {
  readonly compiled: Compiled
  /** When the first send began, in milliseconds since 1970; 0 without a deadline. */
  readonly startedAtMillis: number
  readonly failures: Array<Retried>
  /** Who waits for the next failure to be replayed. */
  readonly waiting: Array<() => void>
}

/** The run of one send: the next one is made by another run, maybe in another process. */
class Durable extends Run {
  /** The wall clock of the failure that is decided again, if one is. */
  replayedAtMillis: number | undefined = undefined
  /** Its retry is decided. It ends, but the durable call goes on. */
  goesOn = false

  override get wallMillis(): number {
    return this.replayedAtMillis ?? super.wallMillis
  }

  /** The quota is asked when the retry is due: a retry that waits for hours, or in another process, holds no tokens. */
  override pays(): boolean {
    return true
  }

  override stopped(stop: Stop): Effect.Effect<void> | undefined {
    return this.goesOn ? undefined : super.stopped(stop)
  }
}

/** Continues after this failure. */
const restore = (run: Run, { error, info }: Retried, attempt: number): void => {
  run.error = error
  run.info = infoOf(info)
  run.attempt = attempt
}

/** Decides on one failure, and then ends the run. */
class Deciding extends Decider {
  declare readonly run: Durable

  override decides(): Answer {
    return chain(super.decides(), (goes) => {
      this.run.goesOn = goes
      const wait = goes ? this.run.retries(this) : undefined
      return wait === undefined ? false : Effect.as(wait, false)
    })
  }

  /** Continues after the failures so far: what decides inside repeats its steps for them. */
  restored(failures: ReadonlyArray<Retried>): Effect.Effect<this, unknown, unknown> {
    return Effect.gen({ self: this }, function*() {
      const { run } = this
      for (const [index, failure] of failures.entries()) {
        restore(run, failure, index + 1)
        run.replayedAtMillis = failure.atMillis
        const answer = this.steps()
        if (typeof answer !== "boolean") yield* answer
      }
      run.replayedAtMillis = undefined
      const last = failures.at(-1)
      if (last === undefined) return this
      this.attempt = failures.length
      this.step = last.step
      this.previousMillis = last.previousMillis
      restore(run, last, failures.length)
      return this
    })
  }
}

/** The outcome of a send that failed, or was never made. */
const sentOf = ({ previousMillis, run, step }: Deciding, error: unknown, stop: Stop): AnySent => {
  const { info, retry, environment } = run
  if (run.goesOn) {
    return {
      _tag: "Retried",
      error,
      atMillis: environment.clock.currentTimeMillisUnsafe(),
      delayMillis: retry!.delayMillis,
      cost: retry!.cost,
      ...(info && { info: storedInfo(info) }),
      step,
      previousMillis
    }
  }
  return isRefusal(error)
    ? { _tag: "Refused", error: notSent(error), stop: storedStopOf(stop) }
    : { _tag: "Stopped", error, stop: storedStopOf(stop) }
}

/** The send of a retry that was decided earlier. */
class Resuming extends Loop {
  resumes(failures: ReadonlyArray<Retried>): AnyEffect {
    const [previous, last] = [failures.at(-2), failures.at(-1)!]
    this.run.retry = new Retry(this.run, last.delayMillis, last.cost, this.run.maxAttempts)
    this.nowMillis = last.atMillis
    this.elapsedMillis = last.atMillis - failures[0]!.atMillis
    this.sinceMillis = last.atMillis - (previous ?? last).atMillis
    return starting(this)
  }
}

/** One send of a durable call, and the decision if it fails. It runs once, and its outcome is stored. */
export const sending = (
  activity: Activity.Activity<any, any, any>,
  past: Past
): Effect.Effect<AnySent, never, unknown> =>
  Effect.orDie(Effect.gen(function*() {
    const { failures } = past
    const environment = environmentOf(yield* Effect.context<never>())
    const run = new Durable(environment)
    const compiled = past.compiled.live?.(environment.services) ?? past.compiled
    // When the first send began, on the monotonic clock of this process.
    const startMillis = environment.nowMillis + past.startedAtMillis - environment.clock.currentTimeMillisUnsafe()
    const decider = yield* new Deciding(compiled, run, startMillis).begins().restored(failures)
    const sent = Effect.map(activity.execute, (value): AnySent => ({ _tag: "Succeeded", value }))
    const loop = new Resuming(sent, decider, (error, stop) => Effect.succeed(sentOf(decider, error, stop)))
    const last = failures.at(-1)
    if (last === undefined) return yield* starting(loop)
    const paying = new Run(environment)
    restore(paying, last, failures.length)
    const due = new Decider(compiledDue(compiled, last), paying, startMillis)
    const answer = due.decides()
    if (typeof answer === "boolean" ? answer : yield* answer) {
      run.permit = paying.permit
      return yield* loop.resumes(failures)
    }
    const stop = due.stops()
    yield* run.stopped(stop) ?? Effect.void
    return { _tag: "Stopped", error: last.error, stop: storedStopOf(stop) }
  }))

/**
 * What remains to be checked of a retry that was decided and announced earlier: the quota, for the cost that policies
 * inside may have decided on, and the deadline of the whole.
 */
const compiledDue = ({ deadlineMillis }: Compiled, { cost }: Retried): Compiled => ({
  ...free,
  nodes: [],
  source: () => 0,
  deadlineMillis,
  quota: cost === 0 ? undefined : { cost, timeoutCost: cost, throttlingCost: cost, longPolling: false }
})
