import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Simulator from "../Simulator.ts"
import { settingsOf } from "../simulator/policy.ts"
import * as flags from "./flags.ts"
import { asJson } from "./output.ts"
import { policyNamed } from "./policies.ts"
import { keysOf, kindsOf, type Place, places, type Row, sections } from "./reference.ts"
import { screen } from "./screen.ts"

const descriptions: { readonly [Name in Simulator.PolicyName]: string } = {
  none: "No retries.",
  naive: "Two retries, immediately.",
  backoff: "Two retries, after 100 and 200 ms.",
  jitter: "Two retries, after a random wait of up to 100 and 200 ms.",
  awsStandard: "Standard mode of the AWS SDKs.",
  awsStandard2026: "The 2026 edition of standard mode.",
  awsDynamoDB2026: "The same for DynamoDB: shorter delays, one more retry.",
  awsAdaptive: "Adaptive mode of the AWS SDKs: standard mode with a rate limiter.",
  limited: "Standard mode with a ConcurrencyLimiter: what this library recommends against overload.",
  awsJavaV1: "The AWS SDK for Java 1.x.",
  awsJavaScriptV2: "The AWS SDK for JavaScript 2.x.",
  awsGeneralReference: "The formula of the AWS General Reference.",
  grpc: "Jitter within the retry throttling of gRPC, modeled.",
  finagle: "Jitter within the retry budget of Finagle, modeled.",
  envoy: "Jitter within the retry budget of Envoy, modeled.",
  sre: "Jitter within the retry budget of the Google SRE book, modeled.",
  tokenBucket: "Jitter within a token bucket that successes fill, modeled."
}

const words: { readonly [name: string]: string } = {
  immediate: "Retries immediately, forever.",
  never: "Retries nothing.",
  outermostOnly: "Retries the outermost call where calls are nested.",
  whileMaybeRetryable: "Also retries what may already have been done: for idempotent calls.",
  whileRetryable: "Retries only what is known to be safe to repeat.",
  withMaybeRetryable: "The same, in place of whileRetryable.",
  withoutDeadline: "Removes the deadline set by an earlier step."
}

/** Words that stand alone, and keys. */
const stepsOf = ({ anyOf = [] }: Place): ReadonlyArray<Row> => {
  const keyed = anyOf.flatMap(keysOf)
  const alone = anyOf.flatMap((one) => one.enum ?? []).filter((name) => !keyed.some(([key]) => key === name))
  return [...keyed, ...alone.map((name): Row => [name, `${words[name] ?? ""} Written as a string.`.trim()])]
}

const reference = (columns: number): string => {
  const placeOf = places()
  return sections([
    [
      "Policies by name (`effect-retry policies NAME` prints the settings of one):",
      Simulator.policies.map((name): Row => [name, descriptions[name]])
    ],
    ["Settings, as JSON:", keysOf(placeOf("PolicySettings"))],
    ["The first of the steps, a source of delays:", stepsOf(placeOf("PolicySource"))],
    ["The other steps:", stepsOf(placeOf("PolicyStep"))],
    ["Keys of quota:", keysOf(placeOf("Quota"))],
    ["Keys of limiter:", keysOf(placeOf("Limiter"))],
    ["Keys of concurrency:", keysOf(placeOf("Concurrency"))],
    ["Keys of hedge:", keysOf(placeOf("Hedge"))],
    ["Kinds of budget:", kindsOf(placeOf("Budget"))]
  ], columns)
}

/** The settings that a name stands for, with their defaults; `null` for no retries. */
const settings = (name: Simulator.PolicyName) => {
  const found = settingsOf(name)
  return found === undefined ? Effect.succeed(null) : Effect.orDie(Simulator.decodePolicy(found))
}

type Settings = Effect.Success<ReturnType<typeof settings>>

/** The same for a resource of a document of `RetryConfig`; `undefined` for a budget, which is modeled. */
const resourceOf = (settings: Settings) => {
  if (settings === null || typeof settings === "string") return { retries: "off" }
  const { budget, label: _, steps, ...others } = settings
  return budget === undefined ? { policy: { steps }, ...others } : undefined
}

const described = (name: Simulator.PolicyName) =>
  Effect.map(settings(name), (settings) => ({
    name,
    description: descriptions[name],
    settings,
    resource: resourceOf(settings)
  }))

export const listPolicies = Command.make(
  "policies",
  {
    name: Argument.String("name").pipe(
      Argument.withDescription("Print this policy's settings, to copy and change"),
      Argument.optional
    ),
    json: flags.json
  },
  Effect.fnUntraced(function*({ json, name }) {
    const one = Option.isNone(name) ? undefined : yield* policyNamed(name.value)
    if (json) {
      return yield* Console.log(
        asJson(yield* one === undefined ? Effect.forEach(Simulator.policies, described) : described(one))
      )
    }
    const { columns } = yield* screen
    yield* Console.log(one === undefined ? reference(columns) : asJson((yield* settings(one)) ?? one))
  })
).pipe(
  Command.withShortDescription("List policies and their settings"),
  Command.withDescription(
    "Lists the named policies, and the keys of custom settings. With a name it prints the settings of " +
      "that policy as JSON; --json adds its resource, for a document of RetryConfig."
  ),
  Command.withExamples([
    { command: "effect-retry policies" },
    { command: "effect-retry policies awsStandard" }
  ])
)
