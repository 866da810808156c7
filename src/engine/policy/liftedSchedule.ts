import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import { catchDone } from "../../internal/requiresEffect4.ts"
import type { Source, Surrounding } from "../compiled.ts"
import type { AnyFiber } from "../environment.ts"
import { depthOf, isConstant } from "../frames.ts"
import { CurrentOffers, Offers } from "../run.ts"

type Step = (now: number, error: unknown) => Pull.Pull<[unknown, Duration.Duration], unknown, unknown, unknown>

/** Any schedule as the source of a policy. Policies in it find the run, and offer instead of paying on their own. */
export const lifting = (schedule: Schedule.Schedule<any, any, any, any>): Source => ({
  isTimed: !isConstant(schedule),
  begin: (around) => {
    let step: Step | undefined
    return () =>
      step === undefined
        ? Effect.flatMap(offered(around, () => Schedule.toStep(schedule)), ([begun]) => {
          step = begun as Step
          return stepped(around, step)
        })
        : stepped(around, step)
  }
})

const stepped = (around: Surrounding, step: Step): Effect.Effect<boolean, unknown, unknown> => {
  const { run } = around
  return Effect.map(
    offered(around, () =>
      catchDone(
        Effect.suspend(() => Effect.map(step(run.wallMillis, run.error), ([, delay]) => Duration.toMillis(delay))),
        () => Effect.succeed(undefined)
      )),
    ([delayMillis, offers]) => {
      if (delayMillis === undefined) return around.refuses(offers.reason ?? "schedule", offers.holdMillis)
      const untilMillis = offers.untilAfter(run.environment.nowMillis + delayMillis)
      return around.accepts({ cost: offers.cost, delayMillis, maxAttempts: offers.maxAttempts, untilMillis })
    }
  )
}

/** Runs part of a schedule, and collects what the policies in it offer. */
const offered = <A>(
  { deadlineAtMillis, run, startMillis }: Surrounding,
  part: () => Effect.Effect<A, unknown, unknown>
): Effect.Effect<readonly [A, Offers], unknown, unknown> =>
  Effect.withFiber((fiber: AnyFiber) => {
    const offers = new Offers(run, { fiber, depth: depthOf(fiber), startMillis, deadlineAtMillis })
    return Effect.map(Effect.provideService(part(), CurrentOffers, offers), (made) => [made, offers] as const)
  })
