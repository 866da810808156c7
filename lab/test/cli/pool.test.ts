/** Which jobs run in which thread: threads that only answer, and a job in the thread of the command that ends when the test ends it. */
import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { EventEmitter } from "node:events"
import type { Worker } from "node:worker_threads"
import { turn } from "../../../test/utils/until.ts"
import type { Ended, Job, Message } from "../../src/cli/jobs.ts"
import { inThreads } from "../../src/cli/pool.ts"
import { Threads } from "../../src/cli/Threads.ts"
import { Executor } from "../../src/simulator/executor.ts"
import { made } from "./made.ts"

const result = made({ shares: [100] })
const { scenario: _, ...shown } = result
const isShown: Ended = { kind: "shown", shown }

const progressOf = (attempts: number): Simulator.Progress => ({
  attempts,
  elapsedMillis: 0,
  fraction: 0,
  leftMillis: null
} as Simulator.Progress)

/** A thread that keeps its jobs until the test answers them. */
class Answering extends EventEmitter {
  readonly jobs: Array<Job> = []
  isEnded = false

  constructor() {
    super()
    setImmediate(() => this.emit("message", [0]))
  }

  postMessage([kind, job]: readonly [number, Job?]): void {
    if (kind === 0) this.jobs.push(job!)
    else this.end()
  }

  answer(told: Message): void {
    this.emit("message", [1, told])
  }

  terminate(): Promise<number> {
    this.end()
    return Promise.resolve(1)
  }

  private end(): void {
    if (this.isEnded) return
    this.isEnded = true
    this.emit("exit", 1)
  }
}

const turns = Effect.repeat(turn, { times: 20 })

/** What is needed to run jobs with up to this many threads, after as many attempts in the thread of the command. */
const poolOf = (afterAttempts: number, available = 2) => {
  const started: Array<Answering> = []
  const here: Array<{
    readonly attempts: (count: number) => Effect.Effect<void>
    readonly end: () => void
  }> = []
  const threads = {
    available,
    afterAttempts,
    start: () => {
      const one = new Answering()
      started.push(one)
      return one as unknown as Worker
    }
  }
  const run = (
    options: { readonly onProgress?: ((progress: Simulator.Progress) => Effect.Effect<void>) | undefined }
  ) =>
    Effect.suspend(() => {
      const ended = Deferred.makeUnsafe<Simulator.SimulationResult>()
      here.push({
        attempts: (count) => options.onProgress!(progressOf(count)),
        end: () => Deferred.doneUnsafe(ended, Exit.succeed(result))
      })
      return Deferred.await(ended)
    })
  const executor: Executor = {
    concurrency: 1,
    run: (_, options) => run(options),
    here: (_, options) => run(options)
  }
  const within = <A, E>(
    self: (executor: Executor) => Effect.Effect<A, E>,
    workers: Option.Option<number> = Option.none()
  ): Effect.Effect<A, E> =>
    inThreads(Effect.flatMap(Executor, self), { workers }).pipe(
      Effect.provideService(Threads, threads),
      Effect.provideService(Executor, executor)
    )
  return { here, run, started, within }
}

const job = (executor: Executor, onProgress?: (progress: Simulator.Progress) => Effect.Effect<void>) =>
  executor.run(result.scenario, onProgress === undefined ? {} : { onProgress })

/** As many jobs at the same time. */
const jobs = (count: number) => (executor: Executor) =>
  Effect.all(Array.from({ length: count }, () => job(executor)), { concurrency: count })

describe("a pool of threads", () => {
  it.live("gives one more job at a time than it has threads, since one runs in the thread of the command", () =>
    Effect.gen(function*() {
      const concurrency = (workers: Option.Option<number>, available = 3) =>
        poolOf(0, available).within((executor) => Effect.succeed(executor.concurrency), workers)
      assert.deepStrictEqual(
        yield* Effect.all([
          concurrency(Option.none()),
          concurrency(Option.some(2)),
          concurrency(Option.some(1)),
          concurrency(Option.none(), 1)
        ]),
        [4, 3, 1, 1]
      )
    }))

  it.live("runs jobs one after the other in the thread of the command, until these attempts are made", () =>
    Effect.gen(function*() {
      const { here, started, within } = poolOf(10)
      const fiber = yield* Effect.forkChild(within(jobs(2)))
      yield* turns
      assert.deepStrictEqual([here.length, started.length], [1, 0])
      yield* here[0]!.attempts(4)
      yield* here[0]!.attempts(9)
      yield* turns
      assert.deepStrictEqual([here.length, started.length], [1, 0])
      yield* here[0]!.attempts(10)
      yield* turns
      assert.deepStrictEqual([here.length, started.length], [1, 1])
      started[0]!.answer(isShown)
      here[0]!.end()
      assert.deepStrictEqual(yield* Fiber.join(fiber), [result, result])
      assert.isTrue(started[0]!.isEnded)
    }))

  it.live("runs the next job in the thread of the command when that is free and little is done", () =>
    Effect.gen(function*() {
      const { here, started, within } = poolOf(10)
      const fiber = yield* Effect.forkChild(within(jobs(2)))
      yield* turns
      yield* here[0]!.attempts(9)
      here[0]!.end()
      yield* turns
      assert.deepStrictEqual([here.length, started.length], [2, 0])
      here[1]!.end()
      yield* Fiber.join(fiber)
    }))

  it.live("starts as many threads as there are jobs, but no more than it may, and uses them again", () =>
    Effect.gen(function*() {
      const { started, within } = poolOf(0)
      const fiber = yield* Effect.forkChild(within(jobs(3)))
      yield* turns
      assert.deepStrictEqual(started.map(({ jobs }) => jobs.length), [1, 1])
      started[1]!.answer(isShown)
      yield* turns
      assert.deepStrictEqual(started.map(({ jobs }) => jobs.length), [1, 2])
      for (const one of started) one.answer(isShown)
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(started.map(({ isEnded }) => isEnded), [true, true])
    }))

  it.live("asks a thread for its progress only if someone wants it", () =>
    Effect.gen(function*() {
      const { started, within } = poolOf(0)
      const seen: Array<number> = []
      const onProgress = ({ attempts }: Simulator.Progress) => Effect.sync(() => void seen.push(attempts))
      const fiber = yield* Effect.forkChild(
        within((executor) => Effect.andThen(job(executor, onProgress), job(executor)))
      )
      yield* turns
      started[0]!.answer({ kind: "progress", progress: progressOf(7) })
      yield* turns
      started[0]!.answer(isShown)
      yield* turns
      started[0]!.answer(isShown)
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(started[0]!.jobs.map(({ reportsProgress: tells }) => tells), [true, false])
      assert.deepStrictEqual(seen, [7])
    }))

  it.live("fails as a run in the thread of the command does", () =>
    Effect.gen(function*() {
      const endOf = Effect.fnUntraced(function*(ended: Ended) {
        const { started, within } = poolOf(0)
        const fiber = yield* Effect.forkChild(within((executor) => Effect.exit(job(executor))))
        yield* turns
        started[0]!.answer(ended)
        return yield* Fiber.join(fiber)
      })
      assert.deepStrictEqual(
        yield* endOf({ kind: "stalled", atMillis: 5 }),
        Exit.fail(new Simulator.SimulationStalled({ atMillis: 5 }))
      )
      const defect = yield* endOf({ kind: "defect", problem: "a mistake" })
      assert.isTrue(Exit.isFailure(defect) && Cause.hasDies(defect.cause))
      assert.include(String(Exit.isFailure(defect) && Cause.squash(defect.cause)), "a mistake")
    }))

  it.live("ends a thread whose job is interrupted, and starts another for the next", () =>
    Effect.gen(function*() {
      const { started, within } = poolOf(0)
      const fiber = yield* Effect.forkChild(within((executor) =>
        Effect.gen(function*() {
          const first = yield* Effect.forkChild(job(executor))
          yield* turns
          yield* Fiber.interrupt(first)
          assert.deepStrictEqual(started.map(({ isEnded }) => isEnded), [true])
          return yield* job(executor)
        })
      ))
      yield* turns
      yield* turns
      started[1]!.answer(isShown)
      assert.deepStrictEqual(yield* Fiber.join(fiber), result)
      assert.deepStrictEqual(started.map(({ jobs }) => jobs.length), [1, 1])
    }))

  it.live("keeps in the thread of the command what is to be read while it runs, whatever was done before", () =>
    Effect.gen(function*() {
      const { here, run, started, within } = poolOf(0)
      const fiber = yield* Effect.forkChild(
        within((executor) => Effect.all([executor.here({ run }, {}), executor.here({ run }, {})], { concurrency: 2 }))
      )
      yield* turns
      assert.lengthOf(here, 1)
      here[0]!.end()
      yield* turns
      assert.lengthOf(here, 2)
      here[1]!.end()
      assert.deepStrictEqual(yield* Fiber.join(fiber), [result, result])
      assert.lengthOf(started, 0)
    }))
})
