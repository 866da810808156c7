/** What calls and attempts hold of a shared quota while others race with, stop or outlive them, or copy the library. */
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
  RetryStrategy,
  withRetry,
  withRetryOrElse
} from "effect-retry"
import type * as EffectRetry from "effect-retry"
import * as Cause from "effect/Cause"
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
import type { Shared } from "../../src/internal/shared.ts"
import { scripted, Terminal, Throttled, Transient } from "../utils/call.ts"
import { drivers, inTime } from "../utils/drivers.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))

type Standard = typeof awsStandard

const failing: Effect.Effect<never, Transient> = Effect.fail(new Transient())

const steady = Backoff.fixed({ delay: "10 seconds" }).pipe(RetryPolicy.quotaGated({ cost: 1 }))

describe("a retry that a condition around the policy has stopped", () => {
  const stopped = [
    ["times", { schedule: awsStandard2026, times: 0 }],
    ["while", { schedule: awsStandard2026, while: () => false }],
    ["until", { schedule: awsStandard2026, until: () => true }],
    ["Schedule.upTo", { schedule: Schedule.upTo(awsStandard2026, { times: 0 }) }]
  ] as const

  for (const [name, options] of stopped) {
    it.effect(`${name}: 36 idle workers leave the quota full, and their observers alone`, () =>
      Effect.gen(function*() {
        let notified = 0
        const job = Effect.exit(Effect.retry(attempt(failing), options as (typeof stopped)[0][1]))
        const worker = Effect.andThen(job, Effect.never).pipe(
          Effect.provideService(RetryObserver.CurrentObserver, { onRetry: () => void notified++ })
        )
        const workers = yield* Effect.forEach(Array.from({ length: 36 }), () => Effect.forkChild(worker))
        yield* TestClock.adjust("5 seconds")
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
    it.effect(`has lapsed for the next retry by ${form}, which only that retry notices`, () =>
      Effect.gen(function*() {
        const stops: Array<string> = []
        const job = Effect.exit(Effect.retry(attempt(failing), { schedule: awsStandard2026, times: 0 }))
        yield* Effect.forEach(Array.from({ length: 2 }), () => Effect.forkChild(Effect.andThen(job, Effect.never)))
        yield* TestClock.adjust("5 seconds")
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

  it.effect("is seen to have lapsed by the next caller that takes tokens", () =>
    Effect.gen(function*() {
      const policy = Backoff.fixed({ delay: "1 second" }).pipe(RetryPolicy.quotaGated({ cost: 5 }))
      const worker = Effect.andThen(
        Effect.exit(Effect.retry(attempt(failing), { schedule: policy, times: 0 })),
        Effect.never
      )
      yield* Effect.forkChild(worker)
      yield* TestClock.adjust("1999 millis")
      assert.isTrue((yield* RetryQuota.reserve(1))._tag === "None", "it may still come")
      yield* TestClock.adjust("1 milli")
      assert.isTrue((yield* RetryQuota.reserve(5))._tag === "Some")
    }).pipe(Effect.provide(RetryQuota.layer({ capacity: 5 }))))

  it.effect("comes after all: it pays again, or its call ends with its own error where the quota is dry", () =>
    Effect.gen(function*() {
      const late = Schedule.addDelay(
        Backoff.fixed({ delay: "1 second" }).pipe(RetryPolicy.quotaGated({ cost: 5 })),
        () => Effect.succeed("10 seconds")
      )
      const reasons: Array<string> = []
      const observer: RetryObserver.RetryObserver = {
        onStop: ({ reason }) => void reasons.push(reason),
        onRetry: () => void reasons.push("retry")
      }
      const observed = <A, E, R>(self: Effect.Effect<A, E, R>) =>
        Effect.provideService(self, RetryObserver.CurrentObserver, observer)
      const call = scripted([new Transient()])
      assert.isTrue(Exit.isSuccess(yield* inTime(observed(Effect.retry(attempt(call.effect), late)))))
      assert.strictEqual(yield* RetryQuota.balance, 5)

      const error = new Transient()
      let sends = 0
      const fiber = yield* Effect.forkChild(observed(Effect.exit(Effect.retry(
        attempt(Effect.suspend(() => (sends++, Effect.fail(error)))),
        late
      ))))
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* RetryQuota.reserve(5))._tag, "Some")
      yield* TestClock.adjust("1 minute")
      const exit = yield* Fiber.join(fiber)
      assert.strictEqual(Exit.isFailure(exit) && Cause.squash(exit.cause), error)
      assert.deepStrictEqual([sends, reasons], [1, ["retry", "quota-exhausted"]])
    }).pipe(Effect.provide(RetryQuota.layer({ capacity: 5, successIncrement: 0 }))))

  it.effect("comes after all: no attempt of those that race is sent where the quota is dry", () =>
    Effect.gen(function*() {
      const reasons: Array<string> = []
      let sends = 0
      const call = Effect.suspend(() => (sends++, failing))
      const both = Effect.all([attempt(call), attempt(call)], { concurrency: "unbounded", mode: "result" }).pipe(
        Effect.flatMap((results) => Effect.fromResult(results[0]))
      )
      const late = Schedule.addDelay(awsStandard, () => Effect.succeed("10 seconds"))
      const fiber = yield* Effect.forkChild(
        Effect.exit(Effect.retry(both, late)).pipe(
          Effect.provideService(RetryObserver.CurrentObserver, { onStop: ({ reason }) => void reasons.push(reason) })
        )
      )
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* RetryQuota.reserve(5))._tag, "Some")
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual([sends, reasons], [2, ["quota-exhausted"]])
    }).pipe(Effect.provide(RetryQuota.layer({ capacity: 5, successIncrement: 0 }))))

  it.effect("comes after all where the quota has no tokens and never will: its call ends for the quota", () =>
    Effect.gen(function*() {
      const reasons: Array<string> = []
      let isDry = false
      const quota = RetryQuota.fromStore({
        capacity: 5,
        successIncrement: 0,
        firstAttemptCost: 0,
        whenExhausted: "wait",
        reserve: (cost) => isDry ? () => Effect.void : { cost, giveBack: () => true, spend: () => true },
        deposit: () => undefined,
        balance: () => 0
      })
      const late = Schedule.addDelay(awsStandard, () => Effect.succeed("10 seconds"))
      const call = scripted([new Transient()])
      const fiber = yield* Effect.forkChild(
        Effect.exit(Effect.retry(attempt(call.effect), late)).pipe(
          Effect.provideService(RetryQuota.RetryQuota, quota),
          Effect.provideService(RetryObserver.CurrentObserver, { onStop: ({ reason }) => void reasons.push(reason) })
        )
      )
      yield* TestClock.adjust("5 seconds")
      yield* quota.balance
      isDry = true
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual([call.sends, reasons], [1, ["quota-exhausted"]])
    }))

  it.effect("is not found by what its fiber does next", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const observer = { onRetry: () => void seen.push("retry"), onStop: () => void seen.push("stop") }
      const other = Schedule.recurs(1)
      for (const [stopped, error] of [[undefined, new Transient()], [new Transient(), new Transient()]]) {
        const job = Effect.retry(attempt(Effect.fail(stopped)), { schedule: steady, times: 0 })
        const call = scripted([error])
        yield* Effect.andThen(Effect.exit(job), Effect.retry(attempt(call.effect), other)).pipe(
          Effect.provideService(RetryObserver.CurrentObserver, observer)
        )
        assert.strictEqual(call.sends, 2)
      }
      assert.deepStrictEqual(seen, [])
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect.skip("is known without the library's list of them, in a service of one's own", () =>
    Effect.gen(function*() {
      const { lapses: _, ...own } = yield* RetryQuota.make()
      const late = Schedule.addDelay(awsStandard, () => Effect.succeed("10 seconds"))
      const once = () => scripted([new Transient()]).effect
      for (const call of [withRetry(once(), awsStandard), Effect.retry(attempt(once()), late)]) {
        const exit = yield* inTime(Effect.provideService(call, RetryQuota.RetryQuota, own))
        assert.deepStrictEqual(exit, Exit.succeed("ok"))
      }
      assert.strictEqual(yield* own.balance, 500)
    }))

  it.effect("comes after all: attempts that race share what it pays again", () =>
    Effect.gen(function*() {
      let sends = 0
      const blip = Effect.suspend((): Effect.Effect<number, Transient> => sends++ === 0 ? failing : Effect.succeed(1))
      const slow = Effect.delay(blip, 20)
      const fast = Effect.delay(failing, 10)
      const late = Schedule.addDelay(awsStandard, () => Effect.succeed("10 seconds"))
      const both = Effect.race(attempt(fast), attempt(slow))
      const fiber = yield* Effect.forkChild(Effect.retry(both, late))
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* RetryQuota.balance, 500)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* Fiber.join(fiber), 1)
      assert.strictEqual(yield* RetryQuota.balance, 500)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("comes after all: attempts that race wait for a quota that answers late", () =>
    Effect.gen(function*() {
      const kept = yield* RetryQuota.make()
      const quota = RetryQuota.fromStore({
        capacity: 500,
        successIncrement: 0,
        firstAttemptCost: 0,
        whenExhausted: "stop",
        reserve: (cost, clock) => (_, hold) =>
          Effect.delay(
            Effect.sync(() => {
              const held = kept.store.reserve(cost, clock)
              if (held !== undefined && typeof held !== "function") hold(held)
            }),
            100
          ),
        deposit: (tokens, clock) => kept.store.deposit(tokens, clock),
        balance: (clock) => kept.store.balance(clock)
      })
      const late = Schedule.addDelay(awsStandard, () => Effect.succeed("10 seconds"))
      const calls = [scripted([new Transient()]), scripted([])]
      const both = Effect.all(calls.map(({ effect }) => attempt(effect)), { concurrency: "unbounded" })
      const fiber = yield* Effect.forkChild(
        Effect.provideService(Effect.retry(both, late), RetryQuota.RetryQuota, quota)
      )
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* quota.balance, 500)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual<ReadonlyArray<string>>(yield* Fiber.join(fiber), ["ok", "ok"])
      assert.strictEqual(yield* quota.balance, 500)
    }))

  it.effect("comes after all, and waits for tokens no longer than until the deadline", () =>
    Effect.gen(function*() {
      const policy = Backoff.fixed({ delay: "1 second" }).pipe(
        RetryPolicy.deadline("20 seconds"),
        RetryPolicy.quotaGated({ cost: 5 })
      )
      const late = Schedule.addDelay(policy, () => Effect.succeed("10 seconds"))
      const call = scripted([new Transient()])
      const reasons: Array<string> = []
      const fiber = yield* Effect.forkChild(
        Effect.provideService(
          Effect.exit(Effect.retry(attempt(call.effect), late)),
          RetryObserver.CurrentObserver,
          { onStop: ({ reason }) => void reasons.push(reason) }
        )
      )
      yield* TestClock.adjust("5 seconds")
      yield* RetryQuota.reserve(5)
      yield* TestClock.adjust("15 seconds")
      assert.isTrue(Exit.isFailure(yield* Fiber.join(fiber)))
      assert.deepStrictEqual([call.sends, reasons], [1, ["deadline"]])
    }).pipe(Effect.provide(RetryQuota.layer({ capacity: 5, refillPerSecond: 0.05, whenExhausted: "wait" }))))
})

describe("attempts that race inside one retried effect", () => {
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

  it.effect("share it with one in the fiber that decided: the first success gives it back", () =>
    Effect.gen(function*() {
      const fast = scripted([new Transient(), new Transient()])
      const slow = scripted([new Transient()])
      const call = Effect.gen(function*() {
        const other = yield* Effect.forkChild(attempt(slow.effect), { startImmediately: true })
        yield* Effect.ignore(attempt(fast.effect))
        return yield* Fiber.join(other)
      })
      const exit = yield* inTime(
        Effect.retry(call, awsStandard).pipe(
          Effect.provideService(RetryObserver.CurrentObserver, { onRetry: () => Effect.sleep("1 second") })
        )
      )
      assert.deepStrictEqual(exit, Exit.succeed("ok"))
      assert.deepStrictEqual([fast.sends, slow.sends], [2, 2])
      assert.strictEqual(yield* RetryQuota.balance, 500)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("spend what they share when all have failed, and once", () =>
    Effect.gen(function*() {
      const slow = Effect.andThen(Effect.sleep("1 second"), failing)
      const both = Effect.race(attempt(slow), attempt(failing))
      yield* inTime(Effect.retry(both, awsStandard))
      assert.strictEqual(yield* RetryQuota.balance, 490)
    }).pipe(Effect.provide(RetryQuota.layer())))
})

it.effect("of two attempts in a row inside one retried effect, only the first is the retry", () =>
  Effect.gen(function*() {
    const [first, second] = [scripted([new Transient()]), Effect.succeed("ok")]
    const policy = Backoff.fixed({ delay: 10 }).pipe(RetryPolicy.maxAttempts(3))
    yield* inTime(Effect.retry(Effect.andThen(attempt(first.effect), attempt(second)), policy))
    assert.strictEqual(yield* RetryQuota.balance, 101)
  }).pipe(Effect.provide(RetryQuota.layer({ initial: 100 }))))

it.effect("of an attempt inside an attempt, an observer sees both sends, first and retried", () =>
  Effect.gen(function*() {
    const sends: Array<number> = []
    const call = scripted([new Transient()])
    yield* inTime(
      Effect.retry(attempt(attempt(call.effect)), awsStandard).pipe(
        Effect.provideService(RetryObserver.CurrentObserver, { onSend: ({ attempt }) => void sends.push(attempt) })
      )
    )
    assert.deepStrictEqual(sends, [1, 1, 2, 2])
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
    ["Effect.retry", (self: Effect.Effect<string, any>) => Effect.retry(attempt(self), AwsModes.awsAdaptive)],
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
        assert.deepStrictEqual(stops, [["vetoed", 2]])
      }).pipe(
        Effect.provide([
          RetryQuota.layer(),
          AdaptiveRateLimiter.layer({ whenExceeded: "fail", minFillRate: 1e-6, minCapacity: 1 })
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
        const policy = Backoff.fixed({ delay: "10 seconds" }).pipe(
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
        const policy = Backoff.fixed({ delay: "1 second" }).pipe(
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
      const shared: Shared = (globalThis as any)[Symbol.for("effect-retry/shared")]
      const { marking = false, nesting } = shared
      shared.nesting = shared.marking = false
      const retries: Array<number> = []
      const call = Effect.flatMap(Effect.service(Schedule.CurrentMetadata), ({ attempt }) => {
        retries.push(attempt)
        return attempt < 2 ? failing : Effect.void
      })
      const worker = yield* Effect.forkChild(Effect.andThen(withRetry(call, steady), Effect.never))
      yield* TestClock.adjust("15 seconds")
      RetryPolicy.outermostOnly(steady)
      yield* TestClock.adjust("1 minute")
      Object.assign(shared, { marking, nesting })
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
        const fast = Backoff.fixed({ delay: 1 }).pipe(RetryPolicy.maxAttempts(3), RetryPolicy.quotaGated({ cost: 4 }))
        const foreign = copy.Backoff.fixed({ delay: 1 }).pipe(
          copy.RetryPolicy.maxAttempts(3),
          copy.RetryPolicy.outermostOnly
        )
        type Outer = <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R | RetryQuota.RetryQuota>
        const outers: ReadonlyArray<Outer> = [
          (self) => withRetry(self, fast),
          (self) => Effect.retry(attempt(self), fast)
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
