/**
 * Retry policies, quotas and limits from configuration: one document for many resources, which may change while the
 * program runs.
 *
 * **Example** (A document)
 *
 * ```json
 * {
 *   "$schema": "./node_modules/effect-retry/dist/config/retry-config.schema.json",
 *   "retries": "on",
 *   "default": { "policy": { "maxAttempts": 2 } },
 *   "resources": {
 *     "orders": {
 *       "policy": { "base": "50 millis", "cap": "5 seconds", "maxAttempts": 4, "deadline": "10 seconds" },
 *       "quota": { "capacity": 200, "refillPerSecond": 1 },
 *       "concurrency": { "limit": 50, "maxWait": "250 millis" },
 *       "coolDown": {}
 *     },
 *     "search": { "policy": "awsStandard2026" },
 *     "mail": { "retries": "off" }
 *   }
 * }
 * ```
 *
 * A resource may have: `policy`, the name of one (`"awsStandard"`, `"awsStandard2026"`, `"awsDynamoDB2026"`,
 * `"awsAdaptive"`), its steps as in `RetryPolicyJson`, or short keys; `quota`, `limiter`, `throttle` and `coolDown`, the
 * options of `RetryQuota`, `AdaptiveRateLimiter`, `ClientThrottle` and `CoolDown`; `concurrency`, those of
 * `ConcurrencyLimiter`, with either a fixed `limit` or the options of its adaptive rule; `budgets`, with `share`,
 * `inFlight` and `grpc` of `RetryBudget`, each of which a retry needs in addition to the quota; `hedge`, for
 * {@link hedged}. Without `quota` a resource has one with the defaults, without the others it is not held back. A
 * resource without an entry uses `default`, with its own quota and gates; unused for 10 minutes, or as one of more than
 * 10,000 such resources, it starts over.
 *
 * With the key `redis`, a `quota`, a `limiter` or a `coolDown` is shared by all processes: `RetryConfigRedis` has the
 * layer for that, and a document with the key is refused without it.
 *
 * The short keys of a policy, with their defaults: `base` (100 milliseconds), `factor` (2), `cap` (20 seconds),
 * `jitter` (`"full"`), `maxAttempts` (3), `deadline` (none), `cost` (5), `timeoutCost` and `throttlingCost` (the cost),
 * `idempotent` (`false`; with `true`, failures that are only maybe safe to retry are retried too), `outermostOnly`
 * (`false`). Such a policy honors a server's hint.
 *
 * The package's index does not export this module: import `effect-retry/RetryConfig`.
 *
 * @since 0.1.0
 */

import * as Cause from "effect/Cause"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import type * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import type * as Scope from "effect/Scope"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import { retrying } from "../engine/loop.ts"
import { fromSource } from "../engine/policy/policy.ts"
import { framed } from "../engine/send.ts"
import { hedging } from "../hedge/internal/race.ts"
import { checkName, checksOf, flag, rejectUnknown } from "../internal/checks.ts"
import { errorOf, Refusal } from "../internal/invalidField.ts"
import { count, optional, positive, positiveDuration, readOptions, validOptions } from "../internal/options.ts"
import type { AnyContext } from "../internal/shared.ts"
import { InvalidOption } from "../InvalidOption.ts"
import type { RetryPolicy } from "../RetryPolicy.ts"
import type { RetryQuota } from "../RetryQuota.ts"
import { type Document, documentOf } from "./internal/configDocument.ts"
import { policyConfig } from "./internal/environmentVariables.ts"
import { type LiveResource, Lives } from "./internal/liveResource.ts"
import { type Ceiling, CurrentCeiling } from "./internal/resourcePart.ts"
import { documentsOf, jsonOf } from "./internal/watchedFile.ts"
import type { Policy } from "./RetryPolicyJson.ts"

/**
 * What happened to the documents so far.
 *
 * @category models
 * @since 0.1.0
 */
export interface Status {
  /** How many documents have taken effect: 1 at the start. */
  readonly version: number
  /** The problem with the last document, which changed nothing; `undefined` if it took effect. */
  readonly problem: InvalidOption | undefined
  /** Where documents come from: a file or stream that is `"followed"`, or has `"stopped"`, or only {@link set}. */
  readonly source: "followed" | "stopped" | "set"
}

/**
 * 1 while documents of a file or stream are followed, 0 once that has ended or failed.
 *
 * @category metrics
 * @since 0.1.0
 */
export const followed: Metric.Gauge<number> = Metric.gauge("retry_config_followed", {
  description: "1 while documents of a file or stream are followed, 0 once that has ended or failed"
})

/**
 * The configuration in force.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  /**
   * Puts a document into effect: calls that begin from now on use it, in one step. Fails with `InvalidOption`, whose
   * `field` is the path of the problem, such as `resources.orders.quota.capacity`; then nothing changes.
   */
  readonly set: (json: unknown) => Effect.Effect<void, InvalidOption>
  /** What happened to the documents so far. */
  readonly status: Effect.Effect<Status>
  /** @internal */
  readonly lives: Lives
}

/**
 * The configuration of all resources.
 *
 * @category services
 * @since 0.1.0
 */
export class RetryConfig extends Context.Service<RetryConfig, Service>()("effect-retry/RetryConfig") {}

/** The document from its JSON, of which it may be known already that it is none. */
const documentIn = (json: unknown, constructorName: string): Effect.Effect<Document, InvalidOption> =>
  Effect.contextWith((context: AnyContext) => {
    const found = json instanceof Refusal ? json : documentOf(json, context)
    return found instanceof Refusal ? Effect.fail(errorOf(found, constructorName)) : Effect.succeed(found)
  })

class Current implements Service {
  readonly lives: Lives
  private version = 1
  private problem: InvalidOption | undefined = undefined
  private source: Status["source"] = "set"

  constructor(document: Document, private readonly context: AnyContext) {
    this.lives = new Lives(document, context)
  }

  readonly set: Service["set"] = (json) =>
    documentIn(json, "RetryConfig.set").pipe(
      Effect.provideContext(this.context),
      Effect.tapError((problem) => Effect.sync(() => void (this.problem = problem))),
      Effect.flatMap((document) => {
        this.lives.change(document)
        this.version++
        this.problem = undefined
        return Effect.void
      })
    )

  readonly status: Effect.Effect<Status> = Effect.sync(() => {
    const { problem, source, version } = this
    return { version, problem, source }
  })

  readonly follows = (isFollowed: boolean): Effect.Effect<void> => {
    this.source = isFollowed ? "followed" : "stopped"
    return Metric.update(followed, isFollowed ? 1 : 0)
  }
}

const made = (json: unknown, constructorName: string): Effect.Effect<Current, InvalidOption, Scope.Scope> =>
  Effect.flatMap(documentIn(json, constructorName), (document) =>
    Effect.acquireRelease(
      Effect.contextWith((context: AnyContext) => Effect.sync(() => new Current(document, context))),
      ({ lives }) => Effect.withFiber((fiber) => Effect.sync(() => lives.dropped(fiber.context)))
    ))

/**
 * The most that documents may ask for.
 *
 * @category models
 * @since 0.1.0
 */
export interface AtMost {
  /** The sends of a call, hedges included: a whole number of at least 1, or `Infinity`. Default 10. */
  readonly attempts?: number | undefined
  /**
   * The sends of a call per second: a finite number above 0. The delays of a policy, and those before hedges, become at
   * least as long as that takes, if hedges are inside the retries. Default: as the document says.
   */
  readonly sendsPerSecond?: number | undefined
  /**
   * Whether a policy may retry what is not known to be safe, such as a POST without a key after a broken connection.
   * Default true. Code that calls {@link hedged} says that its call may run twice.
   */
  readonly unsafe?: boolean | undefined
}

const ceilingOptions = { attempts: count(1, 10), sendsPerSecond: optional(positive()) }

/**
 * A ceiling for the policies of documents, set by code: no document can raise it. A policy without an
 * end stops there; a document that asks for more attempts or hedges by number is refused. Throws `InvalidOption` when an option is
 * invalid.
 *
 * **Example** (A document that others write)
 *
 * ```ts
 * const ceiling = RetryConfig.atMost({ attempts: 4, sendsPerSecond: 5, unsafe: false })
 * const configLive = (path: string) => RetryConfig.layerFile(path).pipe(Layer.provide(ceiling))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const atMost = (options: AtMost): Layer.Layer<never> => {
  const check = checksOf("RetryConfig.atMost", options)
  const { attempts, sendsPerSecond } = readOptions(check, ceilingOptions, options)
  const leastMillis = sendsPerSecond === undefined ? 0 : 1000 / sendsPerSecond
  const { unsafe = true } = options
  const ceiling: Ceiling = { attempts, leastMillis, unsafe: flag(check, "unsafe", unsafe) }
  return Layer.succeedContext(Context.make(CurrentCeiling, rejectUnknown(check, options, ceiling)))
}

/**
 * A layer with a document, which `set` can change. Fails with `InvalidOption`, whose `field` is the path of the
 * problem.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (json: unknown): Layer.Layer<RetryConfig, InvalidOption> =>
  Layer.effect(RetryConfig, made(json, "RetryConfig.layer"))

/**
 * A layer with a document in a configuration value, as JSON: by default that of `RETRY_CONFIG`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  config: Config.Config<string> = Config.String("RETRY_CONFIG")
): Layer.Layer<RetryConfig, Config.ConfigError | InvalidOption> =>
  Layer.effect(RetryConfig, Effect.flatMap(config, (text) => made(jsonOf(text), "RetryConfig.layerConfig")))

/** Identifies equal documents. */
const keyOf = (json: unknown): string => {
  try {
    return JSON.stringify(json) ?? String(json)
  } catch {
    return "unreadable"
  }
}

/** Puts a later document into effect. A bad one changes nothing, and is reported. */
const follow = (service: Service, json: unknown): Effect.Effect<void> =>
  Effect.matchEffect(service.set(json), {
    onSuccess: () => Effect.logInfo("RetryConfig: a new document is in effect"),
    onFailure: ({ expected, field, message }) =>
      Effect.logWarning(`the previous document stays in effect: ${message}`).pipe(
        Effect.annotateLogs({ "retry.config.field": field, "retry.config.expected": expected })
      )
  })

/** The service of the first document, while the others are followed. */
const streamed = <E, R>(
  documents: Stream.Stream<unknown, E, R>,
  constructorName: string
): Effect.Effect<Service, E | InvalidOption, R | Scope.Scope> =>
  Effect.gen(function*() {
    const changes = documents.pipe(
      Stream.map((json) => ({ json, key: keyOf(json) })),
      Stream.changesWith((before, next) => before.key === next.key)
    )
    const [first, later] = yield* Stream.peel(changes, Sink.head())
    if (Option.isNone(first)) {
      const [value, expected] = ["a stream that ends", "a stream of at least one document"]
      return yield* new InvalidOption({ constructorName, field: "documents", value, expected })
    }
    const current = yield* made(first.value.json, constructorName)
    yield* current.follows(true).pipe(
      Effect.andThen(Stream.runForEach(later, ({ json }) => follow(current, json))),
      Effect.onExit((exit) =>
        Effect.andThen(
          current.follows(false),
          Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)
            ? Effect.void
            : Effect.logWarning("RetryConfig: documents are no longer followed", exit.cause)
        )
      ),
      Effect.forkScoped({ startImmediately: true })
    )
    return current
  })

/**
 * A layer whose document is the first of a stream, then each that follows.
 *
 * **Details**
 *
 * It is available once the first document is. A later invalid one changes nothing: it is logged as a warning, once,
 * with the path of the problem, and {@link status} has it. When the stream ends or fails, the last document stays in
 * effect; a failure is logged, and {@link status} and {@link followed} say so. Fails as the stream does before its first document, and with `InvalidOption` if that is
 * invalid.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerStream = <E, R>(
  documents: Stream.Stream<unknown, E, R>
): Layer.Layer<RetryConfig, E | InvalidOption, R> =>
  Layer.effect(RetryConfig, streamed(documents, "RetryConfig.layerStream"))

/**
 * How a file is followed.
 *
 * @category models
 * @since 0.1.0
 */
export interface FileOptions {
  /**
   * How often the file is read even if no change was seen, for file systems that report none: above 0. Default 5
   * seconds.
   */
  readonly every?: Duration.Input | undefined
}

/**
 * A layer whose document is a JSON file, and follows its changes: they take effect within 100 milliseconds.
 *
 * **Details**
 *
 * The folder is watched, so it does not matter whether an editor writes the file or replaces it. A file that is
 * invalid, or gone, changes nothing: see {@link layerStream}. At the start it must exist and be valid.
 *
 * **Example** (A document whose path is in the settings of a program)
 *
 * ```ts
 * const configLive = (path: string) => RetryConfig.layerFile(path, { every: "30 seconds" })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerFile = (
  path: string,
  options: FileOptions = {}
): Layer.Layer<RetryConfig, InvalidOption | PlatformError, FileSystem.FileSystem | Path.Path> => {
  const check = checksOf("RetryConfig.layerFile", options)
  const { everyMillis } = validOptions(check, { every: positiveDuration(5000) }, options)
  return Layer.effect(RetryConfig, streamed(documentsOf(path, Duration.millis(everyMillis)), "RetryConfig.layerFile"))
}

/**
 * Puts a document into effect; see {@link Service}. For changes that reach a process some other way, such as by a
 * request.
 *
 * @category combinators
 * @since 0.1.0
 */
export const set = (json: unknown): Effect.Effect<void, InvalidOption, RetryConfig> =>
  RetryConfig.use((service) => service.set(json))

/**
 * What happened to the documents so far.
 *
 * @category getters
 * @since 0.1.0
 */
export const status: Effect.Effect<Status, never, RetryConfig> = /* @__PURE__ */ RetryConfig.use(
  (service) => service.status
)

const livesIn = (context: AnyContext): Lives => Context.get(context as Context.Context<RetryConfig>, RetryConfig).lives

/** Says that a name is in no document. */
const saying = <A, E, R>(lives: Lives, live: LiveResource, self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  if (!lives.isNews(live)) return self
  const line = `RetryConfig: the document has neither "${live.key}" nor "default": the defaults of the library apply`
  return Effect.andThen(Effect.logWarning(line), self)
}

/** An effect that uses a resource until it ends. */
const using = <A, E, R>(name: string, f: (live: LiveResource) => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.withFiber((fiber) => {
    const lives = livesIn(fiber.context)
    const live = lives.enter(name)
    return framed(Effect.onExitPrimitive(saying(lives, live, f(live)), () => void lives.release(live)), fiber)
  })

/**
 * Retries an effect as the configuration says for a resource when the call begins: with its policy, its quota and its
 * gates.
 *
 * **Details**
 *
 * The call keeps its policy until it ends. Quota and gates are those of the resource, for all its calls: a new limit
 * applies to calls in progress too. `"retries": "off"` takes effect immediately: a call that begins is sent once, and
 * one that has failed is not retried, except for a retry that is already waiting. Observers get the name of the
 * resource.
 *
 * **Gotchas**
 *
 * Gates refuse sends with errors that no type shows, such as `ConcurrencyLimitExceeded`, `CoolingDown` and
 * `RateLimitExceeded`, since the document decides which gates there are.
 *
 * **Example** (A call with a configured policy)
 *
 * ```ts
 * const order = call.pipe(RetryConfig.retry("orders"))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const retry = (name: string) => {
  checkName("RetryConfig.retry", name)
  return <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, Exclude<R, RetryQuota> | RetryConfig> =>
    using(
      name,
      ({ version: { around, compiled } }) =>
        Effect.updateContext(retrying(self, compiled), around as (context: any) => any)
    )
}

/**
 * Hedges a send as the configuration says for a resource when it begins; if it has no hedges, or `"retries": "off"`,
 * the send is made once. Hedge only what can run twice: see `Hedge.hedged`.
 *
 * **Details**
 *
 * The document decides when the next send is made and what share of the calls may be hedged; code decides which calls
 * may be hedged at all. A send in progress keeps what it began with.
 *
 * **Example** (A read that the document may hedge)
 *
 * ```ts
 * const order = call.pipe(RetryConfig.hedged("orders"), RetryConfig.retry("orders"))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const hedged = (name: string) => {
  checkName("RetryConfig.hedged", name)
  return <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | RetryConfig> =>
    using(name, ({ hedge }) => hedge === undefined ? self : hedging(self, hedge.options, hedge.home))
}

/**
 * The policy that the configuration has for a resource when a call begins, for anything that takes a policy:
 * `Effect.retry(call, RetryConfig.live("orders"))`, `RetryHttp.layer`, `RetryStream`. The call keeps it until
 * it ends.
 *
 * **Details**
 *
 * Combinators added to it, such as `RetryPolicy.maxAttempts(2)`, are added to whatever the configuration says. As a
 * string it is the code that makes it, and `RetryPolicy.limits` shows none, since they come later.
 *
 * It includes neither quota nor gates: those are in the layer {@link resource}. {@link retry} has both.
 *
 * **Example** (The long form)
 *
 * ```ts
 * const order = Effect.retry(call, RetryConfig.live("orders")).pipe(
 *   Effect.provide(RetryConfig.resource("orders"))
 * )
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const live = (name: string): RetryPolicy<unknown, never, RetryConfig | RetryQuota> => {
  checkName("RetryConfig.live", name)
  return fromSource("RetryConfig.live", name, () => 0, {
    live: (context) => livesIn(context).peek(name).version.compiled
  })
}

/**
 * The quota and the gates of a resource, as a layer to provide calls with. They change with the configuration. It also
 * names the resource for observers: `RetryObserver.CurrentResource`.
 *
 * @category layers
 * @since 0.1.0
 */
export const resource = (name: string): Layer.Layer<RetryQuota, never, RetryConfig> => {
  checkName("RetryConfig.resource", name)
  return Layer.effectContext(
    RetryConfig.use(({ lives }) => {
      const entered = Effect.acquireRelease(
        Effect.sync(() => lives.enter(name)),
        (live) => Effect.sync(() => lives.release(live))
      )
      return Effect.flatMap(
        entered,
        (live) => saying(lives, live, Effect.succeed(live.services as Context.Context<RetryQuota>))
      )
    })
  )
}

/**
 * The policy of a name in Effect's configuration: a `ConfigProvider`, the environment by default.
 *
 * **Details**
 *
 * The short keys of a document, each a separate value: `retry.orders.maxAttempts` if the provider has a tree, such as
 * that of a JSON file; `RETRY_ORDERS_MAX_ATTEMPTS` in the environment. Or everything in `retry.orders.policy`,
 * `RETRY_ORDERS_POLICY`: the name of a policy, or its JSON. Short keys come first. A name such as `payment-api` is
 * `PAYMENT_API` in the environment.
 *
 * If there are none, the value is missing, and `Config.withDefault` applies. Fails with a `ConfigError` that names the
 * path of the problem.
 *
 * **Example** (A policy that the environment can change)
 *
 * ```ts
 * const order = Effect.gen(function*() {
 *   const policy = yield* RetryConfig.policy("orders").pipe(Config.withDefault(awsStandard))
 *   return yield* call.pipe(withRetry(policy))
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const policy = (name: string): Config.Config<Policy> => {
  checkName("RetryConfig.policy", name)
  return policyConfig(name)
}

/**
 * Checks a document without putting it into effect: for a test of the deployed file. Fails with `InvalidOption`, whose
 * `field` is the path of the problem. A document with sections in Redis is checked with a layer of `RetryConfigRedis`.
 *
 * @category guards
 * @since 0.1.0
 */
export const check = (json: unknown): Effect.Effect<void, InvalidOption> =>
  Effect.asVoid(documentIn(json, "RetryConfig.check"))
