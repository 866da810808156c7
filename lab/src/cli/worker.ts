/** The program of a thread: it does one job after the other. */

import * as NodeWorkerRunner from "@effect/platform-node/NodeWorkerRunner"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { WorkerRunnerPlatform } from "effect/workers/WorkerRunner"
import { type Progress, run, type SimulationStalled } from "../Simulator.ts"
import type { Ended, Job, Message } from "./jobs.ts"

const betweenMillis = 50

/** Reports progress, not too often. */
const seldom = (send: (progress: Progress) => Effect.Effect<void>) => {
  let nextMillis = 0
  return (progress: Progress): Effect.Effect<void> => {
    if (progress.elapsedMillis < nextMillis) return Effect.void
    nextMillis = progress.elapsedMillis + betweenMillis
    return send(progress)
  }
}

const done = (job: Job, send: (message: Message) => Effect.Effect<void>): Effect.Effect<Ended, SimulationStalled> => {
  const onProgress = job.reportsProgress ? seldom((progress) => send({ kind: "progress", progress })) : undefined
  return Effect.map(run(job.scenario, { onProgress }), ({ scenario: _, ...shown }) => ({ kind: "shown", shown }))
}

const endedBadly = (cause: Cause.Cause<SimulationStalled>): Ended =>
  Option.match(Cause.findErrorOption(cause), {
    onNone: () => ({ kind: "defect", problem: Cause.pretty(cause) }),
    onSome: ({ atMillis }) => ({ kind: "stalled", atMillis })
  })

const work = Effect.gen(function*() {
  const platform = yield* WorkerRunnerPlatform
  const runner = yield* platform.start<Message, Job>()
  const send = (message: Message) => runner.send(0, message)
  yield* runner.run((_, job) =>
    Effect.flatMap(Effect.catchCause(done(job, send), (cause) => Effect.succeed(endedBadly(cause))), send)
  )
})

Effect.runFork(Effect.provide(work, NodeWorkerRunner.layer))
