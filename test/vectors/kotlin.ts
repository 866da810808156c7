import { type Basis, conformance } from "../utils/conformance.ts"
import type { Wire } from "../utils/vectors.ts"

const tables = conformance("kotlin")

/** Parts of `ExponentialBackoffWithJitter.Config`. */
export interface ProviderConfig {
  readonly useNewRetries?: boolean
  readonly initialDelayMs?: number
  readonly scaleFactor?: number
  readonly jitter?: number
  readonly maxBackoffMs?: number | "none"
  readonly retryAfterMaxOvershootMs?: number
}

interface Row {
  readonly basis: Basis
}

export const delays: ReadonlyArray<
  Row & {
    readonly name: string
    readonly config: ProviderConfig
    readonly random: number
    readonly delaysMs: ReadonlyArray<number>
  }
> = tables.delays

export const hints: ReadonlyArray<
  Row & {
    readonly config: ProviderConfig
    readonly random: number
    readonly retryAfterMs: number | null
    readonly delayMs: number
  }
> = tables.hints

interface Switch {
  readonly useNewRetries?: boolean
}

export const presets: ReadonlyArray<
  Row & {
    readonly name: string
    readonly config: Switch & { readonly tokenBucket?: Switch; readonly delayProvider?: Switch }
    readonly error: Wire
    readonly random: number
    readonly delaysMs: ReadonlyArray<number>
    readonly quotaBefore: number
    readonly quotaAfter: number
  }
> = tables.presets

interface BucketConfig {
  readonly maxCapacity: number
  readonly retryCost: number
  readonly timeoutRetryCost: number
  readonly initialTryCost?: number
  readonly initialTrySuccessIncrement?: number
}

export const costs: ReadonlyArray<
  Row & {
    readonly errorType: "Throttling" | "Transient" | "ClientSide" | "ServerSide"
    readonly config: BucketConfig
    readonly classic: number
    readonly new: number
  }
> = tables.costs

export const firstAttempts: ReadonlyArray<
  Row & {
    readonly name: string
    readonly config: BucketConfig
    readonly failures: ReadonlyArray<"ServerSide" | "final">
    readonly quotaDuring: number
    readonly quotaAfter: number
  }
> = tables.firstAttempts

export const errors: ReadonlyArray<
  Row & {
    readonly error: Wire
    readonly errorType: "Throttling" | "Transient" | "ServerSide or ClientSide" | "none"
  }
> = tables.errors
