/**
 * What it costs to interrupt 100,000 calls that wait for tokens of a quota in memory, next to as many fibers that wait for
 * nothing: `npx tsx test/bench/waiters.ts`.
 */
import { RetryQuota } from "effect-retry"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

const count = 100_000

const drained = {
  capacity: 10,
  initial: 0,
  refillPerSecond: 0.001,
  onExceeded: "wait",
  maxWaiters: Infinity
} as const

/** Milliseconds of the processor that interrupting takes. */
const interrupting = (waiting: Effect.Effect<unknown, unknown>) =>
  Effect.gen(function*() {
    const fibers: Array<Fiber.Fiber<unknown, unknown>> = []
    for (let fiber = 0; fiber < count; fiber++) {
      fibers.push(yield* Effect.forkDetach(waiting, { startImmediately: true }))
    }
    const before = process.cpuUsage()
    yield* Fiber.interruptAll(fibers)
    const { system, user } = process.cpuUsage(before)
    return Math.round((system + user) / 1000)
  })

const program = Effect.gen(function*() {
  const quota = yield* RetryQuota.make(drained)
  const waiters = yield* interrupting(quota.reserve(1))
  const bare = yield* interrupting(Effect.never)
  yield* Effect.sync(() =>
    console.log(`${count} interrupted: ${waiters} ms of CPU for waiters of a quota, ${bare} ms for fibers alone`)
  )
})

await Effect.runPromise(program)
