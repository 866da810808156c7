import { conformance } from "../utils/conformance.ts"

interface Given {
  readonly minDelay: number
  readonly maxDelay: number
  readonly maxWait: number
}

/** Published figures of waiters, in seconds. Where a source gives delays, `randoms` are the numbers that lead to them. */
export interface DelayVector {
  readonly name: string
  readonly given: Given
  readonly randoms: ReadonlyArray<number>
  readonly delays: ReadonlyArray<number>
}

const tables = conformance("waiters")

export const delays: ReadonlyArray<DelayVector> = tables.delays

/**
 * Options, in seconds. The field is the one that is refused, if any. smithy-typescript accepts a `minDelay` of 0.1 ms: it
 * knows no shortest delay but 0. It looks at `maxWait` first.
 */
export const options: ReadonlyArray<Given & { readonly field: keyof Given | undefined }> = tables
  .options.map((row: any) => ({ ...row, field: row.field ?? undefined }))

/** The polls and sleeps of smithy-typescript, which leaves the jitter out past its attempt ceiling; and ours. */
export const javascript: {
  readonly given: Given
  readonly random: number
  readonly delays: ReadonlyArray<number>
  readonly ours: ReadonlyArray<number>
} = tables.javascript
