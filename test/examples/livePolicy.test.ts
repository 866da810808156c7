import { assert, describe, it } from "@effect/vitest"
import { AdaptiveRateLimiter, RetryQuota } from "effect-retry"
import * as RetryConfig from "effect-retry/RetryConfig"
import * as RetryConfigSchema from "effect-retry/RetryConfigSchema"
import * as Kit from "effect-retry/testing"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as fs from "node:fs"
import * as Example from "../../examples/live-policy.ts"

const file = JSON.parse(fs.readFileSync(new URL("../../examples/retry.json", import.meta.url), "utf8"))

/** How many sends a call that always fails makes. */
const sendsOf = <R>(way: (send: Effect.Effect<never, Kit.Transient>) => Effect.Effect<unknown, unknown, R>) =>
  Effect.gen(function*() {
    let sends = 0
    const send = Effect.suspend(() => {
      sends++
      return Effect.fail(new Kit.Transient())
    })
    const fiber = yield* Effect.forkChild(Effect.exit(way(send)))
    yield* TestClock.adjust("1 minute")
    yield* Fiber.join(fiber)
    return sends
  })

describe("live-policy", () => {
  it.live("reads the file of the example", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* RetryConfig.status, { version: 1, problem: undefined, source: "followed" })
      assert.isUndefined(yield* Example.problem)
    }).pipe(Effect.provide(Example.ConfigLive)))

  it.effect("both forms follow it, until the switch is thrown", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* sendsOf(Example.placeOrder), 4)
      assert.strictEqual(yield* sendsOf(Example.longForm), 4)
      yield* Example.switchRetriesOff
      assert.strictEqual(yield* sendsOf(Example.placeOrder), 1)
      assert.strictEqual(yield* sendsOf(Example.longForm), 1)
    }).pipe(Effect.provide(RetryConfig.layer(file))))

  it.effect("the environment says how often", () =>
    Effect.gen(function*() {
      const env = { RETRY_ORDERS_MAX_ATTEMPTS: "6" }
      const sends = sendsOf(Example.fromEnvironment).pipe(
        Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env }))
      )
      assert.strictEqual(yield* sends, 6)
    }).pipe(Effect.provide([RetryQuota.layer(), AdaptiveRateLimiter.layer()])))

  it("the shipped schema is that of the module", () => {
    const shipped = new URL("../../dist/config/retry-config.schema.json", import.meta.url)
    if (!fs.existsSync(shipped)) return
    assert.deepStrictEqual(JSON.parse(fs.readFileSync(shipped, "utf8")), RetryConfigSchema.jsonSchema())
  })

  it("the page shows the file, except for the path of the schema", () => {
    const page = fs.readFileSync(new URL("../../docs/live.md", import.meta.url), "utf8")
    const shown = JSON.parse(/^```json\n([^]*?)^```$/m.exec(page)![1]!)
    assert.deepStrictEqual({ ...shown, $schema: "" }, { ...file, $schema: "" })
  })
})
