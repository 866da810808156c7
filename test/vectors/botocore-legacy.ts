import { conformance } from "../utils/conformance.ts"

// What botocore 1.43.107 does in legacy mode; seconds.

/** A response, and whether the service retries it. */
export interface Decision {
  readonly status: number
  readonly code?: string
  readonly retry: boolean
}

/** What a service has of its own: policies that the default lacks, or has with another condition. */
export interface Override {
  readonly maxAttempts: number
  readonly base: number | "rand"
  readonly policies: Readonly<Record<string, object>>
}

/** The delay after this many attempts. With `"rand"` it is the bound that the random delay stays below. */
export interface DelayVector {
  readonly base: number | "rand"
  readonly growth: number
  readonly attempts: number
  readonly delay: number | "refused"
}

/** What becomes of an attempt: sent again, after a delay where one is published, or failed with its own error. */
export interface LimitVector {
  readonly max: number
  readonly attempt: number
  readonly failure: "response" | "success" | "ECONNREFUSED" | "ETIMEDOUT" | "ValueError" | "crc32"
  readonly outcome: "retry" | "stop"
  readonly delay?: number
}

/** How often a service retries a failure that never passes; `maxRetries` is the client's `max_attempts`. */
export interface RetriesVector {
  readonly service: string
  readonly maxRetries?: number
  readonly retries: number
}

/** The body `foo` of a response with the status 200, whose CRC-32 is 2356372769. */
export interface ChecksumVector {
  readonly service: string
  readonly header: string | undefined
  readonly retry: boolean
}

const tables = conformance("botocore-legacy")

/** All probes of a service without overrides. */
export const decisions: ReadonlyArray<Decision> = tables.decisions

/** The services with overrides: the probes that they answer differently, and no others. */
export const services: Readonly<Record<string, ReadonlyArray<Decision>>> = tables.services

/** Further probes. */
export const special: ReadonlyArray<Required<Decision> & { readonly service: string }> = tables.special

const responses = (policies: Readonly<Record<string, any>>): Readonly<Record<string, object>> =>
  Object.fromEntries(
    Object.entries(policies).map(([name, { basis: _, ...policy }]) => [
      name,
      policy._tag === "Response" ? { code: undefined, ...policy } : policy
    ])
  )

/** The policies of every service, by their names. */
export const defaultPolicies = responses(tables.defaultPolicies)

export const overrides: Readonly<Record<string, Override>> = tables.overrides

export const delays: ReadonlyArray<DelayVector> = tables.delays

export const limits: ReadonlyArray<LimitVector> = tables.limits

export const retries: ReadonlyArray<RetriesVector> = tables.retries

export const checksums: ReadonlyArray<ChecksumVector> = tables.checksums.map((row: any) => ({
  ...row,
  header: row.header ?? undefined
}))
