import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Chance } from "../../src/simulator/chance.ts"
import { overTime } from "../../src/simulator/overTime.ts"
import { simulateInput } from "../utils/simulate.ts"

/** Even calls, 10 in a second unless it says otherwise, and a service. */
const scenario = (service: object, fleet: object = {}, rest: object = {}) => ({
  name: "test",
  duration: "10s",
  drain: "60s",
  ...rest,
  fleets: [{ name: "clients", to: "server", rate: 10, arrivals: "even", ...fleet }],
  services: [{ name: "server", ...service }]
})

const run = (service: object, fleet?: object, rest?: object) => simulateInput(scenario(service, fleet, rest))

const totals = (result: Simulator.SimulationResult) => result.clients[0]!.totals

/** Calls that succeeded, second by second. */
const succeeded = (result: Simulator.SimulationResult) =>
  result.clients[0]!.series.slice(0, 10).map(({ succeeded }) => succeeded)

const refusals = (input: unknown) =>
  Effect.map(Effect.flip(Simulator.decode(input)), ({ message }) => message.split("\n"))

describe("overTime", () => {
  it.each([
    { at: 0, expected: 10 },
    { at: 999, expected: 10 },
    { at: 1000, expected: 20 },
    { at: 1500, expected: 30 },
    { at: 2000, expected: 40 },
    { at: 1e9, expected: 40 }
  ])("vector: $expected at $at ms", ({ at, expected }) => {
    const value = overTime([
      { atMillis: 500, value: 10, ramp: false },
      { atMillis: 1000, value: 20, ramp: false },
      { atMillis: 2000, value: 40, ramp: true }
    ])
    assert.strictEqual(value(at), expected)
  })
})

describe("a service", () => {
  it.effect("serves as many as its capacity at each time allows", () =>
    Effect.gen(function*() {
      const capacity = [{ at: 0, capacity: 20 }, { at: "3s", capacity: 5 }, { at: "6s", capacity: 5 }, {
        at: "8s",
        capacity: 40,
        ramp: true
      }]
      const result = yield* run({ capacity })
      assert.deepStrictEqual(succeeded(result).slice(0, 3), [10, 10, 10])
      for (const count of succeeded(result).slice(3, 6)) assert.closeTo(count, 5, 1)
      // 5 to 40 in two seconds: 13.75 in the first, 31.25 in the second.
      assert.closeTo(succeeded(result)[6]!, 13.75, 1.5)
      assert.isAbove(succeeded(result)[7]!, 20)
      assert.strictEqual(totals(result).succeeded, 100)
    }))

  it.effect("throttles by the limit at each time, and a burst carries over to the next limit", () =>
    Effect.gen(function*() {
      const limit = [{ at: "2s", requests: 4, burst: 0 }, { at: "5s", requests: 7 }, {
        at: "8s",
        requests: 100,
        burst: 5
      }]
      const result = yield* run({ limit })
      const passed = succeeded(result)
      assert.deepStrictEqual(passed.slice(0, 2), [10, 10])
      for (const count of passed.slice(2, 5)) assert.closeTo(count, 4, 1)
      assert.deepStrictEqual(passed.slice(5), [7, 7, 7, 10, 10])
      assert.strictEqual(totals(result).failures.throttled, 100 - totals(result).succeeded)
    }))

  it.effect("fails a share of what its limit lets pass, in an outage and always", () =>
    Effect.gen(function*() {
      const limit = { requests: 5 }
      const outage = { kind: "fail", from: 0, to: "10s" }
      const before = yield* run({ limit, outages: [outage] })
      const behind = yield* run({ limit, outages: [{ ...outage, behindLimit: true }] })
      const early = yield* run({ limit, earlyFailureRate: 1 })
      assert.deepStrictEqual(totals(before).failures, { unavailable: 100 })
      for (const result of [behind, early]) {
        assert.deepStrictEqual(totals(result).failures, { unavailable: 50, throttled: 50 })
      }
    }))

  it.effect("accepts no more than it can do within the bound of its queue", () =>
    Effect.gen(function*() {
      // Turns of 200 ms, calls each 100 ms: from the sixth place on the line would be longer than a second.
      const result = yield* run({ capacity: 5, admitWithin: "1s" })
      const { latency, succeeded } = totals(result)
      assert.closeTo(succeeded, 54, 1)
      assert.isAtMost(latency.maxMillis!, 1000)
      assert.isAbove(latency.maxMillis!, 880)
      assert.strictEqual(totals(result).failures.overloaded, 100 - succeeded)
    }))

  describe("costs", () => {
    it.effect("a connection for each concurrent send, and a new one after each that was given up", () =>
      Effect.gen(function*() {
        const calm = yield* run({ capacity: 100, costs: { connecting: 50 } })
        // The first call makes a connection, which the others use.
        assert.deepStrictEqual([totals(calm).latency.maxMillis, totals(calm).latency.p50Millis! < 11], [60, true])
        // Turns of 90 ms for calls each 100 ms: there would be time, if connections were kept. Each is given up.
        const cut = yield* run({ capacity: 1000 / 90, costs: { connecting: 50 } }, { timeout: 80 })
        assert.strictEqual(totals(cut).succeeded, 0)
        assert.isAbove(cut.untilMillis, 10_000)
        assert.strictEqual(cut.services[0]!.totals.wasted, cut.services[0]!.totals.succeeded)
      }))

    it.effect("refusals keep the service from its work", () =>
      Effect.gen(function*() {
        const limited = { capacity: 10, limit: { requests: 5 } }
        const free = yield* run(limited)
        const paid = yield* run({ ...limited, costs: { refusing: 150 } })
        assert.strictEqual(totals(free).latency.maxMillis, 100)
        // Three quarters of a second of refusals in the idle half of each second: a quarter is left for the next five.
        assert.isAbove(totals(paid).latency.maxMillis!, 150)
        assert.strictEqual(totals(paid).succeeded, 50)
      }))

    it.effect("a client that has given up still costs work; dropped, only the cost of noticing", () =>
      Effect.gen(function*() {
        const hold = { kind: "hold", from: 0, to: "2s" }
        const after = (service: object) =>
          Effect.map(
            run({ capacity: 20, outages: [hold], ...service }, { timeout: 500 }),
            (result) => totals(result).succeeded
          )
        const none = yield* after({})
        const costly = yield* after({ costs: { abandoning: 45 } })
        const dropping = yield* after({ costs: { abandoning: 45 }, dropsAbandoned: true })
        const free = yield* after({ dropsAbandoned: true })
        assert.isBelow(costly, none)
        assert.isAbove(dropping, costly)
        assert.isAtLeast(free, dropping)
        assert.isAbove(free, none)
      }))
  })

  it.effect("a stopped process holds as many connections as its accept queue has room for", () =>
    Effect.gen(function*() {
      const hold = { kind: "hold", from: 0, to: "5s", backlog: 12 }
      const { clients: [client], services: [service] } = yield* run({ outages: [hold] }, { timeout: "1s" })
      assert.strictEqual(client!.totals.failures.timeout, 50)
      assert.strictEqual(service!.totals.received, 12 + 50)
    }))

  describe("of several instances", () => {
    it.effect("handles that many times as much, whichever instance gets a request", () =>
      Effect.gen(function*() {
        for (const choice of ["round-robin", "least", "random"] as const) {
          const result = yield* run({ instances: 4, capacity: 5, balancer: { choice } }, { rate: 16 })
          assert.strictEqual(totals(result).succeeded, 160, choice)
          if (choice !== "random") assert.strictEqual(totals(result).latency.maxMillis, 200, choice)
        }
      }))

    const oneFails = { kind: "fail", from: "2s", to: "6s", instance: 1 }

    it.effect("fails for its share while one instance does, until the balancer notices", () =>
      Effect.gen(function*() {
        const blind = yield* run({ instances: 4, outages: [oneFails] }, { rate: 40 })
        assert.deepStrictEqual(succeeded(blind), [40, 40, 30, 30, 30, 30, 40, 40, 40, 40])
        const seeing = yield* run({ instances: 4, outages: [oneFails], balancer: { notices: "1s" } }, { rate: 40 })
        assert.deepStrictEqual(succeeded(seeing), [40, 40, 30, 40, 40, 40, 40, 40, 40, 40])
      }))

    it.effect("gives a returning instance its share little by little", () =>
      Effect.gen(function*() {
        // The instance that was out is slow from then on, so that its share is seen.
        const outages = [{ kind: "fail", from: 0, to: "2s", instance: 0 }, {
          kind: "slow",
          from: "2s",
          to: "10s",
          factor: 100,
          instance: 0
        }]
        const shares = yield* Effect.forEach(["round-robin", "random"] as const, (choice) =>
          Effect.map(
            run(
              { instances: 2, workers: 1000, latency: 1, outages, balancer: { choice, notices: 0, slowStart: "4s" } },
              { rate: 1000 }
            ),
            ({ clients: [client] }) => client!.series.map(({ latency }) => latency.meanMillis)
          ))
        for (const means of shares) {
          assert.strictEqual(means[1], 1)
          assert.isTrue(means[2]! < means[3]! && means[3]! < means[4]! && means[4]! < means[5]!)
        }
        // A weight of w next to 1: w / (1 + w) of the requests. In the first second w is an eighth on average.
        assert.closeTo((shares[0]![2]! - 1) / 99, 0.1, 0.02)
        assert.closeTo((shares[0]![9]! - 1) / 99, 0.5, 0.02)
      }))

    it.effect("sends to all when all are out", () =>
      Effect.gen(function*() {
        const outages = [0, 1].map((instance) => ({ kind: "fail", from: 0, to: "10s", instance }))
        const result = yield* run({ instances: 2, outages, balancer: { notices: 0 } })
        assert.deepStrictEqual(totals(result).failures, { unavailable: 100 })
      }))
  })
})

describe("a call", () => {
  it.effect("ends when the patience of its caller does, whatever is in progress", () =>
    Effect.gen(function*() {
      const backoff = { steps: [{ fixed: { delay: 700 } }] }
      const fail = { kind: "fail", from: 0, to: "1h" }
      const inBackoff = yield* run({ outages: [fail] }, { patience: "1s", policy: backoff })
      assert.deepStrictEqual(totals(inBackoff).failures, { timeout: 100 })
      assert.strictEqual(totals(inBackoff).attempts, 200)
      const inFlight = yield* run({ latency: "5s" }, { patience: "1s" })
      assert.deepStrictEqual(totals(inFlight).failures, { timeout: 100 })
      // The run ends with the last call, at 11 seconds: what was sent from 6 seconds on is still worked on.
      assert.strictEqual(inFlight.services[0]!.totals.wasted, 60)
      const atAGate = yield* run({ latency: "5s" }, {
        patience: "1s",
        policy: { steps: [{ fixed: { delay: 0 } }], concurrency: { limit: 1, maxWait: "1m" } }
      })
      // The slot of a call that has ended is free for the next.
      assert.deepStrictEqual(totals(atAGate).failures, { timeout: 100 })
      assert.isAtLeast(totals(atAGate).attempts, 10)
      const inTime = yield* run({ latency: 900 }, { patience: "1s" })
      assert.strictEqual(totals(inTime).succeeded, 100)
    }))

  it.effect("law: without faults nothing is lost, whatever the service is made of", () =>
    Effect.gen(function*() {
      const chance = new Chance(1, "services")
      for (let round = 0; round < 40; round++) {
        const service = {
          instances: 1 + chance.below(4),
          ...chance.below(2) === 0
            ? { workers: 1 + chance.below(5), latency: 20 }
            : { capacity: 20 + chance.below(50) },
          costs: { connecting: chance.below(5), refusing: chance.below(5), abandoning: chance.below(5) },
          dropsAbandoned: chance.below(2) === 0,
          queue: chance.below(30),
          earlyFailureRate: chance.below(2) * 0.2
        }
        const result = yield* run(service, {
          rate: 100,
          arrivals: "poisson",
          timeout: 200,
          patience: 50 + chance.below(500),
          policy: "naive"
        }, { seed: round })
        const { attempts, calls, failed, succeeded } = totals(result)
        const { failures, received, succeeded: answered } = result.services[0]!.totals
        assert.strictEqual(succeeded + failed, calls)
        const refused = Object.values(failures).reduce<number>((sum, count) => sum + (count ?? 0), 0)
        assert.isAtMost(answered + refused, received)
        if (!service.dropsAbandoned) assert.isAtLeast(answered + refused, received - 200)
        assert.strictEqual(received, attempts)
      }
    }))
})

describe("Simulator.decode refuses", () => {
  for (
    const [what, service, expected, fleet] of [
      [
        "a line bounded in time without a capacity",
        { admitWithin: 5 },
        "services[0].admitWithin: requires a capacity"
      ],
      [
        "costs without anything to pay them",
        { costs: { refusing: 1 } },
        "services[0].costs: require a capacity or workers"
      ],
      [
        "a balancer before one instance",
        { balancer: { choice: "least" } },
        "services[0].balancer: requires several instances"
      ],
      [
        "a slow start that never comes",
        { instances: 2, balancer: { slowStart: 5 } },
        "services[0].balancer.slowStart: requires notices: an instance that is never taken out never comes back"
      ],
      [
        "an instance that does not exist",
        { instances: 2, outages: [{ kind: "slow", from: 0, to: 5, factor: 2, instance: 2 }] },
        "services[0].outages[0].instance: must be below 2: there is no such instance"
      ],
      [
        "a capacity out of order",
        { capacity: [{ at: 5, capacity: 1 }, { at: 5, capacity: 2 }] },
        "services[0].capacity[1].at: must be later than the point before"
      ],
      [
        "a limit out of order",
        { limit: [{ at: 5, requests: 1 }, { at: 4, requests: 2 }] },
        "services[0].limit[1].at: must be later than the point before"
      ],
      ["a limit per nothing", { limit: [{ at: 5, requests: 1, per: 0 }] }, "services[0].limit[0].per: must be above 0"],
      [
        "a backlog for those that wait forever",
        { outages: [{ kind: "hold", from: 0, to: 5, backlog: 5 }] },
        `fleets[0].timeout: is needed: an outage of "server" drops requests`
      ],
      ["no patience", {}, "fleets[0].patience: must be above 0", { patience: 0 }]
    ] as const
  ) {
    it.effect(what, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* refusals(scenario(service, fleet)), [expected])
      }))
  }
})
