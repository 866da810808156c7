import * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import { CurrentObserver } from "../../RetryObserver.ts"
import { isRetryToken, type RetryDecision, type RetryToken } from "../../RetryToken.ts"
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

/** The failures of one call, as its schedule hears of them. */
class Steps {
  private readonly parts: Parts
  private readonly deadlineAtMillis: number
  private run: Run | undefined = undefined
  private token: RetryToken | undefined = undefined

  constructor(parts: Parts, deadlineAtMillis: number) {
    this.parts = parts
    this.deadlineAtMillis = deadlineAtMillis
  }

  next(error: unknown, fiber: CallFiber): Stepped {
    const { token } = this
    const run = this.run ??= new Run(this.parts, this.deadlineAtMillis)
    if (token?.expired) return this.follow(run.stop("deadline"), fiber)
    token?.claimUnsafe()
    token?.held?.failUnsafe()
    const decision = decide(run, error, fiber)
    return Effect.isEffect(decision)
      ? Effect.flatMap(decision, (decided) => this.follow(decided, fiber))
      : this.follow(decision, fiber)
  }

  private follow(decision: RetryDecision, fiber: CallFiber): Stepped {
    this.token = isRetryToken(decision) ? decision : undefined
    return emit(decision, fiber)
  }
}

/** The schedule of a policy: one step that decides, for `Effect.retry` and every combinator of `Schedule`. */
export const toSchedule = (parts: Parts): Schedule.Schedule<RetryDecision, unknown, unknown, unknown> =>
  Schedule.fromStep(Effect.withFiber((caller) => {
    const steps = new Steps(parts, deadlineAt(parts, caller))
    lapse(caller)
    return Effect.succeed((_now: number, error: unknown): Stepped =>
      Effect.withFiber((fiber) => steps.next(error, fiber))
    )
  }))
