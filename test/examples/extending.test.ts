import { assert, describe, it } from "@effect/vitest"
import { RetryQuota } from "effect-retry"
import * as Kit from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as OwnGate from "../../examples/own-gate.ts"
import * as OwnStore from "../../examples/own-store.ts"
import { thinned } from "../utils/sweep.ts"

describe("examples/own-store", () => {
  for (const law of Kit.RetryQuotaStoreSuite.laws(Effect.sync(() => new OwnStore.RecentShare()))) {
    it.effect(law.name, () => thinned(5)(law.run))
  }

  it.effect("has ten successes pay for a retry, within ten seconds", () =>
    Effect.gen(function*() {
      const failing = Kit.outcomes([Kit.transient], { afterwards: "repeat" })
      const fail = Effect.exit(OwnStore.load(failing.send)).pipe(Kit.runToEnd)
      yield* fail
      assert.strictEqual(failing.sends, 1)
      yield* Effect.replicateEffect(OwnStore.load(Effect.void), 10)
      assert.closeTo(yield* RetryQuota.balance, 1, 1e-9)
      yield* fail
      assert.strictEqual(failing.sends, 3)
      yield* Effect.replicateEffect(OwnStore.load(Effect.void), 1000)
      assert.closeTo(yield* RetryQuota.balance, 100, 1e-9)
      yield* TestClock.adjust("9 seconds")
      assert.closeTo(yield* RetryQuota.balance, 100, 1e-9)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* RetryQuota.balance, 0)
      yield* fail
      assert.strictEqual(failing.sends, 4)
    }).pipe(Effect.provide([OwnStore.layer, Kit.fixedRandom(0.5)])))
})

describe("examples/own-gate", () => {
  const bulkhead = (options: OwnGate.Options) => Effect.sync(() => new OwnGate.Bulkhead(options))
  describe("that has sends wait", () => {
    for (const law of Kit.SendGateSuite.laws(bulkhead({ sends: 3, waiting: 10 }))) {
      it.effect(law.name, () => thinned(5)(law.run))
    }
  })
  describe("with a short line", () => {
    for (const law of Kit.SendGateSuite.laws(bulkhead({ sends: 1, waiting: 1 }))) {
      it.effect(law.name, () => thinned(5)(law.run))
    }
  })
  describe("without a line", () => {
    const laws = Kit.SendGateSuite.laws(bulkhead({ sends: 3, waiting: 0 }), { onExceeded: "refuses" })
    for (const law of laws) it.effect(law.name, () => thinned(5)(law.run))
  })

  it.effect("admits ten sends, makes twenty wait and refuses the others, which are not sent", () =>
    Effect.gen(function*() {
      const call = Kit.outcomes([Kit.ok()], { afterwards: "repeat", latency: "1 second" })
      const calls = Array.from({ length: 40 }, () => Effect.flip(OwnGate.load(call.send)))
      const all = yield* Effect.forkChild(
        Effect.forEach(
          calls,
          (call) => Effect.match(call, { onFailure: () => "sent", onSuccess: (error: unknown) => error }),
          {
            concurrency: "unbounded"
          }
        )
      )
      yield* TestClock.adjust(0)
      assert.strictEqual(call.sends, 10)
      yield* TestClock.adjust("3 seconds")
      const ends = yield* Fiber.join(all)
      assert.strictEqual(ends.filter((end) => end === "sent").length, 30)
      assert.strictEqual(ends.filter((end) => end instanceof OwnGate.BulkheadFull).length, 10)
      yield* Effect.forkChild(Effect.forEach(Array(30), () => OwnGate.load(call.send), { concurrency: "unbounded" }))
      yield* Effect.yieldNow
      assert.strictEqual(yield* OwnGate.orBusy(Effect.succeed("ok")), "busy: BulkheadFull")
      call.timeline.expect(`attempts at ${[0, 1, 2, 3].flatMap((second) => Array(10).fill(`${second} s`)).join(", ")}`)
    }).pipe(Effect.provide([OwnGate.layer, Kit.TestQuota.layer()])))
})
