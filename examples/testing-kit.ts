/**
 * The testing kit: tests of your own code, with its real policy, in no
 * time and exact to the millisecond.
 *
 * Each program here is the body of an `it.effect` test. The kit needs
 * no test framework: a failed assertion throws an error with `actual`
 * and `expected`, and test runners show the difference.
 */
import { Effect } from "effect"
import {
  attempt,
  awsAdaptive,
  awsStandard,
  withRetry
} from "effect-retry"
import * as Kit from "effect-retry/testing"
import { TestClock } from "effect/testing"
import * as assert from "node:assert/strict"
import { Bulkhead } from "./own-gate.ts"
import { RecentShare } from "./own-store.ts"
import { main, print } from "./support/program.ts"

/** The code under test: a client that retries. */
const load = <E, R>(send: Effect.Effect<string, E, R>) =>
  send.pipe(Effect.timeout("1 second"), withRetry(awsStandard))

/**
 * A call that follows a script. Full jitter is half of its ceiling: 500
 * ms, then 1 s.
 */
export const retriesTwice = Effect.gen(function*() {
  const call = Kit.outcomes(
    [Kit.throttled, Kit.transient, Kit.ok("x")],
    { latency: "30 millis" }
  )
  assert.equal(yield* load(call.send).pipe(Kit.runToEnd), "x")
  call.timeline.expect("attempts at 0 ms, 530 ms, 1.56 s")
}).pipe(Effect.provide([Kit.TestQuota.layer(), Kit.fixedRandom(0.5)]))

/**
 * What the policy decided: a send that hangs is cut off after a second,
 * and the last one is not retried.
 */
export const givesUp = Effect.gen(function*() {
  const events = Kit.timeline()
  const call = Kit.outcomes([Kit.never], { afterwards: "repeat" })
  const error = yield* load(call.send).pipe(
    Effect.provide(events.layer),
    Effect.flip,
    Kit.runToEnd
  )
  assert.equal(error._tag, "TimeoutError")
  events.expect("retries at 1 s, 2.5 s; max-attempts at 4.5 s")
}).pipe(Effect.provide([Kit.TestQuota.layer(), Kit.fixedRandom(0.5)]))

/**
 * An empty quota: the call is sent once. Each timeout would have cost
 * 10.
 */
export const sparesAServiceThatIsDown = Effect.gen(function*() {
  const call = Kit.outcomes([Kit.timeout])
  yield* load(call.send).pipe(Effect.exit, Kit.runToEnd)
  call.timeline.expect("attempts at 0 ms")
  assert.deepEqual(yield* Kit.TestQuota.state, {
    balance: 9,
    capacity: 500,
    held: 0,
    waiting: 0
  })
}).pipe(Effect.provide(Kit.TestQuota.layer({ initial: 9 })))

/**
 * A service that is down for three seconds, and ten calls per second:
 * the quota bounds what reaches it.
 */
export const survivesAnOutage = Effect.gen(function*() {
  const orders = Kit.service({
    capacity: 100,
    outages: [{ from: "1 second", to: "4 seconds" }]
  })
  const caller = Effect.exit(load(Effect.as(orders.send, "order")))
  const callers = Array.from(
    { length: 60 },
    (_, n) => Effect.delay(caller, n * 100)
  )
  yield* Effect.all(callers, { concurrency: "unbounded" }).pipe(
    Kit.runToEnd
  )
  const { balance } = yield* Kit.TestQuota.state
  assert.ok(orders.requests <= 60 + 8, `${orders.requests} requests`)
  return { requests: orders.requestsPerSecond, balance }
}).pipe(
  Effect.provide([
    Kit.TestQuota.layer({ capacity: 40 }),
    Kit.seededRandom("outage")
  ])
)

/**
 * A limiter that starts as after a throttle, at two sends per second;
 * the responses, which speed it up, take longer.
 */
export const paysForEverySend = Effect.gen(function*() {
  const call = Kit.outcomes([Kit.ok()], {
    afterwards: "repeat",
    latency: "2 seconds"
  })
  const send = attempt(call.send)
  yield* Effect.all([send, send, send], { concurrency: "unbounded" })
    .pipe(Kit.runToEnd)
  call.timeline.expect("attempts at 500 ms, 1 s, 1.5 s")
  return yield* Kit.TestLimiter.state
}).pipe(Effect.provide(Kit.TestLimiter.layer({ fillRate: 2 })))

/**
 * A call loses no token, at whichever step it is interrupted: the sweep
 * tries them all.
 */
export const losesNoToken = Effect.gen(function*() {
  const call = Effect.suspend(() => {
    const { send } = Kit.outcomes([
      Kit.transient,
      Kit.throttled,
      Kit.ok("x")
    ])
    return send.pipe(withRetry(awsAdaptive))
  })
  return yield* Kit.sweepQuota(call, { limiter: { fillRate: 2 } })
}).pipe(Effect.provide(Kit.fixedRandom(0.5)))

/**
 * The contracts of a store and of a gate, as laws: one test each, such
 * as `it.effect(law.name, () => law.run)`.
 */
export const contracts = [
  ...Kit.RetryQuotaStoreSuite.laws(
    Effect.sync(() => new RecentShare())
  ),
  ...Kit.SendGateSuite.laws(
    Effect.sync(() => new Bulkhead({ sends: 3, waiting: 10 }))
  )
]

const tests: Record<string, Effect.Effect<unknown, unknown>> = {
  retriesTwice,
  givesUp,
  sparesAServiceThatIsDown,
  survivesAnOutage,
  paysForEverySend,
  losesNoToken,
  ...Object.fromEntries(contracts.map((law) => [law.name, law.run]))
}

main(
  import.meta.url,
  ...Object.entries(tests).map(([name, test]) =>
    Effect.andThen(
      Effect.provide(test, TestClock.layer()),
      print(`passes: ${name}`)
    )
  )
)
