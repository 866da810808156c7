import * as Simulator from "@effect-retry/lab/Simulator"
import { describe, it } from "@effect/vitest"
import { awsStandard, awsStandard2026, RetryClassifier, RetryInfo, RetryQuota, withRetry } from "effect-retry"
import * as AwsRetryConfig from "effect-retry/aws/AwsRetryConfig"
import * as BotocoreLegacy from "effect-retry/aws/legacy/BotocoreLegacy"
import * as GeneralReference from "effect-retry/aws/legacy/GeneralReference"
import * as JavaScriptV2 from "effect-retry/aws/legacy/JavaScriptV2"
import * as JavaV1 from "effect-retry/aws/legacy/JavaV1"
import * as Kotlin from "effect-retry/aws/legacy/Kotlin"
import * as ReferenceClassifier from "effect-retry/aws/ReferenceClassifier"
import * as RequestHeaders from "effect-retry/aws/RequestHeaders"
import * as SharedConfig from "effect-retry/aws/SharedConfig"
import * as AwsSdk from "effect-retry/AwsSdk"
import * as RetryGrpc from "effect-retry/RetryGrpc"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as RetryPolicyImport from "effect-retry/RetryPolicyImport"
import * as RetryPolicyJson from "effect-retry/RetryPolicyJson"
import * as Kit from "effect-retry/testing"
import * as Cause from "effect/Cause"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { fittedOf } from "../../lab/src/fit/fitted.ts"
import { Log } from "../../lab/src/fit/log.ts"
import { scenarioOf } from "../../lab/src/fit/scenario.ts"
import { carry } from "../../src/aws/internal/sdk/errorInfo.ts"
import { quotaReplyOf } from "../../src/redis/internal/quotaClient.ts"
import { budget } from "../utils/budget.ts"
import { filesOf } from "../utils/files.ts"
import { hostileError, hostileJson, hostileText } from "./utils/hostile.ts"
import { responseOf } from "./utils/http.ts"
import { Chance } from "./utils/random.ts"
import { World } from "./utils/world.ts"

const given = process.env["SEED"]

/** Runs a check for many seeds; what it throws is reported with the seed. */
const forSeeds = (count: number, check: (chance: Chance) => void): void => {
  const seeds = given === undefined ? Array.from({ length: budget(count, count / 5) }, (_, n) => n) : [Number(given)]
  for (const seed of seeds) {
    try {
      check(new Chance(seed))
    } catch (error) {
      throw new Error(`SEED=${seed}: ${String(error)}`, { cause: error })
    }
  }
}

const ensure = (what: string, holds: boolean): void => {
  if (!holds) throw new Error(what)
}

const runs = <A, E>(self: Effect.Effect<A, E>): Exit.Exit<A, E> => Effect.runSyncExit(self)

/** A success, or a failure that is typed: no defect. */
const isTyped = (exit: Exit.Exit<unknown, unknown>, tags: ReadonlyArray<string>): boolean =>
  Exit.isSuccess(exit) ||
  (Cause.hasFails(exit.cause) && tags.includes((Cause.squash(exit.cause) as { readonly _tag: string })._tag))

const isHint = (hint: Duration.Duration | undefined, mostMillis: number): boolean => {
  if (hint === undefined) return true
  const millis = Duration.toMillis(hint)
  return millis >= 0 && millis <= mostMillis
}

const isInfo = (info: RetryInfo.RetryInfo): boolean =>
  ["Yes", "No", "Maybe"].includes(info.safety) && ["client", "server", "other"].includes(info.fault) &&
  typeof info.throttling === "boolean" && typeof info.timeout === "boolean" && isHint(info.retryAfter, Infinity)

const classifiers: Readonly<Record<string, RetryClassifier.RetryClassifier>> = {
  "the default": RetryClassifier.defaultClassifier,
  "own": RetryClassifier.carried,
  "effectErrors": RetryClassifier.classify.bind(undefined, RetryClassifier.effectErrors),
  "RetryHttp": RetryHttp.classifier,
  "AwsSdk": AwsSdk.classifier,
  "RetryGrpc": RetryGrpc.makeClassifier({ idempotent: false }),
  "botocore": BotocoreLegacy.forService(BotocoreLegacy.document, "dynamodb").classifier,
  "the general reference": GeneralReference.classifier,
  "JavaScript v2": JavaScriptV2.classifier,
  "Java v1": JavaV1.classifier,
  "Kotlin": Kotlin.awsRetryPolicy,
  "the reference": ReferenceClassifier.classifier,
  "a veto": RetryClassifier.vetoing(RetryClassifier.defaultClassifier, (error) => String(error) === "x")
}

describe("classifiers, given errors of any shape", () => {
  for (const [name, classifier] of Object.entries(classifiers)) {
    it(`${name}: facts that are facts, or none`, () => {
      forSeeds(1500, (chance) => {
        const info = RetryClassifier.classify(classifier, hostileError(chance))
        ensure("the facts are none", Option.isNone(info) || isInfo(info.value))
      })
    })
  }

  for (
    const [name, classifier] of Object.entries({
      "the default": RetryClassifier.defaultClassifier,
      "AwsSdk": AwsSdk.classifier,
      "the reference": ReferenceClassifier.classifier
    })
  ) {
    it(`${name} itself does not throw, with no handler to catch it`, () => {
      forSeeds(2000, (chance) => {
        classifier(hostileError(chance))
      })
    })
  }

  it("whose fault: one of three, or nothing", () => {
    forSeeds(1500, (chance) => {
      const info = RetryInfo.faultOf(hostileError(chance))
      ensure("the fault is none", Option.isNone(info) || ["client", "server", "other"].includes(info.value))
    })
  })

  it("facts made of any values are facts", () => {
    forSeeds(2000, (chance) => {
      ensure(
        "no facts",
        isHint(RetryInfo.make({ retryAfter: hostileError(chance) as Duration.Input }).retryAfter, Infinity)
      )
    })
  })

  it("an error of the SDK takes its facts along, or stays as it is", () => {
    forSeeds(1500, (chance) => {
      ensure("no facts", isInfo(carry(hostileError(chance))))
    })
  })

  it("a call that fails with it ends with the very same, after at most three sends and 40 seconds", () => {
    forSeeds(1500, (chance) => {
      const world = new World(() => 0.999)
      const error = hostileError(chance)
      const policy = chance.pick([awsStandard, awsStandard2026])
      let sends = 0
      const call = Effect.suspend(() => {
        sends++
        return Effect.fail(error)
      })
      const quota = Effect.runSync(RetryQuota.make())
      const fiber = world.fork(Effect.provideService(withRetry(call, policy), RetryQuota.RetryQuota, quota))
      world.advance(40_000)
      const exit = fiber.pollUnsafe()
      ensure("it goes on", exit !== undefined && Exit.isFailure(exit))
      const [reason] = (exit as Exit.Failure<never, unknown>).cause.reasons
      ensure("another error", reason?._tag === "Fail" && Object.is(reason.error, error))
      ensure(`${sends} sends`, sends >= 1 && sends <= 3)
    })
  })
})

const headers = [
  "retry-after",
  "x-amz-retry-after",
  "retry-after-ms",
  "x-ms-retry-after-ms",
  "ratelimit-reset",
  "x-ratelimit-reset",
  "x-ratelimit-remaining",
  "date"
]
const day = 86_400_000

describe("headers of any content", () => {
  it("RetryHttp reads no hint, or one from 0 to a day", () => {
    forSeeds(1500, (chance) => {
      const record = Object.fromEntries(chance.some(headers).map((name) => [name, hostileText(chance)]))
      const info = RetryHttp.classifier(responseOf(record, chance.pick([429, 503])))
      ensure("no hint", Option.isSome(info) && isHint(info.value.retryAfter, day))
    })
  })

  it("the core reads none, or one from 0 to 2^53 ms", () => {
    forSeeds(1500, (chance) => {
      const record = Object.fromEntries(chance.some(headers).map((name) => [name, hostileText(chance)]))
      const shape = chance.pick([
        { status: 429, headers: record },
        { name: "ThrottlingException", $response: { headers: record } },
        { status: 429, response: { headers: chance.pick([record, new Map(Object.entries(record))]) } }
      ])
      const info = RetryClassifier.defaultClassifier(shape)
      ensure("no hint", Option.isSome(info) && isHint(info.value.retryAfter, Number.MAX_SAFE_INTEGER))
    })
  })

  it("AwsSdk reads dates too: none, or one from 0 to 2^53 ms", () => {
    forSeeds(1500, (chance) => {
      const record = Object.fromEntries(chance.some(headers).map((name) => [name, hostileText(chance)]))
      const { retryAfter } = Effect.runSync(
        Effect.sync(() => carry({ name: "ThrottlingException", $response: { headers: record } }))
      )
      ensure("no hint", isHint(retryAfter, Number.MAX_SAFE_INTEGER))
    })
  })

  it("gRPC reads a pushback that is a wait, or none", () => {
    forSeeds(1500, (chance) => {
      const values = Array.from({ length: chance.below(3) }, () => hostileText(chance))
      const bytes = Buffer.from(hostileText(chance), "latin1")
      const metadata = new Map<string, unknown>([
        ["grpc-retry-pushback-ms", chance.pick([values, values[0]])],
        ["grpc-status-details-bin", chance.pick<unknown>([bytes, bytes.toString("base64"), hostileText(chance)])]
      ])
      const info = RetryGrpc.classifier({ code: 14, details: "", metadata })
      ensure("no hint", Option.isSome(info) && isInfo(info.value))
    })
  })

  it("the Date of a response sets a clock skew, or does not", () => {
    forSeeds(500, (chance) => {
      const observed = RequestHeaders.withInvocation(RequestHeaders.observeDate(hostileText(chance)))
      ensure("a defect", Exit.isSuccess(runs(observed)))
    })
  })

  it("an answer of Redis is a reply, or none", () => {
    forSeeds(1500, (chance) => {
      const reply = quotaReplyOf(
        chance.pick<unknown>([hostileJson(chance), [hostileText(chance), chance.below(5), "1"]]),
        2
      )
      ensure("no reply", reply === undefined || (Number.isFinite(reply.tokens) && reply.millis.length === 2))
    })
  })
})

const config = "[default]\nmax_attempts = 3\nretry_mode = standard\n\n[profile a]\ns3 =\n  max_attempts = 9\n"

/** A valid text, with some of it replaced. */
const damaged = (chance: Chance, text: string): string => {
  let damagedText = text
  for (let n = 1 + chance.below(4); n > 0; n--) {
    const at = chance.below(damagedText.length + 1)
    damagedText = damagedText.slice(0, at) + hostileText(chance) + damagedText.slice(at + chance.below(20))
  }
  return damagedText
}

const steps = [
  { exponential: { base: "1 second", factor: 2, cap: 60_000, jitter: { proportional: 0.5 } } },
  { whenThrottled: { steps: [{ "JavaV1.fullJitterBackoff": { baseDelay: 1, maxBackoff: 2 } }, { jittered: "full" }] } },
  { honorRetryAfter: { atMost: "20 seconds", beyond: "stop" } },
  { maxAttempts: 3 },
  "whileRetryable",
  { quotaGated: { cost: 1, longPolling: true } }
]
const scenario = JSON.stringify({
  name: "s",
  fleets: [{ name: "f", to: "t", rate: 1, policy: { steps, quota: { capacity: 5 } } }],
  services: [{ name: "t", latency: "10 millis", outages: [{ kind: "fail", from: 0, to: 5 }] }]
})
const policyJson = JSON.stringify({ steps, quota: { capacity: 5 } })
const retryJson = JSON.stringify(BotocoreLegacy.documentJson)

/** JSON with a value somewhere replaced by another. */
const replaced = (chance: Chance, json: unknown): unknown => {
  if (typeof json !== "object" || json === null || chance.isLikely(0.15)) return hostileJson(chance)
  const entries = Object.entries(json)
  const at = chance.below(entries.length + 1)
  if (at === entries.length) return { ...json, [hostileText(chance)]: hostileText(chance) }
  const [key, value] = entries[at]!
  const changed = replaced(chance, value)
  return Array.isArray(json) ? json.map((one, index) => index === at ? changed : one) : { ...json, [key]: changed }
}

describe("files and variables of any content", () => {
  it("a config file: profiles, or the typed error", () => {
    forSeeds(1500, (chance) => {
      const text = chance.isLikely(0.5) ? damaged(chance, config) : hostileText(chance)
      ensure("a defect", isTyped(runs(SharedConfig.parse(text, "/config")), ["AwsConfigError"]))
    })
  })

  it("variables and a file together: a policy within bounds, or the typed error", () => {
    forSeeds(500, (chance) => {
      const value = (right: string) => chance.pick([right, right, hostileText(chance)])
      const env = {
        AWS_CONFIG_FILE: "/config",
        AWS_MAX_ATTEMPTS: value("4"),
        AWS_RETRY_MODE: value("adaptive"),
        AWS_NEW_RETRIES_2026: value("true"),
        AWS_PROFILE: value("a")
      }
      const file = damaged(chance, config)
      const exit = runs(Effect.provide(AwsRetryConfig.make(), [
        filesOf({ "/config": file }).layer,
        ConfigProvider.layer(ConfigProvider.fromEnv({ env }))
      ]))
      ensure("a defect", isTyped(exit, ["AwsConfigError", "ConfigError"]))
      if (Exit.isSuccess(exit)) {
        const { maxAttempts } = exit.value
        ensure("attempts out of range", Number.isSafeInteger(maxAttempts.value) && maxAttempts.value >= 1)
      }
    })
  })

  for (
    const [name, decode, decodeJson, right, tag] of [
      ["_retry.json", BotocoreLegacy.decode, BotocoreLegacy.decodeJson, retryJson, "BotocoreLegacyError"],
      ["a scenario", Simulator.decode, Simulator.decodeJson, scenario, "InvalidScenario"],
      ["a policy of a scenario", Simulator.decodePolicy, undefined, policyJson, "InvalidScenario"],
      ["a policy", RetryPolicyJson.fromJson, undefined, JSON.stringify({ steps }), "InvalidOption"]
    ] as ReadonlyArray<
      readonly [
        string,
        (input: unknown) => Effect.Effect<unknown, unknown>,
        ((json: string) => Effect.Effect<unknown, unknown>) | undefined,
        string,
        string
      ]
    >
  ) {
    it(`${name}: what it says, or the typed error`, () => {
      ensure("the right one is refused", Exit.isSuccess(runs(decode(JSON.parse(right)))))
      forSeeds(400, (chance) => {
        ensure("a defect", isTyped(runs(decode(replaced(chance, JSON.parse(right)))), [tag]))
        ensure("a defect", isTyped(runs(decode(hostileJson(chance))), [tag]))
        if (decodeJson !== undefined) ensure("a defect", isTyped(runs(decodeJson(damaged(chance, right))), [tag]))
      })
    })
  }

  it("a log: a scenario that can be read again, or none", () => {
    const times = ["2026-03-03T12:00:00.5Z", "1990-01-02", 1772539200000, 4e12, 1e300, -1]
    const durations = [0, 0.001, 20, "20ms", 86_400_000, 1e300, -1, "1e308", "9".repeat(307)]
    forSeeds(400, (chance) => {
      const log = new Log({ names: { unit: "ms" } })
      for (let n = 0; n < 40; n++) {
        const time = chance.pick<unknown>([1772539200000 + n * chance.below(900_000), ...times, hostileText(chance)])
        const duration = chance.pick<unknown>([...durations, hostileJson(chance)])
        const status = chance.pick<unknown>([200, 200, 429, 499, 500, 503, hostileJson(chance)])
        log.push(new TextEncoder().encode(`${JSON.stringify({ time, duration, status })}\n`))
      }
      log.endOfFile()
      if (log.meter.requests === 0) return
      const takeMillis = chance.pick([1000, 600_000, 86_400_000, 1e12])
      const { scenario } = scenarioOf(fittedOf(log.meter), { name: "log", takeMillis })
      ensure("an unreadable scenario", Exit.isSuccess(runs(Simulator.decode(scenario))))
    })
  })

  it("what is expected of a timeline: an answer, or an error that says what is wrong", () => {
    forSeeds(2000, (chance) => {
      try {
        Kit.timeline().expect(chance.pick(["attempts at ", "", "no "]) + hostileText(chance))
      } catch (error) {
        ensure(String(error), ["InvalidOption", "TimelineMismatch"].includes((error as { readonly _tag: string })._tag))
      }
    })
  })
})

// A reader with quadratic time would need minutes for each of these, and the test would time out.
const megabytes = budget(2, 0.5)
describe(`${megabytes} MB of one character take linear time`, () => {
  const size = megabytes * 2 ** 20
  const texts = ["9", " ", ",", "a", "\t", "-", "(", "\n", "[", "=", "\u0000", "{", "Fri, ", "1,"].map((piece) =>
    piece.repeat(size / piece.length)
  )
  it("in headers", () => {
    for (const text of texts) {
      for (const value of [text, `${text}x`, `Fri, ${text}`]) {
        RetryHttp.classifier(responseOf({ "retry-after": value, date: value, "x-amz-retry-after": value }))
        RetryClassifier.defaultClassifier({
          status: 429,
          headers: { "retry-after": value, "x-amz-retry-after": value }
        })
        runs(
          Effect.sync(() => carry({ name: "ThrottlingException", $response: { headers: { "retry-after": value } } }))
        )
        RetryGrpc.classifier({ code: 14, details: value, metadata: new Map([["grpc-retry-pushback-ms", value]]) })
        RetryGrpc.classifier({ code: 8, details: value, metadata: new Map([["grpc-status-details-bin", value]]) })
        runs(RequestHeaders.withInvocation(RequestHeaders.observeDate(value)))
      }
    }
  })

  it("in names, codes and messages", () => {
    for (const text of texts) {
      const error = { name: text, code: text, Code: text, _tag: text, message: text, __type: `${text}#${text}` }
      for (const classifier of Object.values(classifiers)) RetryClassifier.classify(classifier, error)
    }
  })

  it("in messages that begin as those of fetch", () => {
    const beginnings = [
      "Content-Length header of ",
      "Failed to fetch",
      "error sending request ",
      "A network error occurred."
    ]
    for (const piece of [" (w", " (", ")", "tcp connect"]) {
      for (const beginning of beginnings) {
        const message = `${beginning}${piece.repeat(size / piece.length)}\n`
        RetryClassifier.defaultClassifier({ name: "TypeError", message })
        RetryHttp.classifier(new TypeError(message))
      }
    }
  })

  it("in documents of other systems", () => {
    for (const text of texts) {
      for (const duration of [text, `${text}x`, `${text}s`]) {
        runs(RetryPolicyImport.fromTemporal({ initialInterval: duration }))
        runs(
          RetryPolicyImport.fromEnvoyRoute({ route: { retry_policy: { retry_on: "5xx", per_try_timeout: duration } } })
        )
        const retryPolicy = { maxAttempts: 3, initialBackoff: duration, maxBackoff: duration }
        runs(RetryPolicyImport.fromGrpcServiceConfig({ methodConfig: [{ name: [{}], retryPolicy }] }))
        runs(RetryPolicyJson.fromJson({ steps: [{ fixed: { delay: duration } }] }))
      }
    }
  })

  it("in files", () => {
    for (const text of texts) {
      runs(SharedConfig.parse(text.slice(0, 2 ** 20), "/config"))
      runs(SharedConfig.parse(`[profile a]\nx = 1${text.slice(0, 2 ** 19)}`, "/config"))
      runs(BotocoreLegacy.decodeJson(text))
      runs(Simulator.decodeJson(text))
    }
  })
})
