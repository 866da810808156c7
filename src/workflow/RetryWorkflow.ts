/**
 * Retries of activities inside an Effect workflow: the backoff survives the process.
 *
 * `Activity.retry` takes no schedule, and a policy stepped in the body of a workflow starts over whenever the body is
 * replayed: 40, 80, 40 seconds instead of 40, 80, 160. Here the outcome of a send and the decision about it are stored
 * together, so a replay finds the same delay, randomized once and counted from the failure: a retry is sent when it
 * would have been sent, or, if a crash delayed it past that, immediately.
 *
 * The package's index does not export this module: import `effect-retry/RetryWorkflow`. So only apps that use it bundle
 * `effect/workflow`.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Activity from "effect/workflow/Activity"
import * as DurableClock from "effect/workflow/DurableClock"
import * as Workflow from "effect/workflow/Workflow"
import { WorkflowInstance } from "effect/workflow/WorkflowEngine"
import type { WorkflowEngine } from "effect/workflow/WorkflowEngine"
import { type Compiled, isTimed } from "../engine/compiled.ts"
import { compiledFrom } from "../engine/policy/policy.ts"
import { checksOf, rejectUnknown } from "../internal/checks.ts"
import type { Refused } from "../internal/refused.ts"
import type { Stop } from "../RetryDecision.ts"
import type { RetryPolicy } from "../RetryPolicy.ts"
import { type Past, sending } from "./internal/durableSend.ts"
import { type AnySent, NotSent, type Retried, Sent, stopOf } from "./internal/storedAttempt.ts"

/**
 * The quota or a gate, such as an `AdaptiveRateLimiter`, refused a first send: it was never made, and no policy retries it.
 * It replaces the refusal itself, which has no Schema: include it in the error schema of the workflow.
 *
 * @category errors
 * @since 0.1.0
 */
export { NotSent }

/**
 * How an activity waits for its retries.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * A longer delay suspends the workflow, which then uses no memory. A delay up to this is slept in the process; after
   * a crash, the rest of it. Default 60 seconds, as for `DurableClock.sleep`.
   */
  readonly inMemoryThreshold?: Duration.Input | undefined
}

/** Of all gates, a policy's type only says whether one that it requires may refuse. */
type NotSentIf<Err> = [Err] extends [never] ? never : NotSent

type Any = Schema.Constraint

type Needs<Success extends Any, Error extends Any> =
  | WorkflowEngine
  | WorkflowInstance
  | Success["DecodingServices"]
  | Error["DecodingServices"]

type AnyActivity = Activity.Activity<any, any, any>

/** A function that takes the activity first or last. All else is checked immediately. */
const either =
  (call: (...rest: ReadonlyArray<any>) => (activity: AnyActivity) => unknown) => (...args: ReadonlyArray<any>): any =>
    Effect.isEffect(args[0]) ? call(...args.slice(1))(args[0] as AnyActivity) : call(...args)

/**
 * Retries an activity, inside the body of a workflow.
 *
 * **Details**
 *
 * The decisions are those of `withRetry`: the same delays, stop reasons, tokens and gates. The differences concern what
 * must outlive a process:
 *
 * - Each send is stored with the decision about it. Observers are notified, and randomness is drawn, when the send
 *   ends, and not again in a replay.
 * - A delay counts from the failure, on the wall clock. A delay longer than `inMemoryThreshold` is a `DurableClock`,
 *   which an engine may fire late by its polling interval: in a cluster `entityMessagePollInterval`, 10 seconds by
 *   default.
 * - A deadline counts from the first start of the call, downtime included.
 * - The quota is asked after the delay, just before the retry is sent: nothing that waits holds tokens. So are the
 *   gates.
 * - `Activity.CurrentAttempt` is the number of the attempt, so `Activity.idempotencyKey` can tell attempts apart.
 *
 * If a process dies while a send is in flight, its outcome is unknown: that one send is repeated.
 * In a workflow annotated with `Workflow.SuspendOnFailure`, the last failure suspends it, and `resume` repeats that
 * attempt.
 *
 * Throws `InvalidOption` when the policy or the threshold is invalid.
 *
 * **Gotchas**
 *
 * The classifier sees the error as the activity fails with it, before it is stored: facts need not survive the Schema.
 * The state of a lifted schedule is rebuilt by stepping through the failures so far: its random draws may differ. A
 * lifted schedule must handle its own errors. A gate that the policy does not require may refuse a first send too: then the
 * activity fails with {@link NotSent}, which the type does not show. The name of an activity is its identity: this
 * combinator does not continue an execution that was stored without it.
 *
 * **Example** (A payment that outlives its process)
 *
 * ```ts
 * const policy = Backoff.exponential("1 minute", 2, { cap: "1 hour", jitter: "full" }).pipe(
 *   RetryPolicy.maxAttempts(8),
 *   RetryPolicy.whileRetryable
 * )
 *
 * const layer = Pay.toLayer(({ order }) => RetryWorkflow.retry(charge(order), policy))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const retry: {
  <R2, Err extends { readonly [Refused]: true } = never>(
    policy: RetryPolicy<unknown, Err, R2>,
    options?: Options
  ): <Success extends Any, Error extends Any, R>(
    activity: Activity.Activity<Success, Error, R>
  ) => Effect.Effect<Success["Type"], Error["Type"] | NotSentIf<Err>, R | R2 | Needs<Success, Error>>
  <Success extends Any, Error extends Any, R, R2, Err extends { readonly [Refused]: true } = never>(
    activity: Activity.Activity<Success, Error, R>,
    policy: RetryPolicy<unknown, Err, R2>,
    options?: Options
  ): Effect.Effect<Success["Type"], Error["Type"] | NotSentIf<Err>, R | R2 | Needs<Success, Error>>
} = /* @__PURE__ */ either((policy, options) => retrying("retry", policy, options))

/**
 * Retries an activity, and when retrying stops continues with `orElse`, given the last error and the reason.
 *
 * **Example** (A workflow that says why it gave up)
 *
 * ```ts
 * const layer = Pay.toLayer(({ order }) =>
 *   RetryWorkflow.retryOrElse(charge(order), awsStandard, (error, { reason }) =>
 *     reason === "deadline" ? Effect.succeed("canceled") : Effect.fail(error)))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const retryOrElse: {
  <R2, Error, A3, E3, R3, Err extends { readonly [Refused]: true } = never>(
    policy: RetryPolicy<unknown, Err, R2>,
    orElse: (error: Error | NotSentIf<Err>, stop: Stop) => Effect.Effect<A3, E3, R3>,
    options?: Options
  ): <Success extends Any, Failure extends Any & { readonly Type: Error }, R>(
    activity: Activity.Activity<Success, Failure, R>
  ) => Effect.Effect<Success["Type"] | A3, E3, R | R2 | R3 | Needs<Success, Failure>>
  <Success extends Any, Error extends Any, R, R2, A3, E3, R3, Err extends { readonly [Refused]: true } = never>(
    activity: Activity.Activity<Success, Error, R>,
    policy: RetryPolicy<unknown, Err, R2>,
    orElse: (error: Error["Type"] | NotSentIf<Err>, stop: Stop) => Effect.Effect<A3, E3, R3>,
    options?: Options
  ): Effect.Effect<Success["Type"] | A3, E3, R | R2 | R3 | Needs<Success, Error>>
} = /* @__PURE__ */ either((policy, orElse, options) => retrying("retryOrElse", policy, options, orElse))

type OrElse = (error: any, stop: Stop) => Effect.Effect<unknown, unknown, unknown>

const retrying = (name: string, policy: unknown, options: Options = {}, orElse: OrElse = Effect.fail) => {
  const check = checksOf(`RetryWorkflow.${name}`, options)
  const compiled = compiledFrom(`RetryWorkflow.${name}`, policy)
  if (compiled.services !== undefined) {
    check.reject("policy", policy, "without services of its own: provide them to the workflow")
  }
  const thresholdMillis = check.duration("inMemoryThreshold", options.inMemoryThreshold, 60_000)
  rejectUnknown(check, options)
  return (activity: AnyActivity) => calling(activity, compiled, orElse, thresholdMillis)
}

/** The body of a durable call: a replay runs it again, and finds what is stored. */
const calling = (activity: AnyActivity, compiled: Compiled, orElse: OrElse, thresholdMillis: number) =>
  Effect.gen(function*() {
    const startedAtMillis = isTimed(compiled) ? yield* startOf(activity) : 0
    const past: Past = { compiled, startedAtMillis, failures: [], waiting: [] }
    while (true) {
      const sent: AnySent = yield* send(activity, past)
      if (sent._tag === "Succeeded") return sent.value
      if (sent._tag !== "Retried") return yield* orElse(sent.error, stopOf(sent.stop))
      past.failures.push(sent)
      for (const wake of past.waiting.splice(0)) wake()
      yield* wait(`${activity.name}/retry/${past.failures.length}`, sent, thresholdMillis)
    }
  })

/** When the call began, in whichever process that was. */
const startOf = ({ name }: AnyActivity) =>
  Activity.make({ name: `${name}/start`, success: Schema.Finite, execute: Clock.currentTimeMillis })

/** Sends, once for each attempt: a replay finds the stored outcome. */
const send = (activity: AnyActivity, past: Past): Effect.Effect<any, unknown, any> => {
  const stored = Activity.make({
    name: activity.name,
    success: Sent(activity.successSchema, activity.errorSchema),
    error: Schema.Union([activity.errorSchema, NotSent]),
    execute: Effect.gen(function*() {
      yield* replayed(past, yield* Activity.CurrentAttempt)
      return yield* suspending(yield* sending(activity, past))
    }),
    annotations: activity.annotations
  })
  return Effect.provideService(stored, Activity.CurrentAttempt, past.failures.length + 1)
}

/**
 * Waits until the body has replayed as far as this attempt. After a crash an engine begins an attempt that was in flight with the
 * first activity of its name, which knows of no failure: it would pay nothing, and its failure would count as the first.
 */
const replayed = ({ failures, waiting }: Past, attempt: number): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const look = () => void (failures.length + 1 < attempt ? waiting.push(look) : resume(Effect.void))
    look()
  })

/** A workflow suspended by its failures repeats the last attempt when resumed: nothing of that attempt is stored. */
const suspending = (sent: AnySent): Effect.Effect<AnySent, unknown, WorkflowInstance> =>
  Effect.flatMap(WorkflowInstance, ({ workflow }) => {
    const isOver = sent._tag === "Stopped" || sent._tag === "Refused"
    return isOver && Context.get(workflow.annotations, Workflow.SuspendOnFailure)
      ? Effect.fail(sent.error)
      : Effect.succeed(sent)
  })

/** Waits for the rest of a delay, even in another process than the one it began in. */
const wait = (name: string, { atMillis, delayMillis }: Retried, thresholdMillis: number) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    DurableClock.sleep({
      name,
      duration: Math.max(0, atMillis + delayMillis - now),
      inMemoryThreshold: delayMillis > thresholdMillis ? 0 : thresholdMillis
    }))
