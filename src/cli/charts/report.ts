import type { SimulationResult } from "../../Simulator.ts"
import { escaped } from "./escape.ts"

/** A simulation, and what it is called beside others. */
export interface Run {
  readonly label: string
  readonly result: SimulationResult
}

/** One page of one run, or of several runs of one scenario with different policies. */
export const report = (runs: readonly [Run, ...Array<Run>], options: { readonly command: string }): string =>
  `<!doctype html><html lang="en"><title>${escaped(runs[0].result.scenario.name)}</title><p>${
    escaped(options.command)
  }</p></html>`
