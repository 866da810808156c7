import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Scope from "effect/Scope"

/** The Redis client, once there is one. */
export type Connection = Effect.Effect<Redis.Redis["Service"], unknown>

/** A connection for as long as the scope is open. */
export type Connect = (scope: Scope.Scope) => Connection

/** The existing connection. */
export const connected: Effect.Effect<Connect, never, Redis.Redis> = Redis.Redis.useSync((redis) => () =>
  Effect.succeed(redis)
)

/** Builds the layer on first use, and again after each failure. */
export const connecting = <E, R>(redis: Layer.Layer<Redis.Redis, E, R>): Effect.Effect<Connect, never, R> =>
  Effect.contextWith((context: Context.Context<R>) => {
    let known: Redis.Redis["Service"] | undefined = undefined
    return Effect.succeed((scope: Scope.Scope): Connection =>
      Effect.suspend((): Connection => {
        if (known !== undefined) return Effect.succeed(known)
        return Effect.flatMap(Scope.fork(scope), (own) => {
          const built = Effect.map(Layer.buildWithScope(redis, own), (services) => {
            known = Context.get(services, Redis.Redis)
            return known
          })
          return Effect.onExit(Effect.provideContext(built, context), (exit) =>
            Exit.isFailure(exit) ? Scope.close(own, exit) : Effect.void)
        })
      })
    )
  })
