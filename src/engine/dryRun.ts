import * as Context from "effect/Context"
import * as Random from "effect/Random"
import { CurrentClassifier, type RetryClassifier } from "../RetryClassifier.ts"
import type { StopReason } from "../RetryDecision.ts"
import type { Compiled } from "./compiled.ts"
import { Decider } from "./decider.ts"
import { CallEnvironment } from "./environment.ts"
import { Run } from "./run.ts"

export type { StopReason }

/** Surroundings without a fiber: all random draws are the same, and time moves by the delays alone. */
class DryEnvironment extends CallEnvironment {
  elapsedMillis = 0

  constructor(draw: number, classifier: RetryClassifier | undefined) {
    const context = Context.make(Random.Random, { nextDoubleUnsafe: () => draw, nextIntUnsafe: () => Math.floor(draw) })
    super(classifier === undefined ? context : Context.add(context, CurrentClassifier, classifier), undefined, [])
  }

  override get nowMillis(): number {
    return this.elapsedMillis
  }
}

/** A run whose quota has all tokens that it is asked for, and loses none. */
class DryRun extends Run {
  override pays(): boolean {
    return true
  }
}

/** A call whose attempts all fail like this. */
export interface FailingCall {
  readonly compiled: Compiled
  readonly error: unknown
  /** How many have failed. */
  readonly attempt: number
  readonly classifier: RetryClassifier | undefined
}

/** A retry, why there is none, or `undefined` if that is certain only when it runs. */
export type Outcome = { readonly delayMillis: number; readonly cost: number } | StopReason | undefined

/** What the policy decides about the last of the attempts if all random draws are the same, without running anything. */
export const decidedAt = ({ attempt, classifier, compiled, error }: FailingCall, draw: number): Outcome => {
  if (compiled.live !== undefined) return undefined
  const environment = new DryEnvironment(draw, classifier)
  const run = new DryRun(environment)
  const decider = new Decider(compiled, run)
  for (;;) {
    run.record(error)
    const goes = decider.answers()
    if (typeof goes !== "boolean") return undefined
    if (!goes) return decider.reason
    const { cost, delayMillis } = decider
    if (run.attempt === attempt) return { cost, delayMillis }
    environment.elapsedMillis += delayMillis
  }
}
