/**
 * Effect's execution plan: each provider retries on its own, then the
 * plan moves on to the next.
 *
 * Inside its step a provider is retried from its own quota; only then
 * does the plan leave it. The quota must outlive the step, which builds
 * its layer again for every call: it comes from `ResourceLimiters`, by
 * key.
 */
import { Context, Effect, ExecutionPlan, Layer } from "effect"
import {
  Backoff,
  ResourceLimiters,
  RetryPolicy,
  withRetry
} from "effect-retry"
import { down, main, show } from "./support/program.ts"

/** Fails with the errors of its client. */
export class Mail extends Context.Service<Mail, {
  readonly send: (text: string) => Effect.Effect<string, unknown>
}>()("app/Mail") {}

export type Send = (text: string) => Effect.Effect<string, unknown>

const policy = Backoff.exponential("100 millis").pipe(
  RetryPolicy.maxAttempts(3),
  RetryPolicy.whileRetryable,
  RetryPolicy.quotaGated({ cost: 5 })
)

/** A mail provider, with a quota under its own name. */
const provider = (name: string, send: Send) =>
  Layer.effect(
    Mail,
    Effect.map(ResourceLimiters.ResourceLimiters, (limiters) => ({
      send: (text) =>
        send(text).pipe(
          withRetry(policy),
          Effect.provide(ResourceLimiters.quota(`mail:${name}`)),
          Effect.provideService(
            ResourceLimiters.ResourceLimiters,
            limiters
          )
        )
    }))
  )

/** The first provider with its retries, then the second. */
export const planOf = (first: Send, second: Send) =>
  ExecutionPlan.make(
    { provide: provider("first", first) },
    { provide: provider("second", second) }
  )

const sendMail = Mail.use((mail) => mail.send("hello"))

export const send = (first: Send, second: Send) =>
  sendMail.pipe(Effect.withExecutionPlan(planOf(first, second)))

/**
 * A retry around the plan as well: each of its attempts starts with the
 * first provider again, and they all multiply.
 */
export const multiplied = (first: Send, second: Send) =>
  send(first, second).pipe(
    withRetry(policy),
    Effect.provide(ResourceLimiters.quota("mail"))
  )

/**
 * The policy as the schedule of the steps: one quota for both, and the
 * schedule of a step is asked about the last error of the previous
 * step, so an error that is not retried never reaches the second
 * provider.
 */
export const scheduled = (first: Send, second: Send) => {
  const plan = ExecutionPlan.make(
    { provide: Layer.succeed(Mail, { send: first }), schedule: policy },
    { provide: Layer.succeed(Mail, { send: second }), schedule: policy }
  )
  return sendMail.pipe(
    Effect.withExecutionPlan(plan),
    Effect.provide(ResourceLimiters.quota("mail"))
  )
}

/**
 * Provided once, where the program runs. Room for two retries of each
 * provider.
 */
export const layer = ResourceLimiters.layer({
  quota: { capacity: 10 },
  idleTimeToLive: "1 hour"
})

const answering: Send = () =>
  Effect.succeed("sent by the second provider")

main(
  import.meta.url,
  show(
    "the first provider is down",
    down,
    (failing) => send(() => failing, answering)
  ).pipe(Effect.provide(layer)),
  show(
    "both are down",
    down,
    (failing) => send(() => failing, () => failing)
  ).pipe(Effect.provide(layer)),
  show(
    "a retry around the plan, too",
    down,
    (failing) => multiplied(() => failing, () => failing)
  ).pipe(
    Effect.provide(layer)
  )
)
