/** Constructors accept every option that they document, and reject any other name. */
import { assert, describe, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  AwsModes,
  awsStandard,
  Backoff,
  Hedge,
  InvalidOption,
  ResourceLimiters,
  RetryClassifier,
  RetryMetrics,
  RetryPolicy,
  RetryPromise,
  retryPromise,
  RetryQuota,
  Waiter
} from "effect-retry"
import * as AdaptiveRateLimiterRedis from "effect-retry/AdaptiveRateLimiterRedis"
import * as AwsRetryConfig from "effect-retry/aws/AwsRetryConfig"
import * as BotocoreLegacy from "effect-retry/aws/legacy/BotocoreLegacy"
import * as GeneralReference from "effect-retry/aws/legacy/GeneralReference"
import * as JavaScriptV2 from "effect-retry/aws/legacy/JavaScriptV2"
import * as JavaV1 from "effect-retry/aws/legacy/JavaV1"
import * as Kotlin from "effect-retry/aws/legacy/Kotlin"
import * as SmithyGuide from "effect-retry/aws/legacy/SmithyGuide"
import * as Operations from "effect-retry/aws/Operations"
import * as RequestHeaders from "effect-retry/aws/RequestHeaders"
import * as SdkModes from "effect-retry/aws/SdkModes"
import * as SharedConfig from "effect-retry/aws/SharedConfig"
import * as AwsSdk from "effect-retry/AwsSdk"
import * as Chaos from "effect-retry/Chaos"
import * as CircuitBreakerGate from "effect-retry/CircuitBreakerGate"
import * as ClientThrottle from "effect-retry/ClientThrottle"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import * as CoolDownRedis from "effect-retry/CoolDownRedis"
import * as Fetch from "effect-retry/fetch"
import * as RetryBudget from "effect-retry/RetryBudget"
import * as RetryConfig from "effect-retry/RetryConfig"
import * as RetryGrpc from "effect-retry/RetryGrpc"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as RetryLanguageModel from "effect-retry/RetryLanguageModel"
import * as RetryLlm from "effect-retry/RetryLlm"
import * as RetryPolicyJson from "effect-retry/RetryPolicyJson"
import * as RetryPropagation from "effect-retry/RetryPropagation"
import * as RetryPropagationRpc from "effect-retry/RetryPropagationRpc"
import * as RetryQuotaRedis from "effect-retry/RetryQuotaRedis"
import * as RetryStream from "effect-retry/RetryStream"
import * as RetryWorkflow from "effect-retry/RetryWorkflow"
import * as Kit from "effect-retry/testing"
import * as TokenLimiter from "effect-retry/TokenLimiter"
import * as Cause from "effect/Cause"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { filesOf } from "../utils/files.ts"
import { functionsWithOptions, importOf, type Module, publicModules } from "../utils/modules.ts"

type All<Options> = { readonly [K in keyof Options]-?: Exclude<Options[K], undefined> }

/** The options that follow another argument. */
type LastOption<F extends (first: any, options: any) => unknown> = NonNullable<Parameters<F>[1]>

/** A constructor, as `Module.name`, and a value for each of its options. */
interface Row {
  readonly name: string
  /** What its errors call it. */
  readonly by: string
  readonly all: object
  readonly make: (options: any) => unknown
  /** Where the options are nested. */
  readonly path: string
}

/** What errors call those that they do not call by their module. */
const called: Readonly<Record<string, string>> = {
  "RetryPromise.retryPromise": "retryPromise",
  "fetch.retryFetch": "retryFetch",
  "TestLimiter.layer": "AdaptiveRateLimiter.make"
}

const row = <Options extends object>(
  name: string,
  make: (options: Options) => unknown,
  all: All<Options>,
  path = ""
): Row => ({ name, by: called[name] ?? name.replace(/^testing\./, ""), make, all, path })

/** Another constructor with the options of this one. */
const alike = (
  { all, by, path }: Row,
  name: string,
  make: (options: any) => unknown,
  { only, own = false }: { readonly only?: ReadonlyArray<string>; readonly own?: boolean } = {}
): Row => ({
  name,
  by: own ? name : by,
  make,
  all: only === undefined ? all : Object.fromEntries(Object.entries(all).filter(([option]) => only.includes(option))),
  path
})

/** Runs what fails with `InvalidOption`. It need not get as far as to what it needs besides. */
const throwing = (self: Effect.Effect<unknown, unknown, any>): void => {
  const run = Effect.runSyncExitWith(Context.empty() as Context.Context<any>)
  const exit = run(Effect.provide(Effect.scoped(self), filesOf({}).layer))
  const error = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
  if (error instanceof InvalidOption) throw error
}

type FromConfig = (options: any) => Layer.Layer<any, unknown, any>

/** `layerConfig`, with each option from configuration. */
const configured = (layerConfig: FromConfig) => (options: any): void => {
  const isRecord = typeof options === "object" && options !== null && !Array.isArray(options)
  const wrapped = isRecord
    ? Object.fromEntries(Object.entries(options).map(([option, value]) => [option, Config.succeed(value)]))
    : options
  throwing(Layer.build(layerConfig(wrapped)))
}

const quota: All<RetryQuota.Options> = {
  capacity: 10,
  initial: 5,
  refillPerSecond: 1,
  successIncrement: 1,
  firstAttemptCost: 0,
  onExceeded: "stop",
  maxWaiters: 5,
  restore: { tokens: 3, capacity: 10 }
}
const limiterState: AdaptiveRateLimiter.State = {
  enabled: true,
  capacity: 1,
  maxCapacity: 2,
  fillRate: 2,
  measuredTxRate: 3,
  lastMaxRate: 2.5,
  sinceThrottle: 4,
  timeWindow: 1,
  waiting: 0
}
const limiter: All<AdaptiveRateLimiter.Options> = {
  beta: 0.5,
  minFillRate: 1,
  minCapacity: 1,
  scaleConstant: 0.4,
  smoothing: 0.8,
  measurementBucketDuration: 500,
  onExceeded: "fail",
  maxWaiters: 1,
  restore: limiterState
}
const rule: All<ConcurrencyLimiter.AdaptiveOptions> = {
  initial: 20,
  minimum: 1,
  maximum: 100,
  increase: 1,
  decrease: 0.5,
  slowerThan: "1 second"
}
const concurrency: All<ConcurrencyLimiter.Options> = {
  rule: ConcurrencyLimiter.fixed(2),
  isDrop: () => false,
  onExceeded: "fail",
  maxWait: 100,
  maxWaiters: 1,
  order: "lifo"
}
const throttle: All<ClientThrottle.Options> = {
  k: 2,
  window: 1000,
  maxRejection: 0.5,
  counts: "sent",
  isRejection: () => false
}
const coolDown: All<CoolDown.Options> = {
  atMost: 1000,
  spread: 0,
  maxWait: 10,
  maxWaiters: 1,
  probeTime: 10,
  hint: () => undefined
}
const hedge: All<Hedge.Options> = {
  share: 0.1,
  shareWindow: 1000,
  budget: Effect.runSync(RetryBudget.bucket()),
  latencyWindow: 1000
}
const call: All<Hedge.CallOptions> = { after: 10, atMost: 1, cost: 1, isRetryable: () => true }
const backoff: All<Backoff.CommonOptions> = { cap: 100, jitter: "full" }
const mode: All<AwsModes.Options> = { maxAttempts: 3, maxBackoff: "20 seconds" }
const redis = { name: "orders", prefix: "a:", timeout: 50, fallbackTime: 1000 }
const client: any = HttpClient.make(() => Effect.never)
const http: All<RetryHttp.ClassifierOptions> = { hints: RetryHttp.defaultHints, retryStatus: () => true }
const promise: All<RetryPromise.RetryOptions & RetryPromise.ContextOptions> = {
  context: Context.empty(),
  retries: 1,
  classify: () => undefined,
  onRetry: () => undefined,
  onStop: () => undefined
}
const activity: any = Effect.void
const nothing: any = () => Effect.never

const rows: ReadonlyArray<Row> = [
  row<RetryQuota.Options>("RetryQuota.make", RetryQuota.make, quota),
  row<RetryQuota.Options>("RetryBudget.bucket", RetryBudget.bucket, quota),
  row<RetryBudget.ShareOptions>("RetryBudget.share", RetryBudget.share, { share: 0.1, minPerSecond: 1, window: 10 }),
  row<RetryBudget.InFlightOptions>(
    "RetryBudget.inFlight",
    (options) => {
      if (Object(options) !== options || !("most" in options)) return RetryBudget.inFlight(options)
      const { most: _, ...others } = options
      return RetryBudget.inFlight(others)
    },
    { share: 0.1, atLeast: 1, most: () => 1 }
  ),
  row<RetryBudget.GrpcOptions>("RetryBudget.grpc", RetryBudget.grpc, {
    maxTokens: 10,
    tokenRatio: 1,
    isFailure: () => true
  }),
  row<AdaptiveRateLimiter.Options>("AdaptiveRateLimiter.make", AdaptiveRateLimiter.make, limiter),
  row<ConcurrencyLimiter.Options>("ConcurrencyLimiter.make", ConcurrencyLimiter.make, concurrency),
  row<ConcurrencyLimiter.AdaptiveOptions>("ConcurrencyLimiter.adaptive", ConcurrencyLimiter.adaptive, rule),
  row<ClientThrottle.Options>("ClientThrottle.make", ClientThrottle.make, throttle),
  row<CoolDown.Options>("CoolDown.make", CoolDown.make, coolDown),
  row<Hedge.Options>("Hedge.make", Hedge.make, hedge),
  row<Hedge.CallOptions>("Hedge.hedged", (options) => Hedge.hedged(Effect.void, options), call),
  row<Hedge.QuantileOptions>("Hedge.quantile", (options) => Hedge.quantile(0.9, options), {
    warmUp: 10,
    atLeast: 1,
    first: 10
  }),
  row<ResourceLimiters.Options>("ResourceLimiters.layer", ResourceLimiters.layer, {
    quota,
    limiter,
    concurrency,
    throttle,
    coolDown,
    hedge,
    idleTimeToLive: "1 minute",
    capacity: 5
  }),
  row<TokenLimiter.Options>("TokenLimiter.make", TokenLimiter.make, {
    requests: 1,
    tokens: 1,
    inputTokens: 1,
    outputTokens: 1,
    per: 1000,
    burst: 500,
    slack: 1,
    share: 1,
    cachedInput: "free",
    estimate: 5,
    usage: () => undefined,
    onExceeded: "fail",
    maxWait: 10,
    maxWaiters: 1
  }),
  row<Backoff.CommonOptions>("Backoff.exponential", (options) => Backoff.exponential(1, 2, options), backoff),
  row<LastOption<typeof Backoff.linear>>("Backoff.linear", (options) => Backoff.linear(1, options), {
    ...backoff,
    increment: 2
  }),
  row<Backoff.CommonOptions>("Backoff.fibonacci", (options) => Backoff.fibonacci(1, options), backoff),
  row<LastOption<typeof Backoff.fixed>>("Backoff.fixed", (options) => Backoff.fixed(1, options), { jitter: "full" }),
  row<LastOption<typeof Backoff.decorrelated>>("Backoff.decorrelated", (options) => Backoff.decorrelated(1, options), {
    cap: 2,
    additive: true
  }),
  row<{ readonly proportional: number }>("RetryPolicy.jittered", (jitter) => RetryPolicy.jittered(jitter), {
    proportional: 0.1
  }),
  row<RetryPolicy.ExplainOptions>(
    "RetryPolicy.explain",
    (options) => RetryPolicy.explain(awsStandard, new Error(), options),
    { attempt: 1, classifier: RetryClassifier.defaultClassifier }
  ),
  row<RetryPolicy.HonorOptions>("RetryPolicy.honorRetryAfter", (options) => RetryPolicy.honorRetryAfter(options), {
    atMost: 1,
    overshoot: 1,
    beyond: "stop"
  }),
  row<RetryPolicy.QuotaOptions>("RetryPolicy.quotaGated", (options) => RetryPolicy.quotaGated(options), {
    cost: 1,
    timeoutCost: 1,
    throttlingCost: 1,
    longPolling: true
  }),
  row<RetryPolicy.QuotaOptions>("RetryPolicy.withQuota", (options) => RetryPolicy.withQuota(options), {
    cost: 1,
    timeoutCost: 1,
    throttlingCost: 1,
    longPolling: true
  }),
  row<RetryGrpc.PushbackOptions>("RetryGrpc.honorPushback", (options) => RetryGrpc.honorPushback(options), {
    atMost: 1,
    beyond: "stop"
  }),
  row<RetryGrpc.HedgingPolicy>("RetryGrpc.hedged", (options) => RetryGrpc.hedged(options), {
    maxAttempts: 3,
    hedgingDelay: "0.5s",
    nonFatalStatusCodes: [14]
  }),
  row<{ readonly timeout?: Duration.Input }>("RetryGrpc.unary", (options) => RetryGrpc.unary(() => activity, options), {
    timeout: 1
  }),
  row<AwsModes.Options>("AwsModes.standard", AwsModes.standard, mode),
  row<AwsModes.Options2026>("AwsModes.standard2026", AwsModes.standard2026, { ...mode, base: 1, longPolling: true }),
  row<AwsModes.Options>("Operations.make", Operations.make, mode),
  row<SdkModes.Options>("SdkModes.go", SdkModes.go, mode),
  row<RequestHeaders.Options>("RequestHeaders.headers", RequestHeaders.headers, {
    maxAttempts: 3,
    maxInFirst: false,
    attempt: 2,
    readTimeout: 10,
    ttlPosition: "last"
  }),
  row<GeneralReference.Options>("GeneralReference.policy", GeneralReference.policy, {
    maxRetries: 1,
    maxWaitInterval: 10
  }),
  row<GeneralReference.PollingOptions<string>>("GeneralReference.polling", GeneralReference.polling, {
    status: (output) => output,
    maxPolls: 2,
    maxWaitInterval: 10,
    maxWait: 1000
  }),
  row<JavaScriptV2.BackoffOptions>("JavaScriptV2.backoff", JavaScriptV2.backoff, {
    base: 1,
    customBackoff: () => 1,
    addRetryAfter: true,
    maxRetryAfter: 1
  }),
  row<JavaScriptV2.Options>("JavaScriptV2.policy", JavaScriptV2.policy, {
    base: 1,
    customBackoff: () => 1,
    addRetryAfter: true,
    maxRetryAfter: 1,
    maxRetries: 1
  }),
  row<JavaV1.BackoffOptions>("JavaV1.fullJitterBackoff", JavaV1.fullJitterBackoff, { baseDelay: 1, maxBackoff: 2 }),
  row<JavaV1.Options>("JavaV1.policy", JavaV1.policy, {
    baseDelay: 1,
    throttledBaseDelay: 1,
    maxBackoff: 2,
    maxRetries: 1
  }),
  row<SmithyGuide.Options>("SmithyGuide.make", SmithyGuide.make, SmithyGuide.april2026),
  row<{ readonly throttling?: boolean }>("SmithyGuide.retryable", SmithyGuide.retryable, { throttling: true }),
  row<BotocoreLegacy.Options>(
    "BotocoreLegacy.forService",
    (options) => BotocoreLegacy.forService(BotocoreLegacy.document, "dynamodb", options),
    { maxAttempts: 1, maxRetries: 1, operation: "GetItem" }
  ),
  row<Kotlin.ExponentialBackoffWithJitterConfig>(
    "Kotlin.exponentialBackoffWithJitter",
    Kotlin.exponentialBackoffWithJitter,
    {
      useNewRetries: true,
      initialDelay: 1,
      scaleFactor: 2,
      jitter: 1,
      maxBackoff: 10,
      throttlingBaseDelay: 1,
      retryAfterMaxOvershoot: 1
    }
  ),
  row<Kotlin.AdaptiveRetryStrategyConfig>("Kotlin.adaptiveRetryStrategy", Kotlin.adaptiveRetryStrategy, {
    useNewRetries: true,
    maxAttempts: 3,
    tokenBucket: {},
    delayProvider: {},
    enableLongPollingBackoff: true,
    rateLimiter: {}
  }),
  row<RetryHttp.Options>("RetryHttp.retry", (options) => RetryHttp.retry(client, awsStandard, options), {
    ...http,
    classifier: () => Option.none(),
    attemptTimeout: 10,
    reuseConnection: "never",
    newConnection: (send) => send,
    hintSpread: 0,
    disableProxyRetries: true,
    resource: RetryHttp.hostOf
  }),
  row<RetryHttp.ClassifierOptions>("RetryHttp.makeClassifier", RetryHttp.makeClassifier, http),
  row<RetryHttp.HedgeOptions>("RetryHttp.hedge", (options) => RetryHttp.hedge(options), {
    after: 10,
    atMost: 1,
    cost: 1,
    classifier: () => Option.none()
  }),
  row<RetryHttp.IdempotencyKeyOptions>("RetryHttp.idempotencyKey", RetryHttp.idempotencyKey, { make: () => "key" }),
  row<RetryPropagation.ServerOptions>("RetryPropagation.server", RetryPropagation.server, {
    headers: { deadline: "a", attempt: "b", maxAttempts: "c", criticality: "d" },
    limiter: Effect.runSync(ConcurrencyLimiter.make())
  }),
  row<RetryPropagation.ServerOptions>("RetryPropagationRpc.layer", RetryPropagationRpc.layer, {
    headers: { deadline: "a", attempt: "b", maxAttempts: "c", criticality: "d" },
    limiter: Effect.runSync(ConcurrencyLimiter.make())
  }),
  row<RetryPropagation.HeaderNames>("RetryPropagation.layer", RetryPropagation.layer, {
    deadline: "a",
    attempt: "b",
    maxAttempts: "c",
    criticality: "d"
  }),
  row<CircuitBreakerGate.Options>("CircuitBreakerGate.make", CircuitBreakerGate.make, {
    key: "orders",
    isFailure: () => true,
    probeTime: 10
  }),
  row<Waiter.Options<unknown, unknown>>("Waiter.make", Waiter.make, {
    acceptors: [Waiter.output("success")],
    maxWait: 1000,
    initialDelay: 1,
    minDelay: 10,
    maxDelay: 20,
    delay: Schedule.forever as any,
    onAttempt: () => Effect.void
  }),
  row<RetryMetrics.Options>("RetryMetrics.make", RetryMetrics.make, { capacity: 5 }),
  row<RetryStream.Options>("RetryStream.resume", (o) => RetryStream.resume(awsStandard, () => Stream.empty, o), {
    resetAfter: 1
  }),
  row<RetryStream.FirstOptions<unknown>>(
    "RetryStream.untilFirst",
    (o) => RetryStream.untilFirst(Stream.empty, awsStandard, o),
    { begins: () => true }
  ),
  row<RetryWorkflow.Options>("RetryWorkflow.retry", (o) => RetryWorkflow.retry(activity, awsStandard, o), {
    inMemoryThreshold: 1
  }),
  row<RetryConfig.AtMost>("RetryConfig.atMost", RetryConfig.atMost, { attempts: 1, sendsPerSecond: 1, unsafe: true }),
  row<RetryConfig.FileOptions>("RetryConfig.layerFile", (options) => RetryConfig.layerFile("a.json", options), {
    every: 1
  }),
  row<RetryLlm.Options>("RetryLlm.make", RetryLlm.make, { maxAttempts: 1, atMost: 1, deadline: 1 }),
  row<RetryPromise.Options>("RetryPromise.make", (options) => RetryPromise.make(awsStandard, options), {
    ...promise,
    quota,
    limiter
  }),
  row<Fetch.Options>("fetch.retryFetch", Fetch.retryFetch, {
    ...promise,
    policy: awsStandard,
    attemptTimeout: 1000,
    quota,
    coolDown: {},
    fetch: globalThis.fetch
  }),
  row<RetryQuotaRedis.Options>("RetryQuotaRedis.make", RetryQuotaRedis.make, {
    ...quota,
    ...redis,
    leaseTime: 1000,
    idleTimeToLive: "1 minute",
    flushInterval: 1,
    fallback: { capacity: 5, initial: 1, refillPerSecond: 1 }
  }),
  row<NonNullable<RetryQuotaRedis.Options["fallback"]>>(
    "RetryQuotaRedis.make",
    (fallback) => RetryQuotaRedis.make({ name: "orders", fallback }),
    { capacity: 5, initial: 1, refillPerSecond: 1 },
    "fallback."
  ),
  row<Chaos.Options>("Chaos.layer", Chaos.layer, {
    outages: [{ kind: "fail", from: 0, to: 1, share: 0.5 }],
    seed: 1,
    only: ["orders"]
  }),
  row<Kit.OutcomesOptions>("testing.outcomes", (options) => Kit.outcomes([], options), {
    latency: 1,
    afterwards: "die"
  }),
  row<Kit.TestLimiterOptions>("TestLimiter.layer", Kit.TestLimiter.layer, {
    ...limiter,
    fillRate: 5,
    tokens: 1
  }),
  row<RetryQuota.Options>("TestQuota.layer", Kit.TestQuota.layer, quota),
  row<Kit.ServiceOptions<any>>("testing.service", Kit.service, {
    capacity: 1,
    overload: "slow",
    latency: 1,
    retryAfter: 1,
    outages: [{ from: 0, to: 1, outcome: Kit.transient }]
  }),
  row<AdaptiveRateLimiterRedis.Options>("AdaptiveRateLimiterRedis.make", AdaptiveRateLimiterRedis.make, {
    ...limiter,
    ...redis,
    lookInterval: 10,
    idleTimeToLive: "1 minute"
  }),
  row<CoolDownRedis.Options>("CoolDownRedis.make", CoolDownRedis.make, {
    ...coolDown,
    ...redis,
    lookInterval: 10
  }),
  row<AwsRetryConfig.Options>("AwsRetryConfig.make", (options) => throwing(AwsRetryConfig.make(options)), {
    mode: "standard",
    maxAttempts: 1,
    newRetries2026: true,
    profile: "default",
    configFile: "a",
    credentialsFile: "b",
    service: "s3",
    operation: "GetObject",
    sendToken: "wait"
  }),
  row<JavaV1.BackoffOptions>("JavaV1.exponentialBackoff", JavaV1.exponentialBackoff, { baseDelay: 1, maxBackoff: 2 }),
  row<JavaV1.BackoffOptions>("JavaV1.equalJitterBackoff", JavaV1.equalJitterBackoff, { baseDelay: 1, maxBackoff: 2 }),
  row<Kotlin.StandardRetryStrategyConfig>("Kotlin.standardRetryStrategy", Kotlin.standardRetryStrategy, {
    useNewRetries: true,
    maxAttempts: 3,
    tokenBucket: {},
    delayProvider: {},
    enableLongPollingBackoff: true
  }),
  row<AwsSdk.HedgeOptions>("AwsSdk.sendHedged", (options) => AwsSdk.sendHedged(client, client, options), {
    ...call,
    repeatable: true
  }),
  row<RetryPromise.CallOptions & RetryPromise.RetryOptions & RetryPromise.ContextOptions>(
    "RetryPromise.retryPromise",
    (options) => retryPromise(() => Promise.resolve(), awsStandard, options as any),
    { ...promise, signal: new AbortController().signal }
  ),
  row<Kit.RetryQuotaStoreSuite.Options>("RetryQuotaStoreSuite.laws", (o) => Kit.RetryQuotaStoreSuite.laws(nothing, o), {
    elapse: () => Effect.void,
    slack: 0,
    onExceeded: "stop"
  }),
  row<Kit.SendGateSuite.Options>("SendGateSuite.laws", (options) => Kit.SendGateSuite.laws(nothing, options), {
    most: 1,
    reopens: true,
    onExceeded: "waits"
  }),
  row<Kit.TimeOptions>("testing.runToEnd", (options) => throwing(Kit.runToEnd(Effect.void, options)), {
    atMost: 10,
    step: 1
  }),
  row<Kit.TimeOptions>("testing.sweep", (options) => throwing(Kit.sweep(Effect.void, () => Effect.void, options)), {
    atMost: 10,
    step: 1
  }),
  row<NonNullable<Parameters<typeof RetryHttp.bodyFactory>[1]>>(
    "RetryHttp.bodyFactory",
    (options) => RetryHttp.bodyFactory(() => Stream.empty, options),
    { contentType: "text/plain", contentLength: 1 }
  ),
  row<SharedConfig.Options>("SharedConfig.load", (options) => throwing(SharedConfig.load(options)), {
    configFile: "a",
    credentialsFile: "b"
  }),
  row<RetryPolicyJson.Options>(
    "RetryPolicyJson.fromJson",
    (o) => throwing(RetryPolicyJson.fromJson({ steps: [{ fixed: { delay: 1 } }] }, o)),
    {
      functions: {}
    }
  )
]

const found = (name: string): Row => rows.find((one) => one.name === name)!

const { ["go"]: _, ...modes } = Object.fromEntries(
  Object.entries(SdkModes).filter(([, mode]) => typeof mode === "function")
)

/** Constructors with the options of another. */
const named: ReadonlyArray<Row> = [
  alike(
    found("AwsRetryConfig.make"),
    "AwsRetryConfig.layer",
    (options) => throwing(Layer.build(AwsRetryConfig.layer(options)))
  ),
  ...Object.entries(modes).map(([mode, make]) => alike(found("SdkModes.go"), `SdkModes.${mode}`, make, { own: true })),
  alike(found("RetryQuotaRedis.make"), "RetryQuotaRedis.layerStore", RetryQuotaRedis.layerStore),
  alike(found("RetryQuota.make"), "RetryQuota.layerFor", (options) => RetryQuota.layerFor("a", options)),
  alike(
    found("AdaptiveRateLimiter.make"),
    "AdaptiveRateLimiter.layerFor",
    (options) => AdaptiveRateLimiter.layerFor("a", options)
  ),
  alike(found("RetryMetrics.make"), "RetryMetrics.layer", RetryMetrics.layer, { own: true }),
  alike(found("RetryHttp.retry"), "RetryHttp.transform", (options) => RetryHttp.transform(awsStandard, options)),
  alike(found("RetryHttp.retry"), "RetryHttp.layer", (options) => RetryHttp.layer(awsStandard, options)),
  alike(
    found("RetryWorkflow.retry"),
    "RetryWorkflow.retryOrElse",
    (options) => RetryWorkflow.retryOrElse(activity, awsStandard, () => Effect.void, options),
    { own: true }
  ),
  alike(
    found("TokenLimiter.make"),
    "RetryLanguageModel.withRetry",
    (options) => RetryLanguageModel.withRetry(awsStandard, options)
  )
]

/** The layers of a module, which have the options of its `make`. */
const layersOf = async ({ name, source }: Module): Promise<ReadonlyArray<Row>> => {
  const module = name.split("/").at(-1)!
  const make = found(`${module}.make`)
  if (make === undefined) return []
  const { layer, layerConfig, layerConnecting }: any = await importOf(source)
  const ways: Readonly<Record<string, Row["make"]>> = {
    layer,
    layerConfig: configured(layerConfig),
    layerConnecting: (options) => layerConnecting(options, Layer.succeed(Redis.Redis, {} as any))
  }
  const exported = functionsWithOptions(source).filter((way) => way in ways)
  return exported.filter((way) => named.every((one) => one.name !== `${module}.${way}`))
    .map((way) => alike(make, `${module}.${way}`, ways[way]!))
}

const others = [...named, ...(await Promise.all(publicModules.map(layersOf))).flat()]

const facts = "reads the facts of an error while a call fails, and must not throw then"
const observer = "takes an observer, which may have methods of its own"

/** Functions that do not check the names in a record: they pass it on, or it is not one of options. */
const passingOn: Readonly<Record<string, string>> = {
  "AwsSdk.send": "has the options of the SDK's handler",
  "AwsSdk.sendWithRetry": "has those of `send`",
  "RetryInfo.TaggedError": facts,
  "RetryInfo.annotation": facts,
  "RetryInfo.make": facts,
  "RetryObserver.combine": observer,
  "RetryObserver.layer": observer,
  "RetryObserver.layerOnly": observer,
  "testing.sweepQuota": "has those of `sweep` and of `RetryQuota.make`"
}

const noObjects = ["fast", 5, 0, true, Symbol.iterator, 5n, () => ({}), [], [{}], null]

const thrownBy = async (run: () => unknown): Promise<unknown> => {
  try {
    await run()
  } catch (error) {
    return error
  }
  return undefined
}

const refusal = async (name: string, option: string, run: () => unknown) => {
  const error = await thrownBy(run)
  assert.instanceOf(error, InvalidOption, `${String(error)}: it was accepted`)
  assert.deepStrictEqual([error.constructorName, error.field, error.value], [name, "option", option])
  return error
}

describe("the names of options", () => {
  it("of each function that takes options are in the table", () => {
    const inTable = new Set([...[...rows, ...others].map(({ name }) => name), ...Object.keys(passingOn)])
    const modules = publicModules.filter(({ name }) => name.startsWith("effect-retry"))
    const exported = modules.flatMap(({ name, source }) =>
      functionsWithOptions(source).map((constructor) => `${name.split("/").at(-1)}.${constructor}`)
    )
    assert.deepStrictEqual(exported.filter((name) => !inTable.has(name)), [])
    assert.deepStrictEqual(Object.keys(passingOn).filter((name) => !exported.includes(name)), [])
    assert.isAbove(exported.length, 100)
  })

  for (const { all, by, make, name, path } of [...rows, ...others]) {
    it(`${name} accepts ${Object.keys(all).map((option) => path + option).join(", ")}, and nothing else`, async () => {
      await make(all)
      const { expected } = await refusal(by, `${path}capacty`, () => make({ ...all, capacty: 10 }))
      const accepted = expected.replace("one of ", "").split(", ")
      assert.includeMembers(accepted, Object.keys(all).map((option) => path + option))
      const isNew = (option: string) => !(option.slice(path.length) in all) && option.startsWith(path)
      assert.deepStrictEqual(path === "" ? accepted.filter((o) => !o.includes(".")).filter(isNew) : [], [])
    })

    const what = name === "RetryPolicy.jittered" ? "jitter" : path === "" ? "options" : path.slice(0, -1)
    it(`${name} rejects what is not an object in place of ${what}, and names it`, async () => {
      for (const value of noObjects) {
        const error = await thrownBy(() => make(value))
        assert.instanceOf(error, InvalidOption, `${String(value)}: ${error}`)
        assert.deepStrictEqual([error.constructorName, error.field, error.value], [by, what, value])
      }
      const error = await thrownBy(() => make(undefined))
      // Where no option is required, all may be left out.
      if (error !== undefined) assert.instanceOf(error, InvalidOption, String(error))
    })
  }

  const nested: ReadonlyArray<readonly [field: string, make: (value: any) => unknown, but?: ReadonlyArray<unknown>]> = [
    ...["quota", "limiter", "concurrency", "throttle", "coolDown", "hedge"].map((section) =>
      [
        `${section} of ResourceLimiters.layer`,
        (value: any) => ResourceLimiters.layer({ [section]: value }),
        noObjects.filter((value) => typeof value === "function")
      ] as const
    ),
    ["estimate of TokenLimiter.make", (estimate) => TokenLimiter.make({ estimate }), [5, 0]],
    ["outages of Chaos.layer", (outages) => Chaos.layer({ outages }), [noObjects[7]]],
    ["an outage of Chaos.layer", (outage) => Chaos.layer({ outages: [outage] })],
    ["outages of service", (outages) => Kit.service({ capacity: 1, outages }), noObjects.slice(7, 9)],
    ["an outage of service", (outage) => Kit.service({ capacity: 1, outages: [outage] })],
    ["headers of RetryPropagation.server", (headers) => RetryPropagation.server({ headers })],
    ["limiter of RetryPropagation.server", (limiter) => RetryPropagation.server({ limiter })],
    ["headers of RetryPropagationRpc.layer", (headers) => RetryPropagationRpc.layer({ headers })],
    ["rule of ConcurrencyLimiter.make", (rule) => ConcurrencyLimiter.make({ rule })],
    ["budget of Hedge.make", (budget) => Hedge.make({ budget })],
    ["acceptors of Waiter.make", (acceptors) => Waiter.make({ acceptors, maxWait: "1 minute" })],
    ["an acceptor of Waiter.make", (acceptor) => Waiter.make({ acceptors: [acceptor], maxWait: "1 minute" })],
    ["quota of RetryPromise.make", (quota) => RetryPromise.make(awsStandard, { quota })],
    ["limiter of RetryPromise.make", (limiter) => RetryPromise.make(awsStandard, { limiter })],
    ["policy of RetryPromise.make", (policy) => (RetryPromise.make as any)(policy)],
    ["tokenBucket of Kotlin", (tokenBucket) => Kotlin.standardRetryStrategy({ tokenBucket })],
    ["delayProvider of Kotlin", (delayProvider) => Kotlin.standardRetryStrategy({ delayProvider })],
    ["rateLimiter of Kotlin", (rateLimiter) => Kotlin.adaptiveRetryStrategy({ rateLimiter })],
    ["nonFatalStatusCodes", (codes) => RetryGrpc.hedged({ maxAttempts: 2, nonFatalStatusCodes: codes }), [
      noObjects[7]
    ]],
    ["budgets of RetryBudget.all", (budgets) => RetryBudget.all(budgets)],
    ["a budget of RetryBudget.all", (budget) => RetryBudget.all([budget])],
    ["hints of RetryHttp.makeClassifier", (hints) => RetryHttp.makeClassifier({ hints }), [noObjects[7]]],
    ["scripts of outcomes", (script) => Kit.outcomes(script), [noObjects[7]]],
    ["method of RetryGrpc.makeClassifier", RetryGrpc.makeClassifier],
    ["options of AwsSdk.send", (options) => AwsSdk.send(client, client, options)],
    ["what sendHedged is hedged with", (hedge) => AwsSdk.sendHedged(client, client, hedge)]
  ]
  for (const [what, make, but = []] of nested) {
    it(`rejects what is not an object in place of ${what}`, async () => {
      for (const value of noObjects) {
        const error = await thrownBy(() => make(value))
        if (!but.includes(value)) assert.instanceOf(error, InvalidOption, `${String(value)}: ${error}`)
        else if (error !== undefined) assert.instanceOf(error, InvalidOption, String(error))
      }
    })
  }

  it("of what is nested in ResourceLimiters.layer, Chaos.layer and RetryPromise.make", async () => {
    const nested = (options: object) => () => ResourceLimiters.layer(options)
    await refusal("RetryQuota.make", "capacty", nested({ quota: { capacty: 1 } }))
    await refusal("AdaptiveRateLimiter.make", "betta", nested({ limiter: { betta: 1 } }))
    await refusal("ConcurrencyLimiter.make", "maxWaiter", nested({ concurrency: { maxWaiter: 1 } }))
    await refusal("ClientThrottle.make", "kk", nested({ throttle: { kk: 1 } }))
    await refusal("CoolDown.make", "max", nested({ coolDown: { max: 1 } }))
    await refusal("Hedge.make", "shared", nested({ hedge: { shared: 1 } }))
    await refusal("RetryQuota.make", "capacty", () => RetryPromise.make(awsStandard, { quota: { capacty: 1 } as any }))
    const outages: any = [{ kind: "fail", form: 0 }]
    await refusal("Chaos.layer", "outages[0].form", () => Chaos.layer({ outages }))
  })

  it("says which there are", () => {
    assert.throws(
      () => RetryQuota.make({ capacty: 10 } as any),
      "RetryQuota.make: option must be one of capacity, initial, restore, refillPerSecond, successIncrement, " +
        "firstAttemptCost, onExceeded, maxWaiters, got \"capacty\""
    )
  })
})
