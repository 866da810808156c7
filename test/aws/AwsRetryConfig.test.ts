import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import {
  AdaptiveRateLimiter,
  awsStandard,
  InvalidOption,
  RetryClassifier,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as AwsRetryConfig from "effect-retry/aws/AwsRetryConfig"
import * as BotocoreLegacy from "effect-retry/aws/legacy/BotocoreLegacy"
import * as ReferenceClassifier from "effect-retry/aws/ReferenceClassifier"
import type { AwsConfigError } from "effect-retry/aws/SharedConfig"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import { runToEnd } from "effect-retry/testing"
import * as Clock from "effect/Clock"
import type * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Example from "../../examples/aws-configuration.ts"
import { filesOf } from "../utils/files.ts"
import { sdkError, withRandom } from "../utils/vectors.ts"
import { files, precedence, sends, values, type ValueVector } from "../vectors/configuration.ts"

const modes = ["legacy", "standard", "adaptive"] as const

describe("AwsRetryConfig", () => {
  describe("make", () => {
    const attempts = "must be a whole number from 1 to 9007199254740991"
    const mode = "must be \"legacy\" or \"standard\" or \"adaptive\""
    const flag = "must be \"true\" or \"false\""

    const rules = { AWS_MAX_ATTEMPTS: attempts, AWS_RETRY_MODE: mode, AWS_NEW_RETRIES_2026: flag } as const
    const fileRules = { max_attempts: attempts, retry_mode: mode } as const
    const messageOf = ({ at, setting, value }: NonNullable<ValueVector["invalid"]>) =>
      setting === undefined
        ? `${at}: ${rules[at as keyof typeof rules]}, got ${JSON.stringify(value)}`
        : `${at}: ${setting} ${fileRules[setting as keyof typeof fileRules]}`

    const loadedWith = (options: AwsRetryConfig.Options | undefined) =>
      AwsRetryConfig.make(options).pipe(
        Effect.map(({ maxAttempts, mode, newRetries2026 }) => ({
          mode: mode.value,
          maxAttempts: maxAttempts.value,
          newRetries: newRetries2026.value
        })),
        Effect.catch((error) => Effect.succeed(error.message))
      )

    it.effect.each(values)("vector: $name", ({ code, env, expected, invalid }) =>
      Effect.gen(function*() {
        assert.deepStrictEqual<unknown>(yield* loadedWith(code), expected ?? messageOf(invalid!))
      }).pipe(Effect.provide([filesOf(files).layer, environment(env)])))

    it.effect("without a setting, the policy is that of the mode", () =>
      Effect.gen(function*() {
        const { policy: standard } = yield* AwsRetryConfig.make()
        assert.isTrue(Equal.equals(standard, awsStandard), String(standard))
        const { policy: long } = yield* AwsRetryConfig.make({ maxAttempts: 5 })
        assert.strictEqual(RetryPolicy.limits(long).maxAttempts, 5)
      }).pipe(Effect.provide([filesOf({}).layer, environment({})])))

    it.effect("accepts unlimited attempts from code", () =>
      Effect.gen(function*() {
        const expected = { mode: "standard", maxAttempts: Infinity, newRetries: false }
        assert.deepStrictEqual<unknown>(yield* loadedWith({ maxAttempts: Infinity }), expected)
      }).pipe(Effect.provide([filesOf({}).layer, environment({})])))

    const refused: ReadonlyArray<
      { readonly name: string; readonly options: AwsRetryConfig.Options; readonly expected: string }
    > = [
      ...[0, -5, NaN, 1.5, 2 ** 53, "3"].map((value) => ({
        name: `code ${String(value)}`,
        options: { maxAttempts: value as number },
        expected: "AwsRetryConfig.make: maxAttempts must be a whole number of at least 1, or Infinity, got " +
          (typeof value === "string" ? JSON.stringify(value) : String(value))
      })),
      {
        name: "code bogus mode",
        options: { mode: "bogus" as "standard" },
        expected: `AwsRetryConfig.make: mode ${mode}, got "bogus"`
      },
      {
        name: "code bogus send token",
        options: { sendToken: "bogus" as "wait" },
        expected: "AwsRetryConfig.make: sendToken must be \"wait\" or \"fail\", got \"bogus\""
      },
      ...["false", "true", 0, null].map((value) => ({
        name: `code new retries ${JSON.stringify(value)}`,
        options: { newRetries2026: value as unknown as boolean },
        expected: `AwsRetryConfig.make: newRetries2026 must be a boolean, got ${JSON.stringify(value)}`
      })),
      ...(["profile", "configFile", "service", "operation"] as const).map((field) => ({
        name: `code ${field} 5`,
        options: { [field]: 5 as unknown as string },
        expected: `AwsRetryConfig.make: ${field} must be a string, got 5`
      })),
      ...[null, 5, "standard"].map((value) => ({
        name: `code ${JSON.stringify(value)} for the options`,
        options: value as AwsRetryConfig.Options,
        expected: `AwsRetryConfig.make: options must be an object, got ${JSON.stringify(value)}`
      }))
    ]
    it.effect.each(refused)("refuses $name", ({ expected, options }) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* loadedWith(options), expected)
      }).pipe(Effect.provide([filesOf({}).layer, environment({})])))

    for (
      const [name, options] of [
        ["that throw when they are read", throwing()],
        ["whose mode throws when it is read", {
          get mode(): never {
            throw new Error("do not look")
          }
        }],
        ["that are null", null]
      ] as const
    ) {
      it.effect(`options ${name} are a typed error`, () =>
        Effect.gen(function*() {
          const error = yield* Effect.flip(AwsRetryConfig.make(options as AwsRetryConfig.Options))
          assert.instanceOf(error, InvalidOption)
          assert.deepStrictEqual([error._tag === "InvalidOption" && error.field], ["options"])
        }).pipe(Effect.provide([filesOf({}).layer, environment({})])))
    }

    describe("precedence", () => {
      it.effect.each(precedence)(
        "vector: $name",
        ({ code, env, files, maxAttempts, mode, newRetries }) =>
          Effect.gen(function*() {
            const loaded = yield* AwsRetryConfig.make(code)
            assert.deepStrictEqual<unknown>(loaded.mode, mode)
            assert.deepStrictEqual<unknown>(loaded.maxAttempts, maxAttempts)
            if (newRetries !== undefined) assert.deepStrictEqual<unknown>(loaded.newRetries2026, newRetries)
          }).pipe(Effect.provide([filesOf(files).layer, environment(env)]))
      )

      for (
        const [name, env, options, expected] of [
          ["not at all when code decides", { AWS_CONFIG_FILE: "/config" }, { mode: "legacy", maxAttempts: 2 }, 0],
          [
            "not at all when the environment decides",
            { AWS_CONFIG_FILE: "/config", AWS_RETRY_MODE: "legacy", AWS_MAX_ATTEMPTS: "2" },
            {},
            0
          ],
          ["once for one setting", { AWS_CONFIG_FILE: "/config", AWS_RETRY_MODE: "legacy" }, {}, 1],
          ["once for two settings", { AWS_CONFIG_FILE: "/config" }, {}, 1]
        ] as const
      ) {
        it.effect(`reads the file ${name}`, () => {
          const { layer, reads } = filesOf({ "/config": "[default]" })
          return Effect.gen(function*() {
            yield* AwsRetryConfig.make(options)
            assert.strictEqual(reads.length, expected)
          }).pipe(Effect.provide([layer, environment(env)]))
        })
      }

      const Place = Schema.UndefinedOr(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 99 })))
      it.effect.prop(
        "law: the first place that has attempts decides, for any mode",
        [Place, Place, Place, Schema.Literals(modes)],
        ([code, env, profile, mode]) =>
          Effect.gen(function*() {
            const { maxAttempts } = yield* AwsRetryConfig.make({ mode, maxAttempts: code })
            assert.strictEqual(maxAttempts.value, code ?? env ?? profile ?? (mode === "legacy" ? 5 : 3))
          }).pipe(Effect.provide([
            filesOf({ "/config": `[default]\nmax_attempts =${profile ?? ""}` }).layer,
            environment({ AWS_CONFIG_FILE: "/config", AWS_MAX_ATTEMPTS: String(env ?? "") })
          ]))
      )

      it.effect.prop(
        "law: a text is a number of attempts, or a typed error with that text",
        [Schema.String],
        ([text]) =>
          Effect.gen(function*() {
            const result = yield* AwsRetryConfig.make().pipe(
              Effect.map(({ maxAttempts }) => maxAttempts.value),
              Effect.catchTag("AwsConfigError", ({ value }) => Effect.succeed(value))
            )
            assert.isTrue(
              result === text || (text.trim() === "" ? result === 3 : result === Number(text) && Number(result) >= 1)
            )
          }).pipe(Effect.provide([filesOf({}).layer, environment({ AWS_MAX_ATTEMPTS: text })]))
      )
    })

    describe("the file", () => {
      for (
        const [name, text, expected] of [
          [
            "a malformed line",
            "[default]\nmax_attempts = 7\n[profile x",
            "/config:3: expected a ']' that ends the section header"
          ],
          [
            "a nested block named like a setting",
            "[default]\nmax_attempts =\n  x = 1",
            `/config:2: max_attempts ${attempts}`
          ],
          ["a continued value", "[default]\nmax_attempts = 1\n  2", `/config:2: max_attempts ${attempts}`],
          [
            "a later bad value",
            "[default]\nmax_attempts = 1\nMAX_ATTEMPTS = 1e3",
            `/config:3: max_attempts ${attempts}`
          ]
        ] as const
      ) {
        it.effect(`fails at ${name}`, () =>
          Effect.gen(function*() {
            assert.strictEqual((yield* Effect.flip(AwsRetryConfig.make({ configFile: "/config" }))).message, expected)
          }).pipe(Effect.provide([filesOf({ "/config": text }).layer, environment({})])))
      }

      it.effect("logs a missing profile at Debug", () => {
        const lines: Array<unknown> = []
        const logger = Logger.make(({ logLevel, message }) => void lines.push(`${logLevel}: ${String(message)}`))
        return Effect.gen(function*() {
          yield* AwsRetryConfig.make({ profile: "nope", configFile: "/config", credentialsFile: "/credentials" })
          assert.deepStrictEqual(lines, ["Debug: no profile \"nope\" in the shared AWS files"])
        }).pipe(
          Effect.provide([
            filesOf({ "/config": "[default]", "/credentials": "" }).layer,
            environment({}),
            Logger.layer([logger])
          ]),
          Effect.provideService(References.MinimumLogLevel, "Debug")
        )
      })

      it.effect("is read from a disk", () =>
        Effect.gen(function*() {
          const files = yield* FileSystem.FileSystem
          const configFile = `${yield* files.makeTempDirectoryScoped()}/config`
          yield* files.writeFileString(configFile, "[profile ops]\nretry_mode = adaptive\nmax_attempts = 6\n")
          const { maxAttempts, mode } = yield* AwsRetryConfig.make({ configFile, profile: "ops" })
          assert.deepStrictEqual(mode, { value: "adaptive", source: "profile", at: `${configFile}:2` })
          assert.deepStrictEqual(maxAttempts, { value: 6, source: "profile", at: `${configFile}:3` })
        }).pipe(Effect.scoped, Effect.provide([NodeFileSystem.layer, environment({})])))
    })

    it("fails with three typed errors, and needs a file system", () => {
      expectTypeOf(AwsRetryConfig.make()).toEqualTypeOf<
        Effect.Effect<
          AwsRetryConfig.AwsRetryConfig,
          AwsConfigError | Config.ConfigError | InvalidOption,
          FileSystem.FileSystem
        >
      >()
    })
  })

  describe("policy and layer", () => {
    const unavailable = sdkError({ status: 503 })
    const throttled = sdkError({ status: 400, code: "ThrottlingException" })

    it.effect.each(sends)(
      "vector: $name sends at $sendsAtMs ms",
      ({ code, error: wire, quotaAfter, random, sendsAtMs }) =>
        Effect.gen(function*() {
          const error = sdkError(wire)
          const times: Array<number> = []
          const { layer, policy } = yield* AwsRetryConfig.make(code)
          const [exit, left] = yield* runToEnd(
            Effect.gen(function*() {
              return [yield* Effect.exit(withRetry(failing(error, times), policy)), yield* RetryQuota.balance] as const
            }).pipe(Effect.provide(layer))
          )
          assert.deepStrictEqual(exit, Exit.fail(error))
          assert.deepStrictEqual<ReadonlyArray<number>>(times, sendsAtMs)
          assert.strictEqual(left, quotaAfter)
        }).pipe(withRandom(random), Effect.provide([filesOf({}).layer, environment({})]))
    )

    for (const mode of modes) {
      for (const newRetries2026 of [false, true]) {
        it.effect(`sends once with one attempt: ${mode}, 2026: ${newRetries2026}`, () =>
          Effect.gen(function*() {
            const times: Array<number> = []
            const { layer, policy } = yield* AwsRetryConfig.make({ mode, newRetries2026 })
            const exit = yield* runToEnd(
              Effect.exit(withRetry(failing(throttled, times), policy)).pipe(Effect.provide(layer))
            )
            assert.deepStrictEqual(exit, Exit.fail(throttled))
            assert.deepStrictEqual(times, [0])
          }).pipe(Effect.provide([filesOf({}).layer, environment({ AWS_MAX_ATTEMPTS: "1" })])))
      }
    }

    for (const mode of modes) {
      it.effect(`after a throttle, ${mode} mode ${mode === "adaptive" ? "holds the next send back" : "holds nothing back"}`, () =>
        Effect.gen(function*() {
          const { layer, policy } = yield* AwsRetryConfig.make({ mode, maxAttempts: 1 })
          const program = Effect.gen(function*() {
            const times: Array<number> = []
            yield* Effect.ignore(withRetry(failing(throttled, times), policy))
            yield* Effect.ignore(withRetry(failing(throttled, times), policy))
            yield* AdaptiveRateLimiter.update(true)
            yield* Effect.ignore(AdaptiveRateLimiter.acquire)
            return { times, at: yield* Clock.currentTimeMillis, enabled: (yield* AdaptiveRateLimiter.state).enabled }
          })
          const { at, enabled, times } = yield* runToEnd(program.pipe(Effect.provide(layer)))
          assert.strictEqual(enabled, mode === "adaptive")
          if (mode === "adaptive") {
            assert.deepStrictEqual(times, [0, 2000])
          } else {
            assert.deepStrictEqual(times, [0, 0])
            assert.strictEqual(at, 0)
          }
        }).pipe(Effect.provide([filesOf({}).layer, environment({})])))
    }

    for (const mode of modes) {
      it.effect(`${mode} mode ${mode === "adaptive" ? "fails" : "sends"} when there is no send token and waiting is off`, () =>
        Effect.gen(function*() {
          const { layer, policy } = yield* AwsRetryConfig.make({ mode, maxAttempts: 1, sendToken: "fail" })
          const program = Effect.gen(function*() {
            const times: Array<number> = []
            yield* Effect.ignore(withRetry(failing(throttled, times), policy))
            const error = yield* Effect.flip(withRetry(failing(throttled, times), policy))
            return { times, refused: "_tag" in error && error._tag === "RateLimitExceeded" }
          })
          const { refused, times } = yield* runToEnd(program.pipe(Effect.provide(layer)))
          assert.strictEqual(refused, mode === "adaptive")
          assert.deepStrictEqual(times, mode === "adaptive" ? [0] : [0, 0])
        }).pipe(Effect.provide([filesOf({}).layer, environment({})])))
    }

    describe("legacy", () => {
      const services = [
        undefined,
        "dynamodb",
        "DynamoDB",
        "Route 53",
        "route53",
        "organizations",
        "sqs",
        "kinesis",
        "ec2"
      ]
      const errors = [
        sdkError({ status: 400, code: "LimitExceededException" }),
        sdkError({ status: 400, code: "SlowDown" }),
        sdkError({ status: 400, code: "TransactionInProgressException" }),
        sdkError({ status: 400, code: "PriorRequestNotComplete" }),
        sdkError({ status: 400, code: "ThrottlingException" }),
        sdkError({ status: 403, code: "Throttling" }),
        sdkError({ status: 403, code: "RequestThrottled" }),
        sdkError({ status: 408 }),
        sdkError({ status: 429 }),
        sdkError({ status: 503, code: "RequestLimitExceeded" }),
        sdkError({ status: 509 }),
        { code: "ECONNRESET" },
        { name: "ThrottlingException" },
        new RangeError("no such value")
      ]

      for (const service of services) {
        it.effect(`sends when botocore does, for ${service ?? "no service"}`, () =>
          Effect.gen(function*() {
            const prefix = (service ?? "").toLowerCase().replace(" ", "")
            for (const maxAttempts of [undefined, 3]) {
              const loaded = yield* AwsRetryConfig.make({ mode: "legacy", service, maxAttempts })
              const own = BotocoreLegacy.forService(BotocoreLegacy.document, prefix, { maxAttempts })
              for (const error of errors) {
                const times: Array<number> = []
                const exit = yield* travelFar(
                  Effect.exit(withRetry(failing(error, times), loaded.policy)).pipe(Effect.provide(loaded.layer))
                )
                assert.deepStrictEqual(exit, Exit.fail(error))
                const expected: Array<number> = []
                yield* travelFar(
                  Effect.exit(withRetry(failing(error, expected), own.policy)).pipe(Effect.provide(own.layer))
                )
                const since = (all: ReadonlyArray<number>) => all.map((time) => time - all[0]!)
                assert.deepStrictEqual(since(times), since(expected), JSON.stringify(error))
              }
            }
          }).pipe(withRandom(0.5), Effect.provide([filesOf({}).layer, environment({})])))
      }

      for (
        const [service, error, sends] of [
          [undefined, sdkError({ status: 400, code: "LimitExceededException" }), 1],
          [undefined, sdkError({ status: 400, code: "SlowDown" }), 1],
          [undefined, sdkError({ status: 408 }), 1],
          [undefined, sdkError({ status: 400, code: "TransactionInProgressException" }), 1],
          [undefined, sdkError({ status: 403, code: "Throttling" }), 1],
          ["kinesis", sdkError({ status: 400, code: "LimitExceededException" }), 5],
          ["dynamodb", sdkError({ status: 400, code: "TransactionInProgressException" }), 10],
          ["Route 53", sdkError({ status: 400, code: "PriorRequestNotComplete" }), 5],
          ["organizations", sdkError({ status: 429 }), 1]
        ] as const
      ) {
        const { $metadata: { httpStatusCode }, name } = error
        it.effect(`vector: ${service ?? "no service"} sends ${sends} times for ${httpStatusCode} ${name}`, () =>
          Effect.gen(function*() {
            const times: Array<number> = []
            const { layer, policy } = yield* AwsRetryConfig.make({ service })
            yield* travelFar(Effect.exit(withRetry(failing(error, times), policy)).pipe(Effect.provide(layer)))
            assert.strictEqual(times.length, sends)
          }).pipe(withRandom(0.5), Effect.provide([filesOf({}).layer, environment({ AWS_RETRY_MODE: "legacy" })])))
      }
    })

    for (
      const [name, env, options, held] of [
        ["a long poll", {}, { service: "sqs", operation: "ReceiveMessage" }, 25],
        ["a long poll with attempts", { AWS_MAX_ATTEMPTS: "5" }, { service: "SQS", operation: "receive_message" }, 25],
        ["a long poll, adaptive", { AWS_RETRY_MODE: "adaptive" }, { service: "sqs", operation: "ReceiveMessage" }, 25],
        ["a long poll by its last attempt", { AWS_MAX_ATTEMPTS: "1" }, {
          service: "sqs",
          operation: "ReceiveMessage"
        }, 0],
        ["a long poll of 2.0", { AWS_NEW_RETRIES_2026: "false" }, { service: "sqs", operation: "ReceiveMessage" }, 0],
        ["another operation", {}, { service: "sqs", operation: "SendMessage" }, 0],
        ["no operation", {}, { service: "sqs" }, 0],
        ["an operation of no service", {}, { operation: "ReceiveMessage" }, 0]
      ] as const
    ) {
      it.effect(`${name} is held back for ${held} ms when the quota refuses`, () =>
        Effect.gen(function*() {
          const { layer, policy } = yield* AwsRetryConfig.make(options)
          const times: Array<number> = []
          const program = Effect.gen(function*() {
            yield* RetryQuota.reserve(500)
            const exit = yield* Effect.exit(withRetry(failing(unavailable, times), policy))
            return [exit, yield* Clock.currentTimeMillis] as const
          })
          const [exit, ended] = yield* runToEnd(program.pipe(Effect.provide(layer)))
          assert.deepStrictEqual(exit, Exit.fail(unavailable))
          assert.deepStrictEqual([times, ended], [[0], held])
        }).pipe(
          withRandom(0.5),
          Effect.provide([filesOf({}).layer, environment({ AWS_NEW_RETRIES_2026: "true", ...env })])
        ))
    }

    it.effect("provides the classifier of the reference", () =>
      Effect.gen(function*() {
        const { layer } = yield* AwsRetryConfig.make()
        const classifier = yield* RetryClassifier.CurrentClassifier.pipe(Effect.provide(layer))
        assert.strictEqual(classifier, ReferenceClassifier.classifier)
        assert.isTrue(Option.isSome(classifier(sdkError({ status: 408 }))))
      }).pipe(Effect.provide([filesOf({}).layer, environment({})])))

    it.effect("the layer of another load has its own quota", () =>
      Effect.gen(function*() {
        const [one, two] = yield* Effect.all([AwsRetryConfig.make(), AwsRetryConfig.make()])
        const spend = Effect.andThen(RetryQuota.reserve(500), RetryQuota.balance)
        assert.strictEqual(yield* spend.pipe(Effect.provide(one.layer)), 0)
        assert.strictEqual(yield* RetryQuota.balance.pipe(Effect.provide(two.layer)), 500)
      }).pipe(Effect.provide([filesOf({}).layer, environment({})])))

    describe("as one layer", () => {
      for (const mode of modes) {
        for (const error of [throttled, unavailable, sdkError({ status: 403 })]) {
          it.effect(`decides in ${mode} mode as the policy of the mode, for ${error.name} ${error.$metadata.httpStatusCode}`, () =>
            Effect.gen(function*() {
              const timed = <E, R>(run: (call: ReturnType<typeof failing>) => Effect.Effect<unknown, E, R>) =>
                Effect.gen(function*() {
                  const times: Array<number> = []
                  const start = yield* Clock.currentTimeMillis
                  // The second call comes after a throttle.
                  yield* Effect.exit(run(failing(error, times)))
                  yield* Effect.exit(run(failing(error, times)))
                  return { sends: times.map((time) => time - start), balance: yield* RetryQuota.balance }
                })
              const { layer, policy } = yield* AwsRetryConfig.make()
              const expected = yield* runToEnd(timed((call) => withRetry(call, policy)).pipe(Effect.provide(layer)))
              const given = yield* runToEnd(
                timed((call) => RetryStrategy.run(call)).pipe(Effect.provide(AwsRetryConfig.layer()))
              )
              assert.deepStrictEqual(given, expected)
            }).pipe(withRandom(0.5), Effect.provide([filesOf({}).layer, environment({ AWS_RETRY_MODE: mode })])))
        }
      }

      it.effect("fails with the errors of make", () =>
        Effect.gen(function*() {
          const failed = yield* Effect.flip(Layer.build(AwsRetryConfig.layer()))
          assert.strictEqual(failed._tag, "AwsConfigError")
          const refused = yield* Effect.flip(Layer.build(AwsRetryConfig.layer({ maxAttempts: 0 })))
          assert.instanceOf(refused, InvalidOption)
        }).pipe(Effect.scoped, Effect.provide([filesOf({}).layer, environment({ AWS_MAX_ATTEMPTS: "0" })])))
    })
  })

  describe("the example aws-configuration", () => {
    const busy = sdkError({ status: 400, code: "ProvisionedThroughputExceededException" })

    const sendsOf = (env: Record<string, string>, text: string) =>
      Effect.gen(function*() {
        const times: Array<number> = []
        const lines: Array<unknown> = []
        const logger = Logger.make(({ message }) => void lines.push(String(message)))
        const table = Layer.succeed(Example.Table, { get: () => failing(busy, times) })
        const program = Example.Orders.use((orders) => orders.get("1")).pipe(
          Effect.provide(Example.Orders.layer.pipe(Layer.provide(table))),
          Effect.provide([
            filesOf({ "/h/.aws/config": text }).layer,
            environment({ HOME: "/h", ...env }),
            Logger.layer([logger])
          ]),
          Effect.flip
        )
        const error = yield* runToEnd(program)
        return { error, lines, times }
      }).pipe(withRandom(0.5))

    it.effect("retries as the profile says", () =>
      Effect.gen(function*() {
        const { error, lines, times } = yield* sendsOf({ AWS_PROFILE: "batch" }, "[profile batch]\nmax_attempts = 2\n")
        assert.strictEqual(error, busy)
        assert.deepStrictEqual(lines, ["retries: standard (default), 2 attempts (/h/.aws/config:2)"])
        assert.deepStrictEqual(times, [0, 500])
      }))

    it.effect("retries as the environment says, and fails fast in adaptive mode", () =>
      Effect.gen(function*() {
        const { error, lines, times } = yield* sendsOf({ AWS_RETRY_MODE: "adaptive" }, "")
        assert.strictEqual(error, busy)
        assert.deepStrictEqual(lines, ["retries: adaptive (AWS_RETRY_MODE), 3 attempts (default)"])
        assert.deepStrictEqual(times, [0])
      }))

    it.effect("retries as botocore does in legacy mode", () =>
      Effect.gen(function*() {
        const { error, lines, times } = yield* sendsOf({ AWS_RETRY_MODE: "legacy", AWS_MAX_ATTEMPTS: "3" }, "")
        assert.strictEqual(error, busy)
        assert.deepStrictEqual(lines, ["retries: legacy (AWS_RETRY_MODE), 3 attempts (AWS_MAX_ATTEMPTS)"])
        assert.deepStrictEqual(times, [0, 50, 150])
      }))

    it.effect("keeps a quota for each table, in the configured mode, and requires none from its callers", () =>
      Effect.gen(function*() {
        const times: Array<number> = []
        const table = Layer.succeed(Example.Table, {
          get: (key: string) => key.startsWith("orders/") ? failing(busy, times) : Effect.succeed(key)
        })
        const services = yield* Layer.build(Example.Tables.layer.pipe(Layer.provide(table)))
        const tables = Context.get(services, Example.Tables)
        const get = (name: string): Effect.Effect<string, unknown> => tables.get(name, "1")
        // Each call to a table that is down takes 2 * 5 of its 500: the 51st has nothing left to retry with.
        for (let call = 0; call < 50; call++) yield* Effect.flip(runToEnd(get("orders")))
        const before = times.length
        assert.strictEqual(before, 150)
        yield* Effect.flip(runToEnd(get("orders")))
        assert.strictEqual(times.length - before, 1)
        // Another table has all of its tokens.
        assert.strictEqual(yield* runToEnd(get("customers")), "customers/1")
      }).pipe(
        withRandom(0),
        Effect.scoped,
        Effect.provide([filesOf({}).layer, environment({ AWS_RETRY_MODE: "standard" })])
      ))

    it.effect("says where a bad value is", () =>
      Effect.gen(function*() {
        const { error } = yield* sendsOf({}, "[default]\nretry_mode = fast\n")
        assert.include(String((error as Error).message), "/h/.aws/config:2: retry_mode must be")
      }))
  })
})

const environment = (env: Readonly<Record<string, string>>): Layer.Layer<never> =>
  ConfigProvider.layer(ConfigProvider.fromEnv({ env: { ...env }, preserveEmptyStrings: true }))

const throwing = () =>
  new Proxy({}, {
    get: () => {
      throw new Error("do not look")
    }
  })

/** A call that always fails, and notes when. */
const failing = <E>(error: E, times: Array<number>): Effect.Effect<never, E> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => {
    times.push(now)
    return Effect.fail(error)
  })

/** Runs a program to its end, a day later. */
const travelFar = <A, E, R>(program: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(program, { startImmediately: true })
    yield* TestClock.adjust("1 day")
    return yield* Fiber.join(fiber)
  })
