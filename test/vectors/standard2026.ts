import type { AwsModes } from "effect-retry"
import { conformance, standardCases } from "../utils/conformance.ts"
import type { StandardVector, Wire } from "../utils/vectors.ts"

const { cases, shared, ...tables } = conformance("standard-2.1")

/** Retry behavior 2.1, standard mode. What `given` leaves out is the default. */
export const standard2026: ReadonlyArray<StandardVector<AwsModes.Options2026 & { readonly dynamoDB?: true }>> =
  standardCases(cases)

interface Shared {
  readonly given: AwsModes.Options2026
  readonly calls: ReadonlyArray<{ readonly beginsAt: number; readonly statuses: ReadonlyArray<number> }>
  readonly balances: ReadonlyArray<
    { readonly at: number; readonly call: number; readonly status: number; readonly quota: number }
  >
  readonly finalQuota: number
}

/** Case 9, calls that share the quota; times in milliseconds. */
export const shared2026: Shared = {
  given: { maxAttempts: shared.given.maxAttempts },
  calls: shared.calls.map(({ beginsAtMs, statuses }: any) => ({ beginsAt: beginsAtMs, statuses })),
  balances: shared.balances.map(({ atMs, ...balance }: any) => ({ at: atMs, ...balance })),
  finalQuota: shared.finalQuota
}

interface Hinted {
  readonly error: Wire
  readonly header?: string
}

/** What an error with the header `x-amz-retry-after`, or without one, waits before its first retry. */
export const hints2026: ReadonlyArray<Hinted & { readonly name: string; readonly delayMs: number }> = tables.hints

/** Errors that no hint makes retryable. */
export const hintsOfFinalErrors: ReadonlyArray<Hinted & { readonly header: string }> = tables.hintsOfFinalErrors

/** The hint in milliseconds that headers give to the SDK for JavaScript, whose clock reads dates, and without a clock. */
export const hintHeaders: ReadonlyArray<{
  readonly name: string
  readonly headers: Readonly<Record<string, string>>
  readonly javaScriptMs: number | null
  readonly hintMs: number | null
}> = tables.hintHeaders

type Kind = "ordinary" | "long-poll" | "dynamodb"

/** What each kind of operation has. */
export const operationSettings: Readonly<
  Record<Kind, { readonly baseMs: number; readonly maxAttempts: number; readonly longPolling: boolean }>
> = tables.operationSettings

/** The kind of an operation, as its names are spelled. */
export const operations: ReadonlyArray<{ readonly service: string; readonly operation: string; readonly is: Kind }> =
  tables.operations
