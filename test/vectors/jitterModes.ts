// Every random value 0.5; seconds; the delays before retry 1, 2, 3, ... (the source has a 0 for the first attempt before).
// Source: smithy-python packages/smithy-core/tests/unit/test_retries.py @6924bc5d7d.
// Its decorrelated jitter is `min(max, scale + random * 3 * previous)`: ours with `additive`.

/** One published row. */
export interface JitterVector {
  /** `undefined`: the default. */
  readonly jitter: "none" | "full" | "equal" | "decorrelated" | undefined
  readonly scale: number
  readonly max: number
  readonly delays: ReadonlyArray<number>
}

export const jitterModes: ReadonlyArray<JitterVector> = [
  { jitter: undefined, scale: 2, max: 20, delays: [2, 4, 8, 16, 20, 20] },
  { jitter: "none", scale: 2, max: 20, delays: [2, 4, 8, 16, 20, 20] },
  { jitter: "none", scale: 1, max: 20, delays: [1, 2, 4, 8, 16, 20] },
  { jitter: "none", scale: 23.4, max: 76.5, delays: [23.4, 46.8, 76.5, 76.5] },
  { jitter: "full", scale: 2, max: 20, delays: [1, 2, 4, 8, 10, 10] },
  { jitter: "full", scale: 5, max: 20, delays: [2.5, 5, 10, 10] },
  { jitter: "full", scale: 5, max: 10, delays: [2.5, 5, 5, 5] },
  { jitter: "full", scale: 23.4, max: 76.5, delays: [11.7, 23.4, 38.25, 38.25] },
  { jitter: "equal", scale: 2, max: 20, delays: [1.5, 3, 6, 12, 15, 15] },
  { jitter: "equal", scale: 23.4, max: 76.5, delays: [17.55, 35.1, 57.375, 57.375] },
  { jitter: "decorrelated", scale: 2, max: 20, delays: [5, 9.5, 16.25, 20, 20] },
  { jitter: "decorrelated", scale: 23.4, max: 76.5, delays: [58.5, 76.5, 76.5] },
  { jitter: "none", scale: 0, max: 5, delays: [0, 0, 0] },
  { jitter: "full", scale: 0, max: 5, delays: [0, 0, 0] }
]

/** A back-off refuses a cap below its base: `RetryPolicy.capped` says what is meant. */
export const capBelowScale: ReadonlyArray<JitterVector> = [
  { jitter: "none", scale: 4, max: 2, delays: [2, 2, 2] }
]

/** A cap of 0 is refused everywhere: a policy that retries at once says so with a base of 0, not with a cap. */
export const capOfZero: ReadonlyArray<JitterVector> = [
  { jitter: "none", scale: 5, max: 0, delays: [0, 0, 0] },
  { jitter: "none", scale: 0, max: 0, delays: [0, 0, 0] },
  { jitter: "full", scale: 5, max: 0, delays: [0, 0, 0] },
  { jitter: "full", scale: 0, max: 0, delays: [0, 0, 0] }
]
