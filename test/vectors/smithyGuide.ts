import { type Basis, conformance } from "../utils/conformance.ts"
import type { Wire } from "../utils/vectors.ts"

const tables = conformance("smithy-guide")

/** What the guide calls RetryInfo. */
interface Facts {
  readonly retrySafe: "yes" | "maybe" | "no"
  readonly throttling?: boolean
  readonly timeout?: boolean
  readonly fault?: "client" | "server"
  readonly retryAfterMs?: number
}

interface Named {
  readonly name: string
  readonly basis: Basis
}

export type GuideError = Wire & { readonly facts?: Facts }

type Edition = "2026-02" | "2026-04"

/** The delays of the retries after failures that are all the same, and what each takes. */
export interface EditionVector extends Named {
  readonly edition: Edition
  readonly retryCost?: number
  readonly maxAttempts?: number
  readonly maxBackoffMs?: number
  readonly scale?: number
  readonly error: GuideError
  readonly random: number
  readonly delaysMs: ReadonlyArray<number>
  readonly cost: number
  readonly then: "max-attempts"
}

export const editions: ReadonlyArray<EditionVector> = tables.editions

/** The balances before and after a call that succeeds. */
export interface SuccessVector extends Named {
  readonly edition: Edition
  readonly successRefund?: number
  readonly retries: number
  readonly capacity?: number
  readonly quotaBefore: number
  readonly quotaAfter: number
}

export const successes: ReadonlyArray<SuccessVector> = tables.successes

/** What the edition of April 2026 says to one more failure, at random number 0.5. */
export interface DecisionVector extends Named {
  readonly error: GuideError
  readonly retriesBefore: number
  readonly quotaBefore: number
  readonly expected: { readonly outcome: string; readonly delayMs?: number; readonly cost?: number }
}

export const decisions: ReadonlyArray<DecisionVector> = tables.decisions

export interface TraitVector extends Named {
  readonly traits: {
    readonly retryable?: { readonly throttling?: boolean }
    readonly error?: "client" | "server"
    readonly httpError?: number
  }
  readonly retrySafe: Facts["retrySafe"] | null
  readonly throttling: boolean | null
  readonly fault: "client" | "server" | "other"
}

export const traits: ReadonlyArray<TraitVector> = tables.traits
