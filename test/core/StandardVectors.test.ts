import { assert, describe, it } from "@effect/vitest"
import { awsDynamoDB2026, AwsModes, awsStandard, awsStandard2026, RetryQuota } from "effect-retry"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as TestClock from "effect/testing/TestClock"
import { drivers, optionsOf, playVector, scriptedCall, withRandom } from "../utils/vectors.ts"
import { shared2026, standard2026 } from "../vectors/standard2026.ts"
import { standardClassic } from "../vectors/standardClassic.ts"

describe("AwsModes", () => {
  for (const driver of drivers) {
    describe(`standard, by ${driver.name}`, () => {
      it.effect.each(standardClassic)(
        "vector: $name",
        (vector) => playVector(vector, AwsModes.standard(optionsOf(vector.given)), driver)
      )
    })

    describe(`awsStandard, by ${driver.name}`, () => {
      it.effect.each(standardClassic.slice(0, 4))("vector: $name", (vector) => playVector(vector, awsStandard, driver))
    })

    describe(`standard2026, by ${driver.name}`, () => {
      it.effect.each(standard2026)(
        "vector: $name",
        (vector) =>
          playVector(
            vector,
            vector.given.dynamoDB ? awsDynamoDB2026 : AwsModes.standard2026(optionsOf(vector.given)),
            driver
          )
      )

      it.effect("vector: 9 shared multi-threaded scenarios", () =>
        Effect.gen(function*() {
          const policy = AwsModes.standard2026(shared2026.given)
          const calls = shared2026.calls.map(({ beginsAt, statuses }) => {
            const script = scriptedCall(statuses.map((status) => ({ status })))
            const run = driver.run(script.call, policy, () => assert.fail("no call stops")).pipe(withRandom(1))
            return { script, run: Effect.delay(run, beginsAt) }
          })
          const fibers = yield* Effect.forEach(calls, ({ run }) => Effect.forkChild(run, { startImmediately: true }))
          const sends = [0, 0]
          let now = 0
          for (const { at, call, quota, status } of shared2026.balances) {
            yield* TestClock.adjust(at - now)
            now = at
            const { script } = calls[call]!
            assert.deepStrictEqual([script.sentAt.length, script.sentAt.at(-1)], [++sends[call]!, at])
            assert.deepStrictEqual(fibers[call]!.pollUnsafe(), status === 200 ? Exit.succeed(200) : undefined)
            assert.strictEqual(yield* RetryQuota.balance, quota)
          }
        }).pipe(Effect.provide(RetryQuota.layer())))

      it.effect("vector: 9 ends with the same balance when the calls begin at the same time", () =>
        Effect.gen(function*() {
          const policy = AwsModes.standard2026(shared2026.given)
          const calls = shared2026.calls.map(({ statuses }) =>
            driver.run(scriptedCall(statuses.map((status) => ({ status }))).call, policy, () => {}).pipe(withRandom(1))
          )
          const fiber = yield* Effect.forkChild(Effect.all(calls, { concurrency: "unbounded" }))
          yield* TestClock.adjust("150 millis")
          assert.deepStrictEqual(fiber.pollUnsafe(), Exit.succeed([200, 200]))
          assert.strictEqual(yield* RetryQuota.balance, shared2026.finalQuota)
        }).pipe(Effect.provide(RetryQuota.layer())))
    })

    describe(`awsStandard2026, by ${driver.name}`, () => {
      it.effect.each(standard2026.slice(0, 4))("vector: $name", (vector) => playVector(vector, awsStandard2026, driver))
    })
  }
})
