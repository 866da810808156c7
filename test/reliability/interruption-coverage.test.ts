import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import { fileURLToPath } from "node:url"
import { type Node, statementsOf, visit } from "../utils/ast.ts"
import { importOf, internalsOf, publicModules } from "../utils/modules.ts"
import { adapterSweeps } from "./sweeps/adapters.ts"
import { callSweeps, limiterSweeps, quotaSweeps } from "./sweeps/calls.ts"
import { hedgeSweeps } from "./sweeps/hedges.ts"
import { policySweeps } from "./sweeps/policies.ts"
import { redisSweeps } from "./sweeps/redis.ts"
import { quotaLayers, serviceSweeps } from "./sweeps/services.ts"

/** The members of modules that a node names, and the other names in it. */
const namesIn = (node: Node | ReadonlyArray<Node>) => {
  const members: Array<string> = []
  const identifiers: Array<Node> = []
  const keys = new Set<unknown>()
  visit(node, (inner) => {
    const { computed, key, object, property, shorthand, type } = inner
    if (type === "Identifier") identifiers.push(inner)
    if (type === "MemberExpression" && !computed) keys.add(property)
    if (type === "Property" && !computed && !shorthand) keys.add(key)
    if (type === "MemberExpression" && object.type === "Identifier") members.push(`${object.name}.${property.name}`)
  })
  return { members, names: new Set(identifiers.filter((one) => !keys.has(one)).map(({ name }) => name as string)) }
}

/** The members of modules that occur in tests which sweep, or in what these tests use of their file. */
const sweptIn = (path: string): ReadonlyArray<string> => {
  const code = fs.readFileSync(path, "utf8")
  if (!/\bsweep(?:Quota)?\(/.test(code)) return []
  const declared = new Map<string, Array<any>>()
  const tests: Array<any> = []
  visit(statementsOf(code), (node) => {
    const { arguments: inside, callee, id, type } = node
    if (type === "VariableDeclarator" && id.type === "Identifier") {
      declared.set(id.name, [...declared.get(id.name) ?? [], node.init])
    }
    if (type === "CallExpression" && /^it\b/.test(code.slice(callee.start, callee.end))) tests.push(inside)
  })
  /** With everything that it uses, directly or not. */
  const all = (node: any, seen = new Set<string>()): { members: Array<string>; sweeps: boolean } => {
    const { members, names } = namesIn(node)
    const used = [...names].filter((name) => declared.has(name) && !seen.has(name))
    for (const name of used) seen.add(name)
    const inner = used.flatMap((name) => declared.get(name)!).map((init) => all(init, seen))
    const sweeps = names.has("sweep") || names.has("sweepQuota") || inner.some(({ sweeps }) => sweeps)
    return { members: [...members, ...inner.flatMap(({ members }) => members)], sweeps }
  }
  return tests.map((test) => all(test)).filter(({ sweeps }) => sweeps).flatMap(({ members }) => members)
}

const root = new URL("../..", import.meta.url)

/** Swept next to the tests of their module. */
const elsewhere = new Set(
  fs.readdirSync(new URL("test", root), { encoding: "utf8", recursive: true })
    .filter((name) => name.endsWith(".test.ts") && !name.startsWith("reliability/"))
    .flatMap((name) => sweptIn(fileURLToPath(new URL(`test/${name}`, root))))
)

/** Other ways to make what is swept of the same module, and what reads it. */
const alike = /^(?:counts|layer|layerConfig|layerConnecting|make|state)$/

const isAlike = (name: string): boolean => {
  const [module, member] = name.split(".")
  return alike.test(member!) && [...elsewhere].some((other) => other.startsWith(`${module}.`))
}

/** What a sweep reaches through another function. */
const reached: Readonly<Record<string, string>> = {
  "ConcurrencyLimiter.adaptive": "the rule of a limiter without options",
  "CoolDown.close": "the service has it, and is closed before it is swept",
  "RetryConfig.atMost": "the layer of a document has it around",
  "RetryConfig.layerFile": "layerStream, with the stream of a file",
  "RetryConfig.live": "the policy of retry, whose document changes",
  "RetryLlm.metered": "withRetry of RetryLanguageModel counts its streams with it",
  "fetch.retryFetch": "http/fetch.test.ts interrupts a call of the function that it makes",
  "RetryWorkflow.retry": "dies at each step in workflow/RetryWorkflow.test.ts"
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
    "RetryInfo.make",
    "RetryInfo.fromError",
    "RetryInfo.throttled",
    "RetryObserver.errorType",
    "RetryObserver.failureClass",
    "RetryObserver.observerOf",
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
    "RetryPolicy.explain",
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

const swept = new Set([...named, ...elsewhere, ...Object.keys(reached)])
const excepted = new Set(Object.values(notApplicable).flat())

describe("of the public modules", () => {
  it("each function, effect and layer is swept, or there is a reason why not", async () => {
    const needed = (await exported()).filter(({ isInternal, value }) => !isInternal && canBeSwept(value))
    const unswept = needed.map(({ name }) => name).filter((name) => !swept.has(name) && !excepted.has(name))
    assert.deepStrictEqual(unswept.filter((name) => !isAlike(name)), [])
    assert.isAbove(needed.length, 200)
  })

  it("no name is listed that there is not, and none is both swept and excepted", async () => {
    const all = await exported()
    const exports = new Set(all.map(({ name }) => name))
    assert.deepStrictEqual([...named, ...excepted, ...Object.keys(reached)].filter((name) => !exports.has(name)), [])
    assert.deepStrictEqual(named.filter((name) => excepted.has(name)), [])
    const idle = all.filter(({ isInternal, value }) => isInternal || !canBeSwept(value)).map(({ name }) => name)
    assert.deepStrictEqual(idle.filter((name) => excepted.has(name)), [])
  })

  it("what a sweep is named after occurs in the sweeps", () => {
    const folder = new URL("test/reliability/sweeps/", root)
    const sources = fs.readdirSync(folder).map((name) => fs.readFileSync(new URL(name, folder), "utf8"))
    const code = sources.join("\n").replaceAll(/^import [^"]*".*$|"[^"\n]*"|\/\*\*.*\*\/|\/\/ .*$/gm, "")
    const words = new Set(code.match(/\w+/g))
    const occurs = ([module, member]: ReadonlyArray<string>) =>
      words.has(member!) || code.includes(`Object.entries(${module})`)
    assert.deepStrictEqual(named.filter((name) => !occurs(name.split("."))), [])
  })
})
