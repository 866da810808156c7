import { assert, describe, it } from "@effect/vitest"
import {
  awsStandard,
  Backoff,
  RetryClassifier,
  type RetryDecision,
  RetryInfo,
  RetryObserver,
  RetryPolicy,
  retryPromise,
  RetryQuota,
  type RetryQuotaStore,
  SendGate,
  withRetry
} from "effect-retry"
import * as RetryStrategy from "effect-retry/RetryStrategy"
import * as Kit from "effect-retry/testing"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import { scripted, Terminal, Transient, Unsure } from "../utils/call.ts"

type Run = (call: Effect.Effect<unknown, unknown>) => Effect.Effect<unknown, unknown, RetryQuota.RetryQuota>

const drivers: ReadonlyArray<readonly [string, Run]> = [
  ["withRetry", (call) => withRetry(call, awsStandard)],
  ["Effect.retry", (call) => Effect.retry(call, awsStandard)],
  ["RetryStrategy", (call) => Effect.provide(RetryStrategy.run(call), RetryStrategy.layer(awsStandard))]
]

class Refusal extends Data.TaggedError("Refusal")<{}> {
  readonly [SendGate.Refused] = true
}

const status = (httpStatusCode: number, name = "SomethingException") =>
  Object.assign(new Error("secret"), { name, $metadata: { httpStatusCode } })

const network = (code: string) =>
  Object.assign(new TypeError("fetch failed"), { cause: Object.assign(new Error(), { code }) })

const reasons: ReadonlyArray<readonly [string, unknown, RetryDecision.StopReason]> = [
  ["a plain error", new Error("secret"), "unknown-error"],
  ["a string", "boom", "unknown-error"],
  ["null", null, "unknown-error"],
  ["a proxy that has been revoked", revoked(), "unknown-error"],
  ["what may have been carried out", new Unsure(), "not-safe"],
  ["what says of itself that it is final", new Terminal(), "final"],
  ["an answer with status 501", status(501), "final"],
  ["an answer with status 404", { status: 404 }, "final"],
  ["an answer with status 400", status(400, "ValidationException"), "final"],
  ["an error with status 200", { status: 200 }, "unknown-error"],
  ["facts that veto", { [RetryInfo.TypeId]: RetryInfo.vetoed }, "vetoed"],
  ["facts that veto, with a hint", { [RetryInfo.TypeId]: RetryInfo.vetoed, retryAfter: 5 }, "vetoed"],
  ["the refusal of a gate", new Refusal(), "vetoed"],
  ["the refusal of the quota", new RetryQuota.QuotaExhausted({ cost: 1, balance: 0 }), "vetoed"]
]

function revoked() {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

const told = (run: Run, error: unknown) =>
  Effect.gen(function*() {
    const stops: Array<string> = []
    const observer: RetryObserver.RetryObserver = { onStop: ({ reason }) => void stops.push(reason) }
    yield* Kit.runToEnd(Effect.exit(Effect.provide(run(Effect.fail(error)), RetryObserver.layerOnly(observer))))
    return stops
  })

describe("why a failure is not retried", () => {
  for (const [form, run] of drivers) {
    for (const [name, error, reason] of reasons) {
      it.effect(`${form}: ${name}: ${reason}`, () =>
        Effect.gen(function*() {
          assert.deepStrictEqual(yield* told(run, error), [reason])
        }).pipe(Effect.provide(RetryQuota.layer())))
    }

    it.effect(`${form}: a veto comes before what the error says of itself, also from a cause`, () =>
      Effect.gen(function*() {
        const vetoing = RetryClassifier.vetoing(
          RetryClassifier.defaultClassifier,
          (error) => error instanceof Transient
        )
        const vetoed = Effect.provide(RetryClassifier.layer(vetoing))
        for (const error of [new Transient(), new Error("outer", { cause: new Transient() })]) {
          assert.deepStrictEqual(yield* told((call) => vetoed(run(call)), error), ["vetoed"])
        }
        assert.deepStrictEqual(yield* told((call) => vetoed(run(call)), new Error("x")), ["unknown-error"])
      }).pipe(Effect.provide(RetryQuota.layer())))
  }

  it.effect("a policy for what may be repeated stops at a final error, with that reason", () =>
    Effect.gen(function*() {
      const bold = Backoff.fixed(1).pipe(RetryPolicy.whileMaybeRetryable, RetryPolicy.maxAttempts(2))
      const run: Run = (call) => withRetry(call, bold)
      assert.deepStrictEqual(yield* told(run, new Unsure()), ["max-attempts"])
      assert.deepStrictEqual(yield* told(run, new Terminal()), ["final"])
    }).pipe(Effect.provide(RetryQuota.layer())))
})

/** A quota that has no tokens and never will: it answers immediately, or when asked, with or without a reason. */
const dry = (onExceeded: "stop" | "wait", answer: ReturnType<RetryQuotaStore.RetryQuotaStore["reserve"]>) =>
  RetryQuota.fromStore({
    capacity: 10,
    successIncrement: 0,
    firstAttemptCost: 0,
    onExceeded,
    reserve: () => answer,
    deposit: () => undefined,
    balance: () => 0
  })

const dryQuotas: ReadonlyArray<readonly [string, RetryQuota.RetryQuota["Service"]]> = [
  ["immediately", dry("stop", undefined)],
  ["when asked", dry("stop", () => Effect.void)],
  ["after a wait, and says so", dry("wait", () => Effect.succeed("refused" as const))],
  ["after a wait, without a reason", dry("wait", () => Effect.void)]
]

describe("a quota that refuses a retry", () => {
  for (const [form, run] of drivers) {
    for (const [how, quota] of dryQuotas) {
      it.effect(`${form}: ${how}: a call without a deadline stops for the quota, never at a deadline`, () =>
        Effect.gen(function*() {
          assert.deepStrictEqual(yield* told(run, new Transient()), ["quota-exhausted"])
        }).pipe(Effect.provideService(RetryQuota.RetryQuota, quota)))
    }
  }
})

describe("RetryObserver.logger", () => {
  /** What is logged, by level. */
  const logged = (call: Effect.Effect<unknown, unknown, RetryQuota.RetryQuota>) =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const logger = Logger.make(({ logLevel, message }) => {
        lines.push(`${logLevel}: ${String(Array.isArray(message) ? message[0] : message)}`)
      })
      yield* Kit.runToEnd(Effect.exit(call)).pipe(
        Effect.provide([
          Logger.layer([logger]),
          RetryObserver.layer(RetryObserver.logger),
          Layer.succeed(References.MinimumLogLevel, "Debug"),
          RetryQuota.layer(),
          Kit.fixedRandom(0.48)
        ])
      )
      return lines
    })

  const four = Backoff.exponential(240).pipe(
    RetryPolicy.maxAttempts(4),
    RetryPolicy.whileRetryable
  )

  for (
    const [form, run] of [
      ["withRetry", (call: Effect.Effect<unknown, unknown>) => withRetry(call, four)],
      ["Effect.retry", (call: Effect.Effect<unknown, unknown>) => Effect.retry(call, four)]
    ] as const
  ) {
    it.effect(`${form}: logs each retry at Debug, and the final reason at Warning, once`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* logged(run(Effect.fail(network("ECONNRESET")))), [
          "Debug: retry 1 of 3 in 240 ms after ECONNRESET",
          "Debug: retry 2 of 3 in 480 ms after ECONNRESET",
          "Debug: retry 3 of 3 in 960 ms after ECONNRESET",
          "Warn: not retried after 4 attempts: max-attempts, ECONNRESET"
        ])
        assert.deepStrictEqual(yield* logged(run(scripted([network("EPIPE")]).effect)), [
          "Debug: retry 1 of 3 in 240 ms after EPIPE"
        ])
      }))
  }

  const names: ReadonlyArray<readonly [string, unknown]> = [
    ["final, HTTP 400 ValidationException", status(400, "ValidationException")],
    ["final, Terminal", new Terminal()],
    ["unknown-error, TypeError", new TypeError("secret")],
    ["unknown-error, a plain Error", new Error("secret")],
    ["unknown-error, a plain Error", new Error("secret", { cause: new Error("another") })],
    ["unknown-error, a value of type string", "secret"],
    ["unknown-error, a value of type undefined", undefined],
    ["unknown-error, null", null],
    ["unknown-error, a value of type object", { code: "a secret in a code", name: "a\nsecond line" }],
    ["unknown-error, a value of type object", revoked()]
  ]
  it.effect("calls an error by its code, its name and its status, and shows nothing else of it", () =>
    Effect.gen(function*() {
      for (const [expected, error] of names) {
        assert.deepStrictEqual(yield* logged(withRetry(Effect.fail(error), awsStandard)), [
          `Warn: not retried after 1 attempt: ${expected}`
        ])
      }
    }))

  const resources: ReadonlyArray<readonly [string, string]> = [
    ["orders", "orders"],
    ["dynamodb:orders/2", "dynamodb:orders/2"],
    ["tenant of\na second line", JSON.stringify("tenant of\na second line")],
    ["a".repeat(64), "a".repeat(64)],
    ["a".repeat(65), JSON.stringify("a".repeat(64))],
    ["", "\"\""]
  ]
  it.effect("names the resource last, in one short line whatever its name", () =>
    Effect.gen(function*() {
      for (const [resource, expected] of resources) {
        const call = withRetry(scripted([network("ECONNRESET"), new Terminal()]).effect, four)
        assert.deepStrictEqual(yield* logged(Effect.provideService(call, RetryObserver.CurrentResource, resource)), [
          `Debug: retry 1 of 3 in 240 ms after ECONNRESET (${expected})`,
          `Warn: not retried after 2 attempts: final, Terminal (${expected})`
        ])
      }
    }))

  it.effect("warns once of a call that retries inside another one", () =>
    Effect.gen(function*() {
      const inner = withRetry(Effect.fail(new Terminal()), RetryPolicy.outermostOnly(four))
      assert.deepStrictEqual(yield* logged(withRetry(inner, four)), [
        "Debug: not retried after 1 attempt: nested, Terminal",
        "Warn: not retried after 1 attempt: final, Terminal"
      ])
    }))

  it.effect("names no limit where a policy has none", () =>
    Effect.gen(function*() {
      const endless = Backoff.fixed(7)
      assert.deepStrictEqual(yield* logged(withRetry(scripted([new Transient()]).effect, endless)), [
        "Debug: retry 1 in 7 ms after Transient"
      ])
    }))

  it("reports the limit of the policy to retryPromise's observers too", async () => {
    const limits: Array<number> = []
    const observer = RetryObserver.layerOnly({ onRetry: ({ maxAttempts }) => void limits.push(maxAttempts) })
    const context = await Effect.runPromise(Effect.scoped(Layer.build(observer)))
    await retryPromise(() => Promise.reject(new Transient()), RetryPolicy.maxAttempts(Backoff.fixed(1), 2), {
      context
    }).catch(() => undefined)
    assert.deepStrictEqual(limits, [2])
  })
})
