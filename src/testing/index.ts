/**
 * A kit for tests of programs that retry.
 *
 * It needs no test framework: with `it.effect` of `@effect/vitest` it uses the existing `TestClock`, otherwise it
 * provides one. Calls follow a script ({@link outcomes}) or go to a service with limited capacity ({@link service});
 * time moves as far as they sleep ({@link runToEnd}); randomness is fixed or seeded; a {@link timeline} says what
 * happened when, in one line; and {@link sweepQuota} interrupts a call at every step and in every wait, and looks for
 * lost tokens.
 *
 * @since 0.1.0
 */

export { fixedRandom, seededRandom } from "./internal/fixedRandom.ts"
export { ContractBroken, type Law } from "./internal/law.ts"
export {
  after,
  defect,
  failure,
  never,
  NotRetryable,
  notRetryable,
  ok,
  type Outcome,
  outcomes,
  type OutcomesOptions,
  type Scripted,
  Throttled,
  throttled,
  throttledFor,
  TimedOut,
  timeout,
  Transient,
  transient
} from "./internal/scriptedService.ts"
export { type Outage, type Service, service, type ServiceOptions } from "./internal/simulatedService.ts"
export type { SteadyLimiterOptions, TestLimiterOptions } from "./internal/steadyLimiter.ts"
export { type Interruption, sweep, SweepFailure, type SweepOptions, sweepQuota } from "./internal/sweep.ts"
export { type Timeline, timeline, type TimelineEvent, TimelineMismatch } from "./internal/timeline.ts"
export { NotEnded, runToEnd, type TimeOptions } from "./internal/virtualTime.ts"
export * as RetryQuotaStoreSuite from "./RetryQuotaStoreSuite.ts"
export * as SendGateSuite from "./SendGateSuite.ts"
export * as TestLimiter from "./TestLimiter.ts"
export * as TestQuota from "./TestQuota.ts"
export type { QuotaState } from "./TestQuota.ts"
