import { type Basis, conformance } from "../utils/conformance.ts"
import type { Wire } from "../utils/vectors.ts"

const tables = conformance("request-headers")

interface Named {
  readonly name: string
  readonly basis: Basis
}

/** The header `amz-sdk-request` of each attempt, and the answer to it. */
export const requests: ReadonlyArray<
  Named & {
    readonly service: string
    readonly operation: string
    readonly responses: ReadonlyArray<{ readonly error?: Wire; readonly header: string }>
  }
> = tables.requests

/** Attempts whose answers may have a date. */
export const dated: ReadonlyArray<
  Named & {
    readonly given: {
      readonly startsAt: string
      readonly answerAfterMs: number
      readonly retryAfterMs: number
      readonly maxAttempts: number
      readonly readTimeoutMs?: number
      readonly maxInFirst?: boolean
      readonly ttlPosition?: "first" | "last"
    }
    readonly responses: ReadonlyArray<{ readonly date?: string; readonly header: string }>
  }
> = tables.dated

/** The header of attempt 1 when a date has just come. */
export const ttl: ReadonlyArray<
  Named & {
    readonly now: string
    readonly date: string
    readonly readTimeoutMs: number
    readonly maxAttempts: number
    readonly ttlPosition?: "first" | "last"
    readonly header: string
  }
> = tables.ttl

/** The header of attempt 1. */
export const max: ReadonlyArray<{ readonly maxAttempts: number | "none"; readonly header: string }> = tables.max

interface InvocationIds {
  readonly pattern: { readonly regex: string }
  readonly cases: ReadonlyArray<
    Named & { readonly calls: number; readonly attempts: number; readonly distinct: number }
  >
}

/** The form of ids, and how many there are in this many calls. */
export const invocationIds: InvocationIds = tables.invocationIds
