import * as Effect from "effect/Effect"
import { type Edge, edge } from "../Simulator.ts"
import { Executor } from "../simulator/executor.ts"
import { inOrder } from "../simulator/inOrder.ts"
import type { Runs } from "./charts/run.ts"
import type { Progress } from "./progress.ts"
import { type Refusal, refusal } from "./refusal.ts"
import { plain } from "./text.ts"

/** What becomes of the calls of each run with a little less and a little more capacity; `undefined` where that has no answer. */
export type Edges = ReadonlyArray<Edge | undefined>

const runsOfEach = 3

/** Looks for the edges of all policies. */
export const edgesOf = (runs: Runs, progress: Progress): Effect.Effect<Edges, Refusal> =>
  Effect.flatMap(Executor, ({ concurrency }) => {
    let done = 0
    return inOrder(runs, ({ label, result: { scenario } }) =>
      edge(scenario, { runs: runsOfEach }).pipe(
        Effect.mapError(({ message }) => refusal(`${scenario.name} (${label}): ${message}`)),
        Effect.tap(() => progress.show(++done / runs.length, `${plain(label)}, with other capacities`))
      ), concurrency)
  }).pipe(Effect.ensuring(progress.clear))

/** Reports which policies are on an edge: a measured capacity is rarely more exact than a tenth. */
export const edgeLines = (runs: Runs, edges: Edges): ReadonlyArray<string> =>
  edges.flatMap((edge, index) => {
    if (edge === undefined || !edge.isNear) return []
    const { less, more, written } = edge
    const others = [
      ...less === written ? [] : [`${less} with 10 % less capacity`],
      ...more === written ? [] : [`${more} with 10 % more`]
    ]
    return [`near an edge: ${plain(runs[index]!.label)} ${written}, but ${others.join(", and ")}`]
  })
