import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { retrying } from "../utils/simulate.ts"

/** A service that can handle 60 a second and is asked 40, held for two seconds. */
const input = {
  name: "short",
  duration: "30s",
  drain: "5s",
  fleets: [{ name: "app", to: "db", rate: 40, timeout: "500ms", policy: "none" }],
  services: [{
    name: "db",
    capacity: 60,
    latency: { p50: "5ms", p99: "20ms" },
    outages: [{ kind: "hold", from: "5s", to: "7s" }]
  }]
}

const short = (changes: object = {}) => Simulator.decode({ ...input, ...changes })

describe("Simulator.tune", () => {
  it.live(
    "runs each policy in outages like that of the scenario, with the same time after them",
    () =>
      Effect.gen(function*() {
        const { outages, policies, runs } = yield* Simulator.tune(yield* short(), {
          policies: ["none", "naive"],
          runs: 1
        })
        assert.deepStrictEqual(outages, [
          "as written",
          "half as long",
          "twice as long",
          "half of the requests fail",
          "ten times as slow"
        ])
        assert.strictEqual(runs, 1)
        for (const { figures, worst, worstOutage } of policies) {
          assert.strictEqual(figures.length, 5)
          const least = Math.min(...figures.map(({ succeeded }) => succeeded))
          assert.strictEqual(worst.succeeded, least)
          assert.strictEqual(worstOutage, outages[figures.findIndex(({ succeeded }) => succeeded === least)])
          assert.strictEqual(worst.sendsPerCall, Math.max(...figures.map(({ sendsPerCall }) => sendsPerCall)))
          assert.strictEqual(worst.recovered, Math.min(...figures.map(({ recovered }) => recovered)))
        }
        const scenario = yield* short()
        const [figures] = policies.find(({ label }) => label === "none")!.figures
        const { succeeded } = Simulator.summarize(yield* Simulator.runs(scenario, { runs: 1 }))
        assert.strictEqual(figures!.succeeded, succeeded!.mean)
      })
  )

  it.live(
    "leaves a fleet that calls in the processes of another the policy of that fleet",
    () =>
      Effect.gen(function*() {
        const guest = { name: "guest", to: "db", rate: 5, timeout: "500ms", processesOf: "app" }
        const scenario = yield* short({ fleets: [...input.fleets, guest] })
        const { chosen, sensitivity } = yield* Simulator.tune(scenario, { policies: ["jitter"], runs: 1 })
        assert.strictEqual(chosen.label, "jitter")
        assert.isAbove(sensitivity.length, 0)
      })
  )

  it.live("the front has the policies that no other beats, and the choice is on it", () =>
    Effect.gen(function*() {
      const { chosen, policies } = yield* Simulator.tune(yield* short(), {
        policies: ["none", "naive", "jitter", "awsStandard", "awsStandard2026", retrying({ attempts: 9 })] as any,
        runs: 2
      })
      const front = policies.filter(({ isOnFront }) => isOnFront)
      assert.include(front, chosen)
      const keys = ({ behind, worst }: Simulator.TunedPolicy) => [
        behind,
        worst.sendsPerCall,
        worst.p99Millis ?? Infinity
      ]
      for (const one of front) {
        for (const other of policies) {
          const [a, b] = [keys(one), keys(other)]
          assert.isFalse(b.every((value, n) => value < a[n]! * 0.9 - 0.01), `${other.label} beats ${one.label}`)
        }
      }
      // Nine immediate attempts collapse the service: no worse policy was tried.
      assert.isFalse(policies.at(-1)!.isOnFront && chosen.label === policies.at(-1)!.label)
      assert.strictEqual(chosen.worst.recovered, 1)
      const most = chosen.figures.map((_, n) => Math.max(...policies.map(({ figures }) => figures[n]!.succeeded)))
      for (const { behind, figures } of policies) {
        assert.strictEqual(behind, Math.max(...figures.map(({ succeeded }, n) => most[n]! - succeeded)))
      }
      assert.deepStrictEqual(policies.map(({ isOnFront }) => isOnFront), [
        ...front.map(() => true),
        ...policies.slice(front.length).map(() => false)
      ])
    }))

  it.live("prefers policies for which the expectations hold", () =>
    Effect.gen(function*() {
      const options = { policies: ["none", "awsStandard2026", "awsStandard"] as const, runs: 1 }
      const free = yield* Simulator.tune(yield* short(), options)
      assert.strictEqual(free.chosen.label, "none")
      const bound = yield* Simulator.tune(yield* short({ expect: { sendsPerCall: "> 1" } }), options)
      assert.notStrictEqual(bound.chosen.label, "none")
      assert.isTrue(bound.chosen.worst.holds)
    }))

  it.live(
    "says what the choice depends on, the most first: more capacity is more success",
    () =>
      Effect.gen(function*() {
        const { sensitivity } = yield* Simulator.tune(yield* short(), { policies: ["awsStandard"], runs: 2 })
        const swings = sensitivity.map(({ higher, lower }) => Math.abs(higher.succeeded - lower.succeeded))
        assert.deepStrictEqual(swings, [...swings].sort((a, b) => b - a))
        const paths = sensitivity.map(({ path }) => path)
        for (
          const path of [
            "fleets.0.rate",
            "fleets.0.timeout",
            "services.0.capacity",
            "services.0.latency",
            "services.0.outages.0.length",
            "policy.exponential.base",
            "policy.quotaGated.cost"
          ]
        ) assert.include(paths, path)
        const of = (path: string) => sensitivity.find((one) => one.path === path)!
        assert.isAbove(of("services.0.capacity").higher.succeeded, of("services.0.capacity").lower.succeeded)
        assert.isBelow(
          of("services.0.outages.0.length").higher.succeeded,
          of("services.0.outages.0.length").lower.succeeded
        )
      })
  )

  it.live(
    "changes the capacity of a quota and nothing else: one that stays empty still does",
    () =>
      Effect.gen(function*() {
        const policy = { ...retrying({ cost: 5 }), quota: { capacity: 500, initial: 0, successIncrement: 0 } }
        const { sensitivity } = yield* Simulator.tune(yield* short(), { policies: [policy as any], runs: 1 })
        const { higher, lower } = sensitivity.find(({ path }) => path === "policy.quota.capacity")!
        assert.deepStrictEqual([higher.sendsPerCall, lower.sendsPerCall], [1, 1])
      })
  )

  it.live("accepts other scenarios in place of the family, and reports its progress", () =>
    Effect.gen(function*() {
      const told: Array<string> = []
      const { outages } = yield* Simulator.tune(yield* short(), {
        policies: ["none"],
        others: [yield* short({ name: "other" })],
        runs: 1,
        onProgress: (done, of, label) => Effect.sync(() => void told.push(`${done}/${of} ${label}`))
      })
      assert.deepStrictEqual(outages, ["short", "other"])
      assert.deepStrictEqual(told.slice(0, 2), ["1/2 none", "2/2 none"])
    }))

  it.live("refuses a scenario without an outage", () =>
    Effect.gen(function*() {
      const calm = yield* short({ services: [{ name: "db", capacity: 60 }] })
      const error = yield* Effect.flip(Simulator.tune(calm, { policies: ["none"] }))
      assert.strictEqual(error.message, "services: have no outage to tune for: add \"outages\" to one")
    }))
})
