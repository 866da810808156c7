import * as Context from "effect/Context"
import type { Worker } from "node:worker_threads"

/**
 * A thread costs 0.65 s of CPU time before it is as fast as one that has compiled its code, which makes this many attempts in
 * that time. Measured with the scenario `outage` and Node 20: 0.17 s to start, and 0.48 s more for the first 212,000 attempts
 * than for later ones.
 */
export const worthAThread = 300_000

/** The threads that runs are spread over. Default none but the thread of the command. */
export const Threads = Context.Reference<
  {
    /** How many run at the same time. */
    readonly available: number
    /** How many attempts are made in the thread of the command before others start. */
    readonly afterAttempts: number
    /** Starts a thread that runs `worker.ts`. */
    readonly start: () => Worker
  } | undefined
>("@effect-retry/lab/cli/Threads", { defaultValue: () => undefined })
