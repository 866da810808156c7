/** What calls hold of a shared quota while others race with, stop or outlive them, or copy the library. */
import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  attempt,
  AwsModes,
  awsStandard,
  awsStandard2026,
  Backoff,
  RetryObserver,
  RetryPolicy,
  RetryQuota,
  withRetry,
  withRetryOrElse
} from "effect-retry"
import type * as EffectRetry from "effect-retry"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as TestClock from "effect/testing/TestClock"
import { build } from "esbuild"
import { mkdtempSync, rmSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { shared } from "../../src/internal/shared.ts"
import { scripted, Terminal, Throttled, Transient } from "../utils/call.ts"
import { drivers } from "../utils/drivers.ts"
import { inTime } from "../utils/inTime.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))

type Standard = typeof awsStandard

const failing: Effect.Effect<never, Transient> = Effect.fail(new Transient())

const steady = Backoff.fixed("10 seconds").pipe(RetryPolicy.quotaGated({ cost: 1 }))

describe("a retry that a condition around the policy stops", () => {
  const stopped = [
    ["times", { schedule: awsStandard2026, times: 0 }],
    ["while", { schedule: awsStandard2026, while: () => false }],
    ["until", { schedule: awsStandard2026, until: () => true }],
    ["Schedule.upTo", { schedule: Schedule.upTo(awsStandard2026, { times: 0 }) }]
  ] as const

  for (const [name, options] of stopped) {
    it.effect(`${name}: 36 idle workers leave the quota full at once, and no observer sees a retry`, () =>
      Effect.gen(function*() {
        let notified = 0
        const job = Effect.exit(Effect.retry(failing, options as (typeof stopped)[0][1]))
        const worker = Effect.andThen(job, Effect.never).pipe(
          Effect.provideService(RetryObserver.CurrentObserver, { onRetry: () => void notified++ })
        )
        const workers = yield* Effect.forEach(Array.from({ length: 36 }), () => Effect.forkChild(worker))
        yield* TestClock.adjust(0)
        assert.strictEqual(yield* RetryQuota.balance, 500)
        assert.strictEqual(notified, 0)

        const other = scripted([new Transient()])
        assert.isTrue(Exit.isSuccess(yield* inTime(withRetry(other.effect, awsStandard))))
        assert.strictEqual(other.sends, 2)
        yield* Fiber.interruptAll(workers)
        assert.strictEqual(yield* RetryQuota.balance, 500)
      }).pipe(Effect.provide(RetryQuota.layer())))
  }

  for (const { form, run } of drivers) {
    it.effect(`has its tokens back at once, for the next retry by ${form}`, () =>
      Effect.gen(function*() {
        const stops: Array<string> = []
        const job = Effect.exit(Effect.retry(failing, { schedule: awsStandard2026, times: 0 }))
        yield* Effect.forEach(Array.from({ length: 2 }), () => Effect.forkChild(Effect.andThen(job, Effect.never)))
        yield* TestClock.adjust(0)
        const call = scripted([new Transient()])
        const fiber = yield* Effect.forkChild(
          Effect.provideService(run(call.effect, awsStandard2026), RetryObserver.CurrentObserver, {
            onStop: ({ reason }) => void stops.push(reason)
          })
        )
        yield* TestClock.adjust("1 second")
        assert.isTrue(Exit.isSuccess(yield* Fiber.await(fiber)))
        assert.deepStrictEqual([call.sends, stops], [2, []])
      }).pipe(Effect.provide(RetryQuota.layer({ capacity: 28 }))))
  }

  it.effect("notifies of one stop, and what its fiber does next of nothing", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const observer = { onRetry: () => void seen.push("retry"), onStop: () => void seen.push("stop") }
      const other = Schedule.recurs(1)
      for (const [stopped, error] of [[undefined, new Transient()], [new Transient(), new Transient()]]) {
        const job = Effect.retry(Effect.fail(stopped), { schedule: steady, times: 0 })
        const call = scripted([error])
        yield* Effect.andThen(Effect.exit(job), Effect.retry(attempt(call.effect), other)).pipe(
          Effect.provideService(RetryObserver.CurrentObserver, observer)
        )
        assert.strictEqual(call.sends, 2)
      }
      assert.deepStrictEqual(seen, ["stop", "stop"])
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("keeps its tokens while a combinator delays it, however long", () =>
    Effect.gen(function*() {
      const policy = Backoff.fixed("1 second").pipe(RetryPolicy.quotaGated({ cost: 5 }))
      const late = Schedule.addDelay(policy, () => Effect.succeed("10 seconds"))
      const call = scripted([new Transient()])
      const fiber = yield* Effect.forkChild(Effect.retry(call.effect, late))
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* RetryQuota.reserve(1))._tag, "None")
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Fiber.join(fiber), "ok")
      assert.strictEqual(yield* RetryQuota.balance, 5)
    }).pipe(Effect.provide(RetryQuota.layer({ capacity: 5, successIncrement: 0 }))))
})

describe("attempts that race inside one retried effect, which is one send", () => {
  type Race = <A, E, R>(slow: Effect.Effect<A, E, R>, fast: Effect.Effect<A, E, R>) => Effect.Effect<unknown, E, R>
  const races: ReadonlyArray<readonly [name: string, blips: number, race: Race]> = [
    ["raceFirst", 1, Effect.raceFirst],
    ["race", 2, Effect.race],
    ["all", 1, (slow, fast) => Effect.all([slow, fast], { concurrency: "unbounded" })]
  ]
  for (const [name, blips, race] of races) {
    it.effect(`${name}: 150 calls with one failure each leave the quota full`, () =>
      Effect.gen(function*() {
        for (let n = 0; n < 150; n++) {
          let failures = 0
          const blip = Effect.suspend(() => failures++ < blips ? failing : Effect.void)
          const slow = Effect.andThen(Effect.sleep("1 second"), blip)
          const fast = Effect.andThen(Effect.sleep("10 millis"), blip)
          const exit = yield* inTime(Effect.retry(race(attempt(slow), attempt(fast)), awsStandard))
          assert.isTrue(Exit.isSuccess(exit))
        }
        assert.strictEqual(yield* RetryQuota.balance, 500)
      }).pipe(Effect.provide(RetryQuota.layer())))
  }

  it.effect("spend one retry when all have failed", () =>
    Effect.gen(function*() {
      const slow = Effect.andThen(Effect.sleep("1 second"), failing)
      const both = Effect.race(attempt(slow), attempt(failing))
      yield* inTime(Effect.retry(both, awsStandard))
      assert.strictEqual(yield* RetryQuota.balance, 490)
    }).pipe(Effect.provide(RetryQuota.layer())))
})

it.effect("two attempts in a row inside one retried effect are one send", () =>
  Effect.gen(function*() {
    const [first, second] = [scripted([new Transient()]), Effect.succeed("ok")]
    const policy = Backoff.fixed(10).pipe(RetryPolicy.maxAttempts(3))
    yield* inTime(Effect.retry(Effect.andThen(attempt(first.effect), attempt(second)), policy))
    assert.strictEqual(yield* RetryQuota.balance, 100)
  }).pipe(Effect.provide(RetryQuota.layer({ initial: 100 }))))

it.effect("an attempt inside a retried effect, or two, change nothing: an observer sees each send once", () =>
  Effect.gen(function*() {
    const sends: Array<number> = []
    const call = scripted([new Transient()])
    yield* inTime(
      Effect.retry(attempt(attempt(call.effect)), awsStandard).pipe(
        Effect.provideService(RetryObserver.CurrentObserver, { onSend: ({ attempt }) => void sends.push(attempt) })
      )
    )
    assert.deepStrictEqual(sends, [1, 2])
    assert.strictEqual(yield* RetryQuota.balance, 500)
  }).pipe(Effect.provide(RetryQuota.layer())))

describe("withRetry around an attempt", () => {
  const around: ReadonlyArray<
    readonly [string, <A, E>(self: Effect.Effect<A, E, any>) => Effect.Effect<any, any, any>]
  > = [
    ["as it is", (self) => self],
    ["mapped", (self) => Effect.map(self, (value) => [value])],
    ["timed", (self) => Effect.timeout(self, "1 minute")],
    ["in a fiber of its own", (self) => Effect.flatMap(Effect.forkChild(self), Fiber.join)],
    ["of an attempt", (self) => attempt(self)]
  ]
  for (const [name, f] of around) {
    it.effect(`${name}: books a first success once, and each retry once`, () =>
      Effect.gen(function*() {
        yield* inTime(withRetry(f(attempt(Effect.succeed(1))), awsStandard))
        assert.strictEqual(yield* RetryQuota.balance, 101)
        yield* inTime(withRetry(f(attempt(scripted([new Transient(), new Transient()]).effect)), awsStandard))
        assert.strictEqual(yield* RetryQuota.balance, 96)
        const attempts: Array<boolean> = []
        const observer = { onAttempt: (succeeded: boolean) => void attempts.push(succeeded) }
        yield* inTime(
          withRetry(f(attempt(scripted([new Transient()]).effect)), awsStandard).pipe(
            Effect.provideService(RetryObserver.CurrentObserver, observer)
          )
        )
        assert.deepStrictEqual(attempts, [false, true])
      }).pipe(Effect.provide(RetryQuota.layer({ initial: 100 }))))
  }

  it.effect("takes one send token for each send", () =>
    Effect.gen(function*() {
      const timesOf = (f: (self: Effect.Effect<void>) => Effect.Effect<void, any, any>) =>
        Effect.gen(function*() {
          yield* AdaptiveRateLimiter.update(true)
          const start = yield* Clock.currentTimeMillis
          const times: Array<number> = []
          const call = Effect.map(Clock.currentTimeMillis, (now) => void times.push(now - start))
          const calls = Effect.forEach([1, 2, 3, 4], () => withRetry(f(call), AwsModes.awsAdaptive), {
            concurrency: "unbounded"
          })
          yield* inTime(calls)
          return times
        }).pipe(Effect.provide(Layer.mergeAll(RetryQuota.layer(), AdaptiveRateLimiter.layer())))
      const plain = yield* timesOf((self) => self)
      assert.isAbove(plain[3]!, 1000)
      assert.deepStrictEqual(yield* timesOf((self) => Effect.asVoid(attempt(self))), plain)
    }) as Effect.Effect<void>)
})

describe("a fiber forked inside a send that is interrupted", () => {
  for (const { form, run } of drivers) {
    it.effect(`is nested no longer: ${form}`, () =>
      Effect.gen(function*() {
        const policy = awsStandard.pipe(RetryPolicy.outermostOnly)
        let sends = 0
        const call = Effect.suspend(() => (sends++, failing))
        const forking = Effect.andThen(
          Effect.forkDetach(Effect.delay(Effect.ignore(run(call, policy)), "1 minute")),
          Effect.never
        )
        const client = Effect.timeout(run(forking, policy), "1 second")
        yield* inTime(Effect.provide(client, yield* Effect.context<RetryQuota.RetryQuota>()))
        assert.strictEqual(sends, 3)
      }).pipe(Effect.provide(RetryQuota.layer())))
  }
})

describe("observers", () => {
  const refusals = [
    ["withRetry", (self: Effect.Effect<string, any>) => withRetry(self, AwsModes.awsAdaptive)],
    ["Effect.retry", (self: Effect.Effect<string, any>) => Effect.retry(self, AwsModes.awsAdaptive)],
    [
      "RetryStrategy.run",
      (self: Effect.Effect<string, any>) =>
        Effect.flatMap(
          RetryStrategy.make(AwsModes.awsAdaptive),
          (strategy) => Effect.provideService(RetryStrategy.run(self), RetryStrategy.RetryStrategy, strategy)
        )
    ]
  ] as const
  for (const [name, run] of refusals) {
    it.effect(`are notified that a limiter which fails fast has refused a retry: ${name}`, () =>
      Effect.gen(function*() {
        const stops: Array<readonly [string, number]> = []
        const observer: RetryObserver.RetryObserver = {
          onStop: ({ attempts, reason }) => void stops.push([reason, attempts])
        }
        yield* inTime(
          Effect.exit(run(scripted([new Throttled({}), new Throttled({})]).effect)).pipe(
            Effect.provideService(RetryObserver.CurrentObserver, observer)
          )
        )
        assert.deepStrictEqual(stops, [["vetoed", 1]])
      }).pipe(
        Effect.provide([
          RetryQuota.layer(),
          AdaptiveRateLimiter.layer({ onExceeded: "fail", minFillRate: 1e-6, minCapacity: 1 })
        ])
      ))
  }

  it.effect("of a strategy are those of the caller of each of its methods", () =>
    Effect.gen(function*() {
      const strategy = yield* RetryStrategy.make(awsStandard)
      const heard: Array<string> = []
      const as = (name: string) =>
        Effect.provideService(RetryObserver.CurrentObserver, {
          onRetry: () => void heard.push(`${name} retry`),
          onStop: () => void heard.push(`${name} stop`)
        })
      const first = yield* as("first")(strategy.acquireInitialToken())
      const second = yield* as("second")(strategy.refreshRetryToken(first, new Transient()))
      yield* Effect.ignore(as("third")(strategy.refreshRetryToken(second, new Terminal())))
      assert.deepStrictEqual(heard, ["second retry", "third stop"])
    }).pipe(Effect.provide(RetryQuota.layer())))

  for (const { form, run } of drivers) {
    it.effect(`may have the call wait for an effect, and are given the error: ${form}`, () =>
      Effect.gen(function*() {
        const log: Array<unknown> = []
        const start = yield* Clock.currentTimeMillis
        const note = (what: string) => (_: unknown, error: unknown) =>
          Effect.andThen(
            Effect.sleep("1 second"),
            Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.sync(() => log.push([what, error, now - start])))
          )
        const errors = [new Transient(), new Terminal()]
        const observer = { onAttempt: note("attempt"), onRetry: note("retry"), onStop: note("stop") }
        const policy = Backoff.fixed("10 seconds").pipe(
          RetryPolicy.whileRetryable,
          RetryPolicy.quotaGated({ cost: 1 })
        )
        yield* inTime(
          Effect.exit(run(scripted(errors).effect, policy)).pipe(
            Effect.provideService(RetryObserver.CurrentObserver, observer)
          )
        )
        assert.deepStrictEqual(log.map(([what, error]: any) => [what, error]), [
          ["attempt", errors[0]],
          ["retry", errors[0]],
          ["attempt", errors[1]],
          ["stop", errors[1]]
        ])
        assert.strictEqual((log.at(-1) as any)[2], 14_000)
      }).pipe(Effect.provide(RetryQuota.layer())))
  }
})

describe("an observer whose effect", () => {
  const strategy = {
    form: "RetryStrategy.run",
    run: <A, E, R>(self: Effect.Effect<A, E, R>, policy: Standard) =>
      Effect.provide(RetryStrategy.run(self), RetryStrategy.layer(policy))
  }
  for (const { form, run } of [...drivers, strategy]) {
    for (const callback of ["onAttempt", "onRetry"] as const) {
      it.effect(`dies, in ${callback}, has the call hold nothing: ${form}`, () =>
        Effect.gen(function*() {
          const told: Array<string> = []
          const observer = {
            onRetry: () => void told.push("retry"),
            [callback]: () => Effect.andThen(Effect.sleep(10), Effect.die(callback))
          }
          const job = Effect.provideService(
            Effect.exit(run(failing, awsStandard)),
            RetryObserver.CurrentObserver,
            observer
          )
          const worker = yield* Effect.forkChild(Effect.andThen(job, Effect.never))
          yield* TestClock.adjust("1 minute")
          assert.strictEqual(yield* RetryQuota.balance, 500)
          assert.deepStrictEqual(told, [])
          yield* Fiber.interrupt(worker)
          assert.strictEqual(yield* RetryQuota.balance, 500)
        }).pipe(Effect.provide(RetryQuota.layer())))
    }

    it.effect(`takes its time, in onAttempt, moves no deadline: ${form}`, () =>
      Effect.gen(function*() {
        const policy = Backoff.fixed("1 second").pipe(
          RetryPolicy.deadline("10 seconds"),
          RetryPolicy.quotaGated({ cost: 1 })
        )
        const start = yield* Clock.currentTimeMillis
        const times: Array<number> = []
        const call = Effect.flatMap(Clock.currentTimeMillis, (now) => (times.push(now - start), failing))
        const observer = { onAttempt: () => Effect.sleep("6 seconds") }
        yield* inTime(Effect.provideService(run(call, policy), RetryObserver.CurrentObserver, observer))
        assert.deepStrictEqual(times, [0, 7000])
      }).pipe(Effect.provide(RetryQuota.layer())))
  }
})

describe("a call that began before the first policy that asks whether it is nested", () => {
  it.effect("continues as it began", () =>
    Effect.gen(function*() {
      const { marking } = shared
      shared.marking = false
      const retries: Array<number> = []
      const call = Effect.flatMap(Effect.service(Schedule.CurrentMetadata), ({ attempt }) => {
        retries.push(attempt)
        return attempt < 2 ? failing : Effect.void
      })
      const worker = yield* Effect.forkChild(Effect.andThen(withRetry(call, steady), Effect.never))
      yield* TestClock.adjust("15 seconds")
      RetryPolicy.outermostOnly(steady)
      yield* TestClock.adjust("1 minute")
      shared.marking ||= marking
      assert.deepStrictEqual(retries, [0, 1, 2])
      assert.strictEqual(yield* RetryQuota.balance, 499)
      yield* Fiber.interrupt(worker)
      assert.strictEqual(yield* RetryQuota.balance, 499)
    }).pipe(Effect.provide(RetryQuota.layer())))
})

describe("withRetryOrElse", () => {
  it.effect("continues with the reason and the last error", () =>
    Effect.gen(function*() {
      const errors = [new Transient(), new Terminal()]
      const told = withRetryOrElse(
        scripted(errors).effect,
        awsStandard,
        (error, { attempts, reason }) => Effect.succeed([error, reason, attempts])
      )
      assert.deepStrictEqual<unknown>(yield* inTime(told), Exit.succeed([errors[1], "final", 2]))
      const fallback = Effect.succeed("ok").pipe(withRetryOrElse(awsStandard, () => Effect.succeed("unused")))
      assert.strictEqual(yield* fallback, "ok")
    }).pipe(Effect.provide(RetryQuota.layer())))
})

it.effect("Effect.whileLoop calls its options as methods, which the loop of withRetry relies on", () =>
  Effect.gen(function*() {
    class Loop {
      turns = 0
      seen: Array<number> = []
      while(): boolean {
        return this.turns < 3
      }
      body(): Effect.Effect<number> {
        return Effect.succeed(++this.turns)
      }
      step(n: number): void {
        this.seen.push(n)
      }
    }
    const loop = new Loop()
    yield* Effect.whileLoop(loop)
    assert.deepStrictEqual(loop.seen, [1, 2, 3])
  }))

describe("two copies of the package in one process", () => {
  it.live("know each other's calls and retries", () =>
    Effect.gen(function*() {
      const folder = mkdtempSync(join(root, "node_modules", ".copy-"))
      try {
        const outfile = join(folder, "copy.mjs")
        yield* Effect.promise(() =>
          build({
            entryPoints: [join(root, "src/index.ts")],
            bundle: true,
            format: "esm",
            platform: "node",
            external: ["effect/*"],
            outfile,
            tsconfigRaw: "{}",
            logLevel: "silent"
          })
        )
        const copy: typeof EffectRetry = yield* Effect.promise(() => import(pathToFileURL(outfile).href))
        assert.notStrictEqual(copy.withRetry, withRetry)
        const fast = Backoff.fixed(1).pipe(RetryPolicy.maxAttempts(3), RetryPolicy.quotaGated({ cost: 4 }))
        const foreign = copy.Backoff.fixed(1).pipe(
          copy.RetryPolicy.maxAttempts(3),
          copy.RetryPolicy.outermostOnly
        )
        type Outer = <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R | RetryQuota.RetryQuota>
        const outers: ReadonlyArray<Outer> = [
          (self) => withRetry(self, fast),
          (self) => Effect.retry(self, fast)
        ]
        for (const outer of outers) {
          let sends = 0
          const inner = copy.withRetry(Effect.suspend(() => (sends++, failing)), foreign)
          yield* Effect.exit(outer(inner))
          assert.strictEqual(sends, 3)
        }
        const before = yield* RetryQuota.balance
        const mixed = Effect.retry(copy.attempt(scripted([new Transient()]).effect), fast)
        assert.strictEqual(yield* mixed, "ok")
        assert.strictEqual(yield* RetryQuota.balance, before)
      } finally {
        rmSync(folder, { recursive: true })
      }
    }).pipe(Effect.provide(RetryQuota.layer())))
})
