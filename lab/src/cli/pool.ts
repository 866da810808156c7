import * as NodeWorker from "@effect/platform-node/NodeWorker"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Worker } from "node:worker_threads"
import { type Progress, type Scenario, type SimulationResult, SimulationStalled } from "../Simulator.ts"
import { Executor } from "../simulator/executor.ts"
import type { Ended, Job } from "./jobs.ts"
import { startThread, type Thread } from "./thread.ts"
import { Threads } from "./Threads.ts"

type OnProgress = (progress: Progress) => Effect.Effect<void>

/** Up to `most` threads, started when needed. Interrupting a job ends its thread. */
const threadsIn = Effect.fnUntraced(function*(start: () => Worker, most: number) {
  const idle: Array<Thread> = []
  const free = Semaphore.makeUnsafe(most)
  yield* Effect.addFinalizer(() => Effect.forEach(idle, ({ end }) => end, { concurrency: "unbounded", discard: true }))
  const take = Effect.suspend(() => {
    const thread = idle.pop()
    return thread === undefined ? Effect.provide(startThread(start), NodeWorker.layerPlatform) : Effect.succeed(thread)
  })
  return (job: Job, onProgress: OnProgress): Effect.Effect<Ended> =>
    free.withPermit(
      Effect.acquireUseRelease(
        take,
        (thread) => thread.ask(job, onProgress),
        (thread, exit) => Exit.isSuccess(exit) ? Effect.sync(() => void idle.push(thread)) : thread.end
      )
    )
})

/** Keeps jobs in the thread of the command, one at a time, until they have made this many attempts. */
const sharing = (most: number) => {
  let attempts = 0
  let isBusy = false
  let changed = Deferred.makeUnsafe<void>()
  const change = () => {
    const before = changed
    changed = Deferred.makeUnsafe()
    Deferred.doneUnsafe(before, Exit.void)
  }
  const isSpent = () => attempts >= most
  /** Runs the job in one of two places. Without `there`, it waits until this thread is free. */
  const either = <A, E>(here: Effect.Effect<A, E>, there?: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        const isMine = !isBusy && (there === undefined || !isSpent())
        isBusy ||= isMine
        return isMine
      }),
      (isMine) => {
        if (isMine) return here
        return there !== undefined && isSpent()
          ? there
          : Effect.andThen(Deferred.await(changed), either(here, there))
      },
      (isMine) =>
        Effect.sync(() => {
          if (!isMine) return
          isBusy = false
          change()
        })
    )
  const count = (more: number): void => {
    const wasSpent = isSpent()
    attempts += more
    if (isSpent() && !wasSpent) change()
  }
  return { either, count }
}

const silent: OnProgress = () => Effect.void

/** The result of a thread's run, with the errors of a run in this thread. */
const resultOf = (scenario: Scenario, ended: Ended): Effect.Effect<SimulationResult, SimulationStalled> => {
  switch (ended.kind) {
    case "shown":
      return Effect.succeed({ scenario, ...ended.shown })
    case "stalled":
      return Effect.fail(new SimulationStalled({ atMillis: ended.atMillis }))
    case "defect":
      return Effect.die(new Error(ended.problem))
  }
}

type InThread = Effect.Success<ReturnType<typeof threadsIn>>

/** Runs jobs with `here` until they have made `afterAttempts` attempts, then in other threads as well. */
const executorOver = (here: Executor, threads: number, afterAttempts: number, inThread: InThread) => {
  const { count, either } = sharing(afterAttempts)
  const counting = (simulation: Parameters<Executor["here"]>[0], onProgress: OnProgress) => {
    let counted = 0
    return simulation.run({
      onProgress: (progress) => {
        count(progress.attempts - counted)
        counted = progress.attempts
        return onProgress(progress)
      }
    })
  }
  const executor: Executor = {
    // One more can still run in this thread.
    concurrency: threads + 1,
    run: (scenario, { onProgress = silent }) =>
      either(
        counting({ run: (options) => here.run(scenario, options) }, onProgress),
        Effect.flatMap(
          inThread({ scenario, reportsProgress: onProgress !== silent }, onProgress),
          (ended) => resultOf(scenario, ended)
        )
      ),
    here: (simulation, { onProgress = silent }) => either(counting(simulation, onProgress))
  }
  return executor
}

/** Runs a command with `--workers` threads. */
export const inThreads = <A, E, R>(
  self: Effect.Effect<A, E, R>,
  { workers }: { readonly workers: Option.Option<number> }
): Effect.Effect<A, E, Exclude<R, Scope.Scope>> =>
  Effect.scoped(Effect.gen(function*() {
    const threads = yield* Threads
    const most = Option.getOrElse(workers, () => threads?.available ?? 1)
    if (threads === undefined || most < 2) return yield* self
    const inThread = yield* threadsIn(threads.start, most)
    const executor = executorOver(yield* Executor, most, threads.afterAttempts, inThread)
    return yield* Effect.provideService(self, Executor, executor)
  }))
