import * as Effect from "effect/Effect"
import * as Simulator from "../Simulator.ts"
import { resolve } from "../simulator/policy.ts"
import { suggestion } from "../simulator/suggestion.ts"
import { parsed } from "./json.ts"
import { Refusal, refusal } from "./refusal.ts"
import { quoted } from "./text.ts"

/** What a policy is called. */
export const labelOf = (policy: Simulator.Policy): string => resolve(policy).label

const example = `or JSON such as {"steps":[{"fixed":{"delay":0}},{"maxAttempts":4}]}`

/** The policy with a name. */
export const policyNamed = Effect.fnUntraced(function*(text: string) {
  const found = Simulator.policies.find((name) => name === text)
  if (found !== undefined) return found
  if (text.endsWith(".json")) {
    return yield* refusal(`${quoted(text)} is a file, not a policy: a scenario runs with effect-retry simulate`)
  }
  return yield* refusal(`unknown policy ${quoted(text)}: ${suggestion(text, [...Simulator.policies, example])}`)
})

/** A policy as written on the command line: a name, or its steps as JSON. */
export const policyFrom = Effect.fnUntraced(function*(text: string) {
  const input = text.trimStart().startsWith("{") ? yield* parsed("policy", text) : yield* policyNamed(text)
  return yield* Effect.mapError(
    Simulator.decodePolicy(input),
    ({ problems }) =>
      new Refusal({
        lines: problems.map(({ path, problem }) => path === "" ? `policy: ${problem}` : `policy: ${path}: ${problem}`)
      })
  )
})
