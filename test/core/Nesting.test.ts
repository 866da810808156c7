import { assert, describe, it } from "@effect/vitest"
import { attempt, awsStandard, RetryObserver, RetryPolicy, RetryQuota, withRetry, withRetryOrElse } from "effect-retry"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as TestClock from "effect/testing/TestClock"
import { headersIn } from "../../src/internal/propagation.ts"
import { Terminal, Transient } from "../utils/call.ts"
import { drivers } from "../utils/drivers.ts"
import { inTime } from "../utils/inTime.ts"

const leaf = () => {
  const call = { sends: 0, effect: undefined as unknown as Effect.Effect<never, Transient> }
  call.effect = Effect.suspend(() => {
    call.sends++
    return Effect.fail(new Transient())
  })
  return call
}

describe.each(drivers)("outermostOnly with $form", ({ run }) => {
  const policy = awsStandard.pipe(RetryPolicy.outermostOnly)

  for (const outer of drivers) {
    it.effect(`inside ${outer.form}, sends as often as the outer call alone`, () =>
      Effect.gen(function*() {
        const call = leaf()
        const stops: Array<string> = []
        const observer: RetryObserver.RetryObserver = { onStop: (stopped) => void stops.push(stopped.reason) }
        const layered = outer.run(run(run(call.effect, policy), policy), awsStandard)
        yield* inTime(Effect.provideService(layered, RetryObserver.CurrentObserver, observer))
        assert.strictEqual(call.sends, 3)
        assert.deepStrictEqual([...new Set(stops)].sort(), ["max-attempts", "nested"])
      }).pipe(Effect.provide(RetryQuota.layer())))
  }

  it.effect("is asked for by the inner policy: one that does not ask retries inside another call", () =>
    Effect.gen(function*() {
      const call = leaf()
      yield* inTime(run(Effect.mapError(withRetry(call.effect, awsStandard), (error) => error), awsStandard))
      assert.strictEqual(call.sends, 9)
    }).pipe(Effect.provide(RetryQuota.layer())))

  for (const [name, observer] of [["no observer", {}], ["an observer of attempts", { onAttempt: () => {} }]] as const) {
    it.effect(`inside an attempt that nobody retries, retries: with ${name}`, () =>
      Effect.gen(function*() {
        const call = leaf()
        const alone = attempt(run(call.effect, policy))
        yield* inTime(Effect.provideService(alone, RetryObserver.CurrentObserver, observer))
        assert.strictEqual(call.sends, 3)
      }).pipe(Effect.provide(RetryQuota.layer())))
  }

  it.effect("inside an attempt with a quota of its own, leaves retrying to the call around that", () =>
    Effect.gen(function*() {
      const call = leaf()
      const own = yield* RetryQuota.make()
      const between = Effect.provideService(attempt(run(call.effect, policy)), RetryQuota.RetryQuota, own)
      yield* inTime(withRetry(between, awsStandard))
      assert.strictEqual(call.sends, 3)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("inside a strategy of one's own, leaves retrying to it", () =>
    Effect.gen(function*() {
      const call = leaf()
      const token: RetryStrategy.Token = {
        attempt: 1,
        delay: Duration.zero,
        waited: Duration.zero,
        cost: 0,
        markSent: Effect.succeed(true),
        abandon: Effect.succeed(true)
      }
      let refreshes = 0
      const twice: RetryStrategy.Service = {
        acquireInitialToken: () => Effect.succeed(token),
        refreshRetryToken: () => refreshes++ === 0 ? Effect.succeed(token) : Effect.die("enough"),
        recordSuccess: () => Effect.void
      }
      yield* inTime(
        Effect.provideService(RetryStrategy.run(run(call.effect, policy)), RetryStrategy.RetryStrategy, twice)
      )
      assert.strictEqual(call.sends, 2)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("tells other processes nothing unless asked to", () =>
    Effect.gen(function*() {
      const told: Array<unknown> = []
      const call = Effect.contextWith((context: Context.Context<never>) => {
        told.push(headersIn(context))
        return Effect.fail(new Transient())
      })
      yield* inTime(run(call, policy))
      assert.deepStrictEqual(told, [undefined, undefined, undefined])
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("alone, or inside Effect.repeat, retries", () =>
    Effect.gen(function*() {
      const call = leaf()
      yield* inTime(run(call.effect, policy))
      assert.strictEqual(call.sends, 3)
      yield* inTime(Effect.repeat(Effect.ignore(run(call.effect, policy)), Schedule.recurs(1)))
      assert.strictEqual(call.sends, 9)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("in a child fiber of the attempt, under a timeout, leaves retrying to the outer call", () =>
    Effect.gen(function*() {
      const call = leaf()
      yield* inTime(run(Effect.timeout(run(call.effect, policy), "1 minute"), awsStandard))
      assert.strictEqual(call.sends, 3)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("after the outer call has ended, retries again", () =>
    Effect.gen(function*() {
      const call = leaf()
      yield* inTime(Effect.andThen(Effect.exit(run(run(call.effect, policy), awsStandard)), run(call.effect, policy)))
      assert.strictEqual(call.sends, 6)
    }).pipe(Effect.provide(RetryQuota.layer())))

  for (const [ending, end] of [["succeeded", Effect.void], ["failed", Effect.fail(new Terminal())]] as const) {
    it.effect(`in a fiber that outlives the attempt it was forked in, retries once the attempt has ${ending}`, () =>
      Effect.gen(function*() {
        const call = leaf()
        const forking = Effect.forkDetach(Effect.delay(Effect.ignore(run(call.effect, policy)), "1 second"))
        const outer = run(Effect.andThen(forking, end), awsStandard)
        yield* inTime(Effect.provide(outer, yield* Effect.context<RetryQuota.RetryQuota>()))
        assert.strictEqual(call.sends, 3)
      }).pipe(Effect.provide(RetryQuota.layer())))
  }

  for (const [ending, end] of [["succeeded", Effect.void], ["failed", Effect.fail(new Terminal())]] as const) {
    it.effect(`in a fiber that outlives a send which has ${ending}, retries, though its caller goes on`, () =>
      Effect.gen(function*() {
        const call = leaf()
        const later = Effect.forkDetach(Effect.delay(Effect.ignore(run(call.effect, policy)), 10))
        yield* Effect.ignore(run(Effect.andThen(later, end), policy))
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(call.sends, 3)
      }).pipe(Effect.provide(RetryQuota.layer())))
  }

  it.effect("in the fallback of a call, retries: the call is over", () =>
    Effect.gen(function*() {
      const call = leaf()
      yield* inTime(withRetryOrElse(leaf().effect, policy, () => run(call.effect, policy)))
      assert.strictEqual(call.sends, 3)
    }).pipe(Effect.provide(RetryQuota.layer())))
})
