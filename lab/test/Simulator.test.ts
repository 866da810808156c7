import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import { awsStandard, RetryQuota, withRetry } from "effect-retry"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as JsonSchema from "effect/JsonSchema"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as SchemaRepresentation from "effect/SchemaRepresentation"
import { readFileSync } from "node:fs"
import { getHeapStatistics, setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import * as Compare from "../../examples/simulate.ts"
import { budget, firstOf } from "../../test/utils/budget.ts"
import { Transient } from "../../test/utils/call.ts"
import { Chance } from "../src/simulator/chance.ts"
import { inputOf, retrying, shipped, simulate, simulateInput, textOf } from "./utils/simulate.ts"

const problems = (input: unknown) =>
  Effect.map(Effect.flip(Simulator.decode(input)), ({ message }) => message.split("\n"))

const least = {
  name: "least",
  fleets: [{ name: "clients", to: "server", rate: 10 }],
  services: [{ name: "server" }]
}

const withFleet = (fleet: object) => ({ ...least, fleets: [{ ...least.fleets[0], ...fleet }] })
const withService = (service: object) => ({ ...least, services: [{ ...least.services[0], ...service }] })

describe("Simulator.decode", () => {
  it.effect("fills in defaults", () =>
    Effect.gen(function*() {
      const scenario = yield* Simulator.decode(least)
      const [fleet] = scenario.fleets
      assert.deepStrictEqual(
        [scenario.seed, scenario.duration, scenario.drain, scenario.bucket],
        [1, "1 minute", "1 minute", "1 second"]
      )
      assert.deepStrictEqual([fleet.policy, fleet.processes, fleet.network, fleet.arrivals], ["none", 1, 0, "poisson"])
      assert.deepStrictEqual(yield* Simulator.decode(scenario), scenario)
    }))

  for (
    const [what, input, expected] of [
      ["what is not a scenario", 3, ["expected Scenario, got 3"]],
      ["an unknown key", { ...least, seeds: 1 }, ["seeds: is not a key here: did you mean seed?"]],
      ["an unknown key, deep inside", withFleet({ policy: retrying({ cost: 1, quota: { costs: 5 } }) }), [
        "fleets[0].policy.quota.costs: is not a key here"
      ]],
      ["a missing key", { ...least, services: [{}] }, ["services[0].name: is missing"]],
      ["a wrong duration", { ...least, duration: "20 secs" }, [
        `duration: expected milliseconds, or a text such as "250ms", "20s", "2 minutes", got "20 secs"`
      ]],
      ["a negative number", withService({ failureRate: -0.5 }), [
        "services[0].failureRate: expected a number from 0 to 1, got -0.5"
      ]],
      ["a huge rate", withFleet({ rate: 1e300 }), [
        "fleets[0].rate: expected a number from 0 to 1000000, got 1e+300"
      ]],
      ["a quota without tokens", withFleet({ policy: retrying({ cost: 1, quota: { capacity: 0 } }) }), [
        "fleets[0].policy.quota.capacity: expected a finite number above 0, got 0"
      ]],
      ["more processes than fit", withFleet({ processes: 1e8 }), [
        "fleets: have 100000000 processes: more than 100000"
      ]],
      ["more clients than fit", { ...least, fleets: [{ name: "clients", to: "server", clients: 1e8 }] }, [
        "fleets: have 100000000 clients: more than 100000"
      ]],
      ["a duration longer than a life", withFleet({ timeout: "999999999 days" }), [
        `fleets[0].timeout: expected at most 1000000000000 milliseconds, got "999999999 days"`
      ]],
      [
        "more outages than anyone writes",
        withService({ outages: Array(1001).fill({ kind: "hold", from: 0, to: 1 }) }),
        [
          "services[0].outages: expected a list of at most 1000, got a list"
        ]
      ],
      ["more series than fit", { ...withService({ calls: Array(40).fill({ to: "leaf" }) }), bucket: 15 }, [
        "bucket: is too narrow: more than 5952 buckets in duration and drain",
        ...Array(40).fill(`services[0].calls[`)
      ]],
      ["a wrong number in a distribution", withFleet({ network: { lognormal: { median: 1, sigma: -1 } } }), [
        "fleets[0].network.lognormal.sigma: expected a number from 0 to 1000000000, got -1"
      ]],
      ["a quantile without the other", withFleet({ network: { p99: "80ms" } }), [
        "fleets[0].network: expected one distribution, or p50 and p99, got an object"
      ]],
      ["quantiles next to a distribution", withFleet({ network: { exponential: 1, p99: 2 } }), [
        "fleets[0].network: expected one distribution, or p50 and p99, got an object"
      ]],
      ["quantiles of nothing", withFleet({ network: { p50: 0, p99: 2 } }), [
        "fleets[0].network: expected p50 above 0 and p99 not below it, got an object"
      ]],
      ["quantiles in the wrong order", withFleet({ network: { p50: "3ms", p99: "2ms" } }), [
        "fleets[0].network: expected p50 above 0 and p99 not below it, got an object"
      ]],
      ["quantiles that fall", withFleet({ network: { quantiles: [[0.5, 20], [0.9, "10 millis"]] } }), [
        "fleets[0].network.quantiles: expected pairs of a share from 0 to 1 and a duration, both growing, got a list"
      ]],
      ["two distributions", withFleet({ network: { exponential: 1, uniform: { from: 0, to: 1 } } }), [
        "fleets[0].network: expected one distribution, or p50 and p99, got an object"
      ]],
      ["a long text", withFleet({ to: "x".repeat(100_000) }), [
        `fleets[0].to: expected a name of 1 to 80 characters, without quotes, got "${"x".repeat(57)}..."`
      ]],
      ["values that JSON cannot hold", { ...least, seed: 1n, name: new Map() }, [
        "name: expected string, got an object",
        "seed: expected number, got 1"
      ]],
      ["what is not a number", withFleet({ rate: Number.NaN }), [
        "fleets[0].rate: expected a finite number, got NaN"
      ]],
      ["a service that does not exist", withFleet({ to: "nobody" }), [
        `fleets[0].to: names an unknown service: "nobody"`
      ]],
      ["neither rate nor clients", withFleet({ rate: undefined }), ["fleets[0].rate: "]],
      ["both rate and clients", withFleet({ clients: 2 }), [
        "fleets[0]: needs either a rate or recorded arrivals (open loop), or clients (closed loop)"
      ]],
      ["a misspelled step", withFleet({ policy: { steps: [{ fixed: { delay: 0 } }, { maxAttempt: 3 }] } }), [
        "fleets[0].policy.steps[1].maxAttempt: is not a key here"
      ]],
      ["a step of the wrong kind", withFleet({ policy: { steps: [{ fixed: { delay: 0 } }, { capped: "soon" }] } }), [
        "fleets[0].policy.steps[1].capped: expected milliseconds, or a text such as"
      ]],
      ["a policy without a source", withFleet({ policy: { steps: [{ maxAttempts: 3 }] } }), [
        "fleets[0].policy.steps[0].maxAttempts: is not a key here"
      ]],
      [
        "an option that no policy can work with",
        withFleet({ policy: retrying({ source: { exponential: { base: 100, cap: 50 } } }) }),
        ["fleets[0].policy.steps[0].exponential.cap: must be a duration not below base, got 50"]
      ],
      [
        "an option that no policy can work with, deep inside",
        withFleet({
          policy: {
            steps: [{ fixed: { delay: 0 } }, { whenThrottled: { steps: [{ fixed: { delay: 0 } }, { capped: 0 }] } }]
          }
        }),
        ["fleets[0].policy.steps[1].whenThrottled.steps[1].capped: must be a finite duration above 0, got 0"]
      ],
      ["a quota that cannot be", withFleet({ policy: retrying({ cost: 1, quota: { capacity: 5, initial: 6 } }) }), [
        "fleets[0].policy.quota.initial: must be a number from 0 to 5, got 6"
      ]],
      ["a quota that nothing is paid from", withFleet({ policy: retrying({ quota: {} }) }), [
        "fleets[0].policy.quota: is not used: no step is quotaGated"
      ]],
      ["a limiter that nothing asks", withFleet({ policy: { ...retrying(), limiter: {} } }), [
        "fleets[0].policy.limiter: is not used: no step requires it"
      ]],
      ["a budget of no time", withFleet({ policy: retrying({ budget: { kind: "finagle", ttl: 0 } }) }), [
        "fleets[0].policy.budget.ttl: must be above 0"
      ]],
      ["a budget that sees nothing", withFleet({ policy: retrying({ budget: { kind: "ratio", window: 0 } }) }), [
        "fleets[0].policy.budget.window: must be a finite duration above 0, got 0"
      ]],
      [
        "a budget of more retries than calls",
        withFleet({ policy: retrying({ budget: { kind: "ratio", of: "attempts", share: 0.51 } }) }),
        ["fleets[0].policy.budget.share: must be at most 0.5 of the attempts: one retry for each call"]
      ],
      [
        "gRPC's throttle with parts of tokens",
        withFleet({ policy: retrying({ budget: { kind: "grpc", maxTokens: 1.5 } }) }),
        [
          "fleets[0].policy.budget.maxTokens: must be a whole number from 1 to 1000, got 1.5"
        ]
      ],
      [
        "a throttle that lets less through than is accepted",
        withFleet({ policy: retrying({ throttle: { k: 0.5 } }) }),
        [
          "fleets[0].policy.throttle.k: expected a finite number of at least 1, got 0.5"
        ]
      ],
      ["a cool-down that follows no hint", withFleet({ policy: retrying({ coolDown: { atMost: 0 } }) }), [
        "fleets[0].policy.coolDown.atMost: must be a finite duration above 0, got 0"
      ]],
      ["a time to think without a client", withFleet({ think: 5 }), ["fleets[0].think: requires clients"]],
      ["a drop without a timeout", withService({ outages: [{ kind: "drop", from: 0, to: 1 }] }), [
        `fleets[0].timeout: is needed: an outage of "server" drops requests`
      ]],
      ["an outage that ends before it begins", withService({ outages: [{ kind: "hold", from: 2, to: 1 }] }), [
        "services[0].outages[0].to: must be later than from"
      ]],
      ["services in a circle", withService({ calls: [{ to: "server" }] }), [
        `services[0].calls: lead back to "server"`
      ]],
      ["a capacity and workers", withService({ capacity: 1, workers: 1 }), [
        "services[0].workers: cannot be combined with a capacity"
      ]],
      ["a rate that goes back in time", withFleet({ rate: [{ at: 2, rate: 1 }, { at: 1, rate: 1 }] }), [
        "fleets[0].rate[1].at: must be later than the point before"
      ]],
      ["too many buckets", { ...least, bucket: 1 }, [
        "bucket: is too narrow: more than 10000 buckets in duration and drain"
      ]],
      ["two of a name", { ...least, services: [{ name: "server" }, { name: "server" }] }, [
        `services[1].name: "server" is already taken`
      ]],
      ["a text for a key of every object", { ...least, __proto__: 1, constructor: "x" }, [
        "constructor: is not a key here"
      ]]
    ] as const
  ) {
    it.effect(`refuses ${what}, and says where`, () =>
      Effect.gen(function*() {
        const found = yield* problems(input)
        assert.strictEqual(found.length, expected.length, found.join("\n"))
        found.forEach((problem, index) => assert.isTrue(problem.startsWith(expected[index]!), problem))
      }))
  }

  it.effect("reports everything that is wrong together", () =>
    Effect.gen(function*() {
      const found = yield* problems({ ...least, seed: 0.5, duration: -1, extra: true })
      assert.strictEqual(found.length, 3, found.join("\n"))
    }))

  const deep = (open: string, close: string, depth: number) => `${open.repeat(depth)}1${close.repeat(depth)}`

  // Each took minutes, or a stack, where decoding is not linear.
  for (
    const [what, json, path] of [
      ["deeply nested lists", `{"name":${deep("[", "]", 200_000)}}`, "name"],
      ["deeply nested objects", `{"name":${deep(`{"a":`, "}", 200_000)}}`, "name"],
      [
        "ten thousand unknown keys",
        JSON.stringify(Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`k${index}`, 0]))),
        "k0"
      ],
      [
        "ten thousand fleets",
        JSON.stringify({ ...least, fleets: Array(10_000).fill(least.fleets[0]) }),
        "fleets"
      ],
      ["a prototype", `{"name":"a","__proto__":{"seed":1},"fleets":[],"services":[]}`, "__proto__"]
    ] as const
  ) {
    it.effect(`refuses ${what}, and says where`, () =>
      Effect.gen(function*() {
        const { problems } = yield* Effect.flip(Simulator.decodeJson(json))
        assert.isTrue(problems.length <= 100 && problems.some((problem) => problem.path === path), problems[0]!.path)
        assert.isTrue(problems.every(({ problem }) => problem.length < 200))
      }))
  }

  it.effect("accepts the most services there may be, each calling all after it", () =>
    Effect.gen(function*() {
      const services = Array.from({ length: 100 }, (_, index) => ({
        name: `${index}`,
        calls: Array.from({ length: 99 - index }, (_, below) => ({ to: `${index + 1 + below}` }))
      }))
      const scenario = { ...least, fleets: [{ name: "clients", to: "0", rate: 1 }], bucket: "1 minute", services }
      assert.strictEqual((yield* Simulator.decode(scenario)).services.length, 100)
      const circle = [...services.slice(0, 99), { name: "99", calls: [{ to: "0" }] }]
      const found = yield* problems({ ...scenario, services: circle })
      assert.deepStrictEqual(found.slice(0, 2), [
        `services[0].calls: lead back to "0"`,
        `services[1].calls: lead back to "1"`
      ])
    }))

  it.effect("refuses text that is not valid JSON", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Simulator.decodeJson("{"))
      assert.isTrue(error.message.startsWith("is not valid JSON: "), error.message)
    }))

  it.effect("accepts all policies that it names", () =>
    Effect.gen(function*() {
      for (const name of Simulator.policies) assert.strictEqual(yield* Simulator.decodePolicy(name), name)
      const error = yield* Effect.flip(Simulator.decodePolicy("awsClassic"))
      assert.match(error.message, /^"awsClassic" is not one of the names: use one of none, naive, .*awsStandard2026/)
    }))

  it.effect("accepts all built-in scenarios", () =>
    Effect.gen(function*() {
      assert.isTrue(shipped.length >= 12)
      for (const name of shipped) {
        const scenario = yield* Simulator.decodeJson(textOf(name))
        assert.deepStrictEqual([scenario.name, scenario.$schema], [name, "../dist/scenario.schema.json"])
      }
    }))

  it.effect("has a JSON Schema that accepts the built-in scenarios and refuses invalid ones", () =>
    Effect.gen(function*() {
      const built = JSON.parse(JSON.stringify(Simulator.jsonSchema()))
      assert.isFalse(JSON.stringify(built).includes("allOf"))
      const document = JsonSchema.fromSchemaDraft2020_12(built)
      const schema = SchemaRepresentation.fromJsonSchemaDocument(document, { patterns: "apply" }) as Schema.Codec<
        unknown
      >
      const problems = (input: unknown) =>
        Effect.option(Effect.flip(Schema.decodeUnknownEffect(schema)(input, { onExcessProperty: "error" })))
      for (const name of shipped) {
        assert.deepStrictEqual(yield* problems(JSON.parse(textOf(name))), Option.none(), name)
      }
      for (const scenario of [{ seed: "one" }, { duration: -1 }, { name: 1 }, { polcy: 1 }]) {
        const input = inputOf("outage", { scenario })
        assert.isTrue(Option.isSome(yield* problems(input)), JSON.stringify(scenario))
      }
    }))
})

const small = (seed: number, policy: unknown = "awsAdaptive") =>
  inputOf("outage", {
    scenario: { seed, duration: "20 seconds", bucket: "2 seconds" },
    fleet: { rate: 100, processes: 3, policy },
    service: {
      capacity: 120,
      latency: { lognormal: { median: 20, sigma: 0.5 } },
      failureRate: 0.02,
      limit: { requests: 130 },
      outages: [{ kind: "fail", from: "5 seconds", to: "8 seconds", share: 0.9 }]
    }
  })

/** Values that are wrong almost everywhere, and keys that are right somewhere. */
const nasty: ReadonlyArray<unknown> = [
  null,
  true,
  -1,
  -0,
  0.5,
  1,
  1e6,
  1e9,
  1e300,
  "",
  "0 millis",
  "9 days",
  "Infinity",
  "envoy",
  "database",
  [],
  {},
  [[]],
  { exponential: 1 },
  { lognormal: { median: 1, sigma: 1000 } },
  { ...retrying({ cost: 5, quota: {}, budget: { kind: "grpc" } }), limiter: {} },
  { whenThrottled: retrying() }
]
const keys = [
  "clients",
  "rate",
  "processes",
  "calls",
  "policy",
  "timeout",
  "network",
  "workers",
  "queue",
  "bucket",
  "drain"
]

const mutated = (seed: number): unknown => {
  const chance = new Chance(seed, "mutation")
  const pick = <A>(of: ReadonlyArray<A>): A => of[chance.below(of.length)]!
  const input = JSON.parse(textOf(pick(shipped)))
  const objects = (value: unknown): ReadonlyArray<any> =>
    typeof value !== "object" || value === null
      ? []
      : [...Array.isArray(value) ? [] : [value], ...Object.values(value).flatMap(objects)]
  const target = pick(objects(input))
  target[pick([...keys, ...Object.keys(target)])] = pick(nasty)
  return input
}

describe("a randomly changed scenario", () => {
  it.live("is refused with a problem, or runs without a defect", () =>
    Effect.gen(function*() {
      let ran = 0
      const seeds = budget(300, 100)
      for (let seed = 0; seed < seeds; seed++) {
        const decoded = yield* Effect.exit(Simulator.decode(mutated(seed)))
        if (Exit.isFailure(decoded)) {
          assert.instanceOf(Cause.squash(decoded.cause), Simulator.InvalidScenario, `seed ${seed}`)
          continue
        }
        let turns = 0
        const onProgress = () => ++turns > 1 ? Effect.interrupt : Effect.void
        const exit = yield* Effect.exit(Simulator.run(decoded.value, { onProgress }))
        assert.isFalse(Exit.hasDies(exit), `seed ${seed}: ${exit}`)
        ran++
      }
      assert.isTrue(ran > seeds / 30, `${ran}`)
    }))
})

describe("Simulator.run", () => {
  // Those with a quota, a budget, a limiter and a gate first.
  const policies = new Set<Simulator.PolicyName>([
    "awsStandard",
    "finagle",
    "awsAdaptive",
    "limited",
    ...Simulator.policies
  ])
  for (const policy of firstOf([...policies], 4)) {
    it.live(`${policy}: the same seed gives the same run, another seed another`, () =>
      Effect.gen(function*() {
        const [first, again, other] = yield* Effect.all([
          simulateInput(small(1, policy)),
          simulateInput(small(1, policy)),
          simulateInput(small(2, policy))
        ])
        assert.deepStrictEqual(again, first)
        assert.notStrictEqual(other.traceHash, first.traceHash)
      }))
  }

  it.live("every attempt and every call is counted once, in the series as in the totals", () =>
    Effect.gen(function*() {
      for (const policy of firstOf(["envoy", "awsAdaptive", "awsStandard", "finagle", "naive"], 2)) {
        const { clients, services } = yield* simulateInput(small(1, policy))
        const [{ series, totals }] = clients as [Simulator.ClientResult]
        const total = (of: (counts: Simulator.ClientCounts) => number) => series.reduce((sum, b) => sum + of(b), 0)
        assert.strictEqual(totals.succeeded + totals.failed, totals.calls)
        assert.strictEqual(total(({ calls }) => calls), totals.calls)
        assert.strictEqual(total(({ attempts }) => attempts), totals.attempts)
        assert.strictEqual(total(({ failed }) => failed), totals.failed)
        assert.strictEqual(services[0]!.totals.received, totals.attempts)
        const failures = Object.values(totals.attemptFailures).reduce((sum, count) => sum + count, 0)
        assert.strictEqual(totals.attempts, totals.succeeded + failures)
        assert.strictEqual(totals.gauges.inFlight, 0)
      }
    }))

  it.live("interrupted at any time, it is partial, and continues as if never interrupted", () =>
    Effect.gen(function*() {
      const scenario = yield* Simulator.decode(small(1))
      const whole = yield* Simulator.run(scenario)
      for (const turns of [1, 2, 5]) {
        const simulation = yield* Simulator.make(scenario)
        const reached = yield* Deferred.make<void>()
        const told = yield* Ref.make(0)
        const onProgress = () =>
          Effect.flatMap(
            Ref.updateAndGet(told, (n) => n + 1),
            (n) => n === turns ? Effect.andThen(Deferred.succeed(reached, undefined), Effect.never) : Effect.void
          )
        const fiber = yield* Effect.forkChild(simulation.run({ onProgress }))
        yield* Deferred.await(reached)
        yield* Fiber.interrupt(fiber)
        const partial = yield* simulation.result
        assert.isTrue(partial.partial && partial.untilMillis < whole.untilMillis)
        assert.isTrue(partial.attempts > 0 && partial.attempts < whole.attempts)
        assert.deepStrictEqual(yield* simulation.run(), whole)
        assert.isFalse((yield* simulation.result).partial)
      }
    }))

  it.live("reports its progress, up to the end", () =>
    Effect.gen(function*() {
      const told: Array<Simulator.Progress> = []
      const scenario = yield* Simulator.decode(small(1))
      yield* Simulator.run(scenario, { onProgress: (progress) => Effect.sync(() => void told.push(progress)) })
      assert.isTrue(told.length > 3)
      const fractions = told.map(({ fraction }) => fraction)
      assert.deepStrictEqual(fractions, [...fractions].sort((a, b) => a - b))
      assert.isTrue(fractions[0]! > 0 && fractions[0]! < 0.5)
      assert.deepStrictEqual([told.at(-1)!.fraction, told.at(-1)!.leftMillis], [1, 0])
    }))

  it.live("a policy in place of the fleets' leaves the services alone", () =>
    Effect.gen(function*() {
      const scenario = yield* Simulator.decode(inputOf("layers"))
      const result = yield* Simulator.run(Simulator.withPolicy(scenario, "none"))
      assert.deepStrictEqual(result.clients.map(({ policy }) => policy), [
        "none",
        ...Array<string>(4).fill("quota 500/14")
      ])
      assert.strictEqual(result.services.at(-1)!.totals.received, 100 + 35 * 4)
    }))

  const endless = (fleet: object) =>
    Simulator.decode({
      name: "endless",
      fleets: [{ name: "clients", to: "server", ...fleet }],
      services: [{ name: "server", failureRate: 1 }]
    })

  for (
    const [what, fleet] of [
      ["attempts", { rate: 10, policy: retrying({ attempts: Infinity }) }],
      ["calls", { clients: 1 }]
    ] as const
  ) {
    it.live(`${what} that repeat without end and take no time fail`, () =>
      Effect.gen(function*() {
        const stalled = yield* Effect.flip(Simulator.run(yield* endless(fleet)))
        assert.strictEqual(stalled._tag, "SimulationStalled")
      }))
  }

  it.live("attempts that repeat without end can be interrupted", () =>
    Effect.gen(function*() {
      const fiber = yield* Effect.forkChild(
        Simulator.run(yield* endless({ rate: 10, policy: retrying({ attempts: Infinity }) }))
      )
      yield* Effect.sleep("5 millis")
      yield* Fiber.interrupt(fiber)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
    }))

  it.live("keeps no more memory after many requests than after few", () =>
    Effect.gen(function*() {
      setFlagsFromString("--expose-gc")
      const gc: () => void = runInNewContext("gc")
      const held: Array<number> = []
      const scenario = yield* Simulator.decode(inputOf("ten-thousand-clients", {
        scenario: { duration: "120 seconds" },
        fleet: { clients: 500, processes: 10 }
      }))
      const onProgress = ({ fraction }: Simulator.Progress) =>
        Effect.sync(() => {
          if (fraction < 0.25 * (held.length + 1) || held.length === 4) return
          gc()
          held.push(getHeapStatistics().used_heap_size)
        })
      const { attempts } = yield* Simulator.run(scenario, { onProgress })
      assert.isTrue(attempts > 50_000, `${attempts} attempts`)
      const grown = (held[3]! - held[0]!) / (attempts * 0.75)
      assert.isTrue(grown < 10, `${grown} bytes for each attempt more`)
    }))
})

describe("the model of a service", () => {
  const even = { rate: 10, arrivals: "even", timeout: "1 second", policy: "none" }
  const one = (fleet: object, service: object, duration: unknown = "1 second") =>
    simulateInput({
      ...least,
      duration,
      fleets: [{ name: "clients", to: "server", ...even, ...fleet }],
      services: [{ name: "server", ...service }]
    })

  const latencyOf = ({ clients }: Simulator.SimulationResult) => clients[0]!.totals.latency

  for (
    const [what, service, mean, most] of [
      ["is worked on immediately without a capacity", { latency: 200 }, 200, 200],
      ["waits for a worker", { latency: 200, workers: 1 }, 650, 1100],
      ["waits for its turn at a capacity, and is worked on then", { capacity: 20, latency: 30 }, 80, 80],
      ["takes longer with every other that is there", { latency: 90, slowdown: 20 }, 128, 130],
      ["takes longer in a slow time", { latency: 20, outages: [{ kind: "slow", from: 0, to: 500, factor: 3 }] }, 40, 60]
    ] as const
  ) {
    it.live(`a request ${what}`, () =>
      Effect.gen(function*() {
        const { maxMillis, meanMillis } = latencyOf(yield* one({ timeout: "1 minute" }, service))
        assert.closeTo(meanMillis!, mean, 1)
        assert.closeTo(maxMillis!, most, 1)
      }))
  }

  for (
    const [what, fleet, service, failures, received] of [
      ["fails in an outage", {}, { outages: [{ kind: "fail", from: 500, to: 700 }] }, { unavailable: 2 }, 10],
      ["is lost when dropped", {}, { outages: [{ kind: "drop", from: 500, to: 700 }] }, { timeout: 2 }, 10],
      ["is held", {}, { outages: [{ kind: "hold", from: 0, to: 1500 }] }, { timeout: 5 }, 10],
      ["is refused at a full queue", {}, { latency: 950, workers: 1, queue: 0 }, { overloaded: 9 }, 10],
      ["is refused where enough are in", {}, { latency: 950, connections: 1 }, { overloaded: 9 }, 10],
      ["enters when another's client gives up", { timeout: 50 }, { latency: 950, workers: 1, connections: 1 }, {
        timeout: 10
      }, 10],
      ["is refused after too long a wait", {}, { latency: 300, workers: 1, queueTimeout: 350 }, { overloaded: 5 }, 10],
      ["is throttled beyond the limit", {}, { limit: { requests: 4 } }, { throttled: 6 }, 10],
      ["fails after the work", {}, { failureRate: 1 }, { error: 10 }, 10],
      ["is given up", { timeout: 100 }, { latency: 150 }, { timeout: 10 }, 10]
    ] as const
  ) {
    it.live(`a request ${what}`, () =>
      Effect.gen(function*() {
        const { clients, services } = yield* one(fleet, service)
        assert.deepStrictEqual(clients[0]!.totals.failures, failures)
        assert.strictEqual(services[0]!.totals.received, received)
      }))
  }

  it.live("work continues for clients that have given up, unless the service drops it", () =>
    Effect.gen(function*() {
      const run = (service: object) =>
        simulate("outage", { scenario: { duration: "60 seconds" }, fleet: { policy: "none" }, service })
      const [vain, wise] = yield* Effect.all([run({}), run({ dropsAbandoned: true })])
      const after = ({ clients }: Simulator.SimulationResult) => Compare.recoveredAfter(clients[0]!, 30_000, 60_000)
      assert.strictEqual(after(vain), undefined)
      assert.isTrue(after(wise)! < 10, `${after(wise)} s`)
      assert.isTrue(vain.services[0]!.totals.wasted > 5000 && wise.services[0]!.totals.wasted < 1000)
    }))

  for (
    const [what, service, most] of [
      ["keeps a worker while the service asks another", { workers: 1 }, 1100],
      ["takes its turn at a capacity, and leaves it to others while the service asks another", { capacity: 20 }, 250]
    ] as const
  ) {
    it.live(`a request ${what}`, () =>
      Effect.gen(function*() {
        const result = yield* simulateInput({
          ...least,
          duration: "1 second",
          fleets: [{ name: "clients", to: "server", ...even, timeout: "1 minute" }],
          services: [{ name: "server", ...service, calls: [{ to: "store" }] }, { name: "store", latency: 200 }]
        })
        assert.strictEqual(result.clients[0]!.totals.succeeded, 10)
        assert.closeTo(latencyOf(result).maxMillis!, most, 1)
      }))
  }

  it.live("what one outage holds is held by the next that has begun meanwhile", () =>
    Effect.gen(function*() {
      const outages = [{ kind: "hold", from: 0, to: 1500 }, { kind: "hold", from: 1000, to: 2000 }]
      const result = yield* one({ timeout: "1 minute" }, { outages })
      assert.closeTo(latencyOf(result).maxMillis!, 1950, 1)
    }))

  it.live("a request travels twice", () =>
    Effect.gen(function*() {
      assert.closeTo(latencyOf(yield* one({ network: 40 }, { latency: 20 })).meanMillis!, 100, 1)
    }))

  it.live("a retry that the client itself drops takes nothing from an Envoy budget", () =>
    Effect.gen(function*() {
      const steps = [{ fixed: { delay: 100 } }, { maxAttempts: 3 }, "whileRetryable"]
      const throttle = { k: 1.1, window: "5 seconds", maxRejection: 1, counts: "sent" }
      const fleet = { rate: 100, policy: { steps, throttle, budget: { kind: "envoy" } } }
      const { clients } = yield* one(fleet, { outages: [{ kind: "fail", from: 0, to: "5 seconds" }] }, "20 seconds")
      const { gauges, failures } = clients[0]!.totals
      assert.isAbove(failures.dropped!, 100)
      assert.deepStrictEqual([gauges.inFlight, gauges.budget], [0, 3])
    }))

  it.live("a hint of the limit lengthens a delay", () =>
    Effect.gen(function*() {
      const limit = { requests: 5, per: "1 second", retryAfter: 600 }
      const { clients } = yield* one({ policy: retrying({ attempts: 2 }) }, { limit })
      assert.deepStrictEqual([clients[0]!.totals.succeeded, clients[0]!.totals.attempts], [10, 15])
    }))

  it.live("a hundred services that call each other in a row, and twenty thousand requests at one moment, fit", () =>
    Effect.gen(function*() {
      const services = Array.from({ length: 100 }, (_, index) => ({
        name: `${index}`,
        calls: index === 99 ? [] : [{ to: `${index + 1}` }]
      }))
      const row = yield* simulateInput({ ...least, fleets: [{ name: "one", to: "0", clients: 1, calls: 3 }], services })
      assert.strictEqual(row.services[99]!.totals.succeeded, 3)
      const crowd = yield* one(
        { rate: 100_000, calls: 20_000, timeout: "1 minute" },
        { workers: 1, outages: [{ kind: "hold", from: 0, to: 500 }] }
      )
      assert.strictEqual(crowd.clients[0]!.totals.succeeded, 20_000)
    }))

  it.live("a limit with a burst admits it immediately, and then an even flow", () =>
    Effect.gen(function*() {
      const limit = { requests: 2, burst: 5 }
      const { services } = yield* one({ rate: 1000 }, { limit }, "3 seconds")
      assert.deepStrictEqual(services[0]!.series.slice(0, 3).map(({ succeeded }) => succeeded), [7, 2, 2])
    }))

  it.live("a quota belongs to a process", () =>
    Effect.gen(function*() {
      for (const processes of [1, 4]) {
        const policy = retrying({ attempts: 2, cost: 5, quota: { capacity: 10 } })
        const { clients } = yield* one({ processes, policy }, { failureRate: 1 }, "2 seconds")
        assert.strictEqual(clients[0]!.totals.attempts, 20 + 2 * processes)
      }
    }))
})

describe("Simulator.inVirtualTime", () => {
  it.effect("jumps over all waiting, and keeps the order of what wakes", () =>
    Effect.gen(function*() {
      const order: Array<string> = []
      const woken = (name: string, millis: number) =>
        Effect.andThen(Effect.sleep(millis), Effect.sync(() => void order.push(name)))
      const program = Effect.gen(function*() {
        yield* Effect.all([woken("c", 3_600_000), woken("a", 10), woken("b", 10)], { concurrency: "unbounded" })
        return [yield* Clock.currentTimeMillis, Number(yield* Clock.monotonicTimeNanos)]
      })
      assert.deepStrictEqual(yield* Simulator.inVirtualTime(program), [3_600_000, 3.6e12])
      assert.deepStrictEqual(order, ["a", "b", "c"])
    }))

  it.effect("draws random numbers from the seed", () =>
    Effect.gen(function*() {
      const draws = Effect.all([Random.next, Random.nextInt, Random.next])
      const first = yield* Simulator.inVirtualTime(draws, { seed: 7 })
      assert.deepStrictEqual(yield* Simulator.inVirtualTime(draws, { seed: 7 }), first)
      assert.notDeepEqual(yield* Simulator.inVirtualTime(draws, { seed: 8 }), first)
      assert.isTrue(Number.isSafeInteger(first[1]))
    }))

  it.effect("passes errors, defects and services on", () =>
    Effect.gen(function*() {
      const error = new Transient()
      assert.strictEqual(yield* Effect.flip(Simulator.inVirtualTime(Effect.fail(error))), error)
      assert.isTrue(Exit.hasDies(yield* Effect.exit(Simulator.inVirtualTime(Effect.die("defect")))))
      assert.strictEqual(yield* Simulator.inVirtualTime(RetryQuota.balance), 500)
    }).pipe(Effect.provide(RetryQuota.layer())))

  it.effect("fails when everything waits forever", () =>
    Effect.gen(function*() {
      const stuck = yield* Effect.flip(Simulator.inVirtualTime(Effect.andThen(Effect.sleep(5), Effect.never)))
      assert.deepStrictEqual([stuck._tag, stuck.atMillis], ["NothingHappens", 5])
    }))

  it.live("an interruption reaches what runs in it", () =>
    Effect.gen(function*() {
      let released = false
      const forever = Effect.forever(Effect.sleep(1)).pipe(Effect.onInterrupt(() =>
        Effect.sync(() => {
          released = true
        })
      ))
      const fiber = yield* Effect.forkChild(Simulator.inVirtualTime(forever))
      yield* Effect.sleep("5 millis")
      yield* Fiber.interrupt(fiber)
      assert.isTrue(released)
    }))

  it.effect("a sleep that is interrupted wakes nobody and delays nothing", () =>
    Effect.gen(function*() {
      const program = Effect.gen(function*() {
        yield* Effect.exit(Effect.timeout(Effect.sleep("1 day"), "1 second"))
        const sleeper = yield* Effect.forkChild(Effect.sleep("1 hour"))
        yield* Effect.sleep(10)
        yield* Fiber.interrupt(sleeper)
        return yield* Clock.currentTimeMillis
      })
      assert.strictEqual(yield* Simulator.inVirtualTime(program), 1010)
    }))

  it.effect("a call with a policy waits as it should, whatever drives the policy", () =>
    Effect.gen(function*() {
      const send = Effect.fail(new Transient())
      const ends = (call: Effect.Effect<void, Transient, RetryQuota.RetryQuota>) =>
        Simulator.inVirtualTime(Effect.andThen(Effect.exit(call), Clock.currentTimeMillis), { seed: 3 })
      const millis = yield* ends(withRetry(send, awsStandard))
      assert.isTrue(millis > 0 && millis < 3000)
      assert.strictEqual(yield* ends(Effect.retry(send, awsStandard)), millis)
    }).pipe(Effect.provide(RetryQuota.layer())))
})

describe("the lesson", () => {
  it.live("simulate: a quota ends the outage, a retry prolongs it", () =>
    Effect.gen(function*() {
      const told: Array<number> = []
      const [once, quota] = yield* Compare.compare(
        textOf("outage"),
        [retrying({ label: "once", attempts: 2 }), retrying({ label: "quota", attempts: 2, cost: 5 })],
        (fraction) => Effect.sync(() => void told.push(fraction))
      )
      assert.deepStrictEqual([once!.policy, once!.recoveredAfter], ["once", undefined])
      assert.strictEqual(quota!.policy, "quota")
      assert.isTrue(quota!.recoveredAfter! > 110 && quota!.recoveredAfter! < 145)
      assert.isTrue(once!.load > 1.8 && quota!.load < 1.02 && quota!.succeeded > once!.succeeded)
      assert.isTrue(told.length > 10)
    }))

  it.live("the scenario of an adaptive client sends little more than is admitted", () =>
    Effect.gen(function*() {
      const { clients } = yield* simulate("adaptive")
      const { attempts, calls, gauges, succeeded } = clients[0]!.totals
      assert.strictEqual(succeeded, calls)
      assert.isTrue(attempts / calls < 1.1 && gauges.fillRate! > 0)
    }))
})

describe("docs/simulator.md", () => {
  const page = readFileSync(new URL("../../docs/simulator.md", import.meta.url), "utf8")

  it.effect("shows a scenario that can be read", () =>
    Effect.gen(function*() {
      for (const [, json] of page.matchAll(/^```json\n([^]*?)^```$/gm)) yield* Simulator.decodeJson(json!)
    }))
})
