import { type Basis, callsOf, conformance, type ErrorVector } from "../utils/conformance.ts"
import type { Wire } from "../utils/vectors.ts"

const tables = conformance("general-reference")

export const calls = callsOf(tables.calls)

/** When polls begin, and how polling ends. The last answer is that of all polls that follow. */
export interface PollingVector {
  readonly name: string
  readonly basis: Basis
  readonly given: {
    readonly maxPolls?: number | "none"
    readonly maxBackoffMs?: number
    readonly maxWaitMs?: number
    readonly pollTakesMs?: number
  }
  readonly answers: ReadonlyArray<{ readonly status: string } | { readonly error: Wire }>
  readonly pollsAtMs: ReadonlyArray<number>
  readonly outcome: "success" | "failure" | "max-polls" | "max-wait"
}

export const polling: ReadonlyArray<PollingVector> = tables.polling

export const errors: ReadonlyArray<ErrorVector> = tables.errors
