import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { budget, firstOf, onlyInFull } from "../../../test/utils/budget.ts"
import { Chance } from "../../src/simulator/chance.ts"
import { inputOf, retrying } from "../utils/simulate.ts"

const budgeted = (budget: object) => retrying({ attempts: 3, budget })

/**
 * Calls a second below which a service that is behind recovers, as a balance of rates has it: `C` without retries or with a
 * quota that runs dry, `C / (1 + r)` with r retries, `(C - min) / (1 + share)` with Finagle's budget, `C * (1 - share)` with
 * that of Google SRE. The state is that of Bronson et al., "Metastable Failures in Distributed Systems", HotOS 2021.
 */
const thresholds = [
  ["no retries", "none", 100, 100],
  ["two retries", "naive", 100, 33.333],
  ["retries up to 10 % of all sends (SRE)", "sre", 100, 90],
  ["Finagle, 20 % and 10 a second", "finagle", 100, 75],
  ["quota paid back by successes only (AWS, gRPC)", "awsStandard", 100, 100],
  ["one retry", retrying({ attempts: 2 }), 100, 50],
  ["four retries", retrying({ attempts: 5 }), 100, 20],
  ["Finagle, 50 % and 0 a second", budgeted({ kind: "finagle", share: 0.5, minPerSecond: 0 }), 100, 66.667],
  ["no retries", "none", 300, 300],
  ["one retry", retrying({ attempts: 2 }), 300, 150],
  ["two retries", "naive", 300, 100],
  ["four retries", retrying({ attempts: 5 }), 300, 60],
  ["retries up to 10 % of all sends (SRE)", "sre", 300, 270],
  ["Finagle, 20 % and 10 a second", "finagle", 300, 241.667],
  ["Finagle, 50 % and 0 a second", budgeted({ kind: "finagle", share: 0.5, minPerSecond: 0 }), 300, 200],
  ["quota paid back by successes only (AWS, gRPC)", "grpc", 300, 300]
] as const

const outage = (policy: unknown, capacity: number, rate: number) =>
  Simulator.decode(
    inputOf("outage", { scenario: { duration: "200 seconds" }, fleet: { rate, policy }, service: { capacity } })
  )

describe("Simulator.map", () => {
  it.effect("needs a bound of a service in each cell, which an axis may set", () =>
    Effect.gen(function*() {
      const free = yield* Simulator.decode({
        name: "free",
        duration: "2 seconds",
        fleets: [{ name: "shop", to: "orders", rate: 10, policy: "none" }],
        services: [{ name: "orders" }]
      })
      const y = { path: "fleets.0.rate", values: [10] }
      const map = (path: string) => Simulator.map(free, { x: { path, values: [100] }, y, runs: 1 })
      assert.lengthOf((yield* map("services.0.capacity")).rows, 1)
      assert.include((yield* Effect.flip(map("seed"))).message, "not known")
    }))
})

describe("Simulator.recoversBelow", () => {
  it.effect.each(thresholds.map(([name, policy, capacity, below]) => ({ name, policy, capacity, below })))(
    "$name, of $capacity a second: $below",
    ({ below, capacity, policy }) =>
      Effect.gen(function*() {
        assert.closeTo(Simulator.recoversBelow(yield* outage(policy, capacity, capacity))!, below, 0.001)
      })
  )

  it.effect("is the same with a queue whose wait is twice the timeout, and has no answer with a shorter one", () =>
    Effect.gen(function*() {
      const below = (queue: number) =>
        Effect.map(
          Simulator.decode(inputOf("outage", { fleet: { timeout: "1 second" }, service: { capacity: 300, queue } })),
          Simulator.recoversBelow
        )
      assert.deepStrictEqual([yield* below(599), yield* below(600), yield* below(6000)], [undefined, 150, 150])
    }))

  it.effect("has no answer where a balance of rates has none", () =>
    Effect.gen(function*() {
      for (const changes of [{ queue: 100 }, { dropsAbandoned: true }, { limit: { requests: 5 } }]) {
        const scenario = yield* Simulator.decode(inputOf("outage", { service: { ...changes } }))
        assert.isUndefined(Simulator.recoversBelow(scenario))
      }
      for (const policy of ["awsAdaptive", "envoy"] as const) {
        assert.isUndefined(Simulator.recoversBelow(yield* outage(policy, 300, 200)))
      }
    }))
})

/** How many requests wait at a time of a run. */
const waiting = ({ bucketMillis, services }: Simulator.SimulationResult, atMillis: number): number =>
  services[0]!.series[atMillis / bucketMillis - 1]!.queued

describe("Simulator.verdict", () => {
  // One of each balance; with all of the budget those of 300 a second.
  const turning = firstOf(thresholds, 5).filter(([, , capacity]) => capacity === budget(300, 100))
  for (const [name, policy, capacity, below] of turning) {
    it.live(`turns within 3 % of theory, where the backlog begins to grow: ${name}`, () =>
      Effect.gen(function*() {
        const [under, over] = [
          yield* outage(policy, capacity, below * 0.97),
          yield* outage(policy, capacity, below * 1.03)
        ]
        assert.strictEqual(yield* Simulator.verdict(over, { runs: 1 }), "collapses")
        const [shrinks, grows] = [yield* Simulator.run(under), yield* Simulator.run(over)]
        assert.isBelow(waiting(shrinks, 200_000), waiting(shrinks, 60_000))
        assert.isAbove(waiting(grows, 200_000), waiting(grows, 60_000))
      }))
  }

  it.live("collapses with a queue that stays full, and recovers below what theory says", () =>
    Effect.gen(function*() {
      const verdict = (rate: number) =>
        Effect.flatMap(
          Simulator.decode(inputOf("outage", {
            scenario: { duration: "200 seconds" },
            fleet: { rate, timeout: "1 second", policy: retrying({ attempts: 2 }) },
            service: { capacity: 100, queue: 500 }
          })),
          (scenario) => Simulator.verdict(scenario, { runs: 1 })
        )
      assert.deepStrictEqual([yield* verdict(55), yield* verdict(45)], ["collapses", "recovers"])
    }))

  /** A number from 0 to 1 for each seed and name: the same on every machine. */
  const drawn = (seed: number, name: string): number => new Chance(seed, name).nextDoubleUnsafe()
  const among = <A>(seed: number, name: string, items: ReadonlyArray<A>): A =>
    items[Math.floor(drawn(seed, name) * items.length)]!

  const deadline = { deadline: "3 seconds" }
  const policies = [
    "none",
    "naive",
    "backoff",
    "awsStandard",
    "awsStandard2026",
    "awsAdaptive",
    "limited",
    "finagle",
    "envoy",
    "sre",
    "grpc",
    "tokenBucket",
    retrying({ attempts: 2 }),
    retrying({ source: { fixed: { delay: "40 seconds" } } }),
    { steps: [{ fixed: { delay: "100 millis" } }, deadline, "whileRetryable"] },
    { ...retrying({ cost: 1, quota: { capacity: 500, refillPerSecond: 40 } }) },
    { ...retrying(), hedge: { after: "500 millis", share: 0.5, atMost: 2 } }
  ]

  /** A service for 60 requests per second with an outage: a cell of a map, drawn from a seed. */
  const cellOf = (seed: number, mostProcesses: number) => {
    const toMillis = 20_000 + Math.round(15_000 * drawn(seed, "length"))
    return Simulator.decode(inputOf("outage", {
      // Many runs end soon after the outage, where a judgment would be early.
      scenario: { seed, duration: toMillis + among(seed, "duration", [2000, 20_000, 100_000, 170_000]) },
      fleet: {
        rate: 10 + Math.round(52 * drawn(seed, "rate")),
        processes: Math.round(mostProcesses ** drawn(seed, "processes")),
        policy: among(seed, "policy", policies)
      },
      service: {
        capacity: 60,
        ...among(seed, "failures", [{}, {}, {}, { earlyFailureRate: 0.5 }, { failureRate: 0.2 }]),
        outages: [{ kind: among(seed, "kind", ["hold", "fail", "drop"]), from: "20 seconds", to: toMillis }]
      }
    }))
  }

  const recoversIn = (scenario: Simulator.Scenario) =>
    Effect.map(Simulator.run(scenario), (result) => Simulator.summarize([result]).recovery.runs === 1)

  const [cells, mostProcesses] = [budget(200, 5), budget(1000, 10)]

  const judged = new Map<number, { readonly scenario: Simulator.Scenario; readonly verdict: Simulator.Verdict }>()

  /** The cell of a seed and its verdict, found once for both tests. */
  const judge = Effect.fnUntraced(function*(seed: number) {
    const scenario = yield* cellOf(seed, mostProcesses)
    const found = judged.get(seed) ?? { scenario, verdict: yield* Simulator.verdict(scenario, { runs: 1 }) }
    judged.set(seed, found)
    return found
  })

  it.live(`recovers where the whole run does, in ${cells} random cells of at most ${mostProcesses} processes`, () =>
    Effect.gen(function*() {
      for (let seed = 1; seed <= cells; seed++) {
        const { scenario, verdict } = yield* judge(seed)
        assert.strictEqual(verdict === "recovers", yield* recoversIn(scenario), `cell ${seed}: ${verdict}`)
      }
    }))

  const times = budget(10, 3)

  it.live(`collapses only where a run of ${times} times the length does not recover either`, () =>
    Effect.gen(function*() {
      let collapses = 0
      for (let seed = 1; collapses < budget(15, 1); seed++) {
        const { scenario, verdict } = yield* judge(seed)
        if (verdict !== "collapses") continue
        collapses++
        const long = yield* Simulator.decode({ ...scenario, duration: times * Number(scenario.duration) })
        assert.isFalse(yield* recoversIn(long), `cell ${seed}`)
      }
    }))

  onlyInFull(() => {
    it.live("is no collapse where a longer run recovers: an outage that the quotas of 100 processes keep up for minutes", () =>
      Effect.gen(function*() {
        const scenario = yield* Simulator.decode(
          inputOf("outage", { fleet: { processes: 100, policy: "awsStandard" } })
        )
        assert.strictEqual(yield* Simulator.verdict(scenario, { runs: 1 }), "limps")
        const long = yield* Simulator.decode({ ...scenario, duration: "600 seconds" })
        assert.strictEqual(yield* Simulator.verdict(long, { runs: 1 }), "recovers")
      }))
  })

  it.live("is about most of the runs, each with its own seed", () =>
    Effect.gen(function*() {
      for (
        const [rate, each] of firstOf(
          [[57.3, ["recovers", "limps", "limps"]], [57, ["recovers", "limps", "recovers"]]] as const,
          1
        )
      ) {
        const edge = yield* outage("none", 60, rate)
        const verdicts = yield* Effect.forEach([1, 2, 3], (seed) => Simulator.verdict({ ...edge, seed }, { runs: 1 }))
        assert.deepStrictEqual(verdicts, [...each])
        assert.strictEqual(
          yield* Simulator.verdict({ ...edge, seed: 1 }, { runs: 3 }),
          rate === 57 ? "recovers" : "limps"
        )
      }
    }))

  it.live("collapses too where the run ends within seconds of the outage, and the backlog grows", () =>
    Effect.gen(function*() {
      for (const duration of [11_000, 11_500, 12_000]) {
        const scenario = yield* Simulator.decode({
          name: "short",
          seed: 1,
          duration,
          fleets: [{ name: "clients", to: "service", processes: 4, rate: 300, timeout: "1s", policy: "naive" }],
          services: [{
            name: "service",
            capacity: 200,
            latency: "20ms",
            outages: [{ kind: "fail", from: "5s", to: "10s" }]
          }]
        })
        assert.strictEqual(yield* Simulator.verdict(scenario, { runs: 1 }), "collapses")
      }
    }))
})

describe("Simulator.map", () => {
  const scenario = outage(retrying({ attempts: 2 }), 60, 30)

  it.live("has a row for each value of one parameter, with a verdict for each of the other", () =>
    Effect.gen(function*() {
      const map = yield* Simulator.map(yield* scenario, {
        x: { path: "fleets[0].rate", values: [20, 50] },
        y: { path: "services.0.outages.0.length", values: [200, 10_000] },
        runs: 3
      })
      assert.deepStrictEqual(map.rows, [["recovers", "recovers"], ["recovers", "collapses"]])
      assert.strictEqual(map.recoversBelow, 30)
    }))

  for (
    const [what, path, expected] of [
      ["an unknown key", "fleets.0.rates", "fleets[0].rates: is not a key here"],
      ["a place that does not exist", "fleets.3.rate", "fleets.3.rate: the list has no item 3"],
      ["a place where nothing can be set", "name.first", "name.first: there is no \"first\" to set"],
      ["an impossible value", "fleets.0.timeout", "fleets[0].timeout: must be above 0"]
    ] as const
  ) {
    it.effect(`refuses ${what}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(
          Simulator.map(yield* scenario, { x: { path, values: [0] }, y: { path: "seed", values: [1] } })
        )
        assert.include(error.message, expected)
      }))
  }
})
