import type { AwsModes } from "effect-retry"
import { conformance, standardCases } from "../utils/conformance.ts"
import type { StandardVector } from "../utils/vectors.ts"

const { cases, hints, shared } = conformance("standard-2.1")

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

/** What a bare 500 waits, with the header `x-amz-retry-after`, before its first retry. */
export const hints2026: ReadonlyArray<{ readonly header: string; readonly delayMs: number }> = hints
