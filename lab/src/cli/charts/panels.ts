import type { Line, Panel } from "./figure.ts"
import { lookOf } from "./palette.ts"
import type { Plan } from "./plan.ts"
import type { Run } from "./run.ts"

/**
 * A panel for each run; a single run has one panel, named like its figure. A run without values has none, and no empty
 * picture is drawn.
 */
export const panelsOf = (
  { runs }: Plan,
  title: string,
  linesOf: (run: Run, place: number) => ReadonlyArray<Line>,
  references: ReadonlyArray<Line> = []
): ReadonlyArray<Panel> =>
  runs
    .map((run, place) => ({
      name: runs.length === 1 ? title : run.label,
      look: lookOf(place),
      lines: linesOf(run, place).filter(({ values }) => values.some((value) => value !== null)),
      references
    }))
    .filter(({ lines }) => lines.length > 0)
