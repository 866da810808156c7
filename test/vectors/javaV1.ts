import { type Basis, callsOf, conformance, type ErrorVector } from "../utils/conformance.ts"

const tables = conformance("java-v1")

/** A backoff strategy alone: the delays before retry `from`, 1 where nothing is said, and those after it. */
export interface BackoffVector {
  readonly name: string
  readonly basis: Basis
  readonly jitter: "none" | "full" | "equal"
  readonly baseMs: number
  readonly maxBackoffMs: number
  readonly random: number
  readonly from?: number
  readonly delaysMs: ReadonlyArray<number>
}

export const backoffs: ReadonlyArray<BackoffVector> = tables.backoffs

export const calls = callsOf(tables.calls)

export const errors: ReadonlyArray<ErrorVector> = tables.errors
