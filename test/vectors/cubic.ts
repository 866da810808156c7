import { conformance } from "../utils/conformance.ts"

const tables = conformance("cubic")

interface Step {
  readonly response: "success" | "throttle"
  /** Seconds. */
  readonly timestamp: number
}

interface CubicVector {
  readonly name: string
  readonly given: { readonly lastMaxRate: number; readonly lastThrottleTime: number }
  readonly steps: ReadonlyArray<Step & { readonly rate: number }>
}

/** The rate that CUBIC calculates, per second. */
export const cubic: readonly [CubicVector, CubicVector] = tables.cubic

/** One response at each timestamp, from a limiter made at 0; rates per second. */
export const clientSendingRate: ReadonlyArray<Step & { readonly measuredTxRate: number; readonly fillRate: number }> =
  tables.clientSendingRate

/** What the rates are calculated with. */
export const constants: {
  readonly beta: number
  readonly scaleConstant: number
  readonly smooth: number
  readonly minFillRate: number
  readonly minCapacity: number
} = tables.constants
