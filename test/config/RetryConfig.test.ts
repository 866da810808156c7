import { assert, describe, it } from "@effect/vitest"
import * as Ajv from "ajv/dist/2020.js"
import { attempt, awsStandard, awsStandard2026, type InvalidOption, RetryPolicy, RetryQuota } from "effect-retry"
import * as RetryConfig from "effect-retry/RetryConfig"
import * as RetryConfigSchema from "effect-retry/RetryConfigSchema"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"

/** Everything that a document can say. */
const everything = {
  $schema: "./retry-config.schema.json",
  retries: "on",
  default: { policy: { maxAttempts: 2 } },
  resources: {
    orders: {
      retries: "on",
      policy: {
        base: "50 millis",
        factor: 3,
        cap: 5000,
        jitter: { proportional: 0.5 },
        maxAttempts: 4,
        deadline: "10 seconds",
        cost: 2,
        timeoutCost: 4,
        throttlingCost: 1,
        idempotent: true,
        outermostOnly: true
      },
      quota: {
        capacity: 200,
        initial: 100,
        refillPerSecond: 1,
        successIncrement: 0.5,
        firstAttemptCost: 0,
        onExceeded: "wait",
        maxWaiters: "Infinity"
      },
      limiter: {
        beta: 0.5,
        minFillRate: 1,
        minCapacity: 2,
        scaleConstant: 0.3,
        smoothing: 0.7,
        measurementBucketDuration: "250ms",
        onExceeded: "fail",
        maxWaiters: 10
      },
      concurrency: { limit: 50, onExceeded: "wait", maxWait: "1 second", maxWaiters: 5, order: "lifo" },
      coolDown: { atMost: "30 seconds", spread: 0.5, maxWait: 0, maxWaiters: 3 },
      throttle: { k: 1.5, window: "30 seconds", maxRejection: 1, counts: "sent" },
      budgets: {
        share: { share: 0.1, minPerSecond: 1, window: "5 seconds" },
        inFlight: { share: 0.5, atLeast: 1 },
        grpc: { maxTokens: 100, tokenRatio: 0.5 }
      },
      hedge: {
        after: { quantile: 0.95, warmUp: 10, atLeast: 5, first: "1 second" },
        atMost: 1,
        cost: 0.5,
        share: 0.05,
        shareWindow: "20 seconds",
        latencyWindow: 60_000
      }
    },
    reads: { hedge: { after: "200 millis" }, throttle: {}, budgets: { share: {} } },
    search: { policy: "awsStandard2026" },
    adaptive: { policy: "awsAdaptive" },
    slow: {
      concurrency: { initial: 5, minimum: 0.5, maximum: 9, increase: 1, decrease: 0.5, slowerThan: "2 seconds" }
    },
    steps: { policy: { steps: [{ fixed: { delay: "1 second" } }, { maxAttempts: 7 }, "whileRetryable"] } },
    mail: { retries: "off" },
    bare: {}
  }
}

const validate = new Ajv.Ajv2020({ strict: false }).compile(RetryConfigSchema.jsonSchema() as object)

const bad: ReadonlyArray<readonly [json: unknown, field: string, expected: string, ofForm?: false]> = [
  [undefined, "", "an object with resources"],
  [[], "", "an object with resources"],
  ["orders", "", "an object with resources"],
  [{ retry: {} }, "retry", "left out: there is no such key"],
  [{ retries: "never" }, "retries", "\"on\" or \"off\""],
  [{ retries: false }, "retries", "\"on\" or \"off\""],
  [{ resources: [] }, "resources", "an object with a key for each resource"],
  [{ resources: { orders: 3 } }, "resources.orders", "an object"],
  [{ resources: { orders: { retries: "" } } }, "resources.orders.retries", "\"on\" or \"off\""],
  [{ resources: { orders: { policies: {} } } }, "resources.orders.policies", "left out: there is no such key"],
  [{ resources: { orders: { policy: "awsStandart" } } }, "resources.orders.policy", "a policy: its steps, short keys"],
  [{ resources: { orders: { policy: "toString" } } }, "resources.orders.policy", "a policy: its steps, short keys"],
  [{ resources: { orders: { policy: { base: "50 milis" } } } }, "resources.orders.policy.base", "a finite duration"],
  [{ resources: { orders: { policy: { tries: 3 } } } }, "resources.orders.policy.tries", "left out"],
  [{ resources: { orders: { policy: { maxAttempts: 0 } } } }, "resources.orders.policy.maxAttempts", "a whole number"],
  [{ resources: { orders: { policy: { jitter: "some" } } } }, "resources.orders.policy.jitter", "\"none\""],
  [{ resources: { orders: { policy: { idempotent: 1 } } } }, "resources.orders.policy.idempotent", "true or false"],
  [{ resources: { orders: { policy: { cost: -1 } } } }, "resources.orders.policy.cost", "a finite number"],
  [
    { resources: { orders: { policy: { jitter: { proportional: 2 } } } } },
    "resources.orders.policy.jitter.proportional",
    "a number from 0 to 1"
  ],
  [
    { resources: { orders: { policy: { steps: [{ fixed: { delay: 1 } }, { maxAttempts: 0 }] } } } },
    "resources.orders.policy.steps[1].maxAttempts",
    "a whole number"
  ],
  [
    { resources: { "a b": { quota: { capacity: 0 } } } },
    "resources[\"a b\"].quota.capacity",
    "a finite number above 0"
  ],
  [{ resources: { orders: { quota: { initial: 900 } } } }, "resources.orders.quota.initial", "a number from 0", false],
  [
    { resources: { orders: { quota: { onExceeded: "wait" } } } },
    "resources.orders.quota.refillPerSecond",
    "",
    false
  ],
  [{ resources: { orders: { quota: { size: 1 } } } }, "resources.orders.quota.size", "left out"],
  [
    { resources: { orders: { policy: { cost: 10 }, quota: { capacity: 9 } } } },
    "resources.orders.quota.capacity",
    "at least 10, the cost of a retry",
    false
  ],
  [{ resources: { orders: { limiter: { beta: 2 } } } }, "resources.orders.limiter.beta", "a number above 0"],
  [{ resources: { orders: { concurrency: { limit: 0 } } } }, "resources.orders.concurrency.limit", "a whole number"],
  [{ resources: { orders: { concurrency: { maxWait: "long" } } } }, "resources.orders.concurrency.maxWait", "a finite"],
  [{ resources: { orders: { coolDown: { spread: 3 } } } }, "resources.orders.coolDown.spread", "a number from 0 to 1"],
  [{ resources: { orders: { coolDown: true } } }, "resources.orders.coolDown", "an object"],
  [{ resources: { orders: { throttle: { k: 0.5 } } } }, "resources.orders.throttle.k", "a finite number of at least 1"],
  [{ resources: { orders: { throttle: { counts: "all" } } } }, "resources.orders.throttle.counts", "\"settled\""],
  [{ resources: { orders: { throttle: { isRejection: 1 } } } }, "resources.orders.throttle.isRejection", "left out"],
  [{ resources: { orders: { budgets: { bucket: {} } } } }, "resources.orders.budgets.bucket", "left out"],
  [{ resources: { orders: { budgets: { share: 0.2 } } } }, "resources.orders.budgets.share", "an object"],
  [
    { resources: { orders: { budgets: { share: { share: 2 } } } } },
    "resources.orders.budgets.share.share",
    "a number from 0"
  ],
  [
    { resources: { orders: { budgets: { inFlight: { most: 1 } } } } },
    "resources.orders.budgets.inFlight.most",
    "left out"
  ],
  [
    { resources: { orders: { budgets: { inFlight: { atLeast: -1 } } } } },
    "resources.orders.budgets.inFlight.atLeast",
    "a whole number of at least 0"
  ],
  [
    { resources: { orders: { budgets: { grpc: { maxTokens: 1001 } } } } },
    "resources.orders.budgets.grpc.maxTokens",
    "a whole number from 1 to 1000"
  ],
  [{ resources: { orders: { hedge: { share: 0 } } } }, "resources.orders.hedge.share", "a number above 0, at most 1"],
  [
    { resources: { orders: { hedge: { atMost: 11 } } } },
    "resources.orders.hedge.atMost",
    "a whole number from 0 to 10"
  ],
  [{ resources: { orders: { hedge: { after: "long" } } } }, "resources.orders.hedge.after", "a finite duration"],
  [
    { resources: { orders: { hedge: { after: { quantile: 1 } } } } },
    "resources.orders.hedge.after.quantile",
    "",
    false
  ],
  [{ resources: { orders: { hedge: { after: { p: 0.9 } } } } }, "resources.orders.hedge.after.p", "left out"],
  [{ resources: { orders: { hedge: { budget: {} } } } }, "resources.orders.hedge.budget", "left out"],
  [{ default: { policy: { cap: 1 } } }, "default.policy.cap", "", false],
  [
    { resources: { orders: { concurrency: { limit: 5, initial: 3 } } } },
    "resources.orders.concurrency.initial",
    "left out if there is a limit",
    false
  ]
]

describe("a document", () => {
  it.effect("accepts every setting", () => RetryConfig.check(everything))

  it("is what its JSON Schema allows", () => {
    assert.isTrue(validate(everything), JSON.stringify(validate.errors))
    assert.isTrue(validate({}))
  })

  for (const [json, field, expected, ofForm] of bad) {
    it.effect(`is refused for ${field === "" ? "what it is" : field}: ${JSON.stringify(json)}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(RetryConfig.check(json))
        assert.strictEqual(error._tag, "InvalidOption")
        assert.strictEqual(error.field, field)
        assert.include(error.expected, expected)
        if (ofForm !== false && json !== undefined) {
          const durations = /durat|finite/.test(error.expected) && JSON.stringify(json).includes("\"long\"")
          assert.strictEqual(validate(json), durations || JSON.stringify(json).includes("milis"), "the schema agrees")
        }
      }))
  }

  it.prop("never throws, whatever it is", [Schema.Unknown], ([json]) => {
    const document = typeof json === "object" && json !== null ? { resources: json, default: json } : json
    const exit = Effect.runSyncExit(RetryConfig.check(document))
    assert.isTrue(Exit.isSuccess(exit) || !Exit.hasDies(exit))
  })

  it.effect("that throws when it is read is refused", () =>
    Effect.gen(function*() {
      const hostile = new Proxy({}, {
        ownKeys: () => {
          throw new Error("no")
        }
      })
      const error = yield* Effect.flip(RetryConfig.check(hostile))
      assert.strictEqual(error.expected, "JSON")
    }))
})

const policyOf = (name: string) => RetryConfig.RetryConfig.useSync(({ lives }) => lives.peek(name).version.compiled)

describe("what a document means", () => {
  it.effect("short keys are the steps that they stand for", () =>
    Effect.gen(function*() {
      const short = yield* RetryConfig.policy("orders").parse(
        ConfigProvider.fromUnknown({ retry: { orders: { base: "50 millis" } } })
      )
      assert.strictEqual(
        String(short),
        "Backoff.exponential(\"50 millis\", 2, { cap: \"20 seconds\", jitter: \"full\" }).pipe(" +
          "RetryPolicy.honorRetryAfter(), RetryPolicy.maxAttempts(3), " +
          "RetryPolicy.whileRetryable, RetryPolicy.quotaGated({ cost: 5 }))"
      )
    }))

  it.effect("a resource without an entry follows the default, with a quota of its own", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* policyOf("nobody")).maxAttempts, 2)
      const balance = (name: string) => RetryQuota.balance.pipe(Effect.provide(RetryConfig.resource(name)))
      yield* Effect.scoped(RetryQuota.reserve(7).pipe(Effect.provide(RetryConfig.resource("nobody"))))
      assert.deepStrictEqual([yield* balance("nobody"), yield* balance("else")], [493, 500])
    }).pipe(Effect.provide(RetryConfig.layer(everything))))

  it.effect("a policy that asks for a limiter has one", () =>
    Effect.gen(function*() {
      const on = yield* RetryConfig.RetryConfig.useSync(({ lives }) => lives.peek("adaptive").version.around)
      assert.isFunction(on)
      assert.isTrue((yield* policyOf("adaptive")).adaptive)
    }).pipe(Effect.provide(RetryConfig.layer(everything))))
})

/** What each row makes of the environment. */
const environments: ReadonlyArray<
  readonly [env: Record<string, string>, expected: RetryPolicy.RetryPolicy<any, any, any> | string]
> = [
  [{ RETRY_ORDERS_POLICY: "awsStandard" }, awsStandard],
  [{ RETRY_ORDERS_POLICY: "awsStandard2026" }, awsStandard2026],
  [{ RETRY_ORDERS_POLICY: JSON.stringify(awsStandard) }, awsStandard],
  [{ RETRY_ORDERS_POLICY: "{\"maxAttempts\":0}" }, "maxAttempts"],
  [{ RETRY_ORDERS_POLICY: "awsStandart" }, "JSON, or awsStandard"],
  [{ RETRY_ORDERS_MAX_ATTEMPTS: "0" }, "maxAttempts"],
  [{ RETRY_ORDERS_MAX_ATTEMPTS: "three" }, "maxAttempts"],
  [{ RETRY_ORDERS_BASE: "soon" }, "base"],
  [{ RETRY_ORDERS_IDEMPOTENT: "yes" }, "idempotent"],
  [{}, "RETRY_ORDERS_POLICY"],
  [{ RETRY_OTHERS_BASE: "1 second" }, "RETRY_ORDERS_POLICY"]
]

describe("policy of Config", () => {
  for (const [env, expected] of environments) {
    it.effect(`of ${JSON.stringify(env)}`, () =>
      Effect.gen(function*() {
        const read = RetryConfig.policy("orders").parse(ConfigProvider.fromEnv({ env }))
        if (typeof expected !== "string") return assert.strictEqual(String(yield* read), String(expected))
        const error = yield* Effect.flip(read)
        assert.strictEqual(error._tag, "ConfigError")
        assert.include(error.message, expected)
      }))
  }

  it.effect("short keys are read one by one, and each may come from elsewhere", () =>
    Effect.gen(function*() {
      const env = {
        RETRY_PAYMENT_API_MAX_ATTEMPTS: "7",
        RETRY_PAYMENT_API_BASE: "250",
        RETRY_PAYMENT_API_DEADLINE: "1m",
        RETRY_PAYMENT_API_IDEMPOTENT: "true",
        RETRY_PAYMENT_API_POLICY: "awsStandard"
      }
      const found = yield* RetryConfig.policy("payment-api").parse(ConfigProvider.fromEnv({ env }))
      assert.strictEqual(RetryPolicy.limits(found).maxAttempts, 7)
      assert.include(String(found), `Backoff.exponential("250 millis", 2, `)
      assert.include(String(found), "whileMaybeRetryable")
      const tree = ConfigProvider.fromUnknown({ retry: { "payment-api": { maxAttempts: 9 } } })
      const both = yield* RetryConfig.policy("payment-api").parse(
        ConfigProvider.orElse(tree, ConfigProvider.fromEnv({ env }))
      )
      assert.strictEqual(RetryPolicy.limits(both).maxAttempts, 9)
      assert.include(String(both), `Backoff.exponential("250 millis", 2, `)
    }))

  it.effect("is missing where nothing is set, so that a default applies; an invalid one has none", () =>
    Effect.gen(function*() {
      const withDefault = RetryConfig.policy("orders").pipe(Config.withDefault(awsStandard))
      assert.strictEqual(yield* withDefault.parse(ConfigProvider.fromEnv({ env: {} })), awsStandard)
      const wrong = ConfigProvider.fromEnv({ env: { RETRY_ORDERS_MAX_ATTEMPTS: "0" } })
      assert.include((yield* Effect.flip(withDefault.parse(wrong))).message, "maxAttempts")
    }))
})

describe("layers", () => {
  const failure = <E>(self: Effect.Effect<unknown, E>) =>
    Effect.map(Effect.flip(self), (error) => error as unknown as InvalidOption)

  it.effect("a bad document fails the layer, with its path", () =>
    Effect.gen(function*() {
      const doc = { resources: { orders: { quota: { capacity: -1 } } } }
      const error = yield* failure(Effect.provide(RetryConfig.status, RetryConfig.layer(doc)))
      assert.strictEqual(
        error.message,
        "RetryConfig.layer: resources.orders.quota.capacity must be a finite number above 0, got -1"
      )
    }))

  it.effect("the document of a configuration value", () =>
    Effect.gen(function*() {
      const provided = (value: string) =>
        Effect.provide(policyOf("orders"), RetryConfig.layerConfig()).pipe(
          Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: { RETRY_CONFIG: value } }))
        )
      assert.strictEqual((yield* provided(JSON.stringify(everything))).maxAttempts, 4)
      const error = yield* failure(provided("{\"secret\": "))
      assert.strictEqual(
        error.message,
        "RetryConfig.layerConfig: document must be JSON, got \"11 characters that are not JSON\""
      )
    }))

  for (const name of ["", 3, undefined]) {
    it(`there is no resource ${JSON.stringify(name)}`, () => {
      for (
        const  of of[RetryConfig.retry, RetryConfig.hedged, RetryConfig.live, RetryConfig.resource, RetryConfig.policy]
      ) {
        assert.throws(() => of(name as string), /name must be the name of a resource/)
      }
    })
  }

  it("a file is not read every 0 seconds", () => {
    assert.throws(() => RetryConfig.layerFile("retry.json", { every: 0 }), /every must be a finite duration above 0/)
  })

  it("a live policy prints what makes it, with what is added to it", () => {
    const policy = RetryConfig.live("orders")
    assert.strictEqual(String(policy), "RetryConfig.live(\"orders\")")
    assert.strictEqual(
      String(RetryPolicy.maxAttempts(policy, 2)),
      "RetryConfig.live(\"orders\").pipe(RetryPolicy.maxAttempts(2))"
    )
    assert.isTrue(RetryPolicy.isRetryPolicy(policy))
    assert.isFunction(attempt)
  })
})
