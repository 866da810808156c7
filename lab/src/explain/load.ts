import { power } from "../simulator/portable.ts"

/** How many retries follow failures, when every attempt fails. */
export interface Reach {
  /** The share of calls that make retry `n + 1`. */
  readonly shares: ReadonlyArray<number>
  /** How many more retries are made by the calls that make the last of them: a whole number, or `Infinity`. */
  readonly more: number
}

/** What the quota pays and is paid. */
export interface Price {
  /** Tokens that a retry takes. */
  readonly cost: number
  /** Tokens that a call which needs no retry puts in. */
  readonly increment: number
  /** The most tokens there can be. */
  readonly capacity: number
  /** A retry that cannot be paid for waits until it can: none is refused. */
  readonly waits: boolean
}

/** `1 + f + f^2 + ...`, up to a number of terms. */
const geometric = (f: number, terms: number): number => {
  if (f === 1) return terms
  return (1 - power(f, terms)) / (1 - f)
}

/**
 * Retries per call when attempts fail independently with probability `f` and no quota refuses any: `f + f^2 + ...`, each
 * term for the calls that get so far.
 */
export const retriesPerCall = ({ more, shares }: Reach, f: number): number => {
  const counted = shares.reduce((sum, share, n) => sum + share * power(f, n + 1), 0)
  const last = shares.at(-1) ?? 0
  return last === 0 || more === 0 || f === 0
    ? counted
    : counted + last * power(f, shares.length + 1) * geometric(f, more)
}

/**
 * Retries per call that the quota can pay for in the long run. A success pays its own retry back or puts the increment
 * in, so what failed retries cost, `cost * f` for each, must come from the calls that need none: `increment * (1 - f)`.
 */
const affordable = ({ capacity, cost, increment, waits }: Price, f: number): number => {
  if (cost > capacity) return 0
  return waits || cost * f === 0 ? Infinity : increment * (1 - f) / (cost * f)
}

/** Retries per call with the quota: those wanted, or those it can pay for. */
export const paidRetriesPerCall = (reach: Reach, price: Price | undefined, f: number): number => {
  const wanted = retriesPerCall(reach, f)
  return price === undefined ? wanted : Math.min(wanted, affordable(price, f))
}

/** How exact the root is: halvings of the interval from 0 to 1. */
const halvings = 60

/**
 * The failure rate from which the quota drains: the root of `cost * f * retries(f) = increment * (1 - f)`, the left side
 * rising and the right falling. `undefined` when no rate drains it.
 */
export const bitesAt = (reach: Reach, { capacity, cost, increment }: Price): number | undefined => {
  if (cost === 0 || retriesPerCall(reach, 1) === 0) return undefined
  if (cost > capacity || increment === 0) return 0
  let low = 0
  let high = 1
  for (let n = 0; n < halvings; n++) {
    const f = (low + high) / 2
    if (cost * f * retriesPerCall(reach, f) > increment * (1 - f)) high = f
    else low = f
  }
  return high
}
