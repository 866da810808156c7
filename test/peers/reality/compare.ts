import * as Simulator from "@effect-retry/lab/Simulator"
import * as Effect from "effect/Effect"
import { loadavg } from "node:os"
import { measure } from "./client.ts"
import { type SubjectName, subjects } from "./policies.ts"
import { network, type System } from "./systems.ts"

/** What was measured of a real system, and the scenario of the same. */
export interface Measurement {
  readonly system: string
  readonly policy: SubjectName
  readonly scenario: Simulator.ScenarioInput
  readonly measured: Simulator.MeasuredInput
  /** The load of the machine when it began, of the minute before. */
  readonly load: number
  /** By how much the machine held the client up, at most, in 99 of 100 looks. */
  readonly heldUpMillis: number
}

/** A measurement, and what the simulator predicts for it. */
export interface Comparison extends Measurement {
  readonly backtest: Simulator.Backtest
}

/** Runs a real system with a policy. */
export const run = Effect.fnUntraced(function*(system: System, policy: SubjectName) {
  const { load, service, trouble } = yield* system.start
  const [busy = 0] = loadavg()
  const retrying = yield* subjects[policy].real
  const { made: { heldUpMillis, measured } } = yield* Effect.all({ made: measure(load, retrying), trouble }, {
    concurrency: "unbounded"
  })
  const scenario: Simulator.ScenarioInput = {
    name: `${system.name}, ${policy}`,
    duration: `${load.seconds}s`,
    fleets: [{
      name: "clients",
      to: "service",
      rate: load.rate,
      timeout: load.timeoutMillis,
      network,
      policy: subjects[policy].scenario
    }],
    services: [{ name: "service", ...service }]
  }
  const measurement: Measurement = { system: system.name, policy, scenario, measured, load: busy, heldUpMillis }
  return measurement
}, Effect.scoped)

/** Runs the simulator with the calls of that run. */
export const predict = Effect.fnUntraced(function*(measurement: Measurement, runs = 10) {
  const backtest = yield* Simulator.backtest(
    yield* Simulator.decode(measurement.scenario),
    yield* Simulator.decodeMeasured(measurement.measured),
    { runs }
  )
  const comparison: Comparison = { ...measurement, backtest }
  return comparison
})

/** At least this, or what simulated runs differ from each other by, from the 5th percentile to the 95th: one real run is as random. */
export const toleranceOf = ({ predicted }: Simulator.Compared, atLeast: number): number =>
  predicted === undefined ? atLeast : Math.max(atLeast, predicted.high - predicted.low)

const percent = (share: number | undefined): string => share === undefined ? "-" : `${(share * 100).toFixed(1)} %`
const ratio = (value: number | undefined): string => value === undefined ? "-" : value.toFixed(2)
const seconds = (millis: number | undefined): string =>
  millis === undefined ? "not in the run" : `${(millis / 1000).toFixed(0)} s`
const signed = (value: number | undefined, unit: string): string =>
  value === undefined ? "" : ` (${value < 0 ? "" : "+"}${(value * 100).toFixed(1)}${unit})`

const recovered = (
  { error, measured }: Simulator.Backtest["recoveredMillis"],
  { predicted }: NonNullable<Simulator.Backtest["recovery"]>
): string => {
  const mean = predicted.runs === 0 ? undefined : predicted.afterMillis?.mean
  const often = predicted.runs === 0 || predicted.runs === predicted.of
    ? ""
    : ` in ${predicted.runs} of ${predicted.of}`
  return `${seconds(measured)} / ${seconds(mean)}${often}${signed(error, " %")}`
}

/** Real, then predicted, with its error. */
const row = ({ backtest, load, policy, system }: Comparison): string => {
  const { p50Millis, p99Millis, recoveredMillis, recovery, sendsPerCall, succeeded } = backtest
  const error = (value: number | undefined) => signed(value, " %")
  const cells = [
    system,
    policy,
    `${percent(succeeded.measured)} / ${percent(succeeded.predicted?.mean)}${signed(succeeded.error, " pp")}`,
    `${ratio(sendsPerCall.measured)} / ${ratio(sendsPerCall.predicted?.mean)}${error(sendsPerCall.error)}`,
    recovery === undefined ? "-" : recovered(recoveredMillis, recovery),
    error(p50Millis.error).trim(),
    error(p99Millis.error).trim(),
    load.toFixed(1)
  ]
  return `| ${cells.join(" | ")} |`
}

const head = [
  "| real system | policy | succeed, real / predicted | sends/call, real / predicted | recovers after, real / predicted | p50 | p99 | load |",
  "| --- | --- | --- | --- | --- | --- | --- | --- |"
]

export const table = (comparisons: ReadonlyArray<Comparison>): string => [...head, ...comparisons.map(row)].join("\n")
