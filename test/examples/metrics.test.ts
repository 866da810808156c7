import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import { server } from "../../examples/metrics.ts"
import { freePort } from "../utils/peers.ts"

describe("examples/metrics.ts", () => {
  it.live("serves the metrics of retries, by resource", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      yield* Layer.build(server(port))
      const shown = Effect.tryPromise(() => fetch(`http://127.0.0.1:${port}/metrics`).then((answer) => answer.text()))
      let text = ""
      while (!text.includes("retry_retries_total")) {
        yield* Effect.sleep(20)
        text = yield* shown
      }
      assert.match(text, /^retry_retries_total\{.*class="throttling".*\} 1$/m)
      assert.include(text, `resource="orders"`)
      assert.match(text, /^retry_attempts_total\{.*error_type="Overloaded".*\} 1$/m)
    }).pipe(Effect.scoped, Effect.provideService(Metric.MetricRegistry, new Map())))
})
