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
import { resolve } from "../simulator/policy.ts"
import { explainSvg } from "./charts/explainChart.ts"
import * as flags from "./flags.ts"
import { asJson, writableIfAsked, writeAndTell } from "./output.ts"
import { policyFrom } from "./policies.ts"
import { refusal } from "./refusal.ts"

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
    Flag.withDescription("Of each attempt"),
    Flag.withDefault<RetryInfo.Facts>(failures.transient)
  ),
  retryAfter: flags.duration("retry-after", "The hint that each failure carries. Default none"),
  deadline: flags.duration("deadline", "A deadline of the call. Default that of the policy"),
  failureRate: Flag.Finite("failure-rate").pipe(
    Flag.filter((rate) => rate >= 0 && rate <= 1, () => "a number from 0 to 1"),
    Flag.withMetavar("SHARE"),
    Flag.withDescription("Tell the load for it: from 0 to 1, once for each. Default nine"),
    Flag.atLeast(0)
  ),
  json: flags.json,
  svg: Flag.String("svg").pipe(
    Flag.withMetavar("FILE"),
    Flag.withDescription("Write a picture"),
    Flag.optional
  )
}

const budgetNote =
  "The retry budget is left out: it depends on all calls of the client. `effect-retry compare` runs it."

const explained = (name: string, policy: Policy, options: Explain.Options): Explain.Explanation => {
  const { budget, policy: retrying, quota } = resolve(policy)
  const explanation = Explain.explain(
    retrying ?? RetryPolicy.maxAttempts(1)(Backoff.fixed({ delay: 0 })),
    { ...options, name, quota }
  )
  return budget === undefined ? explanation : { ...explanation, notes: [...explanation.notes, budgetNote] }
}

export const explain = Command.make(
  "explain",
  { policy, ...settings },
  Effect.fnUntraced(function*({ attempt, deadline, failure, failureRate, json, policy: text, retryAfter, svg }) {
    const policy = yield* policyFrom(text)
    yield* writableIfAsked(svg)
    const explanation = yield* Effect.try({
      try: () =>
        explained(resolve(policy).label, policy, {
          attempt: Option.getOrUndefined(attempt),
          deadline: Option.getOrUndefined(deadline),
          failure: { ...failure, retryAfter: Option.getOrUndefined(retryAfter) },
          failureRates: failureRate.length === 0 ? undefined : failureRate
        }),
      catch: (error) => {
        if (error instanceof InvalidOption) return refusal(`${error.field} must be ${error.expected}`)
        throw error
      }
    })
    if (Option.isSome(svg)) yield* writeAndTell(svg.value, explainSvg(explanation))
    yield* Console.log(json ? asJson(explanation) : Explain.toTable(explanation))
  })
).pipe(
  Command.withShortDescription("Tell what a policy does"),
  Command.withDescription(
    "Tells what a policy does about a call whose attempts all fail: the delay of each retry, what\n" +
      "  it costs, what stops it, how long the call takes, and what the service bears."
  ),
  Command.withExamples([
    { command: "effect-retry explain awsStandard --attempt '2 seconds'" },
    {
      command: `effect-retry explain '{"steps":[{"linear":{"base":100}},{"maxAttempts":4}]}' --svg policy.svg`
    }
  ])
)
