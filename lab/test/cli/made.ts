import * as Simulator from "@effect-retry/lab/Simulator"
import * as Effect from "effect/Effect"
import type { Run } from "../../src/cli/charts/run.ts"

/** The figures of a run: 100 calls begin in each second. */
export interface Made {
  /** How many of the 100 calls that end in each second succeed; `undefined`: none end. */
  readonly shares: ReadonlyArray<number | undefined>
  /** After them, when no more calls begin, this many of another hundred calls succeed. */
  readonly late?: number
  /** Calls that do not end. */
  readonly open?: number
  readonly partial?: boolean
  /** When the outage ends that begins at 0. Default: there is none. */
  readonly outageEnd?: string
  readonly policy?: Simulator.Policy
  /** Requests per call. Default 1. */
  readonly sends?: number
  /** Requests per second that reach the service. Default: what the calls send. */
  readonly load?: number
  readonly latency?: Partial<Simulator.ClientResult["totals"]["latency"]>
  /** Of the calls that fail. */
  readonly failures?: Simulator.ClientResult["totals"]["failures"]
  readonly stops?: Simulator.ClientResult["totals"]["stops"]
  readonly fleet?: object
  readonly service?: object
  readonly scenario?: object
  readonly seed?: number
}

const scenarioOf = ({ fleet, outageEnd, policy = "none", scenario, seed = 1, service, shares }: Made) =>
  // What is undefined is left out.
  Effect.runSync(Simulator.decode(JSON.parse(JSON.stringify({
    name: "s",
    duration: `${shares.length} seconds`,
    ...scenario,
    seed,
    fleets: [{ name: "f", to: "s", rate: 100, policy, ...fleet }],
    services: [{
      name: "s",
      // Without any bound nothing speaks of a recovery.
      ...service !== undefined && "capacity" in service ? {} : { connections: 1000 },
      ...outageEnd === undefined ? {} : { outages: [{ kind: "fail", from: 0, to: outageEnd }] },
      ...service
    }]
  }))))

const seriesOf = (
  { failures = {}, late, latency, sends = 1, shares, stops = {} }: Made
): ReadonlyArray<Simulator.ClientBucket> =>
  [...shares, ...late === undefined ? [] : [late]].map((well, index) => ({
    fromMillis: index * 1000,
    calls: index < shares.length ? 100 : 0,
    attempts: 100 * sends,
    succeeded: well ?? 0,
    failed: well === undefined ? 0 : 100 - well,
    failures,
    attemptFailures: failures,
    stops,
    latency: { meanMillis: 1, p50Millis: 1, p90Millis: 1, p99Millis: 1, maxMillis: 1, ...latency },
    gauges: { inFlight: 0, balance: null, budget: null, fillRate: null }
  }))

/** A result that nothing has simulated: what is written of it depends on its figures alone. */
export const made = (figures: Made): Simulator.SimulationResult => {
  const { load, open = 0, partial = false, sends = 1, shares } = figures
  const series = seriesOf(figures)
  const sum = (of: "succeeded" | "failed") => series.reduce((all, bucket) => all + bucket[of], 0)
  const [succeeded, failed] = [sum("succeeded"), sum("failed")]
  const calls = succeeded + failed + open
  const empty = { fromMillis: 0, attempts: 0, succeeded: 0, failed: 0, failures: {}, attemptFailures: {}, stops: {} }
  const received = load ?? 100 * sends
  const services = series.map(({ fromMillis, succeeded }) => ({
    fromMillis,
    received,
    succeeded,
    failures: {},
    wasted: 0,
    queued: 0,
    busy: 0
  }))
  return {
    scenario: scenarioOf(figures),
    partial,
    untilMillis: shares.length * 1000,
    bucketMillis: 1000,
    traceHash: "abc",
    attempts: calls * sends,
    clients: [{
      name: "f",
      kind: "fleet",
      to: "s",
      policy: "none",
      totals: { ...empty, ...series[0]!, calls, attempts: calls * sends, succeeded, failed },
      series
    }],
    services: [{
      name: "s",
      totals: { received: received * services.length, succeeded, failures: {}, wasted: 0 },
      series: services
    }]
  }
}

/** Runs with a policy, the first with the first seed. */
export const runsOf = (label: string, first: Made, ...others: ReadonlyArray<Made>): Run => {
  const result = made(first)
  return { label, result, results: [result, ...others.map((one, n) => made({ ...one, seed: n + 2 }))] }
}

/** A spread of values that are known. */
export const around = (mean: number, low = mean, high = mean, of = 20): Simulator.Spread => ({
  mean,
  low,
  median: mean,
  high,
  of
})
