import { type awsStandard, withRetry } from "effect-retry"
import * as Effect from "effect/Effect"

type Standard = typeof awsStandard

/** The two ways to run a policy. */
export const drivers = [
  {
    form: "Effect.retry",
    run: <A, E, R>(self: Effect.Effect<A, E, R>, policy: Standard) => Effect.retry(self, policy)
  },
  { form: "withRetry", run: <A, E, R>(self: Effect.Effect<A, E, R>, policy: Standard) => withRetry(self, policy) }
] as const
