import type { RetryClassifier } from "effect-retry"
import * as Option from "effect/Option"
import * as fs from "node:fs"
import type { Response, StandardVector, Wire } from "./vectors.ts"

/** A table of the folder `docs/conformance`. */
export const conformance = (name: string): any =>
  JSON.parse(fs.readFileSync(new URL(`../../docs/conformance/${name}.json`, import.meta.url), "utf8"))

/** A response as the tables have it: without an error, a success. */
export interface ConformanceResponse {
  readonly error?: Wire
  readonly expected: {
    readonly outcome: "retry" | "success" | "max-attempts" | "quota-exhausted"
    readonly quota: number
    readonly delayMs?: number
  }
}

/** What the figures of a row rest on. */
export type Basis = "published" | "measured" | "computed" | "chosen"

/** A call of a system without a quota: the errors that it gets in turn, and how it ends. */
export interface CallVector {
  readonly name: string
  readonly basis: Basis
  readonly given: {
    readonly random: number
    readonly dynamoDB?: true
    readonly maxAttempts?: number
    readonly baseMs?: number
    readonly throttledBaseMs?: number
    readonly maxBackoffMs?: number
    readonly addRetryAfter?: true
    readonly maxRetryAfterMs?: number
    readonly customBackoffMs?: ReadonlyArray<unknown>
  }
  readonly errors: ReadonlyArray<Wire>
  readonly expected: { readonly delays: ReadonlyArray<number>; readonly outcome: string }
}

interface Answer {
  readonly error?: Wire
  readonly expected: { readonly outcome: string; readonly delayMs?: number }
}

export const callsOf = (calls: ReadonlyArray<any>): ReadonlyArray<CallVector> =>
  calls.map(({ responses, ...call }) => {
    const answers = responses as ReadonlyArray<Answer>
    return {
      ...call,
      errors: answers.flatMap(({ error }) => error ?? []),
      expected: {
        delays: answers.flatMap(({ expected }) => expected.delayMs ?? []),
        outcome: answers.at(-1)!.expected.outcome
      }
    }
  })

/** Whether an error is retried. */
export interface ErrorVector {
  readonly basis: Basis
  readonly error: Wire
  readonly verdict: "throttling" | "transient" | "final"
  readonly timeout?: true
}

/** What a classifier says, in the words of the tables. */
export const verdictOf = (classifier: RetryClassifier.RetryClassifier, error: unknown) => {
  const facts = Option.getOrUndefined(classifier(error))
  if (facts?.safety !== "Yes") return { verdict: "final" }
  return { verdict: facts.throttling ? "throttling" : "transient", ...(facts.timeout && { timeout: true }) }
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
