import * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import { CurrentObserver } from "../RetryObserver.ts"
import { isRetryToken, type RetryDecision, type RetryToken } from "../RetryToken.ts"
import type { CallFiber } from "../state/clock.ts"
import { deadlineAt, decide, type Parts, Run } from "./decision.ts"
import { announce, lapse, remember } from "./pending.ts"

type Stepped = Pull.Pull<[RetryDecision, Duration.Duration], unknown, RetryDecision, unknown>

/** Tells the observer, and gives the schedule its answer. */
const emit = (decision: RetryDecision, fiber: CallFiber): Stepped => {
  const observer = fiber.getRef(CurrentObserver)
  if (isRetryToken(decision)) {
    announce(decision, observer, fiber)
    return Effect.succeed([decision, remember(decision, fiber)])
  }
  observer.onStop?.(decision, fiber)
  const done = Cause.done<RetryDecision>(decision)
  return decision.delayMillis === 0 ? done : Effect.andThen(Effect.sleep(decision.delayMillis), done)
}

/** The schedule of a policy: one step that decides, for `Effect.retry` and every combinator of `Schedule`. */
export const toSchedule = (parts: Parts): Schedule.Schedule<RetryDecision, unknown, unknown, unknown> =>
  Schedule.fromStep(Effect.withFiber((caller) => {
    const deadlineAtMillis = deadlineAt(parts, caller)
    let run: Run | undefined
    let token: RetryToken | undefined
    lapse(caller)
    const follow = (decision: RetryDecision, fiber: CallFiber): Stepped => {
      token = isRetryToken(decision) ? decision : undefined
      return emit(decision, fiber)
    }
    return Effect.succeed((_now: number, error: unknown): Stepped =>
      Effect.withFiber((fiber) => {
        run ??= new Run(parts, deadlineAtMillis)
        if (token?.expired) return follow(run.stop("deadline"), fiber)
        token?.claimUnsafe()
        token?.held?.failUnsafe()
        const decision = decide(run, error, fiber)
        return Effect.isEffect(decision)
          ? Effect.flatMap(decision, (decided) => follow(decided, fiber))
          : follow(decision, fiber)
      })
    )
  }))
