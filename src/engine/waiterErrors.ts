import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import type * as Result from "effect/Result"

/**
 * The wait is in vain: an acceptor says so, or a poll failed with an error that none knows.
 *
 * @category errors
 * @since 0.1.0
 */
export class WaiterFailed<out A = unknown, out E = unknown> extends Data.TaggedError("WaiterFailed")<{
  /** Whether an acceptor matched it. */
  readonly matched: boolean
  /** What the acceptor says of it; `undefined` when it says nothing. */
  readonly reason: string | undefined
  /** The polls made. */
  readonly attempts: number
  /** Since the wait began. */
  readonly elapsed: Duration.Duration
}> {
  readonly #outcome: Result.Result<A, E>
  constructor(
    { outcome, ...shown }: Pick<WaiterFailed<A, E>, "outcome" | "matched" | "reason" | "attempts" | "elapsed">
  ) {
    super(shown)
    this.#outcome = outcome
  }
  /** The outcome that ended the wait. It may be a whole response: nothing that prints the error shows it. */
  get outcome(): Result.Result<A, E> {
    return this.#outcome
  }
  override get message(): string {
    const why = this.reason ??
      (this.matched ? "an acceptor took the outcome for failure" : "no acceptor knows the error")
    return `waited in vain, ${count(this.attempts)}: ${why}`
  }
}

/**
 * The wait has ended before its state came about: the time to wait is over, or the schedule of the delays has ended.
 *
 * @category errors
 * @since 0.1.0
 */
export class WaiterTimedOut<out A = unknown, out E = unknown> extends Data.TaggedError("WaiterTimedOut")<{
  /** What has ended: the time to wait, or the delays. */
  readonly reason: "time" | "delays"
  /** The time there was. */
  readonly maxWait: Duration.Duration
  /** The polls made, one that was interrupted included. */
  readonly attempts: number
  /** Since the wait began. */
  readonly elapsed: Duration.Duration
}> {
  readonly #last: Result.Result<A, E> | undefined
  constructor({ last, ...shown }: Pick<WaiterTimedOut<A, E>, "last" | "reason" | "maxWait" | "attempts" | "elapsed">) {
    super(shown)
    this.#last = last
  }
  /** The last outcome; `undefined` when no poll came to an end. Nothing that prints the error shows it. */
  get last(): Result.Result<A, E> | undefined {
    return this.#last
  }
  override get message(): string {
    const { attempts, elapsed, maxWait, reason } = this
    const what = reason === "time" ? "still waiting" : "the delays have ended"
    return `${what} after ${Duration.format(elapsed)} of ${Duration.format(maxWait)}, ${count(attempts)}`
  }
}

const count = (attempts: number): string => attempts === 1 ? "1 poll" : `${attempts} polls`
