/** A quota and a limiter for each of many resources: what a call costs, and what is left without calls. */
import { AdaptiveRateLimiter, awsStandard, ResourceLimiters, RetryQuota, withRetry } from "effect-retry"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { setTimeout as wait } from "node:timers/promises"
import { repeated } from "./effects.ts"
import { effectOf } from "./operations.ts"

const callsOf = (count: number): Effect.Effect<unknown, unknown, ResourceLimiters.ResourceLimiters> => {
  const keys = Array.from({ length: count }, (_, n) => `dynamodb:table-${n}`)
  const operation = withRetry(effectOf("success"), awsStandard)
  let next = 0
  return Effect.suspend(() => Effect.provide(operation, ResourceLimiters.quota(keys[next++ % count]!)))
}

const held = ResourceLimiters.ResourceLimiters.use((limiters) => limiters.count)

/** Nanoseconds per call when this many resources are called in turn, by round. No resource is forgotten meanwhile. */
export const timed = (count: number, calls: number): Promise<ReadonlyArray<number>> => {
  const call = callsOf(count)
  const program = Effect.gen(function*() {
    yield* repeated(call, Math.max(count, 20_000))
    const samples: Array<number> = []
    for (let round = 0; round < 5; round++) {
      const before = process.cpuUsage()
      yield* repeated(call, calls / 5)
      const { system, user } = process.cpuUsage(before)
      samples.push((system + user) * 1000 / (calls / 5))
    }
    if ((yield* held) !== count) throw new Error("a resource was forgotten before its time")
    return samples
  })
  return Effect.runPromise(Effect.provide(Effect.orDie(program), ResourceLimiters.layer({ capacity: count })))
}

/** Bytes that a resource keeps which has been called once and failed once, and timers that run for all of them. */
export const kept = async (count: number): Promise<{ readonly bytes: number; readonly timers: number }> => {
  const failure = Effect.andThen(
    AdaptiveRateLimiter.update(false),
    Effect.flatMap(RetryQuota.reserve(5), (taken) => Option.getOrThrow(taken).spend)
  )
  let next = 0
  const call = Effect.suspend(() => Effect.provide(failure, ResourceLimiters.get(`tenant-${next++}`)))
  const heap = () => {
    for (let n = 0; n < 3; n++) gc!()
    return process.memoryUsage().heapUsed
  }
  const program = Effect.gen(function*() {
    yield* repeated(call, 1000)
    const before = heap()
    yield* repeated(call, count)
    const bytes = (heap() - before) / count
    return { bytes, timers: process.getActiveResourcesInfo().filter((name) => name === "Timeout").length }
  })
  return Effect.runPromise(Effect.provide(Effect.orDie(program), ResourceLimiters.layer({ capacity: Infinity })))
}

const idleMillis = 500

/** How many resources are left when none has been called for ten times their lifetime. */
export const leftOf = (count: number): Promise<number> => {
  const program = Effect.gen(function*() {
    yield* repeated(callsOf(count), count)
    let left = yield* held
    for (let waited = 0; left > 0 && waited < 10 * idleMillis; waited += 100) {
      yield* Effect.promise(() => wait(100))
      left = yield* held
    }
    return left
  })
  return Effect.runPromise(
    Effect.provide(Effect.orDie(program), ResourceLimiters.layer({ idleTimeToLive: idleMillis, capacity: count }))
  )
}
