import { conformance } from "../utils/conformance.ts"

/**
 * One published row of smithy-python: every random value 0.5, in seconds. Its decorrelated jitter is
 * `min(max, scale + random * 3 * previous)`: ours with `additive`.
 */
export interface JitterVector {
  /** `undefined`: the default. */
  readonly jitter: "none" | "full" | "equal" | "decorrelated" | undefined
  readonly scale: number
  readonly max: number
  readonly delays: ReadonlyArray<number>
}

const { cases, maxBelowScale, maxOfZero } = conformance("jitter")

const rows = (given: ReadonlyArray<any>): ReadonlyArray<JitterVector> =>
  given.map((row) => ({ ...row, jitter: row.jitter === "default" ? undefined : row.jitter }))

export const jitterModes = rows(cases)

/** A backoff refuses a cap below its base: `RetryPolicy.capped` says what is meant. */
export const capBelowScale = rows(maxBelowScale)

/** A cap of 0 is refused everywhere: a policy that retries immediately says so with a base of 0, not with a cap. */
export const capOfZero = rows(maxOfZero)
