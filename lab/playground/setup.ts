import { type PolicyName, policyNames } from "../src/simulator/policyNames.ts"

/** A number that is set by a slider. */
export interface Field {
  readonly label: string
  readonly unit: string
  readonly min: number
  readonly max: number
  readonly step: number
  readonly usual: number
  /** Whether only whole numbers are valid. */
  readonly whole?: true
  readonly hint?: string
}

/** Whether a number is valid for a field. */
export const accepts = ({ max, min, whole }: Field, value: number): boolean =>
  value >= min && value <= max && (whole === undefined || Number.isInteger(value))

export const fields = {
  rate: { label: "Calls", unit: "/s", min: 10, max: 600, step: 10, usual: 250 },
  processes: { label: "Client processes", unit: "", min: 1, max: 100, step: 1, usual: 10, whole: true },
  timeout: { label: "Timeout of an attempt", unit: "ms", min: 50, max: 5000, step: 50, usual: 1000 },
  capacity: { label: "Capacity", unit: "/s", min: 10, max: 1000, step: 10, usual: 300 },
  work: { label: "Latency beyond its turn, mean", unit: "ms", min: 0, max: 500, step: 5, usual: 20 },
  limit: {
    label: "Rate limit",
    unit: "/s",
    min: 0,
    max: 600,
    step: 10,
    usual: 0,
    hint: "0: none. Requests beyond it are throttled, with a Retry-After of 1 second."
  },
  start: { label: "Starts at", unit: "s", min: 1, max: 60, step: 1, usual: 10 },
  length: { label: "Lasts", unit: "s", min: 1, max: 60, step: 1, usual: 8 },
  share: { label: "Share of requests hit", unit: "%", min: 5, max: 100, step: 5, usual: 100 },
  factor: { label: "Times as slow", unit: "×", min: 2, max: 50, step: 1, usual: 10 },
  duration: { label: "Length of the run", unit: "s", min: 20, max: 300, step: 10, usual: 70 },
  seed: { label: "First seed", unit: "", min: 1, max: 100, step: 1, usual: 1, whole: true }
} as const satisfies Record<string, Field>

export type FieldName = keyof typeof fields

export const fieldNames = Object.keys(fields) as ReadonlyArray<FieldName>

/** What goes wrong. */
export const kinds = {
  slow: "The work takes longer",
  fail: "Requests fail immediately",
  drop: "Requests get no answer",
  hold: "Held, delivered at its end",
  none: "Nothing goes wrong"
} as const

export type Kind = keyof typeof kinds

/** The policies to choose from: those of the library, and others built with it. */
export const choices: ReadonlyArray<PolicyName> = policyNames.filter((name) => name !== "tokenBucket")

/** A policy by name, with its changed settings. */
export interface Choice {
  readonly name: PolicyName
  readonly attempts?: number
  /** The capacity of the retry quota; 0 for none. */
  readonly quota?: number
  /** The concurrency limit; 0 for the adaptive one. */
  readonly concurrency?: number
  readonly coolDown?: true
  /** The `k` of the client throttle. */
  readonly throttle?: number
}

/** The numbers of a policy, and their ranges. */
export const settings = {
  attempts: { label: "Attempts", unit: "", min: 1, max: 10, step: 1, usual: 3, whole: true },
  quota: { label: "Retry quota", unit: "tokens", min: 0, max: 5000, step: 1, usual: 500 },
  concurrency: { label: "Concurrency limit", unit: "", min: 0, max: 1000, step: 1, usual: 0, whole: true },
  throttle: { label: "Client throttle", unit: "", min: 1, max: 10, step: 0.1, usual: 2 }
} as const satisfies Record<string, Field>

export type SettingName = keyof typeof settings

export const settingNames = Object.keys(settings) as ReadonlyArray<SettingName>

/** What the page shows: a service and its outage, and the policies to compare. */
export interface Setup extends Readonly<Record<FieldName, number>> {
  readonly kind: Kind
  readonly policies: ReadonlyArray<Choice>
}

export const mostPolicies = 4

const usual = Object.fromEntries(fieldNames.map((name) => [name, fields[name].usual])) as Record<FieldName, number>

export const begin: Setup = {
  ...usual,
  kind: "slow",
  policies: [{ name: "naive" }, { name: "awsStandard" }, { name: "jitter", concurrency: 0 }]
}
