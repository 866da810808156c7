/** Everything that a run shows, and everything that is found out with many runs, as JSON: bundled for each engine. */
import * as Explain from "@effect-retry/lab/Explain"
import * as Simulator from "@effect-retry/lab/Simulator"
import { awsAdaptive, awsStandard, awsStandard2026 } from "effect-retry/aws/AwsModes"
import * as Backoff from "effect-retry/Backoff"
import * as RetryPolicy from "effect-retry/RetryPolicy"
import * as Effect from "effect/Effect"

/** Scenarios by name, each with the policies that it is run with. */
export interface Inputs {
  readonly scenarios: Readonly<Record<string, unknown>>
  readonly policies: Readonly<Record<string, ReadonlyArray<Simulator.PolicyName | "written">>>
  readonly small: unknown
  readonly measured: unknown
}

export interface Results {
  readonly traces: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly texts: Readonly<Record<string, string>>
}

const seeds = { runs: 2 }

/** Its factor is not a power of 2. */
const uneven = Backoff.exponential("37 millis", 1.3, { jitter: "full" }).pipe(RetryPolicy.maxAttempts(12))
const decorrelated = Backoff.decorrelated("20 millis", { cap: "5 seconds" }).pipe(RetryPolicy.maxAttempts(8))

/** What is found out with many runs of a scenario. */
const findings = Effect.fnUntraced(function*({ measured, small }: Inputs) {
  const scenario = yield* Simulator.decode(small)
  const written = yield* Simulator.runs(scenario, { runs: 3 })
  const others = yield* Simulator.runs(Simulator.withPolicy(scenario, "jitter"), { runs: 3 })
  return {
    summary: Simulator.summarize(written),
    difference: Simulator.difference(written, others),
    judgments: Simulator.judge(written),
    warnings: Simulator.warnings(scenario, written),
    recoversBelow: Simulator.recoversBelow(scenario) ?? null,
    verdict: yield* Simulator.verdict(scenario, seeds),
    edge: yield* Simulator.edge(scenario, seeds),
    backtest: yield* Simulator.backtest(scenario, yield* Simulator.decodeMeasured(measured), seeds),
    map: yield* Simulator.map(scenario, {
      x: { path: "fleets.0.rate", values: [10, 40] },
      y: { path: "services.0.outages.0.length", values: [500, 2000] },
      ...seeds
    }),
    sweep: yield* Simulator.sweep(scenario, { path: "services.0.capacity", from: 10, to: 40, step: 10, ...seeds }),
    tune: yield* Simulator.tune(scenario, { policies: ["none", "awsStandard"], ...seeds }),
    explained: [awsStandard, awsStandard2026, awsAdaptive, uneven, decorrelated].map((policy) =>
      Explain.explain(policy, { deadline: "3 seconds", samples: 500 })
    )
  }
})

const all = Effect.fnUntraced(function*(inputs: Inputs) {
  const traces: Record<string, Record<string, string>> = {}
  const texts: Record<string, string> = {}
  for (const [name, policies] of Object.entries(inputs.policies)) {
    const scenario = yield* Simulator.decode(inputs.scenarios[name])
    const found: Record<string, string> = {}
    for (const policy of policies) {
      const result = yield* Simulator.run(policy === "written" ? scenario : Simulator.withPolicy(scenario, policy))
      found[policy] = result.traceHash
      texts[`${name}, ${policy}`] = JSON.stringify(result)
    }
    traces[name] = found
  }
  for (const [name, value] of Object.entries(yield* findings(inputs))) texts[name] = JSON.stringify(value)
  return { traces, texts }
})

export const resultsOf = (inputs: Inputs): Promise<Results> => Effect.runPromise(all(inputs))
