import { assert, describe, it } from "@effect/vitest"
import * as Kit from "effect-retry/testing"
import * as Effect from "effect/Effect"
import * as Example from "../../examples/client-throttle.ts"

describe("examples/client-throttle", () => {
  it.effect("serves a fallback in place of calls to a service that is down", () =>
    Effect.gen(function*() {
      const call = Kit.outcomes([Kit.transient], { afterwards: "repeat" })
      const load = Effect.orElseSucceed(Example.loadOr(Effect.as(call.send, "fresh"), "stale"), () => "failed")
      const ends: Array<string> = []
      for (let count = 0; count < 100; count++) ends.push(yield* Kit.runToEnd(load))
      const stale = ends.filter((end) => end === "stale").length
      assert.isAbove(stale, 50)
      assert.strictEqual(ends.filter((end) => end === "failed").length, 100 - stale)
      assert.isBelow(call.sends, 50)
    }).pipe(Effect.provide([Example.layer, Kit.seededRandom("thin fleet")])))
})
