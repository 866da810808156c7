import * as ClusterWorkflowEngine from "effect/cluster/ClusterWorkflowEngine"
import * as MessageStorage from "effect/cluster/MessageStorage"
import * as RunnerHealth from "effect/cluster/RunnerHealth"
import * as Runners from "effect/cluster/Runners"
import * as RunnerStorage from "effect/cluster/RunnerStorage"
import * as Sharding from "effect/cluster/Sharding"
import * as ShardingConfig from "effect/cluster/ShardingConfig"
import * as Snowflake from "effect/cluster/Snowflake"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import type { WorkflowEngine } from "effect/workflow/WorkflowEngine"

/** The messages of a cluster: they outlive its processes. */
export const database: Effect.Effect<MessageStorage.Encoded> = MessageStorage.MemoryDriver.make.pipe(
  Effect.map(({ encoded }) => encoded),
  Effect.provide(Snowflake.layerGenerator)
)

/** At which operation of the database a process dies, and whether the database still carries that one out. */
export interface Death {
  readonly operation: number
  readonly when: "before" | "after"
}

/** A process with an engine. Once it is dead, none of its operations comes back, nor does what asks `alive`. */
export interface Process {
  operations: number
  isDead: boolean
  readonly alive: Effect.Effect<void>
}

export const newProcess = (): Process => {
  const self: Process = {
    operations: 0,
    isDead: false,
    alive: Effect.suspend(() => self.isDead ? Effect.never : Effect.void)
  }
  return self
}

/** The database as a process sees it that dies. */
const seenBy = (
  process: Process,
  database: MessageStorage.Encoded,
  death: Death | undefined
): MessageStorage.Encoded => {
  const mortal = <A, E, R>(operation: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => {
      if (process.isDead) return Effect.never
      process.isDead = ++process.operations === death?.operation
      if (!process.isDead) return Effect.tap(operation, process.alive)
      return death?.when === "after" ? Effect.andThen(operation, Effect.never) : Effect.never
    })
  // Polls are many, and find nothing.
  const { unprocessedMessages, withTransaction, ...operations } = database
  const wrapped = Object.entries(operations).map(([name, operation]) => [
    name,
    (...args: ReadonlyArray<never>) => mortal((operation as (...args: ReadonlyArray<never>) => any)(...args))
  ])
  const polling: typeof unprocessedMessages = (...args) => Effect.andThen(process.alive, unprocessedMessages(...args))
  return { ...Object.fromEntries(wrapped), unprocessedMessages: polling, withTransaction }
}

/** The engine of a process, on a database that others may have used before. */
export const engine = (
  process: Process,
  database: MessageStorage.Encoded,
  death?: Death,
  pollMillis = 5
): Layer.Layer<WorkflowEngine> =>
  ClusterWorkflowEngine.layer.pipe(
    Layer.provideMerge(Sharding.layer),
    Layer.provideMerge(Runners.layerNoop),
    Layer.provideMerge(
      Layer.effect(MessageStorage.MessageStorage, MessageStorage.makeEncoded(seenBy(process, database, death)))
    ),
    Layer.provide([RunnerStorage.layerMemory, RunnerHealth.layerNoop, Snowflake.layerGenerator]),
    Layer.provide(ShardingConfig.layer({ entityMessagePollInterval: pollMillis, shardsPerGroup: 2 }))
  )

/** Starts a process: it is never closed, for what is killed closes nothing. */
export const start = <E, R>(layer: Layer.Layer<WorkflowEngine, E, R>) =>
  Effect.flatMap(Scope.make(), (scope) => Layer.buildWithScope(layer, scope))

/** Moves time on until something is so. */
export const timeUntil = (is: () => boolean, stepMillis = 1): Effect.Effect<void> =>
  Effect.gen(function*() {
    for (let step = 0; !is(); step++) {
      if (step === 50_000) return yield* Effect.die("it never came")
      yield* TestClock.adjust(stepMillis)
    }
  })
