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
import { described } from "./text.ts"

const descriptions: { readonly [Name in Simulator.PolicyName]: string } = {
  none: "No retries.",
  naive: "Two retries, immediately.",
  backoff: "Two retries, after 100 and 200 ms.",
  jitter: "Two retries, after a random wait of up to 100 and 200 ms.",
  awsStandard: "Standard mode of the AWS SDKs.",
  awsStandard2026: "Standard mode in its edition of 2026.",
  awsDynamoDB2026: "The same for DynamoDB: shorter delays, a retry more.",
  awsAdaptive: "Adaptive mode of the AWS SDKs: standard mode with a rate limiter.",
  awsJavaV1: "The AWS SDK for Java 1.x.",
  awsJavaScriptV2: "The AWS SDK for JavaScript 2.x.",
  awsGeneralReference: "The formula of the AWS General Reference.",
  grpc: "Jitter within the retry throttling of gRPC, modeled.",
  finagle: "Jitter within the retry budget of Finagle, modeled.",
  envoy: "Jitter within the retry budget of Envoy, modeled.",
  sre: "Jitter within the retry budget of the Google SRE book, modeled.",
  tokenBucket: "Jitter within a token bucket that successes fill, modeled."
}

/** What the JSON Schema of a scenario says of a place. */
interface Place {
  readonly description?: string
  readonly enum?: ReadonlyArray<string>
  readonly properties?: { readonly [key: string]: Place }
  readonly anyOf?: ReadonlyArray<Place>
}

type Row = readonly [name: string, description: string]

const keysOf = ({ properties = {} }: Place): ReadonlyArray<Row> =>
  Object.entries(properties).map(([key, place]) => {
    const inner = Object.keys(place.properties ?? {})
    return [key, `${place.description ?? ""}${inner.length === 0 ? "" : ` Keys: ${inner.join(", ")}.`}`]
  })

const words: { readonly [name: string]: string } = {
  outermostOnly: "Retries the outermost call where calls are nested.",
  requiresRateLimiter: "Sends as fast as the limiter of the process lets it.",
  whileMaybeRetryable: "Retries also what may have been done already: for calls that can be repeated.",
  whileRetryable: "Retries what is known to be safe to repeat, and nothing else.",
  withoutDeadline: "Takes the deadline away that a step before has set."
}

/** Words that stand alone, and keys. */
const stepsOf = ({ anyOf = [] }: Place): ReadonlyArray<Row> => {
  const keyed = anyOf.flatMap(keysOf)
  const alone = anyOf.flatMap((one) => one.enum ?? []).filter((name) => !keyed.some(([key]) => key === name))
  return [...keyed, ...alone.map((name): Row => [name, `${words[name] ?? ""} Written as a text.`.trim()])]
}

const kindsOf = ({ anyOf = [] }: Place): ReadonlyArray<Row> =>
  anyOf.map(({ properties: { kind, ...others } = {} }) => [
    kind?.enum?.join() ?? "",
    `Keys: ${Object.keys(others).join(", ")}.`
  ])

const reference = (): string => {
  const { $defs } = Simulator.jsonSchema() as { readonly $defs: { readonly [name: string]: Place } }
  const placeOf = (name: string): Place => $defs[name] ?? {}
  const sections: ReadonlyArray<readonly [head: string, rows: ReadonlyArray<Row>]> = [
    [
      "Policies by name (`effect-retry policies NAME` prints the settings of one):",
      Simulator.policies.map((name): Row => [name, descriptions[name]])
    ],
    ["Settings, as JSON:", keysOf(placeOf("PolicySettings"))],
    ["The first of the steps, a source of delays:", keysOf(placeOf("PolicySource"))],
    ["The other steps:", stepsOf(placeOf("PolicyStep"))],
    ["Keys of quota:", keysOf(placeOf("Quota"))],
    ["Keys of limiter:", keysOf(placeOf("Limiter"))],
    ["Keys of concurrency:", keysOf(placeOf("Concurrency"))],
    ["Kinds of budget:", kindsOf(placeOf("Budget"))]
  ]
  return sections.map(([head, rows]) => [head, ...described(rows).map((line) => `  ${line}`)].join("\n")).join("\n\n")
}

/** The settings that a name stands for, with their defaults; `null` for no retries. */
const settings = (name: Simulator.PolicyName) => {
  const found = settingsOf(name)
  return found === undefined ? Effect.succeed(null) : Effect.orDie(Simulator.decodePolicy(found))
}

const one = Effect.fnUntraced(function*(text: string) {
  const name = yield* policyNamed(text)
  return asJson((yield* settings(name)) ?? name)
})

const all = Effect.map(
  Effect.forEach(
    Simulator.policies,
    (name) => Effect.map(settings(name), (settings) => ({ name, description: descriptions[name], settings }))
  ),
  asJson
)

export const listPolicies = Command.make(
  "policies",
  {
    name: Argument.String("name").pipe(
      Argument.withDescription("Print the settings of this one, to copy and change"),
      Argument.optional
    ),
    json: flags.json
  },
  Effect.fnUntraced(function*({ json, name }) {
    yield* Console.log(Option.isSome(name) ? yield* one(name.value) : json ? yield* all : reference())
  })
).pipe(
  Command.withShortDescription("List policies and their settings"),
  Command.withDescription(
    "Lists the policies that have a name, and the keys that settings of one's own can have. With a\n" +
      "  name it prints the settings of that policy as JSON."
  ),
  Command.withExamples([
    { command: "effect-retry policies" },
    { command: "effect-retry policies awsStandard" }
  ])
)
