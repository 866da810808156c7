import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { Batches } from "./batches.ts"

/** The Redis client, once there is one. */
export type Connection = Effect.Effect<Redis.Redis["Service"], unknown>

/** A way to Redis. */
export interface Connect {
  /** A connection for as long as the scope is open. */
  readonly within: (scope: Scope.Scope) => Connection
  /** Whether there is a connection. */
  readonly isConnected: () => boolean
  /** Those of the connection. */
  readonly turns: Batches
}

/** The turns of existing connections. */
const turnsByClient = new WeakMap<Redis.Redis["Service"], Batches>()

const turnsOf = (redis: Redis.Redis["Service"]): Batches => {
  const turns = turnsByClient.get(redis) ?? new Batches()
  turnsByClient.set(redis, turns)
  return turns
}

/** The existing connection. */
export const connected: Effect.Effect<Connect, never, Redis.Redis> = Redis.Redis.useSync((redis) => ({
  within: () => Effect.succeed(redis),
  isConnected: () => true,
  turns: turnsOf(redis)
}))

/** Builds the layer on first use, and again after each failure. */
export const connecting = <E, R>(redis: Layer.Layer<Redis.Redis, E, R>): Effect.Effect<Connect, never, R> =>
  Effect.contextWith((context: Context.Context<R>) => {
    let service: Redis.Redis["Service"] | undefined = undefined
    const within = (scope: Scope.Scope): Connection =>
      Effect.suspend((): Connection => {
        if (service !== undefined) return Effect.succeed(service)
        return Effect.flatMap(Scope.fork(scope), (own) => {
          const built = Effect.map(Layer.buildWithScope(redis, own), (services) => {
            service = Context.get(services, Redis.Redis)
            return service
          })
          return Effect.onExit(Effect.provideContext(built, context), (exit) =>
            Exit.isFailure(exit) ? Scope.close(own, exit) : Effect.void)
        })
      })
    return Effect.succeed({ within, isConnected: () => service !== undefined, turns: new Batches() })
  })

/** How long a connection of many has to close. */
const closeMillis = 50

/** One connection for many, for as long as the scope of this effect is open. */
export const kept = (connect: Connect): Effect.Effect<Connect, never, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Scope.make()
    const oneByOne = yield* Semaphore.make(1)
    yield* Effect.addFinalizer((exit) => closeWithin(scope, exit, closeMillis))
    return { ...connect, within: () => oneByOne.withPermits(1)(connect.within(scope)) }
  })

/**
 * Closes what belongs to a connection. One that cannot be closed, for example to a stopped server, blocks nothing.
 */
export const closeWithin = (
  scope: Scope.Closeable,
  exit: Exit.Exit<unknown, unknown>,
  millis: number
): Effect.Effect<void> =>
  Effect.flatMap(
    Effect.forkDetach(Scope.close(scope, exit), { startImmediately: true, uninterruptible: true }),
    (fiber) => Effect.asVoid(Effect.timeoutOption(Fiber.await(fiber), millis))
  )
