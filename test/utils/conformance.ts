import * as fs from "node:fs"
import type { Response, StandardVector, Wire } from "./vectors.ts"

/** A table of the folder `conformance`. */
export const conformance = (name: string): any =>
  JSON.parse(fs.readFileSync(new URL(`../../conformance/${name}.json`, import.meta.url), "utf8"))

/** A response as the tables have it: without an error, a success. */
export interface ConformanceResponse {
  readonly error?: Wire
  readonly expected: {
    readonly outcome: "retry" | "success" | "max-attempts" | "quota-exhausted"
    readonly quota: number
    readonly delayMs?: number
  }
}

export const responsesOf = (responses: ReadonlyArray<ConformanceResponse>): ReadonlyArray<Response> =>
  responses.map(({ error = { status: 200 }, expected: { delayMs, ...expected } }) => ({
    ...error,
    expected: (delayMs === undefined ? expected : { ...expected, delay: delayMs / 1000 }) as Response["expected"]
  }))

/** Cases of standard mode, with durations as options of a policy have them. */
export const standardCases = (cases: ReadonlyArray<any>): ReadonlyArray<StandardVector<any>> =>
  cases.map(({ given: { maxBackoffMs, random: _, ...given }, name, responses }) => ({
    name,
    given: { ...given, ...(maxBackoffMs !== undefined && { maxBackoff: maxBackoffMs }) },
    responses: responsesOf(responses)
  }))
