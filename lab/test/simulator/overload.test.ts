import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { budget, firstOf } from "../../../test/utils/budget.ts"
import { InvalidScenario } from "../../src/simulator/problem.ts"
import { inputOf, simulate, simulateInput } from "../utils/simulate.ts"

/** Retry mode standard: at most three attempts, full jitter from one second, 500 tokens. */
const steps = [
  { exponential: { base: 1000, cap: "20 seconds", jitter: "full" } },
  { maxAttempts: 3 },
  "whileRetryable",
  { quotaGated: { cost: 5, timeoutCost: 10 } }
]
const once = [{ fixed: { delay: 0 } }, { maxAttempts: 1 }]

const seeds = Array.from({ length: budget(10, 1) }, (_, index) => index + 1)
/** For what is not a figure of a scenario. */
const few = seeds.slice(0, 3)

type Result = Simulator.SimulationResult
type Client = Result["clients"][number]

const mean = (values: ReadonlyArray<number>): number => values.reduce((sum, value) => sum + value, 0) / values.length

/** Runs a scenario with each seed. */
const runs = (name: string, fleet: object = {}, scenario: object = {}, of: ReadonlyArray<number> = seeds) =>
  Effect.forEach(of, (seed) => simulate(name, { fleet, scenario: { ...scenario, seed } }))

/** The share of the calls that succeed in a stretch of time, in percent. */
const share = ({ series }: Client, fromSeconds = 0, toSeconds = Infinity): number => {
  const buckets = series.slice(fromSeconds, toSeconds)
  const calls = buckets.reduce((sum, bucket) => sum + bucket.calls, 0)
  return 100 * buckets.reduce((sum, bucket) => sum + bucket.succeeded, 0) / calls
}

/** An instance that refuses all, from the twentieth second on. */
const outage = (to: number) => ({ kind: "fail", from: "20 seconds", to: `${to} seconds`, instance: 0 })

const first = ({ clients }: Result): Client => clients[0]!

describe("brownout: half of the capacity is gone, and no code says so", () => {
  /** Of the calls that 240 a second make in 150 seconds, the service can answer 150 a second for 60 of them. */
  const possible = (90 * 240 + 60 * 150) / (150 * 240)
  const goodput = ({ series }: Client, to: number) => mean(series.slice(35, to).map(({ succeeded }) => succeeded)) / 150
  /** Where the seconds end that are looked at, of the 30 to 90 in which it lasts. */
  const lastingTo = 60
  const p99 = ({ series }: Client, from: number, to: number) =>
    mean(series.slice(from, to).map(({ latency }) => latency.p99Millis ?? 0))

  it.live(
    "with a quota alone a quarter of the possible is served, and the outage never ends",
    () =>
      Effect.gen(function*() {
        const results = (yield* runs("brownout")).map(first)
        assert.closeTo(mean(results.map((fleet) => share(fleet))) / possible, 25, 3)
        assert.isBelow(mean(results.map((fleet) => share(fleet, 100, 150))), 1)
      })
  )

  it.live(
    "with a limit nearly all of the capacity is used, from 1 process to 100, and no call takes much longer than its timeout",
    () =>
      Effect.gen(function*() {
        for (const [processes, least] of firstOf([[10, 0.97], [1, 0.98], [100, 0.92]] as const, 1)) {
          const results = (yield* runs("brownout", { processes, policy: { steps, concurrency: {} } })).map(first)
          assert.isAbove(mean(results.map((fleet) => share(fleet))) / possible, 97)
          assert.isAbove(mean(results.map((fleet) => goodput(fleet, 90))), least)
          assert.isBelow(mean(results.map(({ totals }) => totals.latency.p99Millis ?? Infinity)), 1200)
          assert.isAbove(mean(results.map((fleet) => share(fleet, 92, 150))), 98)
        }
      })
  )

  /** Calls that are not retried, in the seconds before it, and from five seconds after it began to its end. */
  const lasting = Effect.fnUntraced(function*(concurrency: object, service: object = {}, of = seeds) {
    const found = yield* Effect.forEach(of, (seed) => {
      const input = inputOf("brownout", {
        scenario: { seed, duration: `${lastingTo} seconds` },
        fleet: { policy: { steps: once, concurrency } },
        service
      })
      // Keys without a value are left out.
      return Effect.map(simulateInput(JSON.parse(JSON.stringify(input))), first)
    })
    return {
      used: mean(found.map((fleet) => goodput(fleet, lastingTo))),
      p99: mean(found.map((fleet) => p99(fleet, 35, lastingTo))),
      unloaded: mean(found.map((fleet) => p99(fleet, 5, 30))),
      servedBefore: mean(found.map((fleet) => share(fleet, 5, 30)))
    }
  })

  it.live(
    "latencies go up to the timeout, unless slow successes count as drops: then all of the capacity is used",
    () =>
      Effect.gen(function*() {
        assert.closeTo((yield* lasting({}, {}, few)).p99, 1100, 100)
        const bounded = yield* lasting({ slowerThan: "600 millis" })
        assert.isAbove(bounded.used, 0.98)
        assert.isBelow(bounded.p99, 1050)
        assert.isAbove(bounded.servedBefore, 99.9)
        // The work itself takes twice as long: 564 of 282 milliseconds, before anybody waits.
        const short = yield* lasting({ slowerThan: "500 millis", maxWait: "50 millis" })
        assert.isAbove(short.used, 0.98)
        assert.isBelow(short.p99, 2.7 * short.unloaded)
        assert.isAbove(short.servedBefore, 99.9)
      })
  )

  it.live(
    "if half is gone and the rest as fast as before, a tight limit on latency keeps the tail below twice the unloaded one",
    () =>
      Effect.gen(function*() {
        // Half of the turns, which keep others waiting; what a call takes besides is as before.
        const service = { workers: undefined, capacity: 300 }
        const tight = yield* lasting({ slowerThan: "400 millis", maxWait: "50 millis" }, service)
        assert.isAbove(tight.used, 0.98)
        assert.isBelow(tight.p99, 2 * tight.unloaded)
        // What it costs on a good day.
        assert.closeTo(tight.servedBefore, 99.4, 0.3)
        const usual = yield* lasting({}, service, few)
        assert.isAbove(usual.used, 0.93)
        assert.closeTo(usual.p99, 1060, 100)
      })
  )
})

describe("broken-instance: one send in five is refused by chance", () => {
  const cases = {
    "a fast 503": {},
    "a 503 that takes as long as an answer": { fleet: { network: 50 }, service: { latency: 1 } },
    "for ten seconds of a rolling restart": { service: { outages: [outage(30)] } },
    "one send in twenty": { service: { instances: 20, workers: 5 } }
  }
  for (const [name, { fleet, service }] of Object.entries<{ fleet?: object; service?: object }>(cases)) {
    it.live(`with a limit the quota serves them, from 1 process to 100: ${name}`, () =>
      Effect.gen(function*() {
        for (const processes of firstOf([10, 1, 100], 1)) {
          const changes = { fleet: { processes, ...fleet }, service }
          const { totals } = first(yield* simulate("broken-instance", changes))
          assert.isAbove(100 * totals.succeeded / totals.calls, name === "one send in twenty" ? 99.9 : 99.3)
          assert.isUndefined(totals.failures.refused)
        }
      }))
  }
})

describe("load-shedding: a service that refuses what it cannot answer", () => {
  const possible = (90 * 280 + 60 * 150) / (150 * 280)

  it.live("does what it can with a limit that ignores its refusals, from 1 process to 100", () =>
    Effect.gen(function*() {
      for (const [processes, least] of firstOf([[10, 95], [1, 95], [100, 91]] as const, 1)) {
        const results = yield* runs("load-shedding", { processes }, {}, few)
        assert.isAbove(mean(results.map((result) => share(first(result)))) / possible, least)
      }
    }))
})

describe("straggler: two in a hundred are slow", () => {
  /** A call counts as slow when it takes longer than half a second: the slow take one. */
  const slowIn = (fleet: object) =>
    Effect.map(runs("straggler", { timeout: "500 millis", ...fleet }, { duration: "60 seconds" }), (results) => {
      const totals = results.map((result) => first(result).totals)
      const sum = (count: (one: Client["totals"]) => number) => totals.reduce((all, one) => all + count(one), 0)
      const calls = sum(({ calls }) => calls)
      return { slow: sum(({ failed }) => failed) / calls, load: sum(({ attempts }) => attempts) / calls, calls }
    })

  it.live("with a hedge a share of s is one of s squared, for s more load", () =>
    Effect.gen(function*() {
      const plain = yield* slowIn({ policy: { steps: once } })
      assert.closeTo(plain.slow, 0.02, 0.002)
      assert.strictEqual(plain.load, 1)
      const hedged = yield* slowIn({})
      // Three standard deviations of so few.
      assert.closeTo(hedged.slow, 0.02 ** 2, 3 * Math.sqrt(0.02 ** 2 / hedged.calls))
      assert.closeTo(hedged.load, 1.02, 0.002)
    }))

  it.live("no more is sent than the share pays for", () =>
    Effect.gen(function*() {
      const { load, slow } = yield* slowIn({
        policy: { steps: once, hedge: { after: "40 millis", share: 0.01 } }
      })
      assert.isBelow(load, 1.0101)
      assert.closeTo(slow, 0.01, 0.002)
    }))

  it.live("hedged calls retry, pay and count as others do: without a hedge they are the same calls", () =>
    Effect.gen(function*() {
      const policy = { steps, concurrency: {}, throttle: {} }
      const totalsOf = Effect.fnUntraced(function*(more: object) {
        const { totals } = first(
          yield* simulate("outage", {
            scenario: { duration: `${budget(60, 40)} seconds` },
            fleet: { rate: 100, policy: { ...policy, ...more } },
            service: { capacity: 107 }
          })
        )
        const { gauges: _, ...rest } = totals
        return rest
      })
      const driven = yield* totalsOf({})
      const hedged = yield* totalsOf({ hedge: { after: "1 hour" } })
      assert.strictEqual(hedged.calls, driven.calls)
      for (const key of ["attempts", "succeeded", "failed"] as const) {
        assert.closeTo(hedged[key] / driven[key], 1, 0.05, key)
      }
      assert.sameMembers(Object.keys(hedged.failures), Object.keys(driven.failures))
      assert.sameMembers(Object.keys(hedged.stops), Object.keys(driven.stops))
    }))
})

describe("noisy-neighbor: a job in the same process asks for more than the capacity", () => {
  /** Where the seconds end in which the job runs, of 20 to 50. */
  const to = budget(50, 40)

  const served = (fleet?: object, of = few) =>
    Effect.map(runs("noisy-neighbor", fleet, { duration: `${to} seconds` }, of), (results) => ({
      shop: mean(results.map(({ clients }) => share(clients[0]!, 25, to))),
      reports: mean(results.map(({ clients }) => share(clients[1]!, 25, to)))
    }))

  it.live(
    "what matters goes first: all of the shop are served, against half that matter as the job's do",
    () =>
      Effect.gen(function*() {
        const critical = yield* served()
        // Calls of the seconds before succeed, too.
        assert.closeTo(critical.shop, 101, 3)
        assert.closeTo(critical.reports, 36, 4)
        const equal = yield* served({ criticality: "sheddable" })
        assert.closeTo(equal.shop, 53, 4)
        assert.closeTo(equal.reports, 54, 4)
      })
  )

  it.live("without a limit neither is served, then or after", () =>
    Effect.gen(function*() {
      const none = yield* served({ policy: { steps } })
      assert.isBelow(none.shop, 5)
      assert.isBelow(none.reports, 5)
    }))

  it.live("spread over ten processes it helps little: few calls wait in the same line", () =>
    Effect.gen(function*() {
      const critical = yield* served({ processes: 10 })
      const equal = yield* served({ processes: 10, criticality: "sheddable" })
      assert.isAbove(critical.shop, equal.shop)
      assert.isBelow(critical.shop, 90)
    }))
})

describe("cool-down-herd: one hint brings all callers back at the same moment", () => {
  const herd = (processes: number, policy: object, of = few) =>
    Effect.map(runs("cool-down-herd", { processes, policy }, {}, of), (results) => {
      const fleets = results.map(first)
      return {
        served: mean(fleets.map((fleet) => share(fleet))) / 0.9,
        throttles: mean(fleets.map(({ totals }) => (totals.attemptFailures.throttled ?? 0) / totals.calls))
      }
    })
  const hinted = [...steps.slice(0, 3), "honorRetryAfter", steps[3]]

  // Source of the bands: the simulator that the mechanisms were compared on; 0.0001 to 0.005 throttles a call.
  it.live(
    "a cool-down in each of a hundred processes sends almost nothing, and all come back in order",
    () =>
      Effect.gen(function*() {
        const { served, throttles } = yield* herd(100, { steps, coolDown: {} }, seeds)
        assert.isAbove(served, 99)
        assert.isAtMost(throttles, 0.006)
      })
  )

  it.live(
    "calls that follow their hints without a cool-down come back at one moment, and keep a hundred processes down",
    () =>
      Effect.gen(function*() {
        const { served, throttles } = yield* herd(100, { steps: hinted })
        assert.isBelow(served, 50)
        assert.isAbove(throttles, 0.1)
      })
  )

  for (const processes of firstOf([100], 0)) {
    it.live(
      "calls that all wait out a long hint are the worst herd, unless a limit lets them in",
      () =>
        Effect.gen(function*() {
          const coolDown = { maxWait: "15 seconds" }
          assert.isBelow((yield* herd(processes, { steps, coolDown })).served, 40)
          assert.isAbove((yield* herd(processes, { steps, coolDown, concurrency: {} })).served, 99)
        })
    )
  }
})

describe("two-fleets: one has a limit, the other has none", () => {
  const served = Effect.fnUntraced(function*(policy?: object | string) {
    const results = yield* Effect.forEach(
      policy === undefined ? seeds : few,
      (seed) =>
        Effect.gen(function*() {
          const scenario = yield* Simulator.decode(inputWith(seed, policy))
          return yield* Simulator.run(scenario)
        })
    )
    const of = (index: number) => mean(results.map(({ clients }) => share(clients[index]!, 20, 80)))
    return { polite: of(0), neighbor: of(1) }
  })

  it.live(
    "the fleet that holds back pays for both: it is served less, and is not starved",
    () =>
      Effect.gen(function*() {
        const { neighbor, polite } = yield* served()
        assert.closeTo(polite, 48, 4)
        assert.closeTo(neighbor, 65, 5)
      })
  )

  it.live("with the same limit in both, both are served more, and alike", () =>
    Effect.gen(function*() {
      const { neighbor, polite } = yield* served({ steps, concurrency: {} })
      // One run differs by more than the mean of three.
      assert.closeTo(polite, neighbor, budget(3, 5))
      assert.isAbove(polite, 75)
    }))

  it.live(
    "next to calls that are repeated without a delay, no call is served, polite or not",
    () =>
      Effect.gen(function*() {
        const { neighbor, polite } = yield* served("naive")
        assert.isBelow(polite, 12)
        assert.isBelow(neighbor, 12)
      })
  )
})

describe("what a limit does badly", () => {
  it.live(
    "thin-fleet: a thousand processes with a call in five seconds learn too little; a throttle helps there",
    () =>
      Effect.gen(function*() {
        const limit = mean((yield* runs("thin-fleet", {}, {}, few)).map((result) => share(first(result)))) / (110 / 120)
        const policy = { steps, concurrency: {}, throttle: {} }
        const both = mean((yield* runs("thin-fleet", { policy }, {}, few)).map((result) => share(first(result)))) /
          (110 / 120)
        assert.closeTo(limit, 81, 5)
        assert.isAbove(both, limit + 3)
      })
  )

  for (const processes of firstOf([2000], 0)) {
    it.live(`thin-fleet: ${processes} processes learn less, and serve 71 % of the possible`, () =>
      Effect.gen(function*() {
        const [thinner] = yield* runs("thin-fleet", { processes }, {}, [1])
        assert.closeTo(share(first(thinner!)) / (110 / 120), 71, 5)
      }))
  }

  // Source: as above, 97 %.
  it.live(
    "near-the-timeout: ordinary latencies near the timeout look like overload, which costs 3 %",
    () =>
      Effect.gen(function*() {
        const served = mean((yield* runs("near-the-timeout")).map((result) => share(first(result))))
        assert.closeTo(served, 97, 1)
        const quota = yield* runs("near-the-timeout", { policy: { steps } })
        assert.isAbove(mean(quota.map((result) => share(first(result)))), 99.9)
      })
  )
})

it.effect("refuses hedges and guests whose keys do not go together, by their path", () =>
  Effect.gen(function*() {
    const fleet = { name: "fleet", to: "service", rate: 1, policy: { steps: once } }
    const guest = { name: "guest", to: "service", rate: 1, processesOf: "fleet" }
    for (
      const [fleets, path] of [
        [[{ ...fleet, policy: { steps: once, hedge: { share: 0 } } }], /policy\.hedge\.share: expected/],
        [[{ ...fleet, policy: { steps: once, hedge: { atMost: 11 } } }], /policy\.hedge\.atMost: expected/],
        [[{ ...fleet, policy: { steps: once, hedge: { quantile: 1 } } }], /policy\.hedge\.quantile: must be/],
        [
          [{ ...fleet, policy: { steps: once, hedge: { after: 1, quantile: 0.9 } } }],
          /policy\.hedge\.quantile: cannot be combined with after/
        ],
        [
          [fleet, { ...guest, processesOf: "other" }],
          /fleets\[1\]\.processesOf: names no earlier fleet with processes of its own/
        ],
        [[guest, fleet], /fleets\[0\]\.processesOf: names no earlier fleet with processes of its own/],
        [[fleet, { ...guest, processes: 2 }], /fleets\[1\]\.processes: cannot be combined with processesOf/],
        [[fleet, { ...guest, policy: "naive" }], /fleets\[1\]\.policy: cannot be combined with processesOf/],
        [[fleet, { ...guest, to: "other" }], /fleets\[1\]\.to: must be "service"/]
      ] as const
    ) {
      const error = yield* Effect.flip(simulateInput({
        name: "refused",
        duration: "1 second",
        fleets,
        services: [{ name: "service", capacity: 1 }, { name: "other", capacity: 1 }]
      }))
      assert.instanceOf(error, InvalidScenario)
      assert.match(error.message, path)
    }
  }))

/** The fleets of `two-fleets`, the second with another policy. */
const inputWith = (seed: number, policy: object | string | undefined) => {
  const input = inputOf("two-fleets", { scenario: { seed, duration: "80 seconds" } })
  return policy === undefined ? input : { ...input, fleets: [input.fleets[0], { ...input.fleets[1], policy }] }
}
