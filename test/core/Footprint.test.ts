import { assert, describe, it } from "@effect/vitest"
import { AdaptiveRateLimiter, Backoff, ResourceLimiters, retryPromise, RetryQuota } from "effect-retry"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as TestClock from "effect/testing/TestClock"
import { buildSync } from "esbuild"
import { execFileSync } from "node:child_process"
import { getEventListeners } from "node:events"
import { fileURLToPath } from "node:url"
import { countedClock } from "../reliability/utils/clocks.ts"
import { FakeRedis } from "../utils/fakeRedis.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))

/** What a script prints in a process of its own, in one file with the library. */
const printed = (script: string, ...flags: ReadonlyArray<string>): string => {
  const { outputFiles } = buildSync({
    stdin: { contents: script, resolveDir: root },
    absWorkingDir: root,
    bundle: true,
    format: "esm",
    platform: "node",
    write: false,
    tsconfig: "tsconfig.json",
    logLevel: "error"
  })
  return execFileSync(process.execPath, [...flags, "--input-type=module"], {
    input: outputFiles[0]!.contents,
    encoding: "utf8",
    timeout: 300_000
  })
}

describe("what the library holds", () => {
  it.effect("5,000 unused resources are gone after their time, the one named \"\" too", () =>
    Effect.gen(function*() {
      const limiters = yield* ResourceLimiters.ResourceLimiters
      const names = ["", "__proto__", ...Array.from({ length: 5000 }, (_, n) => `tenant-${n}`)]
      for (const name of names) yield* Effect.provide(RetryQuota.reserve(5), ResourceLimiters.get(name))
      assert.strictEqual(yield* limiters.count, names.length)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* limiters.count, 0)
    }).pipe(Effect.provide(ResourceLimiters.layer({ idleTimeToLive: "1 minute" }))))

  it("a process waits for the backoff of its call, and ends when the call does", () => {
    const script = `
      import { AdaptiveRateLimiter, Backoff, retryPromise, RetryQuota } from "effect-retry"
      import * as Effect from "effect/Effect"
      import * as ManagedRuntime from "effect/ManagedRuntime"
      import * as Layer from "effect/Layer"
      const runtime = ManagedRuntime.make(Layer.merge(RetryQuota.layer({ refillPerSecond: 1 }), AdaptiveRateLimiter.layer()))
      await runtime.runPromise(AdaptiveRateLimiter.update(true))
      let sends = 0
      void retryPromise(
        () => ++sends === 1 ? Promise.reject(new Error()) : Promise.resolve(),
        Backoff.fixed(100)
      ).then(() => console.log("sends: " + sends))
    `
    const output = printed(script)
    assert.strictEqual(output, "sends: 2\n")
  })

  // Of these the two Refs, of the quota and of the limiter, are 110 each.
  it("resources take at most 820 bytes each and no timer, and a process ends while they are idle", () => {
    const resources = 20_000
    const script = `
      import { AdaptiveRateLimiter, ResourceLimiters, RetryQuota } from "effect-retry"
      import * as Effect from "effect/Effect"
      import * as ManagedRuntime from "effect/ManagedRuntime"
      import * as Option from "effect/Option"
      const runtime = ManagedRuntime.make(ResourceLimiters.layer())
      const retry = Effect.flatMap(RetryQuota.reserve(5), (taken) => Option.getOrThrow(taken).spend)
      const call = Effect.andThen(AdaptiveRateLimiter.update(false), retry)
      const use = (from, to) => runtime.runPromise(Effect.gen(function*() {
        for (let n = from; n < to; n++) yield* Effect.provide(call, ResourceLimiters.get("tenant-" + n))
      }))
      const heap = () => (gc(), gc(), process.memoryUsage().heapUsed)
      await use(0, 1000)
      const before = heap()
      await use(1000, ${resources})
      const megabytes = (heap() - before) / 1e6
      const timers = process.getActiveResourcesInfo().filter((name) => name === "Timeout").length
      const count = await runtime.runPromise(ResourceLimiters.ResourceLimiters.use((limiters) => limiters.count))
      console.log(JSON.stringify({ count, timers, megabytes }))
    `
    const output = printed(script, "--expose-gc")
    const { megabytes, ...others } = JSON.parse(output)
    assert.deepStrictEqual(others, { count: resources, timers: 0 })
    assert.isBelow(megabytes, 820 * resources / 1e6)
  })

  it("names that no document has take at most 5 kB each, and the last 10,000 are kept", () => {
    const script = `
      import * as RetryConfig from "effect-retry/RetryConfig"
      import * as Effect from "effect/Effect"
      import * as ManagedRuntime from "effect/ManagedRuntime"
      const runtime = ManagedRuntime.make(RetryConfig.layer({ default: { policy: { maxAttempts: 2 } } }))
      const use = (from, to) => runtime.runPromise(Effect.gen(function*() {
        for (let n = from; n < to; n++) yield* Effect.void.pipe(RetryConfig.retry("tenant-" + n))
      }))
      const heap = () => (gc(), gc(), process.memoryUsage().heapUsed)
      await use(0, 1000)
      const before = heap()
      await use(1000, 10_000)
      const first = heap() - before
      await use(10_000, 30_000)
      console.log(JSON.stringify([first, heap() - before].map((bytes) => bytes / 1e6)))
      await runtime.dispose()
    `
    const [first, then] = JSON.parse(printed(script, "--expose-gc"))
    assert.isBelow(first, 45)
    assert.isBelow(then, 50)
  })

  it("tokens of a strategy that a loop has dropped, sent or not, hold nothing once they are garbage", () => {
    const script = `
      import { Backoff, RetryQuota } from "effect-retry"
import * as RetryStrategy from "effect-retry/RetryStrategy"
      import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
      import * as Effect from "effect/Effect"
      import * as ManagedRuntime from "effect/ManagedRuntime"
      import * as Layer from "effect/Layer"
      const runtime = ManagedRuntime.make(Layer.merge(
        RetryQuota.layer({ capacity: 10, firstAttemptCost: 1 }),
        ConcurrencyLimiter.layer({ rule: ConcurrencyLimiter.fixed(4) })
      ))
      const strategy = await runtime.runPromise(RetryStrategy.make(Backoff.fixed(1)))
      const drop = async () => {
        await runtime.runPromise(strategy.acquireInitialToken())
        const sent = await runtime.runPromise(strategy.acquireInitialToken())
        await runtime.runPromise(sent.markSent)
      }
      const held = () => runtime.runPromise(Effect.all([ConcurrencyLimiter.state, RetryQuota.state]))
        .then(([{ inFlight }, { tokens }]) => inFlight + " " + tokens)
      await drop()
      const before = await held()
      for (let n = 0; n < 1000 && !(await held()).startsWith("0 "); n++) {
        gc()
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
      console.log(before + ", " + await held())
      await runtime.dispose()
    `
    assert.strictEqual(printed(script, "--expose-gc"), "2 8, 0 9\n")
  })

  it("a thousand calls with one signal have one listener between them, and none when they have ended", async () => {
    const { signal } = new AbortController()
    const listeners = () => getEventListeners(signal, "abort").length
    const quick = () => retryPromise(() => Promise.resolve(1), Backoff.fixed(1), { signal })
    for (let n = 0; n < 1000; n++) await quick()
    assert.strictEqual(listeners(), 0)
    const together = Array.from({ length: 100 }, quick)
    assert.isAtMost(listeners(), 1)
    await Promise.all(together)
    assert.strictEqual(listeners(), 0)
    const own = () => undefined
    signal.onabort = own
    await quick()
    assert.strictEqual(signal.onabort, own)
  })

  it.effect("quotas, limiters and unused resources hold no timer and run nothing", () =>
    Effect.gen(function*() {
      const counted = yield* countedClock
      const redis = new FakeRedis()
      yield* counted.provide(
        Effect.gen(function*() {
          yield* TestClock.adjust("1 day")
          assert.deepStrictEqual([counted.asleep, counted.sleeps], [0, 0])
          assert.strictEqual((yield* AdaptiveRateLimiter.state).waiting, 0)
        }).pipe(Effect.provide([
          RetryQuota.layer({ capacity: 10, initial: 0, refillPerSecond: 1, onExceeded: "wait" }),
          AdaptiveRateLimiter.layer(),
          ResourceLimiters.layer()
        ]))
      )
      // A shared quota sends Redis nothing while there is nothing to send.
      yield* counted.provide(
        Effect.andThen(TestClock.adjust("1 day"), Effect.sync(() => assert.strictEqual(counted.asleep, 0))).pipe(
          Effect.provide(Layer.fresh(
            Layer.provide(RetryQuotaRedis.layer({ name: "test" }), Layer.succeed(Redis.Redis, redis.service))
          ))
        )
      )
      assert.strictEqual(redis.exchanges, 0)
    }))
})
