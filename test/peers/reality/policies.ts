import type * as Simulator from "@effect-retry/lab/Simulator"
import {
  AdaptiveRateLimiter,
  awsAdaptive,
  awsStandard,
  Backoff,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import * as RetryBudget from "effect-retry/RetryBudget"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Retrying } from "./client.ts"

/** A policy as it is on real sends, and as a scenario has it. */
export interface Subject {
  readonly scenario: Simulator.Policy
  /** Made again for each run: what calls share begins as a process does. */
  readonly real: Effect.Effect<Retrying, never, Scope.Scope>
}

const naive = Backoff.fixed(0).pipe(RetryPolicy.maxAttempts(3), RetryPolicy.whileRetryable)
const jitter = Backoff.exponential("100 millis", 2, { cap: "20 seconds", jitter: "full" }).pipe(
  RetryPolicy.maxAttempts(3),
  RetryPolicy.whileRetryable
)

const sharing = <R>(retry: (send: Parameters<Retrying>[0]) => Effect.Effect<void, unknown, R>, layer: Layer.Layer<R>) =>
  Effect.map(Layer.build(layer), (context): Retrying => (send) => Effect.provide(retry(send), context))

/** The standard mode's steps with what each process has of its own. */
const standardWith = (settings: object): Simulator.Policy => ({
  ...JSON.parse(JSON.stringify(awsStandard)),
  ...settings
})

const quota = RetryQuota.layer()
const limited = Layer.merge(quota, ConcurrencyLimiter.layer())
const budgeted = RetryQuota.layerStore(
  RetryBudget.all([RetryBudget.bucket(), RetryBudget.share({ share: 0.1, minPerSecond: 0, window: "10 seconds" })])
)

export const subjects = {
  none: { scenario: "none", real: Effect.succeed((send) => send) },
  "three attempts": { scenario: "naive", real: Effect.succeed((send) => withRetry(send, naive)) },
  "full jitter": { scenario: "jitter", real: Effect.succeed((send) => withRetry(send, jitter)) },
  awsStandard: { scenario: "awsStandard", real: sharing((send) => withRetry(send, awsStandard), quota) },
  awsAdaptive: {
    scenario: "awsAdaptive",
    real: sharing((send) => withRetry(send, awsAdaptive), Layer.merge(quota, AdaptiveRateLimiter.layer()))
  },
  "awsStandard, D": {
    scenario: standardWith({ quota: {}, concurrency: {} }),
    real: sharing((send) => withRetry(send, awsStandard), limited)
  },
  "awsStandard, D, cool-down, budget": {
    scenario: standardWith({
      quota: {},
      concurrency: {},
      coolDown: {},
      budget: { kind: "ratio", share: 0.1, window: "10 seconds" }
    }),
    real: sharing(
      (send) => withRetry(send, awsStandard),
      Layer.mergeAll(budgeted, ConcurrencyLimiter.layer(), CoolDown.layer())
    )
  }
} as const satisfies { readonly [name: string]: Subject }

export type SubjectName = keyof typeof subjects
