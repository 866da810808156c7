import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Scope from "effect/Scope"

/** The client of Redis, once there is one. */
export type Connection = Effect.Effect<Redis.Redis["Service"], unknown>

/** Closes what belongs to a quota or a cool-down. A connection that cannot be closed, as to a stopped server, holds nobody up. */
export const closeWithin = (
  scope: Scope.Closeable,
  exit: Exit.Exit<unknown, unknown>,
  millis: number
): Effect.Effect<void> =>
  Effect.flatMap(
    Effect.forkDetach(Scope.close(scope, exit), { startImmediately: true, uninterruptible: true }),
    (fiber) => Effect.asVoid(Effect.timeoutOption(Fiber.await(fiber), millis))
  )

/** Builds the layer when it is first asked, and again after each failure. */
export const connecting = <E, R>(redis: Layer.Layer<Redis.Redis, E, R>, context: Context.Context<R>) => {
  let known: Redis.Redis["Service"] | undefined = undefined
  return (scope: Scope.Scope): Connection =>
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
}
