import type { Policy } from "./Simulator.ts"
import { concurrencyIn, resolve } from "./simulator/policy.ts"
import { millis } from "./simulator/units.ts"

type Settings = ReturnType<typeof resolve>

/** The modules that the names of a program come from. */
const sources: ReadonlyArray<readonly [name: string, from: string]> = [
  ["AdaptiveRateLimiter", "effect-retry/AdaptiveRateLimiter"],
  ["Backoff", "effect-retry/Backoff"],
  ["ClientThrottle", "effect-retry/ClientThrottle"],
  ["ConcurrencyLimiter", "effect-retry/ConcurrencyLimiter"],
  ["CoolDown", "effect-retry/CoolDown"],
  ["Hedge", "effect-retry/Hedge"],
  ["JavaScriptV2", "effect-retry/aws/legacy/JavaScriptV2"],
  ["JavaV1", "effect-retry/aws/legacy/JavaV1"],
  ["Kotlin", "effect-retry/aws/legacy/Kotlin"],
  ["RetryBudget", "effect-retry/RetryBudget"],
  ["RetryGrpc", "effect-retry/RetryGrpc"],
  ["RetryPolicy", "effect-retry/RetryPolicy"],
  ["RetryQuota", "effect-retry/RetryQuota"],
  ["Effect", "effect/Effect"],
  ["Layer", "effect/Layer"]
]

/** A value as program text. Undefined properties are left out. */
const literal = (value: unknown): string => {
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined)
  return entries.length === 0 ? "{}" : `{ ${entries.map(([key, inner]) => `${key}: ${literal(inner)}`).join(", ")} }`
}

/** A line of code is no wider, where it can be broken. */
const widest = 72

const applied = (name: string, options: unknown): string => {
  const text = literal(options)
  if (text === "{}") return `${name}()`
  if (name.length + text.length < widest - 24) return `${name}(${text})`
  const entries = Object.entries(options as object).filter(([, inner]) => inner !== undefined)
  return `${name}({\n${entries.map(([key, inner]) => `  ${key}: ${literal(inner)}`).join(",\n")}\n})`
}

/** A retry budget of the library; `undefined` for one that only the lab has. */
const budgetCode = (budget: NonNullable<Settings["budget"]>): string | undefined => {
  switch (budget.kind) {
    case "finagle":
      return applied("RetryBudget.share", {
        share: budget.share,
        minPerSecond: budget.minPerSecond,
        window: budget.ttlMillis
      })
    case "ratio":
      return applied("RetryBudget.share", {
        share: budget.of === "calls" ? budget.share : budget.share / (1 - budget.share),
        minPerSecond: 0,
        window: budget.windowMillis
      })
    case "grpc":
      return applied("RetryBudget.grpc", { maxTokens: budget.maxTokens, tokenRatio: budget.tokenRatio })
    case "envoy":
      return applied("RetryBudget.inFlight", { share: budget.share, atLeast: budget.minConcurrency })
    default:
      return undefined
  }
}

const quotaCode = ({ budget, quota }: Settings): ReadonlyArray<string> => {
  const store = budget && budgetCode(budget)
  if (store === undefined) return quota === undefined ? [] : [applied("RetryQuota.layer", quota)]
  return quota === undefined
    ? [`RetryQuota.layerStore(${store})`]
    : [`RetryQuota.layerStore(RetryBudget.all([${applied("RetryBudget.bucket", quota)}, ${store}]))`]
}

const concurrencyCode = (policy: Policy): ReadonlyArray<string> => {
  const settings = concurrencyIn(policy)
  if (settings === undefined || settings.published !== undefined) return []
  const { limit, maxWait, maxWaiters, order, published: _, onExceeded, ...adaptive } = settings
  const rule = limit === undefined
    ? applied("ConcurrencyLimiter.adaptive", adaptive)
    : `ConcurrencyLimiter.fixed(${limit})`
  const others = literal({ maxWait, maxWaiters, order, onExceeded }).replace(/^\{ ?/, "").replace(/ ?\}$/, "")
  return [`ConcurrencyLimiter.layer({ rule: ${rule}${others === "" ? "" : `, ${others}`} })`]
}

/** What only the lab has, for comparison. */
const missing = (policy: Policy): ReadonlyArray<string> => {
  const { budget } = resolve(policy)
  const published = concurrencyIn(policy)?.published
  return [
    ...budget === undefined || budgetCode(budget) !== undefined ? [] : [`the budget "${budget.kind}"`],
    ...published === undefined ? [] : [`the concurrency limit "${published}"`]
  ].map((what) => `// Not in the library, so not in this code: ${what}.`)
}

/** One layer for each service that the calls of a process share. */
const layersOf = (policy: Policy): ReadonlyArray<string> => {
  const settings = resolve(policy)
  return [
    ...quotaCode(settings),
    ...settings.limiter === undefined ? [] : [applied("AdaptiveRateLimiter.layer", settings.limiter)],
    ...settings.coolDown === undefined ? [] : [applied("CoolDown.layer", settings.coolDown)],
    ...settings.throttle === undefined ? [] : [applied("ClientThrottle.layer", settings.throttle)],
    ...concurrencyCode(policy),
    ...settings.hedge === undefined ? [] : [applied("Hedge.layer", settings.hedge.process)]
  ]
}

/** The call whose failures are retried: hedged, if the policy is. */
const callCode = (policy: Policy): string => {
  const settings = typeof policy === "string" ? undefined : policy.hedge
  if (settings === undefined) return "call"
  const { after, atMost, first, quantile } = settings
  const options = first === undefined ? [] : [literal({ first: millis(first) })]
  const share = quantile === undefined && first === undefined ? [] : [String(quantile)]
  const late = after === undefined ? `Hedge.quantile(${[...share, ...options].join(", ")})` : millis(after)
  return `Hedge.hedged(call, { ${atMost === undefined ? "" : `atMost: ${atMost}, `}after: ${late} })`
}

const policyCode = (policy: Policy): string => {
  const { budget, policy: made } = resolve(policy)
  if (made === undefined) return "Backoff.fixed(0).pipe(RetryPolicy.maxAttempts(1))"
  const text = String(made)
  const isPaid = text.includes("RetryPolicy.quotaGated(")
  return budget === undefined || budgetCode(budget) === undefined || isPaid
    ? text
    : `${text.slice(0, -1)}, RetryPolicy.quotaGated({ cost: 1 }))`
}

const spread = (code: string): string =>
  code.length <= widest - 24
    ? code
    : opened(code.replace(/\.pipe\(/, ".pipe(\n  ").replaceAll(/, (?=RetryPolicy\.)/g, ",\n  ").replace(/\)$/, "\n)"))

/** Options in the first line, each in a line of its own if the line is too long. */
const opened = (code: string): string => {
  const [first = "", ...others] = code.split("\n")
  if (first.length <= widest - 22) return code
  const line = first.replace(
    /\(\{ ([^{}]*) \}\)/,
    (_, options: string) => `({\n  ${options.replaceAll(", ", ",\n  ")}\n})`
  )
  return [line, ...others].join("\n")
}

/** The program of a policy: the policy, and the layer of what the calls of a process share. */
export const codeOf = (policy: Policy): string => {
  const layers = layersOf(policy)
  const lines = [`export const policy = ${spread(policyCode(policy))}`]
  if (layers.length > 0) {
    lines.push(
      "",
      "/** Provide it once per process: its calls share it. */",
      `export const layer = ${
        layers.length === 1
          ? layers[0]
          : `Layer.mergeAll(\n  ${layers.map((layer) => layer.replaceAll("\n", "\n  ")).join(",\n  ")}\n)`
      }`
    )
  }
  lines.push(
    "",
    `export const retried = <A, E, R>(call: Effect.Effect<A, E, R>) =>\n  withRetry(${callCode(policy)}, policy)`,
    ""
  )
  const body = [...missing(policy), ...lines].join("\n")
  const used = sources.filter(([name]) => new RegExp(`\\b${name}\\.`).test(body))
  const imports = used.map(([name, from]) => `import ${name === "Effect" ? "type " : ""}* as ${name} from "${from}"`)
  return [`import { withRetry } from "effect-retry"`, ...imports, "", body].join("\n")
}
