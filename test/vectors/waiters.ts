/**
 * Published figures of waiters, in seconds. Where a source gives delays, `randoms` are the numbers that lead to them.
 */
export interface DelayVector {
  readonly name: string
  readonly given: { readonly minDelay: number; readonly maxDelay: number; readonly maxWait: number }
  readonly randoms: ReadonlyArray<number>
  readonly delays: ReadonlyArray<number>
}

const specification = { minDelay: 2, maxDelay: 120, maxWait: 300 }

/** The share of the way from the shortest delay to the ceiling of an attempt at which a delay is. */
const share = (delay: number, ceiling: number): number => ceiling === 2 ? 0 : (delay - 2) / (ceiling - 2)

/** Smithy 2.0, "Waiters", the example of "Waiter retries": delay, and the ceiling of its attempt. */
const example = [
  [2, 2],
  [3, 4],
  [6, 8],
  [6, 16],
  [22, 32],
  [62, 64],
  [43, 120],
  [24, 120],
  [71, 120],
  [42, 120],
  [9, 120],
  [6, 120]
] as const

export const delays: ReadonlyArray<DelayVector> = [
  {
    name: "the example of the specification: the last delay is what is left",
    given: specification,
    randoms: [...example.map(([delay, ceiling]) => share(delay, ceiling)), 0.5],
    delays: [...example.map(([delay]) => delay), 4]
  },
  {
    name: "smithy-go, upper bounds; then 54 of the 300 are left",
    given: specification,
    randoms: [1],
    delays: [2, 4, 8, 16, 32, 64, 120, 54]
  },
  {
    name: "smithy-go, a large shortest delay",
    given: { minDelay: 9000, maxDelay: 12_000, maxWait: 15_000 },
    randoms: [1],
    delays: [15_000]
  },
  {
    name: "smithy-go, a large longest delay",
    given: { minDelay: 900, maxDelay: 120_000, maxWait: 15_000 },
    randoms: [1],
    delays: [900, 1800, 3600, 7200, 1500]
  },
  {
    name: "smithy-go, a large longest delay, lower bounds",
    given: { minDelay: 900, maxDelay: 120_000, maxWait: 15_000 },
    randoms: [0],
    delays: [...Array<number>(15).fill(900), 1500]
  },
  {
    name: "equal delays poll linearly, the last delay is longer",
    given: { minDelay: 10, maxDelay: 10, maxWait: 35 },
    randoms: [0.7],
    delays: [10, 10, 15]
  },
  {
    name: "equal delays, no more than one left: the end comes early",
    given: { minDelay: 10, maxDelay: 10, maxWait: 30 },
    randoms: [0.7],
    delays: [10, 20]
  }
]

/** The options of smithy-typescript's validation, in seconds. The field is the one that is refused, if any. */
export const options = [
  { minDelay: 200, maxDelay: 300, maxWait: 250, field: undefined },
  { minDelay: 200, maxDelay: 120, maxWait: 250, field: "maxDelay" },
  { minDelay: 200, maxDelay: 1200, maxWait: 300, field: undefined },
  { minDelay: 0.001, maxDelay: 0.4, maxWait: 0.5, field: undefined },
  // Accepted there: it knows no shortest delay but 0. The specification has 1 second, this library 1 ms.
  { minDelay: 0.0001, maxDelay: 0.4, maxWait: 0.5, field: "minDelay" },
  // Refused there for its maxWait, which is looked at first.
  { minDelay: -1, maxDelay: 1200, maxWait: -2, field: "minDelay" },
  { minDelay: 200, maxDelay: 1200, maxWait: 150, field: "maxWait" },
  { minDelay: 200, maxDelay: 1200, maxWait: 200, field: "maxWait" },
  // smithy-go
  { minDelay: 0, maxDelay: 120, maxWait: 300, field: "minDelay" },
  { minDelay: 10, maxDelay: 0, maxWait: 300, field: "maxDelay" },
  // Here smithy-go answers at run time, with a delay of 0.
  { minDelay: 10, maxDelay: 20, maxWait: 0, field: "maxWait" },
  { minDelay: 10, maxDelay: 20, maxWait: 5, field: "maxWait" }
] as const

/** The polls and sleeps of smithy-typescript, which leaves the jitter out past its attempt ceiling; and ours. */
export const javascript = {
  given: { minDelay: 2, maxDelay: 30, maxWait: 99_999 },
  random: 0.5,
  delays: [2, 3, 5, 9, 30, 30, 30],
  ours: [2, 3, 5, 9, 16, 16, 16]
}
