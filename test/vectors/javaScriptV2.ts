import { callsOf, conformance, type ErrorVector } from "../utils/conformance.ts"

const tables = conformance("javascript-v2")

export const calls = callsOf(tables.calls)

export const errors: ReadonlyArray<ErrorVector> = tables.errors

/** Retried only by a client that corrects its clock. */
export const clockSkewCodes: ReadonlyArray<string> = tables.clockSkewCodes.map(({ code }: { code: string }) => code)
