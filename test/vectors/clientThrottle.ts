/**
 * Client-side throttling. Sources: Google, Site Reliability Engineering, chapter 21 "Handling Overload" (the formula);
 * failsafe-go, adaptivethrottler/adaptivethrottler_test.go at 5759a5e6d557eace215f820f5b5e663d5c05c3ee (`failsafeGo`).
 */

/** Requests and accepts in the window, K, and the share of sends that is refused: worked out from the formula. */
export const rejection: ReadonlyArray<readonly [requests: number, accepts: number, k: number, rejection: number]> = [
  [0, 0, 1.1, 0.0],
  [1, 0, 1.1, 0.5],
  [9, 0, 1.1, 0.9],
  [99, 0, 1.1, 0.99],
  [10, 10, 1.1, 0.0],
  [10, 5, 1.1, 0.409090909091],
  [100, 50, 1.1, 0.445544554455],
  [100, 40, 1.1, 0.554455445545],
  [100, 25, 1.1, 0.717821782178],
  [100, 0, 1.1, 0.990099009901],
  [1000, 910, 1.1, 0.0],
  [1000, 500, 1.1, 0.44955044955],
  [1000, 499, 1.1, 0.450649350649],
  [1000, 100, 1.1, 0.889110889111],
  [120000, 60000, 1.1, 0.449996250031],
  [120000, 30000, 1.1, 0.724993958384],
  [0, 0, 2.0, 0.0],
  [1, 0, 2.0, 0.5],
  [9, 0, 2.0, 0.9],
  [99, 0, 2.0, 0.99],
  [10, 10, 2.0, 0.0],
  [10, 5, 2.0, 0.0],
  [100, 50, 2.0, 0.0],
  [100, 40, 2.0, 0.19801980198],
  [100, 25, 2.0, 0.49504950495],
  [100, 0, 2.0, 0.990099009901],
  [1000, 910, 2.0, 0.0],
  [1000, 500, 2.0, 0.0],
  [1000, 499, 2.0, 0.001998001998],
  [1000, 100, 2.0, 0.799200799201],
  [120000, 60000, 2.0, 0.0],
  [120000, 30000, 2.0, 0.499995833368]
]

/** The same with a bound of 0.8 and a failure rate of 0.1 that is tolerated: K is 1 / 0.9. */
export const failsafeGo: ReadonlyArray<readonly [requests: number, accepts: number, rejection: number]> = [
  [100, 95, 0],
  [120, 90, 0.165289256198],
  [1000, 10, 0.8],
  [0, 0, 0],
  [100, 0, 0.8],
  [200, 50, 0.718629077]
]

/** K, the load offered, and the load that comes through, both over the capacity: the fixed point of the formula. */
export const steady: ReadonlyArray<readonly [k: number, offered: number, load: number]> = [
  [1.1, 0.5, 0.5],
  [1.1, 1.0, 1.0],
  [1.1, 1.1, 1.1],
  [1.1, 1.5, 1.1],
  [1.1, 2.0, 1.1],
  [1.1, 2.5, 1.1],
  [1.1, 3.0, 1.1],
  [1.1, 5.0, 1.1],
  [1.1, 10.0, 1.1],
  [2.0, 0.5, 0.5],
  [2.0, 1.0, 1.0],
  [2.0, 1.1, 1.1],
  [2.0, 1.5, 1.5],
  [2.0, 2.0, 2.0],
  [2.0, 2.5, 2.0],
  [2.0, 3.0, 2.0],
  [2.0, 5.0, 2.0],
  [2.0, 10.0, 2.0]
]
