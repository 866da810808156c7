/**
 * A loop of your own: a worker that decides about jobs, with no fiber for each.
 *
 * A worker has a table of jobs, and looks at it now and then. It sends what is due, and hears of the outcome later. What
 * becomes of a job that failed is a question to a policy, answered by plain functions: `RetryDriver`.
 */
import { Duration } from "effect"
import type * as RetryDriver from "effect-retry/RetryDriver"

export interface Job {
  readonly name: string
  readonly call: RetryDriver.Call
  /** When it is sent next, in milliseconds. */
  dueMillis: number
}

export class Worker {
  readonly jobs = new Set<Job>()
  private readonly driver: RetryDriver.Driver

  constructor(driver: RetryDriver.Driver) {
    this.driver = driver
  }

  add(name: string, nowMillis: number): void {
    this.jobs.add({ name, call: this.driver.call(), dueMillis: nowMillis })
  }

  /** What is sent now. There is no gate in the context of this driver, so nothing has to wait. */
  due(nowMillis: number): ReadonlyArray<Job> {
    return [...this.jobs].filter((job) => job.dueMillis <= nowMillis && job.call.enter() === undefined)
  }

  /** A job is sent, and this is how it ended. */
  sent(job: Job, outcome: { readonly error?: unknown }, nowMillis: number): string {
    job.call.leave()
    if (!("error" in outcome)) {
      job.call.succeeded()
      this.jobs.delete(job)
      return "done"
    }
    const decision = job.call.failed(outcome.error)
    if (!("_tag" in decision) || decision._tag === "Stop") {
      this.jobs.delete(job)
      return "_tag" in decision ? `given up: ${decision.reason}` : "given up"
    }
    job.dueMillis = nowMillis + Duration.toMillis(decision.delay)
    return `again at ${job.dueMillis} ms`
  }
}
