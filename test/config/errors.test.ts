/** A Schema of each error that a public module exports, and what of it crosses a process. */
import { assert, describe, it } from "@effect/vitest"
import { InvalidOption, RetryDecision, RetryInfo, RetryQuota } from "effect-retry"
import * as AdaptiveRateLimiter from "effect-retry/AdaptiveRateLimiter"
import * as BotocoreLegacy from "effect-retry/aws/legacy/BotocoreLegacy"
import * as SharedConfig from "effect-retry/aws/SharedConfig"
import * as AwsSdk from "effect-retry/AwsSdk"
import * as Chaos from "effect-retry/Chaos"
import * as CircuitBreakerGate from "effect-retry/CircuitBreakerGate"
import * as ClientThrottle from "effect-retry/ClientThrottle"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import * as RetryPropagation from "effect-retry/RetryPropagation"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as Schemas from "effect-retry/schemas"
import * as TokenLimiter from "effect-retry/TokenLimiter"
import * as Waiter from "effect-retry/Waiter"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Exit from "effect/Exit"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Rpc from "effect/rpc/Rpc"
import * as Schema from "effect/Schema"
import { importOf, publicModules } from "../utils/modules.ts"
import { renderings } from "../utils/told.ts"

const { seconds } = Duration
const open = new CircuitBreaker.CircuitOpen({ key: "orders", retryAfter: seconds(3) })
const lost = new CircuitBreaker.CircuitBreakerStoreError({ message: "lost" })
const byKey = { WaiterFailed: [Schema.String, Schema.Finite], WaiterTimedOut: [Schema.String, Schema.Finite] } as const
const stopOf = (info: RetryInfo.RetryInfo | undefined, reason: RetryDecision.StopReason) =>
  new RetryDecision.Stop({ attempt: 3, info, gate: info && "ConcurrencyLimiter" }, reason, 250)

/** Errors of each class, with values at their limits. */
const samples: { readonly [Name in keyof typeof Schemas]: ReadonlyArray<Error> } = {
  AwsConfigError: [
    new SharedConfig.AwsConfigError({ at: "/home/me/.aws/config:7", value: undefined, problem: "no" }),
    new SharedConfig.AwsConfigError({ at: "AWS_MAX_ATTEMPTS", value: "x", problem: "no" }),
    new SharedConfig.AwsConfigError({ at: "/home/me/.aws/config", value: 1e9, problem: "too large" })
  ],
  BotocoreLegacyError: [
    new BotocoreLegacy.BotocoreLegacyError({ path: ["retry", 0, "delay"], value: -1, problem: "no" }),
    new BotocoreLegacy.BotocoreLegacyError({ path: [], value: undefined, problem: "Missing key" })
  ],
  ChaosFailure: [new Chaos.ChaosFailure({ name: "orders", send: 1 })],
  ChecksumError: [new BotocoreLegacy.ChecksumError({ header: "x-crc32", expected: 0, actual: 2 ** 32 - 1 })],
  CircuitRefused: [
    new CircuitBreakerGate.CircuitRefused({
      key: "orders",
      reason: "CircuitOpen",
      retryAfter: seconds(3),
      cause: new CircuitBreaker.CircuitBreakerError({ reason: open })
    }),
    new CircuitBreakerGate.CircuitRefused({
      key: "orders",
      reason: "CircuitHalfOpen",
      retryAfter: undefined,
      cause: new CircuitBreaker.CircuitBreakerError({ reason: new CircuitBreaker.CircuitHalfOpen({ key: "orders" }) })
    }),
    new CircuitBreakerGate.CircuitRefused({
      key: "orders",
      reason: "CircuitBreakerStoreError",
      retryAfter: undefined,
      cause: new CircuitBreaker.CircuitBreakerError({ reason: lost })
    })
  ],
  ClientThrottled: [new ClientThrottle.ClientThrottled({ rejection: 0.1 + 0.2 })],
  ConcurrencyLimitExceeded: [
    new ConcurrencyLimiter.ConcurrencyLimitExceeded({ reason: "full", limit: 0.5 }),
    new ConcurrencyLimiter.ConcurrencyLimitExceeded({ reason: "queue-full", limit: Infinity })
  ],
  CoolingDown: [
    new CoolDown.CoolingDown({ reason: "closed", retryAfter: Duration.nanos(1n) }),
    new CoolDown.CoolingDown({ reason: "queue-full", retryAfter: Duration.zero })
  ],
  DeadlineExceeded: [new RetryPropagation.DeadlineExceeded({ after: Duration.millis(1.5) })],
  InvalidOption: ["", "x", 0, -1.5, NaN, Infinity, true, null, undefined].map((value) =>
    new InvalidOption({ constructorName: "RetryQuota.make", field: "capacity", value, expected: "a number" })
  ),
  InvalidToken: [
    new RetryStrategy.InvalidToken({ reason: "foreign" }),
    new RetryStrategy.InvalidToken({ reason: "used" })
  ],
  QuotaExhausted: [new RetryQuota.QuotaExhausted({ cost: 5, balance: 4.999 })],
  RateLimitExceeded: [
    new AdaptiveRateLimiter.RateLimitExceeded({ reason: "no-token", retryAfter: seconds(2) }),
    new AdaptiveRateLimiter.RateLimitExceeded({ reason: "queue-full", retryAfter: Duration.infinity })
  ],
  RetryRefused: [
    new RetryStrategy.RetryRefused({ stop: stopOf(RetryInfo.throttled("3 seconds"), "max-attempts") }),
    new RetryStrategy.RetryRefused({ stop: stopOf(RetryInfo.vetoed, "vetoed") }),
    new RetryStrategy.RetryRefused({ stop: stopOf(RetryInfo.timedOut, "not-safe") }),
    new RetryStrategy.RetryRefused({ stop: stopOf(undefined, "unknown-error") })
  ],
  StreamUsed: [new AwsSdk.StreamUsed({ command: "PutObjectCommand" })],
  TokenLimitExceeded: [
    new TokenLimiter.TokenLimitExceeded({ reason: "exceeded", retryAfter: seconds(60) }),
    new TokenLimiter.TokenLimitExceeded({ reason: "queue-full", retryAfter: seconds(60) })
  ],
  WaiterFailed: [
    new Waiter.WaiterFailed({
      matched: true,
      reason: "no space",
      attempts: 2,
      elapsed: seconds(7),
      outcome: Result.succeed("creating")
    }),
    new Waiter.WaiterFailed({
      matched: false,
      reason: undefined,
      attempts: 1,
      elapsed: Duration.zero,
      outcome: Result.fail(404)
    })
  ],
  WaiterTimedOut: [
    new Waiter.WaiterTimedOut({
      reason: "time",
      maxWait: seconds(9),
      attempts: 2,
      elapsed: seconds(9),
      last: Result.fail(503)
    }),
    new Waiter.WaiterTimedOut({
      reason: "delays",
      maxWait: seconds(9),
      attempts: 0,
      elapsed: seconds(1),
      last: undefined
    })
  ]
}

type Any = Schemas.ErrorSchema<Error>

const schemaOf = (name: string): Any => {
  const schema: any = new Map(Object.entries(Schemas)).get(name)
  const parts = byKey[name as keyof typeof byKey]
  return parts === undefined ? schema : schema(...parts)
}

/** All that an error has: own fields, and what its class reads from them. */
const fieldsOf = (error: any): Readonly<Record<string, unknown>> => {
  const names = [
    ...Object.keys(error),
    ...Object.entries(Object.getOwnPropertyDescriptors(Object.getPrototypeOf(error)))
      .flatMap(([name, { get }]) => get === undefined ? [] : name)
  ]
  return Object.fromEntries(names.map((name) => [name, error[name]]))
}

/** Through text, as between processes. */
const crossed = (schema: Any, error: Error): Error =>
  Schema.decodeUnknownSync(schema)(JSON.parse(JSON.stringify(Schema.encodeSync(schema)(error))))

/** Each class of errors that a public module of the package exports. The kit's never leave a test. */
const exported = async (): Promise<ReadonlyMap<unknown, string>> => {
  const modules = publicModules.filter(({ name }) => /^effect-retry\/(?!testing|schemas)/.test(name))
  const found = await Promise.all(modules.map(async ({ source }) => Object.entries(await importOf(source))))
  return new Map(
    found.flat().filter(([, value]) => typeof value === "function" && value.prototype instanceof Error)
      .map(([name, value]) => [value, name])
  )
}

describe("the Schemas of errors", () => {
  it("are there for each error that a public module exports, and for nothing else", async () => {
    const classes = await exported()
    const plain = [...classes].flatMap(([value, name]) => Schema.isSchema(value) ? [] : name)
    assert.deepStrictEqual([...plain].sort(), Object.keys(Schemas).sort())
    assert.deepStrictEqual(
      [...classes].flatMap(([value, name]) => Schema.isSchema(value) ? name : []).sort(),
      ["NotSent", "RpcDeadlineExceeded", "RpcOverloaded"]
    )
    for (const [name, errors] of Object.entries(samples)) {
      for (const error of errors) assert.strictEqual(classes.get(error.constructor), name)
    }
  })

  for (const [name, errors] of Object.entries(samples)) {
    it(`${name} crosses as JSON with all of its fields`, () => {
      const schema = schemaOf(name)
      for (const error of errors) {
        const arrived = crossed(schema, error)
        assert.strictEqual(arrived.constructor, error.constructor)
        assert.instanceOf(arrived, Error)
        assert.deepStrictEqual(fieldsOf(arrived), fieldsOf(error))
        assert.strictEqual(arrived.message, error.message)
        assert.strictEqual((arrived as { _tag?: string })._tag, name)
        assert.deepStrictEqual(RetryInfo.fromError(arrived), RetryInfo.fromError(error))
        assert.isTrue(Schema.is(schema)(error))
      }
    })

    it(`${name} is refused with the name of the field that is wrong or missing`, () => {
      const schema = schemaOf(name)
      const json = Schema.encodeSync(schema)(errors[0]!) as Record<string, Schema.Json>
      assert.strictEqual(json["_tag"], name)
      const decode = Schema.decodeUnknownExit(schema)
      const refusal = (wrong: unknown): string => {
        const exit = decode(wrong)
        return Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "decoded"
      }
      for (const field of Object.keys(json)) {
        assert.include(refusal({ ...json, [field]: [[]] }), `["${field}"]`, field)
        const { [field]: _, ...rest } = json
        assert.include(refusal(rest), `["${field}"]`, field)
      }
      for (const wrong of [null, "x", 1, [], {}, { ...json, _tag: "Other" }]) {
        assert.notStrictEqual(refusal(wrong), "decoded")
      }
    })
  }

  it("carry the errors of a procedure of Effect's RPC", () => {
    const error = Schema.Union([
      Schemas.RateLimitExceeded,
      Schemas.CircuitRefused,
      Schemas.WaiterFailed(Schema.String, Schema.Finite)
    ])
    const procedure = Rpc.make("Order", { success: Schema.String, error })
    const codec: Schema.Codec<Exit.Exit<unknown, unknown>, Schema.Json> = Schema.toCodecJson(
      Rpc.exitSchema(procedure)
    ) as any
    for (const name of ["RateLimitExceeded", "CircuitRefused", "WaiterFailed"] as const) {
      for (const error of samples[name]) {
        const json = JSON.stringify(Schema.encodeSync(codec)(Exit.fail(error)))
        const exit = Schema.decodeUnknownSync(codec)(JSON.parse(json))
        const arrived = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
        assert.strictEqual(arrived?.constructor, error.constructor)
        assert.deepStrictEqual(fieldsOf(arrived), fieldsOf(error))
      }
    }
  })

  it("show of a value no more than the message", () => {
    const secret = "s3cr3t-planted"
    const values = [
      { password: secret },
      [secret],
      Redacted.make(secret),
      () => secret,
      Symbol("s"),
      5n,
      Duration.seconds(5),
      new Map([[secret, secret]])
    ]
    for (const value of values) {
      const error = new InvalidOption({
        constructorName: "RetryQuota.make",
        field: "capacity",
        value,
        expected: "a number"
      })
      const arrived = crossed(Schemas.InvalidOption, error)
      assert.strictEqual(arrived.message, error.message)
      assert.notInclude(renderings(arrived), secret)
      assert.notInclude(JSON.stringify(Schema.encodeSync(Schemas.InvalidOption)(error)), secret)
    }
    const reason = new CircuitBreaker.CircuitBreakerStoreError({ message: "lost", cause: new Error(secret) })
    const refused = new CircuitBreakerGate.CircuitRefused({
      key: "orders",
      reason: reason._tag,
      retryAfter: undefined,
      cause: new CircuitBreaker.CircuitBreakerError({ reason })
    })
    const json = Schema.encodeSync(Schemas.CircuitRefused)(refused)
    assert.notInclude(JSON.stringify(json), secret)
    assert.notInclude(renderings(Schema.decodeUnknownSync(Schemas.CircuitRefused)(json)), secret)
    const failed = new Waiter.WaiterFailed({
      matched: true,
      reason: undefined,
      attempts: 1,
      elapsed: seconds(1),
      outcome: Result.succeed(secret)
    })
    const waiter = crossed(Schemas.WaiterFailed(Schema.String, Schema.Never) as any, failed)
    assert.notInclude(renderings(waiter), secret)
  })
})
