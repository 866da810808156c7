/**
 * Waiting for a state: polling, with an end, until what was begun has come about.
 *
 * A waiter has a list of acceptors. The first that matches what a poll gave, output or error, says that the wait is over,
 * is in vain, or goes on. The delays are Smithy's, random and growing, or those of any back-off.
 */
import { Duration, Effect, Result } from "effect"
import { Backoff, RetryPolicy, withRetry } from "effect-retry"
import * as GeneralReference from "effect-retry/aws/legacy/GeneralReference"
import * as Waiter from "effect-retry/Waiter"

export interface Table {
  readonly status: "CREATING" | "ACTIVE" | "FAILED"
  readonly cause?: string
}

/** An error that no acceptor knows ends the wait, and an output that none knows does not. */
const tableActive = (log: (line: string) => void) =>
  Waiter.make({
    acceptors: [
      Waiter.output("success", (table: Table) => table.status === "ACTIVE"),
      Waiter.output(
        "failure",
        (table: Table) => table.status === "FAILED",
        (table) => `creation failed: ${table.cause}`
      ),
      Waiter.errorType("retry", "ResourceNotFoundException")
    ],
    maxWait: "5 minutes",
    onAttempt: ({ attempts, delay, state }) =>
      Effect.sync(() => log(`poll ${attempts}: ${state}${delay ? `, next in ${Duration.format(delay)}` : ""}`))
  })

const transient = Backoff.exponential({ base: "100 millis" }).pipe(
  RetryPolicy.whileRetryable,
  RetryPolicy.maxAttempts(3)
)

/** What fails in passing is retried within a poll, so that the waiter does not hear of it. */
export const untilActive = <E>(describe: Effect.Effect<Table, E>, log: (line: string) => void) =>
  describe.pipe(
    withRetry(transient),
    Waiter.waitUntil(tableActive(log)),
    Effect.map(({ attempts }) => `active after ${attempts} polls`),
    Effect.catchTags({
      WaiterFailed: ({ reason }) => Effect.succeed(reason ?? "an error that nobody knows"),
      WaiterTimedOut: ({ last }) => Effect.succeed(last && Result.isSuccess(last) ? "slow" : "nowhere")
    })
  )

export interface Job {
  readonly status: "SUCCESS" | "NOT_READY" | "CANCELLED"
}

/**
 * The loop of the AWS General Reference for the result of an asynchronous operation: it goes on while that is not ready
 * or the service throttles, ends with anything else, and waits 2^n * 100 ms before each of at most 6 polls.
 */
const jobDone = GeneralReference.polling({ status: (job: Job) => job.status, maxPolls: 6 })

export const resultOf = <E>(poll: Effect.Effect<Job, E>) => Waiter.waitUntil(poll, jobDone)
