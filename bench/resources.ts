/** A quota and a limiter for each of many resources: what a call costs, and what is left when nobody calls. */
import { awsStandard, ResourceLimiters, withRetry } from "effect-retry"
import * as Effect from "effect/Effect"
import * as RcMap from "effect/RcMap"
import { setTimeout as wait } from "node:timers/promises"
import { repeated } from "./effects.ts"
import { effectOf } from "./operations.ts"

/** What calls of many resources took. */
export interface Resources {
  readonly resources: number
  /** By round. */
  readonly nanosPerCall: ReadonlyArray<number>
  /** Resources held right after the calls. */
  readonly held: number
  /** Resources held when their time was up. */
  readonly left: number
}

/** Long enough that no resource is forgotten while calls are timed. */
const idleMillis = 5000

/** Calls the resources in turn, each some times. */
export const resources = (count: number, calls: number): Promise<Resources> => {
  const keys = Array.from({ length: count }, (_, n) => `dynamodb:table-${n}`)
  const operation = withRetry(effectOf("success"), awsStandard)
  let next = 0
  const call = Effect.suspend(() => Effect.provide(operation, ResourceLimiters.quota(keys[next++ % count]!)))
  const program = Effect.gen(function*() {
    const { rcMap } = yield* ResourceLimiters.ResourceLimiters
    const size = Effect.map(RcMap.keys(rcMap), (held) => Array.from(held).length)
    yield* repeated(call, Math.max(count, 2000))
    const samples: Array<number> = []
    for (let round = 0; round < 5; round++) {
      const before = process.cpuUsage()
      yield* repeated(call, calls / 5)
      const { system, user } = process.cpuUsage(before)
      samples.push((system + user) * 1000 / (calls / 5))
    }
    const held = yield* size
    let left = held
    for (let waited = 0; left > 0 && waited < 4 * idleMillis; waited += 250) {
      yield* Effect.promise(() => wait(250))
      left = yield* size
    }
    return { resources: count, nanosPerCall: samples, held, left }
  })
  return Effect.runPromise(
    Effect.provide(Effect.orDie(program), ResourceLimiters.layer({ idleTimeToLive: idleMillis }))
  )
}
