/**
 * Your own loop: a worker that decides about jobs, without a fiber for
 * each.
 *
 * A worker has a table of jobs, and checks it from time to time. It
 * sends what is due, and learns the outcome later. A policy decides
 * what happens to a failed job, through plain functions: `RetryDriver`.
 */
import { Duration, Effect } from "effect"
import { Backoff, RetryPolicy } from "effect-retry"
import * as RetryDriver from "effect-retry/RetryDriver"
import { main, print } from "./support/program.ts"

export interface Job {
  readonly name: string
  readonly call: RetryDriver.Call
  /** When it is next sent, in milliseconds. */
  dueMillis: number
}

export class Worker {
  readonly jobs = new Set<Job>()
  private readonly driver: RetryDriver.Driver

  constructor(driver: RetryDriver.Driver) {
    this.driver = driver
  }

  add(name: string, nowMillis: number): void {
    this.jobs.add({
      name,
      call: this.driver.call(),
      dueMillis: nowMillis
    })
  }

  /**
   * The jobs to send now. There is no gate in the context of this
   * driver, so nothing has to wait.
   */
  due(nowMillis: number): ReadonlyArray<Job> {
    return [...this.jobs].filter((job) =>
      job.dueMillis <= nowMillis && job.call.enter() === undefined
    )
  }

  /** Records that a job was sent, and how it ended. */
  sent(
    job: Job,
    outcome: { readonly error?: unknown },
    nowMillis: number
  ): string {
    job.call.markSent()
    if (!("error" in outcome)) {
      job.call.succeeded()
      this.jobs.delete(job)
      return "done"
    }
    const decision = job.call.failed(outcome.error)
    if (!("_tag" in decision) || decision._tag === "Stop") {
      this.jobs.delete(job)
      return "_tag" in decision
        ? `given up: ${decision.reason}`
        : "given up"
    }
    job.dueMillis = nowMillis + Duration.toMillis(decision.delay)
    return `again at ${job.dueMillis} ms`
  }
}

/**
 * A worker with one job, which fails whenever it is sent. It looks
 * every 50 milliseconds.
 */
const rehearsal = Effect.gen(function*() {
  const policy = Backoff.fixed("100 millis").pipe(
    RetryPolicy.maxAttempts(3)
  )
  const worker = new Worker(yield* RetryDriver.make(policy))
  worker.add("mail", 0)
  for (let millis = 0; worker.jobs.size > 0; millis += 50) {
    for (const job of worker.due(millis)) {
      yield* print(
        `${millis} ms: ${job.name} failed, ${
          worker.sent(job, { error: new Error("down") }, millis)
        }`
      )
    }
  }
})

main(import.meta.url, rehearsal)
