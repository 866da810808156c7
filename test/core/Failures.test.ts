import { assert, describe, it } from "@effect/vitest"
import {
  awsStandard,
  RetryClassifier,
  RetryInfo,
  RetryObserver,
  RetryPolicy,
  RetryQuota,
  withRetry
} from "effect-retry"
import * as RetryHttp from "effect-retry/RetryHttp"
import * as Kit from "effect-retry/testing"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"

const half = Kit.fixedRandom(0.5)

type Run = <E>(call: Effect.Effect<string, E>) => Effect.Effect<string, E, RetryQuota.RetryQuota>
const drivers: ReadonlyArray<readonly [string, Run]> = [
  ["withRetry", (call) => withRetry(call, awsStandard)],
  ["Effect.retry", (call) => Effect.retry(call, awsStandard)]
]

const classifiers = [
  ["the default chain", RetryClassifier.defaultClassifier],
  ["that of HTTP", RetryHttp.classifier],
  ["a chain with a veto", RetryClassifier.vetoing(RetryClassifier.defaultClassifier, () => false)]
] as const

/** Chains of causes; at most the last one is worth a retry. */
const chained = (depth: number, last: unknown): unknown => {
  let error = last
  for (let n = 0; n < depth; n++) error = { message: `level ${n}`, cause: error }
  return error
}

describe("failures and defects", () => {
  for (const [driver, run] of drivers) {
    it.effect(`a defect is not retried, is unchanged, and costs nothing, with ${driver}`, () =>
      Effect.gen(function*() {
        const defect = new Error("a mistake")
        const call = Kit.outcomes([Kit.defect(defect)])
        const exit = yield* Effect.exit(Kit.runToEnd(run(Effect.as(call.send, ""))))
        assert.deepStrictEqual(exit, Exit.die(defect))
        assert.strictEqual(call.sends, 1)
        assert.strictEqual(yield* RetryQuota.balance, 500)
      }).pipe(Effect.provide(Kit.TestQuota.layer())))

    it.effect(`an observer that throws is a defect of the call, and the tokens are back, with ${driver}`, () =>
      Effect.gen(function*() {
        const defect = new Error("a mistake")
        const observer = RetryObserver.layer({
          onRetry: () => {
            throw defect
          }
        })
        const call = Kit.outcomes([Kit.transient])
        const exit = yield* Effect.exit(Kit.runToEnd(Effect.provide(run(Effect.as(call.send, "")), observer)))
        assert.deepStrictEqual(exit, Exit.die(defect))
        assert.deepStrictEqual(yield* Kit.TestQuota.state, { balance: 500, capacity: 500, held: 0, waiting: 0 })
      }).pipe(Effect.provide(Kit.TestQuota.layer())))

    it.effect(`a classifier that throws knows nothing of the error, which is unchanged, with ${driver}`, () =>
      Effect.gen(function*() {
        const classifier = RetryClassifier.layer(() => {
          throw new Error("a mistake")
        })
        const error = new Kit.Transient()
        const call = Kit.outcomes([Kit.failure(error)])
        const failed = Kit.runToEnd(Effect.flip(Effect.provide(run(Effect.as(call.send, "")), classifier)))
        assert.strictEqual(yield* failed, error)
        assert.strictEqual(call.sends, 1)
        assert.strictEqual(yield* RetryQuota.balance, 500)
      }).pipe(Effect.provide(Kit.TestQuota.layer())))

    it.effect(`an error that is frozen stays the same object, unchanged, with ${driver}`, () =>
      Effect.gen(function*() {
        for (const freeze of [Object.freeze, Object.seal, Object.preventExtensions]) {
          const error = freeze(Object.assign(new Error("busy"), { name: "ThrottlingException", $metadata: {} }))
          const keys = Reflect.ownKeys(error)
          const call = Kit.outcomes([Kit.failure(error)], { afterwards: "repeat" })
          assert.strictEqual(yield* Kit.runToEnd(Effect.flip(run(Effect.as(call.send, "")))), error)
          assert.strictEqual(call.sends, 3)
          assert.deepStrictEqual(Reflect.ownKeys(error), keys)
        }
        class GetterOnly extends Error {
          override readonly name = "ThrottlingException"
          override get message(): string {
            return "fixed"
          }
        }
        const error = new GetterOnly()
        const call = Kit.outcomes([Kit.failure(error)], { afterwards: "repeat" })
        assert.strictEqual(yield* Kit.runToEnd(Effect.flip(run(Effect.as(call.send, "")))), error)
        assert.strictEqual(call.sends, 3)
      }).pipe(Effect.provide([Kit.TestQuota.layer(), half])))

    it.effect(`the caller sees the last failure, and the observer every one before it, with ${driver}`, () =>
      Effect.gen(function*() {
        const errors = [new Kit.Transient(), new Kit.Transient(), new Kit.Transient()]
        const seen: Array<string> = []
        const observer = RetryObserver.layer({
          onRetry: ({ retry: attempt }, error) =>
            void seen.push(`${attempt}: ${errors.indexOf(error as Kit.Transient)}`),
          onStop: ({ attempts, reason }) => void seen.push(`${reason} after ${attempts}`)
        })
        const call = Kit.outcomes(errors.map((error) => Kit.failure(error)))
        const failed = Kit.runToEnd(Effect.flip(Effect.provide(run(Effect.as(call.send, "")), observer)))
        assert.strictEqual(yield* failed, errors[2])
        assert.deepStrictEqual(seen, ["1: 0", "2: 1", "max-attempts after 3"])
      }).pipe(Effect.provide(Kit.TestQuota.layer())))
  }

  it.effect("a delay function that throws is a defect of the call, and the tokens are back", () =>
    Effect.gen(function*() {
      const defect = new Error("a mistake")
      const policy = RetryPolicy.fromDelay(() => {
        throw defect
      }).pipe(RetryPolicy.quotaGated({ cost: 5 }))
      const calls = [
        withRetry(Kit.outcomes([Kit.transient]).send, policy),
        Effect.retry(Kit.outcomes([Kit.transient]).send, policy)
      ]
      for (const call of calls) {
        assert.deepStrictEqual(yield* Effect.exit(Kit.runToEnd(call)), Exit.die(defect))
        assert.deepStrictEqual(yield* Kit.TestQuota.state, { balance: 500, capacity: 500, held: 0, waiting: 0 })
      }
    }).pipe(Effect.provide(Kit.TestQuota.layer())))

  for (
    const error of ["ThrottlingException", "", 503, 0, NaN, Symbol("x"), null, undefined, true, 10n, () => 503, [503]]
  ) {
    it.effect(`${String(error)} in place of an error is not retried, and is unchanged`, () =>
      Effect.gen(function*() {
        for (const [name, classifier] of classifiers) assert.isTrue(Option.isNone(classifier(error)), name)
        for (const [, run] of drivers) {
          const call = Kit.outcomes([Kit.failure(error)])
          const exit = yield* Effect.exit(Kit.runToEnd(run(Effect.as(call.send, ""))))
          assert.deepStrictEqual(exit, Exit.fail(error))
          assert.strictEqual(call.sends, 1)
        }
        assert.strictEqual(yield* RetryQuota.balance, 500)
      }).pipe(Effect.provide(Kit.TestQuota.layer())))
  }

  const throwing = new Proxy({}, {
    get: () => {
      throw new Error("no entry")
    }
  })
  const { proxy: revoked, revoke } = Proxy.revocable({}, {})
  revoke()
  const cyclic: { cause?: unknown; message: string } = { message: "round and round" }
  cyclic.cause = cyclic
  const getter = Object.defineProperty(new Error("busy"), "name", {
    get: () => {
      throw new Error("no entry")
    }
  })

  for (
    const [name, error] of [
      ["with a getter that throws", getter],
      ["a proxy that throws", throwing],
      ["a revoked proxy", revoked],
      ["whose cause is itself", cyclic],
      ["with 10,000 causes", chained(10_000, { status: 503 })],
      ["with a status 11 causes deep", chained(11, { status: 503 })]
    ] as const
  ) {
    it.effect(`an error ${name} is looked at without a throw, to a bounded depth`, () =>
      Effect.gen(function*() {
        for (const [of, classifier] of classifiers) {
          assert.isTrue(Option.isNone(RetryClassifier.classify(classifier, error)), of)
        }
        const call = Kit.outcomes([Kit.failure(error)])
        const exit = yield* Effect.exit(Kit.runToEnd(withRetry(call.send, awsStandard)))
        assert.isTrue(Exit.isFailure(exit) && Cause.squash(exit.cause) === error)
        assert.strictEqual(call.sends, 1)
        // Nor does asking whose fault it is.
        assert.isTrue(Option.isNone(RetryInfo.faultOf(error)))
      }).pipe(Effect.provide(Kit.TestQuota.layer())))
  }

  it("a status up to ten causes deep is seen", () => {
    assert.isTrue(Option.isSome(RetryClassifier.defaultClassifier(chained(10, { status: 503 }))))
  })

  for (const word of ["__proto__", "constructor", "toString", "hasOwnProperty", "valueOf", "prototype"]) {
    it(`${word} as a name, a code, a tag or a type is unknown like any other`, () => {
      for (const field of ["name", "code", "Code", "_tag", "__type"]) {
        const error = JSON.parse(`{ ${JSON.stringify(field)}: ${JSON.stringify(word)} }`)
        for (const [of, classifier] of classifiers) assert.isTrue(Option.isNone(classifier(error)), `${of}: ${field}`)
      }
    })
  }

  it("JSON cannot pass itself off as facts", () => {
    const forged = JSON.parse(JSON.stringify({ [RetryInfo.TypeId]: RetryInfo.transient }))
    assert.isTrue(Option.isNone(RetryClassifier.defaultClassifier(forged)))
    const polluting = JSON.parse(`{ "__proto__": { "status": 503 } }`)
    assert.isTrue(Option.isNone(RetryClassifier.defaultClassifier(polluting)))
  })
})
