import type * as SdkModes from "effect-retry/aws/SdkModes"
import { type Basis, conformance, type ConformanceResponse, responsesOf } from "../utils/conformance.ts"
import type { Response, Wire } from "../utils/vectors.ts"

/** The modes, by the names that this library gives them. */
type Sdk = {
  [K in keyof typeof SdkModes]: (typeof SdkModes)[K] extends (options?: SdkModes.Options) => SdkModes.SdkMode ? K
    : never
}[keyof typeof SdkModes]

export interface SdkVectors {
  readonly sdk: Sdk
  readonly name: string
  readonly calls: ReadonlyArray<{
    readonly name: string
    readonly basis: Basis
    readonly given: {
      readonly random: number
      readonly maxAttempts?: number
      readonly maxBackoffMs?: number
      readonly tokens?: number
    }
    readonly responses: ReadonlyArray<Response>
  }>
  readonly delays: ReadonlyArray<{
    readonly basis: Basis
    readonly random: number
    readonly throttled?: true
    readonly from?: number
    readonly maxBackoffMs?: number
    readonly delaysMs: ReadonlyArray<number>
  }>
  /** The backoff strategy of the SDK alone. */
  readonly backoffs: ReadonlyArray<{
    readonly basis: Basis
    readonly baseMs: number
    readonly maxBackoffMs: number
    readonly random: number
    readonly retries: ReadonlyArray<number>
    readonly delaysMs: ReadonlyArray<number>
  }>
  readonly hints: ReadonlyArray<{
    readonly basis: Basis
    readonly random: number
    readonly retryAfterMs: number
    readonly delayMs: number
  }>
  readonly errors: ReadonlyArray<{
    readonly basis: Basis
    readonly error: Wire
    readonly verdict: "throttling" | "transient" | "final"
    readonly cost?: number
  }>
}

interface Call {
  readonly responses: ReadonlyArray<ConformanceResponse>
}

export const sdkModes: ReadonlyArray<SdkVectors> = conformance("sdk-modes").sdks.map((sdk: any) => ({
  ...sdk,
  hints: sdk.hints ?? [],
  backoffs: sdk.backoffs ?? [],
  calls: sdk.calls.map((call: Call) => ({ ...call, responses: responsesOf(call.responses) }))
}))
