import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { budget, firstOf } from "../../../test/utils/budget.ts"
import { Ceiling } from "../../src/fit/ceiling.ts"
import { type Fitted, fittedOf } from "../../src/fit/fitted.ts"
import { Log } from "../../src/fit/log.ts"
import { scenarioOf } from "../../src/fit/scenario.ts"
import { Second } from "../../src/fit/seconds.ts"
import { Series } from "../../src/fit/series.ts"
import { type Answered, beginMillis, generate, heads, steady, type Traffic, writers } from "./generated.ts"

const encoder = new TextEncoder()
type Written = keyof typeof writers

const answers = new Map<Traffic, ReadonlyArray<Answered>>()

/** What a service answers to this traffic, which is generated once. */
const answersTo = (traffic: Traffic): ReadonlyArray<Answered> => {
  const found = answers.get(traffic)
  if (found !== undefined) return found
  const all: Array<Answered> = []
  generate(traffic, (answered) => all.push(answered))
  answers.set(traffic, all)
  return all
}

const logOf = (format: Written, traffic: Traffic, broken = 0): Log => {
  const log = new Log({})
  let lines = 0
  log.push(encoder.encode(heads[format] ?? ""))
  for (const answered of answersTo(traffic)) {
    if (broken > 0 && ++lines % broken === 0) log.push(encoder.encode("{\"half a li\n"))
    log.push(encoder.encode(`${writers[format](answered)}\n`))
  }
  log.endOfFile()
  return log
}

const quantile = ({ latency }: Fitted, share: number): number =>
  latency?.quantiles.find((quantile) => quantile.share === share)?.value ?? NaN

const isWithin = (found: number, expected: number, share: number, what: string) =>
  assert.isTrue(Math.abs(found / expected - 1) <= share, `${what}: ${found} for ${expected}`)

const foundIn = ({ capacity }: Fitted) => {
  if (capacity.kind !== "found") throw new Error(`no capacity found: ${JSON.stringify(capacity)}`)
  return capacity
}

/** The quantiles of the latency of a fitted scenario. */
const latencyIn = (fitted: Fitted, capacity?: number): ReadonlyMap<number, number> => {
  const { latency } = scenarioOf(fitted, { name: "x", takeMillis: 600_000, capacity }).scenario.services[0]
  if (typeof latency !== "object" || latency.quantiles === undefined) throw new Error("no quantiles")
  return new Map(latency.quantiles.map(([share, time]) => [share, Number(time)]))
}

/** Quiet, a minute of overload, quiet again. */
const knee = (quiet: number, busy: number): Traffic["rate"] => [
  { atMillis: 0, perSecond: quiet, ramp: false },
  { atMillis: 150_000, perSecond: busy, ramp: false },
  { atMillis: 190_000, perSecond: quiet, ramp: false }
]

const overload: Traffic = {
  seconds: 300,
  rate: knee(90, 400),
  attempts: 3,
  service: { capacity: 300, latency: { exponential: 20 }, failureRate: 0.05 }
}

const overloaded = new Map<Written, Log>()

/** A log of the overload, with a broken line after each thousand, read once. */
const overloadIn = (format: Written): Log => {
  const log = overloaded.get(format) ?? logOf(format, overload, 1000)
  overloaded.set(format, log)
  return log
}

describe("a log of the simulator", () => {
  it.each(firstOf(Object.keys(writers) as Array<Written>, 1))(
    "in the format of %s yields what it was made from",
    (format) => {
      const log = overloadIn(format)
      const fitted = fittedOf(log.meter)
      assert.strictEqual(log.chosen?.format, format)
      assert.strictEqual(log.broken, Math.floor((log.lines - log.broken) / 1000))
      // Each call is sent 1 + 0.05 + 0.05 squared times; the mean rate is that of 260 s at 90 and 40 s at 400.
      isWithin(fitted.rate.value, (260 * 90 + 40 * 400) / 300 * 1.0525, 0.02, "rate")
      isWithin(fitted.failed.value, 0.05, 0.05, "failed")
      isWithin(fitted.retried?.value ?? NaN, 1 - 1 / 1.0525, 0.05, "retried")
      assert.strictEqual(foundIn(fitted).by, "backlog")
      isWithin(foundIn(fitted).perSecond.value, 300, 0.02, "capacity")
      const { scenario } = scenarioOf(fitted, { name: "x", takeMillis: 600_000 })
      const latency = latencyIn(fitted)
      // The quantiles of an exponential distribution with mean 20.
      isWithin(latency.get(0.5) ?? NaN, 20 * Math.LN2, 0.05, "p50")
      isWithin(latency.get(0.99) ?? NaN, 20 * Math.log(100), 0.05, "p99")
      // Whole seconds of an end blur where the rate changes: a step or two more.
      const { rate } = scenario.fleets[0]
      assert.isTrue(Array.isArray(rate) && rate.length >= 3 && rate.length <= 8, JSON.stringify(rate))
    }
  )

  for (
    const [name, traffic, capacity] of [
      ["slow requests at a slow service", {
        seconds: 600,
        rate: knee(8, 60),
        service: { capacity: 40, latency: { lognormal: { median: 200, sigma: 0.5 } } }
      }, 40],
      ["workers", {
        seconds: 300,
        rate: knee(80, 300),
        service: { workers: 10, latency: { lognormal: { median: 40, sigma: 0.6 } } }
      }, 10_000 / (40 * Math.exp(0.18))],
      ["a short queue, which refuses", {
        seconds: 300,
        rate: knee(100, 500),
        service: { capacity: 400, queue: 5, latency: { exponential: 30 } }
      }, 400]
    ] as ReadonlyArray<readonly [string, Traffic, number]>
  ) {
    it(`shows the capacity: ${name}`, () => {
      isWithin(foundIn(fittedOf(logOf("json", traffic).meter)).perSecond.value, capacity, 0.1, name)
    })
  }

  for (
    const [name, service] of [
      ["at half its capacity", { capacity: 200, latency: { exponential: 20 } }],
      ["that is slow for a while, and not for want of capacity", {
        latency: "10 millis",
        outages: [{ kind: "slow", from: "100 seconds", to: "140 seconds", factor: 5 }]
      }],
      ["that fails for a while", {
        latency: { exponential: 20 },
        outages: [{ kind: "fail", from: "100 seconds", to: "140 seconds", share: 1 }]
      }],
      ["that hangs for a while", {
        latency: { exponential: 20 },
        outages: [{ kind: "slow", from: "100 seconds", to: "140 seconds", factor: 200 }]
      }]
    ] as ReadonlyArray<readonly [string, Traffic["service"]]>
  ) {
    it(`does not invent the capacity of a service ${name}`, () => {
      const { capacity } = fittedOf(logOf("json", { seconds: 240, rate: steady(100), service }).meter)
      assert.strictEqual(capacity.kind, "at least")
    })
  }

  /** At first quiet, then more than 12 workers can do, then quiet again, while the backlog is drained. */
  const draining = (seed: number, seconds = 110): Traffic => ({
    seed,
    seconds,
    rate: [[0, 12], [60, 30], [76, 80], [100, 12]].map(([at, perSecond]) => ({
      atMillis: at! * 1000,
      perSecond: perSecond!,
      ramp: false
    })),
    service: { workers: 12, latency: { lognormal: { median: 200, sigma: 0.6 } } }
  })

  it("that ends while a backlog is drained has the quantiles of its quiet seconds, and the capacity", () => {
    const fitted = fittedOf(logOf("json", draining(1)).meter)
    assert.isTrue(fitted.endsBehind)
    isWithin(quantile(fitted, 0.5), 200, 0.1, "p50")
    isWithin(quantile(fitted, 0.99), 200 * Math.exp(0.6 * 2.326), 0.25, "p99")
    isWithin(foundIn(fitted).perSecond.value, 12_000 / (200 * Math.exp(0.18)), 0.1, "capacity")
  })

  it("that goes on until the backlog is gone does not end in an overload", () => {
    assert.isFalse(fittedOf(logOf("json", draining(1, 150)).meter).endsBehind)
    assert.isFalse(fittedOf(overloadIn("json").meter).endsBehind)
  })

  it("that ends in an overload has the true p99 between low and high in nearly nineteen of twenty logs", () => {
    const logs = budget(40, 3)
    const p99 = 200 * Math.exp(0.6 * 2.326)
    let held = 0
    for (let seed = 1; seed <= logs; seed++) {
      const { latency } = fittedOf(logOf("json", draining(seed)).meter)
      const found = latency!.quantiles.find(({ share }) => share === 0.99)!
      if (found.low <= p99 && found.high >= p99) held++
    }
    assert.isAtLeast(held, Math.floor(0.9 * logs))
  })

  it("shows workers by what varies as their work does, and turns of equal length by what does not", () => {
    const fitted = fittedOf(logOf("json", draining(1)).meter)
    assert.strictEqual(fitted.workers, 12)
    const { scenario: { services: [service] } } = scenarioOf(fitted, { name: "x", takeMillis: 600_000 })
    assert.deepStrictEqual([service.workers, service.capacity], [12, undefined])
    assert.strictEqual(fittedOf(overloadIn("json").meter).workers, undefined)
  })

  it.each([120, 1000, 2])("with a capacity of %i/s in place of the found one keeps the latency", (capacity) => {
    const fitted = fittedOf(logOf("json", draining(1)).meter)
    const { scenario } = scenarioOf(fitted, { name: "x", takeMillis: 600_000, capacity })
    const [{ capacity: turns, workers }] = scenario.services
    // One worker does more than two.
    if (capacity === 2) return assert.deepStrictEqual([turns, workers], [2, undefined])
    isWithin(workers!, capacity * 0.2 * Math.exp(0.18), 0.1, "workers")
    isWithin(latencyIn(fitted, capacity).get(0.5)!, quantile(fitted, 0.5), 0.05, "p50")
    assert.include(
      scenario.notes.join(),
      `workers of each instance: ${workers}, as many as the capacity asked for needs`
    )
  })

  const quiet: Traffic = { seconds: 100, rate: steady(50), service: { latency: { exponential: 20 } } }

  const crowded = (service: Traffic["service"]): Fitted =>
    fittedOf(
      logOf("json", {
        seconds: 120,
        rate: knee(20, 80).map((point) => ({ ...point, atMillis: point.atMillis / 2.5 })),
        service: { workers: 12, latency: { lognormal: { median: 200, sigma: 0.6 } }, ...service }
      }).meter
    )

  /** What is fitted where the instance of each request is written as that. */
  const writtenAs = (upstream: (answered: Answered, n: number) => string) => {
    const log = new Log({})
    answersTo(quiet).forEach((answered, n) =>
      log.push(encoder.encode(`${writers.nginx(answered)} ua="${upstream(answered, n)}"\n`))
    )
    log.endOfFile()
    return fittedOf(log.meter)
  }
  const secondOf = ({ endMillis }: Answered): number => (endMillis - beginMillis) / 1000

  it("counts the instances that answer at a time, not all that ever did", () => {
    const rolling = writtenAs((answered, n) => `10.0.${Math.floor(secondOf(answered) / 20)}.${n % 2}:80`)
    assert.deepStrictEqual([rolling.instances, rolling.addresses], [2, rolling.addresses])
    assert.isAtLeast(rolling.addresses, 10)
    const { notes } = scenarioOf(rolling, { name: "x", takeMillis: 600_000 }).scenario
    assert.include(notes.join(), `instances: 2 at a time on average, of ${rolling.addresses} addresses`)
    const hosts = ["a.internal:80", "[::1]:80", "unix:/run/app.sock", "tcp://10.0.0.1:80"]
    assert.strictEqual(writtenAs((_, n) => hosts[n % 4]!).instances, 4)
    assert.strictEqual(writtenAs((_, n) => n % 50 === 0 ? "10.0.0.3:80" : `10.0.0.${n % 2}:80`).instances, 2)
  })

  it("counts no client's text as an instance", () => {
    const agents = ["curl/8.0", "Mozilla/5.0 (X11; Linux) Firefox/1", "okhttp/4.9", "Go-http-client/1.1", "backend"]
    assert.deepStrictEqual([writtenAs((_, n) => agents[n % 5]!)].map((of) => [of.instances, of.addresses]), [[1, 0]])
  })

  it("says where its files overlap in time, as those of two machines do, and not where they follow each other", () => {
    const fitOf = (files: ReadonlyArray<ReadonlyArray<Answered>>) => {
      const log = new Log({})
      for (const file of files) {
        for (const answered of file) log.push(encoder.encode(`${writers.json(answered)}\n`))
        log.endOfFile()
      }
      return scenarioOf(fittedOf(log.meter), { name: "x", takeMillis: 600_000 }).scenario.notes.join()
    }
    const all = answersTo(quiet)
    const note = "its files overlap in time: capacity and latency are those of one alone"
    assert.include(fitOf([0, 1].map((half) => all.filter((_, n) => n % 2 === half))), note)
    assert.notInclude(fitOf([all.filter((one) => secondOf(one) < 50), all.filter((one) => secondOf(one) > 45)]), note)
  })

  it("shows how many requests are let in while others are refused", () => {
    const fitted = crowded({ connections: 24 })
    assert.deepStrictEqual(fitted.ceiling, { most: 24, by: "proxy" })
    isWithin(foundIn(fitted).perSecond.value, 12_000 / (200 * Math.exp(0.18)), 0.1, "capacity")
    const { scenario: { services: [service] } } = scenarioOf(fitted, { name: "x", takeMillis: 600_000 })
    assert.strictEqual(service.connections, 24)
    assert.closeTo(service.workers!, 12, 1)
  })

  /** The requests that are let in, by eight seconds that refuse a fifth of what comes. */
  const letIn = (arrived: number, inFlight: (second: number) => number): number | undefined => {
    const ceiling = new Ceiling()
    for (let at = 0; at < 10; at++) {
      const second = new Second()
      ceiling.add(Object.assign(second, { at, arrived, served: 100, refused: 25, inFlight: inFlight(at) }))
    }
    return ceiling.most
  }

  it("shows no number that is let in where those in flight become fewer while some are refused", () => {
    assert.closeTo(letIn(125, () => 300)!, 304, 5)
    for (const arrived of [98, 100, 101, 110]) {
      assert.isUndefined(letIn(arrived, (at) => 300 + at * (arrived - 125)), `${arrived} arrive`)
    }
  })

  it("shows a limit of the rate, and no capacity below it", () => {
    const fitted = crowded({ workers: 100, limit: { requests: 40, burst: 20, per: 1000 } })
    assert.strictEqual(fitted.ceiling, undefined)
    const { scenario: { services: [service] } } = scenarioOf(fitted, { name: "x", takeMillis: 600_000 })
    assert.deepStrictEqual([service.capacity, service.workers], [undefined, undefined])
    isWithin((service.limit as { readonly requests: number }).requests, 40, 0.05, "limit")
  })

  it.each([5, 20, 200])("shows neither where requests of %i ms fail at random", (latency) => {
    const fitted = crowded({ workers: 100, latency, earlyFailureRate: 0.25 })
    assert.deepStrictEqual([fitted.ceiling, fitted.capacity.kind], [undefined, "at least"])
  })

  /** What is fitted where every n-th request fails with a status, whatever there is to do. */
  const failingAtRandom = (traffic: Traffic, every: number, status: number) => {
    const log = new Log({})
    answersTo(traffic).forEach((answered, n) =>
      log.push(encoder.encode(`${writers.json(n % every === 0 ? { ...answered, status } : answered)}\n`))
    )
    log.endOfFile()
    return scenarioOf(fittedOf(log.meter), { name: "x", takeMillis: 600_000 }).scenario
  }

  const full: Traffic = { seconds: 300, rate: knee(90, 400), service: { capacity: 300, latency: { exponential: 20 } } }

  it.each([429, 503, 504, 499, 408, 0])("has failures at any load with status %i, and says so", (status) => {
    for (const traffic of [quiet, full]) {
      const { notes, services: [{ failureRate }] } = failingAtRandom(traffic, 5, status)
      isWithin(failureRate ?? 0, 0.2, 0.1, "failure rate")
      assert.match(notes.join(), /(19|20|21)\S* % failed .* for a reason not in the log: its failure rate has them/)
    }
  })

  /** What is fitted where from one second to another the requests fail with a status, and of the others one in `every`. */
  const failingFrom = (
    [from, to]: readonly [number, number],
    status: number,
    { durationMillis, every = Infinity }: { readonly every?: number; readonly durationMillis?: number } = {}
  ) => {
    const log = new Log({})
    answersTo(quiet).forEach((answered, n) => {
      const at = secondOf(answered)
      const isOut = at >= from && at < to
      const ended = isOut && durationMillis !== undefined
        ? { ...answered, endMillis: answered.startMillis + durationMillis }
        : answered
      log.push(encoder.encode(`${writers.json(isOut || n % every === 0 ? { ...ended, status } : ended)}\n`))
    })
    log.endOfFile()
    return fittedOf(log.meter)
  }

  it.each([500, 503, 499])(
    "leaves failures of one outage with status %i out of its failure rate, and says so",
    (status) => {
      const fitted = failingFrom([40, 70], status)
      const [outage, ...others] = fitted.outages
      assert.deepStrictEqual([others, outage?.isExplained], [[], false])
      assert.closeTo(outage!.fromMillis - beginMillis, 40_000, 1000)
      assert.closeTo(outage!.toMillis - beginMillis, 70_000, 1000)
      isWithin(outage!.before!, 50, 0.1, "before")
      const { notes, services: [{ failureRate }] } = scenarioOf(fitted, { name: "x", takeMillis: 600_000 }).scenario
      assert.isBelow(failureRate ?? 0, 0.001)
      assert.match(
        notes.join(),
        /requests fail from (39|40) s to (69|70|71) s for a reason not in the scenario: add an outage/
      )
    }
  )

  it("has the failure rate of the time outside of an outage", () => {
    const fitted = failingFrom([40, 70], 503, { every: 20 })
    assert.strictEqual(fitted.outages.length, 1)
    isWithin(fitted.unexplained, 0.05, 0.2, "unexplained")
  })

  it("has no outage where requests fail alike at all times, or all the time", () => {
    for (const every of [1, 2, 3, 4, 5, 6, 10]) {
      assert.deepStrictEqual(failingFrom([0, 0], 503, { every }).outages, [], `one in ${every}`)
    }
    assert.deepStrictEqual(failingFrom([0, 100], 503).outages, [])
  })

  it("replays of an outage also what was before it", () => {
    const fitted = failingFrom([40, 100], 503)
    const { fromMillis } = scenarioOf({
      ...fitted,
      series: {
        ...fitted.series,
        buckets: fitted.series.buckets.map((one, n) => n < 50 ? one : { ...one, calls: 100 })
      }
    }, { name: "x", takeMillis: 30_000 })
    assert.closeTo(fromMillis - beginMillis, 37_000, 1000)
  })

  it("says of an outage that its capacity explains no more than when it was", () => {
    const fitted = crowded({ connections: 24 })
    assert.deepStrictEqual(fitted.outages.map(({ isExplained }) => isExplained), [true])
    assert.notInclude(
      scenarioOf(fitted, { name: "x", takeMillis: 600_000 }).scenario.notes.join(),
      "requests fail from"
    )
  })

  it("has the timeout after which most abandoned requests ended, and otherwise assumes one", () => {
    const timeoutIn = (fitted: Fitted) => scenarioOf(fitted, { name: "x", takeMillis: 600_000 }).scenario
    for (const millis of [250, 1000, 1250, 2500, 30_000]) {
      const { description, fleets: [{ timeout }], notes } = timeoutIn(
        failingFrom([40, 70], 499, { durationMillis: millis + 2 })
      )
      assert.strictEqual(timeout, `${millis / 1000} ${millis === 1000 ? "second" : "seconds"}`)
      assert.match(notes.join(), /timeout \S+ seconds?: 1,?\d{3} requests ended without an answer after it/)
      assert.notMatch(`${description}${notes[0]}`, /timeout/)
    }
    // They left whenever they liked.
    assert.isUndefined(failingFrom([40, 70], 499).timeout)
    assert.strictEqual(timeoutIn(failingFrom([40, 70], 499)).fleets[0].timeout, "1 second")
    assert.isUndefined(failingFrom([40, 70], 503, { durationMillis: 1000 }).timeout)
  })

  it("leaves out of its failure rate what its capacity, its limit and its queue make fail", () => {
    const { notes, services: [service] } = scenarioOf(crowded({ connections: 24 }), { name: "x", takeMillis: 600_000 })
      .scenario
    assert.isUndefined(service.failureRate)
    assert.notMatch(notes.join(), /not in the log: its/)
    const left = new Log({})
    for (const answered of answersTo(full)) {
      const waited = answered.endMillis - answered.startMillis > 1000
      left.push(encoder.encode(`${writers.json(waited ? { ...answered, status: 499 } : answered)}\n`))
    }
    left.endOfFile()
    assert.isBelow(
      scenarioOf(fittedOf(left.meter), { name: "x", takeMillis: 600_000 }).scenario.services[0].failureRate ?? 0,
      0.001
    )
  })

  it("has quantiles at low load that the waits of the rest do not reach", () => {
    const fitted = fittedOf(overloadIn("nginx").meter)
    isWithin(quantile(fitted, 0.5), 20 * Math.LN2 + 1000 / 300 + 0.7, 0.05, "p50")
    isWithin(quantile(fitted, 0.99), 20 * Math.log(100) + 1000 / 300 + 0.7, 0.05, "p99")
  })

  it("has the truth between low and high in nearly nineteen of twenty logs", () => {
    let held = 0
    const logs = budget(40, 3)
    for (let seed = 1; seed <= logs; seed++) {
      const traffic = {
        seed,
        seconds: 60,
        rate: steady(50),
        service: { latency: { exponential: 20 }, failureRate: 0.1 }
      }
      const { failed, rate } = fittedOf(logOf("json", traffic).meter)
      if (rate.low <= 50 && rate.high >= 50) held++
      if (failed.low <= 0.1 && failed.high >= 0.1) held++
    }
    assert.isAtLeast(held, 1.75 * logs)
  })

  it("makes a scenario that runs, and gives the same log again", async () => {
    const fitted = fittedOf(overloadIn("json").meter)
    const { scenario } = scenarioOf(fitted, { name: "again", takeMillis: 600_000 })
    const { clients, services } = await Effect.runPromise(Effect.flatMap(Simulator.decode(scenario), Simulator.run))
    // A call of the scenario is sent once: its retries are those of a policy.
    isWithin(clients[0]!.totals.calls, 260 * 90 + 40 * 400, 0.02, "calls")
    isWithin(services[0]!.series[170]!.succeeded / 0.95, 300, 0.1, "served in overload")
  })

  it("gives its busiest stretch to a scenario", () => {
    const fitted = fittedOf(overloadIn("json").meter)
    const { fromMillis, scenario } = scenarioOf(fitted, { name: "busy", takeMillis: 40_000 })
    assert.strictEqual(scenario.duration, "40 seconds")
    isWithin(fromMillis - beginMillis, 150_000, 0.02, "from")
    isWithin(Number(scenario.fleets[0]!.rate), 400, 0.02, "rate")
  })
})

describe("a log", () => {
  const answered = (startMillis: number, more: Partial<Answered> = {}): Answered => ({
    startMillis,
    endMillis: startMillis + 20,
    status: 200,
    attempt: 1,
    call: 1,
    ...more
  })
  const push = (log: Log, of: Answered) => log.push(encoder.encode(`${writers.json(of)}\n`))

  it("cut into any bytes is the same", () => {
    const text = encoder.encode(`${writers.nginx(answered(beginMillis))}é\r\n\n${writers.nginx(answered(beginMillis))}`)
    for (const size of [1, 2, 7, 1000]) {
      const log = new Log({})
      for (let from = 0; from < text.length; from += size) log.push(text.subarray(from, from + size))
      log.endOfFile()
      assert.deepStrictEqual([log.lines, log.broken, log.meter.requests], [2, 0, 2])
    }
  })

  it("with a line that does not end keeps none of it", () => {
    const log = new Log({ format: "json" })
    for (let n = 0; n < 20; n++) log.push(encoder.encode("x".repeat(1024 * 1024)))
    log.push(encoder.encode("\n"))
    push(log, answered(beginMillis))
    log.endOfFile()
    assert.deepStrictEqual([log.lines, log.broken, log.meter.requests], [2, 1, 1])
  })

  it("with a wrong clock in one line is not stretched by it, and with a gap continues", () => {
    const log = new Log({})
    const aDay = 86_400_000
    for (const day of [0, 0, 40_000, 0, 2, 2, 2]) push(log, answered(beginMillis + day * aDay))
    log.endOfFile()
    assert.deepStrictEqual([log.meter.requests, log.meter.strays], [5, 2])
    assert.strictEqual(fittedOf(log.meter).seconds, 2 * 86_400)
  })

  it("that goes back in time, as two concatenated ones do, loses nothing", () => {
    const log = new Log({})
    for (const hour of [8, 0]) {
      for (let second = 0; second < 100; second++) push(log, answered(beginMillis + hour * 3_600_000 + second * 1000))
    }
    log.endOfFile()
    assert.deepStrictEqual([log.meter.requests, log.meter.strays, log.meter.late], [199, 1, 0])
  })

  it("with durations that cannot be right counts them as malformed", () => {
    const log = new Log({})
    const took = (millis: string) =>
      log.push(encoder.encode(`{"time":"2026-03-03T12:00:00.001Z","status":200,"duration_ms":${millis}}\n`))
    for (const millis of ["20", "1e306", "86400000", "86400001", "1e308"]) took(millis)
    log.endOfFile()
    assert.deepStrictEqual([log.lines, log.broken, log.meter.requests], [5, 3, 2])
  })

  it("of several files reads each by itself, in any order and format", () => {
    const log = new Log({})
    push(log, answered(beginMillis + 600_000))
    log.endOfFile()
    log.push(encoder.encode(`${heads.csv}${writers.csv(answered(beginMillis))}`))
    log.endOfFile()
    log.push(encoder.encode("what is this\n"))
    log.endOfFile()
    assert.deepStrictEqual([log.lines, log.broken, log.meter.requests, log.meter.late], [3, 1, 2, 0])
    assert.strictEqual(fittedOf(log.meter).seconds, 600)
  })

  it("of a year has no more buckets than one of an hour", () => {
    const series = new Series()
    for (let hour = 0; hour < 8760; hour++) series.at(beginMillis + hour * 3_600_000).requests++
    assert.isAtMost(series.all.length, 4096)
    assert.strictEqual(series.all.reduce((sum, { requests }) => sum + requests, 0), 8760)
  })

  it("is the same whatever clients write in headers that are logged in quotes", () => {
    const main = (forwarded: string, n: number) =>
      `203.0.113.7 - - [10/Oct/2000:13:${10 + Math.floor(n / 60)}:${10 + n % 50} +0000] "GET / HTTP/1.1" 200 512 "-" ` +
      `"agent/1" "${forwarded}" rt=0.0${10 + n % 90} attempt=1\n`
    const fittedTo = (headers: ReadonlyArray<string>) => {
      const log = new Log({ format: "nginx" })
      for (let n = 0; n < 600; n++) log.push(encoder.encode(main(headers[n % 300] ?? "10.0.0.1", n)))
      log.endOfFile()
      return fittedOf(log.meter)
    }
    const lie = [`rt=${"9".repeat(307)}`, "rt=30.000 attempt=2", "30.000", "attempt=2", "rid=0123456789", " rt=30.000 "]
    assert.deepStrictEqual(fittedTo(lie), fittedTo([]))
  })

  /** A line of each format with that duration, written in its unit. */
  const lasting: Readonly<Record<Exclude<Written, "csv">, (duration: string) => string>> = {
    nginx: (duration) =>
      `203.0.113.7 - - [10/Oct/2000:13:10:10 +0000] "GET / HTTP/1.1" 200 5 "-" "a" request_time=${duration}`,
    alb: (duration) => writers.alb(answered(beginMillis)).replace("0.000 0.020000 0.000", `0.000 0.020 ${duration}`),
    envoy: (duration) => writers.envoy(answered(beginMillis)).replace("512 20 3", `512 ${duration} 3`),
    json: (duration) => `{"time":"2026-11-22T18:15:40Z","status":200,"request_time":${duration}}`,
    otlp: (duration) =>
      writers.otlp(answered(beginMillis)).replace(/"endTimeUnixNano":"\d+"/, `"endTimeUnixNano":"${duration}"`)
  }
  it.each(Object.entries(lasting))("of %s has no duration beyond a day: such a line is malformed", (format, line) => {
    for (const duration of ["9".repeat(305), "9".repeat(308), `${"9".repeat(306)}.0`, "86401000", "2".repeat(25)]) {
      const log = new Log({ format: format as Written })
      log.push(encoder.encode(`${line(duration)}\n`))
      log.endOfFile()
      assert.deepStrictEqual([log.lines, log.broken, log.meter.requests], [1, 1, 0], duration)
      const { scenario } = scenarioOf(fittedOf(log.meter), { name: "none", takeMillis: 600_000 })
      assert.strictEqual(scenario.fleets.length, 1)
    }
  })

  it("of one request, and one without times, is fitted without a capacity", () => {
    const log = new Log({})
    log.push(encoder.encode("1.1.1.1 - - [10/Oct/2000:13:55:36 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"-\"\n"))
    log.endOfFile()
    const fitted = fittedOf(log.meter)
    assert.deepStrictEqual([fitted.capacity.kind, fitted.latency, fitted.retried], ["unknown", undefined, undefined])
    const { scenario } = scenarioOf(fitted, { name: "one", takeMillis: 600_000 })
    assert.isDefined(Effect.runSync(Simulator.decode(scenario)))
  })
})
