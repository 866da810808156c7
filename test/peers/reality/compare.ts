import * as Simulator from "@effect-retry/lab/Simulator"
import * as Effect from "effect/Effect"
import { loadavg } from "node:os"
import { measure } from "./client.ts"
import { type SubjectName, subjects } from "./policies.ts"
import { network, type System } from "./systems.ts"

/** What was measured of a real system, and what the simulator predicts for it. */
export interface Comparison {
  readonly system: string
  readonly policy: SubjectName
  readonly scenario: Simulator.ScenarioInput
  readonly measured: Simulator.MeasuredInput
  readonly backtest: Simulator.Backtest
  /** The load of the machine when it began, of the minute before. */
  readonly load: number
}

/** Runs a real system with a policy, then the simulator with the calls of that run. */
export const compare = Effect.fnUntraced(function*(system: System, policy: SubjectName) {
  const { load, service, trouble } = yield* system.start
  const [busy = 0] = loadavg()
  const retrying = yield* subjects[policy].real
  const { measured } = yield* Effect.all({ measured: measure(load, retrying), trouble }, { concurrency: "unbounded" })
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
  const backtest = yield* Simulator.backtest(
    yield* Simulator.decode(scenario),
    yield* Simulator.decodeMeasured(measured),
    { runs: 10 }
  )
  const comparison: Comparison = { system: system.name, policy, scenario, measured, backtest, load: busy }
  return comparison
}, Effect.scoped)

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

/** A row of the table: real, then predicted, with its error. */
export const row = ({ backtest, load, policy, system }: Comparison): string => {
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

export const head = [
  "| real system | policy | succeed, real / predicted | sends/call, real / predicted | recovers after, real / predicted | p50 | p99 | load |",
  "| --- | --- | --- | --- | --- | --- | --- | --- |"
]
