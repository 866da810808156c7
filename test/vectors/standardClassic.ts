import type { AwsModes } from "effect-retry"
import { conformance, standardCases } from "../utils/conformance.ts"
import type { StandardVector } from "../utils/vectors.ts"

/** Retry behavior 2.0, standard mode. Long polling (9 to 11) means nothing to this behavior. */
export const standardClassic: ReadonlyArray<StandardVector<AwsModes.Options>> = standardCases(
  conformance("standard-2.0").cases
)
