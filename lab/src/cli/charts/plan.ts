import { type Raster, rasterOf, timesOf } from "./buckets.ts"
import type { Figure, Shade } from "./figure.ts"
import type { Runs } from "./run.ts"
import { shadesOf } from "./shades.ts"

/** What all figures of a page share. */
export interface Plan {
  readonly runs: Runs
  readonly raster: Raster
  readonly shades: ReadonlyArray<Shade>
}

/** Looks at the runs. */
export const planOf = (runs: Runs): Plan => {
  const raster = rasterOf(runs)
  return { runs, raster, shades: shadesOf(runs[0].result.scenario, raster.untilMillis) }
}

/** A figure over the time of the runs; `at` says where in their buckets the values are. */
export const over = (
  { raster, shades }: Plan,
  figure: Omit<Figure, "times" | "shades" | "untilMillis">,
  at: "middle" | "end" = "middle"
): Figure => ({ ...figure, shades, times: timesOf(raster, at), untilMillis: raster.untilMillis })
