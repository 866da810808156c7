import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import { importOf, internalsOf, publicModules } from "../utils/modules.ts"
import { adapterSweeps } from "./sweeps/adapters.ts"
import { callSweeps, limiterSweeps, quotaSweeps } from "./sweeps/calls.ts"
import { hedgeSweeps } from "./sweeps/hedges.ts"
import { policySweeps } from "./sweeps/policies.ts"
import { redisSweeps } from "./sweeps/redis.ts"
import { quotaLayers, serviceSweeps } from "./sweeps/services.ts"

/** Sweeps next to the tests of their module, by the file and a part of the test's name. */
const elsewhere: Readonly<Record<string, readonly [file: string, test: string]>> = {
  ...Object.fromEntries(
    ["homeOf", "serviceOf"].map((name) => [
      `Hedge.${name}`,
      ["resources/ResourceLimiters.test.ts", "a hedged call that is interrupted leaves nothing behind"] as const
    ])
  ),
  "AdaptiveRateLimiter.serviceOf": [
    "gates/AdaptiveRateLimiter.test.ts",
    "has sent or gives its token back, at any step"
  ],
  "AdaptiveRateLimiter.make": [
    "gates/AdaptiveRateLimiter.test.ts",
    "has sent or gives its token back, at any step"
  ],
  ...Object.fromEntries(
    ["CircuitBreakerGate", "layer", "make"].map((name) => [
      `CircuitBreakerGate.${name}`,
      ["gates/CircuitBreakerGate.test.ts", "calls leave the place of the probe free"] as const
    ])
  ),
  "RetryWorkflow.retry": ["workflow/RetryWorkflow.test.ts", "wherever it dies"],
  "RetryWorkflow.retryOrElse": ["workflow/RetryWorkflowDecisions.test.ts", "wherever it comes, leaves no token behind"],
  ...Object.fromEntries(
    ["ClientThrottle", "layer", "layerConfig", "make", "serviceOf", "state"].map((name) => [
      `ClientThrottle.${name}`,
      ["gates/ClientThrottle.test.ts", "whatever interrupts them, calls that were not made are no requests"] as const
    ])
  ),
  ...Object.fromEntries(
    ["all", "bucket", "grpc", "inFlight", "share"].map((name) => [
      `RetryBudget.${name}`,
      ["quota/RetryBudget.test.ts", "loses nothing of a call over "] as const
    ])
  ),
  ...Object.fromEntries(
    ["CoolDown", "close", "layer", "layerConfig", "make", "serviceOf", "state"].map((name) => [
      `CoolDown.${name}`,
      ["gates/CoolDown.test.ts", "whatever interrupts them, calls leave nothing behind"] as const
    ])
  ),
  ...Object.fromEntries(
    ["TokenLimiter", "estimate", "layer", "layerConfig", "make", "state"].map((name) => [
      `TokenLimiter.${name}`,
      ["gates/TokenLimiter.test.ts", "whatever interrupts them, calls leave nothing behind"] as const
    ])
  ),
  "RetryLanguageModel.withRetry": ["llm/RetryLanguageModel.test.ts", "whatever interrupts it, "],
  "RetryLlm.metered": ["llm/RetryLanguageModel.test.ts", "whatever interrupts it, "],
  ...Object.fromEntries(
    ["Armed", "Chaos", "armed", "around", "counts", "layer"].map((name) => [
      `Chaos.${name}`,
      [
        "testing/Chaos.test.ts",
        "whatever interrupts it, a send that is held, slow or dropped leaves nothing behind"
      ] as const
    ])
  ),
  ...Object.fromEntries(
    ["layer", "layerConfig", "layerConnecting", "make"].map((name) => [
      `CoolDownRedis.${name}`,
      ["redis/CoolDownRedis.test.ts", "whatever interrupts them, calls leave nothing behind"] as const
    ])
  ),
  ...Object.fromEntries(
    ["layer", "layerConfig", "layerConnecting", "make"].map((name) => [
      `AdaptiveRateLimiterRedis.${name}`,
      ["redis/AdaptiveRateLimiterRedis.test.ts", "whatever interrupts them, calls leave nothing behind"] as const
    ])
  ),
  ...Object.fromEntries(
    ["RetryConfig", "atMost", "layer", "live", "resource", "retry", "set", "status"].map((name) => [
      `RetryConfig.${name}`,
      ["config/RetryConfigLive.test.ts", "while documents change, it leaves no slot taken"] as const
    ])
  ),
  ...Object.fromEntries(
    ["layer", "layerConnecting"].map((name) => [
      `RetryConfigRedis.${name}`,
      [
        "redis/RetryConfigRedis.test.ts",
        name === "layer"
          ? "whatever interrupts calls while the quota moves back and forth, no token is lost"
          : "nothing of it keeps running"
      ] as const
    ])
  ),
  "RetryConfig.hedged": [
    "config/RetryConfigParts.test.ts",
    "whatever interrupts a hedged call while the document changes, no send goes on"
  ],
  ...Object.fromEntries(
    ["headers", "layer", "remaining", "server", "withDeadline"].map((name) => [
      `RetryPropagation.${name}`,
      ["http/RetryPropagation.test.ts", "whatever interrupts it, it holds no slot"] as const
    ])
  ),
  "RetryPropagationRpc.layer": ["http/RetryPropagation.test.ts", "whatever interrupts a procedure, it holds no slot"],
  ...Object.fromEntries(
    ["layerFile", "layerStream"].map((name) => [
      `RetryConfig.${name}`,
      [
        "config/RetryConfigLive.test.ts",
        "however the layer of a stream is interrupted, nothing of it keeps running"
      ] as const
    ])
  ),
  ...Object.fromEntries(
    ["ConcurrencyLimiter", "layer", "make", "serviceOf", "slot", "state", "adaptive", "fixed", "layerConfig"].map((
      name
    ) => [
      `ConcurrencyLimiter.${name}`,
      ["gates/ConcurrencyLimiter.test.ts", "whatever interrupts them, calls and slots leave nothing in flight"] as const
    ])
  )
}

/** Functions with nothing to sweep. */
const notApplicable: Readonly<Record<string, ReadonlyArray<string>>> = {
  "a classifier, or a function that makes one": [
    "AwsSdk.classifier",
    "GeneralReference.classifier",
    "JavaScriptV2.classifier",
    "JavaV1.classifier",
    "Kotlin.awsRetryPolicy",
    "ReferenceClassifier.classifier",
    "RetryClassifier.aws",
    "RetryClassifier.chain",
    "RetryClassifier.classify",
    "RetryClassifier.defaultClassifier",
    "RetryClassifier.effectErrors",
    "RetryClassifier.followingCause",
    "RetryClassifier.grpc",
    "RetryClassifier.httpStatus",
    "RetryClassifier.database",
    "RetryClassifier.network",
    "RetryClassifier.orElse",
    "RetryClassifier.carried",
    "RetryClassifier.vetoing",
    "RetryGrpc.classifier",
    "RetryGrpc.makeClassifier",
    "RetryHttp.classifier",
    "RetryHttp.makeClassifier"
  ],
  "a pure function of facts, headers or requests": [
    "RetryInfo.faultOf",
    "RetryHttp.bodyFactory",
    "RetryHttp.hintMillis",
    "RetryHttp.hintOf",
    "RetryHttp.hintReset",
    "RetryHttp.hintRetryAfter",
    "RetryHttp.hintSeconds",
    "RetryHttp.hostOf",
    "RetryHttp.idempotencyKey",
    "RetryHttp.isRetryStatus",
    "RetryHttp.repeatableBody",
    "RetryHttp.repeatable",
    "RetryInfo.annotation",
    "RetryInfo.isRetryInfo",
    "RetryInfo.make",
    "RetryInfo.fromError",
    "RetryInfo.throttled",
    "RetryObserver.errorType",
    "RetryObserver.failureClass",
    "SmithyGuide.error",
    "SmithyGuide.httpError",
    "SmithyGuide.retryable",
    "RetryLlm.estimateOf",
    "TokenLimiter.usageOf",
    "Waiter.error",
    "Waiter.errorType",
    "Waiter.outcome",
    "Waiter.throttled"
  ],
  "a part of policies, or what they decide, which takes nothing": [
    "RetryLlm.make",
    "RetryPolicy.isRetryPolicy",
    "RetryPolicy.limits",
    "RetryDecision.Stop",
    "RetryDecision.Retry",
    "RetryDecision.isStop",
    "RetryDecision.isRetry"
  ],
  "the strategy of `makeRetryStrategy`, which is swept, with services of its own": ["AwsSdk.retryStrategy"],
  "reads or calculates, and holds nothing": [
    "AwsRetryConfig.make",
    "Operations.settings",
    "RetryInfo.TaggedError",
    "BotocoreLegacy.decode",
    "BotocoreLegacy.decodeJson",
    "Expect.expectLoad",
    "Explain.explain",
    "Explain.toTable",
    "RetryConfig.check",
    "RetryConfig.layerConfig",
    "RetryConfig.policy",
    "RetryConfigSchema.jsonSchema",
    "RetryPolicyImport.fromEnvoyRoute",
    "RetryPolicyImport.fromGrpcServiceConfig",
    "RetryPolicyImport.fromStepFunctions",
    "RetryPolicyImport.fromTemporal",
    "RetryPropagationRpc.withPropagation",
    "RetryPolicyJson.duration",
    "RetryPolicyJson.fromJson",
    "RetryPolicySchema.toJsonSchema",
    "schemas.WaiterFailed",
    "schemas.WaiterTimedOut",
    "SharedConfig.load",
    "SharedConfig.parse",
    "Simulator.backtest",
    "Simulator.decodeJson",
    "Simulator.decodeMeasured",
    "Simulator.decodePolicy",
    "Simulator.difference",
    "Simulator.edge",
    "Simulator.jsonSchema",
    "Simulator.judge",
    "Simulator.map",
    "Simulator.recoversBelow",
    "Simulator.runs",
    "Simulator.summarize",
    "Simulator.sweep",
    "Simulator.tune",
    "Simulator.verdict",
    "Simulator.warnings",
    "Simulator.withPolicy"
  ]
}

const root = new URL("../..", import.meta.url)

/** What can be interrupted, or makes what can. Errors, Schemas, services, metrics and other data are recognized by their value. */
const canBeSwept = (value: unknown): boolean =>
  typeof value === "function"
    ? !Context.isKey(value) && !Schema.isSchema(value) && !(value.prototype instanceof Error)
    : Effect.isEffect(value) || Layer.isLayer(value) || Stream.isStream(value)

interface Export {
  readonly name: string
  readonly isInternal: boolean
  readonly value: unknown
}

/** Names as `Module.name`. `index` re-exports what others export; the kit does the sweeping. */
const exported = async (): Promise<ReadonlyArray<Export>> => {
  const modules = publicModules.filter(({ name }) => !/^effect-retry(\/testing.*)?$/.test(name))
  const exports = await Promise.all(modules.map(async ({ name, source }) => {
    const internals = internalsOf(source)
    return Object.entries(await importOf(source)).map(([key, value]) => ({
      name: `${name.split("/").at(-1)}.${key}`,
      isInternal: internals.has(key),
      value
    }))
  }))
  return exports.flat()
}

const named = [
  policySweeps,
  quotaSweeps,
  limiterSweeps,
  callSweeps,
  serviceSweeps,
  hedgeSweeps,
  adapterSweeps,
  redisSweeps,
  quotaLayers
]
  .flatMap((sweeps) => Object.keys(sweeps))
  .flatMap((name) => name.match(/\b[A-Z]\w*\.\w+/g) ?? [])
  .filter((name) => !name.startsWith("Effect."))

const swept = new Set([...named, ...Object.keys(elsewhere)])
const excepted = new Set(Object.values(notApplicable).flat())

describe("of the public modules", () => {
  it("each function, effect and layer is swept, or there is a reason why not", async () => {
    const needed = (await exported()).filter(({ isInternal, value }) => !isInternal && canBeSwept(value))
    assert.deepStrictEqual(needed.map(({ name }) => name).filter((name) => !swept.has(name) && !excepted.has(name)), [])
    assert.isAbove(needed.length, 200)
  })

  it("no name is listed that there is not, and none is both swept and excepted", async () => {
    const all = await exported()
    const exports = new Set(all.map(({ name }) => name))
    assert.deepStrictEqual([...swept, ...excepted].filter((name) => !exports.has(name)), [])
    assert.deepStrictEqual([...swept].filter((name) => excepted.has(name)), [])
    const idle = all.filter(({ isInternal, value }) => isInternal || !canBeSwept(value)).map(({ name }) => name)
    assert.deepStrictEqual(idle.filter((name) => excepted.has(name)), [])
  })

  it("what a sweep is named after occurs in the sweeps", () => {
    const folder = new URL("test/reliability/sweeps/", root)
    const sources = fs.readdirSync(folder).map((name) => fs.readFileSync(new URL(name, folder), "utf8"))
    const code = sources.join("\n").replaceAll(/^import [^"]*".*$|"[^"\n]*"|\/\*\*.*\*\/|\/\/ .*$/gm, "")
    const words = new Set(code.match(/\w+/g))
    assert.deepStrictEqual(named.filter((name) => !words.has(name.split(".")[1]!)), [])
  })

  it("the sweeps elsewhere are there", () => {
    for (const [file, test] of Object.values(elsewhere)) {
      const source = fs.readFileSync(new URL(`test/${file}`, root), "utf8")
      assert.include(source, test, file)
      assert.match(source, /\bsweep(Quota)?\(/, file)
    }
  })
})
