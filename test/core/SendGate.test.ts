import { assert, describe, it } from "@effect/vitest"
import { awsStandard, RetryQuota, SendGate, withRetry } from "effect-retry"
import * as AwsSdk from "effect-retry/AwsSdk"
import * as ClientThrottle from "effect-retry/ClientThrottle"
import * as ConcurrencyLimiter from "effect-retry/ConcurrencyLimiter"
import * as CoolDown from "effect-retry/CoolDown"
import * as Kit from "effect-retry/testing"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Layer from "effect/Layer"

class Full extends Data.TaggedError("Full")<{ readonly retryAfter: Duration.Duration }> {
  readonly [SendGate.Refused] = true
}
class Gate extends SendGate.Service<Gate, Full>()("test/SendGate/Gate") {}
class Fallback extends Context.Service<Fallback, string>()("test/SendGate/Fallback") {}

const refusal = new Full({ retryAfter: Duration.seconds(3) })
const full = SendGate.layer(Gate, { order: 1, enter: () => Effect.fail(refusal) })

describe("catchRefusal", () => {
  const closed = Effect.andThen(CoolDown.close("1 minute"), withRetry(Effect.succeed("sent"), awsStandard))
  const inUse = Effect.gen(function*() {
    yield* Effect.forkChild(withRetry(Effect.never, awsStandard))
    yield* Effect.yieldNow
    return yield* withRetry(Effect.succeed("sent"), awsStandard)
  })
  const plain = withRetry(Effect.succeed("sent"), awsStandard)
  const gates: ReadonlyArray<readonly [tag: string, call: Effect.Effect<string, unknown, any>, Layer.Layer<any>]> = [
    ["Full", plain, full],
    ["CoolingDown", closed, CoolDown.layer()],
    [
      "ConcurrencyLimitExceeded",
      inUse,
      ConcurrencyLimiter.layer({ rule: ConcurrencyLimiter.fixed(1), onExceeded: "fail" })
    ],
    ["QuotaExhausted", plain, RetryQuota.layer({ capacity: 10, initial: 1, firstAttemptCost: 5 })]
  ]
  for (const [tag, call, layer] of gates) {
    it.effect(`catches ${tag}, which no type names`, () =>
      Effect.gen(function*() {
        const caught = SendGate.catchRefusal(call, (refusal) => Effect.succeed(`busy: ${refusal._tag}`))
        assert.strictEqual(yield* Effect.provide(caught, layer), `busy: ${tag}`)
      }).pipe(Effect.provide(RetryQuota.layer())))
  }

  it.effect("hands on the error itself, with its retryAfter, and the types are exact", () =>
    Effect.gen(function*() {
      const seen: Array<SendGate.Refusal> = []
      const first: Effect.Effect<"sent" | "none", never, RetryQuota.RetryQuota> = SendGate.catchRefusal(
        withRetry(Effect.succeed("sent" as const), awsStandard),
        (refusal) => Effect.sync(() => seen.push(refusal)).pipe(Effect.as("none" as const))
      )
      const last: Effect.Effect<string, Kit.Throttled, RetryQuota.RetryQuota | Fallback> = withRetry(
        Effect.succeed("sent"),
        awsStandard
      ).pipe(
        SendGate.catchRefusal((refusal) =>
          refusal.retryAfter === undefined ? Effect.fail(new Kit.Throttled({})) : Fallback
        )
      )
      assert.strictEqual(yield* first, "none")
      assert.strictEqual(seen[0], refusal)
      assert.deepStrictEqual(seen[0]?.retryAfter, Duration.seconds(3))
      assert.strictEqual(yield* Effect.provideService(last, Fallback, "fallback"), "fallback")
    }).pipe(Effect.provide([full, RetryQuota.layer()])))

  it.effect("takes a refusal out of the type, and leaves all other errors, unchanged", () =>
    Effect.gen(function*() {
      const error = new Kit.NotRetryable()
      const either = (own: boolean): Effect.Effect<never, Kit.NotRetryable | Full | CoolDown.CoolingDown> =>
        Effect.fail(own ? error : refusal)
      const caught: (own: boolean) => Effect.Effect<string, Kit.NotRetryable> = (own) =>
        either(own).pipe(SendGate.catchRefusal(() => Effect.succeed("busy")))
      assert.strictEqual(yield* caught(false), "busy")
      assert.strictEqual(yield* Effect.flip(caught(true)), error)
      const unreadable = {
        get [SendGate.Refused](): true {
          throw new Error("unreadable")
        }
      }
      const foreign: Effect.Effect<never, unknown> = Effect.fail(unreadable)
      assert.strictEqual(yield* Effect.flip(SendGate.catchRefusal(foreign, () => Effect.void)), unreadable)
    }))

  it.effect("catches neither a defect nor an interruption, nor a refusal that is a defect", () =>
    Effect.gen(function*() {
      for (const self of [Effect.die(refusal), Effect.interrupt]) {
        const exit = yield* Effect.exit(SendGate.catchRefusal(self, () => Effect.succeed("busy")))
        assert.isTrue(Exit.isFailure(exit) && !Cause.hasFails(exit.cause))
      }
    }))

  it("each refusal of the library is one", () => {
    const refusals: ReadonlyArray<SendGate.Refusal> = [
      new ClientThrottle.ClientThrottled({ rejection: 0.5 }),
      new AwsSdk.StreamUsed({ command: "PutObjectCommand" }),
      new RetryQuota.QuotaExhausted({ balance: 0, cost: 1 })
    ]
    assert.deepStrictEqual(refusals.map(({ _tag }) => _tag), ["ClientThrottled", "StreamUsed", "QuotaExhausted"])
  })
})
