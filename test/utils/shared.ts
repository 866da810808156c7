import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll } from "vitest"

/** What all tests of a suite share, such as a server: it starts before them and ends after them. */
export const shared = <A>(start: Effect.Effect<A, unknown, Scope.Scope>): () => A => {
  const scope = Scope.makeUnsafe()
  let value: A
  beforeAll(async () => {
    value = await Effect.runPromise(Scope.provide(start, scope))
  })
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return () => value
}
