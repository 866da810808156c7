import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { thinned } from "../utils/sweep.ts"
import { adapterSweeps } from "./sweeps/adapters.ts"
import { redisSweeps, sweptInRedis } from "./sweeps/redis.ts"
import { swept } from "./sweeps/sweep.ts"

describe("an interruption at any step, and in any wait, leaves no token, no waiter and no timer behind", () => {
  for (const [name, sweep] of Object.entries(adapterSweeps)) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const { interruptions, left } = yield* thinned(23)(swept(sweep))
        assert.deepStrictEqual(left, [])
        assert.isAtLeast(interruptions, sweep.least ?? 15)
      }))
  }
})

describe("an interruption at any step, and in any wait, leaves no lease in Redis, no token, no waiter and no timer", () => {
  for (const [name, sweep] of Object.entries(redisSweeps)) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const { interruptions, wrong } = yield* thinned(23)(sweptInRedis(sweep))
        assert.strictEqual(wrong.join("; "), "")
        assert.isAtLeast(interruptions, 15)
      }))
  }
})
