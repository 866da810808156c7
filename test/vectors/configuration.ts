import type * as AwsRetryConfig from "effect-retry/aws/AwsRetryConfig"
import { type Basis, conformance } from "../utils/conformance.ts"
import type { Wire } from "../utils/vectors.ts"

const tables = conformance("configuration")

interface Named {
  readonly name: string
  readonly basis: Basis
  readonly env: Readonly<Record<string, string>>
  readonly code?: AwsRetryConfig.Options
}

/** The files of `values`. */
export const files: Readonly<Record<string, string>> = tables.files

/** What settings come to, or the value that is refused. */
export interface ValueVector extends Named {
  readonly expected?: { readonly mode: string; readonly maxAttempts: number; readonly newRetries: boolean }
  /** `at` is a variable, or a file and its line, which then has the setting. */
  readonly invalid?: { readonly at: string; readonly setting?: string; readonly value: string }
}

export const values: ReadonlyArray<ValueVector> = tables.values

interface Setting<A> {
  readonly value: A
  readonly source: "code" | "environment" | "profile" | "default"
  readonly at: string
}

/** Which of several places decides. */
export interface PrecedenceVector extends Named {
  readonly files: Readonly<Record<string, string>>
  readonly mode: Setting<string>
  readonly maxAttempts: Setting<number>
  readonly newRetries?: Setting<boolean>
}

export const precedence: ReadonlyArray<PrecedenceVector> = tables.precedence

/** A call that always fails: when it sends, and what is left of a quota of 500. */
export interface SendsVector {
  readonly name: string
  readonly basis: Basis
  readonly code: AwsRetryConfig.Options
  readonly error: Wire
  readonly random: number
  readonly sendsAtMs: ReadonlyArray<number>
  readonly quotaAfter: number
}

export const sends: ReadonlyArray<SendsVector> = tables.sends
