/**
 * Retry budgets of other systems. Sources: Finagle, RetryBudgetTest.scala and, for the leaky bucket, TokenBucketTest.scala of
 * twitter/util (twitter/finagle 4feb34cb949918c572a6152327212e062527bd62, twitter/util
 * 17c8187d948846756fabcdbb2ff6838b3665968b); tower, tps_budget.rs (tower-rs/tower
 * 8358ee712c4050650737e361fba242aa8c798ce2); Envoy, retry_state_impl_test.cc and circuit_breaker.proto
 * (envoyproxy/envoy 00961253e1300295f91e0a77453dd2c2d72635ad); gRPC, retry_test.go TestRetryThrottling (grpc/grpc-go
 * 4793ad0474669eafbd5346c8a3d098fdfa542498); failsafe-go, test/budget_test.go
 * (failsafe-go/failsafe-go 5759a5e6d557eace215f820f5b5e663d5c05c3ee).
 */

/** Finagle: 10,000 times a call and then a retry that asks. Its own test allows one more or less. */
export const callThenRetry: ReadonlyArray<
  readonly [windowMillis: number, minPerSecond: number, share: number, initial: number, retries: number]
> = [
  [60000, 0, 0.1, 0, 1000],
  [60000, 0, 0.5, 0, 5000],
  [60000, 0, 0.25, 0, 2500],
  [60000, 0, 0.75, 0, 7500],
  [60000, 0, 0.99, 0, 9900],
  [60000, 0, 0.999, 0, 9990],
  [60000, 0, 0.9999, 0, 9999],
  [60000, 0, 0.01, 0, 100],
  [60000, 0, 0.001, 0, 10],
  [60000, 0, 0.0001, 0, 1],
  [1000, 10, 0.0, 10, 10],
  [2000, 5, 0.0, 10, 10],
  [1000, 10, 0.1, 10, 1010],
  [2000, 5, 0.5, 10, 5010]
]

/** Finagle: a bucket whose tokens, and what was taken of them, are gone after the window. */
export const leakyBucket: ReadonlyArray<{
  readonly windowMillis: number
  readonly reserve: number
  readonly steps: ReadonlyArray<readonly ["put" | "advance", number] | readonly ["get", number, boolean]>
}> = [
  { windowMillis: 3000, reserve: 0, steps: [["put", 100], ["get", 1, true], ["advance", 3000], ["get", 1, false]] },
  {
    windowMillis: 3000,
    reserve: 0,
    steps: [
      ["put", 100],
      ["get", 50, true],
      ["get", 49, true],
      ["get", 1, true],
      ["get", 1, false],
      ["get", 50, false],
      ["put", 1],
      ["get", 2, false],
      ["get", 1, true],
      ["get", 1, false]
    ]
  },
  {
    windowMillis: 3000,
    reserve: 100,
    steps: [
      ["get", 50, true],
      ["get", 50, true],
      ["get", 1, false],
      ["put", 1],
      ["get", 1, true],
      ["advance", 1000],
      ["get", 1, false],
      ["advance", 1000],
      ["get", 1, false],
      ["advance", 1000],
      ["get", 1, false],
      ["advance", 1000],
      ["get", 50, true],
      ["advance", 3000],
      ["get", 100, true],
      ["get", 1, false]
    ]
  }
]

/** Finagle, with its defaults: calls, or retries that ask, at a time; how many were granted, and what is left. */
export const inTime: ReadonlyArray<
  readonly [atMillis: number, kind: "call" | "retry", times: number, granted: number | null, left: number]
> = [
  [0, "retry", 0, 0, 100],
  [0, "call", 100, null, 120],
  [0, "retry", 150, 120, 0],
  [500, "retry", 1, 0, 0],
  [1000, "call", 50, null, 10],
  [1000, "retry", 11, 10, 0],
  [5000, "call", 500, null, 100],
  [5000, "retry", 200, 100, 0],
  [9999, "retry", 1, 0, 0],
  [10000, "retry", 1, 0, 0],
  [10999, "retry", 1, 1, 99],
  [11000, "retry", 200, 99, 0],
  [15000, "retry", 200, 0, 0],
  [16000, "retry", 200, 0, 0],
  [30000, "retry", 200, 100, 0]
]

/** tower: a window of one second. */
export const tower: ReadonlyArray<{
  readonly minPerSecond: number
  readonly share: number
  readonly steps: ReadonlyArray<readonly ["call"] | readonly ["advance", number] | readonly ["retry", boolean]>
}> = [
  { minPerSecond: 0, share: 1.0, steps: [["retry", false]] },
  { minPerSecond: 0, share: 1.0, steps: [["call"], ["advance", 3000], ["retry", false]] },
  {
    minPerSecond: 0,
    share: 0.5,
    steps: [
      ["call"],
      ["call"],
      ["advance", 901],
      ["retry", true],
      ["advance", 2001],
      ["call"],
      ["advance", 301],
      ["call"],
      ["advance", 801],
      ["call"],
      ["retry", true]
    ]
  },
  {
    minPerSecond: 5,
    share: 1.0,
    steps: [["retry", true], ["retry", true], ["retry", true], ["retry", true], ["retry", true], ["retry", false]]
  }
]

/** tower: shares, and what it makes of them. Ours stay what they are. */
export const towerShares: ReadonlyArray<readonly [share: number, atTower: number]> = [
  [0.1, 0.1],
  [0.2, 0.2],
  [0.25, 0.25],
  [0.3, 0.333333],
  [0.34, 0.5],
  [0.4, 0.5],
  [0.5, 0.5],
  [0.6, 1.0],
  [0.7, 1.0],
  [0.75, 1.0],
  [0.9, 1.0],
  [1.0, 1.0]
]

/** Envoy: retries and requests in progress, in percent; whether one more retry passes. */
export const envoy: ReadonlyArray<
  readonly [percent: number, atLeast: number, retries: number, requests: number, granted: boolean]
> = [
  [20.0, 3, 0, 0, true],
  [0, 0, 0, 0, false],
  [20.0, 3, 2, 0, true],
  [20.0, 3, 3, 0, false],
  [20.0, 3, 3, 20, true],
  [20.0, 3, 4, 20, false],
  [100.0, 3, 4, 20, true],
  [20.0, 20, 2, 0, true],
  [20.0, 5, 4, 0, true],
  [20.0, 5, 5, 0, false]
]

/** Envoy: requests in progress, and the most retries. */
export const envoyMost: ReadonlyArray<
  readonly [percent: number, atLeast: number, requests: number, most: number]
> = [
  [20.0, 3, 0, 3],
  [20.0, 3, 1, 3],
  [20.0, 3, 10, 3],
  [20.0, 3, 15, 3],
  [20.0, 3, 19, 3],
  [20.0, 3, 20, 4],
  [20.0, 3, 25, 5],
  [20.0, 3, 100, 20],
  [20.0, 3, 300, 60],
  [20.0, 3, 1000, 200],
  [20.0, 10, 0, 10],
  [20.0, 10, 1, 10],
  [20.0, 10, 10, 10],
  [20.0, 10, 15, 10],
  [20.0, 10, 19, 10],
  [20.0, 10, 20, 10],
  [20.0, 10, 25, 10],
  [20.0, 10, 100, 20],
  [20.0, 10, 300, 60],
  [20.0, 10, 1000, 200],
  [50.0, 0, 0, 0],
  [50.0, 0, 1, 0],
  [50.0, 0, 10, 5],
  [50.0, 0, 15, 7],
  [50.0, 0, 19, 9],
  [50.0, 0, 20, 10],
  [50.0, 0, 25, 12],
  [50.0, 0, 100, 50],
  [50.0, 0, 300, 150],
  [50.0, 0, 1000, 500],
  [0.0, 0, 0, 0],
  [0.0, 0, 1, 0],
  [0.0, 0, 10, 0],
  [0.0, 0, 15, 0],
  [0.0, 0, 19, 0],
  [0.0, 0, 20, 0],
  [0.0, 0, 25, 0],
  [0.0, 0, 100, 0],
  [0.0, 0, 300, 0],
  [0.0, 0, 1000, 0],
  [100.0, 3, 0, 3],
  [100.0, 3, 1, 3],
  [100.0, 3, 10, 10],
  [100.0, 3, 15, 15],
  [100.0, 3, 19, 19],
  [100.0, 3, 20, 20],
  [100.0, 3, 25, 25],
  [100.0, 3, 100, 100],
  [100.0, 3, 300, 300],
  [100.0, 3, 1000, 1000]
]

/** gRPC: ten tokens, half a token a success, four attempts. The sends that the server answers, from 0. */
export const grpcAnswered: ReadonlyArray<number> = [0, 3, 6, 10, 11, 12, 13, 14, 16, 18]

/** gRPC: what becomes of each call, the last send it makes, how many it made, and the tokens after it. */
export const grpcCalls: ReadonlyArray<readonly [ok: boolean, lastSend: number, attempts: number, tokens: number]> = [
  [true, 0, 1, 10],
  [true, 3, 3, 8.5],
  [true, 6, 3, 7.0],
  [false, 8, 2, 5.0],
  [false, 9, 1, 4.0],
  [true, 10, 1, 4.5],
  [true, 11, 1, 5.0],
  [true, 12, 1, 5.5],
  [true, 13, 1, 6.0],
  [true, 14, 1, 6.5],
  [true, 16, 2, 6.0],
  [false, 17, 1, 5.0]
]

/** failsafe-go: first sends and retries in progress, then retries that ask, or end. */
export const failsafe: ReadonlyArray<{
  readonly share: number
  readonly atLeast: number
  readonly firstSends: number
  readonly retries: number
  readonly steps: ReadonlyArray<boolean | "end">
}> = [
  { share: 0.5, atLeast: 1, firstSends: 1, retries: 1, steps: [true, false, "end", true, false] },
  { share: 0.5, atLeast: 2, firstSends: 0, retries: 1, steps: [true, false] },
  { share: 0.5, atLeast: 1, firstSends: 1, retries: 1, steps: [true] },
  { share: 0.5, atLeast: 1, firstSends: 0, retries: 2, steps: [false] }
]
