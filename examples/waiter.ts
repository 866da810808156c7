/**
 * Waiting for a state: polling, with a limit, until something you
 * started is done.
 *
 * A waiter has a list of acceptors. The first that matches the output
 * or error of a poll decides: the wait is over, has failed, or
 * continues. The delays are Smithy's, random and growing, or those of
 * any backoff.
 */
import { Duration, Effect, Result } from "effect"
import { Backoff, RetryPolicy, withRetry } from "effect-retry"
import * as GeneralReference from "effect-retry/aws/legacy/GeneralReference"
import * as Waiter from "effect-retry/Waiter"
import { inVirtualTime, main, print } from "./support/program.ts"

export interface Table {
  readonly status: "CREATING" | "ACTIVE" | "FAILED"
  readonly cause?: string
}

/**
 * An error that no acceptor matches ends the wait, an output that none
 * matches does not.
 */
const tableActive = (log: (line: string) => void) =>
  Waiter.make({
    acceptors: [
      Waiter.output("success", (table: Table) =>
        table.status === "ACTIVE"),
      Waiter.output(
        "failure",
        (table: Table) =>
          table.status === "FAILED",
        (table) => `creation failed: ${table.cause}`
      ),
      Waiter.errorType("retry", "ResourceNotFoundException")
    ],
    maxWait: "5 minutes",
    onAttempt: ({ attempts, delay, state }) =>
      Effect.sync(() =>
        log(
          `poll ${attempts}: ${state}${
            delay ? `, next in ${Duration.format(delay)}` : ""
          }`
        )
      )
  })

const transient = Backoff.exponential("100 millis").pipe(
  RetryPolicy.whileRetryable,
  RetryPolicy.maxAttempts(3)
)

/**
 * Transient failures are retried within a poll, so the waiter does not
 * see them.
 */
export const untilActive = <E>(
  describe: Effect.Effect<Table, E>,
  log: (line: string) => void
) =>
  describe.pipe(
    withRetry(transient),
    Waiter.waitUntil(tableActive(log)),
    Effect.map(({ attempts }) => `active after ${attempts} polls`),
    Effect.catchTags({
      WaiterFailed: ({ reason }) =>
        Effect.succeed(reason ?? "an unknown error"),
      WaiterTimedOut: ({ last }) =>
        Effect.succeed(
          last && Result.isSuccess(last) ? "slow" : "nowhere"
        )
    })
  )

export interface Job {
  readonly status: "SUCCESS" | "NOT_READY" | "CANCELLED"
}

/**
 * The loop of the AWS General Reference for the result of an
 * asynchronous operation: it continues while the result is not ready or
 * the service throttles, ends with anything else, and waits 2^n * 100
 * ms before each of at most 6 polls.
 */
const jobDone = GeneralReference.polling({
  status: (job: Job) => job.status,
  maxPolls: 6
})

export const resultOf = <E>(poll: Effect.Effect<Job, E>) =>
  Waiter.waitUntil(poll, jobDone)

const giving = <A>(...outputs: ReadonlyArray<A>) => {
  let polls = 0
  return Effect.sync(() =>
    outputs[Math.min(polls++, outputs.length - 1)]!
  )
}

const created = giving<Table>({ status: "CREATING" }, {
  status: "CREATING"
}, { status: "ACTIVE" })
const failed = giving<Table>({ status: "CREATING" }, {
  status: "FAILED",
  cause: "no space"
})

main(
  import.meta.url,
  Effect.flatMap(
    inVirtualTime(untilActive(created, console.log)),
    print
  ),
  Effect.flatMap(inVirtualTime(untilActive(failed, console.log)), print)
)
