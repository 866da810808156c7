import * as Backoff from "effect-retry/Backoff"
import { InvalidOption } from "effect-retry/InvalidOption"
import type * as RetryInfo from "effect-retry/RetryInfo"
import * as RetryPolicy from "effect-retry/RetryPolicy"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Explain from "../Explain.ts"
import type { Policy } from "../Simulator.ts"
import { resolve, type Retrying } from "../simulator/policy.ts"
import { explainSvg } from "./charts/explainChart.ts"
import * as flags from "./flags.ts"
import { asJson, writableIfAsked, writeIfAsked } from "./output.ts"
import { policyFrom } from "./policies.ts"
import { refusal } from "./refusal.ts"
import { screen } from "./screen.ts"

const policy = Argument.String("policy").pipe(
  Argument.withDescription(`A name, or its steps: '{"steps":[{"linear":{"base":100}},{"maxAttempts":4}]}'`)
)

const failures = {
  transient: {},
  timeout: { timeout: true },
  throttled: { throttling: true },
  "not-retryable": { safety: "No" }
} as const satisfies { readonly [kind: string]: RetryInfo.Facts }

const settings = {
  attempt: flags.duration("attempt", "How long each attempt takes to fail. Default 0"),
  failure: Flag.ChoiceWithValue("failure", Object.entries(failures)).pipe(
    Flag.withMetavar("KIND"),
    Flag.withDescription("How it fails"),
    Flag.withDefault<RetryInfo.Facts>(failures.transient)
  ),
  retryAfter: flags.duration("retry-after", "The hint in each failure. Default none"),
  deadline: flags.duration("deadline", "A deadline for the call. Default: the policy's"),
  failureRate: flags.share("failure-rate", "Show the load at this rate, such as 1%; repeatable. Default nine").pipe(
    Flag.atLeast(0)
  ),
  json: flags.json,
  svg: flags.svg
}

/** What depends on all calls of a client, not on one; the rate limiter has its own note. */
const leftOut = ({ budget, concurrency, throttle }: Retrying): ReadonlyArray<string> => {
  const parts = [
    ...budget === undefined ? [] : ["retry budget"],
    ...concurrency === undefined ? [] : ["concurrency limit"],
    ...throttle === undefined ? [] : ["throttle"]
  ]
  const [last, ...before] = [...parts].reverse()
  if (last === undefined) return []
  const all = before.length === 0 ? last : `${before.reverse().join(", ")} and ${last}`
  const [are, depend, them] = parts.length === 1 ? ["is", "it depends", "it"] : ["are", "they depend", "them"]
  return [
    `The ${all} ${are} left out: ${depend} on all calls of the client. \`effect-retry compare\` simulates ${them}.`
  ]
}

const explained = (name: string, policy: Policy, options: Explain.Options): Explain.Explanation => {
  const resolved = resolve(policy)
  const { coolDown, hedge, policy: retrying, quota } = resolved
  const explanation = Explain.explain(
    retrying ?? RetryPolicy.maxAttempts(1)(Backoff.fixed(0)),
    { ...options, name, quota, coolDown, hedge: hedge?.process }
  )
  return { ...explanation, notes: [...explanation.notes, ...leftOut(resolved)] }
}

/** Of the load in a picture: close enough for a line. */
const pictureSteps = 50

/** The same with the load at many failure rates, and where the quota begins to refuse: the line has a corner there. */
const pictured = (explanation: Explain.Explanation, again: (rates: ReadonlyArray<number>) => Explain.Explanation) => {
  const corner = explanation.quota?.bitesAt ?? null
  const rates = Array.from({ length: pictureSteps + 1 }, (_, n) => n / pictureSteps)
  return { ...explanation, load: again(corner === null ? rates : [...rates, corner]).load }
}

export const explain = Command.make(
  "explain",
  { policy, ...settings },
  Effect.fnUntraced(function*({ attempt, deadline, failure, failureRate, json, policy: text, retryAfter, svg }) {
    const policy = yield* policyFrom(text)
    yield* writableIfAsked(svg, "picture")
    const explainedAt = (failureRates: ReadonlyArray<number> | undefined) =>
      explained(resolve(policy).label, policy, {
        attempt: Option.getOrUndefined(attempt),
        deadline: Option.getOrUndefined(deadline),
        failure: { ...failure, retryAfter: Option.getOrUndefined(retryAfter) },
        failureRates
      })
    const explanation = yield* Effect.try({
      try: () => explainedAt(failureRate.length === 0 ? undefined : failureRate),
      catch: (error) => {
        if (error instanceof InvalidOption) return refusal(`${error.field} must be ${error.expected}`)
        throw error
      }
    })
    yield* writeIfAsked(svg, () => explainSvg(pictured(explanation, explainedAt)))
    const { columns } = yield* screen
    yield* Console.log(json ? asJson(explanation) : Explain.toTable(explanation, { columns }))
  })
).pipe(
  Command.withShortDescription("Show what a policy does"),
  Command.withDescription(
    "Shows what a policy does with a call whose attempts all fail: the delay of each retry, what " +
      "it costs, what stops it, how long the call takes, and the load on the service."
  ),
  Command.withExamples([
    { command: "effect-retry explain awsStandard --attempt '2 seconds'" },
    {
      command: `effect-retry explain '{"steps":[{"linear":{"base":100}},{"maxAttempts":4}]}' --svg policy.svg`
    }
  ])
)
