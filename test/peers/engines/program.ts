import * as Explain from "@effect-retry/lab/Explain"
import * as Simulator from "@effect-retry/lab/Simulator"
import { awsAdaptive, awsStandard } from "effect-retry/aws/AwsModes"
import * as Backoff from "effect-retry/Backoff"
import * as RetryPolicy from "effect-retry/RetryPolicy"
import * as Effect from "effect/Effect"

/** A scenario as written, and the policies that it is run with; `"written"` is its own. */
export interface Case {
  readonly name: string
  readonly scenario: unknown
  readonly policies: ReadonlyArray<string>
}

/** What a run has come to: the hash of its trace, and the SHA-256 of its JSON. */
export type Answers = Readonly<Record<string, string>>

const explained = {
  awsStandard,
  awsAdaptive,
  "a factor that is not a power of 2": Backoff.exponential({ base: "37 millis", factor: 1.3, jitter: "full" }).pipe(
    RetryPolicy.maxAttempts(12)
  ),
  decorrelated: Backoff.decorrelated({ base: "20 millis", cap: "5 seconds" }).pipe(RetryPolicy.maxAttempts(8))
}

const digest = async (value: unknown): Promise<string> => {
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(JSON.stringify(value)))
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("")
}

/** What this engine computes. */
export const answer = async (cases: ReadonlyArray<Case>): Promise<Answers> => {
  const answers: Record<string, string> = {}
  for (const { name, policies, scenario } of cases) {
    const written = await Effect.runPromise(Simulator.decode(scenario))
    for (const policy of policies) {
      const run = policy === "written" ? written : Simulator.withPolicy(written, policy as Simulator.PolicyName)
      const result = await Effect.runPromise(Simulator.run(run))
      answers[`${name}, ${policy}`] = `${result.traceHash} ${await digest(result)}`
    }
  }
  for (const [name, policy] of Object.entries(explained)) {
    answers[`explained: ${name}`] = await digest(Explain.explain(policy, { name }))
  }
  return answers
}
