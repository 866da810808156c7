import type * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as JitterTable from "../../../examples/jitter-table.ts"
import { recoveredAfter } from "../../../examples/simulate.ts"
import { budget, firstOf } from "../../../test/utils/budget.ts"
import { retrying, simulate, simulateInput } from "../utils/simulate.ts"

const near = (actual: number, expected: number, share: number, what: string) =>
  assert.isTrue(
    Math.abs(actual - expected) <= Math.abs(expected) * share,
    `${what}: ${actual}, expected ${expected} +- ${share * 100} %`
  )

const within = (actual: number, expected: number, distance: number, what: string) =>
  assert.isTrue(Math.abs(actual - expected) <= distance, `${what}: ${actual}, expected ${expected} +- ${distance}`)

const sum = (numbers: ReadonlyArray<number>) => numbers.reduce((total, number) => total + number, 0)

const fleetOf = ({ clients }: Simulator.SimulationResult) => clients[0]!
const bottomOf = ({ services }: Simulator.SimulationResult) => services.at(-1)!
const success = (result: Simulator.SimulationResult) =>
  100 * fleetOf(result).totals.succeeded / fleetOf(result).totals.calls
const load = (result: Simulator.SimulationResult) =>
  100 * fleetOf(result).totals.attempts / fleetOf(result).totals.calls

// Source: Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog, 2015, and its simulator.
describe("A1, the jitter table of the AWS Architecture Blog", () => {
  type Name = keyof typeof JitterTable.backoffs

  const rows = new Map<string, { readonly calls: number; readonly millis: number }>()

  const trials: Record<number, number> = { 10: budget(50, 20), 100: budget(15, 3), 190: 8 }
  /** How much wider a band of a hundred clients is with fewer trials than its 15. */
  const wider = Math.sqrt(15 / trials[100]!)

  const row = Effect.fnUntraced(function*(name: Name, clients: number) {
    const key = `${name} ${clients}`
    const found = rows.get(key) ?? (yield* JitterTable.row(name, clients, trials[clients]!))
    rows.set(key, found)
    return found
  })

  // Calls and milliseconds, each with its tolerance.
  for (
    const [clients, table] of [
      [10, {
        Full: [39, 1.3, 467, 62],
        Equal: [42, 1.6, 763, 102],
        Decorr: [37, 1.3, 434, 51],
        Exponential: [51, 2.4, 3480, 750],
        None: [50, 2.4, 380, 20]
      }],
      [100, {
        Full: [796, 796 * 0.01, 4885, 4885 * 0.07],
        Equal: [813, 813 * 0.01, 6632, 6632 * 0.06],
        Decorr: [998, 998 * 0.02, 4587, 4587 * 0.09],
        Exponential: [1853, 1853 * 0.02, 63_472, 63_472 * 0.04],
        None: [2427, 2427 * 0.01, 2032, 2032 * 0.02]
      }]
    ] as const
  ) {
    it.live(`${clients} clients make as many calls, in as much time, as the blog's`, () =>
      Effect.gen(function*() {
        for (const [name, [calls, callsOff, millis, millisOff]] of Object.entries(table)) {
          const mean = yield* row(name as Name, clients)
          const off = clients === 100 ? wider : 1
          within(mean.calls, calls, callsOff * off, `calls of ${name}`)
          within(mean.millis, millis, millisOff * off, `time of ${name}`)
        }
      }))
  }

  it.live("full jitter more than halves the calls of 100 clients; equal jitter saves as many, and takes longer", () =>
    Effect.gen(function*() {
      const full = yield* row("Full", 100)
      const none = yield* row("Exponential", 100)
      const equal = yield* row("Equal", 100)
      within(full.calls / none.calls, 0.43, 0.02 * wider, "calls of Full by those of Exponential")
      within(full.millis / none.millis, 0.078, 0.008 * wider, "time of Full by that of Exponential")
      within(full.calls / equal.calls, 1, 0.025 * wider, "calls of Full by those of Equal")
      assert.isTrue(equal.millis > full.millis)
    }))

  for (const [clients, more, isFaster] of firstOf([[100, 0.25, true], [190, 0.37, false]] as const, 1)) {
    it.live(`decorrelated jitter makes ${more * 100} % more calls than full jitter for ${clients} clients`, () =>
      Effect.gen(function*() {
        const full = yield* row("Full", clients)
        const decorrelated = yield* row("Decorr", clients)
        within(decorrelated.calls / full.calls, 1 + more, 0.02 * (clients === 100 ? wider : 1), "calls")
        assert.strictEqual(decorrelated.millis < full.millis, isFaster)
      }))
  }
})

const tokenBucket = { kind: "bucket", capacity: 5, perCall: 0.1, perSuccess: 0, above: 1 }

const strategies = {
  none: "none",
  retries: retrying({ attempts: 4 }),
  bucket: retrying({ attempts: Infinity, budget: tokenBucket }),
  breaker: retrying({ attempts: 4, budget: { kind: "breaker", threshold: 0.1 } })
}

// Source: Brooker, "Fixing retries with token buckets and circuit breakers", 2022, and its simulator.
describe("A2, token buckets and circuit breakers", () => {
  const run = (policy: unknown, failureRate: number, fleet?: object) =>
    simulate("token-buckets", { fleet: { policy, ...fleet }, service: { failureRate } })

  for (
    const [f, retries, retriesLoad, bucket, bucketLoad, breaker, breakerLoad] of firstOf(
      [
        [0.3, 99.2, 141.6, 79.9, 113.9, 69.9, 100.1],
        [1, 0, 400, 0, 114.3, 0, 100],
        [0.1, 99.99, 111.1, 99.14, 110.3, 92.9, 103.2],
        [0.5, 94.0, 187.0, 56.8, 114.1, 49.7, 100]
      ] as const,
      1
    )
  ) {
    it.live(`at a failure rate of ${f} successes and loads are those of the post`, () =>
      Effect.gen(function*() {
        const [plain, thrice, budgeted, broken] = yield* Effect.all([
          run(strategies.none, f),
          run(strategies.retries, f),
          run(strategies.bucket, f),
          run(strategies.breaker, f)
        ])
        within(success(plain), 100 * (1 - f), 1, "success without retries")
        within(success(thrice), 100 * (1 - f ** 4), 0.5, "success, closed form")
        within(success(thrice), retries, 0.5, "success with three retries")
        within(load(thrice), f === 1 ? 400 : 100 * (1 - f ** 4) / (1 - f), 1.5, "load, closed form")
        within(load(thrice), retriesLoad, 1.5, "load with three retries")
        within(success(budgeted), bucket, 1, "success with a bucket")
        within(load(budgeted), bucketLoad, f === 1 ? 0.2 : 1, "load with a bucket")
        within(success(broken), breaker, 1, "success with a breaker")
        within(load(broken), breakerLoad, 0.5, "load with a breaker")
      }))
  }

  it.live("a breaker at 10 % denies at half of that already", () =>
    Effect.gen(function*() {
      within(success(yield* run(strategies.breaker, 0.05)), 98.7, 0.5, "success")
    }))

  it.live("with more clients of fewer calls the bucket approaches plain retries, the breaker no retries", () =>
    Effect.gen(function*() {
      const seeds = budget(6, 2)
      for (
        const [processes, bucketLoad, bucket, breaker] of [
          [10, 114, 57.7, 98.9],
          [100, 146, 73.8, 95.8],
          [1000, 188, 94.6, 95.06]
        ] as const
      ) {
        // One run of 1,000 calls, such as the reference, is off by a few points, and a mean of two by more than one of six.
        const wider = Math.sqrt(6 / seeds)
        const results = yield* Effect.forEach(Array.from({ length: seeds }, (_, seed) => seed), (seed) =>
          Effect.all([
            simulate("token-buckets", {
              scenario: { seed },
              fleet: { policy: strategies.bucket, processes, rate: 100 },
              service: { failureRate: 0.5 }
            }),
            simulate("token-buckets", {
              scenario: { seed },
              fleet: { policy: strategies.breaker, processes, rate: 100 },
              service: { failureRate: 0.05 }
            })
          ]))
        within(
          sum(results.map(([bucket]) => load(bucket))) / seeds,
          bucketLoad,
          3 * wider,
          `load, ${processes} clients`
        )
        within(
          sum(results.map(([bucket]) => success(bucket))) / seeds,
          bucket,
          2 * wider,
          `success, ${processes} clients`
        )
        within(
          sum(results.map(([, breaker]) => success(breaker))) / seeds,
          breaker,
          2 * wider,
          `breaker, ${processes} clients`
        )
      }
    }))
})

// Source: Brooker, "What is Backoff For?", 2022.
describe("A3, what backoff is for", () => {
  const source = { exponential: { base: 100, cap: "20 seconds" } }

  it.live("independent callers send as much with backoff as without", () =>
    Effect.gen(function*() {
      for (const [f, tries, expected] of firstOf([[0.5, 4, 187], [1, 4, 400]] as const, 1)) {
        const run = (policy: unknown) => simulate("token-buckets", { fleet: { policy }, service: { failureRate: f } })
        const [at, after] = yield* Effect.all([
          run(retrying({ attempts: tries })),
          run(retrying({ attempts: tries, source }))
        ])
        within(load(at), expected, 1.5, "load without backoff")
        within(load(after), load(at), 1, "load after backoff")
        const [bucket, later] = yield* Effect.all([
          run(strategies.bucket),
          run(retrying({ attempts: Infinity, budget: tokenBucket, source }))
        ])
        within(load(later), load(bucket), 1, "load of a bucket after backoff")
      }
    }))

  it.live("clients that make one call after the other send less", () =>
    Effect.gen(function*() {
      for (
        const [f, open, firstTries, attempts] of firstOf(
          [[0.5, 18_900, 4358, 8100], [1, 41_000, 1300, 5200]] as const,
          1
        )
      ) {
        const policy = retrying({ attempts: 4, source })
        const everywhere = yield* simulate("token-buckets", { fleet: { policy }, service: { failureRate: f } })
        const serial = yield* simulate("serial-clients", { fleet: { policy }, service: { failureRate: f } })
        near(fleetOf(everywhere).totals.calls, 10_042, 0.05, "first tries from everywhere")
        near(fleetOf(everywhere).totals.attempts, open, 0.05, "attempts from everywhere")
        near(fleetOf(serial).totals.calls, firstTries, 0.05, "first tries")
        near(fleetOf(serial).totals.attempts, attempts, 0.05, "attempts")
      }
    }))
})

// Source: Brooker, simulator_example, simple_collapse_sim.
describe("A4, spike and ramp", () => {
  const patient = retrying({ source: { exponential: { base: "20 seconds", cap: "10 minutes", jitter: "full" } } })
  const quota = (cost: number) => retrying({ cost })

  /** Whether the service has collapsed: in the second quarter of a minute after, few calls succeed. */
  const collapses = (name: "spike" | "ramp", policy: unknown, seed: number) =>
    Effect.map(simulate(name, { scenario: { seed }, fleet: { policy } }), (result) => {
      const late = fleetOf(result).series.filter(({ fromMillis }) => fromMillis >= 60_000 && fromMillis < 75_000)
      return sum(late.map(({ succeeded }) => succeeded)) < 0.5 * sum(late.map(({ calls }) => calls))
    })

  for (
    const [label, policy, spike, ramp] of [
      ["no retry", "none", 0, 0],
      ["3 tries, backoff and full jitter", patient, 0, 3],
      ["3 immediate tries, quota 500/10", quota(10), 0, 0],
      ["3 immediate tries, quota 500/14", quota(14), 0, 0]
    ] as const
  ) {
    it.live(`${label}: ${spike} of 3 spikes and ${ramp} of 3 ramps collapse`, () =>
      Effect.gen(function*() {
        const seeds = [1, 2, 3]
        const spikes = yield* Effect.filter(seeds, (seed) => collapses("spike", policy, seed))
        const ramps = yield* Effect.filter(seeds, (seed) => collapses("ramp", policy, seed))
        assert.deepStrictEqual([spikes.length, ramps.length], [spike, ramp])
      }))
  }

  it.live("3 immediate tries: some spikes collapse, others do not; all ramps do", () =>
    Effect.gen(function*() {
      const seeds = Array.from({ length: budget(20, 6) }, (_, seed) => seed)
      const spikes = yield* Effect.filter(seeds, (seed) => collapses("spike", "naive", seed))
      const share = spikes.length / seeds.length
      assert.isTrue(share >= 0.6 && share <= 0.95, `${spikes.length} of ${seeds.length}`)
      const ramps = yield* Effect.filter(seeds.slice(0, 3), (seed) => collapses("ramp", "naive", seed))
      assert.strictEqual(ramps.length, 3)
    }))

  it.live("after a ramp with 3 immediate tries nothing succeeds, although fewer and fewer callers come", () =>
    Effect.gen(function*() {
      const { series } = fleetOf(yield* simulate("ramp"))
      const late = series.filter(({ fromMillis }) => fromMillis >= 35_000 && fromMillis < 75_000)
      assert.isTrue(sum(late.map(({ calls }) => calls)) > 1000)
      assert.isTrue(sum(late.map(({ succeeded }) => succeeded)) <= 2, JSON.stringify(late.map((b) => b.succeeded)))
    }))
})

// Source: Bronson et al., "Metastable Failures in Distributed Systems", HotOS 2021.
describe("A5, the outage of 280 of 300", () => {
  const policies = {
    "no retries": "none",
    "retry once": retrying({ attempts: 2 }),
    "quota 500/5": retrying({ attempts: 2, cost: 5 }),
    "quota 500/14": retrying({ attempts: 2, cost: 14 }),
    "gRPC 10 / 0.1": retrying({ attempts: 2, budget: { kind: "grpc" } }),
    "0.1 per success, cap 10": retrying({ attempts: 2, budget: { kind: "bucket", capacity: 10 } }),
    "60 a minute": retrying({
      attempts: 2,
      cost: 1,
      quota: { capacity: 60, refillPerSecond: 1, successIncrement: 0 }
    }),
    "SRE 10 %": retrying({ attempts: 2, budget: { kind: "ratio", of: "attempts" } }),
    "Finagle 20 % + 10/s": retrying({ attempts: 2, budget: { kind: "finagle" } })
  }

  const run = (policy: keyof typeof policies, rate: number, seconds: number) =>
    Effect.map(
      simulate("outage", {
        scenario: { duration: `${seconds} seconds` },
        fleet: { policy: policies[policy], rate }
      }),
      (result) => ({
        after: recoveredAfter(fleetOf(result), 30_000, seconds * 1000),
        received: sum(
          bottomOf(result).series
            .filter(({ fromMillis }) => fromMillis >= 60_000 && fromMillis < seconds * 1000)
            .map(({ received }) => received)
        ) / (seconds - 60),
        succeeded: sum(
          fleetOf(result).series.filter(({ fromMillis }) => fromMillis >= 40_000).map(({ succeeded }) => succeeded)
        )
      })
    )

  it.live("retrying once never recovers: nothing succeeds, the database gets 560 requests a second", () =>
    Effect.gen(function*() {
      const { after, received, succeeded } = yield* run("retry once", 280, 120)
      assert.deepStrictEqual([after, succeeded], [undefined, 0])
      near(received, 559.5, 0.01, "requests a second")
    }))

  for (
    const [policy, from, to] of firstOf(
      [
        ["quota 500/5", 124, 142],
        ["quota 500/14", 119, 141]
      ] as const,
      1
    )
  ) {
    it.live(`${policy} recovers in about 130 s, as the closed form has it`, () =>
      Effect.gen(function*() {
        const { after } = yield* run(policy, 280, 180)
        assert.isTrue(after! >= from * 0.97 && after! <= to, `${after} s`)
        const burst = policy === "quota 500/5" ? 100 : 35
        near(after!, (10 * 280 + burst - 300) / (300 - 280), 0.15, "closed form")
      }))
  }

  for (
    const [policy, rate, seconds, from, to] of firstOf(
      [
        ["retry once", 140, 180, 100, 133],
        ["no retries", 260, 110, 54, 64],
        ["gRPC 10 / 0.1", 260, 110, 54, 64],
        ["0.1 per success, cap 10", 260, 110, 54, 64],
        ["60 a minute", 260, 110, 57, 66],
        ["SRE 10 %", 220, 100, 45, 52],
        ["Finagle 20 % + 10/s", 220, 150, 95, 103],
        ["retry once", 160, 120, undefined, undefined],
        ["no retries", 280, 180, 114, 143],
        ["gRPC 10 / 0.1", 280, 180, 114, 144],
        ["0.1 per success, cap 10", 280, 180, 114, 144],
        ["60 a minute", 280, 190, 119, 150],
        ["quota 500/5", 260, 110, 57, 65],
        ["SRE 10 %", 260, 350, 200, 312],
        ["SRE 10 %", 280, 150, undefined, undefined],
        ["Finagle 20 % + 10/s", 260, 150, undefined, undefined]
      ] as const,
      7
    )
  ) {
    it.live(`${policy} at ${rate} a second ${from === undefined ? "does not recover" : `recovers in ${to} s`}`, () =>
      Effect.gen(function*() {
        const { after } = yield* run(policy, rate, seconds)
        if (from === undefined) assert.strictEqual(after, undefined)
        else assert.isTrue(after !== undefined && after >= from && after <= to, `${after} s`)
      }))
  }
})

// Source: Amazon Builders' Library, "Timeouts, retries and backoff with jitter"; Google SRE, chapter 22.
describe("A6, layers", () => {
  const stack = (layers: number, policy: unknown, calls: number, below: unknown = policy) => {
    const names = Array.from({ length: layers - 1 }, (_, index) => `layer ${index}`)
    return {
      name: "layers",
      fleets: [{ name: "user", to: names[0] ?? "leaf", clients: 1, calls, policy: layers === 1 ? below : policy }],
      services: [
        ...names.map((name, index) => ({
          name,
          calls: [{ to: names[index + 1] ?? "leaf", policy: index === layers - 2 ? below : policy }]
        })),
        { name: "leaf", failureRate: 1 }
      ]
    }
  }

  const atBottom = (layers: number, policy: unknown, calls: number, below?: unknown) =>
    Effect.map(
      simulateInput(stack(layers, policy, calls, below)),
      (result) => bottomOf(result).totals.received
    )

  for (const [layers, tries, expected] of [[3, 4, 64], [5, 3, 243], [1, 3, 3], [4, 2, 16]] as const) {
    it.live(`${tries} tries in each of ${layers} layers are ${expected} requests at the bottom`, () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* atBottom(layers, retrying({ attempts: tries }), 1), expected)
      }))
  }

  for (const [layers, calls] of [[5, 100], [5, 1000], [3, 18], [1, 50]] as const) {
    it.live(`with a quota in each of ${layers} layers ${calls} calls are ${calls} + 35 * ${layers} requests`, () =>
      Effect.gen(function*() {
        const policy = retrying({ cost: 14 })
        assert.strictEqual(yield* atBottom(layers, policy, calls), calls + 35 * layers)
      }))
  }

  it.live("with retries only above the bottom 100 calls are 300 requests", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* atBottom(5, "none", 100, retrying()), 300)
    }))

  it.live("the built-in scenario has 275 instead of 24,300", () =>
    Effect.gen(function*() {
      assert.strictEqual(bottomOf(yield* simulate("layers")).totals.received, 275)
    }))
})

// Derived: the balance of what retries cost and successes bring.
describe("A7, the quota of AWS", () => {
  for (const [cost, retries, left] of [[5, 100, 0], [10, 50, 0], [14, 35, 10]] as const) {
    it.live(`a retry for ${cost}: ${retries} retries in a total outage, then none`, () =>
      Effect.gen(function*() {
        const result = yield* simulate("steady-failures", {
          fleet: { calls: 50, policy: retrying({ attempts: Infinity, cost }) },
          service: { failureRate: 1 }
        })
        const { attempts, calls, gauges } = fleetOf(result).totals
        assert.deepStrictEqual([attempts - calls, gauges.balance], [retries, left])
      }))
  }

  for (
    const [cost, f, calls, share] of firstOf(
      [
        [5, 0.2, 20_000, 0.005],
        [10, 0.2, 20_000, 0.01],
        [14, 0.18, 20_000, 0.01],
        [5, 0.5, 60_000, 0.005],
        [5, 0.3, 40_000, 0.01],
        [5, 0.75, 60_000, 0.005],
        [10, 0.4, 60_000, 0.005],
        [14, 0.25, 60_000, 0.005],
        [14, 0.5, 60_000, 0.005]
      ] as const,
      4
    )
  ) {
    it.live(`a retry for ${cost}, a failure rate of ${f}: the load is that of the closed form`, () =>
      Effect.gen(function*() {
        // What the first 500 tokens buy is no part of the steady state.
        const result = yield* simulate("steady-failures", {
          fleet: { calls, policy: retrying({ cost, quota: { initial: cost - 1 } }) },
          service: { failureRate: f }
        })
        near(load(result) / 100, Math.min(1 + f + f * f, 1 + (1 - f) / (cost * f)), share, "load")
      }))
  }

  it.live("cost 14 turns retries off at a failure rate at which cost 5 does not", () =>
    Effect.gen(function*() {
      const run = (cost: number) =>
        simulate("steady-failures", {
          fleet: { calls: budget(60_000, 20_000), policy: retrying({ cost }) },
          service: { failureRate: 0.3 }
        })
      const [five, fourteen] = yield* Effect.all([run(5), run(14)])
      within(success(five), 97.2, 0.5, "success at cost 5")
      within(success(fourteen), 81.6, 0.7, "success at cost 14")
    }))
})

// Source: Google SRE, chapters 21 and 22.
describe("A8, Google SRE", () => {
  it.live("three attempts at a backend that accepts 1 % are 2.97 times the load", () =>
    Effect.gen(function*() {
      const result = yield* simulate("overloaded-backend", { fleet: { policy: retrying() } })
      within(load(result) / 100, 2.97, 0.02, "load")
    }))

  for (const [of, expected] of [["calls", 1.1], ["attempts", 1 / 0.9]] as const) {
    it.live(`retries up to 10 % of ${of} are ${expected.toFixed(3)} times the load`, () =>
      Effect.gen(function*() {
        const policy = retrying({ budget: { kind: "ratio", of } })
        within(load(yield* simulate("overloaded-backend", { fleet: { policy } })) / 100, expected, 0.002, "load")
      }))
  }

  /** One attempt a call, throttled as published. */
  const throttled = (k: number) =>
    retrying({ attempts: 1, throttle: { k, window: "2 minutes", maxRejection: 1, counts: "sent" } })

  for (
    const [rate, k, accepted, sent] of firstOf(
      [[110, 2, 100, 109.75], [1000, 1.1, 100, 109.2], [1000, 2, 100, 199]] as const,
      1
    )
  ) {
    it.live(`a client with k = ${k} sends ${sent} of ${rate} a second where ${accepted} are accepted`, () =>
      Effect.gen(function*() {
        const result = yield* simulate("client-throttling", {
          scenario: { duration: "6 minutes" },
          fleet: { rate, policy: throttled(k) },
          service: { limit: { requests: accepted } }
        })
        // The first minutes show how it gets there.
        const late = fleetOf(result).series.filter(({ fromMillis }) => fromMillis >= 240_000 && fromMillis < 360_000)
        near(sum(late.map(({ attempts }) => attempts)) / 120, sent, 0.02, "sent a second")
        near(sum(late.map(({ succeeded }) => succeeded)) / 120, accepted, 0.02, "accepted a second")
      }))
  }

  it.live("in a total outage a client that throttles itself sends about once per window", () =>
    Effect.gen(function*() {
      for (const rate of firstOf([20, 100], 1)) {
        const result = yield* simulate("client-throttling", {
          scenario: { duration: `${budget(30, 15)} minutes`, bucket: "1 minute" },
          fleet: { rate },
          service: { limit: { requests: 0 } }
        })
        const late = fleetOf(result).series.filter(({ fromMillis }) => fromMillis >= 300_000)
        const sentPerWindow = 2 * sum(late.map(({ attempts }) => attempts)) / late.length
        assert.isTrue(sentPerWindow > 0.5 && sentPerWindow < 3, `${sentPerWindow} at ${rate} a second`)
      }
    }))

  it.live("retried in the next second, 100 too many become 200, 300, ...: exactly", () =>
    Effect.gen(function*() {
      const { series } = bottomOf(yield* simulate("next-second"))
      assert.deepStrictEqual(series.map(({ received }) => received), [10_100, 10_200, 10_300, 10_400, 10_500])
    }))
})

// Source: Finagle, RetryBudgetTest.
describe("A9, retry budgets", () => {
  for (const share of firstOf([0.0001, 0.25, 0.9999, 0.001, 0.01, 0.1, 0.5, 0.75, 0.99, 0.999], 3)) {
    it.live(`of 10,000 calls at one moment ${share * 100} % are retried, plus those always allowed, +- 1`, () =>
      Effect.gen(function*() {
        for (const [ttl, minPerSecond] of [["10 seconds", 10], ["1 second", 0]] as const) {
          const result = yield* simulate("finagle-budget", {
            fleet: { policy: retrying({ attempts: Infinity, budget: { kind: "finagle", share, ttl, minPerSecond } }) }
          })
          const { attempts, calls } = fleetOf(result).totals
          within(attempts - calls, 10_000 * share + 10 * minPerSecond, 1, "retries")
        }
      }))
  }

  it.live("gRPC's 10 tokens and 0.1 for a success are 4 retries in a total outage", () =>
    Effect.gen(function*() {
      const policy = retrying({ attempts: Infinity, budget: { kind: "grpc" } })
      const { totals } = fleetOf(yield* simulate("finagle-budget", { fleet: { calls: 100, policy } }))
      assert.strictEqual(totals.attempts, 104)
    }))
})

// Source: the AWS SDK for JavaScript 3.1162 in adaptive mode, ten workers, against nginx 1.22 with
// `limit_req rate=20r/s burst=20 nodelay`: the successes of each second.
describe("A10, the rate limiter of adaptive mode", () => {
  it.live("gets ten workers through a leaky bucket as the SDK's does, second by second", () =>
    Effect.gen(function*() {
      const result = yield* simulate("adaptive")
      const seconds = bottomOf(result).series.map(({ succeeded }) => succeeded)
      for (const [second, expected] of [21, 0, 6, 15, 36, 22, 20, 19, 20, 22, 19, 19].entries()) {
        within(seconds[second]!, expected, 2, `second ${second}`)
      }
      within(sum(seconds.slice(8, 28)) / 20, 20, 2, "a second from the ninth on")
      assert.isTrue(seconds.slice(2, 30).every((count) => count > 0))
      assert.isTrue(load(result) <= 106, `${load(result)}`)
    }))
})
