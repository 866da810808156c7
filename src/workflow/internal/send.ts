import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Activity from "effect/workflow/Activity"
import { type AnyEffect, asEffect, Call, type Decision } from "../../engine/call.ts"
import type { Delay } from "../../engine/delay.ts"
import { Loop } from "../../engine/loop.ts"
import type { Parts } from "../../engine/parts.ts"
import { type AnyFiber, current, type World, worldOf } from "../../engine/world.ts"
import { isStop, Retry, type RetryDecision, Stop } from "../../RetryDecision.ts"
import { isRefusal, notSent } from "./notSent.ts"
import { type AnySent, endedOf, factsOf, type Retried, storedFacts } from "./sent.ts"

/** A durable call: its policy, and the outcomes of its sends so far. */
export interface Past {
  readonly parts: Parts
  /** When the first send began, in milliseconds since 1970; 0 without a deadline. */
  readonly startedAtMillis: number
  readonly failures: ReadonlyArray<Retried>
}

/** The call's deadline, on the monotonic clock of this process. */
const deadlineAt = ({ parts, startedAtMillis }: Past, world: World): number =>
  parts.deadlineMillis === Infinity
    ? Infinity
    : world.nowMillis + startedAtMillis + parts.deadlineMillis - world.clock.currentTimeMillisUnsafe()

/** A call that decides on one failure and then ends: another call, maybe in another process, sends the retry. */
class Deciding extends Call {
  decided: RetryDecision | undefined = undefined

  override failed(world: World, error: unknown): Decision {
    const decision = super.failed(world, error)
    return Effect.isEffect(decision) ? Effect.map(decision, (made) => this.end(made)) : this.end(decision)
  }

  /** The quota is asked when the retry is due: a retry that waits for hours, or in another process, holds no tokens. */
  protected override priced(world: World, source: Delay): Decision {
    return this.delayed(world, source, undefined, this.cost)
  }

  private end(decision: RetryDecision): Stop {
    this.decided = decision
    return isStop(decision) ? decision : new Stop(this, "schedule")
  }
}

/** Continues after the failures so far. */
const restored = (call: Deciding, { failures }: Past): Deciding => {
  const last = failures.at(-1)
  call.attempt = failures.length
  if (last === undefined) return call
  call.error = last.error
  call.step = last.step
  call.previousMillis = last.previousMillis
  return call
}

/** A retry that was decided and announced earlier. It is due: only the quota and the deadline remain to be checked. */
class Due extends Call {
  ask(world: World, { cost, error, info }: Retried, attempt: number): Decision {
    this.attempt = attempt
    this.error = error
    this.info = factsOf(info)
    this.cost = cost
    return this.priced(world, () => 0, current())
  }

  override announced(_world: World, retry: Retry): Decision {
    return retry
  }
}

/** A lifted schedule repeats its steps for the failures so far. */
const advanced = ({ failures, parts }: Past): Effect.Effect<Parts, unknown, unknown> => {
  const { source } = parts
  if (typeof source === "function" || failures.length === 0) return Effect.succeed(parts)
  return Effect.gen(function*() {
    const step = yield* Schedule.toStep(source)
    for (const { atMillis, error } of failures) yield* step(atMillis, error)
    return { ...parts, source: Schedule.fromStep(Effect.succeed(step)) }
  })
}

/** The outcome of a send that failed, or was never made. */
const sentOf = (world: World, error: unknown, call: Deciding): AnySent => {
  const decision = call.decided!
  if (!isStop(decision)) {
    return {
      _tag: "Retried",
      error,
      atMillis: world.clock.currentTimeMillisUnsafe(),
      delayMillis: decision.delayMillis,
      cost: decision.cost,
      ...(call.info && { info: storedFacts(call.info) }),
      step: call.step,
      previousMillis: call.previousMillis
    }
  }
  return isRefusal(error)
    ? { _tag: "Refused", error: notSent(error), stop: endedOf(decision) }
    : { _tag: "Stopped", error, stop: endedOf(decision) }
}

/** The send of a retry that was decided earlier. */
class Resuming extends Loop {
  resume(retry: Retry, failures: ReadonlyArray<Retried>): AnyEffect {
    const [previous, last] = [failures.at(-2), failures.at(-1)!]
    this.retry = retry
    this.nowMillis = last.atMillis
    this.elapsedMillis = last.atMillis - failures[0]!.atMillis
    this.sinceMillis = last.atMillis - (previous ?? last).atMillis
    return this.run()
  }
}

/** One send of a durable call, and the decision if it fails. It runs once, and its outcome is stored. */
export const sending = (
  activity: Activity.Activity<any, any, any>,
  past: Past
): Effect.Effect<AnySent, never, unknown> =>
  Effect.orDie(Effect.flatMap(advanced(past), (parts) =>
    Effect.withFiber((fiber: AnyFiber): AnyEffect => {
      const { failures } = past
      const world = worldOf(fiber.context)
      const call = restored(new Deciding(parts, deadlineAt(past, world)), past)
      const sent = Effect.map(activity.execute, (value): AnySent => ({ _tag: "Succeeded", value }))
      const loop = new Resuming(sent, call, world, (error) => Effect.succeed(sentOf(world, error, call)))
      const last = failures.at(-1)
      if (last === undefined) return loop.run()
      const due = new Due({ ...parts, adjusts: [] }, call.deadlineAtMillis)
      return Effect.flatMap(asEffect(due.ask(world, last, failures.length)), (decision) => {
        if (isStop(decision)) return Effect.succeed({ _tag: "Stopped", error: last.error, stop: endedOf(decision) })
        call.permit = due.permit
        return loop.resume(new Retry(call, last.delayMillis, last.cost), failures)
      })
    })))
