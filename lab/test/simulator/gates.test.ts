import type * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { retrying, simulate, simulateInput } from "../utils/simulate.ts"

const totalsOf = ({ clients }: Simulator.SimulationResult) => clients[0]!.totals

describe("the cool-down of a process", () => {
  /** 100 requests a second, all throttled from second 2 to second 4 with what is left of it as a hint. */
  const throttling = (coolDown?: object) =>
    simulateInput({
      name: "throttling",
      duration: "6 seconds",
      fleets: [{
        name: "fleet",
        to: "service",
        rate: 100,
        policy: retrying({ attempts: 1, ...coolDown && { coolDown } })
      }],
      services: [{ name: "service", latency: 10, limit: { requests: 150, per: "2 seconds", retryAfter: "1 second" } }]
    })

  it.live("sends nothing while the hint lasts: most throttles are gone", () =>
    Effect.gen(function*() {
      const without = totalsOf(yield* throttling())
      const failing = totalsOf(yield* throttling({ maxWait: 0 }))
      assert.isAbove(without.failures.throttled!, 100)
      assert.isBelow(failing.failures.throttled!, 30)
      assert.isAbove(failing.failures.refused!, 50)
      assert.strictEqual(failing.attempts + failing.failures.refused!, failing.calls)
    }))

  it.live("makes sends wait if the service will answer soon", () =>
    Effect.gen(function*() {
      const waiting = totalsOf(yield* throttling({ maxWait: "10 seconds" }))
      const { succeeded } = totalsOf(yield* throttling({ maxWait: 0 }))
      assert.isUndefined(waiting.failures.refused)
      assert.isAbove(waiting.succeeded, succeeded)
    }))
})

describe("the throttle of a process", () => {
  it.live("is bounded unless set as published: one send in ten probes a service that is down", () =>
    Effect.gen(function*() {
      const down = (throttle: object) =>
        simulate("client-throttling", {
          scenario: { duration: "2 minutes" },
          fleet: { rate: 50, policy: retrying({ attempts: 1, throttle }) },
          service: { limit: { requests: 0 } }
        })
      const bounded = totalsOf(yield* down({}))
      const published = totalsOf(yield* down({ window: "2 minutes", maxRejection: 1, counts: "sent" }))
      assert.closeTo(bounded.attempts / bounded.calls, 0.1, 0.01)
      assert.isBelow(published.attempts / published.calls, 0.005)
      assert.strictEqual(bounded.attempts + bounded.failures.dropped!, bounded.calls)
    }))
})

describe("quota and budget of a process", () => {
  it.live("a retry passes where both grant it", () =>
    Effect.gen(function*() {
      const sent = (policy: object) =>
        Effect.map(
          simulate("finagle-budget", { fleet: { policy } }),
          (result) => totalsOf(result).attempts - 10_000
        )
      const quota = { capacity: 300 }
      const budget = { kind: "finagle" }
      assert.strictEqual(yield* sent(retrying({ cost: 1, quota })), 300)
      assert.strictEqual(yield* sent(retrying({ attempts: 2, budget })), 2100)
      assert.strictEqual(yield* sent(retrying({ cost: 1, quota, budget })), 300)
      assert.strictEqual(yield* sent(retrying({ attempts: 2, cost: 1, quota: { capacity: 5000 }, budget })), 2100)
    }))
})
