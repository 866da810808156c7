import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { Spawner, WorkerPlatform } from "effect/workers/Worker"
import type { WorkerError } from "effect/workers/WorkerError"
import type { Worker } from "node:worker_threads"
import type { Progress } from "../Simulator.ts"
import type { Ended, Job, Message } from "./jobs.ts"

/** A thread ended unexpectedly: it could not start, or ran out of memory. A defect of the job. */
export class ThreadFailed extends Data.TaggedError("ThreadFailed")<{ readonly message: string }> {}

const failed = ({ message, reason: { cause } }: WorkerError): ThreadFailed => {
  const why = cause instanceof Error ? cause.message : message
  return new ThreadFailed({ message: `a worker thread ended: ${why}: --workers 1 runs without threads` })
}

const dying = Effect.catch((error: WorkerError) => Effect.die(failed(error)))

/** A thread that does one job at a time. */
export interface Thread {
  readonly ask: (job: Job, onProgress: (progress: Progress) => Effect.Effect<void>) => Effect.Effect<Ended>
  /** Ends it immediately, even during a job. */
  readonly end: Effect.Effect<void>
}

/** Starts a thread. A job can be sent immediately: it waits until the thread is ready. */
export const startThread = Effect.fnUntraced(function*(start: () => Worker) {
  const platform = yield* WorkerPlatform
  const scope = yield* Scope.make()
  let started: Worker | undefined
  let receive: (message: Message) => Effect.Effect<void> = () => Effect.void
  const worker = yield* Effect.provideService(platform.spawn<Message, Job>(0), Spawner, () => (started = start()))
  const listening = yield* Effect.forkIn(worker.run((message) => receive(message)), scope)
  // Runs before the other finalizers, which would wait for the job to end.
  yield* Scope.addFinalizer(scope, Effect.sync(() => void started?.terminate()))
  const thread: Thread = {
    ask: (job, onProgress) =>
      Effect.suspend(() => {
        const ended = Deferred.makeUnsafe<Ended>()
        receive = (message) =>
          message.kind === "progress" ? onProgress(message.progress) : Deferred.succeed(ended, message)
        const answer = Effect.raceFirst(Deferred.await(ended), Fiber.join(listening))
        return dying(Effect.andThen(worker.send(job), answer))
      }),
    end: Scope.close(scope, Exit.void)
  }
  return thread
}, dying)
