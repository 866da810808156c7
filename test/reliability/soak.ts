/*
 * Lets 10,000 fibers call faulty services in real time, and watches the heap:
 * `npm run soak [-- minutes [fibers]]`, by default 10 minutes. Exits with 1 if the heap grows or anything is left.
 */
import { AdaptiveRateLimiter, awsAdaptive, AwsModes, ResourceLimiters, RetryQuota, withRetry } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { Chance } from "./utils/random.ts"

const [minutes = 10, fibers = 10_000] = process.argv.slice(2).map(Number)
const gc = globalThis.gc
if (gc === undefined) throw new Error("run it with --expose-gc")

const chance = new Chance(1)
const resources = 20
const counts = { calls: 0, sends: 0, succeeded: 0, failed: 0, cancelled: 0 }
const policies = [awsAdaptive, AwsModes.standard({ maxAttempts: 5 }), AwsModes.standard2026()]

/** A service that is slow, throttles, fails, is down for ten seconds of each minute, and sometimes never answers. */
const send = Effect.suspend((): Effect.Effect<void, Kit.Transient | Kit.Throttled | Kit.TimedOut> => {
  counts.sends++
  const isDown = Math.floor(performance.now() / 10_000) % 6 === 3
  const dice = chance.next()
  if (isDown || dice < 0.05) return Effect.delay(new Kit.Transient(), chance.below(200))
  if (dice < 0.1) return Effect.delay(new Kit.Throttled({ retryAfter: chance.pick([0, 500, NaN, 1e12]) }), 5)
  const answer = dice < 0.11 ? Effect.never : Effect.sleep(20 + chance.below(1500))
  return Effect.timeoutOrElse(answer, { duration: "3 seconds", orElse: () => new Kit.TimedOut() })
})

const client = Effect.suspend(() => {
  const limiters = ResourceLimiters.get(`resource-${chance.below(resources)}`)
  const call = Effect.suspend(() => {
    counts.calls++
    return Effect.exit(withRetry(send, chance.pick(policies)))
  })
  const booked = Effect.map(call, (exit) => {
    if (Exit.isSuccess(exit)) counts.succeeded++
    else counts.failed++
  })
  return Effect.forever(Effect.andThen(Effect.suspend(() => Effect.sleep(chance.below(8000))), booked)).pipe(
    Effect.provide(limiters)
  )
})

/** Cancels a hundred fibers each second, and starts others in their place. */
const storm = (running: Array<Fiber.Fiber<unknown, unknown>>) =>
  Effect.forever(Effect.delay(
    Effect.gen(function*() {
      const victims = Array.from({ length: Math.ceil(fibers / 100) }, () => chance.below(running.length))
      for (const at of new Set(victims)) {
        counts.cancelled++
        yield* Fiber.interrupt(running[at]!)
        running[at] = yield* Effect.forkDetach(client)
      }
    }),
    "1 second"
  ))

interface Sample {
  readonly seconds: number
  readonly megabytes: number
}

/** The peak heap in a part of the run, where 0 is its beginning and 1 its end. */
const mostHeld = (samples: ReadonlyArray<Sample>, from: number, to: number): number => {
  const seconds = minutes * 60
  const inside = samples.filter((sample) => sample.seconds >= from * seconds && sample.seconds <= to * seconds + 5)
  return Math.max(...inside.map(({ megabytes }) => megabytes))
}

const heap = (): number => {
  gc()
  return process.memoryUsage().heapUsed / 2 ** 20
}

const watch = Effect.gen(function*() {
  const samples: Array<Sample> = []
  const begin = performance.now()
  for (let seconds = 0; seconds < minutes * 60;) {
    yield* Effect.sleep("5 seconds")
    seconds = (performance.now() - begin) / 1000
    samples.push({ seconds, megabytes: heap() })
    const { calls, sends } = counts
    console.log(`${seconds.toFixed(0)} s: ${samples.at(-1)!.megabytes.toFixed(1)} MB, ${calls} calls, ${sends} sends`)
  }
  return samples
})

/** What is wrong with the quotas and limiters when they are no longer used. */
const atRest = Effect.gen(function*() {
  const problems: Array<string> = []
  for (let n = 0; n < resources; n++) {
    const look = Effect.all([RetryQuota.balance, AdaptiveRateLimiter.state])
    const [balance, limiter] = yield* Effect.provide(look, ResourceLimiters.get(`resource-${n}`))
    if (!(balance >= 0 && balance <= 500)) problems.push(`balance ${balance}`)
    if (limiter.waiting > 0) problems.push(`${limiter.waiting} still wait`)
  }
  return problems
})

const soak = Effect.gen(function*() {
  const running: Array<Fiber.Fiber<unknown, unknown>> = []
  for (let n = 0; n < fibers; n++) running.push(yield* Effect.forkDetach(client))
  const storming = yield* Effect.forkDetach(storm(running))
  const samples = yield* watch
  yield* Fiber.interrupt(storming)
  yield* Fiber.interruptAll(running)
  return { samples, problems: yield* atRest }
})

const before = heap()
const runtime = ManagedRuntime.make(Layer.fresh(ResourceLimiters.layer({ limiter: { minFillRate: 150 } })))
const { problems, samples } = await runtime.runPromise(soak)
await runtime.dispose()
// Fibers that have just ended must still be notified.
await new Promise((resolve) => setTimeout(resolve, 200))
const left = process.getActiveResourcesInfo().filter((name) => !/^(TTY|Pipe|FS|TCP)Wrap$|^FSReq/.test(name))
// The first third is warm-up: lines fill, code is compiled. Each of the others has outages in it.
const [middle, end, after] = [mostHeld(samples, 1 / 3, 2 / 3), mostHeld(samples, 2 / 3, 1), heap()]
console.log(JSON.stringify({ ...counts, minutes, fibers }))
console.log(`most held in the second third ${middle.toFixed(1)} MB, in the last ${end.toFixed(1)} MB`)
console.log(`held when all has ended ${after.toFixed(1)} MB, before it began ${before.toFixed(1)} MB`)
console.log(`left: ${[...problems, ...left].join(", ") || "nothing"}`)
process.exitCode = end < 1.1 * middle && after < before + 10 && problems.length + left.length === 0 ? 0 : 1
