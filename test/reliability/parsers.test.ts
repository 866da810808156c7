/**
 * What reads texts and documents from outside, on inputs made from valid ones: each is read or refused, in time that is
 * linear, and no prototype changes. `SEED=5 npx vitest run test/reliability/parsers.test.ts` repeats a run.
 */
import * as Simulator from "@effect-retry/lab/Simulator"
import { assert, describe, it } from "@effect/vitest"
import { RetryClassifier } from "effect-retry"
import * as BotocoreLegacy from "effect-retry/aws/legacy/BotocoreLegacy"
import * as RequestHeaders from "effect-retry/aws/RequestHeaders"
import * as SharedConfig from "effect-retry/aws/SharedConfig"
import * as RetryConfig from "effect-retry/RetryConfig"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as RetryPolicyImport from "effect-retry/RetryPolicyImport"
import * as RetryPolicyJson from "effect-retry/RetryPolicyJson"
import * as TokenLimiter from "effect-retry/TokenLimiter"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import { readLink } from "../../lab/playground/link.ts"
import { fittedOf } from "../../lab/src/fit/fitted.ts"
import { Log } from "../../lab/src/fit/log.ts"
import { scenarioOf } from "../../lab/src/fit/scenario.ts"
import { writers } from "../../lab/test/fit/generated.ts"
import { coolDownReplyOf } from "../../src/redis/internal/coolDown.ts"
import { limiterReplyOf } from "../../src/redis/internal/limiter.ts"
import { quotaReplyOf } from "../../src/redis/internal/quotaClient.ts"
import { budget } from "../utils/budget.ts"
import { threadSeconds } from "../utils/cpu.ts"
import { hostileError, hostileJson, hostileText } from "./utils/hostile.ts"
import { responseOf } from "./utils/http.ts"
import { Chance } from "./utils/random.ts"

const day = 86_400_000
/** Another one each day where all is tried, the same one elsewhere. */
const seed = Number(process.env["SEED"] ?? budget(Math.floor(Date.now() / day), 1))

/** Long runs of one piece, numbers at the edge of what a number holds, and keys that every object has. */
const extremes = (chance: Chance): string =>
  chance.pick([
    () =>
      chance.pick(["0", "9", " ", "\t", ",", "(", " (w", "-", "a", "=", "[", "\""]).repeat(
        1 + chance.below(chance.pick([9, 400, 60_000]))
      ),
    () =>
      chance.pick(["1e306", "1e308", "-1", "NaN", "9007199254740993", "5e-324", "1e999", "__proto__", "constructor"]),
    () => hostileText(chance)
  ])()

/** A valid text, with some of it replaced. */
const damaged = (chance: Chance, text: string): string => {
  let made = text
  for (let n = chance.below(4); n >= 0; n--) {
    const at = chance.below(made.length + 1)
    made = made.slice(0, at) + extremes(chance) + made.slice(at + chance.below(20))
  }
  return made
}

/** JSON with a value somewhere replaced by another. */
const replaced = (chance: Chance, json: unknown): unknown => {
  if (typeof json !== "object" || json === null || chance.isLikely(0.1)) {
    return chance.pick<() => unknown>([() => extremes(chance), () => hostileJson(chance), () => 1e308, () => -1])()
  }
  const entries = Object.entries(json)
  if (entries.length === 0 || chance.isLikely(0.1)) return { ...json, [extremes(chance)]: extremes(chance) }
  const [key, value] = chance.pick(entries)
  const changed = replaced(chance, value)
  return Array.isArray(json) ? json.map((one) => one === value ? changed : one) : { ...json, [key]: changed }
}

/** Runs it. A failure with a typed error is an answer; a defect is none. */
const answered = (effect: Effect.Effect<unknown, unknown>): void => {
  const exit = Effect.runSyncExit(effect)
  if (Exit.isFailure(exit) && Cause.hasDies(exit.cause)) throw Cause.squash(exit.cause)
}

const steps = [{ exponential: { base: "1 second", cap: 60_000 } }, { maxAttempts: 3 }, "whileRetryable"]
const document = {
  default: { policy: { steps } },
  resources: { a: { quota: { capacity: 5 }, concurrency: { limit: 3 } } }
}
const temporal = { initialInterval: "1s", backoffCoefficient: 2, maximumInterval: "100s", maximumAttempts: 5 }
const retriers = [{ ErrorEquals: ["States.Timeout"], IntervalSeconds: 3, BackoffRate: 2, MaxAttempts: 2 }]
const retryPolicy = { maxAttempts: 4, initialBackoff: "0.1s", maxBackoff: "1s", backoffMultiplier: 2 }
const grpc = { methodConfig: [{ name: [{}], retryPolicy: { ...retryPolicy, retryableStatusCodes: ["UNAVAILABLE"] } }] }
const envoy = { route: { retry_policy: { retry_on: "5xx", num_retries: 3, per_try_timeout: "1s" } } }
const scenario = {
  name: "s",
  fleets: [{ name: "f", to: "t", rate: 1, policy: { steps } }],
  services: [{ name: "t", latency: "10 millis" }]
}
const config = "[default]\nmax_attempts = 3\nretry_mode = standard\n\n[profile a]\ns3 =\n  max_attempts = 9\n"
const of = { startMillis: 1_790_000_000_000, endMillis: 1_790_000_000_020, status: 200, attempt: 1, call: 1 }

const headerNames = [
  "retry-after",
  "x-amz-retry-after",
  "retry-after-ms",
  "ratelimit",
  "ratelimit-policy",
  "x-ratelimit-reset",
  "x-ratelimit-remaining",
  "x-ratelimit-limit-tokens",
  "x-should-retry",
  "grpc-retry-pushback-ms",
  "content-type",
  "date"
]
const headersOf = (chance: Chance) =>
  Object.fromEntries(chance.some(headerNames).map((name) => [name, extremes(chance)]))

type Parser = (chance: Chance) => void

const ofJson = (json: unknown, read: (json: unknown) => Effect.Effect<unknown, unknown>): Parser => (chance) =>
  answered(read(replaced(chance, json)))

const ofLog = (format: keyof typeof writers): Parser => (chance) => {
  const log = new Log({ format })
  const line = writers[format](of)
  for (let n = 0; n < 3; n++) log.push(new TextEncoder().encode(`${damaged(chance, line)}\n`))
  log.push(new TextEncoder().encode(`${line}\n`))
  log.endOfFile()
  const fitted = scenarioOf(fittedOf(log.meter), { name: "fitted", takeMillis: 600_000 })
  // What a fit writes can be simulated.
  if (log.meter.requests > 0) Effect.runSync(Simulator.decode(fitted.scenario))
}

const parsers: Readonly<Record<string, Parser>> = {
  "errors of any shape": (chance) =>
    void RetryClassifier.classify(RetryClassifier.defaultClassifier, hostileError(chance)),
  "messages and names": (chance) => {
    const message = damaged(
      chance,
      chance.pick(["Content-Length header of x", "Failed to fetch (a)", "error sending request for url (x)"])
    )
    const name = chance.pick(["TypeError", "Error", extremes(chance)])
    RetryClassifier.defaultClassifier({ name, message, __type: extremes(chance), code: extremes(chance) })
  },
  "headers of a response": (chance) =>
    void RetryHttp.classifier(responseOf(headersOf(chance), chance.pick([429, 503]))),
  "headers of an error": (chance) =>
    void RetryClassifier.defaultClassifier({ status: 429, headers: headersOf(chance) }),
  "usage of a model": (chance) =>
    void TokenLimiter.usageOf(replaced(chance, { usage: { prompt_tokens: 5, completion_tokens: 3 } })),
  "the date of a server": (chance) =>
    answered(
      RequestHeaders.withInvocation(RequestHeaders.observeDate(damaged(chance, "Fri, 20 Nov 2026 12:00:00 GMT")))
    ),
  "shared AWS files": (chance) =>
    answered(SharedConfig.parse(damaged(chance, config), "/x", chance.pick(["config", "credentials"]))),
  "_retry.json of botocore": ofJson(BotocoreLegacy.documentJson, BotocoreLegacy.decode),
  "policies as JSON": ofJson({ steps }, RetryPolicyJson.fromJson),
  "live documents": ofJson(document, (json) => Effect.scoped(Layer.build(RetryConfig.layer(json)))),
  "policies of Temporal": ofJson(temporal, RetryPolicyImport.fromTemporal),
  "retriers of Step Functions": ofJson(retriers, RetryPolicyImport.fromStepFunctions),
  "service configs of gRPC": ofJson(grpc, RetryPolicyImport.fromGrpcServiceConfig),
  "routes of Envoy": ofJson(envoy, RetryPolicyImport.fromEnvoyRoute),
  scenarios: ofJson(scenario, Simulator.decode),
  "replies of Redis": (chance) => {
    quotaReplyOf(replaced(chance, ["5", "1", "1"]), 2)
    coolDownReplyOf(replaced(chance, [1, 5, "x"]))
    limiterReplyOf(replaced(chance, ["1", "2", "3", "4", "5"]))
  },
  "links of the playground": (chance) =>
    void readLink(damaged(chance, "#rate=100&policy=awsStandard,attempts:3&kind=fail")),
  ...Object.fromEntries(
    (["nginx", "alb", "envoy", "json", "csv", "otlp"] as const).map((format) => [`logs: ${format}`, ofLog(format)])
  )
}

describe("parsers", () => {
  console.log(`parsers: SEED=${seed}`)
  const inputs = budget(1500, 40)

  for (const [what, parser] of Object.entries(parsers)) {
    it(`${what}: read or refused, soon, and no prototype changes`, () => {
      for (let n = 0; n < inputs; n++) {
        const secondsOf = () => {
          const before = threadSeconds()
          parser(new Chance(seed * 1_000_003 + n))
          return threadSeconds() - before
        }
        try {
          // A text of 60,000 characters takes a quadratic parser seconds.
          if (secondsOf() > 0.4 && secondsOf() > 0.4) throw new Error("it takes too long")
        } catch (error) {
          throw new Error(`SEED=${seed}, input ${n}: ${String(error)}`, { cause: error })
        }
      }
      assert.deepStrictEqual(Object.keys(Object.prototype), [])
      assert.isUndefined(({} as { readonly [key: string]: unknown })["polluted"])
    })
  }
})
