import { assert, describe, it } from "@effect/vitest"
import { Backoff, InvalidOption, RetryObserver, RetryQuota, type RetryQuotaStore, type SendGate } from "effect-retry"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { CallEnvironment } from "../../src/engine/environment.ts"
import { fiberScope, Permit } from "../../src/engine/permit.ts"
import { passing } from "../../src/engine/scopedPass.ts"

/** A permit that holds tokens and a pass, and says how they end. */
const holding = (told: Array<string>, name = "") => {
  const permit = new Permit(new CallEnvironment(Context.empty(), undefined, []), 1)
  permit.pay({ cost: 1, giveBack: () => told.push(`${name}back`) > 0, spend: () => told.push(`${name}spent`) > 0 })
  permit.hold({ settle: ({ _tag }) => void told.push(_tag), cancel: () => void told.push("canceled") })
  return permit
}

const verbs = {
  leave: (permit: Permit) => permit.sent(),
  succeeds: (permit: Permit) => permit.succeeded("ok"),
  fails: (permit: Permit) => permit.failed("error"),
  abandon: (permit: Permit) => permit.abandon(),
  cancel: (permit: Permit) => void permit.cancel()
}

describe("a permit is settled once, and as sent only if it was", () => {
  const rows: ReadonlyArray<readonly [done: ReadonlyArray<keyof typeof verbs>, told: ReadonlyArray<string>]> = [
    [["succeeds"], []],
    [["fails"], []],
    [["cancel"], ["back", "canceled"]],
    [["abandon"], ["back", "canceled"]],
    [["leave"], []],
    [["leave", "cancel"], []],
    [["leave", "succeeds"], ["back", "Success"]],
    [["leave", "fails"], ["spent", "Failure"]],
    [["leave", "abandon"], ["spent", "Unknown"]]
  ]
  for (const [done, expected] of rows) {
    it(`${done.join(", then ")}: ${expected.join(", ") || "nothing"}`, () => {
      const told: Array<string> = []
      const permit = holding(told)
      for (const verb of done) verbs[verb](permit)
      assert.deepStrictEqual(told, expected)
      if (expected.length === 0) return
      for (const verb of Object.values(verbs)) verb(permit)
      assert.deepStrictEqual(told, expected)
    })
  }
})

describe("a permit leaves the quota with what it spent, no more and no less", () => {
  const rows: ReadonlyArray<readonly [done: ReadonlyArray<keyof typeof verbs>, retry: number, balance: number]> = [
    [[], 1, 393],
    [["cancel"], 1, 400],
    [["abandon"], 1, 400],
    [["leave"], 1, 393],
    [["leave", "succeeds"], 1, 400],
    [["leave", "fails"], 1, 393],
    [["leave", "abandon"], 1, 393],
    // A first send pays its fee when it is made, however it ends.
    [["cancel"], 0, 400],
    [["leave"], 0, 393],
    [["leave", "succeeds"], 0, 393],
    [["leave", "fails"], 0, 393]
  ]
  const paid = (retry: number) =>
    Effect.gen(function*() {
      const quota = yield* RetryQuota.make({ initial: 400 })
      const clock = yield* Clock.Clock
      const world = new CallEnvironment(Context.make(RetryQuota.RetryQuota, quota), quota, [])
      const permit = new Permit(world, retry)
      const pay = () => permit.pay(quota.store.reserve(7, clock) as RetryQuotaStore.Reservation)
      pay()
      return { permit, pay, balance: quota.balance }
    })
  for (const [done, retry, expected] of rows) {
    it.effect(`${retry === 0 ? "a first send" : "a retry"}: ${done.join(", then ") || "held"}: ${expected} of 400`, () =>
      Effect.gen(function*() {
        const { balance, permit } = yield* paid(retry)
        for (const verb of done) verbs[verb](permit)
        assert.strictEqual(yield* balance, expected)
        for (const verb of done.slice(1)) verbs[verb](permit)
        assert.strictEqual(yield* balance, expected)
      }))
  }

  it.effect("tokens that come when it has ended, or was sent, go back", () =>
    Effect.gen(function*() {
      const [canceled, sent] = [yield* paid(1), yield* paid(1)]
      canceled.permit.cancel()
      canceled.pay()
      assert.strictEqual(yield* canceled.balance, 400)
      sent.permit.sent()
      sent.pay()
      assert.strictEqual(yield* sent.balance, 393)
    }))
})

it.effect("a permit that is settled out of order leaves the others to their fiber", () =>
  Effect.gen(function*() {
    const told: Array<string> = []
    const fiber = yield* Effect.forkChild(Effect.withFiber((fiber) => {
      const permits = ["a", "b", "c", "d"].map((name) => holding(told, name))
      for (const permit of permits) fiberScope(permit, fiber)
      permits[0]!.cancel()
      permits[2]!.cancel()
      return Effect.fail("ended")
    }))
    yield* Fiber.await(fiber)
    yield* Effect.yieldNow
    assert.deepStrictEqual(told.filter((word) => word !== "canceled"), ["aback", "cback", "dback", "bback"])
  }))

it.effect("a send, and its outcome, keep the time at which they were first asked for it", () =>
  Effect.gen(function*() {
    const clock = yield* Clock.Clock
    const world = new CallEnvironment(Context.make(Clock.Clock, clock), undefined, [])
    for (const start of [0, 60_000]) {
      const permit = new Permit(world, 0)
      let outcome: SendGate.Outcome | undefined
      permit.hold({ settle: (ended) => void (outcome = ended), cancel: () => {} })
      assert.strictEqual(permit.nowMillis, start)
      permit.sent()
      permit.succeeded("ok")
      assert.strictEqual(outcome!.nowMillis, start)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual([permit.nowMillis, outcome!.nowMillis], [start, start])
    }
  }))

describe("a pass for as long as a scope is open", () => {
  it.effect("is canceled if the gate refuses after all", () =>
    Effect.gen(function*() {
      const told: Array<string> = []
      const gate: SendGate.SendGate<string> = {
        order: 1,
        enter: (send) => {
          send.hold({ settle: ({ _tag }) => told.push(_tag), cancel: () => told.push("canceled") })
          return Effect.fail("full")
        }
      }
      const context = yield* Effect.context<never>()
      assert.deepStrictEqual(yield* Effect.exit(Effect.scoped(passing(gate, context))), Exit.fail("full"))
      assert.deepStrictEqual(told, ["canceled"])
    }))

  it.effect("is not a send", () =>
    Effect.gen(function*() {
      let sends = 0
      const gate: SendGate.SendGate = { order: 1, enter: () => {} }
      yield* Effect.scoped(Effect.contextWith((context: Context.Context<any>) => passing(gate, context))).pipe(
        Effect.provideService(RetryObserver.CurrentObserver, { onSend: () => void sends++ })
      )
      assert.strictEqual(sends, 0)
    }))
})

it("a jitter of null is refused", () => {
  assert.throws(() => Backoff.fixed(1, { jitter: null as any }), InvalidOption)
})
