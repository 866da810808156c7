import type { Steady } from "./steady.ts"
import type { Seen } from "./worker.ts"

/** What the comparison saw. */
export interface Comparison {
  /** Against a server that throttles. */
  readonly steady: Steady
  /** The same with a wall clock that goes back by 25 seconds after 8. */
  readonly stepped: Steady
  readonly rest: Seen["rest"]
  readonly herds: Seen["herds"]
}
