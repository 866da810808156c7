import * as Effect from "effect/Effect"
import { Stride } from "../../src/testing/internal/sweep.ts"
import { budget } from "./budget.ts"

/** Under the name that the library's tests use. */
export { sweep } from "effect-retry/testing"

/** Sweeps in this effect interrupt only at each so many-th step and wait, unless all are tried. */
export const thinned = (stride: number) => Effect.provideService(Stride, budget(1, stride))
