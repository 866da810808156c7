import * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import { CurrentObserver } from "../RetryObserver.ts"
import { isRetryToken, type RetryDecision, type RetryToken } from "../RetryToken.ts"
import type { CallFiber } from "./clock.ts"
import { decide, type Parts, Run, startMillis } from "./decision.ts"

type Stepped = Pull.Pull<[RetryDecision, Duration.Duration], unknown, RetryDecision, unknown>

/** Tells the observer, and gives the schedule its answer. */
const emit = (decision: RetryDecision, fiber: CallFiber): Stepped => {
  const observer = fiber.getRef(CurrentObserver)
  if (isRetryToken(decision)) {
    observer.onRetry?.(decision, fiber)
    return Effect.succeed([decision, decision.delay])
  }
  observer.onStop?.(decision, fiber)
  const done = Cause.done<RetryDecision>(decision)
  return decision.delayMillis === 0 ? done : Effect.andThen(Effect.sleep(decision.delayMillis), done)
}

/** The schedule of a policy: one step that decides, for `Effect.retry` and every combinator of `Schedule`. */
export const toSchedule = (parts: Parts): Schedule.Schedule<RetryDecision, unknown, unknown, unknown> =>
  Schedule.fromStep(Effect.withFiber((caller) => {
    const run = new Run(parts, startMillis(parts, caller))
    let token: RetryToken | undefined
    return Effect.succeed((_now: number, error: unknown): Stepped =>
      Effect.withFiber((fiber) => {
        // A failure after a token that no attempt claimed is still the failure of its retry.
        if (token?.claimUnsafe()) token.held?.spendUnsafe()
        const decision = decide(run, error, fiber)
        if (!Effect.isEffect(decision)) {
          token = isRetryToken(decision) ? decision : undefined
          return emit(decision, fiber)
        }
        return Effect.flatMap(decision, (decided) => {
          token = isRetryToken(decided) ? decided : undefined
          return emit(decided, fiber)
        })
      })
    )
  }))
