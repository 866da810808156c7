/**
 * The retry mode of an AWS client, from the same places as the AWS SDKs: code, environment, shared files.
 *
 * {@link make} returns the policy of the configured mode and the layer it needs; {@link layer} provides all of it, as a
 * `RetryStrategy`.
 *
 * **Example** (The mode set in the environment)
 *
 * ```ts
 * const { layer, policy } = yield* AwsRetryConfig.make()
 * return yield* callDynamo.pipe(withRetry(policy), Effect.provide(layer))
 * ```
 *
 * The package's index does not export this module: import `effect-retry/aws/AwsRetryConfig`.
 *
 * **Source**: AWS SDKs and Tools Reference Guide, "Retry behavior" and "Location of the shared config and credentials
 * files".
 *
 * @since 0.1.0
 */

import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Limiter from "../gates/AdaptiveRateLimiter.ts"
import { checksOf } from "../internal/checks.ts"
import { count, optional, validOptions, word } from "../internal/options.ts"
import { short } from "../internal/tryGet.ts"
import { InvalidOption } from "../InvalidOption.ts"
import * as RetryClassifier from "../RetryClassifier.ts"
import * as RetryPolicy from "../RetryPolicy.ts"
import * as RetryQuota from "../RetryQuota.ts"
import * as Modes from "./AwsModes.ts"
import { unlessBlank, variable } from "./internal/configFiles.ts"
import * as BotocoreLegacy from "./legacy/BotocoreLegacy.ts"
import * as Operations from "./Operations.ts"
import * as ReferenceClassifier from "./ReferenceClassifier.ts"
import * as RetryStrategy from "./RetryStrategy.ts"
import * as SharedConfig from "./SharedConfig.ts"

const modes = ["legacy", "standard", "adaptive"] as const

/**
 * A retry mode of the reference.
 *
 * @category models
 * @since 0.1.0
 */
export type Mode = (typeof modes)[number]

/**
 * Settings in code. They override the environment, which overrides the profile, which overrides the default.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends SharedConfig.Options {
  /** Instead of `AWS_RETRY_MODE` and `retry_mode`. Default `"standard"`. */
  readonly mode?: Mode | undefined
  /**
   * Attempts, the first included: a whole number of at least 1, or `Infinity`. Instead of `AWS_MAX_ATTEMPTS` and
   * `max_attempts`. The default depends on the mode: see {@link make}.
   */
  readonly maxAttempts?: number | undefined
  /** Whether standard and adaptive mode are those of 2026. Instead of `AWS_NEW_RETRIES_2026`. Default `false`. */
  readonly newRetries2026?: boolean | undefined
  /** The profile. Instead of `AWS_PROFILE`; an empty string counts as not set. Default `"default"`. */
  readonly profile?: string | undefined
  /**
   * The service id or endpoint prefix: `"DynamoDB"`, `"streams.dynamodb"`, `"Route 53"`. Case and spaces are ignored.
   * Legacy mode and the 2026 retries treat some services specially: see {@link make}. Default: none.
   */
  readonly service?: string | undefined
  /** The operation, such as `"ReceiveMessage"`: the 2026 retries know long polls. Default: none. */
  readonly operation?: string | undefined
  /**
   * What a send does when adaptive mode has no token: it waits, or fails with `RateLimitExceeded`. Default `"wait"`.
   */
  readonly sendToken?: "wait" | "fail" | undefined
}

/**
 * A setting, and where it comes from.
 *
 * @category models
 * @since 0.1.0
 */
export interface Setting<A> {
  readonly value: A
  readonly source: "code" | "environment" | "profile" | "default"
  /** The option, the variable, or the line of the file; `"default"` for a default. */
  readonly at: string
}

/**
 * The result of {@link make}.
 *
 * @category models
 * @since 0.1.0
 */
export interface AwsRetryConfig {
  readonly mode: Setting<Mode>
  /** Attempts, the first included. */
  readonly maxAttempts: Setting<number>
  readonly newRetries2026: Setting<boolean>
  /** The policy of the mode. A call fails with `RateLimitExceeded` only in adaptive mode. */
  readonly policy: RetryPolicy.RetryPolicy<
    unknown,
    Limiter.RateLimitExceeded,
    RetryQuota.RetryQuota | Limiter.AdaptiveRateLimiter
  >
  /**
   * What the policy needs: a quota, a limiter, and the classifier of the mode, which is that of the reference or, in
   * legacy mode, botocore's. Outside adaptive mode the limiter never holds a send back. Each time it is built, it makes
   * its own quota and limiter: provide it once per resource.
   */
  readonly layer: Layer.Layer<RetryQuota.RetryQuota | Limiter.AdaptiveRateLimiter>
}

const readAttempts = (text: string): number | undefined => {
  const digits = text.trim()
  const attempts = Number(digits)
  return /^\d+$/.test(short(digits)) && Number.isSafeInteger(attempts) && attempts >= 1 ? attempts : undefined
}

const flags: ReadonlyMap<string, boolean> = new Map([["true", true], ["false", false]])

type Failure = SharedConfig.AwsConfigError | Config.ConfigError

/** Where a setting may be, and how its text is parsed. */
interface Place<out A> {
  readonly option: keyof Options
  readonly variable: string
  readonly property?: string
  readonly read: (text: string) => A | undefined
  readonly expected: string
}

const words = (names: Iterable<string>) => Array.from(names, (word) => `"${word}"`).join(" or ")

const modeAt: Place<Mode> = {
  option: "mode",
  variable: "AWS_RETRY_MODE",
  property: "retry_mode",
  read: (text) => modes.find((mode) => mode === text),
  expected: words(modes)
}

const newRetriesAt: Place<boolean> = {
  option: "newRetries2026",
  variable: "AWS_NEW_RETRIES_2026",
  read: (text) => flags.get(text.trim().toLowerCase()),
  expected: words(flags.keys())
}

const attemptsAt: Place<number> = {
  option: "maxAttempts",
  variable: "AWS_MAX_ATTEMPTS",
  property: "max_attempts",
  read: readAttempts,
  expected: `a whole number from 1 to ${Number.MAX_SAFE_INTEGER}`
}

/** The properties of the profile, in whichever file. */
const profileOf = Effect.fnUntraced(function*({ configFile, credentialsFile, profile }: Options) {
  const name = unlessBlank(profile) ?? (yield* variable("AWS_PROFILE")) ?? "default"
  const properties = (yield* SharedConfig.load({ configFile, credentialsFile })).profiles.get(name)
  if (properties === undefined) yield* Effect.logDebug(`no profile ${JSON.stringify(name)} in the shared AWS files`)
  return properties
})

/** The setting of a text; of a file, where any line may hold a secret, an error does not show it. */
const parsed = <A>({ expected, property, read }: Place<A>, text: string, at: string, line?: SharedConfig.Property) => {
  const value = read(text)
  if (value !== undefined) return Effect.succeed<Setting<A>>({ value, source: line ? "profile" : "environment", at })
  const problem = line === undefined ? `must be ${expected}` : `${property} must be ${expected}`
  return Effect.fail(new SharedConfig.AwsConfigError({ at, value: line === undefined ? text : undefined, problem }))
}

/** The first place that has the setting decides: those after it are not checked. */
const find = Effect.fnUntraced(function*<A>(
  place: Place<A>,
  options: Options,
  fallback: NoInfer<A>,
  profile: ReturnType<typeof profileOf>
): Effect.fn.Return<Setting<A>, Failure, FileSystem.FileSystem> {
  const { option, property } = place
  const code = options[option]
  if (code !== undefined) return { value: code as A, source: "code", at: option }
  const inEnvironment = yield* variable(place.variable)
  if (inEnvironment !== undefined) return yield* parsed(place, inEnvironment, place.variable)
  const line = property === undefined ? undefined : (yield* profile)?.get(property)
  return line === undefined || line.value === ""
    ? { value: fallback, source: "default", at: "default" }
    : yield* parsed(place, line.value, `${line.path}:${line.line}`, line)
})

/** A value of a type. */
const ofType = <A>(kind: "boolean" | "string") =>
  optional<typeof kind, A, A>({
    kind,
    read: (check, field, value) => typeof value === kind ? value! : check.reject(field, value, `a ${kind}`)
  })

const text = ofType<string>("string")

const optionRecord = {
  mode: optional(word(...modes)),
  maxAttempts: optional(count(1)),
  newRetries2026: ofType<boolean>("boolean"),
  profile: text,
  configFile: text,
  credentialsFile: text,
  service: text,
  operation: text,
  sendToken: optional(word("wait", "fail"))
}

/** The options, each read once. */
const validated = (input: Options): Effect.Effect<Options, InvalidOption> =>
  Effect.try({
    try: () => validOptions(checksOf("AwsRetryConfig.make", input), optionRecord, input),
    catch: (error) =>
      error instanceof InvalidOption ? error : new InvalidOption({
        constructorName: "AwsRetryConfig.make",
        field: "options",
        value: input,
        expected: "a readable object"
      })
  })

/** The policy of a mode, with its own attempts, and the layer of its classifier. */
const behaviorOf = (mode: Mode, is2026: boolean, { operation = "", service = "" }: Options): {
  readonly policy: RetryPolicy.RetryPolicy<unknown, never, RetryQuota.RetryQuota>
  readonly layer: Layer.Layer<never>
} =>
  mode === "legacy"
    ? BotocoreLegacy.forService(BotocoreLegacy.document, service.toLowerCase().replace(/\s/g, ""))
    : {
      policy: is2026 ? Operations.forOperation({ service, operation }) : Modes.awsStandard,
      layer: RetryClassifier.layer(ReferenceClassifier.classifier)
    }

/**
 * Reads the retry configuration, and makes the configured policy and layer.
 *
 * **Details**
 *
 * | setting | code | environment | profile | default |
 * | --- | --- | --- | --- | --- |
 * | mode | `mode` | `AWS_RETRY_MODE` | `retry_mode` | `"standard"` |
 * | attempts | `maxAttempts` | `AWS_MAX_ATTEMPTS` | `max_attempts` | that of the mode |
 * | retry behavior 2.1 | `newRetries2026` | `AWS_NEW_RETRIES_2026` | | `false` |
 * | profile | `profile` | `AWS_PROFILE` | | `"default"` |
 * | config file | `configFile` | `AWS_CONFIG_FILE` | | `~/.aws/config` |
 * | credentials file | `credentialsFile` | `AWS_SHARED_CREDENTIALS_FILE` | | `~/.aws/credentials` |
 *
 * The first place that has a setting decides. Those after it are not checked, so a bad value there does no harm, and
 * the files are read only if the environment does not set both mode and attempts. The profile has the properties of
 * both files; the credentials file wins. An empty or blank variable or property counts as not set; so does such a
 * `profile`, `configFile` or `credentialsFile`. A missing file or profile sets nothing: see `SharedConfig.load`.
 *
 * | mode | policy | attempts | attempts for DynamoDB |
 * | --- | --- | --- | --- |
 * | `legacy` | that of `BotocoreLegacy.forService` for the service, with the built-in document | 5 | 10 |
 * | `standard` | `AwsModes.standard`; with the 2026 retries that of `Operations.make` for service and operation | 3 |
 * 3, then 4 |
 * | `adaptive` | the same, with an `AdaptiveRateLimiter` that holds back every send after a throttle | 3 | 3, then 4 |
 *
 * The SDKs differ in what `legacy` means; here it means botocore's, by far the most widely used: its delays, without
 * cap and quota, and its classifier, with what it retries for this service only. It is never the default here, so the
 * 2026 retries, which make `standard` the default where it was `legacy`, change no mode.
 *
 * With the 2026 retries, DynamoDB starts from a shorter backoff, and a long poll that the quota refuses to retry is
 * held back before it fails: make one configuration for such an operation, and another for the others. One layer serves
 * both.
 *
 * A mode is one of the three words, in lowercase, as in botocore and Go. Attempts are a whole number of at least 1, in
 * decimal digits, possibly surrounded by blanks: one attempt means no retries. `AWS_NEW_RETRIES_2026` is `true` or
 * `false` in any case.
 *
 * Fails with an `AwsConfigError` that names the variable or the line, and the value; with `InvalidOption` for an
 * invalid option; with a `ConfigError` if the `ConfigProvider` fails.
 *
 * **Gotchas**
 *
 * The classifier of legacy mode ignores the facts that an error carries itself: see `BotocoreLegacy.forService`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function*(
  options: Options = {}
): Effect.fn.Return<AwsRetryConfig, Failure | InvalidOption, FileSystem.FileSystem> {
  const checked = yield* validated(options)
  const profile = yield* Effect.cached(profileOf(checked))
  const mode = yield* find(modeAt, checked, "standard", profile)
  const newRetries2026 = yield* find(newRetriesAt, checked, false, profile)
  const { layer, policy: own } = behaviorOf(mode.value, newRetries2026.value, checked)
  const maxAttempts = yield* find(attemptsAt, checked, RetryPolicy.limits(own).maxAttempts, profile)
  const policy = maxAttempts.source === "default" ? own : RetryPolicy.withMaxAttempts(own, maxAttempts.value)
  const isAdaptive = mode.value === "adaptive"
  const limiter = isAdaptive ? Limiter.layer({ onExceeded: checked.sendToken }) : Limiter.layerUnlimited
  return {
    mode,
    maxAttempts,
    newRetries2026,
    policy: isAdaptive ? RetryPolicy.requires(policy, Limiter.AdaptiveRateLimiter) : policy,
    layer: Layer.mergeAll(RetryQuota.layer(), limiter, layer)
  }
})

/**
 * A layer with everything the retry configuration requires: a `RetryStrategy` that decides like the policy of the mode,
 * and the quota, limiter and classifier of {@link make}.
 *
 * **Details**
 *
 * Calls run with `RetryStrategy.run`, or in the loop of any client that asks a strategy; no policy is passed around.
 * The configuration is read when the layer is built.
 *
 * **Example** (A program whose retry mode is configured)
 *
 * ```ts
 * const program = callDynamo.pipe(
 *   RetryStrategy.run,
 *   Effect.provide(AwsRetryConfig.layer({ service: "dynamodb" }))
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  options?: Options
): Layer.Layer<
  RetryStrategy.RetryStrategy | RetryQuota.RetryQuota | Limiter.AdaptiveRateLimiter,
  Failure | InvalidOption,
  FileSystem.FileSystem
> =>
  Layer.unwrap(
    Effect.map(make(options), (config) => Layer.provideMerge(RetryStrategy.layer(config.policy), config.layer))
  )
