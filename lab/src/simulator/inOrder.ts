import * as Effect from "effect/Effect"
import * as Result from "effect/Result"

/**
 * Runs an effect for each value, several at the same time, with the outcome of running them one after the other: the results in
 * order, or the failure of the first value that has one, even if another fails earlier.
 */
export const inOrder = <A, B, E, R>(
  values: ReadonlyArray<A>,
  run: (value: A) => Effect.Effect<B, E, R>,
  concurrency: number
): Effect.Effect<Array<B>, E, R> =>
  Effect.suspend(() => {
    let failedAt = Infinity
    const one = (value: A, index: number): Effect.Effect<Result.Result<B, E> | undefined, never, R> =>
      index > failedAt ? Effect.succeed(undefined) : Effect.map(Effect.result(run(value)), (result) => {
        if (Result.isFailure(result)) failedAt = Math.min(failedAt, index)
        return result
      })
    return Effect.flatMap(Effect.forEach(values, one, { concurrency }), (results) => {
      const found: Array<B> = []
      for (const result of results) {
        if (result === undefined) break
        if (Result.isFailure(result)) return Effect.fail(result.failure)
        found.push(result.success)
      }
      return Effect.succeed(found)
    })
  })
