// Delays of the AWS SDKs before retry `from`, `from + 1`, ... (1 where nothing is said), in milliseconds. `random` is
// every random value, `cap` and `base` are in milliseconds too. `mode` is the retry behaviour, 2.0 or 2.1.

export interface ModeVector {
  readonly name: string
  readonly mode: "2.0" | "2.1"
  readonly base?: number
  readonly cap?: number
  readonly random: number
  readonly throttled?: true
  readonly from?: number
  readonly delays: ReadonlyArray<number>
  /** The balance of the quota after each failure, from 500. */
  readonly quota?: ReadonlyArray<number>
}

// Source: botocore tests/unit/retries/test_standard.py, test_standard_retry_v2_1.py @0e6e2404b8.
const botocore: ReadonlyArray<ModeVector> = [
  {
    name: "botocore classic",
    mode: "2.0",
    random: 1,
    delays: [1000, 2000, 4000, 8000, 16_000, 20_000, 20_000, 20_000, 20_000]
  },
  {
    name: "botocore 2.1",
    mode: "2.1",
    random: 1,
    delays: [50, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 20_000, 20_000]
  },
  { name: "botocore 2.1, dynamodb", mode: "2.1", base: 25, random: 1, delays: [25, 50, 100], quota: [486, 472, 458] }
]

// Source: smithy-swift ExponentialBackoffStrategyTests.swift @d55aa01ea4. Its attempts count from 0.
const swift: ReadonlyArray<ModeVector> = [
  { name: "Swift classic, b 0.25", mode: "2.0", random: 0.25, delays: [250] },
  { name: "Swift classic, b 0.5", mode: "2.0", random: 0.5, delays: [500] },
  { name: "Swift classic, b 0.75", mode: "2.0", random: 0.75, delays: [750] },
  {
    name: "Swift classic, b 1",
    mode: "2.0",
    random: 1,
    delays: [1000, 2000, 4000, 8000, 16_000, 20_000, 20_000, 20_000]
  },
  { name: "Swift classic, cap after jitter", mode: "2.0", random: 0.5, from: 6, delays: [16_000] },
  { name: "Swift 2.1, x 0.05", mode: "2.1", random: 1, delays: [50, 100, 200, 400] },
  { name: "Swift 2.1, x 0.025", mode: "2.1", base: 25, random: 1, delays: [25, 50, 100] },
  { name: "Swift 2.1, x 1", mode: "2.1", throttled: true, random: 1, delays: [1000, 2000, 4000] },
  { name: "Swift 2.1, attempt 20", mode: "2.1", random: 1, from: 21, delays: [20_000] },
  { name: "Swift 2.1, cap before jitter", mode: "2.1", throttled: true, random: 0.5, from: 6, delays: [10_000] }
]

// Source: smithy-rs client/retries/strategy/standard.rs @56ee88c5c6.
const rust: ReadonlyArray<ModeVector> = [
  {
    name: "Rust, max 3",
    mode: "2.0",
    cap: 3000,
    random: 1,
    delays: [1000, 2000, 3000, 3000],
    quota: [495, 490, 485, 480]
  },
  { name: "Rust 2.1, server error", mode: "2.1", random: 1, delays: [50] },
  { name: "Rust 2.1, throttling error", mode: "2.1", throttled: true, random: 1, delays: [1000] },
  { name: "Rust 2.0, server error", mode: "2.0", random: 1, delays: [1000] }
]

export const modes: ReadonlyArray<ModeVector> = [...botocore, ...swift, ...rust]

export interface ExponentialVector {
  readonly name: string
  readonly base: number
  readonly cap?: number
  readonly jitter: "none" | "full" | "equal"
  readonly random: number
  readonly from?: number
  readonly delays: ReadonlyArray<number>
}

// Source: smithy-typescript DefaultRetryBackoffStrategy.spec.ts @6815d3e96f. It floors to milliseconds, ours rounds up:
// these rows are whole. Its attempts count from 0. A base above the cap stands below.
const typescript: ReadonlyArray<ExponentialVector> = [
  { name: "smithy-typescript 50", base: 50, cap: 20_000, jitter: "full", random: 1, delays: [50, 100, 200, 400] },
  { name: "smithy-typescript 100", base: 100, cap: 20_000, jitter: "full", random: 1, delays: [100, 200, 400, 800] },
  {
    name: "smithy-typescript 1, attempts 15 and 16",
    base: 1,
    cap: 20_000,
    jitter: "full",
    random: 1,
    from: 16,
    delays: [20_000, 20_000]
  }
]

/** A base above the cap, which a back-off refuses: `RetryPolicy.capped`, then jitter, says what is meant. */
export const baseAboveCap = [
  { name: "smithy-typescript 20001", base: 20_001, cap: 20_000, random: 1, delays: [20_000] },
  { name: "smithy-typescript 20002", base: 20_002, cap: 20_000, random: 1, delays: [20_000] }
]

// Source: smithy-kotlin ExponentialBackoffWithJitterTest.kt @6373a5f747.
const kotlin: ReadonlyArray<ExponentialVector> = [
  { name: "Kotlin, no max", base: 10, jitter: "none", random: 1, delays: [10, 20, 40, 80, 160, 320] },
  { name: "Kotlin, max 100", base: 10, cap: 100, jitter: "none", random: 1, delays: [10, 20, 40, 80, 100, 100] },
  { name: "Kotlin, ServerSide", base: 50, jitter: "none", random: 1, delays: [50, 100, 200, 400, 800] }
]

/** Kotlin, errors that throttle; same source. */
export const kotlinThrottling = { base: 50, throttlingBase: 1000, delays: [1000, 2000, 4000] }

/** Kotlin, jitter 0.6: `delay * (1 - random from 0 to 0.6)`, so from 0.4 to 1 times the delay; same source. */
export const kotlinRanges = {
  base: 10,
  jitter: 0.6,
  ranges: [[4, 10], [8, 20], [16, 40], [32, 80], [64, 160], [128, 320]] as ReadonlyArray<readonly [number, number]>
}

// Source: smithy-rs client/retries/strategy/standard.rs @56ee88c5c6, calculate_exponential_backoff; attempts from 0.
const rustExponential: ReadonlyArray<ExponentialVector> = [
  { name: "Rust, initial 1", base: 1000, cap: 20_000, jitter: "full", random: 1, delays: [1000, 2000, 4000] },
  { name: "Rust, initial 3", base: 3000, cap: 20_000, jitter: "full", random: 1, delays: [3000, 6000, 12_000] },
  { name: "Rust, initial 0.03", base: 30, cap: 20_000, jitter: "full", random: 1, delays: [30, 60, 120] },
  {
    name: "Rust, attempt 100000",
    base: 10_000,
    cap: 20_000,
    jitter: "full",
    random: 1,
    from: 100_001,
    delays: [20_000]
  }
]

const javaExponential = [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 20_000, 20_000]
const javaHalves = [50, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]
const javaOptions = { base: 100, cap: 20_000 }

// Source: aws-sdk-java PredefinedBackoffStrategiesTest.java. The bounds of a jitter are its delays for 0 and for 1.
const java: ReadonlyArray<ExponentialVector> = [
  { name: "Java v1 exponential", ...javaOptions, jitter: "none", random: 1, delays: javaExponential },
  { name: "Java v1 full jitter, upper", ...javaOptions, jitter: "full", random: 1, delays: javaExponential },
  {
    name: "Java v1 full jitter, lower",
    ...javaOptions,
    jitter: "full",
    random: 0,
    delays: javaExponential.map(() => 0)
  },
  { name: "Java v1 equal jitter, upper", ...javaOptions, jitter: "equal", random: 1, delays: javaExponential },
  { name: "Java v1 equal jitter, lower", ...javaOptions, jitter: "equal", random: 0, delays: javaHalves }
]

export const exponentials: ReadonlyArray<ExponentialVector> = [...typescript, ...kotlin, ...rustExponential, ...java]
